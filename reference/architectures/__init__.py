"""One module per architecture beside Llama's family (../llama.py), found by being here.

Each has MODEL_TYPE, MODELS (its tiny models, see ../model_zoo.py), shapes(raw) (the name and shape of
every tensor of a checkpoint, in order) and forward(raw, weights, ids, how) (every activation by its
trace name, in the order of computation). `raw` is config.json as a dict. A module may also have
`offset(name)`, what the model adds to a stored tensor before it is used, EMBEDDING and HEAD, the names
of those tables where they are not Llama's, ATTENTION, transformers' implementation of attention to
compare with, where it is not "eager", and DEFINITION, what stands in where transformers has no such
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
