"""./stage grade with the built tree: grades one hostile, half-finished repository once.

    grade_test.py BUILD    (where the targets grading, mistakes_00 and mistakes_01 are built)

Standard library only; ctest runs it.
"""
import contextlib
import importlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / name) for name in ("course", "tools", "tests/support")]
from classroom import repositories  # noqa: E402
from grading import grader  # noqa: E402
from grading import official_tree  # noqa: E402
from grading import programs  # noqa: E402
from grading import recipe  # noqa: E402
from grading import report  # noqa: E402
from grading import sanitized  # noqa: E402
from grading import score  # noqa: E402
from grading import submission  # noqa: E402
from grading import workplace  # noqa: E402
from mistakes import catalogue  # noqa: E402
from rules import plain_objects  # noqa: E402
from sandbox import limited  # noqa: E402
from shared import course  # noqa: E402
from testing import building  # noqa: E402
from testing import progress  # noqa: E402
from testing import stage_here  # noqa: E402
from testing import verdict  # noqa: E402
import processes  # noqa: E402
from git_folder import commit, git  # noqa: E402

STAGES = course.stages()
RUDE = r"""#include "operators/add.h"
#include <cstdio>
namespace stagecraft {
void add(MatrixView<const float>, MatrixView<float>) { std::printf("\xff\xed\xa0\x80 \x1b[2J::error::x"); }
}
"""
CRASH = """#include "operators/swiglu.h"
namespace stagecraft {
void silu(std::span<const float>, std::span<float>);
void silu(std::span<const float>, std::span<float>) {
  volatile int* nowhere = nullptr;
  *nowhere = 1;
}
"""


class Repository(unittest.TestCase):
    """A student's repository with the starters."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="stage grade ")).resolve()
        self.addCleanup(shutil.rmtree, self.folder)
        for stage in STAGES:
            for unit in stage.units:
                try:
                    self.put(course.unit_name(stage, unit), stage.starter(unit))
                except course.Problem as problem:
                    self.skipTest(str(problem))

    def put(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def answer(self, stage, unit=None):
        """Writes our answer in the student's file."""
        for one in stage.units if unit is None else [unit]:
            text = "\n".join((ROOT / answer).read_text() for answer in one["answers"])
            self.put(course.unit_name(stage, one), text)

    def commit(self):
        git(self.folder, "init", "-q", "-b", "main")
        commit(self.folder)

    def collect(self, place=None):
        return repositories.collect(str(place or self.folder), STAGES)


class Submission(Repository):
    NAME = course.unit_name(STAGES[2], STAGES[2].units[0])

    def refused(self, place=None):
        return self.collect(place).refused

    def test_is_every_file_of_the_registry_and_no_other(self):
        self.put("stages/02-rms-norm/my_tests.cpp", "x")
        self.put("course/judge/gate.cpp", "x")
        handed_in = self.collect()
        self.assertEqual(sorted(handed_in.files), sorted(submission.names(STAGES)))
        self.assertEqual((handed_in.refused, handed_in.sha), ({}, None))

    def test_follows_no_link_reads_no_pipe_and_nothing_large(self):
        secret = self.put("secret", "not yours")
        path = self.folder / self.NAME
        for make, why in {
            lambda: path.symlink_to(secret): "grade_no_file",
            lambda: path.mkdir(): "grade_no_file",
            lambda: os.mkfifo(path): "grade_no_file",
            lambda: path.write_bytes(b"/" * (submission.MAX_BYTES + 1)): "grade_large",
            lambda: None: "grade_missing",
        }.items():
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            make()
            self.assertEqual(self.refused(), {self.NAME: why})
        path.write_bytes(b"/" * submission.MAX_BYTES)
        self.assertEqual(self.refused(), {})

    def test_follows_no_link_in_a_folders_place(self):
        stage = (self.folder / self.NAME).parent
        stage.rename(self.folder / "elsewhere")
        stage.symlink_to(self.folder / "elsewhere")
        self.assertEqual(self.refused(), {self.NAME: "grade_no_file"})

    def test_of_a_repository_is_what_was_committed(self):
        path = self.folder / self.NAME
        self.put(self.NAME, "committed")
        self.commit()
        self.assertFalse(self.collect().is_changed)
        self.assertFalse(submission.from_folder(self.folder, STAGES).is_changed)
        path.write_text("not committed")
        for handed_in in self.collect(), submission.from_folder(self.folder, STAGES):
            self.assertTrue(handed_in.is_changed)
            self.assertEqual(handed_in.files[self.NAME], b"not committed")
        cloned = self.collect(f"file://{self.folder}")
        self.assertEqual((cloned.files[self.NAME], cloned.sha), (b"committed", handed_in.sha))

    def test_of_a_repository_follows_no_link_either(self):
        path = self.folder / self.NAME
        path.unlink()
        path.symlink_to("/etc/passwd")
        large = course.unit_name(STAGES[3], STAGES[3].units[0])
        self.put(large, b"/" * (submission.MAX_BYTES + 1))
        self.commit()
        expected = {self.NAME: "grade_no_file", large: "grade_large"}
        self.assertEqual(self.refused(f"file://{self.folder}"), expected)
        self.assertEqual(self.refused(self.folder / ".git"), expected)

    def test_does_not_take_the_repository_around_it_for_its_own(self):
        self.commit()
        shutil.copytree(self.folder / "stages", self.folder / "inner" / "stages")
        self.assertIsNone(self.collect(self.folder / "inner").sha)

    def test_is_never_that_of_another_repository(self):
        """Git's ways to refer to another repository: `commondir`, alternates, a file or a link instead of .git."""
        self.put(self.NAME, "somebody else's")
        self.commit()
        other = self.folder / ".git"
        with tempfile.TemporaryDirectory() as place:
            thief = pathlib.Path(place) / "thief"
            for name, leads in ("commondir", other), ("objects/info/alternates", other / "objects"):
                shutil.rmtree(thief, ignore_errors=True)
                for folder in "objects/info", "refs/heads":
                    (thief / folder).mkdir(parents=True)
                shutil.copy(other / "HEAD", thief / "HEAD")
                shutil.copy(other / "refs" / "heads" / "main", thief / "refs" / "heads" / "main")
                (thief / name).write_text(f"{leads}\n")
                for asked in thief, f"file://{thief}":
                    with self.assertRaisesRegex(course.Problem, "points to another place"):
                        self.collect(asked)
            shutil.rmtree(thief)
            thief.symlink_to(self.folder)
            for asked in thief, f"{thief}/", f"file://{thief}/":
                with self.assertRaisesRegex(course.Problem, "is a link"):
                    self.collect(asked)
            mine = pathlib.Path(place) / "mine"
            for lead in (lambda path: path.symlink_to(other), lambda path: path.write_text(f"gitdir: {other}\n")):
                shutil.rmtree(mine, ignore_errors=True)
                mine.mkdir()
                lead(mine / ".git")
                handed_in = self.collect(mine)  # its own files (there are none), and no other repository's commit
                self.assertEqual((handed_in.files, handed_in.sha), ({}, None))

    def test_that_is_not_there_is_a_problem_in_a_line(self):
        for place in "/nowhere", "file:///nowhere", "ext::sh -c true":
            with self.assertRaises(course.Problem):
                self.collect(place)
        self.commit()
        with mock.patch.object(repositories, "from_copy", side_effect=PermissionError(13, "Permission denied")):
            for place in self.folder / ".git", f"file://{self.folder}":
                with self.assertRaisesRegex(course.Problem, "Permission denied"):
                    self.collect(place)
            self.assertIsNone(self.collect().sha)  # the files are there, the commit is not


class Grade(Repository):
    def test_of_every_stage_says_what_became_of_it(self):
        hello, silu, norm, product, block, attention = (
            course.find_stage(number, STAGES) for number in ("0", "1", "2", "3", "4", "6"))
        wrong = catalogue.source_of(catalogue.folder_of(hello), "assigns")
        self.put(course.unit_name(hello, hello.units[0]), wrong)
        self.put(course.unit_name(silu, silu.units[0]), CRASH + (
            "void swiglu(std::span<const float>, std::span<const float>, std::span<float>) {}\n}\n"))
        self.answer(norm)
        self.put(course.unit_name(product, product.units[0]), "\n#include \"operators/rms_norm.cpp\"\n")
        path = self.folder / course.unit_name(block, block.units[0])
        path.unlink()
        path.symlink_to(ROOT / block.units[0]["answers"][0])
        self.answer(attention, attention.units[0])
        last = STAGES[-1]
        name = course.unit_name(last, last.units[0])
        self.put(name, (self.folder / name).read_text() + "// a line of my own\n")

        result = grader.grade(self.collect(), seed=7)
        entries = {entry["id"]: entry for entry in result["stages"]}
        self.assertEqual(sorted(entries), [stage.id for stage in STAGES])
        self.assertEqual({number: entries[number]["status"] for number in (0, 1, 2, 3, 4, 6, last.id)},
                         {0: "wrong", 1: "crashed", 2: "passed", 3: "refused", 4: "refused", 6: "begun",
                          last.id: "unwritten" if building.has(last) else "unjudged"})
        self.assertEqual(result["failed"], [0, 1, 3, 4])
        self.assertEqual(result["earned"], norm.points + attention.groups[0]["points"])
        # An optional stage without any code is not begun. (Where it is not judged, nobody knows.)
        self.assertEqual(result["points"],
                         sum(stage.points for stage in STAGES) - (last.points if building.has(last) else 0))
        self.assertEqual(entries[0]["groups"][0]["mistake"], "assigns")
        self.assertEqual(entries[last.id]["started"], not building.has(last))
        # Lines of the student's files: an answer of ours that cannot be included, and the place of a crash.
        self.assertEqual((entries[3]["line"]["file"], entries[3]["line"]["line"]),
                         (course.unit_name(product, product.units[0]), 2))
        line = entries[1]["line"]
        if line is not None:  # no sanitizer on this machine
            self.assertEqual((line["file"], line["line"]), (course.unit_name(silu, silu.units[0]), 6))
        self.check_reports(result)

    def test_depends_on_every_module_that_computes_it(self):
        """Or an old result would count as done after a change to that module."""
        for module in list(sys.modules.values()):
            path = pathlib.Path(getattr(module, "__file__", None) or "/")
            if ROOT / "course" in path.parents and path.parent.name != "classroom":
                folder = path.relative_to(ROOT).parent.as_posix()
                self.assertTrue(any(folder == root for root in official_tree.OFFICIAL), f"{path}: not in official_tree.OFFICIAL")

    def test_and_a_verdict_of_stage_test_depend_on_all_that_exists_and_decides(self):
        for name in official_tree.OFFICIAL:
            self.assertTrue((ROOT / name).exists(), name)
        self.assertEqual(len(set(official_tree.OFFICIAL)), len(official_tree.OFFICIAL))
        for name in ("course/rules", "course/testing", "stages/own_work.json", "CMakeLists.txt", "CMakePresets.json",
                     "tools/cuda_check.py", "tools/cuda_compile.py", "tools/strict_json.py"):
            self.assertIn(name, progress.OFFICIAL)

    def test_a_stage_that_this_build_leaves_out_is_not_judged(self):
        last = STAGES[-1]
        name = course.unit_name(last, last.units[0])
        self.put(name, (self.folder / name).read_text() + "// a line of my own\n")
        handed_in = self.collect()
        with mock.patch.object(building, "listed", lambda: {"stages": {}}):
            entry, = grader.grade(handed_in, seed=7, stages=[last])["stages"]
            with mock.patch.object(building, "build", lambda *_: "unknown target"):
                result = stage_here.test(last)
        self.assertEqual((entry["status"], entry["earned"], entry["failed"]), ("unjudged", 0, False))
        self.assertEqual({group.status for group in result.groups}, {"unjudged"})
        self.assertIn("Linux and g++", result.groups[0].failures[0])

    def check_reports(self, result):
        text = "\n".join(report.text(json.loads(json.dumps(result))))
        for stage in STAGES:
            self.assertIn(f"stage {stage.id} · {stage.title['en']}: ", text)
        open_to_all = {**result, "confined": False, "not_confined_because": "no sandbox here"}
        for told in report.text, report.markdown:
            self.assertIn("no sandbox here", "\n".join(told(open_to_all)))
            self.assertNotIn("not confined", "\n".join(told({**result, "confined": True})))
        table = "\n".join(report.markdown(result))
        self.assertIn("| 2 | RMSNorm | 20 / 20 | right |", table)
        marks = list(report.annotations(result))
        self.assertTrue(any(mark.startswith(
            "::error file=stages/03-matmul-transb/matmul_transb.cpp,line=2,") for mark in marks), marks)

    def test_of_code_that_prints_bytes_that_are_no_text_is_shown_harmlessly(self):
        stage = STAGES[0]
        self.put(course.unit_name(stage, stage.units[0]), RUDE)
        result = grader.grade(self.collect())
        self.assertEqual(result["failed"], [stage.id])
        text = "\n".join(report.text(result))
        self.assertIn("[2J::error::x", text)
        self.assertNotIn("\x1b", text)
        json.dumps(result, ensure_ascii=False).encode()

    def test_of_a_sum_that_begins_without_a_value_says_so(self):
        stage = STAGES[3]
        answer = (ROOT / "course/mistakes/03-matmul-transb/matmul_transb.cpp").read_text()
        self.put(course.unit_name(stage, stage.units[0]), answer.replace("float sum = 0.0f;", "float sum;"))
        entry, = grader.grade(self.collect(), 7, 1, [stage])["stages"]
        self.assertEqual(entry["status"], "wrong")
        command = recipe.recipe(stage.number).compile[course.unit_name(stage, stage.units[0])]
        # Clang's pattern for a float is NaN, which may have any cause.
        has_unset = "-ftrivial-auto-var-init=pattern" in command and "clang" not in official_tree.compiler()
        self.assertEqual("a local variable that never got a value" in entry["groups"][0]["message"], has_unset)

    def test_that_hung_says_so(self):
        work = grader.Work(self.collect(), 7, self.folder / "work")
        group = verdict.Group("Add", 3)
        group.status, group.failures, group.failed_requests = "wrong", ["it hung"], [("hung", "request")]
        self.assertEqual(work.describe(group, STAGES[0], {})["status"], "hung")
        group.failed_requests, group.is_untried = [], True  # it hung in another group
        self.assertEqual(work.describe(group, STAGES[0], {})["status"], "hung")
        group.failed_requests = [("exited", "request")]
        self.assertEqual(work.describe(group, STAGES[0], {})["status"], "wrong")

    def test_of_a_branch_that_the_teacher_does_not_read_says_so(self):
        other_branch = importlib.import_module("commands.grade").other_branch
        event = self.put("event.json", '{"repository": {"default_branch": "main"}}')
        on_github = {"GITHUB_REF_TYPE": "branch", "GITHUB_EVENT_PATH": str(event)}
        for environment, expected in (
                ({**on_github, "GITHUB_REF_NAME": "wip"}, ("wip", "main")),
                ({**on_github, "GITHUB_REF_NAME": "main"}, None),
                ({**on_github, "GITHUB_REF_NAME": "v1", "GITHUB_REF_TYPE": "tag"}, None),
                ({**on_github, "GITHUB_REF_NAME": "wip", "GITHUB_EVENT_PATH": "none"}, None),
                ({"CI_COMMIT_BRANCH": "wip", "CI_DEFAULT_BRANCH": "main"}, ("wip", "main")), ({}, None)):
            with mock.patch.dict(os.environ, environment, clear=True):
                self.assertEqual(other_branch(), expected)

    def test_of_starters_is_nothing_and_no_fault_and_compiles_nothing(self):
        with mock.patch.object(grader.Work, "make", side_effect=AssertionError):
            result = grader.grade(self.collect())
        self.assertEqual((result["earned"], result["failed"]), (0, []))
        self.assertEqual({entry["status"] for entry in result["stages"]}, {"unwritten"})

    def test_an_optional_stage_that_was_deleted_is_not_begun_and_another_is_refused(self):
        optional = next(stage for stage in STAGES if stage.is_optional)
        for stage in optional, STAGES[2]:
            shutil.rmtree((self.folder / course.unit_name(stage, stage.units[0])).parent)
        result = grader.grade(self.collect())
        self.assertEqual((result["failed"], result["points"]),
                         ([STAGES[2].id], sum(stage.points for stage in STAGES) - optional.points))
        entry = result["stages"][optional.id]
        self.assertEqual((entry["status"], entry["started"], "message" in entry), ("unwritten", False, False))
        (self.folder / course.unit_name(optional, optional.units[0])).parent.symlink_to("/etc")
        self.assertEqual(grader.grade(self.collect())["failed"], [STAGES[2].id, optional.id])

    def test_a_name_with_other_letters_is_said_as_in_the_source(self):
        for symbol, name in (("_ZN10stagecraftL7größeENS_10MatrixViewIKfEE", "größe"), ("größe", "größe"),
                             ("_Z9größe_999", "größe_9"), ("_Z99größe", "größe")):
            self.assertEqual(plain_objects.in_source(symbol.encode()).decode(), name)

    def test_a_compiler_that_does_not_end_is_ended(self):
        ended = limited.run(["sh", "-c", "echo so far; sleep 60 & sleep 60"], self.folder, 0.5)
        self.assertEqual((ended.code, ended.said), (None, "so far\n"))

    def interrupted(self, code):
        """How long a Python program runs after Ctrl-C, once it has started two commands."""
        program = subprocess.Popen([sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path[:2]}\n{code}"],
                                   cwd=self.folder, stderr=subprocess.DEVNULL)
        self.assertEqual(len(processes.wait_for_descendants(program.pid, 2, seconds=60)), 2)
        program.send_signal(signal.SIGINT)
        start = time.monotonic()
        program.wait(60)
        return time.monotonic() - start

    @unittest.skipUnless(sys.platform.startswith("linux"), "only Linux tells who descends from whom")
    def test_ctrl_c_ends_what_runs_at_once(self):
        command = "limited.run(['sh', '-c', 'sleep 60; true'], '.', 100)"
        self.assertLess(self.interrupted(f"from sandbox import limited; {command}"), limited.GRACE / 2)
        graded = f"""
from unittest import mock
from grading import grader, official_tree, submission
from sandbox import limited
def slow(*_):
    {command}
with mock.patch.multiple(official_tree, prepare=lambda: None), mock.patch.object(grader.Work, "grade", slow):
    grader.grade(submission.Submission("x", "a" * 40), stages=[type("Stage", (), {{"id": 0}})] * 9, seed=1, jobs=1)
"""
        self.assertLess(self.interrupted(graded), limited.GRACE / 2)

    def test_a_compiler_that_ends_without_a_word_is_asked_again_and_the_verdict_says_how_it_ended(self):
        starved = ["sh", "-c", "echo x >>tries; kill -KILL $$"]
        ended = limited.run_patiently(starved, self.folder, 60, programs.is_a_verdict)
        self.assertEqual((ended.how, (self.folder / "tries").read_text()), ("signal 9 (Killed)", "x\nx\n"))
        complains = ["sh", "-c", "echo x >>tries; echo 'stages/a.cpp:3:1: error: no'; exit 1"]
        limited.run_patiently(complains, self.folder, 60, programs.is_a_verdict)
        self.assertEqual((self.folder / "tries").read_text(), "x\nx\nx\n")
        work = grader.Work(self.collect(), 7, self.folder / "work")
        with self.assertRaisesRegex(programs.Unsure, r"signal 9 \(Killed\)"):
            work.run(starved, self.folder, "a.cpp")

    def test_a_program_that_the_system_killed_may_be_right(self):
        for language in course.HANDOUTS:
            for number, is_starved in (signal.SIGKILL, True), (signal.SIGSEGV, False):
                result = verdict.Result(STAGES[1])
                with course.in_language(language):
                    result.groups[0].status, result.groups[0].failures = "wrong", [
                        course.say("crashed", signal.strsignal(number))]
                self.assertEqual(grader.is_starved(result), is_starved)

    def test_an_entry_for_which_the_machine_may_be_to_blame_is_not_stored_before_the_third_time(self):
        self.answer(STAGES[0])
        work = grader.Work(self.collect(), {0: 7}, self.folder / "work")
        stored = {}
        memory = types.SimpleNamespace(get=stored.get, put=stored.__setitem__)
        for problem, tries in (("killed", 1), ("killed", 2), ("killed", None), ("no", None)):  # None: stored as it is
            error = programs.Unsure(problem) if problem == "killed" else programs.NotMade(problem)
            with mock.patch.object(programs.Programs, "compile", side_effect=error):
                entry = work.remembered(STAGES[0], memory)
            self.assertEqual((entry["status"], entry.get("starved", False)), ("uncompiled", tries is not None))
            self.assertEqual(list(stored.values()), [{"tries": tries} if tries else entry])
            work.starved.clear()
            if not tries:
                stored.clear()
        self.addCleanup(limited.is_stopping.clear)
        limited.is_stopping.set()  # Ctrl-C: how the compiler ended says nothing
        with self.assertRaises(KeyboardInterrupt):
            work.remembered(STAGES[0], memory)
        self.assertEqual(stored, {})

    def test_code_that_prints_without_end_is_not_listened_to_for_long(self):
        start = time.monotonic()
        self.assertEqual(sanitized.printed(["yes"]), "")
        self.assertEqual(sanitized.printed(["sh", "-c", "head -c 3000000 /dev/zero; echo; echo Assertion x failed"])
                         [-18:], "Assertion x failed")
        self.assertLess(time.monotonic() - start, sanitized.SECONDS)

    def test_a_score_is_of_the_whole_program_and_only_at_equal_text(self):
        chosen = STAGES[:2]
        for stage in chosen:
            self.answer(stage)
        official_tree.prepare()
        texts = score.Texts(7)
        self.assertGreater(score.score(self.collect(), chosen, texts), 1)
        self.assertEqual(len({words[2] for words, _ in texts.expected}), score.RUNS)
        name = course.unit_name(chosen[0], chosen[0].units[0])
        self.put(name, catalogue.source_of(catalogue.folder_of(chosen[0]), "assigns"))
        self.assertEqual(score.score(self.collect(), chosen, texts), 0)
        lies = "int main_of_mine = (std::puts(\"[64 tokens, 99999 tokens/s\"), std::_Exit(0), 0);\n"
        self.put(name, "#include <cstdio>\n#include <cstdlib>\n" + (self.folder / name).read_text() + lies)
        self.assertEqual(score.score(self.collect(), chosen, texts), 0)

    def test_two_definitions_are_named_with_their_files(self):
        stage = course.find_stage("6", STAGES)
        for unit in stage.units:
            self.answer(stage, unit)
        name = course.unit_name(stage, stage.units[1])
        self.put(name, (self.folder / name).read_text() + "\nint twice() { return 1; }\n")
        first = course.unit_name(stage, stage.units[0])
        self.put(first, (self.folder / first).read_text() + "\nint twice() { return 1; }\n")
        work = grader.Work(self.collect(), 7, self.folder / "work")
        official_tree.prepare()
        with self.assertRaises(programs.NotMade) as caught:
            work.make(stage)
        self.assertIn(first, str(caught.exception))
        self.assertNotIn(str(self.folder), str(caught.exception))


class Report(unittest.TestCase):
    def test_quotes_what_a_student_printed_without_obeying_it(self):
        self.assertEqual(report.fenced("a ```` b").splitlines()[0], "`````text")
        lines = report.without_commands(["::error::mine"])
        self.assertRegex(lines[0], r"^::stop-commands::\w{32}$")
        self.assertEqual(lines[2], f"::{lines[0].split('::')[2]}::")
        entry = {"id": 1, "title": {"en": "a, b: c", "zh": ""}, "line": {
            "file": "stages/x.cpp", "line": 3, "message": "50%\n::warning::more"}}
        self.assertEqual(list(report.annotations({"stages": [entry]})), [
            "::error file=stages/x.cpp,line=3,title=1 · a%2C b%3A c::50%25%0A::warning::more"])


@contextlib.contextmanager
def built(folder):
    """Uses the official tree that ctest's fixtures have built in that folder."""
    course.BUILD = folder
    workplace.PLACE = folder / "grading_test" / "place"
    with mock.patch.object(building, "build", lambda *targets, limited, warn=True: None):
        yield


if __name__ == "__main__":
    os.environ["STAGECRAFT_LANG"] = "en"
    with built(pathlib.Path(os.path.abspath(sys.argv.pop(1)))):
        unittest.main()
