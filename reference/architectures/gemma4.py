"""Gemma 4 (Google 2026), text only, with every activation kept.

Differences from Gemma 3: norms multiply with their stored weight; values are normed, without a
weight; heads of global layers have another size, and their values may be their keys; the last
layers may use keys and values of earlier ones; each layer may add its own numbers for the token;
there may be experts in addition to the feed-forward block.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from architectures.gemma import scaled_embedding
from decoder import Decoder, linear_shapes, tiny_config
from definitions import Arithmetic, RopeScaling, dot, geglu, inverse_frequencies, rms_norm
from definitions import rope_cos_sin, softmax
from llama import EMBEDDING, HEAD, Parameters
from tiny_model import TinyModel

MODEL_TYPE = "gemma4_text"

LAYER_EMBEDDING = "model.embed_tokens_per_layer.weight"

ROPE = {
    "sliding_attention": {"rope_type": "default", "rope_theta": 300.0},
    "full_attention": {
        "rope_type": "proportional",
        "partial_rotary_factor": 0.5,
        "rope_theta": 50.0,
    },
}


def _kinds(letters: str) -> list[str]:
    """l: local, g: global."""
    return [{"l": "sliding_attention", "g": "full_attention"}[letter] for letter in letters]


def _config(**changes: Any) -> dict[str, Any]:
    gemma = {
        "head_dim": 6,
        "global_head_dim": 8,
        "hidden_activation": "gelu_pytorch_tanh",
        "sliding_window": 4,
        "rope_theta": ...,
        "rope_parameters": ROPE,
        "hidden_size_per_layer_input": 0,
        "vocab_size_per_layer_input": 37,
        "tie_word_embeddings": True,
    }
    return tiny_config(MODEL_TYPE, "Gemma4ForCausalLM", **(gemma | changes))


MODELS = (
    # As in the larger models: in global layers, the values are the keys.
    TinyModel(
        "gemma4-keys-as-values",
        _config(
            num_hidden_layers=4,
            layer_types=_kinds("lglg"),
            attention_k_eq_v=True,
            num_global_key_value_heads=1,
            final_logit_softcapping=3.0,
        ),
        store="embed",
        seen_by={
            "sliding_window": 5,
            "rope_parameters": ROPE | {"full_attention": ROPE["full_attention"] | {"rope_theta": 60.0}},
            "final_logit_softcapping": 4.0,
        },
    ),
    # As in the models for phones: each layer's own numbers per token; the last three layers store
    # no keys and values.
    TinyModel(
        "gemma4-shared-caches",
        _config(
            num_hidden_layers=5,
            layer_types=_kinds("lgllg"),
            hidden_size_per_layer_input=4,
            num_kv_shared_layers=3,
            use_double_wide_mlp=True,
            attention_bias=True,
        ),
        store="embed",
        seen_by={"sliding_window": 5, "rms_norm_eps": 0.1},
    ),
    # Experts. The config lists neither kinds of layers nor RoPE: every sixth layer is global, and
    # always the last one; a quarter of the pairs in its heads is rotated.
    TinyModel(
        "gemma4-2-of-5-experts",
        _config(
            num_hidden_layers=3,
            layer_types=...,
            rope_parameters=...,
            enable_moe_block=True,
            num_experts=5,
            top_k_experts=2,
            moe_intermediate_size=7,
            tie_word_embeddings=False,
        ),
        seen_by={"top_k_experts": 3, "sliding_window": 5},
    ),
)


def _is_global(raw: dict[str, Any], n: int) -> bool:
    last = raw["num_hidden_layers"] - 1
    if "layer_types" in raw:
        return n == last or raw["layer_types"][n] == "full_attention"
    return n == last or (n + 1) % 6 == 0


def _is_shared(raw: dict[str, Any], n: int) -> bool:
    return n >= raw["num_hidden_layers"] - raw.get("num_kv_shared_layers", 0)


def _head_dim(raw: dict[str, Any], n: int) -> int:
    return raw["global_head_dim"] if _is_global(raw, n) else raw["head_dim"]


def _keys_are_values(raw: dict[str, Any], n: int) -> bool:
    return raw.get("attention_k_eq_v", False) and _is_global(raw, n)


def _ffn_dim(raw: dict[str, Any], n: int) -> int:
    wide = raw.get("use_double_wide_mlp", False) and _is_shared(raw, n)
    return raw["intermediate_size"] * (2 if wide else 1)


def _attention_shapes(raw: dict[str, Any], n: int, at: str) -> dict[str, tuple[int, ...]]:
    dim, size, bias = raw["hidden_size"], _head_dim(raw, n), raw.get("attention_bias", False)
    q_dim = raw["num_attention_heads"] * size
    few = "num_global_key_value_heads" if _keys_are_values(raw, n) else "num_key_value_heads"
    names = linear_shapes(f"{at}q_proj", q_dim, dim, bias)
    names[f"{at}q_norm.weight"] = (size,)
    if not _is_shared(raw, n):
        names |= linear_shapes(f"{at}k_proj", raw[few] * size, dim, bias)
        names[f"{at}k_norm.weight"] = (size,)
        if not _keys_are_values(raw, n):
            names |= linear_shapes(f"{at}v_proj", raw[few] * size, dim, bias)
    return names | linear_shapes(f"{at}o_proj", dim, q_dim, bias)


def _expert_shapes(raw: dict[str, Any], at: str) -> dict[str, tuple[int, ...]]:
    dim, inner, n = raw["hidden_size"], raw["moe_intermediate_size"], raw["num_experts"]
    return {
        f"{at}router.scale": (dim,),
        f"{at}router.proj.weight": (n, dim),
        f"{at}router.per_expert_scale": (n,),
        f"{at}experts.gate_up_proj": (n, 2 * inner, dim),
        f"{at}experts.down_proj": (n, dim, inner),
    }


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    dim, width = raw["hidden_size"], raw["hidden_size_per_layer_input"]
    names: dict[str, tuple[int, ...]] = {EMBEDDING: (raw["vocab_size"], dim)}
    if width:
        all_layers = raw["num_hidden_layers"] * width
        names[LAYER_EMBEDDING] = (raw["vocab_size"], all_layers)
        names["model.per_layer_model_projection.weight"] = (all_layers, dim)
        names["model.per_layer_projection_norm.weight"] = (width,)
    norms = ["input_layernorm", "post_attention_layernorm"]
    norms += ["pre_feedforward_layernorm", "post_feedforward_layernorm"]
    if raw.get("enable_moe_block"):
        norms += ["post_feedforward_layernorm_1", "pre_feedforward_layernorm_2"]
        norms += ["post_feedforward_layernorm_2"]
    if width:
        norms += ["post_per_layer_input_norm"]
    for n in range(raw["num_hidden_layers"]):
        at = f"model.layers.{n}."
        names |= {f"{at}{norm}.weight": (dim,) for norm in norms}
        names |= _attention_shapes(raw, n, f"{at}self_attn.")
        for name in ("gate_proj", "up_proj"):
            names |= linear_shapes(f"{at}mlp.{name}", _ffn_dim(raw, n), dim, False)
        names |= linear_shapes(f"{at}mlp.down_proj", dim, _ffn_dim(raw, n), False)
        if raw.get("enable_moe_block"):
            names |= _expert_shapes(raw, at)
        if width:
            names |= linear_shapes(f"{at}per_layer_input_gate", width, dim, False)
            names |= linear_shapes(f"{at}per_layer_projection", dim, width, False)
        names[f"{at}layer_scalar"] = (1,)
    return names | {"model.norm.weight": (dim,), HEAD: (raw["vocab_size"], dim)}


class Gemma4Decoder(Decoder):
    def parameter(self, name: str) -> Tensor:
        return self.weights[name].to(self.how.dtype)

    def kind_angles(self, n: int) -> tuple[Tensor, Tensor]:
        """The angles for the kind of layer n. "proportional" RoPE does not rotate the slow
        pairs."""
        name = "full_attention" if _is_global(self.raw, n) else "sliding_attention"
        given = {
            "full_attention": {
                "rope_type": "proportional",
                "partial_rotary_factor": 0.25,
                "rope_theta": 1e6,
            },
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        }
        rope = self.raw.get("rope_parameters", given)[name]
        size = _head_dim(self.raw, n)
        precision = torch.float64 if self.how.angles == "exact" else torch.float32
        frequencies = inverse_frequencies(size, RopeScaling(rope["rope_theta"]), precision)
        if rope["rope_type"] == "proportional":
            frequencies[int(rope["partial_rotary_factor"] * size // 2) :] = 0.0
        return rope_cos_sin(torch.arange(len(self.ids)), frequencies, self.how)

    def layer_inputs(self, x: Tensor) -> Tensor:
        """What each layer adds, from the token and its embedding: [S, layers, width]."""
        width = self.raw["hidden_size_per_layer_input"]
        token = self.parameter(LAYER_EMBEDDING)[self.ids] * width**0.5
        self.keep("layer_embedding", token)
        y = self.keep("layer_projection", self.linear(x, "model.per_layer_model_projection"))
        y = self.keep("layer_projection_scaled", y * self.raw["hidden_size"] ** -0.5)
        y = self.norm(y.unflatten(-1, (-1, width)), "model.per_layer_projection_norm").flatten(1)
        y = self.keep("layer_sum", self.keep("layer_projection_norm", y) + token)
        return self.keep("layer_inputs", y * 2**-0.5).unflatten(-1, (-1, width))

    def keys_and_values(self, h: Tensor, n: int, at: str) -> tuple[Tensor, Tensor]:
        k = self.keep("k", self.linear(h, f"{at}k_proj"))
        v = self.keep("v", k if _keys_are_values(self.raw, n) else self.linear(h, f"{at}v_proj"))
        v = v.unflatten(-1, (-1, self.head_dim))
        ones = torch.ones(self.head_dim, dtype=self.how.dtype)
        v = self.keep("v_norm", rms_norm(v, ones, self.raw["rms_norm_eps"], self.how))
        return k, v.flatten(1)

    def attends(self, h: Tensor, n: int, at: str, kept: dict[bool, tuple[Tensor, Tensor]]) -> Tensor:
        """kept: keys (rotated) and values of the last layer of each kind that has its own."""
        self.head_dim = _head_dim(self.raw, n)
        is_global, shared = _is_global(self.raw, n), _is_shared(self.raw, n)
        q = self.keep("q", self.linear(h, f"{at}q_proj"))
        if not shared:
            k, v = self.keys_and_values(h, n, at)
        q = self.keep("q_norm", self.head_norm(q, f"{at}q_norm"))
        if not shared:
            k = self.keep("k_norm", self.head_norm(k, f"{at}k_norm"))
        angles = self.kind_angles(n)
        q = self.keep("q_rope", self._rope(q.unflatten(-1, (-1, self.head_dim)), angles)).flatten(1)
        if not shared:
            k = self._rope(k.unflatten(-1, (-1, self.head_dim)), angles)
            kept[is_global] = (self.keep("k_rope", k).flatten(1), v)
        window = None if is_global else self.raw["sliding_window"]
        return self.attention(q, *kept[is_global], None, window, 1.0)

    def experts(self, x: Tensor, at: str) -> Tensor:
        """All experts are computed here; those that were not chosen have weight 0."""
        raw = self.raw
        h = rms_norm(x, self.parameter(f"{at}router.scale"), raw["rms_norm_eps"], self.how)
        h = self.keep("router_norm", h) * raw["hidden_size"] ** -0.5
        scores = self.keep("router", self.linear(self.keep("router_scaled", h), f"{at}router.proj"))
        chosen = torch.topk(scores, raw["top_k_experts"], dim=-1)
        some = softmax(chosen.values, self.how)
        weights = torch.zeros_like(scores).scatter(-1, chosen.indices, some)
        scale = self.parameter(f"{at}router.per_expert_scale")
        weights = self.keep("routing_weights_scaled", self.keep("routing_weights", weights) * scale)
        h = self.keep("experts_norm", self.norm(x, f"{at}pre_feedforward_layernorm_2"))
        total = torch.zeros_like(h)
        for e in range(scores.shape[-1]):
            total = total + weights[:, e : e + 1] * self._expert(h, f"{at}experts.", e)
        return self.keep("experts", total)

    def _expert(self, h: Tensor, at: str, e: int) -> Tensor:
        gate, up = dot(h, self.weights[f"{at}gate_up_proj"][e], self.how).chunk(2, dim=-1)
        return dot(geglu(gate, up, self.how), self.weights[f"{at}down_proj"][e], self.how)

    def feeds(self, x: Tensor, at: str) -> Tensor:
        h = self.keep("mlp_norm", self.norm(x, f"{at}pre_feedforward_layernorm"))
        h = self.geglu(*self.gate(h, f"{at}mlp."))
        h = self.keep("down", self.linear(h, f"{at}mlp.down_proj"))
        if self.raw.get("enable_moe_block"):
            h = self.keep("down_norm", self.norm(h, f"{at}post_feedforward_layernorm_1"))
            y = self.norm(self.experts(x, at), f"{at}post_feedforward_layernorm_2")
            h = self.keep("mlp_sum", h + self.keep("experts_post_norm", y))
        return self.keep("mlp_post_norm", self.norm(h, f"{at}post_feedforward_layernorm"))

    def of_layer(self, x: Tensor, layer_input: Tensor, at: str) -> Tensor:
        h = self.keep("layer_gate", self.linear(x, f"{at}per_layer_input_gate"))
        h = self.keep("layer_gated", geglu(h, layer_input, self.how))
        h = self.keep("layer_out", self.linear(h, f"{at}per_layer_projection"))
        return self.keep("layer_norm", self.norm(h, f"{at}post_per_layer_input_norm"))


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = Gemma4Decoder(raw, weights, ids, how)
    kept: dict[bool, tuple[Tensor, Tensor]] = {}
    x = scaled_embedding(d)
    inputs = d.layer_inputs(x) if raw["hidden_size_per_layer_input"] else None
    for n in range(raw["num_hidden_layers"]):
        at = d.layer(n)
        h = d.keep("attn_norm", d.norm(x, f"{at}input_layernorm"))
        h = d.attends(h, n, f"{at}self_attn.", kept)
        h = d.keep("attn_proj", d.linear(h, f"{at}self_attn.o_proj"))
        h = d.keep("attn_post_norm", d.norm(h, f"{at}post_attention_layernorm"))
        x = d.keep("attn_residual", x + h)
        x = d.keep("mlp_residual", x + d.feeds(x, at))
        if inputs is not None:
            x = d.keep("layer_residual", x + d.of_layer(x, inputs[:, n], at))
        x = d.keep("layer_scaled", x * d.parameter(f"{at}layer_scalar"))
    return d.logits(x, cap=raw.get("final_logit_softcapping"))
