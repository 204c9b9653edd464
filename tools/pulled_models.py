"""The models that ./stage pull has fetched: where they are, what exists, and how to remove one.

A model is a folder with its name, NAME or OWNER/NAME. It contains the files and pulled.json, which says where they came
from. src/checkpoint/find_model.cpp looks in the same places.
"""
import json
import os
import pathlib
import re
import shutil

import download
import strict_json
from download import Problem

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOTE = "pulled.json"
UNFINISHED = ".unfinished"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?")


def registry():
    text = (ROOT / "models" / "registry.json").read_text(encoding="utf-8")
    return {entry["name"]: entry for entry in json.loads(text)["models"]}


def check_name(name):
    if not NAME.fullmatch(name) or ".." in name:
        raise Problem(f"'{name}': expected a name, or OWNER/NAME as on the hub")
    return name


def own_folder():
    """The folder that pull writes to."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(cache):  # the standard says to ignore a relative path
        home = os.environ.get("HOME")
        if not home:
            raise Problem("HOME: expected a folder, found none; or set XDG_CACHE_HOME")
        cache = os.path.join(home, ".cache")
    return pathlib.Path(cache) / "stagecraft" / "models"


def folders():
    """The folders where models are looked for; the first may be shared by a class, and is never written to."""
    shared = os.environ.get("STAGECRAFT_MODELS")
    return ([pathlib.Path(shared)] if shared else []) + [own_folder()]


def contents(folder):
    """(names of the files without pulled.json, their total size in bytes)"""
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name != NOTE]
    return [path.name for path in files], sum(path.stat().st_size for path in files)


def is_model(folder):
    try:
        return any(path.suffix in (".safetensors", ".gguf", ".bin", ".flm") for path in folder.iterdir()
                   if path.is_file())
    except OSError:
        return False


def models(top):
    """The names of the models in one of the folders."""
    found = []
    for pattern in "[!.]*", "[!.]*/[!.]*":
        found += [str(path.relative_to(top)) for path in top.glob(pattern) if is_model(path)]
    return sorted(found)


def note_of(folder):
    try:
        note = strict_json.parse((folder / NOTE).read_text())
        return note if isinstance(note, dict) else {}
    except (OSError, ValueError):
        return {}


def listing():
    """The lines of ./stage models."""
    known, here = registry(), set()
    rows = []
    for top in [ROOT / "models"] + folders():
        for name in models(top):
            names, size = contents(top / name)
            note = note_of(top / name)
            rows.append((name, download.megabytes(size), note.get("licence") or known.get(name, {}).get("licence", ""),
                         str(top / name)))
            here.add(name)
        unfinished = top / UNFINISHED
        for path in sorted(unfinished.iterdir()) if unfinished.is_dir() else ():
            size = contents(path)[1]
            rows.append((path.name.replace("__", "/", 1), download.megabytes(size), "",
                         "unfinished: pull it again to go on"))
    yield from table("here", rows)
    yield ""
    yield from table("./stage pull", [(name, entry["size"], entry["licence"], entry["title"])
                                      for name, entry in known.items() if name not in here])
    yield "and any other model of huggingface.co whose architecture runs (README.md):"
    yield "./stage pull OWNER/NAME[:FILE]"


def table(title, rows):
    if not rows:
        return
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    yield f"{title}:"
    for name, size, licence, text in rows:
        yield download.one_line(
            f"  {name:<{widths[0]}}  {size:>{widths[1]}}  {licence:<{widths[2]}}  {text}".rstrip())


def unfinished_folder(name):
    return own_folder() / UNFINISHED / name.replace("/", "__")


def remove(name):
    """Deletes what pull wrote, and nothing else. Returns a line about it."""
    folder, begun = own_folder() / check_name(name), unfinished_folder(name)
    size = 0
    if begun.is_dir():
        size += contents(begun)[1]
        shutil.rmtree(begun)
    elif not folder.exists():
        for top in folders()[:-1]:
            if (top / name).exists():
                raise Problem(f"{top / name}: is in the folder STAGECRAFT_MODELS, which this command does not "
                              "change")
        raise Problem(f"{name}: no such model on this machine; ./stage models lists them")
    if folder.exists():
        files = note_of(folder).get("files")
        if folder.is_symlink() or not isinstance(files, list):
            raise Problem(f"{folder}: was not downloaded by ./stage pull: remove it yourself")
        for file in [entry.get("name", "") for entry in files if isinstance(entry, dict)] + [NOTE]:
            path = folder / os.path.basename(file)
            if path.is_file() and not path.is_dir():
                size += path.stat().st_size
                path.unlink()
        for empty in [folder] + ([folder.parent] if "/" in name else []):
            try:
                empty.rmdir()
            except OSError:
                break  # the folder contains a file of the user's own
    return f"{name}: removed, {download.megabytes(size)} free again"
