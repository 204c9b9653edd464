"""Trains models/story on TinyStories and on the teacher's stories (teacher.py)."""

import argparse
import json
from pathlib import Path

import torch
from tokenizers import Tokenizer

import bits
import corpus
import tokenizer
import trainer
from llama import Config, Llama

START, END = "<|start_story|>", "<|end_story|>"


def make_tokenizer(data, out, size):
    path = Path(out) / "tokenizer.json"
    if not path.exists():
        t = tokenizer.byte_level(corpus.stories(data)[0], size, [START, END])
        tokenizer.put_before(t, START)
        tokenizer.save(t, out, {"bos_token": START, "eos_token": END, "model_max_length": 512})
    return Tokenizer.from_file(str(path))


def examples(t, stories, context):
    """stories: (text, True if it ends). A story longer than the context loses its end."""
    start, end = t.token_to_id(START), t.token_to_id(END)
    pairs = []
    encoded = t.encode_batch([text for text, _ in stories], add_special_tokens=False)
    for (_, done), e in zip(stories, encoded):
        ids = ([start] + e.ids + ([end] if done else []))[:context + 1]
        pairs.append((ids, [1.0] * len(ids)))
    return trainer.Examples(pairs)


def told(folder):
    for path in sorted(Path(folder).glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            s = json.loads(line)
            yield s["text"], s["done"]


def main():
    a = argparse.ArgumentParser(description=__doc__)
    trainer.add_arguments(a)
    a.add_argument("--out", default="build/train/story")
    a.add_argument("--told", default="build/train/told")
    a.add_argument("--real", type=float, default=0.2, help="share of tokens from TinyStories")
    a.add_argument("--real-decay", type=float, default=0.35, help="the same, in the decay")
    a.add_argument("--vocab", type=int, default=4096)
    a.add_argument("--dim", type=int, default=192)
    a.add_argument("--ffn", type=int, default=512)
    a.add_argument("--layers", type=int, default=5)
    a.add_argument("--heads", type=int, default=4)
    a.add_argument("--kv-heads", type=int, default=2)
    a.add_argument("--context", type=int, default=512)
    o = a.parse_args()
    torch.set_num_threads(o.threads)
    torch.manual_seed(o.seed)
    t = make_tokenizer(o.data, o.out, o.vocab)
    real, held_out = corpus.stories(o.data)
    sources = [trainer.Shuffled(examples(t, [(s, True) for s in real], o.context), o.seed)]
    from_teacher = list(told(o.told))
    if from_teacher:
        sources.append(trainer.Shuffled(examples(t, from_teacher, o.context), o.seed + 1))
    for s in sources:
        print(f"{len(s.examples)} stories, {len(s.examples.ids) / 1e6:.1f} M tokens")
    model = Llama(Config(t.get_vocab_size(), o.dim, o.ffn, o.layers, o.heads, o.kv_heads,
                         o.context))
    o.config = vars(model.c)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.3f} M parameters", flush=True)

    def evaluate(m):
        encode = lambda text: t.encode(text, add_special_tokens=False).ids
        with torch.autocast("cpu", torch.bfloat16):
            return {"bits_per_byte_of_100": round(
                bits.bits_per_byte(m, encode, t.token_to_id(START), held_out[:100]), 4)}

    def shares(decaying):
        if len(sources) == 1:
            return [1.0]
        real = o.real_decay if decaying else o.real
        return [real, 1 - real]

    trainer.run(model, trainer.Mixture(sources, shares(False)), o, evaluate, shares)


if __name__ == "__main__":
    main()
