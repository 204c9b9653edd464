"""The sheets of questions about a student's own code."""
import os
import random
import re
import sys
import time
import types
import unittest
from unittest import mock

from make_class import ROOT, STAGES
from class_case import entry
from classroom import marks
from classroom import viva
from grading import submission
from shared import course
from testing import verdict


class Viva(unittest.TestCase):
    def test_changes_code_and_no_comment_or_text(self):
        code = "float f(float x) {\n  return x * 2.0f;\n}\n"
        found = viva.mutants(code)
        self.assertTrue(found)
        for hidden in ('const char* n = R"(\n/*\n)";\n', 'const char* n = "/* a + b";\n', "/* a + b\n */\n", "// a + b\n"):
            lines = hidden.count("\n")
            self.assertEqual(viva.mutants(hidden + code), [(at + lines, *rest) for at, *rest in found], hidden)

    def test_without_a_change_says_whether_something_is_right(self):
        os.environ["STAGECRAFT_LANG"] = "en"
        nothing, right = ("\n".join(viva.sheet("kim", "a" * 40, [], right)) for right in ({}, dict.fromkeys(STAGES[1:3])))
        self.assertIn("no part of this student's code passes", nothing)
        self.assertIn("Right, as a whole or in part: stages 1, 2. But we found no small change of this code", right)

    def test_asks_about_the_groups_that_pass_whatever_the_rest_of_their_stage_is(self):
        def mark(id, statuses, started=True):
            stage = STAGES[id]
            groups = [{"name": group["name"], "points": group["points"], "status": status}
                      for group, status in zip(stage.groups, statuses)]
            return marks.StageMark(stage, {**entry(stage), "groups": groups, "started": started}, None, 1)

        passed = ["passed"] * 9
        record = types.SimpleNamespace(stages=[
            mark(0, passed), mark(1, passed, started=False), mark(2, ["wrong", "wrong"]), mark(3, ["passed", "wrong", "passed"]),
            mark(5, ["passed", *["unwritten"] * 3, "passed", "crashed", "unwritten"]), mark(9, passed),
            marks.StageMark(STAGES[10], None, None, None)])
        right = viva.right_groups(record)
        self.assertEqual({stage.id: names for stage, names in right.items()},
                         {3: ["MatmulTransb", "MatmulTransbViews"], 5: ["Bf16ToF32", "ParametersTied"],
                          9: ["MatmulPacked", "MatmulPackedRows"]})
        self.assertEqual([[unit["file"] for unit in viva.files_of(stage, names)] for stage, names in right.items()],
                         [["matmul_transb.cpp"], ["half_to_float.cpp", "parameters.cpp"], ["matmul_packed.cpp"]])

    def test_breaks_long_lines_so_that_a_file_in_one_line_has_changes(self):
        text = (ROOT / "src/operators/attention.cpp").read_text()
        code = re.sub(r"//[^\n]*", "", text)
        directives = "".join(line + "\n" for line in code.splitlines() if line.startswith("#"))
        rest = " ".join(line for line in code.splitlines() if not line.startswith("#"))
        self.assertGreater(len(rest), viva.LONGEST)
        one_line = directives + rest
        self.assertEqual(viva.mutants(one_line), [])
        start = time.process_time()
        viva.mutants(f"#define X {'if(' * 80_000}\nint a;\nthrow 1;\n")
        self.assertLess(time.process_time() - start, 5)
        broken = viva.in_short_lines(one_line)
        self.assertEqual(broken.replace("\n", ""), one_line.replace("\n", ""))
        self.assertEqual(len(viva.mutants(broken)), len(viva.mutants(code)))
        for kept in (code, f"#define A {'x; ' * 200}\\\n{'y; ' * 200}\n", f'const char* a = "{"x; " * 200}";'):
            self.assertEqual(viva.in_short_lines(kept).splitlines(), kept.splitlines())

    def test_changes_no_check_of_arguments_but_all_other_code(self):
        named = "float f(float check_x) {\n  const float throw_away = check_x * 2.0f;\n  return throw_away;\n}\n"
        self.assertEqual(len(viva.mutants(named)), len(viva.mutants(named.replace("check_", "").replace("throw_", ""))))
        check = "if (n == 0 || n % 2 != 0) {\n  throw Error(\"n: expected 2 * k\");\n}\n"
        for hidden in (check, check.replace("{", "").replace("}", ""), "check_size(\"f\", \"x\", n * 2,\n  1);\n"):
            self.assertEqual(viva.mutants(hidden), [], hidden)
            self.assertEqual(len(viva.mutants(hidden + named)), len(viva.mutants(named)))

    def test_asks_about_wrong_results_alone(self):
        def result(status, *kinds):
            made = verdict.Result(STAGES[1])
            for group in made.groups:
                group.status = status
            made.groups[0].failures = ["case 1"] if status in ("wrong", "slow") else []
            made.groups[0].failed_requests = [(kind, "request") for kind in kinds]
            return made

        self.assertTrue(viva.is_on_the_sheet(result("wrong", "wrong")))
        for other in (None, result("passed"), result("slow"), result("unwritten"), result("wrong", "wrong", "crashed"),
                      result("wrong", "hung"), result("wrong", "overrun")):
            self.assertFalse(viva.is_on_the_sheet(other), other and other.status)
        stopped, without_report = result("wrong"), result("wrong")
        stopped.groups[0].failures = []
        without_report.unfinished = "killed by SIGKILL"
        for other in stopped, without_report:
            self.assertFalse(viva.is_on_the_sheet(other))

    def test_asks_once_about_a_line_and_never_about_one_of_the_starter(self):
        stage = STAGES[4]
        name = course.unit_name(stage, stage.units[0])
        starter = next(line for line in stage.starter(stage.units[0]).decode().splitlines() if viva.mutants(line))
        one = submission.Submission("kim")
        one.files = {name: f"{starter}\nint a = b + c + d + 1;\nint e = f == 2;\n".encode()}
        self.assertEqual({line for _, _, (_, line, _) in viva.candidates(one, {stage: ["Mlp"]}, random.Random(1))},
                         {"int a = b + c + d + 1;", "int e = f == 2;"})
        with mock.patch.object(viva, "judged"), mock.patch.object(viva, "is_on_the_sheet", lambda result: True):
            found = viva.changes(one, {stage: ["Mlp"]}, 1)
        self.assertEqual(sorted(mutant[0] for _, _, mutant, _, _ in found), [2, 3])

    def test_shows_the_lines_around_a_change(self):
        os.environ["STAGECRAFT_LANG"] = "en"
        stage = STAGES[1]
        name = course.unit_name(stage, stage.units[0])
        one = submission.Submission("kim")
        one.files = {name: b"void f() {\n  int a = 1;\n  int b = 0;\n  g(a);\n}\n"}
        result = verdict.Result(stage)
        result.groups[0].failures = ["case 1"]
        found = [(stage, name, (3, "  int b = 0;", "  int b = 1;"), result, viva.around(one, name, 3))]
        sheet = "\n".join(viva.sheet("kim", "a" * 40, found, {stage: ["Silu"]}))
        self.assertIn("  void f() {\n    int a = 1;\n-   int b = 0;\n+   int b = 1;\n    g(a);\n  }\n", sheet)
        self.assertIn("We looked for three, and found 1", sheet)

    def test_a_line_without_end_has_no_changes(self):
        for long in "2 " * 100_000, "template<" * 30_000:
            self.assertEqual(viva.mutants(f"#if 0\n{long}\n#endif\n"), [])


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
