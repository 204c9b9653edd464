"""Compare greedy continuations of the engine with those of transformers, token by token.

    build/venv/bin/python reference/check_continuations.py MODEL.gguf
    build/venv/bin/python reference/check_continuations.py FOLDER --tokens 64

Both read the same file: transformers dequantises a GGUF file to f32, like the engine. The engine
runs its textbook layers unless --fast. For each token that the engine wrote, and for the end,
transformers computes what it would choose. f32 rounds: the spread is the difference between
transformers' own logits in f32 and in f64. If the two likeliest tokens are closer than twice the
spread, either choice is right, and the output says so. Exit code 1 if the choices differ at a
larger gap.
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


def end_tokens(model: torch.nn.Module) -> list[int]:
    ids = model.generation_config.eos_token_id
    return ids if isinstance(ids, list) else [ids]


def check(args: argparse.Namespace) -> bool:
    model = open_model(args.model, torch.float32)
    exact = open_model(args.model, torch.float64)
    right = True
    for prompt in PROMPTS:
        encoded = ours(args.program, args.model, ["tokenize", "--jsonl"], json.dumps(prompt))
        ids = json.loads(encoded)
        story = ["story", "--ids", ",".join(map(str, ids)), "--print-ids", "--temperature", "0"]
        story += [] if args.fast else ["--textbook"]
        made = ours(args.program, args.model, [*story, "--max-tokens", str(args.tokens)]).strip()
        made_ids = [int(i) for i in made.split(",")] if made else []
        logits = logits_of(model, ids + made_ids)[len(ids) - 1 :]
        truth = logits_of(exact, ids + made_ids)[len(ids) - 1 :]
        spread = (logits.double() - truth).abs().max().item()
        top = logits.topk(2)
        gaps = (top.values[:, 0] - top.values[:, 1]).tolist()
        chosen = top.indices[:, 0].tolist()
        differing = [i for i, token in enumerate(made_ids) if chosen[i] != token]
        ended = len(made_ids) < args.tokens
        if ended and chosen[len(made_ids)] not in end_tokens(model):
            differing.append(len(made_ids))
        places = range(len(made_ids) + ended)
        ties = [i for i in places if gaps[i] <= 2 * spread]
        wrong = [i for i in differing if i not in ties]
        verdict = "differs only where two tokens are equally likely" if differing else "equal"
        print(
            f"{prompt!r}: {len(made_ids)} tokens{' and the end' if ended else ''}, "
            f"spread {spread:.1e}, least gap {min(gaps[i] for i in places):.1e}: "
            + (f"WRONG at {wrong}" if wrong else verdict)
            + (f"; closer than f32 can tell at {ties}" if ties else "")
        )
        right = right and not wrong
    return right


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, help="a GGUF file or a model folder")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--fast", action="store_true", help="the CPU backend, not --textbook")
    parser.add_argument("--program", type=Path, default=ROOT / "build/release/src/stagecraft")
    one_thread()
    sys.exit(0 if check(parser.parse_args()) else 1)
