"""./stage class grade: its seeds, what is stored, which versions are graded."""
import importlib
import json
import os
import pathlib
import re
import subprocess
import sys
import types
import unittest
from unittest import mock

from make_class import STAGES
from class_case import DUE, Folder, HOURS, NAME, entry
from classroom import class_folder
from classroom import class_page
from classroom import feedback
from classroom import lateness
from classroom import marks
from classroom import run as class_run
from grading import grader
from grading import official_tree
from grading import report
from grading import submission
from grading import workplace
from shared import atomic
from shared import course
from git_folder import commit, git


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


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
