"""What the modules of architectures/ share: configs, tensors and the steps of a decoder's forward
pass."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from definitions import Arithmetic, RopeScaling, attention, gated, gated_name, geglu, gelu
from definitions import gelu_tanh, layer_norm, linear, relu, rms_norm, rope, rope_angles
from definitions import soft_cap, softmax, swiglu
from llama import EMBEDDING, HEAD, Parameters, recorder


def tiny_config(model_type: str, architecture: str, **changes: Any) -> dict[str, Any]:
    """Sizes that differ from each other and are no powers of two; `...` leaves a field out."""
    config: dict[str, Any] = {
        "architectures": [architecture],
        "model_type": model_type,
        "vocab_size": 37,
        "hidden_size": 16,
        "intermediate_size": 19,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "max_position_embeddings": 64,
        "tie_word_embeddings": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": None,
        "torch_dtype": "float32",
    }
    return {name: value for name, value in (config | changes).items() if value is not ...}


# Sizes in tiny_config that the first decoders call differently.
LLAMA_SIZES = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "max_position_embeddings",
    "rms_norm_eps",
    "rope_theta",
)


def own_sizes_config(
    model_type: str, architecture: str, own: dict[str, Any], **changes: Any
) -> dict[str, Any]:
    """tiny_config without LLAMA_SIZES, except those that `own` contains."""
    return tiny_config(
        model_type, architecture, **(dict.fromkeys(LLAMA_SIZES, ...) | own | changes)
    )


def head_dim(raw: dict[str, Any]) -> int:
    return raw.get("head_dim") or raw["hidden_size"] // raw["num_attention_heads"]


def q_and_kv_dim(raw: dict[str, Any]) -> tuple[int, int]:
    size = head_dim(raw)
    return raw["num_attention_heads"] * size, raw["num_key_value_heads"] * size


def decoder_shapes(
    raw: dict[str, Any],
    norms: tuple[str, ...],
    *,
    head_norms: tuple[int, int] | None = None,
    fused: bool = False,
    attention_bias: bool = False,
    mlp_bias: bool = False,
    mlp: bool = True,
) -> dict[str, tuple[int, ...]]:
    """The tensors of a checkpoint. norms: those of each layer. head_norms: sizes of q_norm and
    k_norm. fused: qkv_proj and gate_up_proj. mlp: True if layers have a feed-forward block."""
    dim, hidden = raw["hidden_size"], raw["intermediate_size"]
    q_dim, kv_dim = q_and_kv_dim(raw)
    if fused:
        attends = {"qkv": q_dim + 2 * kv_dim}
        feeds = {"gate_up": 2 * hidden}
    else:
        attends = {"q": q_dim, "k": kv_dim, "v": kv_dim}
        feeds = {"gate": hidden, "up": hidden}
    names: dict[str, tuple[int, ...]] = {EMBEDDING: (raw["vocab_size"], dim)}
    for n in range(raw["num_hidden_layers"]):
        at = f"model.layers.{n}"
        for norm in norms:
            names[f"{at}.{norm}.weight"] = (dim,)
        for name, size in attends.items():
            names |= linear_shapes(f"{at}.self_attn.{name}_proj", size, dim, attention_bias)
        if head_norms is not None:
            names[f"{at}.self_attn.q_norm.weight"] = (head_norms[0],)
            names[f"{at}.self_attn.k_norm.weight"] = (head_norms[1],)
        names |= linear_shapes(f"{at}.self_attn.o_proj", dim, q_dim, attention_bias)
        if not mlp:
            continue
        for name, size in feeds.items():
            names |= linear_shapes(f"{at}.mlp.{name}_proj", size, dim, mlp_bias)
        names |= linear_shapes(f"{at}.mlp.down_proj", dim, hidden, mlp_bias)
    names["model.norm.weight"] = (dim,)
    names[HEAD] = (raw["vocab_size"], dim)
    return names


GATED = ("gate_proj", "up_proj", "down_proj")


def gated_shapes(
    at: str, dim: int, hidden: int, names: tuple[str, str, str] = GATED
) -> dict[str, tuple[int, ...]]:
    """A feed-forward block with a gate."""
    gate, up, down = names
    first = linear_shapes(f"{at}{gate}", hidden, dim, False)
    return (
        first
        | linear_shapes(f"{at}{up}", hidden, dim, False)
        | linear_shapes(f"{at}{down}", dim, hidden, False)
    )


def expert_shapes(
    raw: dict[str, Any], at: str, n: int, width: str, names: tuple[str, str, str] = GATED
) -> dict[str, tuple[int, ...]]:
    """The router of a layer and its experts; the field `width` has their inner size."""
    tensors = linear_shapes(f"{at}gate", n, raw["hidden_size"], False)
    for e in range(n):
        tensors |= gated_shapes(f"{at}experts.{e}.", raw["hidden_size"], raw[width], names)
    return tensors


def has_experts(raw: dict[str, Any], n: int) -> bool:
    """True if layer n of a Qwen model has experts."""
    dense = raw.get("mlp_only_layers") or []
    return n not in dense and (n + 1) % raw.get("decoder_sparse_step", 1) == 0


def without_dense(names: dict[str, tuple[int, ...]], n: int) -> None:
    """Removes the feed-forward block of layer n."""
    for name in GATED:
        del names[f"model.layers.{n}.mlp.{name}.weight"]


def layer_norm_shapes(name: str, size: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (size,), f"{name}.bias": (size,)}


def linear_shapes(name: str, rows: int, columns: int, bias: bool) -> dict[str, tuple[int, ...]]:
    weight: dict[str, tuple[int, ...]] = {f"{name}.weight": (rows, columns)}
    return weight | ({f"{name}.bias": (rows,)} if bias else {})


def qkv_shapes(raw: dict[str, Any], at: str, bias: bool) -> dict[str, tuple[int, ...]]:
    q_dim, kv_dim = q_and_kv_dim(raw)
    names: dict[str, tuple[int, ...]] = {}
    for name, size in (("q", q_dim), ("k", kv_dim), ("v", kv_dim)):
        names |= linear_shapes(f"{at}{name}_proj", size, raw["hidden_size"], bias)
    return names


class Decoder:
    """One forward pass; the result of each step is kept in `trace` under the name of the step."""

    embedding_name, head_name = EMBEDDING, HEAD
    layers, final_norm = "model.layers.", "model.norm"
    rope = staticmethod(rope)  # which columns form a pair
    eps_name = "rms_norm_eps"

    def __init__(
        self,
        raw: dict[str, Any],
        weights: Parameters,
        ids: Tensor,
        how: Arithmetic,
        norm_plus: float = 0.0,
    ) -> None:
        self.raw, self.weights, self.ids, self.how = raw, weights, ids, how
        self.norm_plus = norm_plus
        self.head_dim = head_dim(raw)
        self.trace: dict[str, Tensor] = {}
        self.keep = recorder(self.trace)

    def layer(self, n: int) -> str:
        """The prefix of the names of this layer's tensors."""
        self.keep = recorder(self.trace, f"layers.{n}.")
        return f"{self.layers}{n}."

    def table(self, name: str, other: str) -> str:
        """A tied model has one table, under either name."""
        return name if name in self.weights.tensors else other

    def embedding(self) -> Tensor:
        table = self.weights[self.table(self.embedding_name, self.head_name)]
        return table[self.ids].to(self.how.dtype)

    def angles(self, scaling: RopeScaling, columns: int = 0) -> tuple[Tensor, Tensor]:
        """columns: how many of each head RoPE rotates; 0: all of them."""
        size = columns or self.head_dim
        return rope_angles(torch.arange(len(self.ids)), size, scaling, self.how)

    def norm(self, x: Tensor, name: str) -> Tensor:
        weight = self.weights[f"{name}.weight"].to(self.how.dtype) + self.norm_plus
        return rms_norm(x, weight, self.raw[self.eps_name], self.how)

    def head_norm(self, x: Tensor, name: str) -> Tensor:
        """Applies a norm to each head separately."""
        return self.norm(x.unflatten(-1, (-1, self.head_dim)), name).flatten(1)

    def linear(self, x: Tensor, name: str) -> Tensor:
        bias = self.weights.tensors.get(f"{name}.bias")
        return linear(x, self.weights[f"{name}.weight"], bias, self.how)

    def qkv(self, h: Tensor, at: str) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = (self.keep(name, self.linear(h, f"{at}{name}_proj")) for name in "qkv")
        return q, k, v

    def fused_qkv(self, h: Tensor, name: str, n_kv_heads: int) -> tuple[Tensor, Tensor, Tensor]:
        """q, k and v from one matrix, which has for each key head its queries, its key, its
        value."""
        parts = self.linear(h, name).unflatten(-1, (n_kv_heads, -1, self.head_dim))
        q, k, v = (x.flatten(1) for x in (parts[:, :, :-2], parts[:, :, -2], parts[:, :, -1]))
        return self.keep("q", q), self.keep("k", k), self.keep("v", v)

    def clip_qkv(self, *qkv: Tensor) -> tuple[Tensor, ...]:
        """Clips to plus and minus the config's "clip_qkv", if it has one."""
        limit = self.raw.get("clip_qkv")
        if limit is None:
            return qkv
        return tuple(
            self.keep(f"{name}_clip", y.clamp(-limit, limit)) for name, y in zip("qkv", qkv)
        )

    def attention(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        angles: tuple[Tensor, Tensor] | None,
        window: int | None = None,
        scale: float | None = None,
        slopes: Tensor | None = None,
        sinks: Tensor | None = None,
    ) -> Tensor:
        """q, k and v [S, heads * D]; no angles: no RoPE. slopes: of ALiBi. sinks: one per head."""
        q, k, v = (x.unflatten(-1, (-1, self.head_dim)) for x in (q, k, v))
        if angles is not None:
            q = self.keep("q_rope", self._rope(q, angles))
            k = self.keep("k_rope", self._rope(k, angles))
        probabilities, mixed = attention(
            q, k, v, window, self.how, scale=scale, slopes=slopes, sinks=sinks
        )
        self.keep("attn_probs", probabilities)
        return self.keep("attn_out", mixed).flatten(1)

    def _rope(self, x: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
        """Rotates the first columns of each head, two per angle."""
        columns = 2 * angles[0].shape[-1]
        rotated = self.rope(x[..., :columns], *angles, self.how)
        return torch.cat((rotated, x[..., columns:].to(self.how.dtype)), dim=-1)

    def mlp(self, h: Tensor, first: str, second: str, activation: str) -> Tensor:
        """A feed-forward block without a gate."""
        h = self.keep("up", self.linear(h, first))
        functions = {
            "gelu": gelu,
            "gelu_new": gelu_tanh,
            "gelu_pytorch_tanh": gelu_tanh,
            "relu": relu,
        }
        name = "relu" if activation == "relu" else "gelu"
        h = self.keep(name, functions[activation](h, self.how))
        return self.keep("down", self.linear(h, second))

    def gate(self, h: Tensor, at: str) -> tuple[Tensor, Tensor]:
        return (
            self.keep("gate", self.linear(h, f"{at}gate_proj")),
            self.keep("up", self.linear(h, f"{at}up_proj")),
        )

    def swiglu(self, gate: Tensor, up: Tensor) -> Tensor:
        return self.keep("swiglu", swiglu(gate, up, self.how))

    def geglu(self, gate: Tensor, up: Tensor) -> Tensor:
        return self.keep("geglu", geglu(gate, up, self.how))

    def gated(self, gate: Tensor, up: Tensor) -> Tensor:
        """The gated product, with the config's "hidden_act"."""
        activation = self.raw["hidden_act"]
        return self.keep(gated_name(activation), gated(gate, up, activation, self.how))

    def logits(
        self, x: Tensor, divisor: float = 1.0, cap: float | None = None
    ) -> dict[str, Tensor]:
        """The whole trace, with the logits last. cap: the soft cap of the logits."""
        self.ends()
        return self.head(self.keep("final_norm", self.norm(x, self.final_norm)), divisor, cap)

    def ends(self) -> None:
        """The following steps belong to no layer."""
        self.keep = recorder(self.trace)

    def head(
        self, x: Tensor, divisor: float = 1.0, cap: float | None = None
    ) -> dict[str, Tensor]:
        head = self.table(self.head_name, self.embedding_name)
        bias = self.weights.tensors.get(self.head_name.replace(".weight", ".bias"))
        logits = linear(x, self.weights[head], bias, self.how)
        if divisor != 1.0:
            logits = self.keep("unscaled_logits", logits) / divisor
        if cap is not None:
            logits = soft_cap(self.keep("uncapped_logits", logits), cap)
        self.keep("logits", logits)
        return self.trace


class ExpertsDecoder(Decoder):
    """A decoder with experts instead of a feed-forward block."""

    def experts(
        self, h: Tensor, at: str, normed: bool, names: tuple[str, str, str] = GATED
    ) -> Tensor:
        """The weighted sum of each row's experts. All experts are computed here; those that were
        not chosen have weight 0."""
        scores = self.keep("router", self.linear(h, f"{at}gate"))
        largest = torch.topk(scores, self.raw["num_experts_per_tok"], dim=-1).indices
        chosen = torch.zeros_like(scores).scatter(-1, largest, 1.0)
        routing_weights = softmax(scores, self.how) * chosen
        if normed:
            routing_weights = routing_weights / routing_weights.sum(-1, keepdim=True)
        self.keep("routing_weights", routing_weights)
        total = torch.zeros_like(h)
        for e in range(scores.shape[-1]):
            one = self._gated_block(h, f"{at}experts.{e}.", names)
            total = total + routing_weights[:, e : e + 1] * one
        return self.keep("experts", total)

    def shared_expert(self, h: Tensor, at: str) -> Tensor:
        """The expert that computes every row, times the sigmoid of a score per row."""
        score = self.keep("shared_router", self.linear(h, f"{at}shared_expert_gate"))
        weight = self.keep("shared_routing_weights", 1 / (1 + torch.exp(-score)))
        block = self._gated_block(h, f"{at}shared_expert.", GATED)
        return self.keep("shared_expert", weight * block)

    def _gated_block(self, h: Tensor, at: str, names: tuple[str, str, str]) -> Tensor:
        gate, up, down = (f"{at}{name}" for name in names)
        activation = self.raw["hidden_act"]
        inside = gated(self.linear(h, gate), self.linear(h, up), activation, self.how)
        return self.linear(inside, down)


class LayerNormDecoder(Decoder):
    """A decoder with LayerNorm, with the weight and the bias in the file."""

    eps_name = "layer_norm_eps"

    def norm(self, x: Tensor, name: str) -> Tensor:
        weight, bias = (self.weights.tensors.get(f"{name}.{end}") for end in ("weight", "bias"))
        return layer_norm(x, weight, bias, self.raw[self.eps_name], self.how)
