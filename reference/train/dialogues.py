"""Makes the dialogues that models/chat learns from: one file of JSON lines per source, each line
{"system": text or null, "turns": [user, assistant, ...]}. The same seed gives the same files."""

import argparse
import json
import random
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "exam"))
import corpus
import glosses
import questions  # questions of the exam are left out
import rules_events
import rules_facts
import rules_memory
import rules_retold
import rules_talk
import rules_told
import stories
import written
from systems import NEUTRAL, STYLES, person
from wording import typed

# (function that makes a piece of a conversation, weight)
PIECES = [(rules_talk.small_talk, 36), (rules_facts.fact, 46), (rules_talk.itself, 15), (rules_talk.greeting, 3),
          (rules_talk.thanks, 2), (rules_talk.joke, 2), (rules_talk.riddle, 1.5), (rules_talk.politely, 3),
          (rules_talk.repeat, 2.5)]
LENGTHS = {1: 20, 2: 25, 3: 20, 4: 15, 5: 12, 6: 8, 12: 1, 20: 1, 30: 1}  # {number of pieces: weight}


def piece(r):
    return r.choices([p for p, _ in PIECES], [w for _, w in PIECES])[0](r)


def conversation(r, people):
    """Pieces one after the other; what the user tells is asked for some pieces later. `people`: data for
    rules_retold."""
    n = r.choices(list(LENGTHS), list(LENGTHS.values()))[0]
    parts = [piece(r) for _ in range(n)]
    if r.random() < 0.55:
        make = r.choices([rules_memory.memory, rules_told.told, rules_events.events,
                          lambda r: rules_retold.retold(r, people)], [2, 2, 4, 2])[0]
        tell, ask = make(r)
        at = 0 if r.random() < 0.5 else r.randrange(len(parts) + 1)
        gap = r.choice([0, 0, 0, 0, 1, 1, 2, 3, 4, n])
        parts.insert(at, tell)
        parts.insert(min(len(parts), at + 1 + gap), ask)
    elif r.random() < 0.06:
        at = r.randrange(len(parts) + 1)
        parts.insert(at, [rules_memory.never_told(r, r.choice(list(rules_memory.UNKNOWN)))])
    if r.random() < 0.25:
        parts.insert(0, rules_talk.greeting(r))
    if r.random() < 0.15:
        parts.append(rules_talk.thanks(r))
    if r.random() < 0.12:
        parts.append(rules_talk.goodbye(r))
    return [t for part in parts for t in part]


def some_style(r):
    return r.choices([style for style, _ in STYLES], [often for _, often in STYLES])[0]


def dialogue(r, people):
    """(system prompt or None, turns)"""
    x = r.random()
    if x < 0.70:
        system, turns = None, conversation(r, people)
    elif x < 0.82:
        system, turns = r.choice(NEUTRAL), conversation(r, people)
    elif x < 0.88:
        system, turns = person(r, conversation(r, people))
    else:
        system, turns = some_style(r)(r, conversation(r, people))
    return system, [typed(r, t, typos=not re.search(r"[0-9:]|name", t.user)) for t in turns]


def as_row(system, turns):
    flat = [text for t in turns for text in (t.user, t.answer)]
    return {"system": system, "turns": flat}


def from_rules(r, data, number):
    people = rules_retold.sentences(data)
    seen = set()
    while len(seen) < number:
        system, turns = dialogue(r, people)
        row = as_row(system, turns)
        key = json.dumps(row)
        if turns and key not in seen:
            seen.add(key)
            yield row


class Drawn:
    """Draws all members in random order, again and again."""

    def __init__(self, r, members):
        self.r, self.members, self.left = r, members, []

    def next(self):
        if not self.left:
            self.left = self.r.sample(self.members, len(self.members))
        return self.left.pop()


def spread(r, block, parts):
    """Inserts the parts of a block, in order: one after the other, or with other pieces between them."""
    at = 0
    for part in block:
        at = r.choice([at, at, r.randrange(at, len(parts) + 1)])
        parts.insert(at, part)
        at += 1


def from_written(r, number):
    """Conversations from written/, with some pieces made by rules. All blocks of a kind are used equally often."""
    blocks = written.read_all()
    prompts, told, asked = (Drawn(r, [b for b in blocks if b.kind == kind]) for kind in ("prompt", "told", "asked"))
    for _ in range(number):
        if r.random() < 0.06:
            system, parts = written.draw(r, prompts.next())
        else:
            system = r.choice(NEUTRAL) if r.random() < 0.12 else None
            n = r.choices([0, 1, 2, 3, 4, 5, 6], [6, 20, 25, 20, 14, 10, 5])[0]
            parts = [written.draw(r, asked.next())[1][0] if r.random() < 0.85 else piece(r) for _ in range(n)]
            if not parts or r.random() < 0.4:
                spread(r, written.draw(r, told.next())[1], parts)
            if r.random() < 0.15:
                parts.insert(0, rules_talk.greeting(r))
        turns = [t for part in parts for t in part]
        if not system and r.random() < 0.08:
            system, turns = some_style(r)(r, turns)
        yield as_row(system, [typed(r, t, typos=False) for t in turns])


def from_stories(r, number):
    for _ in range(number):
        turns = stories.story_turns(r)
        if r.random() < 0.3:
            turns = rules_talk.greeting(r)[:1] + turns
        if r.random() < 0.3:
            turns += rules_talk.thanks(r)
        elif r.random() < 0.3:
            turns += stories.story_turns(r)
        system = r.choice(NEUTRAL) if r.random() < 0.15 else None
        yield as_row(system, [typed(r, t, typos=False) for t in turns])


def from_glosses(r, data, wordnet, times):
    texts = corpus.stories(data)[0]
    texts += [t for turns in corpus.json_lines(data, "synthetic_persona_chat") for t in turns]
    rows = glosses.glosses(wordnet, texts)
    for _ in range(times):
        r.shuffle(rows)
        for i in range(0, len(rows), 3):
            yield as_row(None, [typed(r, glosses.gloss_turn(r, row), typos=False) for row in rows[i:i + 3]])


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("--data", default="../shared/data")
    a.add_argument("--wordnet", default="/usr/share/wordnet", help="folder with index.noun and data.noun")
    a.add_argument("--out", default="build/train/dialogues")
    a.add_argument("--rules", type=int, default=130000)
    a.add_argument("--written", type=int, default=60000)
    a.add_argument("--stories", type=int, default=12000)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--show", type=int, help="print so many random dialogues of each file instead")
    o = a.parse_args()
    out = Path(o.out)
    if o.show:
        return show(out, o.show, o.seed)
    out.mkdir(parents=True, exist_ok=True)
    r = random.Random(o.seed)
    sources = {"rules": from_rules(r, o.data, o.rules), "written": from_written(r, o.written),
               "stories": from_stories(r, o.stories), "glosses": from_glosses(r, o.data, o.wordnet, 6), **corpus.small_talk(o.data)}
    held_out = questions.asked()
    for name, rows in sources.items():
        rows = [row for row in rows if not any(questions.plain(text) in held_out for text in row["turns"][::2])]
        with (out / f"{name}.jsonl").open("w", encoding="utf-8") as f:
            f.writelines(json.dumps(row) + "\n" for row in rows)
        words = sum(len(t.split()) for row in rows for t in row["turns"])
        turns = sum(len(row["turns"]) for row in rows)
        print(f"{name}: {len(rows)} dialogues, {turns} turns, {words} words", flush=True)


def show(out, number, seed):
    r = random.Random(seed)
    for path in sorted(out.glob("*.jsonl")):
        print(f"\n##### {path.stem}")
        rows = path.read_text(encoding="utf-8").splitlines()
        for line in r.sample(rows, min(number, len(rows))):
            row = json.loads(line)
            print(f"--- {row['system'] or ''}")
            for i, text in enumerate(row["turns"]):
                print("   " if i % 2 else " > ", text, sep="")


if __name__ == "__main__":
    sys.exit(main())
