"""Qwen3-MoE (Yang et al. 2025), with every activation kept.

Differences from Qwen3: some layers have experts.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from decoder import decoder_shapes, expert_shapes, head_dim, tiny_config
from decoder import ExpertsDecoder, has_experts, without_dense
from definitions import Arithmetic, RopeScaling
from llama import Parameters
from tiny_model import TinyModel

MODEL_TYPE = "qwen3_moe"


def _config(**changes: Any) -> dict[str, Any]:
    qwen = {
        "hidden_act": "silu",
        "head_dim": 6,
        "num_experts": 7,
        "num_experts_per_tok": 3,
        "moe_intermediate_size": 11,
        "norm_topk_prob": True,
    }
    return tiny_config(MODEL_TYPE, "Qwen3MoeForCausalLM", **(qwen | changes))


MODELS = (
    TinyModel(
        "qwen3-moe-3-of-7",
        _config(tie_word_embeddings=True),
        store="embed",
        seen_by={"norm_topk_prob": False, "num_experts_per_tok": 2},
    ),
    TinyModel(
        "qwen3-moe-layers",
        _config(
            num_hidden_layers=3,
            mlp_only_layers=[0],
            attention_bias=True,
            norm_topk_prob=...,
            use_sliding_window=True,
            sliding_window=4,
        ),
        seq_len=9,
        seen_by={"norm_topk_prob": True, "sliding_window": 5},
    ),
)


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    size = head_dim(raw)
    names = decoder_shapes(
        raw,
        ("input_layernorm", "post_attention_layernorm"),
        head_norms=(size, size),
        attention_bias=raw.get("attention_bias", False),
    )
    for n in range(raw["num_hidden_layers"]):
        if has_experts(raw, n):
            at = f"model.layers.{n}.mlp."
            without_dense(names, n)
            names |= expert_shapes(raw, at, raw["num_experts"], "moe_intermediate_size")
    return names


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = ExpertsDecoder(raw, weights, ids, how)
    angles = d.angles(RopeScaling(raw["rope_theta"]))
    window = raw.get("sliding_window") if raw.get("use_sliding_window", False) else None
    x = d.keep("embedding", d.embedding())
    for n in range(raw["num_hidden_layers"]):
        at = d.layer(n)
        h = d.keep("attn_norm", d.norm(x, f"{at}input_layernorm"))
        q, k, v = d.qkv(h, f"{at}self_attn.")
        q = d.keep("q_norm", d.head_norm(q, f"{at}self_attn.q_norm"))
        k = d.keep("k_norm", d.head_norm(k, f"{at}self_attn.k_norm"))
        h = d.attention(q, k, v, angles, window)
        x = d.keep("attn_residual", x + d.keep("attn_proj", d.linear(h, f"{at}self_attn.o_proj")))
        h = d.keep("mlp_norm", d.norm(x, f"{at}post_attention_layernorm"))
        if has_experts(raw, n):
            block = d.experts(h, f"{at}mlp.", normed=raw.get("norm_topk_prob", False))
        else:
            block = d.gated(*d.gate(h, f"{at}mlp."))
            block = d.keep("down", d.linear(block, f"{at}mlp.down_proj"))
        x = d.keep("mlp_residual", x + block)
    return d.logits(x)
