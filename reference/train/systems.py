"""System prompts: those that change nothing, those that set a style, and those that give the
assistant a name or a part to play. Each takes turns and returns (prompt, turns that obey it)."""

import re

from rules_memory import NAMES
from wording import Turn, a, punctuated, spin, upper_first

NEUTRAL = ["You are a helpful assistant.", "You are a friendly assistant.", "You are a friendly chat partner.", "Be friendly and answer briefly.",
           "You are a small chat model.", "Answer the user's questions.", "You are an assistant.", "Be helpful and honest.",
           "You are a kind and helpful assistant.", "Help the user.", "You like to talk with people.", "Give short and correct answers.",
           "You are Stagecraft's small chat model.", "You are a helpful AI assistant."]
PROGRAM = re.compile(r"program|language model|Stagecraft|small model|I am a model")
ONE_WORD = ["Answer with one word.", "Answer with only one word.", "Answer in one word.", "Reply with one word.", "Use one word only.",
            "Always answer with a single word.", "Give one-word answers.", "Reply with a single word only.", "Answer every question with one word.",
            "You answer with one word.", "Your answers are one word long.", "Respond with one word.", "Say only one word.",
            "You must answer with exactly one word.", "Please answer with one word only.", "Keep your answers to one word."]
YES_OR_NO = ["Answer with yes or no.", "Answer yes or no.", "Only say yes or no.", "Reply with yes or no only.", "Answer only with yes or no."]
ONE_SENTENCE = ["Answer in one short sentence.", "Answer with one sentence.", "Use one short sentence.", "Reply in a single sentence.",
                "Keep your answers to one sentence.", "Answer briefly in one sentence."]
POLITE = ["Be very polite.", "You are a very polite assistant.", "Always be polite.", "Answer very politely."]
EXCLAIM = ["End every answer with an exclamation mark.", "Always end with an exclamation mark.", "You are very excited.", "Answer with excitement!"]


def one_word(r, turns):
    turns = [Turn(t.user, t.short) for t in turns if t.short]
    return r.choice(ONE_WORD), turns


def yes_or_no(r, turns):
    import rules_facts
    more = [rules_facts.yes_no(r)[0] for _ in range(3)] + [rules_facts.can_animal(r)[0] for _ in range(2)]
    turns = [Turn(t.user, t.short) for t in turns + more if t.short in ("Yes.", "No.")]
    return r.choice(YES_OR_NO), turns[:r.choice([1, 2, 3, 4])]


def first_sentence(text):
    return re.match(r".+?[.!?](?=\s|$)", text)[0] if re.match(r".+?[.!?](?=\s|$)", text) else text


def one_sentence(r, turns):
    return r.choice(ONE_SENTENCE), [Turn(t.user, first_sentence(t.answer)) for t in turns if len(first_sentence(t.answer)) > 3]


def polite(r, turns):
    return r.choice(POLITE), [Turn(t.user, f"Thank you for asking. {t.answer}" if t.user.endswith("?") else f"With pleasure. {t.answer}"
                                   if t.user.startswith(("Tell", "Name", "List", "Count", "Give")) else t.answer) for t in turns]


def exclaim(r, turns):
    def shout(text):
        parts = re.findall(r".+?[.!?](?:\s|$)", text) or [text]
        parts = [p.strip() for p in parts if not p.strip().endswith("?")] or parts
        text = " ".join(p.strip() for p in parts)
        return text.rstrip(".") + "!" if text.endswith(".") else text
    return r.choice(EXCLAIM), [Turn(t.user, shout(t.answer)) for t in turns if not shout(t.answer).endswith("?")]


def call_user(r, turns):
    name = r.choice(NAMES)
    prompt = r.choice([f"The user's name is {name}.", f"You talk with {name}.", f"The name of the user is {name}.", f"The user is called {name}."])
    turns = [t for t in turns if not re.search(r"\bname\b|called|Who am I|am I called|I am [A-Z]|I'm [A-Z]", t.user)]
    ask = spin(r, "(What is my name|What's my name|Do you know my name|Who am I|Tell me my name)")
    turns.insert(r.randrange(len(turns) + 1), Turn(punctuated(ask), f"Your name is {name}.", f"{name}."))
    return prompt, turns


ROLES = {"pirate": "sail the seas and look for treasure", "cook": "cook tasty food", "baker": "bake bread and cakes", "gardener": "grow flowers and vegetables",
         "teacher": "help people to learn", "wizard": "do magic", "king": "rule a kingdom", "queen": "rule a kingdom", "robot": "help people with their work",
         "librarian": "help people to find books", "astronaut": "travel in space", "detective": "find out who did it", "dragon": "fly and breathe fire",
         "knight": "protect the castle", "farmer": "grow food and keep animals", "sailor": "sail on the sea", "poet": "write poems", "clown": "make people laugh",
         "fisherman": "catch fish", "painter": "paint pictures", "musician": "make music", "cat": "sleep and catch mice", "dog": "play and guard the house",
         "tour guide": "show people beautiful places", "shopkeeper": "sell things in my shop", "firefighter": "put out fires", "witch": "make magic drinks"}
OTHER_NAMES = "Max Luna Robo Alex Nova Kim Bob Ada Iris Milo Zed Sunny Polly Hal Echo Jo Marvin Ruby Pip Otto Clara Leo".split() + NAMES[:40]


def who_questions(r, name, role):
    """Turns about the name and the part."""
    role_text = a(role) if role else ""
    turns = []
    if name:
        ask = "(What is your name|What's your name|Tell me your name|What are you called|What should I call you|Do you have a name|Who are you)"
        user = punctuated(spin(r, ask))
        turns.append(Turn(user, f"My name is {name}." if not user.startswith("Who") else f"I am {name}{', ' + role_text if role else ''}.", f"{name}."))
    if role:
        ask = "(Who are you|What are you|Tell me who you are|What is your job|Introduce yourself)"
        turns.append(Turn(punctuated(spin(r, ask)), f"I am {name + ', ' if name else ''}{role_text}.", upper_first(role) + "."))
        if r.random() < 0.6:
            ask = "(What do you do|What do you do all day|What can you do|What is your work|What do you like to do)"
            turns.append(Turn(punctuated(spin(r, ask)), f"I am {role_text}: I {ROLES[role]}.", upper_first(role) + "."))
    return turns


def person(r, turns):
    name = r.choice(OTHER_NAMES) if r.random() < 0.65 else ""
    role = r.choice(list(ROLES)) if r.random() < 0.6 or not name else ""
    if name and role:
        prompt = spin(r, f"(You are {name}, {a(role)}|Your name is {name} and you are {a(role)}|You are {a(role)} named {name}|You are {a(role)}. Your name is {name})") + "."
    elif name:
        prompt = spin(r, f"(Your name is {name}|You are {name}|You are an assistant named {name}|You are called {name}|You are a helpful assistant named {name})") + "."
    else:
        prompt = spin(r, f"(You are {a(role)}|You are {a(role)}|You play {a(role)}|Speak like {a(role)}|Pretend to be {a(role)}|You are a friendly {role})") + "."
    turns = [t for t in turns if not PROGRAM.search(t.answer)]
    if role == "pirate":
        turns = [Turn(t.user, "Ahoy! " + t.answer.replace("Hello! ", "")) for t in turns]
    about = who_questions(r, name, role)
    if role == "pirate":
        about = [Turn(t.user, "Ahoy! " + t.answer) for t in about]
    for t in about[:r.choice([1, 2, 3])]:
        turns.insert(r.randrange(min(3, len(turns) + 1)), t)
    return prompt, turns[:8]


STYLES = [(one_word, 45), (yes_or_no, 8), (one_sentence, 15), (polite, 6), (exclaim, 8), (call_user, 14)]
