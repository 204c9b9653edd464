"""Grades what one student handed in, with the official tree that contains this file.

Only the files of the submission are used. The official tree is built once. A student's files are compiled beside it,
each stage separately, so the cost per student is only the compilation of their files. The result is a dictionary, the
result.json of docs/teaching.md.
"""
import concurrent.futures
import contextlib
import errno
import fcntl
import functools
import hashlib
import json
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import traceback

from rules import foreign_files
from rules import links
from rules import own_work
from rules import refusal
from sandbox import limited
from sandbox.confine import SYSTEM, confined, why_not
from shared import course
from testing import building
from testing import gate
from testing import verdict
from testing import progress
from grading import recipe
from grading import sanitized
from grading import submission

SCHEMA = 1
PLACE = course.BUILD.parent / "grading"
COMPILE_SECONDS = 60
# For all stages of a student. No student comes near it, only a machine that stands still.
SECONDS = 24 * 3600
ERROR_LINE = re.compile(r"^(stages/[^:\s]+):(\d{1,9}):(?:\d+:)? (?:fatal )?error: (.*)", re.M)
SOURCE_LINE = re.compile(r"^\S[^\n]*:\d+:(?:\d+:)? (?:fatal )?error: ", re.M)
NOT_READ = re.compile(
    r"fatal error: (?:cannot open file )?'?([^\s:']+)'?:? (?:No such file|Permission denied|file not found)")
MOST_LETTERS = 8000  # of one message to or about a student
STARVED = os.strerror(errno.EAGAIN)  # what programs say if they may start no more threads or processes
GROUPS = {"passed", "unwritten", "crashed", "hung"}  # all other failures are "wrong"
NO_FAULT = ("passed", "unwritten", "begun", "slow", "unjudged", "unmeasured")
# What a verdict depends on, besides the student's files, the seed and the compiler.
OFFICIAL = (*progress.OFFICIAL, "course/grading", "course/mistakes", "course/shared", "stages/messages.json",
            "stages/case_names.json")
# The script that compiles a stage for the CUDA emulator, and the headers that it includes.
EMULATOR = [course.ROOT / name for name in ("tools", "src/cuda_emulator")]
# For the linker: a program exports no names. Otherwise the C and C++ libraries would call a function of the program in
# place of their own one with this name, such as malloc.
PRIVATE = course.ROOT / "course" / "grading" / "private.map"
build_lock = threading.Lock()
built = {}  # {number of a stage: the folder of its wrong programs, or None}
prepared = None  # the folder of the headers, if another process made it


# ---- the official side, once --------------------------------------------------------------------


def headers():
    """A folder with one folder per stage ("02"), which holds the headers that the stage may include."""
    folder = PLACE / "include"
    wanted = {f"{stage.number}/{name}": course.ROOT / "src" / name for stage in course.stages()
              for name in own_work.rules(stage.number)["headers"]}
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        if path.relative_to(folder).as_posix() not in wanted:
            path.unlink()
    for name, path in wanted.items():
        copy = folder / name
        if not copy.exists() or copy.read_bytes() != path.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    return folder


def build(target):
    problem = building.build(target, only=True)
    if problem is not None:
        raise course.Problem(f"the official tree does not build:\n{building.first_error(problem)}")


@functools.lru_cache(maxsize=None)
def prepare():
    """Builds what all students are graded with; returns the folder of the headers."""
    if prepared is not None:
        return prepared
    if foreign_files.is_below(os.path.realpath(course.ROOT), SYSTEM):
        raise course.Problem(f"{course.ROOT}: expected the official tree outside of {', '.join(SYSTEM)}, which a "
                             "student's compiler may read")
    build("grading")
    return headers()


def use(folder):
    """Tells this process that another one has built everything, and that the headers are in this folder."""
    global prepared
    prepared = folder
    prepare.cache_clear()


def precompile(folder):
    """Copies the headers, and puts a precompiled header beside each one that a starter includes first. A student's file
    that begins with the same #include means the same and compiles in half the time. (GCC finds precompiled headers by
    itself, and uses none that was made with other options; Clang does not look for them.)"""
    shutil.copytree(prepare(), folder)
    commands = {}  # by header
    for stage in course.stages():
        if stage.is_emulated:
            continue
        steps = recipe.recipe(stage.number)
        for unit in stage.units:
            first = re.search(r'^#include "(.*)"', stage.starter(unit).decode(), re.M)
            header = folder / stage.number / first[1] if first else None
            if header and header.exists():
                words = steps.compile_command(course.unit_name(stage, unit), f"{header}.gch",
                                              headers=folder / stage.number)[:-2]
                commands.setdefault(header, [*words, "-w", "-x", "c++-header", str(header)])
    # Without one, such as on a full disk, a file is compiled as usual.
    run = functools.partial(subprocess.run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(run, commands.values()))


def mistakes(number):
    """The folder of a stage's wrong programs, built for the first student who needs them; None if they do not build."""
    with build_lock:
        if number not in built:
            built[number] = building.build_mistakes(course.find_stage(number, course.stages()), only=True)
        return built[number]


@functools.lru_cache(maxsize=None)
def official():
    """The commit of this official tree; changed: True if files that decide about marks differ from it."""
    changed = submission.run_git("--no-optional-locks", "status", "--porcelain", "--", *OFFICIAL, "course",
                                 folder=course.ROOT)
    return {"commit": submission.head(course.ROOT), "changed": bool(changed)}


@functools.lru_cache(maxsize=None)
def official_files():
    """A hash of this tree's files, because a commit says nothing about a tree with edits."""
    roots = [course.ROOT / name for name in OFFICIAL]
    return progress.fingerprint(path for root in roots for path in (root, *root.rglob("*")))


@functools.lru_cache(maxsize=None)
def compiler():
    words = [recipe.recipe(course.stages()[0].number).compiler, "--version"]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[0]


# ---- a student's side ---------------------------------------------------------------------------


class NotMade(Exception):
    """A student's program cannot be built; the message is for the student."""


class NotTheirs(NotMade):
    """It could be built, but it is not the student's own work (rules/refusal.py)."""


def is_a_verdict(said):
    """True if a compiler complains about a source, or a linker about names. Else the machine may be to blame."""
    return SOURCE_LINE.search(said) or links.failed(said)


def shown(text):
    """A text for a result: at most as long as a person reads, and valid UTF-8."""
    text = text if len(text) <= MOST_LETTERS else text[:MOST_LETTERS] + "..."
    return text.encode("utf-8", "replace").decode()


class Turns:
    """On this machine, either any number of compilers and gates run together, or one program whose time is measured
    runs alone. While a program waits to run alone, no other one may start."""

    def together(self):
        return self.take(fcntl.LOCK_SH)

    def alone(self):
        return self.take(fcntl.LOCK_EX)

    @contextlib.contextmanager
    def take(self, how):
        PLACE.mkdir(parents=True, exist_ok=True)
        with open(PLACE / "turn", "w") as turn:
            with open(PLACE / "door", "w") as door:
                fcntl.flock(door, fcntl.LOCK_EX)
                fcntl.flock(turn, how)
            yield


def temporary(kind):
    """A folder for a `with`. Its name contains the process, so that it can be deleted if the process is killed."""
    return tempfile.TemporaryDirectory(dir=PLACE, prefix=f"{kind}-{os.getpid()}-")


def is_running(pid):
    try:
        os.kill(pid, 0)
    except OSError as problem:
        return problem.errno != errno.ESRCH
    return True


def clean_up():
    """Deletes the files of processes that were killed."""
    for pattern in "*-*-*", "answers/*":
        for path in PLACE.glob(pattern):
            pid = path.name.split("-")[1] if "-" in path.name else path.name
            if pid.isdigit() and not is_running(int(pid)):
                shutil.rmtree(path, ignore_errors=True)


def is_starved(result):
    """True if a program may have failed because others had used up the threads of this user. (Root gives each program a
    user of its own.)"""
    return any(STARVED in failure for group in result.groups if group.status == "wrong" for failure in group.failures)


def is_open(entry):
    """True if a group needs another machine to be graded."""
    return any(group["status"] == "unjudged" for group in entry["groups"])


def is_doubtful(entry):
    """True if another grading of the same files may give another verdict."""
    return entry.get("unforeseen") or entry.get("starved")


class Work:
    """One student's files, in a folder of their own."""

    turns = Turns()

    def __init__(self, handed_in, seeds, folder):
        self.handed_in = handed_in
        self.seeds = seeds  # {id of a stage: the seed of its random numbers}
        self.starved = set()  # ids of stages whose programs had too few threads, also when nothing else ran
        self.folder = pathlib.Path(folder)
        for name, text in handed_in.files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)

    def compile(self, stage, kind=""):
        """Compiles the student's files of a stage: {name: its object}. Throws if they are not their own work."""
        steps = recipe.recipe(stage.number, kind)
        include = prepare() / stage.number
        made = self.folder / f"{stage.number}{kind}"
        mine = [self.folder / name for name in steps.compile]  # the files that identify the stage
        texts = {name: self.handed_in.files[name].decode("utf-8", "replace") for name in steps.compile}
        self.refuse(refusal.why(stage, texts))
        objects = {name: made / "CMakeFiles" / "mine.dir" / f"{name}.o" for name in steps.compile}
        for name, out in objects.items():
            out.parent.mkdir(parents=True, exist_ok=True)
            emulator = EMULATOR if stage.is_emulated else []
            notes = out.with_suffix(".d")
            *words, dash_c, source = steps.compile_command(name, out, headers=include)
            assembled = None if stage.is_emulated or sys.platform == "darwin" else out.with_suffix(".s.d")
            if assembled:  # GNU's assembler notes which files it has read; Clang's own does not
                # -Wa would split a path at its commas.
                words += ["-Xassembler", "--MD", "-Xassembler", str(assembled),
                          *(["-fno-integrated-as"] if "clang" in compiler() else [])]
            command = confined([*words, "-MD", "-MF", str(notes), dash_c, source],
                               reads=[include, *mine, *emulator], writes=[out.parent],
                               compiles=True, seconds=COMPILE_SECONDS)
            self.run(command, self.folder, name)
            self.refuse_other_files(name, notes, [include, *mine, *emulator])
            if assembled:
                self.refuse_assembled_files(name, assembled, notes)
        self.refuse(refusal.why(stage, {}, objects, () if kind else steps.ours))
        return objects

    def make(self, stage, kind=""):
        """Compiles the student's files of a stage and links its worker with them."""
        objects, steps = self.compile(stage, kind), recipe.recipe(stage.number, kind)
        worker = self.folder / f"{stage.number}{kind}" / "worker"
        words = steps.link_command(objects, worker)
        if not kind and not stage.is_emulated:
            # A student must not see the addresses of our functions, and libraries must not call the student's.
            words += ["-s", *(["-Xlinker", f"--version-script={PRIVATE}"] if sys.platform.startswith("linux") else [])]
        self.link(words, [*map(str, objects.values()), *steps.ours], worker)
        return worker

    def link(self, words, files, program):
        """words: the linker's command, to be run in BUILD. files: what it reads."""
        reads = [PRIVATE, *(course.BUILD / name for name in files)]
        command = confined(words, reads=reads, writes=[program.parent],
                           compiles=True, seconds=COMPILE_SECONDS)
        self.run(command, course.BUILD, program.name, files)

    @staticmethod
    def refuse(why):
        if why:
            raise NotTheirs(why)

    def refuse_other_files(self, name, notes, allowed):
        """notes: the compiler's list of files it has read. (If nothing is confined, it could read others.)"""
        read = foreign_files.files_of_rule(notes.read_text(encoding="utf-8", errors="replace"))
        read = [self.folder / path for path in read]
        foreign = foreign_files.foreign_file(name, read, allowed, [self.folder, course.ROOT])
        if foreign:
            self.refuse(course.say(*foreign))

    def refuse_assembled_files(self, name, notes, headers):
        """notes: the assembler's list of files it has read; a library of this machine, taken by .incbin, is code that
        can run. headers: the compiler's list."""
        known, here = ({os.path.realpath(self.folder / path) for path in foreign_files.files_of_rule(
            file.read_text(encoding="utf-8", errors="replace"))} for file in (headers, notes))
        foreign = sorted(path for path in here - known if not foreign_files.is_below(path, [os.path.realpath(self.folder)]))
        if foreign:
            self.refuse(course.say("own_assembled_file", name, foreign[0]))

    def run(self, command, folder, what, files=()):
        """Runs the compiler or the linker; files: the objects, for the linker."""
        with self.turns.together():
            ended = limited.run_patiently(command, folder, COMPILE_SECONDS, is_a_verdict)
        if ended.code != 0 and STARVED in ended.said:
            with self.turns.alone():
                ended = limited.run_patiently(command, folder, COMPILE_SECONDS, is_a_verdict)
        if ended.code == 0:
            return
        if ended.code is None or ended.cpu >= COMPILE_SECONDS - 1:
            raise NotMade(course.say("grade_endless_compile", what, COMPILE_SECONDS, round(ended.cpu, 1)))
        if not is_a_verdict(ended.said):
            said = self.without_places(ended.said.strip()[-1000:])
            raise NotMade(course.say("grade_compiler_ended", what, ended.how, said))
        told = (building.why_not_made(ended.said, files) if files
                else building.first_error(self.without_places(ended.said)))  # first_error also shortens paths
        missing = NOT_READ.search(told)
        text = self.handed_in.files.get(what, b"").decode("utf-8", "replace")
        if missing and any(missing[1].endswith(name) for name in own_work.INCLUDE.findall(text)):
            told += f"\n{course.say('own_files_only', what)}"
        raise NotMade(self.without_places(told))

    def without_places(self, told):
        """A compiler's message with paths as in a student's repository, without the grader's own folders."""
        told = re.sub(rf"{re.escape(str(prepare()))}/\d\d\b", "src", told)
        told = re.sub(rf"{re.escape(str(self.folder))}/\d\d(?:_asan)?/", "", told)
        for folder in (self.folder, course.BUILD, PLACE, course.ROOT):
            told = told.replace(f"{folder}/", "").replace(str(folder), ".")
        return told

    def where_it_happens(self, stage, request):
        """The sanitizers' message about a request at which the student's code crashed."""
        if stage.is_emulated:  # the emulator's checker has already explained it
            return "", None
        def command(words):
            return confined(words, reads=[request.parent, course.ROOT / "tests" / "data" / "models"],
                            writes=words[-1:], sanitized=True, seconds=sanitized.SECONDS)

        try:
            worker = self.make(stage, "_asan")
            with self.turns.together():
                return sanitized.ask(worker, request, stage, command)
        except (NotMade, course.Problem):  # the verdict does not depend on it
            return "", None

    def judge(self, stage):
        """The gate's result, with the known mistake if there is one."""
        if not building.has(stage):
            return verdict.not_here(stage)
        worker = self.make(stage)
        result = self.ask(stage, worker, self.turns)
        if is_starved(result):
            with self.turns.alone():
                result = self.ask(stage, worker, gate.NoTurns)
            if is_starved(result):
                self.starved.add(stage.id)
        return result

    def ask(self, stage, worker, turns):
        kept = self.folder / f"{stage.number}-asked"
        return gate.judge(stage, worker, self.seeds[stage.id], kept, lambda _: mistakes(stage.number),
                          built.get(stage.number), turns)

    def describe(self, group, stage, entry):
        """A group of points for the result; entry: the stage's, which receives the line of the crash."""
        untried = "hung" if group.is_untried else group.status
        kind, request = group.failed_requests[0] if group.failed_requests else (untried, None)
        status = kind if group.status == "wrong" and kind in GROUPS else group.status
        message = group.failures[0] if group.failures else ""
        more = 0 if status == "slow" else max(len(group.failures) - 1, 0)  # the other bands say the same
        if kind in ("crashed", "overrun") and "line" not in entry:
            complaint, place = self.where_it_happens(stage, request)
            source = self.handed_in.files.get(place[0], b"").decode("utf-8", "replace") if place else ""
            message = "\n".join([message, *sanitized.told(complaint, place, source)])
            entry["line"] = place and {"file": place[0], "line": place[1], "message": shown(complaint)}
        return {"name": group.name, "points": group.points, "earned": group.earned, "status": status,
                "message": shown(self.without_places(message)), "more": more, "mistake": group.mistake,
                "mistake_says": shown(group.mistake_says)}

    def key(self, stage):
        """The key under which a stage's entry is stored: a hash of all that the entry depends on."""
        mine = [self.handed_in.refused.get(name) or course.blob_hash(self.handed_in.files[name])
                for name in submission.names([stage])]
        all_of_it = [SCHEMA, stage.id, mine, official_files(), self.seeds[stage.id], compiler(),
                     course.language(), why_not()]
        return hashlib.sha1(json.dumps(all_of_it).encode()).hexdigest()

    def remembered(self, stage, memory):
        """The stored entry, or else grade(). memory: has get(key) and put(key, entry)."""
        key = self.key(stage)
        entry = memory.get(key)
        if entry is None:
            entry = self.grade(stage)
            # The machine may be to blame for some entries.
            if entry["status"] not in ("hung", "slow") and not is_open(entry) and not is_doubtful(entry):
                memory.put(key, entry)
        return entry

    def grade(self, stage):
        """The entry of a stage in the result. An exception that our code did not foresee is caused by the student's
        code: it costs this stage, and does not count as a problem of the machine."""
        try:
            return self.entry(stage)
        except (course.Problem, OSError):
            raise
        except Exception as problem:  # noqa: BLE001
            traceback.print_exc()
            result = verdict.Result(stage)
            return {"id": stage.id, "slug": stage.slug, "title": stage.title, "points": stage.points,
                    "message": course.say("grade_unexpected", type(problem).__name__), "status": "wrong",
                    "groups": [self.describe(group, stage, {}) for group in result.groups], "failed": True,
                    "earned": 0, "started": True, "unforeseen": True}

    def entry(self, stage):
        result = verdict.Result(stage)
        entry = {"id": stage.id, "slug": stage.slug, "title": stage.title, "points": stage.points,
                 "seed": self.seeds[stage.id]}
        started = refused = False
        for unit in stage.units:
            name = course.unit_name(stage, unit)
            if name in self.handed_in.refused:
                refused = True
                # A student who deletes an optional stage has not begun it.
                started |= not stage.is_optional or self.handed_in.refused[name] != "grade_missing"
                entry["message"] = course.say(self.handed_in.refused[name], name)
            elif course.blob_hash(self.handed_in.files[name]) != unit.get("starter"):
                started = True
        if refused and not started:
            refused = False
            del entry["message"]
        try:
            if started and not refused:
                result = self.judge(stage)
        except NotMade as problem:
            refused = isinstance(problem, NotTheirs)
            result.compile_error = entry["message"] = shown(str(problem))
            found = ERROR_LINE.search(str(problem))
            if found and found[1] in self.handed_in.files:  # #line may name any file
                entry["line"] = {"file": found[1], "line": int(found[2]), "message": shown(found[3])}
        groups = entry["groups"] = [self.describe(group, stage, entry) for group in result.groups]
        failed = [group["status"] for group in groups if group["status"] not in NO_FAULT]
        if refused:
            entry["status"] = "refused"
        elif result.compile_error:
            entry["status"] = "uncompiled"
        else:
            entry["status"] = failed[0] if failed else result.status
        entry["failed"] = entry["status"] not in NO_FAULT
        if stage.id in self.starved:
            entry["starved"] = True
        # An optional stage without any code is not begun: its file may be the starter of an older official tree.
        started &= not stage.is_optional or entry["status"] != "unwritten"
        return {**entry, "earned": result.earned, "started": started}


def grade(handed_in, seed=None, jobs=None, stages=None, memory=None):
    """Grades a submission. seed: of the random numbers, or {id of a stage: its seed}. stages: default: all. memory: as
    in Work.remembered."""
    stages = stages or course.stages()
    seed = secrets.randbits(63) if seed is None else seed
    seeds = seed if isinstance(seed, dict) else {stage.id: seed for stage in stages}
    prepare()
    PLACE.mkdir(parents=True, exist_ok=True)
    with temporary("student") as folder:
        work = Work(handed_in, seeds, folder)
        one = functools.partial(work.remembered, memory=memory) if memory else work.grade
        with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
            try:
                entries = list(pool.map(one, stages))
            except KeyboardInterrupt:
                limited.end_all()  # else the pool would wait for the stages that run
                raise
    optional = {stage.id for stage in stages if stage.is_optional}
    return {
        "schema": SCHEMA, "official": official(), "seed": None if seed is seeds else seed, "compiler": compiler(),
        "language": course.language(), "confined": not why_not(), "not_confined_because": why_not(),
        "repository": {"source": handed_in.source, "sha": handed_in.sha, "changed": handed_in.is_changed},
        "earned": sum(entry["earned"] for entry in entries),
        "points": sum(entry["points"] for entry in entries if entry["started"] or entry["id"] not in optional),
        "failed": [entry["id"] for entry in entries if entry["failed"]],
        "stages": entries,
    }
