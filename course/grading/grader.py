"""Grades what one student handed in, with the official tree that contains this file.

Only the files of the submission are used. The official tree is built once (official_tree.py). A student's files are
compiled beside it, each stage separately (programs.py), so the cost per student is only the compilation of their files.
The result is a dictionary, the result.json of docs/teaching.md.
"""
import concurrent.futures
import functools
import hashlib
import json
import os
import re
import secrets
import traceback

from sandbox import limited
from sandbox.confine import confined, why_not
from shared import course
from grading import official_tree
from grading import preprocessed
from grading import programs
from grading import sanitized
from grading import submission
from grading import workplace
from rules import refusal
from testing import building
from testing import gate
from testing import verdict

SCHEMA = 1
# For all stages of a student. No student comes near it, only a machine that stands still.
SECONDS = 24 * 3600
ERROR_LINE = re.compile(r"^(stages/[^:\s]+):(\d{1,9}):(?:\d+:)? (?:fatal )?error: (.*)", re.M)
MOST_LETTERS = 8000  # of one message to or about a student
MOST_TRIES = 3  # gradings of the same files that the machine may have disturbed: a program can end itself as it would
GROUPS = {"passed", "unwritten", "crashed", "hung"}  # all other failures are "wrong"
NO_FAULT = ("passed", "unwritten", "begun", "slow", "unjudged", "unmeasured")


def shown(text):
    """A text for a result: at most as long as a person reads, and valid UTF-8."""
    text = text if len(text) <= MOST_LETTERS else text[:MOST_LETTERS] + "..."
    return text.encode("utf-8", "replace").decode()


def is_starved(result):
    """True if a program may have failed because others had used up the threads of this user (root gives each program a
    user of its own), or because the system killed it when its memory was used up."""
    return any(sign in failure for group in result.groups if group.status == "wrong" for failure in group.failures
               for sign in (programs.STARVED, programs.KILLED))


def is_open(entry):
    """True if a group needs another machine to be graded."""
    return any(group["status"] == "unjudged" for group in entry["groups"])


def is_doubtful(entry):
    """True if another grading of the same files may give another verdict."""
    return entry.get("unforeseen") or entry.get("starved")


class Work(programs.Programs):
    """The grading of one student's files."""

    def __init__(self, handed_in, seeds, folder):
        super().__init__(handed_in, folder)
        self.seeds = seeds  # {id of a stage: the seed of its random numbers}
        # Ids of stages whose programs had too few threads, also when nothing else ran, or whose compiler ended without a
        # verdict.
        self.starved = set()

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
        except (programs.NotMade, course.Problem):  # the verdict does not depend on it
            return "", None

    def judge(self, stage):
        """The gate's result, with the known mistake if there is one."""
        if not building.has(stage):
            return verdict.not_here(stage)
        worker = self.make(stage)
        self.refuse_options(stage)
        result = self.ask(stage, worker, self.turns)
        if is_starved(result):
            with self.turns.alone():
                result = self.ask(stage, worker, gate.NoTurns)
            if is_starved(result):
                self.starved.add(stage.id)
        return result

    def refuse_options(self, stage):
        """Refuses files that set options of the compiler, perhaps with macros."""
        for name, text in preprocessed.texts(self.handed_in, stage, every=True).items():
            if text is None and preprocessed.hides_a_directive(self.handed_in.files[name].decode("utf-8", "replace")):
                self.refuse(course.say("own_directive", name))
            elif text is None:
                raise programs.Unsure(course.say("grade_not_preprocessed", name))
            elif len(text) > preprocessed.MOST_OWN:
                self.refuse(course.say("own_long", name, preprocessed.MOST_OWN >> 10))
            else:
                self.refuse(refusal.why_options(name, text))

    def ask(self, stage, worker, turns):
        kept = self.folder / f"{stage.number}-asked"
        return gate.judge(stage, worker, self.seeds[stage.id], kept, lambda _: official_tree.mistakes(stage.number),
                          official_tree.built.get(stage.number), turns)

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
            message = "\n".join([message, *sanitized.in_words(complaint, place, source)])
            entry["line"] = place and {"file": place[0], "line": place[1], "message": shown(complaint)}
        return {"name": group.name, "points": group.points, "earned": group.earned, "status": status,
                "message": shown(self.without_places(message)), "more": more, "mistake": group.mistake,
                "mistake_says": shown(group.mistake_says)}

    def key(self, stage):
        """The key under which a stage's entry is stored: a hash of all that the entry depends on."""
        mine = [self.handed_in.refused.get(name) or course.blob_hash(self.handed_in.files[name])
                for name in submission.names([stage])]
        all_of_it = [SCHEMA, stage.id, mine, official_tree.fingerprint(), self.seeds[stage.id], official_tree.compiler(),
                     course.language(), why_not()]
        return hashlib.sha1(json.dumps(all_of_it).encode()).hexdigest()

    def remembered(self, stage, memory):
        """The stored entry, or else grade(). memory: has get(key) and put(key, entry)."""
        key = self.key(stage)
        entry = memory.get(key)
        if entry is None or "tries" in entry:
            n_before = entry["tries"] if entry else 0
            entry = self.grade(stage)
            if official_tree.is_changed():
                raise course.Problem(course.say("grade_tree_changed"))
            if entry.get("starved") and n_before + 1 < MOST_TRIES:
                memory.put(key, {"tries": n_before + 1})
            elif entry.get("starved"):
                del entry["starved"]  # the program does it, not the machine
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
        except programs.NotMade as problem:
            refused = isinstance(problem, programs.NotTheirs)
            if isinstance(problem, programs.Unsure):
                self.starved.add(stage.id)
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
    official_tree.prepare()
    workplace.PLACE.mkdir(parents=True, exist_ok=True)
    with workplace.temporary("student") as folder:
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
        "schema": SCHEMA, "official": official_tree.version(), "seed": None if seed is seeds else seed, "compiler": official_tree.compiler(),
        "language": course.language(), "confined": not why_not(), "not_confined_because": why_not(),
        "repository": {"source": handed_in.source, "sha": handed_in.sha, "changed": handed_in.is_changed},
        "earned": sum(entry["earned"] for entry in entries),
        "points": sum(entry["points"] for entry in entries if entry["started"] or entry["id"] not in optional),
        "failed": [entry["id"] for entry in entries if entry["failed"]],
        "stages": entries,
    }
