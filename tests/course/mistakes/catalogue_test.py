"""Proves the gates of one stage by its catalogue, whose programs are built already:

    catalogue_test.py BUILD STAGE

Every wrong program fails its gate, and at least nine in ten are told by their own sentence; one that
makes a known mistake in other code gets that mistake's sentence; every right program passes.
Standard library only; ctest runs it.
"""
import concurrent.futures
import os
import pathlib
import secrets
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "course"), str(ROOT / "tools")]
from mistakes import catalogue  # noqa: E402
from shared import course  # noqa: E402
from grading import own_work  # noqa: E402
from grading import recipe  # noqa: E402

MINIMUM = {"wrong": 6, "right": 4}  # programs a stage
TOLD = 0.9


def registry_problems(folder, programs):
    """The registry against the files, both ways, and what every entry must have."""
    files = {path.name for path in folder.glob("*.c*")}
    named = {program.get("of", program["file"]) for program in programs}
    for name in sorted(files.symmetric_difference(named)):
        yield f"{name}: " + ("not in mistakes.json" if name in files else "there is no such file")
    told = {pathlib.Path(program["file"]).stem for program in programs if "en" in program}
    sentences = [program[key] for program in programs for key in ("en", "zh") if key in program]
    if len(sentences) != len(set(sentences)):
        yield "two mistakes have the same sentence"
    for program in programs:
        name = program["file"]
        first_line = catalogue.source(folder, program).split("\n", 1)[0] if program.get("of", name) in files else ""
        if program["is"] == "right":
            expected = "// Right: "
        else:
            expected = "// Mistake: "
            if "same_as" in program and program["same_as"] not in told:
                yield f"{name}: same_as: '{program['same_as']}' has no sentence"
            if "same_as" not in program and not ("en" in program and "zh" in program):
                yield f"{name}: expected a sentence in en and zh, or same_as"
        if not first_line.startswith(expected):
            yield f"{name}: expected a first line '{expected}...'"
    for kind, least in MINIMUM.items():
        found = sum(program["is"] == kind for program in programs)
        if found < least:
            yield f"expected at least {least} {kind} programs, found {found}"


def refused(stage, folder, programs):
    """Why a program would not be linked as a student's, who may write any of them."""
    ours = recipe.recipe(stage.number).ours
    for program in programs:
        name = program["file"]
        made = course.BUILD / catalogue.object_of(folder, program)
        said = own_work.refusal(stage, {name: catalogue.source(folder, program)}, {name: made}, ours)
        if said:
            yield f"{name}: {said.splitlines()[0]}"


def judge(stage, program, seed):
    worker = course.mistakes_folder(stage) / pathlib.Path(program["file"]).stem
    return program, course.run_gate(stage, worker, seed, course.mistakes_folder(stage))


def verdict(program, result):
    """(what went wrong or None, whether a wrong program was told by the right sentence)"""
    name = program["file"]
    if program["is"] == "right":
        failures = [failure for group in result.groups if group.status == "wrong"
                    for failure in group.failures]  # slow is no fault
        return (f"{name}: right, and refused: {failures[0]}" if failures else None), True
    if {group.status for group in result.groups} <= {"passed", "unwritten"}:
        return f"{name}: wrong, and not noticed", False
    expected = program.get("same_as", pathlib.Path(name).stem)
    said = {group.mistake for group in result.groups if group.mistake}
    if said == {expected}:
        return None, True
    told = ", ".join(sorted(said)) or "none"
    return f"{name}: expected the sentence of '{expected}', found {told}", False


def main():
    course.BUILD = pathlib.Path(sys.argv[1])
    os.environ["STAGE_TRIES"] = "1"  # of speed, which is no fault here
    stage = course.find_stage(sys.argv[2], course.stages())
    folder = catalogue.folder_of(stage)
    programs = catalogue.entries(folder)
    problems = list(registry_problems(folder, programs))
    problems += refused(stage, folder, programs)
    untold = []
    # All are asked the same, with another seed each time this runs, so that no wrong one is asked twice.
    seed = secrets.randbits(63)
    print(f"seed {seed}")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool, tempfile.TemporaryDirectory(
            dir=course.quick_folder()) as answers:
        os.environ["STAGE_ANSWERS"] = answers
        for program, result in pool.map(lambda one: judge(stage, one, seed), programs):
            problem, told = verdict(program, result)
            if problem and not told and result.status != "passed" and "same_as" not in program:
                untold.append(problem)
            elif problem:
                problems.append(problem)
    sentences = sum("en" in program for program in programs)
    if len(untold) > (1 - TOLD) * sentences:
        problems += untold
    wrong = sum(program["is"] == "wrong" for program in programs)
    print(f"stage {stage.id}: {wrong} wrong programs, {len(programs) - wrong} right ones; "
          f"{sentences - len(untold)} of {sentences} mistakes told by their own sentence, "
          f"{sum('same_as' in program for program in programs)} made again in other code")
    for line in [*problems, *(one for one in untold if one not in problems)]:
        print(f"  {line}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
