"""The tiny random models, as data, and what each of them tests.

All are as small as possible, while sizes differ from each other and are no powers of two, signs are
mixed, norm weights are far from 1 and biases far from 0. A model differs from `llama-gqa2` only in
the feature in its name, so that a failing model points to the feature.
"""

from __future__ import annotations

from typing import Any

from architectures import MODULES
from tiny_model import TinyModel

YARN = {"factor": 4.0, "beta_fast": 4.0, "beta_slow": 1.0}
LLAMA3_SCALING = {
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


def _config(model_type: str = "llama", **changes: Any) -> dict[str, Any]:
    """The older style of config.json, as most checkpoints have it; `...` leaves a field out."""
    architecture = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3"}[
        model_type
    ]
    config: dict[str, Any] = {
        "architectures": [f"{architecture}ForCausalLM"],
        "model_type": model_type,
        "vocab_size": 65,
        "hidden_size": 24,
        "intermediate_size": 37,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "max_position_embeddings": 64,
        "tie_word_embeddings": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "torch_dtype": "float32",
    }
    return {name: value for name, value in (config | changes).items() if value is not ...}


def _newer(rope_parameters: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The style that transformers 5 saves: rope_parameters and dtype."""
    return _config(
        rope_parameters=rope_parameters, dtype="float32", rope_theta=..., torch_dtype=..., **changes
    )


LLAMA_MODELS = (
    # Heads.
    TinyModel("llama-mha", _config(hidden_size=20, num_attention_heads=5, num_key_value_heads=5)),
    TinyModel("llama-gqa2", _config()),
    TinyModel("llama-gqa3", _config(num_attention_heads=6)),
    TinyModel(
        "llama-mqa8",
        _config(hidden_size=32, intermediate_size=29, num_attention_heads=8, num_key_value_heads=1),
    ),
    TinyModel("llama-head-dim", _config(head_dim=8)),
    # Fields missing in config.json have transformers' defaults.
    TinyModel(
        "llama-config-defaults",
        _config(
            num_key_value_heads=...,
            rms_norm_eps=...,
            rope_theta=...,
            tie_word_embeddings=...,
            hidden_act=...,
            max_position_embeddings=...,
            torch_dtype=...,
            bos_token_id=...,
            eos_token_id=...,
        ),
    ),
    # Embedding and head.
    TinyModel("llama-tied-embed-only", _config(tie_word_embeddings=True), store="embed"),
    TinyModel("llama-tied-lm-head-only", _config(tie_word_embeddings=True), store="head"),
    # transformers 5 does not tie two matrices that differ, whatever config.json says.
    TinyModel("llama-tied-both-differ", _config(tie_word_embeddings=True)),
    # Biases and eps.
    TinyModel("llama-attention-bias", _config(attention_bias=True)),
    TinyModel("llama-mlp-bias", _config(mlp_bias=True)),
    # The course's layers do not compute this: another activation function.
    TinyModel(
        "llama-gelu",
        _config(hidden_act="gelu", attention_bias=True, mlp_bias=True),
        seen_by={"hidden_act": "silu"},
    ),
    TinyModel(
        "mistral-gelu-tanh",
        _config("mistral", hidden_act="gelu_pytorch_tanh", sliding_window=4),
        seen_by={"hidden_act": "silu"},
    ),
    TinyModel("llama-large-eps", _config(rms_norm_eps=0.3), seen_by={"rms_norm_eps": 1e-5}),
    # Rope, in both styles of config.json.
    TinyModel("llama-rope-theta", _config(rope_theta=500.0), seen_by={"rope_theta": 10000.0}),
    TinyModel(
        "llama-rope-theta-newer",
        _newer({"rope_type": "default", "rope_theta": 500.0}),
        seen_by={"rope_parameters": None},
    ),
    TinyModel(
        "llama-rope-linear",
        _config(rope_scaling={"type": "linear", "factor": 2.5}),
        seen_by={"rope_scaling": None},
    ),
    TinyModel(
        "llama-rope-linear-newer",
        _newer({"rope_type": "linear", "factor": 2.5, "rope_theta": 500.0}),
        seen_by={"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}},
    ),
    # Wavelengths 6.3, 29 and 135 with bounds at 16 and 64: kept, interpolated, slowed.
    TinyModel(
        "llama-rope-llama3",
        _config(rope_theta=100.0, rope_scaling={"rope_type": "llama3"} | LLAMA3_SCALING),
        seq_len=9,
        seen_by={"rope_scaling": {"rope_type": "linear", "factor": 8.0}},
    ),
    TinyModel(
        "llama-rope-llama3-newer",
        _newer({"rope_type": "llama3", "rope_theta": 100.0} | LLAMA3_SCALING),
        seq_len=9,
        seen_by={"rope_parameters": {"rope_type": "default", "rope_theta": 100.0}},
    ),
    # The course's layers do not compute this: yarn. The attention factor follows from the factor of
    # the context, or is given.
    TinyModel(
        "qwen2-rope-yarn",
        _config(
            "qwen2",
            rope_theta=100.0,
            rope_scaling={"type": "yarn", "original_max_position_embeddings": 64} | YARN,
        ),
        seq_len=9,
        seen_by={"rope_scaling": None},
    ),
    TinyModel(
        "llama-rope-yarn-newer",
        _newer({"rope_type": "yarn", "rope_theta": 50.0, "attention_factor": 1.25} | YARN),
        seq_len=9,
        seen_by={"rope_parameters": {"rope_type": "default", "rope_theta": 50.0}},
    ),
    # Files.
    TinyModel("llama-f16", _config(torch_dtype="float16"), dtype="float16"),
    TinyModel("llama-bf16", _config(torch_dtype="bfloat16"), dtype="bfloat16"),
    TinyModel("llama-mixed-dtypes", _config(torch_dtype="bfloat16"), dtype="mixed"),
    TinyModel("llama-sharded", _config(), shards=3),
    # Mistral: the window is on every layer; null: no window.
    TinyModel(
        "mistral-window4",
        _config("mistral", sliding_window=4),
        seq_len=9,
        seen_by={"sliding_window": None},
    ),
    TinyModel(
        "mistral-no-window", _config("mistral", sliding_window=None), seen_by={"sliding_window": 4}
    ),
    # Qwen2: biases on q, k, v; a window only if use_sliding_window, from max_window_layers on.
    TinyModel(
        "qwen2-window-off",
        _config("qwen2", use_sliding_window=False, sliding_window=4, max_window_layers=0),
        seq_len=9,
        seen_by={"use_sliding_window": True},
    ),
    TinyModel(
        "qwen2-window4-second-layer",
        _config("qwen2", use_sliding_window=True, sliding_window=4, max_window_layers=1),
        seq_len=9,
        seen_by={"max_window_layers": 0},
    ),
    TinyModel(
        "qwen2-layer-types",
        _newer(
            {"rope_type": "default", "rope_theta": 500.0},
            model_type="qwen2",
            use_sliding_window=True,
            sliding_window=4,
            max_window_layers=2,
            layer_types=["sliding_attention", "full_attention"],
        ),
        seq_len=9,
        seen_by={"layer_types": ["full_attention", "sliding_attention"]},
    ),
    # Qwen3: a norm on each head of q and k, an explicit head_dim.
    TinyModel(
        "qwen3-qk-norm", _config("qwen3", head_dim=8, use_sliding_window=False, sliding_window=None)
    ),
    TinyModel(
        "qwen3-attention-bias",
        _config("qwen3", head_dim=4, attention_bias=True, tie_word_embeddings=True),
        store="embed",
    ),
)

# The models of the other architectures are in their own modules.
MODELS = LLAMA_MODELS + tuple(model for module in MODULES.values() for model in module.MODELS)
