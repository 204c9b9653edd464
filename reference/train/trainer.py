"""One training loop for both models: Muon; a learning rate that warms up, holds, and decays to zero; bf16 products with
f32 weights; a moving average of the weights, to test the model before the decay.

A step takes some whole examples, sorts them by length and cuts them into micro-batches with little padding. So each
example has its own row, starts at position 0, and attends to no other example.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from llama import Linear
from muon import Optimizer


class Examples:
    """Sequences of ids, each with a loss weight for predicting that id, in two flat arrays."""

    def __init__(self, pairs):
        self.ids = np.concatenate([np.asarray(i, np.uint16) for i, _ in pairs])
        self.weights = np.concatenate([np.asarray(w, np.float32) for _, w in pairs])
        self.ends = np.cumsum([len(i) for i, _ in pairs])

    def __len__(self):
        return len(self.ends)

    def __getitem__(self, i):
        a, b = (self.ends[i - 1] if i else 0), self.ends[i]
        return self.ids[a:b], self.weights[a:b]


class Shuffled:
    """Draws examples in an order that depends only on the seed and the epoch."""

    def __init__(self, examples, seed):
        self.examples, self.seed, self.at = examples, seed, 0
        self.epoch = -1

    def next(self):
        epoch, i = divmod(self.at, len(self.examples))
        if epoch != self.epoch:
            self.epoch = epoch
            self.order = np.random.default_rng([self.seed, epoch]).permutation(len(self.examples))
        self.at += 1
        return self.examples[self.order[i]]


class Mixture:
    """Draws from several sources so that each gives its share of the tokens."""

    def __init__(self, sources, shares):
        self.sources, self.shares = sources, shares
        self.given = [0.0] * len(sources)

    def take(self, tokens):
        out, n = [], 0
        while n < tokens:
            k = min((i for i, s in enumerate(self.shares) if s > 0),
                    key=lambda i: self.given[i] / self.shares[i])
            out.append(self.sources[k].next())
            self.given[k] += len(out[-1][0])
            n += len(out[-1][0])
        return out

    def set_shares(self, shares):
        if shares != self.shares:
            self.shares, self.given = shares, [0.0] * len(shares)

    def state(self):
        return {"at": [s.at for s in self.sources], "given": self.given}

    def restore(self, s):
        self.given = s["given"]
        for source, at in zip(self.sources, s["at"]):
            source.at = at


def micro_batches(examples, tokens):
    """Rows sorted by length; per batch, rows x longest is near `tokens`."""
    examples = sorted(examples, key=lambda e: len(e[0]))
    while examples:
        n = max(2, round(tokens / len(examples[-1][0])))
        rows, examples = examples[-n:], examples[:-n]
        width = len(rows[-1][0])
        x = torch.zeros(len(rows), width, dtype=torch.long)
        w = torch.zeros(len(rows), width)
        for r, (ids, weights) in enumerate(rows):
            x[r, :len(ids)] = torch.from_numpy(ids.astype(np.int64))
            w[r, :len(ids)] = torch.from_numpy(weights)
        yield x[:, :-1], x[:, 1:], w[:, 1:]


def add_arguments(a):
    a.add_argument("--data", default="../shared/data")
    a.add_argument("--steps", type=int, required=True)
    a.add_argument("--warmup", type=int, default=100)
    a.add_argument("--decay", type=float, default=0.4, help="share of the steps, at the end")
    a.add_argument("--batch", type=int, default=8192, help="tokens a step")
    a.add_argument("--micro", type=int, default=3072, help="tokens a forward pass")
    a.add_argument("--lr", type=float, default=0.015)
    a.add_argument("--adam-lr", type=float, default=0.003)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--threads", type=int, default=1)
    a.add_argument("--save-every", type=int, default=150, help="steps")
    a.add_argument("--show-every", type=int, default=300, help="steps between evaluations")
    a.add_argument("--in-4-bits", action="store_true", help="the decay rounds the layers' matrices to 4 bits")
    a.add_argument("--no-compile", action="store_true")


def schedule(step, o):
    """Warms up, holds, and decays linearly to zero."""
    decay = max(1, int(o.steps * o.decay))
    return min(1.0, (step + 1) / o.warmup, (o.steps - step) / decay)


def run(model, mixture, o, evaluate, shares=None):
    """Trains to o.steps, and continues from o.out/checkpoint.pt if it exists. evaluate(model) returns a dict for the
    log; shares(progress 0..1, decaying) the mixture."""
    out = Path(o.out)
    out.mkdir(parents=True, exist_ok=True)
    optimizer = Optimizer(model, o.lr, o.adam_lr)
    average = {k: v.clone() for k, v in model.state_dict().items()}
    done = {"step": 0, "tokens": 0, "seconds": 0.0}
    checkpoint = out / "checkpoint.pt"
    if checkpoint.exists():
        s = torch.load(checkpoint, weights_only=False)
        model.load_state_dict(s["model"])
        optimizer.load_state_dict(s["optimizer"])
        mixture.restore(s["mixture"])
        average, done = s["average"], s["done"]

    def loss_sum(x, y, w):
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(x)
        loss = F.cross_entropy(logits.float().flatten(0, 1), y.flatten(), reduction="none")
        return (loss * w.flatten()).sum()

    step_loss = loss_sum if o.no_compile else torch.compile(loss_sum, dynamic=True)

    def save():
        part = checkpoint.with_suffix(".part")
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                    "mixture": mixture.state(), "average": average, "done": done,
                    "options": vars(o)}, part)
        part.rename(checkpoint)

    def log(entry):
        with open(out / "log.jsonl", "a") as f:
            f.write(json.dumps(entry) + "\n")

    smooth = None
    while done["step"] < o.steps:
        start, step = time.time(), done["step"]
        scale = schedule(step, o)
        decaying = scale < 1 and step > o.warmup
        if shares:
            mixture.set_shares(shares(decaying))
        if decaying and o.in_4_bits:
            Linear.in_4_bits = True
        examples = mixture.take(o.batch)
        weight = float(sum(w[1:].sum() for _, w in examples))
        total = 0.0
        for x, y, w in micro_batches(examples, o.micro):
            loss = step_loss(x, y, w) / weight
            loss.backward()
            total += loss.item()
        optimizer.step(scale)
        optimizer.zero_grad()
        keep = min(0.998, (1 + step) / (10 + step))
        now = model.state_dict()
        for k in average:
            average[k].lerp_(now[k], 1 - keep)
        done["step"] += 1
        done["tokens"] += int(sum(len(i) for i, _ in examples))
        done["seconds"] += time.time() - start
        smooth = total if smooth is None else 0.98 * smooth + 0.02 * total
        if done["step"] % 10 == 0:
            log({"step": done["step"], "tokens": done["tokens"], "loss": round(total, 4),
                 "smooth": round(smooth, 4), "scale": round(scale, 4),
                 "seconds": round(done["seconds"], 1)})
            part = done["step"] / o.steps
            rate = done["tokens"] / done["seconds"]
            left = (o.steps - done["step"]) * done["seconds"] / done["step"] / 60
            print(f"\r[{'#' * int(30 * part):30}] {done['step']}/{o.steps}  loss {smooth:.3f}  "
                  f"{rate:.0f} tokens/s  {left:.0f} min left ", end="", file=sys.stderr, flush=True)
        last = done["step"] == o.steps
        if last or done["step"] % o.show_every == 0:
            raw = {k: v.clone() for k, v in model.state_dict().items()}
            if not last:
                model.load_state_dict(average)
            result = evaluate(model)
            model.load_state_dict(raw)
            log({"step": done["step"], "evaluation": result, "averaged": not last})
            print(f"\n{done['step']}: {result}", file=sys.stderr, flush=True)
        if last or done["step"] % o.save_every == 0:
            save()
    print(file=sys.stderr)
