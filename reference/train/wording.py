"""Wordings of a sentence: choices written (a|b), slots written $food, and the small mistakes of people who type in a
hurry."""

import re
from pathlib import Path
from typing import NamedTuple

FACTS = Path(__file__).resolve().parent / "facts"


class Turn(NamedTuple):
    """The user's text, the assistant's answer, and the answer in one word, if there is one."""
    user: str
    answer: str
    short: str = ""


def lines(name):
    """The lines of a table in facts/, without comments."""
    text = (FACTS / name).read_text(encoding="utf-8")
    return [line for line in text.split("\n") if line.strip() and not line.startswith("# ")]


def table(name):
    return [line.split("|") for line in lines(name)]


def read_slots():
    rows = (line.split(": ") for line in lines("slots.txt"))
    return {name: members.split(", ") for name, members in rows}


SLOTS = read_slots()


def upper_first(text):
    return text[:1].upper() + text[1:]


def lower_first(text):
    keep = re.match(r"(I\b|I'|[A-Z][A-Z])", text)
    return text if keep else text[:1].lower() + text[1:]


def spin(r, text, chosen=None):
    """Draws every (a|b) and fills every $slot. `chosen` keeps the slots of a whole piece; it may also contain slots
    that are in no table."""
    chosen = {} if chosen is None else chosen
    while True:
        found = re.search(r"\(([^()]*\|[^()]*)\)", text)
        if not found:
            break
        text = text[:found.start()] + r.choice(found[1].split("|")) + text[found.end():]
    text = re.sub(r"u\?r", lambda m: r.choice(["ur", "r"]), text)

    def fill(found):
        name = found[1].lower()
        if name not in chosen:
            if name not in SLOTS:
                return found[0]
            chosen[name] = r.choice(SLOTS[name])
        return upper_first(chosen[name]) if found[1][0].isupper() else chosen[name]

    text = re.sub(r"\$([A-Za-z]+)", fill, text)
    text = re.sub(r", (How|What|Are)\b", lambda m: m[0].lower(), text)
    # a slot may begin with a vowel
    text = re.sub(r"\b([Aa]) (?=[aeio](?!n[ec]e?\b|u)[a-z]|um|un[cd])", r"\1n ", text)
    return " ".join(text.split())


def a(noun):
    """The noun with its indefinite article."""
    return ("an " if noun[0].lower() in "aeio" or noun.startswith(("umb", "unc")) else "a ") + noun


def joined(names):
    """A list in words: one, two and three."""
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


QUESTION = ("what", "who", "where", "when", "why", "how", "which", "can", "could", "do", "does", "did",
            "is", "are", "will", "would", "have", "has", "should", "may", "am", "at", "in", "on", "and",
            "whose", "whom")
BEFORE = ["Hey, ", "So, ", "Now, ", "Okay, ", "Tell me, ", "Please tell me, ", "I have a question. ",
          "One question: ", "By the way, ", "I want to know: ", "Quick question: ", "Well, ",
          "Can you tell me, ", "Let me ask you: "]
GREETING = ["Hello! ", "Hi! ", "Hi, ", "Hello, ", "Hey! ", "Good morning! "]


def is_question(text):
    return re.match(r"[a-z]*", text.lower())[0] in QUESTION


def punctuated(text):
    """Gives a wording the right final mark, whatever mark its table has for the wordings of a line."""
    bare = text.rstrip(".?! ")
    if not bare:
        return text
    mark = text[len(bare):].strip()
    last = re.split(r"[.!?] ", bare)[-1].replace("Hey, ", "").replace("Hi, ", "").replace("Hello, ", "")
    if is_question(last):
        return bare + "?"
    return bare + (mark[-1] if mark and mark[-1] in "!." else ".")


MISTYPED = {"what": "waht", "the": "teh", "please": "pleas", "where": "wher", "which": "wich", "you": "yuo",
            "your": "yor", "tell": "tel", "does": "dose", "how": "hwo", "are": "ar", "can": "cna",
            "about": "abuot", "have": "hav", "is": "si"}


def typo(r, text):
    """Adds a typing mistake to a common word, never to a word that the answer depends on."""
    places = [m for m in re.finditer(r"[a-z]+", text) if m[0] in MISTYPED]
    if not places:
        return text
    m = r.choice(places)
    return text[:m.start()] + MISTYPED[m[0]] + text[m.end():]


def introduced(r, user, answer):
    """Sometimes adds words before the question, or a greeting with its reply."""
    if r.random() < 0.10:
        return r.choice(BEFORE) + lower_first(user), answer
    if r.random() < 0.05:
        return r.choice(GREETING) + user, "Hello! " + answer
    if r.random() < 0.04:
        return user.rstrip("?") + ", please?", answer
    return user, answer


def typed(r, turn, typos=True):
    """The turn as a person may type it."""
    user, answer = turn.user, turn.answer
    follows = user.startswith(("And", "What about"))
    if is_question(user) and user[0].isupper() and "!" not in user and not follows:
        user, answer = introduced(r, user, answer)
    if r.random() < 0.12:
        user = user.lower()
    elif r.random() < 0.05:
        user = lower_first(user)
    if r.random() < 0.12 and user[-1] in ".?":
        user = user.rstrip(".?") or user
    if typos and r.random() < 0.04:
        user = typo(r, user)
    return Turn(user, answer, turn.short)
