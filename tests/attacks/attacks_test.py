"""What student code can't do: every file here that is an attack is compiled, linked and judged as a
student's answer to stage 2.

    attacks_test.py BUILD    (where worker_attacked and gate are built)

It earns nothing, harms nothing that lies around (a file, a folder, a process, a secret), ends in time and
as its second line says. Attacks that say so do harm where there are no walls: that is tried as well, or
these tests could not fail. Standard library only; ctest runs it. Where nothing can be confined it is
skipped.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools"))
import confine  # noqa: E402
import course  # noqa: E402
import recipe  # noqa: E402

STAGE = course.find_stage("2", course.stages())
SKIPPED = 77
SECONDS = 3  # for a compiler; a worker gets 1 a question
LIMITS = {"seconds": SECONDS, "memory": 1 << 30, "file": 16 << 20}
MOST = 60  # for all of an attack, on a machine that has other things to do
ENDINGS = {"exited", "crashed", "hung", "no_answer", "wrong", "uncompiled"}


def headers():
    """All that a student's code may include of ours, and none of our answers."""
    return (ROOT / "src").rglob("*.h")


class Attacked(unittest.TestCase):
    """With what an attack would like to have: a secret, a canary, a process, a folder."""

    @classmethod
    def setUpClass(cls):
        cls.link = recipe.ninja_runs("tests/worker_attacked")

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="stage-attacked-"))
        self.addCleanup(shutil.rmtree, self.folder)
        for name in "out", "around", "program":
            (self.folder / name).mkdir()
        self.secret = self.folder / "secret"
        self.secret.write_text("the answer\n")
        self.secret.chmod(0o600)
        self.canary = self.folder / "canary"
        self.canary.write_text("alive\n")
        self.process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        self.start = time.monotonic()

    def compile(self, source, reads=()):
        """(the exit code, what the compiler says) for a source; the object is out/object."""
        names = {"ROOT": f'"{ROOT}"', "SECRET": f'"{self.secret}"', "CANARY": f'"{self.canary}"',
                 "FOLDER": f'"{self.folder / "around"}"', "CANARY_PID": self.process.pid}
        words = [self.link[0], "-std=c++20", "-O1", "-w", "-I", ROOT / "src", "-I", HERE,
                 *(f"-D{name}={value}" for name, value in names.items()),
                 "-c", source, "-o", self.folder / "out" / "object"]
        reads = [source, HERE / "attack.h", *headers(), *reads]
        return self.run_confined(words, reads)

    def run_confined(self, words, reads, cwd=None):
        words = confine.confined(words, reads, [self.folder / "out"], compiles=True, **LIMITS)
        with open(self.folder / "said", "w+", errors="replace") as said:
            code = subprocess.run(words, cwd=cwd, stdin=subprocess.DEVNULL, stdout=said,
                                  stderr=subprocess.STDOUT).returncode
            said.seek(0)
            return code, said.read(4000)

    def make(self, source):
        """The worker of a source, or None."""
        code, said = self.compile(source)
        self.assertNotEqual(code, confine.NOT_STARTED, said)
        if code != 0:
            return None
        at = self.link.index("-o")
        worker = self.folder / "program" / "worker"
        done = subprocess.run([*self.link[:at], str(self.folder / "out" / "object"), "-o", str(worker),
                               *self.link[at + 2:]], cwd=course.BUILD, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
        return worker if done.returncode == 0 else None

    def judge(self, source):
        """(how it ended, what it printed, its points)"""
        worker = self.make(source)
        if worker is None:
            return "uncompiled", "", 0
        result = course.run_gate(STAGE, worker, seed=11, keep=self.folder / "kept")
        kinds = {kind for group in result.groups for kind, _ in group.failed_requests}
        failures = "\n".join(failure for group in result.groups for failure in group.failures)
        return "/".join(sorted(kinds)), failures, result.earned

    def check_what_lies_around(self):
        self.assertEqual(self.canary.read_text(), "alive\n")
        self.assertEqual(self.secret.read_text(), "the answer\n")
        self.assertEqual(list((self.folder / "around").iterdir()), [])
        self.assertIsNone(self.process.poll())
        state = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        self.assertIn(state, "RS")
        self.assertEqual(self.left_running(), [])
        self.assertLess(time.monotonic() - self.start, MOST)

    def left_running(self):
        """Processes that run what is in the folder of this attack."""
        found = []
        for exe in pathlib.Path("/proc").glob("[0-9]*/exe"):
            try:
                found += [exe] if str(self.folder) in os.readlink(exe) else []
            except OSError:
                pass
        return found

    def run_without_walls(self, source):
        worker = self.make(source)
        course.run_gate(STAGE, course.BUILD / "tests" / "worker_attacked", keep=self.folder / "kept")
        request = min((self.folder / "kept").glob("*-*"))
        done = subprocess.run([str(worker), str(request), str(self.folder / "response")], timeout=MOST,
                              env=dict(os.environ, STAGE_SEED="11"), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, start_new_session=True, text=True, cwd=self.folder)
        return done.stdout


class Attack(Attacked):
    """One test an attack, made below."""


class WithoutWalls(Attacked):
    """The attacks are no empty threats."""


def attack_test(source, ending):
    def test(self):
        found, said, earned = self.judge(source)
        self.assertNotIn("harmed", said)
        self.assertEqual(found, ending, said)
        self.assertEqual(earned, 0)
        self.check_what_lies_around()
    return test


def harm_test(source):
    def test(self):
        self.assertIn("harmed", self.run_without_walls(source))
    return test


for path in sorted(HERE.glob("*.cpp")):
    head = re.match(r"// Attack: .+\n(?:// .+\n)*?// Ends as: (\w+)\n(// Without walls: harms\n)?",
                    path.read_text())
    if head is None or head[1] not in ENDINGS:
        sys.exit(f"{path.name}: expected '// Attack: ...' and '// Ends as: ' one of {', '.join(ENDINGS)}")
    setattr(Attack, f"test_{path.stem}", attack_test(path, head[1]))
    if head[2]:
        setattr(WithoutWalls, f"test_{path.stem}", harm_test(path))


class Files(Attacked):
    """What stands where a student's file should be."""

    def test_two_gigabytes(self):
        source = self.folder / "large.cpp"
        with source.open("w") as file:
            file.truncate(2 << 30)
        self.assertIsNone(self.make(source))
        self.check_what_lies_around()

    def test_a_name_with_a_newline(self):
        source = self.folder / "two\nlines.cpp"
        source.write_text((HERE / "prints_a_pass.cpp").read_text())
        found, said, earned = self.judge(source)
        self.assertEqual((found, earned), ("wrong", 0), said)
        self.check_what_lies_around()

    def test_a_link_to_a_secret_beside_it(self):
        source = self.folder / "links.cpp"
        (self.folder / "link").symlink_to(self.secret)
        source.write_text(f'#include "{self.folder}/link"\n')
        code, said = self.compile(source)
        self.assertNotEqual(code, 0)
        self.assertNotIn("the answer", said)

    def test_what_compiles_without_walls_reads_the_secret(self):
        source = self.folder / "embeds.cpp"
        source.write_text((HERE / "embeds_a_secret.cpp").read_text())
        self.assertEqual(self.compile(source, reads=[self.secret])[0], 0)


class Judge(Attacked):
    def test_an_honest_answer_passes(self):
        result = course.run_gate(STAGE, course.BUILD / "tests" / "worker_attacked")
        self.assertEqual(result.earned, STAGE.points)

    def test_its_memory_is_closed_to_its_own_user(self):
        """The gate cannot be dumped: what is in /proc about it is root's."""
        worker = self.folder / "worker"
        worker.write_text("#!/bin/sh\nkill -STOP $$\n")
        worker.chmod(0o755)
        self.folder.chmod(0o755)
        user = {"user": 65534} if os.geteuid() == 0 else {}  # root owns its own in any case
        gate = course.BUILD / "tests" / "gate"
        if user and subprocess.run(["test", "-x", str(gate)], **user).returncode != 0:
            self.skipTest("the build folder is closed to others")
        with subprocess.Popen([str(gate), "--gtest_filter=RmsNorm*"], **user, stdout=subprocess.DEVNULL,
                              env=dict(os.environ, STAGE_WORKER=str(worker))) as gate:
            self.addCleanup(gate.kill)
            time.sleep(0.5)
            self.assertIsNone(gate.poll())
            self.assertEqual(os.stat(f"/proc/{gate.pid}/environ").st_uid, 0)
            gate.kill()


if __name__ == "__main__":
    course.BUILD = pathlib.Path(os.path.abspath(sys.argv.pop(1)))
    os.environ["STAGE_SECONDS"] = "1"
    if confine.why_not():
        print(f"not confined: {confine.why_not()}")
        sys.exit(SKIPPED)
    unittest.main()
