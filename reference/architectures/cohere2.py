"""Command R7B (Cohere 2024), with every activation kept.

Differences from Command R: three of four layers have a window; the others have no RoPE.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from architectures import cohere
from architectures.cohere import Cohere, layer, shapes
from definitions import Arithmetic, RopeScaling
from llama import Parameters
from tiny_model import TinyModel

MODEL_TYPE = "cohere2"

__all__ = ["MODELS", "MODEL_TYPE", "forward", "shapes"]


def _config(**changes: Any) -> dict[str, Any]:
    cohere2 = {"sliding_window": 4}
    return cohere.config(MODEL_TYPE, "Cohere2ForCausalLM", **(cohere2 | changes))


MODELS = (
    # The style of older files: every second layer attends to all tokens.
    TinyModel(
        "cohere2-pattern",
        _config(
            sliding_window_pattern=2,
            order_of_interleaved_layers="local_attn_first",
            use_parallel_block=True,
        ),
        store="embed",
        seq_len=9,
        seen_by={"sliding_window_pattern": 1, "sliding_window": 5, "rope_theta": 100.0},
    ),
    # The style of newer files.
    TinyModel(
        "cohere2-layer-types",
        _config(
            head_dim=6,
            layer_types=["full_attention", "sliding_attention"],
            rope_theta=...,
            rope_parameters={"rope_type": "default", "rope_theta": 300.0},
            attention_bias=True,
            logit_scale=0.25,
            tie_word_embeddings=False,
        ),
        seq_len=9,
        seen_by={"layer_types": ["sliding_attention", "sliding_attention"]},
    ),
)


def _slides(raw: dict[str, Any], n: int) -> bool:
    if "layer_types" in raw:
        return raw["layer_types"][n] == "sliding_attention"
    return (n + 1) % raw["sliding_window_pattern"] != 0


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = Cohere(raw, weights, ids, how)
    theta = raw.get("rope_theta") or raw["rope_parameters"]["rope_theta"]
    angles = d.angles(RopeScaling(theta))
    x = d.keep("embedding", d.embedding())
    for n in range(raw["num_hidden_layers"]):
        slides = _slides(raw, n)
        x = layer(d, n, x, angles if slides else None, raw["sliding_window"] if slides else None)
    return d.logits(x, 1 / raw["logit_scale"])
