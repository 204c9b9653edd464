"""Sampling from a trained folder, in batches, as the engine samples: temperature, then top-k,
then top-p; a story or a turn ends at any of the end tokens."""

import json
from pathlib import Path

import torch
from tokenizers import Tokenizer

from llama import read_folder


def pick(logits, temperature, top_k, top_p, generator):
    """One id per row of logits [batch, vocab]."""
    if temperature == 0:
        return logits.argmax(-1, keepdim=True)
    p, order = (logits / temperature).softmax(-1).sort(dim=-1, descending=True, stable=True)
    if top_k:
        p[:, top_k:] = 0
        p /= p.sum(-1, keepdim=True)
    p[p.cumsum(-1) - p >= top_p] = 0
    total = p.cumsum(-1)
    u = torch.rand(len(p), 1, generator=generator) * total[:, -1:]
    at = torch.searchsorted(total, u, right=True).clamp_(max=p.shape[1] - 1)
    return order.gather(1, at)


def read_tokenizer(path):
    """Reads a tokenizer.json. If a special token is missing in the vocabulary, the library gives it a new id, whatever
    its own is: `./stage convert` writes such files from GGUF."""
    t = json.loads(path.read_text())
    for token in t["added_tokens"]:
        t["model"]["vocab"].setdefault(token["content"], token["id"])
    return Tokenizer.from_str(json.dumps(t))


class Folder:
    def __init__(self, path):
        path = Path(path)
        self.model = read_folder(path)
        self.tokenizer = read_tokenizer(path / "tokenizer.json")
        config = path / "generation_config.json"
        config = config if config.exists() else path / "config.json"  # a converted GGUF file
        end = json.loads(config.read_text())["eos_token_id"]
        self.ends = set(end if isinstance(end, list) else [end])

    def continue_all(self, prompt, count, *options, **more):
        """`count` continuations of one prompt (ids): (ids without the end token, ended)."""
        return self.continue_each([prompt] * count, *options, **more)

    @torch.no_grad()
    def continue_each(self, prompts, max_tokens, temperature, top_k=0, top_p=1.0, seed=7):
        """One continuation of each prompt, as above. All rows start at position 0: if a prompt is longer than the
        shortest one, its own ids are fed, one at a time, before sampling starts."""
        g = torch.Generator().manual_seed(seed)
        shortest, longest = min(map(len, prompts)), max(map(len, prompts))
        max_tokens = min(max_tokens, self.model.c.context - longest)
        cache = self.model.new_cache(len(prompts), longest + max_tokens, torch.float32)
        x = torch.tensor([p[:shortest] for p in prompts])
        out, ended = [[] for _ in prompts], [False] * len(prompts)
        for past in range(shortest, longest + max_tokens):
            logits = self.model(x, cache, past - x.shape[1])[:, -1]
            x = pick(logits, temperature, top_k, top_p, g)
            for i, id in enumerate(x[:, 0].tolist()):
                if past < len(prompts[i]):
                    x[i] = prompts[i][past]
                elif not ended[i] and len(out[i]) < max_tokens:
                    ended[i] = id in self.ends
                    out[i] += [] if ended[i] else [id]
            if all(e or len(o) == max_tokens for e, o in zip(ended, out)):
                break
        return list(zip(out, ended))

    def text(self, ids):
        return self.tokenizer.decode(ids, skip_special_tokens=False)
