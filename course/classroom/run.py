"""One call of ./stage class grade: which versions of which students are graded, and what is written about them."""
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shutil
import sys
import threading

from grading import grader
from grading import official_tree
from grading import preprocessed
from grading import report
from grading import submission
from grading import workplace
from shared import atomic
from shared import course
from shared import official
from classroom import changes
from classroom import class_folder
from classroom import class_page
from classroom import feedback
from classroom import helpers
from classroom import lateness
from classroom import likeness
from classroom import marks
from classroom import overrides
from classroom import ranking
from classroom.bar import Bar

PRECOMPILED_FROM = 24  # repositories: with fewer, precompiling costs more than it saves

Task = collections.namedtuple("Task", "id sha seeds out fresh language")  # seeds: {id of a stage: its seed}


class Graders(helpers.Helpers):
    """Processes that grade, one per job."""

    def __init__(self, classroom, jobs, headers):
        self.answers = workplace.PLACE / "answers" / f"{os.getpid()}"
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


class Preprocessed:
    """Calls preprocessed.texts, and keeps the results in a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.used = set()
        self.lock = threading.Lock()

    def __call__(self, handed_in, stage):
        mine = preprocessed.own_texts(handed_in, stage)
        if not preprocessed.not_plain(mine):
            return {}
        terms = [official_tree.fingerprint(), official_tree.compiler(), stage.number,
                 [(name, course.blob_hash(handed_in.files[name])) for name in mine]]
        path = self.folder / f"{hashlib.sha1(json.dumps(terms).encode()).hexdigest()}.json"
        self.used.add(path.name)
        if not path.exists():
            text = json.dumps(preprocessed.texts(handed_in, stage))
            with self.lock:  # two students may have the same files
                atomic.write(path, text)
        return json.loads(path.read_text(encoding="utf-8"))

    def forget_others(self):
        for path in self.folder.glob("*.json"):
            if path.name not in self.used:
                path.unlink()


def is_done(task):
    """True if there is a result, nothing in it needs another machine, and no program in it had too little of this one."""
    path = pathlib.Path(task.out)
    return path.exists() and not any(grader.is_open(entry) or entry.get("starved") for entry in marks.read(path)["stages"])


class Run:
    """One call of ./stage class grade."""

    def __init__(self, classroom, options):
        self.classroom, self.options = classroom, options
        here = classroom.given(official.FILE)  # of this class, if one tree serves several
        try:
            settings = official.read(here.parent if here else course.ROOT)
            self.rules = lateness.Rules(settings, course.stages())
            self.is_ranked = ranking.is_wanted(settings)
        except course.Problem as problem:  # it begins with the file's name
            raise course.Problem(f"{here or official.FILE}{str(problem).removeprefix(official.FILE)}") from None
        self.stages = self.rules.that_count  # no others are graded
        self.at = class_folder.now()
        official_tree.prepare()
        self.terms = [grader.SCHEMA, official_tree.fingerprint(), official_tree.compiler(), grader.why_not()]
        seen, problems = classroom.seen(), classroom.problems()
        self.records = [marks.Record(student, seen[student.id], problems.get(student.id), self.rules.of(student))
                        for student in classroom.students]
        self.versions = {record.id: marks.Versions(classroom.folder, record) for record in self.records}
        self.overrides, lines = overrides.read(classroom.given(overrides.FILE), classroom.students, self.rules.stages)
        for line in lines:
            course.tell(line, sys.stderr)
        self.graded_as = {}  # {(id, sha): whose result it is}; students who share a repository share the first one's
        records = {record.id: record for record in self.records}
        for together in class_folder.by_repository(classroom.students):
            seen_by = {other.id: {one.sha for one in records[other.id].seen} for other in together}
            for student in together:
                record = records[student.id]
                record.shared_with = [other.id for other in together if other is not student]
                for version in record.seen:
                    self.graded_as[student.id, version.sha] = next(
                        id for id, shas in seen_by.items() if version.sha in shas)

    def language(self, record, sha):
        return self.options.language or self.versions[record.id].handed_in(sha).language or course.language()

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

    def candidates(self, record, result):
        """{stage: the versions that can count}. result: of the newest version, or None."""
        full = {entry["id"] for entry in result["stages"] if entry["earned"] == entry["points"]} if result else set()
        versions = self.versions[record.id]
        return {stage: versions.candidates(stage, record.rules, stage.id in full) for stage in self.stages}

    def tasks(self, record):
        """The newest version with all its stages. Once its result is there: the older versions that may count for more,
        a task for each stage, so that its result is used again when another version is handed in."""
        if not record.newest:
            return []
        newest = self.task(record, record.newest.sha, None)
        if not os.path.exists(newest.out):
            return [newest]
        candidates = self.candidates(record, marks.read(pathlib.Path(newest.out)))
        return [newest, *(self.task(record, version.sha, {stage.id})
                          for stage, versions in candidates.items() for version in versions[1:])]

    def grade(self, tasks_now):
        """{out: problem}. tasks_now: called twice, because the results of newest versions decide which older ones may
        count for more."""
        problems, tried, headers = {}, set(), None
        workplace.clean_up()
        with workplace.temporary("headers") as folder:
            for _ in range(2):
                tasks = [task for out, task in {task.out: task for task in tasks_now()}.items()
                         if out not in tried and (task.fresh or not is_done(task))]
                tried.update(task.out for task in tasks)
                if tasks:
                    headers = headers or self.headers(tasks, pathlib.Path(folder) / "include")
                    bar = Bar(len(tasks))
                    graders = Graders(self.classroom, self.options.jobs or os.cpu_count() or 1, headers)
                    problems.update(graders.grade(tasks, bar))
                    bar.end()
                    self.refuse_if_changed(tasks)
        return problems

    @staticmethod
    def refuse_if_changed(tasks):
        """A result's name contains the fingerprint of this tree. A result of another tree must not get this name."""
        if official_tree.is_changed():
            for task in tasks:
                pathlib.Path(task.out).unlink(missing_ok=True)
            raise course.Problem(course.say("grade_tree_changed"))

    @staticmethod
    def headers(tasks, folder):
        """The folder of the headers; for many students, precompiled in this new folder."""
        if len({task.id for task in tasks}) < PRECOMPILED_FROM:
            return official_tree.prepare()
        official_tree.precompile(folder)
        return folder

    def fill(self, record, problems):
        """Reads the results of a student. False if they do not exist yet."""
        entries = record.entries = collections.defaultdict(dict)
        for task in self.tasks(record):
            if task.out in problems:
                record.failed = problems[task.out]
            elif not os.path.exists(task.out):
                return False
            else:
                result = marks.read(pathlib.Path(task.out))
                result["official"] = official_tree.version()  # it has the same files as the one that graded
                for entry in result["stages"]:
                    entries[entry["id"]][task.sha] = entry
                if task.sha == record.newest.sha:
                    record.result = result
        versions = self.versions[record.id]
        record.unread = record.newest and versions.handed_in(record.newest.sha).unread
        candidates = self.candidates(record, record.result)
        corrections = {stage.id: self.overrides[record.id, stage.id] for stage in self.stages
                       if (record.id, stage.id) in self.overrides}
        record.stages, record.late_days_used = marks.count(candidates, entries, record.rules, corrections)
        record.started = {stage.id: versions.started(stage) for stage in self.stages}
        return True

    def write_feedback(self, record):
        language = self.language(record, record.newest.sha) if record.newest else course.language()
        with course.in_language(language):
            text = "\n".join(feedback.markdown(record)) + "\n"
        atomic.write(self.classroom.feedback / f"{record.id}.md", text)

    def note_changes(self):
        return changes.Changes(self, official_tree.fingerprint())

    def write_class(self, changed):
        for name, lines in marks.TABLES.items():
            atomic.write(self.classroom.folder / name, marks.table(lines(self.records, self.stages, self.at)))
        changed.write()
        handed = self.handed()
        alike, ours = likeness.look_at_these(self.stages, handed), likeness.look_at_ours(self.stages, handed)
        places, problems = ranking.places(self) if self.is_ranked else ([], {})
        self.write_page("class.html", class_page.page(self, alike, ours, places))
        if self.is_ranked:
            course.tell(course.say("class_ranked", len(places), self.write_page("ranking.html",
                                                                                class_page.ranking_page(self, places))))
            for id, why in problems.items():
                course.tell(f"  {id}: {report.plain(why)}")
        self.classroom.forget_others()

    def what_counts(self, record):
        """A submission with each stage's files from the version that counts, which need not be the newest one."""
        handed_in = self.versions[record.id].handed_in
        found = handed_in(record.newest.sha)
        found.files = dict(found.files)
        for one in record.stages:
            files = handed_in(one.version.sha).files if one.version else {}
            found.files.update({name: files[name] for name in submission.names([one.stage]) if name in files})
        return found

    def handed(self):
        """What the students have handed in, for the comparison of texts; a repository that two share is in it once."""
        records = [record for record in self.records
                   if record.newest and self.graded_as[record.id, record.newest.sha] == record.id]
        versions = {record.id: self.versions[record.id] for record in records}
        # Only what earned points: other files may not even compile.
        graded = {(record.id, stage.id): [versions[record.id].handed_in(sha) for sha, entry in record.entries[stage.id].items()
                                          if entry["earned"]] for record in records for stage in self.stages}
        read = Preprocessed(self.classroom.folder / "preprocessed")
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs or os.cpu_count()) as pool:
            list(pool.map(lambda one: read(*one), [(handed_in, stage) for stage in self.stages for record in records
                                                   for handed_in in graded[record.id, stage.id]]))
        read.forget_others()
        return likeness.Handed({id: list(of.all_texts()) for id, of in versions.items()}, graded, read)

    def write_page(self, name, lines):
        atomic.write(self.classroom.folder / name, "\n".join(lines) + "\n")
        return self.classroom.folder / name
