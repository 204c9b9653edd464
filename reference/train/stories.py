"""Short stories on request, made of the plots in facts/plots.txt. Each is about what the user asks for, has one trouble
and one end, and fits into 80 tokens: a small model cannot keep a longer story coherent."""

from rules_memory import invented
from wording import Turn, a, lines, punctuated, spin

MOST_WORDS = 58
HEROES = ("dog cat bird bear rabbit frog fish duck mouse lion horse cow pig bunny butterfly bee ant monkey elephant "
          "robot king queen princess prince dragon fairy witch wizard farmer baby boy girl snake turtle fox owl hen "
          "goat sheep spider squirrel giraffe tiger whale shark crab snail worm puppy kitten donkey wolf deer hedgehog "
          "penguin dolphin parrot swan crow zebra camel kangaroo panda hamster unicorn giant pirate sailor teacher "
          "doctor cook painter gardener knight clown ghost monster mermaid elf snowman dinosaur baker pilot "
          "musician student astronaut").split()
THINGS = ("boat car truck train ball kite doll toy balloon bicycle bike plane rocket box book hat cookie "
          "apple cake rock teddy pumpkin key coin drum lamp clock watch bell bag cup mirror ring shoe glove scarf "
          "coat umbrella pencil chair bed guitar violin flute camera radio puzzle letter stone feather shell "
          "button candle basket bucket spoon blanket pillow whistle wagon sled tent ladder map crown "
          "necklace painting telephone computer suitcase").split()
GIRLS = "girl queen princess fairy witch hen cow mermaid".split()
BOYS = "boy king prince wizard knight snowman".split()
QUALITIES = ("little small brave shy clever lazy kind young old funny curious sleepy lonely hungry careful silly strong "
             "friendly quiet proud happy sad tiny big fast slow wise").split()
HELPERS = ("duck fox owl squirrel turtle frog mouse rabbit bear goat hedgehog crow deer donkey horse sheep").split()
ENDS = ("", "", "", "$name was very happy.", "That night $name slept well.", "It was a good day.",
        "From that day on, they were friends.", "$name said thank you.", "And they went home together.")
FORMS = {"she": {"he": "she", "him": "her", "his": "her", "sibling": "sister"},
         "he": {"he": "he", "him": "him", "his": "his", "sibling": "brother"}}
HER_NAMES = "Lily Mia Anna Emma Lucy Ella Nora Zoe Amy Julia Clara Ida Grace Rosa Nina".split()
NAMES = HER_NAMES + ("Tom Tim Ben Sam Max Leo Jack Paul Finn Oscar Hugo Noah Adam Felix Jonas Peter Otto Rex Pip Toby Milo "
                     "Bruno").split()
CHILDREN = {"she": "girl", "he": "boy"}


def read_plots():
    """{kind: [parts]}"""
    found = {}
    for line in lines("plots.txt"):
        kind, text = line.split(": ", 1)
        found.setdefault(kind, []).append(text.split("|"))
    return found


PLOTS = read_plots()


def sex(r, name, hero=""):
    if hero in GIRLS or hero in BOYS:
        return "she" if hero in GIRLS else "he"
    if name in NAMES:
        return "she" if name in HER_NAMES else "he"
    return r.choice(["he", "she"])


def a_name(r, hero=""):
    """A fitting name, invented in one of five stories: the model must copy it, not know it."""
    if r.random() < 0.2:
        return invented(r)
    fits = [n for n in NAMES if hero not in GIRLS + BOYS or (n in HER_NAMES) == (hero in GIRLS)]
    return r.choice(fits)


def cast(r, hero="", name=None):
    """The slots of one story."""
    name = name or a_name(r, hero)
    forms = FORMS[sex(r, name, hero)]
    other = r.choice([n for n in NAMES if n != name])
    return {**forms, "name": name, "other": other, "child": CHILDREN[forms["he"]]}


def hero_story(r, hero, quality=None, name=None, helper=None):
    slots = cast(r, hero, name)
    wants, trouble, helps, end = r.choice(PLOTS["hero"])
    trouble = trouble if trouble.startswith("and ") else f"but {trouble}"
    quality = quality or r.choice(QUALITIES)
    helper = helper or r.choice([h for h in HELPERS if h != hero])
    begin = r.choice([f"Once upon a time, there was {a(quality)} {hero} named $name. $name", f"There once was {a(quality)} "
                      f"{hero} named $name. One day, $name", f"$name was {a(quality)} {hero}. One (morning|day), $he"])
    meet = r.choice([f"Then {a(helper)} came by and", f"A (kind|friendly|old|wise) {helper}", f"$name asked {a(helper)}. "
                     f"The {helper}"])
    after = r.choice([e for e in ENDS if "asleep" not in end or "slept" not in e])
    return spin(r, f"{begin} {wants}, {trouble}. {meet} {helps}. {end} {after}", slots), slots["name"]


def plot_story(r, kind, hero="", **more):
    slots = {**cast(r, hero), **more}
    return spin(r, r.choice(PLOTS[kind])[-1], slots), slots["name"]


def place_story(r, where, seen):
    slots = cast(r)
    day = "(quiet|warm|clear|cold) (morning|evening)"
    text = (f"$name lived {where}. One {day}, $he went out and saw {seen}. $He had never seen anything so "
            "(lovely|beautiful|wonderful). $He ran home and fetched $his $kin, and they looked at it for a long time. "
            "(\"I will never forget this,\" said $name.|\"Now it is our secret,\" said $name.|Neither of them said a word.)")
    return spin(r, text, slots), slots["name"]


ASK = ("(Tell me|Can you tell me|Please tell me|Write|I want to hear|I would like|Could you tell me|Make up|"
       "Can you write|Do you know|Think of) (a|a short|a little|a|a bedtime) story")
PLAIN = f"({ASK}|{ASK}|I want a story|A story, please|Tell me something nice before I sleep|Another story, please)"
ABOUT = "(about|about|about|with)"


def story(r):
    """(the request, the story, the hero's name, what the hero is)"""
    kind = r.choices(["hero", "quality", "named", "two", "thing", "friends", "event", "place", "any"],
                     [20, 10, 8, 10, 20, 5, 10, 9, 8])[0]
    hero, thing = r.choice(HEROES), r.choice(THINGS)
    if kind == "hero":
        return f"{ASK} {ABOUT} {a(hero)}", *hero_story(r, hero), hero
    if kind == "quality":
        quality = r.choice(QUALITIES)
        return f"{ASK} {ABOUT} {a(quality)} {hero}", *hero_story(r, hero, quality), hero
    if kind == "named":
        hero = r.choice([hero, r.choice(["girl", "boy", "dog", "cat"])])
        name = a_name(r, hero)
        asked = f"{a(hero)} (named|called) {name}"
        return f"{ASK} about {asked}", *hero_story(r, hero, name=name), hero
    if kind == "two":
        if r.random() < 0.5:
            helper = r.choice([h for h in HEROES if h != hero])
            return f"{ASK} about {a(hero)} and {a(helper)}", *hero_story(r, hero, helper=helper), hero
        child = r.choice(["girl", "boy"])
        return f"{ASK} about {a(child)} and {a(thing)}", *plot_story(r, "thing", child, thing=thing), child
    if kind == "thing":
        return f"{ASK} {ABOUT} {a(thing)}", *plot_story(r, "thing", thing=thing), ""
    if kind == "friends":
        return f"{ASK} about (two friends|friends|a friend|friendship|good friends)", *plot_story(r, "friends"), ""
    if kind == "event":
        asked, text = r.choice(PLOTS["event"])
        slots = cast(r)
        return f"{ASK} about {asked}", spin(r, text, {**slots, "thing": thing}), slots["name"], ""
    if kind == "place":
        asked, where, seen = r.choice(PLOTS["place"])
        return f"{ASK} about {asked}", *place_story(r, where, seen), ""
    return PLAIN, *hero_story(r, hero), hero


def story_turns(r):
    """A story on request, and sometimes a question about it."""
    asked, text, name, hero = story(r)
    while len(text.split()) > MOST_WORDS:
        asked, text, name, hero = story(r)
    asked = spin(r, asked)
    before = spin(r, "(|||||Sure!|Of course!|Here is a story.)")
    turns = [Turn(punctuated(asked), f"{before} {text}".strip())]
    if hero and r.random() < 0.25:
        question = spin(r, f"(What was the name of the {hero}|What was the {hero} called|Who was the story about)?")
        answer = f"The story was about {name}." if question.startswith("Who") else f"The name of the {hero} was {name}."
        turns.append(Turn(question, answer, name + "."))
    return turns
