"""The training text, read from the data folder (always an argument, never a constant)."""

import json
import lzma
import re
from pathlib import Path

HELD_OUT = 500  # the last stories of tinystories.txt: never trained on, never shown to a teacher
HELD_OUT_TALKS = 100  # the last dialogues between people of each source: the exam measures bits per byte on them


def stories(data):
    """(training stories, held-out stories) of TinyStories, stripped."""
    text = lzma.open(Path(data) / "text/tinystories.txt.xz", "rt", encoding="utf-8").read()
    parts = [s.strip() for s in text.split("<|endoftext|>")]
    parts = [s for s in parts if s]
    return parts[:-HELD_OUT], parts[-HELD_OUT:]


def json_lines(data, name):
    with lzma.open(Path(data) / f"text/{name}.jsonl.xz", "rt", encoding="utf-8") as f:
        return [json.loads(line)["turns"] for line in f]


def tidy(turn):
    """Tidies text that was typed in a hurry: a capital first, "I", single spaces."""
    turn = " ".join(turn.split())
    turn = re.sub(r"\bi(?=$|[ ,.!?]|'(m|ve|ll|d|s)\b)", "I", turn)
    return turn[:1].upper() + turn[1:]


def filled_in(turns):
    """The longest run of turns without an unfilled template, such as "Hi, I'm [user 2's name]"."""
    runs = [[]]
    for turn in turns:
        runs += [[]] if "[" in turn else []
        if "[" not in turn:
            runs[-1].append(turn)
    return max(runs, key=len)


# Words in an answer that tell of the speaker's own life. The model has none.
MOOD = "so|sorry|glad|happy|not sure|sure"
BIOGRAPHY = re.compile(
    rf"\b(I'm (?!{MOOD})|I am (?!{MOOD})|I was|I have|I've|I had|I grew|I work|I live|I got|I do|I went|I go|"
    r"I play|I ate|I love|I like|I enjoy|I also|I prefer|me too|my|we|our|mine|I usually|I used|I did|I can|"
    r"I just|I don't|I will|I'll|I can't)\b", re.I)
# Beginnings of sentences that ask, or react to what was said.
REACTS = ("That", "What ", "What's", "How ", "Oh", "Wow", "I'm sorry", "I am sorry", "Nice", "Cool", "Do you",
          "Have you", "Are you", "Great", "Those", "Where", "Who", "Why", "Congrat", "Did you", "Is ", "Awesome",
          "Amazing", "Thank")
# The user's turn is itself a reaction to something said earlier.
GOES_ON = ("me too", "you should", "no problem", "i agree", "you're welcome", "yeah", "it is", "i will", "thanks",
           "i do", "i know", "exactly", "sure", "i did", "i can", "i bet", "i'm sure", "i hope", "i am", "that",
           "oh", "those", "nice to", "hi", "hello", "it was", "it's")
UNWANTED = re.compile(r"[*:()]|too[.!?]|plan|User|meet you|as well|so,")


def sentences(turn):
    return re.findall(r"[^.!?]+[.!?]+", turn) or [turn]


def reaction(user, answer):
    """The sentences of a person's answer that react or ask without telling of the speaker's life, or None."""
    tells = re.search(r"\b(I|I'm|my|My|I've)\b", user)
    if "?" in user or user.lower().startswith(GOES_ON) or not tells:
        return None
    kept = [s.strip() for s in sentences(answer)]
    text = " ".join([s for s in kept if s.startswith(REACTS) and not BIOGRAPHY.search(s)][:2])
    good = len(text.split()) >= 3 and text[-1] in ".!?" and not UNWANTED.search(text)
    return text if good else None


def reacting(turns):
    """Runs of (what one person says, the other one's reaction) in which the reaction fits any speaker."""
    run = []
    for user, answer in zip(turns[::2], turns[1::2]):
        said = reaction(user, answer)
        short = said and 2 <= len(user.split()) <= 40 and len(said.split()) <= 40
        if short and (user + said).isascii():
            run += [user, said]
        elif run:
            yield run
            run = []
    if run:
        yield run


def persona(data):
    """Either speaker may be the user, if the other one reacts."""
    for turns in json_lines(data, "synthetic_persona_chat")[:-HELD_OUT_TALKS]:
        turns = filled_in([tidy(t) for t in turns if t.strip()])
        for start in (0, 1):
            for run in reacting(turns[start:]):
                yield {"system": None, "turns": run}


ORDER = "You take orders in a coffee bar."


def taskmaster(data):
    for turns in json_lines(data, "taskmaster4")[:-HELD_OUT_TALKS]:
        turns = filled_in([tidy(t) for t in turns if t.strip()])
        turns = turns[:len(turns) // 2 * 2]
        if turns and all(t.isascii() and len(t.split()) <= 50 for t in turns):
            yield {"system": ORDER, "turns": turns}


def small_talk(data):
    """{source: dialogues between people, tidied}"""
    return {"persona": persona(data), "taskmaster": taskmaster(data)}
