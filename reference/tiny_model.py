"""The description of a tiny model for tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class TinyModel:
    name: str
    config: dict[str, Any]
    dtype: str = "float32"  # float32, float16, bfloat16, mixed
    store: str = "embed+head"  # which of the two tables are in the file: embed, head, embed+head
    shards: int = 1
    seq_len: int = 7
    ids: tuple[int, ...] = ()  # the ids, if they are not to be random ones of length seq_len
    # Config changes that must change the logits: proof that the model depends on its feature.
    seen_by: dict[str, Any] = field(default_factory=dict)
