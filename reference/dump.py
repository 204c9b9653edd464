"""Writes safetensors so that the same tensors give the same bytes.

The safetensors package keeps metadata in a hash map, so its header differs from run to run.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor

_DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.uint8: "U8",
}


def write(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Header length in 8 bytes (little endian), JSON header padded to 8, the data as ordered."""
    header: dict[str, object] = {"__metadata__": metadata} if metadata else {}
    data = bytearray()
    for name, tensor in tensors.items():
        raw = (
            tensor.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes()
            if tensor.numel()
            else b""
        )
        span = [len(data), len(data) + len(raw)]
        header[name] = {
            "dtype": _DTYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": span,
        }
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """All tensors and the metadata of a file."""
    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}
