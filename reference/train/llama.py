"""A plain Llama in PyTorch, and readers for the checkpoints that training starts from.

The teacher, the students and the scorer use one definition. Parameter names are those of Hugging Face's
LlamaForCausalLM, so `Llama.state_dict()` is written to model.safetensors as it is.
"""

import json
import struct
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    vocab_size: int
    dim: int
    ffn: int
    layers: int
    heads: int
    kv_heads: int
    context: int
    eps: float = 1e-5
    rope_theta: float = 10000.0

    @property
    def head_dim(self):
        return self.dim // self.heads

    def to_hf(self, bos, eos, pad=None, dtype="bfloat16"):
        """config.json as transformers writes it for a LlamaForCausalLM with tied embeddings."""
        return {
            "architectures": ["LlamaForCausalLM"],
            "attention_bias": False,
            "attention_dropout": 0.0,
            "bos_token_id": bos,
            "eos_token_id": eos,
            "head_dim": self.head_dim,
            "hidden_act": "silu",
            "hidden_size": self.dim,
            "initializer_range": 0.02,
            "intermediate_size": self.ffn,
            "max_position_embeddings": self.context,
            "mlp_bias": False,
            "model_type": "llama",
            "num_attention_heads": self.heads,
            "num_hidden_layers": self.layers,
            "num_key_value_heads": self.kv_heads,
            "pad_token_id": pad,
            "pretraining_tp": 1,
            "rms_norm_eps": self.eps,
            "rope_scaling": None,
            "rope_theta": self.rope_theta,
            "tie_word_embeddings": True,
            "torch_dtype": dtype,
            "use_cache": True,
            "vocab_size": self.vocab_size,
        }

    @staticmethod
    def from_hf(c):
        return Config(
            vocab_size=c["vocab_size"], dim=c["hidden_size"], ffn=c["intermediate_size"],
            layers=c["num_hidden_layers"], heads=c["num_attention_heads"],
            kv_heads=c["num_key_value_heads"], context=c["max_position_embeddings"],
            eps=c["rms_norm_eps"], rope_theta=c["rope_theta"])


def rope_table(head_dim, positions, theta):
    """cos and sin [positions, head_dim]; both halves of a row are equal (half-split RoPE)."""
    inv = theta ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    angle = torch.outer(torch.arange(positions, dtype=torch.float64), inv)
    angle = torch.cat([angle, angle], dim=1)
    return angle.cos().float(), angle.sin().float()


def rope(x, cos, sin):
    """x [..., seq, head_dim]; rotates pair (i, i + head_dim / 2) by the position's angle."""
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-b, a], dim=-1) * sin


@torch.compile(dynamic=True)
def weighted_keys(q, k):
    return (q[:, None].float() * k.float()).sum(2)


@torch.compile(dynamic=True)
def weighted_values(p, v):
    return (p[..., None] * v.float()).sum(1)


def attend_one(q, k, v):
    """Attention of one new token, q [batch, heads, 1, head_dim]. On a CPU in bf16 it is three times as fast as
    scaled_dot_product_attention, which is made for longer queries."""
    scores = weighted_keys(q.flatten(0, 1)[:, 0], k.flatten(0, 1)) * q.shape[-1] ** -0.5
    return weighted_values(scores.softmax(-1), v.flatten(0, 1)).to(q.dtype).view(q.shape)


def attend(q, k, v):
    """Causal attention written out. At these lengths its compiled backward pass is faster on a CPU than that of
    scaled_dot_product_attention."""
    seq = q.shape[-2]
    scores = (q @ k.transpose(-1, -2)).float() * q.shape[-1] ** -0.5
    later = torch.ones(seq, seq, dtype=torch.bool, device=q.device).triu(1)
    return scores.masked_fill(later, float("-inf")).softmax(-1).to(q.dtype) @ v


class RmsNorm(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        f = x.float()
        f = f * torch.rsqrt(f.square().mean(-1, keepdim=True) + self.eps)
        return (f * self.weight).to(x.dtype)


GROUP = 32  # inputs that share a scale in 4 bits


def to_4_bits(weight):
    """(integers -8 to 7, scales) for weight [outputs, inputs]. In each group, the number furthest from 0 becomes -8,
    the others the nearest multiples of the scale, as in Q4_0. The scales are f16 numbers."""
    groups = weight.unflatten(-1, (-1, GROUP))
    furthest = groups.gather(-1, groups.abs().argmax(-1, keepdim=True))
    scales = (furthest / -8).half().float()
    integers = (groups / torch.where(scales == 0, 1, scales)).round().clamp(-8, 7)
    return integers, scales


def packed(name, weight):
    """The tensors of a 4-bit matrix in compressed-tensors' format ("pack-quantized"): the integers + 8, eight per word
    of 32 bits, the first one in the lowest bits."""
    integers, scales = to_4_bits(weight)
    eights = (integers.flatten(-2).unflatten(-1, (-1, 8)).long() + 8) << (4 * torch.arange(8))
    words = eights.sum(-1)
    return {f"{name}_packed": torch.where(words >= 2**31, words - 2**32, words).int(),
            f"{name}_scale": scales.squeeze(-1).half(), f"{name}_shape": torch.tensor(weight.shape)}


def unpacked(state):
    """`state` with one f32 tensor in place of each three that packed() makes."""
    names = [name.removesuffix("_packed") for name in state if name.endswith("_packed")]
    for name in names:
        words, scales = state.pop(f"{name}_packed").long(), state.pop(f"{name}_scale").float()
        integers = (words[..., None] >> (4 * torch.arange(8)) & 15) - 8
        groups = integers.flatten(-2).unflatten(-1, (-1, GROUP))
        state[name] = (groups * scales[..., None]).view(*state.pop(f"{name}_shape").tolist())
    return state


class Linear(nn.Linear):
    """A matrix without bias. With in_4_bits, its product uses weights rounded to 4 bits; the gradient ignores the
    rounding."""

    in_4_bits = False

    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs, bias=False)

    def forward(self, x):
        if not self.in_4_bits:
            return F.linear(x, self.weight)
        integers, scales = to_4_bits(self.weight.detach())
        rounding = (integers * scales).flatten(-2) - self.weight.detach()
        return F.linear(x, self.weight + rounding)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.q_proj = Linear(c.dim, c.heads * c.head_dim)
        self.k_proj = Linear(c.dim, c.kv_heads * c.head_dim)
        self.v_proj = Linear(c.dim, c.kv_heads * c.head_dim)
        self.o_proj = Linear(c.heads * c.head_dim, c.dim)

    def forward(self, x, cos, sin, cache=None, past=0):
        """cache: (k, v) [batch, kv_heads, context, head_dim], filled up to `past`."""
        c, (batch, seq, _) = self.c, x.shape
        q = self.q_proj(x).view(batch, seq, c.heads, c.head_dim).transpose(1, 2)
        k = self.k_proj(x).view(batch, seq, c.kv_heads, c.head_dim).transpose(1, 2)
        v = self.v_proj(x).view(batch, seq, c.kv_heads, c.head_dim).transpose(1, 2)
        q, k = rope(q, cos, sin), rope(k, cos, sin)
        if cache is not None:
            cache[0][:, :, past:past + seq] = k
            cache[1][:, :, past:past + seq] = v
            k, v = cache[0][:, :, :past + seq], cache[1][:, :, :past + seq]
            assert past == 0 or seq == 1, "with a filled cache, one token at a time"
        if c.kv_heads != c.heads:
            k = k.repeat_interleave(c.heads // c.kv_heads, dim=1)
            v = v.repeat_interleave(c.heads // c.kv_heads, dim=1)
        if cache is not None and seq == 1:
            y = attend_one(q, k, v)
        else:
            y = attend(q, k, v)
        return self.o_proj(y.transpose(1, 2).reshape(batch, seq, -1))


class Mlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gate_proj = Linear(c.dim, c.ffn)
        self.up_proj = Linear(c.dim, c.ffn)
        self.down_proj = Linear(c.ffn, c.dim)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.input_layernorm = RmsNorm(c.dim, c.eps)
        self.self_attn = Attention(c)
        self.post_attention_layernorm = RmsNorm(c.dim, c.eps)
        self.mlp = Mlp(c)

    def forward(self, x, cos, sin, cache=None, past=0):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, cache, past)
        return x + self.mlp(self.post_attention_layernorm(x))


class Backbone(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed_tokens = nn.Embedding(c.vocab_size, c.dim)
        self.layers = nn.ModuleList(Block(c) for _ in range(c.layers))
        self.norm = RmsNorm(c.dim, c.eps)


class Llama(nn.Module):
    """The output head is tied to the embedding, as in every small model here."""

    def __init__(self, c):
        super().__init__()
        self.c = c
        self.model = Backbone(c)
        cos, sin = rope_table(c.head_dim, c.context, c.rope_theta)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self.init_weights()

    def init_weights(self):
        for name, p in self.named_parameters():
            if p.dim() == 2:
                std = 0.02
                if name.endswith(("o_proj.weight", "down_proj.weight")):
                    std = 0.0  # a block starts as the identity
                nn.init.normal_(p, std=std)

    def hidden(self, ids, cache=None, past=0):
        """ids [batch, seq] -> the final norm's output [batch, seq, dim]."""
        x = self.model.embed_tokens(ids)
        cos, sin = self.cos[past:past + ids.shape[1]], self.sin[past:past + ids.shape[1]]
        cos, sin = cos.to(x.dtype), sin.to(x.dtype)
        for i, layer in enumerate(self.model.layers):
            x = layer(x, cos, sin, None if cache is None else cache[i], past)
        return self.model.norm(x)

    def forward(self, ids, cache=None, past=0):
        return F.linear(self.hidden(ids, cache, past), self.model.embed_tokens.weight)

    def new_cache(self, batch, positions, dtype):
        shape = (batch, self.c.kv_heads, positions, self.c.head_dim)
        return [(torch.zeros(shape, dtype=dtype), torch.zeros(shape, dtype=dtype))
                for _ in range(self.c.layers)]


def read_llama2c(path):
    """Reads a llama2.c checkpoint, header v0. Its RoPE rotates neighbours (2i, 2i + 1); the rows of q and k are
    reordered here, so that the half-split RoPE above gives the same result."""
    data = Path(path).read_bytes()
    dim, ffn, layers, heads, kv_heads, vocab, context = struct.unpack("7i", data[:28])
    c = Config(abs(vocab), dim, ffn, layers, heads, kv_heads, context)
    assert vocab > 0, f"{path}: expected tied embeddings (vocab_size > 0), found {vocab}"
    flat = torch.frombuffer(bytearray(data[28:]), dtype=torch.float32)
    at = 0

    def take(*shape):
        nonlocal at
        n = torch.Size(shape).numel()
        at += n
        return flat[at - n:at].view(*shape).clone()

    def half_split(w, n):
        return w.view(n, c.head_dim // 2, 2, dim).transpose(1, 2).reshape(n * c.head_dim, dim)

    kv = kv_heads * c.head_dim
    state = {"model.embed_tokens.weight": take(c.vocab_size, dim)}
    parts = [("input_layernorm", take(layers, dim)), ("self_attn.q_proj", take(layers, dim, dim)),
             ("self_attn.k_proj", take(layers, kv, dim)),
             ("self_attn.v_proj", take(layers, kv, dim)),
             ("self_attn.o_proj", take(layers, dim, dim)),
             ("post_attention_layernorm", take(layers, dim)),
             ("mlp.gate_proj", take(layers, ffn, dim)), ("mlp.down_proj", take(layers, dim, ffn)),
             ("mlp.up_proj", take(layers, ffn, dim))]
    for name, stack in parts:
        for i in range(layers):
            w = stack[i]
            if name.endswith("q_proj"):
                w = half_split(w, heads)
            if name.endswith("k_proj"):
                w = half_split(w, kv_heads)
            state[f"model.layers.{i}.{name}.weight"] = w
    state["model.norm.weight"] = take(dim)
    model = Llama(c)
    model.load_state_dict(state)
    return model.eval()


def read_folder(folder):
    """Reads a Hugging Face folder into f32: config.json and model.safetensors, in 4 bits or any float type."""
    from safetensors.torch import load_file
    folder = Path(folder)
    model = Llama(Config.from_hf(json.loads((folder / "config.json").read_text())))
    state = {k: v.float() for k, v in unpacked(load_file(folder / "model.safetensors")).items()}
    head = state.pop("lm_head.weight", None)
    if "model.embed_tokens.weight" not in state:
        state["model.embed_tokens.weight"] = head
    model.load_state_dict(state)
    return model.eval()


class SentencePiece:
    """llama2.c's tokenizer.bin: pieces with scores. encode merges the pair with the best score first, as run.c does,
    with a space added before the text and bytes as fallback."""

    def __init__(self, path, vocab_size):
        data, at = Path(path).read_bytes(), 4
        self.pieces, self.scores = [], []
        for _ in range(vocab_size):
            score, length = struct.unpack_from("fi", data, at)
            self.pieces.append(data[at + 8:at + 8 + length])
            self.scores.append(score)
            at += 8 + length
        # Ids 3 to 258 are single bytes; some have the same text as a later piece, which takes precedence.
        self.ids = {p: i for i, p in enumerate(self.pieces) if i >= 259}
        self.words = {}

    def word(self, word):
        ids = []
        for ch in word:
            b = ch.encode()
            ids += [self.ids[b]] if b in self.ids else [x + 3 for x in b]
        while True:
            best, where = -1e10, -1
            for i in range(len(ids) - 1):
                j = self.ids.get(self.pieces[ids[i]] + self.pieces[ids[i + 1]])
                if j is not None and self.scores[j] > best:
                    best, where, new = self.scores[j], i, j
            if where < 0:
                return ids
            ids[where:where + 2] = [new]

    def encode(self, text):
        """No piece has a space after another character, so each word can be merged separately."""
        import re
        out = []
        for word in re.findall(r" *[^ ]+| +", " " + text):
            if word not in self.words:
                self.words[word] = self.word(word)
            out += self.words[word]
        return out

    def decode(self, ids):
        """The text of ids without the start token; removes the space that was added before the text."""
        import re
        out = b""
        for i in ids:
            p = self.pieces[i]
            raw = re.fullmatch(rb"<0x([0-9A-F]{2})>", p)
            out += bytes([int(raw[1], 16)]) if raw else p
        return out.removeprefix(b" ")
