"""DeepSeek-V2 (DeepSeek-AI 2024), with every activation kept.

Differences from V3: experts are chosen by softmax, without a bias; with groups or without.
"""

from __future__ import annotations

from architectures.deepseek_v3 import YARN, config, forward, shapes
from tiny_model import TinyModel

MODEL_TYPE = "deepseek_v2"

__all__ = ["MODELS", "MODEL_TYPE", "forward", "shapes"]

EVEN = {"qk_nope_head_dim": 6, "kv_lora_rank": 10}  # transformers reads pairs as complex numbers

MODELS = (
    TinyModel(
        "deepseek-v2-greedy",
        config(
            MODEL_TYPE,
            "DeepseekV2ForCausalLM",
            **EVEN,
            q_lora_rank=None,
            topk_method="greedy",
            rope_theta=10.0,
            rope_scaling=YARN | {"mscale": 0.707, "mscale_all_dim": 0.707},
        ),
        seq_len=9,
        seen_by={"rope_scaling": None, "num_experts_per_tok": 3},
    ),
    TinyModel(
        "deepseek-v2-groups",
        config(
            MODEL_TYPE,
            "DeepseekV2ForCausalLM",
            **EVEN,
            topk_method="group_limited_greedy",
            n_group=3,
            topk_group=1,
            first_k_dense_replace=0,
            routed_scaling_factor=1.5,
        ),
        seen_by={"topk_group": 3, "routed_scaling_factor": 1.0},
    ),
)
