"""What a tiny model of the tests is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class TinyModel:
    name: str
    config: dict[str, Any]
    dtype: str = "float32"  # float32, float16, bfloat16, mixed
    store: str = "embed+head"  # which of the two ends the file holds: embed, head, embed+head
    shards: int = 1
    seq_len: int = 7
    ids: tuple[int, ...] = ()  # the text, where it is not to be a random one of seq_len tokens
    # Config changes that must show in the logits: proof that the model sees its feature.
    seen_by: dict[str, Any] = field(default_factory=dict)
