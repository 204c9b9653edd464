"""Write every activation of a model on given ids: the PyTorch side of `./stage trace`.

    build/venv/bin/python reference/trace.py --model models/story --ids 1,2,3 --out trace.safetensors

The logits are compared with transformers' own model in the same run.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

import dump
from check_transformers import assert_agrees, transformers_logits
from definitions import ORACLE, PYTORCH_F32
from llama import Config, Parameters, forward


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="a Hugging Face folder: llama, mistral, qwen2, qwen3")
    parser.add_argument("--ids", required=True, help="token ids, comma-separated")
    parser.add_argument("--out", type=Path, required=True, help="the safetensors file to write")
    parser.add_argument("--dtype", choices=("f32", "f64"), default="f32", help="f64: the oracle (default f32)")
    args = parser.parse_args()

    config = Config.load(args.model)
    try:
        ids = torch.tensor([int(part) for part in args.ids.split(",")])
    except ValueError:
        raise SystemExit(f"trace.py: --ids: expected numbers separated by commas, found '{args.ids}'")
    if ids.min() < 0 or ids.max() >= config.vocab_size:
        raise SystemExit(f"trace.py: --ids: expected 0 to {config.vocab_size - 1}, found '{args.ids}'")

    how = ORACLE if args.dtype == "f64" else PYTORCH_F32
    with torch.no_grad():
        trace = forward(config, Parameters(args.model), ids, how)
    theirs = transformers_logits(args.model, ids, how.dtype, config.model_type)
    distance = assert_agrees(trace["logits"], theirs, str(args.model))
    dump.write(args.out, trace, {"order": json.dumps(list(trace))})
    print(f"{args.out}: {len(trace)} tensors, {args.dtype}; logits within {distance:.1e} of transformers")


if __name__ == "__main__":
    main()
