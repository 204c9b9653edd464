"""DeepSeek-V3 (DeepSeek-AI 2024), with every activation kept.

Differences from Llama: attention keeps one short row per token, the latent; the keys and values of
all heads are computed from it. As in the engine, the matrices of keys and values are multiplied
with queries and with sums of latents. Experts are chosen by sigmoid with a bias, in groups; a
shared expert is added.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from decoder import Decoder, expert_shapes, gated_shapes, linear_shapes, tiny_config
from definitions import Arithmetic, RopeScaling, gated, linear, neighbour_rope, rms_norm, sigmoid
from definitions import softmax
from llama import EMBEDDING, HEAD, Parameters
from tiny_model import TinyModel

MODEL_TYPE = "deepseek_v3"
LATENT_EPS = 1e-6  # it does not depend on rms_norm_eps


def config(model_type: str, architecture: str, **changes: Any) -> dict[str, Any]:
    deepseek = {
        "num_hidden_layers": 3,
        "num_key_value_heads": 4,
        "hidden_act": "silu",
        "q_lora_rank": 9,
        "kv_lora_rank": 11,
        "qk_rope_head_dim": 4,
        "qk_nope_head_dim": 5,
        "v_head_dim": 3,
        "first_k_dense_replace": 1,
        "n_routed_experts": 6,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 7,
        "n_shared_experts": 2,
        "routed_scaling_factor": 2.5,
    }
    return tiny_config(model_type, architecture, **(deepseek | changes))


YARN = {
    "type": "yarn",
    "factor": 4.0,
    "beta_fast": 4.0,
    "beta_slow": 1.0,
    "original_max_position_embeddings": 16,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
}

MODELS = (
    TinyModel(
        "deepseek-v3-groups",
        config(
            MODEL_TYPE,
            "DeepseekV3ForCausalLM",
            n_group=3,
            topk_group=2,
            norm_topk_prob=True,
            scoring_func="sigmoid",
            topk_method="noaux_tc",
            rope_theta=10.0,
            rope_scaling=YARN,
        ),
        seq_len=9,
        seen_by={"topk_group": 1, "norm_topk_prob": False, "rope_scaling": None},
    ),
    # No latent for queries; RoPE pairs column i with i + half; every layer has experts.
    TinyModel(
        "deepseek-v3-plain-queries",
        config(
            MODEL_TYPE,
            "DeepseekV3ForCausalLM",
            q_lora_rank=None,
            n_group=1,
            topk_group=1,
            norm_topk_prob=False,
            first_k_dense_replace=0,
            n_shared_experts=1,
            rope_interleave=False,
            attention_bias=True,
            rms_norm_eps=0.3,
            tie_word_embeddings=True,
        ),
        store="embed",
        seen_by={"rope_interleave": True, "routed_scaling_factor": 1.0, "rms_norm_eps": 0.2},
    ),
)


def _has_experts(raw: dict[str, Any], n: int) -> bool:
    return n >= raw["first_k_dense_replace"]


def shapes(raw: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    dim = raw["hidden_size"]
    names: dict[str, tuple[int, ...]] = {EMBEDDING: (raw["vocab_size"], dim)}
    for n in range(raw["num_hidden_layers"]):
        at = f"model.layers.{n}."
        names |= _attention_shapes(raw, f"{at}self_attn.")
        if _has_experts(raw, n):
            n_experts = raw["n_routed_experts"]
            names |= expert_shapes(raw, f"{at}mlp.", n_experts, "moe_intermediate_size")
            if raw["model_type"] == "deepseek_v3":
                names[f"{at}mlp.gate.e_score_correction_bias"] = (n_experts,)
            shared = raw["moe_intermediate_size"] * raw["n_shared_experts"]
            names |= gated_shapes(f"{at}mlp.shared_experts.", dim, shared)
        else:
            names |= gated_shapes(f"{at}mlp.", dim, raw["intermediate_size"])
        names[f"{at}input_layernorm.weight"] = (dim,)
        names[f"{at}post_attention_layernorm.weight"] = (dim,)
    return names | {"model.norm.weight": (dim,), HEAD: (raw["vocab_size"], dim)}


def _attention_shapes(raw: dict[str, Any], at: str) -> dict[str, tuple[int, ...]]:
    dim, heads = raw["hidden_size"], raw["num_attention_heads"]
    bias = raw.get("attention_bias", False)
    latent, rotated = raw["kv_lora_rank"], raw["qk_rope_head_dim"]
    plain, value = raw["qk_nope_head_dim"], raw["v_head_dim"]
    names: dict[str, tuple[int, ...]] = {}
    if rank := raw["q_lora_rank"]:
        names |= linear_shapes(f"{at}q_a_proj", rank, dim, bias)
        names[f"{at}q_a_layernorm.weight"] = (rank,)
    q = "q_b_proj" if rank else "q_proj"
    return (
        names
        | linear_shapes(f"{at}{q}", heads * (plain + rotated), rank or dim, False)
        | linear_shapes(f"{at}kv_a_proj_with_mqa", latent + rotated, dim, bias)
        | {f"{at}kv_a_layernorm.weight": (latent,)}
        | linear_shapes(f"{at}kv_b_proj", heads * (plain + value), latent, False)
        | linear_shapes(f"{at}o_proj", dim, heads * value, bias)
    )


class DeepSeekDecoder(Decoder):
    def __init__(
        self, raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
    ) -> None:
        super().__init__(raw, weights, ids, how)
        self.latent, self.rotated = raw["kv_lora_rank"], raw["qk_rope_head_dim"]
        self.head_dim = self.rotated + self.latent
        if raw.get("rope_interleave", True):
            self.rope = neighbour_rope
        fields = raw.get("rope_scaling") or {}
        names = {name: value for name, value in fields.items() if name != "type"}
        scaling = RopeScaling(raw["rope_theta"], fields.get("type", "default"), **names)
        self.turns = self.angles(scaling, self.rotated)
        grown = 0.1 * scaling.mscale_all_dim * math.log(scaling.factor) + 1
        self.scale = (raw["qk_nope_head_dim"] + self.rotated) ** -0.5 * grown**2

    def latent_norm(self, x: Tensor, name: str) -> Tensor:
        return rms_norm(x, self.weights[f"{name}.weight"], LATENT_EPS, self.how)

    def attends(self, h: Tensor, at: str) -> Tensor:
        query = h
        has_query = self.raw["q_lora_rank"] is not None
        if has_query:
            query = self.keep("q_latent", self.linear(h, f"{at}q_a_proj"))
        latent_and_key = self.linear(h, f"{at}kv_a_proj_with_mqa")
        latent, key = latent_and_key.split((self.latent, self.rotated), -1)
        self.keep("latent", latent)
        self.keep("k", key)
        if has_query:
            query = self.keep("q_latent_norm", self.latent_norm(query, f"{at}q_a_layernorm"))
        plain_dim = self.raw["qk_nope_head_dim"]
        both = self.linear(query, f"{at}q_b_proj" if has_query else f"{at}q_proj")
        heads = both.unflatten(-1, (-1, plain_dim + self.rotated))
        plain, turned = heads.split((plain_dim, self.rotated), -1)
        self.keep("q_plain", plain.flatten(1))
        self.keep("q", turned.flatten(1))
        latent = self.keep("latent_norm", self.latent_norm(latent, f"{at}kv_a_layernorm"))

        matrices = self.weights[f"{at}kv_b_proj.weight"].unflatten(0, (plain.shape[1], -1))
        absorbed = torch.stack(
            [linear(plain[:, i], w[:plain_dim].T, None, self.how) for i, w in enumerate(matrices)],
            dim=1,
        )
        self.keep("q_absorbed", absorbed.flatten(1))
        q = self.keep("q_joined", torch.cat((turned, absorbed), -1).flatten(1))
        k = self.keep("k_joined", torch.cat((key, latent), -1))
        v = self.keep("v_joined", torch.cat((key, latent), -1))
        mixed = self.attention(q, k, v, self.turns, None, self.scale)
        mixed = mixed.unflatten(-1, (-1, self.head_dim))[:, :, self.rotated :]
        values = torch.stack(
            [linear(mixed[:, i], w[plain_dim:], None, self.how) for i, w in enumerate(matrices)], 1
        )
        values = self.keep("attn_values", values.flatten(1))
        return self.keep("attn_proj", self.linear(values, f"{at}o_proj"))

    def routing_weights(self, h: Tensor, at: str) -> Tensor:
        raw = self.raw
        scores = self.keep("router", self.linear(h, f"{at}gate"))
        third = raw["model_type"] == "deepseek_v3"
        routing_weights = sigmoid(scores, self.how) if third else softmax(scores, self.how)
        counts = routing_weights
        if third:
            counts = routing_weights + self.weights[f"{at}gate.e_score_correction_bias"].to(self.how.dtype)
        if third or raw.get("topk_method", "greedy") != "greedy":
            groups = counts.unflatten(-1, (raw["n_group"], -1))
            sums = groups.topk(2 if third else 1, -1).values.sum(-1)
            best = sums.topk(raw["topk_group"], -1).indices
            closed = torch.ones_like(sums, dtype=torch.bool).scatter(-1, best, False)
            counts = groups.masked_fill(closed[:, :, None], -torch.inf).flatten(1)
        chosen = counts.topk(raw["num_experts_per_tok"], -1).indices
        routing_weights = routing_weights * torch.zeros_like(routing_weights).scatter(-1, chosen, 1.0)
        if third and raw.get("norm_topk_prob", True):
            routing_weights = routing_weights / routing_weights.sum(-1, keepdim=True)
        return self.keep("routing_weights", routing_weights * raw.get("routed_scaling_factor", 1.0))

    def experts(self, h: Tensor, at: str) -> Tensor:
        """The weighted sum of each row's experts. All experts are computed here; those that were
        not chosen have weight 0."""
        routing_weights = self.routing_weights(h, at)
        total = torch.zeros_like(h)
        for e in range(routing_weights.shape[-1]):
            one = f"{at}experts.{e}."
            gate, up = self.linear(h, f"{one}gate_proj"), self.linear(h, f"{one}up_proj")
            inner = gated(gate, up, "silu", self.how)
            total = total + routing_weights[:, e : e + 1] * self.linear(inner, f"{one}down_proj")
        return self.keep("experts", total)

    def shared(self, h: Tensor, at: str) -> Tensor:
        gate = self.keep("shared_gate", self.linear(h, f"{at}gate_proj"))
        up = self.keep("shared_up", self.linear(h, f"{at}up_proj"))
        inner = self.keep("shared_swiglu", gated(gate, up, "silu", self.how))
        return self.keep("shared_down", self.linear(inner, f"{at}down_proj"))


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = DeepSeekDecoder(raw, weights, ids, how)
    x = d.keep("embedding", d.embedding())
    for n in range(raw["num_hidden_layers"]):
        at = d.layer(n)
        h = d.keep("attn_norm", d.norm(x, f"{at}input_layernorm"))
        x = d.keep("attn_residual", x + d.attends(h, f"{at}self_attn."))
        h = d.keep("mlp_norm", d.norm(x, f"{at}post_attention_layernorm"))
        if _has_experts(raw, n):
            x = d.keep("mlp_residual", x + d.experts(h, f"{at}mlp."))
            x = d.keep("shared_residual", x + d.shared(h, f"{at}mlp.shared_experts."))
        else:
            h = d.swiglu(*d.gate(h, f"{at}mlp."))
            x = d.keep("mlp_residual", x + d.keep("down", d.linear(h, f"{at}mlp.down_proj")))
    return d.logits(x)
