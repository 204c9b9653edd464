"""The Llama family in one forward pass that keeps every activation.

Llama, Mistral, Qwen2 and Qwen3 differ in which projections have a bias, in a norm on q and k, and in
which layers look through a sliding window; config.json says so, sometimes only by its model_type.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from definitions import (
    Arithmetic,
    RopeScaling,
    attention,
    linear,
    rms_norm,
    rope,
    rope_cos_sin,
    swiglu,
)

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"


@dataclass(frozen=True)
class Config:
    """config.json, older and newer style, with transformers' defaults."""

    model_type: str
    vocab_size: int
    dim: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    rms_norm_eps: float
    rope: RopeScaling
    tied: bool
    windows: tuple[int | None, ...]  # one a layer
    qk_norm: bool

    @staticmethod
    def load(folder: Path) -> Config:
        return Config.parse(json.loads((folder / "config.json").read_text()))

    @staticmethod
    def parse(raw: dict[str, Any]) -> Config:
        model_type = raw["model_type"]
        if model_type not in ("llama", "mistral", "qwen2", "qwen3"):
            raise SystemExit(f"config.json: model_type: expected llama, mistral, qwen2 or qwen3, found {model_type}")
        if raw.get("hidden_act", "silu") != "silu":
            raise SystemExit(f"config.json: hidden_act: expected silu, found {raw['hidden_act']}")
        n_heads = raw["num_attention_heads"]
        return Config(
            model_type=model_type,
            vocab_size=raw["vocab_size"],
            dim=raw["hidden_size"],
            n_layers=raw["num_hidden_layers"],
            n_heads=n_heads,
            n_kv_heads=raw.get("num_key_value_heads") or n_heads,
            head_dim=raw.get("head_dim") or (128 if model_type == "qwen3" else raw["hidden_size"] // n_heads),
            rms_norm_eps=raw.get("rms_norm_eps", 1e-6),
            rope=_rope_scaling(raw),
            tied=raw.get("tie_word_embeddings", False),
            windows=_windows(raw),
            qk_norm=model_type == "qwen3",
        )


def _rope_scaling(raw: dict[str, Any]) -> RopeScaling:
    """`rope_parameters` (newer), or `rope_theta` beside `rope_scaling` (older, with `type` or `rope_type`)."""
    fields = dict(raw.get("rope_scaling") or raw.get("rope_parameters") or {})
    fields.setdefault("rope_type", fields.pop("type", "default"))
    fields.setdefault("rope_theta", raw.get("rope_theta", 10000.0))
    if fields["rope_type"] == "llama3":
        fields.setdefault("original_max_position_embeddings", raw.get("max_position_embeddings", 2048))
    known = RopeScaling.__dataclass_fields__
    return RopeScaling(**{name: value for name, value in fields.items() if name in known})


def _windows(raw: dict[str, Any]) -> tuple[int | None, ...]:
    """Mistral: every layer. Qwen: only with use_sliding_window, from layer max_window_layers on, or as layer_types says."""
    n_layers, window = raw["num_hidden_layers"], raw.get("sliding_window", 4096)
    if raw["model_type"] == "mistral":
        return (window,) * n_layers
    if raw["model_type"] == "llama" or not raw.get("use_sliding_window", False) or window is None:
        return (None,) * n_layers
    first = raw.get("max_window_layers", 28)
    types = raw.get("layer_types") or [
        "sliding_attention" if layer >= first else "full_attention" for layer in range(n_layers)
    ]
    return tuple(window if kind == "sliding_attention" else None for kind in types)


class Parameters:
    """The tensors of a folder by their Hugging Face names, in the dtype they are stored in."""

    def __init__(self, folder: Path) -> None:
        index = folder / "model.safetensors.index.json"
        if index.exists():
            files = sorted(set(json.loads(index.read_text())["weight_map"].values()))
        else:
            files = ["model.safetensors"]
        self.tensors: dict[str, Tensor] = {}
        for file in files:
            self.tensors |= load_file(folder / file)

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]

    def get(self, name: str) -> Tensor | None:
        return self.tensors.get(name)

    def embedding(self, config: Config) -> Tensor:
        """A tied file may hold the one matrix under either name; two different ones are not tied (transformers 5)."""
        return self.tensors[HEAD if config.tied and EMBEDDING not in self.tensors else EMBEDDING]

    def head(self, config: Config) -> Tensor:
        return self.tensors[EMBEDDING if config.tied and HEAD not in self.tensors else HEAD]


def forward(config: Config, weights: Parameters, ids: Tensor, how: Arithmetic) -> dict[str, Tensor]:
    """Every activation by its trace name, in the order of computation. ids [S]."""
    trace: dict[str, Tensor] = {}

    def keep(name: str, value: Tensor) -> Tensor:
        trace[name] = value.flatten(1) if value.dim() == 3 and not name.endswith("attn_probs") else value
        return value

    def project(x: Tensor, name: str) -> Tensor:
        return linear(x, weights[f"{name}.weight"], weights.get(f"{name}.bias"), how)

    def norm(x: Tensor, name: str) -> Tensor:
        return rms_norm(x, weights[f"{name}.weight"], config.rms_norm_eps, how)

    cos, sin = rope_cos_sin(torch.arange(len(ids)), config.head_dim, config.rope, how)
    x = keep("embedding", weights.embedding(config)[ids].to(how.dtype))

    for layer in range(config.n_layers):
        at, here = f"model.layers.{layer}", f"layers.{layer}."

        h = keep(here + "attn_norm", norm(x, f"{at}.input_layernorm"))
        q = keep(here + "q", project(h, f"{at}.self_attn.q_proj")).unflatten(-1, (config.n_heads, config.head_dim))
        k = keep(here + "k", project(h, f"{at}.self_attn.k_proj")).unflatten(-1, (config.n_kv_heads, config.head_dim))
        v = keep(here + "v", project(h, f"{at}.self_attn.v_proj")).unflatten(-1, (config.n_kv_heads, config.head_dim))
        if config.qk_norm:  # each head by itself, before rope
            q = keep(here + "q_norm", norm(q, f"{at}.self_attn.q_norm"))
            k = keep(here + "k_norm", norm(k, f"{at}.self_attn.k_norm"))
        q = keep(here + "q_rope", rope(q, cos, sin, how))
        k = keep(here + "k_rope", rope(k, cos, sin, how))
        probabilities, mixed = attention(q, k, v, config.windows[layer], how)
        keep(here + "attn_probs", probabilities)
        mixed = keep(here + "attn_out", mixed).flatten(1)
        x = keep(here + "attn_residual", x + keep(here + "attn_proj", project(mixed, f"{at}.self_attn.o_proj")))

        h = keep(here + "mlp_norm", norm(x, f"{at}.post_attention_layernorm"))
        gate = keep(here + "gate", project(h, f"{at}.mlp.gate_proj"))
        up = keep(here + "up", project(h, f"{at}.mlp.up_proj"))
        h = keep(here + "swiglu", swiglu(gate, up, how))
        x = keep(here + "mlp_residual", x + keep(here + "down", project(h, f"{at}.mlp.down_proj")))

    x = keep("final_norm", norm(x, "model.norm"))
    keep("logits", linear(x, weights.head(config), None, how))
    return trace
