"""Marks of a class: what was graded and when it was seen, together; and the tables that others import."""
import csv
import io
import json

import classroom
import course
import lateness

# Columns that gradebooks know their people by. Where the roster has them they are copied.
MOODLE = ("Email address", "ID number", "Username")
CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")


class StageMark:
    """What one stage of one student counts."""

    def __init__(self, stage, entry, version, mark):
        self.stage = stage
        self.entry = entry  # of the result of that version; None if it could not be graded
        self.version = version  # of the stage's files that counts; None where nothing was handed in
        self.mark = mark

    @property
    def days(self):
        return self.version.days if self.version else 0

    @property
    def status(self):
        return self.entry["status"] if self.entry else "unwritten"


class Record:
    """All about one student."""

    def __init__(self, student, seen, problem):
        self.student = student
        self.seen = seen
        self.problem = problem  # why it could not be pulled the last time
        self.result = None  # of the newest version
        self.stages = []
        self.started = {}  # {stage id: when its files were first no longer starters}
        self.ungraded = None  # why

    @property
    def id(self):
        return self.student.id

    @property
    def newest(self):
        return self.seen[-1] if self.seen else None

    @property
    def mark(self):
        return round(sum(one.mark for one in self.stages), 2)

    @property
    def days_late(self):
        return max((one.days for one in self.stages if one.mark), default=0)


class Versions:
    """What a student handed in, commit by commit."""

    def __init__(self, folder, record):
        self.handed_in = {one.sha: classroom.kept(folder, record.id, one.sha) for one in record.seen}
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


def best(stage, candidates, entries, rules):
    """The version that counts most, of equals the newest. entries: {sha: entry of that stage}"""
    found = StageMark(stage, None, candidates[0] if candidates else None, 0)
    for version in candidates:
        entry = entries.get(version.sha)
        if entry is None:
            continue
        mark = rules.counted(entry["earned"], version.days)
        if found.entry is None or mark > found.mark:
            found = StageMark(stage, entry, version, mark)
    return found


def number(value):
    return f"{value:g}" if value == round(value, 2) else f"{value:.2f}"


def cells(record, stages):
    """For a gradebook: what could not be graded is left open, which is no 0."""
    return [""] * len(stages) if record.ungraded else [number(one.mark) for one in record.stages]


def table(lines):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(lines)
    return out.getvalue()


def column(stage):
    return f"Stage {stage.id}"  # the same in every language: a gradebook finds it again


def own(records, stages):
    """marks.csv: everything, a line each."""
    yield ["id", "mark", "points", "sha", "seen_at", "days_late", "problem",
           *(f"stage_{stage.id}" for stage in stages), *(f"state_{stage.id}" for stage in stages)]
    points = sum(stage.points for stage in stages)
    for record in records:
        yield [record.id, number(record.mark), points, record.newest.sha if record.newest else "",
               record.newest.at.isoformat() if record.newest else "", record.days_late,
               record.ungraded or record.problem or "",
               *(number(one.mark) for one in record.stages), *(one.status for one in record.stages)]


def moodle(records, stages):
    """Grades > Import > CSV file: a column that says who it is, and one for each grade."""
    known = [name for name in MOODLE if any(record.student.more.get(name) for record in records)]
    yield [*(known or ["ID number"]), *map(column, stages), "Total"]
    for record in records:
        yield [*([record.student.more.get(name, "") for name in known] or [record.id]),
               *cells(record, stages), "" if record.ungraded else number(record.mark)]


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
        yield [*who.values(), *cells(record, stages)]


TABLES = {"marks.csv": own, "moodle.csv": moodle, "canvas.csv": canvas}
