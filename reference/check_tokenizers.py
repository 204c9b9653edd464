"""Compare the engine's tokenizers with the libraries that define them, on thousands of texts each.

    build/venv/bin/python reference/check_tokenizers.py                 small sentencepiece models
    build/venv/bin/python reference/check_tokenizers.py PATH...         and these vocabularies

PATH is one of: a tokenizer.json (or a folder with one), compared with the tokenizers library; a
sentencepiece tokenizer.model, compared with the sentencepiece library; a GGUF file, compared with
its vectors (.inp and .out beside it), and, if it has scores, with the sentencepiece model made from
them; PATH.gguf=FOLDER, compared with the tokenizer.json in FOLDER that the GGUF file repeats.

The sentencepiece library trains the small models: BPE and Unigram, with and without byte fallback,
with each of its normalizers; for the Unigram ones, the tokenizer.json that transformers would make
is compared, too. Exit code 1 if a text differs; prints the first one.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import sentencepiece
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

import sentencepiece_file as spm
from seed import SEED
from tokenizer_texts import HARD, SENTENCES, corpus, trials

ROOT = Path(__file__).resolve().parent.parent
RANGES = [
    (0x20, 0x7F), (0x20, 0x7F), (0xA0, 0x250), (0x250, 0x300), (0x300, 0x370), (0x370, 0x530),
    (0x530, 0x700), (0x700, 0x900), (0x900, 0xE00), (0xE00, 0x1100), (0x1100, 0x1400),
    (0x1400, 0x1E00), (0x1E00, 0x2000), (0x2000, 0x2400), (0x2400, 0x2C00), (0x2C00, 0x3000),
    (0x3000, 0x3400), (0x3400, 0x9FFF), (0xA000, 0xABFF), (0xAC00, 0xD7A4), (0xE000, 0xE010),
    (0xF900, 0x10000), (0x10000, 0x10400), (0x1D400, 0x1D800), (0x1F1E6, 0x1F200),
    (0x1F300, 0x1FAFF), (0x20000, 0x20100),
]  # fmt: skip
BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
CODE = ["def f(x):\n    return x*2  # twice\n", "for(i=0;i<n;++i){a[i]=b[i];}", "\t\tif (a != b) {",
        "SELECT * FROM t WHERE a='b';", "<div class=\"x\">&nbsp;</div>", "x = {'k': [1, 2.5e-3]}",
        "#include <vector>\r\n", "λ = lambda: None", "0xDEADBEEF 0b101 1_000", "a->b::c<D>&&e"]  # fmt: skip
BLANKS = [" ", "  ", "    ", "\n", "\n\n", "\t", "\r\n", "\u00a0", "\u3000", "\u2003", "\u200b"]


def texts_for(name: str, markers: list[str], n: int) -> list[str]:
    """Many scripts, emoji, code, whitespace, digits, control characters, and texts of special
    tokens; alone and mixed."""
    r = random.Random(f"{SEED}/{name}/many")
    words = [word for sentence in SENTENCES for word in sentence.split()]

    def characters() -> str:
        low, high = r.choice(RANGES)
        return "".join(chr(r.randrange(low, high)) for _ in range(r.randint(1, 12)))

    def part() -> str:
        return r.choice(
            [
                lambda: r.choice(words),
                lambda: r.choice(words),
                lambda: " ".join(r.choices(words, k=4)),
                characters,
                lambda: r.choice(CODE),
                lambda: r.choice(BLANKS) * r.randint(1, 4),
                lambda: str(r.randrange(10 ** r.randint(1, 12))),
                lambda: chr(r.choice([*range(0x00, 0x20), *range(0x7F, 0xA0)])),
                lambda: r.choice(HARD),
                lambda: r.choice(markers or [""]),
                lambda: chr(r.choice([r.randrange(0xD800), r.randrange(0xE000, 0x110000)])),
            ]
        )()

    made = dict.fromkeys(trials(name, markers[:20]))
    while len(made) < n:
        made["".join(part() + r.choice(["", "", " "]) for _ in range(r.randint(1, 6)))] = None
    return list(made)


class Vocabulary:
    """A vocabulary that the engine opens, and the library's results for texts and for ids."""

    def __init__(
        self,
        name: str,
        path: Path,
        encode: Callable[[str], list[int]],
        decode: Callable[[list[int]], str],
        markers: list[str],
        special: bool,
    ) -> None:
        self.name, self.path, self.encode, self.decode = name, path, encode, decode
        self.markers = markers  # texts of special tokens
        self.special = special  # True if `encode` reads them as these tokens


def engine(program: Path, path: Path, lines: list[Any], *options: str) -> list[Any]:
    done = subprocess.run(
        [program, "tokenize", "--model", path, "--jsonl", *options],
        input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise SystemExit(f"{path}: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def check(vocabulary: Vocabulary, program: Path, n: int) -> bool:
    texts = texts_for(vocabulary.name, vocabulary.markers, n)
    options = [] if vocabulary.special else ["--plain"]
    ours = engine(program, vocabulary.path, texts, *options)
    differ = 0
    first = ""
    for text, ids in zip(texts, ours, strict=True):
        expected = vocabulary.encode(text)
        if ids != expected:
            differ += 1
            first = first or f"\n  text {text!r}\n  library {expected}\n  engine  {ids}"
    decoded = engine(program, vocabulary.path, ours, "--decode")
    wrong = 0
    for text, ids, back in zip(texts, ours, decoded, strict=True):
        expected = vocabulary.decode(ids)
        if back != expected:
            wrong += 1
            first = first or f"\n  ids {ids}\n  library {expected!r}\n  engine  {back!r}"
    print(
        f"{vocabulary.name}: {len(texts)} texts, {differ} other ids, {wrong} other texts of them{first}",
        flush=True,
    )
    return not first


# --- the references ---


def of_json(path: Path, name: str = "", opened: Path | None = None) -> Vocabulary:
    file = path / "tokenizer.json" if path.is_dir() else path
    made = json.loads(file.read_text())
    added = made.get("added_tokens", [])
    if opened:  # the GGUF file may come from a version with fewer added tokens
        known = set(gguf.GGUFReader(opened).get_field("tokenizer.ggml.tokens").contents())
        added = made["added_tokens"] = [token for token in added if token["content"] in known]
    library = Tokenizer.from_str(json.dumps(made))
    library.no_truncation()
    library.no_padding()
    return Vocabulary(
        name or file.parent.name,
        opened or file,
        lambda text: library.encode(text, add_special_tokens=False).ids,
        lambda ids: library.decode(ids, skip_special_tokens=False),
        [token["content"] for token in added if token["content"].strip()],
        special=True,
    )


def of_model(path: Path, name: str = "", opened: Path | None = None) -> Vocabulary:
    library = sentencepiece.SentencePieceProcessor(model_file=str(path))
    pieces = range(library.vocab_size())
    unknown = library.id_to_piece(library.unk_id())

    def decode(ids: list[int]) -> str:
        # The library decodes the unknown piece to a mark; the engine to its text.
        return library.decode(ids).replace(" ⁇ ", unknown)

    return Vocabulary(
        name or path.parent.name,
        opened or path,
        library.encode,
        decode,
        [library.id_to_piece(i) for i in pieces if library.is_control(i) or library.is_unknown(i)],
        special=False,
    )


def check_vectors(path: Path, program: Path) -> bool:
    """Compares llama.cpp's vectors: texts between marks, and one line of ids per text."""
    texts = Path(f"{path}.inp").read_text().split("\n__ggml_vocab_test__\n")
    lines = Path(f"{path}.out").read_text().splitlines()
    expected = [[int(word) for word in line.split()] for line in lines]
    texts = texts[: len(expected)]
    ours = engine(program, path, texts)
    differ = sum(a != b for a, b in zip(ours, expected, strict=True))
    print(f"{path.name}: {len(texts)} vectors, {differ} other ids", flush=True)
    return differ == 0


def of_gguf(path: Path, scratch: Path) -> Vocabulary | None:
    """The sentencepiece model that a GGUF file's scores come from."""
    read = gguf.GGUFReader(path).get_field
    if read("tokenizer.ggml.model").contents() != "llama":
        return None
    names = ("tokens", "scores", "token_type")
    columns = [read(f"tokenizer.ggml.{name}").contents() for name in names]
    pieces = [spm.Piece(*row) for row in zip(*columns, strict=True)]
    model = spm.model_file(pieces, spm.BPE, byte_fallback=True, remove_extra_whitespaces=False)
    (scratch / "from_gguf.model").write_bytes(model)
    return of_model(scratch / "from_gguf.model", path.name, path)


# --- small models ---


def train(scratch: Path, name: str, **options: Any) -> Path:
    made = io.BytesIO()
    lines = corpus("sentencepiece") + SENTENCES
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(line for text in lines for line in text.splitlines() if line.strip()),
        model_writer=made,
        num_threads=1,
        minloglevel=2,
        hard_vocab_limit=False,
        **{"vocab_size": 700, "character_coverage": 0.995} | options,
    )
    folder = scratch / name
    folder.mkdir()
    (folder / "tokenizer.model").write_bytes(made.getvalue())
    return folder / "tokenizer.model"


def small_models(scratch: Path) -> list[Vocabulary]:
    kinds = [
        {"model_type": kind, "byte_fallback": fallback, "normalization_rule_name": rule} | more
        for kind in ("bpe", "unigram")
        for fallback in (False, True)
        for rule, more in [
            ("identity", {"remove_extra_whitespaces": False}),
            ("nmt_nfkc", {}),
            ("nmt_nfkc_cf", {"add_dummy_prefix": False}),
            ("nfkc", {"user_defined_symbols": ["<sep>", "▁▁", "\n\n", "fox", "é"]}),
        ]
    ]
    made = []
    for options in kinds:
        name = "_".join(
            [options["model_type"], options["normalization_rule_name"]]
            + ["bytes"] * options["byte_fallback"]
        )
        path = train(scratch, name, **options, vocab_size=950 if options["byte_fallback"] else 700)
        made.append(of_model(path, name))
        if options["model_type"] == "unigram":
            made.append(of_json(as_tokenizer_json(path), f"{name}.json"))
    return made


def normal_forms(scratch: Path, program: Path) -> bool:
    """Every character, between combining marks of several classes, whose order may change."""
    characters = [chr(c) for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
    words = [f"a\u0345{c}\u0334\u0301 {c}\u0301" for c in characters]
    texts = ["\n".join(words[i : i + 100]) for i in range(0, len(words), 100)]
    right = True
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        path = scratch / form / "tokenizer.json"
        path.parent.mkdir()
        library = Tokenizer(models.BPE({c: i for i, c in enumerate(BYTES)}, []))
        library.normalizer = getattr(normalizers, form)()
        library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        library.save(str(path))
        ours = engine(program, path, texts)
        differ = [
            i for i, text in enumerate(texts) if ours[i] != library.encode(text).ids
        ]
        print(f"{form}: {len(words)} characters, {len(differ)} other ids in {len(texts)} texts")
        for i in differ[:3]:
            print(f"  between {texts[i][2]!r} and the hundredth from there")
        right &= not differ
    return right


def as_tokenizer_json(path: Path) -> Path:
    """The tokenizer.json that transformers makes of a Unigram model (convert_slow_tokenizer.py,
    SpmConverter)."""
    library = sentencepiece.SentencePieceProcessor(model_file=str(path))
    charsmap = spm.charsmap_of(path.read_bytes())
    normalizers: list[Any] = [
        {"type": "Strip", "strip_left": False, "strip_right": True},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"},
    ]
    if charsmap:
        blob = base64.b64encode(charsmap).decode()
        normalizers.insert(0, {"type": "Precompiled", "precompiled_charsmap": blob})
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    ids = range(library.vocab_size())
    special = [i for i in ids if library.is_control(i) or library.is_unknown(i)]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    made = {
        "version": "1.0",
        "added_tokens": [
            {"id": i, "content": library.id_to_piece(i), "special": True} | flags for i in special
        ],
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "pre_tokenizer": metaspace,
        "post_processor": None,
        "decoder": metaspace,
        "model": {
            "type": "Unigram",
            "unk_id": library.unk_id(),
            "vocab": [(library.id_to_piece(i), library.get_score(i)) for i in ids],
            "byte_fallback": any(library.is_byte(i) for i in ids),
        },
    }
    out = path.parent / "json" / "tokenizer.json"
    out.parent.mkdir()
    out.write_text(json.dumps(made))
    return out


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", metavar="PATH")
    parser.add_argument("--texts", type=int, default=2000, help="how many for each vocabulary")
    parser.add_argument("--program", type=Path, default=ROOT / "build" / "release" / "src" / "stagecraft")
    args = parser.parse_args()
    right = True
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        vocabularies = []
        for word in args.paths:
            text, _, same = word.partition("=")
            path = Path(text)
            if path.suffix != ".gguf":
                vocabularies.append(of_model(path) if path.suffix == ".model" else of_json(path))
                continue
            if Path(f"{path}.inp").exists():
                right &= check_vectors(path, args.program)
            if same:
                vocabularies.append(of_json(Path(same), path.name, path))
            elif scored := of_gguf(path, scratch):
                vocabularies.append(scored)
        for vocabulary in vocabularies + small_models(scratch):
            right &= check(vocabulary, args.program, args.texts)
        right &= normal_forms(scratch, args.program)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
