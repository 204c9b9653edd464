"""What is remembered of a student's work, in build/course/notes.json: the last verdict on each stage, with hashes of
the files it was about, and how many hints were shown. If build/ is deleted, the verdicts are found again."""
import datetime
import functools
import hashlib
import json
import sys

from shared import atomic
from shared import course
from shared import lock
from testing import stage_here
from testing import verdict

NOTES = course.ROOT / "build" / "course" / "notes.json"
# What a verdict depends on besides the student's files.
OFFICIAL = ("src", "cmake", "CMakeLists.txt", "CMakePresets.json", "stages/stages.json", "stages/own_work.json",
            *(f"course/{name}" for name in ("cmake", "judge", "mine", "rules", "sandbox", "testing", "worker")),
            *(f"tools/{name}.py" for name in ("cuda_check", "cuda_compile", "strict_json")),
            "models/story", "tests/data", "tests/gates", "tests/support")


def files_of(names):
    """The files with these names, or in the folders with these names, without those that Python compiles."""
    roots = [course.ROOT / name for name in names]
    return only_files(path for root in roots for path in (root, *root.rglob("*")))


def only_files(paths):
    return sorted(path for path in paths if path.is_file() and path.suffix != ".pyc")


def fingerprint(paths):
    text = hashlib.sha1()
    for path in only_files(paths):
        text.update(f"{path.relative_to(course.ROOT)}\0{course.blob_hash(path.read_bytes())}\0".encode())
    return text.hexdigest()


@functools.cache
def official():
    return fingerprint(files_of(OFFICIAL))


def files(stage):
    """All files that the student may have written for a stage, except my_tests.cpp, which decides nothing."""
    found = {path for ending in ("*.cpp", "*.cu", "*.h", "*.hpp") for path in stage.folder.glob(ending)}
    return sorted(found - {stage.my_tests})


def read():
    try:
        return json.loads(NOTES.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def note(kind, stage, value):
    """Stores `value` for a stage under a kind: "verdicts", "begun", "right", "hints" or "hints of part 3"."""
    with lock.held(NOTES.with_suffix(".lock")):
        notes = read()
        notes.setdefault(kind, {})[stage.number] = value
        atomic.write(NOTES, json.dumps(notes, indent=1))  # ./stage watch may be reading


def days(stages):
    """Days from the first verdict on any of them until the last became right, both days counted; 0: not known, or the
    clock was turned back."""
    begun, right = ([recall(kind, stage) for stage in stages] for kind in ("begun", "right"))
    if None in right or not any(begun):
        return 0
    first, last = min(filter(None, begun)), max(right)
    return max(0, (datetime.date.fromisoformat(last) - datetime.date.fromisoformat(first)).days + 1)


def recall(kind, stage):
    return read().get(kind, {}).get(stage.number)


def judge(stage, explain=False):
    """stage_here.test; stores the verdict."""
    mine = fingerprint(files(stage))  # before the build: an edit during the build needs a new verdict
    before = recall("verdicts", stage) or {}
    if recall("begun", stage) is None:
        note("begun", stage, f"{datetime.date.today()}")
    result = stage_here.test(stage, explain, before.get("seed"))
    if result.is_right and recall("right", stage) is None:
        note("right", stage, f"{datetime.date.today()}")
    note("verdicts", stage, {
        # The same numbers until the stage is right, so that the student sees what an edit changed.
        "seed": None if result.status == "passed" else result.seed or before.get("seed"),
        "files": mine, "official": official(), "compile_error": result.compile_error,
        "blocked": result.blocked,
        "groups": {group.name: group.status for group in result.groups},
        "passed": {group.name: group.n_passed for group in result.groups}})
    return result


def remembered(stage, official_too=True):
    """The last verdict, without the texts of its failures, if it is about the present files: the student's and, unless
    `official_too` is False, all official ones. Otherwise None."""
    noted = recall("verdicts", stage)
    if not noted or noted["files"] != fingerprint(files(stage)):
        return None
    if official_too and noted["official"] != official():
        return None
    result = verdict.Result(stage)
    result.compile_error, result.blocked = noted["compile_error"], noted.get("blocked")
    for group in result.groups:
        group.status = noted["groups"].get(group.name, "unwritten")
        group.n_passed = noted.get("passed", {}).get(group.name, 0)
    return result


def result_of(stage):
    """The result of a stage so far; judges it only if it changed since the last verdict."""
    if not stage.is_started:
        return verdict.Result(stage)
    known = remembered(stage)
    if known is None:
        course.tell(course.say("judging", stage.id), sys.stderr)
        known = judge(stage)
    return known


def are_all_right(stages):
    """True if all are right according to the remembered verdicts; judges nothing."""
    expected = (stage for stage in stages if stage.is_expected)
    return all((found := remembered(stage, official_too=False)) and found.status == "passed" for stage in expected)


def next_unfinished(stages):
    """The first stage with work to do, or None. A stage that passed before official files changed counts as passed."""
    for stage in (stage for stage in stages if stage.is_expected):
        before = remembered(stage, official_too=False) or result_of(stage)
        if not before.is_done_here:
            return stage
    return None
