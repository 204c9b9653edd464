"""BLOOM (BigScience 2022), with every activation kept.

Differences from GPT-NeoX: ALiBi in place of RoPE; a norm of the embedding; the second half of a
layer reads the result of the first.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from decoder import LayerNormDecoder, layer_norm_shapes, linear_shapes, own_sizes_config
from definitions import Arithmetic, alibi_slopes
from llama import HEAD, Parameters
from tiny_model import TinyModel

MODEL_TYPE = "bloom"
EMBEDDING = "transformer.word_embeddings.weight"


def _config(**changes: Any) -> dict[str, Any]:
    bloom = {
        "hidden_size": 16,
        "n_layer": 2,
        "n_head": 4,
        "layer_norm_epsilon": 1e-5,
        "apply_residual_connection_post_layernorm": False,
        "offset_alibi": 100,
        "tie_word_embeddings": True,
    }
    return own_sizes_config(MODEL_TYPE, "BloomForCausalLM", bloom, **changes)


MODELS = (
    TinyModel("bloom-4-heads", _config(), store="embed", seen_by={"layer_norm_epsilon": 0.1}),
    # 6 is no power of two. The sizes have the names of the first files.
    TinyModel(
        "bloom-6-heads",
        _config(
            hidden_size=...,
            n_embed=12,
            n_layer=...,
            num_hidden_layers=2,
            n_head=...,
            num_attention_heads=6,
            n_inner=None,
            layer_norm_epsilon=0.3,
            pretraining_tp=2,
            tie_word_embeddings=False,
        ),
        seen_by={"layer_norm_epsilon": 0.2},
    ),
    TinyModel(
        "bloom-residual-after-norm",
        _config(n_layer=1, apply_residual_connection_post_layernorm=True),
        store="embed",
        seen_by={"apply_residual_connection_post_layernorm": False},
    ),
)


def _sizes(raw: dict[str, Any]) -> dict[str, int]:
    return {
        "hidden_size": raw.get("hidden_size") or raw["n_embed"],
        "num_hidden_layers": raw.get("n_layer") or raw["num_hidden_layers"],
        "num_attention_heads": raw.get("n_head") or raw["num_attention_heads"],
    }


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    sizes = _sizes(raw)
    dim = sizes["hidden_size"]
    names: dict[str, tuple[int, ...]] = {EMBEDDING: (raw["vocab_size"], dim)}
    names |= layer_norm_shapes("transformer.word_embeddings_layernorm", dim)
    for n in range(sizes["num_hidden_layers"]):
        at = f"transformer.h.{n}."
        names |= layer_norm_shapes(f"{at}input_layernorm", dim)
        names |= layer_norm_shapes(f"{at}post_attention_layernorm", dim)
        names |= linear_shapes(f"{at}self_attention.query_key_value", 3 * dim, dim, True)
        names |= linear_shapes(f"{at}self_attention.dense", dim, dim, True)
        names |= linear_shapes(f"{at}mlp.dense_h_to_4h", 4 * dim, dim, True)
        names |= linear_shapes(f"{at}mlp.dense_4h_to_h", dim, 4 * dim, True)
    return names | layer_norm_shapes("transformer.ln_f", dim) | {HEAD: (raw["vocab_size"], dim)}


class _Bloom(LayerNormDecoder):
    embedding_name = EMBEDDING
    layers, final_norm = "transformer.h.", "transformer.ln_f"
    eps_name = "layer_norm_epsilon"

    def mlp(self, h: Tensor, at: str) -> Tensor:
        """GELU in its tanh form; its constant sqrt(2 / pi) has 8 digits, as in transformers."""
        h = self.keep("up", self.linear(h, f"{at}dense_h_to_4h"))
        inner = 0.79788456 * h * (1 + 0.044715 * h * h)
        h = self.keep("gelu", 0.5 * h * (1 + torch.tanh(inner)))
        return self.keep("down", self.linear(h, f"{at}dense_4h_to_h"))


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    raw = raw | _sizes(raw)
    heads = raw["num_attention_heads"]
    add_to_normed = raw["apply_residual_connection_post_layernorm"]
    d = _Bloom(raw, weights, ids, how)
    slopes = alibi_slopes(heads)
    x = d.keep("embedding", d.embedding())
    x = d.keep("embedding_norm", d.norm(x, "transformer.word_embeddings_layernorm"))
    for n in range(raw["num_hidden_layers"]):
        at = d.layer(n)
        h = d.keep("attn_norm", d.norm(x, f"{at}input_layernorm"))
        x = h if add_to_normed else x
        qkv = d.fused_qkv(h, f"{at}self_attention.query_key_value", heads)
        mixed = d.attention(*qkv, None, slopes=slopes)
        mixed = d.keep("attn_proj", d.linear(mixed, f"{at}self_attention.dense"))
        x = d.keep("attn_residual", x + mixed)
        h = d.keep("mlp_norm", d.norm(x, f"{at}post_attention_layernorm"))
        x = h if add_to_normed else x
        x = d.keep("mlp_residual", x + d.mlp(h, f"{at}mlp."))
    return d.logits(x)
