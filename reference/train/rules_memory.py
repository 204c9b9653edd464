"""Things that the user tells and asks for later: other pieces may stand between."""

from wording import Turn, joined, punctuated, spin, upper_first, a

NAMES = ("Anna Tom Maria Ben Lucy Peter Sarah Max Emma Jack Lily Paul Nina David Julia Mark Sophie Leo Clara Sam "
         "Mia Oliver Laura Daniel Ella James Alice Robert Kate Simon Eva Martin Grace Adam Rosa Felix Helen Oscar "
         "Ruth Victor Ivy Henry Nora George Zoe Alex Tina Omar Amir Wei Yuki Carlos Priya Fatima Ivan Olga Pablo "
         "Hannah Jonas Lea Finn Marta Chen Ali Sven Ines Bruno Vera Hugo Jane John Mary Steve Linda Emily").split()
PETS = ("Rex Bella Luna Max Milo Coco Spot Fluffy Lucky Daisy Buddy Simba Molly Felix Rocky Snowy Tiger Ginger "
        "Oscar Pepper Bruno Kitty Shadow Toby Sunny Biscuit").split()
COLOURS = "red blue green yellow purple orange black white pink brown grey".split()
CITIES = ("Paris London Berlin Rome Madrid Vienna Tokyo Lisbon Dublin Oslo Boston Chicago Beijing Delhi Cairo Prague "
          "Munich Toronto Sydney Athens Warsaw Milan Lyon Leeds Geneva Shanghai Mumbai Nairobi Denver Seattle").split()
HOBBIES = ("painting, reading, swimming, cooking, hiking, dancing, gardening, fishing, singing, cycling, running, chess, "
           "drawing, baking, knitting, tennis, football, yoga, skiing, camping").split(", ")
FOODS = "pizza, pasta, soup, rice, chocolate, cheese, ice cream, fish, chicken, pancakes, apples, cake, curry, sushi, salad".split(", ")
ANIMALS = "dog, cat, horse, rabbit, elephant, lion, dolphin, penguin, tiger, fox, owl, panda".split(", ")
JOBS = "teacher, nurse, cook, farmer, driver, gardener, doctor, writer, musician, baker, pilot, student, painter".split(", ")
OBJECTS = "key, book, phone, ball, letter, ring, cup, hat, bag, coin, pen, apple, map, umbrella".split(", ")
PLACES = ("under the bed, on the table, in the kitchen, in the drawer, behind the door, in the garden, in my bag, "
          "on the shelf, in the box, next to the lamp, under the chair, in the car, on the sofa, in the fridge").split(", ")
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()

# What the user tells: wordings, replies, wordings of the question, answer, answer in one word.
# X is the value. "Your" in the answers is the user's.
THINGS = {
    "name": (NAMES, "(My name is X|I am X|I'm X|Hi, I am X|Hello, my name is X|Call me X|You can call me X|People call me X|"
             "Hi! I'm X|My name's X|Hello! My name is X)",
             "(Nice to meet you, X!|Hello, X! Nice to meet you.|Hello, X! How can I help you?)",
             "(What is my name|What's my name|Do you know my name|Do you remember my name|Who am I|Can you tell me my name|"
             "What did I say my name was|Tell me my name|How am I called|What am I called)",
             "Your name is X.", "X."),
    "colour": (COLOURS, "(My favou?rite colou?r is X|I like the colou?r X best|The colou?r I like best is X|X is my favou?rite colou?r)",
               "(X is a pretty colour!|X is a nice choice.)",
               "(What is|What's|Do you know|Do you remember|Tell me|Can you tell me) my favou?rite colou?r",
               "Your favourite colour is X.", "X."),
    "dog": (PETS, "(My dog is called X|I have a dog named X|My dog's name is X|I have a dog. His name is X|The name of my dog is X|I have a dog called X)",
            "(X is a good name for a dog!|How nice! I hope that X is well.)",
            "(What is my dog's name|What is the name of my dog|What is my dog called|Do you remember my dog's name|How is my dog called|Who is my dog)",
            "Your dog is called X.", "X."),
    "cat": (PETS, "(My cat is called X|I have a cat named X|My cat's name is X|I have a cat. Her name is X|The name of my cat is X|I have a cat called X)",
            "(X is a good name for a cat!|How nice! I hope that X is well.)",
            "(What is my cat's name|What is the name of my cat|What is my cat called|Do you remember my cat's name|How is my cat called)",
            "Your cat is called X.", "X."),
    "city": (CITIES, "(I live in X|I am from X|My home is in X|I live in the city of X|I come from X|My city is X)",
             "(X is an interesting city! Do you like it?|How nice! X is a great city.)",
             "(Where do I live|Which city do I live in|Where am I from|What city am I from|Do you remember where I live|Do you know where I am from|Where is my home)",
             "You live in X.", "X."),
    "hobby": (HOBBIES, "(My hobby is X|My favou?rite hobby is X|I love X|In my free time I do X|I like X a lot)",
              "(X is a great hobby!|X sounds like fun!)",
              "(What is my hobby|What's my hobby|Do you remember my hobby|What do I do in my free time|Do you know my hobby|What do I like to do)",
              "Your hobby is X.", "X."),
    "food": (FOODS, "(My favou?rite food is X|The food I like best is X|I like X more than any other food|Of all foods I like X best)",
             "(Many people like X.|Good choice! Many people like X.)",
             "(What is|What's|Do you know|Do you remember|Tell me) my favou?rite food",
             "Your favourite food is X.", "X."),
    "animal": (ANIMALS, "(My favou?rite animal is the X|The animal I like best is the X|I like the X more than all other animals)",
               "The X is a wonderful animal!",
               "(What is|What's|Do you know|Do you remember|Tell me) my favou?rite animal",
               "Your favourite animal is the X.", "X."),
    "job": (JOBS, "(I am aX|I work as aX|My job is to be aX|I'm aX)",
            "That is an interesting job! Do you like it?",
            "(What is my job|What's my job|What do I do for a living|Do you remember my job|What is my work|What do I work as)",
            "You are aX.", "X."),
    "number": ([str(n) for n in range(2, 60)], "(My favou?rite number is X|My lucky number is X|Remember the number X|Please remember the number X|"
               "Keep the number X in mind|The secret number is X)",
               "(All right, I will remember the number X.|Okay, the number is X.)",
               "(What is|What was|What's|Do you remember|Tell me|Can you tell me) (the number|my number)",
               "The number is X.", "X."),
    "age": ([str(n) for n in range(6, 80)], "(I am X years old|I'm X years old|My age is X|I am X)",
            "(Thank you for telling me!|Good to know!)",
            "(How old am I|What is my age|Do you remember my age|Do you know how old I am|Tell me my age)",
            "You are X years old.", "X."),
    "word": ("apple river sunshine window banana music winter pencil mountain tiger castle lemon rocket bottle candle".split(),
             "(The secret word is X|The password is X|Remember the word X|Please remember this word: X|My word is X|Keep the word X in mind)",
             "(All right, I will remember the word X.|Okay, the word is X.)",
             "(What is|What was|What's|Do you remember|Tell me|Can you tell me) (the word|the secret word|my word)",
             "The word is X.", "X."),
    "sister": (NAMES, "(My sister is called X|I have a sister named X|My sister's name is X|I have a sister. Her name is X)",
               "(X is a nice name!|How nice! Do you see X often?)",
               "(What is my sister's name|What is the name of my sister|What is my sister called|Do you remember my sister's name)",
               "Your sister is called X.", "X."),
    "brother": (NAMES, "(My brother is called X|I have a brother named X|My brother's name is X|I have a brother. His name is X)",
                "(X is a nice name!|How nice! Do you see X often?)",
                "(What is my brother's name|What is the name of my brother|What is my brother called|Do you remember my brother's name)",
                "Your brother is called X.", "X."),
    "friend": (NAMES, "(My best friend is X|My friend is called X|My best friend is called X|I have a friend named X)",
               "(X is lucky to have a friend like you!|How nice! Do you see X often?)",
               "(What is my friend's name|What is the name of my friend|Who is my friend|Who is my best friend|Do you remember my friend's name)",
               "Your friend is called X.", "X."),
    "birthday": ("January February March April May June July August September October November December".split(),
                 "(My birthday is in X|I was born in X|I have my birthday in X)",
                 "(X is a good month for a birthday!|Good to know!)",
                 "(When is my birthday|In which month is my birthday|When was I born|Do you remember my birthday)",
                 "Your birthday is in X.", "X."),
    "trip": (CITIES, "(I will travel to X|I am going to X next week|Tomorrow I will fly to X|I am planning a trip to X|My next trip is to X)",
             "(Have a good trip to X!|X sounds great! Have a nice time.)",
             "(Where am I going|Where will I travel|What city will I travel to|Do you remember where I am going|Where is my trip)",
             "You are going to X.", "X."),
    "meeting": (DAYS, "(My exam is on X|My test is on X|I have an exam on X|I have a test on X)",
                "(Good luck on X!|I hope that it goes well on X.)",
                "(When is my exam|On which day is my exam|When is my test|Do you remember the day of my test|What day is my test)",
                "It is on X.", "X."),
}


def fill(r, text, value):
    return spin(r, text).replace("aX", a(value)).replace("X", value)


def told(r, kind, value):
    _, tell, reply, *_ = THINGS[kind]
    user = upper_first(fill(r, tell, value))
    return Turn(punctuated(user), upper_first(fill(r, reply, value)), "Okay.")


def asked(r, kind, value):
    *_, ask, answer, short = THINGS[kind]
    return Turn(punctuated(spin(r, ask)), fill(r, answer, value), upper_first(fill(r, short, value)))


UNKNOWN = {"name": "your name", "colour": "your favourite colour", "city": "where you live", "hobby": "your hobby",
           "food": "your favourite food", "animal": "your favourite animal", "job": "your job", "age": "your age",
           "dog": "the name of your dog", "cat": "the name of your cat", "number": "a number", "word": "a word",
           "sister": "the name of your sister", "brother": "the name of your brother", "trip": "where you are going",
           "friend": "the name of your friend", "birthday": "when your birthday is"}


def never_told(r, kind):
    *_, ask, _, _ = THINGS[kind]
    return Turn(punctuated(spin(r, ask)), f"You have not told me {UNKNOWN[kind]} yet.", "Unknown.")


def corrected(r, kind, old):
    value = r.choice([v for v in THINGS[kind][0] if v != old])
    label = {"name": "name", "colour": "favourite colour", "food": "favourite food", "hobby": "hobby"}[kind]
    user = spin(r, f"(No, my {label} is {value}|Sorry, I meant {value}|That was wrong, my {label} is {value}|No, it is {value}|"
                   f"Actually, my {label} is {value}|I made a mistake. My {label} is {value})")
    return value, Turn(user + ".", f"Thank you for telling me. Your {label} is {value}.", "Okay.")


def one_thing(r, kind=None):
    """(turns that tell, turns that ask)"""
    kind = kind or r.choice(["name"] * 5 + list(THINGS))
    value = r.choice(THINGS[kind][0])
    tell = [told(r, kind, value)]
    if kind in ("name", "colour", "food", "hobby") and r.random() < 0.12:
        value, turn = corrected(r, kind, value)
        tell.append(turn)
    return tell, [asked(r, kind, value)]


def two_things(r):
    kinds = r.sample(list(THINGS), 2)
    if set(kinds) & {"hobby", "job"} and "name" in kinds:
        kinds = ["dog", "colour"]
    values = [r.choice(THINGS[k][0]) for k in kinds]
    if values[0] == values[1]:
        return one_thing(r)
    ask = [asked(r, k, v) for k, v in zip(kinds, values)]
    if r.random() < 0.5:
        ask.reverse()
    return [told(r, k, v) for k, v in zip(kinds, values)], ask[:r.choice([1, 2])]


def an_object(r):
    thing, place = r.choice(OBJECTS), r.choice(PLACES)
    who, whom, verb, past = r.choice([("I", "you", "put", "put"), ("I", "you", "left", "leave")] +
                                     [(n, n, "put", "put") for n in r.sample(NAMES, 2)])
    article = "my" if who == "I" and r.random() < 0.5 else "the"
    back = "your" if article == "my" else "the"
    tell = Turn(f"{who} {verb} {article} {thing} {place}.", f"All right, {back} {thing} is {place.replace('my', 'your')}.", "Okay.")
    ask = spin(r, f"(Where is {article} {thing}|Where's {article} {thing}|Do you know where {article} {thing} is|"
                  f"Can you tell me where {article} {thing} is|Where did {who} {past} {article} {thing})?")
    return [tell], [Turn(ask, f"{upper_first(back)} {thing} is {place.replace('my', 'your')}.")]


BUYABLE = "milk, bread, eggs, apples, cheese, tea, rice, soap, tomatoes, butter, coffee, bananas".split(", ")


def shopping(r):
    items = r.sample(BUYABLE, r.choice([2, 3]))
    tell = spin(r, "(I need to buy|I have to buy|My shopping list is|I want to buy|Please remember my shopping list:)")
    ask = "(What do I need to buy|What is on my shopping list|What do I have to buy|What did I want to buy|Tell me my shopping list)"
    return ([Turn(f"{tell} {joined(items)}.", "All right, I will remember that for this chat.", "Okay.")],
            [Turn(punctuated(spin(r, ask)), f"You want to buy {joined(items)}.")])


def memory(r):
    """(turns that tell, turns that ask later)"""
    make = r.choices([one_thing, two_things, an_object, shopping], [6, 2, 2, 1])[0]
    return make(r)
