"""Makes a class from the catalogue. Its students make every mistake of course/mistakes, write every right variant, try
every attack of tests/attacks, are late, or hand in nothing, a link, or 2 GB; each with the expected result of grading.
class_test.py grades it.

There are two rounds: `begin` writes the repositories, `go_on` makes the later changes.
"""
import concurrent.futures
import functools
import os
import pathlib
import random
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / name) for name in ("course", "tools", "tests/support")]
from grading import submission  # noqa: E402
from mistakes import catalogue  # noqa: E402
from rules import links  # noqa: E402
from sandbox import confine  # noqa: E402
from shared import course  # noqa: E402
from testing import gate  # noqa: E402
from git_folder import git  # noqa: E402

ENDINGS = {"exited": "wrong", "no_answer": "wrong"}  # endings of attacks that grading calls "wrong"
NOT_OWN_WORK = ("brings_its_own_main", "includes_our_answer", "links_our_answer")  # refused before they are linked
STATE = re.compile(r"^ +static (?!const)", re.M)  # state in a function
STAGES = course.stages()
MARKER = "hook-was-here"
MANY = 500  # students in the whole class


def name_of(stage, unit=None):
    return course.unit_name(stage, unit or stage.units[0])


# ---- what students write ------------------------------------------------------------------------


def defined(build, objects):
    return {symbol.mangled for symbol in links.symbols(build, objects) if links.is_strong(symbol)}


@functools.lru_cache(maxsize=None)
def defined_by_answer(build, answer):
    return defined(build, [exact_object(build, answer)])


def exact_object(build, answer):
    if answer.endswith(".cu"):
        return build / f"course/CMakeFiles/judged_11.dir/__/{answer}.o"
    return build / f"src/CMakeFiles/core.dir/{pathlib.Path(answer).relative_to('src')}.o"


def answer(stage, skip=()):
    """Our own files of a stage: {name: text}"""
    return {name_of(stage, unit): "\n".join((ROOT / path).read_text() for path in unit["answers"] if path not in skip)
            for unit in stage.units}


def text_of(stage, file):
    """The source of a program of the catalogue."""
    return catalogue.source_of(catalogue.folder_of(stage), pathlib.Path(file).stem)


@functools.lru_cache(maxsize=None)
def of_the_catalogue(build, number, file):
    """A program of the catalogue as a student hands it in; functions that it leaves out are ours."""
    stage = STAGES[int(number)]
    folder = catalogue.folder_of(stage)
    mine = defined(build, [build / catalogue.object_of(folder, catalogue.entry_of(folder, pathlib.Path(file).stem))])
    text = text_of(stage, file)
    text = re.sub(r'#include "loader.h"\n', lambda _: (folder / "loader.h").read_text(), text)
    text = text.replace("#pragma once\n", "")
    taken, place = set(), None
    for unit in stage.units:
        for path in unit["answers"]:
            if defined_by_answer(build, path) & mine:
                taken.add(path)
                place = place or name_of(stage, unit)
    files = answer(stage, taken)
    files[place] = text + files[place]
    return files


def attack(source, secret):
    """An attack as a student hands it in."""
    names = {"ROOT": f'"{ROOT}"', "SECRET": f'"{secret}"', "CANARY": f'"{secret}.canary"',
             "FOLDER": f'"{secret}.folder"', "CANARY_PID": os.getpid()}
    head = (source.parent / "attack.h").read_text().replace("#pragma once\n", "")
    text = source.read_text().replace('#include "attack.h"\n', head)
    return "".join(f"#define {name} {value}\n" for name, value in names.items()) + text


def renamed(text):
    """The same program with other names and formatting, like a hidden copy."""
    text = re.sub(r"//[^\n]*", "", text)
    declared = re.findall(r"\b(?:const |auto |size_t |float |double |int )(\w+) ?(?==|:(?!:)|;|\{)", text)
    names = [name for name in sorted(set(declared)) if not re.search(rf"[.>]?\b{name}(?:\(|::)|\.{name}\b", text)]
    for at, name in enumerate(names):
        text = re.sub(rf"\b{name}\b", f"{'abcdefgh'[at % 8]}{at}_value", text)
    text = re.sub(r" \{$", "\n{", text, flags=re.M)
    return re.sub(r"\n(?!#)\s*", "\n\t", text).replace("\n\t#", "\n#")


class Student:
    """A student, and the expected result: statuses and sentences by stage, points, lateness."""

    def __init__(self, id, repository):
        self.id, self.repository = id, repository
        self.files = {}
        self.status = {}  # {stage id: status}; default: "unwritten"
        self.mistake = {}  # {stage id: name of the mistake}
        self.earned = {}  # {stage id: points}; default: all if it passes, else 0
        self.worker = {}  # {stage id: the built program that must get the same points}
        self.meets = set()  # ids of stages that keep state between threads: which groups fail is random
        self.days = {}  # {stage id: days late}
        self.problem = False  # True if it cannot be pulled
        self.seen = True
        self.more = ("", "")  # extensions and late days in the roster
        self.later = None  # a change before the second round
        self.seen_at = None  # hours, if it is late

    def passes(self, stage, files=None):
        self.files.update(files or answer(stage))
        self.status[stage.id] = "passed"
        return self


class Class:
    def __init__(self, folder, build, n=None):
        """n: the number of students, at least 10; default: MANY, which includes the whole catalogue."""
        self.folder, self.build = pathlib.Path(folder), pathlib.Path(build)
        self.random = random.Random(500)
        self.students = []
        self.starters = course.starters()
        self.secret = self.folder / "secret"
        self.folder.mkdir(parents=True)
        self.secret.write_text("not for students\n")
        pathlib.Path(f"{self.secret}.canary").write_text("alive\n")
        pathlib.Path(f"{self.secret}.folder").mkdir()
        self.fill(n)

    # ---- who is in it -----------------------------------------------------------------------

    def add(self, id, repository=None):
        student = Student(id, self.folder / "repositories" / (repository or id))
        self.students.append(student)
        return student

    def writes(self, student, stage, program):
        """A program of the catalogue, right or wrong."""
        files = of_the_catalogue(self.build, stage.number, program["file"])
        if program["is"] == "right":
            return student.passes(stage, files)
        student.files.update(files)
        student.worker[stage.id] = course.mistakes_folder(stage) / catalogue.name_of(program)
        if STATE.search(text_of(stage, program["file"])):
            student.meets.add(stage.id)
        if "why" not in program:  # such programs have no sentence
            student.mistake[stage.id] = program.get("same_as", catalogue.name_of(program))
        return student

    def fill(self, n):
        if n is not None and n <= 10:
            self.few()
        else:
            for part in self.by_hand, self.attacks, self.catalogue:
                part()
            kept = self.students[:self.n_by_hand]
            rest = self.students[self.n_by_hand:]
            if n is not None:
                self.students = kept + self.random.sample(rest, max(n - len(kept), 0))
        for student in self.students:  # no two files are equal, except those of partners
            for name, text in student.files.items():
                if isinstance(text, str) and student.id not in ("copied", "partner"):
                    student.files[name] = f"// {student.id}\n{text}"

    def few(self):
        hello, norm = STAGES[0], STAGES[2]
        known = {program["file"]: program for stage in (hello, norm) for program in programs(stage)}
        self.partner("partner", self.add("right").passes(hello).passes(norm))
        self.writes(self.add("wrong"), norm, known["no_mean.cpp"])
        self.broken("broken")
        self.one_attack(ROOT / "tests" / "attacks" / "exits.cpp")
        self.late("late")
        self.spared("spared")
        self.force_pushed("pushed")
        self.gone("gone")
        self.odd_names("odd")

    def by_hand(self):
        self.partner("partner", self.add("right").passes(STAGES[0]).passes(STAGES[2]))
        self.broken("broken")
        self.late("late")
        self.spared("spared")
        self.excused("excused")
        self.late_fix("late_fix")
        self.force_pushed("pushed")
        self.gone("gone")
        self.odd_names("odd")
        self.never_there("never")
        self.empty("empty")
        self.folder_alone("folder")
        self.linked("linked")
        self.linked_repository("stolen")
        self.large("large")
        self.noise("noise")
        self.traps("traps")
        self.chinese("chinese")
        self.copies("original", "copied")
        self.n_by_hand = len(self.students)

    def attacks(self):
        for path in sorted((ROOT / "tests" / "attacks").glob("*.cpp")):
            self.one_attack(path)

    def catalogue(self):
        every = [(stage, program) for stage in STAGES for program in programs(stage)]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:  # so that those below are known
            list(pool.map(lambda one: of_the_catalogue(self.build, one[0].number, one[1]["file"]), every))
        n = MANY - len(self.students)
        more = len(every) - n  # students of earlier stages also write programs of the last stages
        authors = [self.add(f"{stage.number}-{catalogue.name_of(program)}") for stage, program in every[:n]]
        for student, (stage, program) in zip(authors + authors[n - more:], every):
            assert stage.id not in student.status.keys() | student.worker.keys(), student.id
            self.writes(student, stage, program)
        for student in authors:
            self.stages_before(student)

    def stages_before(self, student):
        """Right answers for half of the stages before the last one written. (Real students have nearly all; each takes
        seconds.)"""
        written = {*student.status, *student.worker}
        for stage in STAGES[:max(written)]:
            if stage.id not in written and self.random.random() < 0.5:
                student.passes(stage)

    def one_attack(self, source):
        if confine.why_not():  # the attack would succeed
            return
        ending = re.search(r"^// Ends as: (\w+)$", source.read_text(), re.M)[1]
        student = self.add(f"attack-{source.stem}").passes(STAGES[0])
        student.files[name_of(STAGES[2])] = attack(source, self.secret)
        student.status[2] = "refused" if source.stem in NOT_OWN_WORK else ENDINGS.get(ending, ending)

    def broken(self, id):
        student = self.add(id).passes(STAGES[0])
        student.files[name_of(STAGES[2])] = "int x = ;\n"
        student.status[2] = "uncompiled"

    def late(self, id):
        student = self.add(id)
        student.later = lambda: self.commit(student.passes(STAGES[0]).passes(STAGES[2]))
        student.seen_at = 40  # hours after the deadline
        student.days[2] = 2  # 12 hours are grace

    def spared(self, id):
        """One of two days late is covered by a late day."""
        self.late(id)
        student = self.students[-1]
        student.more, student.days[2] = ("", "1"), 1
        student.late_days_used = 1

    def excused(self, id):
        self.late(id)
        student = self.students[-1]
        student.more = ("all=+1 2=+9", "")
        student.days = {}

    def partner(self, id, other):
        """Hands in the same repository."""
        student = self.add(id, other.id)
        student.files, student.status, student.shares = other.files, other.status, other

    def late_fix(self, id):
        """Stage 2 in time, and broken later; stage 3 wrong in time, and right later."""
        student = self.add(id).passes(STAGES[2])
        student.files[name_of(STAGES[3])] = "int x = ;\n"

        def later():
            student.files[name_of(STAGES[2])] += "int x = ;\n"
            self.commit(student.passes(STAGES[3]))

        student.later, student.seen_at = later, 13
        student.days[3] = 1

    def force_pushed(self, id):
        """Another history with the same stage 2, pushed later: stage 2 was in time."""
        student = self.add(id).passes(STAGES[2])

        def later():
            shutil.rmtree(student.repository)
            self.write(student)
            (student.repository / "notes.txt").write_text("history? what history?\n")
            self.commit(student)

        student.later, student.seen_at = later, 100

    def gone(self, id):
        student = self.add(id).passes(STAGES[2])
        student.later = lambda: shutil.rmtree(student.repository)
        student.problem = True

    def never_there(self, id):
        student = self.add(id)
        student.seen, student.problem = False, True

    def empty(self, id):
        student = self.add(id)
        student.seen, student.problem = False, True
        student.repository.mkdir(parents=True)
        git(student.repository, "init", "-q", "-b", "main")

    def odd_names(self, id):
        student = self.add(id, "o dd%41 \N{LATIN SMALL LETTER A WITH DIAERESIS};$(touch x)").passes(STAGES[2])
        for name in "-rf", "two\nlines", '"quoted"', "\N{SNOWMAN}", "stages/02-rms-norm/$(id)", "stages/%s":
            student.files[name] = b"odd\n"

    def folder_alone(self, id):
        self.add(id).passes(STAGES[2]).is_git = False

    def linked(self, id):
        student = self.add(id).passes(STAGES[0])
        student.files[name_of(STAGES[2])] = self.secret
        student.status[2] = "refused"

    def linked_repository(self, id):
        """A repository whose .git is that of another one."""
        student = self.add(id)
        student.seen, student.problem = False, True
        student.repository.mkdir(parents=True)
        (student.repository / ".git").symlink_to(self.folder / "repositories" / "broken" / ".git")

    def large(self, id):
        """2 GB, in a folder without git."""
        student = self.add(id).passes(STAGES[0])
        student.is_git = False
        student.files[name_of(STAGES[2])] = 2 << 30
        student.status[2] = "refused"

    def noise(self, id):
        student = self.add(id).passes(STAGES[2])
        student.files[name_of(STAGES[3])] = bytes(range(256)) * 100
        student.status[3] = "uncompiled"

    def traps(self, id):
        """A repository whose hooks, filters, submodules and settings would run something."""
        student = self.add(id).passes(STAGES[2])
        marker = self.folder / MARKER
        student.files[".gitattributes"] = b"* filter=trap\n"
        student.files[".gitmodules"] = (f'[submodule "x"]\n\tpath = x\n\turl = "ext::sh -c touch% {marker}"\n').encode()
        student.traps = marker

    def chinese(self, id):
        student = self.add(id).passes(STAGES[0])
        student.files["course.json"] = b'{"language": "zh"}'
        student.files[name_of(STAGES[2])] = "int x = ;\n"
        student.status[2] = "uncompiled"

    def copies(self, one, other):
        """A right stage 6 that one student wrote, and a copy with other names and formatting."""
        stage = STAGES[6]
        file = "rope_complex.cpp"
        files = of_the_catalogue(self.build, stage.number, file)
        self.add(one).passes(stage, files)
        self.add(other).passes(stage, {name: renamed(text) for name, text in files.items()})

    # ---- repositories -----------------------------------------------------------------------

    def write(self, student):
        student.repository.mkdir(parents=True, exist_ok=True)
        for name, text in {**self.starters, **student.files}.items():
            path = student.repository / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            if isinstance(text, pathlib.Path):
                path.symlink_to(text)
            elif isinstance(text, int):
                with path.open("wb") as file:
                    file.truncate(text)
            else:
                path.write_bytes(text.encode() if isinstance(text, str) else text)

    def commit(self, student):
        self.write(student)
        if not (student.repository / ".git").exists():
            git(student.repository, "init", "-q", "-b", "main")
        git(student.repository, "add", "-A")
        git(student.repository, "commit", "-q", "--allow-empty", "-m", "mine", "--date", "2020-01-01T00:00:00Z")

    def set_traps(self, student):
        inner = student.repository / ".git"
        for hook in "pre-commit", "post-checkout", "post-merge", "post-upload-pack", "pre-receive", "fsmonitor":
            path = inner / "hooks" / hook
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"#!/bin/sh\ntouch '{student.traps}'\n")
            path.chmod(0o755)
        run = f"sh -c 'touch {student.traps}'"
        with (inner / "config").open("a") as config:
            config.write(f'[uploadpack]\n\tpackObjectsHook = "{run}"\n[core]\n\tfsmonitor = "{run}"\n'
                         f'\tsshCommand = "{run}"\n[filter "trap"]\n\tsmudge = "{run}"\n\tclean = "{run}"\n')

    def begin(self):
        for student in self.students:
            if not student.seen or hasattr(student, "shares"):
                continue
            self.commit(student) if getattr(student, "is_git", True) else self.write(student)
            if hasattr(student, "traps"):
                self.set_traps(student)
        lines = ["id,repository,extensions,late_days",
                 *(f'{one.id},"{one.repository}",{",".join(one.more)}' for one in self.students)]
        (self.folder / "roster.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def go_on(self):
        for student in self.students:
            if student.later:
                student.later()

    def expect_of_workers(self, seed_of):
        """The points of each wrong program of the catalogue from the worker that our build made. The same program
        handed in by a student is compiled and judged separately, and must get the same points, except for speed.
        seed_of: called with a student's id."""
        def expect(student):
            for number, worker in student.worker.items():
                if not STAGES[number].timed:
                    student.earned[number] = gate.run(STAGES[number], worker, seed_of(student.id)).earned

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(expect, self.students))


def programs(stage):
    return catalogue.entries(catalogue.folder_of(stage))


__all__ = ["Class", "MARKER", "STAGES", "submission"]
