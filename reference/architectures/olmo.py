"""OLMo 1 (Groeneveld et al. 2024), with every activation kept.

Differences from Llama: LayerNorm without weights and biases; q, k and v may be clipped.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from decoder import LayerNormDecoder, decoder_shapes, tiny_config
from definitions import Arithmetic, RopeScaling
from llama import Parameters
from tiny_model import TinyModel

MODEL_TYPE = "olmo"


def _config(**changes: Any) -> dict[str, Any]:
    olmo = {"hidden_act": "silu", "rms_norm_eps": ...}
    return tiny_config(MODEL_TYPE, "OlmoForCausalLM", **(olmo | changes))


MODELS = (
    TinyModel("olmo-clip", _config(clip_qkv=0.75), seen_by={"clip_qkv": 1.0}),
    TinyModel(
        "olmo-biases",
        _config(attention_bias=True, clip_qkv=None, hidden_act="gelu", tie_word_embeddings=True),
        store="embed",
        seen_by={"rope_theta": 100.0, "clip_qkv": 1.0, "hidden_act": "silu"},
    ),
)


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    names = decoder_shapes(raw, (), attention_bias=raw.get("attention_bias", False))
    del names["model.norm.weight"]
    return names


class _Olmo(LayerNormDecoder):
    def norm(self, x: Tensor, name: str) -> Tensor:
        self.raw = {self.eps_name: 1e-5} | self.raw  # no file has it
        return super().norm(x, name)


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = _Olmo(raw, weights, ids, how)
    angles = d.angles(RopeScaling(raw["rope_theta"]))
    x = d.keep("embedding", d.embedding())
    for n in range(raw["num_hidden_layers"]):
        at = d.layer(n)
        h = d.keep("attn_norm", d.norm(x, f"{at}input_layernorm"))
        q, k, v = d.qkv(h, f"{at}self_attn.")
        h = d.attention(*d.clip_qkv(q, k, v), angles)
        x = d.keep("attn_residual", x + d.keep("attn_proj", d.linear(h, f"{at}self_attn.o_proj")))
        h = d.keep("mlp_norm", d.norm(x, f"{at}post_attention_layernorm"))
        h = d.gated(*d.gate(h, f"{at}mlp."))
        x = d.keep("mlp_residual", x + d.keep("down", d.linear(h, f"{at}mlp.down_proj")))
    return d.logits(x)
