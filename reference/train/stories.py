"""Short stories on request: TinyStories of few words, asked for by what truly occurs in them."""

import re
from collections import Counter

import corpus
from wording import Turn, a, punctuated, spin

TOPICS = ("dog cat bird bear rabbit frog fish duck mouse lion horse cow pig bunny butterfly bee ant monkey elephant "
          "tree flower boat car truck train ball kite doll robot king queen princess prince dragon fairy witch "
          "wizard farmer baby boy girl snake turtle fox owl star moon cake cookie box book hat hen goat sheep "
          "spider squirrel giraffe tiger whale shark crab snail worm toy teddy balloon bicycle bike plane rocket "
          "castle garden forest park beach snowman pumpkin apple rock").split()
MOST_WORDS, FEWEST_WORDS = 125, 35


def hero(story):
    """The name of the hero, if one is told with "named"; the name must come back."""
    found = re.search(r"\bnamed ([A-Z][a-z]+)", story)
    return found[1] if found and story.count(found[1]) >= 2 else None


def kind_of(story):
    """What the hero is: the topic just before "named"."""
    found = re.search(r"\b([a-z]+) named [A-Z]", story)
    return found[1] if found and found[1] in TOPICS else None


def topics(story):
    """What the story is about: said at least twice, and once near the beginning."""
    words = Counter(re.findall(r"[a-z]+", story.lower()))
    begin = " ".join(story.lower().split()[:40])
    return [t for t in TOPICS if words[t] + words[t + "s"] >= 2 and re.search(rf"\b{t}\b", begin)]


BEGINNINGS = ("Once", "One ", "There", "A ", "In ", "Tom", "Lily", "Tim", "Ben", "Sam", "Mia")


def whole(story):
    """Some stories of the file begin or end in the middle."""
    return story.startswith(BEGINNINGS) and story[-1] in '.!"' and story.isascii()


def short_stories(data):
    found = []
    for story in corpus.stories(data)[0]:
        story = " ".join(story.split())
        if FEWEST_WORDS <= len(story.split()) <= MOST_WORDS and whole(story):
            found.append(story)
    return list(dict.fromkeys(found))


ASK = ("(Tell me|Can you tell me|Please tell me|Write|I want to hear|I would like|Could you tell me|Make up|"
       "Can you write) (a|a short|a little|a)")
PLAIN = ("(Tell me a story|Tell me a short story|Can you tell me a story|I want to hear a story|"
         "Please tell me a story|A story, please|Do you know a story)")


def request(r, story):
    name, kind, about = hero(story), kind_of(story), topics(story)
    if name and kind and r.random() < 0.4:
        return punctuated(spin(r, f"{ASK} story about {a(kind)} named {name}"))
    if name and r.random() < 0.3:
        return punctuated(spin(r, f"{ASK} story about {name}"))
    if len(about) >= 2 and r.random() < 0.4:
        x, y = r.sample(about, 2)
        return punctuated(spin(r, f"{ASK} story about {a(x)} and {a(y)}"))
    if about and r.random() < 0.85:
        x = kind or r.choice(about)
        return punctuated(spin(r, f"{ASK} story (about|about|with) {a(x)}"))
    return punctuated(spin(r, PLAIN))


def story_turn(r, story):
    before = spin(r, "(|||||Sure! |Of course! |Here is a story. )")
    return Turn(request(r, story), f"{before} {story}".strip())
