"""Tests ./stage story --mine: mine_test.py BUILD COMPILER, where `stagecraft`, `counted_story` and `probe` are already
built. Standard library only; ctest runs it."""
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / name) for name in ("course", "tools", "tests/support")]
from build_targets import build  # noqa: E402
from commands import mine  # noqa: E402
from grading import score  # noqa: E402
from mine import call_counts, mine_objects, real_gpu, real_program  # noqa: E402
from rules import links  # noqa: E402
from shared import course  # noqa: E402
from shared import lock  # noqa: E402
from testing import build_errors  # noqa: E402
from testing import building  # noqa: E402
from testing import progress  # noqa: E402

STORY = ROOT / "models" / "story"
COMPILER = "c++"
DOT = "float dot(const float* a, const float* b, std::size_t n) { return a[0] * b[n - 1]; }"


class Temporary(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        mock.patch.dict(os.environ, STAGECRAFT_LANG="en").start()
        self.addCleanup(mock.patch.stopall)

    def compile(self, **files):
        """Compiles these texts to objects, in the places where CMake puts those of stages ("s02_name") and of src/."""
        objects = []
        for name, text in files.items():
            place = f"stages/{name[1:3]}-some/{name[4:]}" if name[1].isdigit() else f"src/{name}"
            source = self.folder / f"{name}.cpp"
            source.write_text(f"#include <cstddef>\n#include <span>\n{text}\n")
            out = self.folder / "CMakeFiles" / "x.dir" / f"{place}.cpp.o"
            out.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run([COMPILER, "-std=c++20", f"-I{ROOT / 'src'}", "-c", source, "-o", out],
                           check=True)
            objects.append(str(out))
        return objects


class Clash(Temporary):
    def found(self, **files):
        return links.clashes(course.BUILD, ROOT, self.compile(**files))

    def test_of_two_stages_is_told_by_name_before_linking(self):
        objects = self.compile(s02_norm=f"namespace stagecraft {{ {DOT} }}",
                               s03_matmul=f"namespace stagecraft {{ {DOT} }}")
        with mock.patch.object(building, "build", return_value=None) as build, \
                mock.patch.multiple(mine_objects, objects=lambda *_, **__: objects, targets=lambda *_: ["counted_02"]), \
                self.assertRaises(course.Problem) as told:
            real_program.build([stage for stage in course.stages() if stage.id in (2, 3)])
        self.assertEqual(str(told.exception),
                         "stages 2 and 3 both define 'dot(float const*, float const*, unsigned long)':"
                         " put it into the anonymous namespace of each file")
        build.assert_called_once_with("counted_02")

    def test_is_none_in_anonymous_namespaces(self):
        text = f"namespace {{ {DOT} }} float use(float* x) {{ return dot(x, x, 1); }}"
        self.assertEqual(self.found(s02_a=text, s03_b=text.replace("use", "uses")), [])

    def test_is_seen_where_the_linker_would_silently_take_one_of_the_two(self):
        text = "inline int half(int x) { return x / 2; } int (*NAME)(int) = half;"
        self.assertEqual(self.found(s01_a=text.replace("NAME", "one"), s06_b=text.replace("NAME", "two")),
                         [("clash_stages", 1, 6, "half(int)")])

    def test_is_seen_between_variables_and_functions_of_c(self):
        self.assertEqual(self.found(s01_a="float buffer[4];", s02_b="float buffer[4];"),
                         [("clash_stages", 1, 2, "buffer")])

    def test_is_none_over_what_headers_define(self):
        text = """
            #include "tensor/print.h"
            #include "base/not_implemented.h"
            #include <algorithm>
            #include <vector>
            namespace stagecraft {
            void NAME(MatrixView<float> x) {
              std::vector<float> copy(x.row(0).begin(), x.row(0).end());
              std::sort(copy.begin(), copy.end(), [](float a, float b) { return b < a; });
              print(x, "x");
              Matrix<float> y(2, 3);
              print(y.view(), "y");
              NOT_IMPLEMENTED("stage 9: NAME");
            }
            }"""
        self.assertEqual(self.found(s01_a=text.replace("NAME", "one"), s02_b=text.replace("NAME", "two")), [])


class LinkError(Temporary):
    DECLARED = "namespace stagecraft { void silu(std::span<const float>, std::span<float>); "

    def told(self, **files):
        with mock.patch.object(links, "object_files", return_value=self.compile(**files)):
            text = build_errors.why_not_built("ld returned 1 exit status", "course/worker_01")
        return text.replace(str(self.folder) + "/", "")

    def test_names_both_files_that_define_a_function(self):
        self.assertEqual(self.told(silu=self.DECLARED + "void silu(std::span<const float>, std::span<float>) {} }",
                                   s04_mlp=self.DECLARED + "void silu(std::span<const float>, std::span<float>) {} }"),
                         "stages/04-some/mlp.cpp and src/silu.cpp both define 'silu(std::span<float const>, "
                         "std::span<float>)': put yours into the anonymous namespace, or give it another name")

    def test_shows_both_signatures_where_a_students_is_another(self):
        text = self.told(mlp=self.DECLARED + "void mlp() { silu({}, {}); } }",
                         s01_silu="namespace stagecraft { void silu(std::span<float>, std::span<float>) {} }")
        self.assertIn("stages/01-some/silu.cpp must define\n  stagecraft::silu(std::span<float const>, ", text)
        self.assertIn("but defines\n  stagecraft::silu(std::span<float>, ", text)

    def test_says_which_file_lacks_a_function(self):
        text = self.told(mlp=self.DECLARED + "void mlp() { silu({}, {}); } }", s01_silu="")
        self.assertTrue(text.startswith("stages/01-some/silu.cpp does not define\n  stagecraft::silu("), text)

    def test_says_who_uses_what_nobody_defines(self):
        self.assertEqual(self.told(s01_silu="float half(float); float use() { return half(1); }"),
                         "stages/01-some/silu.cpp uses 'half(float)', which is declared but never defined")

    def test_is_the_linkers_own_words_where_nothing_is_found(self):
        self.assertEqual(self.told(s01_silu="int one = 1;"), "ld returned 1 exit status")


class Counting(Temporary):
    FUNCTIONS = ["inner", "outer", "unused", "throws", "crashes", "helper"]

    def probe(self, *words):
        table = call_counts.Table(self.folder / "calls", course.BUILD, "course/mine/probe", self.FUNCTIONS)
        done = subprocess.run([course.BUILD / "course" / "mine" / "probe", *words],
                              env=dict(os.environ, STAGECRAFT_CALLS=str(table.path)))
        counted, inside, total = table.read()
        return done.returncode, counted, inside, total

    def test_sees_the_calls_of_all_threads_and_none_of_helpers(self):
        code, counted, _, _ = self.probe()
        self.assertEqual(code, 0)
        self.assertEqual({name: one.count for name, one in counted.items()},
                         {"inner": 7, "outer": 1, "unused": 0, "throws": 3, "crashes": 0, "helper": 0})

    def test_takes_the_time_of_the_main_thread_and_of_each_function_alone(self):
        _, counted, _, total = self.probe()
        inner, outer = (counted[name].nanoseconds / 1e6 for name in ("inner", "outer"))
        self.assertGreaterEqual(inner, 400)  # two calls of seven
        self.assertGreaterEqual(outer, 10)
        self.assertLess(outer, inner)  # without the time in inner
        self.assertGreaterEqual(total / 1e6, inner + outer)

    def test_names_the_function_in_which_a_program_crashed(self):
        code, counted, inside, _ = self.probe("crash")
        self.assertLess(code, 0)
        self.assertEqual(inside, "crashes")
        self.assertEqual(counted["inner"].count, 7)


class Mine(Temporary):
    def run_mine(self, *words, stages="1-3", program="course/mine/counted_story"):
        err = io.StringIO()
        with mock.patch.object(mine_objects, "program", lambda _: program), \
                mock.patch.multiple(real_program, build=mock.DEFAULT, check_gates=mock.DEFAULT), \
                mock.patch.dict(os.environ, STAGECRAFT_HOME=str(ROOT)), \
                mock.patch.object(sys, "argv", ["mine", words[0], "--mine", stages, *words[1:]]), \
                contextlib.redirect_stderr(err):
            code = mine.run()
        return code, err.getvalue().splitlines()

    @unittest.skipUnless((STORY / "config.json").exists(), "no model")
    def test_story_proves_that_it_ran_the_students_functions(self):
        code, lines = self.run_mine("story", "-n", "20", "--temperature", "0", "--threads", "1")
        self.assertEqual(code, 0)
        self.assertEqual(lines[0], "yours: silu, swiglu, rms_norm, matmul_transb; the rest is ours")
        # five layers; one row of swiglu for each of the prompt's five tokens and of the 19 tokens that are fed
        self.assertRegex(lines[1], r"^swiglu: yours, called 120 times, (\d+|<1)% of the time$")
        self.assertRegex(lines[2], r"^rms_norm: yours, called 220 times, (\d+|<1)% of the time$")
        self.assertRegex(lines[3], r"^matmul_transb: yours, called \d,?\d{3} times, \d+% of the time$")
        self.assertRegex(lines[4], r"^same tokens as ours: 20 of 20")
        self.assertEqual(len(lines), 5)  # nothing calls this program's silu

    @unittest.skipUnless((STORY / "config.json").exists(), "no model")
    def test_trace_and_peek_prove_it_too(self):
        out = str(self.folder / "trace")
        # trace calls the blocks of the five layers once more, to show their results
        for words, calls_of_norm in ((["trace", "--ids", "1,2", "-o", out], 21), (["peek", "One day"], 11)):
            code, lines = self.run_mine(*words, stages="2")
            self.assertEqual(code, 0)
            self.assertRegex(lines[1], rf"^rms_norm: yours, called {calls_of_norm} times, ")
            self.assertEqual(len(lines), 2)

    @unittest.skipUnless((STORY / "config.json").exists(), "no model")
    def test_peek_draws_the_attention_that_the_students_block_leaves(self):
        done = subprocess.run([course.BUILD / "course" / "mine" / "first_key", "peek", "Once upon a time", "--top", "0",
                               "--attention", "1.3"], env=dict(os.environ, STAGECRAFT_HOME=str(ROOT)),
                              stdout=subprocess.PIPE, encoding="utf-8", check=True)
        rows = done.stdout.splitlines()[-5:]
        self.assertTrue(all("100% <|start" in row for row in rows), done.stdout)

    def test_chat_with_another_model_says_what_would_make_it_faster(self):
        model = str(ROOT / "tests" / "data" / "gguf" / "whole.gguf")
        words = ["chat", "and the cat?", "--model", model, "--temperature", "0", "-n", "4"]
        told = "this is the speed of plain loops on a real model (tokens/s above); " \
               "the stages about speed: 9 SIMD, 10 Quantisation"
        code, lines = self.run_mine(*words)
        self.assertEqual((code, lines[-1]), (0, told))
        self.assertRegex(lines[2], r"^rms_norm: yours, called \d+ times$")
        _, lines = self.run_mine(*words, stages="2,9")
        self.assertNotIn(told, lines)

    def test_an_exit_code_passes_on_and_nothing_is_said_where_nothing_ran(self):
        code, lines = self.run_mine("story", "--threads", "0")
        self.assertEqual((code, lines[1:]), (2, []))

    @unittest.skipUnless((STORY / "config.json").exists(), "no model")
    def test_no_function_is_called_uncalled_where_calls_cannot_be_counted(self):
        with mock.patch.object(links, "nm_of", lambda build: "/no/such/nm"):
            code, lines = self.run_mine("peek", "One day")
        self.assertEqual((code, len(lines)), (0, 2))
        self.assertIn("nm (of binutils) is missing", lines[1])

    def test_a_crash_is_one_line_and_a_shells_exit_code(self):
        known = course.stages()
        known[1].functions = ["inner", "crashes"]
        with mock.patch.object(course, "stages", lambda: known):
            code, lines = self.run_mine("peek", stages="1", program="course/mine/probe")
        self.assertEqual(code, 128 + 6)
        self.assertEqual(lines[-2:], ["ended by signal 6 (Aborted), inside crashes, at its call 1",
                                      "./stage test 1 shows the line"])

    def test_says_where_two_stories_part(self):
        ours = ["5", "6", "7", "8"]
        self.assertEqual(mine.compare(ours, ours, "mine_tipped", (1, 1)), "same tokens as ours: 4 of 4")
        self.assertEqual(mine.compare(ours, ours, "mine_tipped", (0.3, 0.1)), "same tokens as ours: 4 of 4")
        self.assertEqual(mine.compare(ours, ours, "mine_tipped", (6, 2)), "same tokens as ours: 4 of 4; "
                         "it took 3.0 times as long as with our version (./stage story --textbook)")
        self.assertRegex(mine.compare(["9"], ours, "mine_differs", (1, 1)), "no token.*another story")
        for other in (["5", "6", "9", "8"], ["5", "6"]):
            self.assertRegex(mine.compare(other, ours, "mine_differs", (1, 1)), "the first 2 of 4.*another story")
            self.assertRegex(mine.compare(other, ours, "mine_tipped", (1, 1)), "the first 2 of 4.*almost equally likely")


class Built(Temporary):
    def test_another_selection_does_not_change_a_program_that_runs(self):
        program = self.folder / "stagecraft_mine"
        mock.patch.object(mine_objects, "program", lambda _: program).start()
        mock.patch.object(real_program, "PLACE", self.folder / "course").start()
        held = []

        def build(chosen, *_):
            held.append(real_program.PLACE / "mine.lock" in lock.mine)
            program.write_text(chosen)

        with mock.patch.object(real_program, "build", build), real_program.built("1-3") as first:
            with real_program.built("9") as second:
                self.assertEqual((first.read_text(), second.read_text()), ("1-3", "9"))
        self.assertEqual(held, [True, True])
        self.assertEqual([path.name for path in real_program.PLACE.iterdir()], ["mine.lock"])


class Gates(Temporary):
    def statuses(self, **statuses):
        """Runs check_gates and passing with these statuses for the first stages."""
        stages = course.stages()[:len(statuses)]
        by_id = dict(zip((stage.id for stage in stages), statuses.values()))
        mock.patch.object(progress, "result_of",
                          lambda stage: mock.Mock(status=by_id[stage.id], compile_error="silu.cpp is missing",
                                                 is_right=by_id[stage.id] == "passed")).start()
        return stages

    def test_warn_once_about_what_is_wrong_and_let_it_run(self):
        for status in "wrong", "refused":
            stages = self.statuses(a="passed", b=status)
            with contextlib.redirect_stderr(io.StringIO()) as err:
                self.assertFalse(real_program.check_gates(stages))
            self.assertEqual(err.getvalue(), "stage 1 does not pass its test; it runs anyway\n")

    def test_refuse_what_cannot_run(self):
        for status, says in (("unwritten", "is not written yet"), ("uncompiled", "does not compile")):
            with self.assertRaisesRegex(course.Problem, f"stage 1 {says}: ./stage test 1"):
                real_program.check_gates(self.statuses(a="passed", b=status))
        with self.assertRaisesRegex(course.Problem, "silu.cpp is missing"):
            real_program.check_gates(self.statuses(a="missing"))

    def test_choose_what_passes_where_no_number_is_given(self):
        stages = self.statuses(a="passed", b="wrong", c="unwritten", d="passed")
        self.assertEqual([stage.id for stage in mine.passing(stages)], [stages[0].id, stages[3].id])

    def test_words_after_two_dashes_are_text(self):
        chosen, words = mine.split_mine(["story", "--mine", "1", "--", "--mine", "2"], course.stages())
        self.assertEqual(([stage.id for stage in chosen], words), ([1], ["story", "--", "--mine", "2"]))
        self.assertFalse(mine.has_option(words + ["--seed", "3"], "--seed"))


class Subset(Temporary):
    """Any subset of stages links: it takes either our version or the student's, and both define the same symbols."""

    def test_takes_one_of_each_pair(self):
        for chosen, ours in (({"00", "03", "07"}, "stagecraft"), ({"02"}, "storyteller")):
            stages = [stage for stage in course.stages() if stage.number in chosen]
            objects = mine_objects.objects(stages, ours=ours)
            self.assertTrue(all(file.endswith(".o") for file in objects))  # no precompiled header, no empty name
            sources = [links.source_of(file) for file in objects]
            for stage in course.stages():
                mine_of = [f"stages/{stage.folder.name}/{unit['file']}" for unit in stage.units]
                ours_of = [answer for unit in stage.units for answer in unit["answers"]]
                if stage.is_emulated:
                    ours_of = []  # no engine contains them
                wanted, other = (mine_of, ours_of) if stage.number in chosen else (ours_of, mine_of)
                # Only the ends of paths are compared: the clone's folder may have any name.
                if not stage.is_emulated or stage.number in chosen:  # no engine has our kernels of stage 11
                    self.assertTrue(all(any(s.endswith(w) for s in sources) for w in wanted), wanted)
                self.assertFalse(any(s.endswith(o) for s in sources for o in other), other)

    def test_links_what_calls_stages_9_and_10_beside_our_linear(self):
        stages = [stage for stage in course.stages() if stage.id in (9, 10)]
        found = [links.source_of(file) for file in mine_objects.objects(stages) if file.endswith("linear.cpp.o")]
        ends = ("src/model/linear.cpp", "course/mine/packed_linear.cpp", "course/mine/quantized_linear.cpp")
        self.assertEqual(len(found), len(ends), found)
        self.assertTrue(all(name.endswith(end) for name, end in zip(found, ends)), found)

    def test_replaces_what_stage_11_has_on_the_gpu(self):
        known = building.listed()["stages"]
        stages = [stage for stage in course.stages() if stage.is_emulated and stage.number in known]
        if not stages:
            self.skipTest("no emulator")
        found = [links.source_of(file) for file in mine_objects.objects(stages)]
        for name in ("rms_norm", "attention"):
            same = [file for file in found if file.endswith(f"/{name}.cpp")]
            self.assertEqual([file.endswith(f"course/mine/{name}.cpp") for file in same], [True], same)

    def test_both_of_a_pair_offer_the_same_functions(self):
        stages = [stage for stage in course.stages() if not stage.is_started]
        if stages:
            targets = ["core", *(f"mine_{stage.number}" for stage in stages),
                       *(f"judged_{stage.number}" for stage in stages if stage.is_emulated)]
            build(course.BUILD, *targets)
        for stage in stages:
            offered = []
            for pair in ("mine", "ours"):
                folder = course.BUILD / (f"course/CMakeFiles/mine_{stage.number}.dir" if pair == "mine" else
                                         f"course/CMakeFiles/judged_{stage.number}.dir" if stage.is_emulated else
                                         "src/CMakeFiles/core.dir")
                named = [answer[len("src"):] for unit in stage.units for answer in unit["answers"]] if pair == "ours" else [
                    f"/stages/{stage.folder.name}/{unit['file']}" for unit in stage.units]
                objects = [path for path in folder.rglob("*.o")
                           if any(str(path).endswith(f"{name}.o") for name in named)]
                offered.append({symbol.name for symbol in links.symbols(course.BUILD, objects)
                                if links.is_strong(symbol) and links.CPP_BY_HAND.match(symbol.mangled)})
            self.assertEqual(*offered, stage.folder.name)
            self.assertTrue(offered[0])


NVCC = """#!/usr/bin/env python3
import subprocess, sys
words = sys.argv[1:]
if "--dryrun" in words:
    print('#$ LIBRARIES=  "-L{folder}"')
    sys.exit()
words = [word for word in words if not word.startswith(("-arch", "-Xcompiler", "--expt"))]
sys.exit(subprocess.run(["{compiler}", "-x", "c++", "-fno-pie", "-I{emulator}", "-I{emulator}/cuda_names", *words]).returncode)
"""
DRIVER = """int cuInit(unsigned flags) {{ return {error}; }}
int cuDeviceGet(int* device, int index) {{ return *device = index; }}
int cuDeviceGetAttribute(int* value, int attribute, int device) {{ *value = attribute == 75 ? 9 : 0; return device; }}
"""


class OnAGpu(Temporary):
    """nvcc, the driver and CUDA's runtime are imitated: the emulator acts as the GPU, so the copies to and from it are
    tested."""

    def setUp(self):
        super().setUp()
        self.stage = next((stage for stage in course.stages() if stage.is_emulated), None)
        if self.stage is None or self.stage.number not in building.listed()["stages"]:
            self.skipTest("no emulator")
        self.emulator = [course.BUILD / file for file in building.listed()["stages"][self.stage.number]["emulated"]
                         if file.endswith(".o") and "on_emulator" not in file]
        tools = self.folder / "tools"
        tools.mkdir()
        nvcc = tools / "nvcc"
        nvcc.write_text(NVCC.format(folder=self.folder, compiler=COMPILER, emulator=ROOT / "src" / "cuda_emulator"))
        nvcc.chmod(0o755)
        mock.patch.dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}").start()
        mock.patch.object(real_gpu, "FOLDER", self.folder / "objects").start()
        self.driver(error=0)

    def driver(self, error):
        source, library = self.folder / f"driver{error}.c", self.folder / f"driver{error}.so"
        source.write_text(DRIVER.format(error=error))
        subprocess.run([COMPILER, "-shared", "-fPIC", "-x", "c", source, "-o", library], check=True)
        mock.patch.object(real_gpu.ctypes.util, "find_library", return_value=str(library)).start()

    def kernels(self, folder):
        """The stage, with these files as the student's."""
        return mock.Mock(number=self.stage.number, units=self.stage.units, folder=folder)

    def test_is_chosen_where_nvcc_and_a_gpu_are_there(self):
        self.assertEqual((real_gpu.architecture(), real_gpu.why_not()), ("sm_90", None))
        self.driver(error=100)  # no device
        self.assertEqual((real_gpu.architecture(), real_gpu.why_not()), (None, "mine_no_gpu"))
        with mock.patch.object(real_gpu.shutil, "which", return_value=None):
            self.assertEqual(real_gpu.why_not(), "mine_no_nvcc")

    def test_tells_the_story_of_the_cpu(self):
        subprocess.run(["ar", "rcs", self.folder / "libcudart_static.a", *self.emulator], check=True)
        kernels, options = real_gpu.objects(self.kernels(ROOT / "src" / "operators" / "on_gpu"))
        objects = mine_objects.objects([self.stage], on_gpu=kernels)
        self.assertFalse([file for file in objects if "emulator" in file or "counted_11" in file])
        words = [part for word in score.link_words() for part in ([*objects, *options] if word.startswith("@") else [word])]
        program = self.folder / "program"
        subprocess.run([*words, "-no-pie", "-o", program], cwd=course.BUILD, check=True)
        ids = []
        for command in ([program, "story"], [course.BUILD / "src" / "stagecraft", "story", "--textbook"]):
            saved = self.folder / "ids"
            subprocess.run([*command, "-m", STORY, "-n", "6", "--temp", "0", "--save-ids", saved, "Tom gave"],
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            ids.append(saved.read_text())
        self.assertEqual(*ids)

    def test_compiles_again_after_a_change_of_a_header(self):
        source, header = self.folder / "some.cu", self.folder / "some.h"
        source.write_text('#include "some.h"\n')
        header.write_text("")
        real_gpu.FOLDER.mkdir()
        made = real_gpu.compile_for("sm_90", source, counted=False)
        before = made.stat().st_mtime_ns
        real_gpu.compile_for("sm_90", source, counted=False)
        self.assertEqual(made.stat().st_mtime_ns, before)
        os.utime(header, ns=(before, before))
        real_gpu.compile_for("sm_90", source, counted=False)
        self.assertGreater(made.stat().st_mtime_ns, before)

    def test_shows_the_first_error_of_nvcc(self):
        for unit in self.stage.units:
            (self.folder / unit["file"]).write_text("float wrong = missing;\n")
        with self.assertRaises(course.Problem) as told:
            real_gpu.objects(self.kernels(self.folder))
        self.assertRegex(str(told.exception), r"rms_norm.cu:1:15: error: .*missing")


if __name__ == "__main__":
    course.BUILD = pathlib.Path(sys.argv[1]).resolve()
    COMPILER = sys.argv[2]
    unittest.main(argv=sys.argv[:1])
