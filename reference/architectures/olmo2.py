"""OLMo 2 (Walsh et al. 2024), with every activation kept.

Differences from Llama: norms after each half of a layer instead of before it; whole rows of q and k
are normed.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from decoder import Decoder, decoder_shapes, q_and_kv_dim, tiny_config
from definitions import Arithmetic, RopeScaling
from llama import Parameters
from tiny_model import TinyModel

MODEL_TYPE = "olmo2"


def _config(**changes: Any) -> dict[str, Any]:
    olmo = {"hidden_act": "silu", "rope_theta": 500000.0}
    return tiny_config(MODEL_TYPE, "Olmo2ForCausalLM", **(olmo | changes))


MODELS = (
    TinyModel("olmo2-gqa2", _config(rms_norm_eps=0.3), seen_by={"rms_norm_eps": 0.2}),
    # Yarn whose bounds are not whole numbers of pairs: two of four pairs lie between them.
    TinyModel(
        "olmo2-yarn",
        _config(
            hidden_size=32,
            rope_theta=50.0,
            rope_scaling={
                "rope_type": "yarn",
                "factor": 4.0,
                "original_max_position_embeddings": 16,
                "beta_slow": 0.2,
                "truncate": False,
                "mscale": 2.0,
                "mscale_all_dim": 1.0,
            },
        ),
        seq_len=9,
        seen_by={"rope_scaling": {"rope_type": "linear", "factor": 4.0}},
    ),
    TinyModel(
        "olmo2-biases",
        _config(
            hidden_size=20,
            num_attention_heads=5,
            num_key_value_heads=1,
            attention_bias=True,
            rope_scaling={"factor": 4.0, "rope_type": "linear"},
            tie_word_embeddings=True,
        ),
        store="embed",
        seen_by={"rope_scaling": None, "rope_theta": 100.0},
    ),
)


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    norms = ("post_attention_layernorm", "post_feedforward_layernorm")
    bias = raw.get("attention_bias", False)
    return decoder_shapes(raw, norms, head_norms=q_and_kv_dim(raw), attention_bias=bias)


def layer(
    d: Decoder,
    n: int,
    x: Tensor,
    angles: tuple[Tensor, Tensor],
    window: int | None = None,
    scale: float | None = None,
) -> Tensor:
    at = d.layer(n)
    q, k, v = d.qkv(x, f"{at}self_attn.")
    q = d.keep("q_norm", d.norm(q, f"{at}self_attn.q_norm"))
    k = d.keep("k_norm", d.norm(k, f"{at}self_attn.k_norm"))
    h = d.attention(q, k, v, angles, window, scale)
    h = d.keep("attn_proj", d.linear(h, f"{at}self_attn.o_proj"))
    h = d.keep("attn_post_norm", d.norm(h, f"{at}post_attention_layernorm"))
    x = d.keep("attn_residual", x + h)
    h = d.gated(*d.gate(x, f"{at}mlp."))
    h = d.keep("down", d.linear(h, f"{at}mlp.down_proj"))
    h = d.keep("mlp_post_norm", d.norm(h, f"{at}post_feedforward_layernorm"))
    return d.keep("mlp_residual", x + h)


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = Decoder(raw, weights, ids, how)
    rope = RopeScaling(raw["rope_theta"], **(raw.get("rope_scaling") or {}))
    angles, scale = d.angles(rope), d.head_dim**-0.5 * rope.score_factor
    x = d.keep("embedding", d.embedding())
    for n in range(raw["num_hidden_layers"]):
        x = layer(d, n, x, angles, scale=scale)
    return d.logits(x)
