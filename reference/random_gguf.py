"""Writes a Llama of a given size, or a small model of another architecture, with random weights as
GGUF, to measure speed: the shapes of released models, without the download. The generated text
means nothing.

    reference/random_gguf.py 1B Q4_K_M OUT.gguf
    reference/random_gguf.py gemma2 Q8_0 OUT.gguf

The small models have about 0.3 to 0.4 billion parameters and are written as Q8_0 or F16. There is
one for each kind of step that Llama does not have: soft caps (gemma2), ALiBi (bloom), experts
(olmoe; olmo2 has the size of what one token uses of olmoe), a convolution (lfm2), the delta rule
(qwen3_5). Q4_K_M is the mixture of llama.cpp's quantize: Q4_K, with Q6_K for the output head, and,
in half of the layers, for the values and the last product of the MLP. Q2_K and Q3_K_S have Q6_K only
for the output head. Other programs can open the file, too.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy
import torch
from gguf import GGMLQuantizationType as Type
from gguf import GGUFWriter

from architectures import MODULES
from gguf_models import tensors_of, write, writer_of
from gguf_parts import HALVES


@dataclass(frozen=True)
class Shape:
    dim: int
    ffn: int
    layers: int
    heads: int
    kv_heads: int
    vocabulary: int


SHAPES = {
    "0.5B": Shape(1024, 4096, 24, 16, 8, 65536),
    "1B": Shape(2048, 8192, 16, 32, 8, 128256),  # Llama 3.2 1B
    "3B": Shape(3072, 8192, 28, 24, 8, 128256),  # Llama 3.2 3B
}
COMMON = {
    "vocab_size": 32000,
    "hidden_size": 1024,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
}
SMALL = {
    "gemma2": COMMON
    | {
        "model_type": "gemma2",
        "intermediate_size": 4096,
        "num_hidden_layers": 16,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0,
        "sliding_window": 4096,
    },
    "olmoe": COMMON
    | {
        "model_type": "olmoe",
        "intermediate_size": 512,
        "num_hidden_layers": 12,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
        "num_experts": 16,
        "num_experts_per_tok": 4,
        "tie_word_embeddings": False,
    },
    "olmo2": COMMON  # the size of what one token uses of olmoe
    | {
        "model_type": "olmo2",
        "intermediate_size": 2048,
        "num_hidden_layers": 12,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
        "tie_word_embeddings": False,
    },
    "bloom": {
        "model_type": "bloom",
        "vocab_size": 32000,
        "hidden_size": 1024,
        "n_layer": 20,
        "n_head": 16,
        "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": True,
    },
    "lfm2": COMMON  # LFM2-350M
    | {
        "model_type": "lfm2",
        "block_auto_adjust_ff_dim": False,
        "intermediate_size": 4608,
        "num_hidden_layers": 16,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "full_attn_idxs": [2, 5, 8, 10, 12, 14],
        "norm_eps": 1e-5,
        "conv_L_cache": 3,
        "conv_bias": False,
    },
    "qwen3_5": COMMON  # half of Qwen3.5-0.8B
    | {
        "model_type": "qwen3_5_text",
        "intermediate_size": 3584,
        "num_hidden_layers": 12,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "rope_parameters": {"mrope_section": [11, 11, 10]},
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 16,
    },
}
TYPES = {
    "F16": Type.F16,
    "Q8_0": Type.Q8_0,
    "Q4_0": Type.Q4_0,
    "Q5_0": Type.Q5_0,
    "Q5_1": Type.Q5_1,
    "IQ4_NL": Type.IQ4_NL,
    "MXFP4": Type.MXFP4,
    "Q2_K": Type.Q2_K,
    "Q3_K_S": Type.Q3_K,
    "Q4_K_M": Type.Q4_K,
}
SCALES = {  # weights near 0.03
    Type.Q8_0: 3e-4,
    Type.Q4_0: 4e-3,
    Type.Q5_0: 2e-3,
    Type.Q5_1: 2e-3,
    Type.IQ4_NL: 4e-4,
    Type.Q2_K: 3e-3,
    Type.Q3_K: 5e-4,
    Type.Q4_K: 1.5e-4,
    Type.Q6_K: 3e-5,
}
MINIMA = {Type.Q5_1: -3e-2, Type.Q2_K: 5e-3, Type.Q4_K: 1e-3}


def more_bits(layer: int, n: int) -> bool:
    """True if llama.cpp stores this layer's values and last product as Q6_K in Q4_K_M."""
    return layer < n // 8 or layer >= 7 * n // 8 or (layer - n // 8) % 3 == 2


def random_matrix(kind: Type, rows: int, columns: int, random: numpy.random.Generator) -> numpy.ndarray:
    if kind == Type.F16:
        return (0.03 * random.standard_normal((rows, columns), numpy.float32)).astype(numpy.float16)
    n_elements, n_bytes = gguf.GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (rows * columns // n_elements, n_bytes), numpy.uint8)
    if kind == Type.MXFP4:  # the scale is an exponent: 2^(120 - 127)
        blocks[:, 0] = 120
    for at, scale in zip(HALVES.get(kind, ()), (SCALES.get(kind), MINIMA.get(kind))):
        blocks[:, at : at + 2] = numpy.frombuffer(numpy.float16(scale).tobytes(), numpy.uint8)
    return blocks.reshape(rows, -1)


def add_vocabulary(writer: GGUFWriter, n: int) -> None:
    """A vocabulary of bytes and meaningless words."""
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL] + [gguf.TokenType.BYTE] * 256
    tokens += [f"\u2581w{i}" for i in range(n - len(tokens))]
    kinds += [gguf.TokenType.NORMAL] * (n - len(kinds))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([-float(i) for i in range(n)])
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


def add_tensors(writer: GGUFWriter, shape: Shape, name: str) -> None:
    random = numpy.random.default_rng(1)
    usual, better = TYPES[name], Type.Q6_K if "_K" in name else TYPES[name]

    def add(tensor: str, rows: int, columns: int, kind: Type = usual) -> None:
        writer.add_tensor(f"{tensor}.weight", random_matrix(kind, rows, columns, random), raw_dtype=kind)

    def add_norm(tensor: str) -> None:
        writer.add_tensor(f"{tensor}.weight", numpy.ones(shape.dim, numpy.float32))

    kv = shape.dim // shape.heads * shape.kv_heads
    add("token_embd", shape.vocabulary, shape.dim, better)
    add_norm("output_norm")
    for layer in range(shape.layers):
        some = better if name == "Q4_K_M" and more_bits(layer, shape.layers) else usual
        block = f"blk.{layer}."
        add_norm(block + "attn_norm")
        add(block + "attn_q", shape.dim, shape.dim)
        add(block + "attn_k", kv, shape.dim)
        add(block + "attn_v", kv, shape.dim, some)
        add(block + "attn_output", shape.dim, shape.dim)
        add_norm(block + "ffn_norm")
        add(block + "ffn_gate", shape.ffn, shape.dim)
        add(block + "ffn_up", shape.ffn, shape.dim)
        add(block + "ffn_down", shape.dim, shape.ffn, some)


def write_llama(out: Path, shape: Shape, kind: str) -> None:
    writer = GGUFWriter(out, "llama")
    writer.add_context_length(8192)
    writer.add_embedding_length(shape.dim)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.ffn)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(500000.0)
    writer.add_rope_dimension_count(shape.dim // shape.heads)
    add_vocabulary(writer, shape.vocabulary)
    add_tensors(writer, shape, kind)
    write(writer)


def write_small(out: Path, config: dict[str, object], kind: Type) -> None:
    random = torch.Generator().manual_seed(1)
    weights = {}
    for name, shape in MODULES[config["model_type"]].shapes(config).items():
        if name == "lm_head.weight" and config["tie_word_embeddings"]:
            continue
        size = 1.0 if len(shape) == 1 else 0.03
        weights[name] = size * torch.randn(shape, generator=random)
    writer = writer_of(out, config)
    add_vocabulary(writer, config["vocab_size"])
    for name, tensor in tensors_of(config, weights):
        numbers = tensor.numpy()
        if numbers.ndim == 1 or numbers.shape[-1] < 32:  # taps of a convolution
            writer.add_tensor(name, numbers)
        else:
            writer.add_tensor(name, gguf.quants.quantize(numbers, kind), raw_dtype=kind)
    write(writer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=[*SHAPES, *SMALL])
    parser.add_argument("type", choices=TYPES)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    if options.shape in SHAPES:
        write_llama(options.out, SHAPES[options.shape], options.type)
    elif options.type in ("F16", "Q8_0"):
        write_small(options.out, SMALL[options.shape], TYPES[options.type])
    else:
        parser.error(f"{options.shape}: expected F16 or Q8_0, found {options.type}")


if __name__ == "__main__":
    main()
