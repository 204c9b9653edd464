"""./stage class: pulls and grades a whole class, with one command each.

    ./stage class pull --roster ../class/roster.csv      fetches the newest versions, and notes when they were seen
    ./stage class grade --roster ../class/roster.csv     marks, feedback, the page of the class
    ./stage class send --roster ../class/roster.csv      feedback as a zip for Moodle, or to each repository

A roster has one line per student: id,repository (a path or a URL). docs/teaching.md describes the output.
"""
import collections
import datetime
import errno
import hashlib
import json
import os
import pathlib
import shutil
import sys
import time

from classroom import changes
from classroom import class_page
from classroom import class_folder
from shared import course
from classroom import feedback
from grading import grader
from classroom import helpers
from classroom import lateness
from classroom import likeness
from classroom import marks
from shared import official
from shared.parser import Parser
from classroom import overrides
from classroom import ranking
from grading import report
from classroom import sending
from classroom import viva

PULLS = 8  # at the same time: pulling mostly waits
PULL_SECONDS = 900  # per student
PRECOMPILED_FROM = 24  # repositories: with fewer, precompiling costs more than it saves

Task = collections.namedtuple("Task", "id sha seeds out fresh language")  # seeds: {id of a stage: its seed}


class Bar:
    """A progress bar, shown only in a terminal."""

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


def pull(classroom, students):
    seen, problems = classroom.seen(), classroom.problems()
    bar = Bar(len(students))
    found = collections.Counter()

    lasts = {}  # {student id: the newest known version}

    def done(task, answer):
        """Students who share a repository get the same versions, at the same times."""
        sha, problem = answer.get("sha"), answer["problem"]
        for id in task["ids"]:
            is_new = sha and sha != lasts[id]
            if is_new:
                classroom.note_seen(id, sha, datetime.datetime.fromisoformat(answer["at"]))
            found["problem" if problem else "new" if is_new else "same"] += 1
            problems.pop(id, None)
            if problem:
                problems[id] = problem
            bar.step(id)

    tasks = []
    for together in class_folder.by_repository(students):
        join(classroom, seen, together)
        lasts.update({student.id: seen[student.id][-1].sha if seen[student.id] else None for student in together})
        known = {lasts[student.id] for student in together}
        tasks.append({"ids": [student.id for student in together], "place": together[0].place,
                      "last": known.pop() if len(known) == 1 else None})
    words = [sys.executable, str(course.ROOT / "course"), "classroom.pull_process", str(classroom.folder)]
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", TERM="dumb")
    helpers.Helpers(words, PULLS, environment, PULL_SECONDS).run(tasks, done)
    bar.end()
    classroom.problems(problems)
    course.tell(course.say("class_pulled", len(students), found["new"], found["same"], found["problem"]))
    for student in students:
        if student.id in problems:
            course.tell(f"  {student.id}: {report.plain(problems[student.id])}")
    return 1 if found["problem"] else 0


def join(classroom, seen, together):
    """A student who joins a repository gets the versions of it that were seen earlier."""
    first = next((student for student in together if seen[student.id]), None)
    for student in together if first else ():
        for version in seen[first.id] if not seen[student.id] else ():
            class_folder.keep(classroom.folder, student.id, class_folder.kept(classroom.folder, first.id, version.sha))
            classroom.note_seen(student.id, version.sha, version.at)
        seen[student.id] = seen[student.id] or seen[first.id]


# ---- grade --------------------------------------------------------------------------------------


class Graders(helpers.Helpers):
    """Processes that grade, one per job."""

    def __init__(self, classroom, jobs, headers):
        self.answers = grader.PLACE / "answers" / f"{os.getpid()}"
        shutil.rmtree(self.answers, ignore_errors=True)
        self.answers.mkdir(parents=True)
        # TERM: there are many of them, and only the progress bar is shown.
        environment = dict(os.environ, STAGE_ANSWERS=str(self.answers), PYTHONDONTWRITEBYTECODE="1", TERM="dumb")
        super().__init__([sys.executable, str(course.ROOT / "course"), "classroom.grade_process", str(classroom.folder),
                          str(headers)], jobs, environment, grader.SECONDS)

    def grade(self, tasks, bar):
        """{out: problem} of the tasks that could not be done."""
        problems = {}

        def done(task, answer):
            if answer["problem"]:
                problems[task["out"]] = answer["problem"]
            bar.step(task["id"])

        try:
            self.run([task._asdict() for task in tasks], done)
        finally:
            shutil.rmtree(self.answers, ignore_errors=True)
        return problems


def is_done(task):
    """True if there is a result and nothing in it needs another machine."""
    path = pathlib.Path(task.out)
    return path.exists() and not any(grader.is_open(entry) for entry in marks.read(path)["stages"])


def is_running(pid):
    try:
        os.kill(pid, 0)
    except OSError as problem:
        return problem.errno != errno.ESRCH
    return True


def clean_up():
    """Deletes the files of runs that were killed."""
    for pattern in "*-*-*", "answers/*":
        for path in grader.PLACE.glob(pattern):
            pid = path.name.split("-")[1] if "-" in path.name else path.name
            if pid.isdigit() and not is_running(int(pid)):
                shutil.rmtree(path, ignore_errors=True)


class Run:
    """One call of ./stage class grade."""

    def __init__(self, classroom, options):
        self.classroom, self.options = classroom, options
        self.stages = course.stages()
        here = classroom.folder / official.FILE  # of this class, if one tree serves several
        settings = official.read(classroom.folder if here.exists() else course.ROOT)
        self.rules = lateness.Rules(settings, self.stages)
        self.is_ranked = ranking.is_wanted(settings)
        self.at = class_folder.now()
        grader.prepare()
        self.terms = [grader.SCHEMA, grader.official_files(), grader.compiler(), grader.why_not()]
        seen, problems = classroom.seen(), classroom.problems()
        self.records = [marks.Record(student, seen[student.id], problems.get(student.id), self.rules.of(student))
                        for student in classroom.students]
        self.versions = {record.id: marks.Versions(classroom.folder, record) for record in self.records}
        self.overrides = overrides.read(classroom.folder, classroom.students, self.stages)
        self.graded_as = {}  # {(id, sha): whose result it is}; students who share a repository share the first one's
        records = {record.id: record for record in self.records}
        for together in class_folder.by_repository(classroom.students):
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
        """stages: None means all. The path of its result contains all that the result depends on."""
        seeds = {stage.id: self.seed(record, stage, sha) for stage in self.stages
                 if stages is None or stage.id in stages}
        language = self.language(record, sha)
        key = hashlib.sha1(json.dumps([*self.terms, sha, seeds, language]).encode()).hexdigest()[:12]
        id = self.graded_as[record.id, sha]
        out = self.classroom.results / id / f"{sha[:18]}-{key}.json"
        return Task(id, sha, seeds, str(out), fresh, language)

    def seed(self, record, stage, sha):
        """The seed of the first commit with the stage's present files: unchanged files get the same numbers, and need
        not be graded again."""
        if self.options.seed is not None:
            return self.options.seed
        return self.classroom.seed(self.graded_as[record.id, sha], self.versions[record.id].first(stage, sha))

    def tasks(self, record):
        """The newest version with all its stages; of older versions, the stages that may count for more."""
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
        with grader.temporary("headers") as folder:
            headers = grader.prepare()
            if len({task.id for task in tasks}) >= PRECOMPILED_FROM:
                headers = pathlib.Path(folder) / "include"
                grader.precompile(headers)
            problems = Graders(self.classroom, self.options.jobs or os.cpu_count() or 1, headers).grade(tasks, bar)
        bar.end()
        return problems

    def fill(self, record, problems):
        """Reads the results of a student. False if they do not exist yet."""
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
        record.unread = record.newest and versions.handed_in[record.newest.sha].unread
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
        class_folder.write(self.classroom.feedback / f"{record.id}.md", text)

    def note_changes(self):
        return changes.Changes(self, grader.official_files())

    def write_class(self, changed):
        for name, lines in marks.TABLES.items():
            class_folder.write(self.classroom.folder / name, marks.table(lines(self.records, self.stages)))
        changed.write()
        seen = {record.id: list(self.versions[record.id].handed_in.values()) for record in self.records
                if record.newest and self.graded_as[record.id, record.newest.sha] == record.id}
        alike, ours = likeness.look_at_these(self.stages, seen), likeness.look_at_ours(self.stages, seen)
        places, problems = ranking.places(self) if self.is_ranked else ([], {})
        self.write_page("class.html", class_page.page(self, alike, ours, places))
        if self.is_ranked:
            course.tell(course.say("class_ranked", len(places), self.write_page("ranking.html",
                                                                                class_page.ranking_page(self, places))))
            for id, why in problems.items():
                course.tell(f"  {id}: {report.plain(why)}")
        self.classroom.forget_others()

    def write_page(self, name, lines):
        class_folder.write(self.classroom.folder / name, "\n".join(lines) + "\n")
        return self.classroom.folder / name


def grade_all(classroom, options):
    run = Run(classroom, options)
    problems = run.grade([task for record in run.records for task in run.tasks(record)])
    for record in run.records:
        run.fill(record, problems)
    changed = run.note_changes()
    for record in run.records:
        run.write_feedback(record)
    run.write_class(changed)
    ungraded = [record for record in run.records if record.ungraded]
    course.tell(course.say("class_graded", len(run.records) - len(ungraded), classroom.folder))
    for record in ungraded:
        course.tell(f"  {record.id}: {course.say('class_ungraded', report.plain(record.ungraded))}")
    tell_changes(changed)
    return 1 if any(record.failed for record in ungraded) else 0


def tell_changes(changed):
    if changed.new:
        course.tell(course.say("class_n_changed", len(changed.new), changes.LOG))
        course.tell("\n".join(changes.lines(changed.new)))


def grade_one(classroom, options):
    """Grades one student again, ignoring stored results, and shows the result. The tables are written if all other
    students have a result from the same tree, compiler and settings."""
    run = Run(classroom, options)
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
    course.tell(course.say("grade_how", task.sha[:10], (result["official"]["commit"] or "-")[:10], result["compiler"]))
    course.tell(course.say("class_result", task.out))
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


# ---- viva ---------------------------------------------------------------------------------------


def vivas(classroom, options):
    """A sheet for each student who has a right stage, or for one student."""
    run = Run(classroom, options)
    chosen = [record for record in run.records if record.newest and options.only in (None, record.id)]
    bar = Bar(len(chosen))
    grader.PLACE.mkdir(parents=True, exist_ok=True)
    missing = []
    for record in chosen:
        if not run.fill(record, {}) or record.result is None:
            missing.append(record.id)
            continue
        right = [stage for stage, entry in zip(run.stages, record.result["stages"])
                 if entry["status"] in ("passed", "slow") and entry["started"] and stage.points]
        sha = record.newest.sha
        found = viva.changes(run.versions[record.id].handed_in[sha], right, classroom.seed(record.id, sha))
        lines = viva.sheet(record.id, sha, found, right)
        class_folder.write(classroom.folder / "viva" / f"{record.id}.md", "\n".join(lines) + "\n")
        bar.step(record.id)
    bar.end()
    course.tell(course.say("viva_done", len(chosen) - len(missing), classroom.folder / "viva"))
    for id in missing:
        course.tell(f"  {id}: {course.say('viva_not_graded')}")
    return 1 if missing else 0


# ---- the command --------------------------------------------------------------------------------


def run():
    parser = Parser("class")
    parser.add_argument("what", choices=("pull", "grade", "viva", "send"))
    parser.add_argument("--roster", type=pathlib.Path, required=True, metavar="FILE")
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--only", metavar="ID")
    parser.add_argument("--sha")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--language", choices=course.HANDOUTS)
    parser.add_argument("--as", dest="way", choices=sending.WAYS)
    options = parser.parse_args()
    if (options.what == "send") != bool(options.way):
        parser.error(course.say("expected_way"))
    if options.sha and not (options.only and options.what == "grade"):
        parser.error(course.say("expected_only"))
    if options.seed is not None and not 0 <= options.seed < 1 << 63:
        parser.error(course.say("expected_seed"))
    if options.jobs is not None and options.jobs < 1:
        parser.error(course.say("expected_jobs"))
    classroom = class_folder.Classroom(options.roster, options.folder)
    if options.only and options.only not in {student.id for student in classroom.students}:
        raise course.Problem(course.say("class_no_student", options.only, options.roster))
    classroom.lock(options.what)
    chosen = {one.repository for one in classroom.students if options.only in (None, one.id)}
    students = [one for one in classroom.students if one.repository in chosen]
    if options.what == "pull":
        return pull(classroom, students)
    if options.what == "viva":
        return vivas(classroom, options)
    if options.what == "send":
        return sending.send(classroom, students, options.way)
    return grade_one(classroom, options) if options.only else grade_all(classroom, options)


if __name__ == "__main__":
    sys.exit(course.main(run))
