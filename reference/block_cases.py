"""The cases of attention and of the two blocks that are composed of operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

import definitions
from definitions import Arithmetic, RopeScaling
from llama import Config, attention_block, mlp_block, recorder
from operator_cases import Case, normal
from seed import random_for


def attention_cases() -> Iterator[Case]:
    """kv_len = past + q_len; query i is at position past + i; window 0: no window."""

    def case(
        name: str,
        heads: tuple[int, int],
        q_len: int,
        past: int = 0,
        head_dim: int = 6,
        window: int = 0,
        scale: float = 1.5,
        shift: float = 0.0,
    ) -> Case:
        n_heads, n_kv_heads = heads
        q = shift + normal(f"attention/{name}/q", q_len, n_heads * head_dim, scale=scale)
        k = -shift + normal(f"attention/{name}/k", past + q_len, n_kv_heads * head_dim, scale=scale)
        v = normal(f"attention/{name}/v", past + q_len, n_kv_heads * head_dim)

        def split(x: Tensor) -> Tensor:
            return x.unflatten(1, (-1, head_dim))

        def run(how: Arithmetic) -> dict[str, Tensor]:
            probabilities, out = definitions.attention(
                split(q), split(k), split(v), window or None, how
            )
            return {"probabilities": probabilities, "out": out.flatten(1)}

        def torch_says() -> dict[str, Tensor]:
            heads_first = [split(x).double().transpose(0, 1) for x in (q, k, v)]
            mask = definitions.causal_mask(q_len, past + q_len, window or None)
            out = functional.scaled_dot_product_attention(
                *heads_first, attn_mask=mask, enable_gqa=True
            )
            return {"out": out.transpose(0, 1).flatten(1)}

        scalars = {
            "n_heads": n_heads,
            "n_kv_heads": n_kv_heads,
            "head_dim": head_dim,
            "past": past,
            "window": window,
        }
        return Case(
            name,
            {"q": q, "k": k, "v": v},
            run,
            scalars,
            torch_says if q_len else None,
            definitions.SCALED_BEFORE,
        )

    ratios = {"1to1": (3, 3), "3to1": (6, 2), "8to1": (8, 1)}
    for ratio, heads in ratios.items():
        yield case(f"{ratio}-whole", heads, 7)
        yield case(f"{ratio}-past5", heads, 4, past=5)
        yield case(f"{ratio}-one-query-past8", heads, 1, past=8)
    yield case("one-token", (2, 1), 1)
    yield case("one-head-dim-33", (1, 1), 5, head_dim=33)
    yield case("head-dim-1", (4, 2), 5, head_dim=1)
    yield case("long-33", (2, 2), 33, head_dim=2)
    yield case("sharp", (6, 2), 7, past=2, scale=12.0)
    # Every visible score is near -24,000: a mask of -1e4, added or filled in, would let future keys
    # win.
    yield case("scores-below-a-finite-mask", (4, 2), 5, past=2, scale=0.01, shift=100.0)
    yield case("no-queries", (6, 2), 0, past=3)
    yield case("window4-whole", (6, 2), 9, window=4)
    yield case("window4-past6", (6, 2), 3, past=6, window=4)
    yield case("window1", (2, 2), 5, window=1)
    yield case("window-longer-than-all", (2, 2), 5, past=2, window=16)


def _layer(name: str, shapes: dict[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """Seeded weights: projections scaled by their number of inputs, norms 0.3 to 2, some
    negative."""
    weights: dict[str, Tensor] = {}
    for tensor, shape in shapes.items():
        at = f"{name}/{tensor}"
        if "norm" in tensor:
            random = random_for(at)
            values = random.choice([-1.0, 1.0, 1.0], shape) * random.uniform(0.3, 2.0, shape)
            weights[tensor] = torch.from_numpy(values).float()
        else:
            weights[tensor] = normal(
                at, *shape, scale=1.2 / shape[-1] ** 0.5 if len(shape) == 2 else 0.7
            )
    return weights


def _config(
    dim: int, heads: tuple[int, int], head_dim: int, eps: float, qk_norm: bool = False
) -> Config:
    return Config(
        model_type="qwen3" if qk_norm else "llama",
        vocab_size=0,
        dim=dim,
        n_layers=1,
        n_heads=heads[0],
        n_kv_heads=heads[1],
        head_dim=head_dim,
        rms_norm_eps=eps,
        rope=RopeScaling(10000.0),
        tied=False,
        windows=(None,),
        qk_norm=qk_norm,
    )


def mlp_cases() -> Iterator[Case]:
    def case(
        name: str,
        rows: int,
        dim: int,
        hidden: int,
        eps: float = 1e-5,
        bias: bool = False,
        scale: float = 1.0,
    ) -> Case:
        shapes: dict[str, tuple[int, ...]] = {
            "post_attention_layernorm.weight": (dim,),
            "mlp.gate_proj.weight": (hidden, dim),
            "mlp.up_proj.weight": (hidden, dim),
            "mlp.down_proj.weight": (dim, hidden),
        }
        if bias:
            shapes |= {
                "mlp.gate_proj.bias": (hidden,),
                "mlp.up_proj.bias": (hidden,),
                "mlp.down_proj.bias": (dim,),
            }
        layer = _layer(f"mlp/{name}", shapes)
        x = normal(f"mlp/{name}/x", rows, dim, scale=scale)
        config = _config(dim, (1, 1), dim, eps)

        def run(how: Arithmetic) -> dict[str, Tensor]:
            trace: dict[str, Tensor] = {}
            mlp_block(config, layer, x, how, recorder(trace))
            return trace

        return Case(name, {"x": x} | layer, run, {"eps": eps})

    yield case("sizes-1", 1, 1, 1)
    yield case("one-row", 1, 8, 33)
    yield case("narrow-hidden", 5, 33, 7)
    yield case("wide-hidden", 7, 7, 33)
    yield case("no-rows", 0, 8, 7)
    yield case("bias", 3, 9, 14, bias=True)
    yield case("large-eps", 3, 9, 14, eps=0.5, scale=0.5)
    yield case("large-x", 3, 9, 14, scale=1e3)


def attention_block_cases() -> Iterator[Case]:
    """past_k (already rotated) and past_v, each [past, n_kv_heads * head_dim]: the cache before."""

    def case(
        name: str,
        heads: tuple[int, int],
        q_len: int,
        past: int = 0,
        head_dim: int = 6,
        dim: int = 13,
        window: int = 0,
        bias: tuple[str, ...] = (),
        qk_norm: bool = False,
        eps: float = 1e-5,
    ) -> Case:
        n_heads, n_kv_heads = heads
        rows = {
            "q": n_heads * head_dim,
            "k": n_kv_heads * head_dim,
            "v": n_kv_heads * head_dim,
            "o": dim,
        }
        shapes: dict[str, tuple[int, ...]] = {"input_layernorm.weight": (dim,)}
        for which, size in rows.items():
            shapes[f"self_attn.{which}_proj.weight"] = (size, rows["q"] if which == "o" else dim)
            if which in bias:
                shapes[f"self_attn.{which}_proj.bias"] = (size,)
        if qk_norm:
            shapes |= {
                "self_attn.q_norm.weight": (head_dim,),
                "self_attn.k_norm.weight": (head_dim,),
            }
        layer = _layer(f"attention_block/{name}", shapes)
        x = normal(f"attention_block/{name}/x", q_len, dim)
        past_k = normal(f"attention_block/{name}/past_k", past, rows["k"])
        past_v = normal(f"attention_block/{name}/past_v", past, rows["v"])
        config = _config(dim, heads, head_dim, eps, qk_norm)
        positions = torch.arange(past, past + q_len)

        def run(how: Arithmetic) -> dict[str, Tensor]:
            trace: dict[str, Tensor] = {}
            angles = definitions.rope_angles(positions, head_dim, config.rope, how)
            cached = tuple(t.unflatten(1, (n_kv_heads, head_dim)) for t in (past_k, past_v))
            attention_block(config, layer, x, angles, cached, window or None, how, recorder(trace))
            return trace

        inputs = {"x": x, "past_k": past_k, "past_v": past_v} | layer
        scalars: dict[str, Any] = {
            "eps": eps,
            "n_heads": n_heads,
            "n_kv_heads": n_kv_heads,
            "head_dim": head_dim,
            "past": past,
            "window": window,
            "rope_theta": config.rope.rope_theta,
        }
        return Case(name, inputs, run, scalars)

    yield case("one-token", (2, 1), 1)
    yield case("1to1-whole", (3, 3), 7)
    yield case("3to1-past5", (6, 2), 4, past=5)
    yield case("8to1-one-query-past8", (8, 1), 1, past=8, head_dim=4)
    yield case("window4-past6", (6, 2), 3, past=6, window=4)
    yield case("qkv-bias", (4, 2), 4, past=2, bias=("q", "k", "v"))
    yield case("qkvo-bias", (4, 2), 4, past=2, bias=("q", "k", "v", "o"))
    yield case("qk-norm", (4, 2), 4, past=2, head_dim=10, qk_norm=True, eps=0.01)
