"""LFM2 (Liquid AI 2025), with every activation kept.

Differences from Llama: most layers have a short convolution, gated before and after it, instead of
attention; heads of q and k are normed; tensors have other names.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from decoder import Decoder, gated_shapes, head_dim, linear_shapes, q_and_kv_dim, qkv_shapes
from decoder import tiny_config
from definitions import Arithmetic, RopeScaling, short_conv
from llama import EMBEDDING, HEAD, Parameters
from tiny_model import TinyModel

MODEL_TYPE = "lfm2"

FEED_FORWARD = ("w1", "w3", "w2")  # gate, up, down


def _config(**changes: Any) -> dict[str, Any]:
    lfm2 = {
        "hidden_size": 24,
        "num_hidden_layers": 3,
        "rms_norm_eps": ...,
        "norm_eps": 1e-5,
        "rope_theta": 1000000.0,
        "conv_L_cache": 3,
        "conv_bias": False,
        "tie_word_embeddings": True,
    }
    return tiny_config(MODEL_TYPE, "Lfm2ForCausalLM", **(lfm2 | changes))


MODELS = (
    # The last layer is a convolution, so the last state is not a KV cache. The style of the first
    # files.
    TinyModel(
        "lfm2-conv-last",
        _config(
            intermediate_size=...,
            block_ff_dim=30,
            block_multiple_of=7,
            block_ffn_dim_multiplier=1.1,
            full_attn_idxs=[1],
        ),
        store="embed",
        seen_by={"norm_eps": 0.2, "rope_theta": 100.0},
    ),
    TinyModel(
        "lfm2-biases",
        _config(
            block_auto_adjust_ff_dim=False,
            conv_L_cache=4,
            conv_bias=True,
            layer_types=["conv", "conv", "full_attention"],
            norm_eps=0.3,
            rope_theta=...,
            rope_parameters={"rope_type": "default", "rope_theta": 100.0},
            tie_word_embeddings=False,
        ),
        seen_by={"norm_eps": 0.2, "rope_parameters": {"rope_theta": 10000.0}},
    ),
)


def _attends(raw: dict[str, Any], n: int) -> bool:
    if "layer_types" in raw:
        return raw["layer_types"][n] == "full_attention"
    return n in raw.get("full_attn_idxs", range(raw["num_hidden_layers"]))


def _ffn_dim(raw: dict[str, Any]) -> int:
    written = raw.get("block_ff_dim", raw.get("intermediate_size"))
    if not raw.get("block_auto_adjust_ff_dim", True):
        return written
    multiple = raw.get("block_multiple_of", 256)
    width = int(raw.get("block_ffn_dim_multiplier", 1.0) * int(2 * written / 3))
    return (width + multiple - 1) // multiple * multiple


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    dim, bias = raw["hidden_size"], raw["conv_bias"]
    names: dict[str, tuple[int, ...]] = {EMBEDDING: (raw["vocab_size"], dim)}
    for n in range(raw["num_hidden_layers"]):
        at = f"model.layers.{n}."
        if _attends(raw, n):
            names |= qkv_shapes(raw, f"{at}self_attn.", False)
            names |= linear_shapes(f"{at}self_attn.out_proj", dim, q_and_kv_dim(raw)[0], False)
            for norm in ("q_layernorm", "k_layernorm"):
                names[f"{at}self_attn.{norm}.weight"] = (head_dim(raw),)
        else:
            names[f"{at}conv.conv.weight"] = (dim, 1, raw["conv_L_cache"])
            if bias:
                names[f"{at}conv.conv.bias"] = (dim,)
            names |= linear_shapes(f"{at}conv.in_proj", 3 * dim, dim, bias)
            names |= linear_shapes(f"{at}conv.out_proj", dim, dim, bias)
        names |= gated_shapes(f"{at}feed_forward.", dim, _ffn_dim(raw), FEED_FORWARD)
        names[f"{at}operator_norm.weight"] = (dim,)
        names[f"{at}ffn_norm.weight"] = (dim,)
    return names | {"model.embedding_norm.weight": (dim,), HEAD: (raw["vocab_size"], dim)}


class Lfm2Decoder(Decoder):
    final_norm = "model.embedding_norm"
    eps_name = "norm_eps"

    def attends(self, h: Tensor, at: str, angles: tuple[Tensor, Tensor]) -> Tensor:
        q, k, v = self.qkv(h, at)
        q = self.keep("q_norm", self.head_norm(q, f"{at}q_layernorm"))
        k = self.keep("k_norm", self.head_norm(k, f"{at}k_layernorm"))
        mixed = self.attention(q, k, v, angles)
        return self.keep("attn_proj", self.linear(mixed, f"{at}out_proj"))

    def convolves(self, h: Tensor, at: str) -> Tensor:
        thirds = self.linear(h, f"{at}in_proj").chunk(3, dim=-1)
        b, c, x = (self.keep(f"conv_{name}", y) for name, y in zip("bcx", thirds))
        x = self.keep("conv_in", b * x)
        taps, bias = self.weights[f"{at}conv.weight"], self.weights.tensors.get(f"{at}conv.bias")
        y = self.keep("conv", short_conv(x, taps.squeeze(1), bias, self.how))
        y = self.keep("conv_out", c * y)
        return self.keep("conv_proj", self.linear(y, f"{at}out_proj"))


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = Lfm2Decoder(raw, weights, ids, how)
    rope = raw.get("rope_parameters") or {}
    angles = d.angles(RopeScaling(rope.get("rope_theta", raw.get("rope_theta", 1e6))))
    x = d.keep("embedding", d.embedding())
    for n in range(raw["num_hidden_layers"]):
        at = d.layer(n)
        h = d.keep("attn_norm", d.norm(x, f"{at}operator_norm"))
        if _attends(raw, n):
            h = d.attends(h, f"{at}self_attn.", angles)
        else:
            h = d.convolves(h, f"{at}conv.")
        x = d.keep("attn_residual", x + h)
        h = d.keep("mlp_norm", d.norm(x, f"{at}ffn_norm"))
        gate, up = (d.linear(h, f"{at}feed_forward.{name}") for name in ("w1", "w3"))
        h = d.swiglu(d.keep("gate", gate), d.keep("up", up))
        x = d.keep(
            "mlp_residual", x + d.keep("down", d.linear(h, f"{at}feed_forward.w2"))
        )
    return d.logits(x)
