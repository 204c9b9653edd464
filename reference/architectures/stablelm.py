"""StableLM (Bellagente et al. 2024), with every activation kept.

Differences from Llama: LayerNorm; RoPE of the first columns; biases of q, k and v; one norm for
both halves of a layer, if the config says so.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from decoder import LayerNormDecoder, layer_norm_shapes, linear_shapes, q_and_kv_dim, qkv_shapes
from decoder import tiny_config
from definitions import Arithmetic, RopeScaling
from llama import EMBEDDING, HEAD, Parameters
from tiny_model import TinyModel

MODEL_TYPE = "stablelm"


def _config(**changes: Any) -> dict[str, Any]:
    stablelm = {
        "rms_norm_eps": ...,
        "hidden_size": 32,
        "hidden_act": "silu",
        "layer_norm_eps": 1e-5,
        "partial_rotary_factor": 0.25,
        "use_qkv_bias": True,
        "use_parallel_residual": False,
    }
    return tiny_config(MODEL_TYPE, "StableLmForCausalLM", **(stablelm | changes))


MODELS = (
    TinyModel("stablelm-biases", _config(), seen_by={"partial_rotary_factor": 0.5}),
    TinyModel(
        "stablelm-parallel",
        _config(
            layer_norm_eps=0.3,
            partial_rotary_factor=0.75,
            use_qkv_bias=False,
            use_parallel_residual=True,
            tie_word_embeddings=True,
        ),
        store="embed",
        seen_by={"layer_norm_eps": 0.2, "partial_rotary_factor": 0.5, "rope_theta": 100.0},
    ),
)


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    dim, hidden = raw["hidden_size"], raw["intermediate_size"]
    q_dim, kv_dim = q_and_kv_dim(raw)
    names: dict[str, tuple[int, ...]] = {EMBEDDING: (raw["vocab_size"], dim)}
    for n in range(raw["num_hidden_layers"]):
        at = f"model.layers.{n}."
        names |= layer_norm_shapes(f"{at}input_layernorm", dim)
        names |= qkv_shapes(raw, f"{at}self_attn.", raw["use_qkv_bias"])
        names |= linear_shapes(f"{at}self_attn.o_proj", dim, q_dim, False)
        if not raw["use_parallel_residual"]:
            names |= layer_norm_shapes(f"{at}post_attention_layernorm", dim)
        names |= linear_shapes(f"{at}mlp.gate_proj", hidden, dim, False)
        names |= linear_shapes(f"{at}mlp.up_proj", hidden, dim, False)
        names |= linear_shapes(f"{at}mlp.down_proj", dim, hidden, False)
    return names | layer_norm_shapes("model.norm", dim) | {HEAD: (raw["vocab_size"], dim)}


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = LayerNormDecoder(raw, weights, ids, how)
    columns = int(d.head_dim * raw["partial_rotary_factor"])
    angles = d.angles(RopeScaling(raw["rope_theta"]), columns)
    x = d.keep("embedding", d.embedding())
    for n in range(raw["num_hidden_layers"]):
        at = d.layer(n)
        h = d.keep("attn_norm", d.norm(x, f"{at}input_layernorm"))
        mixed = d.attention(*d.qkv(h, f"{at}self_attn."), angles)
        mixed = d.keep("attn_proj", d.linear(mixed, f"{at}self_attn.o_proj"))
        x = d.keep("attn_residual", x + mixed)
        if not raw["use_parallel_residual"]:
            h = d.keep("mlp_norm", d.norm(x, f"{at}post_attention_layernorm"))
        h = d.swiglu(*d.gate(h, f"{at}mlp."))
        x = d.keep("mlp_residual", x + d.keep("down", d.linear(h, f"{at}mlp.down_proj")))
    return d.logits(x)
