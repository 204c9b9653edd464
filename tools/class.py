"""./stage class: a whole class, pulled and graded, with one command each.

    ./stage class pull --roster ../class/roster.csv      what there is now, and when it was seen
    ./stage class grade --roster ../class/roster.csv     marks, feedback, the page of the class
    ./stage class send --roster ../class/roster.csv      feedback as a zip for Moodle, or to each repository

A roster has a line for each student: id,repository (a path or a URL). docs/teaching.md says what comes out.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import errno
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import changes
import class_page
import classroom
import course
import feedback
import grading
import lateness
import likeness
import marks
import official
import overrides
import pulling
import report
import sending

PULLS = 8  # at a time: most of it is waiting
PRECOMPILED_FROM = 24  # repositories: below, it costs more than it saves

Task = collections.namedtuple("Task", "id sha stages out fresh language")


class Bar:
    """How far it is, where a person is looking."""

    def __init__(self, n):
        self.n, self.done, self.start = n, 0, time.monotonic()
        self.shown = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self.show("")

    def step(self, name):
        self.done += 1
        self.show(name)

    def show(self, name):
        if not self.shown or not self.n:
            return
        full = 30 * self.done // self.n
        spent = time.monotonic() - self.start
        minutes = round(spent / self.done * (self.n - self.done) / 60) if self.done else None
        left = "" if minutes is None else course.say("class_minutes", minutes)
        print(f"\r\033[K[{'#' * full}{' ' * (30 - full)}] {self.done}/{self.n}  {left}  {name[:30]}", end="",
              file=sys.stderr, flush=True)

    def end(self):
        if self.shown and self.n:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


# ---- pull ---------------------------------------------------------------------------------------


def pull(room, students):
    stages = course.stages()
    seen, problems = room.seen(), room.problems()
    writing = threading.Lock()
    bar = Bar(len(students))
    found = collections.Counter()

    def one(together):
        """Those who share a repository see the same versions, at the same times."""
        at = classroom.now()
        with writing:
            join(room, seen, together)
        lasts = {student.id: seen[student.id][-1].sha if seen[student.id] else None for student in together}
        last = lasts[together[0].id] if len(set(lasts.values())) == 1 else None
        try:
            handed_in = pulling.pull(together[0], stages, last)
            problem = None
        except course.Problem as why:
            handed_in, problem = None, str(why)
        with writing:
            for student in together:
                is_new = handed_in and handed_in.sha != lasts[student.id]
                if is_new:
                    classroom.keep(room.folder, student.id, handed_in)  # before the log says that it is there
                    room.note_seen(student.id, handed_in.sha, at)
                found["problem" if problem else "new" if is_new else "same"] += 1
                problems.pop(student.id, None)
                if problem:
                    problems[student.id] = problem
                bar.step(student.id)

    with concurrent.futures.ThreadPoolExecutor(PULLS) as pool:
        for _ in pool.map(one, classroom.by_repository(students)):
            pass
    bar.end()
    room.problems(problems)
    course.tell(course.say("class_pulled", len(students), found["new"], found["same"], found["problem"]))
    for student in students:
        if student.id in problems:
            course.tell(f"  {student.id}: {report.plain(problems[student.id])}")
    return 1 if found["problem"] else 0


def join(room, seen, together):
    """Who comes to a repository that another hands in already has handed in what was seen of it so far."""
    first = next((student for student in together if seen[student.id]), None)
    for student in together if first else ():
        for version in seen[first.id] if not seen[student.id] else ():
            classroom.keep(room.folder, student.id, classroom.kept(room.folder, first.id, version.sha))
            room.note_seen(student.id, version.sha, version.at)
        seen[student.id] = seen[student.id] or seen[first.id]


# ---- grade --------------------------------------------------------------------------------------


class Graders:
    """Programs that grade, one for each job; they end when this process does."""

    def __init__(self, room, jobs, headers):
        self.words = [sys.executable, str(course.ROOT / "tools" / "class_grader.py"), str(room.folder),
                      str(headers)]
        answers = grading.PLACE / "answers" / f"{os.getpid()}"
        shutil.rmtree(answers, ignore_errors=True)
        answers.mkdir(parents=True)
        # TERM: they are many, and only the bar is shown.
        self.environment = dict(os.environ, STAGE_ANSWERS=str(answers), PYTHONDONTWRITEBYTECODE="1", TERM="dumb")
        self.answers, self.jobs, self.mine = answers, jobs, threading.local()

    def start(self):
        return subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                env=self.environment)

    def ask(self, child, seed, task):
        """(what the matter is or None, the grader for what comes next): another one, if this one ended."""
        for _ in range(2):
            try:
                print(json.dumps({**task._asdict(), "seed": seed}), file=child.stdin, flush=True)
                line = child.stdout.readline()
            except OSError:
                line = ""
            if line:
                return json.loads(line)["problem"], child
            child.kill()
            self.end(child)
            child = self.start()
        return course.say("class_grader_ended"), child

    @staticmethod
    def end(child):
        with contextlib.suppress(OSError):
            child.stdin.close()
        child.stdout.close()
        child.wait()

    def run(self, tasks, seed, bar):
        """{out: problem} of the tasks that could not be done."""
        problems, left, taking = {}, collections.deque(tasks), threading.Lock()

        def work():
            child = self.start()
            try:
                while True:
                    with taking:
                        if not left:
                            return
                        task = left.popleft()
                    problem, child = self.ask(child, seed, task)
                    with taking:
                        if problem:
                            problems[task.out] = problem
                        bar.step(task.id)
            finally:
                self.end(child)

        try:
            with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
                for one in [pool.submit(work) for _ in range(min(self.jobs, len(tasks)))]:
                    one.result()
        except KeyboardInterrupt:
            left.clear()
            raise
        finally:
            shutil.rmtree(self.answers, ignore_errors=True)
        return problems


def is_done(task):
    """Is there a result that no other machine could add to?"""
    path = pathlib.Path(task.out)
    return path.exists() and not any(marks.is_open(entry) for entry in marks.read(path)["stages"])


def is_running(pid):
    try:
        os.kill(pid, 0)
    except OSError as problem:
        return problem.errno != errno.ESRCH
    return True


def clean_up():
    """What runs that were killed have left."""
    for pattern in "student-*-*", "headers-*", "answers/*":
        for path in grading.PLACE.glob(pattern):
            pid = path.name.split("-")[1] if "-" in path.name else path.name
            if pid.isdigit() and not is_running(int(pid)):
                shutil.rmtree(path, ignore_errors=True)


class Run:
    """One call of ./stage class grade."""

    def __init__(self, room, options):
        self.room, self.options = room, options
        self.stages = course.stages()
        here = room.folder / official.FILE  # of this class, where one tree serves several
        self.rules = lateness.Rules(official.read(room.folder if here.exists() else course.ROOT), self.stages)
        self.at = classroom.now()
        self.seed = room.seed() if options.seed is None else options.seed
        grading.prepare()
        self.terms = [grading.SCHEMA, grading.official_files(), self.seed, grading.compiler(),
                      grading.why_not()]
        seen, problems = room.seen(), room.problems()
        self.records = [marks.Record(student, seen[student.id], problems.get(student.id), self.rules.of(student))
                        for student in room.students]
        self.versions = {record.id: marks.Versions(room.folder, record) for record in self.records}
        self.overrides = overrides.read(room.folder, room.students, self.stages)
        self.graded_as = {}  # {(id, sha): whose result it is}: of those who share a repository the first's
        records = {record.id: record for record in self.records}
        for together in classroom.by_repository(room.students):
            for student in together:
                record = records[student.id]
                record.shared_with = [other.id for other in together if other is not student]
                for version in record.seen:
                    self.graded_as[student.id, version.sha] = next(
                        other.id for other in together
                        if any(one.sha == version.sha for one in records[other.id].seen))

    def language(self, record, sha):
        return self.options.language or self.versions[record.id].handed_in[sha].language or course.language()

    def task(self, record, sha, stages, fresh=False):
        """stages: None for all. By where its result goes it is known whether it was done before."""
        ids = [stage.id for stage in self.stages if stages is None or stage.id in stages]
        language = self.language(record, sha)
        key = hashlib.sha1(json.dumps([*self.terms, sha, ids, language]).encode()).hexdigest()[:12]
        id = self.graded_as[record.id, sha]
        out = self.room.results / id / f"{sha[:18]}-{key}.json"
        return Task(id, sha, ids, str(out), fresh, language)

    def tasks(self, record):
        """The newest version with all its stages; of older ones the stages that may count for more."""
        wanted = {record.newest.sha: None} if record.newest else {}
        for stage in self.stages:
            for version in self.versions[record.id].candidates(stage, record.rules)[1:]:
                if version.sha != record.newest.sha:
                    wanted.setdefault(version.sha, set()).add(stage.id)
        return [self.task(record, sha, stages) for sha, stages in wanted.items()]

    def grade(self, tasks):
        """{out: problem}"""
        tasks = [task for task in {task.out: task for task in tasks}.values() if task.fresh or not is_done(task)]
        clean_up()
        bar = Bar(len(tasks))
        if not tasks:
            return {}
        with tempfile.TemporaryDirectory(dir=grading.PLACE, prefix=f"headers-{os.getpid()}-") as folder:
            headers = grading.prepare()
            if len({task.id for task in tasks}) >= PRECOMPILED_FROM:
                headers = pathlib.Path(folder) / "include"
                grading.precompile(headers)
            problems = Graders(self.room, self.options.jobs or os.cpu_count() or 1, headers).run(
                tasks, self.seed, bar)
        bar.end()
        return problems

    def fill(self, record, problems):
        """Reads what was found about a student. False where that is not there yet."""
        entries = collections.defaultdict(dict)  # {stage id: {sha: entry}}
        for task in self.tasks(record):
            if task.out in problems:
                record.failed = problems[task.out]
            elif not os.path.exists(task.out):
                return False
            else:
                result = marks.read(pathlib.Path(task.out))
                for entry in result["stages"]:
                    entries[entry["id"]][task.sha] = entry
                if task.sha == record.newest.sha:
                    record.result = result
        versions = self.versions[record.id]
        candidates = {stage: versions.candidates(stage, record.rules) for stage in self.stages}
        corrections = {stage.id: self.overrides[record.id, stage.id] for stage in self.stages
                       if (record.id, stage.id) in self.overrides}
        record.stages, record.late_days_used = marks.count(candidates, entries, record.rules, corrections)
        record.started = {stage.id: versions.started(stage) for stage in self.stages}
        return True

    def write_feedback(self, record):
        language = self.language(record, record.newest.sha) if record.newest else course.language()
        before = os.environ.get("STAGECRAFT_LANG")
        os.environ["STAGECRAFT_LANG"] = language
        try:
            text = "\n".join(feedback.markdown(record)) + "\n"
        finally:
            os.environ["STAGECRAFT_LANG"] = before or ""
        classroom.write(self.room.feedback / f"{record.id}.md", text)

    def note_changes(self):
        return changes.Changes(self, grading.official_files())

    def write_class(self, changed):
        for name, lines in marks.TABLES.items():
            classroom.write(self.room.folder / name, marks.table(lines(self.records, self.stages)))
        changed.write()
        newest = {record.id: self.versions[record.id].handed_in[record.newest.sha] for record in self.records
                  if record.newest and self.graded_as[record.id, record.newest.sha] == record.id}
        alike = likeness.look_at_these(self.stages, newest)
        classroom.write(self.room.folder / "class.html", "\n".join(class_page.page(self, alike)) + "\n")
        self.room.forget_others()


def grade_all(room, options):
    run = Run(room, options)
    problems = run.grade([task for record in run.records for task in run.tasks(record)])
    for record in run.records:
        run.fill(record, problems)
    changed = run.note_changes()
    for record in run.records:
        run.write_feedback(record)
    run.write_class(changed)
    ungraded = [record for record in run.records if record.ungraded]
    course.tell(course.say("class_graded", len(run.records) - len(ungraded), room.folder))
    for record in ungraded:
        course.tell(f"  {record.id}: {course.say('class_ungraded', report.plain(record.ungraded))}")
    tell_changes(changed)
    return 1 if any(record.failed for record in ungraded) else 0


def tell_changes(changed):
    if changed.new:
        course.tell(course.say("class_n_changed", len(changed.new), changes.LOG))
        course.tell("\n".join(changes.lines(changed.new)))


def grade_one(room, options):
    """Anew, whatever is remembered, and shown; the tables follow if all the others were graded alike."""
    run = Run(room, options)
    record = next(record for record in run.records if record.id == options.only)
    if record.newest is None:
        raise course.Problem(course.say("class_nothing_seen", record.problem or "-"))
    found = {one.sha for one in record.seen if one.sha.startswith(options.sha or record.newest.sha)}
    if len(found) != 1:
        raise course.Problem(course.say("class_no_sha", record.id, options.sha, len(found)))
    task = run.task(record, found.pop(), None, fresh=True)
    problems = run.grade([task])
    if problems:
        raise course.Problem(problems[task.out])
    result = marks.read(pathlib.Path(task.out))
    course.tell("\n".join(report.text(result)))
    course.tell(course.say("grade_how", task.sha[:10], (result["official"]["commit"] or "-")[:10], run.seed,
                           result["compiler"]))
    if not all([run.fill(one, {}) for one in run.records]):
        if record.result and record.stages:
            run.write_feedback(record)
        course.tell(course.say("class_tables_wait"))
        return 0
    changed = run.note_changes()
    for one in run.records:
        run.write_feedback(one)
    run.write_class(changed)
    tell_changes(changed)
    return 0


# ---- the command --------------------------------------------------------------------------------


def run():
    parser = argparse.ArgumentParser(
        prog="./stage class", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Pulls and grades a class. Nothing is written in this repository.",
        epilog="e.g. ./stage class pull --roster ../class/roster.csv\n"
               "     ./stage class grade --roster ../class/roster.csv --only ann --sha 1f0c\n"
               "     ./stage class send --roster ../class/roster.csv --as moodle")
    parser.add_argument("what", choices=("pull", "grade", "send"))
    parser.add_argument("--roster", type=pathlib.Path, required=True, metavar="FILE",
                        help="a CSV with the columns id and repository (path or URL)")
    parser.add_argument("--folder", type=pathlib.Path, help="for all that comes out; by default the roster's")
    parser.add_argument("--only", metavar="ID", help="this student alone; graded anew")
    parser.add_argument("--sha", help="with grade --only: not the newest version that was seen but this one")
    parser.add_argument("--seed", type=int, help="of the numbers made on the spot; by default the class's own")
    parser.add_argument("--jobs", type=int, help="students at a time; by default as many as there are cores")
    parser.add_argument("--language", choices=course.HANDOUTS,
                        help="of feedback, whatever students have chosen")
    parser.add_argument("--as", dest="way", choices=sending.WAYS,
                        help="with send: a zip for Moodle, or a branch of each student's repository")
    options = parser.parse_args()
    if (options.what == "send") != bool(options.way):
        parser.error("--as: expected with send, and only there")
    if options.sha and not (options.only and options.what == "grade"):
        parser.error("--sha: expected with grade --only ID")
    if options.seed is not None and not 0 <= options.seed < 1 << 63:
        parser.error("--seed: expected a number from 0 to 2^63 - 1")
    if options.jobs is not None and options.jobs < 1:
        parser.error("--jobs: expected 1 or more")
    room = classroom.Classroom(options.roster, options.folder)
    if options.only and options.only not in {student.id for student in room.students}:
        raise course.Problem(course.say("class_no_student", options.only, options.roster))
    room.lock()
    chosen = {one.repository for one in room.students if options.only in (None, one.id)}
    students = [one for one in room.students if one.repository in chosen]
    if options.what == "pull":
        return pull(room, students)
    if options.what == "send":
        return sending.send(room, students, options.way)
    return grade_one(room, options) if options.only else grade_all(room, options)


if __name__ == "__main__":
    sys.exit(course.main(run))
