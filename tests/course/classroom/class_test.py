"""A class made from the catalogue, pulled twice, graded, killed in between and resumed:

    class_test.py BUILD [N]    (N: the number of students, default 10; "all": 500, who hand in all programs and attacks)

All marks, states, sentences and days late must be as make_class.py expects. The cost is printed. ./stage class does the
grading, with the files in build/release. Standard library only.
"""
import csv
import datetime
import hmac
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from make_class import MARKER, ROOT, STAGES, Class
from shared import course
import processes

DUE = datetime.datetime(2026, 11, 2, 12, tzinfo=datetime.timezone.utc)
RULES = {"deadlines": {"all": DUE.isoformat()}, "grace_hours": 12, "late_percent_a_day": 10}
SECRET = "0123456789abcdef" * 4  # of the class
HOUR = datetime.timedelta(hours=1)


def seed(id, sha):
    """The seed with which a student's commit is graded."""
    digest = hmac.digest(SECRET.encode(), f"{id}\0{sha}".encode(), "sha256")
    return int.from_bytes(digest[:8], "big") >> 1


def cpu_seconds():
    """CPU seconds of all children that have ended, and of their children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Memory(threading.Thread):
    """The peak memory of all descendants of this process together, measured twice per second (Linux)."""

    def __init__(self):
        super().__init__(daemon=True)
        self.most, self.ended = 0, threading.Event()

    def run(self):
        while not self.ended.wait(0.5):
            self.most = max(self.most, self.now())

    @staticmethod
    def now():
        pages = processes.descendants(os.getpid(), field=processes.PAGES)
        return sum(map(int, pages.values())) * resource.getpagesize() >> 20


class Whole(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="stage class ")).resolve()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        try:
            self.made = Class(self.folder / "made", BUILD, N)
        except course.Problem as problem:  # a clone without history has no starters
            self.skipTest(str(problem))
        self.room = self.folder / "made"
        (self.room / "course.json").write_text(json.dumps(RULES))
        (self.room / "seed.key").write_text(f"{SECRET}\n")

    def table(self, name):
        with (self.room / name).open(encoding="utf-8", newline="") as file:
            return list(csv.reader(file))

    def command(self, *words):
        return [str(ROOT / "stage"), "class", *words, "--roster", str(self.room / "roster.csv")]

    def stage_class(self, *words, codes=(0,)):
        done = subprocess.run(self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=dict(os.environ, STAGECRAFT_LANG="en"))
        self.assertIn(done.returncode, codes, done.stdout)
        return done.stdout

    def seen_at(self, at):
        """Changes the times in the log for the lines of this round, so that the test need not wait for days."""
        lines = self.table("seen.csv")
        for line in lines[self.n_seen:]:
            line[2] = at(line[0]).isoformat()
        self.n_seen = len(lines)
        with (self.room / "seen.csv").open("w", encoding="utf-8", newline="") as log:
            csv.writer(log, lineterminator="\n").writerows(lines)

    def pull(self):
        self.n_seen = 1  # the heading
        students = {one.id: one for one in self.made.students}
        self.made.begin()
        self.stage_class("pull", codes=(0, 1))
        self.seen_at(lambda id: DUE - 5 * HOUR)
        self.made.go_on()
        said = self.stage_class("pull", codes=(0, 1))
        self.seen_at(lambda id: DUE + (students[id].seen_at or 0) * HOUR)
        for one in self.made.students:
            self.assertEqual(f"\n  {one.id}: " in said, one.problem, said)
        self.assertIn(" 0 new,", self.stage_class("pull", codes=(0, 1)))
        self.assertFalse((self.room / MARKER).exists(), "something of a repository was run")

    def kill_in_the_middle(self):
        """Ends a run with SIGKILL once it has graded a few; returns what exists then."""
        results = self.room / "results"
        wanted = max(2, len(self.made.students) // 10)
        child = subprocess.Popen(self.command("grade"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while child.poll() is None and len(list(results.glob("*/[!.]*.json"))) < wanted:
            time.sleep(0.1)
        started = processes.descendants(child.pid) if sys.platform.startswith("linux") else {}
        child.kill()
        child.wait()
        self.assertEqual(processes.still_running(started, 10), [], "left running after kill -9")
        self.assertFalse((self.room / "marks.csv").exists(), "it was done before it could be killed")
        return {path: path.stat().st_mtime_ns for path in results.glob("*/[!.]*.json")}

    def test_every_mark_sentence_and_lateness_is_as_expected(self):
        self.pull()
        shas = {id: sha for id, sha, _ in self.table("seen.csv")}
        self.made.expect_of_workers(lambda id: seed(id, shas[id]))
        memory, start = Memory(), time.monotonic()
        memory.start()
        used_before = cpu_seconds()
        before = self.kill_in_the_middle()
        self.stage_class("grade")
        spent, used = time.monotonic() - start, cpu_seconds() - used_before
        memory.ended.set()
        for path, at in before.items():
            self.assertEqual(path.stat().st_mtime_ns, at, "graded again")
        self.check_marks()
        self.check_gradebooks()
        self.check_feedback_and_page()
        self.check_nothing_was_harmed()
        start = time.monotonic()
        self.stage_class("grade")  # nothing is new
        again = time.monotonic() - start
        self.check_regrading()
        self.check_viva()
        self.check_corrections()
        print(f"{len(self.made.students)} students: {spent:.0f} s, {used:.0f} s of CPU time after the kill, at most "
              f"{memory.most} MB at once; again in {again:.0f} s", file=sys.stderr)

    def check_marks(self):
        heading, *lines = self.table("marks.csv")
        rows = {line[0]: dict(zip(heading, line)) for line in lines}
        self.assertEqual(list(rows), [one.id for one in self.made.students])
        for one in self.made.students:
            with self.subTest(one.id):
                self.check_student(one, rows[one.id])

    def check_student(self, one, row):
        if not one.seen:  # not graded, which is different from 0
            self.assertEqual({row["mark"], *(row[f"stage_{stage.id}"] for stage in STAGES)}, {""})
            self.assertEqual({row[f"state_{stage.id}"] for stage in STAGES}, {"ungraded"})
            return
        expected = 0
        for stage in STAGES:
            state = one.status.get(stage.id, "unwritten")
            if any("bands" in group for group in stage.groups) and (
                    state != "unwritten" or stage.id in one.worker):
                expected += self.check_speed(one, stage, row)
                continue
            if stage.id in one.worker:
                self.assertIn(row[f"state_{stage.id}"], ("wrong", "crashed", "hung"), stage.id)
            else:
                self.assertEqual(row[f"state_{stage.id}"], state, stage.id)
            points = one.earned.get(stage.id, stage.points if state == "passed" else 0)
            mark = points * (1 - one.days.get(stage.id, 0) / 10)
            if stage.id in one.meets:
                mark = float(row[f"stage_{stage.id}"])
                self.assertLess(mark, max(stage.points, 1), stage.id)
            self.assertEqual(float(row[f"stage_{stage.id}"]), mark, stage.id)
            expected += mark
        self.assertEqual(float(row["mark"]), expected)
        covered = getattr(one, "late_days_used", 0)  # one.days has the days that cost something
        self.assertEqual(int(row["days_late"]), max([0, *one.days.values()]) + covered)
        self.assertEqual(int(row["late_days_used"]), covered)
        self.assertEqual(bool(row["problem"]), one.problem)
        self.assertEqual(bool(row["sha"]), one.seen)
        self.assertEqual(bool(row["shared_with"]), one.id in ("right", "partner"))

    def check_speed(self, one, stage, row):
        """If speed gives points, another run may give others; right code has at least the other points."""
        mark, state = float(row[f"stage_{stage.id}"] or 0), row[f"state_{stage.id}"]
        rest = sum(group["points"] for group in stage.groups if "bands" not in group)
        self.assertLessEqual(mark, stage.points, one.id)
        if stage.id not in one.worker:
            self.assertIn(state, ("passed", "slow", "unjudged"), one.id)
            self.assertGreaterEqual(mark, 0 if state == "unjudged" else rest, one.id)
        else:
            self.assertNotEqual(state, "passed", one.id)
        return mark

    def check_gradebooks(self):
        moodle, canvas = self.table("moodle.csv"), self.table("canvas.csv")
        self.assertEqual(moodle[0][0], "ID number")
        self.assertEqual(canvas[0][:5], ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"])
        self.assertEqual(canvas[1][5:], [str(stage.points) for stage in STAGES])
        for one, line, other in zip(self.made.students, moodle[1:], canvas[2:]):
            self.assertEqual((line[0], other[2], line[1:-1]), (one.id, one.id, other[5:]))

    def check_feedback_and_page(self):
        sentences = {stage.id: course.mistakes(stage) for stage in STAGES}
        page = (self.room / "class.html").read_text(encoding="utf-8")
        for one in self.made.students:
            text = (self.room / "feedback" / f"{one.id}.md").read_text(encoding="utf-8")
            self.assertIn(one.id, page)
            for stage, name in one.mistake.items():
                told = sentences[stage][name]["en"]
                self.untold += [] if told in text else [f"{one.id}: {name}"]
        self.assertLessEqual(len(self.untold), len(self.made.students) // 50, self.untold)
        if any(one.id == "chinese" for one in self.made.students):
            self.assertIn("不能编译", (self.room / "feedback" / "chinese.md").read_text(encoding="utf-8"))
            self.assertIn("original", page.partition("Files that are alike")[2])
        self.assertNotIn("<script", page)

    def check_nothing_was_harmed(self):
        self.assertEqual(self.made.secret.read_text(), "not for students\n")
        self.assertEqual(pathlib.Path(f"{self.made.secret}.canary").read_text(), "alive\n")
        self.assertEqual(list(pathlib.Path(f"{self.made.secret}.folder").iterdir()), [])
        everything = [path.read_text(encoding="utf-8") for path in self.room.glob("feedback/*.md")]
        results = [json.loads(path.read_text()) for path in self.room.glob("results/*/[!.]*.json")]
        seeds = {str(entry["seed"]) for result in results for entry in result["stages"]}
        self.assertGreaterEqual(len(seeds), len(results) // 2)
        self.assertFalse([text for text in everything if any(seed in text for seed in seeds)])
        self.assertFalse([text for text in everything if "not for students" in text or "harmed" in text])
        self.assertFalse((self.room / MARKER).exists())

    def check_regrading(self):
        one = next(one for one in self.made.students if one.id in ("late", "late_fix"))
        _, sha, _ = next(line for line in self.table("seen.csv") if line[0] == one.id)
        before = (self.room / "marks.csv").read_text()
        said = self.stage_class("grade", "--only", one.id, "--sha", sha[:12])
        self.assertIn(sha[:10], said)
        result = json.loads(pathlib.Path(said.partition("(not for students): ")[2].splitlines()[0]).read_text())
        self.assertEqual({entry["seed"] for entry in result["stages"]}, {seed(one.id, sha)})
        self.assertEqual((self.room / "marks.csv").read_text(), before)

    def check_viva(self):
        one = next(one for one in self.made.students if one.status.get(2) == "passed")
        self.stage_class("viva", "--only", one.id)
        sheet = (self.room / "viva" / f"{one.id}.md").read_text(encoding="utf-8")
        questions, _, answers = sheet.partition("Answers")
        self.assertEqual(questions.count("Which case fails, and why?"), 3, sheet)
        self.assertEqual(len(re.findall(r"^\d\. Stage \d+: ", answers, re.M)), 3, sheet)
        text = "\n".join(str(text) for text in one.files.values())
        for line in re.findall(r"^- (.*)$", questions, re.M):
            self.assertIn(line, text)

    def check_corrections(self):
        """A teacher's correction stays valid in later gradings; the student and the teacher read what changed and
        why."""
        one = next(one for one in self.made.students if one.id == "broken")
        (self.room / "overrides.csv").write_text("id,stage,points,reason\nbroken,2,7,it ran on her machine\n")
        said = self.stage_class("grade")
        self.assertIn("broken, stage 2: 0 \N{RIGHTWARDS ARROW} 7, corrected by the teacher: it ran on her machine", said)
        self.stage_class("grade", "--only", one.id)
        heading, *lines = self.table("marks.csv")
        row = dict(zip(heading, next(line for line in lines if line[0] == one.id)))
        self.assertEqual((row["stage_2"], row["override_2"]), ("7", "it ran on her machine"))
        self.assertEqual(self.table("changes.csv")[1:][-1][1:5], [one.id, "2", "0", "7"])
        for name in "feedback/broken.md", "class.html":
            self.assertIn("it ran on her machine", (self.room / name).read_text(encoding="utf-8"))

    def tearDown(self):
        if KEEP:
            shutil.copytree(self.room, KEEP, dirs_exist_ok=True, symlinks=True,
                            ignore=shutil.ignore_patterns("repositories", "pulled", "remembered"))

    untold = []


if __name__ == "__main__":
    BUILD = pathlib.Path(os.path.abspath(sys.argv[1]))
    course.BUILD = BUILD
    N = {"all": None}.get(sys.argv[2], sys.argv[2]) if len(sys.argv) > 2 else 10
    N = N if N is None else int(N)
    KEEP = os.environ.get("STAGE_CLASS_KEEP")  # a folder for the results, if they are to be kept
    unittest.main(argv=sys.argv[:1])
