"""Make the small files of tests/data/formats, which test the formats of other programs.

    build/venv/bin/python reference/make_formats.py --out tests/data

OUT/models and OUT/tokenizers must exist. Beside them it writes OUT/formats:
    quantize.safetensors   f32 `values`, and `TYPE.blocks`: the gguf package's quantisation of them
    float_to_half.safetensors  f32 `values`, `F16` and `BF16`: PyTorch's rounding of them
    float8.safetensors     `F8_E4M3`: PyTorch's values of the bytes 0 to 255
    llama2c-v*.bin         models of OUT/models as llama2.c's export.py writes them; v2 is random, with
                           its contents in llama2c-v2.safetensors; story is for the vocabulary below
    tokenizer-*.bin        OUT/tokenizers/llama2 as its tokenizer.py does, bytes spelt in two ways
    *.flm                  models and vocabularies as FastLLM writes them
    quantized/NAME/        folders with quantised weights: see quantized_folders.py
    flm.jsonl              texts, and their ids by the longest match in story.flm and gpt2.flm
"""

from __future__ import annotations

import argparse
import json
import struct
from pathlib import Path
from typing import Any

import gguf
import numpy
import torch
from gguf import GGMLQuantizationType as Type
from tokenizers import pre_tokenizers

import dump
from quantized_folders import write_folders
from seed import random_for
from tokenizer_texts import HARD

Json = dict[str, Any]
Array = numpy.ndarray
Weights = dict[str, Array]

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"


# --- numbers ---


def write_quantized(path: Path) -> None:
    """Blocks of 32 at many scales, including ties, zeros of both signs and single numbers."""
    random = random_for("formats/quantize")
    scales = 10.0 ** random.uniform(-6, 4, (160, 1))
    values = (random.normal(0, 1, (160, 32)) * scales).astype(numpy.float32)
    values[0] = 0.0
    values[1, ::3] = -0.0  # in a block of zeros, the package and ggml's C differ in d's sign
    values[2] = 3.0
    values[3] = numpy.float32(1e-42)  # the inverse of its scale is infinite in f32
    values[4, 1:] = 0.0
    values[5] = numpy.arange(-16, 16) / 2  # halves; the largest on each side
    values[6] = -values[5]
    values[7] = numpy.arange(32) * 0.5 - 7.5
    values[8] = (numpy.arange(32) - 8) * 63.5 / 8
    values[9, 0], values[9, 1] = -127.0, 127.0
    values[10] = abs(values[10])
    values[11] = -abs(values[11])
    values[12] = numpy.where(random.random(32) < 0.5, -1, 1)
    tensors = {"values": torch.from_numpy(values)}
    for kind in (Type.Q4_0, Type.Q4_1, Type.Q8_0):
        with numpy.errstate(all="ignore"):
            blocks = gguf.quantize(values, kind)
        # If 1 / d is infinite, the package multiplies by it, and its result is meaningless.
        n_scales = 4 if kind == Type.Q4_1 else 2
        blocks[3, n_scales:] = 0x88 if kind == Type.Q4_0 else 0
        tensors[f"{kind.name}.blocks"] = torch.from_numpy(blocks)
    dump.write(path, tensors)


def write_float_to_half(path: Path) -> None:
    """Random bits with any exponent, and the numbers around all limits."""
    random = random_for("formats/narrow")  # a seed, not a file: keep it
    bits = random.integers(0, 2**32, 3000, numpy.uint32)
    # As f16: exponents from subnormal to beyond the largest; the last bits near a tie.
    exponents = random.integers(127 - 27, 127 + 18, 3000).astype(numpy.uint32)
    near = (bits & 0x807F_E000) | exponents << 23
    near += numpy.uint32(0x1000) + random.integers(-1, 2, 3000).astype(numpy.uint32)
    edges = [0.0, -0.0, 65504.0, 65519.996, 65520.0, 65536.0, 2**-14, 2**-24, 2**-25, 1.5 * 2**-24]
    edges += [2**-14 - 2**-25, 2**-14 - 2**-24, 3.4028234e38, 3.39e38, 1e-45, float("inf")]
    values = numpy.concatenate(
        [bits.view(numpy.float32), near.view(numpy.float32), numpy.array(edges, numpy.float32)]
    )
    tensor = torch.from_numpy(values[~numpy.isnan(values)].copy())
    tensor = torch.cat([tensor, -tensor])
    halves = {"F16": tensor.to(torch.float16), "BF16": tensor.to(torch.bfloat16)}
    dump.write(path, {"values": tensor, **halves})


def write_float8(path: Path) -> None:
    bits = torch.arange(256, dtype=torch.uint8)
    dump.write(path, {"F8_E4M3": bits.view(torch.float8_e4m3fn).float()})


# --- llama2.c ---

HEADER = 256


def pairs(weight: Array, n_heads: int) -> Array:
    """Reorders the rows of each head so that the two rows of a RoPE pair are neighbours."""
    rows = weight.shape[0]
    halves = weight.reshape(n_heads, 2, rows // n_heads // 2, *weight.shape[1:])
    return halves.swapaxes(1, 2).reshape(weight.shape)


def in_layers(config: Json, weights: Weights, part: str) -> list[Array]:
    found = [weights[f"model.layers.{i}.{part}.weight"] for i in range(config["num_hidden_layers"])]
    heads = {"self_attn.q_proj": "num_attention_heads", "self_attn.k_proj": "num_key_value_heads"}
    return [pairs(w, config[heads[part]]) for w in found] if part in heads else found


def llama2c_header(config: Json) -> list[int]:
    return [
        config["hidden_size"],
        config["intermediate_size"],
        config["num_hidden_layers"],
        config["num_attention_heads"],
        config["num_key_value_heads"],
        config["vocab_size"],
        config["max_position_embeddings"],
    ]


def quantize_q80(weight: Array, group_size: int) -> tuple[Array, Array]:
    groups = weight.reshape(-1, group_size)
    scale = (abs(groups).max(axis=1) / 127.0).astype(numpy.float32)
    return (groups / scale[:, None]).round().astype(numpy.int8), scale


def write_llama2c(path: Path, config: Json, weights: Weights, version: int, group: int = 0) -> None:
    """As legacy_export, version1_export and version2_export of llama2.c's export.py."""
    tied = "lm_head.weight" not in weights

    def each(*parts: str) -> list[Array]:
        return [w for part in parts for w in in_layers(config, weights, part)]

    attention = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj")
    mlp = ("mlp.gate_proj", "mlp.down_proj", "mlp.up_proj")
    embedding, norm = weights["model.embed_tokens.weight"], weights["model.norm.weight"]
    head = [] if tied else [weights["lm_head.weight"]]
    numbers = llama2c_header(config)
    if version == 0:
        numbers[5] *= 1 if tied else -1
        room = numpy.zeros((config["max_position_embeddings"], numbers[0] // numbers[3]))
        out = struct.pack("<7i", *numbers)
        parts = [embedding, *each("input_layernorm", *attention, "post_attention_layernorm", *mlp)]
        for weight in (*parts, norm, room, *head):
            out += weight.astype(numpy.float32).tobytes()
        path.write_bytes(out)
        return
    out = struct.pack("<Ii7iB", 0x616B3432, version, *numbers, int(tied))
    if version == 2:
        out += struct.pack("<i", group)
    out = out.ljust(HEADER, b"\0")
    for weight in (*each("input_layernorm", "post_attention_layernorm"), norm):
        out += weight.tobytes()
    for weight in (embedding, *each(*attention, *mlp), *head):
        if version == 1:
            out += weight.tobytes()
        else:
            numbers8, scales = quantize_q80(weight, group)
            out += numbers8.tobytes() + scales.tobytes()
    path.write_bytes(out)


def weights_of(folder: Path) -> tuple[Json, Weights]:
    config = json.loads((folder / "config.json").read_text())
    tensors, _ = dump.read(folder / "model.safetensors")
    return config, {name: tensor.float().numpy() for name, tensor in tensors.items()}


def random_weights(name: str, config: Json) -> Weights:
    random = random_for(f"formats/{name}")
    dim, ffn = config["hidden_size"], config["intermediate_size"]
    kv = dim // config["num_attention_heads"] * config["num_key_value_heads"]
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens": (config["vocab_size"], dim)}
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        shapes |= {
            layer + "input_layernorm": (dim,),
            layer + "self_attn.q_proj": (dim, dim),
            layer + "self_attn.k_proj": (kv, dim),
            layer + "self_attn.v_proj": (kv, dim),
            layer + "self_attn.o_proj": (dim, dim),
            layer + "post_attention_layernorm": (dim,),
            layer + "mlp.gate_proj": (ffn, dim),
            layer + "mlp.up_proj": (ffn, dim),
            layer + "mlp.down_proj": (dim, ffn),
        }
    shapes["model.norm"] = (dim,)
    return {
        f"{name}.weight": random.normal(1.0 if len(shape) == 1 else 0.0, 0.3, shape).astype(
            numpy.float32
        )
        for name, shape in shapes.items()
    }


STORY = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 700,
    "max_position_embeddings": 32,
}


def write_llama2c_v2(path: Path, expected: Path) -> None:
    """Groups of 12; beside it the resulting weights, with Hugging Face's names."""
    config = {
        "hidden_size": 24,
        "intermediate_size": 36,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 65,
        "max_position_embeddings": 64,
    }
    weights = random_weights("llama2c-v2", config)
    write_llama2c(path, config, weights, 2, 12)
    for name, weight in weights.items():
        if weight.ndim == 2:  # a group is in one row, so the order of rows does not matter
            numbers, scales = quantize_q80(weight, 12)
            rounded = numbers.astype(numpy.float32) * scales[:, None]
            weights[name] = rounded.astype(numpy.float32).reshape(weight.shape)
    dump.write(expected, {name: torch.from_numpy(w) for name, w in weights.items()})


def write_llama2c_tokenizer(path: Path, folder: Path, in_bytes: bool) -> None:
    """Llama's vocabulary as tokenizer.py of llama2.c writes it; the scores are the ranks of
    merges."""
    model = json.loads((folder / "tokenizer.json").read_text())["model"]
    texts = sorted(model["vocab"], key=model["vocab"].get)
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    scores = {merge.replace(" ", ""): -float(rank) for rank, merge in reversed([*enumerate(merges)])}
    entries = []
    for i, text in enumerate(texts):
        spelt = text.replace("▁", " ").encode()
        if i in (1, 2):
            spelt = b"\n" + spelt + b"\n"
        if 3 <= i < 259 and in_bytes:
            spelt = chr(i - 3).encode()  # as in the file that came with stories15M
        entries.append((0.0 if i < 259 else scores.get(text, -1e6), spelt))
    out = struct.pack("<i", max(len(text) for _, text in entries))
    for score, text in entries:
        out += struct.pack("<fi", score, len(text)) + text
    path.write_bytes(out)


# --- FastLLM ---


def flm_text(text: bytes) -> bytes:
    return struct.pack("<i", len(text)) + text


def write_flm(
    path: Path, pairs: dict[str, Any], vocabulary: dict[str, int], weights: Weights
) -> None:
    """As tools/fastllm_pytools/torch2flm.py writes a model, with matrices in f16 if they fit."""
    out = struct.pack("<ii", 2, len(pairs))
    for key, value in pairs.items():
        out += flm_text(key.encode()) + flm_text(str(value).encode())
    out += struct.pack("<i", len(vocabulary))
    for text, i in vocabulary.items():
        spelt = text.encode()
        out += struct.pack(f"<i{len(spelt)}ii", len(spelt), *spelt, i)
    out += struct.pack("<i", len(weights))
    for name, weight in weights.items():
        half = weight.dtype == numpy.float16
        shape = weight.shape
        out += flm_text(name.encode())
        out += struct.pack(f"<i{len(shape)}ii", len(shape), *shape, 7 if half else 0)
        out += weight.tobytes()
    path.write_bytes(out)


FLM_CHAT = {
    "pre_prompt": "<s>Be 'brief'.\n",
    "user_role": "USER: ",
    "bot_role": "\nBOT: ",
    "history_sep": "</s>\n",
}


def vocabulary_of(folder: Path) -> dict[str, int]:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    added = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    return tokenizer["model"]["vocab"] | added


def write_flm_model(path: Path, folder: Path) -> None:
    config, weights = weights_of(folder)
    write_flm(path, config, {}, weights)


def write_flm_chatglm(path: Path, folder: Path) -> None:
    """As by its default: matrices in f16, the rest in f32, and with the RoPE frequencies, which are
    in PyTorch's state."""
    config, weights = weights_of(folder)
    halves = {n: w.astype(numpy.float16) if w.ndim == 2 else w for n, w in weights.items()}
    write_flm(path, config, {}, halves)


def write_flm_story(path: Path, llama2: Path) -> None:
    """Matrices in f16; a pair of each kind that Python prints."""
    weights = random_weights("flm-story", STORY)
    for name, weight in weights.items():
        weights[name] = weight.astype(numpy.float16) if weight.ndim == 2 else weight
    pairs = STORY | {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "rms_norm_eps": 1e-06,
        "rope_theta": 5000.0,
        "rope_scaling": {"rope_type": "linear", "factor": 2.0},
        "head_dim": None,
        "tie_word_embeddings": True,
        "torch_dtype": "torch.float16",
        "bos_token_id": 1,
        "eos_token_id": 2,
        "unk_token_id": 0,
    }
    write_flm(path, pairs | FLM_CHAT, vocabulary_of(llama2), weights)


def longest_matches(text: bytes, vocabulary: dict[bytes, int], missing: Any) -> list[int]:
    ids: list[int] = []
    longest = max(map(len, vocabulary))
    while text:
        size = next((n for n in range(min(longest, len(text)), 0, -1) if text[:n] in vocabulary), 0)
        if size:
            ids.append(vocabulary[text[:size]])
        else:
            size = next(n for n in range(1, 5) if len(text) == n or text[n] & 0xC0 != 0x80)
            ids += missing(text[:size])
        text = text[size:]
    return ids


GPT2_PAD = 472  # half a Hebrew word: no text contains it


def write_flm_cases(path: Path, llama2: Path, gpt2: Path) -> None:
    """The ids of texts by the longest match in the vocabularies of story.flm and gpt2.flm."""
    marks = vocabulary_of(llama2)
    plain = {t.encode(): i for t, i in marks.items() if i >= 259}
    cutter = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    letters = {t.encode(): i for t, i in vocabulary_of(gpt2).items() if i not in (GPT2_PAD, 480)}
    lines = []
    for text in HARD:
        if not text or "<" in text:
            continue
        spelt = ("▁" + text.replace(" ", "▁")).encode()
        in_bytes = "".join(piece for piece, _ in cutter.pre_tokenize_str(text)).encode()
        case = {
            "text": text,
            "story": longest_matches(spelt, plain, lambda bad: [byte + 3 for byte in bad]),
            "gpt2": longest_matches(in_bytes, letters, lambda _: []),
        }
        lines.append(json.dumps(case, ensure_ascii=False))
    path.write_text("\n".join(lines) + "\n")


def make_formats(data: Path) -> None:
    """Writes data/formats."""
    out = data / "formats"
    out.mkdir(parents=True, exist_ok=True)
    write_quantized(out / "quantize.safetensors")
    write_float_to_half(out / "float_to_half.safetensors")
    write_float8(out / "float8.safetensors")
    write_folders(out / "quantized")
    write_llama2c(out / "llama2c-v0.bin", *weights_of(data / "models" / "llama-gqa2"), 0)
    tied = weights_of(data / "models" / "llama-tied-embed-only")
    write_llama2c(out / "llama2c-v0-tied.bin", *tied, 0)
    write_llama2c(out / "llama2c-v1.bin", *weights_of(data / "models" / "llama-gqa2"), 1)
    write_llama2c_v2(out / "llama2c-v2.bin", out / "llama2c-v2.safetensors")
    write_llama2c(out / "llama2c-story.bin", STORY, random_weights("llama2c-story", STORY), 1)
    llama2 = data / "tokenizers" / "llama2"
    write_llama2c_tokenizer(out / "tokenizer-angles.bin", llama2, in_bytes=False)
    write_llama2c_tokenizer(out / "tokenizer-bytes.bin", llama2, in_bytes=True)
    gpt2 = data / "tokenizers" / "gpt2"
    write_flm_model(out / "llama-gqa2.flm", data / "models" / "llama-gqa2")
    write_flm_chatglm(out / "chatglm.flm", data / "models" / "chatglm-gmask")
    write_flm_chatglm(out / "chatglm2.flm", data / "models" / "chatglm2-two-key-heads")
    write_flm_story(out / "story.flm", llama2)
    write_flm(out / "gpt2.flm", {"eos_token_id": 480, "pad_token_id": GPT2_PAD}, vocabulary_of(gpt2), {})
    write_flm_cases(out / "flm.jsonl", llama2, gpt2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, default=DATA, help="a folder like tests/data (default: that)"
    )
    make_formats(parser.parse_args().out)
