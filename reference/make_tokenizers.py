"""Make the small tokenizers that tests read, with what the tokenizers library makes of many texts.

    build/venv/bin/python reference/make_tokenizers.py --out tests/data/tokenizers

OUT/NAME/tokenizer.json and OUT/NAME/cases.jsonl, a line a text: `text`; `ids` of it; where they
differ from `ids`, those with special tokens read as text (`plain`); what the post-processor puts
`before` and `after` them, where it does; and where it differs from `text`, what `ids` decode to
(`decoded`).
OUT/components.jsonl: normalizers, pre-tokenizers and decoders one at a time, with more options than
ten tokenizers can have; a line each: `kind`, `config`, and `cases`, pairs of what goes in (a text,
or a decoder's tokens) and what comes out (a text, or a pre-tokenizer's pieces).
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from seed import SEED
from tokenizer_texts import HARD, SENTENCES, corpus, trials

Json = dict[str, Any]

LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2_SPLIT = LLAMA3_SPLIT.replace(r"\p{N}{1,3}", r"\p{N}")
BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(256)]


# --- the parts of a tokenizer.json ---


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
    """Ids are filled in by `assemble`."""
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


# --- training ---


def train(
    name: str,
    vocab_size: int,
    normalizer: Json | None,
    pre_tokenizer: Json | None,
    first: list[str],
) -> tuple[dict[str, int], list[list[str]]]:
    """Vocabulary and merges of a BPE; `first` get the first ids."""
    tokenizer = Tokenizer(models.BPE())
    if normalizer:
        tokenizer.normalizer = part("normalizer", normalizer)
    if pre_tokenizer:
        tokenizer.pre_tokenizer = part("pre_tokenizer", pre_tokenizer)
    is_byte_level = "ByteLevel" in json.dumps(pre_tokenizer)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet()) if is_byte_level else []
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        show_progress=False,
        special_tokens=first,
        initial_alphabet=alphabet,
        max_token_length=16,
    )
    tokenizer.train_from_iterator(corpus(name), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], model["merges"]


def part(kind: str, config: Json) -> Any:
    """A normalizer, pre-tokenizer or decoder of the library from its JSON."""
    empty = json.loads(Tokenizer(models.BPE()).to_str())
    return getattr(Tokenizer.from_str(json.dumps(empty | {kind: config})), kind)


def assemble(
    name: str,
    vocab_size: int,
    *,
    normalizer: Json | None = None,
    pre_tokenizer: Json | None = None,
    decoder: Json | None = None,
    post_processor: Json | None = None,
    tokens: list[Json] = [],
    first: list[str] = [],
    whole_words: list[str] = [],
    old_merges: bool = False,
    **model_options: Any,
) -> Json:
    """A whole tokenizer.json. `first`: the tokens with the first ids; `whole_words`: those that no
    merge makes."""
    vocab, merges = train(name, vocab_size, normalizer, pre_tokenizer, first)
    for word in whole_words:
        vocab.setdefault(word, len(vocab))
    ids = dict(vocab)
    for token in tokens:
        ids.setdefault(token["content"], len(ids))
    for processor in [post_processor or {}, *(post_processor or {}).get("processors", [])]:
        for token in processor.get("special_tokens", {}).values():
            token["ids"] = [ids[text] for text in token["tokens"]]
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None}
    model |= {
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
    }
    model |= model_options
    model |= {
        "vocab": vocab,
        "merges": [" ".join(pair) for pair in merges] if old_merges else merges,
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": ids[token["content"]]} | token for token in tokens],
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": post_processor,
        "decoder": decoder,
        "model": model,
    }


# --- the tokenizers ---


def gpt2(name: str) -> Json:
    """GPT-2, with the older encoding of merges and without the newer fields."""
    made = assemble(
        name,
        480,
        pre_tokenizer=byte_level(),
        decoder=byte_level(),
        post_processor=byte_level(trim_offsets=False),
        tokens=[added("<|endoftext|>")],
        old_merges=True,
        continuing_subword_prefix="",
        end_of_word_suffix="",
    )
    del made["model"]["ignore_merges"]
    return made


def llama3(name: str) -> Json:
    """Llama 3: digits by threes, words of the vocabulary taken whole, begin-of-text."""
    return assemble(
        name,
        480,
        pre_tokenizer=sequence("pretokenizers", split(LLAMA3_SPLIT), byte_level(use_regex=False)),
        decoder=byte_level(),
        post_processor=sequence("processors", byte_level(), template(["<|begin_of_text|>"], [])),
        tokens=[added("<|begin_of_text|>"), added("<|start_header_id|>"), added("<|eot_id|>")],
        whole_words=["Ġstory", "hello", "Ġhello", "123", "æĹ¥"],
        ignore_merges=True,
    )


def qwen2(name: str) -> Json:
    """Qwen2: NFC, single digits, ChatML and added tokens that are not special."""
    return assemble(
        name,
        480,
        normalizer={"type": "NFC"},
        pre_tokenizer=sequence("pretokenizers", split(QWEN2_SPLIT), byte_level(use_regex=False)),
        decoder=byte_level(),
        post_processor=byte_level(),
        tokens=[
            added("<|endoftext|>"),
            added("<|im_start|>"),
            added("<|im_end|>"),
            added("<tool_call>", special=False),
        ],
    )


def smollm(name: str) -> Json:
    """SmolLM: single digits, then GPT-2's pattern; special tokens come first in the vocabulary."""
    first = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>"]
    return assemble(
        name,
        480,
        pre_tokenizer=sequence(
            "pretokenizers", {"type": "Digits", "individual_digits": True}, byte_level()
        ),
        decoder=byte_level(),
        tokens=[added(token) for token in first],
        first=first,
        unk_token="<|endoftext|>",
    )


def llama2(name: str) -> Json:
    """Llama 2, sentencepiece turned into BPE: spaces are marks, the unknown is spelt in bytes."""
    first = ["<unk>", "<s>", "</s>"]
    return assemble(
        name,
        700,
        normalizer=LLAMA_NORMALIZER,
        decoder=LLAMA_DECODER,
        post_processor=template(["<s>"], []),
        tokens=[added(token) for token in first],
        first=first + BYTE_TOKENS,
        unk_token="<unk>",
        fuse_unk=True,
        byte_fallback=True,
    )


def normalized_specials(name: str) -> Json:
    """As llama2, but special tokens are looked for in normalized text; some bytes are missing."""
    first = ["<unk>", "<|start|>", "<|end|>"]
    return assemble(
        name,
        420,
        normalizer=LLAMA_NORMALIZER,
        decoder=LLAMA_DECODER,
        post_processor=template(["<|start|>"], ["<|end|>"]),
        tokens=[added(token, normalized=True) for token in first],
        first=first + BYTE_TOKENS[:0xE0],
        unk_token="<unk>",
        fuse_unk=True,
        byte_fallback=True,
    )


def metaspace_first(name: str) -> Json:
    """Metaspace before the first word only; unknown characters one by one."""
    return assemble(
        name,
        420,
        pre_tokenizer=metaspace("first"),
        decoder=metaspace("first"),
        post_processor=template([], ["</s>"]),
        tokens=[added("</s>"), added("<sep>", lstrip=True)],
        first=["<unk>"],
        unk_token="<unk>",
    )


def metaspace_always(name: str) -> Json:
    """Metaspace after every added token, another mark, no cuts; unknown runs are one token."""
    return assemble(
        name,
        420,
        pre_tokenizer=metaspace("always", "_", split=False),
        decoder=metaspace("always", "_"),
        tokens=[added("<unk>"), added("<sep>", special=False)],
        first=["<unk>"],
        unk_token="<unk>",
        fuse_unk=True,
    )


def lowercase(name: str) -> Json:
    """NFKC, lower case, blanks joined; words and punctuation; no decoder: spaces between tokens."""
    normalizer = sequence(
        "normalizers",
        {"type": "NFKC"},
        {"type": "Lowercase"},
        {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "},
        {"type": "Strip", "strip_left": True, "strip_right": True},
    )
    pre_tokenizer = sequence(
        "pretokenizers", {"type": "Whitespace"}, {"type": "Punctuation", "behavior": "Isolated"}
    )
    return assemble(
        name,
        420,
        normalizer=normalizer,
        pre_tokenizer=pre_tokenizer,
        tokens=[added("[UNK]"), added("[Story]", special=False, normalized=True)],
        first=["[UNK]"],
        unk_token="[UNK]",
    )


def added_tokens(name: str) -> Json:
    """Added tokens with every flag, alone and together, some the beginning of others."""
    tokens = [
        added("<left>", lstrip=True),
        added("<right>", rstrip=True),
        added("<both>", lstrip=True, rstrip=True),
        added("word", special=False, single_word=True),
        added("word!", special=False),
        added("wor", special=False),
        added("Upper", special=False, normalized=True),
        added("<Special>", normalized=True),
        added("lonely", single_word=True, lstrip=True, rstrip=True),
        added("  ", special=False),
        added("\n", special=False),
        added("ß", special=False, normalized=True, single_word=True),
        added("<|a|>"),
        added("<|a|><|b|>"),
        added("é"),
    ]
    return assemble(
        name,
        400,
        normalizer=sequence("normalizers", {"type": "Lowercase"}, {"type": "NFD"}),
        pre_tokenizer=byte_level(add_prefix_space=True),
        decoder=byte_level(),
        tokens=tokens,
    )


TOKENIZERS: list[Callable[[str], Json]] = [
    gpt2,
    llama3,
    qwen2,
    smollm,
    llama2,
    normalized_specials,
    metaspace_first,
    metaspace_always,
    lowercase,
    added_tokens,
]


# --- what the library makes of texts ---


def around(ids: list[int], with_special: list[int]) -> tuple[list[int], list[int]]:
    """What the post-processor put before and after `ids`."""
    for n in range(len(with_special) - len(ids) + 1):
        if with_special[n : n + len(ids)] == ids:
            return with_special[:n], with_special[n + len(ids) :]
    raise SystemExit(f"{ids} are not within {with_special}")


def cases(tokenizer: Tokenizer, texts: list[str]) -> list[Json]:
    made = []
    for text in texts:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        case = {"text": text, "ids": ids}
        tokenizer.encode_special_tokens = True
        plain = tokenizer.encode(text, add_special_tokens=False).ids
        tokenizer.encode_special_tokens = False
        before, after = around(ids, tokenizer.encode(text).ids)
        decoded = tokenizer.decode(ids, skip_special_tokens=False)
        case |= {"plain": plain} if plain != ids else {}
        case |= {"before": before} if before else {}
        case |= {"after": after} if after else {}
        case |= {"decoded": decoded} if decoded != text else {}
        made.append(case)
    return made


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
    """Only what the library decodes as we do: it fails on a token that Strip leaves nothing of, and
    in a run of bytes that is not UTF-8 it replaces the characters that are whole, too."""
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


# --- writing ---


def write_lines(path: Path, values: list[Json]) -> None:
    path.write_text(
        "".join(
            json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n" for value in values
        )
    )


def make_tokenizers(out: Path) -> None:
    for build in TOKENIZERS:
        name = build.__name__
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        made = build(name)
        (folder / "tokenizer.json").write_text(
            json.dumps(made, ensure_ascii=False, separators=(",", ":")) + "\n"
        )
        markers = [token["content"] for token in made["added_tokens"] if token["content"].strip()]
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        write_lines(folder / "cases.jsonl", cases(tokenizer, trials(name, markers[:15])))
    write_lines(out / "components.jsonl", components())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    make_tokenizers(parser.parse_args().out)
