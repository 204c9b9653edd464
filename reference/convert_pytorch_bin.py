"""Convert an old pytorch_model.bin (one file or sharded) to safetensors, in its own folder.

    build/venv/bin/python reference/convert_pytorch_bin.py FOLDER

A .bin is a pickle, which could run code when it is opened, so only tensors are read (weights_only).
The .bin is kept; an existing model.safetensors is never overwritten.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from torch import Tensor

import dump
from llama import EMBEDDING, HEAD

FLOATS = (torch.float32, torch.float16, torch.bfloat16)


def load_bin(path: Path) -> dict[str, Tensor]:
    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # the pickle reader raises many kinds
        raise SystemExit(
            f"{path}: cannot be read as tensors alone: {str(error).splitlines()[0]}"
        ) from None
    if not isinstance(tensors, dict):
        raise SystemExit(
            f"{path}: expected a dictionary of tensors, found {type(tensors).__name__}"
        )
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise SystemExit(f"{path}: {name}: expected a tensor, found {type(tensor).__name__}")
        if tensor.dtype not in FLOATS:
            raise SystemExit(
                f"{path}: {name}: expected a floating-point tensor, found {tensor.dtype}"
            )
    # Old Llama files contain the RoPE frequencies, which follow from config.json.
    return {
        name: tensor for name, tensor in tensors.items() if not name.endswith("rotary_emb.inv_freq")
    }


def convert(folder: Path) -> list[Path]:
    """Writes the safetensors beside the .bin files and returns their paths."""
    target, index = folder / "model.safetensors", folder / "pytorch_model.bin.index.json"
    for existing in (target, folder / "model.safetensors.index.json"):
        if existing.exists():
            raise SystemExit(f"{existing}: exists already; nothing to convert")
    if not index.exists() and not (folder / "pytorch_model.bin").exists():
        raise SystemExit(
            f"{folder}: expected pytorch_model.bin or pytorch_model.bin.index.json, found neither"
        )
    if not index.exists():
        tensors = load_bin(folder / "pytorch_model.bin")
        if (
            EMBEDDING in tensors
            and HEAD in tensors
            and _is_tied(folder)
            and tensors[EMBEDDING].equal(tensors[HEAD])
        ):
            del tensors[HEAD]  # one matrix with two names
        _write(target, tensors)
        return [target]

    names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
    for name in names:
        if Path(name).name != name:
            raise SystemExit(
                f"{index}: weight_map: expected names of files in this folder, found '{name}'"
            )
    weight_map: dict[str, str] = {}
    written, size = [], 0
    for at, name in enumerate(names):
        file = folder / f"model-{at + 1:05}-of-{len(names):05}.safetensors"
        tensors = load_bin(folder / name)
        _write(file, tensors)
        weight_map |= dict.fromkeys(tensors, file.name)
        size += sum(tensor.nbytes for tensor in tensors.values())
        written.append(file)
    text = json.dumps(
        {"metadata": {"total_size": size}, "weight_map": dict(sorted(weight_map.items()))}, indent=2
    )
    (folder / "model.safetensors.index.json").write_text(text + "\n")
    return written


def _is_tied(folder: Path) -> bool:
    config = folder / "config.json"
    return config.exists() and bool(
        json.loads(config.read_text()).get("tie_word_embeddings", False)
    )


def _write(path: Path, tensors: dict[str, Tensor]) -> None:
    """Writes a file; it gets its name only when it is complete."""
    part = path.with_suffix(".part")
    dump.write(part, tensors, {"format": "pt"})
    part.rename(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    for path in convert(parser.parse_args().folder):
        print(path)
