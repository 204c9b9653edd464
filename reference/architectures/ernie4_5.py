"""ERNIE 4.5 without experts (Baidu 2025), with every activation kept.

Differences from Llama: RoPE of neighbouring columns; biases in all linear layers except the head,
if the config says so.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from decoder import Decoder, decoder_shapes, tiny_config
from definitions import Arithmetic, RopeScaling, neighbour_rope
from llama import Parameters
from tiny_model import TinyModel

MODEL_TYPE = "ernie4_5"


def _config(**changes: Any) -> dict[str, Any]:
    ernie = {"hidden_act": "silu", "head_dim": 6, "rope_theta": 500000.0, "use_bias": False}
    return tiny_config(MODEL_TYPE, "Ernie4_5ForCausalLM", **(ernie | changes))


MODELS = (
    TinyModel(
        "ernie4_5-tied",
        _config(tie_word_embeddings=True, rms_norm_eps=0.3),
        store="embed",
        seen_by={"rope_theta": 100.0, "rms_norm_eps": 0.2},
    ),
    TinyModel(
        "ernie4_5-biases",
        _config(
            hidden_size=20,
            num_attention_heads=5,
            num_key_value_heads=None,
            head_dim=None,
            hidden_act="gelu_pytorch_tanh",
            use_bias=True,
            rope_scaling={"factor": 4.0, "rope_type": "linear"},
        ),
        seen_by={"rope_scaling": None, "hidden_act": "silu"},
    ),
)


def _with_kv_heads(raw: dict[str, Any]) -> dict[str, Any]:
    return raw | {"num_key_value_heads": raw["num_key_value_heads"] or raw["num_attention_heads"]}


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    norms = ("input_layernorm", "post_attention_layernorm")
    bias = raw["use_bias"]
    return decoder_shapes(_with_kv_heads(raw), norms, attention_bias=bias, mlp_bias=bias)


class _Ernie(Decoder):
    rope = staticmethod(neighbour_rope)


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = _Ernie(raw, weights, ids, how)
    angles = d.angles(RopeScaling(raw["rope_theta"], **(raw.get("rope_scaling") or {})))
    x = d.keep("embedding", d.embedding())
    for n in range(raw["num_hidden_layers"]):
        at = d.layer(n)
        h = d.keep("attn_norm", d.norm(x, f"{at}input_layernorm"))
        h = d.attention(*d.qkv(h, f"{at}self_attn."), angles)
        x = d.keep("attn_residual", x + d.keep("attn_proj", d.linear(h, f"{at}self_attn.o_proj")))
        h = d.keep("mlp_norm", d.norm(x, f"{at}post_attention_layernorm"))
        h = d.gated(*d.gate(h, f"{at}mlp."))
        x = d.keep("mlp_residual", x + d.keep("down", d.linear(h, f"{at}mlp.down_proj")))
    return d.logits(x)
