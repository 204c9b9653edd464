"""Make the tiny models of model_zoo.py, each a folder with its oracle in it.

    build/venv/bin/python reference/make_models.py --out tests/data/models [--only llama-gqa3]

OUT/NAME contains config.json, model.safetensors (or shards) and trace.safetensors: `ids` (I64), all
activations of reference/trace.py in f64, and the metadata `order` (a JSON array of names) and
`tolerance` (a JSON object, name to absolute tolerance).

Each model is proved before it is kept: transformers opens it and gives the oracle's logits in f64
and, within the tolerance, in f32; the config changes in `seen_by` must change the logits by far
more.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from numpy.random import Generator
from torch import Tensor

import dump
from architectures import MODULES
from check_transformers import assert_agrees, their_logits
from definitions import ORACLE, Arithmetic
from llama import EMBEDDING, HEAD, Config, Parameters, forward
from model_zoo import MODELS
from seed import one_thread, random_for
from tiny_model import TinyModel
from tolerance import oracle_and_tolerance

A_FEATURE_SHOWS = 1000.0  # times the tolerance of the logits

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16


def random_weights(model: TinyModel) -> dict[str, Tensor]:
    """Weights in f32, sized so that no softmax is flat or one-hot."""
    raw = model.config
    random = random_for(model.name)
    if raw["model_type"] in MODULES:
        return _weights_of(MODULES[raw["model_type"]], model, random)
    config = Config.parse(raw)
    weights: dict[str, Tensor] = {}

    def matrix(name: str, rows: int, columns: int, gain: float) -> None:
        weights[name] = torch.from_numpy(
            random.standard_normal((rows, columns)) * gain / columns**0.5
        ).float()

    def norm(name: str, size: int) -> None:
        sign = random.choice([-1.0, 1.0, 1.0, 1.0], size)
        weights[name] = torch.from_numpy(sign * random.uniform(0.3, 2.0, size)).float()

    def linear(name: str, rows: int, columns: int, gain: float, bias: bool) -> None:
        matrix(f"{name}.weight", rows, columns, gain)
        if bias:
            weights[f"{name}.bias"] = torch.from_numpy(random.uniform(-1.0, 1.0, rows)).float()

    dim, hidden = config.dim, raw["intermediate_size"]
    q_dim, kv_dim = config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim
    qkv_bias = config.model_type == "qwen2" or raw.get("attention_bias", False)
    o_bias = config.model_type != "qwen2" and raw.get("attention_bias", False)
    mlp_bias = raw.get("mlp_bias", False)

    if "embed" in model.store:
        matrix(EMBEDDING, config.vocab_size, dim, gain=dim**0.5)
    for layer in range(config.n_layers):
        at = f"model.layers.{layer}"
        norm(f"{at}.input_layernorm.weight", dim)
        linear(f"{at}.self_attn.q_proj", q_dim, dim, 1.2, qkv_bias)
        linear(f"{at}.self_attn.k_proj", kv_dim, dim, 1.2, qkv_bias)
        linear(f"{at}.self_attn.v_proj", kv_dim, dim, 1.0, qkv_bias)
        if config.qk_norm:
            norm(f"{at}.self_attn.q_norm.weight", config.head_dim)
            norm(f"{at}.self_attn.k_norm.weight", config.head_dim)
        linear(f"{at}.self_attn.o_proj", dim, q_dim, 1.0, o_bias)
        norm(f"{at}.post_attention_layernorm.weight", dim)
        linear(f"{at}.mlp.gate_proj", hidden, dim, 1.5, mlp_bias)
        linear(f"{at}.mlp.up_proj", hidden, dim, 1.0, mlp_bias)
        linear(f"{at}.mlp.down_proj", dim, hidden, 1.0, mlp_bias)
    norm("model.norm.weight", dim)
    if "head" in model.store:
        matrix(HEAD, config.vocab_size, dim, gain=dim**0.5 if model.store == "head" else 1.0)
    return weights


def _weights_of(module: ModuleType, model: TinyModel, random: Generator) -> dict[str, Tensor]:
    """The same for an architecture with its own module."""
    weights: dict[str, Tensor] = {}
    embedding, head = getattr(module, "EMBEDDING", EMBEDDING), getattr(module, "HEAD", HEAD)
    for name, shape in module.shapes(model.config).items():
        if (name == embedding and "embed" not in model.store) or (
            name == head and "head" not in model.store
        ):
            continue
        if name.endswith(".bias"):
            value = random.uniform(-1.0, 1.0, shape)
        elif len(shape) == 1:  # a norm
            value = random.choice([-1.0, 1.0, 1.0], shape) * random.uniform(0.3, 2.0, shape)
            value -= module.offset(name) if hasattr(module, "offset") else 0.0
        else:
            value = random.standard_normal(shape) * 1.2 / shape[1] ** 0.5
        weights[name] = torch.from_numpy(value).float()
    return weights


def stored_dtype(model: TinyModel, name: str) -> torch.dtype:
    if model.dtype != "mixed":
        return {"float32": F32, "float16": F16, "bfloat16": BF16}[model.dtype]
    if "norm" in name:
        return F32
    return F16 if "self_attn" in name else BF16


def write_model(model: TinyModel, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(model.config, indent=2) + "\n")
    weights = {
        name: tensor.to(stored_dtype(model, name)) for name, tensor in random_weights(model).items()
    }
    metadata = {"format": "pt"}
    if model.shards == 1:
        dump.write(folder / "model.safetensors", weights, metadata)
        return
    # Neighbours go to different shards: code that reads only one file fails at once.
    files = [
        f"model-{shard + 1:05}-of-{model.shards:05}.safetensors" for shard in range(model.shards)
    ]
    weight_map = {name: files[at % model.shards] for at, name in enumerate(weights)}
    for file in files:
        dump.write(
            folder / file,
            {name: weights[name] for name in weights if weight_map[name] == file},
            metadata,
        )
    size = sum(tensor.nbytes for tensor in weights.values())
    index = {"metadata": {"total_size": size}, "weight_map": dict(sorted(weight_map.items()))}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


def token_ids(model: TinyModel) -> Tensor:
    """Ids with the first and the last one of the vocabulary, and some tokens twice."""
    if model.ids:
        return torch.tensor(model.ids)
    vocab = model.config.get("vocab_size") or model.config["padded_vocab_size"]
    ids = random_for(f"{model.name}/ids").integers(3, vocab - 1, model.seq_len)
    ids[0], ids[3], ids[4], ids[5], ids[-1] = 1, vocab - 1, ids[2], 0, ids[1]
    return torch.from_numpy(ids)


def prove(model: TinyModel, folder: Path, ids: Tensor, oracle: Tensor, allowed: float) -> None:
    """Checks that transformers agrees, and that the model's feature shows in its logits."""
    assert_agrees(oracle, their_logits(folder, ids, torch.float64), model.name)
    theirs = their_logits(folder, ids, torch.float32).double()
    if (distance := (theirs - oracle).abs().max().item()) > allowed:
        raise SystemExit(
            f"{model.name}: transformers in f32 is {distance:.2e} from the oracle, "
            f"tolerance {allowed:.2e}"
        )
    weights = Parameters(folder)
    for name, value in model.seen_by.items():
        other = run(model.config | {name: value}, weights, ids, ORACLE)["logits"]
        if (distance := (other - oracle).abs().max().item()) < A_FEATURE_SHOWS * allowed:
            raise SystemExit(
                f"{model.name}: {name} = {value} moves the logits by {distance:.2e} only, "
                f"tolerance {allowed:.2e}"
            )


def run(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    """Every activation of the model that config.json describes."""
    module = MODULES.get(raw["model_type"])
    if module is not None:
        return module.forward(raw, weights, ids, how)
    return forward(Config.parse(raw), weights, ids, how)


def make_model(model: TinyModel, folder: Path) -> None:
    write_model(model, folder)
    weights, ids = Parameters(folder), token_ids(model)
    copied = ("embedding",) if model.config["model_type"] not in MODULES else ()
    oracle, tolerance = oracle_and_tolerance(
        lambda how: run(model.config, weights, ids, how), exact=copied
    )
    prove(model, folder, ids, oracle["logits"], tolerance["logits"])
    metadata = {"order": json.dumps(list(oracle)), "tolerance": json.dumps(tolerance)}
    dump.write(folder / "trace.safetensors", {"ids": ids} | oracle, metadata)


def make_models(out: Path, only: str | None = None) -> None:
    one_thread()
    with torch.no_grad():
        for model in MODELS:
            if only in (None, model.name):
                make_model(model, out / model.name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", choices=[model.name for model in MODELS])
    args = parser.parse_args()
    make_models(args.out, args.only)
