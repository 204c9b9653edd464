"""Falcon (Almazrouei et al. 2023), three generations, with every activation kept.

Differences from GPT-NeoX: RoPE of whole heads, or ALiBi; queries may share key heads; one norm for
both halves of a layer, two, or one before each half.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from decoder import LayerNormDecoder, layer_norm_shapes, linear_shapes, tiny_config
from definitions import Arithmetic, RopeScaling, alibi_slopes
from llama import HEAD, Parameters
from tiny_model import TinyModel

MODEL_TYPE = "falcon"
EMBEDDING = "transformer.word_embeddings.weight"
# transformers' eager code adds ALiBi twice: inside the mask, and once more.
ATTENTION = "sdpa"


def _config(**changes: Any) -> dict[str, Any]:
    falcon = {
        "intermediate_size": ...,
        "num_key_value_heads": ...,
        "rms_norm_eps": ...,
        "layer_norm_epsilon": 1e-5,
        "alibi": False,
        "bias": False,
        "multi_query": True,
        "new_decoder_architecture": False,
        "parallel_attn": True,
        "tie_word_embeddings": True,
    }
    return tiny_config(MODEL_TYPE, "FalconForCausalLM", **(falcon | changes))


MODELS = (
    # falcon-7b: its files have num_kv_heads, which is unused.
    TinyModel(
        "falcon-one-key-head",
        _config(num_kv_heads=4, ffn_hidden_size=23),
        store="embed",
        seen_by={"rope_theta": 100.0},
    ),
    # falcon-40b
    TinyModel(
        "falcon-two-norms",
        _config(
            hidden_size=24,
            num_attention_heads=6,
            num_kv_heads=2,
            new_decoder_architecture=True,
            rope_theta=...,
            rope_scaling={"type": "linear", "factor": 2.5},
        ),
        store="embed",
        seen_by={"rope_scaling": None},
    ),
    # falcon-11b
    TinyModel(
        "falcon-one-norm",
        _config(
            num_kv_heads=2,
            new_decoder_architecture=True,
            num_ln_in_parallel_attn=1,
            activation="relu",
            layer_norm_epsilon=0.3,
            tie_word_embeddings=False,
        ),
        seen_by={"layer_norm_epsilon": 0.2, "activation": "gelu"},
    ),
    # falcon-rw-1b
    TinyModel(
        "falcon-alibi",
        _config(
            hidden_size=18,
            num_attention_heads=3,
            rope_theta=...,
            alibi=True,
            bias=True,
            multi_query=False,
            parallel_attn=False,
        ),
        store="embed",
        seen_by={"alibi": False, "parallel_attn": True},
    ),
)


def _n_kv_heads(raw: dict[str, Any]) -> int:
    if raw["multi_query"] and not raw["new_decoder_architecture"]:
        return 1
    return raw.get("num_kv_heads") or raw["num_attention_heads"]


def _norms(raw: dict[str, Any]) -> list[str]:
    if not raw["parallel_attn"]:
        return ["input_layernorm", "post_attention_layernorm"]
    usual = 2 if raw["new_decoder_architecture"] else 1
    two = raw.get("num_ln_in_parallel_attn", usual) == 2
    return ["ln_attn", "ln_mlp"] if two else ["input_layernorm"]


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    dim, bias = raw["hidden_size"], raw["bias"]
    hidden = raw.get("ffn_hidden_size") or 4 * dim
    qkv = dim + 2 * _n_kv_heads(raw) * (dim // raw["num_attention_heads"])
    names: dict[str, tuple[int, ...]] = {EMBEDDING: (raw["vocab_size"], dim)}
    for n in range(raw["num_hidden_layers"]):
        at = f"transformer.h.{n}."
        for norm in _norms(raw):
            names |= layer_norm_shapes(f"{at}{norm}", dim)
        names |= linear_shapes(f"{at}self_attention.query_key_value", qkv, dim, bias)
        names |= linear_shapes(f"{at}self_attention.dense", dim, dim, bias)
        names |= linear_shapes(f"{at}mlp.dense_h_to_4h", hidden, dim, bias)
        names |= linear_shapes(f"{at}mlp.dense_4h_to_h", dim, hidden, bias)
    return names | layer_norm_shapes("transformer.ln_f", dim) | {HEAD: (raw["vocab_size"], dim)}


class _Falcon(LayerNormDecoder):
    embedding_name = EMBEDDING
    layers, final_norm = "transformer.h.", "transformer.ln_f"
    eps_name = "layer_norm_epsilon"


def _angles(d: _Falcon) -> tuple[Tensor, Tensor]:
    scaling = d.raw.get("rope_scaling") or {"type": "default"}
    theta, factor = d.raw.get("rope_theta", 10000.0), scaling.get("factor", 1.0)
    return d.angles(RopeScaling(theta, scaling["type"], factor))


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = _Falcon(raw, weights, ids, how)
    angles, slopes = None, None
    if raw["alibi"]:  # added before scores are scaled
        slopes = alibi_slopes(raw["num_attention_heads"]).to(torch.bfloat16).double()
        slopes = slopes * d.head_dim**-0.5
    else:
        angles = _angles(d)
    first, *second = _norms(raw)
    x = d.keep("embedding", d.embedding())
    for n in range(raw["num_hidden_layers"]):
        at = d.layer(n)
        h = d.keep("attn_norm", d.norm(x, f"{at}{first}"))
        qkv = d.fused_qkv(h, f"{at}self_attention.query_key_value", _n_kv_heads(raw))
        mixed = d.attention(*qkv, angles, slopes=slopes)
        if second == ["ln_mlp"]:
            h = d.keep("mlp_norm", d.norm(x, f"{at}ln_mlp"))
        mixed = d.keep("attn_proj", d.linear(mixed, f"{at}self_attention.dense"))
        x = d.keep("attn_residual", x + mixed)
        if second == ["post_attention_layernorm"]:
            h = d.keep("mlp_norm", d.norm(x, f"{at}post_attention_layernorm"))
        activation = raw.get("activation", "gelu")
        h = d.mlp(h, f"{at}mlp.dense_h_to_4h", f"{at}mlp.dense_4h_to_h", activation)
        x = d.keep("mlp_residual", x + h)
    return d.logits(x)
