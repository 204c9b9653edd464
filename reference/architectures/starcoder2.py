"""StarCoder2 (Lozhkov et al. 2024), with every activation kept.

Differences from Llama: LayerNorm; biases; a window; no gate.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from decoder import LayerNormDecoder, layer_norm_shapes, linear_shapes, q_and_kv_dim, qkv_shapes
from decoder import tiny_config
from definitions import Arithmetic, RopeScaling
from llama import EMBEDDING, HEAD, Parameters
from tiny_model import TinyModel

MODEL_TYPE = "starcoder2"


def _config(**changes: Any) -> dict[str, Any]:
    starcoder = {
        "rms_norm_eps": ...,
        "hidden_act": "gelu_pytorch_tanh",
        "norm_epsilon": 1e-5,
        "sliding_window": 4,
        "use_bias": True,
        "tie_word_embeddings": True,
    }
    return tiny_config(MODEL_TYPE, "Starcoder2ForCausalLM", **(starcoder | changes))


MODELS = (
    TinyModel("starcoder2-window4", _config(), store="embed", seen_by={"sliding_window": 5}),
    TinyModel(
        "starcoder2-no-biases",
        _config(
            hidden_size=20,
            num_attention_heads=5,
            num_key_value_heads=1,
            hidden_act="gelu",
            norm_epsilon=0.3,
            sliding_window=None,
            use_bias=False,
            tie_word_embeddings=False,
        ),
        seen_by={"norm_epsilon": 0.2, "rope_theta": 100.0},
    ),
    # Biases and no window: a GGUF file can express only this.
    TinyModel(
        "starcoder2-no-window",
        _config(sliding_window=None),
        store="embed",
        seen_by={"rope_theta": 100.0},
    ),
)


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    dim, hidden, bias = raw["hidden_size"], raw["intermediate_size"], raw["use_bias"]
    q_dim, kv_dim = q_and_kv_dim(raw)
    names: dict[str, tuple[int, ...]] = {EMBEDDING: (raw["vocab_size"], dim)}
    for n in range(raw["num_hidden_layers"]):
        at = f"model.layers.{n}."
        names |= layer_norm_shapes(f"{at}input_layernorm", dim)
        names |= layer_norm_shapes(f"{at}post_attention_layernorm", dim)
        names |= qkv_shapes(raw, f"{at}self_attn.", bias)
        names |= linear_shapes(f"{at}self_attn.o_proj", dim, q_dim, bias)
        names |= linear_shapes(f"{at}mlp.c_fc", hidden, dim, bias)
        names |= linear_shapes(f"{at}mlp.c_proj", dim, hidden, bias)
    return names | layer_norm_shapes("model.norm", dim) | {HEAD: (raw["vocab_size"], dim)}


class _StarCoder2(LayerNormDecoder):
    eps_name = "norm_epsilon"


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = _StarCoder2(raw, weights, ids, how)
    angles = d.angles(RopeScaling(raw["rope_theta"]))
    x = d.keep("embedding", d.embedding())
    for n in range(raw["num_hidden_layers"]):
        at = d.layer(n)
        h = d.keep("attn_norm", d.norm(x, f"{at}input_layernorm"))
        mixed = d.attention(*d.qkv(h, f"{at}self_attn."), angles, raw["sliding_window"])
        mixed = d.keep("attn_proj", d.linear(mixed, f"{at}self_attn.o_proj"))
        x = d.keep("attn_residual", x + mixed)
        h = d.keep("mlp_norm", d.norm(x, f"{at}post_attention_layernorm"))
        h = d.mlp(h, f"{at}mlp.c_fc", f"{at}mlp.c_proj", raw["hidden_act"])
        x = d.keep("mlp_residual", x + h)
    return d.logits(x)
