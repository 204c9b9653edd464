"""The candidates of the exam: a folder with a Llama, or the echo."""

import json
from pathlib import Path

import jinja2

from generate import Folder


class Echo:
    """Repeats the user's text. A part of the exam that it passes measures nothing."""

    def answer_all(self, conversations, max_tokens):
        return [(f"You said: {c[-1]['content']}", True) for c in conversations]


class ChatModel:
    def __init__(self, path):
        self.folder = Folder(path)
        self.model, self.tokenizer = self.folder.model, self.folder.tokenizer
        config = json.loads((Path(path) / "tokenizer_config.json").read_text())
        self.template = jinja2.Environment().from_string(config["chat_template"])
        self.end = config["eos_token"]

    def prompt(self, messages):
        return self.template.render(messages=messages, add_generation_prompt=True)

    def encode(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def answer_all(self, conversations, max_tokens, batch=32):
        """(answer at temperature 0, whether it ended) for each list of messages."""
        prompts = [self.encode(self.prompt(c)) for c in conversations]
        order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
        answers = [None] * len(prompts)
        for b in range(0, len(order), batch):
            rows = order[b:b + batch]
            found = self.folder.continue_each([prompts[i] for i in rows], max_tokens, 0)
            for i, (ids, ended) in zip(rows, found):
                answers[i] = (self.tokenizer.decode(ids).strip(), ended)
        return answers


def open_speaker(name):
    return Echo() if name == "echo" else ChatModel(name)
