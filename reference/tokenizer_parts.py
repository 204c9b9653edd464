"""The parts of a tokenizer.json, as in well-known models."""

from __future__ import annotations

import json
from typing import Any

from tokenizers import Tokenizer, models

Json = dict[str, Any]

LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2_SPLIT = LLAMA3_SPLIT.replace(r"\p{N}{1,3}", r"\p{N}")
BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(256)]


def added(content: str, special: bool = True, **flags: bool) -> Json:
    token = {
        "content": content,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
    }
    return token | {"special": special} | flags


def byte_level(**options: bool) -> Json:
    return {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": True,
    } | options


def split(regex: str) -> Json:
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


def sequence(key: str, *parts: Json) -> Json:
    return {"type": "Sequence", key: list(parts)}


def template(before: list[str], after: list[str]) -> Json:
    """`assemble` fills in the ids."""
    special = lambda token: {"SpecialToken": {"id": token, "type_id": 0}}  # noqa: E731
    a, b = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    single = [*map(special, before), a, *map(special, after)]
    tokens = {token: {"id": token, "ids": [], "tokens": [token]} for token in before + after}
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, b],
        "special_tokens": tokens,
    }


LLAMA_NORMALIZER = sequence(
    "normalizers",
    {"type": "Prepend", "prepend": "▁"},
    {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
)
LLAMA_DECODER = sequence(
    "decoders",
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
    {"type": "ByteFallback"},
    {"type": "Fuse"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0},
)


def metaspace(scheme: str, replacement: str = "▁", split: bool = True) -> Json:
    return {
        "type": "Metaspace",
        "replacement": replacement,
        "prepend_scheme": scheme,
        "split": split,
    }


def part(kind: str, config: Json) -> Any:
    """A normalizer, pre-tokenizer or decoder of the library from its JSON."""
    empty = json.loads(Tokenizer(models.BPE()).to_str())
    return getattr(Tokenizer.from_str(json.dumps(empty | {kind: config})), kind)
