"""ChatGLM and ChatGLM2 in plain PyTorch, as published: proves architectures/chatglm.py.

transformers has no such models. So they are written twice, without shared code: here with PyTorch's
own operators and in few lines, there with all activations and all orders of summation.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Weights = dict[str, Tensor]


def logits(raw: dict[str, Any], w: Weights, ids: Tensor) -> Tensor:
    """logits [S, vocab], in the precision of the weights. Both models have one model type."""
    return (chatglm if "position_encoding_2d" in raw else chatglm2)(raw, w, ids)


def prompt_of(raw: dict[str, Any], ids: Tensor) -> tuple[int, int]:
    """The number of tokens in the prompt, and the position of the token that the answer
    replaces."""
    text = ids.tolist()
    name = "gmask_token_id" if raw["gmask_token_id"] in text else "mask_token_id"
    return text.index(raw["bos_token_id"]), text.index(raw[name])


def turns_of(positions: Tensor, columns: int) -> Tensor:
    """Complex numbers of absolute value 1, one per position and pair -> [S, 1, columns / 2]: a pair
    of columns, as a complex number, times this number is the rotated pair."""
    exponents = torch.arange(0, columns, 2, dtype=torch.float64) / columns
    angles = torch.outer(positions.double(), 10000.0**-exponents)
    return torch.polar(torch.ones_like(angles), angles)[:, None]


def chatglm(raw: dict[str, Any], w: Weights, ids: Tensor) -> Tensor:
    eps, heads, length = raw["layernorm_epsilon"], raw["num_attention_heads"], len(ids)
    size = raw["hidden_size"] // heads
    alpha = (2 * raw["num_layers"]) ** 0.5
    prompt, mask = prompt_of(raw, ids)

    # Positions: 0, 1, 2, ... in the prompt; in the answer that of the mask, and 1, 2, 3, ...
    text = torch.tensor([i if i < prompt else mask for i in range(length)])
    answer = torch.tensor([0] * prompt + [i + 1 for i in range(length - prompt)])
    visible = torch.ones(length, length).tril().bool()
    visible[:, :prompt] = True

    def project(x: Tensor, name: str) -> Tensor:
        return F.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])

    def norm(x: Tensor, name: str) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], eps)

    # [S, heads, size]; the second column of a pair is a quarter of the head after the first.
    def rotate(x: Tensor) -> Tensor:
        def half(part: Tensor, positions: Tensor) -> Tensor:
            turned = torch.complex(*part.double().chunk(2, -1)) * turns_of(positions, size // 2)
            return torch.cat((turned.real, turned.imag), dim=-1).to(x.dtype)

        first, second = x.chunk(2, dim=-1)
        return torch.cat((half(first, text), half(second, answer)), dim=-1)

    x = F.embedding(ids, w["transformer.word_embeddings.weight"])
    for n in range(raw["num_layers"]):
        at = f"transformer.layers.{n}."
        h = norm(x, f"{at}input_layernorm")
        fused = project(h, f"{at}attention.query_key_value").unflatten(-1, (heads, 3 * size))
        q, k, v = fused.split(size, dim=-1)
        q, k, v = (y.transpose(0, 1)[None] for y in (rotate(q), rotate(k), v))
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=visible)
        mixed = mixed[0].transpose(0, 1).flatten(1)
        x = alpha * h + project(mixed, f"{at}attention.dense")
        h = norm(x, f"{at}post_attention_layernorm")
        inner = F.gelu(project(h, f"{at}mlp.dense_h_to_4h"), approximate="tanh")
        x = alpha * h + project(inner, f"{at}mlp.dense_4h_to_h")
    return F.linear(norm(x, "transformer.final_layernorm"), w["lm_head.weight"])


def chatglm2(raw: dict[str, Any], w: Weights, ids: Tensor) -> Tensor:
    eps, heads = raw["layernorm_epsilon"], raw["num_attention_heads"]
    size = raw.get("kv_channels") or raw["hidden_size"] // heads
    groups = raw["multi_query_group_num"]

    def project(x: Tensor, name: str) -> Tensor:
        return F.linear(x, w[f"{name}.weight"], w.get(f"{name}.bias"))

    def norm(x: Tensor, name: str) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], w[f"{name}.weight"], eps)

    turns = turns_of(torch.arange(len(ids)), size // 2)

    def rotate(x: Tensor) -> Tensor:  # [S, heads, size]; pairs are neighbours in the first half
        half = size // 2
        pairs = torch.view_as_complex(x[..., :half].unflatten(-1, (-1, 2)).double())
        turned = torch.view_as_real(pairs * turns).flatten(-2).to(x.dtype)
        return torch.cat((turned, x[..., half:]), dim=-1)

    x = F.embedding(ids, w["transformer.embedding.word_embeddings.weight"])
    for n in range(raw["num_layers"]):
        at = f"transformer.encoder.layers.{n}."
        fused = project(norm(x, f"{at}input_layernorm"), f"{at}self_attention.query_key_value")
        if raw["multi_query_attention"]:
            q, k, v = fused.split((heads * size, groups * size, groups * size), dim=-1)
            q, k, v = (y.unflatten(-1, (-1, size)) for y in (q, k, v))
        else:  # q, k and v of the first head, then of the next
            q, k, v = fused.unflatten(-1, (heads, 3 * size)).split(size, dim=-1)
        q, k, v = (y.transpose(0, 1)[None] for y in (rotate(q), rotate(k), v))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + project(mixed[0].transpose(0, 1).flatten(1), f"{at}self_attention.dense")
        h = norm(x, f"{at}post_attention_layernorm")
        gate, up = project(h, f"{at}mlp.dense_h_to_4h").chunk(2, dim=-1)
        x = x + project(F.silu(gate) * up, f"{at}mlp.dense_4h_to_h")
    return project(norm(x, "transformer.encoder.final_layernorm"), "transformer.output_layer")
