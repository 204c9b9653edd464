"""Make small sentencepiece models that tests read, with the results of the sentencepiece library
for many texts, and Unigram tokenizers with those of the tokenizers library. make_tokenizers.py
calls this.

OUT/NAME/tokenizer.model or tokenizer.json and OUT/NAME/cases.jsonl, as in make_tokenizers.py.

Nothing here is trained by sentencepiece itself, because the last bits of its result depend on the
machine. The pieces are those of a BPE that the tokenizers library learns by counting; the scores of
a Unigram model are logarithms of counts, to four places. Only the charsmap is made by
sentencepiece, from rules.
"""

from __future__ import annotations

import base64
import io
import json
import math
import re
import tempfile
from collections import Counter
from pathlib import Path

import sentencepiece
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from sentencepiece_file import BPE, BYTE, CONTROL, UNIGRAM, UNKNOWN, UNUSED, USER_DEFINED
from sentencepiece_file import Piece, charsmap_of, model_file
from tokenizer_cases import cases, write_lines
from tokenizer_parts import BYTE_TOKENS, Json, added, metaspace, sequence, template
from tokenizer_texts import corpus, trials

MARK = "▁"
ALPHABET = 160  # characters
USER = ["<sep>", MARK * 2, "\n\n", "fox", "é"]


def learnt(name: str, n: int) -> list[str]:
    """The most frequent characters of a corpus, and parts of words in the order in which BPE learns
    them."""
    lines = list(corpus(name))
    counts = Counter("".join(lines))
    # Chosen here, because the library's choice between equally frequent ones is arbitrary.
    kept = sorted(counts, key=lambda character: (-counts[character], character))[:ALPHABET]
    others = dict.fromkeys(map(ord, counts.keys() - set(kept) - {" "}))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=n, show_progress=False)
    tokenizer.train_from_iterator([line.translate(others) for line in lines], trainer)
    ids = tokenizer.get_vocab()
    return sorted(ids, key=ids.__getitem__)


def logarithms(name: str, texts: list[str]) -> list[float]:
    lines = "\n".join(MARK + line.replace(" ", MARK) for line in corpus(name))
    counts = [max(lines.count(text), 1) for text in texts]
    return [round(math.log(count / sum(counts)), 4) for count in counts]


def charsmap() -> bytes:
    """Rules of all kinds: one character to one, to several, to a space, to nothing; several
    characters to one; a rule that is the beginning of another."""
    rules = {chr(0xFF21 + i): chr(ord("A") + i) for i in range(26)}
    rules |= {chr(0xFF41 + i): chr(ord("a") + i) for i in range(26)}
    rules |= {blank: " " for blank in ("\t", "\n", "\r", "\u00a0", "\u3000", "\u2003", "\r\n")}
    rules |= {"\u200b": "", "\x07": "", "ﬁ": "fi", "…": "...", "½": "1⁄2", "㎏": "kg"}
    rules |= {"e\u0301": "\u00e9", "A\u030a": "\u00c5", "\u212b": "\u00c5", "\u212a": "K"}
    rules |= {"①": "1", "②": "2 "}
    rules |= {"F": "f", "Fox": "hen", "ﷺ": "صلى الله عليه وسلم", "´": " \u0301"}
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        for old, new in rules.items():
            columns = (" ".join(f"{ord(c):X}" for c in text) for text in (old, new))
            file.write("\t".join(columns) + "\n")
        file.flush()
        made = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a b"]),
            model_writer=made,
            model_type="char",
            vocab_size=6,
            normalization_rule_tsv=file.name,
            minloglevel=2,
        )
    return charsmap_of(made.getvalue())


# --- sentencepiece models ---


def head(*user: str) -> list[Piece]:
    first = [Piece("<unk>", 0, UNKNOWN), Piece("<s>", 0, CONTROL), Piece("</s>", 0, CONTROL)]
    return first + [Piece(text, 0, USER_DEFINED) for text in user]


def bytes_of_all() -> list[Piece]:
    return [Piece(text, 0, BYTE) for text in BYTE_TOKENS]


def by_rank(texts: list[str]) -> list[Piece]:
    return [Piece(text, float(-rank)) for rank, text in enumerate(texts)]


def by_count(name: str, texts: list[str]) -> list[Piece]:
    scores = logarithms(name, texts)
    return [Piece(text, score) for text, score in zip(texts, scores, strict=True)]


def spm_bpe(name: str) -> bytes:
    """As in Llama 2: bytes for unknown characters, spaces unchanged; and pieces of every other
    type."""
    texts = [text for text in learnt(name, 420) if text not in USER]
    pieces = head(*USER) + bytes_of_all() + by_rank(texts)
    for i in (330, 400, 450, 500):  # learnt, but unused now
        pieces[i] = pieces[i]._replace(kind=UNUSED)
    return model_file(pieces, BPE, byte_fallback=True, remove_extra_whitespaces=False)


def spm_bpe_rules(name: str) -> bytes:
    """Characters are mapped, blanks joined, consecutive unknown characters become one token."""
    return model_file(head() + by_rank(learnt(name, 420)), BPE, charsmap=charsmap())


def spm_unigram(name: str) -> bytes:
    """As in T5: characters are mapped, blanks joined."""
    texts = [text for text in learnt(name, 420) if text not in USER]
    pieces = head(*USER) + by_count(name, texts)
    for i in (200, 300, 350):
        pieces[i] = pieces[i]._replace(kind=UNUSED)
    return model_file(pieces, UNIGRAM, charsmap=charsmap())


def spm_unigram_bytes(name: str) -> bytes:
    """Bytes for unknown characters, no space added in front."""
    pieces = head() + bytes_of_all() + by_count(name, learnt(name, 420))
    return model_file(
        pieces,
        UNIGRAM,
        byte_fallback=True,
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
    )


MODELS = [spm_bpe, spm_bpe_rules, spm_unigram, spm_unigram_bytes]


def model_cases(model: bytes, texts: list[str]) -> list[Json]:
    """The library never finds control pieces in a text. If they are to be found, the texts between
    them are tokenized separately."""
    library = sentencepiece.SentencePieceProcessor(model_proto=model)
    letter = library.piece_to_id("a")
    special = ["<unk>", "<s>", "</s>"]
    made = []
    for text in texts:
        ids: list[int] = []
        decoded = ""
        for part in re.split("(" + "|".join(map(re.escape, special)) + ")", text):
            found = [library.piece_to_id(part)] if part in special else library.encode(part)
            if part in special:
                decoded += part
            elif decoded:  # a space is dropped only at the beginning of a text
                decoded += library.decode([letter, *found])[1:]
            else:
                decoded = library.decode(found)
            ids += found
        plain = library.encode(text)
        case = {"text": text, "ids": ids}
        case |= {"plain": plain} if plain != ids else {}
        case |= {"before": [library.bos_id()]}
        case |= {"decoded": decoded} if decoded != text else {}
        made.append(case)
    return made


# --- Unigram in a tokenizer.json ---


def unigram_json(
    pieces: list[Piece], normalizer: Json, metaspaces: Json, byte_fallback: bool
) -> Json:
    special = [added(piece.text) for piece in pieces if piece.kind in (UNKNOWN, CONTROL)]
    ids = {piece.text: i for i, piece in enumerate(pieces)}
    around = template([], ["</s>"])
    around["special_tokens"]["</s>"]["ids"] = [ids["</s>"]]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": ids[token["content"]]} | token for token in special],
        "normalizer": normalizer,
        "pre_tokenizer": metaspaces,
        "post_processor": around,
        "decoder": metaspaces
        if not byte_fallback
        else sequence("decoders", {"type": "ByteFallback"}, metaspaces),
        "model": {
            "type": "Unigram",
            "unk_id": ids["<unk>"],
            "vocab": [[piece.text, piece.score] for piece in pieces],
            "byte_fallback": byte_fallback,
        },
    }


def unigram(name: str) -> Json:
    """T5, as transformers converts it: the charsmap over grapheme clusters, blanks joined."""
    normalizer = sequence(
        "normalizers",
        {
            "type": "Precompiled",
            "precompiled_charsmap": base64.b64encode(charsmap()).decode(),
        },
        {"type": "Strip", "strip_left": False, "strip_right": True},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": MARK},
    )
    pieces = head() + by_count(name, learnt(name, 420))
    return unigram_json(pieces, normalizer, metaspace("always"), False)


def unigram_bytes(name: str) -> Json:
    """Bytes for unknown characters; a mark only before the first word, and no cuts."""
    pieces = head() + bytes_of_all() + by_count(name, learnt(name, 420))
    return unigram_json(pieces, {"type": "NFC"}, metaspace("first", split=False), True)


def hidden(made: Json) -> Json:
    """The same tokenizer, but no text spells a control token: its result for plain text."""
    hide = {token["content"] for token in made["added_tokens"]} - {"<unk>"}
    vocab = [["\x00" + text if text in hide else text, score] for text, score in made["model"]["vocab"]]
    return made | {
        "added_tokens": [token for token in made["added_tokens"] if token["content"] not in hide],
        "model": made["model"] | {"vocab": vocab},
        "post_processor": None,
    }


def plain_cases(made: Json, lines: list[Json]) -> list[Json]:
    """The library's model finds control tokens even in plain text; ours must not."""
    library = Tokenizer.from_str(json.dumps(hidden(made)))
    library.encode_special_tokens = True
    for line in lines:
        line.pop("plain", None)
        plain = library.encode(line["text"], add_special_tokens=False).ids
        if plain != line["ids"]:
            line["plain"] = plain
    return lines


def make_sentencepiece(out: Path) -> None:
    markers = ["</s>", "<s>", "<sep>", "fox"]
    for build in MODELS:
        folder = out / build.__name__
        folder.mkdir(parents=True, exist_ok=True)
        model = build(build.__name__)
        (folder / "tokenizer.model").write_bytes(model)
        write_lines(folder / "cases.jsonl", model_cases(model, trials(build.__name__, markers)))
    for build in (unigram, unigram_bytes):
        folder = out / build.__name__
        folder.mkdir(parents=True, exist_ok=True)
        made = build(build.__name__)
        text = json.dumps(made, ensure_ascii=False, separators=(",", ":"))
        (folder / "tokenizer.json").write_text(text + "\n")
        library = Tokenizer.from_str(text)
        # Text that spells byte tokens becomes these tokens. In a run that is not valid UTF-8 the
        # library also replaces the characters that are valid, which we do not want.
        texts = [text for text in trials(build.__name__, markers) if "<0xE4>" not in text]
        lines = plain_cases(made, cases(library, texts))
        write_lines(folder / "cases.jsonl", lines)
