"""Checks the course itself: registry, folders and handouts agree, in both languages, and every answer in a handout is
true for models/story."""
import collections
import contextlib
import importlib
import io
import json
import math
import os
import pathlib
import re
import struct
import string
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "course"), str(ROOT / "tools")]
import strict_json  # noqa: E402
from commands import hint, test  # noqa: E402
from shared import course  # noqa: E402
from shared.parser import Parser  # noqa: E402
from testing import build_errors  # noqa: E402
from testing import building  # noqa: E402
from testing import gate  # noqa: E402
from testing import verdict  # noqa: E402

STAGES = json.loads((ROOT / "stages" / "stages.json").read_text())["stages"]
LANGUAGES = {"en": "README.md", "zh": "README.zh.md"}
NUMBER = re.compile(r"(?<![A-Za-z_])\d+(?:[.,]\d+)*")
CHECK = re.compile(r"([\d,.]+)(?:\D*?)<!-- check: (.*?) -->")


def folder(stage):
    return ROOT / "stages" / f"{stage['id']:02d}-{stage['slug']}"


def handouts():
    for stage in STAGES:
        for language, name in LANGUAGES.items():
            yield stage, language, folder(stage) / name


def pages():
    """All pages of all handouts as (stage, English, Chinese): the first page, then one per part."""
    for stage in STAGES:
        for english in sorted(folder(stage).glob("*.md")):
            if not english.name.endswith(".zh.md"):
                yield stage, english, english.with_suffix(".zh.md")


def has_pages(stage):
    """True if each part of the handout has a page."""
    return sum(of is stage for of, *_ in pages()) > 1


def all_pages():
    """All pages of handouts, and the page of the final project, which is not a stage."""
    yield from ([english, chinese] for _, english, chinese in pages())
    yield [ROOT / "stages" / "final" / name for name in LANGUAGES.values()]


def in_reading_order(language):
    """All pages in one language: the first page of a stage, then those of its parts, then the next stage."""
    for stage in STAGES:
        of_stage = [both[list(LANGUAGES).index(language)] for of, *both in pages() if of is stage]
        yield from sorted(of_stage, key=lambda page: (page.name != LANGUAGES[language], page.name))
    yield ROOT / "stages" / "final" / LANGUAGES[language]


def whole_handout(stage, language):
    return "\n".join(page.read_text() for _, *both in pages() if _ is stage
                     for page in [both[list(LANGUAGES).index(language)]])


def numbers_in(text):
    """The numbers that a person reads as such. Those in links are addresses, and a single digit is often a word."""
    found = NUMBER.findall(re.sub(r"\]\([^)]*\)", "]", text))
    return collections.Counter(number for number in found if len(number) > 1)


def sizes_of(model):
    config = json.loads((ROOT / "models" / model / "config.json").read_text())
    return {
        "dim": config["hidden_size"], "ffn_dim": config["intermediate_size"],
        "n_layers": config["num_hidden_layers"], "n_heads": config["num_attention_heads"],
        "n_kv_heads": config["num_key_value_heads"], "head_dim": config["head_dim"],
        "vocab_size": config["vocab_size"],
    }


def model_sizes():
    """The names that a check may use: the sizes of models/story, and with `chat.` before them those of models/chat."""
    return sizes_of("story") | {"chat": types.SimpleNamespace(**sizes_of("chat")), "round": round, "__builtins__": {}}


class Registry(unittest.TestCase):
    def test_names_files_that_exist_and_every_starter_is_named(self):
        for stage in STAGES:
            named = {unit["file"] for unit in stage["units"]}
            found = {path.name for path in folder(stage).glob("*.c*")} - {"my_tests.cpp"}
            self.assertEqual(named, found, folder(stage))
            for unit in stage["units"]:
                for answer in unit["answers"]:
                    self.assertTrue((ROOT / answer).is_file(), answer)

    def test_our_answers_say_what_they_give_away_and_no_editor_leads_there(self):
        clangd = (ROOT / ".clangd").read_text()
        hidden = re.findall(r"^    - (.*)$", clangd, re.M)
        for stage in STAGES:
            for unit in stage["units"]:
                for answer in unit["answers"]:
                    self.assertEqual(
                        (ROOT / answer).read_text().split("\n", 1)[0],
                        f"// This gives away stage {stage['id']}: it is our answer to "
                        f"stages/{folder(stage).name}/{unit['file']}.")
                    self.assertTrue(any(re.fullmatch(path, answer) for path in hidden), answer)

    def test_ids_rise_and_needs_look_back(self):
        ids = [stage["id"] for stage in STAGES]
        self.assertEqual(ids, sorted(set(ids)))
        for stage in STAGES:
            self.assertTrue(all(need < stage["id"] for need in stage["needs"]), stage["slug"])

    def test_in_a_stage_of_several_files_each_group_names_its_own(self):
        for stage in STAGES:
            files = {unit["file"] for unit in stage["units"]}
            named = {group.get("file") for group in stage["groups"]}
            self.assertEqual(named, files if len(files) > 1 else {None}, f"stage {stage['id']}")

    def test_no_folder_is_forgotten(self):
        named = {folder(stage).name for stage in STAGES}
        found = {path.name for path in (ROOT / "stages").iterdir() if path.is_dir()} - {"final"}
        self.assertEqual(named, found)


def git(*words, given=None):
    return subprocess.run(["git", "-C", str(ROOT), *words], input=given, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


TABLE_HEADS = {"en": "| stage | you write | points | minutes |", "zh": "| 阶段 | 你要写的 | 分数 | 分钟 |"}


def table_of_stages(language):
    """The table of stages as the README in that language shows it."""
    rows = [TABLE_HEADS[language], "|---|---|---|---|"]
    for stage in STAGES:
        handout = f"stages/{folder(stage).name}/{LANGUAGES[language]}"
        functions = ", ".join(f"`{function}`" for function in stage["functions"])
        points = sum(group["points"] for group in stage["groups"])
        rows.append(f"| [{stage['id']} · {stage['title'][language]}]({handout}) | {functions} | {points} "
                    f"| {stage['minutes']} |")
    return "\n".join(rows)


class Readme(unittest.TestCase):
    def test_shows_the_registry_as_a_table(self):
        for language, name in LANGUAGES.items():
            table = table_of_stages(language)
            self.assertTrue(table in (ROOT / name).read_text(), f"{name}: expected\n{table}")

    def test_stages_1_to_5_make_the_hundred_points_of_the_classic_course(self):
        points = sum(group["points"] for stage in STAGES if 1 <= stage["id"] <= 5
                     for group in stage["groups"])
        self.assertEqual(points, 100)


class Starters(unittest.TestCase):
    """The original starters, whatever a student has changed."""

    def units(self):
        for stage in course.stages():
            for unit in stage.units:
                yield stage, unit, stage.path(unit).relative_to(ROOT)

    def test_are_those_that_the_registry_names(self):
        for stage, unit, name in self.units():
            if stage.is_handed_out(unit):
                continue
            try:
                expected = stage.starter(unit).count(b"NOT_IMPLEMENTED(")
            except course.Problem:
                expected = 1  # the registry has no hash, or git has no such file
            written = (ROOT / name).read_bytes().count(b"NOT_IMPLEMENTED(") < expected
            self.assertTrue(written, f"""
{name} is not the starter that stages/stages.json names by its hash.
  Changed on purpose, or new?   python3 course grading.starters --write, and commit both files.
  Are you writing this stage?   Then this passes once its NOT_IMPLEMENTED(...) is gone.""")

    def test_can_be_given_back_by_git(self):
        if git("rev-parse", "--is-shallow-repository").stdout.strip() != "false":
            self.skipTest("no git, or a clone without its history")
        hashes = [unit.get("starter", "none") for _, unit, _ in self.units()]
        found = git("cat-file", "--batch-check", given="\n".join(hashes)).stdout.splitlines()
        self.assertEqual(len(found), len(hashes))
        for line, (_, _, name) in zip(found, self.units()):
            self.assertNotIn("missing", line, f"git lacks the starter {name}: git add {name}")

    def test_say_which_function_is_not_written(self):
        for stage in course.stages():
            try:
                text = b"".join(map(stage.starter, stage.units)).decode()
            except course.Problem as problem:
                self.skipTest(str(problem))
            for function in stage.functions:
                self.assertRegex(text, rf'NOT_IMPLEMENTED\("stage {stage.id}(\.\d)?: {function}"\)')


class Tutors(unittest.TestCase):
    def test_are_told_of_commands_and_files_that_exist_and_to_write_no_staged_function(self):
        text = (ROOT / "AGENTS.md").read_text(encoding="utf-8")
        listed = set(re.findall(r"^(?:commands=')?[A-Z][a-z ]+\|(\w+)\|", (ROOT / "stage").read_text(), re.M))
        for command in re.findall(r"\./stage (\w+)", text):
            self.assertIn(command, listed | {"help"})
        for name in re.findall(r"`((?:src|stages|tests|tools|docs)/[\w./-]*)`", text):
            self.assertTrue((ROOT / name).exists(), name)
        self.assertIn("Do not write, complete, correct or refactor a staged function", text)


class Verdicts(unittest.TestCase):
    def told(self, *wrong, part=None):
        """What ./stage test says about stage 5, or a part of it, and the next step that it names, if these groups are
        wrong."""
        result = verdict.Result(course.Stage(STAGES[5]))
        for group in result.groups:
            group.status = "wrong" if group.name in wrong else "passed"
            group.failures = [f"how {group.name} failed"] if group.name in wrong else []
        result = result if part is None else result.of_part(part)
        said = io.StringIO()
        with mock.patch.dict(os.environ, STAGECRAFT_LANG="en"), contextlib.redirect_stdout(said):
            test.tell(result)
            return said.getvalue(), test.next_step(result)

    def test_explain_the_first_wrong_group_alone_and_name_its_file(self):
        said, then = self.told("Parameters", "ParametersTied")
        self.assertIn("may have the same cause", said)
        said, then = self.told("F16ToF32", "Config")
        self.assertIn("how F16ToF32 failed", said)
        self.assertNotIn("how Config failed", said)
        self.assertNotIn("may have the same cause", said)
        self.assertIn("tests of config.cpp fail, too", said)
        self.assertIn("half_to_float.cpp", then)
        self.assertNotIn("config.cpp", then)

    def test_of_a_part_name_a_wrong_file_that_its_file_calls(self):
        said, then = self.told("F16ToF32", "ParametersInF32", part=2)
        self.assertIn("parameters.cpp calls your own functions of half_to_float.cpp", said)
        self.assertIn("half_to_float.cpp, then ./stage test 5.1", then)
        for wrong in (["ParametersInF32"], ["Config", "ParametersInF32"]):  # config.cpp is not called
            said, then = self.told(*wrong, part=2)
            self.assertNotIn("calls your own", said)
            self.assertIn("parameters.cpp, then ./stage test 5.2", then)

    def test_of_a_part_that_calls_a_missing_function_names_that_part(self):
        stage = course.Stage(STAGES[7])
        for missing, marked, expected, file in (
                ("stage 7.2: sample", False, "calls functions of 7.2 that", "sampler.cpp"),
                ("stage 7.2: sample", True, "not written yet", "generate.cpp"),
                ("stage 7.3: generate", False, "not written yet", "generate.cpp")):
            result = verdict.Result(stage)
            for group in result.groups:
                with mock.patch.object(course.Stage, "is_marked", return_value=marked):
                    group.waits_for = gate.waits_for(group, result, [{"not-written": f"{missing} is not written yet"}])
            part = result.of_part(3)
            said = io.StringIO()
            with mock.patch.dict(os.environ, STAGECRAFT_LANG="en"), contextlib.redirect_stdout(said):
                test.tell(part)
                then = test.next_step(part)
            self.assertRegex(said.getvalue(), rf"Generate +0/8 +{expected}")
            self.assertRegex(then, rf"write it in stages/07-generation/{file};")

    def test_run_no_sanitizer_if_the_failure_is_about_an_error(self):
        group = verdict.Group("Config", 10)
        group.status = "wrong"
        with mock.patch.object(test.sanitized, "where_it_happens", return_value=["asked"]):
            for kind, expected in ("wrong", ["asked"]), ("refusal", []), ("exited", []):
                group.failed_requests = [(kind, ROOT / "request")]
                self.assertEqual(test.where_it_happens(group, course.Stage(STAGES[5])), expected)

    def test_speak_of_no_other_group_where_there_is_none(self):
        said, then = self.told("Config")
        self.assertIn("how Config failed", said)
        self.assertNotIn("same cause", said)
        self.assertIn("config.cpp", then)


class Reports(unittest.TestCase):
    def test_are_read_as_utf_8_in_every_locale(self):
        script = ("import os, pathlib, sys; sys.path[:0] = sys.argv[1:3]; from testing import gate\n"
                  "def run(words, *_):\n"
                  "    path = next(word for word in words if 'json:' in word).partition('json:')[2]\n"
                  "    pathlib.Path(path).write_bytes('{\"text\": \"\\u9519\"}'.encode())\n"
                  "    return gate.limited.Ended(0, '', 0)\n"
                  "gate.limited.run, gate.confine.limited = run, lambda words, *_: words\n"
                  "print(ascii(gate.run_judge('Silu.*', 'worker', {}, sys.argv[3])[0]))")
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ, LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0")
            done = subprocess.run([sys.executable, "-B", "-c", script, ROOT / "course", ROOT / "tools", folder],
                                  env=environment, stdout=subprocess.PIPE, text=True, check=True)
        self.assertEqual(done.stdout, "{'text': '\\u9519'}\n")


WRONG = {"failures": [{"failure": "gate.cpp:1\nFailed\nwrong"}]}
SHORT = {**WRONG, "too-slow": "yes", "measured": "1 GFLOP/s"}
UNWRITTEN, UNJUDGED, UNMEASURED = {"not-written": "f"}, {"not-judged": "no AVX2"}, {"not-measured": "wrong"}
SKIPPED = {"result": "SKIPPED"}


class Points(unittest.TestCase):
    """From the gate's report to points."""

    def read(self, *tests, crashed=False, bands=1):
        group = verdict.Group("Group", 10, bands)
        tests = [{"result": "COMPLETED", **test} for test in tests]
        gate.read_group(group, tests, [("crashed", "request")] if crashed else [])
        return group.status, group.earned

    def test_of_a_group_are_given_if_every_test_passed(self):
        for tests, expected in (([], ("wrong", 0)), ([{}], ("passed", 10)), ([{}, {}], ("passed", 10)),
                                ([{}, WRONG], ("wrong", 0)), ([WRONG, {}], ("wrong", 0)),
                                ([SKIPPED], ("wrong", 0)), ([{}, SKIPPED], ("wrong", 0)),
                                ([UNWRITTEN, {}], ("unwritten", 0)), ([{}, UNWRITTEN], ("unwritten", 0)),
                                ([UNJUDGED, {}], ("unjudged", 0)), ([{}, UNMEASURED], ("unmeasured", 0))):
            self.assertEqual(self.read(*tests), expected, tests)
        self.assertEqual(self.read(UNWRITTEN, WRONG, crashed=True), ("wrong", 0))  # what crashed is written

    def test_of_speed_are_given_band_by_band_to_right_code_alone(self):
        self.assertEqual(self.read({}, {}, {}, bands=3), ("passed", 10))
        self.assertEqual(self.read({}, {}, SHORT, bands=3), ("slow", 6))
        self.assertEqual(self.read(SHORT, SHORT, SHORT, bands=3), ("slow", 0))
        self.assertEqual(self.read({}, SHORT, WRONG, bands=3), ("wrong", 0))
        self.assertEqual(self.read({}, UNMEASURED, SHORT, bands=3)[1], 0)

    def judged(self, *results, number=9):
        """gate.judge_once with these statuses, each of all groups or of one group each: (what the gate was asked, the
        statuses of all groups)"""
        asked, stage = [], course.Stage(STAGES[number])

        def run(stage, worker, seed, mistakes, keep, only):
            status = results[len(asked)]
            asked.append((mistakes, only == stage.timed))
            result = verdict.Result(stage)
            result.groups = [group for group in result.groups if group.name in only]
            each = [status] * len(result.groups) if isinstance(status, str) else status
            for group, one in zip(result.groups, each, strict=True):
                group.status = "wrong" if one == "unfinished" else one
            result.unfinished = "signal 6" if status == "unfinished" else None
            return result

        with mock.patch.object(gate, "run", run):
            result = gate.judge_once(stage, "worker", 7, pathlib.Path("kept"), "mistakes", gate.NoTurns)
        return asked, [group.status for group in result.groups]

    def test_of_speed_are_measured_only_where_all_else_is_right(self):
        stage = course.Stage(STAGES[9])
        n, n_timed = len(stage.groups), len(stage.timed)
        self.assertGreater(n, n_timed)
        asked, statuses = self.judged("wrong")
        self.assertEqual(asked, [("mistakes", False)])
        self.assertEqual((statuses.count("wrong"), statuses.count("unmeasured")), (n - n_timed, n_timed))
        asked, statuses = self.judged("passed", "slow")
        self.assertEqual(asked, [("mistakes", False), (None, True)])
        self.assertEqual((statuses.count("passed"), statuses.count("slow")), (n - n_timed, n_timed))
        _, statuses = self.judged(["unwritten"] + ["passed"] * (n - n_timed - 1))  # it may be written for easy cases
        self.assertEqual(statuses.count("unmeasured"), n_timed)
        self.assertEqual(self.judged("unwritten")[1], ["unwritten"] * n)

    def test_do_not_depend_on_the_search_for_a_mistakes_name(self):
        asked, statuses = self.judged("unfinished", "passed", number=2)
        self.assertEqual([mistakes for mistakes, _ in asked], ["mistakes", None])
        self.assertEqual(set(statuses), {"passed"})

    def test_of_a_stage_are_the_sum_of_its_groups_and_none_if_it_was_refused(self):
        result = verdict.Result(course.Stage(STAGES[5]))
        for group in result.groups[:2]:
            group.status = "passed"
        self.assertEqual((result.status, result.earned), ("begun", sum(group.points for group in result.groups[:2])))
        result.groups[0].status = "wrong"
        self.assertEqual((result.status, result.earned), ("wrong", result.groups[1].points))
        result.compile_error = "x"
        self.assertEqual((result.status, result.earned, result.is_right), ("uncompiled", 0, False))


class Warnings(unittest.TestCase):
    def test_those_of_a_students_file_are_told_once_by_its_short_name(self):
        line = ":18:7: warning: unused variable 'n' [-Wunused-variable]"
        output = "\n".join([f"{course.ROOT}/stages/01-silu/silu.cpp{line}", "   18 |   int n = 3;",
                            f"../../stages/01-silu/silu.cpp{line}", f"../../src/operators/add.cpp{line}"])
        self.assertEqual(building.warnings(output), [f"stages/01-silu/silu.cpp{line}"])

    def test_warnings_about_a_file_that_was_not_compiled_again_are_shown_again(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(building.course, "ROOT", pathlib.Path(folder)), \
                mock.patch.object(building, "WARNINGS", pathlib.Path(folder, "build", "warnings.json")):
            file = pathlib.Path(folder, "stages/01-silu/silu.cpp")
            file.parent.mkdir(parents=True)
            file.write_text("float x;\n")
            new, target = ["stages/01-silu/silu.cpp:1:1: warning: x"], "course/worker_01"
            (pathlib.Path(folder) / "build").mkdir()
            self.assertEqual(building.with_earlier(new, [target]), new)
            self.assertEqual(building.with_earlier([], [target]), new)
            self.assertEqual(building.with_earlier([], ["course/worker_02"]), [])
            file.write_text("float x = 0.0f;\n")
            self.assertEqual(building.with_earlier([], [target]), [])

    def test_a_semicolon_that_the_line_before_lacks(self):
        error = "stages/a.cpp:3:{}: error: expected ‘,’ or ‘;’ before ‘y’\n    3 | {}\n      |"
        for column, line, is_told in ((3, "  y();", True), (13, "  int x = 5 y();", False)):
            found = build_errors.first_error(error.format(column, line))
            self.assertEqual("lack a ; at its end" in found, is_told, found)

    def test_two_types_in_min_are_named(self):
        for line in "function for call to 'min(int, long unsigned int)'", "function for call to 'min'":
            found = build_errors.first_error(f"stages/a.cpp:9:1: error: no matching {line}").split("\n")
            self.assertIn("std::min<std::size_t>(16, n)", found[-1])


class Errors(unittest.TestCase):
    def said(self, error, language="en"):
        line = f"stages/01-silu/silu.cpp:9:3: error: {error}"
        with mock.patch.dict(os.environ, STAGECRAFT_LANG=language):
            found = build_errors.first_error(f"[1/2] Building\n{line}\n    9 |   x();\n      |   ^\nnote: more").split("\n")
        self.assertEqual(found[:3], [line, "    9 |   x();", "      |   ^"])
        return found[3:]

    def test_come_with_the_note_that_explains_them(self):
        line = "stages/08-chat/chat_template.cpp:9:3: error: no matching function for call to ‘encode(std::string)’"
        ours = "/a/src/text/tokenizer.h:50:26: note:   candidate expects 2 arguments, 1 provided"
        theirs = "/usr/include/c++/12/bits/x.h:5:1: note:   candidate expects 3 arguments, 1 provided"
        brace = "stages/08-chat/chat_template.cpp:7:5: note: to match this ‘{’"
        later = "stages/08-chat/chat_template.cpp:20:1: error: expected ‘}’"
        for lines, expected in (([theirs, ours.replace("/a/", "../../")], [ours.replace("/a/", "").replace(":   ", ": ")]),
                                ([theirs], []), ([brace, ours], [brace]), ([later, brace], [])):
            self.assertEqual(build_errors.first_error("\n".join([line, "    9 |   x();", *lines])).split("\n")[2:], expected)

    def test_of_headers_that_are_not_there(self):
        with mock.patch.dict(os.environ, STAGECRAFT_LANG="en"):
            for error in ("<format>: No such file or directory", "'print' file not found"):
                name = re.search(r"\w+", error)[0]
                line = f"stages/01-silu/silu.cpp:1:10: fatal error: {error.strip('<').replace('>', '')}"
                self.assertEqual(build_errors.first_error(line).split("\n")[1:],
                                 [f"this compiler does not have <{name}>: write it without"])
            test = ("stages/01-silu/my_tests.cpp:3:5: error: expected constructor, destructor, or type conversion before "
                    "‘(’ token\n    3 | TEST(Silu, Zero) {")
            self.assertEqual(build_errors.first_error(test).split("\n")[2:],
                             ["TEST is declared in <gtest/gtest.h>: add #include <gtest/gtest.h>"])

    def test_in_a_header_name_the_line_of_the_student(self):
        template = ("src/cuda_emulator/include/cuda_emulator.h: In instantiation of ‘void cuda_launch(...)’:\n"
                    "/a/stages/11-cuda/rms_norm.cu:31:14:   required from here\n"
                    "/a/src/cuda_emulator/include/cuda_emulator.h:34:39: error: static assertion failed: another number")
        inlined = ("/usr/lib/gcc/immintrin.h:305:1: error: inlining failed in call to ‘always_inline’ ‘__m512 x()’: "
                   "target specific option mismatch\n  305 | x()\n      | ^~~\n"
                   "stages/09-simd/matmul_packed.cpp:20:32: note: called from here")
        with mock.patch.dict(os.environ, STAGECRAFT_LANG="en"):
            self.assertIn("this comes from stages/11-cuda/rms_norm.cu:31", build_errors.first_error(template).split("\n"))
            self.assertEqual(build_errors.first_error(inlined).split("\n")[3:],
                             ["this comes from stages/09-simd/matmul_packed.cpp:20",
                              "your file is not compiled for the instruction set of this instruction: the handout of "
                              "stage 9 says for which"])

    def test_of_a_file_in_another_encoding_say_what_to_do(self):
        for error in "stray ‘\\377’ in program", "stray '\\376' in program", "UTF-16 (LE) is not supported":
            line = f"stages/01-silu/silu.cpp:1:1: error: {error}"
            with mock.patch.dict(os.environ, STAGECRAFT_LANG="en"):
                self.assertEqual(build_errors.first_error(f"{line}\n    1 | <ff><fe>\n"),
                                 f"{line}\nthe file is not in UTF-8: save it as UTF-8")
        self.assertEqual(self.said("stray ‘@’ in program"), [])

    def test_name_the_header_that_is_missing(self):
        for error, name, header in (
                ("‘exp’ is not a member of ‘std’", "std::exp", "cmath"),
                ("'sort' is not a member of 'std'; did you mean 'qsort'?", "std::sort", "algorithm"),
                ("‘sort’ is not a member of ‘std::ranges’", "std::ranges::sort", "algorithm"),
                ("‘vector’ in namespace ‘std’ does not name a template type", "std::vector", "vector"),
                ("‘sqrt’ was not declared in this scope", "std::sqrt", "cmath"),
                ("‘INFINITY’ was not declared in this scope", "INFINITY", "cmath"),
                ("no member named 'mismatch' in namespace 'std'", "std::mismatch", "algorithm"),  # clang
                ("no type named 'string' in namespace 'std'", "std::string", "string"),
                ("use of undeclared identifier 'NAN'", "NAN", "cmath")):
            self.assertEqual(self.said(error), [f"{name} is declared in <{header}>: add #include <{header}>"])
        for name in "__m256", "_mm256_add_ps":
            self.assertEqual(self.said(f"‘{name}’ was not declared in this scope"),
                             [f"{name} is declared in <immintrin.h>: add #include <immintrin.h>"])
        self.assertEqual(self.said("‘exp’ is not a member of ‘std’", "zh"),
                         ["std::exp 在头文件 <cmath> 里：请加上 #include <cmath>"])

    def test_name_none_for_other_names(self):
        for error in ("‘max’ was not declared in this scope", "‘exq’ is not a member of ‘std’",
                      "expected ‘;’ before ‘}’ token", "‘exp’ is not a member of ‘stagecraft’"):
            self.assertEqual(self.said(error), [])


class Texts(unittest.TestCase):
    def test_no_key_is_given_twice(self):
        paths = [*(ROOT / "stages").glob("*.json"), *(ROOT / "course" / "mistakes").glob("*/*.json")]
        self.assertGreater(len(paths), 10)
        for path in paths:
            try:
                strict_json.parse(path.read_text(encoding="utf-8"))
            except ValueError as problem:
                self.fail(f"{path}: {problem}")


class Messages(unittest.TestCase):
    def test_have_both_languages_and_the_same_places_in_them(self):
        for key, texts in course.messages().items():
            places = {language: sorted(place[1:] for place in string.Formatter().parse(text) if place[1])
                      for language, text in texts.items()}
            self.assertEqual(set(places), {"en", "zh"}, key)
            self.assertEqual(places["en"], places["zh"], key)

    def test_about_a_line_of_a_file_begin_as_those_of_a_compiler(self):
        """The grader annotates such a line."""
        for key, texts in course.messages().items():
            if texts["en"].startswith("{0}:{1}"):
                for language, text in texts.items():
                    self.assertRegex(text, r"^\{0\}:\{1\}: error: ", (key, language))


PARSERS = sorted(path.stem for path in (ROOT / "course" / "commands").glob("*.py") if "Parser(" in path.read_text())
ENGLISH = re.compile(r"[a-z]{2,} [a-z]{2,}")


def sentences(text):
    """The text without commands, which are the same in each language."""
    return re.sub(r"(\./stage|git) [ -~]*", "", text)


class CommandLines(unittest.TestCase):
    def ask(self, language, command, *words, columns=80):
        """The output of a command for words that end it: (exit code, stdout, stderr)."""
        module = importlib.import_module(f"commands.{command}")
        said, complaint = io.StringIO(), io.StringIO()
        with mock.patch.dict(os.environ, STAGECRAFT_LANG=language, COLUMNS=str(columns)), \
             mock.patch.object(sys, "argv", [command, *words]), self.assertRaises(SystemExit) as end, \
             contextlib.redirect_stdout(said), contextlib.redirect_stderr(complaint):
            module.run()
        return end.exception.code, said.getvalue(), complaint.getvalue()

    def test_are_explained_in_both_languages_and_fit_the_terminal(self):
        for command in PARSERS:
            for language in LANGUAGES:
                for columns in 60, 80, 1000:  # the last one breaks no line
                    with self.subTest(command=command, language=language, columns=columns):
                        code, said, _ = self.ask(language, command, "--help", columns=columns)
                        self.assertEqual(code, 0)
                        self.assertIn(f"./stage {command} [-h]", said)
                        for line in said.splitlines():
                            self.assertLessEqual(course.width(line), columns, line)
                        if (language, columns) == ("zh", 1000):
                            self.assertNotRegex(sentences(said), ENGLISH)
                            self.assertNotRegex(said, "(?m)^[a-z]")

    def test_use_every_text_of_help_that_there_is(self):
        with mock.patch.object(course, "say", wraps=course.say) as say:
            for command in PARSERS:
                self.ask("en", command, "--help")
        said = {call.args[0] for call in say.call_args_list}
        self.assertEqual({key for key in course.messages() if key.startswith("help_")}, said - {"pager"})

    def test_end_with_2_and_a_reason_in_the_readers_language_where_they_are_wrong(self):
        for line, words, reason in (
                ("test --nonsense", "--nonsense", "不认识的参数"),
                ("class", "--roster", "还缺少参数"),
                ("class nonsense --roster a.csv", "'nonsense'", "没有 'nonsense' 这一项"),
                ("class pull --roster a.csv --as moodle", "--as", "send 必须有"),
                ("class pull --roster a.csv --sha 1f0c", "--sha", "同用"),
                ("class grade --roster a.csv --jobs 0", "--jobs", "应为 1 到"),
                ("class viva --roster a.csv --seed 1", "--seed", "只能与 grade 同用"),
                ("class pull --roster a.csv --language en", "--language", "只能与 grade 同用"),
                ("grade --seed", "--seed", "后面要写一个值"),
                ("grade --seed x", "'x'", "应为 0 到"),
                ("grade --seed -1", "--seed", "应为 0 到"),
                ("grade --j 2", "--jobs", "不明确"),
                ("grade --annotations=2", "'2'", "后面不能写值"),
                ("reset", "stage", "还缺少参数"),
                ("grade --jobs 0", "--jobs", "应为 1 到")):
            for language in LANGUAGES:
                with self.subTest(line=line, language=language):
                    code, said, complaint = self.ask(language, *line.split())
                    last = complaint.splitlines()[-1]
                    self.assertEqual((code, said), (2, ""))
                    self.assertIn(words, last)
                    if language == "zh":
                        self.assertIn(reason, last)
                        self.assertNotRegex(sentences(complaint), ENGLISH)

    def test_need_a_text_for_each_argument(self):
        with self.assertRaises(KeyError):
            Parser("test").add_argument("--nonsense")


class Handouts(unittest.TestCase):
    def test_both_languages_have_the_same_sections_code_and_links(self):
        for both in all_pages():
            english, chinese = (path.read_text() for path in both)
            for what, pattern in {"headings": r"^#+ ", "code blocks": r"^```", "links": r"\]\(",
                                  "folds": r"<details>", "tables": r"^\|"}.items():
                self.assertEqual(len(re.findall(pattern, english, re.M)),
                                 len(re.findall(pattern, chinese, re.M)), f"{both[0]}: {what}")
            commands = r"^\$ (\./stage [^#\n]*)"
            self.assertEqual(re.findall(commands, english, re.M), re.findall(commands, chinese, re.M))

    def test_the_map_shows_the_part_of_every_stage(self):
        for stage in STAGES:
            for language, ending in zip(LANGUAGES, ("", ".zh")):
                self.assertIn(f"docs/figures/map-{stage['id']}{ending}.svg", whole_handout(stage, language))

    def test_both_languages_have_the_same_numbers(self):
        for english, chinese in all_pages():
            here, there = (numbers_in(path.read_text()) for path in (english, chinese))
            with self.subTest(page=english):
                self.assertEqual(here - there, collections.Counter(), "numbers of this page alone")
                self.assertEqual(there - here, collections.Counter(), "numbers of the Chinese page alone")

    def test_every_answer_is_what_the_story_model_gives(self):
        sizes = model_sizes()
        for stage, _, path in handouts():
            checks = CHECK.findall(path.read_text())
            self.assertEqual(len(checks), 2, f"{path}: two questions with a number each")
            for printed, expression in checks:
                number = float(printed.replace(",", "").rstrip("."))
                self.assertEqual(number, eval(expression, sizes), f"{path}: {expression}")

    def test_hints_unfold_one_at_a_time_three_or_four_per_stage_or_two_or_three_per_part_with_points(self):
        for stage, *both in pages():
            parts = {str(group["part"]) for group in stage["groups"] if "part" in group}
            if has_pages(stage):
                parts &= {both[0].name[0]}
            least, most = (2 * len(parts), 3 * len(parts)) if parts or has_pages(stage) else (3, 4)
            for word, path in zip(("Hint", "提示"), both):
                found = re.findall(rf"<summary>{word} (\d)</summary>", path.read_text())
                self.assertEqual(found, [str(n + 1) for n in range(len(found))], path)
                self.assertTrue(least <= len(found) <= most, path)

    def test_every_hint_can_be_shown(self):
        """On a page for all parts, ./stage hint 8.1 shows only the hints that begin with "8.1"."""
        for stage, *both in pages():
            parts = {f"{stage['id']}.{group['part']}" for group in stage["groups"] if "part" in group}
            for path in both:
                found = hint.hints(path)
                self.assertEqual(len(found), len(re.findall(r"<summary>(?:Hint|提示) ", path.read_text())), path)
                if parts and not has_pages(stage):
                    named = {name for name in parts if any(text.startswith(name) for text in found)}
                    self.assertEqual(named, parts, f"{path}: a hint for each part")
                    lost = [text for text in found if not any(text.startswith(name) for name in parts)]
                    self.assertEqual(lost, [], f"{path}: each hint must begin with its part")

    def test_every_part_names_its_command_and_points_on_its_page_or_in_a_table(self):
        for stage in STAGES:
            for group in stage["groups"]:
                if "part" not in group:
                    continue
                points = sum(g["points"] for g in stage["groups"] if g.get("part") == group["part"])
                name = f"{stage['id']}.{group['part']}"
                if not has_pages(stage):
                    for language in LANGUAGES:
                        self.assertRegex(whole_handout(stage, language), rf"\| {name} .* \| {points} \| `./stage test {name}` \|")
                    continue
                found = [both for of, *both in pages() if of is stage and both[0].name[0] == str(group["part"])]
                self.assertEqual(len(found), 1, f"{stage['slug']}: pages of part {group['part']}")
                for path in found[0]:
                    text = path.read_text()
                    self.assertIn(f"./stage test {name}\n", text, path)
                    self.assertRegex("".join(text.splitlines()[:3]), rf"\b{points}( points| 分)", path)

    def test_every_part_that_is_written_has_a_question_before_the_code(self):
        for stage, *both in pages():
            if "## Before you code\n" not in both[0].read_text():
                continue  # the test of the sections knows which pages may lack it
            for path, heading in zip(both, ("Before you code", "动手之前")):
                section = re.search(rf"^## {heading}\n(.*?)^## ", path.read_text(), re.M | re.S)[1]
                self.assertRegex(section, r"<details><summary>.+?</summary>\n\n", path)

    def test_further_reading_has_a_paper_and_something_else(self):
        is_paper = re.compile(r"https://(arxiv\.org|doi\.org)/|\.pdf$")
        for _, *both in pages():
            for path, heading in zip(both, ("Further reading", "延伸阅读")):
                section = path.read_text().partition(f"\n## {heading}\n")[2]
                links = re.findall(r"\]\((https:[^)]+)\)", section)
                self.assertTrue(any(map(is_paper.search, links)), f"{path}: a paper")
                self.assertFalse(all(map(is_paper.search, links)), f"{path}: an article or a lecture")

    def test_points_and_minutes_stand_in_the_first_lines(self):
        for stage, _, path in handouts():
            head = "".join(path.read_text().splitlines()[:6])
            points = sum(group["points"] for group in stage["groups"])
            self.assertIn(str(points), head, path)


# The sections of each handout, in this order.
SECTIONS = {
    "The problem": "要解决的问题", "A figure": "图", "The formula": "公式", "Shapes": "形状", "By hand": "手算一个例子",
    "Before you code": "动手之前", "The contract": "约定", "Steps": "步骤", "What people get wrong": "常见错误",
    "Hints": "提示", "See it in the model": "在模型里看一看", "Afterwards": "之后", "Further reading": "延伸阅读",
}
LACKS = {
    "05-parameters/README.md": {"The formula", "Shapes", "By hand", "The contract", "What people get wrong",
                                "Hints"},  # the pages of the parts have them
    "05-parameters/2-names-and-shapes.md": {"The formula"},
    "05-parameters/3-config.md": {"The formula"},
    "06-self-attention/README.md": {"By hand", "The contract", "Hints"},  # the pages of the parts have them
    "06-self-attention/1-averages.md": {"Before you code", "The contract", "Steps", "Hints"},  # nothing to write
}
OTHER_ORDER = {
    "06-self-attention/1-averages.md",  # the example leads to the formula
}
OTHER_SECTIONS = {  # pages of parts may have others
    "05-parameters/README.md": ["The three parts"],
    "06-self-attention/README.md": ["The six parts"],
}


def sections_of(path):
    """Its headings of the second level."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.M | re.S)
    return re.findall(r"^## (.*)$", text, re.M)


class Sections(unittest.TestCase):
    def test_are_the_same_in_every_handout(self):
        for _, english, _ in pages():
            name = str(english.relative_to(ROOT / "stages"))
            headings = sections_of(english)
            known = list(dict.fromkeys(heading for heading in headings if heading in SECTIONS))
            expected = [heading for heading in SECTIONS if heading not in LACKS.get(name, ())]
            if name in OTHER_ORDER:
                known, expected = sorted(known), sorted(expected)
            self.assertEqual(known, expected, english)
            others = [heading for heading in headings if heading not in SECTIONS]
            if english.name == LANGUAGES["en"]:
                self.assertEqual(others, OTHER_SECTIONS.get(name, []), english)

    def test_have_the_same_names_in_every_chinese_handout(self):
        for _, english, chinese in pages():
            here, there = sections_of(english), sections_of(chinese)
            self.assertEqual(len(here), len(there), chinese)
            for heading, found in zip(here, there):
                self.assertEqual(found, SECTIONS.get(heading, found), f"{chinese}: '{heading}'")


GLOSSARIES = {"en": ROOT / "docs" / "glossary.md", "zh": ROOT / "docs" / "glossary.zh.md"}
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)")
NO_PROSE = (r"^```.*?^```$", r"^<!-- own work.*?^<!-- end of own work -->$", r"<details>.*?</details>", r"<!--.*?-->",
            r"`[^`]*`", r"!\[.*?\]\(.*?\)", r"^#+ [^\n]*$")


class Term:
    """An entry of the glossary."""
    # For these words a program cannot distinguish the term from the everyday word ("passed by value"); in Chinese this
    # also holds for every term of one character. They must be linked somewhere, and on the same pages in both
    # languages.
    EVERYDAY = "value", "scale", "参数"

    def __init__(self, anchor, name, section):
        self.anchor, self.name = anchor, name
        self.is_everyday = name.lower() in self.EVERYDAY or len(name) == 1
        self.begins = "cuda" if section == "GPU" else "hello"  # earlier, "thread" is an ordinary word of C++

    def pattern(self):
        if not self.name.isascii():
            return re.escape(self.name)
        stem, ending = self.name, r"(?:s|es)?"
        for tail, forms in ("y", "(?:y|ies)"), ("isation", r"i[sz]\w+"), ("ise", r"i[sz]\w+"):
            if self.name.endswith(tail):
                stem, ending = self.name.removesuffix(tail), forms
        words = re.escape(stem).replace(r"\ ", r"\s+")
        return rf"(?<![A-Za-z0-9_-]){words}{ending}(?![A-Za-z0-9_])"


def terms(language):
    """The entries of a glossary: {anchor: Term}."""
    section, anchor, found = None, None, {}
    for line in GLOSSARIES[language].read_text().splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif named := re.match(r'<a id="(.*?)">', line):
            anchor = named[1]
        elif line.startswith("### "):
            heading = line[4:]
            place = anchor or re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            found[place] = Term(place, re.split(r" \(|（", heading)[0], section)
    return found


def blanked(pattern, text):
    """The text with blanks for what fits the pattern; other characters keep their places."""
    return re.sub(pattern, lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.M | re.S)


def prose(path):
    """The sentences that a student reads: no code, no headings, nothing folded."""
    text = path.read_text()
    for pattern in NO_PROSE:
        text = blanked(pattern, text)
    return text


def glossary_links(text, language):
    """(position, anchor) for each link to an entry."""
    start = f"../../docs/{GLOSSARIES[language].name}#"
    return [(link.start(), link[2].removeprefix(start)) for link in LINK.finditer(text) if link[2].startswith(start)]


class Glossary(unittest.TestCase):
    def uses(self, text, sought, language):
        """(position, Term) for each use of a term. A longer term hides a shorter one in it, and the text of other links
        does not count."""
        start = f"../../docs/{GLOSSARIES[language].name}#"
        titles = "|".join(re.escape(link[0]) for link in LINK.finditer(text) if not link[2].startswith(start))
        text = blanked(r"\]\([^)\s]+\)", blanked(titles, text) if titles else text)
        named = sorted(sought.values(), key=lambda term: -len(term.name))
        pattern = "|".join(f"({term.pattern()})" for term in named)
        return [(found.start(), named[found.lastindex - 1]) for found in re.finditer(pattern, text, re.I)]

    def missing_links(self, language):
        """For each term, its first use if it has no link to its entry there or earlier in the course."""
        sought, linked, missing, begun = terms(language), set(), {}, set()
        for page in in_reading_order(language):
            begun |= {stage["slug"] for stage in STAGES if folder(stage) == page.parent}
            text = prose(page)
            links = [(at, 0, anchor) for at, anchor in glossary_links(text, language)]
            uses = [(at, 1, term.anchor) for at, term in self.uses(text, sought, language)]
            for at, is_use, anchor in sorted(links + uses):
                if not is_use:
                    linked.add(anchor)
                elif anchor not in linked | set(missing) and sought[anchor].begins in begun:
                    if not sought[anchor].is_everyday:
                        line = text.count("\n", 0, at) + 1
                        missing[anchor] = (f"{page.relative_to(ROOT)}:{line}: this is the first use of "
                                           f"'{sought[anchor].name}': link it to {GLOSSARIES[language].name}#{anchor}")
        for term in sought.values():
            if term.is_everyday and term.anchor not in linked:
                missing[term.anchor] = f"no handout links '{term.name}' to {GLOSSARIES[language].name}#{term.anchor}"
        return list(missing.values())

    def test_is_linked_where_a_term_is_first_used(self):
        for language in LANGUAGES:
            missing = self.missing_links(language)
            self.assertEqual(missing, [], "\n" + "\n".join(missing))

    def test_is_linked_on_the_same_pages_in_both_languages(self):
        for english, chinese in zip(in_reading_order("en"), in_reading_order("zh")):
            here, there = (collections.Counter(anchor for _, anchor in glossary_links(prose(page), language))
                           for page, language in ((english, "en"), (chinese, "zh")))
            self.assertEqual(here, there, f"{english} and its Chinese page link other entries of the glossary")


def numbers(values, digits=4):
    """A list of numbers as handouts write it."""
    return "[" + ", ".join(f"{value:.{digits}f}".rstrip("0").rstrip(".") if value == round(value)
                           else f"{value:.{digits}f}" for value in values) + "]"


def silu(x):
    return x / (1 + math.exp(-x))


def softmax(x, temperature=1.0):
    powers = [math.exp(value / temperature) for value in x]
    return [power / sum(powers) for power in powers]


def score_after_rope(query_at, key_at):
    """The score of the query (1, 0) and the key (0.6, 0.8), each rotated by one radian per position."""
    between = query_at - key_at - math.atan2(0.8, 0.6)
    return math.cos(between)


def turns(head_dim, theta):
    """The table of part 6.4: how fast each pair rotates."""
    for i in (0, 1, 2, head_dim // 2 - 1):
        speed = theta ** (-2 * i / head_dim)
        whole = 2 * math.pi / speed
        yield (f"| {i} | {speed:.4f} | {whole:.1f} " if speed > 0.1 else f"| {i} | {speed:.6f} | {whole:,.0f} ")


def header_of_the_story_model():
    """The first entries of the header of model.safetensors, one per line of the handout."""
    with open(ROOT / "models" / "story" / "model.safetensors", "rb") as file:
        return [f"{entry}}}," for entry in file.read(400)[8:].decode().split("},")[:3]]


def by_hand():
    """The results of the examples by hand, computed: {slug: texts that both handouts must contain}."""
    ffn = [value / math.sqrt(12.5) for value in (3.0, 4.0)]
    a = silu(ffn[0]) * ffn[1]
    shares, cold = softmax([2, 1, 0]), softmax([2, 1, 0], 0.5)
    score = 2 / math.sqrt(2)
    seen = softmax([0, score])
    masked = softmax([-3, -2, 0, 0])
    scale = struct.unpack("<e", struct.pack("<e", 0.01))[0]
    q8 = [round(value / 0.01) for value in (0.5, -1.27, 0.8, 0)]
    return {
        "hello": [numbers([1 + 10, 2 + 20])],
        "silu": [f"| {' | '.join(numbers([silu(x)])[1:-1] for x in (-2, -1, 0, 1, 2))} |",
                 f"{math.exp(1):.4f}", f"{3 * silu(1):.4f}"],
        "rms-norm": [numbers([x / 1.5 for x in (1, -2, 2, 0)]),
                     numbers(2 * [0.002 / math.sqrt(0.002 ** 2 + 1e-5)])],
        "matmul-transb": [f"[[{1 * 3 + 2 * 4}, {1 * 5 + 2 * 6}], [{0 * 3 + 1 * 4}, {0 * 5 + 1 * 6}]]",
                          f"[[{1 * 3 + 2 * 5}, {1 * 4 + 2 * 6}], [{0 * 3 + 1 * 5}, {0 * 4 + 1 * 6}]]",
                          f"[[{2 * 11 + 1}, {2 * 17 + 1}], [{2 * 4 + 1}, {2 * 6 + 1}]]"],
        "mlp": [numbers(ffn), f"{silu(ffn[0]):.4f}", f"{a:.4f}", numbers([a, -a]), numbers([3 + a, 4 - a])],
        "parameters": [f"0x{struct.unpack('<H', struct.pack('<e', 0.15625))[0]:04x}",
                       f"0x{struct.unpack('<I', struct.pack('<f', 0.15625))[0]:08x}",
                       f"0x{struct.unpack('<I', struct.pack('<f', 0.15625))[0] >> 16:04x}",
                       f"{2.0 ** -24:.8f}", f"= 2 · 48 = {2 * 48}", f"192 · 512 · 2 = {192 * 512 * 2}",
                       f"{1573248 + 192 * 512 * 2}", f"192 / 4 = {192 // 4}", f"4 · 48 = {4 * 48}", f"4 · 64 = {4 * 64}",
                       f"8 · 16 = {8 * 16}", *header_of_the_story_model()],
        "self-attention": [numbers(softmax([0, 1])), f"{1 + math.exp(-1):.4f}", numbers([math.exp(-1), 1]),
                           f"({math.cos(1):.4f}, {math.sin(1):.4f})", f"{score_after_rope(3, 1):.4f}",
                           f"{score_after_rope(3, 2):.4f}", *turns(48, 10_000), f"{math.sqrt(48):.1f}",
                           numbers([0, score]), numbers(seen), numbers([10 * seen[0], 10 * seen[1]], 3),
                           "[" + ", ".join(f"{w:.4f}" for w in softmax([7, 0, -7])) + "]",
                           "[" + ", ".join(f"{w:.4f}" for w in softmax([1, 0, -1])) + "]",
                           numbers(masked), f"{sum(masked[2:]):.4f}", f"8 / 2 = {8 // 2}", f"12 / 4 = {12 // 4}",
                           f"7 / 3 = {7 // 3}"],
        "simd": [numbers([1 * 5 + 3 * 7, 2 * 6 + 4 * 8]), f"`{1 * 5 + 2 * 6 + 3 * 7 + 4 * 8}`",
                 f"= {numbers([1 + 2 + 3, 4 + 5 + 6])}`"],
        "quantization": [numbers(q8), f"0x{struct.unpack('<H', struct.pack('<e', 0.01))[0]:04x}",
                         f"[{', '.join(f'{value * scale:.4f}' for value in q8)}]",
                         f"{sum(map(lambda a, b: a * b, q8, (10, 20, -30, 40)))}",
                         f"{sum(map(lambda a, b: a * b, q8, (10, 20, -30, 40))) * 0.5 * scale:.4f}"],
        "cuda": [f"{math.exp(-2):.4f}", f"{math.exp(-2) + 1:.4f}", f"{10 * math.exp(-2) + 20:.4f}",
                 f"{(10 * math.exp(-2) + 20) / (math.exp(-2) + 1):.4f}"],
        "generation": [numbers(shares), numbers(cold), f"{shares[0] / (shares[0] + shares[1]):.4f}"],
    }


class ByHand(unittest.TestCase):
    def test_every_example_comes_to_what_the_handout_says(self):
        for stage, language, path in handouts():
            if stage["slug"] == "chat":
                continue  # its ids and counts are those of models/chat, which walk_test.py checks
            for text in by_hand()[stage["slug"]]:
                self.assertIn(text, whole_handout(stage, language), path)


if __name__ == "__main__":
    unittest.main()
