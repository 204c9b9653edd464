"""The Llama family in one forward pass that keeps every activation.

Llama, Mistral, Qwen2 and Qwen3 differ in which projections have a bias, in a norm on q and k, and
in which layers have a sliding window; config.json says so, partly only by its model_type.
"""

from __future__ import annotations

import json
from collections.abc import Callable
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
    gated,
    gated_name,
    linear,
    rms_norm,
    rope,
    rope_angles,
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
    windows: tuple[int | None, ...]  # one per layer
    qk_norm: bool
    activation: str = "silu"

    @staticmethod
    def load(folder: Path) -> Config:
        return Config.parse(json.loads((folder / "config.json").read_text()))

    @staticmethod
    def parse(raw: dict[str, Any]) -> Config:
        model_type = raw["model_type"]
        if model_type not in ("llama", "mistral", "qwen2", "qwen3"):
            raise SystemExit(
                "config.json: model_type: expected llama, mistral, qwen2 or qwen3, "
                f"found {model_type}"
            )
        n_heads = raw["num_attention_heads"]
        return Config(
            model_type=model_type,
            vocab_size=raw["vocab_size"],
            dim=raw["hidden_size"],
            n_layers=raw["num_hidden_layers"],
            n_heads=n_heads,
            n_kv_heads=raw.get("num_key_value_heads") or n_heads,
            head_dim=raw.get("head_dim")
            or (128 if model_type == "qwen3" else raw["hidden_size"] // n_heads),
            rms_norm_eps=raw.get("rms_norm_eps", 1e-6),
            rope=_rope_scaling(raw),
            tied=raw.get("tie_word_embeddings", False),
            windows=_windows(raw),
            qk_norm=model_type == "qwen3",
            activation=raw.get("hidden_act", "silu"),
        )


def _rope_scaling(raw: dict[str, Any]) -> RopeScaling:
    """`rope_parameters` (newer), or `rope_theta` and `rope_scaling` (older)."""
    fields = dict(raw.get("rope_scaling") or raw.get("rope_parameters") or {})
    fields.setdefault("rope_type", fields.pop("type", "default"))
    fields.setdefault("rope_theta", raw.get("rope_theta", 10000.0))
    if fields["rope_type"] in ("llama3", "yarn"):
        fields.setdefault(
            "original_max_position_embeddings", raw.get("max_position_embeddings", 2048)
        )
    known = RopeScaling.__dataclass_fields__
    return RopeScaling(**{name: value for name, value in fields.items() if name in known})


def _windows(raw: dict[str, Any]) -> tuple[int | None, ...]:
    """Mistral: on every layer. Qwen: only with use_sliding_window, and then from layer
    max_window_layers on, or as layer_types says."""
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

    def layer(self, n: int) -> dict[str, Tensor]:
        """The tensors of one layer, without the prefix of the layer: self_attn.q_proj.weight."""
        prefix = f"model.layers.{n}."
        return {
            name.removeprefix(prefix): tensor
            for name, tensor in self.tensors.items()
            if name.startswith(prefix)
        }

    def embedding(self, config: Config) -> Tensor:
        """A tied file may contain the matrix under either name.

        If it contains two, both are used (transformers 5 unties two that differ).
        """
        return self.tensors[HEAD if config.tied and EMBEDDING not in self.tensors else EMBEDDING]

    def head(self, config: Config) -> Tensor:
        return self.tensors[EMBEDDING if config.tied and HEAD not in self.tensors else HEAD]


Keep = Callable[[str, Tensor], Tensor]  # records a value under its trace name and returns it


def attention_block(
    config: Config,
    layer: dict[str, Tensor],
    x: Tensor,
    angles: tuple[Tensor, Tensor],
    past: tuple[Tensor, Tensor] | None,
    window: int | None,
    how: Arithmetic,
    keep: Keep,
) -> Tensor:
    """x [S, dim] + o_proj(attention of its norm) -> [S, dim].

    past: k (rotated) and v of the tokens before, each [past, G, D]."""
    h = keep("attn_norm", rms_norm(x, layer["input_layernorm.weight"], config.rms_norm_eps, how))
    q = keep("q", _project(layer, "self_attn.q_proj", h, how)).unflatten(
        -1, (config.n_heads, config.head_dim)
    )
    k = keep("k", _project(layer, "self_attn.k_proj", h, how)).unflatten(
        -1, (config.n_kv_heads, config.head_dim)
    )
    v = keep("v", _project(layer, "self_attn.v_proj", h, how)).unflatten(
        -1, (config.n_kv_heads, config.head_dim)
    )
    if config.qk_norm:  # each head separately, before RoPE
        q = keep("q_norm", rms_norm(q, layer["self_attn.q_norm.weight"], config.rms_norm_eps, how))
        k = keep("k_norm", rms_norm(k, layer["self_attn.k_norm.weight"], config.rms_norm_eps, how))
    q = keep("q_rope", rope(q, *angles, how))
    k = keep("k_rope", rope(k, *angles, how))
    if past is not None:
        k, v = torch.cat((past[0].to(how.dtype), k)), torch.cat((past[1].to(how.dtype), v))
    yarn = config.rope.rope_type == "yarn"
    scale = config.head_dim**-0.5 * config.rope.score_factor if yarn else None
    probabilities, mixed = attention(q, k, v, window, how, scale)
    keep("attn_probs", probabilities)
    mixed = keep("attn_out", mixed).flatten(1)
    projected = keep("attn_proj", _project(layer, "self_attn.o_proj", mixed, how))
    return keep("attn_residual", x.to(how.dtype) + projected)


def mlp_block(
    config: Config, layer: dict[str, Tensor], x: Tensor, how: Arithmetic, keep: Keep
) -> Tensor:
    """x [S, dim] + down_proj(swiglu(gate_proj, up_proj) of its norm)."""
    h = keep(
        "mlp_norm", rms_norm(x, layer["post_attention_layernorm.weight"], config.rms_norm_eps, how)
    )
    gate = keep("gate", _project(layer, "mlp.gate_proj", h, how))
    up = keep("up", _project(layer, "mlp.up_proj", h, how))
    h = keep(gated_name(config.activation), gated(gate, up, config.activation, how))
    down = keep("down", _project(layer, "mlp.down_proj", h, how))
    return keep("mlp_residual", x.to(how.dtype) + down)


def _project(layer: dict[str, Tensor], name: str, x: Tensor, how: Arithmetic) -> Tensor:
    return linear(x, layer[f"{name}.weight"], layer.get(f"{name}.bias"), how)


def recorder(trace: dict[str, Tensor], prefix: str = "") -> Keep:
    """Stores values in `trace`: [S, H, D] as [S, H * D], but probabilities as [H, S, T]."""

    def keep(name: str, value: Tensor) -> Tensor:
        trace[prefix + name] = (
            value.flatten(1) if value.dim() == 3 and name != "attn_probs" else value
        )
        return value

    return keep


def forward(config: Config, weights: Parameters, ids: Tensor, how: Arithmetic) -> dict[str, Tensor]:
    """All activations by trace name, in the order of computation. ids [S]."""
    trace: dict[str, Tensor] = {}
    angles = rope_angles(torch.arange(len(ids)), config.head_dim, config.rope, how)
    x = recorder(trace)("embedding", weights.embedding(config)[ids].to(how.dtype))
    for n in range(config.n_layers):
        layer, keep = weights.layer(n), recorder(trace, f"layers.{n}.")
        x = attention_block(config, layer, x, angles, None, config.windows[n], how, keep)
        x = mlp_block(config, layer, x, how, keep)
    x = recorder(trace)(
        "final_norm", rms_norm(x, weights["model.norm.weight"], config.rms_norm_eps, how)
    )
    recorder(trace)("logits", linear(x, weights.head(config), None, how))
    return trace
