"""What docs quote is what is there: quoted_test.py PROGRAM [--write]

A page quotes a file of the repository, or the output of a command, below a line that names it:

    `src/model/architectures/gemma.cpp`
    ```cpp
    ...
    ```

--write puts into the pages what is there now.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ("docs/architectures.md", "docs/adding-an-architecture.md")
QUOTE = re.compile(r"^`([^`\n]+)`\n```(\w*)\n(.*?)^```$", re.M | re.S)


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
