"""GLM-4 (GLM Team 2024), with every activation kept.

Differences from Llama: RoPE of neighbouring columns, only the first of each head; biases of q, k
and v; one matrix for gate and up.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from decoder import Decoder, linear_shapes, q_and_kv_dim, qkv_shapes, tiny_config
from definitions import Arithmetic, RopeScaling, neighbour_rope
from llama import EMBEDDING, HEAD, Parameters
from tiny_model import TinyModel

MODEL_TYPE = "glm"


def config(model_type: str, architecture: str, **changes: Any) -> dict[str, Any]:
    glm = {
        "hidden_act": "silu",
        "head_dim": 8,
        "attention_bias": True,
        "partial_rotary_factor": 0.5,
    }
    return tiny_config(model_type, architecture, **(glm | changes))


def _config(**changes: Any) -> dict[str, Any]:
    return config(MODEL_TYPE, "GlmForCausalLM", **changes)


MODELS = (
    TinyModel("glm-half-rotary", _config(), seen_by={"partial_rotary_factor": 0.25}),
    TinyModel(
        "glm-no-biases",
        _config(
            attention_bias=False,
            head_dim=6,
            partial_rotary_factor=0.7,
            hidden_act="gelu",
            rms_norm_eps=0.3,
            tie_word_embeddings=True,
        ),
        store="embed",
        seen_by={"partial_rotary_factor": 1.0, "rope_theta": 100.0, "hidden_act": "silu"},
    ),
)


def layer_shapes(
    raw: dict[str, Any], at: str, norms: tuple[str, ...]
) -> dict[str, tuple[int, ...]]:
    dim, hidden = raw["hidden_size"], raw["intermediate_size"]
    names: dict[str, tuple[int, ...]] = {f"{at}{norm}.weight": (dim,) for norm in norms}
    names |= qkv_shapes(raw, f"{at}self_attn.", raw["attention_bias"])
    names |= linear_shapes(f"{at}self_attn.o_proj", dim, q_and_kv_dim(raw)[0], False)
    names |= linear_shapes(f"{at}mlp.gate_up_proj", 2 * hidden, dim, False)
    return names | linear_shapes(f"{at}mlp.down_proj", dim, hidden, False)


def shapes(
    raw: dict[str, Any], norms: tuple[str, ...] = ("input_layernorm", "post_attention_layernorm")
) -> dict[str, tuple[int, ...]]:
    names: dict[str, tuple[int, ...]] = {EMBEDDING: (raw["vocab_size"], raw["hidden_size"])}
    for n in range(raw["num_hidden_layers"]):
        names |= layer_shapes(raw, f"model.layers.{n}.", norms)
    return names | {
        "model.norm.weight": (raw["hidden_size"],),
        HEAD: (raw["vocab_size"], raw["hidden_size"]),
    }


class Glm(Decoder):
    rope = staticmethod(neighbour_rope)

    def post_norm(self, name: str, o: Tensor, weight: str) -> Tensor:
        """glm4 norms the result of each half of a layer, glm does not."""
        if f"{weight}.weight" not in self.weights.tensors:
            return o
        return self.keep(name, self.norm(o, weight))


def forward(
    raw: dict[str, Any], weights: Parameters, ids: Tensor, how: Arithmetic
) -> dict[str, Tensor]:
    d = Glm(raw, weights, ids, how)
    rope = raw.get("rope_parameters") or raw  # newer files, or older ones
    columns = int(d.head_dim * rope["partial_rotary_factor"])
    angles = d.angles(RopeScaling(rope["rope_theta"]), columns)
    x = d.keep("embedding", d.embedding())
    for n in range(raw["num_hidden_layers"]):
        at = d.layer(n)
        h = d.keep("attn_norm", d.norm(x, f"{at}input_layernorm"))
        h = d.attention(*d.qkv(h, f"{at}self_attn."), angles)
        h = d.keep("attn_proj", d.linear(h, f"{at}self_attn.o_proj"))
        h = d.post_norm("attn_post_norm", h, f"{at}post_self_attn_layernorm")
        x = d.keep("attn_residual", x + h)
        h = d.keep("mlp_norm", d.norm(x, f"{at}post_attention_layernorm"))
        gate, up = d.linear(h, f"{at}mlp.gate_up_proj").chunk(2, -1)
        h = d.gated(d.keep("gate", gate), d.keep("up", up))
        h = d.keep("down", d.linear(h, f"{at}mlp.down_proj"))
        h = d.post_norm("mlp_post_norm", h, f"{at}post_mlp_layernorm")
        x = d.keep("mlp_residual", x + h)
    return d.logits(x)
