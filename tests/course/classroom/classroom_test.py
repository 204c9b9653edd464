"""The parts of ./stage class that need no build: rosters, lateness, tables, the page, pulling.

    classroom_test.py
"""
import contextlib
import datetime
import html.parser
import http.server
import importlib
import io
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import zipfile
from unittest import mock

from make_class import ROOT, STAGES
from classroom import changes
from classroom import class_folder
from classroom import class_page
from classroom import feedback
from classroom import helpers
from classroom import lateness
from classroom import marks
from classroom import overrides
from classroom import pulling
from classroom import ranking
from classroom import run as class_run
from classroom import viva
from classroom.bar import Bar
from grading import grader
from grading import official_tree
from grading import programs
from grading import report
from grading import workplace
from shared import atomic
from shared import course
from shared import official
from testing import verdict
import processes
from git_folder import commit, git
from classroom import repositories
from classroom import sending
import strict_json
from grading import students_git
from grading import submission


DUE = datetime.datetime(2026, 11, 2, 12, tzinfo=datetime.timezone.utc)
SEED = 1234567890123456789
POINTS = sum(stage.points for stage in STAGES)
HOURS = datetime.timedelta(hours=1)
NAME = course.unit_name(STAGES[2], STAGES[2].units[0])


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


class Roster(Folder):
    def read(self, text):
        return class_folder.read_roster(self.put("roster.csv", text))

    def test_is_read_as_spreadsheets_write_it(self):
        for text in ("id,repository\nann,https://example.org/ann.git\nbob,work/bob\n",
                     "\N{ZERO WIDTH NO-BREAK SPACE}Name;ID;Repository\r\nA;ann;https://example.org/ann.git\r\n\r\nB;bob;work/bob\r\n"):
            students = self.read(text)
            self.assertEqual([(one.id, one.place) for one in students], [
                ("ann", "https://example.org/ann.git"), ("bob", str(self.folder / "work/bob"))])

    def test_with_an_id_that_is_no_file_name_or_a_formula_or_there_twice_is_refused_with_its_line(self):
        for id in "../x", "a/b", "=1+1", "-rf", ".x", "a b", "a\x1b", "", "字" * 61:
            self.assertIn("line 3", self.problem(self.read, f"id,repository\nann,a\n\"{id}\",b\n"))
        self.assertIn("twice", self.problem(self.read, "id,repository\nann,a\nAnn,b\n"))
        self.assertIn("line 2", self.problem(self.read, "id,repository\nann,--upload-pack=x\n"))
        self.assertIn("columns", self.problem(self.read, "name,url\nann,a\n"))
        self.assertIn("each student", self.problem(self.read, "id,repository\n"))
        self.assertIn("No such file", self.problem(class_folder.read_roster, self.folder / "none.csv"))
        for encoding in "latin-1", "utf-16":
            text = "id,repository\nann,Müller\n".encode(encoding)
            self.assertIn('save it as "CSV UTF-8"', self.problem(self.read, text))

    def test_with_a_column_that_is_nearly_one_of_ours_is_refused(self):
        for name, ours in ("Extension", "extensions"), ("late days", "late_days"), ("LateDays", "late_days"), (
                "Indentifier", "identifier"):
            self.assertIn(f"column '{name}': did you mean {ours}?",
                          self.problem(self.read, f"id,repository,{name}\nann,a,1\n"))
        more = "Extensions,late_days,Identifier,Name,Student,Student ID,SIS User ID,Email address,Section,Notes"
        self.assertEqual(len(self.read(f"id,repository,{more}\nann,a\n")), 1)

    def test_and_marks_are_kept_out_of_the_repository(self):
        roster = self.put("roster.csv", "id,repository\nann,a\n")
        inside = ROOT / "build" / "class"
        self.assertIn("this repository", self.problem(class_folder.Classroom, roster, inside))
        self.assertIn("this repository", self.problem(class_folder.Classroom, ROOT / "roster.csv"))
        (self.folder / "link").symlink_to(ROOT)
        self.assertIn("this repository", self.problem(class_folder.Classroom, roster, self.folder / "link" / "x"))
        self.assertFalse(inside.exists())

    def test_of_another_class_does_not_share_its_folder(self):
        one, two = (self.put(name, "id,repository\nann,a\n") for name in ("a.csv", "b.csv"))
        class_folder.Classroom(one)
        self.assertIn("holds the results of a.csv", self.problem(class_folder.Classroom, two))
        class_folder.Classroom(two, self.folder / "b")
        for folder in self.folder / "b", self.folder:
            class_folder.Classroom(two if folder.name == "b" else one, folder)  # again
            other = self.put("other/a.csv", "id,repository\nann,a\n")
            self.assertIn("holds the results of", self.problem(class_folder.Classroom, other, folder))
        one.unlink()  # it was renamed to b.csv
        class_folder.Classroom(two)
        class_folder.Classroom(two)


    def test_without_a_student_has_no_feedback_for_that_student(self):
        room = class_folder.Classroom(self.put("roster.csv", "id,repository\nann,a\n"))
        for id in "ann", "bob":
            self.put(f"feedback/{id}.md", "x")
        room.forget_others()
        self.assertEqual([path.name for path in room.feedback.iterdir()], ["ann.md"])


class Turns(unittest.TestCase):
    """Threads take the place of graders: each opens the files itself, as another process would."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        patched = mock.patch.object(workplace, "PLACE", pathlib.Path(folder.name))
        patched.start()
        self.addCleanup(patched.stop)
        self.turns, self.said = workplace.Turns(), []

    def start(self, turn, name):
        """A thread that reports its name when it has its turn."""
        def take():
            with turn():
                self.said.append(name)
        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        return thread

    def end(self, *threads):
        for thread in threads:
            thread.join(10)
            self.assertFalse(thread.is_alive(), self.said)

    def test_work_goes_on_together(self):
        with self.turns.together():
            self.end(self.start(self.turns.together, "other"))
        self.assertEqual(self.said, ["other"])

    def test_nothing_runs_beside_what_is_measured(self):
        with self.turns.alone():
            waiting = self.start(self.turns.together, "work"), self.start(self.turns.alone, "measured")
            time.sleep(0.2)
            self.assertEqual(self.said, [])
        self.end(*waiting)
        self.assertEqual(set(self.said), {"work", "measured"})

    def test_work_that_comes_later_does_not_overtake_what_is_to_be_measured(self):
        with self.turns.together():
            measured = self.start(self.turns.alone, "measured")
            time.sleep(0.2)  # so that it waits
            late = [self.start(self.turns.together, "late") for _ in range(3)]
            time.sleep(0.2)
            self.assertEqual(self.said, [])
        self.end(measured, *late)
        self.assertEqual(self.said[0], "measured")


class Lateness(unittest.TestCase):
    SETTINGS = {"deadlines": {"all": "2026-11-02T12:00Z", "3": "2026-11-05T13:00+01:00"}, "grace_hours": 12,
                "late_percent_a_day": 30}

    def setUp(self):
        self.rules = lateness.Rules(self.SETTINGS, STAGES)

    def test_begins_after_the_grace_and_counts_days_begun(self):
        for hours, days in ((-100, 0), (0, 0), (12, 0), (12.001, 1), (36, 1), (36.001, 2), (132.5, 6)):
            self.assertEqual(self.rules.days_late(STAGES[2], DUE + hours * HOURS), days, hours)
        self.assertEqual(self.rules.days_late(STAGES[3], DUE + 84 * HOURS), 0)  # a deadline of its own
        self.assertEqual([self.rules.counted(20, days) for days in (0, 1, 3, 4)], [20, 14, 2, 0])
        self.assertEqual(lateness.Rules({}, STAGES).days_late(STAGES[2], DUE + 10**5 * HOURS), 0)

    def test_is_of_a_stages_files_whichever_commit_has_them(self):
        files = {"a": "x", "b": "y", "c": "x", "d": "x"}
        seen = [class_folder.Seen(sha, DUE + hours * HOURS) for sha, hours in
                (("a", -5), ("b", 20), ("c", 60), ("d", 90))]

        def candidates(n):
            return [tuple(one)[::2] for one in self.rules.candidates(STAGES[2], seen[:n], files.get)]

        self.assertEqual(candidates(0), [])
        self.assertEqual(candidates(1), [("a", 0)])
        self.assertEqual(candidates(2), [("b", 1), ("a", 0)])  # the late version, and the one in time
        self.assertEqual(candidates(4), [("d", 0), ("b", 1)])  # files that were once in time stay in time

    def test_is_graded_day_by_day_so_that_handing_in_more_never_costs_points(self):
        seen = [class_folder.Seen(sha, DUE + hours * HOURS) for sha, hours in
                (("a", 5), ("b", 20), ("c", 30), ("d", 50), ("e", 100))]

        def candidates(rules):
            return [tuple(one)[::2] for one in rules.candidates(STAGES[2], seen, str)]

        self.assertEqual(candidates(self.rules), [("e", 4), ("d", 2), ("c", 1), ("b", 1), ("a", 0)])
        hard = lateness.Rules({**self.SETTINGS, "late_percent_a_day": 100}, STAGES)
        self.assertEqual(candidates(hard), [("e", 4), ("a", 0)])  # the others would count 0
        self.assertEqual(candidates(hard.of(student(late_days="1"))), [("e", 4), ("c", 1), ("b", 1), ("a", 0)])

    def test_is_no_reason_to_forget_an_earlier_version_of_the_same_day(self):
        """A broken push must not replace a right one."""
        seen = [class_folder.Seen(sha, DUE + hours * HOURS) for sha, hours in
                (("a", -5), ("b", -4), ("c", 14), ("d", 15), ("e", 16))]

        def shas(is_full=False):
            return "".join(one.sha for one in self.rules.candidates(STAGES[2], seen, str, is_full))

        self.assertEqual(shas(), "edcba")
        self.assertEqual(shas(is_full=True), "eba")  # the others are as late and cannot have more points
        with mock.patch.object(lateness, "MOST_VERSIONS", 2):
            self.assertEqual(shas(), "edb")  # and the last one of each lateness

    def test_of_what_counts_most_is_taken(self):
        versions = [lateness.Version("new", DUE, 1), lateness.Version("old", DUE, 0)]
        for new, old, sha, mark in ((20, 20, "old", 20), (20, 10, "new", 14), (0, 0, "new", 0)):
            entries = {"new": entry(STAGES[2], "wrong", new), "old": entry(STAGES[2], "wrong", old)}
            found = marks.best(STAGES[2], versions, entries, self.rules)
            self.assertEqual((found.version.sha, found.mark), (sha, mark))
        self.assertIsNone(marks.best(STAGES[2], versions, {"new": entries["new"]}, self.rules).mark)
        entries["old"] = entry(STAGES[2], "unjudged", 0)  # another machine may find it better than the new one
        self.assertIsNone(marks.best(STAGES[2], versions, entries, self.rules).mark)

    def test_is_of_no_stage_that_is_not_written_or_earns_nothing(self):
        version = lateness.Version("a", DUE, 3)
        for status, earned, late in (("unwritten", 0, 0), ("wrong", 0, 0), ("wrong", 5, 3)):
            one = marks.best(STAGES[2], [version], {"a": entry(STAGES[2], status, earned)}, self.rules)
            self.assertEqual((one.late, one.days), (late, late))
            self.assertEqual(bool(feedback.lateness(one, self.rules)), bool(late))
        corrected = marks.StageMark(STAGES[2], one.entry, version, one.mark, 0, overrides.Override(3, "x"))
        self.assertEqual((corrected.late, corrected.days), (0, 0))  # a correction includes the lateness

    def test_knows_the_extensions_of_the_roster(self):
        for cell, late in (("", [1, 1]), ("+1", [0, 0]), ("2=1", [0, 1]), ("1-2=+1 2=0", [1, 0]),
                           ("2=2026-11-09T12:00Z", [0, 1]), ("all=2026-11-09T12:00+01:00", [0, 0])):
            rules = self.rules.of(student(Extensions=cell))
            at = DUE + 13 * HOURS
            self.assertEqual([rules.days_late(STAGES[2], at), rules.days_late(STAGES[1], at)], late, cell)
        without = lateness.Rules({}, STAGES).of(student(extensions="+7"))  # a stage without a deadline is never late
        self.assertEqual(without.days_late(STAGES[2], DUE + 10**5 * HOURS), 0)
        for cell in ("x", "2=", "99=+1", "2=-1", "2=2026-11-09T12:00", "=+x", "2=2025-11-09T12:00Z"):
            with self.assertRaisesRegex(course.Problem, "ann: extensions: "):
                self.rules.of(student(extensions=cell))
        with self.assertRaisesRegex(course.Problem, "ann: late_days"):
            self.rules.of(student(late_days="-1"))
        two = lateness.Rules({"deadlines": {"1": "2026-11-02T12:00Z", "2": "2026-11-20T12:00Z"}}, STAGES)
        found = two.of(student(extensions="all=2026-11-09T12:00Z"))  # a time that is earlier moves no deadline
        self.assertEqual([found.deadline(STAGES[id]).day for id in (1, 2)], [9, 20])

    def test_spends_late_days_where_they_save_most(self):
        for budget in range(5):
            rules = self.rules.of(student(late_days=str(budget)))
            worth = {DUE: [0, 5, 6], DUE + HOURS: [10, 12, 19.5], DUE + 2 * HOURS: [1]}
            every = itertools.product(*(range(len(points)) for points in worth.values()))
            def total(days):
                return sum(points[at] for at, points in zip(days, worth.values()))
            most = max((total(days), -sum(days)) for days in every if sum(days) <= budget)
            spent = rules.spend(worth)
            self.assertEqual((total([spent[due] for due in worth]), -sum(spent.values())), most)

    def count(self, budget, late, percent=30, overrides={}):
        """The marks of stages 1 to 4, 10 points each, with these days late; stages 1 and 2 have the same deadline."""
        dues = {"1": "2026-11-02T12:00Z", "2": "2026-11-02T12:00Z", "3": "2026-11-03T12:00Z", "4": "2026-11-04T12:00Z"}
        rules = lateness.Rules({"deadlines": dues, "late_percent_a_day": percent, "late_days": budget}, STAGES)
        versions = {stage: [lateness.Version("a", DUE, late.get(stage.id, 0))] for stage in STAGES[1:5]}
        entries = {stage.id: {"a": entry(stage, "passed", 10)} for stage in versions}
        found, used = marks.count(versions, entries, rules, overrides)
        return [one.mark for one in found], used

    def test_takes_a_late_day_once_for_stages_that_are_due_together(self):
        late = {1: 1, 2: 1, 3: 1, 4: 2}
        self.assertEqual(self.count(0, late), ([7, 7, 7, 4], 0))
        self.assertEqual(self.count(1, late), ([10, 10, 7, 4], 1))
        self.assertEqual(self.count(2, late), ([10, 10, 10, 4], 2))
        self.assertEqual(self.count(9, late), ([10, 10, 10, 10], 4))
        self.assertEqual(self.count(9, {}), ([10, 10, 10, 10], 0))
        self.assertEqual(self.count(1, {1: 9, 3: 1}, percent=100), ([0, 10, 10, 10], 1))
        self.assertEqual(self.count(3, {1: 9}, percent=100), ([0, 10, 10, 10], 0))  # none would save anything
        self.assertEqual(self.count(1, {1: 1, 2: 2}), ([10, 7, 10, 10], 1))
        self.assertEqual(self.count(2, {1: 1, 2: 2}), ([10, 10, 10, 10], 2))
        corrected = {1: overrides.Override(3, "x"), 2: overrides.Override(4, "x")}
        self.assertEqual(self.count(1, late, overrides=corrected), ([3, 4, 10, 4], 1))

    def test_deadlines_may_be_of_several_stages_and_the_one_of_fewer_holds(self):
        times = {"1-3": "2026-11-02T12:00Z", "2": "2026-11-03T12:00Z", "all": "2026-11-04T12:00Z",
                 "4,5": "2026-11-05T12:00Z"}
        rules = lateness.Rules({"deadlines": times}, STAGES)
        self.assertEqual([rules.deadline(stage).day for stage in STAGES[:7]], [4, 2, 3, 2, 5, 5, 4])
        self.assertIsNone(lateness.Rules({"deadlines": {"1-3": "2026-11-02T12:00Z"}}, STAGES).deadline(STAGES[4]))

    def test_settings_that_make_no_sense_are_refused_by_name(self):
        for more, name in (({"grace_hours": -1}, "grace_hours"), ({"late_percent_a_day": "10"}, "late_percent_a_day"),
                           ({"deadlines": {"all": "2026-11-02T12:00"}}, "deadlines: all"),
                           ({"deadlines": {"99": "2026-11-02T12:00Z"}}, "deadlines: 99: "),
                           ({"deadlines": []}, "deadlines"), ({"stages": "0-99"}, "stages: no stage '99'"),
                           ({"stages": ""}, "stages: no stage ''"), ({"stages": [0, 1]}, r"stages: .* found \[0, 1\]"),
                           ({"stages": 5}, "stages: expected a text .* found 5"),
                           ({"late_days": 1.5}, "late_days"), ({"late_days": -1}, "late_days")):
            with self.assertRaisesRegex(course.Problem, name):
                lateness.Rules({**self.SETTINGS, **more}, STAGES)


class Fetching(Folder):
    def command(self, **environment):
        environment = {"GIT_CONFIG_NOSYSTEM": "1", **environment}
        with mock.patch.dict(os.environ, environment):
            for name in {"GIT_SSH", "GIT_SSH_COMMAND"} - set(environment):
                os.environ.pop(name, None)
            return official.without_questions(30)["GIT_SSH_COMMAND"]

    def test_uses_ssh_as_the_users_git_does(self):
        """A deploy key is often named in core.sshCommand."""
        settings = self.folder / "gitconfig"
        settings.write_text("[core]\nsshCommand = ssh -i ~/.ssh/course\n")
        quiet = " -o BatchMode=yes -o ConnectTimeout=30"
        self.assertEqual(self.command(GIT_CONFIG_GLOBAL=str(settings)), "ssh -i ~/.ssh/course" + quiet)
        self.assertEqual(self.command(GIT_CONFIG_GLOBAL=str(settings), GIT_SSH_COMMAND="ssh -v"), "ssh -v" + quiet)
        self.assertEqual(self.command(GIT_CONFIG_GLOBAL=os.devnull), "ssh" + quiet)
        self.assertEqual(self.command(GIT_CONFIG_GLOBAL=os.devnull, GIT_SSH="/a b/ssh"), "'/a b/ssh'" + quiet)


class Pulling(Folder):
    def repository(self, name="ann"):
        self.put(f"{name}/{NAME}", "committed\n")
        git(self.folder / name, "init", "-q", "-b", "main")
        commit(self.folder / name)
        return class_folder.Student(name, str(self.folder / name), {})

    def test_takes_what_was_committed_once_and_a_folder_as_it_is(self):
        ann = self.repository()
        self.put(f"ann/{NAME}", "not committed\n")
        handed_in = repositories.pull(ann.place, STAGES, None)
        self.assertEqual(handed_in.files[NAME], b"committed\n")
        self.assertIsNone(repositories.pull(ann.place, STAGES, handed_in.sha))
        self.assertEqual(repositories.pull(f"file://{ann.place}".replace(" ", "%20"), STAGES, None).files, handed_in.files)
        self.put(f"bob/{NAME}", "as it is\n")
        bob = class_folder.Student("bob", str(self.folder / "bob"), {})
        first = repositories.pull(bob.place, STAGES, None)
        self.assertEqual(first.files[NAME], b"as it is\n")
        self.put("bob/README", "no matter\n")
        self.assertIsNone(repositories.pull(bob.place, STAGES, first.sha))
        shas = {first.sha}
        for name, text in ((NAME, "else\n"), ("course.json", '{"language": "zh"}'),
                           ("course.json", '{"language": "zh", "nickname": "fox"}'),
                           ("course.json", '{"language": }'), ("course.json", "{")):  # the last two cannot be read
            self.put(f"bob/{name}", text)
            shas.add(repositories.pull(bob.place, STAGES, first.sha).sha)
        self.assertEqual(len(shas), 6)

    def test_reads_the_commit_that_it_names_and_no_replacement_of_it(self):
        ann = self.repository()
        self.put(f"ann/{NAME}", "newer\n")
        git(ann.place, "commit", "-qam", "more")
        git(ann.place, "replace", "HEAD", "HEAD~1")
        self.assertEqual(repositories.pull(ann.place, STAGES, None).files[NAME], b"newer\n")

    def test_reads_a_repository_of_another_format(self):
        self.put(f"new/{NAME}", "committed\n")
        try:
            git(self.folder / "new", "init", "-q", "-b", "main", "--object-format=sha256")
        except subprocess.CalledProcessError:
            self.skipTest("an older git")
        commit(self.folder / "new")
        handed_in = repositories.pull(str(self.folder / "new"), STAGES, None)
        self.assertEqual((handed_in.files[NAME], len(handed_in.sha)), (b"committed\n", 64))

    def test_that_works_again_is_no_problem_any_more(self):
        room = class_folder.Classroom(self.put("roster.csv", "id,repository\nann,ann\nbob,bob\n"))
        for expected in {"ann", "bob"}, {"bob"}:
            with mock.patch("sys.stdout"):
                self.assertEqual(pulling.pull(room, room.students), 1)
            self.assertEqual(set(room.problems()), expected)
            if "ann" in expected:
                self.repository()

    def test_reads_a_repository_of_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("only root can make one")
        ann = self.repository()
        for path in [self.folder / "ann", *(self.folder / "ann").rglob("*")]:
            os.chown(path, 65534, 65534)
        self.assertEqual(repositories.pull(ann.place, STAGES, None).files[NAME], b"committed\n")

    def test_follows_nothing_that_leads_out_of_a_repository(self):
        other = pathlib.Path(self.repository("other").place, ".git")
        for name, lead in {
            ".git": lambda path: (shutil.rmtree(path), path.symlink_to(other)),
            ".git/": lambda path: (shutil.rmtree(path), path.write_text(f"gitdir: {other}\n")),
            ".git/objects": lambda path: (shutil.rmtree(path), path.symlink_to(other / "objects")),
            ".git/objects/info/alternates": lambda path: path.write_text(f"{other / 'objects'}\n"),
            ".git/objects/info/http-alternates": lambda path: path.write_text("http://127.0.0.1/x\n"),
            ".git/commondir": lambda path: path.write_text(f"{other}\n"),
        }.items():
            ann = self.repository()
            path = pathlib.Path(ann.place) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            lead(path)
            self.assertIn("points to another place", self.problem(repositories.pull, ann.place, STAGES, None), name)
            shutil.rmtree(ann.place)

    def test_ends_what_takes_too_long_with_all_it_started(self):
        mark = self.folder / "alive"
        words = ["sh", "-c", f"(sleep 2; touch '{mark}') & sleep 60"]
        self.assertIsNone(students_git.run_for(words, 0.3))
        time.sleep(2.2)
        self.assertFalse(mark.exists())

    def test_takes_no_more_than_there_is_room_for(self):
        for more, is_taken in (0, True), (1, False):
            said = students_git.run_for(["head", "-c", f"{students_git.MAX_SAID + more}", "/dev/zero"], 60)
            self.assertEqual(said is not None, is_taken)  # no part of an output is taken for all of it
        words = students_git.limited(["sh", "-c", f"head -c {students_git.MAX_FETCHED + 1} /dev/zero >'{self.folder}/x'"])
        self.assertIsNone(students_git.run_for(words, 60))
        self.assertLessEqual((self.folder / "x").stat().st_size, students_git.MAX_FETCHED)

    def test_takes_no_more_files_and_bytes_of_a_local_repository_than_there_is_room_for(self):
        ann = self.repository()
        with mock.patch.object(repositories, "MOST_ENTRIES", 10):
            self.assertIn("more than 10 files", self.problem(repositories.pull, ann.place, STAGES, None))
        growing = self.put("growing", "x" * 11)  # it has grown since its size was read
        copy = repositories.Copy()
        copy.bytes = 10
        with repositories.opened(self.folder) as folder:
            self.assertIn("MB", self.problem(copy.file, folder, growing.name, self.folder / "copy", growing.name))

    def test_takes_no_more_memory_than_there_is_room_for(self):
        ann = self.repository()
        git = ["git", "-C", ann.place]
        text = subprocess.run([*git, "cat-file", "commit", "HEAD"], check=True, stdout=subprocess.PIPE).stdout
        large = self.folder / "large"
        large.write_bytes(text + b"a" * (200 << 20))
        made = subprocess.run([*git, "hash-object", "-t", "commit", "-w", str(large)], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        pathlib.Path(ann.place, ".git", "HEAD").write_text(made)
        with mock.patch.object(students_git, "MAX_TO_READ", 96 << 20):
            self.problem(repositories.pull, ann.place, STAGES, None)

    def test_without_any_file_of_the_course_is_a_problem_and_not_0_points(self):
        (self.folder / "elsewhere" / "nested").mkdir(parents=True)
        place = str(self.folder / "elsewhere")
        self.assertIn("none of the course's files is there", self.problem(repositories.pull, place, STAGES, None))

    def test_is_noted_with_its_time_and_kept_as_it_was(self):
        room = class_folder.Classroom(self.put("roster.csv", "id,repository\nann,ann\n"))
        handed_in = repositories.pull(self.repository().place, STAGES, None)
        for _ in range(2):  # a branch may be moved back
            class_folder.keep(room.folder, "ann", handed_in)
        room.note_seen("ann", handed_in.sha, DUE)
        self.assertEqual(room.seen()["ann"], [class_folder.Seen(handed_in.sha, DUE)])
        whole = room.log.read_text()
        for sha, hours in ("d" * 40, 1), (handed_in.sha, 2):  # the branch was moved back: it is no new version
            room.note_seen("ann", sha, DUE + hours * HOURS)
        self.assertEqual([(one.sha, one.at) for one in room.seen()["ann"]],
                         [(handed_in.sha, DUE), ("d" * 40, DUE + HOURS), (handed_in.sha, DUE)])
        room.log.write_text(whole)
        kept = class_folder.kept(room.folder, "ann", handed_in.sha)
        self.assertEqual((kept.files, kept.refused), (handed_in.files, handed_in.refused))
        newest = {"id": 98, "slug": "new", "units": [{"file": "new.cpp"}]}  # a stage that the course did not have then
        with mock.patch.object(class_folder.course, "stages", lambda: [*STAGES, new_stage(newest)]):
            self.assertEqual(class_folder.kept(room.folder, "ann", handed_in.sha).refused["stages/98-new/new.cpp"],
                             "grade_missing")
        whole, line = room.log.read_text(), f"ann,{'b' * 40},{DUE.isoformat()}"
        for at in range(len(line) - len(":00")):  # the line may be incomplete
            room.log.write_text(whole + line[:at])
            with contextlib.redirect_stdout(io.StringIO()) as said:
                self.assertEqual(len(room.seen()["ann"]), 1, line[:at])
            self.assertEqual(said.getvalue(), "")  # another process may be writing it
        room.log.write_text(whole + line[:9])
        room.note_seen("ann", "c" * 40, DUE)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual([one.sha for one in room.seen()["ann"]], [handed_in.sha, "c" * 40])
        self.assertIn("left out: lines 3.", said.getvalue())
        room.log.write_text(whole + line)
        self.assertEqual([one.at for one in room.seen()["ann"]], [DUE, DUE])
        # An editor may add a byte order mark. A spreadsheet writes what later lines would not fit to.
        room.log.write_text("\ufeff" + whole, encoding="utf-8")
        self.assertEqual(len(room.seen()["ann"]), 1)
        room.log.write_text(whole.replace(",", ";"))
        with self.assertRaisesRegex(class_folder.course.Problem, "expected a first line id,sha,seen_at: a spreadsheet"):
            room.seen()

    def test_goes_on_while_a_grading_does_and_never_twice(self):
        self.repository()
        roster = self.put("roster.csv", "id,repository\nann,ann\n")
        pull = [sys.executable, "-B", str(ROOT / "course"), "class", "pull", "--roster", str(roster)]

        def codes(*names):
            """The exit codes of pulls while commands of these names run."""
            rooms = [class_folder.Classroom(roster) for _ in names]
            for room, name in zip(rooms, names):
                room.lock(name)
            done = subprocess.run(pull, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            for room in rooms:
                room.locked.close()
            return done.returncode, "another ./stage class" in done.stderr

        self.assertEqual(codes("grade"), (0, False))
        self.assertEqual(len(class_folder.Classroom(roster).seen()["ann"]), 1)
        self.assertEqual(codes("grade", "pull"), (2, True))
        grading, other = class_folder.Classroom(roster), class_folder.Classroom(roster)
        grading.lock("grade")
        self.assertIn("another ./stage class", self.problem(other.lock, "send"))
        grading.locked.close()


class Redirects(unittest.TestCase):
    def test_leads_nowhere(self):
        """A student's server must not choose another repository, which our credentials may open."""
        asked = []

        class Elsewhere(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                self.send_response(302)
                self.send_header("Location", self.path.replace("/ann.git", "/bob.git"))
                self.end_headers()

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            url = f"http://127.0.0.1:{server.server_port}/ann.git"
            for ask in (lambda: repositories.pull(url, STAGES, None), lambda: sending.push(url, {"ann.md": b"20"})):
                with self.assertRaises(course.Problem):
                    ask()
            server.shutdown()
        self.assertTrue(asked)
        self.assertFalse([path for path in asked if "bob" in path])


class Tokens(Folder):
    """A roster may name https://teacher:TOKEN@host/x.git."""

    def test_are_in_no_message(self):
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        url = f"http://teacher:t@K3n@127.0.0.1:{port}/ann.git"
        for ask in (lambda: repositories.pull(url, STAGES, None), lambda: sending.push(url, {"ann.md": b"20"}),
                    lambda: repositories.collect(url, STAGES), lambda: (_ for _ in ()).throw(
                        students_git.no_commit(url, None))):
            said = self.problem(ask)
            self.assertIn(f"http://127.0.0.1:{port}/ann.git", said)
            self.assertNotIn("K3n", said)
        self.assertNotIn("K3n", submission.Submission(url).source)
        puller = importlib.import_module("classroom.pull_process")
        self.assertEqual(puller.in_a_line(f"'{url}': no"), f"'http://127.0.0.1:{port}/ann.git': no")

    def test_are_in_no_message_of_git(self):
        long = "http://teacher:" + "K3n" * 100 + "@host/x.git"
        def complain(*_, complaints, **__):
            complaints.write(f"fatal: unable to access '{long}': no".encode())
        with mock.patch.object(students_git, "run", complain):
            self.assertNotIn("K3n", self.problem(students_git.ask, "http://host/x.git", "fetch"))


class Causes(Folder):
    def test_of_a_repository_that_cannot_be_read_are_said_as_a_student_understands_them(self):
        for said, expected in (
                ("fatal: could not read Username for 'https://x.y': terminal prompts disabled", "is private, or"),
                ("git@x.y: Permission denied (publickey).\nfatal: Could not read from remote", "is private, or"),
                ("remote: Repository not found.\nfatal: repository 'https://x.y/z/' not found", "is private, or"),
                ("fatal: unable to access 'https://x.y/': Could not resolve host: x.y", "no server answers"),
                ("fatal: unable to access 'https://x.y/': Failed to connect to x.y port 1", "no server answers"),
                ("fatal: fetch-pack: invalid index-pack output", "more than 256 MB"),
                ("fatal: unable to access 'https://x.y/': Operation too slow. Less than", "answers too slowly"),
                ("\x1b[2J\nfatal: early EOF", "fatal: early EOF")):
            self.assertIn(expected, students_git.reason(said.splitlines()))

    def test_of_a_server_that_accepts_and_never_answers(self):
        with socket.create_server(("127.0.0.1", 0)) as silent, mock.patch.object(students_git, "ASK_SECONDS", 1):
            for scheme in "http", "git":
                url = f"{scheme}://127.0.0.1:{silent.getsockname()[1]}/ann"
                self.assertIn("answers too slowly, or not at all", self.problem(students_git.head_of, url))


class Seeds(Folder):
    def room(self, name):
        return class_folder.Classroom(self.put(f"{name}/roster.csv", "id,repository\nann,ann\n"))

    def test_are_found_again_with_the_secret_and_differ_by_class_student_and_commit(self):
        room = self.room("one")
        seed = room.seed("ann", "a" * 40)
        self.assertEqual(self.room("one").seed("ann", "a" * 40), seed)
        others = [room.seed("bob", "a" * 40), room.seed("ann", "b" * 40), self.room("two").seed("ann", "a" * 40)]
        self.assertEqual(len({seed, *others}), 4)
        self.assertTrue(all(0 <= one < 1 << 63 for one in (seed, *others)))
        self.assertEqual((room.folder / "seed.key").stat().st_mode & 0o777, 0o600)
        self.put("three/seed.key", "guess me")
        self.assertIn("seed.key", self.problem(self.room("three").seed, "ann", "a" * 40))

    def test_stay_where_a_stage_is_unchanged(self):
        versions = object.__new__(marks.Versions)
        versions.seen = [class_folder.Seen(sha, DUE) for sha in "abc"]
        files = {("a", 2): "x", ("b", 2): "y", ("c", 2): "x"}
        versions.files = lambda stage, sha: files.get((sha, stage.id), "as handed out")
        self.assertEqual([versions.first(STAGES[2], sha) for sha in "abc"], ["a", "b", "a"])
        self.assertEqual([versions.first(STAGES[3], sha) for sha in "abc"], ["a", "a", "a"])

    def test_a_stage_is_begun_when_its_files_first_differ_from_the_starters(self):
        versions, stage = object.__new__(marks.Versions), STAGES[2]
        versions.seen = [class_folder.Seen(sha, DUE + at * HOURS) for at, sha in enumerate("abc")]
        handed_out = tuple(unit["starter"] for unit in stage.units)
        files = {"a": handed_out, "b": ("x",), "c": ("y",)}
        versions.files = lambda _, sha: files[sha]
        self.assertEqual(versions.started(stage), DUE + HOURS)
        files["c"] = handed_out  # given up
        self.assertIsNone(versions.started(stage))


class Confined(Folder):
    """./stage class pull, with hostile repositories."""

    def command(self, places):
        lines = ["id,repository", *(f'{id},"{place}"' for id, place in places.items())]
        self.put("room/roster.csv", "\n".join(lines) + "\n")
        return [sys.executable, "-B", str(ROOT / "course"), "class", "pull", "--roster",
                str(self.folder / "room" / "roster.csv")]

    def repository(self, id, files):
        for name, text in files.items():
            self.put(f"{id}/{name}", text)
        git(self.folder / id, "init", "-q", "-b", "main")
        commit(self.folder / id)
        return self.folder / id

    def hostile(self):
        """{id: what the line about its repository must contain; "" if there must be none}"""
        for id in "good", "deep_json", "link", "fifo_head", "fifo_refs", "loop", "deep", "large", "lots", "dangling":
            self.repository(id, {NAME: "mine\n", "course.json": "[" * 100_000 if id == "deep_json" else "{}"})
        inner = {path.name: path / ".git" for path in self.folder.iterdir()}
        os.symlink("/etc/passwd", os.fsencode(inner["link"] / "refs") + b"/\xff\xed\xa0\x80")
        for id, name in ("fifo_head", "HEAD"), ("fifo_refs", "packed-refs"):
            (inner[id] / name).unlink(missing_ok=True)
            os.mkfifo(inner[id] / name)
        shutil.rmtree(inner["loop"])
        inner["loop"].symlink_to(inner["loop"])
        (inner["deep"] / "refs" / "/".join("d" * 60)).mkdir(parents=True)
        for id in "large", "lots":
            with (inner[id] / "objects" / "x").open("wb") as file:
                file.truncate((repositories.MOST_BYTES if id == "large" else 0) + 1)
        (inner["dangling"] / "HEAD").write_text("ref: refs/heads/" + "x" * 300_000 + "\n")
        self.put("folder/course.json", "[" * 100_000)
        stage = (self.folder / "folder" / NAME).parent
        stage.mkdir(parents=True)
        os.mkfifo(self.folder / "folder" / NAME)
        (self.folder / os.fsdecode(b"folder/\xff")).mkdir()
        for one in STAGES[3].folder.name, STAGES[4].folder.name:
            (stage.parent / one).symlink_to(stage.parent / one)
        (self.folder / "ring").symlink_to(self.folder / "ring")
        (self.folder / "file").write_text("no folder")
        os.mkfifo(self.folder / "pipe")
        self.put(f"closed/{NAME}", "mine\n")
        (self.folder / "closed").chmod(0)
        self.addCleanup((self.folder / "closed").chmod, 0o700)
        return {"good": "", "deep_json": "", "folder": "", "link": "points to another place",
                "fifo_head": "no ordinary file", "fifo_refs": "no ordinary file", "loop": "points to another place",
                "deep": "deep", "large": "MB", "lots": "", "dangling": "existing branches: main", "ring": "is a link",
                "file": "no such folder", "pipe": "no such folder", "gone": "no such folder",
                "closed": "" if os.geteuid() == 0 else "Permission denied"}

    def test_each_costs_that_students_line_alone(self):
        expected = self.hostile()
        start = time.monotonic()
        done = subprocess.run(self.command({id: self.folder / id for id in expected}), text=True, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertLess(time.monotonic() - start, 60)
        self.assertEqual((done.returncode, done.stderr), (1, ""), done.stdout)
        lines = {line.split(":")[0].strip(): line for line in done.stdout.splitlines()[1:]}
        room = self.folder / "room"
        seen = (room / "seen.csv").read_text()
        problems = json.loads((room / "pull.json").read_text(encoding="utf-8"))
        for id, problem in expected.items():
            self.assertEqual(f"\n{id}," in seen, not problem, lines.get(id))
            self.assertEqual(id in problems, bool(problem))
            self.assertIn(problem, lines.get(id, ""))
            self.assertLess(len(lines.get(id, "")), 500)
        self.assertEqual(set(lines), {id for id, problem in expected.items() if problem})
        kept = class_folder.kept(room, "folder", seen.partition("\nfolder,")[2].split(",")[0])
        self.assertEqual(kept.refused[NAME], "grade_no_file")

    def test_what_nobody_foresaw_is_that_students_line_too(self):
        with mock.patch.object(repositories, "pull", side_effect=KeyError("?")), mock.patch("sys.stderr"):
            puller = importlib.import_module("classroom.pull_process")
            answer = puller.answer(self.folder, {"ids": ["ann"], "place": "x", "last": None})
        self.assertEqual(answer, {"problem": "KeyError: '?'"})

    @unittest.skipUnless(sys.platform.startswith("linux"), "only Linux tells who descends from whom")
    def test_nothing_is_left_running_after_kill_9(self):
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x.git"
        child = subprocess.Popen(self.command({"ann": url, "bob": f"{url}2"}), stdout=subprocess.DEVNULL)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        before = processes.wait_for_descendants(child.pid, 6, 60)
        self.assertGreaterEqual(len(before), 6)  # two pull processes, their git and its helpers
        child.kill()
        child.wait()
        self.assertEqual(processes.still_running(before, 10), [])

    ENDED_WHILE_IT_STARTS = """import os, signal, subprocess, sys, time
from classroom import pull_process
from grading import students_git
usual = subprocess.Popen
def start(*words, **options):
    child = usual(*words, **options)
    print(child.pid, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.1)  # Python calls the handler here
    return child
subprocess.Popen = start
signal.signal(signal.SIGTERM, pull_process.end)
students_git.run_for(["sleep", "60"], 60)
"""

    @unittest.skipUnless(sys.platform.startswith("linux"), "only Linux tells what runs")
    def test_nothing_is_left_running_that_was_just_being_started(self):
        done = subprocess.run([sys.executable, "-c", self.ENDED_WHILE_IT_STARTS], text=True, stdout=subprocess.PIPE,
                              timeout=30, env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
        self.assertEqual(done.returncode, 1)
        left = {pid: at for pid, at in processes.descendants(0).items() if pid == int(done.stdout)}
        self.assertEqual(processes.still_running(left, 10), [])


class Graders(Folder):
    """Programs that die at their first task, unless the task was tried before."""

    FAKE = """import json, pathlib, sys
for line in sys.stdin:
    task = json.loads(line)
    tried = pathlib.Path(task["out"])
    if task["id"] == "hopeless" or not tried.exists():
        tried.touch()
        sys.exit(1)
    print(json.dumps({"out": task["out"], "problem": None}), flush=True)
"""

    def test_that_die_are_started_again_and_cost_only_the_task_that_kills_them(self):
        room = types.SimpleNamespace(folder=self.folder)
        with mock.patch.object(workplace, "PLACE", self.folder / "place"):
            graders = class_run.Graders(room, 2, self.folder)
            graders.words = [sys.executable, "-c", self.FAKE]
            tasks = [class_run.Task(id, "a", {0: 7}, str(self.folder / id), False, "en")
                     for id in ("ann", "hopeless", "bob", "cat", "dan")]
            bar = Bar(len(tasks))
            self.assertEqual(graders.grade(tasks, bar),
                             {str(self.folder / "hopeless"): course.say("class_grader_ended")})
        self.assertEqual(bar.done, len(tasks))

    def test_that_stand_still_are_ended_and_cost_only_that_task(self):
        fake = ("import json, sys, time\nfor line in sys.stdin:\n    task = json.loads(line)\n"
                "    time.sleep(1000 if task['id'] == 'bob' else 0)\n    print(json.dumps({'problem': None}), flush=True)\n")
        pool, answers = helpers.Helpers([sys.executable, "-c", fake], 1, seconds=15), {}
        pool.run([{"id": id} for id in ("ann", "bob", "cat")],
                 lambda task, answer: answers.update({task["id"]: answer["problem"]}))
        self.assertEqual(answers, {"ann": None, "bob": course.say("class_no_answer", 15), "cat": None})


class Stored(Folder):
    """Stored results: each is used again only for what it is about."""

    def setUp(self):
        super().setUp()
        for of, name, value in ((official_tree, "fingerprint", "tree"), (official_tree, "compiler", "c++"),
                                (grader, "why_not", "")):
            self.is_now(of, name, value)
        patched = mock.patch.object(official_tree, "prepare")
        patched.start()
        self.addCleanup(patched.stop)

    def is_now(self, of, name, value):
        patched = mock.patch.object(of, name, lambda: value)
        patched.start()
        self.addCleanup(patched.stop)

    def work(self, text=b"x", seed=7, **refused):
        handed_in = submission.Submission("x", "a" * 40)
        handed_in.files, handed_in.refused = {NAME: text}, {NAME: why for why in refused}
        return grader.Work(handed_in, {2: seed}, self.folder / "work")

    def test_entries_of_stages_are_told_apart_by_all_that_they_depend_on(self):
        keys = [self.work().key(STAGES[2])]
        self.assertEqual(self.work().key(STAGES[2]), keys[0])
        for other in self.work(b"y"), self.work(seed=8), self.work(grade_large=True), self.work(grade_no_file=True):
            keys.append(other.key(STAGES[2]))
        for of, name, value in ((official_tree, "fingerprint", "mended tree"), (official_tree, "compiler", "c++ 99"),
                                (grader, "why_not", "no sandbox")):
            self.is_now(of, name, value)
            keys.append(self.work().key(STAGES[2]))
        os.environ["STAGECRAFT_LANG"] = "zh"
        keys.append(self.work().key(STAGES[2]))
        self.assertEqual(len(set(keys)), len(keys), keys)

    def test_entries_for_which_the_machine_may_be_to_blame_are_not_kept(self):
        memory = importlib.import_module("classroom.grade_process").Memory(self.folder / "memory")
        for status, is_kept in (("passed", True), ("wrong", True), ("hung", False), ("slow", False), ("unjudged", False)):
            work = self.work(status.encode())
            with mock.patch.object(work, "grade", return_value=entry(STAGES[2], status)) as grade:
                first, again = (work.remembered(STAGES[2], memory) for _ in range(2))
            self.assertEqual((first, grade.call_count), (again, 1 if is_kept else 2), status)
        work = self.work(b"unforeseen")
        with mock.patch.object(work, "grade", return_value={**entry(STAGES[2], "wrong"), "unforeseen": True}) as grade:
            self.assertEqual([work.remembered(STAGES[2], memory)["status"] for _ in range(2)], ["wrong", "wrong"])
        self.assertEqual(grade.call_count, 2)
        fresh = type(memory)(self.folder / "memory", fresh=True)
        self.assertIsNone(fresh.get(self.work(b"passed").key(STAGES[2])))

    def room(self):
        return class_folder.Classroom(self.put("room/roster.csv", "id,repository\nann,team\nbob,team\ncat,other\n"))

    def run_of(self, **options):
        return class_run.Run(self.room(), types.SimpleNamespace(**{"language": None, "seed": None, "jobs": None, **options}))

    def hand_in(self, id, sha, text, at=DUE, language=None):
        handed_in = submission.Submission("x", sha * 40)
        handed_in.files = {**course.starters(), NAME: text.encode()}
        handed_in.language = language
        room = self.room()
        class_folder.keep(room.folder, id, handed_in)
        room.note_seen(id, handed_in.sha, at)

    def newest(self, id, **options):
        run = self.run_of(**options)
        return run.tasks(next(record for record in run.records if record.id == id))[0]

    def test_settings_that_are_wrong_name_their_file_and_key(self):
        for settings, key in (({"late_days": "x"}, "late_days"), ({"ranking": 1}, "ranking"), ({"ref": 1}, "ref")):
            path = self.put("room/course.json", json.dumps(settings))
            self.assertTrue(self.problem(self.run_of).startswith(f"{path}: {key}: "))

    def test_stages_that_do_not_count_are_not_graded(self):
        self.put("room/course.json", json.dumps({"stages": "1-2,4", "deadlines": {"2-9": DUE.isoformat()}}))
        self.put("room/overrides.csv", "id,stage,points,reason\ncat,2-3,1,x\n")
        self.hand_in("cat", "a", "x")
        run = self.run_of()
        record, newest = run.records[2], run.tasks(run.records[2])[0]
        self.assertEqual(sorted(newest.seeds), [1, 2, 4])
        atomic.write(pathlib.Path(newest.out), json.dumps({
            "official": {}, "confined": True, "compiler": "c++", "repository": {"sha": "a" * 40},
            "stages": [entry(STAGES[id]) for id in newest.seeds]}))
        self.assertTrue(run.fill(record, {}))
        self.assertEqual((record.mark, record.points), (10 + 1 + 20, 10 + 20 + 20))
        tables = {name: list(lines([record], run.stages, DUE)) for name, lines in marks.TABLES.items()}
        self.assertEqual(tables["moodle.csv"][0][1:], ["Stage 1", "Stage 2", "Stage 4", "Total"])
        self.assertEqual(tables["canvas.csv"][1][5:], ["10", "20", "20"])
        self.assertEqual([name for name in tables["marks.csv"][0] if name.startswith("stage_")],
                         ["stage_1", "stage_2", "stage_4"])
        shown = "\n".join(feedback.markdown(record))
        self.assertEqual(re.findall(r"^\| (\d+) \|", shown, re.M), ["1", "2", "4"])
        self.assertIn("31 of 50 points", shown)
        run.records = [record]
        self.assertEqual(re.findall(r'<tr><td class="n">(\d+)</td>', "\n".join(class_page.page(run, []))), ["1", "2", "4"])
        for chosen in "0", "11":  # no points to show
            self.put("room/course.json", json.dumps({"stages": chosen}))
            run, none = self.run_of(), entry(STAGES[int(chosen)], "unwritten")
            record.stages = [marks.StageMark(run.stages[0], none, None, 0)]
            record.result["stages"], run.records = [none], [record]
            self.assertIn("everyone", "\n".join(class_page.page(run, [])))

    def test_results_are_told_apart_by_all_that_they_depend_on(self):
        self.hand_in("cat", "a", "x")
        found = [self.newest("cat")]
        self.assertEqual(self.newest("cat"), found[0])
        found += [self.newest("cat", seed=3), self.newest("cat", language="zh")]
        for of, name, value in ((official_tree, "fingerprint", "mended tree"), (official_tree, "compiler", "c++ 99"),
                                (grader, "why_not", "no sandbox")):
            self.is_now(of, name, value)
            found.append(self.newest("cat"))
        self.hand_in("cat", "b", "x", language="zh")
        found.append(self.newest("cat"))
        self.assertEqual(found[-1].language, "zh")
        self.assertEqual(found[-1].seeds, found[0].seeds)  # of the first commit with these files
        self.hand_in("cat", "c", "y")
        found.append(self.newest("cat"))
        self.assertEqual({id for id, seed in found[0].seeds.items() if found[-1].seeds[id] != seed}, {2})
        self.assertEqual(len({task.out for task in found}), len(found))

    def test_results_of_a_shared_repository_are_those_of_the_first_and_no_others(self):
        self.hand_in("bob", "a", "x")  # ann has joined bob, and has not been pulled since
        self.hand_in("cat", "a", "x")
        self.assertEqual([self.newest(id).id for id in ("bob", "cat")], ["bob", "cat"])
        self.hand_in("ann", "a", "x")
        self.assertEqual([self.newest(id).id for id in ("ann", "bob", "cat")], ["ann", "ann", "cat"])
        ann, bob, cat = map(self.newest, ("ann", "bob", "cat"))
        self.assertEqual(ann, bob)
        self.assertFalse(set(ann.seeds.values()) & set(cat.seeds.values()))

    def test_results_of_older_versions_are_of_the_stages_that_may_count_for_more(self):
        self.put("room/course.json", json.dumps({"deadlines": {"all": DUE.isoformat()}, "late_percent_a_day": 10}))
        self.hand_in("cat", "a", "x", DUE - HOURS)
        self.hand_in("cat", "b", "y", DUE + HOURS)
        run = self.run_of()
        newest, = run.tasks(run.records[2])
        self.assertEqual((newest.sha[0], set(newest.seeds)), ("b", {stage.id for stage in STAGES}))
        atomic.write(pathlib.Path(newest.out), json.dumps({"stages": [entry(STAGES[2])]}))
        _, older = run.tasks(run.records[2])
        self.assertEqual((older.sha[0], set(older.seeds)), ("a", {2}))
        self.hand_in("cat", "c", "z", DUE + 2 * HOURS)
        run = self.run_of()
        newest, = run.tasks(run.records[2])
        atomic.write(pathlib.Path(newest.out), json.dumps({"stages": [entry(STAGES[2], "wrong")]}))
        _, late, again = run.tasks(run.records[2])
        self.assertEqual((late.sha[0], again), ("b", older))  # with the same result: it is not graded again

    def test_results_of_older_versions_are_not_needed_where_the_newest_has_all_points(self):
        for sha, text in ("a", "x"), ("b", "y"):
            self.hand_in("cat", sha, text, DUE)
        run = self.run_of()
        for status, n_older in ("passed", 0), ("wrong", 1):
            newest = run.tasks(run.records[2])[0]
            atomic.write(pathlib.Path(newest.out), json.dumps({"stages": [entry(STAGES[2], status)]}))
            self.assertEqual(len(run.tasks(run.records[2])), 1 + n_older)

    def test_results_of_the_newest_versions_decide_what_is_graded_after_them(self):
        for sha, text in ("a", "x"), ("b", "y"):
            self.hand_in("cat", sha, text, DUE)
        run, graded = self.run_of(), []

        def grade(_, tasks, bar):
            for task in tasks:
                graded.append(task.sha[0])
                atomic.write(pathlib.Path(task.out), json.dumps({"stages": [
                    entry(STAGES[2], "wrong" if task.sha[0] == "b" else "passed")]}))
            return {}

        with mock.patch.object(class_run.Graders, "grade", grade), mock.patch.object(workplace, "PLACE", self.folder):
            for _ in range(2):
                self.assertEqual(run.grade(lambda: run.tasks(run.records[2])), {})
        self.assertEqual(graded, ["b", "a"])

    def test_what_is_graded_while_somebody_changes_the_course_is_not_kept(self):
        self.hand_in("cat", "b", "y", DUE)
        run = self.run_of()

        def grade(_, tasks, bar):
            atomic.write(pathlib.Path(tasks[0].out), json.dumps({"stages": [entry(STAGES[2], "passed")]}))
            self.is_now(official_tree, "is_changed", True)
            return {}

        with mock.patch.object(class_run.Graders, "grade", grade), mock.patch.object(workplace, "PLACE", self.folder):
            with self.assertRaisesRegex(course.Problem, "changed during this run"):
                run.grade(lambda: run.tasks(run.records[2]))
        self.assertFalse(pathlib.Path(run.tasks(run.records[2])[0].out).exists())
        work, memory = self.work(), mock.Mock(**{"get.return_value": None})
        with mock.patch.object(work, "grade", return_value=entry(STAGES[2], "passed")):
            self.assertRaises(course.Problem, work.remembered, STAGES[2], memory)
        memory.put.assert_not_called()

    def test_a_change_of_the_course_is_seen(self):
        with mock.patch.object(course, "ROOT", self.folder), mock.patch.object(official_tree, "OFFICIAL", ["src"]):
            file = self.folder / "src" / "a.cpp"
            atomic.write(file, "int a;")
            official_tree.first_look.cache_clear()
            self.addCleanup(official_tree.first_look.cache_clear)
            self.assertFalse(official_tree.is_changed())
            (file.parent / "a.pyc").write_text("made by Python")
            self.assertFalse(official_tree.is_changed())
            atomic.write(file, "int b;")
            self.assertTrue(official_tree.is_changed())

    def test_students_who_share_a_repository_are_not_compared_with_each_other(self):
        for id in "ann", "bob", "cat":
            self.hand_in(id, "a", "x")
        run, looks = self.run_of(), {"look_at_these": mock.Mock(), "look_at_ours": mock.Mock()}
        run.is_ranked = False
        with mock.patch.object(marks, "TABLES", {}), mock.patch.object(class_page, "page", return_value=[]), (
                mock.patch.multiple(class_run.likeness, **looks)):
            run.write_class(types.SimpleNamespace(write=lambda: None))
        for look in looks.values():
            self.assertEqual(set(look.call_args[0][1].versions), {"ann", "cat"})

    def test_versions_that_count_are_compared_and_asked_about(self):
        """Not the newest, and not only some of many that were never graded."""
        self.put("room/course.json", json.dumps({"deadlines": {"all": DUE.isoformat()}, "late_percent_a_day": 10}))
        self.hand_in("cat", "a", "int copied;", DUE - HOURS)
        self.hand_in("cat", "b", "#define x", DUE + HOURS)
        run = self.run_of()
        record, stage = run.records[2], STAGES[2]
        record.entries[2] = {"b" * 40: entry(stage, "wrong"), "a" * 40: entry(stage)}
        self.assertEqual([one.files[NAME] for one in run.handed().graded["cat", 2]], [b"int copied;"])
        newest, counts = run.versions["cat"].candidates(stage, record.rules)
        record.stages = [marks.StageMark(stage, entry(stage), counts, 20), marks.StageMark(STAGES[3], None, newest, None)]
        found = run.what_counts(record)
        self.assertEqual((found.sha[0], found.files[NAME]), ("b", b"int copied;"))

    def test_preprocessed_texts_are_stored_as_long_as_they_are_used(self):
        texts, folder = {NAME: "int x;"}, self.folder / "texts"
        with mock.patch.object(class_run.preprocessed, "texts", return_value=texts) as made:
            for source, n_made, n_stored in (b"#define y", 1, 1), (b"#define y", 1, 1), (b"int plain;", 1, 0), (b"#define z", 2, 1):
                handed_in, stored = submission.Submission("x", "a" * 40), class_run.Preprocessed(folder)
                handed_in.files = {NAME: source}
                self.assertEqual(stored(handed_in, STAGES[2]), texts if n_stored else {})
                stored.forget_others()
                self.assertEqual((made.call_count, len(list(folder.glob("*")))), (n_made, n_stored))

    def test_results_name_the_tree_that_is_here_because_it_has_the_same_files(self):
        """Its edits may have been committed since."""
        self.hand_in("cat", "a", "x")
        run = self.run_of()
        record, task = run.records[2], run.tasks(run.records[2])[0]
        old = {"commit": "before", "changed": True}
        atomic.write(pathlib.Path(task.out), json.dumps({"official": old, "stages": list(map(entry, STAGES))}))
        with mock.patch.object(official_tree, "version", lambda: {"commit": "now", "changed": False}):
            self.assertTrue(run.fill(record, {}))
        self.assertEqual(record.result["official"], {"commit": "now", "changed": False})

    def test_results_of_a_tree_with_edits_say_so(self):
        os.makedirs(self.folder / "tree" / "course" / "grading")
        self.put("tree/course/grading/x.py", "1\n")
        git(self.folder / "tree", "init", "-q")
        commit(self.folder / "tree")
        with mock.patch.object(course, "ROOT", self.folder / "tree"):
            self.put("tree/other", "decides nothing\n")
            self.assertFalse(official_tree.version.__wrapped__()["changed"])
            self.put("tree/course/grading/x.py", "2\n")
            found = official_tree.version.__wrapped__()
        self.assertTrue(found["changed"])
        self.assertEqual(report.version(found), f"{found['commit'][:10]} with uncommitted changes")
        self.assertEqual(report.version({"commit": "c" * 40}), "c" * 10)

    def test_runs_that_a_teacher_may_regret_begin_with_a_warning(self):
        warnings = importlib.import_module("commands.class").warnings
        due = {"deadlines": {"all": "2026-11-02T12:00Z"}}
        for settings, changed, n in (({}, False, 0), ({}, True, 1), (due, False, 1),
                                     ({**due, "grace_hours": 0}, False, 0)):
            run = types.SimpleNamespace(rules=lateness.Rules(settings, STAGES))
            with mock.patch.object(official_tree, "version", lambda: {"commit": "c", "changed": changed}):
                self.assertEqual(len(list(warnings(run))), n, settings)

    def test_results_that_another_machine_may_complete_are_not_done(self):
        self.hand_in("cat", "a", "x")
        task = self.newest("cat")
        self.assertFalse(class_run.is_done(task))
        for status, is_done in ("wrong", True), ("unjudged", False):
            atomic.write(pathlib.Path(task.out), json.dumps({"stages": [entry(STAGES[2], status)]}))
            self.assertEqual(class_run.is_done(task), is_done)
        atomic.write(pathlib.Path(task.out), json.dumps({"stages": [{**entry(STAGES[2], "wrong"), "starved": True}]}))
        self.assertFalse(class_run.is_done(task))

    def test_files_of_runs_that_still_go_on_are_left_alone(self):
        with mock.patch.object(workplace, "PLACE", self.folder / "place"):
            ended = subprocess.Popen(["true"])
            ended.wait()
            for pid in os.getpid(), ended.pid:
                for name in f"student-{pid}-x/file", f"answers/{pid}/file":
                    self.put(f"place/{name}", "x")
            workplace.clean_up()
            left = {path.parent.name for path in (self.folder / "place").rglob("file")}
        self.assertEqual(left, {f"student-{os.getpid()}-x", f"{os.getpid()}"})


EVIL = "<script>alert(1)</script>\x1b[2J&amp;`|\n# x"


class Keys(unittest.TestCase):
    def test_a_repository_is_one_however_its_place_is_written(self):
        for places in (("/a/x", "/a/x/", "/a/x/.git", "/a/b/../x", "file:///a/x", "file:///a/%78", "/a/x.git"),
                       ("https://h/x", "https://h/x.git", "https://h/x/", "https://me:token@h/x")):
            self.assertEqual(len({class_folder.Student("ann", place, {}).repository for place in places}), 1, places)

    def test_a_moment_is_one_to_which_days_can_be_added(self):
        self.assertIsNone(lateness.time_of("9999-12-31T23:59Z"))
        self.assertIsNotNone(lateness.time_of("2999-12-31T23:59Z"))


class Viva(unittest.TestCase):
    def test_changes_code_and_no_comment_or_text(self):
        code = "float f(float x) {\n  return x * 2.0f;\n}\n"
        found = viva.mutants(code)
        self.assertTrue(found)
        for hidden in ('const char* n = R"(\n/*\n)";\n', 'const char* n = "/* a + b";\n', "/* a + b\n */\n", "// a + b\n"):
            lines = hidden.count("\n")
            self.assertEqual(viva.mutants(hidden + code), [(at + lines, *rest) for at, *rest in found], hidden)

    def test_without_a_change_says_whether_something_is_right(self):
        os.environ["STAGECRAFT_LANG"] = "en"
        nothing, right = ("\n".join(viva.sheet("kim", "a" * 40, [], right)) for right in ({}, dict.fromkeys(STAGES[1:3])))
        self.assertIn("no part of this student's code passes", nothing)
        self.assertIn("Right, as a whole or in part: stages 1, 2. But we found no small change of this code", right)

    def test_asks_about_the_groups_that_pass_whatever_the_rest_of_their_stage_is(self):
        def mark(id, statuses, started=True):
            stage = STAGES[id]
            groups = [{"name": group["name"], "points": group["points"], "status": status}
                      for group, status in zip(stage.groups, statuses)]
            return marks.StageMark(stage, {**entry(stage), "groups": groups, "started": started}, None, 1)

        passed = ["passed"] * 9
        record = types.SimpleNamespace(stages=[
            mark(0, passed), mark(1, passed, started=False), mark(2, ["wrong", "wrong"]), mark(3, ["passed", "wrong", "passed"]),
            mark(5, ["passed", *["unwritten"] * 3, "passed", "crashed", "unwritten"]), mark(9, passed),
            marks.StageMark(STAGES[10], None, None, None)])
        right = viva.right_groups(record)
        self.assertEqual({stage.id: names for stage, names in right.items()},
                         {3: ["MatmulTransb", "MatmulTransbViews"], 5: ["Bf16ToF32", "ParametersTied"],
                          9: ["MatmulPacked", "MatmulPackedRows"]})
        self.assertEqual([[unit["file"] for unit in viva.files_of(stage, names)] for stage, names in right.items()],
                         [["matmul_transb.cpp"], ["half_to_float.cpp", "parameters.cpp"], ["matmul_packed.cpp"]])

    def test_breaks_long_lines_so_that_a_file_in_one_line_has_changes(self):
        text = (ROOT / "src/operators/attention.cpp").read_text()
        code = re.sub(r"//[^\n]*", "", text)
        directives = "".join(line + "\n" for line in code.splitlines() if line.startswith("#"))
        rest = " ".join(line for line in code.splitlines() if not line.startswith("#"))
        self.assertGreater(len(rest), viva.LONGEST)
        one_line = directives + rest
        self.assertEqual(viva.mutants(one_line), [])
        start = time.process_time()
        viva.mutants(f"#define X {'if(' * 80_000}\nint a;\nthrow 1;\n")
        self.assertLess(time.process_time() - start, 5)
        broken = viva.in_short_lines(one_line)
        self.assertEqual(broken.replace("\n", ""), one_line.replace("\n", ""))
        self.assertEqual(len(viva.mutants(broken)), len(viva.mutants(code)))
        for kept in (code, f"#define A {'x; ' * 200}\\\n{'y; ' * 200}\n", f'const char* a = "{"x; " * 200}";'):
            self.assertEqual(viva.in_short_lines(kept).splitlines(), kept.splitlines())

    def test_changes_no_check_of_arguments_but_all_other_code(self):
        named = "float f(float check_x) {\n  const float throw_away = check_x * 2.0f;\n  return throw_away;\n}\n"
        self.assertEqual(len(viva.mutants(named)), len(viva.mutants(named.replace("check_", "").replace("throw_", ""))))
        check = "if (n == 0 || n % 2 != 0) {\n  throw Error(\"n: expected 2 * k\");\n}\n"
        for hidden in (check, check.replace("{", "").replace("}", ""), "check_size(\"f\", \"x\", n * 2,\n  1);\n"):
            self.assertEqual(viva.mutants(hidden), [], hidden)
            self.assertEqual(len(viva.mutants(hidden + named)), len(viva.mutants(named)))

    def test_asks_about_wrong_results_alone(self):
        def result(status, *kinds):
            made = verdict.Result(STAGES[1])
            for group in made.groups:
                group.status = status
            made.groups[0].failures = ["case 1"] if status in ("wrong", "slow") else []
            made.groups[0].failed_requests = [(kind, "request") for kind in kinds]
            return made

        self.assertTrue(viva.is_on_the_sheet(result("wrong", "wrong")))
        for other in (None, result("passed"), result("slow"), result("unwritten"), result("wrong", "wrong", "crashed"),
                      result("wrong", "hung"), result("wrong", "overrun")):
            self.assertFalse(viva.is_on_the_sheet(other), other and other.status)
        stopped, without_report = result("wrong"), result("wrong")
        stopped.groups[0].failures = []
        without_report.unfinished = "killed by SIGKILL"
        for other in stopped, without_report:
            self.assertFalse(viva.is_on_the_sheet(other))

    def test_asks_once_about_a_line_and_never_about_one_of_the_starter(self):
        stage = STAGES[4]
        name = course.unit_name(stage, stage.units[0])
        starter = next(line for line in stage.starter(stage.units[0]).decode().splitlines() if viva.mutants(line))
        one = submission.Submission("kim")
        one.files = {name: f"{starter}\nint a = b + c + d + 1;\nint e = f == 2;\n".encode()}
        self.assertEqual({line for _, _, (_, line, _) in viva.candidates(one, {stage: ["Mlp"]}, random.Random(1))},
                         {"int a = b + c + d + 1;", "int e = f == 2;"})
        with mock.patch.object(viva, "judged"), mock.patch.object(viva, "is_on_the_sheet", lambda result: True):
            found = viva.changes(one, {stage: ["Mlp"]}, 1)
        self.assertEqual(sorted(mutant[0] for _, _, mutant, _, _ in found), [2, 3])

    def test_shows_the_lines_around_a_change(self):
        os.environ["STAGECRAFT_LANG"] = "en"
        stage = STAGES[1]
        name = course.unit_name(stage, stage.units[0])
        one = submission.Submission("kim")
        one.files = {name: b"void f() {\n  int a = 1;\n  int b = 0;\n  g(a);\n}\n"}
        result = verdict.Result(stage)
        result.groups[0].failures = ["case 1"]
        found = [(stage, name, (3, "  int b = 0;", "  int b = 1;"), result, viva.around(one, name, 3))]
        sheet = "\n".join(viva.sheet("kim", "a" * 40, found, {stage: ["Silu"]}))
        self.assertIn("  void f() {\n    int a = 1;\n-   int b = 0;\n+   int b = 1;\n    g(a);\n  }\n", sheet)
        self.assertIn("We looked for three, and found 1", sheet)

    def test_a_line_without_end_has_no_changes(self):
        for long in "2 " * 100_000, "template<" * 30_000:
            self.assertEqual(viva.mutants(f"#if 0\n{long}\n#endif\n"), [])


class Seen(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.links = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.links += [value for name, value in attributes if name in ("href", "src")]
        if tag not in ("meta", "br", "rect"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


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


class Tables(Records):
    def test_page_shows_what_students_wrote_as_text_and_loads_nothing(self):
        records = [self.record("ann", {}), self.record("bob", {2: ("wrong", 0, "no_mean"), 3: ("wrong",)}, None, EVIL)]
        for language in course.HANDOUTS:
            os.environ["STAGECRAFT_LANG"] = language
            text = "\n".join(class_page.page(self.run_of(records), [(STAGES[4], EVIL, 0.9, ["ann", "bob"])],
                                             [(STAGES[2], EVIL, 0.9, ["ann"], EVIL)]))
            seen = Seen(text)
            self.assertEqual(seen.open, [])
            self.assertFalse(seen.tags & {"script", "link", "img", "iframe", "object"})
            links = {link for link in seen.links if not link.startswith("#")}
            self.assertEqual(links, {"feedback/ann.md", "feedback/bob.md"})
            self.assertNotIn("\x1b", text)
            self.assertIn(course.mistakes(STAGES[2])["no_mean"][language].replace("'", "&#x27;"), text)
            self.assertIn("prefers-color-scheme: dark", text)
            self.assertIn("@media print", text)

    def test_page_says_what_is_often_wrong_and_who_is_stuck(self):
        one = next(iter(course.mistakes(STAGES[1])))
        no_mean = ("wrong", 0, "no_mean")
        records = [self.record("ann", {}), self.record("bob", {2: no_mean, 3: ("refused",), 4: ("wrong",)}),
                   self.record("cat", {2: no_mean, 4: ("wrong",)}),
                   self.record("dan", {1: ("wrong", 0, one), 4: ("wrong",)})]
        records[1].result["stages"][3]["failed"] = True
        page = "\n".join(class_page.common_mistakes(records, STAGES))
        found = re.findall(r"<li><b>(\d+)</b> · \w+ (\d+) · .*<br>\n?(.*)</li>", page)
        self.assertEqual([(int(n), int(stage), re.findall(r"/(\w+)\.md", who)) for n, stage, who in found],
                         [(2, 2, ["bob", "cat"]), (1, 1, ["dan"]), (3, 4, ["bob", "cat", "dan"])])  # named ones first
        rows = "\n".join(class_page.progress(records, STAGES)).split("<tr>")[2:]
        stuck = {at: re.findall(r"/(\w+)\.md", row) for at, row in enumerate(rows)}
        self.assertEqual({at: who for at, who in stuck.items() if who},
                         {1: ["dan"], 2: ["bob", "cat"], 3: ["bob"], 4: ["bob", "cat", "dan"]})

    def test_page_counts_students_by_points_and_says_who_is_late_and_what_was_not_confined(self):
        records = [self.record(f"{n}", {stage.id: ("unwritten",) for stage in STAGES[n:]}) for n in (0, 4, 4, 6, 12)]
        bins = [min(int(10 * record.mark / POINTS), 9) for record in records]
        bars = re.findall(r'fill="var\(--ink\)">(\d*)</text>', "\n".join(class_page.distribution(records, POINTS)))
        self.assertEqual([int(bar or 0) for bar in bars], [bins.count(at) for at in range(10)])
        self.assertGreater(len(set(bins)), 3)
        n_late = course.say("class_n_late")
        for days, expected in (0, 0), (1, 1):
            records[4].stages[3] = marks.StageMark(STAGES[3], entry(STAGES[3]), lateness.Version("a", DUE, days), 1)
            self.assertIn(f'<b>{expected}</b><a href="#troubles">{n_late}</a>', "\n".join(class_page.tiles(records)))
        self.assertEqual(list(class_page.not_confined(records)), [])
        records[2].result.update(confined=False, not_confined_because="no sandbox here")
        self.assertIn("no sandbox here", "\n".join(class_page.not_confined(records)))
        corrected = marks.StageMark(STAGES[3], entry(STAGES[3], "unwritten"), None, 0, 0, overrides.Override(7, "x"))
        self.assertIn('">7<svg', class_page.stage_cell(corrected))

    def test_gradebooks_get_the_rosters_own_columns_and_no_0_for_what_was_not_graded(self):
        record = self.record("ann", {}, {"Email address": "ann@example.org", "SIS Login ID": "a7"})
        other = self.ungraded("bob")
        other.student = student("bob", **{"Email address": "bob@example.org", "SIS Login ID": "b8"})
        points = [str(stage.points) for stage in STAGES]
        none = [""] * len(STAGES)
        self.assertEqual(list(marks.moodle([record, other], STAGES, DUE)), [
            ["Email address", *(f"Stage {stage.id}" for stage in STAGES), "Total"],
            ["ann@example.org", *points, str(POINTS)], ["bob@example.org", *none, ""]])
        self.assertEqual(list(marks.canvas([record, other], STAGES, DUE))[1:], [
            ["Points Possible", "", "", "", "", *points], ["", "", "", "a7", "", *points], ["", "", "", "b8", "", *none]])

    def test_gradebooks_get_no_0_for_what_can_still_be_handed_in(self):
        last = next(stage for stage in STAGES if stage.is_optional)
        rules = lateness.Rules({"deadlines": {"1,3": "2026-11-02T11:00Z", "2": "2026-11-03T12:00Z"}, "grace_hours": 1},
                               STAGES)
        record = self.record("ann", {at: ("unwritten",) for at in (1, 2, last.id)} | {3: ("wrong",)}, rules=rules)
        for at, empty in (DUE, [1, 2, last.id]), (DUE + HOURS, [2, last.id]), (DUE + 26 * HOURS, [last.id]):
            row = list(marks.canvas([record], STAGES, at))[-1][5:]
            self.assertEqual([at for at, cell in enumerate(row) if cell == ""], empty)
            self.assertEqual(list(marks.moodle([record], STAGES, at))[-1][1:-1], row)
        record.stages[2].override = overrides.Override(0, "copied")
        self.assertEqual(list(marks.canvas([record], STAGES, DUE))[-1][5 + 2], "0")

    def test_an_optional_stage_is_among_the_points_of_those_who_began_it(self):
        last = next(stage for stage in STAGES if stage.is_optional)
        ann, bob = self.record("ann", {last.id: ("unwritten",)}), self.record("bob", {last.id: ("wrong",)})
        fewer = POINTS - last.points
        self.assertEqual((ann.points, bob.points, self.unseen("cat").points), (fewer, POINTS, fewer))
        self.assertIn(f"# ann: {fewer} of {fewer} points", "\n".join(feedback.markdown(ann)))
        self.assertIn(f"# bob: {fewer} of {POINTS} points", "\n".join(feedback.markdown(bob)))
        self.assertEqual([row[2] for row in marks.own([ann, bob], STAGES, DUE)][1:], [fewer, POINTS])
        for records, total in ([ann], f"<b>{fewer}</b>total"), ([ann, bob], f"<b>{fewer}\N{EN DASH}{POINTS}</b>total"):
            self.assertIn(total, "\n".join(class_page.page(self.run_of(records), [])))
        for points, of in (0, fewer), (5, POINTS):  # a correction must refer to possible points
            given = overrides.Override(points, "x")
            ann.stages[last.id] = marks.StageMark(last, ann.stages[last.id].entry, None, 0, 0, given)
            self.assertEqual(ann.points, of)

    def test_feedback_is_what_was_found_and_when_and_why_it_counts_less(self):
        due = {"deadlines": {"all": "2026-10-31T12:00+01:00"}}
        rules = lateness.Rules({**due, "late_percent_a_day": 10, "late_days": 4}, STAGES)
        record = self.record("ann", {2: ("wrong", 0, "no_mean")}, rules=rules)
        late = lateness.Version("a" * 40, DUE, 2)
        record.stages[3] = marks.StageMark(STAGES[3], record.result["stages"][3], late, 24)
        record.stages[4] = marks.StageMark(STAGES[4], record.result["stages"][4], late, STAGES[4].points, 2)
        record.stages[5] = marks.StageMark(STAGES[5], record.result["stages"][5], late, 1, 0,
                                           overrides.Override(7, "a | in a reason"))
        record.late_days_used = 2
        text = "\n".join(feedback.markdown(record))
        lost = STAGES[2].points + 6 + STAGES[5].points - 7
        self.assertIn(f"# ann: {POINTS - lost} of {POINTS} points", text)
        times = "(deadline 2026-10-31 12:00 UTC+01:00, seen 2026-11-02 13:00 UTC+01:00)"
        self.assertIn("| 3 | Matrix product, B transposed | 2026-10-31 12:00 UTC+01:00 | 30 / 30 | 24 | right | "
                      f"2 days late {times} · 2 × 10% lost |", text)
        self.assertIn(f"2 days late {times} · late days cover 2 |", text)
        self.assertIn("corrected by the teacher: a \\| in a reason (graded: 1) |", text)
        self.assertIn("Late days used: 2 of 4.", text)
        self.assertNotIn("\x1b", text)
        self.assertNotIn(str(SEED), text)
        record.problem = "no <img src=x> `here`"
        self.assertIn(r"no \<img src=x\> \`here\`", "\n".join(feedback.markdown(record)))

    def test_days_late_are_all_of_them_and_those_that_late_days_cover_are_named(self):
        record = self.record("ann", {}, rules=lateness.Rules({"deadlines": {"all": "2026-10-31T12:00Z"},
                                                              "late_percent_a_day": 20}, STAGES))
        for at, covered, said in (3, 3, "· late days cover 3 |"), (4, 1, "· late days cover 1 · 2 × 20% lost |"):
            version, one = lateness.Version("a", DUE, 3), record.stages[at]
            record.stages[at] = marks.StageMark(one.stage, one.entry, version, 1, covered)
            heading, row = marks.own([record], STAGES, DUE)
            self.assertEqual(row[heading.index("days_late")], 3)
            self.assertIn(f"3 days late (deadline 2026-10-31 12:00 UTC, seen 2026-11-02 12:00 UTC) {said}",
                          "\n".join(feedback.markdown(record)))
        self.assertIn("<li><a href=\"feedback/ann.md\">ann</a>: 3 days late, of which late days cover 1: stage 4</li>",
                      "\n".join(class_page.troubles([record])))

    def test_feedback_says_what_is_still_to_write(self):
        record = self.record("ann", {6: ("begun", 10)})
        group = record.stages[6].entry["groups"][0]
        record.stages[6].entry["groups"] = [{**group, "status": "passed"},
                                            {**group, "name": "H", "status": "unwritten"}]
        self.assertIn("| right so far, not finished | still to write: H (50 points) |",
                      "\n".join(feedback.markdown(record)))
        self.assertEqual(report.still_to_write(entry(STAGES[6], "unwritten")), "")  # nothing is begun
        self.assertIn("| right so far, not finished; still to write: H (50 points) |",
                      "\n".join(report.markdown({**record.result, "earned": 0, "points": 0})))

    def test_feedback_has_no_points_for_an_optional_stage_that_is_not_begun(self):
        last = next(stage for stage in STAGES if stage.is_optional)
        text = "\n".join(feedback.markdown(self.record("ann", {last.id: ("unwritten",)})))
        self.assertIn(f"| {last.id} | {last.title['en']} | - | - | optional |  |", text)
        self.assertEqual(sum(map(int, re.findall(r"/ (\d+) \|", text))), POINTS - last.points)

    def test_feedback_about_a_correction_of_all_stages_has_one_line_for_the_change(self):
        record = self.record("ann", {})
        copied = {"before": 10, "after": 1.5, "why": [["changed_override", "copied"]]}
        record.changes = {"at": "2026-11-02", "stages": [*({"stage": at, **copied} for at in range(3)), {
            "stage": 4, "before": None, "after": 2, "why": [["changed_graded"]]}]}
        self.assertEqual(list(feedback.changed(record))[1:], [
            "- stages 0, 1, 2 together: 30 \N{RIGHTWARDS ARROW} 4.5, corrected by the teacher: copied",
            "- stage 4: not graded \N{RIGHTWARDS ARROW} 2, graded now"])
        record.stages[3] = marks.StageMark(STAGES[3], None, None, None, 0, overrides.Override(5, "she showed it"))
        self.assertIn("corrected by the teacher: she showed it |", "\n".join(feedback.markdown(record)))

    def test_feedback_about_nothing_begun_names_the_branch_that_is_read(self):
        record = self.record("ann", {stage.id: ("unwritten",) for stage in STAGES})
        self.assertNotIn("default branch", "\n".join(feedback.markdown(record)))
        record.started = dict.fromkeys(record.started)
        self.assertIn("default branch", "\n".join(feedback.markdown(record)))

    def test_not_graded_is_not_0_in_tables_feedback_and_page(self):
        seen = [self.unseen("bob"), self.ungraded("cat"), self.record("dan", {9: ("unjudged", 3)})]
        for record in seen:
            self.assertIsNone(record.mark)
            text = "\n".join(feedback.markdown(record))
            self.assertIn(f"# {record.id}: not graded yet", text)
            self.assertIn("**not graded: ", text)
        for lines in marks.TABLES.values():
            bob, cat, dan = list(lines(seen, STAGES, DUE))[-3:]
            self.assertNotIn("0", bob[:2] + bob[4:5])
            own = lines is marks.own
            cells = [row[9:9 + len(STAGES)] if own else row[-len(STAGES) - (lines is marks.moodle):][:len(STAGES)]
                     for row in (bob, cat, dan)]
            self.assertEqual(cells[:2], [[""] * len(STAGES)] * 2)
            self.assertEqual([at for at, one in enumerate(cells[2]) if one == ""], [9])
        page = "\n".join(class_page.page(self.run_of([self.record("ann", {}), *seen]), []))
        self.assertEqual(page.count("<i>not graded</i>"), 3)
        self.assertNotIn("<b>0</b></td>", page)
        self.assertIn(f"<b>{POINTS:.1f}</b>mean", page)  # of the graded students
        self.assertIn("<small>1 / 1</small>", page)  # stage 9: of those graded in it
        alone = "\n".join(class_page.page(self.run_of([self.unseen("bob")]), []))
        self.assertIn("0 / 0", alone)

    def test_problems_have_an_entry_per_student_and_who_was_not_graded_is_first(self):
        late = self.record("ann", {})
        for at in 1, 2, 3:
            late.stages[at] = marks.StageMark(STAGES[at], late.result["stages"][at],
                                              lateness.Version("a" * 40, DUE, 1 + at // 3), 1)
        unpulled = self.record("bob", {}, problem="no answer")
        better = self.record("cat", {})
        better.stages[3] = marks.StageMark(STAGES[3], better.result["stages"][3], better.stages[3].version, 30, 0,
                                           overrides.Override(7, "x"))
        better.stages[3].corrected = 20
        unread = self.record("fay", {2: ("refused", 0), 3: ("refused", 0), 4: ("wrong",)})
        for at in 2, 3:
            unread.result["stages"][at]["message"] = f"file {at} is missing <&\nmore"
        records = [self.record("zoe", {}), late, unpulled, better, unread, self.ungraded("dan"), self.unseen("eve")]
        listed = "\n".join(class_page.troubles(records))
        self.assertIn("stage 2 was refused (0 points): file 2 is missing &lt;&amp;<br>stage 3 was refused (0 points): file 3", listed)
        self.assertEqual([id for id in ("dan", "eve", "bob", "cat", "fay", "ann")],
                         [part.split('">')[1].split("<")[0] for part in listed.split("<li>")[1:]])
        self.assertIn("2 days late: stage 3<br>1 day late: stages 1, 2", listed)
        self.assertEqual(list(class_page.troubles(records[:1])), [])

    def test_signs_are_drawn_and_need_no_font(self):
        record = self.record("ann", {1: ("wrong",), 2: ("unwritten",), 3: ("uncompiled",), 9: ("unjudged",)})
        record.stages[4] = marks.StageMark(STAGES[4], record.result["stages"][4], lateness.Version("a", DUE, 2), 3)
        record.stages[5] = marks.StageMark(STAGES[5], None, None, None, 0, overrides.Override(0, "x"))
        text = "\n".join(class_page.page(self.run_of([record]), []))
        beyond = {letter for letter in text if ord(letter) > 0xff} - {"\N{EN DASH}"}  # any font has this one
        self.assertEqual(beyond, set())
        for name in class_page.SIGNS:
            self.assertIn(f'<symbol id="{name}"', text)
            self.assertIn(f'href="#{name}"', text)


class Ranking(Records):
    def test_shows_nicknames_as_text_and_ids_to_the_teacher_alone(self):
        run = self.run_of([self.record("ann", {}), self.record("bob", {})])
        places = [ranking.Place(812.4, EVIL, "bob"), ranking.Place(90.0, "slow fox", "ann")]
        for lines, links in ((class_page.ranking_page(run, places), set()),
                             (class_page.page(run, [], (), places), {"feedback/ann.md", "feedback/bob.md"})):
            text = "\n".join(lines)
            seen = Seen(text)
            self.assertEqual((seen.open, seen.tags & {"script"}), ([], set()))
            self.assertEqual({link for link in seen.links if not link.startswith("#")}, links)
            self.assertLess(text.index("812 tokens per second"), text.index("slow fox"))
        self.assertNotIn("ranking", "\n".join(class_page.page(run, [])))

    def test_takes_part_who_has_every_stage_right_and_a_nickname(self):
        run = self.run_of([self.record("ann", {11: ("unwritten",)}), self.record("bob", {3: ("wrong",)}),
                           self.record("cat", {9: ("slow", 3)}), self.record("dan", {}), self.unseen("eve"),
                           self.record("fay", {})])
        names = {"ann": "fox", "bob": "owl", "cat": "cat", "dan": None, "fay": "fox"}
        run.versions = {id: types.SimpleNamespace(handed_in={"a" * 40: types.SimpleNamespace(nickname=name)}.get)
                        for id, name in names.items()}
        run.graded_as = {(id, "a" * 40): "ann" if id == "fay" else id for id in names}  # two share a repository
        self.assertEqual([id for id, _ in ranking.competitors(run)], ["ann", "cat"])

    def test_measures_each_program_once_and_has_no_place_for_another_text(self):
        names = {"ann": b"1", "bob": b"2", "cat": b"3", "dan": b"4"}
        handed_in = {id: types.SimpleNamespace(nickname=id, files=dict.fromkeys(submission.names(STAGES), text))
                     for id, text in names.items()}
        speeds = {"ann": 5.0, "bob": 0.0, "cat": 7.0, "dan": programs.NotMade("no")}

        def score(one, stages, texts):
            measured.append(one.nickname)
            if isinstance(speeds[one.nickname], Exception):
                raise speeds[one.nickname]
            return speeds[one.nickname]

        run, tree = types.SimpleNamespace(stages=STAGES, classroom=class_folder.Classroom(
            self.put("roster.csv", "id,repository\nann,x\n"))), "tree"
        with mock.patch.multiple(ranking.score, Texts=mock.DEFAULT, score=score), mock.patch.multiple(
                official_tree, fingerprint=lambda: tree, compiler=lambda: "c++"), (
                mock.patch.object(ranking, "competitors", lambda run: handed_in.items())):
            for tree, expected in ("tree", list(names)), ("tree", ["dan"]), ("mended tree", list(names)):
                measured = []
                places, problems = ranking.places(run)
                self.assertEqual(measured, expected)
                self.assertEqual([place.id for place in places], ["cat", "ann"])
                self.assertEqual(problems, {"bob": course.say("score_other_text"), "dan": "no"})
            measured, handed_in["ann"].files[NAME] = [], b"5"
            ranking.places(run)
            self.assertEqual(measured, ["ann", "dan"])

    def test_is_a_choice_of_the_teacher(self):
        self.assertFalse(ranking.is_wanted({}))
        self.assertTrue(ranking.is_wanted({"ranking": True}))
        self.assertIn('course.json: ranking: expected true or false, found "yes"',
                      self.problem(ranking.is_wanted, {"ranking": "yes"}))

    def test_a_nickname_is_pulled_with_the_files_and_is_short(self):
        handed_in = submission.Submission("x", "a" * 40)
        handed_in.refused = {name: "grade_missing" for name in submission.names(STAGES)}
        handed_in.take_settings(json.dumps({"nickname": " fast\n fox " + "x" * 50}))
        class_folder.keep(self.folder, "ann", handed_in)
        self.assertEqual(class_folder.kept(self.folder, "ann", "a" * 40).nickname, "fast fox " + "x" * 15)
        handed_in.take_settings('{"nickname": 3}')
        self.assertEqual(handed_in.nickname, "fast fox " + "x" * 15)  # a setting that is not text is ignored
        handed_in.take_settings('{"nickname": "half \\ud83e"}')
        self.assertEqual(handed_in.nickname, "half ?")
        for language, taken in ("zh", "zh"), ("fr", None):
            handed_in.take_settings(json.dumps({"language": language}))
            self.assertEqual(handed_in.language, taken)
        self.assertTrue(repositories.name_of(handed_in).startswith("files-"))


class GivenFiles(Folder):
    def test_may_be_beside_the_roster_or_in_the_folder_but_not_in_both(self):
        self.put("class/roster.csv", "id,repository\nann,x\n")
        room = class_folder.Classroom(self.folder / "class" / "roster.csv", self.folder / "room")
        self.assertIsNone(room.given("course.json"))
        self.put("class/course.json", "{}")
        self.assertEqual(room.given("course.json"), self.folder / "class" / "course.json")
        self.put("room/course.json", "{}")
        self.assertIn("found both", self.problem(room.given, "course.json"))

    def test_have_no_unknown_keys(self):
        self.assertIn("course.json: deadline: expected one of", self.problem(lateness.Rules, {"deadline": {}}, STAGES))

    def test_are_private(self):
        before = os.umask(class_folder.PRIVATE)
        self.addCleanup(os.umask, before)
        handed_in = submission.Submission("x", "a" * 40)
        handed_in.refused = {name: "grade_missing" for name in submission.names(STAGES)}
        class_folder.keep(self.folder / "room", "ann", handed_in)
        for path in (self.folder / "room").rglob("*"):
            self.assertEqual(path.stat().st_mode & 0o077, 0, path)


class Corrections(Folder):
    def read(self, text, ids=("ann", "bob")):
        self.put("overrides.csv", text)
        found, self.ignored = overrides.read(self.folder / "overrides.csv", [student(id) for id in ids], STAGES)
        return found

    def test_are_read_by_stage_and_two_about_one_stage_are_refused(self):
        self.assertEqual(overrides.read(None, [], STAGES), ({}, []))
        found = self.read("id;stage;points;reason;who\nann;3;7,5;because;me\n\nbob;all;0;copied;me\n")
        self.assertEqual(found["ann", 3], overrides.Override(7.5, "because"))
        self.assertEqual(len(found), 1 + len(STAGES))
        self.assertIn("line 3: stage: expected one line about stage 2 of bob",
                      self.problem(self.read, "id,stage,points,reason\nbob,1-3,0,copied\nbob,2,1,x\n"))

    def test_of_a_student_who_left_are_ignored(self):
        found = self.read("id,stage,points,reason\ncat,3,1,x\nann,1,1,x\n")
        self.assertEqual(list(found), [("ann", 1)])
        self.assertRegex(self.ignored[0], "line 2: .*cat")

    def test_without_a_reason_are_refused_with_their_line(self):
        for line, said in (("ann,3,1,", "reason"), ("ann,99,1,x", "no stage"), ("ann,3,31,x", "0 to 30"),
                           ("ann,3,-1,x", "points"), ("ann,3,nan,x", "points"), ("ann,,1,x", "no stage")):
            self.assertRegex(self.problem(self.read, f"id,stage,points,reason\nann,1,1,x\n{line}\n"), f"line 3: .*{said}")
        self.assertIn("columns", self.problem(self.read, "id,stage\nann,1\n"))


class Regrading(Records):
    """Changes from one grading to the next."""

    def run_of(self, records, at=DUE):
        run = super().run_of(records)
        run.at, run.classroom = at, types.SimpleNamespace(folder=self.folder)
        files = {record.id: getattr(record, "files", "x") for record in records}
        run.versions = {record.id: types.SimpleNamespace(files=lambda stage, sha, id=record.id: (files[id],))
                        for record in records}
        return run

    def grade(self, record, tests="t", at=DUE):
        found = changes.Changes(self.run_of([record], at), tests)
        found.write()
        return found

    def reasons(self, record, tests="t"):
        new = self.grade(record, tests).new
        return [[reason[0] for reason in change["why"]] for _, change in new]

    def test_by_another_tree_is_noticed(self):
        self.assertTrue(changes.is_by(self.folder, "t"))  # nothing was graded yet
        self.grade(self.record("ann", {}))
        self.assertEqual([changes.is_by(self.folder, tests) for tests in ("t", "older")], [True, False])

    def test_says_which_marks_changed_and_why(self):
        self.assertEqual(self.reasons(self.record("ann", {})), [])  # the first time
        self.assertEqual(self.reasons(self.record("ann", {})), [])
        wrong = {3: ("wrong", 20)}
        self.assertEqual(self.reasons(self.record("ann", wrong), "other"), [["changed_tests"]])
        self.assertEqual(self.reasons(self.record("ann", wrong), "third"), [])  # no mark changed
        pushed = self.record("ann", {})
        pushed.files = "y"
        self.assertEqual(self.reasons(pushed, "third"), [["changed_files"]])
        pushed = self.record("ann", wrong)
        pushed.files, pushed.result["seed"] = "z", SEED + 1  # other files have other numbers
        for one in pushed.result["stages"]:
            one["seed"] = SEED + 1
        self.assertEqual(self.reasons(pushed, "third"), [["changed_files"]])
        pushed = self.record("ann", {})
        pushed.files = "y"
        self.assertEqual(self.reasons(pushed, "third"), [["changed_files"]])
        both = self.record("ann", wrong)
        self.assertEqual(self.reasons(both, "fourth"), [["changed_files", "changed_tests"]])
        compiled = self.record("ann", {})
        compiled.result["compiler"] = "c++ 99"
        self.assertEqual(self.reasons(compiled, "fourth"), [["changed_machine"]])
        compiled.stages[9].mark = compiled.stages[9].graded = 1
        compiled.stages[9].entry = {**compiled.stages[9].entry, "earned": 1}
        self.assertEqual(self.reasons(compiled, "fourth"), [["changed_speed"]])
        compiled.stages[11].mark = compiled.stages[11].graded = 1  # counted by the checker, not measured
        compiled.stages[11].entry = {**compiled.stages[11].entry, "earned": 1}
        self.assertEqual(self.reasons(compiled, "fourth"), [["changed_again"]])

    def test_tells_lateness_and_corrections_and_what_was_not_graded_apart(self):
        record = self.record("ann", {})
        self.grade(record)
        entry, version = record.stages[3].entry, lateness.Version("a" * 40, DUE, 2)
        record.stages[3] = marks.StageMark(STAGES[3], entry, version, 24)
        self.assertEqual(self.reasons(record, "other"), [["changed_lateness"]])  # other tests, but the same points
        record.stages[3] = marks.StageMark(STAGES[3], entry, version, 24, 0, overrides.Override(29, "was ill"))
        self.assertEqual(self.reasons(record), [["changed_override"]])
        self.assertIn("was ill", "\n".join(feedback.markdown(record)))
        record.stages[3] = marks.StageMark(STAGES[3], entry, version, 24)
        self.assertEqual(self.reasons(record), [["changed_no_override"]])
        self.assertEqual(set(map(tuple, self.reasons(self.ungraded("ann")))), {("changed_ungraded",)})
        self.assertEqual(set(map(tuple, self.reasons(self.record("ann", {})))), {("changed_graded",)})

    def test_names_the_stages_that_count_or_do_not_count_any_more(self):
        whole = self.record("ann", {4: ("unwritten",)})
        fewer = self.record("ann", {4: ("unwritten",)})
        fewer.stages = fewer.stages[:4]
        self.assertEqual(self.reasons(whole), [])
        run = self.run_of([fewer])
        run.stages = STAGES[:4]
        found = changes.Changes(run, "t")
        found.write()
        self.assertEqual([(one["stage"], one["before"], one["after"], one["why"]) for _, one in found.new],
                         [(stage.id, stage.points, None, [["changed_no_count"]]) for stage in STAGES[5:]])
        self.assertIn("does not count any more", "\n".join(class_page.page(run, [])))
        self.assertEqual(self.reasons(whole), [["changed_counts"]] * len(STAGES[5:]))

    def test_names_the_deadline_that_was_moved(self):
        due = {"deadlines": {"all": "2026-11-01T12:00+01:00"}, "late_percent_a_day": 10}
        record = self.record("ann", {}, rules=lateness.Rules(due, STAGES))
        self.grade(record)
        due["deadlines"]["all"] = "2026-10-31T12:00+01:00"
        record = self.record("ann", {}, rules=lateness.Rules(due, STAGES))
        record.files = "y"  # another version counts, and nothing was handed in
        record.stages[3] = marks.StageMark(STAGES[3], record.stages[3].entry, record.stages[3].version, 24)
        (_, change), = self.grade(record).new
        self.assertEqual(change["why"], [["changed_files", "a" * 10], [
            "changed_deadline", "2026-11-01 12:00 UTC+01:00", "2026-10-31 12:00 UTC+01:00"]])
        record = self.record("ann", {}, rules=lateness.Rules({**due, "late_days": 3}, STAGES))
        record.files = "y"
        self.assertEqual(self.reasons(record), [["changed_lateness"]])
        for rules, why in (({}, "changed_no_deadline"), (due, "changed_new_deadline")):
            record = self.record("ann", {}, rules=lateness.Rules(rules, STAGES))
            record.stages[3] = marks.StageMark(STAGES[3], record.stages[3].entry, record.stages[3].version, len(why))
            (_, change), = self.grade(record).new
            self.assertEqual(change["why"][-1][0], why)

    def test_a_mark_that_rises_from_0_is_not_called_late(self):
        wrong, version = self.record("ann", {3: ("wrong", 0)}), lateness.Version("a" * 40, DUE, 2)
        wrong.stages[3] = marks.StageMark(STAGES[3], {**wrong.stages[3].entry, "earned": 0}, version, 0)
        self.grade(wrong)
        right = self.record("ann", {})
        right.stages[3] = marks.StageMark(STAGES[3], right.stages[3].entry, version, 24)
        self.assertEqual(self.reasons(right), [["changed_again"]])

    def test_corrections_are_problems_only_if_the_grade_rose_since(self):
        def problems(status, override):
            record = self.record("ann", {3: status})
            record.stages[3] = marks.StageMark(STAGES[3], record.stages[3].entry, record.stages[3].version,
                                               record.stages[3].graded, 0, override)
            self.grade(record)
            return "would now earn" in "\n".join(class_page.troubles([record]))

        copied, again = overrides.Override(0, "copied"), overrides.Override(0, "copied again")
        self.assertEqual([problems(("wrong", points), override) for points, override in (
            (20, copied), (20, copied), (25, copied), (25, again), (20, again), (30, again))],
            [False, False, True, False, False, True])

    def test_is_shown_until_the_next_change_to_teacher_and_student_with_the_changelog(self):
        with mock.patch.object(changes.changelog, "lines", lambda: ["- tests: as it was"]):
            self.grade(self.record("ann", {}))
        record = self.record("ann", {3: ("wrong", 20)})
        with mock.patch.object(changes.changelog, "lines", lambda: ["- tests: stage 3 mended", "- tests: as it was"]):
            self.grade(record, "other")
            again = self.record("ann", {3: ("wrong", 20)})
            self.assertEqual(self.grade(again, "other", DUE + HOURS).new, [])
        page = "\n".join(class_page.page(self.run_of([again]), []))
        self.assertIn("<b>1</b> · stage 3: 30 \N{RIGHTWARDS ARROW} 20, the course&#x27;s tests changed (c \N{RIGHTWARDS ARROW} c)",
                      page)
        self.assertIn("<li>tests: stage 3 mended</li>", page)
        self.assertNotIn("as it was", page)
        self.assertIn("- stage 3: 30 \N{RIGHTWARDS ARROW} 20", "\n".join(feedback.markdown(again)))
        log = (self.folder / "changes.csv").read_text().splitlines()
        self.assertEqual(len(log), 2)
        self.assertIn(",ann,3,30,20,", log[1])


class Sharing(Folder):
    repository = Pulling.repository

    def test_a_repository_gives_both_the_same_versions_at_the_same_times(self):
        self.repository("team")
        roster = self.put("roster.csv", "id,repository\nann,team\nbob,team/\ncat,other\n")
        room = class_folder.Classroom(roster)
        self.assertEqual([[one.id for one in together] for together in class_folder.by_repository(room.students)],
                         [["ann", "bob"], ["cat"]])
        begin = class_folder.now()
        with mock.patch.object(helpers.Helpers, "run", autospec=True, side_effect=helpers.Helpers.run) as run, (
                mock.patch("sys.stdout")):
            pulling.pull(room, room.students[:2])
            self.assertEqual(len(run.call_args[0][1]), 1)
            seen = room.seen()
            self.assertEqual(len(seen["ann"]), 1)
            self.assertTrue(begin <= seen["ann"][0].at <= class_folder.now())
            self.assertEqual(seen["ann"], seen["bob"])
            pulling.pull(room, room.students[:2])
        self.assertEqual(room.seen(), seen)
        self.assertEqual(class_folder.kept(self.folder, "bob", seen["bob"][0].sha).files[NAME], b"committed\n")

    def test_who_joins_later_has_handed_in_what_the_other_had(self):
        self.repository("team")
        room = class_folder.Classroom(self.put("roster.csv", "id,repository\nann,team\nbob,team\n"))
        with mock.patch("sys.stdout"):
            pulling.pull(room, room.students[:1])
            first = room.seen()["ann"]
            time.sleep(1)  # times have a resolution of one second
            pulling.pull(room, room.students)
        self.assertEqual((room.seen()["bob"], room.seen()["ann"]), (first, first))

    def test_an_id_that_was_changed_keeps_its_versions_and_their_times(self):
        places = [self.repository(name).place for name in ("own", "team")]
        first = {}
        for ids, n_told in (("ann", "bob", "cat"), 0), (("anna", "bob", "cat2"), 2), (("anne", "bob", "cat2"), 1), (
                ("anne", "bob", "cat2"), 0):
            lines = [f"{ids[0]},{places[0]}", f"{ids[1]},{places[1]}", f"{ids[2]},{places[1]}"]
            room = class_folder.Classroom(self.put("roster.csv", "\n".join(["id,repository", *lines, ""])))
            with mock.patch("sys.stdout", io.StringIO()) as out:
                pulling.pull(room, room.students)
            self.assertEqual(out.getvalue().count("gets the versions of"), n_told, out.getvalue())
            seen = room.seen()
            first = first or seen
            self.assertEqual([seen[id] for id in ids], [first[id] for id in ("ann", "bob", "cat")])
            self.assertEqual(class_folder.kept(self.folder, ids[0], seen[ids[0]][0].sha).files[NAME], b"committed\n")
            time.sleep(1)  # times have a resolution of one second

    def test_a_new_student_with_a_repository_of_his_own_gets_no_versions_of_others(self):
        places = [self.repository(name).place for name in ("own", "other")]
        git(self.folder / "other", "commit", "-q", "--allow-empty", "-m", "more")
        for id, place in zip(("ann", "bob"), places):
            room = class_folder.Classroom(self.put("roster.csv", f"id,repository\n{id},{place}\n"))
            with mock.patch("sys.stdout"):
                pulling.pull(room, room.students)
        self.assertEqual([len(room.seen()[id]) for id in ("ann", "bob")], [1, 1])
        self.assertNotEqual(room.seen()["ann"][0].sha, room.seen()["bob"][0].sha)

    def test_who_had_another_repository_before_keeps_what_was_seen_there(self):
        places = [self.repository(name).place for name in ("team", "own")]
        git(self.folder / "own", "commit", "-q", "--allow-empty", "-m", "more")
        for bob in reversed(places):
            room = class_folder.Classroom(self.put("roster.csv", f"id,repository\nann,{places[0]}\nbob,{bob}\n"))
            with mock.patch("sys.stdout"):
                pulling.pull(room, room.students)
        ann, bob = (room.seen()[id] for id in ("ann", "bob"))
        self.assertEqual((len(ann), len(bob)), (1, 2))
        self.assertEqual(bob[-1].sha, ann[0].sha)


class Sending(Folder):
    def room(self, heading, *lines):
        room = class_folder.Classroom(self.put("roster.csv", "\n".join([heading, *lines]) + "\n"))
        for one in room.students:
            self.put(f"feedback/{one.id}.md", f"# {one.id}\n")
        return room

    def send(self, room, way, public=True):
        with mock.patch("sys.stdout", new_callable=io.StringIO) as said:
            code = sending.send(room, room.students, way, public)
        return code, said.getvalue()

    def participant(self, name):
        """Reads a name as Moodle's importer does: fields between underscores, the second is the number."""
        fields = name.split("_", 4)
        self.assertEqual(fields[2:4], ["assignfeedback", "file"])
        return int(fields[1]), fields[4]

    def test_no_two_students_are_the_same_participant(self):
        room = self.room("id,repository,Identifier", "ann,a,Participant 5", "bob,b,5")
        self.assertIn("identifier 5 belongs to several students: ann, bob", self.problem(self.send, room, "moodle"))

    def test_a_zip_names_each_file_by_the_participant_as_moodle_reads_it(self):
        room = self.room("id,repository,Identifier", "ann_b,a,Participant 4711", "bob,b,17", "cat,c,", "dan,d,参与者4712",
                         "eve,e,Teilnehmer/in4713")
        code, said = self.send(room, "moodle")
        self.assertEqual(code, 1)
        self.assertIn("cat: ", said)
        with zipfile.ZipFile(self.folder / sending.ZIP) as found:
            self.assertEqual({self.participant(name): found.read(name) for name in found.namelist()},
                             {(4711, "feedback.md"): b"# ann_b\n", (17, "feedback.md"): b"# bob\n",
                              (4712, "feedback.md"): b"# dan\n", (4713, "feedback.md"): b"# eve\n"})
        before = (self.folder / sending.ZIP).read_bytes()
        self.send(room, "moodle")
        self.assertEqual((self.folder / sending.ZIP).read_bytes(), before)
        (self.folder / "feedback" / "bob.md").unlink()  # not graded yet
        self.send(room, "moodle")
        with zipfile.ZipFile(self.folder / sending.ZIP) as found:
            self.assertEqual([self.participant(name)[0] for name in found.namelist()], [4711, 4712, 4713])

    def test_without_feedback_or_participants_says_what_to_do(self):
        room = self.room("id,repository", "ann,a")
        self.assertIn("Identifier", self.problem(self.send, room, "moodle"))
        shutil.rmtree(self.folder / "feedback")
        self.assertIn("class grade", self.problem(self.send, room, "branch"))

    def served(self, *names):
        """Empty repositories served by git's own server: {name: (folder, URL)}"""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        for name in names:
            git(self.folder, "init", "-q", "--bare", "-b", "main", name)
        child = subprocess.Popen(["git", "daemon", f"--port={port}", "--listen=127.0.0.1", "--export-all", "--reuseaddr",
                                  "--enable=receive-pack", f"--base-path={self.folder}", str(self.folder)],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(child.wait)
        self.addCleanup(os.killpg, child.pid, signal.SIGTERM)
        for _ in range(100):
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", port)) == 0:
                    return [f"git://127.0.0.1:{port}/{name}" for name in names]
            if child.poll() is not None:
                break
            time.sleep(0.05)
        self.skipTest("git daemon does not run here")

    def shown(self, name, what="feedback"):
        done = subprocess.run(["git", "-C", str(self.folder / name), *what.split(" ")], stdout=subprocess.PIPE, text=True)
        return done.stdout

    def test_a_branch_gets_a_commit_where_feedback_is_new(self):
        team, own = self.served("team.git", "own.git")
        room = self.room("id,repository", f"ann,{team}", f"bob,{team}", f"cat,{own}", "dan,folder",
                         f"eve,{own}-that-is-not-there", f"fay,{own}-empty")
        for id in "ann", "bob", "cat", "dan", "eve":
            room.note_seen(id, "a" * 40, DUE)
        code, said = self.send(room, "branch")
        self.assertEqual(code, 1)
        self.assertIn("3 new, 0 as before, 3 with a problem", said)
        self.assertIn("dan: a folder on this machine", said)
        self.assertIn("eve: ", said)
        self.assertIn("fay: no version of this repository was seen", said)  # nothing was asked or pushed
        self.assertEqual(self.shown("team.git", "ls-tree --name-only feedback").split(), ["ann.md", "bob.md"])
        for id in "ann", "bob":
            self.assertEqual(self.shown("team.git", f"show feedback:{id}.md"), f"# {id}\n")
        self.assertEqual(self.shown("own.git", "show feedback:cat.md"), "# cat\n")
        self.assertEqual(self.shown("own.git", "branch --list main"), "")
        self.assertIn("0 new, 3 as before", self.send(room, "branch")[1])
        self.put("feedback/cat.md", "# cat, again\n")
        self.assertIn("1 new, 2 as before", self.send(room, "branch")[1])
        self.assertEqual(self.shown("own.git", "show feedback:cat.md"), "# cat, again\n")
        self.assertEqual(self.shown("own.git", "rev-list --count feedback").strip(), "2")  # history is not rewritten


    def test_a_repository_that_anyone_can_read_gets_no_marks(self):
        own, = self.served("own.git")
        room = self.room("id,repository", f"ann,{own}")
        room.note_seen("ann", "a" * 40, DUE)
        code, said = self.send(room, "branch", public=False)
        self.assertEqual((code, self.shown("own.git", "branch --list")), (1, ""))
        self.assertIn("ann: anyone can read this repository", said)

    def test_a_repository_that_opens_with_our_credentials_is_not_public(self):
        asked = []

        class Closed(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.headers.get("Authorization"))
                self.send_response(401)
                self.send_header("WWW-Authenticate", "Basic realm=x")
                self.end_headers()

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Closed) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.put(".netrc", "machine 127.0.0.1 login teacher password K3n\n")
            with mock.patch.dict(os.environ, HOME=str(self.folder)):
                self.assertFalse(students_git.is_public(f"http://teacher:K3n@127.0.0.1:{server.server_port}/ann.git"))
            server.shutdown()
        self.assertEqual(set(asked), {None})
        self.assertFalse(students_git.is_public("git@example.org:ann.git"))


class Branches(Folder):
    served = Sending.served

    def test_that_are_there_are_named_where_the_one_of_head_is_not(self):
        self.put(f"ann/{NAME}", "mine\n")
        git(self.folder / "ann", "init", "-q", "-b", "master")
        commit(self.folder / "ann")
        urls = self.served("other.git", "empty.git")
        git(self.folder / "ann", "push", "-q", str(self.folder / "other.git"), "master", "master:refs/heads/a-b/ö.2")
        for place, said in ((self.folder / "other.git", "default branch (main) does not exist; existing branches: a-b/ö.2, master"),
                            (urls[0], "default branch does not exist; existing branches: a-b/ö.2, master"),
                            (self.folder / "empty.git", "no commit yet: push your work"),
                            (urls[1], "no commit yet: push your work"),
                            (urls[1].replace("empty", "none"), "is private, or its address is wrong")):
            self.assertIn(said, self.problem(repositories.pull, str(place), STAGES, None))

    def test_whose_names_would_be_obeyed_are_not_shown(self):
        listed = b"a\trefs/heads/\x1b[2J\na\trefs/heads/" + b"x" * 100 + b"\na\trefs/heads/ok\n"
        self.assertIn("x: its default branch does not exist; existing branches: ok.",
                      str(students_git.no_commit("x", listed, b"\x1b[2J\n")))


class Settings(Folder):
    def test_that_lie_are_refused_in_a_line_and_in_linear_time(self):
        start = time.process_time()
        many = "{" + ", ".join(f'"k{at}": {{"a": []}}' for at in range(100_000)) + "}"
        self.assertEqual(len(strict_json.parse(many)), 100_000)
        for text in "[" * 250_000, '{"a": ' * 50_000, '{"language": "en", "language": "zh"}', "1" * 250_000, "{", "[]":
            self.assertIn("expected a JSON object", self.problem(official.parse, text))
        self.assertLess(time.process_time() - start, 5)

    def test_that_cannot_be_read_are_told_with_their_place(self):
        self.assertIn("line 1 column 18", self.problem(official.parse, '{"nickname": "a" "ref": ""}'))
        self.assertIn("utf-8", self.problem(official.parse, '{"nickname": "小明"}'.encode("gbk")))
        merging = '{\n<<<<<<< HEAD\n"nickname": "a"\n=======\n"nickname": "b"\n>>>>>>> theirs\n}\n'
        for text in merging, merging.encode():
            self.assertIn("a merge that is not finished", self.problem(official.parse, text))
        handed_in = submission.Submission("x")
        handed_in.take_settings(b'{"nickname": }')
        self.assertIn("line 1 column 14", handed_in.unread)

    def test_of_a_class_survive_an_export_and_an_update(self):
        settings = {**official.DEFAULTS, **Lateness.SETTINGS}
        self.put(official.FILE, json.dumps(settings))
        official.write(official.read(self.folder), self.folder)
        self.assertEqual(official.read(self.folder), settings)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
