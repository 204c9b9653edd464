"""GPT-2 (Radford et al. 2019), with every activation kept.

Differences from Llama: a learned table of positions; LayerNorm; biases; no gate; matrices stored as
[in, out].
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from decoder import LayerNormDecoder, layer_norm_shapes, own_sizes_config
from definitions import Arithmetic, linear
from llama import Parameters
from tiny_model import TinyModel

MODEL_TYPE = "gpt2"
EMBEDDING, HEAD = "transformer.wte.weight", "lm_head.weight"


def _config(**changes: Any) -> dict[str, Any]:
    """A config with GPT-2's own names for the sizes."""
    gpt2 = {
        "n_embd": 16,
        "n_layer": 2,
        "n_head": 4,
        "n_positions": 64,
        "n_ctx": 64,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": True,
    }
    return own_sizes_config(MODEL_TYPE, "GPT2LMHeadModel", gpt2, **changes)


MODELS = (
    TinyModel("gpt2-tied", _config(), store="embed", seen_by={"layer_norm_epsilon": 0.1}),
    TinyModel(
        "gpt2-scale-by-layer",
        _config(
            n_embd=18,
            n_head=3,
            n_inner=29,
            n_positions=9,
            activation_function="gelu",
            layer_norm_epsilon=0.3,
            scale_attn_by_inverse_layer_idx=True,
            tie_word_embeddings=False,
        ),
        seq_len=9,
        seen_by={"scale_attn_by_inverse_layer_idx": False, "layer_norm_epsilon": 0.2},
    ),
    TinyModel(
        "gpt2-unscaled-bf16",
        _config(n_inner=23, scale_attn_weights=False, torch_dtype="bfloat16"),
        dtype="bfloat16",
        store="embed",
        seen_by={"scale_attn_weights": True},
    ),
)


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    dim, hidden = raw["n_embd"], raw.get("n_inner") or 4 * raw["n_embd"]
    names: dict[str, tuple[int, ...]] = {
        EMBEDDING: (raw["vocab_size"], dim),
        "transformer.wpe.weight": (raw["n_positions"], dim),
    }
    for n in range(raw["n_layer"]):
        at = f"transformer.h.{n}"
        names |= layer_norm_shapes(f"{at}.ln_1", dim) | layer_norm_shapes(f"{at}.ln_2", dim)
        for name, inputs, outputs in (
            ("attn.c_attn", dim, 3 * dim),
            ("attn.c_proj", dim, dim),
            ("mlp.c_fc", dim, hidden),
            ("mlp.c_proj", hidden, dim),
        ):
            names |= {f"{at}.{name}.weight": (inputs, outputs), f"{at}.{name}.bias": (outputs,)}
    return names | layer_norm_shapes("transformer.ln_f", dim) | {HEAD: (raw["vocab_size"], dim)}


class _Gpt2(LayerNormDecoder):
    embedding_name, head_name = EMBEDDING, HEAD
    layers, final_norm = "transformer.h.", "transformer.ln_f"
    eps_name = "layer_norm_epsilon"

    def linear(self, x: Tensor, name: str) -> Tensor:
        """transformers' Conv1D: the weight is [in, out]."""
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return linear(x, weight.T, bias, self.how)


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    names = {"hidden_size": raw["n_embd"], "num_attention_heads": raw["n_head"]}
    d = _Gpt2(raw | names, weights, ids, how)
    positions = weights["transformer.wpe.weight"][: len(ids)].to(how.dtype)
    x = d.keep("embedding", d.embedding() + positions)
    for n in range(raw["n_layer"]):
        at = d.layer(n)
        scale = d.head_dim**-0.5 if raw.get("scale_attn_weights", True) else 1.0
        if raw.get("scale_attn_by_inverse_layer_idx", False):
            scale /= n + 1
        h = d.keep("attn_norm", d.norm(x, f"{at}ln_1"))
        parts = d.linear(h, f"{at}attn.c_attn").chunk(3, -1)
        q, k, v = (d.keep(name, part) for name, part in zip("qkv", parts))
        h = d.attention(q, k, v, None, scale=scale)
        x = d.keep("attn_residual", x + d.keep("attn_proj", d.linear(h, f"{at}attn.c_proj")))
        h = d.keep("mlp_norm", d.norm(x, f"{at}ln_2"))
        h = d.mlp(h, f"{at}mlp.c_fc", f"{at}mlp.c_proj", raw["activation_function"])
        x = d.keep("mlp_residual", x + h)
    return d.logits(x)
