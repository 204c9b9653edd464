"""One module per architecture besides the Llama family (../llama.py); they are found by their
files.

Each has MODEL_TYPE, MODELS (its tiny models, see ../model_zoo.py), shapes(raw) (the name and shape
of each tensor of a checkpoint, in order) and forward(raw, weights, ids, how) (all activations by
trace name, in the order of computation). `raw` is config.json as a dict. A module may also have:
`offset(name)`, which the model adds to a stored tensor before it is used; EMBEDDING and HEAD, the
names of these tables if they differ from Llama's; ATTENTION, transformers' implementation of
attention to compare with, if it is not "eager"; and DEFINITION, used if transformers has no such
model: (raw, tensors by name, ids) -> logits, in the precision of the tensors.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

MODULES: dict[str, ModuleType] = {
    module.MODEL_TYPE: module
    for module in (
        importlib.import_module(f"architectures.{path.stem}")
        for path in sorted(Path(__file__).parent.glob("*.py"))
        if path.stem != "__init__"
    )
}
