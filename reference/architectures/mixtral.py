"""Mixtral (Jiang et al. 2024), with every activation kept.

Difference from Mistral: each row is computed by a few of many feed-forward blocks.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from decoder import ExpertsDecoder, decoder_shapes, expert_shapes, tiny_config
from definitions import Arithmetic, RopeScaling
from llama import Parameters
from tiny_model import TinyModel

MODEL_TYPE = "mixtral"
_NAMES = ("w1", "w3", "w2")


def _config(**changes: Any) -> dict[str, Any]:
    mixtral = {"hidden_act": "silu", "num_local_experts": 5, "num_experts_per_tok": 2}
    return tiny_config(MODEL_TYPE, "MixtralForCausalLM", **(mixtral | changes))


MODELS = (
    TinyModel("mixtral-2-of-5", _config(), seen_by={"num_experts_per_tok": 3}),
    TinyModel(
        "mixtral-window4",
        _config(
            sliding_window=4,
            head_dim=6,
            num_local_experts=3,
            hidden_act="gelu",
            rope_theta=...,
            rms_norm_eps=0.3,
            tie_word_embeddings=True,
        ),
        store="embed",
        seq_len=9,
        seen_by={"sliding_window": 5, "rms_norm_eps": 0.2, "hidden_act": "silu"},
    ),
)


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    names = decoder_shapes(raw, ("input_layernorm", "post_attention_layernorm"), mlp=False)
    for n in range(raw["num_hidden_layers"]):
        at = f"model.layers.{n}.block_sparse_moe."
        names |= expert_shapes(raw, at, raw["num_local_experts"], "intermediate_size", _NAMES)
    return names


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = ExpertsDecoder(raw, weights, ids, how)
    angles = d.angles(RopeScaling(raw.get("rope_theta", 1e6)))
    x = d.keep("embedding", d.embedding())
    for n in range(raw["num_hidden_layers"]):
        at = d.layer(n)
        h = d.keep("attn_norm", d.norm(x, f"{at}input_layernorm"))
        h = d.attention(*d.qkv(h, f"{at}self_attn."), angles, raw.get("sliding_window"))
        x = d.keep("attn_residual", x + d.keep("attn_proj", d.linear(h, f"{at}self_attn.o_proj")))
        h = d.keep("mlp_norm", d.norm(x, f"{at}post_attention_layernorm"))
        h = d.experts(h, f"{at}block_sparse_moe.", normed=True, names=_NAMES)
        x = d.keep("mlp_residual", x + h)
    return d.logits(x)
