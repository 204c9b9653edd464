"""Write every activation of a model on given ids: the PyTorch side of `./stage trace`.

    build/venv/bin/python reference/trace.py --model models/story --ids 1,2,3 --out t.safetensors

The logits are compared with those of transformers' own model in the same run.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from torch import Tensor

import dump
from check_transformers import assert_agrees, transformers_logits
from definitions import ORACLE, PYTORCH_F32
from llama import Config, Parameters, forward


def write_trace(model: Path, ids: Tensor, out: Path, dtype: str) -> str:
    """Runs the model, compares it and writes the trace; returns a line that says what was done."""
    if not (model / "config.json").is_file():
        raise SystemExit(f"trace.py: {model}: expected a folder with config.json, found none")
    config = Config.load(model)
    if ids.min() < 0 or ids.max() >= config.vocab_size:
        raise SystemExit(
            f"trace.py: --ids: expected 0 to {config.vocab_size - 1}, "
            f"found {ids.min()} to {ids.max()}"
        )
    how = ORACLE if dtype == "f64" else PYTORCH_F32
    with torch.no_grad():
        trace = forward(config, Parameters(model), ids, how)
    theirs = transformers_logits(model, ids, how.dtype, config.model_type)
    distance = assert_agrees(trace["logits"], theirs, str(model))
    dump.write(out, trace, {"order": json.dumps(list(trace))})
    return f"{out}: {len(trace)} tensors, {dtype}; logits within {distance:.1e} of transformers"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model",
        type=Path,
        required=True,
        help="a Hugging Face folder: llama, mistral, qwen2, qwen3",
    )
    parser.add_argument("--ids", required=True, help="token ids, comma-separated")
    parser.add_argument("--out", type=Path, required=True, help="the safetensors file to write")
    parser.add_argument(
        "--dtype", choices=("f32", "f64"), default="f32", help="f64: the oracle (default f32)"
    )
    args = parser.parse_args()
    try:
        ids = torch.tensor([int(part) for part in args.ids.split(",")])
    except ValueError:
        parser.error(f"--ids: expected numbers separated by commas, found '{args.ids}'")
    print(write_trace(args.model, ids, args.out, args.dtype))


if __name__ == "__main__":
    main()
