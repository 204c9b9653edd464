"""Make the small tokenizers that tests read, with the tokenizers library's results for many texts.

    build/venv/bin/python reference/make_tokenizers.py --out tests/data/tokenizers

OUT/NAME/tokenizer.json and OUT/NAME/cases.jsonl, one line per text: `text`; its `ids`; `plain`, the
ids with special tokens read as text, if they differ from `ids`; `before` and `after`, the ids that
the post-processor adds, if any; and `decoded`, the decoded text of `ids`, if it differs from
`text`. OUT/components.jsonl: see tokenizer_components.py.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from make_sentencepiece import make_sentencepiece
from tokenizer_cases import cases, write_lines
from tokenizer_components import components
from tokenizer_parts import (
    BYTE_TOKENS,
    LLAMA3_SPLIT,
    LLAMA_DECODER,
    LLAMA_NORMALIZER,
    QWEN2_SPLIT,
    Json,
    added,
    byte_level,
    metaspace,
    part,
    sequence,
    split,
    template,
)
from tokenizer_texts import corpus, trials

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
    """A whole tokenizer.json. `first`: the tokens with the first ids; `whole_words`: tokens that no
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
    """Llama 3: digits in groups of three, whole words of the vocabulary, begin-of-text."""
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
    """Llama 2, sentencepiece converted to BPE: spaces are marks, unknown characters become
    bytes."""
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


def gemma4(name: str) -> Json:
    """Gemma 4: as llama2, but without a space before a text; runs of newlines are added tokens."""
    first = ["<pad>", "<eos>", "<bos>", "<unk>"]
    newlines = ["\n\n", "\n\n\n"]
    return assemble(
        name,
        700,
        normalizer=LLAMA_NORMALIZER["normalizers"][1],
        pre_tokenizer={
            "type": "Split",
            "pattern": {"String": " "},
            "behavior": "MergedWithPrevious",
            "invert": False,
        },
        decoder=sequence("decoders", *LLAMA_DECODER["decoders"][:3]),
        post_processor=template(["<bos>"], []),
        tokens=[
            *map(added, [*first, "<|turn>"]),
            *(added(run, special=False) for run in newlines),
        ],
        first=[*first, *BYTE_TOKENS, *newlines],
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
    """Metaspace only before the first word; unknown characters one by one."""
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
    """Added tokens with each flag, alone and together; some are the beginning of others."""
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
    gemma4,
    normalized_specials,
    metaspace_first,
    metaspace_always,
    lowercase,
    added_tokens,
]


# --- writing ---


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
    make_sentencepiece(out)
    write_lines(out / "components.jsonl", components())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    make_tokenizers(parser.parse_args().out)
