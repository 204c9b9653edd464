"""Gemma 1 (Gemma Team 2024), with every activation kept.

Differences from Llama: embeddings times sqrt(dim); norms multiply with 1 + weight; GELU in the
gate.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from decoder import Decoder, decoder_shapes, tiny_config
from definitions import Arithmetic, RopeScaling
from llama import Parameters
from tiny_model import TinyModel

MODEL_TYPE = "gemma"


def _config(**changes: Any) -> dict[str, Any]:
    gemma = {"head_dim": 6, "hidden_act": "gelu_pytorch_tanh", "tie_word_embeddings": True}
    return tiny_config(MODEL_TYPE, "GemmaForCausalLM", **(gemma | changes))


MODELS = (
    TinyModel("gemma-tied", _config(), store="embed", seen_by={"rope_theta": 100.0}),
    TinyModel(
        "gemma-biases",
        _config(
            hidden_act="gelu", attention_bias=True, tie_word_embeddings=False, rms_norm_eps=0.3
        ),
        seen_by={"rms_norm_eps": 0.2},
    ),
)


def offset(name: str) -> float:
    return 1.0 if name.endswith("norm.weight") else 0.0


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    norms = ("input_layernorm", "post_attention_layernorm")
    return decoder_shapes(raw, norms, attention_bias=raw.get("attention_bias", False))


def scaled_embedding(d: Decoder) -> Tensor:
    """The embedding times sqrt(dim); the factor is rounded to f32, as in transformers."""
    dtype = torch.float32 if d.how.angles != "exact" else d.how.dtype
    scale = torch.tensor(d.raw["hidden_size"] ** 0.5, dtype=dtype)
    return d.keep("embedding", d.embedding() * scale.to(d.how.dtype))


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = Decoder(raw, weights, ids, how, norm_plus=1.0)
    angles = d.angles(RopeScaling(raw["rope_theta"]))
    x = scaled_embedding(d)
    for n in range(raw["num_hidden_layers"]):
        at = d.layer(n)
        h = d.keep("attn_norm", d.norm(x, f"{at}input_layernorm"))
        h = d.attention(*d.qkv(h, f"{at}self_attn."), angles)
        x = d.keep("attn_residual", x + d.keep("attn_proj", d.linear(h, f"{at}self_attn.o_proj")))
        h = d.keep("mlp_norm", d.norm(x, f"{at}post_attention_layernorm"))
        h = d.geglu(*d.gate(h, f"{at}mlp."))
        x = d.keep("mlp_residual", x + d.keep("down", d.linear(h, f"{at}mlp.down_proj")))
    return d.logits(x)
