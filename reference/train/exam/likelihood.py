"""Measures of texts under a model: pointwise mutual information, and bits per byte."""

import math
import re

import torch
import torch.nn.functional as F


@torch.no_grad()
def log_likelihoods(model, rows, batch=16):
    """For each row (ids, mask of the scored ids): the sum of the scored ids' log p."""
    sums = [0.0] * len(rows)
    order = sorted(range(len(rows)), key=lambda i: len(rows[i][0]))
    for b in range(0, len(order), batch):
        part = order[b:b + batch]
        width = max(len(rows[i][0]) for i in part)
        x = torch.zeros(len(part), width, dtype=torch.long)  # padding is last: no token attends to it
        scored = torch.zeros(len(part), width, dtype=torch.bool)
        for r, i in enumerate(part):
            ids, mask = rows[i]
            x[r, :len(ids)] = torch.tensor(ids)
            scored[r, :len(ids)] = torch.tensor(mask)
        at = scored[:, 1:]
        hidden = model.hidden(x[:, :-1])[at]
        logits = F.linear(hidden, model.model.embed_tokens.weight)
        nats = torch.zeros(at.shape)
        nats[at] = F.cross_entropy(logits, x[:, 1:][at], reduction="none")
        for i, total in zip(part, nats.double().sum(1).tolist()):
            sums[i] = -total
    return sums


def copied(question, answer, run=3):
    """Spans of the answer that repeat `run` words of the question, or all of it. A span extends to the next word,
    because the punctuation after a copied word is copied, too."""
    asked = [w.lower() for w in re.findall(r"\w+", question)]
    words = list(re.finditer(r"\w+", answer))
    run = min(run, len(asked))
    runs = {tuple(asked[i:i + run]) for i in range(len(asked) - run + 1)}
    spans = []
    for i in range(len(words) - run + 1):
        if tuple(w.group().lower() for w in words[i:i + run]) in runs:
            after = words[i + run].start() if i + run < len(words) else len(answer)
            spans.append((words[i].start(), after))
    return spans


def own_words(question, answer):
    """For each character of the answer: True if it is not copied from the question."""
    own = [True] * len(answer)
    for start, stop in copied(question, answer):
        own[start:stop] = [False] * (stop - start)
    return own


def mutual_information(teacher, pairs):
    """For each (question, answer, own): log p(answer | question) - log p(answer).

    Both are computed with the teacher in its chat template; log p(answer) follows a user's turn without text. The sum
    is over the answer's tokens without the end token; a token counts if its first character that is not a space is the
    answer's own.
    """
    rows = []
    for question, answer, own in pairs:
        tokens = teacher.tokenizer.encode(answer, add_special_tokens=False)
        mask = []
        for start, stop in tokens.offsets:
            text = answer[start:stop]
            first = start + len(text) - len(text.lstrip())
            mask.append(first < stop and own[first])
        for said in question, "":
            prompt = teacher.encode(teacher.prompt([{"role": "user", "content": said}]))
            rows.append((prompt + tokens.ids, [False] * len(prompt) + mask))
    # The same log p(answer) is needed several times, and computed once.
    unlike = {(tuple(ids), tuple(mask)): None for ids, mask in rows}
    sums = dict(zip(unlike, log_likelihoods(teacher.model, list(unlike))))
    sums = [sums[tuple(ids), tuple(mask)] for ids, mask in rows]
    return [a - b for a, b in zip(sums[::2], sums[1::2])]


def dialogue_rows(speaker, turns):
    """The rows of one dialogue, the user's turn first. The assistant's texts and their end tokens are scored. Text
    beyond the context becomes another dialogue."""
    rows = []
    while turns[1:]:
        messages, ids, mask, done = [], [], [], ""
        for k in range(0, len(turns) - 1, 2):
            messages.append({"role": "user", "content": turns[k]})
            prompt = speaker.prompt(messages)
            before = speaker.encode(prompt[len(done):])
            answer = speaker.encode(turns[k + 1] + speaker.end)
            if len(ids) + len(before) + len(answer) > speaker.model.c.context:
                break
            ids += before + answer
            mask += [False] * len(before) + [True] * len(answer)
            done = prompt + turns[k + 1] + speaker.end
            messages.append({"role": "assistant", "content": turns[k + 1]})
        assert messages[1:], f"longer than the context: {turns[:2]}"
        rows.append((ids, mask))
        turns = turns[len(messages) // 2 * 2:]
    return rows


def bits_per_byte(speaker, dialogues):
    """The bits of the assistant's turns, including their end tokens, divided by their bytes."""
    rows = [row for turns in dialogues for row in dialogue_rows(speaker, turns)]
    size = sum(len(text.encode()) for turns in dialogues for text in turns[1::2])
    return -sum(log_likelihoods(speaker.model, rows)) / math.log(2) / size
