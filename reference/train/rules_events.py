"""Sentences made of parts (who, what, where, when, with whom), and a question about one of the parts.

Each part is drawn from many, so that the model learns to find the answer in the sentence, not to know it.
"""

import re

from rules_memory import NAMES, invented
from wording import Turn, punctuated, spin, table, upper_first

EVENTS = [(past, base, things.split(", ")) for past, base, things in table("events.txt")]
STATES = {kind: things.split(", ") for kind, things in table("states.txt")}

KIN = ("my sister, my brother, my mother, my father, my uncle, my aunt, my friend, my neighbour, my son, my daughter, "
       "my cousin, my grandmother, my grandfather, my teacher, my boss, my wife, my husband").split(", ")
WHERE = ("at the market, in the park, at the station, in the cellar, near the river, at school, in a small shop, "
         "at the beach, in the kitchen, on the bus, in Vienna, in Rome, at work, in the forest, behind the house, "
         "at the airport, in the old town, on the train, at the library, in the garden, in Lisbon").split(", ")
WHEN = ("yesterday, last week, on Monday, on Friday, last summer, this morning, two days ago, on Sunday, last night, "
        "in May, on Tuesday, a year ago, last winter, on my birthday, in the afternoon, an hour ago").split(", ")
KEPT = ("in the garage, under the stairs, in the top drawer, on the piano, behind the mirror, in my backpack, "
        "under the doormat, in the blue box, on the kitchen table, in the cellar, next to the phone, in a jar, "
        "on the top shelf, under my pillow, in the car, behind the curtain, in my desk, in the bathroom").split(", ")
TIMES = ("on Monday, on Tuesday, on Thursday, on Saturday, tomorrow, next week, in June, in October, at nine, "
         "at half past four, at noon, on Friday at ten, on the third of May, at 7 pm, tonight, next Wednesday, "
         "in two weeks, on Sunday evening").split(", ")
COLOURS = ("red, dark blue, green, yellow, grey, white, black, orange, pink, brown, purple, silver, "
           "light green").split(", ")
NUMBERS = "two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, fifteen, twenty, thirty".split(", ")

REPLIES = ["All right.", "I see.", "Thank you for telling me.", "That is interesting!", "Okay.", "Oh, I see.",
           "I will remember that for this chat.", "Oh, really?", "Interesting! Do you want to tell me more?",
           "That is good to know.", "Okay, I will keep that in mind for this chat."]

# The user's words, addressed back to the user.
SECOND = {"I": "you", "I'm": "you're", "I've": "you've", "I'll": "you'll", "I'd": "you'd", "my": "your",
          "My": "your", "me": "you", "myself": "yourself", "mine": "yours", "am": "are", "we": "you", "We": "you",
          "our": "your", "Our": "your", "us": "you", "ours": "yours"}


def to_you(text):
    """ "I lost my key" becomes "you lost your key"."""
    text = re.sub(r"\bI was\b", "you were", text)
    text = re.sub(r"[A-Za-z']+", lambda m: SECOND.get(m[0], m[0]), text)
    return text


def people(r):
    """A person as the user says it: "I", "my aunt", "Anna"."""
    x = r.random()
    if x < 0.4:
        return "I"
    return r.choice(KIN) if x < 0.7 else (invented(r) if r.random() < 0.5 else r.choice(NAMES))


def reply(r):
    return r.choice(REPLIES)


def sentence(text):
    return upper_first(text) + "."


def event(r):
    """(turns that tell, turns that ask later): who did what, where, when, with whom"""
    past, base, things = r.choice(EVENTS)
    what, who = r.choice(things), people(r)
    if not is_user(who):
        what = re.sub(r"\bmy\b", "the", what)
    where = r.choice(WHERE) if r.random() < 0.6 else ""
    when = r.choice(WHEN) if r.random() < 0.5 else ""
    friend = r.choice(KIN) if r.random() < 0.5 else r.choice(NAMES)
    company = f"with {friend}" if r.random() < 0.2 and friend != who else ""
    said = " ".join(part for part in [who, past, what, company, where] if part)
    said = f"{when}, {said}" if when and r.random() < 0.3 else f"{said} {when}".strip()
    did, done = f"did {who}", f"{who} {past} {what}"
    asks = [(f"What {did} {base}", done), (f"What was it that {who} {past}", done), (f"Who {past} {what}", done)]
    if where:
        asks += [(f"Where {did} {base} (it|{what})", f"{done} {where}"), ("Where was that", f"it was {where}")] * 2
    if when:
        asks += [(f"When {did} {base} (it|{what})", f"{done} {when}"), ("When was that", f"it was {when}")] * 2
    if company:
        asks += [(f"Who was with {'me' if is_user(who) else who}", f"{friend} was there")]
    return tell_and_ask(r, said, asks)


def tell_and_ask(r, said, asks):
    """One turn that tells, and one or two of the questions with their answers."""
    turns = []
    for question, answer in r.sample(asks, min(len(asks), r.choice([1, 1, 1, 2]))):
        question = politely_asked(r, spin(r, question))
        answer = to_you(answer)
        if r.random() < 0.12:
            answer = f"you told me that {answer}"
        turns.append(Turn(punctuated(question), sentence(answer)))
    return [Turn(sentence(said), reply(r), "Okay.")], turns


def politely_asked(r, question):
    """Sometimes "Do you remember where the key is" for "Where is the key"."""
    found = re.match(r"(What|Where|When|What colou?r) (is|was|are) (.+)", question)
    whole = found and not re.search(r"it that|(from|of|to|with me)$", question)
    if whole and r.random() < 0.25:
        start = r.choice(["Do you remember", "Can you tell me", "Do you know", "Could you tell me"])
        return f"{start} {found[1].lower()} {found[3]} {found[2]}"
    return question


def is_user(who):
    return who == "I"


def question_of(who, verb="do"):
    """ "do I", "does Anna", "am I", "is Anna". """
    mine, theirs = {"do": ("do", "does"), "be": ("am", "is")}[verb]
    return f"{mine} I" if is_user(who) else f"{theirs} {who}"


# Each of the next functions returns (what the user says, [(question, answer)]) for one kind of thing.


def place(r, thing):
    value = r.choice(KEPT)
    plural = thing.endswith("s") and not thing.endswith("ss")
    be, it = ("are", "they are") if plural else ("is", "it is")
    told = r.choice([f"{thing} {be} {value}", f"I keep {thing} {value}", f"I put {thing} {value}",
                     f"I hid {thing} {value}", f"I left {thing} {value}"])
    return told, [(f"Where {be} {thing}", f"{thing} {be} {value}"), (f"Where {be} {thing}", f"{it} {value}"),
                  (f"Where should I look for {thing}", f"look {value}, {thing} {be} there"),
                  (f"I cannot find {thing}. Where {be} {'they' if plural else 'it'}", f"{thing} {be} {value}")]


def time(r, thing):
    value = r.choice(TIMES)
    told = r.choice([f"{thing} is {value}", f"{thing} is {value}", f"{thing} will be {value}"])
    return told, [(f"When is {thing}", f"{thing} is {value}"), (f"When is {thing}", f"it is {value}"),
                  (f"(What do I have|What is) {value}", f"{thing} is {value}")]


def colour(r, thing):
    value = r.choice(COLOURS)
    said = f"{thing} is {value}"
    told = r.choice([said, f"I painted {thing} {value}" if "our" in thing else said])
    return told, [(f"What colou?r is {thing}", said), (f"Which colou?r does {thing} have", said),
                  (f"Is {thing} {value}", f"yes, {said}")]


NOT_PEOPLE = ("street", "boat", "hotel", "school", "book", "song", "village", "team")


def called(r, thing):
    value = invented(r) if r.random() < 0.5 else r.choice(NAMES)
    told = spin(r, f"({thing} is called {value}|The name of {thing} is {value}|{thing}'s name is {value}|"
                   f"{thing} is named {value})")
    asks = [(f"What is {thing} called", f"{thing} is called {value}"),
            (f"What is the name of {thing}", f"the name of {thing} is {value}"),
            (f"What is {thing}'s name", f"the name is {value}"), (f"Who is {value}", f"{value} is {thing}")]
    return told, asks[:-1] if thing.split()[-1] in NOT_PEOPLE else asks


def number(r, thing):
    value = "".join(r.choice("123456789") for _ in range(r.choice([1, 2, 2, 3, 4])))
    said = f"{thing} is {value}"
    told = r.choice([said, said if "number" in thing else f"{thing} is number {value}"])
    return told, [(f"(What|Which number) is {thing}", said), (f"What is {thing} again", f"it is {value}"),
                  (f"Tell me {thing}", said)]


def word(r, thing):
    value = r.choice([invented(r).lower(), r.choice(r.choice(EVENTS)[2]).split()[-1], r.choice(COLOURS).split()[-1]])
    said = f"{thing} is {value}"
    told = r.choice([said, f"please remember that {said}", f"remember: {said}"])
    return told, [(f"What is {thing}", said), (f"Which word is {thing}", f"it is {value}")]


def count(r, things):
    who, value = people(r), r.choice(NUMBERS)
    told = f"{who} {'have' if is_user(who) else 'has'} {value} {things}"
    return told, [(f"How many {things} {question_of(who)} have", told), (f"Who has {value} {things}", told)]


def doing(singular, base):
    """What a person likes, wants, ..."""
    def make(r, thing):
        who = people(r)
        told = f"{who} {base if is_user(who) else singular} {thing}"
        do = question_of(who)
        asks = [(f"What {do} {base}", told), (f"Who {singular} {thing}", told)]
        if base == "hate":
            asks.append((f"What {do} not like", told))
        if base == "want" and thing.startswith("to "):
            asks[0] = (f"What {do} want to do", told)
        return told, asks
    return make


def being(mine, theirs, ask, verb="be"):
    """What a person is, or where: DO stands for "am I" or "does Anna" in the question."""
    def make(r, thing):
        who = people(r)
        told = f"{who} {mine if is_user(who) else theirs} {thing}"
        asked = ask.replace("DO", question_of(who, verb))
        return told, [(asked, told), (asked, told), (f"Who {theirs} {thing}", told)]
    return make


KINDS = {
    "place": place, "time": time, "colour": colour, "called": called, "number": number, "word": word, "count": count,
    "likes": doing("likes", "like"), "hates": doing("hates", "hate"), "wants": doing("wants", "want"),
    "studies": doing("studies", "study"),
    "from": being("am from", "is from", "(Where DO from|Which country DO from)"),
    "works at": being("work at", "works at", "Where DO work", "do"),
    "is afraid of": being("am afraid of", "is afraid of", "What DO afraid of"),
    "is allergic to": being("am allergic to", "is allergic to", "What DO allergic to"),
}


def state(r):
    """(turns that tell, turns that ask later): where something is, when, its colour, its name"""
    kind = r.choice(list(STATES))
    return tell_and_ask(r, *KINDS[kind](r, r.choice(STATES[kind])))


def several(r):
    """Two or three such sentences in one turn or in separate turns, and a question about one of them."""
    made = [r.choice([event, state])(r) for _ in range(r.choice([2, 2, 3]))]
    tells = [tell for tell, _ in made]
    which = r.randrange(len(made))
    if r.random() < 0.5:
        tells = [[Turn(" ".join(t[0].user for t in tells), reply(r), "Okay.")]]
    return [t for tell in tells for t in tell], made[which][1][:1]


def events(r):
    return r.choices([event, state, several], [4, 5, 2])[0](r)
