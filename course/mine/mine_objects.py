"""Which objects the --mine program is linked of: the student's for the chosen stages, ours for the others.

course/cmake/mine.cmake lists them.
"""
import json
import re

from shared import course

PROGRAM = "course/stagecraft_mine"  # below the build folder


def targets(chosen):
    """What has to be compiled for these stages."""
    names = [f"counted_{stage.number}" for stage in chosen]
    known = listed()["stages"]
    names += [f"linked_{stage.number}" for stage in chosen if known[stage.number]["in_place"]]
    return names + ["emulator"] * any(stage.is_emulated for stage in chosen)


def listed():
    path = course.BUILD / "course" / "mine.json"
    if not path.exists():  # verdicts are remembered longer than a build may last
        course.build()
    return json.loads(path.read_text(encoding="utf-8"))


def objects(chosen):
    """Their paths. A file that two stages bring is linked once."""
    parts = listed()
    numbers = {stage.number for stage in chosen}
    paired, linked, in_place = list(parts["core"]), {}, []
    for number, stage in parts["stages"].items():
        paired += stage["students" if number in numbers else "ours"]
        if number in numbers:
            linked.update((path.partition(".dir/")[2], path) for path in stage["linked"] if path)
            in_place += filter(None, stage["in_place"].split("|"))
    # Also those that are another stage's: with stage 11 there is one rms_norm, on the GPU.
    replaced = re.compile(rf"/({'|'.join(in_place)})\.cpp\.o(bj)?$")
    return [path for path in paired if path and not replaced.search(path)] + list(linked.values())


def write(chosen):
    """Tells the linker, if that is news to it: other objects, or one that was compiled again."""
    names = objects(chosen)
    text = "".join(f'"{name}"\n' for name in names)
    if any(stage.is_emulated for stage in chosen):
        text += "-no-pie\n"  # the emulator reads the program's symbols, at the addresses at which they stand
    path, program = course.BUILD / "course" / "mine_objects", course.BUILD / PROGRAM
    is_old = not program.exists() or any(
        (course.BUILD / name).stat().st_mtime > program.stat().st_mtime for name in names)
    if is_old or not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
