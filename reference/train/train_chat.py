"""Trains models/chat on dialogues in the ChatML template. The loss counts the assistant's turns, and with a small
weight the user's, which are the same kind of English."""

import argparse
import json
import math
import random
import shutil
from pathlib import Path

import torch
from tokenizers import Tokenizer

import tokenizer
import trainer
from export import folder_of, mean
from llama import Config, Llama, read_folder

START, END, TEXT_END = "<|im_start|>", "<|im_end|>", "<|endoftext|>"
TEMPLATE = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + "
            "message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}"
            "{% if add_generation_prompt %}{{'<|im_start|>assistant\\n'}}{% endif %}")
# {source: (share of the training tokens, loss weight of the user's turns)}: a low weight if these are templates, a
# higher one if people wrote them.
SHARES = {"written": (0.60, 0.1), "rules": (0.26, 0.1), "stories": (0.05, 0.1), "glosses": (0.01, 0.1),
          "persona": (0.06, 0.3), "taskmaster": (0.02, 0.3)}
HELD_OUT = 100  # examples per source for measuring the training


def read_dialogues(folder):
    """{source: (dialogues to train on, dialogues held out)}; a dialogue is {"system", "turns"}."""
    found = {}
    for name in SHARES:
        path = Path(folder) / f"{name}.jsonl"
        if path.exists():
            rows = [json.loads(line) for line in path.open(encoding="utf-8")]
            random.Random(name).shuffle(rows)
            found[name] = rows[:-HELD_OUT], rows[-HELD_OUT:]
    return found


def tokenizer_config(context):
    return {"bos_token": None, "eos_token": END, "pad_token": TEXT_END, "unk_token": None,
            "additional_special_tokens": [START, END], "chat_template": TEMPLATE, "model_max_length": context}


def make_tokenizer(sources, out, size, context):
    path = Path(out) / "tokenizer.json"
    if not path.exists():
        texts = [turn for dialogues, _ in sources.values() for d in dialogues for turn in d["turns"]]
        texts += [d["system"] for dialogues, _ in sources.values() for d in dialogues if d["system"]]
        texts += ["user\n", "assistant\n", "system\n"] * 10000  # so that each becomes one token
        t = tokenizer.byte_level(texts, size, [TEXT_END, START, END])
        tokenizer.save(t, out, tokenizer_config(context))
    return Tokenizer.from_file(str(path))


def take_tokenizer(folder, out):
    Path(out).mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(Path(folder) / name, Path(out) / name)
    return Tokenizer.from_file(str(Path(out) / "tokenizer.json"))


def read_start(runs):
    """The initial model: a folder from shrink.py, or the mean of the weights of earlier trainings."""
    if not (folder_of(runs[0]) / "checkpoint.pt").exists():
        return read_folder(runs[0])
    saved = torch.load(folder_of(runs[0]) / "checkpoint.pt", weights_only=False)
    model = Llama(Config(**saved["options"]["config"]))
    model.load_state_dict(mean(runs))
    return model


def chat_ml(t, turns, user_weight, system=None):
    """Ids and loss weights of one dialogue, the user's turn first."""
    start, end = t.token_to_id(START), t.token_to_id(END)
    newline = t.encode("\n").ids
    messages = [("system", system)] if system else []
    messages += [("assistant" if i % 2 else "user", text) for i, text in enumerate(turns)]
    ids, weights = [], []
    for role, text in messages:
        head = [start] + t.encode(role + "\n").ids
        body = t.encode(text).ids + [end]
        weight = {"system": 0.0, "user": user_weight, "assistant": 1.0}[role]
        ids += head + body + newline
        weights += [0.0] * len(head) + [weight] * len(body) + [0.0] * len(newline)
    return ids, weights


def examples(t, dialogues, user_weight, context):
    """Each dialogue is one example. If one is too long, its rest is another example."""
    pairs = []
    for dialogue in dialogues:
        turns = dialogue["turns"]
        while turns[1:]:
            n = len(turns)
            ids, weights = chat_ml(t, turns, user_weight, dialogue["system"])
            while len(ids) > context + 1 and n > 2:
                n -= 2
                ids, weights = chat_ml(t, turns[:n], user_weight, dialogue["system"])
            pairs.append((ids[:context + 1], weights[:context + 1]))
            turns = turns[n:]
    return trainer.Examples(pairs)


def main():
    a = argparse.ArgumentParser(description=__doc__)
    trainer.add_arguments(a)
    a.add_argument("--out", default="build/train/chat")
    a.add_argument("--dialogues", default="build/train/dialogues", help="what dialogues.py has made")
    a.add_argument("--init", nargs="+", metavar="RUN", help="folder of shrink.py or of an earlier run: its weights, sizes and "
                   "tokenizer replace the next seven options. RUN:average is a run's moving average; of several, the mean is taken")
    a.add_argument("--vocab", type=int, default=6144)
    a.add_argument("--dim", type=int, default=256)
    a.add_argument("--ffn", type=int, default=704)
    a.add_argument("--layers", type=int, default=8)
    a.add_argument("--heads", type=int, default=4)
    a.add_argument("--kv-heads", type=int, default=2)
    a.add_argument("--context", type=int, default=1024)
    a.add_argument("--row", type=int, help="most tokens of an example, by default the context: short rows train faster")
    o = a.parse_args()
    torch.set_num_threads(o.threads)
    torch.manual_seed(o.seed)
    dialogues = read_dialogues(o.dialogues)
    if o.init:
        t = take_tokenizer(folder_of(o.init[0]), o.out)
        model = read_start(o.init).train()
        o.context = model.c.context
    else:
        t = make_tokenizer(dialogues, o.out, o.vocab, o.context)
        model = Llama(Config(t.get_vocab_size(), o.dim, o.ffn, o.layers, o.heads, o.kv_heads, o.context))
    o.config = vars(model.c)
    sources, shares, test = [], [], {}
    for k, (name, (train, held_out)) in enumerate(dialogues.items()):
        share, user_weight = SHARES[name]
        e = examples(t, train, user_weight, o.row or o.context)
        print(f"{name}: {len(e)} examples, {len(e.ids) / 1e6:.2f} M tokens")
        sources.append(trainer.Shuffled(e, o.seed + k))
        shares.append(share)
        said = sum(len(text.encode()) + 1 for d in held_out for text in d["turns"][1::2])
        test[name] = examples(t, held_out, 0.0, o.context), said
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.3f} M parameters", flush=True)

    @torch.no_grad()
    def evaluate(m):
        """Bits per byte of the assistant's turns, including their end tokens, in the held-out dialogues of each
        source."""
        result = {}
        for name, (held_out, said) in test.items():
            nats = 0.0
            for x, y, w in trainer.micro_batches([held_out[i] for i in range(len(held_out))], o.micro):
                with torch.autocast("cpu", torch.bfloat16):
                    logits = m(x)
                loss = torch.nn.functional.cross_entropy(
                    logits.float().flatten(0, 1), y.flatten(), reduction="none")
                nats += (loss * w.flatten()).sum().item()
            result[name] = round(nats / math.log(2) / said, 4)
        return result

    trainer.run(model, trainer.Mixture(sources, shares), o, evaluate)


if __name__ == "__main__":
    main()
