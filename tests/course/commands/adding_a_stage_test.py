"""Follows docs/adding-a-stage.md in a copy of the repository: adding_a_stage_test.py BUILD

The new stage must be not written, then right with our answer, right with another right program, and wrong with a wrong
program, whose mistake must be named. The entries that the page adds to other files must be those that their tests expect.
"""
import json
import pathlib
import re
import sys

from repository_copy import Copy, ROOT

sys.path.append(str(ROOT / "tests" / "tools"))
import pages  # noqa: E402

GUIDE = ROOT / "docs" / "adding-a-stage.md"
DUMP = pathlib.Path(__file__).with_name("gelu.safetensors")  # made as in section 8 of the guide
STARTER = "stages/12-gelu/gelu.cpp"
FILE = re.compile(r"^`([^`\n]+)`\n```\w+\n(.*?)^```$", re.M | re.S)
ENTRY = re.compile(r"[^`]\n\n```json\n(.*?)^```$", re.M | re.S)


def add_the_stage(copy):
    guide = GUIDE.read_text()
    files = dict(FILE.findall(guide))
    for name, text in files.items():
        copy.write(name, text)
    entry = json.loads(ENTRY.search(guide)[1])
    registry = json.loads((copy.folder / "stages" / "stages.json").read_text())
    registry["stages"].append(entry)
    copy.write("stages/stages.json", json.dumps(registry, indent=2, ensure_ascii=False))
    copy.write("tests/data/operators/gelu.safetensors", DUMP.read_bytes())
    for name, before, after in pages.additions(guide):
        text = (copy.folder / name).read_text()
        assert text.count(before) == 1, f"{name}: expected one place with\n{before}"
        copy.write(name, text.replace(before, after))
    for command in ("python3 course grading.starters --write", "python3 course rules.own_work --write",
                    "python3 tests/course/commands/course_test.py Readme",
                    "python3 docs/figures/make_figures.py && ls docs/figures/map-12.svg docs/figures/map-12.zh.svg",
                    "grep -F GELU docs/figures/map-12.zh.svg && ! grep -F nothing docs/figures/map-12.zh.svg"):
        code, printed = copy.run(command)
        assert code == 0, printed
    return files


def main():
    copy = Copy(pathlib.Path(sys.argv[1]) / "course_copy")
    files = add_the_stage(copy)
    mistakes = "course/mistakes/12-gelu/"
    sentence = json.loads(files[mistakes + "mistakes.json"])["programs"][0]["en"]
    tried = [  # (contents of the student's file, exit code, expected output of ./stage test)
        (STARTER, 1, "Gelu                       0/10  not written yet"),
        ("src/operators/gelu.cpp", 0, "Gelu                      10/10  right"),
        (mistakes + "double_accumulator.cpp", 0, "Gelu                      10/10  right"),
        (mistakes + "no_cube.cpp", 1, sentence),
    ]
    problems = []
    for name, exit_code, says in tried:
        copy.write(STARTER, files[name])
        code, printed = copy.run("./stage test 12")
        if code != exit_code or says not in printed:
            problems.append(f"{name}: expected exit {exit_code} and '{says}', found exit {code} and\n{printed}")
    code, printed = copy.run("./stage broken 12")
    if code != 0 or "no_cube" not in printed:
        problems.append(f"./stage broken 12: expected no_cube in its list, found\n{printed}")
    print("\n".join(problems) or "the guide's stage is not written, right, and wrong by its name")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
