"""Writes a checkpoint of train_story.py or train_chat.py as a Hugging Face folder with its loss plot. The weights are
BF16; of a model that was trained with --in-4-bits, the matrices of the layers have 4 bits."""

import argparse
import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

from llama import GROUP, Config, packed

AVERAGE = ":average"
STARTS = {"story": ("<|start_story|>", ["<|end_story|>"], None),
          "chat": ("<|im_start|>", ["<|im_end|>", "<|endoftext|>"], "<|endoftext|>")}

# The description of llama.packed()'s format in compressed-tensors' terms.
IN_4_BITS = {
    "quant_method": "compressed-tensors", "format": "pack-quantized", "quantization_status": "compressed",
    "ignore": ["lm_head"],
    "config_groups": {"group_0": {"targets": ["Linear"], "weights": {
        "num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": GROUP}}}}


def plot(log, path, tests):
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "loss"
    import matplotlib.pyplot as plt
    entries = [json.loads(x) for x in log.read_text().splitlines()]
    train = [e for e in entries if "smooth" in e]
    train = train[::max(1, len(train) // 200)]
    at = {e["step"]: e["tokens"] / 1e6 for e in entries if "tokens" in e}
    figure, axes = plt.subplots(figsize=(6, 3))
    axes.plot([e["tokens"] / 1e6 for e in train], [e["smooth"] for e in train], lw=1,
              label="training loss, nats a token")
    held = [e for e in entries if "evaluation" in e and e["step"] in at]
    for name in (held[0]["evaluation"] if held else []):
        axes.plot([at[e["step"]] for e in held], [e["evaluation"][name] for e in held],
                  "o-", ms=3, lw=1, label=name.replace("_", " "))
    axes.set_xlabel("million tokens")
    axes.set_ylim(tests)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def folder_of(run):
    return Path(run.removesuffix(AVERAGE))


def mean(runs):
    """The mean of the weights of some runs; RUN:average is a run's moving average."""
    total = {}
    for run in runs:
        saved = torch.load(folder_of(run) / "checkpoint.pt", weights_only=False)
        for name, weight in saved["average" if run.endswith(AVERAGE) else "model"].items():
            total[name] = total.get(name, 0.0) + weight.float()
    return {name: weight / len(runs) for name, weight in total.items()}


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("kind", choices=list(STARTS))
    a.add_argument("runs", nargs="+", metavar="run", help="the training's --out folder; RUN:average is the moving average of its "
                   "weights. Of several, the mean is written, with the tokenizer and the plot of the last one")
    a.add_argument("folder", help="the model folder to write")
    o = a.parse_args()
    run, folder = folder_of(o.runs[-1]), Path(o.folder)
    folder.mkdir(parents=True, exist_ok=True)
    s = torch.load(run / "checkpoint.pt", weights_only=False)
    p = s["options"]
    state = {}
    for name, weight in mean(o.runs).items():
        if p["in_4_bits"] and name.endswith("_proj.weight"):
            state |= packed(name, weight)
        else:
            state[name] = weight.to(torch.bfloat16).contiguous()
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    t = Tokenizer.from_file(str(run / "tokenizer.json"))
    start, ends, pad = STARTS[o.kind]
    ends = [t.token_to_id(x) for x in ends]
    c = Config(**p["config"])
    bos, pad = t.token_to_id(start), t.token_to_id(pad) if pad else None
    if o.kind == "chat":
        bos = t.token_to_id("<|endoftext|>")  # config.json has this field; the token is unused
    config = c.to_hf(bos, ends[0], pad)
    if p["in_4_bits"]:
        config["quantization_config"] = IN_4_BITS
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    generation = {"_from_model_config": True, "bos_token_id": bos,
                  "eos_token_id": ends if len(ends) > 1 else ends[0]}
    if pad is not None:
        generation["pad_token_id"] = pad
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(run / name, folder / name)
    plot(run / "log.jsonl", folder / "loss.svg", (0, None))
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{folder}: step {s['done']['step']}, {s['done']['tokens']:,} tokens, "
          f"{size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
