"""The exam of models/chat: prints a table and writes every question, answer and verdict.

    python reference/train/exam/exam.py models/chat echo --teacher FOLDER

Answers are greedy, at most 80 tokens. The columns:

own topic    of the 200 everyday questions: the teacher's pointwise mutual information
             (likelihood.py) is largest for the model's answer to this question, among four: the
             other three are the model's answers to other questions on the same topic, drawn with
             a fixed seed. What an answer copies from its own question is not scored. An answer
             that equals one of the other three, or is copied whole, counts as not picked.
checkable    of the 100 questions with an answer that a pattern can check (questions.py)
two turns    of the 50 dialogues in which the user says something and then asks; the first answer
             is the model's own
one word     the median length of 20 answers in words, under a system prompt that asks for one
             word; an empty answer counts as 80
bits/byte    of the assistant's turns in the held-out dialogues (the last 100 of
             Synthetic-Persona-Chat and of Taskmaster-4), with what comes before as context
ends         of 100 answers, those to every second everyday question: end within the 80 tokens
repeats      of the same 100: four words in a row occur three times, or a sentence of three words
             or more occurs twice

The answers to 30 openings go to a table of their own, for a reader to mark.
"""

import argparse
import collections
import json
import random
import re
import statistics
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import corpus  # noqa: E402
import likelihood  # noqa: E402
import questions  # noqa: E402
import speakers  # noqa: E402

COLUMNS = ["own topic", "checkable", "two turns", "one word", "bits/byte", "ends", "repeats"]
GOALS = ["140 of 200", "75 of 100", "38 of 50", "3 words", "", "100 of 100", "2 of 100"]
MAX_TOKENS = 80


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def system(text):
    return {"role": "system", "content": text}


def repeats(answer):
    words = re.findall(r"\w+", answer.lower())
    fours = collections.Counter(zip(words, words[1:], words[2:], words[3:]))
    said = collections.Counter(tuple(re.findall(r"\w+", s.lower()))
                               for s in questions.sentences(answer))
    return (max(fours.values(), default=0) >= 3
            or any(n >= 2 and len(sentence) >= 3 for sentence, n in said.items()))


def everyday(speaker):
    """[{topic, ask, answer, ends, repeats}]"""
    asked = [(topic, q) for topic, group in questions.topics().items() for q in group]
    answers = speaker.answer_all([[user(q)] for _, q in asked], MAX_TOKENS)
    return [{"topic": topic, "ask": q, "answer": answer, "ends": ended, "repeats": repeats(answer)}
            for (topic, q), (answer, ended) in zip(asked, answers)]


def pick(teacher, entries, seed=20):
    """Adds to each entry which of four answers the teacher picks, and whether it is the model's answer to this
    question."""
    draw = random.Random(seed)
    for e in entries:
        own = likelihood.own_words(e["ask"], e["answer"])
        e["own"] = "".join(c for c, mine in zip(e["answer"], own) if mine).strip()
        e["mask"] = own
    quartets = []
    for e in entries:
        others = [x for x in entries if x["topic"] == e["topic"] and x is not e]
        quartets.append([e] + draw.sample(others, 3))
    pairs = [(e["ask"], x["answer"], x["mask"])
             for e, four in zip(entries, quartets) for x in four]
    scores = likelihood.mutual_information(teacher, pairs)
    for i, (e, four) in enumerate(zip(entries, quartets)):
        mine, *others = scores[4 * i:4 * i + 4]
        same = e["own"] == "" or e["own"] in [x["own"] for x in four[1:]]
        e["others"] = [x["answer"] for x in four[1:]]
        e["scores"] = [round(s, 2) for s in [mine] + others]
        e["picked"] = mine > max(others) and not same
    for e in entries:
        del e["mask"], e["own"]


def checkable(speaker):
    asked = questions.read("checkable")
    answers = speaker.answer_all([[user(q["ask"])] for q in asked], MAX_TOKENS)
    return [{**q, "answer": answer, "correct": questions.is_right(q, answer)}
            for q, (answer, _) in zip(asked, answers)]


def two_turns(speaker):
    asked = questions.read("two_turn")
    first = speaker.answer_all([[user(q["tell"])] for q in asked], MAX_TOKENS)
    talks = [[user(q["tell"]), assistant(reply), user(q["ask"])]
             for q, (reply, _) in zip(asked, first)]
    answers = speaker.answer_all(talks, MAX_TOKENS)
    return [{**q, "reply": reply, "answer": answer, "correct": questions.is_right(q, answer)}
            for q, (reply, _), (answer, _) in zip(asked, first, answers)]


def one_word(speaker):
    asked = questions.read("one_word")
    talks = [[system(q["system"]), user(q["ask"])] for q in asked]
    return [{**q, "answer": answer, "words": len(answer.split()) or MAX_TOKENS}
            for q, (answer, _) in zip(asked, speaker.answer_all(talks, MAX_TOKENS))]


def held_out(data, count=corpus.HELD_OUT_TALKS):
    """The dialogues that corpus.persona() and corpus.taskmaster() leave out."""
    found = []
    for name in "synthetic_persona_chat", "taskmaster4":
        talks = [[corpus.tidy(t) for t in turns if t.strip()]
                 for turns in corpus.json_lines(data, name)]
        talks = [t for t in map(corpus.filled_in, talks) if len(t) >= 2]
        found += talks[-count:]
    return found


def card(speaker):
    """The openings and their answers, in Markdown."""
    asked = questions.openings()
    lines = ["| opening | answer at temperature 0 | sensible? |", "|---|---|---|"]
    for q, (answer, _) in zip(asked, speaker.answer_all([[user(q)] for q in asked], MAX_TOKENS)):
        cell = answer.replace("|", "\\|").replace("\n", " ")
        lines.append(f"| {q} | {cell} | |")
    return "\n".join(lines) + "\n"


def count(entries, verdict):
    return f"{sum(e[verdict] for e in entries)} of {len(entries)}"


def sit(name, teacher, data, out):
    """Runs all parts for one model, and gives its row of the table."""
    speaker = speakers.open_speaker(name)
    parts = {"everyday": everyday(speaker), "checkable": checkable(speaker),
             "two_turns": two_turns(speaker), "one_word": one_word(speaker)}
    if teacher:
        pick(teacher, parts["everyday"])
    label = name.strip("/").replace("/", "-")
    with open(out / f"{label}.jsonl", "w") as f:
        for part, entries in parts.items():
            for e in entries:
                f.write(json.dumps({"part": part, **e}, ensure_ascii=False) + "\n")
    (out / f"{label}-openings.md").write_text(card(speaker))
    half = parts["everyday"][::2]
    words = statistics.median(e["words"] for e in parts["one_word"])
    echo = isinstance(speaker, speakers.Echo)
    return [count(parts["everyday"], "picked") if teacher else "-",
            count(parts["checkable"], "correct"), count(parts["two_turns"], "correct"),
            f"{words:g} words",
            "-" if echo else f"{likelihood.bits_per_byte(speaker, held_out(data)):.3f}",
            count(half, "ends"), count(half, "repeats")]


def main():
    a = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("models", nargs="+", help="folders, or the word echo")
    a.add_argument("--teacher", help="SmolLM2's folder: without it, no column 'own topic'")
    a.add_argument("--data", default="../shared/data")
    a.add_argument("--out", default="build/train/exam", help="where the answers go")
    a.add_argument("--threads", type=int, default=1)
    o = a.parse_args()
    torch.set_num_threads(o.threads)
    out = Path(o.out)
    out.mkdir(parents=True, exist_ok=True)
    teacher = speakers.ChatModel(o.teacher) if o.teacher else None
    print("| model | " + " | ".join(COLUMNS) + " |\n" + "|---" * (len(COLUMNS) + 1) + "|")
    print("| asked for | " + " | ".join(GOALS) + " |", flush=True)
    for name in o.models:
        start = time.time()
        print(f"| {name} | " + " | ".join(sit(name, teacher, o.data, out)) + " |", flush=True)
        print(f"{name}: {time.time() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
