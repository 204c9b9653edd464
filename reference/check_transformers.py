"""Proves that llama.py computes what Hugging Face transformers computes.

transformers rounds to f32 at three places even in an f64 model: RMSNorm, softmax and the RoPE
angles. To compare in true f64, these places get another `torch` whose float32 is float64. The two
then agree to about 1e-15, and no f32 noise can hide a wrong formula.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from architectures import MODULES
from llama import Parameters

# llama.py - transformers| relative to the largest |logit|.
AGREE_F64 = 1e-12  # measured: 1e-15 to 1e-14
AGREE_F32 = 5e-5  # two orders of summation in f32; measured: up to 2e-6 at 8 layers


class _DoubleTorch:
    """`torch`, but with float64 as its float32."""

    float32 = float = torch.float64

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


@contextlib.contextmanager
def _single_means_double(model_type: str) -> Iterator[None]:
    from transformers.models.auto.configuration_auto import model_type_to_module_name

    folder = model_type_to_module_name(model_type)  # gemma3 for gemma3_text
    names = (
        f"transformers.models.{folder}.modeling_{folder}",
        "transformers.modeling_rope_utils",
    )
    modules = [importlib.import_module(name) for name in names]
    single = torch.Tensor.float
    for module in modules:
        module.torch = _DoubleTorch()
    torch.Tensor.float = torch.Tensor.double
    torch.set_default_dtype(torch.float64)  # the type of a quotient of integers
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)
        torch.Tensor.float = single
        for module in modules:
            module.torch = torch


def transformers_logits(
    folder: Path, ids: Tensor, dtype: torch.dtype, model_type: str, attention: str = "eager"
) -> Tensor:
    """logits [S, vocab] of transformers' own model; with f64, all of it is in f64.

    attention: which of its implementations.
    """
    warnings.filterwarnings("ignore")
    logging.getLogger("transformers").setLevel(logging.ERROR)
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    exact = _single_means_double(model_type) if dtype == torch.float64 else contextlib.nullcontext()
    with exact, torch.no_grad():
        model = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=dtype,
            attn_implementation=attention,
            experts_implementation="eager",
            local_files_only=True,
        ).eval()
        return model(ids[None], use_cache=False).logits[0]


def their_logits(folder: Path, ids: Tensor, dtype: torch.dtype) -> Tensor:
    """logits [S, vocab] of transformers' model, or of our definition if it has none."""
    raw = json.loads((folder / "config.json").read_text())
    module = MODULES.get(raw["model_type"])
    if hasattr(module, "DEFINITION"):
        weights = Parameters(folder).tensors
        return module.DEFINITION(raw, {name: y.to(dtype) for name, y in weights.items()}, ids)
    attention = getattr(module, "ATTENTION", "eager")
    return transformers_logits(folder, ids, dtype, raw["model_type"], attention)


def assert_agrees(logits: Tensor, theirs: Tensor, what: str) -> float:
    """Relative distance of the two; raises an error if it is too large to be rounding."""
    distance = ((logits - theirs).abs().max() / theirs.abs().max()).item()
    allowed = AGREE_F64 if theirs.dtype == torch.float64 else AGREE_F32
    if not distance <= allowed:
        raise SystemExit(
            f"{what}: llama.py departs from transformers by {distance:.2e} of the largest logit, "
            f"allowed {allowed:.0e}"
        )
    return distance
