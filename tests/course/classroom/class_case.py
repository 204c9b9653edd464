"""What the tests of ./stage class have in common."""
import datetime
import os
import pathlib
import shutil
import tempfile
import types
import unittest

from make_class import STAGES
from classroom import class_folder
from classroom import lateness
from classroom import marks
from grading import grader
from shared import course
from git_folder import commit, git


DUE = datetime.datetime(2026, 11, 2, 12, tzinfo=datetime.timezone.utc)
SEED = 1234567890123456789
POINTS = sum(stage.points for stage in STAGES)
HOURS = datetime.timedelta(hours=1)
NAME = course.unit_name(STAGES[2], STAGES[2].units[0])
EVIL = "<script>alert(1)</script>\x1b[2J&amp;`|\n# x"


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="stage class ")).resolve()
        self.addCleanup(shutil.rmtree, self.folder)
        os.environ["STAGECRAFT_LANG"] = "en"

    def put(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def repository(self, name="ann"):
        self.put(f"{name}/{NAME}", "committed\n")
        git(self.folder / name, "init", "-q", "-b", "main")
        commit(self.folder / name)
        return class_folder.Student(name, str(self.folder / name), {})

    def problem(self, call, *words):
        with self.assertRaises(course.Problem) as caught:
            call(*words)
        return str(caught.exception)


def new_stage(entry):
    return course.Stage({"title": {}, "minutes": 1, "functions": [], "groups": [], "needs": [], **entry})


def student(id="ann", place="x", **more):
    return class_folder.Student(id, place, more)


def entry(stage, status="passed", earned=None, mistake=None):
    """A stage's entry in a result; earned: by default all points or none."""
    if earned is None:
        earned = stage.points if status == "passed" else 0
    return {"id": stage.id, "title": stage.title, "points": stage.points, "earned": earned, "status": status,
            "seed": SEED,
            "started": status != "unwritten", "failed": status == "wrong", "groups": [
                {"name": "G", "points": stage.points, "earned": earned, "status": status, "more": 0,
                 "message": EVIL if status == "wrong" else "", "mistake": mistake, "mistake_says": EVIL}]}


class Records(Folder):
    def record(self, id, statuses, more=None, problem=None, rules=None):
        rules = rules or lateness.Rules({}, STAGES)
        record = marks.Record(class_folder.Student(id, "x", more or {}), [class_folder.Seen("a" * 40, DUE)], problem, rules)
        entries = [entry(stage, *statuses.get(stage.id, ("passed",))) for stage in STAGES]
        record.result = {"stages": entries, "confined": True, "official": {"commit": "c"}, "seed": None,
                         "repository": {"sha": "a" * 40}, "compiler": "c++", "not_confined_because": ""}
        record.stages = [marks.StageMark(stage, one, lateness.Version("a" * 40, DUE, 0),
                                         None if grader.is_open(one) else one["earned"])
                         for stage, one in zip(STAGES, entries)]
        record.started = {stage.id: DUE for stage in STAGES}
        return record

    def ungraded(self, id, why="the machine was on fire"):
        """A student whose newest version could not be graded."""
        record = self.record(id, {})
        record.result, record.failed = None, why
        record.stages = [marks.StageMark(stage, None, lateness.Version("a" * 40, DUE, 0), None) for stage in STAGES]
        return record

    def unseen(self, id):
        record = self.record(id, {}, problem="no such repository")
        record.seen, record.result = [], None
        record.stages = [marks.StageMark(stage, None, None, None) for stage in STAGES]
        return record

    def run_of(self, records):
        return types.SimpleNamespace(records=records, stages=STAGES, rules=lateness.Rules({}, STAGES), at=DUE)
