"""Qwen2-MoE (Qwen Team 2024), with every activation kept.

Differences from Qwen2: some layers have experts, and one more expert that computes every row.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from decoder import decoder_shapes, expert_shapes, gated_shapes, linear_shapes, tiny_config
from decoder import ExpertsDecoder, has_experts, without_dense
from definitions import Arithmetic, RopeScaling
from llama import Parameters
from tiny_model import TinyModel

MODEL_TYPE = "qwen2_moe"


def _config(**changes: Any) -> dict[str, Any]:
    qwen = {
        "hidden_act": "silu",
        "num_experts": 5,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 11,
        "shared_expert_intermediate_size": 13,
    }
    return tiny_config(MODEL_TYPE, "Qwen2MoeForCausalLM", **(qwen | changes))


MODELS = (
    TinyModel(
        "qwen2-moe-shared",
        _config(),
        seen_by={"norm_topk_prob": True, "num_experts_per_tok": 3},
    ),
    # decoder_sparse_step gives experts to layers 1 and 3, the list removes them from layer 1.
    # Layers 0 and 2 have a window.
    TinyModel(
        "qwen2-moe-layers",
        _config(
            num_hidden_layers=4,
            mlp_only_layers=[1],
            decoder_sparse_step=2,
            norm_topk_prob=True,
            qkv_bias=False,
            use_sliding_window=True,
            sliding_window=4,
            max_window_layers=3,
            tie_word_embeddings=True,
        ),
        store="embed",
        seq_len=9,
        seen_by={"norm_topk_prob": False, "sliding_window": 5, "max_window_layers": 1},
    ),
    TinyModel(
        "qwen2-moe-layer-types",
        _config(
            use_sliding_window=True,
            sliding_window=4,
            layer_types=["full_attention", "sliding_attention"],
            hidden_act="gelu",
        ),
        seq_len=9,
        seen_by={"layer_types": ["sliding_attention", "full_attention"], "hidden_act": "silu"},
    ),
)


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    names = decoder_shapes(raw, ("input_layernorm", "post_attention_layernorm"))
    dim, shared = raw["hidden_size"], raw["shared_expert_intermediate_size"]
    q_dim = raw["num_attention_heads"] * (dim // raw["num_attention_heads"])
    kv_dim = q_dim // raw["num_attention_heads"] * raw["num_key_value_heads"]
    for n in range(raw["num_hidden_layers"]):
        at = f"model.layers.{n}."
        if raw.get("qkv_bias", True):
            for name, size in (("q", q_dim), ("k", kv_dim), ("v", kv_dim)):
                names[f"{at}self_attn.{name}_proj.bias"] = (size,)
        if has_experts(raw, n):
            without_dense(names, n)
            names |= expert_shapes(raw, f"{at}mlp.", raw["num_experts"], "moe_intermediate_size")
            names |= gated_shapes(f"{at}mlp.shared_expert.", dim, shared)
            names |= linear_shapes(f"{at}mlp.shared_expert_gate", 1, dim, False)
    return names


def _windows(raw: dict[str, Any]) -> list[int | None]:
    n, window = raw["num_hidden_layers"], raw.get("sliding_window")
    if not raw.get("use_sliding_window", False):
        return [None] * n
    if types := raw.get("layer_types"):
        return [window if kind == "sliding_attention" else None for kind in types]
    return [window if i % 2 == 0 and i < raw["max_window_layers"] else None for i in range(n)]


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = ExpertsDecoder(raw, weights, ids, how)
    angles = d.angles(RopeScaling(raw["rope_theta"]))
    windows = _windows(raw)
    x = d.keep("embedding", d.embedding())
    for n in range(raw["num_hidden_layers"]):
        at = d.layer(n)
        h = d.keep("attn_norm", d.norm(x, f"{at}input_layernorm"))
        h = d.attention(*d.qkv(h, f"{at}self_attn."), angles, windows[n])
        x = d.keep("attn_residual", x + d.keep("attn_proj", d.linear(h, f"{at}self_attn.o_proj")))
        h = d.keep("mlp_norm", d.norm(x, f"{at}post_attention_layernorm"))
        if not has_experts(raw, n):
            h = d.gated(*d.gate(h, f"{at}mlp."))
            x = d.keep("mlp_residual", x + d.keep("down", d.linear(h, f"{at}mlp.down_proj")))
            continue
        block = d.experts(h, f"{at}mlp.", normed=raw.get("norm_topk_prob", False))
        x = d.keep("mlp_residual", x + block)
        x = d.keep("shared_residual", x + d.shared_expert(h, f"{at}mlp."))
    return d.logits(x)
