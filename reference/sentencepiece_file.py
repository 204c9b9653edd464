"""A sentencepiece tokenizer.model, written field by field: a ModelProto of
google/sentencepiece, src/sentencepiece_model.proto, in the wire format of Protocol Buffers."""

from __future__ import annotations

import struct
from typing import NamedTuple

UNIGRAM, BPE = 1, 2
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


class Piece(NamedTuple):
    text: str
    score: float = 0.0
    kind: int = NORMAL


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number: int, value: int | float | str | bytes) -> bytes:
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def model_file(
    pieces: list[Piece],
    model_type: int,
    *,
    byte_fallback: bool = False,
    charsmap: bytes = b"",
    add_dummy_prefix: bool = True,
    remove_extra_whitespaces: bool = True,
    bos: str = "<s>",
    eos: str = "</s>",
) -> bytes:
    texts = [piece.text for piece in pieces]
    unknown = next(piece.text for piece in pieces if piece.kind == UNKNOWN)
    ids = {text: texts.index(text) if text in texts else -1 for text in (unknown, bos, eos)}
    trainer = field(3, model_type) + field(35, int(byte_fallback))
    # the unknown piece decodes to its own text, as here
    trainer += field(40, ids[unknown]) + field(41, ids[bos]) + field(42, ids[eos])
    trainer += field(44, unknown) + field(45, unknown) + field(46, bos) + field(47, eos)
    normalizer = field(1, "user_defined" if charsmap else "identity") + field(2, charsmap)
    normalizer += field(3, int(add_dummy_prefix)) + field(4, int(remove_extra_whitespaces))
    made = b"".join(
        field(1, field(1, text) + field(2, float(score)) + field(3, kind))
        for text, score, kind in pieces
    )
    return made + field(2, trainer) + field(3, normalizer)


def charsmap_of(model: bytes) -> bytes:
    """The precompiled_charsmap of a model that the library has trained."""
    normalizer = dict(fields(model))[3]
    return dict(fields(normalizer)).get(2, b"")


def fields(message: bytes) -> list[tuple[int, bytes]]:
    """The fields of a message that contain bytes; other fields are skipped."""
    found, at = [], 0

    def number() -> int:
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = number()
        if key & 7 == 0:
            number()
            continue
        size = {1: 8, 5: 4}.get(key & 7) or number()
        if key & 7 == 2:
            found.append((key >> 3, message[at : at + size]))
        at += size
    return found
