"""The one seed of everything random that is committed."""

from __future__ import annotations

import hashlib

import numpy

SEED = 20261120


def random_for(name: str) -> numpy.random.Generator:
    """One stream a name, so that adding a model or a case changes no other."""
    digest = hashlib.sha256(f"{SEED}/{name}".encode()).digest()
    return numpy.random.Generator(numpy.random.PCG64(int.from_bytes(digest[:8], "little")))
