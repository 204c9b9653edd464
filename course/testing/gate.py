"""Runs the gate of a stage on a worker that is built, and reads its report."""
import contextlib
import os
import pathlib
import re
import shutil
import tempfile
import time

from sandbox import confine
from sandbox import limited
from shared import course
from testing import verdict
import strict_json

# Limits of the judge for one stage. It holds the questions, the right answers and one given answer at a time.
GATE_SECONDS = 1800
NAME_SECONDS = 120  # if a verdict took longer, no mistake is looked for, which takes as long again
GATE_MEMORY = 1 << 30  # bytes of address space
GATE_FILE = 256 << 20  # bytes per file: prints, kept requests, report
QUICK_ROOM = 2 << 30


def reported(text):
    """A text from GoogleTest's JSON, which some versions write byte by byte."""
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text


def quick_folder():
    """A folder for the hundreds of files per verdict that exist for milliseconds. It is in memory if there is plenty:
    the journal of a disk would take half of a verdict's time. None: the default folder for temporary files."""
    memory = pathlib.Path("/dev/shm")
    if "TMPDIR" in os.environ or not os.access(memory, os.W_OK):
        return None
    return memory if shutil.disk_usage(memory).free >= QUICK_ROOM else None


def run(stage, worker, seed=None, mistakes=None, keep=None, only=None):
    """Runs the gate of a stage on a worker that is built; only: the groups to run.

    seed: of the random numbers, by default a new one each time. mistakes: the folder of the stage's wrong programs, if
    they are to explain failures. keep: a folder for all requests to the worker.
    """
    result = verdict.Result(stage)
    result.seed = seed
    if only is not None:
        result.groups = [group for group in result.groups if group.name in only]
    suites = ":".join(f"{group.name}.*" for group in result.groups)
    with tempfile.TemporaryDirectory(dir=quick_folder()) as folder:
        environment = {"TMPDIR": folder}
        if seed is not None:
            environment["STAGE_SEED"] = str(seed)
        if mistakes is not None:
            environment["STAGE_MISTAKES"] = str(mistakes)
            if "STAGE_ANSWERS" not in os.environ:  # the answers of mistakes, to ask each only once
                environment["STAGE_ANSWERS"] = tempfile.mkdtemp(dir=folder)
        if keep is not None:
            shutil.rmtree(keep, ignore_errors=True)
            keep.mkdir(parents=True)
            environment["STAGE_KEEP"] = str(keep)
        said, how = ask_judge(suites, worker, environment, folder)
    if said is None:
        result.unfinished = how
        for group in result.groups:
            group.status, group.failures = "wrong", [course.say("gate_ended", how)]
        return result
    known_mistakes = strict_json.parse(said.get("known-mistakes", "{}"))
    for group in result.groups:
        suite = next((suite for suite in said["testsuites"] if suite["name"] == group.name), {})
        result.peak = max(result.peak, int(suite.get("peak", 0)))
        read_group(group, suite.get("testsuite", []), failed_requests(keep, group.name) if keep else [])
        explain(group, known_mistakes.get(group.name))
        if group.status == "unwritten":
            group.waits_for = waits_for(group, result, suite.get("testsuite", []))
    return result


def has_passed(test):
    """A skipped test has not: GoogleTest counts it as neither passed nor failed."""
    unproved = {"failures", "not-written", "not-measured", "not-judged"}
    return test.get("result", "COMPLETED") == "COMPLETED" and not unproved & set(test)


def read_group(group, tests, requests):
    """Fills in a group from the report about its tests; requests: those of its failures that the gate kept."""
    for test in tests:
        group.n_passed += has_passed(test)
        for failure in test.get("failures", []):
            text = reported(failure["failure"])  # "file:line\nFailed\n", then the gate's message
            group.failures.append(text.split("Failed\n", 1)[-1].strip())
    # The text of the last band is about the most runs.
    group.measured = next((reported(test["measured"]) for test in reversed(tests) if "measured" in test), None)
    group.failed_requests = requests
    group.is_untried = any("not-tried" in test for test in tests)
    has_crashed = any(kind in ("crashed", "printed") for kind, _ in requests)
    if any("not-written" in test for test in tests) and not has_crashed:
        group.status = "unwritten"
    elif any("not-judged" in test for test in tests):
        group.status = "unjudged"
        group.failures = [next(reported(test["not-judged"]) for test in tests if "not-judged" in test)]
    elif any("not-measured" in test for test in tests):
        group.status = "unmeasured"
    elif tests and all(map(has_passed, tests)):
        group.status = "passed"
    elif group.failures and all("too-slow" in test for test in tests if "failures" in test):
        group.status = "slow"
    else:
        group.status = "wrong"


def waits_for(group, result, tests):
    """The part of another file that a group's function calls and that is not written yet. None if the function itself
    is not written, or if nobody knows."""
    stage = result.stage
    if any(unit["file"] == group.file and stage.is_marked(unit) for unit in stage.units):
        return None
    missing = next(reported(test["not-written"]) for test in tests if "not-written" in test)
    named = re.match(r"stage \d+\.(\d+): ", missing)
    files = {other.part: other.file for other in result.groups}
    part = int(named[1]) if named else None
    return part if files.get(part, group.file) != group.file else None


def explain(group, mistake):
    """mistake: the one the gate found: its name, its sentence, and a case that it reproduces. This case is moved to the
    front, so that it is shown."""
    if mistake is None:
        return
    group.mistake, group.mistake_says = mistake["name"], mistake["says"]
    group.mistake_in_part = mistake["in_part"]
    shown = next((at for at, text in enumerate(group.failures) if text.split("\n", 1)[0] == mistake["shown"]), 0)
    for found in (group.failures, group.failed_requests):
        if len(found) == len(group.failures):
            found.insert(0, found.pop(shown))


def ask_judge(suites, worker, environment, folder):
    """(the gate's report about these suites, or None; how it ended then). If it ended without a report, this is the
    worker's fault if the gate can report about a worker that does nothing; otherwise it is a course.Problem."""
    found, how = run_judge(suites, worker, environment, folder)
    if found is None and run_judge(suites, "/bin/false", {}, folder)[0] is None:
        raise course.Problem(course.say("gate_unfinished", how))
    return found, how


def run_judge(suites, worker, environment, folder):
    report = pathlib.Path(folder) / "report.json"
    report.unlink(missing_ok=True)
    seconds = course.number_in_environment("STAGE_GATE_SECONDS", GATE_SECONDS)
    words = [str(course.BUILD / "course" / "gate"), f"--gtest_filter={suites}", f"--gtest_output=json:{report}"]
    # Variables of GoogleTest, such as GTEST_FAIL_FAST, would leave tests out.
    own = {name: value for name, value in os.environ.items() if not name.startswith("GTEST_")}
    ended = limited.run(confine.limited(words, seconds, GATE_MEMORY, GATE_FILE), None, seconds + 5,
                        own | {"STAGE_WORKER": str(worker)} | environment)
    if ended.code is None:
        return None, course.say("gate_endless", seconds)
    try:
        return strict_json.parse(report.read_text(encoding="utf-8", errors="replace")), ""
    except (OSError, ValueError):
        return None, ended.how


def failed_requests(folder, suite=None):
    """(how it failed, the request's file) for each failure, of one suite or of all; folder: where the gate kept its
    requests."""
    notes = folder / "failed"
    lines = notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []
    failures = [line.split(" ") for line in lines]
    return [(kind, folder / name) for kind, of, name in failures if suite in (None, of)]


class NoTurns:
    """For judge, if no other work runs at the same time."""
    together = alone = staticmethod(contextlib.nullcontext)


def judge(stage, worker, seed, keep, known_mistakes, built=None, turns=NoTurns):
    """Judges what is right and what is fast; if something is wrong, finds the known mistake.

    known_mistakes: called with the result if a name is needed; returns the folder of the stage's wrong programs, or
    None. built: this folder, if it already exists: then the gate looks for the name at once. turns: two contexts:
    `together` with other work, and `alone` for measuring time.
    """
    begin = time.monotonic()
    result = judge_once(stage, worker, seed, keep, built, turns)
    has_time = time.monotonic() - begin < NAME_SECONDS
    folder = None
    if not built and has_time and needs_a_name(result, stage):
        with turns.together():  # it compiles
            folder = known_mistakes(result)
    return judge_once(stage, worker, seed, keep, folder, turns) if folder else result


def judge_once(stage, worker, seed, keep, mistakes, turns):
    """run in two steps: what is right, and then, if all of it is written and right, what is fast. Otherwise a program that
    computes only the easy cases could earn the points for speed."""
    exact = [group["name"] for group in stage.groups if group["name"] not in stage.timed]
    with turns.together():
        result = run(stage, worker, seed, mistakes, keep, exact)
        if result.unfinished and mistakes:  # the points must not depend on the search for a name
            result = run(stage, worker, seed, None, keep, exact)
    if not stage.timed:
        return result
    found = {group.status for group in result.groups}
    if found & {"wrong", "unwritten"}:
        timed = verdict.Result(stage)
        for group in timed.groups:
            group.status = "unwritten" if found == {"unwritten"} else "unmeasured"
    else:
        with turns.alone():
            timed = run(stage, worker, seed, None, keep / "timed", stage.timed)
        result.unfinished, result.peak = timed.unfinished, max(result.peak, timed.peak)
    found = {group.name: group for group in [*timed.groups, *result.groups]}
    result.groups = [found[group["name"]] for group in stage.groups]
    return result


def needs_a_name(result, stage):
    """True if it is worth the time to build the wrong programs and to look for the one that explains this result."""
    hung = any(kind == "hung" for group in result.groups for kind, _ in group.failed_requests)  # explains itself
    is_wrong = result.status == "wrong" or stage.is_emulated and result.status == "slow"
    return is_wrong and not hung and not result.unfinished
