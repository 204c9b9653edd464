"""Questions whose answer is known, from the tables of facts/."""

from wording import Turn, a, joined, lines, punctuated, spin, table, upper_first

SMALL = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
         "seventeen eighteen nineteen twenty").split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
SEASONS = "spring summer autumn winter".split()
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
ORDER = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
ANSWERS, HOW_TO = [line.rsplit("|", 2) for line in lines("answers.txt")], table("howto.txt")


class Animal:
    def __init__(self, row):
        (self.name, self.plural, self.kind, self.legs, self.sound, self.home, self.baby, self.food, self.colour,
         weight, speed, can) = row
        self.weight, self.speed, self.can = float(weight), float(speed), can.split(",")


ANIMALS = [Animal(row) for row in table("animals.txt")]
THINGS = table("things.txt")
OPPOSITES, SYNONYMS, RHYMES = table("opposites.txt"), table("synonyms.txt"), table("rhymes.txt")
CAPITALS, VERBS, PLURALS = table("capitals.txt"), table("verbs.txt"), table("plurals.txt")
YES_NO, NUMBERS = table("yesno.txt"), [line.rsplit("|", 2) for line in lines("numbers.txt")]


def turn(r, ask, answer, short=""):
    """A question drawn from its wordings, the answer and the answer in one word."""
    return Turn(punctuated(upper_first(spin(r, ask))), upper_first(spin(r, answer)), upper_first(short) + "." if short else "")


def of_animal(r, aspect, x):
    """One question about animal x; the aspect is kept for "and a cow?"."""
    plural = upper_first(x.plural)
    if aspect == "sound":
        return turn(r, f"(What sound does {a(x.name)} make|What does {a(x.name)} say|What noise does {a(x.name)} make|Which sound do {x.plural} make)",
                    f"{upper_first(a(x.name))} says: {x.sound}!", x.sound)
    if aspect == "legs":
        count = SMALL[int(x.legs)] if x.legs != "0" else "no"
        return turn(r, f"(How many legs does {a(x.name)} have|How many legs do {x.plural} have|How many legs has {a(x.name)}|What is the number of legs of {a(x.name)})",
                    f"{upper_first(a(x.name))} has {count} legs.", count if count != "no" else "none")
    if aspect == "home":
        return turn(r, f"(Where does {a(x.name)} live|Where do {x.plural} live|What is the home of {a(x.name)})",
                    f"{upper_first(a(x.name))} lives in {x.home}." if x.name not in ("parrot", "eagle", "crow") else f"{upper_first(a(x.name))} lives in a nest.",
                    )
    if aspect == "baby":
        return turn(r, f"(What is a baby {x.name} called|What do you call a baby {x.name}|What is the name of a baby {x.name}|What is a young {x.name} called)",
                    f"A baby {x.name} is called {a(x.baby)}.", x.baby if " " not in x.baby else "")
    if aspect == "food":
        return turn(r, f"(What does {a(x.name)} eat|What do {x.plural} eat|What food do {x.plural} like|What is the food of {x.plural})",
                    f"{plural} eat {x.food}.", x.food.split()[0].rstrip(",") if x.food.split()[0] not in ("almost", "small", "water", "dry", "sweet") else "")
    if aspect == "kind":
        return turn(r, f"(What kind of animal is {a(x.name)}|Is {a(x.name)} a mammal, a bird or something else|What sort of animal is {a(x.name)})",
                    f"{upper_first(a(x.name))} is {a(x.kind)}.", x.kind)
    return turn(r, f"(What colou?r is {a(x.name)}|What colou?r are {x.plural}|Which colou?r does {a(x.name)} have)",
                f"{plural} are (usually|often) {x.colour}." if x.colour != "many colours" else f"{plural} can have many colours.",
                x.colour if " " not in x.colour else "")


ASPECTS = ["sound", "legs", "home", "baby", "food", "kind", "colour"]


def animal(r):
    aspect = r.choice(ASPECTS)
    known = [x for x in ANIMALS if (aspect != "sound" or x.sound != "-") and
             (aspect != "home" or x.name not in ("snail",))]
    x, y = r.sample(known, 2)
    turns = [of_animal(r, aspect, x)]
    if r.random() < 0.35:
        asked = of_animal(r, aspect, y)
        turns.append(Turn(spin(r, f"(And {a(y.name)}|What about {a(y.name)}|And what about {a(y.name)}|And {y.plural})?"), asked.answer, asked.short))
    return turns


def can_animal(r):
    x, deed = r.choice(ANIMALS), r.choice(["swim", "fly", "talk", "read", "drive a car", "walk"])
    if deed in ("swim", "fly"):
        yes = deed in x.can
        if not yes and deed == "swim" and x.name not in ("giraffe", "chicken", "snail", "butterfly"):
            return yes_no(r)
    elif deed == "walk":
        yes = x.legs != "0"
    else:
        yes = False
        if x.name == "parrot":
            return yes_no(r)
    reason = {"fly": ("they have wings", "they have no wings"), "swim": ("they can move well in water", "their bodies are not made for it"),
              "walk": ("they have legs", "they have no legs"), "talk": ("", "animals cannot use words as people do"),
              "read": ("", "animals cannot understand written words"), "drive a car": ("", "only people drive cars")}[deed]
    if deed == "fly" and x.name in ("chicken", "penguin"):
        reason = ("", "their wings are not made for flying")
    first = f"{'Yes' if yes else 'No'}, {x.plural} {'can' if yes else 'cannot'} {deed}"
    turns = [turn(r, f"(Can {a(x.name)} {deed}|Can {x.plural} {deed}|Is {a(x.name)} able to {deed}|Are {x.plural} able to {deed})",
                  f"{first}, because {reason[0] if yes else reason[1]}." if r.random() < 0.6 else f"{first}.", "Yes" if yes else "No")]
    if "because" not in turns[0].answer and r.random() < 0.5:
        turns.append(Turn(spin(r, "(Why|Why is that|And why|Why not|How come)?" if not yes else "(Why|Why is that|And why|How come)?"),
                          f"Because {reason[0] if yes else reason[1]}."))
    return turns


BIGNESS = [("an ant", 0), ("a mouse", 2), ("a cat", 4), ("a dog", 5), ("a chair", 5.5), ("a horse", 7), ("a car", 8), ("an elephant", 9), ("a house", 10.5),
           ("a whale", 10), ("a mountain", 14), ("the moon", 17), ("the Earth", 18), ("the sun", 20), ("a grain of sand", -2), ("an apple", 2.5),
           ("a book", 3), ("a city", 13), ("a lake", 12), ("an ocean", 16), ("a ship", 11), ("a coin", 0.8), ("a football", 3.3)]
SPEED = [("a snail", 0), ("a turtle", 1), ("a person on foot", 3), ("a bicycle", 5), ("a horse", 7), ("a car", 9), ("a train", 11), ("a plane", 14), ("a rocket", 17), ("light", 20)]
HEAT = [("ice", 0), ("cold water", 2), ("warm milk", 4), ("hot tea", 6), ("boiling water", 8), ("fire", 10), ("the sun", 14), ("snow", 0)]
WEIGHT = [("a feather", 0), ("an egg", 3), ("an apple", 4), ("a book", 5), ("a dog", 7), ("a person", 9), ("a piano", 11), ("a car", 12), ("a truck", 14), ("a ship", 17)]
LENGTH = [("a second", 0), ("a minute", 1), ("an hour", 2), ("a day", 3), ("a week", 4), ("a month", 5), ("a year", 6), ("a century", 7)]
COMPARED = [("bigger", "smaller", BIGNESS), ("faster", "slower", SPEED), ("hotter", "colder", HEAT), ("heavier", "lighter", WEIGHT), ("longer", "shorter", LENGTH)]


def one_noun(text):
    return text.split()[-1] if text.startswith(("a ", "an ", "the ")) and text.count(" ") == 1 else ""


def comparison(r):
    more, less, rows = r.choice(COMPARED)
    if r.random() < 0.5 and more in ("bigger", "faster"):
        rows = [(a(x.name), x.weight if more == "bigger" else x.speed) for x in ANIMALS]
        (x, p), (y, q) = r.sample(rows, 2)
        if not (p > 1.6 * q or q > 1.6 * p):
            return comparison(r)
    else:
        (x, p), (y, q) = r.sample(rows, 2)
        if abs(p - q) < 0.9:
            return comparison(r)
    word = r.choice([more, more, less])
    winner, loser = (x, y) if (p > q) == (word == more) else (y, x)
    if r.random() < 0.3:
        return [turn(r, f"Is {x} {word} than {y}", f"{'Yes' if winner == x else 'No'}, {winner} is {word} than {loser}.", "Yes" if winner == x else "No")]
    return [turn(r, f"(What is {word}, {x} or {y}|Which is {word}, {x} or {y}|Which one is {word}: {x} or {y}|What is {word}: {x} or {y}|Is {x} or {y} {word})",
                 f"{winner} is {word} than {loser}.", one_noun(winner))]


def chained(r, make, rows):
    """A question about one row, and sometimes the same about another: "and X?"."""
    first, second = r.sample(rows, 2)
    ask, again, answer, short = make(first)
    turns = [turn(r, ask, answer, short)]
    if r.random() < 0.3:
        _, again, answer, short = make(second)
        turns.append(turn(r, again, answer, short))
    return turns


def opposite(r):
    def make(row):
        x, y = row if r.random() < 0.5 or row[1] == "light" or row[1] == "short" else row[::-1]
        return (f"(What is|What's|Tell me|Give me|Can you tell me|Do you know|Name) the opposite of {x}", f"(And|And of|What about) {x}?",
                f"The opposite of {x} is {y}.", y)
    rows = [row for row in OPPOSITES if row != ["light", "heavy"]]
    return chained(r, make, rows)


def synonym(r):
    def make(row):
        x, y = row
        return (f"(What is another word for {x}|Give me another word for {x}|What is a synonym for {x}|Which word means the same as {x}|Tell me a word like {x})",
                f"(And for|And|What about) {x}?", f"Another word for {x} is {y}.", y)
    return chained(r, make, SYNONYMS)


def rhyme(r):
    def make(row):
        x, y = row if r.random() < 0.5 else row[::-1]
        return (f"(What rhymes with {x}|Give me a word that rhymes with {x}|Tell me a rhyme for {x}|Which word rhymes with {x}|Find a rhyme for {x})",
                f"(And with|What about) {x}?", f"{y} rhymes with {x}.", y)
    return chained(r, make, RHYMES)


def past(r):
    def make(row):
        x, y = row
        return (f"(What is the past tense of {x}|What is the past of {x}|Past tense of {x}|Put {x} into the past tense|Give me the past tense of {x})",
                f"(And of|And|What about) {x}?", f"The past tense of {x} is {y}.", y)
    return chained(r, make, VERBS)


def plural(r):
    def make(row):
        x, y = row
        return (f"(What is the plural of {x}|Give me the plural of {x}|The plural of {x}|Tell me the plural of {x}|Do you know the plural of {x})",
                f"(And of|And|What about) {x}?", f"The plural of {x} is {y}.", y)
    return chained(r, make, PLURALS)


def capital(r):
    def make(row):
        x, y, *_ = row
        return (f"(What is|What's|Tell me|Can you tell me|Do you know|Name) the capital( city|) of {x}", f"(And of|And|What about) {x}?",
                f"The capital of {x} is {y}.", y if " " not in y else y)
    return chained(r, make, CAPITALS)


def country(r):
    x, y, continent, language = r.choice(CAPITALS)
    kind = r.randrange(4)
    if kind == 0:
        return [turn(r, f"(Which country is {y} the capital of|{y} is the capital of which country|In which country is {y}|Where is {y}|What country is {y} in)",
                     f"{y} is the capital of {x}.", x.removeprefix("the "))]
    if kind == 1:
        return [turn(r, f"(Which continent is {x} in|On which continent is {x}|What continent is {x} on|In which part of the world is {x}|Where is {x})",
                     f"{x} is in {continent}." if x != continent else f"{x} is a country and a continent.", continent if " and " not in continent else "")]
    if kind == 2:
        verb = "is" if " and " not in language else "are"
        return [turn(r, f"(What language do people speak in {x}|Which language is spoken in {x}|What do people speak in {x}|What is the language of {x})",
                     f"People in {x} (mostly |)speak {language}." if verb == "is" else f"People in {x} speak {language}.", language if verb == "is" else "")]
    z = r.choice([row for row in CAPITALS if row[1] != y])
    if r.random() < 0.5:
        return [turn(r, f"Is {y} the capital of {x}", f"Yes, {y} is the capital of {x}.", "Yes")]
    return [turn(r, f"Is {z[1]} the capital of {x}", f"No, the capital of {x} is {y}.", "No")]


def calendar(r):
    names, what = r.choice([(DAYS, "day"), (DAYS, "day"), (MONTHS, "month"), (SEASONS, "season")])
    i, after = r.randrange(len(names)), r.random() < 0.6
    x, y = names[i], names[(i + (1 if after else -1)) % len(names)]
    kind = r.random()
    if kind < 0.6:
        word = "after" if after else "before"
        return [turn(r, f"(What|Which) {what} (comes |is ){word} {x}", f"{y} comes {word} {x}.", y)]
    if kind < 0.75 and what == "month":
        return [turn(r, f"(Which month is the {ORDER[i]} month of the year|What is the {ORDER[i]} month|What month is the {ORDER[i]} one)", f"The {ORDER[i]} month is {x}.", x)]
    if kind < 0.85 and what == "day":
        today, other, shift = r.choice([("tomorrow", "tomorrow", 1), ("yesterday", "yesterday", -1)])
        z = names[(i + shift) % 7]
        verb = "is" if shift == 1 else "was"
        return [turn(r, f"(If today is {x}, what day {verb} {today}|Today is {x}. What day {verb} {today})?", f"If today is {x}, then {today} {verb} {z}.", z)]
    if what == "day":
        return [turn(r, "(What are the days of the week|Tell me the days of the week|List the days of the week|Name all days of the week|Can you list the days of the week)", joined(DAYS) + ".")]
    if what == "month":
        return [turn(r, "(What are the months of the year|Tell me the months|List the months of the year|Name all months|What are the twelve months)", joined(MONTHS) + ".")]
    return [turn(r, "(What are the seasons|What are the four seasons|Name the seasons|List the four seasons|Tell me the seasons)", "The four seasons are spring, summer, autumn and winter.")]


def count(r):
    low, high = r.choice([(1, 10)] * 4 + [(1, 5), (1, 20), (1, 3), (1, 15), (5, 10), (1, 12), (10, 20)])
    numbers = list(range(low, high + 1))
    down = r.random() < 0.25
    names = [SMALL[n] for n in numbers] if r.random() < 0.3 and high <= 10 else [str(n) for n in numbers]
    words = "in words" if names[0].isalpha() else ""
    if down:
        names.reverse()
        ask = f"(Count down from {high} to {low}|Count backwards from {high} to {low}|Can you count down from {SMALL[high]} to {SMALL[low]}|Count from {high} down to {low}|Please count backwards from {SMALL[high]} to {SMALL[low]})"
    elif low == 1:
        ask = f"(Count to {high}|Count to {SMALL[high]}|Count from 1 to {high}|Can you count to {SMALL[high]}|Please count to {high}|Count from one to {SMALL[high]}|Can you count to {high}|Please count from one to {SMALL[high]})"
    else:
        ask = f"(Count from {low} to {high}|Count from {SMALL[low]} to {SMALL[high]}|Can you count from {low} to {high})"
    return [turn(r, f"{ask} {words}.", ", ".join(names) + ".")]


def arithmetic(r):
    kind = r.choice("++--*")
    if kind == "*":
        x, y = r.randrange(2, 11), r.randrange(2, 11)
        z, words, symbol = x * y, "times", "*"
    elif kind == "+":
        x, y = r.randrange(0, 13), r.randrange(0, 13)
        z, words, symbol = x + y, "plus", "+"
    else:
        x = r.randrange(1, 20)
        y = r.randrange(0, x + 1)
        z, words, symbol = x - y, "minus", "-"
    if r.random() < 0.35 and max(x, y) <= 20:
        shown = f"{SMALL[x]} {words} {SMALL[y]}"
    else:
        shown = r.choice([f"{x} {words} {y}", f"{x} {symbol} {y}", f"{x}{symbol}{y}"])
    return [turn(r, f"(What is|What's|How much is|Calculate|Tell me|Can you calculate|What do you get for) {shown}", f"{x} {words} {y} is {z}.", str(z))]


STORY_SUMS = ["apples", "books", "balls", "coins", "eggs", "pens", "cookies", "stones", "stamps", "cards"]


def story_sum(r):
    x, y, thing = r.randrange(2, 10), r.randrange(1, 8), r.choice(STORY_SUMS)
    who = r.choice(["I", "Tom", "Anna", "Ben"])
    have, get, lose = ("have", "get", "give away") if who == "I" else ("has", "gets", "gives away")
    you, subject = ("You have", "do I") if who == "I" else (f"{who} has", f"does {who}")
    if r.random() < 0.5 and y < x:
        z, deed = x - y, f"{lose} {y}"
    else:
        z, deed = x + y, f"{get} {y} more"
    left = "left" if z < x else "now"
    return [turn(r, f"{who} {have} {x} {thing} and {deed}. How many {thing} {subject} have {left}?", f"{you} {z} {thing if z != 1 else thing[:-1]} {left}." if thing != "cookies" or z != 1 else f"{you} 1 cookie {left}.", str(z))]


def number_fact(r):
    ask, answer, short = r.choice(NUMBERS)
    return [turn(r, ask, answer, short.rstrip("."))]


def known_answer(r):
    ask, answer, short = r.choice(ANSWERS)
    return [turn(r, ask, answer, short)]


HOW_FRAMES = ("(How do I|How can I|How do you|How should I|How does one|What is the best way to|Can you tell me how to|Tell me how to|"
              "I want to know how to|Please explain how to|Do you know how to|Do you have a tip on how to|How do people|Explain how to|"
              "I do not know how to|Give me a tip on how to|What is a good way to|I would like to|I want to) ")


def how_to(r):
    deed, answer = r.choice(HOW_TO)
    wanted = spin(r, HOW_FRAMES)
    if wanted.startswith(("How do people", "How does one", "How do you")):
        deed = deed.replace(" my ", " the ") if "my" in deed.split() else deed
    more = " How do I do that" if wanted.startswith(("I would like", "I want to")) and "know" not in wanted else ""
    return [turn(r, f"{wanted} {deed}{'.' + more + '?' if more else ''}", answer)]


def numbers_near(r):
    n = r.randrange(1, 60)
    word, m = r.choice([("after", n + 1), ("before", n - 1)])
    return [turn(r, f"(What|Which) number (comes|is) {word} {n}", f"The number {word} {n} is {m}.", str(m))]


def read_lists():
    found = []
    for line in lines("lists.txt"):
        names, members = line.split(": ")
        found.append((*names.split("/"), members.split(", ")))
    return found


LISTS = read_lists()


def list_some(r):
    many, one, members = r.choice(LISTS)
    n = r.choice([2, 3, 3, 3, 4, 5, 5])
    n = min(n, len(members))
    chosen = r.sample(members, n)
    shown = r.choice([SMALL[n], SMALL[n], str(n)])
    ask = f"(Name|List|Give me|Tell me|Can you name|Can you list|Please name|Please list|Write down|I need|Could you name) {shown} {many}"
    turns = [turn(r, ask, upper_first(joined(chosen)) + ".")]
    rest = [m for m in members if m not in chosen]
    if rest and r.random() < 0.25:
        more = r.choice(rest)
        turns.append(turn(r, "(One more|Another one|And one more|One more, please|Give me one more|Can you name another one|Another one, please)", f"Another {one} is {more}." if more == one else f"{upper_first(more)}.", more if " " not in more else ""))
    return turns


PLURAL_GROUPS = ("fruits vegetables animals pets birds insects clothes flowers trees vehicles tools".split() +
                 ["farm animals", "wild animals", "sea animals", "winter clothes"])
PLURAL_ONLY = {"trousers": "trousers", "winter clothes": "coat", "goldfish": "goldfish", "grapes": "a grape", "wolves": "a wolf",
               "scarves": "a scarf", "daisies": "a daisy", "axes": "an axe", "horses": "a horse", "oranges": "an orange",
               "giraffes": "a giraffe", "roses": "a rose", "bicycles": "a bicycle", "planes": "a plane", "sheep": "a sheep",
               "gloves": "gloves", "socks": "socks", "boots": "boots", "warm hats": "a warm hat", "clothes": "a coat"}


def singular(noun):
    """One member of a list that names its members in the plural."""
    if noun in PLURAL_ONLY:
        return PLURAL_ONLY[noun]
    for end, one in (("ies", "y"), ("ches", "ch"), ("shes", "sh"), ("sses", "ss"), ("uses", "us"), ("oes", "o"), ("xes", "x"), ("s", "")):
        if noun.endswith(end):
            return a(noun[:-len(end)] + one)
    return noun


def list_one(r):
    many, one, members = r.choice(LISTS)
    chosen = r.choice(members)
    if many in PLURAL_GROUPS:
        chosen = singular(chosen)
    return [turn(r, f"(Name|Tell me|Give me|Can you name|Please name|Say|Name me) ({a(one)}|one {one}|{a(one)})", upper_first(chosen) + ".", chosen.split()[-1])]


def belongs(r):
    many, one, members = r.choice([row for row in LISTS if row[1] in "fruit vegetable animal bird insect colour day month country city planet sport instrument drink flower language continent".split()])
    x = r.choice(members)
    z = r.choice([row for row in LISTS if row[1] in "fruit colour instrument flower planet sport month".split() and row[1] != one])
    be, an = ("Are", many) if x[0].islower() and x.endswith("s") else ("Is", a(one))
    yes = r.random() < 0.5
    if one == "colour" and be == "Is" and x == "orange":
        return belongs(r)
    if yes:
        return [turn(r, f"{be} {x} {an}", f"Yes, {x} {be.lower()} {an}.", "Yes")]
    wrong = z[0] if be == "Are" else a(z[1])
    if x in z[2]:
        return belongs(r)
    return [turn(r, f"{be} {x} {wrong}", f"No, {x} {be.lower()} {an}.", "No")]


def odd_one(r):
    first, second = r.sample([row for row in LISTS if row[1] in "fruit animal colour country vehicle month".split()], 2)
    three, other = r.sample(first[2], 2), r.choice(second[2])
    names = three + [other]
    r.shuffle(names)
    return [turn(r, f"Which word does not (belong|fit): {', '.join(names)}", f"The word {other} does not fit. The others are {first[0]}.", other.split()[-1])]


def with_article(name, article):
    if article == "some":
        return name
    return f"the {name}" if article == "the" else a(name)


def thing(r):
    name, article, gloss, use, colour = r.choice(THINGS)
    x = with_article(name, article)
    verb = "is"
    kind = r.random()
    if kind < 0.4 and use not in ("-", "eat", "drink"):
        ask = f"(What is {x} (used |)for|What do (people|you|we) use {x} for|What can I do with {x}|What do I need {x} for|Why do people use {x})"
        return [turn(r, ask, f"{'You can use' if r.random() < .5 else 'People use'} {x} to {use}.")]
    if kind < 0.6 and colour != "-":
        ask = f"(What colou?r is {x}|Which colou?r is {x}|What is the colou?r of {x}|Tell me the colou?r of {x}|Which colou?r does {x} have)"
        short = colour if " " not in colour else colour.split(" or ")[0] if " or " in colour else ""
        return [turn(r, ask, f"{x} (is usually|is) {colour}." if colour != "many colours" else f"{x} can have many colours.", short)]
    who = "Who is" if gloss.startswith("a person") and r.random() < 0.3 else "What is"
    ask = f"({who} {x}|What's {x}|{who} {x}|Can you explain what {x} is|Tell me what {x} is|Explain {x}|Please explain what {x} is|Do you know what {x} is|What does the word {name} mean)"
    turns = [turn(r, ask, f"{x} {verb} {gloss}.")]
    if use not in ("-", "eat", "drink") and r.random() < 0.35:
        turns.append(turn(r, f"(What is it (used |)for|What can I do with it|Why do people use it|What do people do with it)", f"People use it to {use}."))
    return turns


def which_tool(r):
    name, article, gloss, use, colour = r.choice([t for t in THINGS if t[3] != "-" and t[1] in ("a", "an") and t[3] not in ("eat", "make salad", "make music", "stay dry", "keep warm")])
    x, mine = a(name), use.replace("yourself", "myself").replace("your", "my")
    return [turn(r, f"(What do I need to {mine}|What can I use to {mine}|What do I use to {mine}|What should I use to {mine})", f"You can use {x} to {use}.", name if " " not in name else name.split()[-1])]


def yes_no(r):
    ask, answer, reason = r.choice(YES_NO)
    turns = [turn(r, ask, f"{answer}, {reason}.", answer)]
    if r.random() < 0.35:
        short = upper_first(answer) + "."
        turns = [Turn(turns[0].user, short, short), turn(r, "(Why|Why is that|How come|And why|Can you explain why)", f"{upper_first(reason)}.")]
    return turns


def letters(r):
    word = r.choice(SPELLED)
    kind = r.randrange(4)
    if kind == 0:
        return [turn(r, f"(What is|What's|Tell me) the first letter of (the word |){word}", f"The first letter of {word} is {word[0].upper()}.", word[0])]
    if kind == 1:
        return [turn(r, f"(What is|What's|Tell me) the last letter of (the word |){word}", f"The last letter of {word} is {word[-1].upper()}.", word[-1].upper())]
    if kind == 2:
        return [turn(r, f"(How do you spell|Spell|Can you spell|Please spell|How is) (the word |){word}".replace("How is", "Spell out"), "-".join(word.upper()) + ".")]
    i, after = r.randrange(1, 25), r.random() < 0.6
    word = "after" if after else "before"
    other = LETTERS[i + (1 if after else -1)]
    return [turn(r, f"(Which|What) letter comes {word} {LETTERS[i]}", f"The letter {other} comes {word} {LETTERS[i]}.", other)]


SPELLED = ("cat dog house tree sun moon book ball fish bird milk water apple green blue red day night king ship star road "
           "hand door lamp rain snow leaf horse mouse bread cake table chair window school friend garden music happy").split()

# (skill, how often)
SKILLS = [(known_answer, 22), (how_to, 12), (animal, 9), (can_animal, 3), (comparison, 5), (opposite, 5), (synonym, 2), (rhyme, 2), (past, 2), (plural, 2),
          (capital, 5), (country, 4), (calendar, 5), (count, 3), (arithmetic, 5), (story_sum, 1.5), (number_fact, 4),
          (numbers_near, 1.5), (list_some, 7), (list_one, 3), (belongs, 2), (odd_one, 0.7), (thing, 9), (which_tool, 3),
          (yes_no, 7), (letters, 2.5)]


def fact(r):
    return r.choices([s for s, _ in SKILLS], [w for _, w in SKILLS])[0](r)
