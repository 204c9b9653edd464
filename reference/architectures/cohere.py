"""Command R (Cohere 2024), with every activation kept.

Differences from Llama: one LayerNorm per layer, without a bias, for both halves; RoPE of
neighbouring columns; scaled logits; a LayerNorm of each head of q and k with its own weights, if
the config says so.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from decoder import LayerNormDecoder, decoder_shapes, head_dim, tiny_config
from definitions import Arithmetic, RopeScaling, neighbour_rope
from llama import Parameters
from tiny_model import TinyModel

MODEL_TYPE = "cohere"


def config(model_type: str, architecture: str, **changes: Any) -> dict[str, Any]:
    cohere = {
        "hidden_act": "silu",
        "rms_norm_eps": ...,
        "layer_norm_eps": 1e-5,
        "logit_scale": 0.125,
        "tie_word_embeddings": True,
    }
    return tiny_config(model_type, architecture, **(cohere | changes))


def _config(**changes: Any) -> dict[str, Any]:
    return config(MODEL_TYPE, "CohereForCausalLM", **changes)


MODELS = (
    TinyModel(
        "cohere-tied",
        _config(rope_theta=500000.0, attention_bias=True),
        store="embed",
        seen_by={"logit_scale": 0.25, "rope_theta": 100.0},
    ),
    # Missing fields have transformers' defaults.
    TinyModel(
        "cohere-head-norms",
        _config(
            use_qk_norm=True,
            logit_scale=...,
            layer_norm_eps=0.3,
            hidden_act="gelu",
            tie_word_embeddings=False,
        ),
        seen_by={"logit_scale": 0.25, "layer_norm_eps": 0.2, "use_qk_norm": False},
    ),
)


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    names = decoder_shapes(
        raw,
        ("input_layernorm",),
        head_norms=(0, 0) if raw.get("use_qk_norm") else None,
        attention_bias=raw.get("attention_bias", False),
    )
    heads = {"q": raw["num_attention_heads"], "k": raw["num_key_value_heads"]}
    for name in names:
        if name.endswith(("q_norm.weight", "k_norm.weight")):
            names[name] = (heads[name[-len("q_norm.weight")]], head_dim(raw))
    return names


class Cohere(LayerNormDecoder):
    rope = staticmethod(neighbour_rope)

    def head_norms(self, q: Tensor, k: Tensor, at: str) -> tuple[Tensor, Tensor]:
        if not self.raw.get("use_qk_norm"):
            return q, k
        q, k = (y.unflatten(-1, (-1, self.head_dim)) for y in (q, k))
        q = self.keep("q_norm", self.norm(q, f"{at}q_norm"))
        k = self.keep("k_norm", self.norm(k, f"{at}k_norm"))
        return q.flatten(1), k.flatten(1)


def layer(
    d: Cohere,
    n: int,
    x: Tensor,
    angles: tuple[Tensor, Tensor] | None,
    window: int | None = None,
) -> Tensor:
    at = d.layer(n)
    h = d.keep("norm", d.norm(x, f"{at}input_layernorm"))
    q, k, v = d.qkv(h, f"{at}self_attn.")
    q, k = d.head_norms(q, k, f"{at}self_attn.")
    mixed = d.attention(q, k, v, angles, window)
    x = d.keep("attn_residual", x + d.keep("attn_proj", d.linear(mixed, f"{at}self_attn.o_proj")))
    h = d.gated(*d.gate(h, f"{at}mlp."))
    return d.keep("mlp_residual", x + d.keep("down", d.linear(h, f"{at}mlp.down_proj")))


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = Cohere(raw, weights, ids, how)
    angles = d.angles(RopeScaling(raw["rope_theta"]))
    x = d.keep("embedding", d.embedding())
    for n in range(raw["num_hidden_layers"]):
        x = layer(d, n, x, angles)
    return d.logits(x, 1 / raw.get("logit_scale", 0.0625))
