"""Ten stories, or ten answers and the count of turns that end, in Markdown for the model card."""

import argparse
import json

import torch

from generate import Folder

OPENINGS = ["Hello!", "Hi, how are you?", "What is your name?", "What do you like to do for fun?",
            "What is your favorite movie?", "Do you like music?", "I have a dog named Max.",
            "Can I get a latte with oat milk, please?", "Tell me a joke",
            "Did you watch the game last night?"]


def stories(f, o):
    start = f.tokenizer.token_to_id("<|start_story|>")
    told = f.continue_all([start], o.count, 500, o.temperature, o.top_k, o.top_p, o.seed)
    for i, (ids, ended) in enumerate(told):
        text = f.text(ids).strip().replace("\n", "\n> ")
        print(f"{i + 1}. ({len(ids)} tokens, {'ends' if ended else 'cut by the context'})\n")
        print(f"> {text}\n")


def chat(f, o):
    t = f.tokenizer
    prompt = lambda q: t.encode(f"<|im_start|>user\n{q}<|im_end|>\n<|im_start|>assistant\n",
                                add_special_tokens=False).ids
    print("| opening | answer at temperature 0 | answer at temperature "
          f"{o.temperature}, seed {o.seed} |\n|---|---|---|")
    ended = total = 0
    for q in OPENINGS:
        (greedy, _), = f.continue_all(prompt(q), 1, 80, 0)
        sampled = f.continue_all(prompt(q), 10, 80, o.temperature, o.top_k, o.top_p, o.seed)
        ended += sum(e for _, e in sampled)
        total += len(sampled)
        cell = lambda ids: f.text(ids).strip().replace("|", "\\|").replace("\n", " ")
        print(f"| {q} | {cell(greedy)} | {cell(sampled[0][0])} |")
    print(f"\n{ended} of {total} sampled turns (ten for each opening) end within 80 tokens.")


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("kind", choices=["stories", "chat"])
    a.add_argument("folder")
    a.add_argument("--count", type=int, default=10)
    a.add_argument("--temperature", type=float, default=0.8)
    a.add_argument("--top-k", type=int, default=0)
    a.add_argument("--top-p", type=float, default=0.95)
    a.add_argument("--seed", type=int, default=7)
    o = a.parse_args()
    torch.set_num_threads(1)
    {"stories": stories, "chat": chat}[o.kind](Folder(o.folder), o)


if __name__ == "__main__":
    main()
