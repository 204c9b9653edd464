"""What is not a student's own work earns nothing: every file of not_own_work is graded as ./stage grade does.

    own_work_test.py BUILD    (where grading and worker_attacked are built)

Of each attack three things are asked. Did it earn points? Did it harm: is a file beside it as it was, has its
author read where the grader lies? Was the rest graded within the time limit: does another stage of the same
repository have its points? `Would earn` is what the same file earns where nobody looks whose work it is, or
these tests could not fail. Speed is not judged here. Standard library only; ctest runs it.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "course"), str(ROOT / "tools")]
from shared import course  # noqa: E402
from grading import grader  # noqa: E402
from grading import links  # noqa: E402
from grading import own_work  # noqa: E402
from grading import recipe  # noqa: E402
from grading import submission  # noqa: E402

STAGES = course.stages()
SEED = 11
SECONDS = 120  # for an attack, on a machine that has other things to do
# No answer may be in a program in whose place it would stand, nor what the engine computes it with. (Stages 7 and 8
# are handed sessions, which could run the fast layers.)
WITH_SESSIONS = ("07", "08")
FAST = {"stagecraft::kernels", "stagecraft::compiled_kernels"}
NOT_IN = {"03": {"stagecraft::matmul_packed", "stagecraft::pack_b"},
          "09": {"stagecraft::matmul_transb", "stagecraft::linear"},
          "10": {"stagecraft::matmul_packed", "stagecraft::quantize"}}


def submitted(files):
    """The starters, with a right stage 0 and these files."""
    handed_in = submission.Submission("attack", "0" * 40)
    handed_in.files = course.starters()
    right = (ROOT / "src/operators/add.cpp").read_bytes()
    handed_in.files.update({"stages/00-hello/add.cpp": right, **files})
    return handed_in


class OwnWork(unittest.TestCase):
    """One test an attack, made below."""

    def graded(self, stage, text):
        unit, = stage.units
        handed_in = submitted({course.unit_name(stage, unit): text})
        return grader.grade(handed_in, SEED, 2, [STAGES[0], stage])


class WithoutConfinement(unittest.TestCase):
    """The attacks are no empty threats."""

    def earned(self, stage, path):
        link = recipe.ninja_runs("course/worker_attacked")
        at = link.index("-o")
        with tempfile.TemporaryDirectory() as folder:
            words = [link[0], "-std=c++20", "-O1", "-w", "-mavx2", "-I", str(ROOT / "src"), "-c", str(path),
                     "-o", f"{folder}/object"]
            subprocess.run(words, check=True)
            subprocess.run([*link[:at], f"{folder}/object", "-o", f"{folder}/worker", *link[at + 2:]],
                           cwd=course.BUILD, check=True)
            result = course.run_gate(stage, f"{folder}/worker", SEED)
        return sum(group.points for group in result.groups if group.status == "passed")


def attack_test(path, stage, refused_for):
    def test(self):
        with tempfile.TemporaryDirectory() as folder:
            canary = pathlib.Path(folder, "canary")
            canary.write_text("alive\n")
            start = time.monotonic()
            text = path.read_bytes()
            result = self.graded(stage, text)
            rest, entry = result["stages"]
            self.assertEqual(entry["earned"], 0)
            self.assertIn(entry["status"], ("refused", "uncompiled"))
            self.assertIn(refused_for, entry["message"])
            for place in (str(ROOT), str(grader.PLACE), "/student-"):
                self.assertNotIn(place, entry["message"])
            self.assertEqual(canary.read_text(), "alive\n")
            self.assertEqual(rest["status"], "passed", rest)
            self.assertLess(time.monotonic() - start, SECONDS)
    return test


def threat_test(path, stage, points):
    def test(self):
        self.assertGreaterEqual(self.earned(stage, path), points)
    return test


for path in sorted((HERE / "not_own_work").glob("*.cpp")):
    head = re.match(r"// Attack: .+\n// Stage: (\d+)\n// Refused for: (.+)\n// Would earn: (\d+)\n", path.read_text())
    if head is None:
        sys.exit(f"{path.name}: expected '// Attack: ', '// Stage: ', '// Refused for: ', '// Would earn: '")
    stage = course.find_stage(head[1], STAGES)
    setattr(OwnWork, f"test_{path.stem}", attack_test(path, stage, head[2]))
    if int(head[3]):
        setattr(WithoutConfinement, f"test_{path.stem}", threat_test(path, stage, int(head[3])))


class WithNames(grader.Work):
    """Its programs keep the names of their functions, which a graded one does not know."""

    def link(self, words, files, program):
        super().link([word for word in words if word != "-s"], files, program)


class Workers(unittest.TestCase):
    """What a stage may not call is not in its program, so no address leads to it either."""

    @classmethod
    def setUpClass(cls):
        cls.defined = {stage.number: cls.names(stage) for stage in STAGES}

    @staticmethod
    def names(stage):
        """Of what the worker is linked from that has an answer in it: the starters, linked as grading does."""
        handed_in = submitted({})
        with tempfile.TemporaryDirectory(dir=grader.PLACE) as folder:
            worker = WithNames(handed_in, {}, folder).make(stage)
            return {own_work.qualified(name) for kind, name in own_work.listed(course.BUILD, [worker])
                    if not own_work.is_wanted(kind)}

    def test_have_no_kernels(self):
        for number, names in self.defined.items():
            self.assertEqual(names & FAST, FAST if number in WITH_SESSIONS else set(), f"worker_{number}")

    def test_know_no_names_when_they_are_graded(self):
        with tempfile.TemporaryDirectory(dir=grader.PLACE) as folder:
            worker = grader.Work(submitted({}), {}, folder).make(STAGES[7])
            self.assertEqual(list(own_work.listed(course.BUILD, [worker])), [])

    def test_have_no_other_answer(self):
        for number, forbidden in NOT_IN.items():
            self.assertEqual(self.defined[number] & forbidden, set(), f"worker_{number}")


class Lists(unittest.TestCase):
    def test_are_what_the_answers_and_right_programs_use(self):
        differing = [str(path) for path, text in own_work.files().items() if path.read_text(encoding="utf-8") != text]
        self.assertEqual(differing, [], "python3 course grading.own_work --write")

    def test_allow_our_own_answers(self):
        for stage in STAGES:
            made = {}
            for twin in (twin for unit in stage.units for twin in unit["twins"]):
                found = [course.BUILD / f"course/CMakeFiles/judged_{stage.number}.dir/__/{twin}.o",
                         course.BUILD / f"src/CMakeFiles/core.dir/{twin[4:]}.o"]
                made[twin] = next(path for path in found if path.exists())
            texts = {twin: (ROOT / twin).read_text() for twin in made}
            self.assertEqual(own_work.refusal(stage, texts, made, recipe.recipe(stage.number).ours), "")

    def test_a_name_without_arguments(self):
        for symbol, name in {
            "_ZN10stagecraft13matmul_packedENS_10MatrixViewIKfEERKNS_12PackedMatrixENS0_IfEE":
                "stagecraft::matmul_packed",
            "_ZNK10stagecraft7KvCache4keysEm": "stagecraft::KvCache::keys",
            "_ZN10stagecraft7SessionC1ERKNS_5ModelEmm": "stagecraft::Session::Session",
            "_ZN10stagecraft10ThreadPoolD1Ev": "stagecraft::ThreadPool::~ThreadPool",
            "_ZTIN10stagecraft5ErrorE": "stagecraft::Error", "_ZTVN10stagecraft8SequenceE": "stagecraft::Sequence",
            "_ZN10stagecraft6MatrixIfE4viewEv": "stagecraft::Matrix", "_ZN10stagecraft2ioE": "stagecraft::io",
            "memcpy": "memcpy", "_ZSt4sortIPfEvT_S1_": "", "_ZN10stagecraft": "stagecraft", "_ZN9": "", "_ZN": "",
        }.items():
            self.assertEqual(own_work.qualified(symbol), name)

    def test_a_function_of_the_library_that_no_header_defines(self):
        for symbol, is_one in {"_Znwm": True, "_ZdlPvm": True, "_ZNSt6chrono3_V212steady_clock3nowEv": True,
                               "_ZNSt6vectorIfSaIfEE9push_backERKf": False, "_ZSt3maxIfERKT_S2_S2_": False,
                               "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_createERmm": False,
                               "_ZN10stagecraft4siluEf": False, "_ZNSt9": False, "memcpy": False}.items():
            self.assertEqual(own_work.is_of_a_library(symbol), is_one, symbol)

    def test_the_last_part_of_a_name_whatever_its_brackets(self):
        for name, last in {"void stagecraft::x<int>::dot<4>(float)": "dot", "std::vector<std::pair<int, A<3>>>::at": "at",
                           "a::operator<": "operator<", "x" + "<" * 2000 + ">" * 2000: "x"}.items():
            self.assertEqual(links.last_name(name), last)

    def test_std_execution_has_a_message_of_its_own(self):
        with tempfile.TemporaryDirectory() as folder:
            source, out = pathlib.Path(folder, "x.cpp"), pathlib.Path(folder, "x.o")
            source.write_text("namespace tbb::detail::r1 { void spawn(); }\nvoid f() { tbb::detail::r1::spawn(); }\n")
            subprocess.run([recipe.recipe("02").compiler, "-c", str(source), "-o", str(out)], check=True)
            said = own_work.refusal(STAGES[2], {}, {"x.cpp": out}, recipe.recipe("02").ours)
        self.assertIn("std::execution", said)


if __name__ == "__main__":
    course.BUILD = pathlib.Path(os.path.abspath(sys.argv.pop(1)))
    grader.PLACE = course.BUILD.parent / "grading"
    os.environ.update(STAGECRAFT_LANG="en", STAGE_SECONDS="10")
    grader.PLACE.mkdir(parents=True, exist_ok=True)
    grader.use(grader.headers())  # ctest's fixture has built the rest
    unittest.main()
