"""What the commands of the course share: the registry of stages, the messages, building a stage, and its gate."""
import contextlib
import copy
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
import time

import repository
import strict_json
from grading import links
from mistakes import catalogue
from repository import BUILD, ROOT, Problem
from shared import screen
from shared.screen import columns, doing, padded, paint, tell, width, wrapped  # noqa: F401  (for those who import this)

# Limits of the judge for one stage. It holds the questions, the right answers and one given answer at a time.
GATE_SECONDS = 1800
NAME_SECONDS = 120  # if a verdict took longer, no mistake is looked for, which takes as long again
GATE_MEMORY = 1 << 30  # bytes of address space
GATE_FILE = 256 << 20  # bytes per file: prints, kept requests, report
QUICK_ROOM = 2 << 30
HANDOUTS = {"en": "README.md", "zh": "README.zh.md"}
WHAT_IS_BUILT = {"worker": "build_stage", "counted": "build_stage", "my_tests": "build_my_tests",
                 "mistakes": "build_mistakes", "broken": "build_broken", "stagecraft_mine": "build_mine"}


def language():
    for name in ("STAGECRAFT_LANG", "LC_ALL", "LANG"):
        if os.environ.get(name):
            return "zh" if os.environ[name].startswith("zh") else "en"
    return "en"


@functools.cache
def messages():
    return json.loads((ROOT / "stages" / "messages.json").read_text(encoding="utf-8"))


def page(lines):
    screen.page(lines, say("pager"))


def say(key, *values):
    """A text of stages/messages.json in the reader's language, like the gates' own say()."""
    return messages()[key][language()].format(*values)


def listed(names):
    """The names as a list inside of a sentence, in the reader's language."""
    return {"en": ", ", "zh": "、"}[language()].join(names)


def blob_hash(text):
    """Git's hash of a file with these bytes."""
    return hashlib.sha1(b"blob %d\0" % len(text) + text).hexdigest()


class Stage:
    """One entry of stages/stages.json."""

    def __init__(self, entry):
        self.id = entry["id"]
        self.slug = entry["slug"]
        self.title = entry["title"]
        self.minutes = entry["minutes"]
        self.functions = entry["functions"]
        self.groups = entry["groups"]
        self.units = entry["units"]
        self.needs = entry["needs"]
        self.rounds = entry.get("in_the_model", {}).get("rounds", False)  # differently from f32
        self.program = entry.get("program", "story")  # the command in which its effect is heard
        self.is_optional = entry.get("optional", False)  # it counts only for students who begin it
        self.is_emulated = self.units[0]["file"].endswith(".cu")  # CUDA, which runs on the emulator
        self.milestone = entry.get("milestone")  # what the student now has, per language

    @property
    def number(self):  # as in names of folders and targets
        return f"{self.id:02d}"

    @property
    def folder(self):
        return ROOT / "stages" / f"{self.number}-{self.slug}"

    @property
    def handout(self):  # in the reader's language
        return self.folder / HANDOUTS[language()]

    @property
    def pages(self):
        """The handout's pages in reading order: the first page, and one page per part if the stage has parts."""
        ending = HANDOUTS[language()].removeprefix("README")
        parts = (path for path in self.folder.glob("[1-9]-*.md") if path.name.partition(".")[2] == ending[1:])
        return [self.handout, *sorted(parts)]

    def page(self, part):
        return self.pages[part] if self.has_pages else self.handout

    @property
    def has_pages(self):  # one page per part
        return len(self.pages) > 1

    def files_called_by(self, file):
        """The files of this stage whose functions a file calls. In its test they are the student's own."""
        return next((unit.get("calls", []) for unit in self.units if unit["file"] == file), [])

    @property
    def file_names(self):  # as a sentence names them
        return listed(unit["file"] for unit in self.units)

    @property
    def points(self):
        return sum(group["points"] for group in self.groups)

    @property
    def timed(self):
        """The names of the groups whose points are for speed."""
        return [group["name"] for group in self.groups if "bands" in group and not self.is_emulated]

    @property
    def requests(self):  # where the last run of the gate kept its requests
        return ROOT / "build" / "course" / f"requests-{self.number}"

    @property
    def my_tests(self):
        return self.folder / "my_tests.cpp"

    def path(self, unit):
        return self.folder / unit["file"]

    def is_handed_out(self, unit):
        """True if the file of a unit equals its starter, byte for byte."""
        path = self.path(unit)
        return path.exists() and blob_hash(path.read_bytes()) == unit.get("starter")

    @property
    def is_started(self):
        """True if a file is not the starter. An optional stage whose files were all deleted is not begun."""
        there = any(self.path(unit).exists() for unit in self.units)
        return (there or not self.is_optional) and not all(map(self.is_handed_out, self.units))

    def is_expected(self):
        """True if the stage counts. An optional stage counts only if the student began it."""
        return not self.is_optional or self.is_started

    def starter(self, unit):
        """The starter of a unit, byte for byte. If its file has changed, git still has the starter."""
        if self.is_handed_out(unit):
            return self.path(unit).read_bytes()
        ask = ["git", "-C", str(ROOT), "cat-file", "blob", unit.get("starter", "none")]
        try:
            done = subprocess.run(ask, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        except OSError:
            raise Problem(say("git_missing")) from None
        if done.returncode != 0:
            raise Problem(say("no_starter", self.path(unit).relative_to(ROOT)))
        return done.stdout


def unit_name(stage, unit):
    """The path of a unit's file in any repository."""
    return f"stages/{stage.folder.name}/{unit['file']}"


def stages():
    registry = json.loads((ROOT / "stages" / "stages.json").read_text(encoding="utf-8"))
    return [Stage(entry) for entry in registry["stages"]]


def starters():
    """All starters: {path in any repository: bytes}."""
    return {unit_name(stage, unit): stage.starter(unit) for stage in stages() for unit in stage.units}


def find_stage(text, known):
    for stage in known:
        if text in (str(stage.id), stage.number, stage.slug):
            return stage
    number, dot, _ = text.partition(".")
    if dot and number in (str(stage.id) for stage in known):
        raise Problem(say("whole_stage", text, number))
    raise Problem(say("no_stage", text, known[-1].id))


def find_part(text, known):
    """'6.3' -> stage 6 and 3, a part that has groups of points; '6' -> stage 6 and None."""
    number, dot, part = text.partition(".")
    stage = find_stage(number, known)
    if not dot:
        return stage, None
    parts = sorted({group["part"] for group in stage.groups if "part" in group})
    if part not in map(str, parts):
        raise Problem(say("no_part", text, stage.id, parts[0], parts[-1]) if parts else say("no_parts", text, stage.id))
    return stage, int(part)


def parse_selection(text, known, whole_class=False):
    """'1-3', '1,4', 'all' -> stages. whole_class: 'all' includes the optional stages that were not begun here."""
    if text == "all":
        return [stage for stage in known if whole_class or stage.is_expected()]
    chosen = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        low = find_stage(first, known).id
        high = find_stage(last, known).id if dash else low
        if low > high:
            raise Problem(say("lower_first", part))
        chosen.update(range(low, high + 1))
    return [stage for stage in known if stage.id in chosen]


def what_is_built(targets):
    """What these targets build, in words; the last target decides."""
    last = targets[-1].removeprefix("course/") if targets else ""
    key = next((key for name, key in WHAT_IS_BUILT.items() if last.startswith(name)), "build_engine")
    number = re.search(r"_(\d\d)", last)
    return say(key, int(number[1]) if number else "")


def build(*targets, only=False):
    """Builds targets without output; also the program stagecraft, unless `only` is True. Returns the compiler's output
    if that fails, else None. The compiler's warnings about a student's file are shown."""
    command = [str(ROOT / "stage"), "build", *(["--only"] if only else [])]
    if not (BUILD / "course" / "gate").exists():
        # The first build takes minutes and may ask for packages, so a person must see it.
        tell(say("first_build"), sys.stderr)
        if subprocess.run([*command, "gate"], stdout=sys.stderr).returncode != 0:
            raise Problem(say("first_build_failed"))
    if only and (BUILD / "course" / "confine").exists():  # so that the build ends with this process, even after kill -9
        from sandbox import confine
        command = confine.limited(command, seconds=3600)
    with doing(what_is_built(targets)):
        done = subprocess.run([*command, *targets], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace")
    if done.returncode != 0:
        return done.stdout
    for line in warnings(done.stdout):
        tell(line, sys.stderr)
    return None


def warnings(output):
    """A compiler's warnings about students' files, one line each, with short names of files."""
    found = (short(line.replace("../../", "")) for line in output.splitlines() if ": warning: " in line)
    return list(dict.fromkeys(line for line in found if line.startswith("stages/")))


def short(text):
    """The text with short names for the files of this repository."""
    return text.replace(f"{ROOT}/", "")


def first_error(output):
    """The compiler's first error with its lines of context, without the noise around it."""
    lines = output.splitlines()
    for at, line in enumerate(lines):
        if (": error:" in line or ": fatal error:" in line) and not links.failed(line):
            context = [short(line.replace("../../", ""))]
            for more in lines[at + 1:at + 4]:
                if not more.startswith(" "):
                    break
                context.append(more)
            return "\n".join(context)
    return output.strip()[-2000:]


def why_not_built(output, program):
    """The first error to fix, from the output of a build that failed; program: relative to BUILD."""
    files = links.object_files(BUILD, program) if links.failed(output) else []
    return why_not_made(output, files)


def why_not_made(output, files):
    """The same; files: the objects, if they were to be linked."""
    found = []
    if links.failed(output):
        functions = {stage.id: stage.functions for stage in stages()}
        found = links.why_not_linked(BUILD, files, functions)
    return "\n".join(say(*problem) for problem in found) or first_error(output)


def reported(text):
    """A text from GoogleTest's JSON, which some versions write byte by byte."""
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text


class Group:
    """A gate's result for one group of points. If the group has bands, each test is a band and earns its share."""

    def __init__(self, name, points, bands=1, part=None, file=None):
        self.name = name
        self.points = points
        self.bands = bands
        self.part = part  # part of the handout, if it has parts
        self.file = file  # the file it is about, if the stage has several
        self.status = "unwritten"  # or "passed", "wrong", "slow" (right, not in all bands), "unjudged", "unmeasured"
        self.failures = []
        self.n_passed = 0  # passed tests
        self.measured = None  # the measured speed, in words
        self.failed_requests = []  # (how it failed, the request's file), if requests were kept
        self.mistake = None  # the name of the known mistake that explains them ...
        self.mistake_says = ""  # ... and a sentence about it
        self.mistake_in_part = False  # True if it does not explain all failing cases

    @property
    def earned(self):
        if self.status == "slow":
            return self.points * self.n_passed // self.bands
        return self.points if self.status == "passed" else 0


class Result:
    """The result of one stage: its groups, or the reason why there are none."""

    def __init__(self, stage):
        self.stage = stage
        self.compile_error = None  # or another reason why the gate did not run, with `blocked`:
        self.blocked = None  # "missing": a file of the stage; "refused": it compiles, but is not the student's own work
        self.unfinished = None  # how the gate ended, if it ended without a report
        self.peak = 0  # peak memory of the judge, in kilobytes
        self.seed = None  # seed of the random numbers in its questions
        self.part = None  # set if the result is about one part only
        self.of_others = []  # then the groups of the other parts
        self.groups = [Group(group["name"], group["points"], group.get("bands", 1), group.get("part"), group.get("file"))
                       for group in stage.groups]

    def of_part(self, part):
        """The result for the groups of one part."""
        result = copy.copy(self)
        result.part = part
        result.groups = [group for group in self.groups if group.part == part]
        result.of_others = [group for group in self.groups if group.part != part]
        return result

    @property
    def name(self):  # "6", or "6.3" for a part
        return f"{self.stage.id}" if self.part is None else f"{self.stage.id}.{self.part}"

    @property
    def points(self):
        return sum(group.points for group in self.groups)

    @property
    def next_part(self):
        """The first part, in reading order, that is not right yet; None if there is none."""
        open_parts = [group.part for group in self.groups if group.part and group.status != "passed"]
        return min(open_parts, default=None)

    @property
    def status(self):
        """"uncompiled", "missing", "refused"; "wrong", if a group is; "begun": functions are missing, and nothing is wrong so far; "unjudged":
        this machine cannot judge all of it; "slow"; or the status of all groups."""
        if self.compile_error:
            return self.blocked or "uncompiled"
        found = {group.status for group in self.groups}
        if "wrong" in found:
            return "wrong"
        if len(found) == 1:
            return found.pop()
        if "unwritten" in found:
            return "begun"
        return "unjudged" if "unjudged" in found else "slow"

    @property
    def is_right(self):
        """True if all is written and nothing is wrong; it may be slow."""
        return self.status in ("passed", "slow")

    @property
    def is_done_here(self):
        """True if nothing is left to do on this machine."""
        return self.status in ("passed", "unjudged")

    @property
    def first_wrong(self):
        """The first group that is written and wrong. Later ones may be wrong because of it."""
        return next((group for group in self.groups if group.status == "wrong"), None)

    @property
    def mend_first(self):
        """A wrong group of another part, about a file whose functions the first wrong group calls; or None."""
        first = self.first_wrong
        called = self.stage.files_called_by(first.file) if first else []
        return next((group for group in self.of_others if group.status == "wrong" and group.file in called), None)

    @property
    def earned(self):
        return 0 if self.compile_error else sum(group.earned for group in self.groups)


def quick_folder():
    """A folder for the hundreds of files per verdict that exist for milliseconds. It is in memory if there is plenty:
    the journal of a disk would take half of a verdict's time. None: the default folder for temporary files."""
    memory = pathlib.Path("/dev/shm")
    if "TMPDIR" in os.environ or not os.access(memory, os.W_OK):
        return None
    return memory if shutil.disk_usage(memory).free >= QUICK_ROOM else None


def run_gate(stage, worker, seed=None, mistakes=None, keep=None, only=None):
    """Runs the gate of a stage on a worker that is built; only: the groups to run.

    seed: of the random numbers, by default a new one each time. mistakes: the folder of the stage's wrong programs, if
    they are to explain failures. keep: a folder for all requests to the worker.
    """
    result = Result(stage)
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
            group.status, group.failures = "wrong", [say("gate_ended", how)]
        return result
    known_mistakes = strict_json.parse(said.get("known-mistakes", "{}"))
    for group in result.groups:
        suite = next((suite for suite in said["testsuites"] if suite["name"] == group.name), {})
        tests = suite.get("testsuite", [])
        result.peak = max(result.peak, int(suite.get("peak", 0)))
        for test in tests:
            group.n_passed += "failures" not in test and not {"not-written", "not-measured", "not-judged"} & set(test)
            for failure in test.get("failures", []):
                text = reported(failure["failure"])  # "file:line\nFailed\n", then the gate's message
                group.failures.append(text.split("Failed\n", 1)[-1].strip())
        # The last band's text belongs to the best race, by which all bands were judged.
        group.measured = next((reported(test["measured"]) for test in reversed(tests) if "measured" in test), None)
        group.failed_requests = failed_requests(keep, group.name) if keep else []
        has_crashed = any(kind == "crashed" for kind, _ in group.failed_requests)
        if any("not-written" in test for test in tests) and not has_crashed:
            group.status = "unwritten"
        elif any("not-judged" in test for test in tests):
            group.status = "unjudged"
            group.failures = [reported(tests[0]["not-judged"])]
        elif any("not-measured" in test for test in tests):
            group.status = "unmeasured"
        elif tests and not group.failures:
            group.status = "passed"
        elif tests and all("too-slow" in test for test in tests if "failures" in test):
            group.status = "slow"
        else:
            group.status = "wrong"
        explain(group, known_mistakes.get(group.name))
    return result


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
    worker's fault if the gate can report about a worker that does nothing; otherwise it is a Problem."""
    found, how = run_judge(suites, worker, environment, folder)
    if found is None and run_judge(suites, "/bin/false", {}, folder)[0] is None:
        raise Problem(f"the gate did not finish: {how}")
    return found, how


def run_judge(suites, worker, environment, folder):
    from sandbox import confine  # both import this module
    from sandbox import limited
    report = pathlib.Path(folder) / "report.json"
    report.unlink(missing_ok=True)
    seconds = int(os.environ.get("STAGE_GATE_SECONDS", GATE_SECONDS))
    words = [str(BUILD / "course" / "gate"), f"--gtest_filter={suites}", f"--gtest_output=json:{report}"]
    ended = limited.run(confine.limited(words, seconds, GATE_MEMORY, GATE_FILE), None, seconds + 5,
                        dict(os.environ, STAGE_WORKER=str(worker), **environment))
    if ended.code is None:
        return None, say("gate_endless", seconds)
    try:
        return strict_json.parse(report.read_text(errors="replace")), ""
    except (OSError, ValueError):
        return None, ended.how


def failed_requests(folder, suite=None):
    """(how it failed, the request's file) for each failure, of one suite or of all; folder: where the gate kept its
    requests."""
    notes = folder / "failed"
    lines = notes.read_text().splitlines() if notes.exists() else []
    failures = [line.split(" ") for line in lines]
    return [(kind, folder / name) for kind, of, name in failures if suite in (None, of)]


def mistakes(stage):
    """The mistakes of a stage that have a sentence: {name: {"en", "zh"}}."""
    programs = catalogue.entries(catalogue.folder_of(stage))
    return {pathlib.Path(program["file"]).stem: program for program in programs if "en" in program}


def mistakes_folder(stage):
    """The folder of a stage's wrong programs, once they are built."""
    return BUILD / "course" / "mistakes" / f"{stage.number}-{stage.slug}"


def build_mistakes(stage, only=False, found=None):
    """Builds the wrong programs that explain failures. Returns their folder, or None if there are none. found: the
    result to explain. The first build takes long, so the first failure is shown meanwhile."""
    if not mistakes(stage):
        return None
    if not mistakes_folder(stage).exists():
        if found and found.first_wrong:
            tell(f"{found.first_wrong.name}: {short(found.first_wrong.failures[0])}\n", sys.stderr)
        tell(say("first_mistakes"), sys.stderr)
    # If this build fails, the verdict only lacks the mistake's name.
    return mistakes_folder(stage) if build(f"mistakes_{stage.number}", only=only) is None else None


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
    folder = known_mistakes(result) if not built and has_time and needs_a_name(result, stage) else None
    return judge_once(stage, worker, seed, keep, folder, turns) if folder else result


def judge_once(stage, worker, seed, keep, mistakes, turns):
    """run_gate in two steps: what is right, and then, if nothing is wrong, what is fast."""
    exact = [group["name"] for group in stage.groups if group["name"] not in stage.timed]
    with turns.together():
        result = run_gate(stage, worker, seed, mistakes, keep, exact)
        if result.unfinished and mistakes:  # the points must not depend on the search for a name
            result = run_gate(stage, worker, seed, None, keep, exact)
    if not stage.timed:
        return result
    if result.status == "wrong":
        timed = Result(stage)
        for group in timed.groups:
            group.status = "unmeasured"
    else:
        with turns.alone():
            timed = run_gate(stage, worker, seed, None, keep / "timed", stage.timed)
        result.unfinished, result.peak = timed.unfinished, max(result.peak, timed.peak)
    found = {group.name: group for group in [*timed.groups, *result.groups]}
    result.groups = [found[group["name"]] for group in stage.groups]
    return result


def needs_a_name(result, stage):
    """True if it is worth the time to build the wrong programs and to look for the one that explains this result."""
    hung = any(kind == "hung" for group in result.groups for kind, _ in group.failed_requests)  # explains itself
    is_wrong = result.status == "wrong" or stage.is_emulated and result.status == "slow"
    return is_wrong and not hung and not result.unfinished


@contextlib.contextmanager
def one_at_a_time(stage):
    """Waits until no other process judges this stage here: both would write the same folder of requests."""
    path = stage.requests.with_suffix(".lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            tell(say("test_waits", stage.id), sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def not_judged(stage, why, blocked=None):
    """A Result without verdicts; blocked: as in Result."""
    result = Result(stage)
    result.compile_error, result.blocked = why, blocked
    return result


def test_stage(stage, explain=False, seed=None):
    """Builds the student's files of a stage and runs the gate on them.

    explain: if they are wrong, look for the known mistake. seed: as in run_gate.
    """
    for unit in stage.units:
        if not stage.path(unit).exists():
            why = say("file_missing", stage.path(unit).relative_to(ROOT), stage.id, unit["file"])
            return not_judged(stage, why, "missing")
    if stage.is_emulated and not sys.platform.startswith("linux"):
        result = Result(stage)
        for group in result.groups:
            group.status = "unjudged"
        result.groups[0].failures = [say("gpu_not_here", stage.id)]
        return result
    from grading import own_work  # it imports this module
    refused = own_work.refusal(stage, own_work.texts_here(stage))
    problem = refused or build("gate", f"worker_{stage.number}")
    if problem is None:
        problem = refused = own_work.refusal_here(stage) or None
    if refused:
        return not_judged(stage, refused, "refused")
    if problem is not None:
        if f"stages/{stage.number}-{stage.slug}/" not in problem:
            raise Problem(say("build_failed", first_error(problem)))
        return not_judged(stage, why_not_built(problem, f"course/worker_{stage.number}"))
    worker = BUILD / "course" / f"worker_{stage.number}"
    seed = os.environ.get("STAGE_SEED") or seed or secrets.randbits(63)
    with one_at_a_time(stage), doing(say("doing_test", stage.id)):
        result = judge(stage, worker, seed, stage.requests,
                       lambda found: build_mistakes(stage, found=found) if explain else None)
    result.seed = seed
    return result


main = functools.partial(repository.main, tell=tell)
