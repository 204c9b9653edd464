"""Changes from one grading of a class to the next."""
import sys
import types
import unittest
from unittest import mock

from make_class import STAGES
from class_case import DUE, HOURS, Records, SEED, entry
from classroom import changes
from classroom import class_page
from classroom import feedback
from classroom import lateness
from classroom import marks
from classroom import overrides


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


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
