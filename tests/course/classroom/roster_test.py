"""Rosters, given files and corrections of a class."""
import os
import sys
import unittest

from make_class import ROOT, STAGES
from class_case import Folder, student
from classroom import class_folder
from classroom import lateness
from classroom import overrides
from grading import submission


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


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
