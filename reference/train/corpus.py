"""The text we train from, read from the data folder (an argument everywhere, never a constant)."""

import json
import lzma
import re
from pathlib import Path

HELD_OUT = 500  # the last stories of tinystories.txt: never trained on, never shown to a teacher


def stories(data):
    """(training stories, held-out stories) of TinyStories, stripped."""
    text = lzma.open(Path(data) / "text/tinystories.txt.xz", "rt", encoding="utf-8").read()
    parts = [s.strip() for s in text.split("<|endoftext|>")]
    parts = [s for s in parts if s]
    return parts[:-HELD_OUT], parts[-HELD_OUT:]


def json_lines(data, name):
    with lzma.open(Path(data) / f"text/{name}.jsonl.xz", "rt", encoding="utf-8") as f:
        return [json.loads(line)["turns"] for line in f]


def tidy(turn):
    """The people who typed these chats were in a hurry: a capital first, "I", single spaces."""
    turn = " ".join(turn.split())
    turn = re.sub(r"\bi(?=$|[ ,.!?]|'(m|ve|ll|d|s)\b)", "I", turn)
    return turn[:1].upper() + turn[1:]


def filled_in(turns):
    """The longest run of turns without a template left open, as in "Hi, I'm [user 2's name]"."""
    runs = [[]]
    for turn in turns:
        runs += [[]] if "[" in turn else []
        if "[" not in turn:
            runs[-1].append(turn)
    return max(runs, key=len)


def chatterbot(data):
    """Question and answer pairs, without the programs and the long lectures among them."""
    import yaml
    unwanted = {"coding", "tech support", "gossip", "politics"}
    with lzma.open(Path(data) / "text/chatterbot-english.yml.xz", "rt", encoding="utf-8") as f:
        for document in re.split(r"^(?=categories:)", f.read(), flags=re.M):
            document = yaml.safe_load(document)
            if not document or unwanted & set(document.get("categories", [])):
                continue
            for turns in document["conversations"]:
                turns = [str(t).strip() for t in turns]
                for answer in turns[1:]:  # each a possible one to the first line
                    if all(0 < len(t) <= 240 and "\n" not in t for t in (turns[0], answer)):
                        yield [turns[0], answer]


def dialogues(data, held_out=100):
    """({source: dialogues to train on}, dialogues held out); a dialogue is a list of turns, the
    user's first. Where both sides are people, the second one's opening works as well: it is
    the same dialogue from its second turn on (see train_chat.py)."""
    sources, rest = {}, []
    for name in ("self_dialogue", "synthetic_persona_chat", "taskmaster4"):
        all_turns = [[tidy(t) for t in turns if t.strip()] for turns in json_lines(data, name)]
        all_turns = [t for t in map(filled_in, all_turns) if len(t) >= 2]
        sources[name] = all_turns[:-held_out]
        rest += all_turns[-held_out:]
    sources["chatterbot"] = [[tidy(t) for t in turns] for turns in chatterbot(data)]
    return sources, rest
