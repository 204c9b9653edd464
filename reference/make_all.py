"""Make everything that reference/ commits, or check that it comes out the same.

    build/venv/bin/python reference/make_all.py            writes tests/data
    build/venv/bin/python reference/make_all.py --check    exit code 1 and one line if it differs
    build/venv/bin/python reference/make_all.py --manifest writes only manifest.json

Another processor may sum in another order, so the check compares: ids, weights, inputs, configs,
names and order byte for byte; f64 oracles to 1e-10 of a tensor's largest number; tolerances to a
factor of 3. On one processor with the pinned versions, all files are equal byte for byte, and the
check says so.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import tempfile
from pathlib import Path
from typing import Any

import torch

import dump
import self_check
from make_chat_templates import make_chat_templates
from make_formats import make_formats
from make_gguf import make_gguf
from make_jinja import make_jinja
from make_models import make_models
from make_operators import make_operators
from make_perplexity import make_perplexity
from make_tokenizers import make_tokenizers
from seed import SEED

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"
PACKAGES = (
    "gguf",
    "jinja2",
    "numpy",
    "safetensors",
    "sentencepiece",
    "tokenizers",
    "torch",
    "transformers",
)

PARTS = (
    "chat_templates",
    "formats",
    "gguf",
    "jinja",
    "models",
    "operators",
    "perplexity",
    "tokenizers",
)

ORACLE_BOUND = 1e-10  # of the largest magnitude; measured: 3e-15
TOLERANCE_BOUND = 3.0  # measured: up to 1.9, between PyTorch's AVX kernels and its plain ones


def files_of(folder: Path) -> dict[str, Path]:
    """The files in this folder that reference/ makes."""
    found = [
        path
        for part in PARTS
        for path in (folder / part).rglob("*")
        if path.is_file()
    ]
    return {path.relative_to(folder).as_posix(): path for path in sorted(found)}


def manifest_of(folder: Path) -> dict[str, Any]:
    return {
        "made_by": "reference/make_all.py",
        "seed": SEED,
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
        "files": {
            name: hashlib.sha256(path.read_bytes()).hexdigest()
            for name, path in files_of(folder).items()
        },
    }


def write_manifest(folder: Path) -> None:
    (folder / "manifest.json").write_text(json.dumps(manifest_of(folder), indent=2) + "\n")


def make_all(folder: Path) -> None:
    make_models(folder / "models")
    make_operators(folder / "operators")
    make_tokenizers(folder / "tokenizers")
    make_gguf(folder)
    make_formats(folder)
    make_perplexity(folder / "perplexity", folder / "models")
    make_jinja(folder / "jinja")
    make_chat_templates(folder / "chat_templates", folder / "tokenizers")
    write_manifest(folder)


def difference(name: str, ours: Path, fresh: Path) -> str | None:
    """The first difference of two files beyond the bounds above, or None."""
    if ours.read_bytes() == fresh.read_bytes():
        return None
    if ours.suffix != ".safetensors":
        return f"{name}: differs"
    (old, old_notes), (new, new_notes) = dump.read(ours), dump.read(fresh)
    if old.keys() != new.keys() or old_notes.get("order") != new_notes.get("order"):
        return f"{name}: other tensors, or in another order"
    for tensor, value in old.items():
        other = new[tensor]
        if (value.dtype, value.shape) != (other.dtype, other.shape):
            return f"{name}: {tensor}: other dtype or shape"
        if value.dtype != torch.float64:
            if (
                value.flatten()
                .contiguous()
                .view(torch.uint8)
                .ne(other.flatten().contiguous().view(torch.uint8))
                .any()
            ):
                return f"{name}: {tensor}: differs, but is an input"
        elif value.numel():
            largest, apart = value.abs().max().item(), (value - other).abs().max().item()
            if not apart <= ORACLE_BOUND * largest:
                allowed = ORACLE_BOUND * largest
                return f"{name}: {tensor}: oracle differs by {apart:.1e}, allowed {allowed:.1e}"
    old_cases, new_cases = _described(old_notes), _described(new_notes)
    for where, (scalars, tolerances) in old_cases.items():
        if where not in new_cases or new_cases[where][0] != scalars:
            return f"{name}: {where}: its scalars differ"
        for tensor, tolerance in tolerances.items():
            found = new_cases[where][1].get(tensor, -1.0)
            if not tolerance / TOLERANCE_BOUND <= found <= tolerance * TOLERANCE_BOUND:
                return (
                    f"{name}: {where}: tolerance of {tensor}: "
                    f"expected {tolerance:.1e} within a factor of 3, found {found:.1e}"
                )
    return None


def _described(notes: dict[str, str]) -> dict[str, tuple[Any, dict[str, float]]]:
    """Scalars and tolerances by case; a model's trace is one case."""
    if "cases" in notes:
        return {
            case["name"]: (case["scalars"], case["tolerance"])
            for case in json.loads(notes["cases"])
        }
    return {"trace": ({}, json.loads(notes.get("tolerance", "{}")))}


def check(folder: Path) -> None:
    """Makes the files again in another folder and compares; SystemExit with one line if they
    differ."""
    manifest = json.loads((folder / "manifest.json").read_text())
    mine = manifest_of(folder)
    for name in sorted(manifest["files"].keys() | mine["files"].keys()):
        if manifest["files"].get(name) != mine["files"].get(name):
            raise SystemExit(
                f"{folder}/{name}: is not the file that manifest.json was written with"
            )
    for package, version in manifest["versions"].items():
        if mine["versions"][package] != version:
            print(f"note: made with {package} {version}, checked with {mine['versions'][package]}")
    with tempfile.TemporaryDirectory() as scratch:
        make_all(Path(scratch))
        ours, fresh = files_of(folder), files_of(Path(scratch))
        if ours.keys() != fresh.keys():
            raise SystemExit(
                f"{folder}/{min(ours.keys() ^ fresh.keys())}: is made or committed, but not both"
            )
        for name, path in ours.items():
            if problem := difference(name, path, fresh[name]):
                raise SystemExit(f"{folder}/{problem}")
        same = sum(path.read_bytes() == fresh[name].read_bytes() for name, path in ours.items())
    self_check.run(folder / "models")
    print(
        f"reference: {len(ours)} files come out the same, {same} of them byte for byte; "
        "trace.py and convert_pytorch_bin.py work"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, default=DATA, help="the folder to write or check (default tests/data)"
    )
    parser.add_argument(
        "--check", action="store_true", help="make everything again elsewhere and compare"
    )
    parser.add_argument(
        "--manifest", action="store_true", help="write only the list of files, manifest.json"
    )
    args = parser.parse_args()
    run = check if args.check else write_manifest if args.manifest else make_all
    run(args.out)
