"""System prompts: without effect, for a style, or with a name or a role for the assistant. Each function takes turns
and returns (prompt, turns that follow it)."""

import re

import rules_facts
from rules_memory import NAMES
from wording import Turn, a, lines, punctuated, spin, table, upper_first

PROGRAM = re.compile(r"program|language model|Stagecraft|small model|I am a model")


def read_prompts():
    """{style: its prompts}"""
    found = {}
    for line in lines("systems.txt"):
        style, prompt = line.split(": ", 1)
        found.setdefault(style, []).append(prompt)
    return found


PROMPTS = read_prompts()
NEUTRAL = PROMPTS["neutral"]


def one_word(r, turns):
    turns = [Turn(t.user, t.short) for t in turns if t.short]
    return r.choice(PROMPTS["one word"]), turns


def yes_or_no(r, turns):
    more = [rules_facts.yes_no(r)[0] for _ in range(3)] + [rules_facts.can_animal(r)[0] for _ in range(2)]
    turns = [Turn(t.user, t.short) for t in turns + more if t.short in ("Yes.", "No.")]
    return r.choice(PROMPTS["yes or no"]), turns[:r.choice([1, 2, 3, 4])]


def sentences(text):
    return [s.strip() for s in re.findall(r".+?[.!?](?:\s|$)", text)] or [text]


def one_sentence(r, turns):
    turns = [Turn(t.user, sentences(t.answer)[0]) for t in turns]
    return r.choice(PROMPTS["one sentence"]), [t for t in turns if len(t.answer) > 3]  # not "No."


ORDERS = ("Tell", "Name", "List", "Count", "Give")


def polite(r, turns):
    def with_manners(t):
        if t.user.endswith("?"):
            return f"Thank you for asking. {t.answer}"
        return f"With pleasure. {t.answer}" if t.user.startswith(ORDERS) else t.answer
    return r.choice(PROMPTS["polite"]), [Turn(t.user, with_manners(t)) for t in turns]


def exclaim(r, turns):
    def shouted(text):
        told = [s for s in sentences(text) if not s.endswith("?")] or sentences(text)
        text = " ".join(told)
        return text.rstrip(".") + "!" if text.endswith(".") else text
    turns = [Turn(t.user, shouted(t.answer)) for t in turns]
    return r.choice(PROMPTS["exclaim"]), [t for t in turns if not t.answer.endswith("?")]


TELLS_NAME = re.compile(r"\bname\b|called|Who am I|am I called|I am [A-Z]|I'm [A-Z]")


def call_user(r, turns):
    name = r.choice(NAMES)
    prompt = r.choice(PROMPTS["user"]).format(name=name)
    turns = [t for t in turns if not TELLS_NAME.search(t.user)]
    ask = spin(r, "(What is my name|What's my name|Do you know my name|Who am I|Tell me my name)")
    turns.insert(r.randrange(len(turns) + 1), Turn(punctuated(ask), f"Your name is {name}.", f"{name}."))
    return prompt, turns


ROLES = dict(table("roles.txt"))
OTHER_NAMES = ("Max Luna Robo Alex Nova Kim Bob Ada Iris Milo Zed Sunny Polly Hal Echo Jo Marvin Ruby Pip Otto "
               "Clara Leo").split() + NAMES[:40]
NAME_ASKED = ("(What is your name|What's your name|Tell me your name|What are you called|What should I call you|"
              "Do you have a name|Who are you)")
ROLE_ASKED = "(Who are you|What are you|Tell me who you are|What is your job|Introduce yourself)"
WORK_ASKED = "(What do you do|What do you do all day|What can you do|What is your work|What do you like to do)"


def about_itself(r, name, role):
    """Turns about the name and the role; one of them may be missing."""
    turns, part = [], a(role) if role else ""
    both = ", ".join(filter(None, (name, part)))
    if name:
        user = punctuated(spin(r, NAME_ASKED))
        answer = f"I am {both}." if user.startswith("Who") else f"My name is {name}."
        turns.append(Turn(user, answer, f"{name}."))
    if role:
        turns.append(Turn(punctuated(spin(r, ROLE_ASKED)), f"I am {both}.", upper_first(role) + "."))
        if r.random() < 0.6:
            answer = f"I am {part}: I {ROLES[role]}."
            turns.append(Turn(punctuated(spin(r, WORK_ASKED)), answer, upper_first(role) + "."))
    return turns


def person_prompt(r, name, role):
    part = a(role) if role else ""
    if name and role:
        text = (f"(You are {name}, {part}|Your name is {name} and you are {part}|You are {part} named {name}|"
                f"You are {part}. Your name is {name})")
    elif name:
        text = (f"(Your name is {name}|You are {name}|You are an assistant named {name}|You are called {name}|"
                f"You are a helpful assistant named {name})")
    else:
        text = (f"(You are {part}|You are {part}|You play {part}|Speak like {part}|Pretend to be {part}|"
                f"You are a friendly {role})")
    return spin(r, text) + "."


def person(r, turns):
    name = r.choice(OTHER_NAMES) if r.random() < 0.65 else ""
    role = r.choice(list(ROLES)) if r.random() < 0.6 or not name else ""
    prompt = person_prompt(r, name, role)
    turns = [t for t in turns if not PROGRAM.search(t.answer)]
    itself = about_itself(r, name, role)
    if role == "pirate":
        turns = [Turn(t.user, "Ahoy! " + t.answer.replace("Hello! ", "")) for t in turns]
        itself = [Turn(t.user, "Ahoy! " + t.answer) for t in itself]
    for t in itself[:r.choice([1, 2, 3])]:
        turns.insert(r.randrange(min(3, len(turns) + 1)), t)
    return prompt, turns[:8]


# (style, weight)
STYLES = [(one_word, 45), (yes_or_no, 8), (one_sentence, 15), (polite, 6), (exclaim, 8), (call_user, 14)]
