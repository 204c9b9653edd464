"""Tiny models of OUT/models as GGUF files, with the keys, names and transformations of llama.cpp's
conversion scripts. The names come from the table in the `gguf` package.

For each family, these files were compared once with what llama.cpp 0.7.0 computes from them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import torch
from gguf import GGUFWriter
from torch import Tensor

import dump

Json = dict[str, Any]
Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class Family:
    """How conversion/*.py of llama.cpp writes a model family."""

    architecture: str
    # Keys that add_common does not write: the method of GGUFWriter, without "add_", and the field
    # of config.json or a value.
    keys: tuple[tuple[str, Any], ...] = ()
    optional: tuple[str, ...] = ()  # keys with the name of their field, if config.json has it
    pairs: bool = False  # the two rows of a RoPE pair side by side
    norms_plus_one: bool = False
    rotary: float | None = None  # "partial_rotary_factor" if config.json has none
    # Other changes of tensors and names. Names in GGUF style are kept.
    change: Callable[[Tensors, Json], Tensors] = lambda tensors, _: tensors
    # Values that replace fields of config.json for add_common.
    fields: Callable[[Json], Json] = lambda _: {}


def in_turn(tensor: Tensor, config: Json, axis: int = 0) -> Tensor:
    """Reorders the value heads: the first of each key head, then the second of each, and so on. In
    the checkpoint, the value heads of one key head are neighbours."""
    n_keys, n_values = config["linear_num_key_heads"], config["linear_num_value_heads"]
    heads = tensor.unflatten(axis, (n_keys, n_values // n_keys, -1))
    return heads.transpose(axis, axis + 1).flatten(axis, axis + 2)


def change_qwen3_5(tensors: Tensors, config: Json) -> Tensors:
    keys = 2 * config["linear_num_key_heads"] * config["linear_key_head_dim"]
    changed = {}
    for name, tensor in tensors.items():
        if name.endswith((".in_proj_qkv.weight", ".conv1d.weight")):
            tensor = torch.cat([tensor[:keys], in_turn(tensor[keys:], config)])
        elif name.endswith(("z.weight", "_a.weight", "_b.weight", ".A_log", ".dt_bias")):
            tensor = in_turn(tensor, config)
        elif name.endswith("linear_attn.out_proj.weight"):
            tensor = in_turn(tensor, config, axis=1)
        if name.endswith(".A_log"):
            tensor = -torch.exp(tensor)
        changed[name.replace(".dt_bias", ".dt_proj.bias")] = tensor
    return changed


def change_gpt_oss(tensors: Tensors, config: Json) -> Tensors:
    """Puts each expert's gate and up into separate tensors; dimension order [outputs, inputs]."""
    changed = {}
    for name, tensor in tensors.items():
        kind = "bias" if name.endswith("_bias") else "weight"
        if kind == "weight" and ".experts." in name:
            tensor = tensor.transpose(1, 2)
        if ".experts.gate_up_proj" in name:
            at = name.partition("gate_up_proj")[0]
            changed[f"{at}gate_proj.{kind}"] = tensor[:, ::2]
            changed[f"{at}up_proj.{kind}"] = tensor[:, 1::2]
        elif ".experts.down_proj" in name:
            changed[f"{name.partition('down_proj')[0]}down_proj.{kind}"] = tensor
        else:
            changed[name.replace(".sinks", ".sinks.weight")] = tensor
    return changed


def change_fused(tensors: Tensors, config: Json) -> Tensors:
    """Reorders to all rows of q, then of k, then of v; the checkpoint stores them head by head."""
    n_heads = config["num_attention_heads"]
    return {
        name.removeprefix("transformer."): tensor.unflatten(0, (n_heads, 3, -1))
        .transpose(0, 1)
        .flatten(0, 2)
        if ".query_key_value." in name
        else tensor
        for name, tensor in tensors.items()
    }


def change_falcon(tensors: Tensors, config: Json) -> Tensors:
    """The same for a checkpoint in which the heads of q follow each other by shared key head."""
    groups = config["num_key_value_heads"]
    queries = config["num_attention_heads"] // groups
    changed = {}
    for name, tensor in tensors.items():
        if ".query_key_value." in name:
            heads = tensor.unflatten(0, (groups, queries + 2, -1))
            parts = heads[:, :queries], heads[:, queries], heads[:, queries + 1]
            tensor = torch.cat([part.reshape(-1, *tensor.shape[1:]) for part in parts])
        changed[name] = tensor
    return changed


def change_chatglm(tensors: Tensors, config: Json) -> Tensors:
    return {
        name.removeprefix("transformer."): tensor
        for name, tensor in tensors.items()
        if not name.endswith(".inv_freq")
    }


def change_deepseek(tensors: Tensors, config: Json) -> Tensors:
    """Splits kv_b_proj into the matrix of keys, transposed, and that of values, per head."""
    heads = config["num_attention_heads"]
    changed = {}
    for name, tensor in tensors.items():
        if name.endswith(".kv_b_proj.weight"):
            keys, values = tensor.unflatten(0, (heads, -1)).split(
                [config["qk_nope_head_dim"], config["v_head_dim"]], dim=1
            )
            changed[name.replace(".kv_b_", ".k_b_")] = keys.transpose(1, 2)
            changed[name.replace(".kv_b_", ".v_b_")] = values
        else:
            changed[name.replace("e_score_correction_bias", "e_score_correction.bias")] = tensor
    return changed


def change_gpt2(tensors: Tensors, config: Json) -> Tensors:
    """Transposes matrices to [outputs, inputs]."""
    return {
        name: tensor.T if re.search(r"c_(attn|proj|fc)\.weight$", name) else tensor
        for name, tensor in tensors.items()
    }


def gemma4_is_global(config: Json) -> list[bool]:
    n_layers = config["num_hidden_layers"]
    if "layer_types" in config:
        return [kind == "full_attention" for kind in config["layer_types"]]
    return [layer % 6 == 5 or layer == n_layers - 1 for layer in range(n_layers)]


def gemma4_rope(config: Json, kind: str) -> Json:
    usual = {
        "sliding_attention": {"rope_theta": 10000.0},
        "full_attention": {"rope_theta": 1000000.0, "partial_rotary_factor": 0.25},
    }
    return config.get("rope_parameters", usual)[kind]


def gemma4_fields(config: Json) -> Json:
    """The sizes of global layers, and lists with one value per layer if they differ."""
    is_global = gemma4_is_global(config)
    n_shared = config.get("num_kv_shared_layers", 0)
    width, heads = config["intermediate_size"], config["num_key_value_heads"]
    fields: Json = {
        "rope_theta": gemma4_rope(config, "full_attention")["rope_theta"],
        "head_dim": config["global_head_dim"],
        "is_sliding": [not layer for layer in is_global],
        "num_kv_shared_layers": n_shared,
        "local_head_dim": config["head_dim"],
        "local_theta": gemma4_rope(config, "sliding_attention")["rope_theta"],
    }
    if config.get("use_double_wide_mlp"):
        own = len(is_global) - n_shared
        fields["intermediate_size"] = [width] * own + [2 * width] * n_shared
    if (global_heads := config.get("num_global_key_value_heads")) is not None:
        fields["num_key_value_heads"] = [global_heads if layer else heads for layer in is_global]
    if config.get("enable_moe_block"):
        fields["num_experts_per_tok"] = config["top_k_experts"]
        fields["expert_feed_forward_length"] = config["moe_intermediate_size"]
    return fields


def change_gemma4(tensors: Tensors, config: Json) -> Tensors:
    """Global layers rotate only the first pairs of a head: other frequencies are divided by
    1e30."""
    share = gemma4_rope(config, "full_attention")["partial_rotary_factor"]
    n_pairs = config["head_dim"] // 2
    turned = int(share * n_pairs)
    changed = {"rope_freqs.weight": torch.tensor([1.0] * turned + [1e30] * (n_pairs - turned))}
    for name, tensor in tensors.items():
        if name.endswith(".router.scale"):
            name = f"blk.{name.split('.')[2]}.ffn_gate_inp.scale"
        elif name.endswith(".router.per_expert_scale"):
            name = f"blk.{name.split('.')[2]}.ffn_down_exps.scale"
        elif ".experts." in name or name.endswith(".layer_scalar"):
            name += ".weight"
        changed[name] = tensor
    return changed


EXPERTS = (("expert_feed_forward_length", "moe_intermediate_size"),)
WINDOW = (("sliding_window", "sliding_window"),)
DEEPSEEK = Family(
    "deepseek2",
    (
        ("leading_dense_block_count", "first_k_dense_replace"),
        ("kv_lora_rank", "kv_lora_rank"),
        ("value_length_mla", "v_head_dim"),
        ("rope_dimension_count", "qk_rope_head_dim"),
        ("expert_feed_forward_length", "moe_intermediate_size"),
        ("expert_shared_count", "n_shared_experts"),
        ("expert_weights_scale", "routed_scaling_factor"),
    ),
    change=change_deepseek,
)
FAMILIES = {
    "gemma": Family("gemma", norms_plus_one=True),
    "gemma2": Family(
        "gemma2",
        (
            ("attn_logit_softcapping", "attn_logit_softcapping"),
            ("final_logit_softcapping", "final_logit_softcapping"),
            ("sliding_window", "sliding_window"),
        ),
        norms_plus_one=True,
    ),
    "gemma3_text": Family(
        "gemma3", (("sliding_window", "sliding_window"),), norms_plus_one=True
    ),
    "gemma4_text": Family(
        "gemma4",
        (
            *WINDOW,
            ("sliding_window_pattern", "is_sliding"),
            ("shared_kv_layers", "num_kv_shared_layers"),
            ("embedding_length_per_layer_input", "hidden_size_per_layer_input"),
            ("key_length_swa", "local_head_dim"),
            ("value_length_swa", "local_head_dim"),
            ("rope_dimension_count", "head_dim"),
            ("rope_dimension_count_swa", "local_head_dim"),
            ("rope_freq_base_swa", "local_theta"),
        ),
        optional=("final_logit_softcapping", "expert_feed_forward_length"),
        change=change_gemma4,
        fields=gemma4_fields,
    ),
    "qwen3_moe": Family("qwen3moe", EXPERTS),
    "qwen2_moe": Family(
        "qwen2moe",
        (*EXPERTS, ("expert_shared_feed_forward_length", "shared_expert_intermediate_size")),
    ),
    "smollm3": Family("smollm3", pairs=True),
    "phi3": Family("phi3"),
    "granite": Family(
        "granite",
        (
            ("attention_scale", "attention_multiplier"),
            ("embedding_scale", "embedding_multiplier"),
            ("residual_scale", "residual_multiplier"),
            ("logit_scale", "logits_scaling"),
        ),
        pairs=True,
    ),
    "olmo": Family(
        "olmo", (("layer_norm_eps", 1e-5), ("clamp_kqv", "clip_qkv")), pairs=True
    ),
    "olmo2": Family("olmo2"),
    "olmo3": Family("olmo2", WINDOW),
    "gpt_oss": Family(
        "gpt-oss",
        (*WINDOW, ("expert_feed_forward_length", "intermediate_size")),
        change=change_gpt_oss,
    ),
    "starcoder2": Family("starcoder2"),
    "stablelm": Family(
        "stablelm", (("parallel_residual", "use_parallel_residual"),), rotary=0.25
    ),
    "olmoe": Family("olmoe"),
    "mixtral": Family("llama", pairs=True),
    "glm4": Family("glm4", rotary=0.5),
    "glm": Family("chatglm", rotary=0.5),
    "chatglm": Family("chatglm", rotary=0.5, change=change_chatglm),
    "deepseek_v2": DEEPSEEK,
    "deepseek_v3": DEEPSEEK,
    "falcon": Family(
        "falcon", (("tensor_data_layout", "jploski"),), change=change_falcon
    ),
    "ernie4_5": Family("ernie4_5"),
    "cohere": Family("command-r", (("logit_scale", "logit_scale"),)),
    # llama.cpp reads the pattern; its script does not write it, because it is the same in all
    # models.
    "cohere2": Family(
        "cohere2",
        (
            ("logit_scale", "logit_scale"),
            ("sliding_window", "sliding_window"),
            ("sliding_window_pattern", "sliding_window_pattern"),
        ),
        rotary=1.0,
    ),
    "lfm2": Family("lfm2", (("shortconv_l_cache", "conv_L_cache"),)),
    "gpt2": Family("gpt2", change=change_gpt2),
    "gpt_neox": Family(
        "gptneox", (("parallel_residual", "use_parallel_residual"),), rotary=0.25, change=change_fused
    ),
    "bloom": Family("bloom", change=change_fused),
    "phi": Family("phi2", rotary=0.5),
    "qwen3_5_text": Family(
        "qwen35",
        (
            ("ssm_conv_kernel", "linear_conv_kernel_dim"),
            ("ssm_state_size", "linear_key_head_dim"),
            ("ssm_group_count", "linear_num_key_heads"),
            ("ssm_time_step_rank", "linear_num_value_heads"),
        ),
        norms_plus_one=True,
        rotary=0.25,
        change=change_qwen3_5,
    ),
}

MODELS = (
    "bloom-4-heads",
    "chatglm2-usual-heads",
    "cohere-tied",
    "cohere2-pattern",
    "deepseek-v2-greedy",
    "deepseek-v2-groups",
    "deepseek-v3-groups",
    "ernie4_5-tied",
    "falcon-one-key-head",
    "falcon-two-norms",
    "gemma-tied",
    "gemma2-head-scale",
    "gemma3-six-layers",
    "gemma4-2-of-5-experts",
    "gemma4-keys-as-values",
    "gemma4-shared-caches",
    "glm-half-rotary",
    "glm4-post-norms",
    "gpt-neox-parallel",
    "gpt-neox-sequential",
    "gpt-oss-usual-limit",
    "gpt2-tied",
    "granite-multipliers",
    "lfm2-conv-last",
    "mixtral-2-of-5",
    "olmo-clip",
    "olmo2-gqa2",
    "olmo3-yarn",
    "olmoe-mha",
    "phi-gqa2",
    "phi3-mha",
    "qwen2-moe-shared",
    "qwen3-moe-3-of-7",
    "qwen3_5-long-keys",
    "smollm3-four-layers",
    "stablelm-biases",
    "starcoder2-no-window",
)


def first_of(config: Json, *names: str) -> Any:
    return next((config[name] for name in names if config.get(name) is not None), None)


USUAL = {
    "n_embd": "hidden_size",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "n_positions": "max_position_embeddings",
    "rotary_pct": "partial_rotary_factor",
    "rotary_emb_base": "rope_theta",
    "layer_norm_epsilon": "layer_norm_eps",
    "layernorm_epsilon": "rms_norm_eps",
    "num_layers": "num_hidden_layers",
    "ffn_hidden_size": "intermediate_size",
    "multi_query_group_num": "num_key_value_heads",
    "num_kv_heads": "num_key_value_heads",
    "padded_vocab_size": "vocab_size",
    "seq_length": "max_position_embeddings",
    "n_routed_experts": "num_experts",
}


def usual(config: Json) -> Json:
    """The config with the names that most architectures use, and the sizes that older ones leave
    out."""
    named = {USUAL.get(name, name): value for name, value in config.items()}
    missing = {
        "num_key_value_heads": named["num_attention_heads"],
        "intermediate_size": 4 * named["hidden_size"],
        "max_position_embeddings": 2048,
    }
    named |= FAMILIES[config["model_type"]].fields(named)
    if config.get("multi_query") and not config["new_decoder_architecture"]:
        named["num_key_value_heads"] = 1  # Falcon 7B
    return missing | named


def feed_forward_width(config: Json) -> int:
    if "block_ff_dim" not in config:  # not an older LFM2
        return config["intermediate_size"]
    width = int(config["block_ffn_dim_multiplier"] * int(2 * config["block_ff_dim"] / 3))
    multiple = config["block_multiple_of"]
    return multiple * ((width + multiple - 1) // multiple)


def kv_heads(config: Json) -> int | list[int]:
    """One number, or a list with one per layer if some layers have a convolution."""
    if "full_attn_idxs" not in config:
        return config["num_key_value_heads"]
    return [
        config["num_key_value_heads"] if layer in config["full_attn_idxs"] else 0
        for layer in range(config["num_hidden_layers"])
    ]


def add_sizes(writer: GGUFWriter, config: Json) -> None:
    """Writes the sizes that every file has, in the order of llama.cpp's script."""
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(feed_forward_width(config))
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_head_count(config["num_attention_heads"])
    # In llama.cpp, all heads share one key if there are latents.
    writer.add_head_count_kv(1 if "kv_lora_rank" in config else kv_heads(config))


def add_latent(writer: GGUFWriter, config: Json) -> None:
    """DeepSeek: sizes of the latents for keys and values, and how experts are chosen."""
    if config["q_lora_rank"] is not None:
        writer.add_q_lora_rank(config["q_lora_rank"])
    writer.add_key_length(config["kv_lora_rank"] + config["qk_rope_head_dim"])
    writer.add_value_length(config["kv_lora_rank"])
    writer.add_key_length_mla(config["qk_nope_head_dim"] + config["qk_rope_head_dim"])
    third = config["model_type"] == "deepseek_v3"
    scores = gguf.ExpertGatingFuncType
    writer.add_expert_gating_func(scores.SIGMOID if third else scores.SOFTMAX)
    if config.get("norm_topk_prob"):
        writer.add_expert_weights_norm(True)
    if "n_group" in config:
        writer.add_expert_group_count(config["n_group"])
        writer.add_expert_group_used_count(config["topk_group"])


def add_common(writer: GGUFWriter, config: Json, rotary: float | None) -> None:
    """Writes what TextModel.set_gguf_parameters writes."""
    head_dim = config.get("head_dim")
    width = head_dim or config["hidden_size"] // config["num_attention_heads"]
    add_sizes(writer, config)
    rope = config.get("rope_parameters", {})
    writer.add_rope_freq_base(config.get("rope_theta", rope.get("rope_theta", 10000.0)))
    writer.add_vocab_size(config["vocab_size"])
    if (eps := first_of(config, "rms_norm_eps", "norm_eps")) is not None:
        writer.add_layer_norm_rms_eps(eps)
    if (eps := first_of(config, "layer_norm_eps", "norm_epsilon")) is not None:
        writer.add_layer_norm_eps(eps)
    if (n_experts := first_of(config, "num_local_experts", "num_experts")) is not None:
        writer.add_expert_count(n_experts)
        writer.add_expert_used_count(config["num_experts_per_tok"])
    if head_dim is not None:
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
    if rotary is not None:
        writer.add_rope_dimension_count(int(width * config.get("partial_rotary_factor", rotary)))
    scaling = config.get("rope_scaling", rope if "factor" in rope else None)
    if "mrope_section" in rope:
        writer.add_rope_dimension_sections([*rope["mrope_section"], 0])
    if "linear_value_head_dim" in config:
        writer.add_ssm_inner_size(
            config["linear_value_head_dim"] * config["linear_num_value_heads"]
        )
    if "kv_lora_rank" in config:
        add_latent(writer, config)
    if scaling is not None:
        kind = first_of(scaling, "rope_type", "type")
        writer.add_rope_scaling_type(gguf.RopeScalingType(kind))
        writer.add_rope_scaling_factor(scaling["factor"])
        if kind == "yarn":
            add_yarn(writer, scaling)


def add_yarn(writer: GGUFWriter, scaling: Json) -> None:
    writer.add_rope_scaling_orig_ctx_len(scaling["original_max_position_embeddings"])
    if "attention_factor" in scaling:
        writer.add_rope_scaling_yarn_attn_factor(scaling["attention_factor"])
    if "mscale_all_dim" in scaling:
        writer.add_rope_scaling_yarn_log_mul(0.1 * scaling["mscale_all_dim"])
    writer.add_rope_scaling_yarn_beta_fast(scaling["beta_fast"])
    writer.add_rope_scaling_yarn_beta_slow(scaling["beta_slow"])


def as_pairs(weight: Tensor, n_heads: int) -> Tensor:
    halves = weight.reshape(n_heads, 2, weight.shape[0] // n_heads // 2, *weight.shape[1:])
    return halves.swapaxes(1, 2).reshape(weight.shape)


def stacked(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The matrices of a layer's experts as one tensor, with the scripts' name."""
    experts: dict[str, list[Tensor]] = {}
    others: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        merged = re.sub(r"\.experts\.\d+\.", ".experts.", name)
        if merged == name:
            others[name] = tensor
            continue
        block = "model.(layers.*)block_sparse_moe"  # Mixtral
        experts.setdefault(re.sub(block, r"\1feed_forward", merged), []).append(tensor)
    return others | {name: torch.stack(parts) for name, parts in experts.items()}


def transformed(name: str, tensor: Tensor, config: Json, family: Family) -> Tensor:
    # The norm of the delta rule multiplies with its weight, not with 1 + weight.
    if family.norms_plus_one and name.endswith("norm.weight") and "linear_attn" not in name:
        return tensor + 1
    if family.pairs and ".q_proj." in name:
        return as_pairs(tensor, config["num_attention_heads"])
    if family.pairs and ".k_proj." in name:
        return as_pairs(tensor, config["num_key_value_heads"])
    return tensor


def writer_of(path: Path, config: Json) -> GGUFWriter:
    """A writer with the keys of the model's architecture."""
    family = FAMILIES[config["model_type"]]
    config = usual(config)
    writer = GGUFWriter(path, family.architecture)
    add_common(writer, config, family.rotary)
    for key, field in family.keys:
        getattr(writer, f"add_{key}")(config.get(field, field))
    for key in family.optional:
        if key in config:
            getattr(writer, f"add_{key}")(config[key])
    return writer


def tensors_of(config: Json, tensors: Tensors) -> Iterator[tuple[str, Tensor]]:
    """A checkpoint's tensors with the names and layout of a GGUF file."""
    family = FAMILIES[config["model_type"]]
    config = usual(config)
    numbers = {name: number for number, name in gguf.MODEL_ARCH_NAMES.items()}
    names = gguf.get_tensor_name_map(numbers[family.architecture], config["num_hidden_layers"])
    for name, tensor in stacked(family.change(tensors, config)).items():
        own = name.startswith(("blk.", "rope_freqs."))
        other = name if own else names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert other is not None, f"gguf has no name for {name}"
        whole = transformed(name, tensor, config, family)
        yield other, (whole.squeeze() if whole.dim() > 1 else whole).contiguous()


def write(writer: GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_family(path: Path, folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    tensors, _ = dump.read(folder / "model.safetensors")
    writer = writer_of(path, config)
    writer.add_tokenizer_model("none")
    for name, tensor in tensors_of(config, tensors):
        writer.add_tensor(name, tensor.numpy())
    write(writer)


def write_families(out: Path, models: Path) -> None:
    for name in MODELS:
        write_family(out / f"{name}.gguf", models / name)
