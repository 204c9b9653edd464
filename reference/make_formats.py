"""Make the small files of tests/data/formats, which other programs' formats are tested with.

    build/venv/bin/python reference/make_formats.py --out tests/data

It writes OUT/formats:
    quantize.safetensors   f32 `values`, and `TYPE.blocks`: what the gguf package quantises them to
    narrow.safetensors     f32 `values`, `F16` and `BF16`: what PyTorch rounds them to
"""

from __future__ import annotations

import argparse
from pathlib import Path

import gguf
import numpy
import torch
from gguf import GGMLQuantizationType as Type

import dump
from seed import random_for

Array = numpy.ndarray

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"


# --- numbers ---


def write_quantized(path: Path) -> None:
    """Blocks of 32 at many scales; among them ties, zeros of both signs and single numbers."""
    random = random_for("formats/quantize")
    scales = 10.0 ** random.uniform(-6, 4, (160, 1))
    values = (random.normal(0, 1, (160, 32)) * scales).astype(numpy.float32)
    values[0] = 0.0
    values[1, ::3] = -0.0  # among others: of zeros alone the package and ggml's C part in d's sign
    values[2] = 3.0
    values[3] = numpy.float32(1e-42)  # its scale has no inverse in f32
    values[4, 1:] = 0.0
    values[5] = numpy.arange(-16, 16) / 2  # halves, and a largest on each side
    values[6] = -values[5]
    values[7] = numpy.arange(32) * 0.5 - 7.5
    values[8] = (numpy.arange(32) - 8) * 63.5 / 8
    values[9, 0], values[9, 1] = -127.0, 127.0
    values[10] = abs(values[10])
    values[11] = -abs(values[11])
    values[12] = numpy.where(random.random(32) < 0.5, -1, 1)
    tensors = {"values": torch.from_numpy(values)}
    for kind in (Type.Q4_0, Type.Q4_1, Type.Q8_0):
        with numpy.errstate(all="ignore"):
            blocks = gguf.quantize(values, kind)
        # Where 1 / d is infinite the package multiplies by it: no number that can be relied on.
        n_scales = 4 if kind == Type.Q4_1 else 2
        blocks[3, n_scales:] = 0x88 if kind == Type.Q4_0 else 0
        tensors[f"{kind.name}.blocks"] = torch.from_numpy(blocks)
    dump.write(path, tensors)


def write_narrowed(path: Path) -> None:
    """Random bits of any exponent, and the numbers around every edge."""
    random = random_for("formats/narrow")
    bits = random.integers(0, 2**32, 3000, numpy.uint32)
    # As f16, exponents from the subnormal to beyond the largest; the last bits near a tie.
    exponents = random.integers(127 - 27, 127 + 18, 3000).astype(numpy.uint32)
    near = (bits & 0x807F_E000) | exponents << 23
    near += numpy.uint32(0x1000) + random.integers(-1, 2, 3000).astype(numpy.uint32)
    edges = [0.0, -0.0, 65504.0, 65519.996, 65520.0, 65536.0, 2**-14, 2**-24, 2**-25, 1.5 * 2**-24]
    edges += [2**-14 - 2**-25, 2**-14 - 2**-24, 3.4028234e38, 3.39e38, 1e-45, float("inf")]
    values = numpy.concatenate(
        [bits.view(numpy.float32), near.view(numpy.float32), numpy.array(edges, numpy.float32)]
    )
    tensor = torch.from_numpy(values[~numpy.isnan(values)].copy())
    tensor = torch.cat([tensor, -tensor])
    narrowed = {"F16": tensor.to(torch.float16), "BF16": tensor.to(torch.bfloat16)}
    dump.write(path, {"values": tensor, **narrowed})


def make_formats(data: Path) -> None:
    """Writes data/formats."""
    out = data / "formats"
    out.mkdir(parents=True, exist_ok=True)
    write_quantized(out / "quantize.safetensors")
    write_narrowed(out / "narrow.safetensors")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, default=DATA, help="a folder like tests/data (default: that)"
    )
    make_formats(parser.parse_args().out)
