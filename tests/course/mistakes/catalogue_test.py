"""Proves the gates of one stage with its catalogue, whose programs are already built:

    catalogue_test.py BUILD STAGE [SEEDS]

With each of SEEDS (2) seeds, which give different numbers, every wrong program must fail its gate and every right one
must pass. With the first seed, at least nine in ten mistakes must be named by their own sentence (or that of the
mistake that they repeat in other code), and none by another; a program without a sentence must get none. Standard
library only; ctest runs it.
"""
import concurrent.futures
import json
import os
import pathlib
import secrets
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "course"), str(ROOT / "tools")]
from grading import recipe  # noqa: E402
from mistakes import catalogue  # noqa: E402
from rules import refusal  # noqa: E402
from shared import course  # noqa: E402
from testing import gate  # noqa: E402

MINIMUM = {"wrong": 6, "right": 4}  # programs per stage
TOLD = 0.9
SEEDS = 2


def registry_problems(folder, programs):
    """Compares the registry with the files, in both directions, and checks that each entry is complete."""
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
            if not {"same_as", "why"} & program.keys() and not {"en", "zh"} <= program.keys():
                yield f"{name}: expected a sentence in en and zh, same_as, or why"
        if not first_line.startswith(expected):
            yield f"{name}: expected a first line '{expected}...'"
    for kind, least in MINIMUM.items():
        found = sum(program["is"] == kind for program in programs)
        if found < least:
            yield f"expected at least {least} {kind} programs, found {found}"


def refused(stage, folder, programs):
    """Why a program would be refused if a student handed it in: a student may write any of them."""
    ours = recipe.recipe(stage.number).ours
    for program in programs:
        name = program["file"]
        made = course.BUILD / catalogue.object_of(folder, program)
        said = refusal.why(stage, {name: catalogue.source(folder, program)}, {name: made}, ours)
        if said:
            yield f"{name}: {said.splitlines()[0]}"


def verdict(program, result):
    """For a right program, or one that only one group can notice: what went wrong, or None."""
    wrong = [group for group in result.groups if group.status == "wrong"]
    if "in" in program:
        found = [group.name for group in wrong]
        expected = [program["in"]]
        return None if found == expected else f"{program['file']}: expected {expected} to notice it, found {found}"
    failures = [failure for group in wrong for failure in group.failures]  # being slow is no fault
    return f"{program['file']}: right, and refused: {failures[0]}" if failures else None


def wrongly_told(program, said):
    """What is wrong with the sentences for a wrong program, {group: mistake}, or None."""
    expected = {program.get("same_as", catalogue.name_of(program))} if "why" not in program else set()
    said = set(said.values())
    if said == expected:
        return None
    named = [", ".join(sorted(names)) or "none" for names in (expected, said)]
    return f"{program['file']}: expected the sentence of {named[0]}, found {named[1]}"


def confined(stage, programs, seed, pool):
    """Right programs that fail in the sandbox of a student's worker, and wrong ones that no group that measures speed
    notices. All other questions are asked without a sandbox, in half the time."""
    def judge(program):
        return verdict(program, gate.run(stage, course.mistakes_folder(stage) / catalogue.name_of(program), seed))
    return filter(None, pool.map(judge, (program for program in programs if not is_wrong(program))))


def is_wrong(program):
    """True if the program is wrong by more than its speed."""
    return program["is"] == "wrong" and "in" not in program


def suites_of(stage, costs=True):
    """costs: include the counts of the emulated GPU; a right program may be costly."""
    return [group["name"] for group in stage.groups if costs or "bands" not in group]


def ask_many_programs(stage, programs, seed, suites, named=False):
    """({name: what was wrong} for the programs that the gate refused with this seed, what was wrong with the gate, or
    None). One gate asks all programs. named: with the known mistakes that it finds; otherwise each program is asked
    until its first failure."""
    folder = course.mistakes_folder(stage)
    with tempfile.TemporaryDirectory(dir=gate.quick_folder()) as scratch:
        settings = {"STAGE_OURS": str(folder), "STAGE_PROGRAMS": ":".join(map(catalogue.name_of, programs)),
                    "STAGE_SEED": str(seed), "STAGE_MISTAKES": str(folder) if named else "", "STAGE_ANSWERS": scratch,
                    "TMPDIR": scratch, "TEST_TMPDIR": scratch}
        filtered = ":".join(f"{suite}.*" for suite in suites) + ":-*Speed*"
        said, how = gate.run_judge(filtered, "none", settings, scratch)
    if said is None:
        return {}, f"seed {seed}: the gate did not finish: {how}"
    return json.loads(said["refused"]), None


def on_a_seed(stage, programs, seed, failed_in):
    """Verdicts that change with the seed. failed_in: {name of a wrong program: the suite in which it failed with
    another seed}; if it fails there again, its other suites are not run."""
    def ask(programs, suites):
        asked, problem = ask_many_programs(stage, programs, seed, suites) if programs else ({}, None)
        problems.extend([problem] if problem else [])
        return asked

    problems = []
    refused = ask([program for program in programs if program["is"] == "right"], suites_of(stage, costs=False))
    problems += [f"{name}: right, and refused on seed {seed}: {said['first']}" for name, said in refused.items()]
    left = {catalogue.name_of(program): program for program in programs if is_wrong(program)}
    for suite in sorted(set(failed_in.values())):
        for name in ask([left[name] for name, its in failed_in.items() if its == suite], [suite]):
            del left[name]
    noticed = ask(list(left.values()), suites_of(stage))
    return problems + [f"{name}: wrong, and not noticed on seed {seed}" for name in left.keys() - noticed.keys()]


def main():
    course.BUILD = pathlib.Path(sys.argv[1]).resolve()
    os.environ["STAGE_TRIES"] = "1"  # tries of speed, which is no fault here
    stage = course.find_stage(sys.argv[2], course.stages())
    n_seeds = int(sys.argv[3]) if len(sys.argv) > 3 else SEEDS
    folder = catalogue.folder_of(stage)
    programs = catalogue.entries(folder)
    problems = list(registry_problems(folder, programs))
    problems += refused(stage, folder, programs)
    untold = []
    # All programs get the same seeds, which are new in each run, so that no wrong program is tested with the same
    # numbers.
    seeds = [secrets.randbits(60) for _ in range(n_seeds)]
    print(f"first seed {seeds[0]}")
    wrong = list(filter(is_wrong, programs))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        problems += confined(stage, programs, seeds[0], pool)
        refused_here, problem = ask_many_programs(stage, wrong, seeds[0], suites_of(stage), named=True)
        problems += [problem] if problem else []
        for program in [] if problem else wrong:
            said = refused_here.get(catalogue.name_of(program))
            if said is None:
                problems.append(f"{program['file']}: wrong, and not noticed")
            elif problem := wrongly_told(program, said["mistakes"]):
                (untold if "why" not in program and not said["mistakes"] else problems).append(problem)
        failed_in = {name: said["suite"] for name, said in refused_here.items()}
        for found in pool.map(lambda seed: on_a_seed(stage, programs, seed, failed_in), seeds[1:]):
            problems += found
    sentences = sum("en" in program for program in programs)
    again = sum("same_as" in program for program in programs)
    if len(untold) > (1 - TOLD) * (sentences + again):
        problems += untold
    n_right = sum(program["is"] == "right" for program in programs)
    print(f"stage {stage.id}: {len(programs) - n_right} wrong programs, {n_right} right ones, seeds: {n_seeds}; "
          f"{sentences + again - len(untold)} of {sentences + again} mistakes told by their own sentence, "
          f"{again} of them made again in other code, "
          f"{sum('why' in program for program in wrong)} without a sentence")
    for line in [*problems, *(one for one in untold if one not in problems)]:
        print(f"  {line}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
