"""Small model folders whose matrices are stored as in GPTQ, AWQ, compressed-tensors, fp8 and MXFP4.

Each folder has config.json, model.safetensors, and expected.safetensors: the f32 values of its
quantised matrices. make_formats.py writes them.

The packages that write such files are not needed here. Integers, zeros and scales are random,
`expected` is (q - zero) * scale in f32, and the packing below follows the formats that the packages
publish. The committed files were checked by hand with the packages: unpacked by compressed-tensors
0.20.0 (act-order by 0.9.4, because 0.20.0 has removed it), by the functions of AutoAWQ 0.2.9, and
by the formulas of GPTQModel 7.7.0, each with scales in f32, they give `expected` bit for bit. The
values of fp8 and MXFP4 come from transformers: Fp8Dequantize in f32, and
convert_moe_packed_tensors.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor
from transformers.integrations.finegrained_fp8 import Fp8Dequantize
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

import dump
from architectures import gpt_oss
from seed import random_for

Json = dict[str, Any]
Array = numpy.ndarray
Tensors = dict[str, Tensor]

CONFIG: Json = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 40,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-05,
    "rope_theta": 10000.0,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
}
LAYER = "model.layers.0."
MATRICES = {"self_attn.k_proj": (16, 32), "self_attn.v_proj": (16, 32), "mlp.down_proj": (32, 64)}
PLAIN = {
    "model.embed_tokens.weight": (40, 32),
    LAYER + "input_layernorm.weight": (32,),
    LAYER + "self_attn.q_proj.weight": (32, 32),
    LAYER + "self_attn.o_proj.weight": (32, 32),
    LAYER + "post_attention_layernorm.weight": (32,),
    LAYER + "mlp.gate_proj.weight": (64, 32),
    LAYER + "mlp.up_proj.weight": (64, 32),
    "model.norm.weight": (32,),
    "lm_head.weight": (40, 32),
}


# --- integers of 4 bits ---


def words(integers: Array, order: tuple[int, ...] = tuple(range(8))) -> Array:
    """Eight columns in a word of 32 bits: column order[i] is in its bits 4 i to 4 i + 3. The last
    word is padded with zeros."""
    rows, columns = integers.shape
    padded = numpy.zeros((rows, -(-columns // 8) * 8), numpy.uint32)
    padded[:, :columns] = integers
    eight = padded.reshape(rows, -1, 8)
    packed = numpy.zeros(eight.shape[:2], numpy.uint32)
    for i, column in enumerate(order):
        packed |= eight[:, :, column] << numpy.uint32(4 * i)
    return packed.view(numpy.int32)


def tensor(array: Array) -> Tensor:
    return torch.from_numpy(numpy.ascontiguousarray(array))


class Integers:
    """A random matrix: q and the zero of its group are 0 to 15, with one scale per output and
    group."""

    def __init__(
        self, name: str, shape: tuple[int, int], group_size: int, zeros: bool, order: bool
    ):
        random = random_for(f"formats/quantized/{name}")
        outputs, inputs = shape
        self.shape = shape
        size = inputs if group_size == -1 else group_size
        self.groups = numpy.arange(inputs) // size
        if order:
            random.shuffle(self.groups)
        n = inputs // size
        self.q = random.integers(0, 16, shape)
        self.zeros = random.integers(0, 16, (outputs, n)) if zeros else numpy.full((outputs, n), 8)
        self.scales = torch.from_numpy(random.uniform(0.01, 0.1, (outputs, n)))

    def expected(self, scales: Tensor) -> Tensor:
        zeros, scale = self.zeros[:, self.groups], scales.float().numpy()[:, self.groups]
        return tensor((self.q - zeros).astype(numpy.float32) * scale)


def gptq(
    name: str, matrix: Integers, stored_less: int, with_groups: bool
) -> tuple[Tensors, Tensor]:
    """Packed as by GPTQModel: words along the inputs; zeros along the outputs, in the older format
    each word minus 0x11111111."""
    scales = matrix.scales.half()
    parts = {
        f"{name}.qweight": tensor(words(matrix.q).T),
        f"{name}.qzeros": tensor(words(matrix.zeros.T) - numpy.int32(stored_less)),
        f"{name}.scales": scales.T.contiguous(),
    }
    if with_groups:
        parts[f"{name}.g_idx"] = tensor(matrix.groups.astype(numpy.int32))
    return parts, matrix.expected(scales)


AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


def awq(name: str, matrix: Integers) -> tuple[Tensors, Tensor]:
    """As AutoAWQ's WQLinear_GEMM: words along the outputs, in its own order."""
    scales = matrix.scales.half()
    parts = {
        f"{name}.qweight": tensor(words(matrix.q.T, AWQ_ORDER)),
        f"{name}.qzeros": tensor(words(matrix.zeros.T, AWQ_ORDER)),
        f"{name}.scales": scales.T.contiguous(),
    }
    return parts, matrix.expected(scales)


def packed(
    name: str, matrix: Integers, dtype: torch.dtype, with_zeros: bool, with_groups: bool
) -> tuple[Tensors, Tensor]:
    """As compressed-tensors' PackedQuantizationCompressor: integers from -8 to 7 are stored + 8."""
    scales = matrix.scales.to(dtype)
    parts = {
        f"{name}.weight_packed": tensor(words(matrix.q)),
        f"{name}.weight_scale": scales,
        f"{name}.weight_shape": torch.tensor(matrix.shape),
    }
    if with_zeros:
        parts[f"{name}.weight_zero_point"] = tensor(words(matrix.zeros.T).T)
    if with_groups:
        parts[f"{name}.weight_g_idx"] = tensor(matrix.groups.astype(numpy.int32))
    return parts, matrix.expected(scales)


# --- fp8 ---


def fp8(
    folder: str, name: str, shape: tuple[int, int], block: tuple[int, int] | None
) -> tuple[Tensors, Tensor]:
    random = random_for(f"formats/quantized/{folder}/{name}")
    weight = torch.from_numpy(random.normal(0, 60, shape)).to(torch.float8_e4m3fn)
    # Subnormal numbers, both zeros and the largest numbers.
    weight.view(torch.uint8)[0, :6] = torch.tensor([0x01, 0x87, 0x00, 0x80, 0x7E, 0xFE])
    if block is None:
        scale = torch.tensor(random.uniform(1e-3, 3e-3)).to(torch.bfloat16)
    else:
        grid = (shape[0] // block[0], shape[1] // block[1])
        scale = torch.from_numpy(random.uniform(1e-3, 3e-3, grid).astype(numpy.float32))
    parts = {f"{name}.weight": weight, f"{name}.weight_scale_inv": scale}
    if block is None:
        parts[f"{name}.activation_scale"] = torch.tensor(0.25)
    of_whole = scale.reshape(1, 1) if block is None else scale
    return parts, Fp8Dequantize(None)._dequantize_one(weight, of_whole, torch.float32)


# --- MXFP4 ---


def mxfp4(name: str, shape: tuple[int, int, int]) -> tuple[Tensors, Tensor]:
    """shape: experts, inputs, outputs of the dequantised tensor. A zero has no sign, as in GGUF."""
    random = random_for(f"formats/quantized/mxfp4/{name}")
    experts, inputs, outputs = shape
    blocks = random.integers(0, 256, (experts, outputs, inputs // 32, 16)).astype(numpy.uint8)
    scales = random.integers(121, 126, (experts, outputs, inputs // 32)).astype(numpy.uint8)
    parts = {f"{name}_blocks": tensor(blocks), f"{name}_scales": tensor(scales)}
    numbers = convert_moe_packed_tensors(tensor(blocks), tensor(scales)).float()
    return parts, (numbers + 0.0).contiguous()


# --- the folders ---


def plain_weights(shapes: dict[str, tuple[int, ...]], dtype: torch.dtype) -> Tensors:
    random = random_for("formats/quantized")
    weights: Tensors = {}
    for name, shape in shapes.items():
        values = random.normal(1.0 if len(shape) == 1 else 0.0, 0.3, shape)
        weights[name] = torch.from_numpy(values).to(dtype)
    return weights


def compressed_config(weights: Json) -> Json:
    common = {"num_bits": 4, "type": "int", "dynamic": False, "observer": "minmax"}
    scheme = {"targets": ["Linear"], "input_activations": None, "output_activations": None}
    return {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "quantization_status": "compressed",
        "config_groups": {"group_0": scheme | {"weights": common | weights}},
        "ignore": ["lm_head", "re:.*(q|o|gate|up)_proj"],
        "kv_cache_scheme": None,
    }


def folders() -> dict[str, tuple[Json, Any]]:
    """For each folder its quantization_config, and a function that makes a matrix."""

    def integers(folder: str, name: str, size: int, zeros: bool, order: bool = False) -> Integers:
        return Integers(f"{folder}/{name}", MATRICES[name], size, zeros, order)

    gptq_config = {"quant_method": "gptq", "bits": 4, "damp_percent": 0.1, "true_sequential": True}
    fp8_config = {"quant_method": "fp8", "fmt": "e4m3", "modules_to_not_convert": ["lm_head"]}
    return {
        "gptq": (
            gptq_config | {"group_size": 32, "desc_act": False, "sym": True},
            lambda name: gptq(LAYER + name, integers("gptq", name, 32, False), 0x11111111, True),
        ),
        "gptq-act-order": (
            gptq_config | {"group_size": 16, "desc_act": True, "sym": False},
            lambda name: gptq(
                LAYER + name, integers("gptq-act-order", name, 16, True, True), 0x11111111, True
            ),
        ),
        "gptq-v2": (
            gptq_config | {"group_size": -1, "sym": False, "checkpoint_format": "gptq_v2"},
            lambda name: gptq(LAYER + name, integers("gptq-v2", name, -1, True), 0, False),
        ),
        "awq": (
            {
                "quant_method": "awq",
                "bits": 4,
                "group_size": 32,
                "zero_point": True,
                "version": "gemm",
            },
            lambda name: awq(LAYER + name, integers("awq", name, 32, True)),
        ),
        "packed": (
            compressed_config({"symmetric": True, "strategy": "group", "group_size": 32}),
            lambda name: packed(
                LAYER + name, integers("packed", name, 32, False), torch.bfloat16, False, False
            ),
        ),
        "packed-zeros": (
            compressed_config({"symmetric": False, "strategy": "channel", "group_size": None}),
            lambda name: packed(
                LAYER + name, integers("packed-zeros", name, -1, True), torch.float16, True, False
            ),
        ),
        "packed-act-order": (
            compressed_config(
                {"symmetric": False, "strategy": "group", "group_size": 8, "actorder": "group"}
            ),
            lambda name: packed(
                LAYER + name,
                integers("packed-act-order", name, 8, True, True),
                torch.float32,
                True,
                True,
            ),
        ),
        "fp8-blocks": (
            fp8_config | {"activation_scheme": "dynamic", "weight_block_size": [16, 32]},
            lambda name: fp8("fp8-blocks", LAYER + name, MATRICES[name], (16, 32)),
        ),
        "fp8-one-scale": (
            fp8_config | {"activation_scheme": "static", "weight_block_size": None},
            lambda name: fp8("fp8-one-scale", LAYER + name, MATRICES[name], None),
        ),
    }


def write_folder(
    folder: Path, config: Json, plain: Tensors, matrices: dict[str, tuple[Tensors, Tensor]]
) -> None:
    """matrices: for each tensor that is stored in parts, the parts and its values."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    tensors = dict(plain)
    for parts, _ in matrices.values():
        tensors |= parts
    dump.write(folder / "model.safetensors", tensors)
    dump.write(
        folder / "expected.safetensors", {name: numbers for name, (_, numbers) in matrices.items()}
    )


def write_mxfp4_folder(folder: Path) -> None:
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}
    config = gpt_oss.MODELS[0].config | sizes | {"num_local_experts": 3}
    shapes = gpt_oss.shapes(config)
    experts = [name for name in shapes if name.endswith(("gate_up_proj", "down_proj"))]
    matrices = {name: mxfp4(name, shapes.pop(name)) for name in experts}
    config["quantization_config"] = {
        "quant_method": "mxfp4",
        "modules_to_not_convert": ["model.layers.*.self_attn"],
    }
    write_folder(folder, config, plain_weights(shapes, torch.bfloat16), matrices)


def write_folders(out: Path) -> None:
    for folder, (quantization, matrix) in folders().items():
        write_folder(
            out / folder,
            CONFIG | {"quantization_config": quantization},
            plain_weights(PLAIN, torch.float16),
            {f"{LAYER}{name}.weight": matrix(name) for name in MATRICES},
        )
    write_mxfp4_folder(out / "mxfp4")
