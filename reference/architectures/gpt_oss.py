"""gpt-oss (OpenAI 2025), with every activation kept.

Differences from Mixtral: the softmax of attention has a sink for each head; every second layer has
a window; RoPE is scaled (yarn); linear layers and experts have biases; SwiGLU is clamped.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from decoder import Decoder, decoder_shapes, linear_shapes, tiny_config
from definitions import Arithmetic, RopeScaling, clamped_swiglu, dot, softmax
from llama import Parameters
from tiny_model import TinyModel

MODEL_TYPE = "gpt_oss"

YARN = {
    "rope_type": "yarn",
    "factor": 4.0,
    "beta_fast": 4.0,
    "beta_slow": 1.0,
    "truncate": False,
    "original_max_position_embeddings": 16,
}


def _config(**changes: Any) -> dict[str, Any]:
    gpt_oss = {
        "head_dim": 6,
        "hidden_act": "silu",
        "rope_theta": 150000.0,
        "rope_scaling": YARN,
        "sliding_window": 4,
        "num_local_experts": 5,
        "num_experts_per_tok": 2,
        "swiglu_limit": 0.75,
    }
    return tiny_config(MODEL_TYPE, "GptOssForCausalLM", **(gpt_oss | changes))


MODELS = (
    # Without "layer_types", as in older files: every second layer has a window. The limit is so low
    # that the tiny model reaches it.
    TinyModel(
        "gpt-oss-2-of-5",
        _config(num_hidden_layers=3, rope_theta=10.0),
        seq_len=9,
        seen_by={
            "swiglu_limit": 7.0,
            "sliding_window": 5,
            "rope_scaling": YARN | {"truncate": True},
        },
    ),
    # With the limit of the released models, which is not in a GGUF file. llama.cpp rounds the
    # bounds of yarn; here they are almost whole numbers (0 and 2), so that this makes no
    # difference.
    TinyModel(
        "gpt-oss-usual-limit",
        _config(
            num_hidden_layers=3,
            rope_theta=10.0,
            swiglu_limit=7.0,
            rope_scaling=YARN | {"beta_fast": 2.5465, "beta_slow": 0.5487},
        ),
        seq_len=9,
        seen_by={"sliding_window": 5, "rope_scaling": YARN},
    ),
    # With "layer_types", as in newer files. All experts are chosen.
    TinyModel(
        "gpt-oss-layer-types",
        _config(
            layer_types=["full_attention", "sliding_attention"],
            num_local_experts=3,
            num_experts_per_tok=3,
            attention_bias=False,
            swiglu_alpha=0.5,
            rope_theta=...,
            rope_scaling=...,
            rope_parameters=YARN | {"rope_theta": 50.0, "factor": 8.0, "attention_factor": 1.25},
            tie_word_embeddings=True,
        ),
        store="embed",
        seq_len=9,
        seen_by={"swiglu_alpha": 1.702, "layer_types": ["full_attention", "full_attention"]},
    ),
)


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    norms = ("input_layernorm", "post_attention_layernorm")
    bias = raw.get("attention_bias", True)
    names = decoder_shapes(raw, norms, attention_bias=bias, mlp=False)
    dim, inner, n_experts = raw["hidden_size"], raw["intermediate_size"], raw["num_local_experts"]
    for n in range(raw["num_hidden_layers"]):
        at = f"model.layers.{n}."
        names[f"{at}self_attn.sinks"] = (raw["num_attention_heads"],)
        names |= linear_shapes(f"{at}mlp.router", n_experts, dim, True)
        names[f"{at}mlp.experts.gate_up_proj"] = (n_experts, dim, 2 * inner)
        names[f"{at}mlp.experts.gate_up_proj_bias"] = (n_experts, 2 * inner)
        names[f"{at}mlp.experts.down_proj"] = (n_experts, inner, dim)
        names[f"{at}mlp.experts.down_proj_bias"] = (n_experts, dim)
    return names


def _slides(raw: dict[str, Any], n: int) -> bool:
    if "layer_types" in raw:
        return raw["layer_types"][n] == "sliding_attention"
    return n % 2 == 0


def _rope(raw: dict[str, Any]) -> RopeScaling:
    fields = raw.get("rope_scaling") or raw["rope_parameters"]
    return RopeScaling(**({"rope_theta": raw.get("rope_theta", 150000.0)} | fields))


class GptOssDecoder(Decoder):
    def experts(self, h: Tensor, at: str) -> Tensor:
        """The weighted sum of each row's experts. All experts are computed here; those that were
        not chosen have weight 0."""
        scores = self.keep("router", self.linear(h, f"{at}router"))
        chosen = torch.topk(scores, self.raw["num_experts_per_tok"], dim=-1)
        some = softmax(chosen.values, self.how)
        routing_weights = self.keep("routing_weights", torch.zeros_like(scores).scatter(-1, chosen.indices, some))
        total = torch.zeros_like(h)
        for e in range(scores.shape[-1]):
            total = total + routing_weights[:, e : e + 1] * self._expert(h, f"{at}experts.", e)
        return self.keep("experts", total)

    def _expert(self, h: Tensor, at: str, e: int) -> Tensor:
        def linear(x: Tensor, name: str) -> Tensor:
            bias = self.weights[f"{at}{name}_bias"][e].to(self.how.dtype)
            return dot(x, self.weights[f"{at}{name}"][e].T, self.how) + bias

        both = linear(h, "gate_up_proj")
        limit, alpha = self.raw.get("swiglu_limit", 7.0), self.raw.get("swiglu_alpha", 1.702)
        inner = clamped_swiglu(both[:, ::2], both[:, 1::2], alpha, limit, self.how)
        return linear(inner, "down_proj")


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = GptOssDecoder(raw, weights, ids, how)
    rope = _rope(raw)
    angles = d.angles(rope)
    scale = d.head_dim**-0.5 * rope.score_factor
    x = d.keep("embedding", d.embedding())
    for n in range(raw["num_hidden_layers"]):
        at = d.layer(n)
        window = raw["sliding_window"] if _slides(raw, n) else None
        sinks = weights[f"{at}self_attn.sinks"]
        h = d.keep("attn_norm", d.norm(x, f"{at}input_layernorm"))
        h = d.attention(*d.qkv(h, f"{at}self_attn."), angles, window, scale, sinks=sinks)
        x = d.keep("attn_residual", x + d.keep("attn_proj", d.linear(h, f"{at}self_attn.o_proj")))
        h = d.keep("mlp_norm", d.norm(x, f"{at}post_attention_layernorm"))
        x = d.keep("mlp_residual", x + d.experts(h, f"{at}mlp."))
    return d.logits(x)
