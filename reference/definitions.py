"""The operators as plain formulas; precision and order of summation are arguments.

Every sum here uses `dot`. So one forward pass can be run in f64 (the oracle), in f32 as PyTorch
does it, and in f32 in each order that a C++ loop, a SIMD kernel or a chain of fused multiply-adds
would use. Tolerances are made from the distance of those runs to the oracle.

Shape letters: S tokens, T keys (past + S), H heads, G key/value heads, D head_dim; M, N, K matmul.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Arithmetic:
    """Precision, order of summation and rounding of a formula."""

    name: str
    dtype: torch.dtype
    order: str = (
        "torch"  # torch, sequential, reversed, blocked8, blocked16, fma, shuffled1, shuffled2, ...
    )  # or products_f32: products in f32, added in f64
    reciprocal: bool = False  # x * (1 / n) in place of x / n
    scales: str = "scores"  # what attention multiplies by 1 / sqrt(D): scores, q, or q_and_k
    angles: str = (
        "f32"  # RoPE: "exact" in f64, "f32" as transformers, "f64_of_f32" exact cos of f32 angles
    )


ORACLE = Arithmetic("oracle", torch.float64, angles="exact")
PYTORCH_F32 = Arithmetic("torch", torch.float32)

# The spread is measured over these: every order of summation of a sensible f32 implementation.
F32_ORDERS = (
    PYTORCH_F32,
    Arithmetic("sequential", torch.float32, "sequential", angles="f64_of_f32"),
    Arithmetic("reversed", torch.float32, "reversed", reciprocal=True),
    Arithmetic("blocked8", torch.float32, "blocked8", reciprocal=True, angles="exact"),
    Arithmetic("blocked16", torch.float32, "blocked16"),
    Arithmetic("fma", torch.float32, "fma"),
    # Shuffles stand for all other orders; eight, so that the largest error does not depend on luck.
    *(
        Arithmetic(f"shuffled{n}", torch.float32, f"shuffled{n}", reciprocal=n % 2 == 0)
        for n in range(8)
    ),
)


# Further ways for attention: they change a score as much as a large score is rounded.
SCALED_BEFORE = (
    Arithmetic("scaled q", torch.float32, "sequential", scales="q"),
    Arithmetic("scaled q and k", torch.float32, "sequential", scales="q_and_k"),
    Arithmetic("products in f32", torch.float32, "products_f32"),
)


def dot(x: Tensor, y: Tensor, how: Arithmetic) -> Tensor:
    """x [..., M, K] times y [..., N, K] transposed -> [..., M, N], summed over K as `how` says."""
    x, y = x.to(how.dtype), y.to(how.dtype)
    if how.order == "torch":
        return x @ y.transpose(-1, -2)
    if how.order == "products_f32":
        return (x[..., :, None, :] * y[..., None, :, :]).double().sum(-1).to(how.dtype)
    length = x.shape[-1]
    if how.order.startswith("blocked"):
        return _dot_blocked(x, y, int(how.order.removeprefix("blocked")))
    total = (x[..., :, None, :1] * y[..., None, :, :1] * 0).sum(
        -1
    )  # zeros [..., M, N], also for K = 0
    for k in _sequence(length, how.order):
        left, right = x[..., :, None, k], y[..., None, :, k]
        if how.order == "fma":  # one rounding per step: the product is exact in f64
            total = (total.double() + left.double() * right.double()).to(how.dtype)
        else:
            total = total + left * right
    return total


def _sequence(length: int, order: str) -> list[int]:
    if order.startswith("shuffled"):
        generator = torch.Generator().manual_seed(int(order.removeprefix("shuffled")))
        return torch.randperm(length, generator=generator).tolist()
    return list(reversed(range(length))) if order == "reversed" else list(range(length))


def _dot_blocked(x: Tensor, y: Tensor, lanes: int) -> Tensor:
    """Partial sums over k % lanes, as in SIMD registers, then added in pairs."""
    pad = -x.shape[-1] % lanes if x.shape[-1] else lanes
    x = torch.nn.functional.pad(x, (0, pad)).unflatten(-1, (-1, lanes))
    y = torch.nn.functional.pad(y, (0, pad)).unflatten(-1, (-1, lanes))
    total = x[..., :, None, 0, :] * y[..., None, :, 0, :]
    for block in range(1, x.shape[-2]):
        total = total + x[..., :, None, block, :] * y[..., None, :, block, :]
    while total.shape[-1] > 1:
        half = total.shape[-1] // 2
        total = total[..., :half] + total[..., half:]
    return total[..., 0]


def _row_sum(x: Tensor, y: Tensor, how: Arithmetic) -> Tensor:
    """sum_j x[..., j] * y[..., j] -> [..., 1]."""
    return dot(x[..., None, :], y[..., None, :], how)[..., 0]


def _divide(x: Tensor, by: Tensor, how: Arithmetic) -> Tensor:
    return x * (1 / by) if how.reciprocal else x / by


def silu(x: Tensor, how: Arithmetic) -> Tensor:
    """x * sigmoid(x) = x / (1 + exp(-x)), element by element."""
    x = x.to(how.dtype)
    return _divide(x, 1 + torch.exp(-x), how)


def swiglu(gate: Tensor, up: Tensor, how: Arithmetic) -> Tensor:
    """silu(gate) * up (Shazeer 2020), element by element."""
    return silu(gate, how) * up.to(how.dtype)


def geglu(gate: Tensor, up: Tensor, how: Arithmetic) -> Tensor:
    """gelu(gate) * up with GELU in its tanh form, element by element."""
    x = gate.to(how.dtype)
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return 0.5 * x * (1 + torch.tanh(inner)) * up.to(how.dtype)


def gelu(x: Tensor, how: Arithmetic) -> Tensor:
    """x / 2 * (1 + erf(x / sqrt(2))) (Hendrycks and Gimpel 2016), element by element."""
    x = x.to(how.dtype)
    return 0.5 * x * (1 + torch.erf(_divide(x, torch.tensor(2.0, dtype=how.dtype).sqrt(), how)))


def gated(gate: Tensor, up: Tensor, activation: str, how: Arithmetic) -> Tensor:
    """activation(gate) * up; the name of the activation is that of config.json."""
    if activation in ("silu", "swish"):
        return swiglu(gate, up, how)
    if activation == "gelu":
        return gelu(gate, how) * up.to(how.dtype)
    if activation in ("gelu_new", "gelu_pytorch_tanh"):
        return geglu(gate, up, how)
    raise SystemExit(f"hidden_act: expected silu or gelu, found {activation}")


def gated_name(activation: str) -> str:
    """The name of the step."""
    return "swiglu" if activation in ("silu", "swish") else "geglu"


def gelu_tanh(x: Tensor, how: Arithmetic) -> Tensor:
    """GELU in its tanh form, element by element."""
    return geglu(x, torch.ones_like(x), how)


def relu(x: Tensor, how: Arithmetic) -> Tensor:
    """max(x, 0) (Nair and Hinton 2010), element by element."""
    return x.to(how.dtype).clamp(min=0)


def clamped_swiglu(
    gate: Tensor, up: Tensor, alpha: float, limit: float, how: Arithmetic
) -> Tensor:
    """g / (1 + exp(-alpha g)) * (u + 1): g = min(gate, limit), u = up between -limit and limit."""
    g = gate.to(how.dtype).clamp(max=limit)
    u = up.to(how.dtype).clamp(-limit, limit)
    return _divide(g, 1 + torch.exp(-alpha * g), how) * (u + 1)


def soft_cap(x: Tensor, cap: float) -> Tensor:
    """cap * tanh(x / cap), element by element."""
    return cap * torch.tanh(x / cap)


def rms_norm(x: Tensor, weight: Tensor, eps: float, how: Arithmetic) -> Tensor:
    """y[t][i] = weight[i] * x[t][i] / sqrt(mean_j(x[t][j]^2) + eps); x [S, K], weight [K]."""
    x = x.to(how.dtype)
    mean_square = _row_sum(x, x, how) / x.shape[-1]
    return weight.to(how.dtype) * _divide(x, torch.sqrt(mean_square + eps), how)


def layer_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, how: Arithmetic
) -> Tensor:
    """weight * (x - mean) / sqrt(variance + eps) + bias (Ba et al. 2016); x [S, K], others [K] or
    None."""
    x = x.to(how.dtype)
    centred = x - _row_sum(x, torch.ones_like(x), how) / x.shape[-1]
    variance = _row_sum(centred, centred, how) / x.shape[-1]
    normed = _divide(centred, torch.sqrt(variance + eps), how)
    if weight is not None:
        normed = weight.to(how.dtype) * normed
    return normed if bias is None else normed + bias.to(how.dtype)


def matmul_transb(
    a: Tensor, b: Tensor, c: Tensor, alpha: float, beta: float, how: Arithmetic
) -> Tensor:
    """alpha * A B^T + beta * C; A [M, K], B [N, K], C [M, N]. beta = 0 never reads C (BLAS)."""
    product = alpha * dot(a, b, how)
    return product if beta == 0 else product + beta * c.to(how.dtype)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None, how: Arithmetic) -> Tensor:
    """x [S, K], weight [N, K], bias [N] or None -> [S, N]."""
    y = dot(x, weight, how)
    return y if bias is None else y + bias.to(how.dtype)


def short_conv(x: Tensor, taps: Tensor, bias: Tensor | None, how: Arithmetic) -> Tensor:
    """y[t][c] = bias[c] + sum_j taps[c][j] * x[t - n_taps + 1 + j][c]; x [S, C], taps [C, n_taps]."""
    past = torch.zeros(taps.shape[-1] - 1, x.shape[-1], dtype=how.dtype)
    windows = torch.cat((past, x.to(how.dtype))).unfold(0, taps.shape[-1], 1)  # [S, C, n_taps]
    y = _row_sum(windows, taps.to(how.dtype).expand(windows.shape), how)[..., 0]
    return y if bias is None else y + bias.to(how.dtype)


def sigmoid(x: Tensor, how: Arithmetic) -> Tensor:
    """1 / (1 + exp(-x)), element by element."""
    return 1 / (1 + torch.exp(-x.to(how.dtype)))


def gated_delta(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    decay: Tensor,
    rate: Tensor,
    shift: Tensor,
    how: Arithmetic,
) -> Tensor:
    """The gated delta rule (Yang et al. 2024): per head, a matrix S maps keys to values. Per token:

        S = exp(-exp(rate) * softplus(decay + shift)) * S
        S = S + sigmoid(beta) * (v - S k) k^T,  y = S q

    q and k [S, G, D] are divided by their lengths, and q by sqrt(D); v [S, H, V]; beta and decay
    [S, H]; head h reads q, k h // (H / G). -> [S, H, V]
    """
    group = v.shape[1] // k.shape[1]
    q, k = (_unit(x.to(how.dtype), how).repeat_interleave(group, dim=1) for x in (q, k))
    q = _divide(q, torch.tensor(q.shape[-1], dtype=how.dtype).sqrt(), how)
    time = torch.nn.functional.softplus(decay.to(how.dtype) + shift.to(how.dtype))
    kept = torch.exp(-torch.exp(rate.to(how.dtype)) * time)
    learned = sigmoid(beta, how)
    state = torch.zeros(v.shape[1], v.shape[2], k.shape[2], dtype=how.dtype)  # [H, V, D]
    rows = []
    for t in range(len(v)):
        state = kept[t, :, None, None] * state
        known = dot(k[t, :, None], state, how)[:, 0]
        delta = learned[t, :, None] * (v[t].to(how.dtype) - known)
        state = state + delta[:, :, None] * k[t, :, None]
        rows.append(dot(q[t, :, None], state, how)[:, 0])
    return torch.stack(rows)


def _unit(x: Tensor, how: Arithmetic) -> Tensor:
    """x / sqrt(sum_j x_j^2 + 1e-6)."""
    return _divide(x, torch.sqrt(_row_sum(x, x, how) + 1e-6), how)


def softmax(x: Tensor, how: Arithmetic) -> Tensor:
    """exp(x - max) / sum of the same, over the last dimension; -inf gives 0."""
    x = x.to(how.dtype)
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return _divide(e, _row_sum(e, torch.ones_like(e), how), how)


@dataclass(frozen=True)
class RopeScaling:
    """rope_theta and the scalings that Stagecraft supports, with the names of config.json."""

    rope_theta: float
    rope_type: str = "default"  # default, linear, llama3, yarn
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_max_position_embeddings: int = 0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    mscale: float = 0.0
    mscale_all_dim: float = 0.0
    attention_factor: float | None = None

    @property
    def score_factor(self) -> float:
        """yarn: the factor of scores; q and k are both multiplied by its root."""
        if self.rope_type != "yarn":
            return 1.0
        if self.attention_factor is not None:
            return self.attention_factor**2

        def grown(weight: float) -> float:
            return 0.1 * weight * math.log(self.factor) + 1 if self.factor > 1 else 1.0

        if self.mscale and self.mscale_all_dim:
            return (grown(self.mscale) / grown(self.mscale_all_dim)) ** 2
        return grown(1.0) ** 2


def _yarn(frequency: Tensor, head_dim: int, rope: RopeScaling) -> Tensor:
    """Pairs that rotate often within the original context keep their frequency; pairs that rotate
    seldom get a lower one."""

    def pair_that_turns(times: float) -> float:
        turns = rope.original_max_position_embeddings / (2 * math.pi)  # of the fastest pair
        return head_dim * math.log(turns / times) / (2 * math.log(rope.rope_theta))

    low, high = pair_that_turns(rope.beta_fast), pair_that_turns(rope.beta_slow)
    if rope.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, head_dim - 1)
    if low == high:
        high += 0.001
    ramp = (torch.arange(head_dim // 2, dtype=frequency.dtype) - low) / (high - low)
    kept = 1 - ramp.clamp(0, 1)
    return frequency / rope.factor * (1 - kept) + frequency * kept


def inverse_frequencies(head_dim: int, rope: RopeScaling, dtype: torch.dtype) -> Tensor:
    """The angle of each pair per position -> [D / 2]. transformers uses f32 for every dtype."""
    exponent = torch.arange(0, head_dim, 2, dtype=torch.int64).to(dtype) / head_dim
    frequency = 1.0 / (rope.rope_theta**exponent)
    if rope.rope_type == "default":
        return frequency
    if rope.rope_type == "linear":
        return frequency / rope.factor
    if rope.rope_type == "yarn":
        return _yarn(frequency, head_dim, rope)
    if rope.rope_type != "llama3":
        raise ValueError(
            f"rope_type: expected default, linear, llama3 or yarn, found {rope.rope_type}"
        )
    # Llama 3.1: low frequencies are divided by `factor`, high ones kept, those between
    # interpolated.
    wavelength = 2 * math.pi / frequency
    longest_kept = rope.original_max_position_embeddings / rope.high_freq_factor
    shortest_slowed = rope.original_max_position_embeddings / rope.low_freq_factor
    smooth = (rope.original_max_position_embeddings / wavelength - rope.low_freq_factor) / (
        rope.high_freq_factor - rope.low_freq_factor
    )
    between = (1 - smooth) * frequency / rope.factor + smooth * frequency
    return torch.where(
        wavelength > shortest_slowed,
        frequency / rope.factor,
        torch.where(wavelength < longest_kept, frequency, between),
    )


def rope_cos_sin(positions: Tensor, frequencies: Tensor, how: Arithmetic) -> tuple[Tensor, Tensor]:
    """cos and sin of position * frequency, [S] and [D / 2] -> two of [S, D / 2]."""
    precision = torch.float64 if how.angles == "exact" else torch.float32
    angle = positions[:, None].to(precision) * frequencies.to(precision)
    if how.angles != "f32":
        angle = angle.double()
    return torch.cos(angle).to(how.dtype), torch.sin(angle).to(how.dtype)


def rope_angles(
    positions: Tensor, head_dim: int, scaling: RopeScaling, how: Arithmetic
) -> tuple[Tensor, Tensor]:
    """cos and sin for a model's config; the frequencies are exact if the angles are."""
    precision = torch.float64 if how.angles == "exact" else torch.float32
    return rope_cos_sin(positions, inverse_frequencies(head_dim, scaling, precision), how)


def rope(x: Tensor, cos: Tensor, sin: Tensor, how: Arithmetic) -> Tensor:
    """Rotate pair (x[i], x[i + D/2]) of each head by its angle; x [S, H, D], cos and sin [S, D/2].

    The half-split form of Hugging Face checkpoints, not the interleaved pairs (x[2i], x[2i + 1]).
    """
    first, second = x.to(how.dtype).chunk(2, dim=-1)
    cos, sin = cos[:, None, :], sin[:, None, :]
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def neighbour_rope(x: Tensor, cos: Tensor, sin: Tensor, how: Arithmetic) -> Tensor:
    """The same for the pairs (x[2i], x[2i + 1])."""
    first, second = x.to(how.dtype).unflatten(-1, (-1, 2)).unbind(-1)
    cos, sin = cos[:, None, :], sin[:, None, :]
    rotated = (first * cos - second * sin, second * cos + first * sin)
    return torch.stack(rotated, dim=-1).flatten(-2)


def causal_mask(q_len: int, kv_len: int, window: int | None) -> Tensor:
    """True where query i (at position kv_len - q_len + i) may attend to key j -> bool [S, T].

    A window of w: the query itself and the w - 1 keys before it.
    """
    query = torch.arange(q_len)[:, None] + (kv_len - q_len)
    key = torch.arange(kv_len)[None, :]
    visible = key <= query
    return visible if window is None else visible & (key > query - window)


def alibi_slopes(n_heads: int) -> Tensor:
    """2^(-8 i / n) for a power of two n (Press et al. 2021) -> [H].

    Other n: the slopes of the next smaller power of two, then the first, third, ... of twice that
    power.
    """

    def power(n: int) -> list[float]:
        return [2.0 ** (-8.0 * i / n) for i in range(1, n + 1)]

    n = 1 << (n_heads.bit_length() - 1)
    slopes = power(n) + power(2 * n)[::2][: n_heads - n]
    return torch.tensor(slopes, dtype=torch.float64)


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    window: int | None,
    how: Arithmetic,
    scale: float | None = None,
    cap: float | None = None,
    slopes: Tensor | None = None,
    prompt: int = 0,
    sinks: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """softmax(q k^T / sqrt(D)) v; q [S, H, D], k and v [T, G, D]; head h reads k, v h // (H / G).

    scale: used instead of 1 / sqrt(D). cap: soft cap of the scores. slopes [H]: of ALiBi. prompt:
    every query attends to this many first keys. sinks [H]: scores of a key without a value.

    -> probabilities [H, S, T] (0 where masked), output [S, H, D].
    """
    q_len, n_heads, head_dim = q.shape
    kv_len, n_kv_heads, _ = k.shape
    group = n_heads // n_kv_heads
    keys = k.repeat_interleave(group, dim=1).transpose(0, 1)  # [H, T, D]
    values = v.repeat_interleave(group, dim=1).permute(1, 2, 0)  # [H, D, T]
    root = torch.tensor(head_dim, dtype=how.dtype).sqrt()
    if scale is None and how.scales != "scores":
        factor = 1 / (root if how.scales == "q" else root.sqrt())
        q, keys = q * factor, keys if how.scales == "q" else keys * factor
    scores = dot(q.transpose(0, 1), keys, how)
    if scale is None:
        scores = scores if how.scales != "scores" else _divide(scores, root, how)
    else:
        scores = scores * scale
    if cap is not None:
        scores = soft_cap(scores, cap)
    if slopes is not None:
        distance = torch.arange(kv_len) - torch.arange(kv_len - q_len, kv_len)[:, None]  # [S, T]
        scores = scores + slopes.to(how.dtype)[:, None, None] * distance.to(how.dtype)
    visible = causal_mask(q_len, kv_len, window)
    visible[:, :prompt] = True
    scores = scores.masked_fill(~visible, -torch.inf)
    if sinks is None:
        probabilities = softmax(scores, how)
    else:
        sink = sinks.to(how.dtype)[:, None, None].expand(-1, q_len, 1)
        probabilities = softmax(torch.cat((sink, scores), dim=-1), how)[:, :, 1:]
    return probabilities, dot(probabilities, values, how).transpose(0, 1)
