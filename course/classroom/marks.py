"""The marks of a class, from the results and the times when versions were seen; and the tables for gradebooks."""
import collections
import csv
import io
import json

from grading import grader
from grading import submission
from shared import course
from classroom import class_folder

# Columns by which gradebooks identify people. They are copied if the roster has them.
MOODLE = ("Email address", "ID number", "Username")
CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")


def named(stages):
    """For example: stage 3; stages 3, 4."""
    ids = [str(stage.id) for stage in stages]
    return course.say("class_stage" if len(ids) == 1 else "class_some_stages", course.listed(ids))


class StageMark:
    """The mark of one stage of one student."""

    def __init__(self, stage, entry, version, mark, covered=0, override=None):
        self.stage = stage
        self.entry = entry  # the stage's entry in the result of that version; None if not graded
        self.version = version  # the version that counts; None if nothing was handed in
        self.mark = override.points if override else mark  # None: not graded, which is different from 0
        self.graded = mark  # the mark without the teacher's correction
        self.covered = covered  # the days of lateness that late days cover
        self.override = override
        self.corrected = self.graded  # `graded` at the time of the correction (changes.py)

    @property
    def late(self):
        """Days late; 0 for a stage that earns nothing, and so for one that is not written."""
        counts = self.version and self.entry and self.entry["earned"] and not self.override
        return self.version.days if counts else 0

    @property
    def days(self):
        """The days late that cost points."""
        return max(self.late - self.covered, 0)

    @property
    def status(self):
        return self.entry["status"] if self.entry else "ungraded"

    @property
    def points(self):
        """The points that the student can have; 0 for an optional stage that was not begun."""
        is_begun = self.entry and self.entry["started"] or self.override and self.override.points
        return self.stage.points if not self.stage.is_optional or is_begun else 0

    def is_open(self, rules, at):
        """True if an empty cell of a gradebook says more than 0: the stage is optional and not begun, or nothing was
        handed in and the deadline is ahead."""
        if self.entry is None or self.override:
            return False
        due = rules.deadline(self.stage)
        is_ahead = due is not None and not rules.days_late(self.stage, at)
        # Not: "started". The starter may have been corrected, and the student may still have the old one.
        return self.status == "unwritten" and (self.stage.is_optional or is_ahead)


class Record:
    """Everything about one student."""

    def __init__(self, student, seen, problem, rules=None):
        self.student = student
        self.seen = seen
        self.rules = rules  # about lateness, with this student's exceptions
        self.problem = problem  # why the last pull failed
        self.shared_with = []  # ids of students who hand in the same repository
        self.result = None  # the newest version's
        self.entries = collections.defaultdict(dict)  # {stage id: {sha: entry}}, of all versions that were graded
        self.stages = []
        self.started = {}  # {stage id: when it was begun}
        self.failed = None  # why a part could not be graded: not the student's fault
        self.late_days_used = 0
        self.unread = None  # why the course.json of the newest version could not be read
        self.changes = None  # the latest changes of the marks (changes.py)

    @property
    def id(self):
        return self.student.id

    @property
    def newest(self):
        return self.seen[-1] if self.seen else None

    @property
    def mark(self):
        """None if a stage was not graded: a sum without it would be misleading."""
        if not self.stages or any(one.mark is None for one in self.stages):
            return None
        return round(sum(one.mark for one in self.stages), 2)

    @property
    def points(self):
        return sum(one.points for one in self.stages)

    @property
    def ungraded(self):
        """Why there is no mark, in words; None if there is one."""
        if self.mark is not None:
            return None
        if self.failed:
            return self.failed
        if self.newest is None:
            return self.nothing_seen
        return course.say("class_open_stages", named(one.stage for one in self.stages if one.mark is None))

    @property
    def nothing_seen(self):
        """Why no version is known, in words."""
        return course.say("class_nothing_seen", self.problem) if self.problem else course.say("class_nothing_pulled")

    @property
    def days_late(self):
        """The most days late of a stage; late days may cover some."""
        return max((one.late for one in self.stages), default=0)


class Versions:
    """A student's submissions, commit by commit. Only the hashes of their files are in memory: a student may hand in a new
    version each hour."""

    def __init__(self, folder, record):
        self.folder, self.id, self.seen = folder, record.id, record.seen
        self.names = submission.names(course.stages())
        self.hashes = {}  # {sha: the hash of each file, or the reason why it was refused}, in the order of names
        same = {}  # most files equal those of the version before: their hashes share memory
        for one in self.seen:
            if one.sha not in self.hashes:
                handed_in = self.handed_in(one.sha)
                found = (handed_in.refused.get(name) or course.blob_hash(handed_in.files[name]) for name in self.names)
                self.hashes[one.sha] = tuple(same.setdefault(text, text) for text in found)

    def handed_in(self, sha):
        return class_folder.kept(self.folder, self.id, sha, self.names)

    def all_texts(self):
        """Submissions in which every text of a file occurs once: in the first version that has it."""
        known = set()
        for sha, hashes in self.hashes.items():
            new = [name for name, hash in zip(self.names, hashes) if (name, hash) not in known and class_folder.is_hash(hash)]
            known.update(zip(self.names, hashes))
            if new:  # only their files are compared
                handed_in = submission.Submission(self.id, sha)
                handed_in.files = class_folder.Texts(class_folder.version(self.folder, self.id, sha), new)
                yield handed_in

    def files(self, stage, sha):
        """A value that identifies a stage's files in a commit."""
        at = self.names.index(course.unit_name(stage, stage.units[0]))
        return self.hashes[sha][at:at + len(stage.units)]

    def first(self, stage, sha):
        """The first seen commit in which the stage had the same files as in this one."""
        files = self.files(stage, sha)
        return next(one.sha for one in self.seen if self.files(stage, one.sha) == files)

    def candidates(self, stage, rules, is_full=False):
        return rules.candidates(stage, self.seen, lambda sha: self.files(stage, sha), is_full)

    def started(self, stage):
        """When the files were first seen to differ from the starters; None if they are starters."""
        handed_out = tuple(unit.get("starter") for unit in stage.units)
        if not self.seen or self.files(stage, self.seen[-1].sha) == handed_out:
            return None
        return next(at for sha, at in self.seen if self.files(stage, sha) != handed_out)


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def best(stage, candidates, entries, rules, covered=0):
    """The version that counts most; among equals the newest. entries: {sha: entry of that stage}. covered: this many
    days late are free. If one is not graded yet, it is not known which counts."""
    newest = candidates[0] if candidates else None
    found = StageMark(stage, newest and entries.get(newest.sha), newest, None)
    if newest is None or any(version.sha not in entries or grader.is_open(entries[version.sha]) for version in candidates):
        return found
    for version in candidates:
        entry = entries[version.sha]
        mark = rules.counted(entry["earned"], max(version.days - covered, 0))
        if found.mark is None or mark > found.mark:
            found = StageMark(stage, entry, version, mark, min(covered, version.days))
    return found


def count(candidates, entries, rules, overrides):
    """([a StageMark per stage], the late days that these marks use). candidates: {stage: its versions}; entries: {stage
    id: {sha: entry}}; overrides: {stage id: Override}"""
    def marked(stage, covered):
        return best(stage, candidates[stage], entries[stage.id], rules, covered)

    worth = {}  # {deadline: [points with 0, 1, ... late days]}
    for stage, versions in candidates.items():
        if stage.id in overrides or not versions or marked(stage, 0).mark is None:
            continue
        most = min(rules.late_days, max(version.days for version in versions))
        points = worth.setdefault(rules.deadline(stage), [0.0])
        points += [points[-1]] * (most + 1 - len(points))
        for days in range(len(points)):
            points[days] += marked(stage, days).mark
    worth.pop(None, None)  # no deadline
    spent = rules.spend(worth)
    found = []
    for stage in candidates:
        one = marked(stage, spent.get(rules.deadline(stage), 0))
        found.append(StageMark(stage, one.entry, one.version, one.mark, one.covered, overrides.get(stage.id)))
    return found, sum(spent.values())


def number(value):
    """Points as text; empty for None."""
    if value is None:
        return ""
    return f"{value:g}" if value == round(value, 2) else f"{value:.2f}"


def table(lines):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(lines)
    return out.getvalue()


def column(stage):
    return f"Stage {stage.id}"  # the same in all languages: gradebooks find a column by its name


def own(records, stages, _at):
    """marks.csv: everything, one line per student. A cell is empty if something was not graded."""
    yield ["id", "mark", "points", "sha", "seen_at", "days_late", "late_days_used", "shared_with", "problem",
           *(f"stage_{stage.id}" for stage in stages), *(f"state_{stage.id}" for stage in stages),
           *(f"override_{stage.id}" for stage in stages)]
    for record in records:
        yield [record.id, number(record.mark), record.points, record.newest.sha if record.newest else "",
               record.newest.at.isoformat() if record.newest else "", record.days_late, record.late_days_used,
               " ".join(record.shared_with), record.ungraded or record.problem or "",
               *(number(one.mark) for one in record.stages), *(one.status for one in record.stages),
               *(one.override.reason if one.override else "" for one in record.stages)]


def cells(record, at):
    return ["" if one.is_open(record.rules, at) else number(one.mark) for one in record.stages]


def moodle(records, stages, at):
    """Grades > Import > CSV file: a column that identifies the student, and one per grade."""
    known = [name for name in MOODLE if any(record.student.more.get(name) for record in records)]
    yield [*(known or ["ID number"]), *map(column, stages), "Total"]
    for record in records:
        yield [*([record.student.more.get(name, "") for name in known] or [record.id]),
               *cells(record, at), number(record.mark)]


def canvas(records, stages, at):
    """Grades > Import: five columns identify the student, the others are assignments, with their points in the second
    line."""
    yield [*CANVAS, *map(column, stages)]
    yield ["Points Possible", "", "", "", "", *(str(stage.points) for stage in stages)]
    known = any(record.student.more.get(name) for record in records for name in CANVAS)
    for record in records:
        who = {name: record.student.more.get(name, "") for name in CANVAS}
        if not known:
            who.update({"Student": record.id, "SIS User ID": record.id})
        yield [*who.values(), *cells(record, at)]


TABLES = {"marks.csv": own, "moodle.csv": moodle, "canvas.csv": canvas}
