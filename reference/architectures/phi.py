"""Phi 1, 1.5 and 2 (Gunasekar et al. 2023), with every activation kept.

Differences from Llama: one LayerNorm per layer, read by attention and by the feed-forward block;
RoPE of the first columns; no gate; biases everywhere.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from decoder import LayerNormDecoder, layer_norm_shapes, linear_shapes, q_and_kv_dim, qkv_shapes
from decoder import tiny_config
from definitions import Arithmetic, RopeScaling
from llama import EMBEDDING, Parameters
from tiny_model import TinyModel

MODEL_TYPE = "phi"


def _config(**changes: Any) -> dict[str, Any]:
    phi = {
        "rms_norm_eps": ...,
        "hidden_size": 32,
        "hidden_act": "gelu_new",
        "layer_norm_eps": 1e-5,
        "partial_rotary_factor": 0.5,
    }
    return tiny_config(MODEL_TYPE, "PhiForCausalLM", **(phi | changes))


MODELS = (
    TinyModel(
        "phi-gqa2", _config(), seen_by={"partial_rotary_factor": 0.25, "rope_theta": 100.0}
    ),
    TinyModel(
        "phi-mha",
        _config(
            hidden_size=30,
            num_attention_heads=3,
            num_key_value_heads=...,
            hidden_act="gelu",
            layer_norm_eps=0.3,
            partial_rotary_factor=0.4,
        ),
        seen_by={"partial_rotary_factor": 0.8, "layer_norm_eps": 0.2},
    ),
)


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    dim, hidden = raw["hidden_size"], raw["intermediate_size"]
    q_dim, kv_dim = q_and_kv_dim(_with_kv_heads(raw))
    names: dict[str, tuple[int, ...]] = {EMBEDDING: (raw["vocab_size"], dim)}
    for n in range(raw["num_hidden_layers"]):
        at = f"model.layers.{n}."
        names |= layer_norm_shapes(f"{at}input_layernorm", dim)
        names |= qkv_shapes(_with_kv_heads(raw), f"{at}self_attn.", True)
        names |= linear_shapes(f"{at}self_attn.dense", dim, q_dim, True)
        names |= linear_shapes(f"{at}mlp.fc1", hidden, dim, True)
        names |= linear_shapes(f"{at}mlp.fc2", dim, hidden, True)
    names |= layer_norm_shapes("model.final_layernorm", dim)
    return names | linear_shapes("lm_head", raw["vocab_size"], dim, True)


def _with_kv_heads(raw: dict[str, Any]) -> dict[str, Any]:
    return {"num_key_value_heads": raw["num_attention_heads"]} | raw


class _Phi(LayerNormDecoder):
    final_norm = "model.final_layernorm"


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = _Phi(raw, weights, ids, how)
    columns = int(d.head_dim * raw["partial_rotary_factor"])
    angles = d.angles(RopeScaling(raw["rope_theta"]), columns)
    x = d.keep("embedding", d.embedding())
    for n in range(raw["num_hidden_layers"]):
        at = d.layer(n)
        h = d.keep("norm", d.norm(x, f"{at}input_layernorm"))
        mixed = d.attention(*d.qkv(h, f"{at}self_attn."), angles)
        mixed = d.keep("attn_proj", d.linear(mixed, f"{at}self_attn.dense"))
        x = d.keep("attn_residual", x + mixed)
        x = d.keep(
            "mlp_residual", x + d.mlp(h, f"{at}mlp.fc1", f"{at}mlp.fc2", raw["hidden_act"])
        )
    return d.logits(x)
