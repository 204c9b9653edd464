"""Bits per byte on the held-out stories, for our model and three others, measured in the same way.

The last 500 stories of tinystories.txt, each stripped, with its UTF-8 cut at 1,200 bytes and then back to the last
whole character. A model sees its start token, then the text's tokens in its own tokenization (no end token). Score: the
nats of all those tokens / ln 2 / the bytes of the cut texts. Text beyond a model's context is scored in further windows
(bits.py).
"""

import argparse
import json
from pathlib import Path

import torch

import bits
import corpus
from llama import SentencePiece, read_folder, read_llama2c


def folder(path):
    from tokenizers import Tokenizer
    t = Tokenizer.from_file(str(Path(path) / "tokenizer.json"))
    start = json.loads((Path(path) / "config.json").read_text())["bos_token_id"]
    return read_folder(path), lambda text: t.encode(text, add_special_tokens=False).ids, start


def llama2c(path, pieces):
    model = read_llama2c(path)
    return model, SentencePiece(pieces, model.c.vocab_size).encode, 1


def main():
    a = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("models", nargs="*", help="folders of ours (default: ../../models/story)")
    a.add_argument("--data", default="../shared/data")
    a.add_argument("--only", action="store_true", help="not the three we compare with")
    a.add_argument("--stories", type=int, default=corpus.HELD_OUT)
    a.add_argument("--threads", type=int, default=1)
    o = a.parse_args()
    torch.set_num_threads(o.threads)
    ours = o.models or [str(Path(__file__).parents[2] / "models/story")]
    jobs = [(f"`{Path(p).parent.name}/{Path(p).name}`", lambda p=p: folder(p)) for p in ours]
    m = Path(o.data) / "models"
    if not o.only:
        jobs += [
            ("story656k", lambda: folder(m / "story656k")),
            ("stories260K", lambda: llama2c(m / "stories260K/stories260K.bin",
                                            m / "stories260K/tok512.bin")),
            ("stories15M", lambda: llama2c(m / "stories15M/stories15M.bin",
                                           m / "stories15M/tokenizer.bin"))]
    texts = corpus.stories(o.data)[1][:o.stories]
    print("| model | parameters | bits per byte |\n|---|---|---|")
    for name, load in jobs:
        model, encode, start = load()
        n = sum(p.numel() for p in model.parameters())
        score = bits.bits_per_byte(model, encode, start, texts)
        print(f"| {name} | {n:,} | {score:.3f} |", flush=True)


if __name__ == "__main__":
    main()
