"""Trains models/chat: dialogues in the ChatML template, the loss on the assistant's turns, and a
small weight on the user's, which are the same kind of English and would be wasted otherwise."""

import argparse
import random
from pathlib import Path

import torch
from tokenizers import Tokenizer

import corpus
import tokenizer
import trainer
from llama import Config, Llama

START, END, TEXT_END = "<|im_start|>", "<|im_end|>", "<|endoftext|>"
TEMPLATE = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + "
            "message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}"
            "{% if add_generation_prompt %}{{'<|im_start|>assistant\\n'}}{% endif %}")
SYSTEM = ["You are a friendly chat partner.", "You are a helpful assistant.",
          "Be friendly and answer briefly.", "You like to talk with people."]
# Shares of the training tokens, and how often a dialogue starts with its second speaker.
SHARES = {"self_dialogue": (0.50, 0.5), "synthetic_persona_chat": (0.38, 0.5),
          "taskmaster4": (0.06, 0.0), "chatterbot": (0.06, 0.0)}


def make_tokenizer(sources, out, size):
    path = Path(out) / "tokenizer.json"
    if not path.exists():
        texts = [turn for dialogues in sources.values() for d in dialogues for turn in d]
        texts += ["user\n", "assistant\n", "system\n"] * 10000  # a token each
        t = tokenizer.byte_level(texts, size, [TEXT_END, START, END])
        tokenizer.save(t, out, {
            "bos_token": None, "eos_token": END, "pad_token": TEXT_END, "unk_token": None,
            "additional_special_tokens": [START, END], "chat_template": TEMPLATE,
            "model_max_length": 512})
    return Tokenizer.from_file(str(path))


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


def examples(t, dialogues, second_first, user_weight, context, seed):
    r, pairs = random.Random(seed), []
    for turns in dialogues:
        both = [turns, turns[1:]] if second_first and len(turns) > 2 else [turns]
        for d in both:
            system = r.choice(SYSTEM) if r.random() < 0.15 else None
            while d[1:]:
                n = len(d)
                ids, weights = chat_ml(t, d, user_weight, system)
                while len(ids) > context + 1 and n > 2:  # the rest is a dialogue of its own
                    n -= 2
                    ids, weights = chat_ml(t, d[:n], user_weight, system)
                pairs.append((ids[:context + 1], weights[:context + 1]))
                d = d[n:]
    return trainer.Examples(pairs)


def main():
    a = argparse.ArgumentParser(description=__doc__)
    trainer.add_arguments(a)
    a.add_argument("--out", default="build/train/chat")
    a.add_argument("--user-weight", type=float, default=0.3)
    a.add_argument("--vocab", type=int, default=4096)
    a.add_argument("--dim", type=int, default=192)
    a.add_argument("--ffn", type=int, default=512)
    a.add_argument("--layers", type=int, default=5)
    a.add_argument("--heads", type=int, default=4)
    a.add_argument("--kv-heads", type=int, default=2)
    a.add_argument("--context", type=int, default=512)
    o = a.parse_args()
    torch.set_num_threads(o.threads)
    torch.manual_seed(o.seed)
    dialogues, held_out = corpus.dialogues(o.data)
    t = make_tokenizer(dialogues, o.out, o.vocab)
    sources, shares = [], []
    for k, (name, (share, second)) in enumerate(SHARES.items()):
        e = examples(t, dialogues[name], second > 0, o.user_weight, o.context, o.seed + k)
        print(f"{name}: {len(e)} examples, {len(e.ids) / 1e6:.2f} M tokens")
        sources.append(trainer.Shuffled(e, o.seed + k))
        shares.append(share)
    model = Llama(Config(t.get_vocab_size(), o.dim, o.ffn, o.layers, o.heads, o.kv_heads,
                         o.context))
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.3f} M parameters", flush=True)
    test = examples(t, held_out, False, 0.0, o.context, o.seed)

    @torch.no_grad()
    def evaluate(m):
        """Nats a token of the assistant's turns in dialogues held out."""
        nats = count = 0.0
        for x, y, w in trainer.micro_batches([test[i] for i in range(len(test))], o.micro):
            with torch.autocast("cpu", torch.bfloat16):
                logits = m(x)
            loss = torch.nn.functional.cross_entropy(
                logits.float().flatten(0, 1), y.flatten(), reduction="none")
            nats += (loss * w.flatten()).sum().item()
            count += w.sum().item()
        return {"held_out_nats": round(nats / count, 4)}

    trainer.run(model, trainer.Mixture(sources, shares), o, evaluate)


if __name__ == "__main__":
    main()
