"""The cases of the single operators: silu, swiglu, gelu, the norms, matmul_transb, softmax, rope.

A case has its inputs, its scalars, the formula to run in any arithmetic and, if PyTorch has the
operator, PyTorch's own f64 answer as a second opinion. Very large and very small values have cases
of their own: a tolerance is absolute, so it fits numbers of one magnitude.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

import definitions
from definitions import Arithmetic, RopeScaling
from seed import random_for

LENGTHS = (1, 7, 8, 33)  # shorter than, equal to and no multiple of a vector


@dataclass(frozen=True)
class Case:
    name: str
    inputs: dict[str, Tensor]
    run: Callable[[Arithmetic], dict[str, Tensor]]
    scalars: dict[str, Any] = field(default_factory=dict)
    torch_says: Callable[[], dict[str, Tensor]] | None = None  # in f64
    further: tuple[Arithmetic, ...] = ()  # see tolerance.py


def normal(name: str, *shape: int, scale: float = 1.0) -> Tensor:
    """Seeded N(0, scale^2) in f32, both signs."""
    return torch.from_numpy(random_for(name).standard_normal(shape) * scale).float()


def _elementwise_inputs(operator: str) -> Iterator[tuple[str, Callable[[str], Tensor]]]:
    """(name of a case, function that makes a tensor from the name of an argument)."""

    def of(shape: tuple[int, ...], scale: float, case: str) -> Callable[[str], Tensor]:
        return lambda argument: normal(f"{operator}/{case}/{argument}", *shape, scale=scale)

    for length in LENGTHS:
        yield f"length-{length}", of((length,), 2.0, f"length-{length}")
    yield "length-0", of((0,), 1.0, "length-0")
    yield "large", of((33,), 40.0, "large")
    yield "tiny", of((33,), 1e-15, "tiny")


def silu_cases() -> Iterator[Case]:
    def case(name: str, x: Tensor) -> Case:
        return Case(
            name,
            {"x": x},
            lambda how: {"y": definitions.silu(x, how)},
            torch_says=lambda: {"y": functional.silu(x.double())},
        )

    for name, of in _elementwise_inputs("silu"):
        yield case(name, of("x"))
    yield case("around-zero", torch.tensor([0.0, -0.0, 1e-7, -1e-7, 1e-3, -1e-3, 0.5, -0.5]))
    yield case(
        "plus-minus-100", torch.tensor([100.0, -100.0, 88.0, -88.0, 90.0, -90.0, 20.0, -20.0])
    )
    yield case("negative-tail", -torch.linspace(5.0, 100.0, 33))
    yield case("largest-f32", torch.tensor([3.4028235e38, 1e38, 2.5e38]))
    yield case("most-negative-f32", torch.tensor([-3.4028235e38, -1e38, -1e10, -1e4]))


def swiglu_cases() -> Iterator[Case]:
    def case(name: str, gate: Tensor, up: Tensor) -> Case:
        return Case(
            name,
            {"gate": gate, "up": up},
            lambda how: {"y": definitions.swiglu(gate, up, how)},
            torch_says=lambda: {"y": functional.silu(gate.double()) * up.double()},
        )

    for name, of in _elementwise_inputs("swiglu"):
        yield case(name, of("gate"), of("up"))
    yield case(
        "gate-and-up-differ-in-size",
        normal("swiglu/small", 33, scale=0.1),
        normal("swiglu/big", 33, scale=30.0),
    )
    yield case(
        "gate-most-negative",
        torch.tensor([-3.4028235e38, -1e10, -1e4]),
        torch.tensor([0.5, -3.0, 5.0]),  # gate * up is finite: some compute it first
    )


def gelu_cases() -> Iterator[Case]:
    """Both forms: y and y_tanh."""

    def case(name: str, x: Tensor) -> Case:
        return Case(
            name,
            {"x": x},
            lambda how: {
                "y": definitions.gelu(x, how),
                "y_tanh": definitions.gelu_tanh(x, how),
            },
            torch_says=lambda: {
                "y": functional.gelu(x.double()),
                "y_tanh": functional.gelu(x.double(), approximate="tanh"),
            },
        )

    for name, of in _elementwise_inputs("gelu"):
        yield case(name, of("x"))
    yield case("around-zero", torch.tensor([0.0, -0.0, 1e-7, -1e-7, 1e-3, -1e-3, 0.5, -0.5]))
    yield case("negative-tail", -torch.linspace(1.0, 20.0, 33))
    yield case("where-the-forms-differ", torch.linspace(1.5, 3.0, 33))


def layer_norm_cases() -> Iterator[Case]:
    def case(
        name: str, rows: int, dim: int, eps: float, scale: float = 1.0, shift: float = 0.0
    ) -> Case:
        x = normal(f"layer_norm/{name}/x", rows, dim, scale=scale) + shift
        weight = normal(f"layer_norm/{name}/weight", dim)
        bias = normal(f"layer_norm/{name}/bias", dim)
        return Case(
            name,
            {"x": x, "weight": weight, "bias": bias},
            lambda how: {"y": definitions.layer_norm(x, weight, bias, eps, how)},
            {"eps": eps},
            lambda: {
                "y": functional.layer_norm(x.double(), (dim,), weight.double(), bias.double(), eps)
            },
        )

    for rows, dim in ((1, 1), (3, 7), (2, 8), (5, 33), (2, 130)):
        yield case(f"{rows}x{dim}", rows, dim, 1e-5)
    yield case("no-rows", 0, 7, 1e-5)
    yield case("large-eps", 4, 33, 0.5)
    yield case("eps-outweighs-x", 3, 33, 1e-5, scale=1e-4)
    yield case("mean-10", 3, 33, 1e-5, shift=10.0)
    yield case("large-x", 3, 33, 1e-5, scale=1e17)


def rms_norm_cases() -> Iterator[Case]:
    def case(
        name: str, rows: int, dim: int, eps: float, scale: float = 1.0, x: Tensor | None = None
    ) -> Case:
        x = normal(f"rms_norm/{name}/x", rows, dim, scale=scale) if x is None else x
        weight = normal(f"rms_norm/{name}/weight", dim)
        return Case(
            name,
            {"x": x, "weight": weight},
            lambda how: {"y": definitions.rms_norm(x, weight, eps, how)},
            {"eps": eps},
            lambda: {"y": functional.rms_norm(x.double(), (dim,), weight.double(), eps)},
        )

    for rows, dim in ((1, 1), (3, 7), (2, 8), (5, 33), (2, 130)):
        yield case(f"{rows}x{dim}", rows, dim, 1e-5)
    yield case("no-rows", 0, 7, 1e-5)
    yield case("large-eps", 4, 33, 0.5)
    yield case("eps-outweighs-x", 3, 33, 1e-5, scale=1e-4)
    yield case("eps-0", 3, 33, 0.0)
    yield case("large-x", 3, 33, 1e-5, scale=1e17)
    yield case("tiny-x", 3, 33, 1e-6, scale=1e-18)
    rows = normal("rms_norm/rows", 5, 8) * torch.tensor([[1e-3], [1.0], [30.0], [1e3], [0.0]])
    yield case("rows-of-different-size", 5, 8, 1e-5, x=rows)


def matmul_transb_cases() -> Iterator[Case]:
    def case(
        name: str,
        m: int,
        n: int,
        k: int,
        alpha: float = 1.0,
        beta: float = 0.0,
        c: Tensor | None = None,
    ) -> Case:
        a, b = normal(f"matmul/{name}/a", m, k), normal(f"matmul/{name}/b", n, k)
        c = normal(f"matmul/{name}/c", m, n) if c is None else c
        old = c.double() if beta else torch.zeros(m, n, dtype=torch.float64)
        return Case(
            name,
            {"a": a, "b": b, "c": c},
            lambda how: {"c": definitions.matmul_transb(a, b, c, alpha, beta, how)},
            {"alpha": alpha, "beta": beta},
            lambda: {"c": torch.addmm(old, a.double(), b.double().T, beta=beta, alpha=alpha)},
        )

    for m, n, k in (
        (1, 1, 1),
        (1, 33, 7),
        (7, 1, 33),
        (8, 8, 8),
        (7, 8, 33),
        (33, 7, 1),
        (2, 3, 130),
        (13, 17, 19),
    ):
        yield case(f"m{m}-n{n}-k{k}", m, n, k)
    for alpha, beta in ((1.0, 1.0), (0.5, 0.0), (-1.5, 0.25), (0.0, 2.0), (2.0, -1.0)):
        yield case(f"alpha{alpha:g}-beta{beta:g}", 5, 7, 9, alpha, beta)
    yield case("beta0-over-nan", 3, 5, 7, 0.75, 0.0, torch.full((3, 5), torch.nan))
    yield case("k0-beta0", 3, 5, 0)
    yield case("k0-beta-half", 3, 5, 0, 1.0, 0.5)
    yield case("no-rows", 0, 5, 7)
    yield case("no-columns", 3, 0, 7)


def softmax_cases() -> Iterator[Case]:
    def case(name: str, x: Tensor) -> Case:
        return Case(
            name,
            {"x": x},
            lambda how: {"y": definitions.softmax(x, how)},
            torch_says=lambda: {"y": torch.softmax(x.double(), -1)},
        )

    for length in LENGTHS:
        yield case(f"length-{length}", normal(f"softmax/{length}", 3, length, scale=2.0))
    yield case("no-rows", torch.zeros(0, 7))
    yield case("large", normal("softmax/large", 4, 33, scale=1e4))
    yield case("large-and-close", 1e4 + normal("softmax/close", 3, 33))
    yield case("all-very-negative", -1e4 + normal("softmax/negative", 3, 7))
    half_negative = normal("softmax/half-negative", 4, 33)
    half_negative[::2] -= 1e4  # with rows for which a maximum of 0 is harmless
    yield case("some-very-negative", half_negative)
    yield case(
        "largest-f32", torch.tensor([[3.4e38, 3.4e38, -3.4e38], [-3.4e38, -3.4e38, -3.4e38]])
    )
    yield case("equal", torch.full((2, 33), -7.25))
    masked = normal("softmax/masked", 3, 8)
    masked[0, 1:] = masked[1, 5:] = masked[2, 0] = -torch.inf
    yield case("minus-infinity", masked)


def rope_cases() -> Iterator[Case]:
    return _rope_cases("rope", definitions.rope)


def neighbour_rope_cases() -> Iterator[Case]:
    return _rope_cases("neighbour_rope", definitions.neighbour_rope)


def _rope_cases(operator: str, rope: Callable[..., Tensor]) -> Iterator[Case]:
    """The frequencies are given in f32, as by a model."""

    def case(
        name: str, first: int, seq_len: int, n_heads: int, head_dim: int, theta: float
    ) -> Case:
        x = normal(f"{operator}/{name}", seq_len, n_heads * head_dim)
        scaling = RopeScaling(theta)
        frequencies = definitions.inverse_frequencies(head_dim, scaling, torch.float64).float()
        positions = torch.arange(first, first + seq_len)

        def run(how: Arithmetic) -> dict[str, Tensor]:
            cos, sin = definitions.rope_cos_sin(positions, frequencies, how)
            heads = x.unflatten(1, (n_heads, head_dim))
            return {"y": rope(heads, cos, sin, how).flatten(1)}

        scalars = {"n_heads": n_heads, "head_dim": head_dim, "first_position": first}
        return Case(name, {"x": x, "inv_freq": frequencies}, run, scalars)

    yield case("from-0", 0, 7, 1, 8, 10000.0)
    yield case("heads-3", 0, 5, 3, 10, 10000.0)
    yield case("head-dim-2", 0, 9, 2, 2, 10000.0)
    yield case("head-dim-66", 31, 3, 2, 66, 10000.0)
    yield case("past-5", 5, 4, 2, 8, 10000.0)
    yield case("one-token-at-17", 17, 1, 4, 6, 10000.0)
    yield case("far", 2045, 3, 2, 16, 500000.0)
    yield case("no-tokens", 3, 0, 2, 8, 10000.0)
