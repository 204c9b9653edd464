"""OPT (Zhang et al. 2022), with every activation kept.

Differences from GPT-2: row i of the table of positions belongs to position i - 2; ReLU; norms may
come after the blocks; embedding and head may be narrower than x.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from decoder import LayerNormDecoder, layer_norm_shapes, linear_shapes, qkv_shapes, tiny_config
from definitions import Arithmetic, layer_norm
from llama import HEAD, Parameters
from tiny_model import TinyModel

MODEL_TYPE = "opt"
EMBEDDING = "model.decoder.embed_tokens.weight"
UNUSED_POSITIONS = 2


def _config(**changes: Any) -> dict[str, Any]:
    opt = {
        "num_key_value_heads": ...,
        "rms_norm_eps": ...,
        "rope_theta": ...,
        "intermediate_size": ...,
        "ffn_dim": 19,
        "activation_function": "relu",
        "do_layer_norm_before": True,
        "tie_word_embeddings": True,
        "word_embed_proj_dim": 16,
    }
    return tiny_config(MODEL_TYPE, "OPTForCausalLM", **(opt | changes))


MODELS = (
    TinyModel("opt-norm-before", _config(), store="embed", seen_by={"activation_function": "gelu"}),
    TinyModel(
        "opt-narrow-norm-after",
        _config(
            hidden_size=20,
            num_attention_heads=2,
            max_position_embeddings=9,
            do_layer_norm_before=False,
            word_embed_proj_dim=11,
        ),
        seq_len=9,
        store="embed",
        seen_by={"do_layer_norm_before": True, "activation_function": "gelu"},
    ),
    TinyModel(
        "opt-no-biases",
        _config(
            activation_function="gelu",
            enable_bias=False,
            layer_norm_elementwise_affine=False,
            tie_word_embeddings=False,
            word_embed_proj_dim=10,
        ),
        seen_by={"_remove_final_layer_norm": True, "activation_function": "relu"},
    ),
    TinyModel(
        "opt-no-final-norm-bf16",
        _config(_remove_final_layer_norm=True, word_embed_proj_dim=..., torch_dtype="bfloat16"),
        dtype="bfloat16",
        store="embed",
        seen_by={"do_layer_norm_before": False},
    ),
)


def _has_final_norm(raw: dict[str, Any]) -> bool:
    return raw["do_layer_norm_before"] and not raw.get("_remove_final_layer_norm", False)


def _table_width(raw: dict[str, Any]) -> int:
    return raw.get("word_embed_proj_dim") or raw["hidden_size"]


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    dim, hidden, width = raw["hidden_size"], raw["ffn_dim"], _table_width(raw)
    bias = raw.get("enable_bias", True)
    all_heads = raw | {"num_key_value_heads": raw["num_attention_heads"]}

    def norm(name: str) -> dict[str, tuple[int, ...]]:
        affine = raw.get("layer_norm_elementwise_affine", True)
        return layer_norm_shapes(name, dim) if affine else {}

    names: dict[str, tuple[int, ...]] = {
        EMBEDDING: (raw["vocab_size"], width),
        "model.decoder.embed_positions.weight": (
            raw["max_position_embeddings"] + UNUSED_POSITIONS,
            dim,
        ),
    }
    if width != dim:
        names |= linear_shapes("model.decoder.project_in", dim, width, False)
        names |= linear_shapes("model.decoder.project_out", width, dim, False)
    for n in range(raw["num_hidden_layers"]):
        at = f"model.decoder.layers.{n}."
        names |= norm(f"{at}self_attn_layer_norm") | norm(f"{at}final_layer_norm")
        names |= qkv_shapes(all_heads, f"{at}self_attn.", bias)
        names |= linear_shapes(f"{at}self_attn.out_proj", dim, dim, bias)
        names |= linear_shapes(f"{at}fc1", hidden, dim, bias)
        names |= linear_shapes(f"{at}fc2", dim, hidden, bias)
    if _has_final_norm(raw):
        names |= norm("model.decoder.final_layer_norm")
    return names | {HEAD: (raw["vocab_size"], width)}


class _Opt(LayerNormDecoder):
    embedding_name = EMBEDDING
    layers = "model.decoder.layers."

    def norm(self, x: Tensor, name: str) -> Tensor:
        """LayerNorm with PyTorch's eps; a norm without stored numbers has ones and zeros."""
        tensors = self.weights.tensors
        weight, bias = tensors.get(f"{name}.weight"), tensors.get(f"{name}.bias")
        if weight is None or bias is None:
            weight, bias = x.new_ones(x.shape[-1]), x.new_zeros(x.shape[-1])
        return layer_norm(x, weight, bias, 1e-5, self.how)


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = _Opt(raw, weights, ids, how)
    first, narrow = raw["do_layer_norm_before"], _table_width(raw) != raw["hidden_size"]
    table = weights["model.decoder.embed_positions.weight"][UNUSED_POSITIONS:]
    positions = table[: len(ids)].to(how.dtype)
    if narrow:
        x = d.keep("embedding", d.embedding())
        d.keep("positions", positions)
        x = positions + d.keep("project_in", d.linear(x, "model.decoder.project_in"))
        d.keep("embedding_sum", x)
    else:
        x = d.keep("embedding", d.embedding() + positions)
    for n in range(raw["num_hidden_layers"]):
        at = d.layer(n)
        h = d.keep("attn_norm", d.norm(x, f"{at}self_attn_layer_norm")) if first else x
        mixed = d.attention(*d.qkv(h, f"{at}self_attn."), None)
        mixed = d.keep("attn_proj", d.linear(mixed, f"{at}self_attn.out_proj"))
        x = d.keep("attn_residual", x + mixed)
        if not first:
            x = d.keep("attn_norm", d.norm(x, f"{at}self_attn_layer_norm"))
        h = d.keep("mlp_norm", d.norm(x, f"{at}final_layer_norm")) if first else x
        h = d.mlp(h, f"{at}fc1", f"{at}fc2", raw["activation_function"])
        x = d.keep("mlp_residual", x + h)
        if not first:
            x = d.keep("mlp_norm", d.norm(x, f"{at}final_layer_norm"))
    d.ends()
    if _has_final_norm(raw):
        x = d.keep("final_norm", d.norm(x, "model.decoder.final_layer_norm"))
    if narrow:
        x = d.keep("project_out", d.linear(x, "model.decoder.project_out"))
    return d.head(x)
