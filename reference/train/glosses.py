"""The meanings of common nouns and verbs, from the glosses of WordNet 3.0 (a folder with index.* and data.*, as
installed by Debian's wordnet-base)."""

import re
from collections import Counter
from pathlib import Path

from wording import Turn, a, punctuated, spin, upper_first

# Words whose first sense is not the one that a child means, and words for adults.
UNWANTED = set("jungle spade cut use flies parts lots bow lifetime mini burn degree excitement convertible return "
               "pass sex sexual sexually penis vagina intercourse genital drug slave kill murder fart breast "
               "breasts nazi slang genus taxonomic obsolete archaic offensive ethnic nipple urine feces anus "
               "excrement".split())
NO_END = (" in", " of", " to", " for", " with", " on", " at", " from", " by", " into", " as", " about", " that",
          " or", " and")


def first_senses(folder, part):
    """{word: gloss of its first sense}, without proper names"""
    data = (Path(folder) / f"data.{part}").read_bytes()
    found = {}
    for line in (Path(folder) / f"index.{part}").open():
        if line.startswith(" "):  # the licence
            continue
        word, *fields = line.split()  # part, senses, pointers and their kinds, two counts, offsets
        offset = int(fields[5 + int(fields[2])])
        entry, gloss = data[offset:data.index(b"\n", offset)].decode().split(" | ")
        if not entry.split()[4][0].isupper():
            found[word] = gloss
    return found


def uses(folder):
    """(word, part of speech) -> its frequency in WordNet's tagged texts"""
    parts, counts = {"1": "noun", "2": "verb", "3": "adj", "4": "adv", "5": "adj"}, Counter()
    for line in (Path(folder) / "cntlist.rev").open():
        key, _, n = line.split()
        word, rest = key.split("%")
        counts[word, parts[rest[0]]] += int(n)
    return counts


def simple(gloss, word, known):
    """The first clause of a gloss, if a child knows its words and it does not explain a word with itself."""
    gloss = re.sub(r"\([^)]*\)", "", gloss.split('"')[0])
    gloss = " ".join(re.split(r"[;:]", gloss)[0].split()).strip(" ,")
    words = re.findall(r"[a-z]+", gloss.lower())
    if not 3 <= len(words) <= 16 or not re.fullmatch(r"[a-z ,'-]+", gloss):
        return None
    if any(w not in known or w in UNWANTED or w.startswith(word[:max(4, len(word) - 2)]) for w in words):
        return None
    return gloss


BEGINNINGS = ("a ", "an ", "the ", "any ", "something ", "someone ")  # beginnings of a noun's gloss


def asked_for(word, part):
    """False for plurals and for "the act of doing": those glosses explain another word."""
    return word not in UNWANTED and not re.search(r"[^s]s$", word) and not (part == "noun" and word.endswith("ing"))


def glosses(folder, texts, known_words=8000, asked_words=9000):
    """[(part of speech, word, gloss, True if people say "a word")] for words that are frequent in `texts`."""
    counts, article = Counter(), Counter()
    for text in texts:
        text = text.lower()
        counts.update(re.findall(r"[a-z]+", text))
        article.update(re.findall(r"\ban? ([a-z]+)\b(?! [a-z]+s? (?:of|with))", text))
    known = {w for w, _ in counts.most_common(known_words)}
    used, senses = uses(folder), {part: first_senses(folder, part) for part in ("noun", "verb")}
    rows = []
    for word, n in counts.most_common(asked_words):
        part = max(("noun", "verb", "adj", "adv"), key=lambda p: used[word, p])
        if n < 3 or len(word) < 3 or not asked_for(word, part) or word not in senses.get(part, {}):
            continue
        gloss = simple(senses[part][word], word, known)
        if gloss and not gloss.endswith(NO_END) and (part == "verb" or gloss.startswith(BEGINNINGS)):
            rows.append((part, word, gloss, part == "noun" and article[word] >= 4))
    return rows


def gloss_turn(r, row):
    part, word, gloss, countable = row
    if part == "noun" and countable and r.random() < 0.6:
        x = a(word)
        ask = (f"(What is {x}|What's {x}|Can you explain what {x} is|Explain what {x} is|"
               f"Tell me what {x} is|Do you know what {x} is)")
        return Turn(punctuated(spin(r, ask)), f"{upper_first(x)} is {gloss}.")
    ask = (f"(What does {word} mean|What does the word {word} mean|What is the meaning of {word}|"
           f"Explain the word {word}|What is meant by {word}|Define {word})")
    gloss = "to " + gloss.removeprefix("to ") if part == "verb" else gloss
    return Turn(punctuated(spin(r, ask)), f"The word {word} means {gloss}.")
