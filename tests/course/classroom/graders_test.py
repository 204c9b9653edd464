"""The processes of ./stage class grade: their turns, those that are hostile, die or stand still."""
import importlib
import json
import os
import pathlib
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
from class_case import Folder, NAME
from classroom import class_folder
from classroom import helpers
from classroom import repositories
from classroom import run as class_run
from classroom.bar import Bar
from grading import workplace
from shared import course
import processes
from git_folder import commit, git


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

    def with_files(self, id, files):
        for name, text in files.items():
            self.put(f"{id}/{name}", text)
        git(self.folder / id, "init", "-q", "-b", "main")
        commit(self.folder / id)
        return self.folder / id

    def hostile(self):
        """{id: what the line about its repository must contain; "" if there must be none}"""
        for id in "good", "deep_json", "link", "fifo_head", "fifo_refs", "loop", "deep", "large", "lots", "dangling":
            self.with_files(id, {NAME: "mine\n", "course.json": "[" * 100_000 if id == "deep_json" else "{}"})
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


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
