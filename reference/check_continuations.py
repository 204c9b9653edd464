"""Compare greedy continuations of the engine with those of transformers, token by token.

    build/venv/bin/python reference/check_continuations.py MODEL.gguf
    build/venv/bin/python reference/check_continuations.py FOLDER --tokens 64

Both read the same file: transformers dequantises a GGUF file to f32 as the engine does. Where they
part, the gap between the two likeliest tokens says whether that means anything: f32 rounds, and the
spread is how far transformers' own logits move when it is asked for f64. Exit code 1 where they
part at a gap above twice the spread.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

from seed import one_thread

ROOT = Path(__file__).resolve().parent.parent
PROMPTS = (
    "Once upon a time",
    "The capital of France is",
    "def fibonacci(n):",
    "Water boils at",
    "My favourite animal is the",
)


def ours(program: Path, model: Path, arguments: list[str], text: str = "") -> str:
    command = [program, arguments[0], "--model", model, *arguments[1:]]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def open_model(path: Path, dtype: torch.dtype) -> torch.nn.Module:
    where = (
        {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}
        if path.is_file()
        else {"pretrained_model_name_or_path": path}
    )
    return AutoModelForCausalLM.from_pretrained(**where, dtype=dtype).eval()


def logits_of(model: torch.nn.Module, ids: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0]


def check(args: argparse.Namespace) -> bool:
    model = open_model(args.model, torch.float32)
    exact = open_model(args.model, torch.float64)
    right = True
    for prompt in PROMPTS:
        encoded = ours(args.program, args.model, ["tokenize", "--jsonl"], json.dumps(prompt))
        ids = json.loads(encoded)
        story = ["story", "--ids", ",".join(map(str, ids)), "--print-ids", "--temperature", "0"]
        made = ours(args.program, args.model, [*story, "--max-tokens", str(args.tokens)]).strip()
        made_ids = [int(i) for i in made.split(",")] if made else []
        # One pass over what the engine wrote: at each place, what would transformers have chosen?
        logits = logits_of(model, ids + made_ids)[len(ids) - 1 :]
        truth = logits_of(exact, ids + made_ids)[len(ids) - 1 :]
        spread = (logits.double() - truth).abs().max().item()
        chosen = logits.argmax(-1).tolist()
        part = next((i for i, token in enumerate(made_ids) if chosen[i] != token), None)
        top = logits.topk(2).values
        gaps = (top[:, 0] - top[:, 1]).tolist()
        line = f"{prompt!r}: {len(made_ids)} tokens, spread {spread:.1e}, least gap {min(gaps):.1e}"
        if part is None:
            print(f"{line}: equal")
            continue
        means_something = gaps[part] > 2 * spread
        verdict = "WRONG" if means_something else "undecided: closer than f32 can tell"
        print(f"{line}: part at token {part}, gap {gaps[part]:.1e}: {verdict}")
        right = right and not means_something
    return right


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, help="a GGUF file or a model folder")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--program", type=Path, default=ROOT / "build/release/src/stagecraft")
    one_thread()
    sys.exit(0 if check(parser.parse_args()) else 1)
