"""Dialogues written by hand, in written/*.txt. A block is one dialogue; a blank line ends it:

    = a system prompt, if there is one
    $gift: kite, clock, puzzle          a list of this block: one member is drawn for the whole block
    > (I bought|I got) a $gift for my $kin.
    How kind of you! I am sure that your $kin will like it.
    ...                                 other pieces of a conversation may stand here
    > (What did I buy|What do I have) for my $kin?
    You bought a $gift.
    ~ $gift                             the answer in one word, if there is one

`python reference/train/written.py FILE...` checks files and prints some of their dialogues.
"""

import random
import re
import sys
from pathlib import Path
from typing import NamedTuple

from rules_told import coined
from wording import SLOTS, Turn, punctuated, spin, upper_first

FOLDER = Path(__file__).resolve().parent / "written"


class Block(NamedTuple):
    system: str
    slots: dict
    parts: list  # lists of Turn; other pieces may come between them

    @property
    def kind(self):
        return "prompt" if self.system else "told" if self.parts[1:] else "asked"


class Mistake(ValueError):
    pass


def read_block(where, lines):
    system, slots, parts = "", {}, [[]]
    for line in lines:
        found = re.match(r"\$(\w+): (.+)", line)
        last = parts[-1][-1] if parts[-1] else None
        if line.startswith("= "):
            system = line[2:]
        elif found:
            slots[found[1]] = found[2].split(", ")
        elif line == "...":
            parts.append([])
        elif line.startswith("> "):
            parts[-1].append(Turn(line[2:], ""))
        elif last is None:
            raise Mistake(f"{where}: an answer before a question: {line}")
        elif line.startswith("~ "):
            parts[-1][-1] = last._replace(short=line[2:])
        elif last.answer:
            raise Mistake(f"{where}: two answers in a row: {line}")
        else:
            parts[-1][-1] = last._replace(answer=line)
    if not all(parts) or not all(t.answer for part in parts for t in part):
        raise Mistake(f"{where}: each part is pairs of a question and an answer")
    for text in [system, *(t for part in parts for turn in part for t in turn)]:
        if text.count("(") != text.count(")"):
            raise Mistake(f"{where}: brackets do not match: {text}")
        for name in re.findall(r"\$([A-Za-z]+)", text):
            if name.lower() not in KNOWN and name.lower() not in slots:
                raise Mistake(f"{where}: ${name} is neither a list of this block nor of slots.txt")
    return Block(system, slots, parts)


KNOWN = set(SLOTS) | set(coined(random.Random(1)))


def read(path):
    blocks, lines, first = [], [], 1
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n") + [""], 1):
        line = line.strip()
        if line and not line.startswith("# "):
            first = first if lines else number
            lines.append(line)
        elif not line and lines:
            blocks.append(read_block(f"{path.name}:{first}", lines))
            lines = []
    return blocks


def read_all():
    return [block for path in sorted(FOLDER.glob("*.txt")) for block in read(path)]


def draw(r, block):
    """(system prompt or None, [[Turn]]): the block with one choice of everything"""
    chosen = coined(r) | {name: r.choice(members) for name, members in block.slots.items()}

    def fill(text):
        return spin(r, text, chosen)

    def said(text):
        text = upper_first(fill(text))
        return text if text[-1] in ".?!" else punctuated(text)

    parts = [[Turn(said(t.user), upper_first(fill(t.answer)), upper_first(fill(t.short))) for t in part]
             for part in block.parts]
    return fill(block.system) or None, parts


def main():
    r = random.Random()
    for name in sys.argv[1:]:
        blocks = read(Path(name))
        turns = sum(len(part) for b in blocks for part in b.parts)
        print(f"{name}: {len(blocks)} blocks, {turns} turns, {Path(name).stat().st_size / 1000:.0f} KB")
        for block in r.sample(blocks, min(4, len(blocks))):
            system, parts = draw(r, block)
            print("---", system or "")
            for k, part in enumerate(parts):
                if k:
                    print("   ...")
                for t in part:
                    print(f" > {t.user}\n   {t.answer}" + (f" [{t.short}]" if t.short else ""))


if __name__ == "__main__":
    try:
        main()
    except Mistake as mistake:
        sys.exit(str(mistake))
