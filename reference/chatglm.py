"""ChatGLM2 in plain PyTorch, as it was published: what architectures/chatglm.py is proved against.

transformers has no such model. So it is written twice, and nothing is shared: here with PyTorch's own
operators and as few lines as possible, there with every activation and every order of summation.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Weights = dict[str, Tensor]


def chatglm2(raw: dict[str, Any], w: Weights, ids: Tensor) -> Tensor:
    """logits [S, vocab]; the precision is that of the weights."""
    eps, heads = raw["layernorm_epsilon"], raw["num_attention_heads"]
    size = raw.get("kv_channels") or raw["hidden_size"] // heads
    groups = raw["multi_query_group_num"]

    def project(x: Tensor, name: str) -> Tensor:
        return F.linear(x, w[f"{name}.weight"], w.get(f"{name}.bias"))

    def norm(x: Tensor, name: str) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], w[f"{name}.weight"], eps)

    # Complex numbers of size 1, one per position and pair: a pair of columns times such a number is
    # that pair, rotated. Half of a head has size / 4 pairs.
    exponents = torch.arange(0, size // 2, 2, dtype=torch.float64) / (size // 2)
    angles = torch.outer(torch.arange(len(ids), dtype=torch.float64), 10000.0**-exponents)
    turns = torch.polar(torch.ones_like(angles), angles)[:, None]

    def rotate(x: Tensor) -> Tensor:  # [S, heads, size]
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
        else:  # q, k and v of one head, then of the next
            q, k, v = fused.unflatten(-1, (heads, 3 * size)).split(size, dim=-1)
        q, k, v = (y.transpose(0, 1)[None] for y in (rotate(q), rotate(k), v))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + project(mixed[0].transpose(0, 1).flatten(1), f"{at}self_attention.dense")
        h = norm(x, f"{at}post_attention_layernorm")
        gate, up = project(h, f"{at}mlp.dense_h_to_4h").chunk(2, dim=-1)
        x = x + project(F.silu(gate) * up, f"{at}mlp.dense_4h_to_h")
    return project(norm(x, "transformer.encoder.final_layernorm"), "transformer.output_layer")
