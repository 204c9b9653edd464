"""The tokenizers library's results for texts, as lines of a cases.jsonl (see
make_tokenizers.py)."""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import Tokenizer

from tokenizer_parts import Json


def around(ids: list[int], with_special: list[int]) -> tuple[list[int], list[int]]:
    """The ids that the post-processor added before and after `ids`."""
    for n in range(len(with_special) - len(ids) + 1):
        if with_special[n : n + len(ids)] == ids:
            return with_special[:n], with_special[n + len(ids) :]
    raise SystemExit(f"{ids} are not within {with_special}")


def cases(tokenizer: Tokenizer, texts: list[str]) -> list[Json]:
    made = []
    for text in texts:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        case = {"text": text, "ids": ids}
        tokenizer.encode_special_tokens = True
        plain = tokenizer.encode(text, add_special_tokens=False).ids
        tokenizer.encode_special_tokens = False
        before, after = around(ids, tokenizer.encode(text).ids)
        decoded = tokenizer.decode(ids, skip_special_tokens=False)
        case |= {"plain": plain} if plain != ids else {}
        case |= {"before": before} if before else {}
        case |= {"after": after} if after else {}
        case |= {"decoded": decoded} if decoded != text else {}
        made.append(case)
    return made


def write_lines(path: Path, values: list[Json]) -> None:
    path.write_text(
        "".join(
            json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n" for value in values
        )
    )
