"""Follows docs/adding-*.md, first backwards and then forwards: adding_test.py BUILD

It removes from a copy of src/ all lines and files that the pages add. The rest must build, tell the same story, and
refuse a model that needs the removed parts. Then it follows each page: the copy must become src/ again. So no page
forgets a line or a file, and each added line has one place.
"""
import pathlib
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import pages  # noqa: E402
from pages import ROOT  # noqa: E402

KEPT = ("CMakeLists.txt", "cmake", "src")
REFUSED = {  # a model that needs the removed parts: what the error must name
    "tests/data/models/gemma-tied": "gemma",
    "tests/data/models/deepseek-v2-greedy": "deepseek_v2",
    "tests/data/formats/llama2c-v0.bin": "llama2c-v0.bin",
}


def copied_files():
    for name in KEPT:
        top = ROOT / name
        yield from [top] if top.is_file() else (path for path in top.rglob("*") if path.is_file())


class Copy:
    def __init__(self, folder):
        self.folder = folder
        self.texts = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in copied_files()}

    def replace(self, file, old, new):
        data = self.texts[file].decode()
        if data.count(old) != 1:
            raise SystemExit(f"{file}: expected once, found {data.count(old)} times:\n{old}")
        self.texts[file] = data.replace(old, new).encode()

    def write(self):
        """Writes only files that differ, because the build goes by file times."""
        for path in [path for name in KEPT for path in (self.folder / name).rglob("*") if path.is_file()]:
            if path.relative_to(self.folder).as_posix() not in self.texts:
                path.unlink()
        for name, data in self.texts.items():
            path = self.folder / name
            if not path.exists() or path.read_bytes() != data:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)


def take_out(copy):
    """Removes all that the pages add. Returns the new files, and the words that no file contains any more."""
    taken, words = {}, []
    for page in pages.ADDING:
        text = (ROOT / page).read_text()
        words += pages.EVERY.findall(text)
        for file in pages.new_files(text):
            taken[file] = copy.texts.pop(file)
        for file, before, after in pages.additions(text):
            copy.replace(file, after, before)
    return taken, words


def put_back(copy, taken):
    copy.texts.update(taken)
    for page in pages.ADDING:
        for file, before, after in pages.additions((ROOT / page).read_text()):
            copy.replace(file, before, after)


def run(*command):
    done = subprocess.run([str(part) for part in command], cwd=ROOT, text=True, capture_output=True)
    return done.returncode, done.stdout + done.stderr


def told(*command):
    """The stdout of a command; stderr contains times."""
    return subprocess.run([str(part) for part in command], cwd=ROOT, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True).stdout


def build(folder):
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    for command in (("cmake", "-S", folder, "-B", folder / "build", *generator, "-DSTAGECRAFT_TESTS=OFF"),
                    ("cmake", "--build", folder / "build", "--target", "stagecraft", "--parallel")):
        code, printed = run(*command)
        if code != 0:
            raise SystemExit(f"without what the pages add, it does not build:\n{printed[-4000:]}")
    return folder / "build" / "src" / "stagecraft"


def main():
    program = pathlib.Path(sys.argv[1]) / "src" / "stagecraft"
    copy = Copy(pathlib.Path(sys.argv[1]) / "adding_copy")
    whole = dict(copy.texts)
    taken, words = take_out(copy)
    copy.write()
    reduced = build(copy.folder)

    problems = [f"{file} still names {word}" for word in words for file, data in copy.texts.items()
                if word.lower().encode() in data.lower()]
    story = ("story", "--model", "models/story", "-n", "40", "--seed", "1")
    if told(reduced, *story) != told(program, *story):
        problems.append("without what the pages add, another story was told")
    for model, named in REFUSED.items():
        if run(program, "info", model)[0] != 0:
            problems.append(f"{model}: expected a model that opens")
        code, printed = run(reduced, "info", model)
        if code != 1 or named not in printed:
            problems.append(f"{model}: expected exit 1 and {named}, found exit {code} and\n{printed}")

    put_back(copy, taken)
    problems += [f"{file}: the pages do not lead to this file as it is" for file in whole
                 if copy.texts.get(file) != whole[file]]
    print("\n".join(problems) or f"{len(pages.ADDING)} pages: {len(taken)} new files, src/ builds without them and with them")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
