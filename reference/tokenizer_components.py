"""Normalizers, pre-tokenizers and decoders one at a time, with more options than a dozen tokenizers
can have, and the results of the tokenizers library: OUT/components.jsonl, for make_tokenizers.py.
One line each: `kind`, `config`, and `cases`, pairs of an input (a text, or a decoder's tokens) and
an output (a text, or a pre-tokenizer's pieces)."""

from __future__ import annotations

import json
import random

from seed import SEED
from tokenizer_parts import LLAMA_DECODER, Json, byte_level, metaspace, part, sequence, split
from tokenizer_texts import HARD, SENTENCES


def pre_tokenizer_configs() -> list[Json]:
    dash = {"String": "-"}
    behaviors = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
    configs = [
        {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}
        for behavior in behaviors
        for invert in (False, True)
        for pattern in (dash, {"Regex": r"\s+|\d"}, {"Regex": r"\p{L}*"})
    ]
    configs += [
        split(regex)
        for regex in (r"\w+|[^\w\s]+", r"\b", r"(?i)[aeiou]+", r"[\p{Han}\p{Hiragana}]+", r"\h+")
    ]
    configs += [
        split(regex)
        for regex in (r"^.", r".$", r"(?m).", r"\S+\s?", r"[^\S\n]", r"[\u4e00-\u9fff]{2}|\x{e9}")
    ]
    configs += [
        {"type": "Split", "pattern": {"String": ""}, "behavior": "Isolated", "invert": False}
    ]
    configs += [{"type": "Punctuation", "behavior": behavior} for behavior in behaviors]
    configs += [{"type": "Digits", "individual_digits": each} for each in (False, True)]
    configs += [
        {"type": "Whitespace"},
        {"type": "WhitespaceSplit"},
        {"type": "CharDelimiterSplit", "delimiter": "e"},
    ]
    configs += [{"type": "FixedLength", "length": 3}]
    configs += [
        byte_level(add_prefix_space=space, use_regex=regex)
        for space in (False, True)
        for regex in (False, True)
    ]
    configs += [
        metaspace(scheme, "▁", cut)
        for scheme in ("always", "first", "never")
        for cut in (True, False)
    ]
    configs += [
        sequence("pretokenizers", {"type": "Digits", "individual_digits": True}, metaspace("first"))
    ]
    configs += [
        sequence("pretokenizers", {"type": "WhitespaceSplit"}, byte_level(add_prefix_space=True))
    ]
    return configs


def normalizer_configs() -> list[Json]:
    names = ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel")
    configs = [{"type": name} for name in names]
    configs += [
        {"type": "Strip", "strip_left": left, "strip_right": right}
        for left in (False, True)
        for right in (False, True)
    ]
    configs += [{"type": "Prepend", "prepend": prefix} for prefix in ("▁", "")]
    patterns = ({"String": "-"}, {"Regex": r" {2,}"}, {"Regex": "e*"})
    configs += [{"type": "Replace", "pattern": pattern, "content": "<>"} for pattern in patterns]
    configs += [
        sequence("normalizers", {"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"})
    ]
    return configs


def decoder_configs() -> list[Json]:
    strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
    replace = {"type": "Replace", "pattern": {"String": "--"}, "content": "+"}
    configs = [{"type": "Fuse"}, {"type": "ByteFallback"}, byte_level(), replace, LLAMA_DECODER]
    configs += [strip, strip | {"start": 2, "stop": 1, "content": "▁"}]
    configs += [metaspace("always"), metaspace("never"), metaspace("first", "-")]
    configs += [
        sequence("decoders", {"type": "Fuse"}, replace),
        sequence("decoders", {"type": "Fuse"}, strip | {"stop": 2}),
    ]
    configs += [sequence("decoders", {"type": "ByteFallback"}, replace, strip)]
    return configs


TOKEN_TEXTS = [
    "▁a",
    "b▁",
    "▁",
    "▁▁",
    " ",
    "  ",
    "a",
    "ab",
    "-",
    "--",
    "---",
    "a-b",
    "",
    "é",
    "😀",
    "<s>",
    "abc▁",
]
TOKEN_TEXTS += [
    "<0x41>",
    "<0xE4>",
    "<0xBD>",
    "<0xA0>",
    "<0x0a>",
    "<0x",
    "Ġa",
    "Ċ",
    "ä½ł",
    "ł",
    "ä½",
]


def decoder_cases(r: random.Random, config: Json) -> list[tuple[list[str], str]]:
    """Only cases that the library decodes like us: it fails on a token of which Strip leaves
    nothing, and in a run of bytes that is not valid UTF-8 it also replaces the valid characters."""
    decoder = part("decoder", config)
    strips_end = '"stop": 0' not in (text := json.dumps(config)) and '"stop"' in text
    made: list[tuple[list[str], str]] = []
    while len(made) < 12:
        tokens = [r.choice(TOKEN_TEXTS) for _ in range(r.randint(0, 8))]
        if strips_end:
            tokens = [token + "abc" + token for token in tokens or [""]]
        gives = decoder.decode(tokens)
        if "�" not in gives or config["type"] == "ByteLevel":
            made.append((tokens, gives))
    return made


def components() -> list[Json]:
    r = random.Random(f"{SEED}/components")
    texts = HARD + SENTENCES
    made = []
    for config in pre_tokenizer_configs():
        cutter = part("pre_tokenizer", config)
        some = [*r.sample(texts, 10), "the-final--countdown", "-a-", " a  b ", "x1 23y"]
        cut = [(text, [piece for piece, _ in cutter.pre_tokenize_str(text)]) for text in some]
        made.append({"kind": "pre_tokenizer", "config": config, "cases": cut})
    for config in normalizer_configs():
        rewriter = part("normalizer", config)
        some = r.sample(texts, 40)
        made.append(
            {
                "kind": "normalizer",
                "config": config,
                "cases": [(text, rewriter.normalize_str(text)) for text in some],
            }
        )
    for config in decoder_configs():
        made.append({"kind": "decoder", "config": config, "cases": decoder_cases(r, config)})
    return made
