"""Gemma 2 (Riviere et al. 2024), with every activation kept.

Differences from Llama: embeddings times sqrt(dim); norms multiply with 1 + weight and are before
and after each half of a layer; GELU in the gate; soft-capped scores and logits; a window on every
second layer.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from definitions import Arithmetic, RopeScaling, attention, geglu, linear, rms_norm, rope
from definitions import rope_angles, soft_cap
from llama import EMBEDDING, HEAD, Parameters, recorder
from tiny_model import TinyModel

MODEL_TYPE = "gemma2"


def _config(**changes: Any) -> dict[str, Any]:
    config: dict[str, Any] = {
        "architectures": ["Gemma2ForCausalLM"],
        "model_type": MODEL_TYPE,
        "vocab_size": 65,
        "hidden_size": 24,
        "intermediate_size": 37,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": 12,
        "attn_logit_softcapping": 2.5,
        "final_logit_softcapping": 3.0,
        "sliding_window": 4,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "max_position_embeddings": 64,
        "tie_word_embeddings": True,
        "bos_token_id": 2,
        "eos_token_id": 1,
        "torch_dtype": "float32",
    }
    return {name: value for name, value in (config | changes).items() if value is not ...}


MODELS = (
    TinyModel(
        "gemma2-caps-and-windows",
        _config(),
        store="embed",
        seq_len=9,
        seen_by={
            "attn_logit_softcapping": None,
            "final_logit_softcapping": None,
            "query_pre_attn_scalar": 8,
            "sliding_window": 5,
        },
    ),
    TinyModel(
        "gemma2-no-caps",
        _config(
            attn_logit_softcapping=None,
            final_logit_softcapping=None,
            sliding_window=5,
            layer_types=["full_attention", "sliding_attention", "full_attention"],
            tie_word_embeddings=False,
            attention_bias=True,
        ),
        seq_len=9,
        seen_by={"layer_types": ["full_attention"] * 3},
    ),
    # As in the released models: scores are scaled by the size of a head.
    TinyModel(
        "gemma2-head-scale",
        _config(hidden_size=12, vocab_size=37, num_attention_heads=2, query_pre_attn_scalar=8),
        store="embed",
        seen_by={"query_pre_attn_scalar": 12, "sliding_window": 5},
    ),
)


def offset(name: str) -> float:
    return 1.0 if name.endswith("norm.weight") else 0.0


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    dim, hidden, head = raw["hidden_size"], raw["intermediate_size"], raw["head_dim"]
    sizes = {"q": raw["num_attention_heads"] * head}
    sizes["k"] = sizes["v"] = raw["num_key_value_heads"] * head
    names: dict[str, tuple[int, ...]] = {EMBEDDING: (raw["vocab_size"], dim)}
    for n in range(raw["num_hidden_layers"]):
        at = f"model.layers.{n}"
        names[f"{at}.input_layernorm.weight"] = (dim,)
        for name, size in sizes.items():
            names[f"{at}.self_attn.{name}_proj.weight"] = (size, dim)
            if raw.get("attention_bias"):
                names[f"{at}.self_attn.{name}_proj.bias"] = (size,)
        names[f"{at}.self_attn.o_proj.weight"] = (dim, sizes["q"])
        if raw.get("attention_bias"):
            names[f"{at}.self_attn.o_proj.bias"] = (dim,)
        names[f"{at}.post_attention_layernorm.weight"] = (dim,)
        names[f"{at}.pre_feedforward_layernorm.weight"] = (dim,)
        names[f"{at}.mlp.gate_proj.weight"] = (hidden, dim)
        names[f"{at}.mlp.up_proj.weight"] = (hidden, dim)
        names[f"{at}.mlp.down_proj.weight"] = (dim, hidden)
        names[f"{at}.post_feedforward_layernorm.weight"] = (dim,)
    names["model.norm.weight"] = (dim,)
    names[HEAD] = (raw["vocab_size"], dim)
    return names


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    trace: dict[str, Tensor] = {}
    eps, head_dim, dim = raw["rms_norm_eps"], raw["head_dim"], raw["hidden_size"]
    angles = rope_angles(
        torch.arange(len(ids)), head_dim, RopeScaling(raw["rope_theta"]), how
    )
    table = weights[EMBEDDING if EMBEDDING in weights.tensors else HEAD]

    def norm(x: Tensor, name: str) -> Tensor:  # 1 + weight is rounded once to f32
        weight = weights[f"{name}.weight"].to(how.dtype) + 1
        return rms_norm(x, weight, eps, how)

    # The factor is rounded to f32, as in transformers.
    scale = torch.tensor(dim**0.5, dtype=torch.float32 if how.angles != "exact" else how.dtype)
    x = recorder(trace)("embedding", table[ids].to(how.dtype) * scale.to(how.dtype))
    for n in range(raw["num_hidden_layers"]):
        at, keep, layer = f"model.layers.{n}", recorder(trace, f"layers.{n}."), weights.layer(n)

        def project(name: str, x: Tensor) -> Tensor:
            return linear(x, layer[f"{name}.weight"], layer.get(f"{name}.bias"), how)

        h = keep("attn_norm", norm(x, f"{at}.input_layernorm"))
        q, k, v = (
            keep(name, project(f"self_attn.{name}_proj", h)).unflatten(-1, (-1, head_dim))
            for name in "qkv"
        )
        q = keep("q_rope", rope(q, *angles, how))
        k = keep("k_rope", rope(k, *angles, how))
        probabilities, mixed = attention(
            q, k, v, _window(raw, n), how,
            scale=raw["query_pre_attn_scalar"] ** -0.5, cap=raw["attn_logit_softcapping"],
        )
        keep("attn_probs", probabilities)
        mixed = keep("attn_out", mixed).flatten(1)
        h = keep("attn_proj", project("self_attn.o_proj", mixed))
        h = keep("attn_post_norm", norm(h, f"{at}.post_attention_layernorm"))
        x = keep("attn_residual", x + h)
        h = keep("mlp_norm", norm(x, f"{at}.pre_feedforward_layernorm"))
        gate, up = keep("gate", project("mlp.gate_proj", h)), keep("up", project("mlp.up_proj", h))
        h = keep("geglu", geglu(gate, up, how))
        h = keep("down", project("mlp.down_proj", h))
        h = keep("mlp_post_norm", norm(h, f"{at}.post_feedforward_layernorm"))
        x = keep("mlp_residual", x + h)
    keep = recorder(trace)
    x = keep("final_norm", norm(x, "model.norm"))
    logits = linear(x, weights[HEAD if HEAD in weights.tensors else EMBEDDING], None, how)
    if (cap := raw["final_logit_softcapping"]) is not None:
        logits = soft_cap(keep("uncapped_logits", logits), cap)
    keep("logits", logits)
    return trace


def _window(raw: dict[str, Any], layer: int) -> int | None:
    types = raw.get("layer_types")
    slides = layer % 2 == 0 if types is None else types[layer] == "sliding_attention"
    return raw["sliding_window"] if slides else None
