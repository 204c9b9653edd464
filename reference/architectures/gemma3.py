"""Gemma 3 (Kamath et al. 2025), text only, with every activation kept.

Differences from Gemma 2: no soft caps; a norm of each head of q and k; local layers (with a window
and their own RoPE) and global ones.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from architectures.gemma import offset, scaled_embedding
from decoder import Decoder, decoder_shapes, head_dim, tiny_config
from definitions import Arithmetic, RopeScaling
from llama import Parameters
from tiny_model import TinyModel

MODEL_TYPE = "gemma3_text"

__all__ = ["MODELS", "MODEL_TYPE", "forward", "offset", "shapes"]


def _config(**changes: Any) -> dict[str, Any]:
    gemma = {
        "head_dim": 6,
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": 12,
        "sliding_window": 4,
        "rope_theta": 1000000.0,
        "rope_local_base_freq": 10000.0,
        "tie_word_embeddings": True,
    }
    return tiny_config(MODEL_TYPE, "Gemma3ForCausalLM", **(gemma | changes))


MODELS = (
    # The style of older files: every second layer is global, and its RoPE is scaled.
    TinyModel(
        "gemma3-pattern-linear",
        _config(sliding_window_pattern=2, rope_scaling={"factor": 8.0, "rope_type": "linear"}),
        store="embed",
        seen_by={
            "query_pre_attn_scalar": 8,
            "sliding_window": 5,
            "sliding_window_pattern": 1,
            "rope_theta": 10000.0,
            "rope_local_base_freq": 500.0,
            "rope_scaling": None,
        },
    ),
    # The style of newer files.
    TinyModel(
        "gemma3-layer-types",
        _config(
            layer_types=["full_attention", "sliding_attention"],
            rope_parameters={
                "full_attention": {"rope_type": "default", "rope_theta": 50000.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 300.0},
            },
            rope_theta=...,
            rope_local_base_freq=...,
            attention_bias=True,
            tie_word_embeddings=False,
        ),
        seen_by={"layer_types": ["sliding_attention", "sliding_attention"]},
    ),
    # As in the released models: every sixth layer is global, and scores are scaled by the size of a
    # head.
    TinyModel(
        "gemma3-six-layers",
        _config(
            hidden_size=12,
            intermediate_size=13,
            num_hidden_layers=6,
            num_attention_heads=2,
            num_key_value_heads=1,
            query_pre_attn_scalar=6,
            sliding_window_pattern=6,
        ),
        store="embed",
        seen_by={
            "query_pre_attn_scalar": 8,
            "sliding_window_pattern": 5,
            "rope_theta": 10000.0,
            "rope_local_base_freq": 500.0,
        },
    ),
)


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    norms = ("input_layernorm", "post_attention_layernorm")
    norms += ("pre_feedforward_layernorm", "post_feedforward_layernorm")
    size, bias = head_dim(raw), raw.get("attention_bias", False)
    return decoder_shapes(raw, norms, head_norms=(size, size), attention_bias=bias)


def _is_local(raw: dict[str, Any], layer: int) -> bool:
    if "layer_types" in raw:
        return raw["layer_types"][layer] == "sliding_attention"
    return (layer + 1) % raw["sliding_window_pattern"] != 0


def _rope(raw: dict[str, Any], local: bool) -> RopeScaling:
    if "rope_parameters" in raw:
        kind = "sliding_attention" if local else "full_attention"
        return RopeScaling(raw["rope_parameters"][kind]["rope_theta"])
    if local:
        return RopeScaling(raw["rope_local_base_freq"])
    return RopeScaling(raw["rope_theta"], **(raw.get("rope_scaling") or {}))


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = Decoder(raw, weights, ids, how, norm_plus=1.0)
    angles = {local: d.angles(_rope(raw, local)) for local in (False, True)}
    scale = raw["query_pre_attn_scalar"] ** -0.5
    x = scaled_embedding(d)
    for n in range(raw["num_hidden_layers"]):
        at, local = d.layer(n), _is_local(raw, n)
        h = d.keep("attn_norm", d.norm(x, f"{at}input_layernorm"))
        q, k, v = d.qkv(h, f"{at}self_attn.")
        q, k = (
            d.keep(f"{name}_norm", d.norm(y.unflatten(-1, (-1, d.head_dim)), f"{at}self_attn.{name}_norm"))
            .flatten(1)
            for name, y in (("q", q), ("k", k))
        )
        window = raw["sliding_window"] if local else None
        h = d.attention(q, k, v, angles[local], window, scale)
        h = d.keep("attn_proj", d.linear(h, f"{at}self_attn.o_proj"))
        h = d.keep("attn_post_norm", d.norm(h, f"{at}post_attention_layernorm"))
        x = d.keep("attn_residual", x + h)
        h = d.keep("mlp_norm", d.norm(x, f"{at}pre_feedforward_layernorm"))
        h = d.geglu(*d.gate(h, f"{at}mlp."))
        h = d.keep("down", d.linear(h, f"{at}mlp.down_proj"))
        h = d.keep("mlp_post_norm", d.norm(h, f"{at}post_feedforward_layernorm"))
        x = d.keep("mlp_residual", x + h)
    return d.logits(x)
