"""The parts of a GGUF file, each alone: blocks of quantised numbers, and the ways to cut text that
"tokenizer.ggml.pre" can name. make_gguf.py writes both."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy
import torch
from gguf import GGMLQuantizationType as Type
from tokenizers import Regex, pre_tokenizers

import dump
from tokenizer_parts import LLAMA3_SPLIT, QWEN2_SPLIT
from seed import random_for
from tokenizer_texts import HARD

# --- blocks ---

# The places of f16 numbers in a block; all other bytes may have any value.
HALVES = {
    Type.Q4_0: (0,),
    Type.Q4_1: (0, 2),
    Type.Q5_0: (0,),
    Type.Q5_1: (0, 2),
    Type.Q8_0: (0,),
    Type.Q2_K: (80, 82),
    Type.Q3_K: (108,),
    Type.Q4_K: (0, 2),
    Type.Q5_K: (0, 2),
    Type.Q6_K: (208,),
    Type.IQ4_NL: (0,),
    Type.IQ4_XS: (0,),
}


def write_blocks(path: Path) -> None:
    tensors: dict[str, torch.Tensor] = {}
    for kind in (*HALVES, Type.Q8_K, Type.MXFP4):
        random = random_for(f"gguf/{kind.name}")
        n_elements, n_bytes = gguf.GGML_QUANT_SIZES[kind]
        blocks = random.integers(0, 256, (5, n_bytes), numpy.uint8)
        # Any sign and any finite size, including a zero and a subnormal number.
        for at in HALVES.get(kind, ()):
            halves = random.normal(0, 1, 5) * 10.0 ** random.integers(-4, 4, 5)
            halves[0], halves[1] = 0.0, 3e-6
            blocks[:, at : at + 2] = halves.astype(numpy.float16).view(numpy.uint8).reshape(5, 2)
        if kind == Type.MXFP4:  # exponents: both subnormal ones, and the largest without infinities
            blocks[:, 0] = (0, 1, 2, 127, 252)
        if kind == Type.Q8_K:  # the package cannot read it: f32, 256 signed bytes, 16 sums
            scales = random.normal(0, 1, 5).astype(numpy.float32)
            blocks[:, :4] = scales.view(numpy.uint8).reshape(5, 4)
            expected = scales[:, None] * blocks[:, 4:260].view(numpy.int8).astype(numpy.float32)
        else:
            expected = gguf.dequantize(blocks, kind)
        assert expected.shape == (5, n_elements) and expected.dtype == numpy.float32
        tensors[f"{kind.name}.blocks"] = torch.from_numpy(blocks)
        tensors[f"{kind.name}.expected"] = torch.from_numpy(expected.copy())
    dump.write(path, tensors)


# --- how text is cut ---

# From the tokenizer.json of Qwen3.5, gpt-oss and Mistral Nemo.
QWEN35_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
GPT4O_SPLIT = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{SHORT}"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{SHORT}|\p{{N}}{{1,3}}{REST}"
)
TEKKEN_SPLIT = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*|\p{{N}}{REST}"
)
# From the tokenizer.json of DeepSeek-V2-Lite and DeepSeek-V3.
DEEPSEEK_LETTERS = (
    "A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫ"
    "ᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1f7dᾀ-ᾴᾶ-ᾼ\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3ῖ-\u1fdbῠ-Ῥῲ-ῴ"
    "ῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿ"
    "ﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃"
)
DEEPSEEK_V3_SPLIT = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT2_SPLIT = (
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
)


def splits(*patterns: str) -> list[pre_tokenizers.PreTokenizer]:
    return [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]


def in_bytes(use_regex: bool) -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


def cutters() -> list[tuple[list[str], list[pre_tokenizers.PreTokenizer]]]:
    digits = pre_tokenizers.Digits
    return [
        (["gpt-2", "phi-2", "olmo", "mpt"], [in_bytes(True)]),
        (
            ["smollm", "starcoder", "refact", "command-r"],
            [digits(individual_digits=True), in_bytes(True)],
        ),
        (
            [
                *("llama-bpe", "llama3", "llama-v3", "falcon3", "lfm2"),
                *("dbrx", "smaug-bpe", "glm4", "chatglm-bpe"),
            ],
            [*splits(LLAMA3_SPLIT), in_bytes(False)],
        ),
        (
            ["qwen2", "deepseek-r1-qwen", "stablelm2"],
            [*splits(QWEN2_SPLIT), in_bytes(False)],
        ),
        (["bloom"], [*splits(r" ?[^(\s|[.,!?…。，、।۔،])]+"), in_bytes(False)]),
        (["qwen35"], [*splits(QWEN35_SPLIT), in_bytes(False)]),
        (["gpt-4o"], [*splits(GPT4O_SPLIT), in_bytes(False)]),
        (["tekken"], [*splits(TEKKEN_SPLIT), in_bytes(False)]),
        (
            ["deepseek-coder"],
            [
                *splits(r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-\ud7ff]+"),
                digits(individual_digits=True),
                in_bytes(False),
            ],
        ),
        (
            ["deepseek-llm"],
            [
                *splits(r"[\r\n]", rf"\s?[{DEEPSEEK_LETTERS}]+"),
                *splits("\\s?[!-/:-~！-／：-～‘-‟\u3000-。]+", r"\s+$"),
                *splits("[一-龥ࠀ-一가-\ud7ff]+"),
                digits(individual_digits=True),
                in_bytes(False),
            ],
        ),
        (
            ["deepseek-v3"],
            [
                *splits(r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+", DEEPSEEK_V3_SPLIT),
                in_bytes(False),
            ],
        ),
        (
            ["falcon"],
            [
                pre_tokenizers.Punctuation("contiguous"),
                in_bytes(True),
                digits(individual_digits=False),
                *splits("[0-9][0-9][0-9]"),
            ],
        ),
        (
            ["default"],
            [
                *splits(r"[\p{P}\$\+<=>\^~\|]+", GPT2_SPLIT, r"\p{N}+", "[0-9][0-9][0-9]"),
                in_bytes(False),
            ],
        ),
    ]


def write_pre_tokenizers(path: Path) -> None:
    texts = [text for text in HARD if text]
    lines = []
    for names, parts in cutters():
        cutter = pre_tokenizers.Sequence(parts)
        cases = [[text, [piece for piece, _ in cutter.pre_tokenize_str(text)]] for text in texts]
        lines.append(json.dumps({"names": names, "cases": cases}, ensure_ascii=False))
    path.write_text("\n".join(lines) + "\n")
