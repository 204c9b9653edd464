"""Deadlines, late days and the settings of a class."""
import itertools
import json
import sys
import time
import unittest
from unittest import mock

from make_class import STAGES
from class_case import DUE, Folder, HOURS, entry, student
from classroom import class_folder
from classroom import feedback
from classroom import lateness
from classroom import marks
from classroom import overrides
from grading import submission
from shared import course
from shared import official
import strict_json


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
