"""Make tests/data/perplexity: the surprisal of each token for a tiny model, window by window.

The windows are those of src/inspection/perplexity.h, the model is llama.py in f64.
"""

from __future__ import annotations

from pathlib import Path

import torch

import dump
from definitions import ORACLE
from llama import Config, Parameters, forward
from seed import random_for

MODEL = "llama-gqa2"
LENGTH = 61  # longer than every window, and a multiple of no stride
WINDOWS = ((8, 4), (16, 15), (16, 1), (40, 13), (64, 32))  # context, stride


def surprisals(logits_of, ids: torch.Tensor, context: int, stride: int) -> torch.Tensor:
    """[len(ids) - 1]: -ln p of each token except the first. logits_of(ids [n]) gives [n, vocab]."""
    scored: list[torch.Tensor] = []
    done = 1  # the first token that is not scored yet
    for begin in range(0, len(ids), stride):
        end = min(begin + context, len(ids))
        logs = torch.log_softmax(logits_of(ids[begin:end]).double(), -1)
        targets = torch.arange(done, end)
        scored.append(-logs[targets - 1 - begin, ids[targets]])
        done = end
        if end == len(ids):
            break
    return torch.cat(scored)


def make_perplexity(folder: Path, models: Path) -> None:
    config, parameters = Config.load(models / MODEL), Parameters(models / MODEL)
    random = random_for("perplexity")
    ids = torch.from_numpy(random.integers(0, config.vocab_size, LENGTH))

    def logits_of(window: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return forward(config, parameters, window, ORACLE)["logits"]

    tensors = {"ids": ids}
    for context, stride in WINDOWS:
        tensors[f"nats.{context}.{stride}"] = surprisals(logits_of, ids, context, stride)
    folder.mkdir(parents=True, exist_ok=True)
    dump.write(folder / "windows.safetensors", tensors, {"model": MODEL})
