"""Tests of the tools in reference/, with tiny models. Run by `make_all.py --check`."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import torch

import dump
from convert_pytorch_bin import convert
from llama import Parameters
from trace import write_trace


def traces_equal_the_committed_oracle(models: Path, scratch: Path) -> None:
    folder, out = models / "llama-gqa3", scratch / "trace.safetensors"
    oracle, notes = dump.read(folder / "trace.safetensors")
    for dtype in ("f64", "f32"):
        write_trace(folder, oracle["ids"], out, dtype)
        traced, traced_notes = dump.read(out)
        assert traced_notes["order"] == notes["order"], "trace.py: another order than the oracle"
        for name, tolerance in json.loads(notes["tolerance"]).items():
            apart = (traced[name].double() - oracle[name]).abs().max().item()
            assert apart <= tolerance, (
                f"trace.py --dtype {dtype}: {name} is {apart:.1e} from the oracle"
            )


def a_bin_converts_to_the_same_tensors(models: Path, scratch: Path) -> None:
    for name, shards in (("llama-tied-embed-only", 1), ("llama-bf16", 1), ("llama-sharded", 2)):
        folder = scratch / name
        folder.mkdir()
        shutil.copy(models / name / "config.json", folder)
        weights = Parameters(models / name).tensors
        tied = json.loads((folder / "config.json").read_text())["tie_word_embeddings"]
        stored = weights | (
            {"lm_head.weight": weights["model.embed_tokens.weight"]} if tied else {}
        )
        if shards == 1:
            torch.save(
                stored | {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(3)},
                folder / "pytorch_model.bin",
            )
        else:
            names = list(stored)
            weight_map = {
                tensor: f"pytorch_model-{at % shards}.bin" for at, tensor in enumerate(names)
            }
            for file in set(weight_map.values()):
                torch.save(
                    {tensor: stored[tensor] for tensor in names if weight_map[tensor] == file},
                    folder / file,
                )
            (folder / "pytorch_model.bin.index.json").write_text(
                json.dumps({"weight_map": weight_map})
            )
        convert(folder)
        converted = Parameters(folder).tensors
        assert converted.keys() == weights.keys(), f"convert_pytorch_bin.py: {name}: other tensors"
        for tensor, value in weights.items():
            same = converted[tensor].dtype == value.dtype and converted[tensor].equal(value)
            assert same, f"convert_pytorch_bin.py: {name}: {tensor} differs"


def run(models: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        try:
            traces_equal_the_committed_oracle(models, Path(scratch))
            a_bin_converts_to_the_same_tensors(models, Path(scratch))
        except AssertionError as error:
            raise SystemExit(str(error)) from None
