"""Makes committed files reproducible: one seed, one thread."""

from __future__ import annotations

import hashlib

import numpy
import torch

SEED = 20261120


def random_for(name: str) -> numpy.random.Generator:
    """One random stream per name, so that adding a model or a case changes no other."""
    digest = hashlib.sha256(f"{SEED}/{name}".encode()).digest()
    return numpy.random.Generator(numpy.random.PCG64(int.from_bytes(digest[:8], "little")))


def one_thread() -> None:
    """Uses one thread: PyTorch splits sums by the number of threads, and nothing here needs
    more."""
    torch.set_num_threads(1)
