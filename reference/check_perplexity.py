"""Compare the engine's perplexity of a text with transformers', on the same windows.

    build/venv/bin/python reference/check_perplexity.py MODEL TEXT --context 512 --stride 256

MODEL is a folder or a GGUF file, which transformers dequantises to f32, like the engine. The ids
are the engine's own (tokenizers are compared elsewhere). Exit code 1 if the relative difference of
the sums exceeds 1e-5. --fast runs the CPU backend, which rounds activations to 8 bits for quantised
weights and so differs more: it shows the cost of this rounding, not whether the result is right.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import torch

from check_continuations import logits_of, open_model
from make_perplexity import surprisals
from seed import one_thread

ROOT = Path(__file__).resolve().parent.parent
ALLOWED = 1e-5  # reordered f32 sums change a logit by 1e-5; many tokens average it out


def check(args: argparse.Namespace) -> bool:
    def run(*arguments: str, text: str = "") -> str:
        command = [args.program, arguments[0], "--model", args.model, *arguments[1:]]
        return subprocess.run(
            command, input=text, capture_output=True, text=True, check=True
        ).stdout

    windows = ["--context", str(args.context), "--stride", str(args.stride)]
    windows += [] if args.fast else ["--textbook"]
    ours = json.loads(
        run("perplexity", "--text", args.text, "--max-tokens", str(args.tokens), "--json", *windows)
    )
    encoded = run(
        "tokenize", "--jsonl", "--add-special", text=json.dumps(args.text.read_text("utf-8"))
    )
    ids = torch.tensor(json.loads(encoded)[: args.tokens])
    model = open_model(args.model, torch.float32)
    nats = surprisals(
        lambda window: logits_of(model, window.tolist()), ids, args.context, args.stride
    )
    theirs = nats.sum().item()
    apart = abs(ours["nats"] - theirs) / theirs
    print(
        f"{args.model}: {ours['tokens']} tokens, context {args.context}, stride {args.stride}: "
        f"{ours['bits_per_byte']:.6f} bits per byte, perplexity {ours['perplexity']:.6f}; "
        f"transformers {nats.mean().exp().item():.6f}, apart {apart:.1e}"
    )
    return ours["tokens"] == len(nats) and apart <= ALLOWED


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, help="a GGUF file or a model folder")
    parser.add_argument("text", type=Path)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--stride", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=2000, help="only the text's first")
    parser.add_argument("--fast", action="store_true", help="not --textbook")
    parser.add_argument("--program", type=Path, default=ROOT / "build/release/src/stagecraft")
    one_thread()
    sys.exit(0 if check(parser.parse_args()) else 1)
