"""Make the small GGUF files that tests read, with the `gguf` package of the llama.cpp project.

    build/venv/bin/python reference/make_gguf.py --out tests/data

OUT/models and OUT/tokenizers must exist. Beside them it writes OUT/gguf:
    NAME.gguf             a model of OUT/models in another file format, weights unchanged
    whole.gguf            a complete model: quantised weights, vocabulary, template
    whole-f32.gguf        the same with its weights dequantised
    four-bits.gguf        a model of random IQ4_NL, IQ4_XS and MXFP4 blocks
    whole-values, four-bits-values
                          the weights of whole.gguf and four-bits.gguf in f32, as folders of
                          Hugging Face
    tokenizer-NAME.gguf   a vocabulary of OUT/tokenizers, without a model
    pre_tokenizers.jsonl  one line per value of "tokenizer.ggml.pre": its `names`, and `cases`,
                          pairs of a text and the pieces that the tokenizers library makes of it
    blocks.safetensors    for each quantised type: random `TYPE.blocks` (U8), and `TYPE.expected`,
                          their values in f32

The package has no converter for checkpoints, so names, keys and the order of q and k are written
here as convert_hf_to_gguf.py of llama.cpp writes them.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import gguf
import numpy
import torch
from gguf import GGMLQuantizationType as Type
from gguf import GGUFWriter, TokenType

import dump
from gguf_models import add_sizes, add_yarn, write_families
from gguf_parts import write_blocks, write_pre_tokenizers
from seed import random_for

Json = dict[str, Any]
Array = numpy.ndarray

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"

MODELS = (
    "llama-attention-bias",
    "llama-bf16",
    "llama-f16",
    "llama-gqa2",
    "llama-rope-linear",
    "llama-rope-llama3",
    "qwen2-rope-yarn",
    "llama-tied-lm-head-only",
    "qwen2-window-off",
    "qwen3-qk-norm",
)
PRE = {"gpt2": "gpt-2", "llama3": "llama-bpe", "qwen2": "qwen2", "smollm": "smollm"}

NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
TOP_NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


# --- models ---


def gguf_name(name: str) -> str:
    if name in TOP_NAMES:
        return TOP_NAMES[name]
    _, _, layer, rest = name.split(".", 3)  # model.layers.0.mlp.up_proj.weight
    part, kind = rest.rsplit(".", 1)
    return f"blk.{layer}.{NAMES[part]}.{kind}"


def as_pairs(weight: Array, n_heads: int) -> Array:
    """Reorders the rows of each head so that the two rows of a RoPE pair are neighbours."""
    rows = weight.shape[0]
    halves = weight.reshape(n_heads, 2, rows // n_heads // 2, *weight.shape[1:])
    return halves.swapaxes(1, 2).reshape(weight.shape)


def as_halves(weight: Array, n_heads: int) -> Array:
    """The inverse of as_pairs."""
    rows = weight.shape[0]
    pairs = weight.reshape(n_heads, rows // n_heads // 2, 2, *weight.shape[1:])
    return pairs.swapaxes(1, 2).reshape(weight.shape)


def llama3_factors(config: Json) -> Array:
    """The factors by which convert_hf_to_gguf.py divides each frequency."""
    scaling = config["rope_scaling"]
    head_dim = config["hidden_size"] // config["num_attention_heads"]
    original = scaling["original_max_position_embeddings"]
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    factors = []
    for i in range(0, head_dim, 2):
        wavelength = 2 * math.pi * config["rope_theta"] ** (i / head_dim)
        if wavelength < original / high:
            factors.append(1.0)
        elif wavelength > original / low:
            factors.append(scaling["factor"])
        else:
            smooth = (original / wavelength - low) / (high - low)
            factors.append(1 / ((1 - smooth) / scaling["factor"] + smooth))
    return numpy.array(factors, numpy.float32)


def add_shape(writer: GGUFWriter, config: Json) -> None:
    add_sizes(writer, config)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    if "head_dim" in config:
        writer.add_key_length(config["head_dim"])
        writer.add_value_length(config["head_dim"])
    else:
        writer.add_rope_dimension_count(config["hidden_size"] // config["num_attention_heads"])
    writer.add_vocab_size(config["vocab_size"])
    scaling = config.get("rope_scaling") or {}
    kind = scaling.get("rope_type", scaling.get("type"))
    if kind in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(kind))
        writer.add_rope_scaling_factor(scaling["factor"])
    if kind == "yarn":
        add_yarn(writer, scaling)


def add_tensor(writer: GGUFWriter, name: str, tensor: torch.Tensor) -> None:
    if tensor.dtype == torch.bfloat16:
        raw = tensor.contiguous().view(torch.uint8).numpy()
        writer.add_tensor(name, raw, raw_dtype=Type.BF16)
    else:
        writer.add_tensor(name, tensor.contiguous().numpy())


def reordered(name: str, tensor: torch.Tensor, config: Json) -> torch.Tensor:
    if config["model_type"] != "llama" or ("q_proj" not in name and "k_proj" not in name):
        return tensor
    key = "num_attention_heads" if "q_proj" in name else "num_key_value_heads"
    words = tensor.view(torch.int16) if tensor.element_size() == 2 else tensor
    return torch.from_numpy(as_pairs(words.numpy(), config[key])).view(tensor.dtype)


def finish(writer: GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_model(path: Path, folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    tensors, _ = dump.read(folder / "model.safetensors")
    if config["tie_word_embeddings"] and "model.embed_tokens.weight" not in tensors:
        tensors["model.embed_tokens.weight"] = tensors.pop("lm_head.weight")
    writer = GGUFWriter(path, config["model_type"])
    add_shape(writer, config)
    writer.add_tokenizer_model("none")
    scaling = config.get("rope_scaling") or {}
    if scaling.get("rope_type") == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_factors(config))
    for name, tensor in tensors.items():
        add_tensor(writer, gguf_name(name), reordered(name, tensor, config))
    finish(writer)


# --- vocabularies ---


def add_specials(writer: GGUFWriter, tokenizer: Json, ids: dict[str, int]) -> None:
    post = json.dumps(tokenizer["post_processor"])
    added = [token["content"] for token in tokenizer["added_tokens"]]
    begin = next((name for name in added if f'"{name}"' in post), None)
    writer.add_add_bos_token(begin is not None)
    if begin is not None:
        writer.add_bos_token_id(ids[begin])
    unknown = tokenizer["model"]["unk_token"]
    if unknown is not None:
        writer.add_unk_token_id(ids[unknown])


def write_tokenizer(path: Path, name: str, folder: Path) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    model = tokenizer["model"]
    added = {token["content"]: token for token in tokenizer["added_tokens"]}
    ids = model["vocab"] | {token["content"]: token["id"] for token in added.values()}
    tokens = [f"[PAD{i}]" for i in range(max(ids.values()) + 1)]
    types = [TokenType.UNUSED] * len(tokens)
    for text, i in ids.items():
        tokens[i], types[i] = text, TokenType.NORMAL
        if text in added:
            special = added[text]["special"]
            types[i] = TokenType.CONTROL if special else TokenType.USER_DEFINED
        elif model.get("byte_fallback") and len(text) == 6 and text.startswith("<0x"):
            types[i] = TokenType.BYTE
        if name == "gemma4" and not text.strip("\n"):
            types[i] = TokenType.NORMAL  # as in llama.cpp's script
        if text == model["unk_token"] and name == "llama2":
            types[i] = TokenType.UNKNOWN
    # Older files write a merge as one text, newer ones as two.
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    writer = GGUFWriter(path, "llama")
    if name == "llama2":
        scores = [0.0 if kind != TokenType.NORMAL else -1e6 for kind in types]
        for rank, merge in enumerate(merges):
            scores[ids[merge.replace(" ", "")]] = -float(rank)
        writer.add_tokenizer_model("llama")
        writer.add_tokenizer_pre("default")
        writer.add_token_scores(scores)
    elif name == "gemma4":
        writer.add_tokenizer_model("gemma4")
        writer.add_token_scores([-1000.0] * len(tokens))
        writer.add_token_merges(merges)
        writer.add_add_space_prefix(False)
    else:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre(PRE[name])
        writer.add_token_merges(merges)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    add_specials(writer, tokenizer, ids)
    finish(writer)


# --- one with everything ---

WHOLE: Json = {
    "model_type": "llama",
    "vocab_size": 62,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "max_position_embeddings": 128,
}
WHOLE_TYPES = {
    "token_embd": Type.Q8_0,
    "attn_q": Type.Q4_0,
    "attn_k": Type.Q4_1,
    "attn_v": Type.Q5_0,
    "attn_output": Type.Q5_1,
    "ffn_gate": Type.Q8_0,
    "ffn_up": Type.Q4_1,
    "ffn_down": Type.Q4_0,
}
WHOLE_TEMPLATE = (
    "{% for m in messages %}"
    "{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def whole_shapes(config: Json) -> dict[str, tuple[int, ...]]:
    dim, ffn, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    kv = dim // config["num_attention_heads"] * config["num_key_value_heads"]
    return {
        "token_embd.weight": (vocab, dim),
        "blk.0.attn_norm.weight": (dim,),
        "blk.0.attn_q.weight": (dim, dim),
        "blk.0.attn_k.weight": (kv, dim),
        "blk.0.attn_v.weight": (kv, dim),
        "blk.0.attn_output.weight": (dim, dim),
        "blk.0.ffn_norm.weight": (dim,),
        "blk.0.ffn_gate.weight": (ffn, dim),
        "blk.0.ffn_up.weight": (ffn, dim),
        "blk.0.ffn_down.weight": (dim, ffn),
        "output_norm.weight": (dim,),
    }


def hugging_face_name(name: str) -> str:
    """The inverse of gguf_name, for a model with one layer."""
    names = {new: f"model.layers.0.{old}" for old, new in NAMES.items()}
    by_gguf_name = {new: old for old, new in TOP_NAMES.items()}
    if name in by_gguf_name:
        return by_gguf_name[name]
    _, _, part, kind = name.split(".")  # blk.0.ffn_up.weight
    return f"{names[part]}.{kind}"


def write_values(folder: Path, config: Json, weights: dict[str, Array]) -> None:
    """A folder with these weights, whose names and order of q and k are those of GGUF."""
    heads = {"attn_q": "num_attention_heads", "attn_k": "num_key_value_heads"}
    tensors = {}
    for name, weight in weights.items():
        part = name.split(".")[-2]
        if part in heads:
            weight = as_halves(weight, config[heads[part]])
        tensors[hugging_face_name(name)] = torch.from_numpy(weight.copy())
    folder.mkdir(exist_ok=True)
    dump.write(folder / "model.safetensors", tensors)
    text = json.dumps(config | {"tie_word_embeddings": True}, indent=2) + "\n"
    (folder / "config.json").write_text(text)


def whole_weights() -> dict[str, Array]:
    random = random_for("gguf/whole")
    return {
        name: random.normal(1.0 if len(shape) == 1 else 0.0, 0.3, shape).astype(numpy.float32)
        for name, shape in whole_shapes(WHOLE).items()
    }


def write_whole(path: Path, dequantised: bool) -> None:
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)] + ["Ġ", "Ċ", ".", ",", "!", "?"]
    merges = ["t h", "Ġ th", "Ġth e", "a n", "an d", "Ġ and", "i n", "Ġ a", "Ġ s", "e r", "o n"]
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *letters]
    tokens += [merge.replace(" ", "") for merge in merges]
    types = [TokenType.CONTROL] * 3 + [TokenType.NORMAL] * (len(tokens) - 3)
    n_unused = WHOLE["vocab_size"] - len(tokens) - 1
    tokens += ["  ", *(f"[PAD{i}]" for i in range(n_unused))]
    types += [TokenType.USER_DEFINED]
    types += [TokenType.UNUSED] * (len(tokens) - len(types))

    writer = GGUFWriter(path, "llama")
    writer.add_name("a model with everything")
    add_shape(writer, WHOLE)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_eot_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_chat_template(WHOLE_TEMPLATE)
    values = {}
    for name, weight in whole_weights().items():
        kind = WHOLE_TYPES.get(name.split(".")[-2])
        if kind is None:
            values[name] = weight
            writer.add_tensor(name, weight)
            continue
        blocks = gguf.quantize(weight, kind)
        values[name] = gguf.dequantize(blocks, kind)
        if dequantised:
            writer.add_tensor(name, values[name])
        else:
            writer.add_tensor(name, blocks, raw_dtype=kind)
    finish(writer)
    if not dequantised:
        write_values(path.with_name("whole-values"), WHOLE, values)


# --- four bits ---

FOUR_BITS = WHOLE | {"intermediate_size": 256, "vocab_size": 40}
FOUR_BIT_TYPES = {
    "attn_q": Type.IQ4_NL,
    "attn_k": Type.MXFP4,
    "attn_v": Type.IQ4_NL,
    "attn_output": Type.MXFP4,
    "ffn_gate": Type.IQ4_NL,
    "ffn_up": Type.MXFP4,
    "ffn_down": Type.IQ4_XS,
}


def four_bit_blocks(random: numpy.random.Generator, kind: Type, rows: int, columns: int) -> Array:
    """Blocks of random integers. The scales give numbers about as large as trained weights."""
    n_elements, n_bytes = gguf.GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (rows * columns // n_elements, n_bytes), numpy.uint8)
    if kind == Type.MXFP4:
        blocks[:, 0] = random.integers(122, 126, len(blocks))
    else:
        scale = 4e-5 if kind == Type.IQ4_XS else 2e-3
        scales = (random.normal(0, 1, len(blocks)) * scale).astype(numpy.float16)
        blocks[:, :2] = scales.view(numpy.uint8).reshape(-1, 2)
    return blocks.reshape(rows, -1)


def write_four_bits(path: Path) -> None:
    """A model without a vocabulary, with matrices in the types whose values come from a table."""
    random = random_for("gguf/four-bits")
    writer = GGUFWriter(path, "llama")
    add_shape(writer, FOUR_BITS)
    writer.add_tokenizer_model("none")
    values = {}
    for name, shape in whole_shapes(FOUR_BITS).items():
        kind = FOUR_BIT_TYPES.get(name.split(".")[-2])
        if kind is None:
            weight = random.normal(1.0 if len(shape) == 1 else 0.0, 0.3, shape)
            values[name] = weight.astype(numpy.float32)
            writer.add_tensor(name, values[name])
        else:
            blocks = four_bit_blocks(random, kind, *shape)
            values[name] = gguf.dequantize(blocks, kind)
            writer.add_tensor(name, blocks, raw_dtype=kind)
    finish(writer)
    write_values(path.with_name("four-bits-values"), FOUR_BITS, values)


def make_gguf(data: Path) -> None:
    """Writes data/gguf from data/models and data/tokenizers."""
    out = data / "gguf"
    out.mkdir(parents=True, exist_ok=True)
    for name in MODELS:
        write_model(out / f"{name}.gguf", data / "models" / name)
    write_families(out, data / "models")
    for name in (*PRE, "llama2", "gemma4"):
        write_tokenizer(out / f"tokenizer-{name}.gguf", name, data / "tokenizers" / name)
    write_whole(out / "whole.gguf", dequantised=False)
    write_whole(out / "whole-f32.gguf", dequantised=True)
    write_four_bits(out / "four-bits.gguf")
    write_pre_tokenizers(out / "pre_tokenizers.jsonl")
    write_blocks(out / "blocks.safetensors")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, default=DATA, help="a folder like tests/data (default: that)"
    )
    make_gguf(parser.parse_args().out)
