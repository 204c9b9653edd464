"""Sentences about the user's life that are asked for later: what, where, when, how many, and which of two."""

import re

from rules_memory import NAMES, invented
from wording import SLOTS, Turn, lines, punctuated, spin, table, upper_first

KIN = [f"my {kin}" for kin in SLOTS["kin"]]


def read_sentences():
    """[{"tell", "reply", "asks": [(question, answer)]}] of facts/told.txt"""
    found = []
    for line in lines("told.txt"):
        field, text = line.split(": ", 1)
        if field == "tell":
            found.append({"tell": text, "asks": []})
        elif field == "reply":
            found[-1]["reply"] = text
        elif field == "ask":
            question = text
        else:
            found[-1]["asks"].append((question, text))
    return found


SENTENCES = read_sentences()
PAIRS = table("pairs.txt")


def somebody(r):
    return invented(r) if r.random() < 0.5 else r.choice(NAMES)


def coined(r):
    """Slots with values that are in no list."""
    return {"surname": invented(r), "coined": invented(r), "someone": somebody(r),
            "digits": "".join(r.choice("0123456789") for _ in range(r.choice([2, 3, 4])))}


def sentence(r):
    """(turns that tell, turns that ask later)"""
    one = r.choice(SENTENCES)
    chosen = coined(r)

    def fill(text):
        return spin(r, text, chosen)

    tell = Turn(punctuated(fill(one["tell"])), upper_first(fill(one["reply"])), "Okay.")
    asks = r.sample(one["asks"], r.choice([1, len(one["asks"])]))
    return [tell], [Turn(punctuated(upper_first(fill(q))), upper_first(fill(a))) for q, a in asks]


def two(r):
    """The same for two people, and a question about one of them."""
    tell, about, answer, whose = r.choice(PAIRS)
    slot = re.search(r"\$(\w+)", tell)[1]
    values = r.sample(SLOTS[slot], 2)
    no_age = "years" not in tell  # a mother cannot be six years old
    people = [r.choice(KIN) if no_age and r.random() < 0.5 else somebody(r) for _ in range(2)]
    if people[0] == people[1]:
        return two(r)
    told = [spin(r, f"{person} {tell.replace('$' + slot, value)}") for person, value in zip(people, values)]
    joint = r.choice([". {}.", " and {}.", ", and {}.", ", but {}."])
    second = upper_first(told[1]) if joint.startswith(".") else told[1]
    reply = r.choice(["All right.", "Thank you for telling me.", "That is interesting!", "I see.", "How nice!"])
    which = r.randrange(2)
    names = {"P": people[which], "V": values[which]}
    said = spin(r, answer.format(**names)).replace("my ", "your ")
    question = r.choice(about.split("; ")) if r.random() < 0.65 else whose
    turn = Turn(spin(r, question.format(**names)) + "?", upper_first(said))
    return [Turn(upper_first(told[0]) + joint.format(second), reply, "Okay.")], [turn]


def told(r):
    return sentence(r) if r.random() < 0.6 else two(r)
