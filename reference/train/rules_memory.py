"""Things that the user tells and asks for later, possibly with other pieces between."""

from typing import NamedTuple

from wording import Turn, a, joined, lines, lower_first, punctuated, spin, upper_first

class Thing(NamedTuple):
    """Something that the user may tell. X is its value in all the texts."""
    values: list
    tell: str
    reply: str
    ask: str
    answer: str


def read_things():
    """{kind: Thing} of facts/memory.txt"""
    found, kind = {}, None
    for line in lines("memory.txt"):
        field, text = line.split(": ", 1)
        if field == "kind":
            kind = text
            found[kind] = {}
        else:
            found[kind][field] = text.split(", ") if field == "values" else text
    return {kind: Thing(**fields) for kind, fields in found.items()}


THINGS = read_things()
NAMES = THINGS["name"].values
OBJECTS = "key, book, phone, ball, letter, ring, cup, hat, bag, coin, pen, apple, map, umbrella".split(", ")
PLACES = ("under the bed, on the table, in the kitchen, in the drawer, behind the door, in the garden, in my bag, "
          "on the shelf, in the box, next to the lamp, under the chair, in the car, on the sofa, "
          "in the fridge").split(", ")


SPOKEN = ["name", "dog", "cat", "city", "word", "sister", "brother", "friend", "trip"]
BEGINNINGS = "B,Br,C,Ch,D,Dr,F,G,Gr,H,J,K,L,M,N,P,R,S,Sh,St,T,Tr,V,W,Y,Z,A,E,I,O".split(",")
MIDDLES = "a,e,i,o,u,ar,el,en,in,or,an,am,il,ol,er".split(",")
JOINTS = "b,d,f,g,k,l,m,n,r,s,t,v,z,ll,nn,rt,st,nd".split(",")
ENDS = "a,o,e,i,y,an,en,in,on,us,is,ia,ella,ette,ert,old,ine".split(",")


def invented(r):
    """A name that nobody has: a model that has only seen names of a list cannot repeat another one."""
    name = r.choice(BEGINNINGS) + r.choice(MIDDLES) + r.choice(JOINTS)
    return name + (r.choice(MIDDLES) + r.choice(JOINTS) if r.random() < 0.3 else "") + r.choice(ENDS)


def some_value(r, kind):
    if kind in SPOKEN and r.random() < 0.5:
        return invented(r).lower() if kind == "word" else invented(r)
    return r.choice(THINGS[kind].values)


def fill(r, text, value):
    return spin(r, text).replace("aX", a(value)).replace("X", value)


def told(r, kind, value):
    user = upper_first(fill(r, THINGS[kind].tell, value))
    return Turn(punctuated(user), upper_first(fill(r, THINGS[kind].reply, value)), "Okay.")


def asked(r, kind, value):
    thing = THINGS[kind]
    return Turn(punctuated(spin(r, thing.ask)), fill(r, thing.answer, value), upper_first(value) + ".")


UNKNOWN = {"name": "your name", "colour": "your favourite colour", "city": "where you live",
           "hobby": "your hobby", "food": "your favourite food", "animal": "your favourite animal",
           "job": "your job", "age": "your age", "dog": "the name of your dog", "cat": "the name of your cat",
           "number": "a number", "word": "a word",
           "sister": "the name of your sister", "brother": "the name of your brother",
           "trip": "where you are going", "friend": "the name of your friend",
           "birthday": "when your birthday is"}


def never_told(r, kind):
    answer = f"You have not told me {UNKNOWN[kind]} yet."
    return Turn(punctuated(spin(r, THINGS[kind].ask)), answer, "Unknown.")


CORRECTABLE = {"name": "name", "colour": "favourite colour", "food": "favourite food", "hobby": "hobby"}


def corrected(r, kind, old):
    value = r.choice([v for v in THINGS[kind].values if v != old])
    label = CORRECTABLE[kind]
    user = spin(r, f"(No, my {label} is {value}|Sorry, I meant {value}|That was wrong, my {label} is {value}|"
                   f"No, it is {value}|Actually, my {label} is {value}|I made a mistake. My {label} is {value})")
    return value, Turn(user + ".", f"Thank you for telling me. Your {label} is {value}.", "Okay.")


def one_thing(r):
    """(turns that tell, turns that ask)"""
    kind = r.choice(["name"] * 5 + list(THINGS))
    value = some_value(r, kind)
    tell = [told(r, kind, value)]
    if kind in CORRECTABLE and r.random() < 0.12:
        value, turn = corrected(r, kind, value)
        tell.append(turn)
    return tell, [asked(r, kind, value)]


def two_things(r):
    kinds = r.sample(list(THINGS), 2)
    if "name" in kinds and ("hobby" in kinds or "job" in kinds):
        kinds = ["dog", "colour"]  # "I am Anna", "I am a cook": who am I?
    values = [some_value(r, k) for k in kinds]
    if values[0] == values[1]:
        return one_thing(r)
    ask = [asked(r, k, v) for k, v in zip(kinds, values)]
    if r.random() < 0.5:
        ask.reverse()
    tell = [told(r, k, v) for k, v in zip(kinds, values)]
    if r.random() < 0.5:
        tell = [in_one_sentence(*tell)]
    return tell, ask[:r.choice([1, 2])]


def in_one_sentence(first, second):
    """Two things told in one turn; the answer reacts to the first."""
    user = f"{first.user.rstrip('.!')} and {lower_first(second.user)}"
    return Turn(user, first.answer, "Okay.")


def an_object(r):
    """An object that the user or another person has put somewhere."""
    thing, place = r.choice(OBJECTS), r.choice(PLACES)
    others = [(name, "put", "put") for name in r.sample(NAMES, 2)]
    who, put, verb = r.choice([("I", "put", "put"), ("I", "left", "leave")] + others)
    it = f"my {thing}" if who == "I" and r.random() < 0.5 else f"the {thing}"
    answer = f"{it} is {place}.".replace("my ", "your ")
    ask = spin(r, f"(Where is {it}|Where's {it}|Do you know where {it} is|Can you tell me where {it} is|"
                  f"Where did {who} {verb} {it})?")
    return [Turn(f"{who} {put} {it} {place}.", f"All right, {answer}", "Okay.")], [Turn(ask, upper_first(answer))]


BUYABLE = "milk, bread, eggs, apples, cheese, tea, rice, soap, tomatoes, butter, coffee, bananas".split(", ")


def shopping(r):
    items = r.sample(BUYABLE, r.choice([2, 3]))
    tell = spin(r, "(I need to buy|I have to buy|My shopping list is|I want to buy|"
                   "Please remember my shopping list:)")
    ask = ("(What do I need to buy|What is on my shopping list|What do I have to buy|What did I want to buy|"
           "Tell me my shopping list)")
    return ([Turn(f"{tell} {joined(items)}.", "All right, I will remember that for this chat.", "Okay.")],
            [Turn(punctuated(spin(r, ask)), f"You want to buy {joined(items)}.")])


def memory(r):
    """(turns that tell, turns that ask later)"""
    make = r.choices([one_thing, two_things, an_object, shopping], [6, 4, 2, 1])[0]
    return make(r)
