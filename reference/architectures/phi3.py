"""Phi-3 (Abdin et al. 2024), with every activation kept.

Differences from Llama: one matrix for q, k and v, and one for gate and up.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from decoder import Decoder, decoder_shapes, q_and_kv_dim, tiny_config
from definitions import Arithmetic, RopeScaling
from llama import Parameters
from tiny_model import TinyModel

MODEL_TYPE = "phi3"


def _config(**changes: Any) -> dict[str, Any]:
    phi = {"hidden_act": "silu", "original_max_position_embeddings": 64}
    return tiny_config(MODEL_TYPE, "Phi3ForCausalLM", **(phi | changes))


MODELS = (
    TinyModel("phi3-window4", _config(sliding_window=4), seen_by={"sliding_window": 5}),
    TinyModel(
        "phi3-mha",
        _config(
            hidden_size=20,
            num_attention_heads=5,
            num_key_value_heads=5,
            sliding_window=None,
            tie_word_embeddings=True,
        ),
        store="embed",
        seen_by={"rope_theta": 100.0},
    ),
)


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    return decoder_shapes(raw, ("input_layernorm", "post_attention_layernorm"), fused=True)


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = Decoder(raw, weights, ids, how)
    angles = d.angles(RopeScaling(raw["rope_theta"]))
    q_dim, kv_dim = q_and_kv_dim(raw)
    x = d.keep("embedding", d.embedding())
    for n in range(raw["num_hidden_layers"]):
        at = d.layer(n)
        h = d.keep("attn_norm", d.norm(x, f"{at}input_layernorm"))
        parts = d.linear(h, f"{at}self_attn.qkv_proj").split((q_dim, kv_dim, kv_dim), -1)
        q, k, v = (d.keep(name, part) for name, part in zip("qkv", parts))
        h = d.attention(q, k, v, angles, raw["sliding_window"])
        x = d.keep("attn_residual", x + d.keep("attn_proj", d.linear(h, f"{at}self_attn.o_proj")))
        h = d.keep("mlp_norm", d.norm(x, f"{at}post_attention_layernorm"))
        gate, up = d.linear(h, f"{at}mlp.gate_up_proj").chunk(2, -1)
        h = d.swiglu(d.keep("gate", gate), d.keep("up", up))
        x = d.keep("mlp_residual", x + d.keep("down", d.linear(h, f"{at}mlp.down_proj")))
    return d.logits(x)
