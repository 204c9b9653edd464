"""OLMoE (Muennighoff et al. 2024), with every activation kept.

Differences from Llama: whole rows of q and k are normed; q, k and v may be clipped; each row is
computed by a few of many feed-forward blocks.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from decoder import ExpertsDecoder, decoder_shapes, expert_shapes, q_and_kv_dim, tiny_config
from definitions import Arithmetic, RopeScaling
from llama import Parameters
from tiny_model import TinyModel

MODEL_TYPE = "olmoe"


def _config(**changes: Any) -> dict[str, Any]:
    olmoe = {"hidden_act": "silu", "num_experts": 6, "num_experts_per_tok": 3}
    return tiny_config(MODEL_TYPE, "OlmoeForCausalLM", **(olmoe | changes))


MODELS = (
    TinyModel(
        "olmoe-clip",
        _config(clip_qkv=0.75),
        seen_by={"clip_qkv": 1.0, "norm_topk_prob": True, "num_experts_per_tok": 2},
    ),
    TinyModel(
        "olmoe-normed",
        _config(
            attention_bias=True,
            norm_topk_prob=True,
            num_experts=4,
            num_experts_per_tok=2,
            rms_norm_eps=0.3,
            tie_word_embeddings=True,
        ),
        store="embed",
        seen_by={"norm_topk_prob": False, "rms_norm_eps": 0.2, "rope_theta": 100.0},
    ),
    # One key head per query head and no clipping: a GGUF file can express only this.
    TinyModel(
        "olmoe-mha",
        _config(num_key_value_heads=4),
        seen_by={"norm_topk_prob": True, "num_experts_per_tok": 2},
    ),
)


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    names = decoder_shapes(
        raw,
        ("input_layernorm", "post_attention_layernorm"),
        head_norms=q_and_kv_dim(raw),
        attention_bias=raw.get("attention_bias", False),
        mlp=False,
    )
    for n in range(raw["num_hidden_layers"]):
        at = f"model.layers.{n}.mlp."
        names |= expert_shapes(raw, at, raw["num_experts"], "intermediate_size")
    return names


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = ExpertsDecoder(raw, weights, ids, how)
    angles = d.angles(RopeScaling(raw["rope_theta"]))
    x = d.keep("embedding", d.embedding())
    for n in range(raw["num_hidden_layers"]):
        at = d.layer(n)
        h = d.keep("attn_norm", d.norm(x, f"{at}input_layernorm"))
        q, k, v = d.qkv(h, f"{at}self_attn.")
        q = d.keep("q_norm", d.norm(q, f"{at}self_attn.q_norm"))
        k = d.keep("k_norm", d.norm(k, f"{at}self_attn.k_norm"))
        h = d.attention(*d.clip_qkv(q, k, v), angles)
        x = d.keep("attn_residual", x + d.keep("attn_proj", d.linear(h, f"{at}self_attn.o_proj")))
        h = d.keep("mlp_norm", d.norm(x, f"{at}post_attention_layernorm"))
        h = d.experts(h, f"{at}mlp.", normed=raw.get("norm_topk_prob", False))
        x = d.keep("mlp_residual", x + h)
    return d.logits(x)
