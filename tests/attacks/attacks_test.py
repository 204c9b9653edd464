"""What student code cannot do: each file here that is an attack is compiled, linked and judged as a student's answer to
stage 2.

    attacks_test.py BUILD [CLASS...]    (where worker_attacked and gate are built)

Each attack is checked for three things. Did it earn points? Did it harm its surroundings (a file, a folder, a process,
a secret)? Was another stage of the same student graded, in time and in little memory? It must end as its line "Ends as"
says. Attacks with the line "Without confinement: harms" do harm where there is no sandbox; this is tried as well, because
otherwise these tests could not fail. Standard library only; ctest runs it. It is skipped on machines that cannot
confine.
"""
import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / name) for name in ("course", "tools", "tests/support")]
from grading import grader  # noqa: E402
from grading import programs  # noqa: E402
from grading import workplace  # noqa: E402
from sandbox import confine  # noqa: E402
from sandbox import limited  # noqa: E402
from shared import course  # noqa: E402
from testing import building  # noqa: E402
from testing import gate  # noqa: E402
import processes  # noqa: E402
from grading import recipe  # noqa: E402
from grading import submission  # noqa: E402

HELLO, STAGE = (course.find_stage(number, course.stages()) for number in "02")
SKIPPED = 77
SECONDS = int(os.environ.get("STAGE_ATTACK_SECONDS", 3))  # for a compiler; a worker gets 1 per question
LIMITS = {"seconds": SECONDS, "memory": 1 << 30, "file": 16 << 20}
MOST = 60 + 8 * SECONDS  # per attack, on a busy machine
MOST_MEMORY = 300 << 10  # kilobytes of the processes that judge one student: the gate and Python
MOST_OF_A_CHILD = 2200 << 10  # kilobytes of a compiler or a worker
ENDINGS = {"exited", "crashed", "printed", "hung", "no_answer", "wrong", "uncompiled"}


def headers():
    """The headers of ours that a student's code may include, and none of our answers."""
    return (ROOT / "src").rglob("*.h")


class Attacked(unittest.TestCase):
    """The targets of an attack: a secret, a canary, a process, a folder."""

    @classmethod
    def setUpClass(cls):
        cls.link = recipe.ninja_runs("course/worker_attacked")

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
        self.peak = 0  # memory of the judge, in kilobytes

    def compile(self, source, reads=()):
        """(the exit code, the compiler's output) for a source; the object is out/object."""
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

    def make(self, source, tries=1):
        """The worker of a source, or None. tries: 2 if a busy machine may give the compiler too little time."""
        code, said = self.compile(source)
        if code != 0 and tries > 1:
            return self.make(source, tries - 1)
        self.assertNotEqual(code, confine.NOT_STARTED, said)
        if code != 0:
            return None
        at = self.link.index("-o")
        worker = self.folder / "program" / "worker"
        done = subprocess.run([*self.link[:at], str(self.folder / "out" / "object"), "-o", str(worker),
                               *self.link[at + 2:]], cwd=course.BUILD, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
        return worker if done.returncode == 0 else None

    def judge(self, source, tries=1):
        """(how it ended, its output, its points)"""
        worker = self.make(source, tries)
        if worker is None:
            return "uncompiled", (self.folder / "said").read_text(errors="replace")[:4000], 0
        result = gate.run(STAGE, worker, seed=11, keep=self.folder / "kept")
        self.peak = result.peak
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
        """Processes that run a program in the folder of this attack."""
        found = []
        for exe in pathlib.Path("/proc").glob("[0-9]*/exe"):
            try:
                found += [exe] if str(self.folder) in os.readlink(exe) else []
            except OSError:
                pass
        return found

    def run_without_confinement(self, source):
        worker = self.make(source)
        gate.run(STAGE, course.BUILD / "course" / "worker_attacked", keep=self.folder / "kept")
        request = min((self.folder / "kept").glob("*-*"))
        done = subprocess.run([str(worker), str(request), str(self.folder / "response")], timeout=MOST,
                              env=dict(os.environ, STAGE_SEED="11"), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, start_new_session=True, text=True, cwd=self.folder)
        return done.stdout


class Attack(Attacked):
    """One test per attack, made below."""


class Graded(Attacked):
    """What an attack cannot do to the rest of its repository."""

    def grade(self, text):
        handed_in = submission.Submission(self.folder)
        for stage, answer in (HELLO, [(ROOT / HELLO.units[0]["answers"][0]).read_text()]), (STAGE, [text]):
            for unit, one in zip(stage.units, answer):
                handed_in.files[course.unit_name(stage, unit)] = one.encode()
        with mock.patch.object(programs, "COMPILE_SECONDS", SECONDS):
            return grader.grade(handed_in, 11, 1, [HELLO, STAGE])["stages"]

    def as_handed_in(self, source):
        names = {"ROOT": f'"{ROOT}"', "SECRET": f'"{self.secret}"', "CANARY": f'"{self.canary}"',
                 "FOLDER": f'"{self.folder / "around"}"', "CANARY_PID": self.process.pid}
        text = source.read_text().replace('#include "attack.h"\n', (HERE / "attack.h").read_text())
        return "".join(f"#define {name} {value}\n" for name, value in names.items()) + text.replace(
            "#pragma once\n", "")

    def test_a_number_that_no_integer_holds_is_no_problem_of_ours(self):
        """A compiler message at which an earlier grader crashed."""
        self.check(self.grade(f'#line 7 "{course.unit_name(STAGE, STAGE.units[0])}:{"9" * 4500}: error: x"\nint x = ;\n'),
                   "uncompiled")

    def test_what_no_line_of_ours_has_foreseen_costs_that_stage_alone(self):
        def judge(work, stage):
            if stage.id == STAGE.id:
                raise KeyError("?")
            return real(work, stage)
        real = grader.Work.judge
        with mock.patch.object(grader.Work, "judge", judge), mock.patch("traceback.print_exc"):
            self.check(self.grade("int x = ;\n"), "wrong")

    def test_a_program_without_threads_is_judged_again_alone_and_not_remembered(self):
        """Other programs of the same user may have used up the threads."""
        text, taken = (ROOT / STAGE.units[0]["answers"][0]).read_text(), []
        starving = "#include <system_error>\n" + text.replace(
            ") {\n", ') {\n  throw std::system_error(EAGAIN, std::generic_category());\n', 1)
        real, alone = gate.judge, workplace.Turns.alone

        def judge(stage, worker, seed, kept, known, built, turns):
            result = real(stage, worker, seed, kept, known, built, turns)
            if stage.id == STAGE.id and turns is not gate.NoTurns:  # as if others had taken all threads
                result.groups[0].status, result.groups[0].failures = "wrong", [f"what(): {programs.STARVED}"]
            return result
        stored = {}
        memory = mock.Mock(get=stored.get, put=stored.__setitem__)
        for source, is_right in (text, True), (starving, False):
            handed_in = submission.Submission(self.folder)
            handed_in.files = {**course.starters(), course.unit_name(STAGE, STAGE.units[0]): source.encode()}
            stored.clear()
            with mock.patch.object(gate, "judge", judge), mock.patch.object(
                    workplace.Turns, "alone", lambda turns: taken.append(1) or alone(turns)):
                entry, = grader.grade(handed_in, 11, 1, [STAGE], memory)["stages"]
            self.assertEqual((entry["status"] == "passed", entry.get("starved", False)), (is_right, not is_right), entry)
            self.assertEqual(list(stored.values()), [entry if is_right else {"tries": 1}])
        self.assertEqual(len(taken), 2)

    def test_answers_over_which_the_judge_ends_cost_that_stage_alone(self):
        """The gate is made to end, as a bug of its own would do."""
        real = gate.run_judge

        def run_judge(suites, worker, environment, folder):
            doomed = "RmsNorm" in suites and worker != "/bin/false"
            return (None, "signal 6") if doomed else real(suites, worker, environment, folder)
        with mock.patch.object(gate, "run_judge", run_judge):
            self.check(self.grade((ROOT / STAGE.units[0]["answers"][0]).read_text()), "wrong", "signal 6")

    def test_a_judge_that_never_ends_is_a_problem_of_ours(self):
        with mock.patch.dict(os.environ, STAGE_GATE_SECONDS="0.0"), mock.patch.object(
                gate, "run_judge", lambda *_: (None, "signal 6")), self.assertRaises(course.Problem):
            self.grade((ROOT / STAGE.units[0]["answers"][0]).read_text())

    def check(self, entries, status=None, told=""):
        right, wrong = entries
        self.assertEqual((right["status"], right["earned"]), ("passed", HELLO.points))
        self.assertEqual((wrong["earned"], wrong["failed"]), (0, True), wrong)
        if status:
            self.assertEqual(wrong["status"], status)
        text = json.dumps(entries, ensure_ascii=False)
        self.assertLess(len(text.encode()), 200_000)
        self.assertIn(told, text)
        for said in "Traceback", "harmed", "the answer\n":
            self.assertNotIn(said, text)
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, MOST_OF_A_CHILD)
        self.check_what_lies_around()


def graded_test(source):
    def test(self):
        self.check(self.grade(self.as_handed_in(source)))
    return test


class WithoutConfinement(Attacked):
    """Proves that the attacks would work without a sandbox."""


def attack_test(source, ending):
    def test(self):
        found, said, earned = self.judge(source, 1 if ending == "uncompiled" else limited.TRIES)
        self.assertNotIn("harmed", said)
        self.assertEqual(found, ending, said)
        self.assertLess(len(said), 1 << 20)
        self.assertLess(self.peak + resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, MOST_MEMORY)
        self.assertEqual(earned, 0)
        self.check_what_lies_around()
    return test


def harm_test(source):
    def test(self):
        self.assertIn("harmed", self.run_without_confinement(source))
    return test


for path in sorted(HERE.glob("*.cpp")):
    head = re.match(r"// Attack: .+\n(?:// .+\n)*?// Ends as: (\w+)\n(// Without confinement: harms\n)?",
                    path.read_text())
    if head is None or head[1] not in ENDINGS:
        sys.exit(f"{path.name}: expected '// Attack: ...' and '// Ends as: ' one of {', '.join(ENDINGS)}")
    setattr(Attack, f"test_{path.stem}", attack_test(path, head[1]))
    setattr(Graded, f"test_{path.stem}", graded_test(path))
    if head[2]:
        setattr(WithoutConfinement, f"test_{path.stem}", harm_test(path))


class Files(Attacked):
    """What may be in the place of a student's file."""

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
        result = gate.run(STAGE, course.BUILD / "course" / "worker_attacked")
        self.assertEqual(result.earned, STAGE.points)

    def test_a_program_that_is_slow_in_every_answer_is_asked_for_some_time_only(self):
        source = self.folder / "slow.cpp"
        source.write_text('#include "attack.h"\n[[gnu::constructor]] static void wait() { usleep(600000); }\n'
                          "static void attack() {}\n")
        done = subprocess.run([course.BUILD / "course" / "gate", "--gtest_filter=-*Speed*"], stdout=subprocess.PIPE,
                              text=True, env=dict(os.environ, STAGE_WORKER=str(self.make(source)), STAGE_SECONDS="1"))
        self.assertIn("within 18 seconds", done.stdout)
        self.assertLess(time.monotonic() - self.start, MOST)

    def left_after_kill_9(self, program):
        """Starts a Python program and kills it with kill -9; returns those of its descendants that still run 10 s
        later."""
        head = f"import sys; sys.path[:0] = [{str(ROOT / 'course')!r}, {str(ROOT / 'tools')!r}]\n"
        head += "import pathlib\nfrom sandbox import confine, limited\nfrom shared import course\nfrom testing import building, gate\n"
        head += f"course.BUILD = pathlib.Path({str(course.BUILD)!r})\n"
        child = subprocess.Popen([sys.executable, "-B", "-c", head + program], stdout=subprocess.DEVNULL)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        before = processes.wait_for_descendants(child.pid, 3, 20)
        self.assertGreaterEqual(len(before), 3)
        child.kill()
        child.wait()
        return processes.still_running(before, 10)

    def test_nothing_is_left_running_when_whoever_started_it_is_killed(self):
        """Neither a process in its own session, nor the gate and its worker, nor a compiler's passes."""
        sleeper = self.folder / "worker"
        sleeper.write_text("#!/bin/sh\nkill -STOP $$\n")
        sleeper.chmod(0o755)
        slow = HERE / "compiles_for_ever.cpp"
        for program in (
                'limited.run(confine.limited(["sh", "-c", "setsid sleep 1000 & sleep 1000 & wait"], 600), "/", 600)',
                f'gate.run(course.find_stage("2", course.stages()), pathlib.Path({str(sleeper)!r}))',
                f'limited.run(confine.confined(["c++", "-std=c++20", "-c", {str(slow)!r}, "-o", '
                f'{str(self.folder / "out" / "x")!r}, "-I", {str(ROOT / "src")!r}, "-I", {str(HERE)!r}], reads=['
                f'{str(ROOT)!r}], writes=[{str(self.folder / "out")!r}], compiles=True, seconds=60), "/", 60)'):
            self.assertEqual(self.left_after_kill_9(program), [], program)

    def test_one_that_takes_too_long_is_ended_with_what_it_started(self):
        start, long = time.monotonic(), f"1000.{os.getpid()}"  # the processes are found by this argument
        words = ["sh", "-c", f"setsid sleep {long} & trap '' TERM; sleep {long} & wait; sleep {long}"]
        ended = limited.run(confine.limited(words, 1), "/", 5)
        self.assertIsNone(ended.code)
        self.assertLess(time.monotonic() - start, 20)
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                self.assertNotIn(long.encode(), path.read_bytes())

    @unittest.skipIf(os.geteuid() != 0, "only root can give each program a user of its own")
    def test_threads_of_one_student_leave_those_of_another(self):
        """The kernel counts threads per user. `one` knows its limit when `all` uses up what is left of it."""
        source = self.folder / "threads.cpp"
        source.write_text("""#include <pthread.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
static void* wait(void*) { pause(); return nullptr; }
int main(int, char** argv) {
  usleep(std::atoi(argv[1]) * 1000);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 16384);
  pthread_t thread;
  const int most = std::atoi(argv[2]);
  int n = 0;
  while (n < most && pthread_create(&thread, &small, wait, nullptr) == 0) ++n;
  std::printf("%d\\n", n);
  std::fflush(stdout);
  usleep(std::atoi(argv[3]) * 1000);
  _exit(0);
}
""")
        program = self.folder / "threads"
        subprocess.run([self.link[0], "-o", str(program), str(source), "-pthread"], check=True)
        one = subprocess.Popen(confine.confined([program, "1500", "4", "0"]), stdout=subprocess.PIPE, text=True)
        time.sleep(0.5)
        every = subprocess.Popen(confine.confined([program, "0", "100000", "3000"]), stdout=subprocess.PIPE, text=True)
        self.assertEqual(one.communicate()[0], "4\n")
        self.assertEqual(int(every.communicate()[0]), confine.THREADS + 2 * (os.cpu_count() or 1) - 1)

    def test_no_exit_code_of_a_command_is_taken_for_one_of_the_sandbox(self):
        """Else code that chooses its exit code could pretend that this machine cannot grade."""
        shell = os.path.realpath("/bin/sh")
        for code, found in (confine.TOO_LONG, 123), (confine.NOT_STARTED, 123), (7, 7):
            self.assertEqual(limited.run(confine.confined([shell, "-c", f"exit {code}"]), "/", 10).code, found)
        with self.assertRaises(course.Problem):
            limited.run(confine.confined(["/not/there"]), "/", 10)

    def test_a_confined_command_sees_no_variable_of_the_teachers(self):
        """What a program prints under sanitizers is shown to its author."""
        command = [os.path.realpath("/bin/sh"), "-c", "echo $STAGE_TOKEN, $PATH"]
        ours = dict(os.environ, STAGE_TOKEN="a token", PATH="/usr/bin:/bin")
        for wrapped, said in ((confine.confined(command), ", /usr/bin:/bin\n"),
                              (confine.limited(command, 10), "a token, /usr/bin:/bin\n")):
            self.assertEqual(limited.run(wrapped, "/", 10, ours).said, said)

    def test_its_memory_is_closed_to_its_own_user(self):
        """The gate cannot be dumped: its files in /proc belong to root."""
        worker = self.folder / "worker"
        worker.write_text("#!/bin/sh\nkill -STOP $$\n")
        worker.chmod(0o755)
        self.folder.chmod(0o755)
        user = {"user": 65534} if os.geteuid() == 0 else {}  # root owns its own files in any case
        gate = course.BUILD / "course" / "gate"
        if user and subprocess.run(["test", "-x", str(gate)], **user).returncode != 0:
            self.skipTest("the build folder is closed to others")
        with subprocess.Popen([str(gate), "--gtest_filter=RmsNorm*"], **user, stdout=subprocess.DEVNULL,
                              env=dict(os.environ, STAGE_WORKER=str(worker))) as gate:
            self.addCleanup(gate.kill)
            deadline = time.monotonic() + 20
            while os.stat(f"/proc/{gate.pid}/environ").st_uid != 0 and time.monotonic() < deadline:
                time.sleep(0.05)
            self.assertIsNone(gate.poll())
            self.assertEqual(os.stat(f"/proc/{gate.pid}/environ").st_uid, 0)
            gate.kill()


if __name__ == "__main__":
    course.BUILD = pathlib.Path(os.path.abspath(sys.argv.pop(1)))
    building.build = lambda *targets, limited, warn=True: None  # built by ctest's fixtures
    workplace.PLACE = course.BUILD / "-".join(["attacks_test", *sys.argv[1:2]])  # ctest runs several at the same time
    os.environ["STAGE_SECONDS"] = "3"  # two simultaneous calls may take more than one second
    if confine.why_not():
        print(f"not confined: {confine.why_not()}")
        sys.exit(SKIPPED)
    unittest.main()
