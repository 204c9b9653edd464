"""Granite 3 (IBM 2024), with every activation kept.

Differences from Llama: factors in config.json multiply embeddings, scores and residuals, and one
divides the logits.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from decoder import Decoder, decoder_shapes, tiny_config
from definitions import Arithmetic, RopeScaling
from llama import Parameters
from tiny_model import TinyModel

MODEL_TYPE = "granite"


def _config(**changes: Any) -> dict[str, Any]:
    granite = {
        "hidden_act": "silu",
        "embedding_multiplier": 12.0,
        "attention_multiplier": 0.25,
        "residual_multiplier": 0.22,
        "logits_scaling": 8.0,
    }
    return tiny_config(MODEL_TYPE, "GraniteForCausalLM", **(granite | changes))


MODELS = (
    TinyModel(
        "granite-multipliers",
        _config(tie_word_embeddings=True),
        store="embed",
        seen_by={
            "embedding_multiplier": 3.0,
            "attention_multiplier": 0.5,
            "residual_multiplier": 0.3,
            "logits_scaling": 4.0,
        },
    ),
    # Missing factors are 1.
    TinyModel(
        "granite-biases",
        _config(
            attention_bias=True,
            mlp_bias=True,
            embedding_multiplier=...,
            attention_multiplier=...,
            logits_scaling=...,
        ),
        seen_by={"attention_multiplier": 0.5},
    ),
)


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    return decoder_shapes(
        raw,
        ("input_layernorm", "post_attention_layernorm"),
        attention_bias=raw.get("attention_bias", False),
        mlp_bias=raw.get("mlp_bias", False),
    )


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = Decoder(raw, weights, ids, how)
    angles = d.angles(RopeScaling(raw["rope_theta"]))
    residual, scale = raw["residual_multiplier"], raw.get("attention_multiplier", 1.0)
    x = d.keep("embedding", d.embedding() * raw.get("embedding_multiplier", 1.0))
    for n in range(raw["num_hidden_layers"]):
        at = d.layer(n)
        h = d.keep("attn_norm", d.norm(x, f"{at}input_layernorm"))
        h = d.attention(*d.qkv(h, f"{at}self_attn."), angles, scale=scale)
        h = d.keep("attn_proj", d.linear(h, f"{at}self_attn.o_proj"))
        x = d.keep("attn_residual", x + h * residual)
        h = d.keep("mlp_norm", d.norm(x, f"{at}post_attention_layernorm"))
        h = d.swiglu(*d.gate(h, f"{at}mlp."))
        h = d.keep("down", d.linear(h, f"{at}mlp.down_proj"))
        x = d.keep("mlp_residual", x + h * residual)
    return d.logits(x, raw.get("logits_scaling", 1.0))
