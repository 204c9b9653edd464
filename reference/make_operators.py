"""Make the dumps of the single operators: OUT/OPERATOR.safetensors.

    build/venv/bin/python reference/make_operators.py --out tests/data/operators

A file has several cases. Tensors: `CASE.input.ARGUMENT` (f32) and `CASE.expected.RESULT` (f64, the
oracle). Metadata: `cases`, a JSON array of {"name", "scalars": {...}, "tolerance": {RESULT:
absolute}}. If PyTorch has the operator, the formula is first compared with PyTorch's own answer in
f64.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor

import dump
from block_cases import attention_block_cases, attention_cases, mlp_cases
from operator_cases import (
    Case,
    gelu_cases,
    layer_norm_cases,
    matmul_transb_cases,
    neighbour_rope_cases,
    rms_norm_cases,
    rope_cases,
    silu_cases,
    softmax_cases,
    swiglu_cases,
)
from seed import one_thread
from tolerance import oracle_and_tolerance

AGREE = 1e-10  # relative to the largest value: two f64 formulas, one with scores near 2e4

OPERATORS: dict[str, Callable[[], Iterator[Case]]] = {
    "silu": silu_cases,
    "swiglu": swiglu_cases,
    "exact_gelu": gelu_cases,
    "rms_norm": rms_norm_cases,
    "layer_norm": layer_norm_cases,
    "matmul_transb": matmul_transb_cases,
    "softmax": softmax_cases,
    "rope": rope_cases,
    "neighbour_rope": neighbour_rope_cases,
    "attention": attention_cases,
    "mlp": mlp_cases,
    "attention_block": attention_block_cases,
}


def prove(operator: str, case: Case, oracle: dict[str, Tensor]) -> None:
    for name, theirs in case.torch_says().items() if case.torch_says else ():
        largest = theirs.abs().max() if theirs.numel() else torch.tensor(0.0)
        if not torch.allclose(oracle[name], theirs, rtol=0.0, atol=(AGREE * largest).item()):
            raise SystemExit(f"{operator}: case {case.name}: {name} is not what PyTorch computes")
    for name, value in oracle.items():
        if not value.isfinite().all():
            raise SystemExit(f"{operator}: case {case.name}: {name}: expected finite values only")


def make_operators(out: Path) -> None:
    one_thread()
    with torch.no_grad():
        for operator, cases in OPERATORS.items():
            tensors: dict[str, Tensor] = {}
            described = []
            for case in cases():
                oracle, tolerance = oracle_and_tolerance(case.run, further=case.further)
                prove(operator, case, oracle)
                tensors |= {
                    f"{case.name}.input.{name}": value for name, value in case.inputs.items()
                }
                tensors |= {f"{case.name}.expected.{name}": value for name, value in oracle.items()}
                described.append(
                    {"name": case.name, "scalars": case.scalars, "tolerance": tolerance}
                )
            dump.write(out / f"{operator}.safetensors", tensors, {"cases": json.dumps(described)})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    make_operators(parser.parse_args().out)
