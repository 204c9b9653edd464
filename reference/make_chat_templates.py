"""Make the expected results of chat templates: the text and the ids of
transformers.apply_chat_template.

    build/venv/bin/python reference/make_chat_templates.py --tokenizers tests/data/tokenizers \
        --out tests/data/chat_templates

The templates are reference/chat_templates/NAME.jinja. They are written for this project in the
style of the models they are named after, with the same frames and the same Jinja features (loops,
slices, namespaces, macros, white space), but none is copied. OUT/conversations.json has the
conversations. OUT/NAME.json is one object: `tokenizer`, the one of tests/data/tokenizers that the
ids belong to; `added_tokens` to add to it, as in a tokenizer.json; `bos_token` and `eos_token`; and
`cases`, each with `conversation` (an index), `opening` (add_generation_prompt), and `text` and
`ids`, or `refused` if the template raises an error. Today is the 26th of July 2024.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import jinja2
from tokenizers import AddedToken, Tokenizer
from transformers import PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

from make_jinja import FixedClock

Json = dict[str, Any]
TEMPLATES = Path(__file__).resolve().parent / "chat_templates"


def said(*contents: str, system: str | None = None) -> list[Json]:
    """A question, an answer, a question ..."""
    roles = ("user", "assistant")
    messages = [{"role": roles[i % 2], "content": text} for i, text in enumerate(contents)]
    return ([{"role": "system", "content": system}] if system is not None else []) + messages


WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "How it is outside: sun, rain <or> snow & \"wind\"",
        "parameters": {
            "type": "object",
            "properties": {"town": {"type": "string"}, "days": {"type": "integer", "default": 1}},
            "required": ["town"],
        },
    },
}

# The `plain` ones are those that ./stage chat can have: an optional system prompt, then questions
# and answers in turn, whose contents do not spell special tokens.
CONVERSATIONS: list[Json] = [
    {"plain": True, "messages": said("Who are you?")},
    {"plain": True, "messages": said("Who are you?", system="Be brief.")},
    {"plain": True, "messages": said("Hi!", "Hello.", "And now?")},
    {"plain": True, "messages": said("Hi!", "Hello.", "And now?", system="You are a fox.\n")},
    {
        "plain": True,
        "messages": said(
            "  leading and trailing \n\n", "\n\nnew lines\n", "\n", "", " ", "ok", "1 + 1 = 2?",
            system=" \n\tin between ",
        ),
    },
    {
        "plain": True,
        "messages": said(
            "你好，世界", "Été 🙂, straße", "{{ 'x' }} {% if %} {# #}", system="Ünïcode"
        ),
    },
    {"plain": True, "messages": said("a", "<think>\nso\n</think>\n\nyes", "b", "</think>no", "c")},
    {"plain": True, "messages": said("a", system="")},
    {"plain": True, "messages": said("a", system="Short. /no_think")},
    {"plain": False, "messages": said("a", "b")},
    {"plain": False, "messages": said("a", "b", system="c")},
    {"plain": False, "messages": [{"role": "assistant", "content": "first"}]},
    {"plain": False, "messages": said("a") + said("b")},
    {"plain": False, "messages": said("a", "b") + [{"role": "system", "content": "late"}]},
    {"plain": False, "messages": said("How is it in Rome?"), "tools": [WEATHER]},
    {
        "plain": False,
        "messages": [
            *said("How is it in Rome?", system="Ask."),
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {
                        "type": "function",
                        "function": {"name": "weather", "arguments": {"town": "Rome", "days": 2}},
                    }
                ],
            },
            {"role": "tool", "content": "sun"},
            {"role": "tool", "content": "then rain"},
        ],
        "tools": [WEATHER, WEATHER],
    },
]

LLAMA_2 = {"tokenizer": "llama2", "bos_token": "<s>", "eos_token": "</s>", "added": []}
LLAMA_3 = {
    "tokenizer": "llama3",
    "bos_token": "<|begin_of_text|>",
    "eos_token": "<|eot_id|>",
    "added": ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
}
CHATML = {
    "tokenizer": "qwen2",
    "bos_token": None,
    "eos_token": "<|im_end|>",
    "added": ["<|im_start|>", "<|im_end|>"],
}
GEMMA = {
    "tokenizer": "llama2",
    "bos_token": "<bos>",
    "eos_token": "<eos>",
    "added": ["<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>", "<start_of_image>"],
}
MODELS: dict[str, Json] = {
    "llama-2": LLAMA_2,
    "llama-3": LLAMA_3,
    "llama-3.1": LLAMA_3,
    "mistral-v0.1": LLAMA_2,
    "mistral-v0.3": LLAMA_2
    | {"added": ["[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"]},
    "zephyr": LLAMA_2,
    "tinyllama": LLAMA_2,
    "gemma": GEMMA,
    "gemma-3": GEMMA,
    "phi-3": LLAMA_2
    | {
        "eos_token": "<|endoftext|>",
        "added": ["<|endoftext|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"],
        "rstrip": True,
    },
    "qwen-2.5": CHATML,
    "qwen-3": CHATML | {"text_tokens": ["<think>", "</think>", "<tool_call>", "</tool_call>"]},
    "smollm2": CHATML | {"tokenizer": "smollm"},
    "smollm3": CHATML | {"tokenizer": "llama3"},
    "minimind2": CHATML | {"tokenizer": "gpt2", "bos_token": "<|im_start|>"},
    "deepseek-r1-distill": {
        "tokenizer": "qwen2",
        "bos_token": "<｜begin▁of▁sentence｜>",
        "eos_token": "<｜end▁of▁sentence｜>",
        "added": [
            "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>",
        ],
        "text_tokens": ["<think>", "</think>"],
    },
    "command-r": {
        "tokenizer": "gpt2",
        "bos_token": "<BOS_TOKEN>",
        "eos_token": "<|END_OF_TURN_TOKEN|>",
        "added": [
            "<BOS_TOKEN>", "<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>",
            "<|SYSTEM_TOKEN|>", "<|USER_TOKEN|>", "<|CHATBOT_TOKEN|>",
        ],
    },
}


def added_tokens(model: Json) -> list[Json]:
    def token(content: str, special: bool, rstrip: bool) -> Json:
        return {
            "content": content, "single_word": False, "lstrip": False, "rstrip": rstrip,
            "normalized": False, "special": special,
        }  # fmt: skip

    special = [token(content, True, model.get("rstrip", False)) for content in model["added"]]
    return special + [token(content, False, False) for content in model.get("text_tokens", [])]


def with_tokens(tokenizer_json: Path, added: list[Json]) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer.from_file(str(tokenizer_json))
    for token in added:
        options = {key: value for key, value in token.items() if key != "content"}
        tokenizer.add_tokens([AddedToken(token["content"], **options)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def cases_of(name: str, tokenizer: PreTrainedTokenizerFast) -> list[Json]:
    cases = []
    for index, conversation in enumerate(CONVERSATIONS):
        for opening in (True, False):
            case: Json = {"conversation": index, "opening": opening}
            options = {"add_generation_prompt": opening, "tools": conversation.get("tools")}
            try:
                text = tokenizer.apply_chat_template(
                    conversation["messages"], tokenize=False, **options
                )
                ids = tokenizer.apply_chat_template(
                    conversation["messages"], tokenize=True, return_dict=False, **options
                )
                case |= {"text": text, "ids": ids}
            except (jinja2.TemplateError, TypeError) as refusal:
                case |= {"refused": type(refusal).__name__}
            cases.append(case)
    return cases


def make_chat_templates(folder: Path, tokenizers: Path) -> None:
    chat_template_utils.datetime = FixedClock
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "conversations.json").write_text(
        json.dumps(CONVERSATIONS, ensure_ascii=False, indent=1) + "\n"
    )
    for name, model in MODELS.items():
        added = added_tokens(model)
        tokenizer = with_tokens(tokenizers / model["tokenizer"] / "tokenizer.json", added)
        tokenizer.chat_template = (TEMPLATES / f"{name}.jinja").read_text()
        for kind in ("bos_token", "eos_token"):
            if model[kind] is not None:
                setattr(tokenizer, kind, model[kind])
        head = {
            "tokenizer": model["tokenizer"],
            "added_tokens": [
                {"id": tokenizer.convert_tokens_to_ids(token["content"])} | token for token in added
            ],
            "bos_token": model["bos_token"],
            "eos_token": model["eos_token"],
        }
        cases = ",\n".join(
            json.dumps(case, ensure_ascii=False) for case in cases_of(name, tokenizer)
        )
        with open(folder / f"{name}.json", "w") as out:
            out.write(json.dumps(head, ensure_ascii=False)[:-1] + f', "cases": [\n{cases}\n]}}\n')


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokenizers", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    make_chat_templates(args.out, args.tokenizers)
