"""./stage class grade: seeds, turns, what is stored, what is graded again."""
import importlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
from unittest import mock

from make_class import ROOT, STAGES
from class_case import DUE, Folder, HOURS, NAME, Records, SEED, entry
from classroom import changes
from classroom import class_folder
from classroom import class_page
from classroom import feedback
from classroom import helpers
from classroom import lateness
from classroom import marks
from classroom import overrides
from classroom import repositories
from classroom import run as class_run
from classroom.bar import Bar
from grading import grader
from grading import official_tree
from grading import report
from grading import submission
from grading import workplace
from shared import atomic
from shared import course
import processes
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
