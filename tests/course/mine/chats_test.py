"""Every solution with full marks can chat with a quantised model that was pulled: chats_test.py BUILD PROGRAM...

Each PROGRAM consists of right programs of the catalogue (CMakeLists.txt). Its answer must equal that of the engine's
own textbook layers: with the model that has all kinds of blocks (tests/data/gguf), and with one of three conversions of
models/chat, in turn. The server shows the glass box of the first model only: that of the second would run the
student's functions. Standard library only; ctest runs it.
"""
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "serve"))

from serving import serving  # noqa: E402

BUILD = pathlib.Path(sys.argv[1])
TYPES = ("q8_0", "q4_0", "q4_1")  # whole.gguf has other types
QUESTIONS = "and the cat?\nand the dog?\n"


def run(program, *words):
    done = subprocess.run([program, *words], input=QUESTIONS, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def chat(program, model, *words):
    return run(program, "chat", "--model", model, "--temperature", "0", "-n", "8", *words)


def models(folder):
    yield ROOT / "tests" / "data" / "gguf" / "whole.gguf"
    for dtype in TYPES:
        path = folder / f"chat-{dtype}.gguf"
        code, _, said = run(BUILD / "src" / "stagecraft", "convert", ROOT / "models" / "chat", path, "--type", dtype)
        if code != 0:
            sys.exit(f"convert --type {dtype}: {said}")
        yield path


def glass_boxes(program):
    """The statuses of the answers about the first model and the second one."""
    story = ROOT / "models" / "story"
    with serving([program], "--model", story, "--beside", story) as server:
        return [server.ask("POST", f"{model}/glass/choices", {"tokens": [1, 2]})[0] for model in ("", "/beside")]


def main(folder):
    problems = []
    found = glass_boxes(BUILD / "course" / "mine" / sys.argv[2])
    if found != [200, 404]:
        problems.append(f"glass boxes of serve --beside: expected the answers [200, 404], found {found}")
    n_chats = 0
    programs = sys.argv[2:]
    for number, model in enumerate(models(folder)):
        code, ours, said = chat(BUILD / "src" / "stagecraft", model, "--textbook")
        if code != 0 or not ours.strip():
            sys.exit(f"{model}: exit {code}\n{said}")
        for program in programs if number == 0 else programs[number - 1::len(TYPES)]:
            code, theirs, said = chat(BUILD / "course" / "mine" / program, model)
            n_chats += 1
            if code != 0 or theirs != ours:
                problems.append(f"{program}, {model.name}: exit {code}\n{theirs}{said}where ours says\n{ours}")
    print("\n".join(problems) or f"{n_chats} chats, answered as the textbook layers answer")
    return 1 if problems else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        sys.exit(main(pathlib.Path(name)))
