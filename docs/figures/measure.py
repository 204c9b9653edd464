"""Asks ./stage for the numbers of models/story that the figures and the tour show."""
import json
import math
import pathlib
import struct
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = "models/story"
ATTENTION = "Tom gave Lily her ball", 1, 3
ROW = "Lily", 1  # of RMSNorm: this token, in this layer
STREAM = "Once upon a"
NEXT = "Once upon a time, there was a little"
TEMPERATURES = 0.5, 1.0, 1.5
SHOWN = 24  # numbers of a row
BLOCK = "model.layers.0.mlp.gate_proj.weight"


PROGRAM = ROOT / "stage"


def stage(*words, given=None):
    done = subprocess.run([PROGRAM, *words], cwd=ROOT, check=True, input=given, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True)
    return done.stdout


class Tensors:
    """A safetensors file of f32, bf16 and i64 tensors, as nested lists."""

    def __init__(self, path):
        with open(path, "rb") as file:
            size = struct.unpack("<Q", file.read(8))[0]
            self.header = json.loads(file.read(size))
            self.bytes = file.read()
        self.header.pop("__metadata__", None)

    def __getitem__(self, name):
        entry = self.header[name]
        raw = self.bytes[slice(*entry["data_offsets"])]
        if entry["dtype"] == "BF16":
            values = [struct.unpack("<f", b"\0\0" + raw[i:i + 2])[0] for i in range(0, len(raw), 2)]
        else:
            code = {"F32": "f", "I64": "q", "I32": "i"}[entry["dtype"]]
            values = list(struct.unpack(f"<{len(raw) // struct.calcsize(code)}{code}", raw))
        return nested(values, entry["shape"])

    def count(self):
        return sum(math.prod(entry["shape"]) for entry in self.header.values())


def nested(values, shape):
    if len(shape) <= 1:
        return values
    step = len(values) // shape[0]
    return [nested(values[i * step:(i + 1) * step], shape[1:]) for i in range(shape[0])]


def tokenized(text):
    """(ids, tokens) of a text as `peek` and `story` give it to the model: after the start token."""
    ids = [int(word) for word in stage("tokenize", "--model", MODEL, "--add-special", given=text).split(",")]
    return ids, ["<start>", *(shown(text_of([one])) for one in ids[1:])]


def text_of(ids):
    return stage("tokenize", "--model", MODEL, "--decode", given=" ".join(map(str, ids))).rstrip("\n")


def shown(text):
    return text.strip() or repr(text)


def trace(ids):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.safetensors"
        stage("trace", "--model", MODEL, "--ids", ",".join(map(str, ids)), "--out", str(path))
        return Tensors(path)


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def rms(row):
    return math.sqrt(dot(row, row) / len(row))


def softmax(values, temperature=1.0):
    highest = max(values)
    powers = [math.exp((value - highest) / temperature) for value in values]
    total = sum(powers)
    return [power / total for power in powers]


def sizes(weights):
    config = json.loads((ROOT / MODEL / "config.json").read_text())
    return {"dim": config["hidden_size"], "ffn_dim": config["intermediate_size"],
            "n_layers": config["num_hidden_layers"], "n_heads": config["num_attention_heads"],
            "n_kv_heads": config["num_key_value_heads"], "head_dim": config["head_dim"],
            "vocab_size": config["vocab_size"], "rope_theta": config["rope_theta"], "eps": config["rms_norm_eps"],
            "max_seq_len": config["max_position_embeddings"], "n_parameters": weights.count()}


def attention(size):
    text, layer, head = ATTENTION
    ids, tokens = tokenized(text)
    found = trace(ids)
    width = size["head_dim"]
    kv_head = head // (size["n_heads"] // size["n_kv_heads"])
    queries = [row[head * width:(head + 1) * width] for row in found[f"layers.{layer}.q_rope"]]
    keys = [row[kv_head * width:(kv_head + 1) * width] for row in found[f"layers.{layer}.k_rope"]]
    return {"text": text, "layer": layer, "head": head, "ids": ids, "tokens": tokens,
            "scores": [[dot(query, key) / math.sqrt(width) for key in keys] for query in queries],
            "probabilities": found[f"layers.{layer}.attn_probs"][head]}, found


def rms_norm(found, tokens, weights, size):
    token, layer = ROW
    row = found[f"layers.{layer - 1}.mlp_residual"][tokens.index(token)]
    return {"token": token, "layer": layer, "x": row[:SHOWN], "rms": math.sqrt(rms(row) ** 2 + size["eps"]),
            "weight": weights[f"model.layers.{layer}.input_layernorm.weight"][:SHOWN],
            "y": found[f"layers.{layer}.attn_norm"][tokens.index(token)][:SHOWN]}


def stream(weights, size):
    """The last row after each block, and what the head would make of it there."""
    ids, tokens = tokenized(STREAM)
    found = trace(ids)
    table, norm = weights["model.embed_tokens.weight"], weights["model.norm.weight"]
    steps = []
    names = [("embedding", "embedding")]
    for layer in range(size["n_layers"]):
        names += [(f"layer {layer}: attention", f"layers.{layer}.attn_residual"),
                  (f"layer {layer}: feed-forward", f"layers.{layer}.mlp_residual")]
    for name, tensor in names:
        row = found[tensor][-1]
        scaled = [value * factor / math.sqrt(rms(row) ** 2 + size["eps"]) for value, factor in zip(row, norm)]
        shares = softmax([dot(scaled, entry) for entry in table])
        best = shares.index(max(shares))
        steps.append({"name": name, "rms": rms(row), "guess": shown(text_of([best])), "probability": shares[best]})
    logits = found["logits"][-1]
    likeliest = sorted(range(len(logits)), key=lambda i: -logits[i])[:5]
    shares = softmax(logits)
    return {"text": STREAM, "ids": ids, "tokens": tokens, "row": found["embedding"][-1][:6], "steps": steps,
            "likeliest": [{"token": shown(text_of([i])), "id": i, "logit": logits[i], "probability": shares[i]}
                          for i in likeliest]}


def next_token():
    ids, _ = tokenized(NEXT)
    logits = trace(ids)["logits"][-1]
    likeliest = sorted(range(len(logits)), key=lambda i: -logits[i])[:8]
    return {"text": NEXT, "ids": ids, "tokens": [shown(text_of([i])) for i in likeliest],
            "logits": [logits[i] for i in likeliest],
            "at": [{"temperature": temperature, "shares": [softmax(logits, temperature)[i] for i in likeliest]}
                   for temperature in TEMPERATURES]}


def story():
    weights = Tensors(ROOT / MODEL / "model.safetensors")
    size = sizes(weights)
    seen, found = attention(size)
    flow = stream(weights, size)
    size["ids"] = " ".join(map(str, flow["ids"]))
    prompt, continued = flow["tokens"], ["time", ",", "there"]
    return {
        "sizes": size, "attention": seen, "rms_norm": rms_norm(found, seen["tokens"], weights, size), "stream": flow,
        "next": next_token(), "cache": {"tokens": [*prompt, *continued], "n_prompt": len(prompt)},
        "q8_0": {"tensor": BLOCK, "columns": size["dim"], "x": weights[BLOCK][0][:32]},
    }


def rounded(value):
    """Six digits: what another processor computes differs in the seventh."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, list):
        return [rounded(one) for one in value]
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return value


def as_json(data):
    entries = (f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in rounded(data).items())
    return "{\n" + ",\n".join(entries) + "\n}\n"
