"""ChatGLM-6B (Zeng et al. 2022) and ChatGLM2-6B, which have one model type, with every activation
kept.

ChatGLM-6B differs from GPT-NeoX: each half of a head is rotated by its own position; tokens of the
prompt attend to the whole prompt; a block's result is added to sqrt(2 n_layers) times the norm of
x. ChatGLM2-6B differs from Llama: RoPE of neighbouring columns, in the first half of each head; one
matrix for q, k and v, with biases; one matrix for gate and up. transformers has no such models:
../chatglm.py takes its place.
"""

from __future__ import annotations

from typing import Any

import chatglm
import torch
from torch import Tensor

from decoder import Decoder, LayerNormDecoder, layer_norm_shapes, linear_shapes, own_sizes_config
from definitions import Arithmetic, RopeScaling, attention, neighbour_rope, rms_norm, rope_angles
from llama import Parameters
from tiny_model import TinyModel

MODEL_TYPE = "chatglm"
DEFINITION = chatglm.logits


def _first(**changes: Any) -> dict[str, Any]:
    """A config like the config.json of ChatGLM-6B."""
    own = {
        "bos_token_id": 35,
        "eos_token_id": 36,
        "gmask_token_id": 34,
        "hidden_size": 16,
        "inner_hidden_size": 19,
        "layernorm_epsilon": 1e-5,
        "mask_token_id": 33,
        "max_sequence_length": 64,
        "num_attention_heads": 2,
        "num_layers": 2,
        "pad_token_id": 3,
        "position_encoding_2d": True,
        "tie_word_embeddings": ...,
    }
    return own_sizes_config(MODEL_TYPE, "ChatGLMModel", own, **changes)


def _second(**changes: Any) -> dict[str, Any]:
    """A config like the config.json of ChatGLM2-6B and ChatGLM3-6B."""
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
    # The usual prompt ends with gMASK, and the answer begins with the token that ends the prompt.
    TinyModel(
        "chatglm-gmask",
        _first(),
        dtype="float16",
        ids=(5, 17, 0, 29, 34, 35, 8, 17, 2, 11),
        seen_by={"layernorm_epsilon": 0.01, "bos_token_id": 8, "gmask_token_id": 17},
    ),
    # An answer that replaces a mask inside the prompt; the token that ends prompts occurs twice.
    TinyModel(
        "chatglm-mask-inside",
        _first(
            hidden_size=24,
            inner_hidden_size=...,
            layernorm_epsilon=0.3,
            num_attention_heads=3,
            num_layers=1,
        ),
        ids=(7, 33, 12, 1, 35, 20, 35, 9),
        seen_by={"layernorm_epsilon": 0.2, "mask_token_id": 12},
    ),
    TinyModel(
        "chatglm2-two-key-heads", _second(), dtype="float16", seen_by={"layernorm_epsilon": 0.01}
    ),
    # The only size that GGUF files can express: heads of hidden_size / num_attention_heads.
    TinyModel("chatglm2-usual-heads", _second(kv_channels=4), seen_by={"layernorm_epsilon": 0.01}),
    # A config.json may also say this, but no published one does: each head has its own keys.
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


def first_shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    dim, vocab = raw["hidden_size"], raw["vocab_size"]
    hidden = raw.get("inner_hidden_size") or 4 * dim
    names: dict[str, tuple[int, ...]] = {"transformer.word_embeddings.weight": (vocab, dim)}
    for n in range(raw["num_layers"]):
        at = f"transformer.layers.{n}."
        names |= layer_norm_shapes(f"{at}input_layernorm", dim)
        columns = dim // raw["num_attention_heads"] // 2
        names[f"{at}attention.rotary_emb.inv_freq"] = (columns // 2,)  # unused
        names |= linear_shapes(f"{at}attention.query_key_value", 3 * dim, dim, True)
        names |= linear_shapes(f"{at}attention.dense", dim, dim, True)
        names |= layer_norm_shapes(f"{at}post_attention_layernorm", dim)
        names |= linear_shapes(f"{at}mlp.dense_h_to_4h", hidden, dim, True)
        names |= linear_shapes(f"{at}mlp.dense_4h_to_h", dim, hidden, True)
    names |= layer_norm_shapes("transformer.final_layernorm", dim)
    return names | {"lm_head.weight": (vocab, dim)}


class First(LayerNormDecoder):
    embedding_name, final_norm = "transformer.word_embeddings.weight", "transformer.final_layernorm"
    layers, eps_name = "transformer.layers.", "layernorm_epsilon"

    def positions(self) -> tuple[Tensor, Tensor, int]:
        """The position of each token in the text and in the answer, and the length of the
        prompt."""
        prompt, mask = chatglm.prompt_of(self.raw, self.ids)
        index = torch.arange(len(self.ids))
        text = index.where(index < prompt, torch.tensor(mask))
        return text, (index - prompt + 1).clamp(min=0), prompt

    def halves_rope(self, x: Tensor, name: str, text: Tensor, answer: Tensor) -> Tensor:
        half = self.head_dim // 2
        first, second = (
            rope_angles(positions, half, RopeScaling(10000.0), self.how)
            for positions in (text, answer)
        )
        x = self.keep(f"{name}_rope", self._rope(x, first))
        return torch.cat((x[..., :half], self._rope(x[..., half:], second)), dim=-1)

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        text, answer, prompt = self.positions()
        q, k, v = (x.unflatten(-1, (-1, self.head_dim)) for x in (q, k, v))
        q, k = (self.halves_rope(x, name, text, answer) for x, name in ((q, "q"), (k, "k")))
        q, k = self.keep("q_rope_answer", q), self.keep("k_rope_answer", k)
        probabilities, mixed = attention(q, k, v, None, self.how, prompt=prompt)
        self.keep("attn_probs", probabilities)
        return self.keep("attn_out", mixed).flatten(1)


def first_forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = First(raw, weights, ids, how)
    alpha = (2 * raw["num_layers"]) ** 0.5
    x = d.keep("embedding", d.embedding())
    for n in range(raw["num_layers"]):
        at = d.layer(n)
        h = d.keep("attn_norm", d.norm(x, f"{at}input_layernorm"))
        qkv = d.fused_qkv(h, f"{at}attention.query_key_value", raw["num_attention_heads"])
        x = d.keep("attn_proj", d.linear(d.attend(*qkv), f"{at}attention.dense"))
        x = d.keep("attn_residual", x + alpha * h)
        h = d.keep("mlp_norm", d.norm(x, f"{at}post_attention_layernorm"))
        x = d.mlp(h, f"{at}mlp.dense_h_to_4h", f"{at}mlp.dense_4h_to_h", "gelu_new")
        x = d.keep("mlp_residual", x + alpha * h)
    return d.logits(x)


def head_size(raw: dict[str, Any]) -> int:
    return raw.get("kv_channels") or raw["hidden_size"] // raw["num_attention_heads"]


def n_key_heads(raw: dict[str, Any]) -> int:
    shared = raw["multi_query_attention"]
    return raw["multi_query_group_num"] if shared else raw["num_attention_heads"]


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    if "position_encoding_2d" in raw:
        return first_shapes(raw)
    dim, hidden, vocab = raw["hidden_size"], raw["ffn_hidden_size"], raw["padded_vocab_size"]
    size, heads, bias = head_size(raw), raw["num_attention_heads"], raw["add_bias_linear"]
    fused = (heads + 2 * n_key_heads(raw)) * size
    names: dict[str, tuple[int, ...]] = {
        "transformer.embedding.word_embeddings.weight": (vocab, dim),
        "transformer.rotary_pos_emb.inv_freq": (size // 4,),  # unused
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
        """q, k and v from one matrix: all queries, then all keys, then all values."""
        kv_dim = n_key_heads(self.raw) * self.head_dim
        sizes = (self.raw["num_attention_heads"] * self.head_dim, kv_dim, kv_dim)
        q, k, v = self.linear(h, name).split(sizes, dim=-1)
        return self.keep("q", q), self.keep("k", k), self.keep("v", v)


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    if "position_encoding_2d" in raw:
        return first_forward(raw, weights, ids, how)
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
