"""Chooses the objects that the --mine program is linked from: the student's for the chosen stages, ours for the others.

course/cmake/mine.cmake writes the list of all objects.
"""
import json
import re

from shared import course

PROGRAM = "course/stagecraft_mine"  # below the build folder


def targets(chosen):
    """The targets of the build that these stages need."""
    names = [f"counted_{stage.number}" for stage in chosen]
    known = listed()["stages"]
    names += [f"linked_{stage.number}" for stage in chosen if any(known[stage.number]["linked"])]
    return names + ["emulator"] * any(stage.is_emulated for stage in chosen)


def listed():
    path = course.BUILD / "course" / "mine.json"
    if not path.exists():  # the build may be gone, although verdicts are still stored
        course.build()
    return json.loads(path.read_text(encoding="utf-8").replace("/./", "/"))


def objects(chosen, students=None):
    """The paths of the objects. students: {number: the student's of that stage}, where the build did not make them."""
    parts = listed()
    numbers = {stage.number for stage in chosen}
    paired, linked, in_place = list(parts["core"]), [], []
    for number, stage in parts["stages"].items():
        paired += stage["ours"] if number not in numbers else students[number] if students else stage["students"]
        if number in numbers:
            linked += stage["linked"]
            in_place += filter(None, stage["in_place"].split("|"))
    # This also removes files of other stages: with stage 11, the only rms_norm is the one on the GPU.
    replaced = re.compile(rf"/({'|'.join(in_place)})\.cpp\.o(bj)?$")
    paths = [path for path in paired if not replaced.search(path)] + linked
    return [path for path in paths if path.endswith((".o", ".obj"))]  # CMake also lists precompiled headers


def write(names, chosen):
    """Writes the file that the linker reads, with objects(chosen), if the program must be linked again: if the objects
    are other ones, or one of them was compiled again."""
    text = "".join(f'"{name}"\n' for name in names)
    if any(stage.is_emulated for stage in chosen):
        text += "-no-pie\n"  # the emulator uses the addresses of symbols as the program's file has them
    path, program = course.BUILD / "course" / "mine_objects", course.BUILD / PROGRAM
    is_old = not program.exists() or any(
        (course.BUILD / name).stat().st_mtime > program.stat().st_mtime for name in names)
    if is_old or not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
