"""GPT-NeoX (Black et al. 2022), with every activation kept.

Differences from Llama: LayerNorm; both halves of a layer read the same x; RoPE of the first
columns; no gate; q, k and v head by head in one matrix.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from decoder import LayerNormDecoder, layer_norm_shapes, linear_shapes, tiny_config
from definitions import Arithmetic, RopeScaling
from llama import Parameters
from tiny_model import TinyModel

MODEL_TYPE = "gpt_neox"
EMBEDDING, HEAD = "gpt_neox.embed_in.weight", "embed_out.weight"


def _config(**changes: Any) -> dict[str, Any]:
    neox = {
        "num_key_value_heads": ...,
        "rms_norm_eps": ...,
        "rope_theta": ...,
        "hidden_size": 24,
        "num_attention_heads": 3,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-5,
        "rotary_emb_base": 10000,
        "rotary_pct": 0.5,
        "use_parallel_residual": True,
    }
    return tiny_config(MODEL_TYPE, "GPTNeoXForCausalLM", **(neox | changes))


MODELS = (
    TinyModel(
        "gpt-neox-parallel",
        _config(),
        seen_by={"use_parallel_residual": False, "rotary_pct": 0.25, "rotary_emb_base": 100.0},
    ),
    TinyModel(
        "gpt-neox-sequential",
        _config(
            hidden_size=20,
            num_attention_heads=2,
            rotary_pct=0.2,
            rotary_emb_base=100,
            layer_norm_eps=0.3,
            attention_bias=False,
            use_parallel_residual=False,
            tie_word_embeddings=True,
        ),
        store="embed",
        seen_by={"use_parallel_residual": True, "rotary_pct": 1.0, "layer_norm_eps": 0.2},
    ),
)


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    dim, hidden = raw["hidden_size"], raw["intermediate_size"]
    bias = raw.get("attention_bias", True)
    names: dict[str, tuple[int, ...]] = {EMBEDDING: (raw["vocab_size"], dim)}
    for n in range(raw["num_hidden_layers"]):
        at = f"gpt_neox.layers.{n}."
        names |= layer_norm_shapes(f"{at}input_layernorm", dim)
        names |= layer_norm_shapes(f"{at}post_attention_layernorm", dim)
        names |= linear_shapes(f"{at}attention.query_key_value", 3 * dim, dim, bias)
        names |= linear_shapes(f"{at}attention.dense", dim, dim, bias)
        names |= linear_shapes(f"{at}mlp.dense_h_to_4h", hidden, dim, True)
        names |= linear_shapes(f"{at}mlp.dense_4h_to_h", dim, hidden, True)
    names |= layer_norm_shapes("gpt_neox.final_layer_norm", dim)
    return names | {HEAD: (raw["vocab_size"], dim)}


class _GptNeox(LayerNormDecoder):
    embedding_name, head_name = EMBEDDING, HEAD
    layers, final_norm = "gpt_neox.layers.", "gpt_neox.final_layer_norm"


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = _GptNeox(raw, weights, ids, how)
    columns = int(d.head_dim * raw["rotary_pct"])
    angles = d.angles(RopeScaling(raw["rotary_emb_base"]), columns)
    x = d.keep("embedding", d.embedding())
    for n in range(raw["num_hidden_layers"]):
        at = d.layer(n)
        h = d.keep("attn_norm", d.norm(x, f"{at}input_layernorm"))
        qkv = d.fused_qkv(h, f"{at}attention.query_key_value", raw["num_attention_heads"])
        mixed = d.attention(*qkv, angles)
        if raw["use_parallel_residual"]:
            h = d.keep("mlp_norm", d.norm(x, f"{at}post_attention_layernorm"))
        mixed = d.keep("attn_proj", d.linear(mixed, f"{at}attention.dense"))
        x = d.keep("attn_residual", x + mixed)
        if not raw["use_parallel_residual"]:
            h = d.keep("mlp_norm", d.norm(x, f"{at}post_attention_layernorm"))
        h = d.mlp(h, f"{at}mlp.dense_h_to_4h", f"{at}mlp.dense_4h_to_h", raw["hidden_act"])
        x = d.keep("mlp_residual", x + h)
    return d.logits(x)
