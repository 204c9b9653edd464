"""GLM-4-0414 (GLM Team 2025), with every activation kept.

Difference from GLM-4: the result of each half of a layer is normed before it is added.
"""

from __future__ import annotations

from typing import Any

from architectures import glm
from architectures.glm import forward
from tiny_model import TinyModel

MODEL_TYPE = "glm4"

__all__ = ["MODELS", "MODEL_TYPE", "forward", "shapes"]


def _config(**changes: Any) -> dict[str, Any]:
    return glm.config(MODEL_TYPE, "Glm4ForCausalLM", **changes)


MODELS = (
    TinyModel(
        "glm4-post-norms", _config(rms_norm_eps=0.3), seen_by={"rms_norm_eps": 0.2}
    ),
    # The style of newer files.
    TinyModel(
        "glm4-whole-rotary",
        _config(
            num_key_value_heads=4,
            attention_bias=False,
            rope_theta=...,
            partial_rotary_factor=...,
            rope_parameters={
                "rope_type": "default",
                "rope_theta": 300.0,
                "partial_rotary_factor": 1.0,
            },
            tie_word_embeddings=True,
        ),
        store="embed",
    ),
)

NORMS = (
    "input_layernorm",
    "post_attention_layernorm",
    "post_self_attn_layernorm",
    "post_mlp_layernorm",
)


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    return glm.shapes(raw, NORMS)
