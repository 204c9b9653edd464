"""People's sentences about themselves (Synthetic-Persona-Chat), and questions about them.

The answer repeats the sentence with "you" for "I": the model learns to find a sentence and to repeat it.
"""

import re
from collections import Counter

import corpus
from rules_events import reply, sentence, to_you
from wording import Turn, punctuated, spin

GOOD = re.compile(r"(I|My) [A-Za-z' ,]+\.")
# Sentences that need what was said before them.
NO_FACT = re.compile(r"\b(that|this|it|you|your|too|it's|they|them|also|so|agree|know|think|guess|hope|bet|sure|will|"
                     r"would|can't|wish|he|she|him|her|his|there|mean|should|one|those|these|either)\b", re.I)


def sentences(data):
    """[(sentence, a word that it is about)]: each once, in the order of the file. The exam's dialogues are left out."""
    turns = [t for d in corpus.json_lines(data, "synthetic_persona_chat")[:-corpus.HELD_OUT_TALKS] for t in d]
    found = dict.fromkeys(s.strip() for t in turns for s in corpus.sentences(corpus.tidy(t)))
    good = [s for s in found if GOOD.fullmatch(s) and 4 <= len(s.split()) <= 11 and not NO_FACT.search(s)]
    counts = Counter(w for s in good for w in set(re.findall(r"[a-z']+", s.lower())))
    about = []
    for s in good:
        rare = [w for w in re.findall(r"[a-z']{4,}", s.lower()) if counts[w] <= 60]
        if rare:
            about.append((s, max(rare, key=counts.get)))
    return about


ALL = ("(What did I just say|What did I tell you|What did I say|What do you know about me|Do you remember what I said|"
       "Can you repeat what I said|Repeat what I told you|What have I told you|Tell me what I said)")
ABOUT = ("(What did I (say|tell you) about WORD|Do you remember what I said about WORD|"
         "Can you tell me what I said about WORD|What was that about WORD|Tell me what I said about WORD)")


def retold(r, known):
    """(turns that tell, turns that ask later)"""
    number = r.choice([1, 1, 1, 2, 2, 3])
    said = r.sample(known, number)
    tell = [Turn(s, reply(r), "Okay.") for s, _ in said]
    if number > 1 and r.random() < 0.5:
        tell = [Turn(" ".join(s for s, _ in said), reply(r), "Okay.")]
    one, word = r.choice(said)
    ask = spin(r, ALL if number == 1 and r.random() < 0.5 else ABOUT.replace("WORD", word))
    answer = to_you(one[:-1])
    start = r.choice(["You said that ", "You told me that ", "You said that ", ""])
    return tell, [Turn(punctuated(ask), sentence(start + answer))]
