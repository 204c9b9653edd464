"""What ./stage class promises that needs nothing built: rosters, lateness, tables, the page, pulling.

    classroom_test.py
"""
import datetime
import html.parser
import importlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import types
import unittest
from unittest import mock

from make_class import ROOT, STAGES, git
import class_page
import classroom
import course
import feedback
import helpers
import lateness
import marks
import official
import processes
import pulling
import strict_json
import submission

DUE = datetime.datetime(2026, 11, 2, 12, tzinfo=datetime.timezone.utc)
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


class Roster(Folder):
    def read(self, text):
        return classroom.read_roster(self.put("roster.csv", text))

    def test_is_read_as_spreadsheets_write_it(self):
        for text in ("id,repository\nann,https://example.org/ann.git\nbob,work/bob\n",
                     "\N{ZERO WIDTH NO-BREAK SPACE}Name;ID;Repository\r\nA;ann;https://example.org/ann.git\r\n\r\nB;bob;work/bob\r\n"):
            students = self.read(text)
            self.assertEqual([(one.id, one.place) for one in students], [
                ("ann", "https://example.org/ann.git"), ("bob", str(self.folder / "work/bob"))])

    def test_with_an_id_that_is_no_file_name_or_a_formula_or_there_twice_is_refused_with_its_line(self):
        for id in "../x", "a/b", "=1+1", "-rf", ".x", "a b", "a\x1b", "", "x" * 101:
            self.assertIn("line 3", self.problem(self.read, f"id,repository\nann,a\n\"{id}\",b\n"))
        self.assertIn("twice", self.problem(self.read, "id,repository\nann,a\nAnn,b\n"))
        self.assertIn("line 2", self.problem(self.read, "id,repository\nann,--upload-pack=x\n"))
        self.assertIn("columns", self.problem(self.read, "name,url\nann,a\n"))
        self.assertIn("each student", self.problem(self.read, "id,repository\n"))
        self.assertIn("No such file", self.problem(classroom.read_roster, self.folder / "none.csv"))

    def test_and_marks_are_kept_out_of_the_repository(self):
        roster = self.put("roster.csv", "id,repository\nann,a\n")
        inside = ROOT / "build" / "class"
        self.assertIn("this repository", self.problem(classroom.Classroom, roster, inside))
        self.assertIn("this repository", self.problem(classroom.Classroom, ROOT / "roster.csv"))
        (self.folder / "link").symlink_to(ROOT)
        self.assertIn("this repository", self.problem(classroom.Classroom, roster, self.folder / "link" / "x"))
        self.assertFalse(inside.exists())


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
        seen = [classroom.Seen(sha, DUE + hours * HOURS) for sha, hours in
                (("a", -5), ("b", 20), ("c", 60), ("d", 90))]

        def candidates(n):
            return [tuple(one)[::2] for one in self.rules.candidates(STAGES[2], seen[:n], files.get)]

        self.assertEqual(candidates(0), [])
        self.assertEqual(candidates(1), [("a", 0)])
        self.assertEqual(candidates(2), [("b", 1), ("a", 0)])  # the late one, and the one in time
        self.assertEqual(candidates(4), [("d", 0)])  # what was in time once is in time

    def test_of_what_counts_most_is_taken(self):
        versions = [lateness.Version("new", DUE, 1), lateness.Version("old", DUE, 0)]
        for new, old, sha, mark in ((20, 20, "old", 20), (20, 10, "new", 14), (0, 0, "new", 0)):
            entries = {"new": {"earned": new, "status": "x"}, "old": {"earned": old, "status": "x"}}
            found = marks.best(STAGES[2], versions, entries, self.rules)
            self.assertEqual((found.version.sha, found.mark), (sha, mark))

    def test_settings_that_make_no_sense_are_refused_by_name(self):
        for more, name in (({"grace_hours": -1}, "grace_hours"), ({"late_percent_a_day": "10"}, "late_percent_a_day"),
                           ({"deadlines": {"all": "2026-11-02T12:00"}}, "deadlines: all"),
                           ({"deadlines": {"99": "2026-11-02T12:00Z"}}, "deadlines"), ({"deadlines": []}, "deadlines")):
            with self.assertRaisesRegex(course.Problem, name):
                lateness.Rules({**self.SETTINGS, **more}, STAGES)


class Pulling(Folder):
    def repository(self, name="ann"):
        self.put(f"{name}/{NAME}", "committed\n")
        git(self.folder / name, "init", "-q", "-b", "main")
        git(self.folder / name, "add", "-A")
        git(self.folder / name, "commit", "-qm", "mine")
        return classroom.Student(name, str(self.folder / name), {})

    def test_takes_what_was_committed_once_and_a_folder_as_it_is(self):
        ann = self.repository()
        self.put(f"ann/{NAME}", "not committed\n")
        handed_in = pulling.pull(ann.place, STAGES, None)
        self.assertEqual(handed_in.files[NAME], b"committed\n")
        self.assertIsNone(pulling.pull(ann.place, STAGES, handed_in.sha))
        self.assertEqual(pulling.pull(f"file://{ann.place}".replace(" ", "%20"), STAGES, None).files, handed_in.files)
        self.put(f"bob/{NAME}", "as it is\n")
        bob = classroom.Student("bob", str(self.folder / "bob"), {})
        first = pulling.pull(bob.place, STAGES, None)
        self.assertEqual(first.files[NAME], b"as it is\n")
        self.put("bob/README", "no matter\n")
        self.assertIsNone(pulling.pull(bob.place, STAGES, first.sha))
        self.put(f"bob/{NAME}", "else\n")
        self.assertNotEqual(pulling.pull(bob.place, STAGES, first.sha).sha, first.sha)

    def test_reads_a_repository_of_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("only root can make one")
        ann = self.repository()
        for path in [self.folder / "ann", *(self.folder / "ann").rglob("*")]:
            os.chown(path, 65534, 65534)
        self.assertEqual(pulling.pull(ann.place, STAGES, None).files[NAME], b"committed\n")

    def test_follows_nothing_that_leads_out_of_a_repository(self):
        other = pathlib.Path(self.repository("other").place, ".git")
        for name, lead in {
            ".git": lambda path: (shutil.rmtree(path), path.symlink_to(other)),
            ".git/": lambda path: (shutil.rmtree(path), path.write_text(f"gitdir: {other}\n")),
            ".git/objects": lambda path: (shutil.rmtree(path), path.symlink_to(other / "objects")),
            ".git/objects/info/alternates": lambda path: path.write_text(f"{other / 'objects'}\n"),
            ".git/commondir": lambda path: path.write_text(f"{other}\n"),
        }.items():
            ann = self.repository()
            path = pathlib.Path(ann.place) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            lead(path)
            self.assertIn("leads to another place", self.problem(pulling.pull, ann.place, STAGES, None), name)
            shutil.rmtree(ann.place)

    def test_ends_what_takes_too_long_with_all_it_started(self):
        mark = self.folder / "alive"
        words = ["sh", "-c", f"(sleep 2; touch '{mark}') & sleep 60"]
        self.assertIsNone(submission.run_for(words, 0.3))
        time.sleep(2.2)
        self.assertFalse(mark.exists())

    def test_takes_no_more_than_there_is_room_for(self):
        words = submission.limited(["sh", "-c", f"head -c {submission.MAX_FETCHED + 1} /dev/zero >'{self.folder}/x'"])
        self.assertIsNone(submission.run_for(words, 60))
        self.assertLessEqual((self.folder / "x").stat().st_size, submission.MAX_FETCHED)

    def test_is_noted_with_its_time_and_kept_as_it_was(self):
        room = classroom.Classroom(self.put("roster.csv", "id,repository\nann,ann\n"))
        handed_in = pulling.pull(self.repository().place, STAGES, None)
        classroom.keep(room.folder, "ann", handed_in)
        room.note_seen("ann", handed_in.sha, DUE)
        self.assertEqual(room.seen()["ann"], [classroom.Seen(handed_in.sha, DUE)])
        kept = classroom.kept(room.folder, "ann", handed_in.sha)
        self.assertEqual((kept.files, kept.refused), (handed_in.files, handed_in.refused))
        with room.log.open("a") as log:
            log.write("ann,12")  # the machine went off
        self.assertEqual(len(room.seen()["ann"]), 1)


class Walls(Folder):
    """./stage class pull, with repositories that are there to stop it."""

    def command(self, places):
        lines = ["id,repository", *(f'{id},"{place}"' for id, place in places.items())]
        self.put("room/roster.csv", "\n".join(lines) + "\n")
        return [sys.executable, "-B", str(ROOT / "tools" / "class.py"), "pull", "--roster",
                str(self.folder / "room" / "roster.csv")]

    def repository(self, id, files):
        for name, text in files.items():
            self.put(f"{id}/{name}", text)
        git(self.folder / id, "init", "-q", "-b", "main")
        git(self.folder / id, "add", "-A")
        git(self.folder / id, "commit", "-qm", "mine")
        return self.folder / id

    def hostile(self):
        """{id: what its repository's line must say; "" where there is to be none}"""
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
                file.truncate((pulling.MOST_BYTES if id == "large" else 0) + 1)
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
        return {"good": "", "deep_json": "", "folder": "", "link": "leads to another place",
                "fifo_head": "no ordinary file", "fifo_refs": "no ordinary file", "loop": "leads to another place",
                "deep": "deep", "large": "MB", "lots": "", "dangling": "no commit", "ring": "no such folder",
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
        kept = classroom.kept(room, "folder", seen.partition("\nfolder,")[2].split(",")[0])
        self.assertEqual(kept.refused[NAME], "grade_no_file")

    def test_what_nobody_foresaw_is_that_students_line_too(self):
        with mock.patch.object(pulling, "pull", side_effect=KeyError("?")), mock.patch("sys.stderr"):
            puller = importlib.import_module("class_puller")
            answer = puller.answer(self.folder, {"ids": ["ann"], "place": "x", "last": None})
        self.assertEqual(answer, {"problem": "KeyError: '?'"})

    @unittest.skipUnless(sys.platform.startswith("linux"), "only Linux tells who descends from whom")
    def test_nothing_is_left_running_after_kill_9(self):
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x.git"
        child = subprocess.Popen(self.command({"ann": url, "bob": url}), stdout=subprocess.DEVNULL)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        before = processes.wait_for_descendants(child.pid, 6, 30)
        self.assertGreaterEqual(len(before), 6)  # two that pull, their git and what it asks by
        child.kill()
        child.wait()
        self.assertEqual(processes.still_running(before, 10), [])


class Graders(Folder):
    """Programs of which each dies at its first task, unless that was tried before."""

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
        stage_class = importlib.import_module("class")
        room = types.SimpleNamespace(folder=self.folder)
        with mock.patch.object(stage_class.grading, "PLACE", self.folder / "place"):
            graders = stage_class.Graders(room, 2, self.folder)
            graders.words = [sys.executable, "-c", self.FAKE]
            tasks = [stage_class.Task(id, "a", [0], str(self.folder / id), False, "en")
                     for id in ("ann", "hopeless", "bob", "cat", "dan")]
            bar = stage_class.Bar(len(tasks))
            self.assertEqual(graders.grade(tasks, 7, bar),
                             {str(self.folder / "hopeless"): course.say("class_grader_ended")})
        self.assertEqual(bar.done, len(tasks))

    def test_that_stand_still_are_ended_and_cost_only_that_task(self):
        fake = ("import json, sys, time\nfor line in sys.stdin:\n    task = json.loads(line)\n"
                "    time.sleep(1000 if task['id'] == 'bob' else 0)\n    print(json.dumps({'problem': None}), flush=True)\n")
        pool, answers = helpers.Helpers([sys.executable, "-c", fake], 1, seconds=2), {}
        pool.run([{"id": id} for id in ("ann", "bob", "cat")],
                 lambda task, answer: answers.update({task["id"]: answer["problem"]}))
        self.assertEqual(answers, {"ann": None, "bob": course.say("class_no_answer", 2), "cat": None})


EVIL = "<script>alert(1)</script>\x1b[2J&amp;`|\n# x"


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


class Tables(Folder):
    def entry(self, stage, status="passed", mistake=None):
        earned = stage.points if status == "passed" else 0
        return {"id": stage.id, "title": stage.title, "points": stage.points, "earned": earned, "status": status,
                "failed": status == "wrong", "groups": [
                    {"name": "G", "points": stage.points, "earned": earned, "status": status, "more": 0,
                     "message": EVIL if status == "wrong" else "", "mistake": mistake, "mistake_says": EVIL}]}

    def record(self, id, statuses, more=None, problem=None):
        record = marks.Record(classroom.Student(id, "x", more or {}), [classroom.Seen("a" * 40, DUE)], problem)
        entries = [self.entry(stage, *statuses.get(stage.id, ("passed",))) for stage in STAGES]
        record.result = {"stages": entries, "confined": True, "official": {"commit": "c"}, "seed": 7,
                         "repository": {"sha": "a" * 40}, "compiler": "c++", "not_confined_because": ""}
        record.stages = [marks.StageMark(stage, entry, lateness.Version("a" * 40, DUE, 0), entry["earned"])
                         for stage, entry in zip(STAGES, entries)]
        record.started = {stage.id: DUE for stage in STAGES}
        return record

    def run_of(self, records):
        return types.SimpleNamespace(records=records, stages=STAGES, rules=lateness.Rules({}, STAGES), seed=7, at=DUE)

    def test_page_shows_what_students_wrote_as_text_and_loads_nothing(self):
        records = [self.record("ann", {}), self.record("bob", {2: ("wrong", "no_mean"), 3: ("wrong", None)}, None, EVIL)]
        for language in course.HANDOUTS:
            os.environ["STAGECRAFT_LANG"] = language
            text = "\n".join(class_page.page(self.run_of(records), [(STAGES[4], EVIL, 0.9, ["ann", "bob"])]))
            seen = Seen(text)
            self.assertEqual(seen.open, [])
            self.assertFalse(seen.tags & {"script", "link", "img", "iframe", "object"})
            self.assertEqual(set(seen.links), {"feedback/ann.md", "feedback/bob.md"})
            self.assertNotIn("\x1b", text)
            self.assertIn(course.mistakes(STAGES[2])["no_mean"][language].replace("'", "&#x27;"), text)
            self.assertIn("prefers-color-scheme: dark", text)
            self.assertIn("@media print", text)

    def test_gradebooks_get_the_rosters_own_columns_and_no_0_for_what_was_not_graded(self):
        record = self.record("ann", {}, {"Email address": "ann@example.org", "SIS Login ID": "a7"})
        other = self.record("bob", {}, {"Email address": "bob@example.org", "SIS Login ID": "b8"})
        other.ungraded = "the machine was on fire"
        points = [str(stage.points) for stage in STAGES]
        none = [""] * len(STAGES)
        self.assertEqual(list(marks.moodle([record, other], STAGES)), [
            ["Email address", *(f"Stage {stage.id}" for stage in STAGES), "Total"],
            ["ann@example.org", *points, str(POINTS)], ["bob@example.org", *none, ""]])
        self.assertEqual(list(marks.canvas([record, other], STAGES))[1:], [
            ["Points Possible", "", "", "", "", *points], ["", "", "", "a7", "", *points], ["", "", "", "b8", "", *none]])

    def test_feedback_is_what_was_found_and_when_and_why_it_counts_less(self):
        record = self.record("ann", {2: ("wrong", "no_mean")})
        rules = lateness.Rules({"deadlines": {"all": "2026-10-01T12:00Z"}, "late_percent_a_day": 10}, STAGES)
        record.stages[3] = marks.StageMark(STAGES[3], record.result["stages"][3],
                                           lateness.Version("a" * 40, DUE, 2), 24)
        text = "\n".join(feedback.markdown(record, rules))
        self.assertIn(f"# ann: {POINTS - STAGES[2].points - 6} of {POINTS} points", text)
        self.assertIn("| 3 | Matrix product, B transposed | 30 / 30 | 24 | right | 2 days late", text)
        self.assertNotIn("\x1b", text)
        record.seen, record.problem = [], "gone"
        self.assertIn("gone", "\n".join(feedback.markdown(record, rules)))


class Settings(Folder):
    def test_that_lie_are_refused_in_a_line_and_in_linear_time(self):
        start = time.process_time()
        many = "{" + ", ".join(f'"k{at}": {{"a": []}}' for at in range(100_000)) + "}"
        self.assertEqual(len(strict_json.parse(many)), 100_000)
        for text in "[" * 250_000, '{"a": ' * 50_000, '{"language": "en", "language": "zh"}', "1" * 250_000, "{", "[]":
            self.assertIn("expected a JSON object", self.problem(official.parse, text))
        self.assertLess(time.process_time() - start, 5)

    def test_of_a_class_survive_an_export_and_an_update(self):
        settings = {**official.DEFAULTS, **Lateness.SETTINGS}
        self.put(official.FILE, json.dumps(settings))
        official.write(official.read(self.folder), self.folder)
        self.assertEqual(official.read(self.folder), settings)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
