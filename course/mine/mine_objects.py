"""Chooses the objects that the --mine program is linked from: the student's for the chosen stages, ours for the others.

course/cmake/mine.cmake writes the list of all objects.
"""
import re

from shared import course
from testing import building


def program(ours="stagecraft"):
    """Where a program with the student's functions is, below the build folder. ours: the program that it is a variant of,
    "stagecraft" or "storyteller"."""
    return f"course/{ours}_mine"


def targets(chosen, on_gpu=False):
    """The build targets that these stages need. on_gpu: real_gpu.py compiles the kernels."""
    emulated = [stage for stage in chosen if stage.is_emulated]
    names = [f"counted_{stage.number}" for stage in chosen if not (on_gpu and stage.is_emulated)]
    known = building.listed()["stages"]
    names += [f"linked_{stage.number}" for stage in chosen if any(known[stage.number]["linked"])]
    return names + (["emulator", "mine_on_emulator"] if emulated and not on_gpu else [])


def objects(chosen, students=None, on_gpu=None, ours="stagecraft"):
    """The paths of the objects. students: {number: the student's objects of that stage}, if the build did not make
    them. on_gpu: the student's objects of the stage with kernels, if a GPU runs them. ours: as for program."""
    parts = building.listed()
    numbers = {stage.number for stage in chosen}
    paired, linked, in_place = list(parts[ours]), [], []
    for number, stage in parts["stages"].items():
        if number not in numbers:
            paired += stage["ours"]
        elif on_gpu and any(stage["emulated"]):
            paired += on_gpu
        else:
            paired += students[number] if students else stage["students"]
            linked += stage["emulated"]
        if number in numbers:
            linked += stage["linked"]
            in_place += filter(None, stage["in_place"].split("|"))
    # This also removes files of other stages: with stage 11, the only rms_norm is the one on the GPU.
    replaced = re.compile(rf"/({'|'.join(in_place)})\.cpp\.o(bj)?$")
    paths = [path for path in paired if not replaced.search(path)] + linked
    return [path for path in paths if path.endswith((".o", ".obj"))]  # CMake also lists precompiled headers


def write(names, chosen, options=(), ours="stagecraft"):
    """Writes the file that the linker reads, with objects(chosen) and options, if the program must be linked again: the
    list of objects changed, or one of them was compiled again."""
    text = "".join(f'"{name}"\n' for name in (*names, *options))
    if any(stage.is_emulated for stage in chosen):
        # The emulator finds symbols by the addresses in the program's file; nvcc also compiles for such programs.
        text += "-no-pie\n"
    linked = course.BUILD / program(ours)
    path = linked.with_suffix(".objects")
    is_old = not linked.exists() or any(
        (course.BUILD / name).stat().st_mtime > linked.stat().st_mtime for name in names)
    if is_old or not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
