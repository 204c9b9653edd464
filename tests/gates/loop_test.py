"""Tests what the student's loop needs from the gate and the build: kept requests, workers for a debugger and for the
sanitizers, and tests of the student's own:

    loop_test.py BUILD    (where the catalogue of stage 0 is built)

Standard library only; ctest runs it. The commands that use these are tested in tests/course/commands/loop_test.py.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / name) for name in ("course", "tools", "tests/support")]
from build_targets import build  # noqa: E402
from commands import debug  # noqa: E402
from grading import recipe  # noqa: E402
from grading import sanitized  # noqa: E402
from shared import course  # noqa: E402
from testing import gate  # noqa: E402

STAGE = course.stages()[0]
# sets s to a megabyte
MEGABYTE = f"s=x; for i in {' '.join('1' * 20)}; do s=$s$s; done\n"


class Scratch(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="stage-loop-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def ask(self, worker, request):
        response = self.folder / "response"
        subprocess.run([str(worker), str(request), str(response)], check=True)
        return response.read_bytes()


class KeptRequests(Scratch):
    def judge(self, worker):
        """(the kept requests, how each failed)"""
        keep = self.folder / "kept"
        result = gate.run(STAGE, worker, keep=keep)
        failed = result.groups[0].failed_requests
        for _, path in failed:
            self.assertTrue(path.is_file(), path)
        return sorted(keep.glob("*-*")), [kind for kind, _ in failed]

    def worker(self, text):
        path = self.folder / "worker"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def test_are_named_by_test_and_case_and_can_be_asked_again(self):
        build(course.BUILD, "gate", "worker_ours")
        ours = course.BUILD / "course" / "worker_ours"
        requests, failed = self.judge(ours)
        self.assertEqual(failed, [])
        self.assertEqual(requests[0].name, "000-Add.AddsTheExampleByHand-the_example_by_hand")
        self.assertEqual(debug.function_of(requests[0]), "add")
        self.assertGreater(len(self.ask(ours, requests[0])), 100)

    def test_are_listed_with_the_way_they_failed(self):
        self.assertEqual(set(self.judge(self.worker("kill -SEGV $$"))[1]), {"crashed"})
        self.assertEqual(set(self.judge(self.worker("exit 3"))[1]), {"exited"})
        self.assertEqual(set(self.judge(self.worker("echo >$2"))[1]), {"no_answer"})
        catalogue = course.mistakes_folder(STAGE)
        self.assertEqual(set(self.judge(catalogue / "assigns")[1]), {"wrong"})
        self.assertIn("overrun", self.judge(catalogue / "stride_ignored")[1])
        self.assertIn("overrun", self.judge(catalogue / "into_x")[1])

    def test_are_listed_as_refusals_where_the_failure_is_an_error(self):
        header = json.dumps({"__metadata__": {"status": "2", "message": "too long", "overrun": "", "overrun_side": "",
                                              "changed_input": ""}})
        answer = f"\\{len(header):03o}" + "\\0" * 7 + header  # it may start no other program, such as cat
        self.assertEqual(set(self.judge(self.worker(f"printf '{answer}' >$2"))[1]), {"refusal"})

    def test_of_a_worker_that_prints_too_much_say_so_with_a_few_lines(self):
        for lines, is_printed in (("echo one; echo two; echo three; echo four", True), (": >$2; exec >$2", False)):
            result = gate.run(STAGE, self.worker(f"{lines}\n{MEGABYTE}while :; do echo $s; done"),
                                     keep=self.folder / "kept")
            kinds = {kind for kind, _ in result.groups[0].failed_requests}
            self.assertEqual(kinds, {"printed" if is_printed else "crashed"})
            said = result.groups[0].failures[0]
            self.assertEqual("printed more than 16 MB: remove the prints" in said, is_printed, said)
            self.assertEqual(("three" in said, "four" in said), (is_printed, False))

    def test_of_a_worker_that_hangs_while_it_prints_say_how_much(self):
        lines = f"echo one; echo two; echo three; echo four\n{MEGABYTE}echo $s; echo $s; while :; do :; done"
        with mock.patch.dict(os.environ, STAGE_SECONDS="1"):
            result = gate.run(STAGE, self.worker(lines), keep=self.folder / "kept")
        self.assertEqual({kind for kind, _ in result.groups[0].failed_requests}, {"hung"})
        said = result.groups[0].failures[0]
        self.assertIn("did not finish within 1 seconds. By then it had printed 2 MB", said)
        self.assertEqual(("three" in said, "four" in said), (True, False))


class Workers(Scratch):
    @unittest.skipIf(STAGE.is_started, "a student has begun it")
    def test_for_debuggers_and_sanitizers_answer_as_the_others_do(self):
        names = [f"worker_{STAGE.number}{kind}" for kind in ("", "_debug", "_asan")]
        build(course.BUILD, "gate", *names)
        keep = self.folder / "kept"
        gate.run(STAGE, course.BUILD / "course" / names[0], keep=keep)
        request = next(keep.glob("*-*"))
        answers = {self.ask(course.BUILD / "course" / name, request) for name in names}
        self.assertEqual(len(answers), 1)


    @unittest.skipIf(STAGE.is_started or not shutil.which("gdb"), "begun, or no gdb")
    def test_gdb_stops_at_the_staged_function_and_prints_a_row(self):
        build(course.BUILD, "gate", f"worker_{STAGE.number}", f"worker_{STAGE.number}_debug")
        keep = self.folder / "kept"
        gate.run(STAGE, course.BUILD / "course" / f"worker_{STAGE.number}", keep=keep)
        command = debug.command("gdb", STAGE, next(keep.glob("*-Add.AddsXToY-*")), STAGE.functions)
        said = subprocess.run(command, input="row x 1\nkill\nquit\n", text=True, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
        if "ptrace" in said:
            self.skipTest("no debugging allowed here")
        self.assertIn("Breakpoint 1, stagecraft::add", said)
        self.assertRegex(said, r"\$1 = \{(-?[\d.]+,\s+){6}-?[\d.]+\}")  # the first case is 3 x 7


class Writes(Scratch):
    """If a write lands outside an argument, its line is found, even if nothing crashes."""

    def where(self, body):
        """What a student reads if line 5 of add() is this body."""
        name = course.unit_name(STAGE, STAGE.units[0])
        source = self.folder / name
        source.parent.mkdir(parents=True)
        text = ('#include "operators/add.h"\n\nnamespace stagecraft {\nvoid add(MatrixView<const float> x, '
                f"MatrixView<float> y) {{\n  {body}\n}}\n}}  // namespace stagecraft\n")
        source.write_text(text)
        build(course.BUILD, "gate", *(f"worker_{STAGE.number}{kind}" for kind in ("", "_asan")))
        workers = {}
        for kind in ("", "_asan"):
            steps = recipe.recipe(STAGE.number, kind)
            made, worker = self.folder / f"add{kind}.o", self.folder / f"worker{kind}"
            subprocess.run(steps.compile_command(name, made, ROOT / "src"), cwd=self.folder, check=True)
            subprocess.run(steps.link_command({name: made}, worker), cwd=course.BUILD, check=True)
            workers[kind] = worker
        keep = self.folder / "kept"
        failed = gate.run(STAGE, workers[""], keep=keep).groups[0].failed_requests
        request = next(path for kind, path in failed if kind == "overrun")
        complaint, place = sanitized.ask(workers["_asan"], request, STAGE)
        return sanitized.in_words(complaint, place, text)

    def assert_found(self, body):
        lines = self.where(body)
        self.assertIn(f"{course.unit_name(STAGE, STAGE.units[0])}:5", "\n".join(lines))
        self.assertEqual(lines[-1].strip(), body)

    def test_after_the_end_are_located(self):
        self.assert_found("for (std::size_t i = 0; i <= x.cols(); ++i) y.data()[(y.rows() - 1) * y.stride() + i] = 0;")

    def test_between_rows_are_located(self):
        self.assert_found("if (x.rows() > 1) y.data()[x.cols()] = 0;")

    def test_before_the_beginning_are_located(self):
        self.assert_found("y.data()[-3] = 0;")

    def test_to_an_input_are_located(self):
        self.assert_found("if (x.rows() > 1) const_cast<float*>(x.data())[1] = 0;")

    def test_that_nobody_finds_are_said_to_be_so(self):
        self.assertEqual(sanitized.in_words("", None, ""), [course.say("crash_nothing_found")])


class MyTests(Scratch):
    def test_are_a_target_of_their_own_that_nothing_else_builds(self):
        """Configures, but does not build, a repository whose my_tests.cpp does not compile."""
        tree, out = self.folder / "tree", self.folder / "out"
        tree.mkdir()
        for path in ROOT.iterdir():
            if path.name not in ("build", "stages", ".git"):
                (tree / path.name).symlink_to(path)
        shutil.copytree(ROOT / "stages", tree / "stages", ignore=shutil.ignore_patterns("my_tests.cpp"))
        (tree / "stages" / STAGE.folder.name / "my_tests.cpp").write_text("no C++")
        cache = (course.BUILD / "CMakeCache.txt").read_text().splitlines()
        same = [f"-D{line}" for line in cache if line.startswith("CMAKE_CXX_COMPILER:")]
        configured = subprocess.run(["cmake", "-G", "Ninja", "-S", str(tree), "-B", str(out), *same],
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(configured.returncode, 0, configured.stdout)
        self.assertNotIn("my_tests", self.steps(out, "all"))
        self.assertNotIn("my_tests", self.steps(out, f"worker_{STAGE.number}"))
        steps = self.steps(out, f"my_tests_{STAGE.number}")
        for name in "my_tests.cpp", f"mine_{STAGE.number}.dir/__/stages":
            self.assertIn(name, steps)

    def steps(self, out, target):
        return subprocess.run(["ninja", "-C", str(out), "-t", "commands", target], check=True, text=True,
                              stdout=subprocess.PIPE).stdout


if __name__ == "__main__":
    course.BUILD = pathlib.Path(os.path.abspath(sys.argv.pop(1)))
    unittest.main()
