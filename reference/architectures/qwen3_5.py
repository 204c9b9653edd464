"""Qwen3.5 (Qwen Team 2026), text only, with every activation kept.

Differences from Qwen3: three of four layers are Gated DeltaNet (Yang et al. 2024), which keeps a
matrix per head instead of keys and values; attention is gated, and RoPE rotates a quarter of each
head; norms multiply with 1 + weight.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from decoder import Decoder, gated_shapes, linear_shapes, q_and_kv_dim, tiny_config
from definitions import Arithmetic, RopeScaling, gated_delta, rms_norm, short_conv, sigmoid, silu
from llama import EMBEDDING, HEAD, Parameters
from tiny_model import TinyModel

MODEL_TYPE = "qwen3_5_text"


def _config(**changes: Any) -> dict[str, Any]:
    qwen = {
        "hidden_size": 20,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "head_dim": 8,
        "hidden_act": "silu",
        "rope_theta": ...,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10000.0,
            "partial_rotary_factor": 0.25,
            "mrope_section": [1, 0, 0],
            "mrope_interleaved": True,
        },
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 6,
        "linear_value_head_dim": 5,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
    }
    return tiny_config(MODEL_TYPE, "Qwen3_5ForCausalLM", **(qwen | changes))


MODELS = (
    TinyModel("qwen3_5-interval", _config(), seq_len=9, seen_by={"rms_norm_eps": 0.2}),
    # The last layer is recurrent: it has a state and no cache. A row of the state needs several
    # vectors.
    TinyModel(
        "qwen3_5-layer-types",
        _config(
            num_hidden_layers=3,
            layer_types=["linear_attention", "full_attention", "linear_attention"],
            attention_bias=True,
            linear_conv_kernel_dim=3,
            linear_key_head_dim=7,
            linear_value_head_dim=33,
            linear_num_key_heads=1,
            linear_num_value_heads=1,
            rms_norm_eps=0.3,
            rope_parameters={
                "rope_type": "default",
                "rope_theta": 100.0,
                "partial_rotary_factor": 0.5,
            },
            tie_word_embeddings=True,
        ),
        store="embed",
        seen_by={"rms_norm_eps": 0.2, "rope_parameters": {"partial_rotary_factor": 0.25}},
    ),
    # Keys as long as values, as in all released models: a GGUF file has one number for both.
    TinyModel(
        "qwen3_5-long-keys",
        _config(linear_key_head_dim=8, linear_value_head_dim=8),
        seq_len=9,
        seen_by={"rms_norm_eps": 0.2},
    ),
)


def _attends(raw: dict[str, Any], n: int) -> bool:
    if "layer_types" in raw:
        return raw["layer_types"][n] == "full_attention"
    return (n + 1) % raw.get("full_attention_interval", 4) == 0


def _delta_dims(raw: dict[str, Any]) -> tuple[int, int]:
    """The total widths of all keys and of all values."""
    keys = raw["linear_num_key_heads"] * raw["linear_key_head_dim"]
    return keys, raw["linear_num_value_heads"] * raw["linear_value_head_dim"]


def offset(name: str) -> float:
    return 1.0 if name.endswith("norm.weight") and not name.endswith("attn.norm.weight") else 0.0


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    dim = raw["hidden_size"]
    names: dict[str, tuple[int, ...]] = {EMBEDDING: (raw["vocab_size"], dim)}
    for n in range(raw["num_hidden_layers"]):
        at = f"model.layers.{n}."
        names |= _attention_shapes(raw, f"{at}self_attn.") if _attends(raw, n) else {}
        names |= {} if _attends(raw, n) else _delta_shapes(raw, f"{at}linear_attn.")
        names |= gated_shapes(f"{at}mlp.", dim, raw["intermediate_size"])
        names[f"{at}input_layernorm.weight"] = (dim,)
        names[f"{at}post_attention_layernorm.weight"] = (dim,)
    return names | {"model.norm.weight": (dim,), HEAD: (raw["vocab_size"], dim)}


def _attention_shapes(raw: dict[str, Any], at: str) -> dict[str, tuple[int, ...]]:
    dim, bias = raw["hidden_size"], raw.get("attention_bias", False)
    q_dim, kv_dim = q_and_kv_dim(raw)
    return (
        linear_shapes(f"{at}q_proj", 2 * q_dim, dim, bias)
        | linear_shapes(f"{at}k_proj", kv_dim, dim, bias)
        | linear_shapes(f"{at}v_proj", kv_dim, dim, bias)
        | linear_shapes(f"{at}o_proj", dim, q_dim, bias)
        | {f"{at}{name}_norm.weight": (raw["head_dim"],) for name in "qk"}
    )


def _delta_shapes(raw: dict[str, Any], at: str) -> dict[str, tuple[int, ...]]:
    dim, heads = raw["hidden_size"], raw["linear_num_value_heads"]
    keys, values = _delta_dims(raw)
    return (
        {f"{at}dt_bias": (heads,), f"{at}A_log": (heads,)}
        | {f"{at}conv1d.weight": (2 * keys + values, 1, raw["linear_conv_kernel_dim"])}
        | {f"{at}norm.weight": (raw["linear_value_head_dim"],)}
        | linear_shapes(f"{at}out_proj", dim, values, False)
        | linear_shapes(f"{at}in_proj_qkv", 2 * keys + values, dim, False)
        | linear_shapes(f"{at}in_proj_z", values, dim, False)
        | linear_shapes(f"{at}in_proj_b", heads, dim, False)
        | linear_shapes(f"{at}in_proj_a", heads, dim, False)
    )


class Qwen35Decoder(Decoder):
    def attends(self, h: Tensor, at: str, angles: tuple[Tensor, Tensor]) -> Tensor:
        both = self.linear(h, f"{at}q_proj").unflatten(-1, (-1, 2, self.head_dim))
        q = self.keep("q", both[:, :, 0].flatten(1))
        gate = self.keep("attn_gate", both[:, :, 1].flatten(1))
        k, v = (self.keep(name, self.linear(h, f"{at}{name}_proj")) for name in "kv")
        q = self.keep("q_norm", self.head_norm(q, f"{at}q_norm"))
        k = self.keep("k_norm", self.head_norm(k, f"{at}k_norm"))
        mixed = self.attention(q, k, v, angles)
        mixed = self.keep("attn_gated", sigmoid(gate, self.how) * mixed)
        return self.keep("attn_proj", self.linear(mixed, f"{at}o_proj"))

    def remembers(self, h: Tensor, at: str) -> Tensor:
        """Gated DeltaNet."""
        names = {
            "qkv": "in_proj_qkv",
            "gate": "in_proj_z",
            "beta": "in_proj_b",
            "decay": "in_proj_a",
        }
        mixed, gate, beta, decay = (
            self.keep(f"delta_{name}", self.linear(h, f"{at}{weight}"))
            for name, weight in names.items()
        )
        taps = self.weights[f"{at}conv1d.weight"].squeeze(1)
        mixed = self.keep("delta_conv", short_conv(mixed, taps, None, self.how))
        mixed = self.keep("delta_silu", silu(mixed, self.how))
        keys, values = _delta_dims(self.raw)
        key_dim, value_dim = (self.raw[f"linear_{x}_head_dim"] for x in ("key", "value"))
        q, k, v = mixed.split((keys, keys, values), dim=-1)
        q, k = (x.unflatten(-1, (-1, key_dim)) for x in (q, k))
        rate, shift = self.weights[f"{at}A_log"], self.weights[f"{at}dt_bias"]
        v = v.unflatten(-1, (-1, value_dim))
        out = gated_delta(q, k, v, beta, decay, rate, shift, self.how)
        self.keep("delta_out", out.flatten(1))
        weight = self.weights[f"{at}norm.weight"]
        h = rms_norm(out, weight, self.raw["rms_norm_eps"], self.how).flatten(1)
        h = self.keep("delta_norm", h)
        h = self.keep("delta_gated", silu(gate, self.how) * h)
        return self.keep("attn_proj", self.linear(h, f"{at}out_proj"))


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = Qwen35Decoder(raw, weights, ids, how, norm_plus=1.0)
    rope = raw["rope_parameters"]
    columns = int(d.head_dim * rope.get("partial_rotary_factor", 0.25))
    angles = d.angles(RopeScaling(rope.get("rope_theta", 10000.0)), columns)
    x = d.keep("embedding", d.embedding())
    for n in range(raw["num_hidden_layers"]):
        at = d.layer(n)
        h = d.keep("attn_norm", d.norm(x, f"{at}input_layernorm"))
        if _attends(raw, n):
            h = d.attends(h, f"{at}self_attn.", angles)
        else:
            h = d.remembers(h, f"{at}linear_attn.")
        x = d.keep("attn_residual", x + h)
        h = d.keep("mlp_norm", d.norm(x, f"{at}post_attention_layernorm"))
        h = d.swiglu(*d.gate(h, f"{at}mlp."))
        x = d.keep("mlp_residual", x + d.keep("down", d.linear(h, f"{at}mlp.down_proj")))
    return d.logits(x)
