"""Grades what one student handed in, by the official tree that this file stands in.

Nothing of the student's but the submission's files is used. The official tree is built once; a student's
files are compiled beside it, each stage on its own, so that five hundred of them cost five hundred times
only that. What comes out is a dictionary, the result.json of docs/teaching.md.
"""
import concurrent.futures
import functools
import os
import pathlib
import re
import secrets
import signal
import subprocess
import tempfile
import threading

import course
import recipe
import sanitized
import submission
from confine import NOT_STARTED, TOO_LONG, confined, why_not

SCHEMA = 1
PLACE = course.BUILD.parent / "grading"
COMPILE_SECONDS = 60
MAX_OUTPUT = 256 << 10
ERROR_LINE = re.compile(r"^(stages/[^:\s]+):(\d+):(?:\d+:)? (?:fatal )?error: (.*)", re.M)
GROUPS = {"passed", "unwritten", "crashed", "hung"}  # other ways to fail are "wrong"
NO_FAULT = ("passed", "unwritten", "begun", "slow", "unjudged")
building = threading.Lock()


# ---- the official side, once --------------------------------------------------------------------


def headers():
    """A folder with the headers of src/ and nothing else of it."""
    folder = PLACE / "include"
    wanted = {path.relative_to(course.ROOT / "src"): path for path in (course.ROOT / "src").rglob("*.h")}
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        if path.relative_to(folder) not in wanted:
            path.unlink()
    for name, path in wanted.items():
        copy = folder / name
        if not copy.exists() or copy.read_bytes() != path.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    return folder


@functools.lru_cache(maxsize=None)
def prepare():
    """Builds what every student is graded with; the folder of the headers."""
    problem = course.build("grading", only=True)
    if problem is not None:
        raise course.Problem(f"the official tree does not build:\n{course.first_error(problem)}")
    return headers()


@functools.lru_cache(maxsize=None)
def mistakes(number):
    """The built wrong programs of a stage, or None."""
    with building:
        return course.build_mistakes(course.find_stage(number, course.stages()), only=True)


def official():
    """Which official tree this is."""
    return {"commit": submission.head(course.ROOT)}


def compiler():
    words = [recipe.recipe(course.stages()[0].number).compiler, "--version"]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[0]


# ---- a student's side ---------------------------------------------------------------------------


def run_limited(command, folder, seconds):
    """(exit code, the beginning of what it said) of a confined command; the code is None where it did not
    end in time."""
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=said,
                                 stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = child.wait(seconds)  # the command's own limit comes first
        except subprocess.TimeoutExpired:
            code = None
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        said.seek(0)
        text = said.read(MAX_OUTPUT).decode("utf-8", "replace")
    if code == NOT_STARTED or text.startswith("ccache: error"):  # no fault of the student's
        raise course.Problem(text)
    return None if code == TOO_LONG else code, text


class NotMade(Exception):
    """A student's program cannot be made; the message is for the student."""


class Work:
    """One student's files in a folder of their own."""

    def __init__(self, handed_in, seed, folder):
        self.handed_in = handed_in
        self.seed = seed
        self.folder = pathlib.Path(folder)
        for name, text in handed_in.files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)

    def make(self, stage, kind=""):
        """Compiles and links the worker of a stage with the student's files."""
        steps = recipe.recipe(stage.number, kind)
        made = self.folder / f"{stage.number}{kind}"
        objects = {name: made / "CMakeFiles" / "mine.dir" / f"{name}.o" for name in steps.compile}
        for name, out in objects.items():
            out.parent.mkdir(parents=True, exist_ok=True)
            command = confined(steps.compile_command(name, out, headers=prepare()),
                               reads=[prepare(), self.folder / "stages"], writes=[out.parent],
                               compiles=True, seconds=COMPILE_SECONDS)
            code, said = run_limited(command, self.folder, COMPILE_SECONDS + 5)
            if code is None:
                raise NotMade(course.say("grade_endless_compile", name, COMPILE_SECONDS))
            if code != 0:
                raise NotMade(course.first_error(said))
        worker = made / "worker"
        command = confined(steps.link_command(objects, worker), reads=[course.BUILD], writes=[made],
                           compiles=True, seconds=COMPILE_SECONDS)
        code, said = run_limited(command, course.BUILD, COMPILE_SECONDS + 5)
        if code != 0:
            files = [str(objects.get(word, word)) for word in steps.link if word.endswith((".o", ".cpp"))]
            raise NotMade(course.why_not_made(said, files).replace(f"{made}/", ""))
        return worker

    def where_it_happens(self, stage, request):
        """What the sanitizers say about a request that the student's code did not survive."""
        try:
            worker = self.make(stage, "_asan")
        except NotMade:
            return "", None

        def command(words):
            return confined(words, reads=[request.parent, course.ROOT / "tests" / "data" / "models"],
                            writes=[pathlib.Path(words[-1]).parent], sanitized=True,
                            seconds=sanitized.SECONDS)

        return sanitized.ask(worker, request, stage, command)

    def judge(self, stage):
        """What the gate says, with the known mistake where there is one."""
        worker = self.make(stage)
        kept = self.folder / f"{stage.number}-asked"
        return course.ask_gate(stage, worker, self.seed, kept, functools.partial(mistakes, stage.number))

    def describe(self, group, stage, entry):
        """A group of points for the result; entry: its stage's, which gets the line."""
        kind, request = group.failed_requests[0] if group.failed_requests else (group.status, None)
        status = kind if group.status == "wrong" and kind in GROUPS else group.status
        message = group.failures[0] if group.failures else ""
        if kind in ("crashed", "overrun") and "line" not in entry:
            complaint, place = self.where_it_happens(stage, request)
            source = self.handed_in.files[place[0]].decode("utf-8", "replace") if place else ""
            message = "\n".join([message, *sanitized.told(complaint, place, source)])
            entry["line"] = place and {"file": place[0], "line": place[1], "message": complaint}
        return {"name": group.name, "points": group.points, "earned": group.earned, "status": status,
                "message": message, "more": max(len(group.failures) - 1, 0), "mistake": group.mistake,
                "mistake_says": group.mistake_says}

    def grade(self, stage):
        """The entry of a stage in the result."""
        result = course.Result(stage)
        entry = {"id": stage.id, "slug": stage.slug, "title": stage.title, "points": stage.points}
        started = refused = False
        for unit in stage.units:
            name = course.unit_name(stage, unit)
            if name in self.handed_in.refused:
                started = refused = True
                entry["message"] = course.say(self.handed_in.refused[name], name)
            elif course.blob_hash(self.handed_in.files[name]) != unit.get("starter"):
                started = True
        try:
            if started and not refused:
                result = self.judge(stage)
        except NotMade as problem:
            result.compile_error = entry["message"] = str(problem)
            found = ERROR_LINE.search(str(problem))
            if found:
                entry["line"] = {"file": found[1], "line": int(found[2]), "message": found[3]}
        groups = entry["groups"] = [self.describe(group, stage, entry) for group in result.groups]
        failed = [group["status"] for group in groups if group["status"] not in NO_FAULT]
        if refused:
            entry["status"] = "refused"
        elif result.compile_error:
            entry["status"] = "uncompiled"
        else:  # "begun": functions are missing, and nothing is wrong
            entry["status"] = failed[0] if failed else "begun" if result.is_begun else result.status
        entry["failed"] = entry["status"] not in NO_FAULT
        return {**entry, "earned": result.earned, "started": started}


def grade(handed_in, seed=None, jobs=None):
    """Grades every stage of a submission. seed: of the numbers made on the spot."""
    seed = secrets.randbits(63) if seed is None else seed
    prepare()
    PLACE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=PLACE, prefix="student-") as folder:
        work = Work(handed_in, seed, folder)
        with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
            entries = list(pool.map(work.grade, course.stages()))
    return {
        "schema": SCHEMA, "official": official(), "seed": seed, "compiler": compiler(),
        "language": course.language(), "confined": not why_not(), "not_confined_because": why_not(),
        "repository": {"source": handed_in.source, "sha": handed_in.sha, "changed": handed_in.is_changed},
        "earned": sum(entry["earned"] for entry in entries),
        "points": sum(entry["points"] for entry in entries),
        "failed": [entry["id"] for entry in entries if entry["failed"]],
        "stages": entries,
    }
