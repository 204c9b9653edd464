"""Tolerances are measured, not guessed.

An f32 implementation may add in any order, use FMA or not, divide or multiply by a reciprocal. So
the same computation is run in each way of `definitions.F32_ORDERS`. The largest |f32 - f64 oracle|
over all of them and over a tensor is its spread. An implementation with another order of summation
has an error of the same magnitude but not the same value; this is the reason for the margin. The
spread of a small tensor can be 0 by luck; this is the reason for the floor, in units of the last
place of the tensor's largest number. A real mistake is thousands of times larger: `make_models.py`
checks that.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from definitions import F32_ORDERS, ORACLE, Arithmetic

MARGIN = 4.0  # times the spread
FLOOR_ULPS = 4.0  # in units of the last place of the largest magnitude
ULP = 2.0**-23  # f32, relative


def oracle_and_tolerance(
    run: Callable[[Arithmetic], dict[str, Tensor]],
    exact: tuple[str, ...] = (),
    further: tuple[Arithmetic, ...] = (),
) -> tuple[dict[str, Tensor], dict[str, float]]:
    """The f64 result and the absolute tolerance of each tensor; 0 if the tensor is only copied.

    further: ways of computing this formula besides those of F32_ORDERS.
    """
    oracle = run(ORACLE)
    spread = {name: 0.0 for name in oracle}
    for how in F32_ORDERS + further:
        for name, value in run(how).items():
            if value.dtype != torch.float32:
                raise AssertionError(f"{name}: {how.name} gave {value.dtype}, not f32")
            if value.numel():
                spread[name] = max(spread[name], (value.double() - oracle[name]).abs().max().item())
    return oracle, {
        name: 0.0
        if name in exact
        else _round_up(max(MARGIN * spread[name], FLOOR_ULPS * ULP * _largest(value)))
        for name, value in oracle.items()
    }


def _largest(x: Tensor) -> float:
    return x.abs().max().item() if x.numel() else 0.0


def _round_up(x: float) -> float:
    """Rounds up to two digits."""
    if x == 0.0:
        return 0.0
    digits = float(f"{x:.1e}")
    return digits if digits >= x else float(f"{x * 1.05:.1e}")
