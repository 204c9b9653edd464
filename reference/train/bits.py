"""Bits per byte, measured in the same way for every model: see score.py."""

import math

import torch
import torch.nn.functional as F


def cut(text, limit=1200):
    """The first `limit` bytes of the text's UTF-8, without a cut character at the end."""
    return text.encode()[:limit].decode("utf-8", "ignore")


@torch.no_grad()
def bits_per_byte(model, encode, start, texts, batch=16):
    """The sum of the nats of all tokens of the cut texts / ln 2 / the bytes of the cut texts. The first token follows
    the start token alone. A text longer than the model's context is scored in several windows: each later window starts
    with the start token and half a window of text that is already scored."""
    rows, size = [], 0
    for text in texts:
        text = cut(text)
        size += len(text.encode())
        ids, at = encode(text), 0
        room = model.c.context - 1
        while at < len(ids):
            begin = 0 if at == 0 else at - room // 2
            window = ids[begin:begin + room]
            rows.append(([start] + window, at - begin))
            at = begin + len(window)
    rows.sort(key=lambda r: len(r[0]))
    nats = 0.0
    for b in range(0, len(rows), batch):
        part = rows[b:b + batch]
        width = max(len(ids) for ids, _ in part)
        x = torch.zeros(len(part), width, dtype=torch.long)
        count = torch.zeros(len(part), width)
        for r, (ids, old) in enumerate(part):
            x[r, :len(ids)] = torch.tensor(ids)
            count[r, 1 + old:len(ids)] = 1
        logits = model(x[:, :-1]).float()
        loss = F.cross_entropy(logits.flatten(0, 1), x[:, 1:].flatten(), reduction="none")
        nats += (loss * count[:, 1:].flatten()).double().sum().item()
    return nats / math.log(2) / size
