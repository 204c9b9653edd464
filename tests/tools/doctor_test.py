"""Tests ./stage doctor on this machine, and with Ninja hidden from it."""
import contextlib
import io
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(REPOSITORY / "tools"))
import doctor  # noqa: E402
import selftest  # noqa: E402


class Doctor(unittest.TestCase):
    def ask(self, *arguments, path=None):
        return subprocess.run([str(REPOSITORY / "stage"), "doctor", *arguments], text=True,
                              env=dict(os.environ, PATH=path or os.environ["PATH"]),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)

    def test_a_machine_that_runs_this_test_lacks_nothing(self):
        answer = self.ask()
        self.assertEqual(answer.returncode, 0, answer.stdout)
        self.assertNotIn("MISSING", answer.stdout)

    def test_a_missing_tool_comes_with_its_command(self):
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(sys.executable, f"{folder}/python3")
            for name in "bash env uname id c++ cmake git apt-get dnf pacman".split():
                if shutil.which(name):
                    os.symlink(shutil.which(name), f"{folder}/{name}")
            answer = self.ask(path=folder)
        self.assertEqual(answer.returncode, 1)
        self.assertRegex(answer.stdout, r"MISSING +packages")
        self.assertRegex(answer.stdout, r"-> .*ninja")

    def test_without_python_it_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("bash", "env", "uname"):
                os.symlink(shutil.which(name), f"{folder}/{name}")
            answer = self.ask(path=folder)
        self.assertEqual((answer.returncode, answer.stdout), (1, ""))
        self.assertIn("python3 is missing", answer.stderr)

    def test_the_report_is_one_block_without_names_of_folders(self):
        text = self.ask("--report").stdout
        self.assertTrue(text.startswith("```\ncommit "), text)
        self.assertTrue(text.endswith("\n```\n"), text)
        for word in ("cpu ", "compiler ", "cmake ", "fmt "):
            self.assertIn(word, text)
        self.assertNotIn(str(REPOSITORY), text)

    def test_a_reader_who_has_enough_ends_it_and_every_other_tool_quietly(self):
        for name in ("doctor", "models"):
            reading, writing = os.pipe()
            os.close(reading)
            done = subprocess.run([sys.executable, REPOSITORY / "tools" / f"{name}.py"], stdout=writing,
                                  stderr=subprocess.PIPE, timeout=60)
            os.close(writing)
            self.assertEqual((done.returncode, done.stderr), (128 + signal.SIGPIPE, b""), name)
        for path in (REPOSITORY / "tools").glob("*.py"):  # this and Ctrl-C are the matter of repository.main
            text = path.read_text(encoding="utf-8")
            if 'prog="./stage ' in text:
                self.assertIn("sys.exit(repository.main(main))", text, path)

    def test_selftest_says_why_its_tests_did_not_run(self):
        said = io.StringIO()
        with mock.patch.object(sys, "argv", ["selftest"]), contextlib.redirect_stdout(said), \
                contextlib.redirect_stderr(io.StringIO()), \
                mock.patch.object(selftest, "run_tests", side_effect=selftest.Failed("ctest: No such file")):
            self.assertEqual(selftest.main(), 1)
        self.assertIn("ctest: No such file", said.getvalue())

    def test_versions_are_read_as_tools_print_them(self):
        self.assertEqual(doctor.numbers("cmake version 3.25.1\n\nCMake suite"), (3, 25, 1))
        self.assertEqual(doctor.numbers("none"), ())
        self.assertGreaterEqual(doctor.numbers("cmake version 3.22.1"), doctor.CMAKE)
        self.assertLess(doctor.numbers("cmake version 3.9.6"), doctor.CMAKE)

    def test_what_is_built_needs_no_disk_again(self):
        self.assertEqual(doctor.disk_needed(0), doctor.BUILD_GB + doctor.SPARE_GB)
        self.assertAlmostEqual(doctor.disk_needed(1), doctor.BUILD_GB - 1 + doctor.SPARE_GB)
        self.assertEqual(doctor.disk_needed(100), doctor.SPARE_GB)

    def test_a_model_without_its_weights_is_named(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            self.assertEqual(doctor.model_problem(folder), "missing")
            (folder / "config.json").write_text("{}")
            self.assertIn("but no weights", doctor.model_problem(folder))
            (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\n")
            self.assertIn("git lfs pull", doctor.model_problem(folder))
            (folder / "model.safetensors").write_bytes(bytes(8))
            self.assertEqual(doctor.model_problem(folder), "")


if __name__ == "__main__":
    unittest.main()
