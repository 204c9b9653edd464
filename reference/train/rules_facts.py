"""Questions with a known answer, from the tables of facts/; facts/wordings.txt has their wordings."""

from wording import Turn, a, joined, lines, punctuated, spin, table, upper_first

NUMBERS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
           "sixteen seventeen eighteen nineteen twenty").split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = ("January February March April May June July August September October November "
          "December").split()
SEASONS = "spring summer autumn winter".split()
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
ORDER = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
WORDINGS = dict(line.split(": ", 1) for line in lines("wordings.txt"))


class Animal:
    def __init__(self, row):
        (self.name, self.plural, self.kind, self.legs, self.sound, self.home, self.baby, self.food,
         self.colour, weight, speed, can) = row
        self.weight, self.speed, self.can = float(weight), float(speed), can.split(",")


ANIMALS = [Animal(row) for row in table("animals.txt")]
THINGS, COUNTRIES, YES_NO = table("things.txt"), table("capitals.txt"), table("yesno.txt")
HOW_TO = table("howto.txt")
# Their wordings contain choices written with "|", so only the last two "|" separate columns.
COUNTED, ANSWERS = ([line.rsplit("|", 2) for line in lines(name)] for name in ("numbers.txt", "answers.txt"))


def turn(r, ask, answer, short=""):
    """A question drawn from its wordings, the answer, and the answer in one word."""
    return Turn(punctuated(upper_first(spin(r, ask))), upper_first(spin(r, answer)),
                upper_first(short) + "." if short else "")


def ask(wording, **values):
    return WORDINGS[wording].format(**values)


def one_word(text, otherwise=""):
    return text if " " not in text else otherwise


# Animals.

def of_animal(r, aspect, x):
    """One question about animal x; the aspect is kept for "and a cow?"."""
    one, many = upper_first(a(x.name)), upper_first(x.plural)
    count = NUMBERS[int(x.legs)]
    home = "a nest" if x.name in ("parrot", "eagle", "crow") else x.home
    colour = f"are (usually|often) {x.colour}" if x.colour != "many colours" else "can have many colours"
    first_food = x.food.split()[0].rstrip(",")
    answer, short = {
        "sound": (f"{one} says: {x.sound}!", x.sound),
        "legs": (f"{one} has {count if x.legs != '0' else 'no'} legs.", count if x.legs != "0" else "none"),
        "home": (f"{one} lives in {home}.", ""),
        "baby": (f"A baby {x.name} is called {a(x.baby)}.", one_word(x.baby)),
        "food": (f"{many} eat {x.food}.",
                 first_food if first_food not in ("almost", "small", "water", "dry", "sweet") else ""),
        "kind": (f"{one} is {a(x.kind)}.", x.kind),
        "colour": (f"{many} {colour}.", one_word(x.colour)),
    }[aspect]
    return turn(r, ask(aspect, x=a(x.name), xs=x.plural, name=x.name), answer, short)


ASPECTS = ["sound", "legs", "home", "baby", "food", "kind", "colour"]


def animal(r):
    aspect = r.choice(ASPECTS)
    known = [x for x in ANIMALS if (aspect != "sound" or x.sound != "-") and
             (aspect != "home" or x.name != "snail")]
    x, y = r.sample(known, 2)
    turns = [of_animal(r, aspect, x)]
    if r.random() < 0.35:
        second = of_animal(r, aspect, y)
        user = spin(r, ask("and animal", x=a(y.name), xs=y.plural))
        turns.append(Turn(user, second.answer, second.short))
    return turns


# Why an animal can, and why it cannot.
REASONS = {"fly": ("they have wings", "they have no wings"),
           "swim": ("they can move well in water", "their bodies are not made for it"),
           "walk": ("they have legs", "they have no legs"),
           "talk": ("", "animals cannot use words as people do"),
           "read": ("", "animals cannot understand written words"),
           "drive a car": ("", "only people drive cars")}
SURE_NOT_TO_SWIM = ("giraffe", "chicken", "snail", "butterfly")


def can_animal(r):
    x, deed = r.choice(ANIMALS), r.choice(["swim", "fly", "talk", "read", "drive a car", "walk"])
    can = deed in x.can or (deed == "walk" and x.legs != "0")
    if deed == "swim" and not can and x.name not in SURE_NOT_TO_SWIM:
        return yes_no(r)  # the table has only good swimmers
    if deed not in ("swim", "fly", "walk") and x.name == "parrot":
        return yes_no(r)
    reason = REASONS[deed][0 if can else 1]
    if deed == "fly" and x.name in ("chicken", "penguin"):
        reason = "their wings are not made for flying"
    first = f"{'Yes' if can else 'No'}, {x.plural} {'can' if can else 'cannot'} {deed}"
    with_reason = r.random() < 0.6
    answer = f"{first}, because {reason}." if with_reason else f"{first}."
    turns = [turn(r, ask("can", x=a(x.name), xs=x.plural, deed=deed), answer, "Yes" if can else "No")]
    if not with_reason and r.random() < 0.5:
        turns.append(Turn(spin(r, ask("why" if can else "why not")), f"Because {reason}."))
    return turns


# Comparisons: the numbers are so far apart that the order is clear.
BIGNESS = [("an ant", 0), ("a mouse", 2), ("a cat", 4), ("a dog", 5), ("a chair", 5.5), ("a horse", 7),
           ("a car", 8), ("an elephant", 9), ("a house", 10.5), ("a whale", 10), ("a mountain", 14),
           ("the moon", 17), ("the Earth", 18), ("the sun", 20), ("a grain of sand", -2), ("an apple", 2.5),
           ("a book", 3), ("a city", 13), ("a lake", 12), ("an ocean", 16), ("a ship", 11), ("a coin", 0.8),
           ("a football", 3.3)]
SPEED = [("a snail", 0), ("a turtle", 1), ("a person on foot", 3), ("a bicycle", 5), ("a horse", 7),
         ("a car", 9), ("a train", 11), ("a plane", 14), ("a rocket", 17), ("light", 20)]
HEAT = [("ice", 0), ("cold water", 2), ("warm milk", 4), ("hot tea", 6), ("boiling water", 8), ("fire", 10),
        ("the sun", 14), ("snow", 0)]
WEIGHT = [("a feather", 0), ("an egg", 3), ("an apple", 4), ("a book", 5), ("a dog", 7), ("a person", 9),
          ("a piano", 11), ("a car", 12), ("a truck", 14), ("a ship", 17)]
LENGTH = [("a second", 0), ("a minute", 1), ("an hour", 2), ("a day", 3), ("a week", 4), ("a month", 5),
          ("a year", 6), ("a century", 7)]
COMPARED = [("bigger", "smaller", BIGNESS), ("faster", "slower", SPEED), ("hotter", "colder", HEAT),
            ("heavier", "lighter", WEIGHT), ("longer", "shorter", LENGTH)]


def bare_noun(text):
    return text.split()[-1] if text.startswith(("a ", "an ", "the ")) and text.count(" ") == 1 else ""


def comparison(r):
    more, less, rows = r.choice(COMPARED)
    if r.random() < 0.5 and more in ("bigger", "faster"):
        rows = [(a(x.name), x.weight if more == "bigger" else x.speed) for x in ANIMALS]
        (x, p), (y, q) = r.sample(rows, 2)
        clear = p > 1.6 * q or q > 1.6 * p
    else:
        (x, p), (y, q) = r.sample(rows, 2)
        clear = abs(p - q) >= 0.9
    if not clear:
        return comparison(r)
    word = r.choice([more, more, less])
    winner, loser = (x, y) if (p > q) == (word == more) else (y, x)
    if r.random() < 0.3:
        says = "Yes" if winner == x else "No"
        return [turn(r, f"Is {x} {word} than {y}", f"{says}, {winner} is {word} than {loser}.", says)]
    return [turn(r, ask("compare", word=word, x=x, y=y), f"{winner} is {word} than {loser}.", bare_noun(winner))]


# Words.

def as_written(r, row):
    return row


def either_way(r, row):
    return row if r.random() < 0.5 else row[::-1]


def opposite_way(r, row):
    """The row, sometimes reversed; never asks for the opposite of "light" or "short", which have two each."""
    return row if r.random() < 0.5 or row[1] in ("light", "short") else row[::-1]


def chained(r, skill, rows, answer, way=as_written):
    """A question about one row, and sometimes the same about another: "and X?"."""
    first, second = r.sample(rows, 2)
    x, y = way(r, first)
    turns = [turn(r, ask(skill, x=x), answer.format(x=x, y=y), y)]
    if r.random() < 0.3:
        x, y = way(r, second)
        turns.append(turn(r, ask(f"and {skill}", x=x), answer.format(x=x, y=y), y))
    return turns


OPPOSITES, RHYMES = table("opposites.txt"), table("rhymes.txt")
SYNONYMS, VERBS, PLURALS = table("synonyms.txt"), table("verbs.txt"), table("plurals.txt")


def opposite(r):
    return chained(r, "opposite", OPPOSITES, "The opposite of {x} is {y}.", opposite_way)


def synonym(r):
    return chained(r, "synonym", SYNONYMS, "Another word for {x} is {y}.")


def rhyme(r):
    return chained(r, "rhyme", RHYMES, "{y} rhymes with {x}.", either_way)


def past(r):
    return chained(r, "past", VERBS, "The past tense of {x} is {y}.")


def plural(r):
    return chained(r, "plural", PLURALS, "The plural of {x} is {y}.")


SPELLED = ("cat dog house tree sun moon book ball fish bird milk water apple green blue red day night king ship "
           "star road hand door lamp rain snow leaf horse mouse bread cake table chair window school friend "
           "garden music happy").split()


def letters(r):
    x = r.choice(SPELLED)
    kind = r.randrange(4)
    if kind == 0:
        return [turn(r, ask("first letter", x=x), f"The first letter of {x} is {x[0].upper()}.", x[0])]
    if kind == 1:
        return [turn(r, ask("last letter", x=x), f"The last letter of {x} is {x[-1].upper()}.", x[-1].upper())]
    if kind == 2:
        return [turn(r, ask("spell", x=x), "-".join(x.upper()) + ".")]
    i, after = r.randrange(1, 25), r.random() < 0.6
    word, other = ("after", LETTERS[i + 1]) if after else ("before", LETTERS[i - 1])
    return [turn(r, ask("letter near", word=word, x=LETTERS[i]),
                 f"The letter {other} comes {word} {LETTERS[i]}.", other)]


# Countries, the calendar, numbers.

def capital(r):
    return chained(r, "capital", [row[:2] for row in COUNTRIES], "The capital of {x} is {y}.")


def country(r):
    x, y, continent, language = r.choice(COUNTRIES)
    kind = r.randrange(4)
    if kind == 0:
        return [turn(r, ask("country", y=y), f"{y} is the capital of {x}.", x.removeprefix("the "))]
    if kind == 1:
        answer = f"{x} is in {continent}." if x != continent else f"{x} is a country and a continent."
        return [turn(r, ask("continent", x=x), answer, continent if " and " not in continent else "")]
    if kind == 2:
        one = " and " not in language
        answer = f"People in {x} {'(mostly |)' if one else ''}speak {language}."
        return [turn(r, ask("language", x=x), answer, language if one else "")]
    other = r.choice([row for row in COUNTRIES if row[1] != y])
    if r.random() < 0.5:
        return [turn(r, f"Is {y} the capital of {x}", f"Yes, {y} is the capital of {x}.", "Yes")]
    return [turn(r, f"Is {other[1]} the capital of {x}", f"No, the capital of {x} is {y}.", "No")]


def calendar(r):
    names, what = r.choice([(DAYS, "day"), (DAYS, "day"), (MONTHS, "month"), (SEASONS, "season")])
    i, after = r.randrange(len(names)), r.random() < 0.6
    x, y = names[i], names[(i + (1 if after else -1)) % len(names)]
    kind = r.random()
    if kind < 0.6:
        word = "after" if after else "before"
        return [turn(r, ask("next", what=what, word=word, x=x), f"{y} comes {word} {x}.", y)]
    if kind < 0.75 and what == "month":
        return [turn(r, ask("which month", order=ORDER[i]), f"The {ORDER[i]} month is {x}.", x)]
    if kind < 0.85 and what == "day":
        other, be, shift = r.choice([("tomorrow", "is", 1), ("yesterday", "was", -1)])
        z = names[(i + shift) % 7]
        return [turn(r, ask("if today", x=x, be=be, other=other), f"If today is {x}, then {other} {be} {z}.", z)]
    if what == "season":
        return [turn(r, ask("seasons"), f"The four seasons are {joined(SEASONS)}.")]
    return [turn(r, ask("days" if what == "day" else "months"), joined(names) + ".")]


RANGES = [(1, 10)] * 4 + [(1, 5), (1, 20), (1, 3), (1, 15), (5, 10), (1, 12), (10, 20)]


def count(r):
    low, high = r.choice(RANGES)
    numbers = range(low, high + 1)
    down = r.random() < 0.25
    in_words = r.random() < 0.3 and high <= 10
    names = [NUMBERS[n] if in_words else str(n) for n in numbers]
    if down:
        names.reverse()
    wording = ask("count down" if down else "count to" if low == 1 else "count from",
                  low=low, high=high, Low=NUMBERS[low], High=NUMBERS[high])
    return [turn(r, f"{wording} {'in words' if in_words else ''}.", ", ".join(names) + ".")]


def arithmetic(r):
    kind = r.choice("++--*")
    if kind == "*":
        x, y = r.randrange(2, 11), r.randrange(2, 11)
        z, words = x * y, "times"
    elif kind == "+":
        x, y = r.randrange(0, 13), r.randrange(0, 13)
        z, words = x + y, "plus"
    else:
        x = r.randrange(1, 20)
        y = r.randrange(0, x + 1)
        z, words = x - y, "minus"
    if r.random() < 0.35:
        shown = f"{NUMBERS[x]} {words} {NUMBERS[y]}"
    else:
        shown = r.choice([f"{x} {words} {y}", f"{x} {kind} {y}", f"{x}{kind}{y}"])
    return [turn(r, ask("sum", x=shown), f"{x} {words} {y} is {z}.", str(z))]


OWNED = ["apples", "books", "balls", "coins", "eggs", "pens", "cookies", "stones", "stamps", "cards"]


def story_sum(r):
    x, y, things = r.randrange(2, 10), r.randrange(1, 8), r.choice(OWNED)
    who = r.choice(["I", "Tom", "Anna", "Ben"])
    me = who == "I"
    if r.random() < 0.5 and y < x:
        z, left, deed = x - y, "left", f"{'give' if me else 'gives'} away {y}"
    else:
        z, left, deed = x + y, "now", f"{'get' if me else 'gets'} {y} more"
    question = f"How many {things} {'do I' if me else f'does {who}'} have {left}?"
    owned = things if z != 1 else things[:-1]
    return [turn(r, f"{who} {'have' if me else 'has'} {x} {things} and {deed}. {question}",
                 f"{'You have' if me else f'{who} has'} {z} {owned} {left}.", str(z))]


def number_near(r):
    n = r.randrange(1, 60)
    word, m = r.choice([("after", n + 1), ("before", n - 1)])
    return [turn(r, ask("number near", word=word, x=n), f"The number {word} {n} is {m}.", str(m))]


def number_fact(r):
    wordings, answer, short = r.choice(COUNTED)
    return [turn(r, wordings, answer, short.rstrip("."))]


# Lists.

def read_lists():
    """(name in the plural, name in the singular, members)"""
    rows = (line.split(": ") for line in lines("lists.txt"))
    return [(*names.split("/"), members.split(", ")) for names, members in rows]


LISTS = read_lists()
# These lists name their members in the plural.
PLURAL_LISTS = ["fruits", "vegetables", "animals", "pets", "birds", "insects", "clothes", "flowers", "trees",
                "vehicles", "tools", "farm animals", "wild animals", "sea animals", "winter clothes"]
SINGULARS = {"trousers": "trousers", "goldfish": "goldfish", "grapes": "a grape", "wolves": "a wolf",
             "scarves": "a scarf", "daisies": "a daisy", "axes": "an axe", "horses": "a horse",
             "oranges": "an orange", "giraffes": "a giraffe", "roses": "a rose", "bicycles": "a bicycle",
             "planes": "a plane", "sheep": "a sheep", "gloves": "gloves", "socks": "socks", "boots": "boots",
             "warm hats": "a warm hat"}
ENDINGS = [("ies", "y"), ("ches", "ch"), ("shes", "sh"), ("sses", "ss"), ("uses", "us"), ("oes", "o"),
           ("xes", "x"), ("s", "")]


def singular(noun):
    """One member of a list that names its members in the plural."""
    if noun in SINGULARS:
        return SINGULARS[noun]
    for end, one in ENDINGS:
        if noun.endswith(end):
            return a(noun[:-len(end)] + one)
    return noun


def list_some(r):
    many, one, members = r.choice(LISTS)
    n = min(r.choice([2, 3, 3, 3, 4, 5, 5]), len(members))
    chosen = r.sample(members, n)
    shown = r.choice([NUMBERS[n], NUMBERS[n], str(n)])
    turns = [turn(r, ask("list", n=shown, many=many), joined(chosen) + ".")]
    rest = [m for m in members if m not in chosen]
    if rest and r.random() < 0.25:
        more = r.choice(rest)
        turns.append(turn(r, ask("list more"), f"{more}.", one_word(more)))
    return turns


def list_one(r):
    many, one, members = r.choice(LISTS)
    chosen = r.choice(members)
    if many in PLURAL_LISTS:
        chosen = singular(chosen)
    return [turn(r, ask("list one", x=a(one), one=one), f"{chosen}.", chosen.split()[-1])]


GROUPS = ("fruit vegetable animal bird insect colour day month country city planet sport instrument drink "
          "flower language continent").split()
OTHER_GROUPS = "fruit colour instrument flower planet sport month".split()


def lists_of(names):
    """The lists whose name is a part of this text, in a fixed order."""
    text = " ".join(names)
    return [row for row in LISTS if row[1] in text]


def belongs(r):
    many, one, members = r.choice(lists_of(GROUPS))
    x = r.choice(members)
    other = r.choice([row for row in lists_of(OTHER_GROUPS) if row[1] != one])
    be, group = ("Are", many) if x[0].islower() and x.endswith("s") else ("Is", a(one))
    yes = r.random() < 0.5
    if one == "colour" and x == "orange":
        return belongs(r)  # an orange is also a fruit
    if yes:
        return [turn(r, f"{be} {x} {group}", f"Yes, {x} {be.lower()} {group}.", "Yes")]
    if x in other[2]:
        return belongs(r)
    wrong = other[0] if be == "Are" else a(other[1])
    return [turn(r, f"{be} {x} {wrong}", f"No, {x} {be.lower()} {group}.", "No")]


def odd_one(r):
    first, second = r.sample(lists_of("fruit animal colour country vehicle month".split()), 2)
    two, other = r.sample(first[2], 2), r.choice(second[2])
    names = two + [other]
    r.shuffle(names)
    return [turn(r, ask("odd one", names=", ".join(names)),
                 f"The word {other} does not fit. The others are {first[0]}.", other.split()[-1])]


# Things.

def thing(r):
    name, article, gloss, use, colour = r.choice(THINGS)
    x = {"some": name, "the": f"the {name}"}.get(article, a(name))
    kind, usable = r.random(), use not in ("-", "eat", "drink")
    if kind < 0.4 and usable:
        return [turn(r, ask("use", x=x), f"{'You can use' if r.random() < 0.5 else 'People use'} {x} to {use}.")]
    if kind < 0.6 and colour != "-":
        answer = f"{x} can have many colours." if colour == "many colours" else f"{x} (is usually|is) {colour}."
        short = one_word(colour, colour.split(" or ")[0] if " or " in colour else "")
        return [turn(r, ask("colour of thing", x=x), answer, short)]
    who = "Who is" if gloss.startswith("a person") and r.random() < 0.3 else "What is"
    turns = [turn(r, ask("what is", is_=who, x=x, name=name), f"{x} is {gloss}.")]
    if usable and r.random() < 0.35:
        turns.append(turn(r, ask("use of it"), f"People use it to {use}."))
    return turns


VAGUE_USES = ("-", "eat", "make salad", "make music", "stay dry", "keep warm")
TOOLS = [row for row in THINGS if row[1] in ("a", "an") and row[3] not in VAGUE_USES]


def which_tool(r):
    name, article, gloss, use, colour = r.choice(TOOLS)
    mine = use.replace("yourself", "myself").replace("your", "my")
    return [turn(r, ask("which tool", use=mine), f"You can use {a(name)} to {use}.", name.split()[-1])]


# Single questions.

def yes_no(r):
    question, answer, reason = r.choice(YES_NO)
    turns = [turn(r, question, f"{answer}, {reason}.", answer)]
    if r.random() < 0.35:
        short = upper_first(answer) + "."
        turns = [Turn(turns[0].user, short, short), turn(r, ask("explain why"), f"{reason}.")]
    return turns


def known_answer(r):
    return [turn(r, *r.choice(ANSWERS))]


def how_to(r):
    deed, answer = r.choice(HOW_TO)
    wanted = spin(r, ask("how to"))
    if wanted.startswith(("How do people", "How does one", "How do you")):
        deed = deed.replace(" my ", " the ")
    more = ". How do I do that?" if wanted in ("I would like to", "I want to") else ""
    return [turn(r, f"{wanted} {deed}{more}", answer)]


# (skill, how often)
SKILLS = [(known_answer, 22), (how_to, 12), (animal, 9), (can_animal, 3), (comparison, 5), (opposite, 5),
          (synonym, 2), (rhyme, 2), (past, 2), (plural, 2), (capital, 5), (country, 4), (calendar, 5), (count, 3),
          (arithmetic, 5), (story_sum, 1.5), (number_fact, 4), (number_near, 1.5), (list_some, 7), (list_one, 3),
          (belongs, 2), (odd_one, 0.7), (thing, 9), (which_tool, 3), (yes_no, 7), (letters, 2.5)]


def fact(r):
    return r.choices([s for s, _ in SKILLS], [w for _, w in SKILLS])[0](r)
