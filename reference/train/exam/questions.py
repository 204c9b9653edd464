"""The questions of the exam, and what makes an answer right.

everyday.txt and openings.txt are text, one question per line. In checkable.jsonl and two_turn.jsonl
a question has `right`, a pattern or a list of patterns that must all occur in the answer, and it
may have one of these:

wrong   a pattern. The first sentence that holds anything right or wrong must hold nothing wrong:
        an answer that lists every color does not name the color of the sky.
count   [least, most]: how many different matches of `right` the answer must have.

In two_turn.jsonl the user first says `tell`. An answer that repeats `tell` whole is wrong: it says
"my name is Anna" where "your name is Anna" is right.

Patterns are regular expressions for whole words, in any case, with or without a plural -s or -es.
{colors} in a pattern stands for the pattern of that name in words.json.
"""

import json
import re
from pathlib import Path

FOLDER = Path(__file__).parent / "questions"


def topics():
    """{topic: questions} of everyday.txt."""
    found = {}
    for line in (FOLDER / "everyday.txt").read_text().splitlines():
        if line.startswith("# "):
            topic = found[line[2:]] = []
        elif line:
            topic.append(line)
    return found


def openings():
    return (FOLDER / "openings.txt").read_text().splitlines()


def read(name):
    """The questions of a .jsonl file. None may be answered by repeating it."""
    lines = (FOLDER / f"{name}.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    for q in found:
        if "right" in q and is_right(q, q["ask"]):
            raise SystemExit(f"{name}.jsonl: an echo answers {q['ask']!r}")
    return found


def pattern(text):
    words = json.loads((FOLDER / "words.json").read_text())
    for name, alternatives in words.items():
        text = text.replace("{" + name + "}", f"(?:{alternatives})")
    return re.compile(rf"(?<!\w)(?:{text})(?:e?s)?(?!\w)", re.I | re.S)


def sentences(text):
    return [s for s in re.split(r"[.!?]+(?:\s+|$)|\n+", text) if s.strip()]


def words(text):
    return re.findall(r"\w+", text.lower())


def asked():
    """The user's first turn in all questions of the exam, as plain(): no training dialogue may contain it."""
    rows = [q for name in ("checkable", "two_turn", "one_word") for q in read(name)]
    said = [q.get("tell", q["ask"]) for q in rows] + [q for group in topics().values() for q in group]
    return {plain(text) for text in said}


def plain(text):
    """Only the words, for comparing."""
    return " ".join(words(text))


def is_right(question, answer):
    told = words(question.get("tell", ""))
    if told and f" {' '.join(told)} " in f" {' '.join(words(answer))} ":
        return False
    right = question["right"]
    right = [pattern(r) for r in (right if isinstance(right, list) else [right])]
    if not all(r.search(answer) for r in right):
        return False
    if "count" in question:
        least, most = question["count"]
        different = {m.group().lower().rstrip("s") for m in right[0].finditer(answer)}
        return least <= len(different) <= most
    if "wrong" in question:
        return names_only_right(answer, right[0], pattern(question["wrong"]))
    return True


def names_only_right(answer, right, wrong):
    for sentence in sentences(answer):
        rest = right.sub("", sentence)
        if wrong.search(rest):
            return False
        if rest != sentence:
            return True
    return False  # the match spans two sentences
