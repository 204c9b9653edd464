"""SmolLM3 (Hugging Face 2025), with every activation kept.

Difference from Llama: some layers have no RoPE.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from decoder import Decoder, decoder_shapes, tiny_config
from definitions import Arithmetic, RopeScaling
from llama import Parameters
from tiny_model import TinyModel

MODEL_TYPE = "smollm3"


def _config(**changes: Any) -> dict[str, Any]:
    smol = {"hidden_act": "silu", "rope_theta": 5000.0}
    return tiny_config(MODEL_TYPE, "SmolLM3ForCausalLM", **(smol | changes))


MODELS = (
    TinyModel(
        "smollm3-no-rope-layers",
        _config(no_rope_layers=[0, 1], tie_word_embeddings=True),
        store="embed",
        seen_by={"no_rope_layers": [1, 1]},
    ),
    # Every second layer has no RoPE, and has a window.
    TinyModel(
        "smollm3-interval-window",
        _config(
            no_rope_layer_interval=2,
            use_sliding_window=True,
            sliding_window=4,
            attention_bias=True,
            mlp_bias=True,
        ),
        seen_by={"no_rope_layer_interval": 3, "use_sliding_window": False},
    ),
    # As in the released model: every fourth layer has no RoPE.
    TinyModel(
        "smollm3-four-layers",
        _config(
            hidden_size=12,
            intermediate_size=13,
            num_hidden_layers=4,
            num_attention_heads=2,
            num_key_value_heads=1,
            tie_word_embeddings=True,
        ),
        store="embed",
        seen_by={"no_rope_layer_interval": 3, "rope_theta": 100.0},
    ),
)


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    return decoder_shapes(
        raw,
        ("input_layernorm", "post_attention_layernorm"),
        attention_bias=raw.get("attention_bias", False),
        mlp_bias=raw.get("mlp_bias", False),
    )


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = Decoder(raw, weights, ids, how)
    angles = d.angles(RopeScaling(raw["rope_theta"]))
    interval = raw.get("no_rope_layer_interval", 4)
    x = d.keep("embedding", d.embedding())
    for n in range(raw["num_hidden_layers"]):
        at = d.layer(n)
        with_rope = raw["no_rope_layers"][n] if "no_rope_layers" in raw else (n + 1) % interval != 0
        slides = raw.get("use_sliding_window", False) and not with_rope
        h = d.keep("attn_norm", d.norm(x, f"{at}input_layernorm"))
        q, k, v = d.qkv(h, f"{at}self_attn.")
        window = raw["sliding_window"] if slides else None
        h = d.attention(q, k, v, angles if with_rope else None, window)
        x = d.keep("attn_residual", x + d.keep("attn_proj", d.linear(h, f"{at}self_attn.o_proj")))
        h = d.keep("mlp_norm", d.norm(x, f"{at}post_attention_layernorm"))
        h = d.swiglu(*d.gate(h, f"{at}mlp."))
        x = d.keep("mlp_residual", x + d.keep("down", d.linear(h, f"{at}mlp.down_proj")))
    return d.logits(x)
