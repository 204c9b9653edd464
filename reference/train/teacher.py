"""Generates stories with stories15M, the teacher, for the student to learn from.

Stories are generated in batches over a KV cache, in shards of a few hundred stories, each with its own seed. An
interrupted run continues with the first missing shard. A shard is JSON lines: {"text": ..., "done": bool}. "done" is
false if the teacher's context of 256 tokens cut the story off; the student then learns its text but no end.

The teacher may only use tokens that occur in the training stories. This leaves 6 thousand of the 32 thousand rows in
its largest matrix, and keeps junk out of its stories.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F

import corpus
from llama import SentencePiece, read_llama2c

START, END = 1, 2  # the teacher was trained with START between stories, so both end a story


def tell(model, allowed, batch, temperature, min_p, generator):
    """`batch` stories as lists of ids; the last id is START if the story ended."""
    c = model.c
    head = model.model.embed_tokens.weight[allowed]
    dtype = head.dtype
    cache = model.new_cache(batch, c.context, dtype)
    rows = torch.arange(batch)
    told = torch.zeros(batch, c.context, dtype=torch.long)
    told[:, 0] = START
    length = torch.full((batch,), c.context)
    ids = told[:, :1]
    for past in range(c.context - 1):
        x = model.hidden(ids, cache, past)[:, 0]
        p = F.linear(x, head).float().div_(temperature).softmax(-1)
        p[p < min_p * p.amax(-1, keepdim=True)] = 0
        p = p.cumsum_(-1)
        u = torch.rand(len(p), 1, generator=generator) * p[:, -1:]
        new = allowed[torch.searchsorted(p, u, right=True).clamp_(max=len(allowed) - 1)]
        told[rows, past + 1] = new[:, 0]
        live = (new[:, 0] != START) & (new[:, 0] != END)
        length[rows[~live]] = past + 2
        if live.sum() == 0:
            break
        if live.sum() < 0.9 * len(live):  # not at every end, because copying the cache takes time
            keep = live.nonzero()[:, 0]
            rows, new = rows[keep], new[keep]
            cache = [(shrink(k, keep, past + 1), shrink(v, keep, past + 1)) for k, v in cache]
        else:
            # Ended rows keep generating until the next cut. `length` was set only at the first end, so mark them with
            # an end token again.
            new = torch.where(live[:, None], new, START)
        ids = new
    return [t[:n].tolist() for t, n in zip(told, length)]


def shrink(x, keep, filled):
    out = torch.empty((len(keep),) + x.shape[1:], dtype=x.dtype)
    out[:, :, :filled] = x[keep, :, :filled]
    return out


def main():
    a = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--data", default="../shared/data")
    a.add_argument("--out", default="build/train/told")
    a.add_argument("--shards", type=int, default=400, help="how many shards in all")
    a.add_argument("--first", type=int, default=0, help="with --step: which shards are mine")
    a.add_argument("--step", type=int, default=1)
    a.add_argument("--batch", type=int, default=512, help="stories a shard")
    a.add_argument("--temperature", type=float, default=1.0)
    a.add_argument("--min-p", type=float, default=0.02,
                   help="drop tokens less likely than this times the likeliest")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--threads", type=int, default=1)
    o = a.parse_args()
    torch.set_num_threads(o.threads)
    torch.set_grad_enabled(False)
    folder = Path(o.data) / "models/stories15M"
    model = read_llama2c(folder / "stories15M.bin").to(torch.bfloat16)
    pieces = SentencePiece(folder / "tokenizer.bin", model.c.vocab_size)
    seen = {START, END}
    for story in corpus.stories(o.data)[0]:
        seen.update(pieces.encode(story))
    allowed = torch.tensor(sorted(seen))
    Path(o.out).mkdir(parents=True, exist_ok=True)
    for shard in range(o.first, o.shards, o.step):
        path = Path(o.out) / f"{shard:04}.jsonl"
        if path.exists():
            continue
        start = time.time()
        generator = torch.Generator().manual_seed(o.seed * 1000003 + shard)
        told = tell(model, allowed, o.batch, o.temperature, o.min_p, generator)
        lines, size = [], 0
        for ids in told:
            done = ids[-1] in (START, END)
            text = pieces.decode(ids[1:-1] if done else ids[1:])
            text = text.decode("utf-8", "ignore").strip()
            if len(text) < 100:
                continue  # a few stories are empty
            size += len(text.encode())
            lines.append(json.dumps({"text": text, "done": done}, ensure_ascii=False))
        part = path.with_suffix(".part")
        part.write_text("\n".join(lines) + "\n", encoding="utf-8")
        part.rename(path)
        took = time.time() - start
        ended = sum(json.loads(x)["done"] for x in lines)
        print(f"\rshard {shard + 1}/{o.shards}  {len(lines)} stories, {ended} ended, "
              f"{size / took / 1000:.1f} KB/s", end="\n" if shard % 20 == 0 else "",
              file=sys.stderr, flush=True)
    print(file=sys.stderr)


if __name__ == "__main__":
    main()
