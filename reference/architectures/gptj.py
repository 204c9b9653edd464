"""GPT-J (Wang and Komatsuzaki 2021), with every activation kept.

Differences from GPT-2: one LayerNorm per layer, read by both halves; RoPE of neighbouring columns;
no biases in attention, one in the output head.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from decoder import LayerNormDecoder, layer_norm_shapes, linear_shapes, own_sizes_config
from definitions import Arithmetic, RopeScaling, neighbour_rope
from llama import Parameters
from tiny_model import TinyModel

MODEL_TYPE = "gptj"
EMBEDDING = "transformer.wte.weight"


def _config(**changes: Any) -> dict[str, Any]:
    """A config with GPT-J's own names for the sizes."""
    gptj = {
        "n_embd": 16,
        "n_layer": 2,
        "n_head": 2,
        "n_positions": 64,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
        "rotary": True,
        "rotary_dim": 4,
        "scale_attn_weights": True,
    }
    return own_sizes_config(MODEL_TYPE, "GPTJForCausalLM", gptj, **changes)


MODELS = (
    TinyModel("gptj-4-of-8-columns", _config(), seen_by={"rotary_dim": 2}),
    TinyModel(
        "gptj-whole-heads",
        _config(
            n_embd=18,
            n_head=3,
            n_inner=23,
            activation_function="relu",
            layer_norm_epsilon=0.3,
            rotary_dim=6,
            tie_word_embeddings=True,
        ),
        store="embed",
        seen_by={"rotary_dim": 4, "layer_norm_epsilon": 0.2, "activation_function": "gelu"},
    ),
)


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    dim, hidden = raw["n_embd"], raw.get("n_inner") or 4 * raw["n_embd"]
    names: dict[str, tuple[int, ...]] = {EMBEDDING: (raw["vocab_size"], dim)}
    for n in range(raw["n_layer"]):
        at = f"transformer.h.{n}."
        names |= layer_norm_shapes(f"{at}ln_1", dim)
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            names |= linear_shapes(f"{at}attn.{name}", dim, dim, False)
        names |= linear_shapes(f"{at}mlp.fc_in", hidden, dim, True)
        names |= linear_shapes(f"{at}mlp.fc_out", dim, hidden, True)
    names |= layer_norm_shapes("transformer.ln_f", dim)
    return names | linear_shapes("lm_head", raw["vocab_size"], dim, True)


class _GptJ(LayerNormDecoder):
    embedding_name = EMBEDDING
    layers, final_norm = "transformer.h.", "transformer.ln_f"
    eps_name = "layer_norm_epsilon"
    rope = staticmethod(neighbour_rope)


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    names = {"hidden_size": raw["n_embd"], "num_attention_heads": raw["n_head"]}
    d = _GptJ(raw | names, weights, ids, how)
    angles = d.angles(RopeScaling(10000.0), raw["rotary_dim"])
    x = d.keep("embedding", d.embedding())
    for n in range(raw["n_layer"]):
        at = d.layer(n)
        h = d.keep("norm", d.norm(x, f"{at}ln_1"))
        mixed = d.attention(*d.qkv(h, f"{at}attn."), angles)
        mixed = d.keep("attn_proj", d.linear(mixed, f"{at}attn.out_proj"))
        x = d.keep("attn_residual", x + mixed)
        h = d.mlp(h, f"{at}mlp.fc_in", f"{at}mlp.fc_out", raw["activation_function"])
        x = d.keep("mlp_residual", x + h)
    return d.logits(x)
