"""Small talk, advice, questions about the model itself, jokes, riddles: pieces read from facts/."""

from wording import Turn, lines, punctuated, spin, table, upper_first


class Block:
    """Wordings with the same answers, and the possible continuations."""

    def __init__(self, text):
        by_mark = {mark: [] for mark in "?!~>="}
        for line in text:
            by_mark[line[0]].append(line[2:])
        self.questions, self.answers = by_mark["?"], by_mark["!"]
        self.shorts, self.more, self.then = by_mark["~"], by_mark[">"], by_mark["="]
        assert self.questions and self.answers and len(self.more) == len(self.then), text

    def weight(self):
        """Blocks with more wordings are drawn more often."""
        return min(4, 1 + sum(q.count("|") for q in self.questions) / 12)

    def piece(self, r):
        slots = {}
        short = spin(r, r.choice(self.shorts), slots).strip("()") if self.shorts else ""
        question = r.choice(self.questions)
        user = punctuated(upper_first(spin(r, question, slots)))
        turns = [Turn(user, upper_first(spin(r, r.choice(self.answers), slots)), upper_first(short))]
        if self.more and r.random() < 0.6:
            i = r.randrange(len(self.more))
            turns.append(Turn(punctuated(spin(r, self.more[i], slots)), spin(r, self.then[i], slots)))
        return turns


def blocks(name):
    found, block = [], []
    text = lines(name)
    for i, line in enumerate(text):  # a question after a line of another kind begins a block
        if line[0] == "?" and block and block[-1][0] != "?":
            found.append(Block(block))
            block = []
        block.append(line)
    return found + [Block(block)]


def from_blocks(name):
    all_blocks = blocks(name)
    weights = [b.weight() for b in all_blocks]
    return lambda r: r.choices(all_blocks, weights)[0].piece(r)


small_talk = from_blocks("talk.txt")
itself = from_blocks("self.txt")
greeting = from_blocks("greet.txt")
goodbye = from_blocks("goodbye.txt")
thanks = from_blocks("thanks.txt")
JOKES, RIDDLES = lines("jokes.txt"), table("riddles.txt")


JOKE_ASKED = ["(Tell me|Can you tell me|Please tell me|Do you know|I want to hear|Say) "
              "(a|a|a good|a short|a funny) joke.",
              "(Make me laugh|Joke, please|Say something funny)."]


def joke(r):
    first, second = r.sample(JOKES, 2)
    turns = [Turn(punctuated(spin(r, r.choice(JOKE_ASKED))), first)]
    if r.random() < 0.4:
        again = "(Another one|Another one, please|One more|Tell me another one|Another joke|And another one)."
        turns.append(Turn(spin(r, again), second))
    return turns


def riddle(r):
    question, answer = r.choice(RIDDLES)
    ask = "(Tell me|Give me|Can you tell me|Do you know|Ask me|I want) a riddle."
    turns = [Turn(punctuated(spin(r, ask)), question)]
    if r.random() < 0.5:
        guess = spin(r, f"(Is it |Maybe |I think it is |){answer}")
        turns.append(Turn(punctuated(upper_first(guess)), f"Yes, that is right! It is {answer}.", "Yes."))
    else:
        give_up = "(I do not know|I give up|What is it|Tell me the answer|No idea)."
        turns.append(Turn(punctuated(spin(r, give_up)), f"The answer is {answer}.", upper_first(answer) + "."))
    return turns


FRAMES = [("Give me $x", "Could you please give me $x?"), ("Give me $x", "May I have $x, please?"),
          ("I want $x", "I would like $x, please."), ("Bring me $x", "Could you please bring me $x?"),
          ("Where is $x?", "Excuse me, could you please tell me where $x is?")]
WANTED = ["the salt", "a glass of water", "the book", "a pen", "your phone", "the menu", "the key",
          "some bread", "a cup of tea", "the newspaper", "my coat", "the bill", "a chair", "the map"]
DEEDS = ["open the window", "close the door", "help me", "call me back", "wait here", "be quiet",
         "turn off the music", "move your car", "clean the table", "send me the file", "answer my email",
         "come here", "speak louder", "write your name", "show me the way", "sit down", "stop the noise"]


def politely(r):
    ask = spin(r, "(Say it politely|Make this polite|Say this politely|Rewrite this politely|Make it more polite|"
                  "How can I say this politely|Can you make this sentence polite|Please write this politely|"
                  "Turn this into a polite sentence|Say this in a nicer way)")
    if r.random() < 0.5:
        deed = r.choice(DEEDS)
        rude, polite = upper_first(deed) + r.choice(".!"), f"Could you please {deed}?"
    else:
        wanted, frame = r.choice(WANTED), r.choice(FRAMES)
        rude, polite = (text.replace("$x", wanted) for text in frame)
        rude += "" if rude.endswith("?") else r.choice(".!")
    quote = r.choice(["", '"'])
    return [Turn(f"{ask}: {quote}{rude}{quote}", polite)]


SAID = ["the sun is warm", "I like cheese", "my dog is small", "we are happy", "good morning", "the cat sleeps",
        "blue flowers", "hello world", "one two three", "tea is ready", "I can do it", "the train is late",
        "red apple", "practice makes perfect", "it is a nice day", "books are great", "the moon is bright",
        "green tea", "we won the game", "big blue sea", "my name is Bond", "no problem", "thank you"]
WORDS = ["apple", "river", "sunshine", "window", "banana", "music", "winter", "pencil", "mountain", "tiger",
         "potato", "yellow", "garden", "freedom", "orange", "castle", "lemon", "friend", "rocket", "bottle"]


def repeat(r):
    said = r.choice([r.choice(SAID), r.choice(WORDS), " ".join(r.sample(WORDS, r.choice([2, 3])))])
    ask = spin(r, "(Repeat after me|Say|Please say|Repeat this|Please repeat|Write|Repeat|Can you say|Say the words)")
    quote = r.choice(["", '"'])
    colon = ":" if not quote or r.random() < 0.5 else ""
    return [Turn(f"{ask}{colon} {quote}{said}{quote}" + r.choice(["", "."]),
                 upper_first(said) + ".", "" if " " in said else upper_first(said) + ".")]
