"""ChatGLM2 (Zeng et al. 2022), with every activation kept.

Beside Llama: rope of neighbouring columns, in the first half of each head; one matrix for q, k and v,
with biases; one matrix for gate and up. transformers has no such model: ../chatglm.py stands in.
"""

from __future__ import annotations

from typing import Any

import chatglm
from torch import Tensor

from decoder import Decoder, linear_shapes, own_sizes_config
from definitions import Arithmetic, RopeScaling, neighbour_rope, rms_norm
from llama import Parameters
from tiny_model import TinyModel

MODEL_TYPE = "chatglm"
DEFINITION = chatglm.chatglm2


def _second(**changes: Any) -> dict[str, Any]:
    """As the config.json of ChatGLM2-6B and ChatGLM3-6B says it."""
    own = {
        "add_bias_linear": False,
        "add_qkv_bias": True,
        "apply_query_key_layer_scaling": True,
        "apply_residual_connection_post_layernorm": False,
        "attention_softmax_in_fp32": True,
        "bias_dropout_fusion": True,
        "ffn_hidden_size": 19,
        "hidden_size": 16,
        "kv_channels": 8,
        "layernorm_epsilon": 1e-5,
        "multi_query_attention": True,
        "multi_query_group_num": 2,
        "num_attention_heads": 4,
        "num_layers": 2,
        "original_rope": True,
        "padded_vocab_size": 37,
        "post_layer_norm": True,
        "rmsnorm": True,
        "seq_length": 64,
        "vocab_size": ...,
        "bos_token_id": ...,
    }
    return own_sizes_config(MODEL_TYPE, "ChatGLMModel", own, **changes)


MODELS = (
    TinyModel(
        "chatglm2-two-key-heads", _second(), dtype="float16", seen_by={"layernorm_epsilon": 0.01}
    ),
    # What the config.json can also say, and no published one does: all heads have keys of their own.
    TinyModel(
        "chatglm2-biases",
        _second(
            add_bias_linear=True,
            add_qkv_bias=False,
            kv_channels=...,
            layernorm_epsilon=0.3,
            multi_query_attention=False,
            vocab_size=37,
        ),
        seen_by={"layernorm_epsilon": 0.2},
    ),
)


def head_size(raw: dict[str, Any]) -> int:
    return raw.get("kv_channels") or raw["hidden_size"] // raw["num_attention_heads"]


def n_key_heads(raw: dict[str, Any]) -> int:
    shared = raw["multi_query_attention"]
    return raw["multi_query_group_num"] if shared else raw["num_attention_heads"]


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    dim, hidden, vocab = raw["hidden_size"], raw["ffn_hidden_size"], raw["padded_vocab_size"]
    size, heads, bias = head_size(raw), raw["num_attention_heads"], raw["add_bias_linear"]
    fused = (heads + 2 * n_key_heads(raw)) * size
    names: dict[str, tuple[int, ...]] = {
        "transformer.embedding.word_embeddings.weight": (vocab, dim),
        "transformer.rotary_pos_emb.inv_freq": (size // 4,),  # that nothing reads
    }
    for n in range(raw["num_layers"]):
        at = f"transformer.encoder.layers.{n}."
        self, mlp = f"{at}self_attention.", f"{at}mlp."
        names[f"{at}input_layernorm.weight"] = (dim,)
        names |= linear_shapes(f"{self}query_key_value", fused, dim, bias or raw["add_qkv_bias"])
        names |= linear_shapes(f"{self}dense", dim, heads * size, bias)
        names[f"{at}post_attention_layernorm.weight"] = (dim,)
        names |= linear_shapes(f"{mlp}dense_h_to_4h", 2 * hidden, dim, bias)
        names |= linear_shapes(f"{mlp}dense_4h_to_h", dim, hidden, bias)
    return names | {
        "transformer.encoder.final_layernorm.weight": (dim,),
        "transformer.output_layer.weight": (vocab, dim),
    }


class Second(Decoder):
    embedding_name = "transformer.embedding.word_embeddings.weight"
    head_name = "transformer.output_layer.weight"
    layers, final_norm = "transformer.encoder.layers.", "transformer.encoder.final_layernorm"
    rope = staticmethod(neighbour_rope)

    def __init__(self, raw: dict[str, Any], *rest: Any) -> None:
        super().__init__(raw, *rest)
        self.head_dim = head_size(raw)

    def norm(self, x: Tensor, name: str) -> Tensor:
        return rms_norm(x, self.weights[f"{name}.weight"], self.raw["layernorm_epsilon"], self.how)

    def whole_qkv(self, h: Tensor, name: str) -> tuple[Tensor, Tensor, Tensor]:
        """Of one matrix: all queries, then all keys, then all values."""
        kv_dim = n_key_heads(self.raw) * self.head_dim
        sizes = (self.raw["num_attention_heads"] * self.head_dim, kv_dim, kv_dim)
        q, k, v = self.linear(h, name).split(sizes, dim=-1)
        return self.keep("q", q), self.keep("k", k), self.keep("v", v)


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = Second(raw, weights, ids, how)
    angles = d.angles(RopeScaling(10000.0), d.head_dim // 2)
    x = d.keep("embedding", d.embedding())
    for n in range(raw["num_layers"]):
        at = d.layer(n)
        self, mlp = f"{at}self_attention.", f"{at}mlp."
        h = d.keep("attn_norm", d.norm(x, f"{at}input_layernorm"))
        if raw["multi_query_attention"]:
            qkv = d.whole_qkv(h, f"{self}query_key_value")
        else:
            qkv = d.fused_qkv(h, f"{self}query_key_value", n_key_heads(raw))
        h = d.attention(*qkv, angles)
        x = d.keep("attn_residual", x + d.keep("attn_proj", d.linear(h, f"{self}dense")))
        h = d.keep("mlp_norm", d.norm(x, f"{at}post_attention_layernorm"))
        gate, up = d.linear(h, f"{mlp}dense_h_to_4h").chunk(2, -1)
        h = d.swiglu(d.keep("gate", gate), d.keep("up", up))
        x = d.keep("mlp_residual", x + d.keep("down", d.linear(h, f"{mlp}dense_4h_to_h")))
    return d.logits(x)
