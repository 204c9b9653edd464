"""The checker of stage 11 shares a process with the code that it checks. These programs try to switch it off, to forge
its counts, or to compute the result elsewhere. Each is graded as ./stage grade does, and must earn no points:

    sealed_test.py BUILD    (where the target grading is built)

Standard library only; ctest runs it.
"""
import pathlib
import shutil
import sys
import tempfile
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / name) for name in ("course", "tools")]
from grading import grader  # noqa: E402
from grading import official_tree  # noqa: E402
from grading import submission  # noqa: E402
from shared import course  # noqa: E402

STAGES = course.stages()
STAGE = course.find_stage("11", STAGES)
SEED = 11
NAME = "stages/11-cuda/rms_norm.cu"
ANSWER = (ROOT / "src/operators/on_gpu/rms_norm.cu").read_text()
BEGIN = "namespace stagecraft {\nnamespace {\n"
LAUNCH = "  const unsigned blocks"  # the first line of the launch function
KERNEL = "  if (row >= rows) return;"
# Of the words above a variable that look like addresses of the program, one is the function's return address.
RETURNS_ELSEWHERE = """  unsigned long here[2] = {};
  unsigned long* up = here;
  for (int i = 0; i < 64; ++i)
    if (up[i] >= 0x400000 && up[i] < 0x4000000) up[i] = 0x404040;"""

# A class that is passed by value, or returned, is copied by code that the compiler does not instrument.
PART = """struct Part { float v[6]; };
float squares(Part p, int from) {
  float sum = 0.0f;
  for (int i = from % 6; i < 6; ++i) sum += p.v[i] * p.v[i];
  return sum;
}
Part twice(Part p, int from) {
  for (int i = from % 6; i < 6; ++i) p.v[i] *= 2.0f;
  return p;
}
"""


def edited(*edits):
    text = ANSWER
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def with_code(place, code, before="", headers=""):
    return edited(("#include", f"{headers}#include"), (BEGIN, BEGIN + before), (place, f"{code}\n{place}"))


# {what it does: (program, a part of the message)}
ATTACKS = {
    "a kernel that is not instrumented":
        (edited(("__global__ void", '__attribute__((no_sanitize("thread"))) __global__ void')),
         "'no_sanitize' sets options"),
    "assembler": (with_code(KERNEL, '  asm volatile("nop");'), "checker sees"),
    "assembler that a header would have":
        (with_code(KERNEL, '  __asm__ volatile("nop");', headers="#define _CPUID_H_INCLUDED\n#include <cpuid.h>\n"),
         "found cpuid.h"),
    "a header that seems read":
        (with_code(KERNEL, "", headers="#define _STRING_H\n#include <string.h>\n"), "found #define _STRING_H"),
    "assembler made of pieces inside a header":
        (edited(("#include", "#define GLUE(a, b) a##b\n#define max_align_t max_align_t; inline void in() { GLUE(__as, m__)"
                 "(\"nop\"); } typedef int other_t\n#include <stddef.h>\n#undef max_align_t\n#include")), "checker sees"),
    "lines that seem to be a header's":
        (with_code(KERNEL, '#line 1 "/usr/include/math.h"\n  __asm__ volatile("nop");'), "found #line"),
    "a mark of the preprocessor":
        (with_code(KERNEL, '# 1 "/usr/include/math.h" 1 3\n  __asm__ volatile("nop");'), "checker sees"),
    "a mark of the preprocessor in a raw text":
        (with_code(KERNEL, 'const char* text = R"(\n# 1 "/usr/include/math.h" 1 3\n)";\n  __asm__ volatile("nop");'),
         "found #line"),
    "a builtin that stores": (with_code(LAUNCH, "  __builtin_memset(y, 0, 4);"), "checker sees"),
    "a name of the checker": (with_code(LAUNCH, "  __tsan_read4(y);", 'extern "C" void __tsan_read4(void*);\n'),
                              "checker sees"),
    "code before main": (with_code(LAUNCH, "  (void)early;", "int f() { return 1; }\nconst int early = f();\n"),
                         "before main"),
    "a call by an address": (with_code(LAUNCH, "  reinterpret_cast<void (*)()>(0x401000)();"), "calls by name"),
    "a virtual function": (with_code(LAUNCH, "  One one;\n  Any* any = &one;\n  any->go();",
                                     "struct Any { virtual void go() {} };\nstruct One : Any { void go() override {} };\n"),
                           "calls by name"),
    "a copy to the host": (with_code(LAUNCH, "  float one;\n  cudaMemcpy(&one, x, 4, cudaMemcpyDeviceToHost);"),
                           "found cudaMemcpy"),
    "a library function that reads": (with_code(KERNEL, "  if (strlen(reinterpret_cast<const char*>(x)) == 3) return;"),
                                      "found strlen"),
    "a library function that writes": (with_code(LAUNCH, '  printf("%n", reinterpret_cast<int*>(y));'), "found printf"),
    "a system call": (with_code(LAUNCH, "  syscall(60, 0);", headers="#include <unistd.h>\n"), "found syscall"),
    "its own checker": (with_code(LAUNCH, "", "}\n}\nextern \"C\" void exit_hook() {}\nnamespace stagecraft {\nnamespace {\n"),
                        "exit_hook"),
    "a kernel at an address": (edited(("cuda_launch(rms_norm,", "cuda_launch(reinterpret_cast<void (*)(const float*, "
                                       "const float*, float, float*, int, int)>(0x401000),")),
                               "a function that is not one of its kernels"),
    "the host computes": (with_code(LAUNCH, "  if (x[0] > 1e30f) return;"), "host access"),
    "the host computes with a class":
        (with_code(LAUNCH, "  if (squares(*reinterpret_cast<const Part*>(x), rows) > 1e30f) return;", PART), "host access"),
    "the host writes a class":
        (with_code(LAUNCH, "  *reinterpret_cast<Part*>(y) = twice({{eps}}, rows);", PART), "host access"),
    "a delete of what nobody gave": (with_code(LAUNCH, "  char here[256] = {};\n  ::operator delete(here + 16);"),
                                     "no new, delete"),
    "a call by the C++ runtime":
        (with_code(LAUNCH, "  using F = abi::__cxa_cdtor_return_type (*)(void*, void*);\n  abi::__cxa_vec_cctor(y, const_cast<"
                           "float*>(x), 1, 1, reinterpret_cast<F>(0x401000), nullptr);", headers="#include <cxxabi.h>\n"),
         "C++ runtime"),
    "a parameter with code of its own":
        (with_code(LAUNCH, "  cuda_launch(none, {1, 1}, P());", "struct P { P() {} P(const P&) {} };\n"
                                                                 "__global__ void none(P) {}\n"), "byte by byte"),
    "the host writes above its stack": (with_code(LAUNCH, "  float here = 0;\n  (&here)[1 << 14] = eps;"), "forbidden"),
    "the host writes over its return address":
        (with_code(LAUNCH, "  leave();", "void leave() {\n" + RETURNS_ELSEWHERE + "\n}\n"),
         "forbidden"),
    "a kernel writes over its return address":
        (with_code(KERNEL, RETURNS_ELSEWHERE),
         "return address"),
    "a kernel writes where the program lies":
        (with_code(KERNEL, "  if (lane == 0) *reinterpret_cast<int*>(0x404040) = 1;"), "out of bounds"),
}


class Work(grader.Work):
    """The starters are the same in each attack: compiled once."""
    kept = pathlib.Path(tempfile.mkdtemp(prefix="sealed-"))

    def run(self, command, folder, what, files=()):
        if what == NAME or files:
            return super().run(command, folder, what, files)
        for option in ("-o", "-MF"):
            out, known = command[command.index(option) + 1], self.kept / f"{pathlib.Path(what).name}{option}"
            if not known.exists():
                super().run(command, folder, what, files)
                shutil.copy(out, known)
            shutil.copy(known, out)


def graded(text):
    handed_in = submission.Submission("attack", "0" * 40)
    handed_in.files = {**course.starters(), NAME: text.encode()}
    with mock.patch.object(grader, "Work", Work), mock.patch.object(official_tree, "mistakes", lambda stage: None):
        entry, = grader.grade(handed_in, SEED, 1, [STAGE])["stages"]
    return entry


class Sealed(unittest.TestCase):
    """One test per attack, made below."""

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(Work.kept)

    def test_the_answer_without_a_trick_has_its_points(self):
        self.assertEqual(graded(ANSWER)["earned"], 12, graded(ANSWER))

    def test_a_refusal_names_its_line(self):
        text, _ = ATTACKS["assembler"]
        line = text[:text.index("asm volatile")].count("\n") + 1
        self.assertEqual(graded(text)["line"]["line"], line)

    def test_nothing_hides_behind_a_report_that_is_too_long(self):
        """The right answer earns the points for its result, but none for "no findings" or for its number of bytes."""
        name = "a" * 1800
        entry = graded(with_code(LAUNCH, f"  for (int i = 0; i < 200; ++i) cuda_launch({name}, {{1, 1}}, eps);",
                                 f"__global__ void {name}(float) {{}}\n"))
        self.assertEqual([group["earned"] for group in entry["groups"][1:3]], [0, 0], entry)
        self.assertIn("launch fewer kernels", entry["groups"][1]["message"])


def attack_test(text, says):
    def test(self):
        entry = graded(text)
        self.assertEqual(entry["earned"], 0, entry)
        said = entry.get("message", "") + "".join(group["message"] for group in entry["groups"])
        self.assertIn(says, said)
        self.assertNotIn(str(ROOT), said)
    return test


for name, (text, says) in ATTACKS.items():
    setattr(Sealed, f"test_{name.replace(' ', '_')}", attack_test(text, says))


if __name__ == "__main__":
    course.BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
