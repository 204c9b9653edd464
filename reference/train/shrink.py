"""Cuts a small model out of a larger one: models/chat starts as a part of SmolLM2-135M-Instruct.

    python reference/train/shrink.py build/train/smollm2 --layers 12 --ffn 768 --vocab 6144

Three cuts, each measured on the training dialogues:
vocabulary   keeps the tokens that the dialogues and the template use most, their parts in merges, and single bytes
layers       repeatedly removes the layer without which the loss is smallest
MLP          in each layer, keeps the neurons with the largest mean |activation| x norm of the outgoing weights

The result writes nonsense until train_chat.py --init has trained it.

With --trained FOLDER only the vocabulary is cut. The layers are those of an earlier run, and so are the embeddings of
the tokens that it had. The other tokens have the larger model's embeddings, multiplied with a matrix. The matrix is
fitted to the tokens that both models have.
"""

import argparse
import json
import random
from collections import Counter
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from tokenizers import Tokenizer

import tokenizer
import trainer
from llama import Config, Llama, read_folder
from train_chat import END, START, TEXT_END, examples, read_dialogues, read_start, tokenizer_config


def kept_tokens(data, t, dialogues, size):
    """`size` pieces of the new vocabulary, in the order of the old ids, the special ones first."""
    vocab = data["model"]["vocab"]
    made_of = {}  # {piece: the two pieces that it is merged from}
    for merge in data["model"]["merges"]:
        left, right = merge.split(" ") if isinstance(merge, str) else merge
        made_of.setdefault(left + right, (left, right))
    counts = Counter()
    for texts in dialogues.values():
        for encoding in t.encode_batch(texts):
            counts.update(encoding.tokens)
    special = [TEXT_END, START, END]
    kept = set(special) | {p for p in vocab if p not in made_of and len(p) == 1}

    def closure(piece):
        return {piece} if piece in kept or piece not in made_of else (
            {piece} | closure(made_of[piece][0]) | closure(made_of[piece][1]))

    # After the pieces that occur: the most frequent ones in the larger model's own training text.
    ranking = [p for p, _ in counts.most_common()] + sorted(vocab, key=vocab.get)
    for piece in ranking:
        if piece in vocab and piece not in kept:
            more = closure(piece) - kept
            if len(kept) + len(more) <= size:
                kept |= more
    used = sum(counts.values())
    print(f"vocabulary: {len(kept)} of {len(vocab)} pieces, "
          f"{sum(n for p, n in counts.items() if p in kept) / used:.2%} of the dialogues' tokens", flush=True)
    return special + sorted(kept - set(special), key=vocab.get)


def cut_tokenizer(data, kept):
    ids = {piece: i for i, piece in enumerate(kept)}
    data["model"]["vocab"] = ids
    merges = []
    for merge in data["model"]["merges"]:
        left, right = merge.split(" ") if isinstance(merge, str) else merge
        if left in ids and right in ids and left + right in ids:
            merges.append(merge)
    data["model"]["merges"] = merges
    data["added_tokens"] = [{**a, "id": ids[a["content"]]} for a in data["added_tokens"] if a["content"] in ids]
    return data


@torch.no_grad()
def loss_of(model, batches):
    total = weight = 0.0
    for x, y, w in batches:
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(x)
        loss = F.cross_entropy(logits.float().flatten(0, 1), y.flatten(), reduction="none")
        total += (loss * w.flatten()).sum().item()
        weight += w.sum().item()
    return total / weight


def cut_layers(model, batches, number):
    layers = list(enumerate(model.model.layers))
    while len(layers) > number:
        found = []
        for i in range(len(layers)):
            model.model.layers = torch.nn.ModuleList(m for _, m in layers[:i] + layers[i + 1:])
            found.append((loss_of(model, batches), i))
        loss, i = min(found)
        print(f"without layer {layers[i][0]}: loss {loss:.3f}", flush=True)
        del layers[i]
    model.model.layers = torch.nn.ModuleList(m for _, m in layers)
    print("layers", [number for number, _ in layers])


@torch.no_grad()
def cut_mlp(model, batches, ffn):
    sums = {}

    def watch(name):
        def hook(module, inputs):
            sums[name] = sums.get(name, 0) + inputs[0].float().abs().sum((0, 1))
        return hook

    hooks = [layer.mlp.down_proj.register_forward_pre_hook(watch(i))
             for i, layer in enumerate(model.model.layers)]
    loss_of(model, batches)
    for hook in hooks:
        hook.remove()
    for i, layer in enumerate(model.model.layers):
        importance = sums[i] * layer.mlp.down_proj.weight.norm(dim=0)
        best = importance.topk(ffn).indices.sort().values
        mlp = layer.mlp
        for part in (mlp.gate_proj, mlp.up_proj):
            part.weight = torch.nn.Parameter(part.weight[best].clone())
        mlp.down_proj.weight = torch.nn.Parameter(mlp.down_proj.weight[:, best].clone())
    print(f"MLPs of {ffn}: loss {loss_of(model, batches):.3f}", flush=True)


@torch.no_grad()
def trained_table(trained, folder, kept, larger):
    """The embeddings of the kept tokens [kept, dim]: those in `trained`, else the larger model's, mapped by least
    squares."""
    ids = json.loads((Path(folder) / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    common = [i for i, p in enumerate(kept) if p in ids]
    rows = trained[[ids[kept[i]] for i in common]]
    mapped = larger @ torch.linalg.lstsq(larger[common], rows).solution
    near = F.cosine_similarity(mapped[common], rows).mean()
    print(f"{len(kept) - len(common)} tokens are new; those in common are mapped with a cosine of {near:.2f}")
    mapped[common] = rows
    return mapped


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("model", help="folder of the larger model")
    a.add_argument("--trained", help="folder of an earlier run of train_chat.py")
    a.add_argument("--out", default="build/train/chat-start")
    a.add_argument("--dialogues", default="build/train/dialogues", help="what dialogues.py has made")
    a.add_argument("--vocab", type=int, default=6144)
    a.add_argument("--layers", type=int, default=12)
    a.add_argument("--ffn", type=int, default=768)
    a.add_argument("--context", type=int, default=1024)
    a.add_argument("--measure", type=int, default=3, help="dialogues of each source to measure the loss on")
    a.add_argument("--threads", type=int, default=2)
    o = a.parse_args()
    torch.set_num_threads(o.threads)
    out = Path(o.out)
    out.mkdir(parents=True, exist_ok=True)
    dialogues = {name: train for name, (train, _) in read_dialogues(o.dialogues).items()}
    data = json.loads((Path(o.model) / "tokenizer.json").read_text(encoding="utf-8"))
    old = Tokenizer.from_file(str(Path(o.model) / "tokenizer.json"))
    roles = ["user\n", "assistant\n"]
    sample = {name: [text for d in rows[:8000] for i, turn in enumerate(d["turns"]) for text in (roles[i % 2], turn)]
              for name, rows in dialogues.items()}
    old_ids = dict(data["model"]["vocab"])
    kept = kept_tokens(data, old, sample, o.vocab)
    data = cut_tokenizer(data, kept)
    (out / "tokenizer.json").write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
    tokenizer.save_config(out, tokenizer_config(o.context))
    t = Tokenizer.from_file(str(out / "tokenizer.json"))

    model = read_folder(o.model)
    table = model.model.embed_tokens.weight[[old_ids[p] for p in kept]]
    if o.trained:
        model = read_start(o.trained)
        table = trained_table(model.model.embed_tokens.weight, o.trained, kept, table)
    model.model.embed_tokens.weight = torch.nn.Parameter(table.clone())
    rows = []
    for name, train in dialogues.items():
        picked = random.Random(name).sample(train, o.measure)
        e = examples(t, picked, 0.3, o.context)
        rows += [e[i] for i in range(len(e)) if len(e[i][0]) <= 300]
    batches = list(trainer.micro_batches(rows, 4096))
    print(f"{sum(x.numel() for x, _, _ in batches)} tokens: loss {loss_of(model, batches):.3f}", flush=True)
    if not o.trained:
        cut_layers(model, batches, o.layers)
        cut_mlp(model, batches, o.ffn)

    c = model.c
    c = Config(len(kept), c.dim, o.ffn, o.layers, c.heads, c.kv_heads, o.context, c.eps, c.rope_theta)
    small = Llama(c)
    small.load_state_dict(model.state_dict())
    save_file({k: v.contiguous() for k, v in small.state_dict().items()}, out / "model.safetensors",
              metadata={"format": "pt"})
    (out / "config.json").write_text(json.dumps(
        c.to_hf(kept.index(TEXT_END), kept.index(END), kept.index(TEXT_END), "float32"), indent=2) + "\n")
    print(f"{out}: {sum(p.numel() for p in small.parameters()) / 1e6:.2f} M parameters")


if __name__ == "__main__":
    main()
