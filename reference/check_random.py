"""Random models of every architecture: our logits compared with those of Hugging Face transformers.

    check_random.py PROGRAM [--models N] [--seed S] [--only TYPE]

Each model is one of model_zoo.py with other sizes, numbers and kinds of layers. transformers makes
it from the config and saves it, so config.json has every field that transformers writes. (If
transformers has no such model, our definition is used.) Then PROGRAM (build/release/src/stagecraft)
computes the logits of the same ids, in one pass and cut in two. Prints one line per architecture;
exit code 1 if one differs or is refused. (`trace` runs the textbook backend; tests compare the CPU
backend with it.)
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from architectures import MODULES
from check_transformers import their_logits
from make_models import write_model
from model_zoo import MODELS
from tiny_model import TinyModel

# Relative to the largest logit: f32 against f64, over at most 4 layers. Measured: up to 2e-5.
ALLOWED = 1e-4
WAYS = ((), ("--cached", "3"))


def first(config: dict[str, Any], *names: str) -> str | None:
    return next((name for name in names if config.get(name) is not None), None)


def new_sizes(config: dict[str, Any], rng: random.Random) -> None:
    """Other sizes that fit each other."""
    width = first(config, "hidden_size", "n_embd", "n_embed")
    heads = first(config, "num_attention_heads", "n_head")
    assert width and heads
    kv_heads = first(config, "num_key_value_heads", "multi_query_group_num")
    if config.get("new_decoder_architecture"):
        kv_heads = "num_kv_heads"
    head_dim = 2 * rng.randint(2, 8)
    for fields in (config, config.get("rope_parameters") or {}):
        for name in ("partial_rotary_factor", "rotary_pct"):
            if name in fields:  # a multiple of 8: each of these rotates an even number of columns
                fields[name] = rng.choice((0.25, 0.5, 0.75, 1.0))
                head_dim = 8 * rng.randint(1, 2)
    groups = rng.randint(1, 3)
    if kv_heads:
        config[kv_heads] = rng.randint(1, 3)
        config[heads] = config[kv_heads] * groups
    else:
        config[heads] = rng.randint(1, 5)
    own_head_dim = next((name for name in ("head_dim", "kv_channels") if name in config), None)
    if config["model_type"] == "chatglm":  # rotates half of a head, in pairs
        head_dim = 4 * rng.randint(1, 4)
    if own_head_dim:
        config[own_head_dim] = head_dim
        config[width] = config[heads] * rng.randint(4, 9)
    else:
        config[width] = config[heads] * head_dim
    if "rotary_dim" in config:
        config["rotary_dim"] = 2 * rng.randint(1, head_dim // 2)
    inner = (
        "intermediate_size", "moe_intermediate_size", "shared_expert_intermediate_size", "ffn_dim",
        "n_inner", "ffn_hidden_size", "block_ff_dim", "block_multiple_of",
    )  # fmt: skip
    for name in inner:
        if config.get(name) is not None:
            config[name] = rng.randint(5, 40)
    vocab_size = rng.randint(37 if "gmask_token_id" in config else 20, 90)
    for name in ("vocab_size", "padded_vocab_size"):
        if name in config:
            config[name] = vocab_size
    if "linear_num_key_heads" in config:
        config["linear_num_key_heads"] = rng.randint(1, 3)
        config["linear_num_value_heads"] = config["linear_num_key_heads"] * rng.randint(1, 3)
        config["linear_key_head_dim"] = rng.randint(2, 20)
        config["linear_value_head_dim"] = rng.randint(2, 40)
    if "kv_lora_rank" in config:
        new_latents(config, rng)
    experts = first(config, "num_experts", "num_local_experts")
    if experts:
        config[experts] = rng.randint(2, 7)
        chosen = first(config, "num_experts_per_tok", "top_k_experts")
        assert chosen
        config[chosen] = rng.randint(1, config[experts])
    if "global_head_dim" in config:
        config["global_head_dim"] = 2 * rng.randint(2, 8)
        config["vocab_size_per_layer_input"] = vocab_size
        if config["hidden_size_per_layer_input"]:
            config["hidden_size_per_layer_input"] = rng.randint(3, 9)
    if "num_global_key_value_heads" in config:
        config["num_global_key_value_heads"] = rng.choice((1, config["num_key_value_heads"]))


def new_latents(config: dict[str, Any], rng: random.Random) -> None:
    """DeepSeek: even sizes, because transformers reads the pairs of V2 as complex numbers."""
    config["num_key_value_heads"] = config["num_attention_heads"]
    for name in ("q_lora_rank", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim"):
        if config[name] is not None:
            config[name] = 2 * rng.randint(1, 9)
    config["v_head_dim"] = rng.randint(1, 12)
    config["n_shared_experts"] = rng.randint(1, 3)
    groups, size = rng.randint(1, 4), rng.randint(2, 4)
    config["n_routed_experts"] = groups * size
    chosen = config["n_routed_experts"]
    if config.get("topk_method") != "greedy":
        config["n_group"], config["topk_group"] = groups, rng.randint(1, groups)
        chosen = size * config["topk_group"]
    config["num_experts_per_tok"] = rng.randint(1, chosen)


def new_layers(config: dict[str, Any], rng: random.Random) -> None:
    """Another number of layers; lists with one value per layer are drawn again from their own
    values."""
    layers = first(config, "num_hidden_layers", "n_layer", "num_layers")
    assert layers
    n = config[layers] = rng.randint(1, 4)
    for name in ("layer_types", "no_rope_layers"):
        if config.get(name):
            config[name] = rng.choices(config[name], k=n)
    if "num_kv_shared_layers" in config:  # one layer of each kind keeps its own keys and values
        config["layer_types"] = ["sliding_attention", "full_attention", *config["layer_types"]]
        config["num_kv_shared_layers"] = rng.randint(0, n)
        n = config[layers] = n + 2
    if "linear_num_key_heads" in config and not config.get("layer_types"):
        config["full_attention_interval"] = rng.randint(1, 4)
    if "full_attn_idxs" in config:
        config["full_attn_idxs"] = [i for i in range(n) if rng.random() < 0.5]
    for name in ("conv_L_cache", "linear_conv_kernel_dim"):
        if name in config:
            config[name] = rng.randint(1, 5)
    if "first_k_dense_replace" in config:
        config["first_k_dense_replace"] = rng.randint(0, n)
    if config.get("mlp_only_layers"):
        config["mlp_only_layers"] = [i for i in range(n) if rng.random() < 0.3]


def new_numbers(config: dict[str, Any], rng: random.Random) -> None:
    for name in list(config):
        if name.endswith(("norm_eps", "norm_epsilon")):
            config[name] = rng.choice((1e-6, 1e-5, 1e-3, 0.1))
        elif name == "rope_theta":
            config[name] = rng.choice((100.0, 10000.0, 1e6))
        elif name in ("sliding_window", "window_size") and config[name]:
            config[name] = rng.randint(2, 9)


def random_config(model_type: str, rng: random.Random) -> dict[str, Any]:
    bases = [model.config for model in MODELS if model.config["model_type"] == model_type]
    config = json.loads(json.dumps(rng.choice(bases)))
    new_sizes(config, rng)
    new_layers(config, rng)
    new_numbers(config, rng)
    return config


def new_weights(model: torch.nn.Module, generator: torch.Generator) -> None:
    """Numbers large enough that every step affects the logits; weights of norms are near 1."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            drawn = torch.randn(weight.shape, generator=generator)
            if weight.dim() > 1:
                weight.copy_(drawn / weight.shape[-1] ** 0.5)
            else:
                is_norm = name.endswith("weight") and "norm" in name.lower().replace("ln_", "norm")
                is_scale = name.endswith("scale")
                weight.copy_(0.3 * drawn + (1.0 if is_norm or is_scale else 0.0))
        for name, buffer in model.named_buffers():
            if name.endswith("layer_scalar"):  # Gemma 4: stored, but not trained
                buffer.copy_(1.0 + 0.3 * torch.randn(buffer.shape, generator=generator))


def make(config: dict[str, Any], folder: Path, seed: int) -> None:
    if hasattr(MODULES.get(config["model_type"]), "DEFINITION"):
        return write_model(TinyModel(f"random {seed}", config), folder)
    from transformers import AutoConfig, AutoModelForCausalLM

    settings = {key: value for key, value in config.items() if key != "model_type"}
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(config["model_type"], **settings))
    new_weights(model, torch.Generator().manual_seed(seed))
    model.save_pretrained(folder)


def our_logits(program: str, folder: Path, ids: list[int], way: tuple[str, ...]) -> torch.Tensor:
    out = folder / "ours.safetensors"
    words = [program, "trace", "--model", folder, "--ids", ",".join(map(str, ids)), "--out", out]
    done = subprocess.run([*words, "--only", "logits", *way], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit((done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1])
    return load_file(out)["logits"]


def check(program: str, model_type: str, seed: int) -> float:
    """The largest difference over all ways to run it, relative to the largest logit."""
    rng = random.Random(f"{model_type} {seed}")
    config = random_config(model_type, rng)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(config, folder, seed)
        most = min(config.get("max_position_embeddings", 64), config.get("n_positions", 64), 12)
        vocab_size = config.get("vocab_size") or config["padded_vocab_size"]
        vocab_size = config.get("mask_token_id", vocab_size)  # special tokens have larger ids
        ids = [rng.randrange(vocab_size) for _ in range(rng.randint(4, most))]
        if "gmask_token_id" in config:  # a prompt of 1 or 2 tokens, which cannot be cut
            prompt = rng.randint(1, 2)
            ids[rng.randrange(prompt)] = config[rng.choice(("gmask_token_id", "mask_token_id"))]
            ids[prompt] = config["bos_token_id"]
        theirs = their_logits(folder, torch.tensor(ids), torch.float64)
        worst = 0.0
        # --cached cuts a text after its first token; a model with such a prompt refuses this.
        for way in WAYS[:1] if "gmask_token_id" in config else WAYS:
            ours = our_logits(program, folder, ids, way).to(torch.float64)
            worst = max(worst, ((ours - theirs).abs().max() / theirs.abs().max()).item())
    return worst


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--models", type=int, default=20, help="per architecture")
    parser.add_argument("--seed", type=int, default=0, help="of the first model; the next has one more")
    parser.add_argument("--only", help="this model type alone")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    types = list(dict.fromkeys(model.config["model_type"] for model in MODELS))
    bad = 0
    for model_type in types:
        if options.only not in (None, model_type):
            continue
        worst, problems = 0.0, []
        for seed in range(options.seed, options.seed + options.models):
            try:
                difference = check(options.program, model_type, seed)
            except SystemExit as refused:
                problems.append(f"seed {seed}: {refused}")
                continue
            worst = max(worst, difference)
            if not difference <= ALLOWED:
                problems.append(f"seed {seed}: differs by {difference:.1e} of the largest logit")
        right = options.models - len(problems)
        print(f"{model_type:12} {right} of {options.models} agree, within {worst:.1e}", flush=True)
        for problem in problems:
            print(f"  {problem}")
        bad += len(problems)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
