"""Ten stories of a model, in Markdown for its card. For models/chat, the exam's answers are used (exam/exam.py)."""

import argparse

import torch

from generate import Folder


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("folder")
    a.add_argument("--count", type=int, default=10)
    a.add_argument("--temperature", type=float, default=0.8)
    a.add_argument("--top-k", type=int, default=0)
    a.add_argument("--top-p", type=float, default=0.95)
    a.add_argument("--seed", type=int, default=7)
    o = a.parse_args()
    torch.set_num_threads(1)
    f = Folder(o.folder)
    start = f.tokenizer.token_to_id("<|start_story|>")
    told = f.continue_all([start], o.count, 500, o.temperature, o.top_k, o.top_p, o.seed)
    for i, (ids, ended) in enumerate(told):
        text = f.text(ids).strip().replace("\n", "\n> ")
        print(f"{i + 1}. ({len(ids)} tokens, {'ends' if ended else 'cut by the context'})\n")
        print(f"> {text}\n")


if __name__ == "__main__":
    main()
