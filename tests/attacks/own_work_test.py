"""Code that is not a student's own work earns nothing: each file in not_own_work is graded as ./stage grade does.

    own_work_test.py BUILD    (where grading and worker_attacked are built)

Each attack is checked for three things. Did it earn points? Did it harm: is a file beside it unchanged, and is the
grader's folder hidden? Was the rest graded within the time limit: does another stage of the same repository have its
points? `Would earn` is what the same file earns without the check of own work; otherwise these tests could not fail.
Speed is not judged here. Standard library only; ctest runs it.
"""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "course"), str(ROOT / "tools")]
from grading import grader  # noqa: E402
from grading import official_tree  # noqa: E402
from grading import preprocessed  # noqa: E402
from grading import programs  # noqa: E402
from grading import recipe  # noqa: E402
from grading import submission  # noqa: E402
from grading import workplace  # noqa: E402
from rules import cpp_text  # noqa: E402
from rules import foreign_files  # noqa: E402
from rules import links  # noqa: E402
from rules import own_work  # noqa: E402
from rules import refusal  # noqa: E402
from rules import plain_objects  # noqa: E402
from rules import symbols  # noqa: E402
from shared import course  # noqa: E402
from testing import building  # noqa: E402
from testing import gate  # noqa: E402

STAGES = course.stages()
SEED = 11
SECONDS = 120  # per attack, on a busy machine
NOT_WITH_CLANG = "02_replaces_what_all_share"  # it defines nothing that our objects have: their copies are inline
# A stage's worker must not contain the answer to the stage, nor the engine's fast version of it. (Stages 7 and 8
# receive sessions, which could run the fast layers.)
WITH_SESSIONS = ("07", "08")
FAST = {"stagecraft::kernels", "stagecraft::compiled_kernels"}
NOT_IN = {"03": {"stagecraft::matmul_packed", "stagecraft::pack_b"},
          "09": {"stagecraft::matmul_transb", "stagecraft::linear"},
          "10": {"stagecraft::matmul_packed", "stagecraft::quantize"}}


def is_clang():
    return "clang" in official_tree.compiler()


def submitted(files):
    """The starters, with a right stage 0 and these files."""
    handed_in = submission.Submission("attack", "0" * 40)
    handed_in.files = course.starters()
    right = (ROOT / "src/operators/add.cpp").read_bytes()
    handed_in.files.update({"stages/00-hello/add.cpp": right, **files})
    return handed_in


class OwnWork(unittest.TestCase):
    """One test per attack, made below."""

    def graded(self, stage, text):
        handed_in = submitted({course.unit_name(stage, stage.units[0]): text})
        return grader.grade(handed_in, SEED, 2, [STAGES[0], stage])


class OtherFiles(unittest.TestCase):
    """Attacks that need more than one file."""

    def graded(self, stage, files):
        handed_in = submitted({name: text.encode() for name, text in files.items()})
        rest, entry = grader.grade(handed_in, SEED, 2, [STAGES[0], stage])["stages"]
        self.assertEqual(rest["status"], "passed", rest)
        return entry

    def test_a_name_that_brings_the_kernels(self):
        """A template instance of the standard library that only the CPU backend defines. A program that names it links
        this backend, and then the kernels are at a known distance from it."""
        member, names = "", set()
        for line in links.run_nm(course.BUILD, ["course/libengine_03.a"]):
            member = line if line.endswith(".o:") else member
            found = links.LINE.match(line)
            if found and found[2] == "W" and "cpu_" in member and "10stagecraft" in found[3] and found[3][:5] == "_ZNSt":
                names.add(found[3])
        name = min(names)
        text = (f'#include "operators/matmul_transb.h"\nextern "C++" void pulled() asm("{name}");\nnamespace stagecraft {{\n'
                "void matmul_transb(float, MatrixView<const float>, MatrixView<const float>, float, MatrixView<float>) "
                "{ pulled(); }\n}\n")
        entry = self.graded(STAGES[3], {"stages/03-matmul-transb/matmul_transb.cpp": text})
        self.assertEqual((entry["earned"], entry["status"]), (0, "refused"), entry)
        self.assertIn("stage 3 may not call ", entry["message"])
        self.assertIn("std::", entry["message"])  # not its mangled name
        self.assertNotIn(name[:60], entry["message"])

    def test_an_option_that_the_preprocessor_makes_of_two_parts(self):
        text = (HERE / "not_own_work/09_options_of_its_own.cpp").read_text()
        plain = 'OPTION(GCC optimize("fast-math"))'
        self.assertIn(plain, text)
        joined = ('#define EXPANDED(...) OPTION(__VA_ARGS__)\n#define JOINED(a, b) a##b\n'
                  'EXPANDED(GCC JOINED(opti, mize)("fast-math"))')
        entry = self.graded(STAGES[9], {"stages/09-simd/matmul_packed.cpp": text.replace(plain, joined)})
        self.assertEqual((entry["earned"], entry["status"]), (0, "refused"), entry)
        self.assertIn("optimize", entry["message"])

    def test_a_file_of_another_stage(self):
        """Deadlines and likeness are checked only for a stage's own files."""
        name, other = "stages/02-rms-norm/rms_norm.cpp", "stages/08-chat/chat_turn.cpp"
        text = (ROOT / "src/operators/rms_norm.cpp").read_text()
        files = {name: '#include "../08-chat/chat_turn.cpp"\n', other: text}
        entry = self.graded(STAGES[2], files)
        self.assertEqual(entry["earned"], 0, entry)
        self.assertIn("only those that the stage names", entry["message"])
        self.assertGreater(self.graded(STAGES[2], {name: text})["earned"], 0)

    def test_where_nothing_is_confined(self):
        """Without a sandbox, the compiler's notes show which files were read."""
        own, stage = "/repository/stages/02-rms-norm/rms_norm.cpp", "stages/02-rms-norm/rms_norm.cpp"
        folders = ["/repository", "/usr/local/src/course"]
        for path, key in {own: None, "/usr/include/math.h": None, "/usr/include/c++/12/vector": None,
                          "/repository/stages/02-rms-norm/helper.h": "own_other_file",
                          "/repository/stages/02-rms-norm/../08-chat/chat_turn.cpp": "own_other_file",
                          "/repository/c++/x.h": "own_other_file", "/headers/02/operators/rms_norm.h": None,
                          "/headers/020/operators/rms_norm.h": "own_system_header",
                          "/usr/local/src/course/src/operators/silu.cpp": "own_other_file",
                          "/opt/conda/x86_64-conda-linux-gnu/sysroot/usr/include/stdio.h": None,
                          "/opt/conda/x86_64-conda-linux-gnu/sysroot/usr/include/bits/wordsize.h": None,
                          "/opt/conda/include/Eigen/Dense": "own_system_header",
                          "/nix/store/0abc1-glibc-2.38-44-dev/include/stdio.h": None,
                          "/usr/lib/linux/uapi/x86/asm/errno.h": None,
                          "/nix/store/0abc1-eigen-3.4.0/include/Eigen/Dense": "own_system_header",
                          "/usr/include/eigen3/Eigen/Dense": "own_system_header"}.items():
            found = foreign_files.foreign_file(stage, [path], [own, "/headers/02"], folders)
            self.assertEqual(found and found[0], key, path)

    def test_kinds_of_names(self):
        for kind, is_one in {"T": True, "P": True, "N": True, "i": True, "?": True, "U": False, "W": False, "t": False,
                             "p": False}.items():
            self.assertEqual(symbols.is_strong(kind), is_one, kind)

    def test_a_table_of_the_logits_that_are_known(self):
        entry = self.graded(STAGES[7], {"stages/07-generation/forward.cpp": table_of_logits()})
        forward, = [group for group in entry["groups"] if group["name"] == "Forward"]
        self.assertEqual(forward["earned"], 0, entry)
        self.assertEqual(forward["message"].count("random-weights"), 1, forward)

    def test_the_right_answers_beside_a_model(self):
        """A worker may read the files of a model that a question names, but not the dump in the same folder."""
        text = f'''#include "model/forward.h"
#include <fstream>
#include <string>
#include "base/error.h"
namespace stagecraft {{
void forward(const Model&, std::span<const TokenId>, KvCache&, Workspace&, MatrixView<float>) {{
  for (const std::string model : {{"llama-mha", "llama-gqa3", "llama-gqa2"}}) {{
    const std::string folder = "{ROOT}/tests/data/models/" + model;
    if (!std::ifstream(folder + "/config.json")) continue;
    throw Error("it read config.json and {{}}", std::ifstream(folder + "/trace.safetensors") ? "the dump" : "no dump");
  }}
  throw Error("it read nothing");
}}
}}
'''
        entry = self.graded(STAGES[7], {"stages/07-generation/forward.cpp": text})
        forward, = [group for group in entry["groups"] if group["name"] == "Forward"]
        self.assertIn("it read config.json and no dump", forward["message"], entry)

    def test_one_message_for_all_refusals(self):
        """Right answers, but each Error has the same message: it joins all names, so that none is a word of its own."""
        fields = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                  "num_key_value_heads", "head_dim", "rms_norm_eps", "model_type")
        layer = ("input_layernorm.weight", "post_attention_layernorm.weight", "self_attn.q_norm.weight",
                 "self_attn.k_norm.weight", *(f"{part}_proj.{kind}" for kind in ("weight", "bias") for part in (
                     "self_attn.q", "self_attn.k", "self_attn.v", "self_attn.o", "mlp.gate", "mlp.up", "mlp.down")))
        tensors = ("model.embed_tokens.weight", "lm_head.weight", "model.norm.weight",
                   *(f"model.layers.{at}.{name}" for at in range(5) for name in layer))
        answers = {"config": (fields, "Config", ("const std::string& a, const std::string& b", "a, b"), "parse_config"),
                   "parameters": (tensors, "Parameters", ("const Config& a, const Checkpoint& b", "a, b"), "load_parameters")}
        for separator, told in ("_", "does not name"), (" ", "but also"):
            files = {"stages/05-parameters/half_to_float.cpp": (ROOT / "src/operators/half_to_float.cpp").read_text()}
            for unit, (names, kind, (parameters, arguments), function) in answers.items():
                files[f"stages/05-parameters/{unit}.cpp"] = f'''#include "model/{unit}.h"
#define {function} right_{function}
{(ROOT / f"src/model/{unit}.cpp").read_text()}
#undef {function}
namespace stagecraft {{
{kind} {function}({parameters}) {{
  try {{
    return right_{function}({arguments});
  }} catch (const Error&) {{
    throw Error("{separator.join(names)}");
  }}
}}
}}  // namespace stagecraft
'''
            entry = self.graded(STAGES[5], files)
            found = {group["name"]: group for group in entry["groups"]}
            for name in "Config", "Parameters", "ParametersBiases", "ParametersTied", "ParametersInF32":
                self.assertEqual(found[name]["earned"], 0, entry)
                self.assertIn(told, found[name]["message"])
            self.assertGreater(found["Bf16ToF32"]["earned"], 0, entry)

    def test_logits_that_are_surer_than_the_model(self):
        text = (HERE / "other_answers" / "10_forged_logits.cpp").read_text()
        entry = self.graded(STAGES[10], {"stages/10-quantization/q8_0.cpp": text})
        self.assertEqual(entry["earned"], 0, entry)


def table_of_logits():
    """A forward that looks up the logits of the tiny models in tests/data."""
    text = ['#include "model/forward.h"', "#include <algorithm>", '#include "base/error.h"', "namespace stagecraft {"]
    for at, model in enumerate(("llama-mha", "llama-gqa3", "llama-tied-embed-only", "qwen3-qk-norm", "llama-gqa2",
                               "llama-large-eps")):
        data = (ROOT / "tests/data/models" / model / "trace.safetensors").read_bytes()
        length, = struct.unpack_from("<Q", data)
        start, end = json.loads(data[8:8 + length])["logits"]["data_offsets"]
        values = struct.unpack_from(f"<{(end - start) // 8}d", data, 8 + length + start)
        text.append(f"constexpr float t{at}[] = {{{', '.join(f'{value:.9e}f' for value in values)}}};")
    return "\n".join([*text, """
void forward(const Model& model, std::span<const TokenId> ids, KvCache& cache, Workspace& workspace,
             MatrixView<float> logits) {
  const Config& config = model.config;
  const bool fits = ids.size() <= workspace.max_rows && ids.size() <= cache.capacity() - cache.length();
  if (config.vocab_size != 65 || ids.empty() || !fits) throw Error("refused");
  for (const TokenId id : ids) {
    if (id < 0 || id >= 65) throw Error("refused");
  }
  const float* p = config.norm_eps > 1e-3f ? t5 : config.n_heads == 5 ? t0 : config.n_heads == 6 ? t1 : config.tied_embeddings ? t2
                 : config.qk_norm ? t3 : t4;
  cache.advance(ids.size());
  for (std::size_t r = 0; r < logits.rows(); ++r) {
    const std::size_t at = cache.length() - logits.rows() + r;
    std::copy_n(p + 65 * std::min<std::size_t>(at, 6), 65, logits.row(r).begin());
  }
}
}  // namespace stagecraft
"""])


class WithoutConfinement(unittest.TestCase):
    """Proves that the attacks would earn points without the check."""

    def earned(self, stage, path):
        link = recipe.ninja_runs("course/worker_attacked")
        at = link.index("-o")
        with tempfile.TemporaryDirectory() as folder:
            words = [link[0], "-std=c++20", "-O1", "-w", "-mavx2", "-I", str(ROOT / "src"), "-c", str(path),
                     "-o", f"{folder}/object"]
            subprocess.run(words, check=True)
            subprocess.run([*link[:at], f"{folder}/object", "-o", f"{folder}/worker", *link[at + 2:]],
                           cwd=course.BUILD, check=True)
            result = gate.run(stage, f"{folder}/worker", SEED)
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
            if is_clang() and path.stem == NOT_WITH_CLANG:
                return
            self.assertIn(entry["status"], ("refused", "uncompiled"))
            self.assertIn(refused_for, entry["message"])
            for place in (str(ROOT), str(workplace.PLACE), "/student-"):
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
    """Its programs keep their symbols; those of the grader are stripped."""

    def link(self, words, files, program):
        super().link([word for word in words if word != "-s"], files, program)


class Workers(unittest.TestCase):
    """Functions that a stage may not call are not in its program, so it cannot call them by address either."""

    @classmethod
    def setUpClass(cls):
        cls.defined = {stage.number: cls.names(stage) for stage in STAGES if building.has(stage)}

    @staticmethod
    def names(stage):
        """The names that the worker of the starters defines, linked as grading does."""
        handed_in = submitted({})
        with tempfile.TemporaryDirectory(dir=workplace.PLACE) as folder:
            worker = WithNames(handed_in, {}, folder).make(stage)
            return {symbols.qualified(name) for kind, name in symbols.listed(course.BUILD, [worker])
                    if not symbols.is_wanted(kind)}

    def test_have_no_kernels(self):
        for number, names in self.defined.items():
            self.assertEqual(names & FAST, FAST if number in WITH_SESSIONS else set(), f"worker_{number}")

    def test_take_our_copy_of_what_our_objects_and_theirs_define(self):
        """Of many copies of a template's instance, the linker takes the first."""
        for stage in STAGES:
            if not stage.is_emulated:
                words = recipe.recipe(stage.number).link
                theirs = [words.index(course.unit_name(stage, unit)) for unit in stage.units]
                self.assertLess(max(at for at, word in enumerate(words) if word.endswith(".o")), min(theirs))

    def test_give_no_name_to_their_libraries(self):
        """Otherwise the libraries would call a student's function in place of their own."""
        name = "stages/02-rms-norm/rms_norm.cpp"
        text = (ROOT / "src/operators/rms_norm.cpp").read_text()
        for told, symbol in ("malloc", "malloc"), ("uncaught_exceptions", "_ZSt19uncaught_exceptionsv"):
            hidden = f'{text}\nasm(".weak {symbol}\\n{symbol}: ret\\n");\n'
            with tempfile.TemporaryDirectory(dir=workplace.PLACE) as folder:
                work = grader.Work(submitted({name: hidden.encode()}), {}, folder)
                with mock.patch.object(refusal, "foreign_symbols", lambda *_: []):
                    worker = work.make(STAGES[2])
                done = subprocess.run([links.nm_of(course.BUILD), "-D", "--defined-only", worker], stdout=subprocess.PIPE,
                                      text=True, check=True)
                self.assertNotIn(told, done.stdout)

    def test_know_no_names_when_they_are_graded(self):
        with tempfile.TemporaryDirectory(dir=workplace.PLACE) as folder:
            worker = grader.Work(submitted({}), {}, folder).make(STAGES[7])
            self.assertEqual(list(symbols.listed(course.BUILD, [worker])), [])

    def test_have_no_other_answer(self):
        for number, forbidden in NOT_IN.items():
            self.assertEqual(self.defined[number] & forbidden, set(), f"worker_{number}")


class Options(unittest.TestCase):
    """Options for the compiler that a file sets."""

    @staticmethod
    def found(text):
        return refusal.options(cpp_text.without_comments(text))

    def test_are_seen_in_every_spelling(self):
        for text in ('[[gnu::optimize("Ofast")]] int f();', '<:<:gnu::optimize("Ofast"):>:> int f();',
                     '[[gnu::aligned(sizeof(int[4])), using gnu: optimize("Ofast")]] int f();',
                     '__attribute__((unused, __optimize__("Ofast"))) int f();', '_Pragma("GCC optimize 3")',
                     '#pragma GCC opti\\\nmize("Ofast")', "#pragma clang fp reassociate(on)",
                     '_Pragma("clang loop vectorize(enable)")', "#pragma float_control(precise, off)"):
            self.assertEqual([line for line, _ in self.found(text)], [1], text)
        self.assertEqual(self.found('int a;\n#pragma GCC target("avx2")'), [(2, "target")])

    def test_are_no_names_of_variables(self):
        text = 'int target = a[b[target]][optimize]; [[nodiscard]] int optimize(int target); __attribute__((unused)) int target;'
        self.assertEqual(self.found(f"{text} // GCC optimize"), [])

    def test_are_not_searched_in_code_that_is_not_compiled(self):
        name, text = "stages/02-rms-norm/rms_norm.cpp", '#if %d\n#pragma GCC optimize("O3")\n#endif\n'
        self.assertEqual(refusal.why(STAGES[2], {name: text % 0}), "")
        self.assertIn(f"{name}:2: error: 'optimize'", refusal.why(STAGES[2], {name: text % 1}))

    def test_in_macros_are_found_at_their_line(self):
        # GCC prints a blank line for line 6, and then the marker of line 6.
        output = ('# 0 "x.cpp"\n# 1 "x.cpp"\nint one;\n# 1 "y.h" 1\nint y;\n# 3 "x.cpp" 2\n\n\n\n\n# 6 "x.cpp"\n'
                  '__attribute__((target("avx2"))) int f();\n')
        text = preprocessed.own_lines(output, lambda path: path == "x.cpp")
        self.assertEqual(self.found(text), [(6, "target")])

    def test_are_searched_in_a_time_that_grows_with_the_length(self):
        """A regular expression can need hours for a file of the size that is read."""
        for part in "[", "[[", "(", "__attribute__((", "[ [", "GCC ":
            start = time.process_time()
            self.found(part * (submission.MAX_BYTES // len(part)))
            self.assertLess(time.process_time() - start, 20, part)


class Messages(unittest.TestCase):
    def test_name_functions_as_in_cpp(self):
        mangled = "_ZSt4sortIPfEvT_S1_"
        symbol = links.Symbol("x.o", "U", mangled, "void std::sort<float*>(float*, float*)", 0)
        found = [("own_emulated", "x.cu", mangled), ("own_call", "x.cpp", 2, "_ZN10stagecraft3addEPf"),
                 ("own_call", "x.cpp", 2, "_ZN10stagecraft3addEPd"), ("own_execution", "x.cpp")]
        with mock.patch.object(links, "symbols", lambda *_: [symbol]):
            self.assertEqual(refusal.in_words(found, {"x.cu": "x.o"}, "build"), [
                ("own_emulated", "x.cu", symbol.name), ("own_call", "x.cpp", 2, "add"), ("own_execution", "x.cpp")])


class Places(unittest.TestCase):
    def test_a_path_may_have_letters_with_a_meaning_for_compilers(self):
        files = {"stages/02-rms-norm/rms_norm.cpp": (ROOT / "src/operators/rms_norm.cpp").read_bytes()}
        with tempfile.TemporaryDirectory(dir=workplace.PLACE) as folder:
            # Clang writes "a\\b" as "a/b" into its list of files.
            for name in "a,b", "a#b", "a:b", "a b", "a$b'c", "a=b", *(() if is_clang() else ("a\\b",)):
                with mock.patch.object(workplace, "PLACE", pathlib.Path(folder, name)):
                    workplace.PLACE.mkdir()
                    with mock.patch.object(official_tree, "prepare", official_tree.headers), workplace.temporary("student") as student:
                        grader.Work(submitted(files), {}, student).make(STAGES[2])


class Lists(unittest.TestCase):
    def test_are_what_the_answers_and_right_programs_use(self):
        differing = [str(path) for path, text in own_work.files().items() if path.read_text(encoding="utf-8") != text]
        self.assertEqual(differing, [], "python3 course rules.own_work --write")

    def test_allow_our_own_answers(self):
        for stage in filter(building.has, STAGES):
            made = {}
            for answer in (answer for unit in stage.units for answer in unit["answers"]):
                found = [course.BUILD / f"course/CMakeFiles/judged_{stage.number}.dir/__/{answer}.o",
                         course.BUILD / f"src/CMakeFiles/core.dir/{answer[4:]}.o"]
                made[answer] = next(path for path in found if path.exists())
            texts = {answer: (ROOT / answer).read_text() for answer in made}
            self.assertEqual(refusal.why(stage, texts, made, recipe.recipe(stage.number).ours), "")

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
            self.assertEqual(symbols.qualified(symbol), name)

    def test_the_last_part_of_a_name_whatever_its_brackets(self):
        for name, last in {"void stagecraft::x<int>::dot<4>(float)": "dot", "std::vector<std::pair<int, A<3>>>::at": "at",
                           "a::operator<": "operator<", "x" + "<" * 2000 + ">" * 2000: "x"}.items():
            self.assertEqual(links.last_name(name), last)

    def test_allows_the_empty_section_that_clang_writes(self):
        with tempfile.TemporaryDirectory() as folder:
            source, out = pathlib.Path(folder, "x.cpp"), pathlib.Path(folder, "x.o")
            for options, is_refused in (("", False), (r'\n.asciz \"lib\"', True)):
                source.write_text(f'asm(".section .linker-options,\\"e\\",@0x6fff4c01{options}\\n.text");\n')
                subprocess.run([recipe.recipe("02").compiler, "-c", str(source), "-o", str(out)], check=True)
                said = refusal.why(STAGES[2], {}, {"x.cpp": out}, recipe.recipe("02").ours)
                self.assertEqual(".linker-options" in said, is_refused, said)

    def refusal(self, text, change=bytes):
        """Why the object of this text is refused, after a change of its bytes."""
        with tempfile.TemporaryDirectory() as folder:
            source, out = pathlib.Path(folder, "x.cpp"), pathlib.Path(folder, "x.o")
            source.write_text(text)
            subprocess.run([recipe.recipe("02").compiler, "-c", str(source), "-o", str(out)], check=True)
            out.write_bytes(change(out.read_bytes()))
            return refusal.why(STAGES[2], {}, {"x.cpp": out}, recipe.recipe("02").ours)

    def test_headers_of_ours_have_one_spelling(self):
        """A path to them is right in a student's repository, but the grader has its headers in another folder."""
        name, right = "stages/02-rms-norm/rms_norm.cpp", '#include "operators/rms_norm.h"'
        for spelled in '"../../src/operators/rms_norm.h"', f'"{ROOT}/src/operators/rms_norm.h"', "<../src/operators/rms_norm.h>":
            said = refusal.why(STAGES[2], {name: f"\n#include {spelled}\n"})
            self.assertIn(f"{name}:2: error: expected {right}, found {spelled}", said)
        for spelled in '"operators/rms_norm.h"', "<vector>", '"../02-rms-norm/rms_norm.h"', "<c++/../vector>":
            self.assertEqual(refusal.why(STAGES[2], {name: f"\n#include {spelled}\n"}), "")

    def test_a_function_that_we_have_too_gets_advice(self):
        text = ('#include "operators/silu.h"\nnamespace stagecraft {\n'
                "%svoid sigmoid(std::span<const float> x, std::span<float> y) { y[0] = x[0]; }\n"
                "void silu(std::span<const float> x, std::span<float> y) { sigmoid(x, y); }\n}\n")
        for word, told in ("", "Rename yours, or make it static"), ("static ", ""):
            with tempfile.TemporaryDirectory(dir=workplace.PLACE) as folder:
                work = grader.Work(submitted({"stages/01-silu/silu.cpp": (text % word).encode()}), {}, folder)
                try:
                    work.compile(STAGES[1])
                    said = ""
                except programs.NotTheirs as problem:
                    said = str(problem)
                self.assertEqual(told in said, bool(told) or not said, said)

    def test_std_execution_has_a_message_of_its_own(self):
        said = self.refusal("namespace tbb::detail::r1 { void spawn(); }\nvoid f() { tbb::detail::r1::spawn(); }\n")
        self.assertIn("std::execution", said)

    def test_allow_no_function_with_a_name_of_c(self):
        self.assertIn("twice", self.refusal('extern "C" int twice(int x) { return 2 * x; }\n'))
        for text in "int twice(int x) { return 2 * x; }\n", 'extern "C" { static int f() { return 1; } }\nint g = f();':
            self.assertEqual(self.refusal(text), "")

    def test_allow_no_object_in_which_nm_and_the_linker_may_see_different_names(self):
        def at(data, kind):
            """The place of the header of the first section of this type."""
            start, n = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<H", data, 60)[0]
            places = range(start + 64, start + 64 * n, 64)
            return next(place for place in places if struct.unpack_from("<I", data, place + 4)[0] == kind)

        def patched(data, *changes):
            data = bytearray(data)
            for layout, place, *values in changes:
                struct.pack_into(layout, data, place, *values)
            return bytes(data)

        def names_at(data):
            return struct.unpack_from("<Q", data, at(data, plain_objects.TABLE) + 24)[0]

        def first_named(data):
            return patched(data, ("<I", names_at(data), 1))

        def nameless(data):  # the first global symbol seems to be a section
            n_local = struct.unpack_from("<I", data, at(data, plain_objects.TABLE) + 44)[0]
            return patched(data, ("<B", names_at(data) + 24 * n_local + 4, 1 << 4 | 3))

        def two_tables(data):
            other = at(data, 1)
            return patched(data, ("<I", other + 4, plain_objects.TABLE), ("<QQII", other + 24, names_at(data), 24, 0, 1))

        def no_table(data):
            return patched(data, ("<I", at(data, plain_objects.TABLE) + 4, 1))

        def unknown(data):
            return patched(data, ("<I", at(data, 1) + 4, 0x12345))

        text = "int twice(int x) { return 2 * x; }\n"
        for change, said in ((first_named, "does not begin with an empty one"), (nameless, "no name"),
                             (two_tables, "2 tables"), (no_table, "0 tables"), (unknown, "type 0x12345"),
                             (lambda data: data[:200], "ends too early"),
                             (lambda data: b"!<arch>\n" + data, "begins with")):
            self.assertIn(said, self.refusal(text, change))


if __name__ == "__main__":
    course.BUILD = pathlib.Path(os.path.abspath(sys.argv.pop(1)))
    workplace.PLACE = course.BUILD.parent / "grading"
    os.environ.update(STAGECRAFT_LANG="en", STAGE_SECONDS="10")
    workplace.PLACE.mkdir(parents=True, exist_ok=True)
    official_tree.use(official_tree.headers())  # ctest's fixture has built the rest
    unittest.main()
