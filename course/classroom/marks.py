"""Marks of a class: what was graded and when it was seen, together; and the tables that others import."""
import csv
import io
import json

from classroom import class_folder
from shared import course

# Columns that gradebooks know their people by. Where the roster has them they are copied.
MOODLE = ("Email address", "ID number", "Username")
CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")


def named(stages):
    """As in: stage 3; stages 3, 4."""
    ids = [str(stage.id) for stage in stages]
    return course.say("class_stage" if len(ids) == 1 else "class_some_stages", course.listed(ids))


class StageMark:
    """What one stage of one student counts."""

    def __init__(self, stage, entry, version, mark, covered=0, override=None):
        self.stage = stage
        self.entry = entry  # of the result of that version; None if it was not graded
        self.version = version  # of the stage's files that counts; None where nothing was handed in
        self.mark = override.points if override else mark  # None: not graded, which is no 0
        self.graded = mark  # without the teacher's correction
        self.covered = covered  # of the days late: by late days
        self.override = override

    @property
    def late(self):
        """Days; what earns nothing, and so what is not written, is not late."""
        counts = self.version and self.entry and self.entry["earned"] and not self.override
        return self.version.days if counts else 0

    @property
    def days(self):
        """Those that cost something."""
        return max(self.late - self.covered, 0)

    @property
    def status(self):
        return self.entry["status"] if self.entry else "ungraded"

    @property
    def points(self):
        """Those that one can have for it: for an optional stage none before it is begun."""
        is_begun = self.entry and self.entry["started"] or self.override and self.override.points
        return self.stage.points if not self.stage.is_optional or is_begun else 0


class Record:
    """All about one student."""

    def __init__(self, student, seen, problem, rules=None):
        self.student = student
        self.seen = seen
        self.rules = rules  # about lateness, with what the roster allows this student
        self.problem = problem  # why it could not be pulled the last time
        self.shared_with = []  # ids of those who hand in the same repository
        self.result = None  # of the newest version
        self.stages = []
        self.started = {}  # {stage id: when its files were first no longer starters}
        self.failed = None  # why something of it could not be graded: our fault
        self.late_days_used = 0
        self.changes = None  # what changed in the marks, the last time that something did (changes.py)

    @property
    def id(self):
        return self.student.id

    @property
    def newest(self):
        return self.seen[-1] if self.seen else None

    @property
    def mark(self):
        """None where a stage was not graded: a sum without it would say something else."""
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
            return course.say("class_nothing_seen", self.problem or "-")
        return course.say("class_open_stages", named(one.stage for one in self.stages if one.mark is None))

    @property
    def days_late(self):
        return max((one.days for one in self.stages), default=0)


class Versions:
    """What a student handed in, commit by commit."""

    def __init__(self, folder, record):
        self.handed_in = {one.sha: class_folder.kept(folder, record.id, one.sha) for one in record.seen}
        self.seen = record.seen

    def files(self, stage, sha):
        """What identifies a stage's files in a commit."""
        handed_in = self.handed_in[sha]
        names = [course.unit_name(stage, unit) for unit in stage.units]
        return tuple(handed_in.refused.get(name) or course.blob_hash(handed_in.files[name]) for name in names)

    def first(self, stage, sha):
        """The first commit that was seen with the files that a stage has in this one."""
        files = self.files(stage, sha)
        return next(one.sha for one in self.seen if self.files(stage, one.sha) == files)

    def candidates(self, stage, rules):
        return rules.candidates(stage, self.seen, lambda sha: self.files(stage, sha))

    def started(self, stage):
        """When its files were first seen to be no starters any more; None if they still are."""
        handed_out = tuple(unit.get("starter") for unit in stage.units)
        if not self.seen or self.files(stage, self.seen[-1].sha) == handed_out:
            return None
        return next(at for sha, at in self.seen if self.files(stage, sha) != handed_out)


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def is_open(entry):
    """Does it lack something that only another machine can grade?"""
    return any(group["status"] == "unjudged" for group in entry["groups"])


def best(stage, candidates, entries, rules, covered=0):
    """The version that counts most, of equals the newest. entries: {sha: entry of that stage}. covered: so many
    days are not counted. Where one is not graded yet, nobody knows which counts."""
    newest = candidates[0] if candidates else None
    found = StageMark(stage, newest and entries.get(newest.sha), newest, None)
    if newest is None or any(version.sha not in entries or is_open(entries[version.sha]) for version in candidates):
        return found
    for version in candidates:
        entry = entries[version.sha]
        mark = rules.counted(entry["earned"], max(version.days - covered, 0))
        if found.mark is None or mark > found.mark:
            found = StageMark(stage, entry, version, mark, min(covered, version.days))
    return found


def count(candidates, entries, rules, overrides):
    """(a StageMark for each stage, the late days that these marks take). candidates: {stage: its versions};
    entries: {stage id: {sha: entry}}; overrides: {stage id: Override}"""
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
    """Of points; empty where there are none to tell."""
    if value is None:
        return ""
    return f"{value:g}" if value == round(value, 2) else f"{value:.2f}"


def table(lines):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(lines)
    return out.getvalue()


def column(stage):
    return f"Stage {stage.id}"  # the same in every language: a gradebook finds it again


def own(records, stages):
    """marks.csv: everything, a line each. A cell is empty where something was not graded."""
    yield ["id", "mark", "points", "sha", "seen_at", "days_late", "late_days_used", "shared_with", "problem",
           *(f"stage_{stage.id}" for stage in stages), *(f"state_{stage.id}" for stage in stages),
           *(f"override_{stage.id}" for stage in stages)]
    for record in records:
        yield [record.id, number(record.mark), record.points, record.newest.sha if record.newest else "",
               record.newest.at.isoformat() if record.newest else "", record.days_late, record.late_days_used,
               " ".join(record.shared_with), record.ungraded or record.problem or "",
               *(number(one.mark) for one in record.stages), *(one.status for one in record.stages),
               *(one.override.reason if one.override else "" for one in record.stages)]


def moodle(records, stages):
    """Grades > Import > CSV file: a column that says who it is, and one for each grade."""
    known = [name for name in MOODLE if any(record.student.more.get(name) for record in records)]
    yield [*(known or ["ID number"]), *map(column, stages), "Total"]
    for record in records:
        yield [*([record.student.more.get(name, "") for name in known] or [record.id]),
               *(number(one.mark) for one in record.stages), number(record.mark)]


def canvas(records, stages):
    """Grades > Import: five columns that say who it is, the others are assignments, with their points in the
    second line."""
    yield [*CANVAS, *map(column, stages)]
    yield ["Points Possible", "", "", "", "", *(str(stage.points) for stage in stages)]
    known = any(record.student.more.get(name) for record in records for name in CANVAS)
    for record in records:
        who = {name: record.student.more.get(name, "") for name in CANVAS}
        if not known:
            who.update({"Student": record.id, "SIS User ID": record.id})
        yield [*who.values(), *(number(one.mark) for one in record.stages)]


TABLES = {"marks.csv": own, "moodle.csv": moodle, "canvas.csv": canvas}
