"""OLMo 3 (Ai2 2025), with every activation kept.

Differences from OLMo 2: three of four layers have a window; only in the others RoPE is scaled
(yarn).
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from architectures.olmo2 import layer, shapes
from decoder import Decoder, tiny_config
from definitions import Arithmetic, RopeScaling
from llama import Parameters
from tiny_model import TinyModel

MODEL_TYPE = "olmo3"

__all__ = ["MODELS", "MODEL_TYPE", "forward", "shapes"]

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
THETA = 500000.0


def _config(**changes: Any) -> dict[str, Any]:
    olmo = {"hidden_act": "silu", "rope_theta": THETA, "sliding_window": 4}
    return tiny_config(MODEL_TYPE, "Olmo3ForCausalLM", **(olmo | changes))


MODELS = (
    # The style of older files: every fourth layer attends to all tokens. The attention factor is
    # given.
    TinyModel(
        "olmo3-yarn",
        _config(
            num_hidden_layers=4,
            rope_scaling=YARN | {"attention_factor": 1.25, "beta_fast": 4.0, "beta_slow": 1.0},
        ),
        seq_len=9,
        seen_by={"rope_scaling": None, "sliding_window": 5},
    ),
    # The style of newer files; the attention factor follows from the scaling.
    TinyModel(
        "olmo3-layer-types",
        _config(
            hidden_size=32,
            layer_types=["full_attention", "sliding_attention"],
            rope_theta=...,
            rope_parameters={
                "full_attention": YARN | {"rope_theta": 50.0, "beta_slow": 0.1},
                "sliding_attention": {"rope_type": "default", "rope_theta": 300.0},
            },
            attention_bias=True,
            tie_word_embeddings=True,
        ),
        store="embed",
        seq_len=9,
        seen_by={"layer_types": ["sliding_attention", "sliding_attention"]},
    ),
)


def _slides(raw: dict[str, Any], n: int) -> bool:
    if "layer_types" in raw:
        return raw["layer_types"][n] == "sliding_attention"
    return (n + 1) % 4 != 0


def _rope(raw: dict[str, Any], slides: bool) -> RopeScaling:
    kinds = raw.get("rope_parameters") or {}
    one = kinds.get("sliding_attention" if slides else "full_attention", {})
    older = {} if slides else raw.get("rope_scaling") or {}
    return RopeScaling(**({"rope_theta": THETA} | older | one))


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = Decoder(raw, weights, ids, how)
    ropes = {slides: _rope(raw, slides) for slides in (False, True)}
    angles = {slides: d.angles(rope) for slides, rope in ropes.items()}
    x = d.keep("embedding", d.embedding())
    for n in range(raw["num_hidden_layers"]):
        slides = _slides(raw, n)
        window = raw["sliding_window"] if slides else None
        scale = d.head_dim**-0.5 * ropes[slides].score_factor
        x = layer(d, n, x, angles[slides], window, scale)
    return d.logits(x)
