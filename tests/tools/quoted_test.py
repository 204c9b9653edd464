"""Quotations in docs equal what they quote: quoted_test.py PROGRAM [--write]

A page quotes a file of the repository, or the output of a command, below a line that names it:

    `src/model/architectures/gemma.cpp`
    ```cpp
    ...
    ```

After "In `FILE`:" follows a part of a file, or a diff whose result is in the file. A page that says "every file in
`src/` and `tests/` that names `WORD` is on this page" must name all such files, in upper or lower case.

--write updates the quotations of whole files and of output; parts of files must be changed by hand.
"""
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import pages  # noqa: E402
from pages import ROOT  # noqa: E402

PAGES = ("docs/model-architectures.md", *pages.ADDING)
QUOTE = re.compile(r"^`([^`\n]+)`\n```(\w*)\n(.*?)^```$", re.M | re.S)
SOURCES = {".cpp", ".h", ".cu", ".py", ".cmake", ".txt"}


def parts(name, text):
    """What is wrong with the quoted parts of files, and how many a page quotes."""
    quoted = list(pages.parts(text))
    return [f"{name}: {file}: expected this text in it:\n{part}" for file, part in quoted
            if part not in (ROOT / file).read_text()], len(quoted)


def not_mentioned(name, text):
    """The files that contain a word and are missing on a page that claims to name all of them."""
    files = [path for folder in ("src", "tests") for path in (ROOT / folder).rglob("*")
             if path.suffix in SOURCES and "data" not in path.parts] if pages.EVERY.search(text) else []
    for word in pages.EVERY.findall(text):
        named = [path.relative_to(ROOT).as_posix() for path in files
                 if word.lower() in path.read_text(errors="replace").lower()]
        if not named:
            yield f"{name}: no file names {word}"
        yield from (f"{name}: {file} names {word}, but is not on the page" for file in named if file not in text)


def found(what, program):
    if not what.startswith("./stage "):
        return (ROOT / what).read_text()
    command = [*program, *what.removeprefix("./stage ").split()]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return run.stdout if run.returncode == 0 else f"exit {run.returncode}: {run.stderr}"


def main():
    program, write = [sys.argv[1]], "--write" in sys.argv
    problems, quotes = [], 0
    for name in PAGES:
        page = ROOT / name
        text = page.read_text()
        wrong, n_parts = parts(name, text)
        problems += [*wrong, *not_mentioned(name, text)]
        quotes += n_parts
        for what, _, quoted in QUOTE.findall(text):
            quotes += 1
            if quoted != found(what, program):
                problems.append(f"{name}: `{what}`: expected what is there, found another text")
        if write:
            fresh = QUOTE.sub(lambda m: f"`{m[1]}`\n```{m[2]}\n{found(m[1], program)}```", text)
            page.write_text(fresh)
    if not quotes:
        problems.append("no page quotes anything")
    print("\n".join(problems) or f"{quotes} quotes are what is there")
    return 1 if problems and not write else 0


if __name__ == "__main__":
    sys.exit(main())
