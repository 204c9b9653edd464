"""The student's loop in a repository of its own (student_repository.py). The gates' own messages are tested elsewhere.

Standard library only; ctest runs it.
"""
import contextlib
import fcntl
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree
from unittest import mock

from student_repository import Repository, course
from commands import card
from commands import diff
from commands import hint
from commands import test
from commands import watch
from grading import sanitized
from mine import gain
from shared import lock
from shared import screen
from testing import progress


class Where(Repository):
    def states(self, **options):
        """{stage: (points, state)}, and the lines after the table."""
        table, _, rest = self.run_tool("where", **options).partition("\n\n")
        rows = re.findall(r"^ +(\d+)  .*?(\d+ / \d+)   (.+)$", table, re.M)
        return {int(number): (points, state) for number, points, state in rows}, rest

    def test_a_new_student_waits_for_nothing(self):
        shutil.rmtree(self.made / "build")
        states, rest = self.states()
        self.assertEqual({state for _, state in states.values()}, {"not written yet", "optional"})
        self.assertFalse((self.made / "build").exists())
        self.assertIn("stages/00-hello/README.md", rest)
        self.assertIn("./stage test 0", rest)
        self.assertIn("./stage help", rest.splitlines()[-1])

    def test_shows_the_map_until_a_stage_is_begun(self):
        _, rest = self.states()
        self.assertIn("Once upon a", rest)
        self.assertIn("./stage tour", rest)
        self.assertIn("概率", self.states(language="zh")[1])
        self.write("00-hello/add.cpp", "RIGHT")
        self.assertNotIn("./stage tour", self.states()[1])

    def test_a_merge_that_stopped_in_a_registry_is_one_line(self):
        for name in "messages", "stages":
            path = self.made / "stages" / f"{name}.json"
            text = path.read_text()
            path.write_text(text.replace("{", "{\n<<<<<<< HEAD", 1))
            self.run_tool("where", code=2)
            path.write_text(text)
            self.assertRegex(self.stderr, rf"^stage: stages/{name}\.json: expected JSON: .*git status says so\n$")

    def test_says_what_became_of_every_stage(self):
        self.write("00-hello/add.cpp", "RIGHT")
        self.write("01-silu/silu.cpp", "WRONG")
        self.write("02-rms-norm/rms_norm.cpp", "SYNTAX")
        self.write("03-matmul-transb/matmul_transb.cpp", "RIGHT")
        self.write("04-mlp/mlp.cpp", "changed, and not written")
        states, rest = self.states()
        self.assertEqual(states[0], ("0 / 0", "right"))
        self.assertEqual(states[1], ("0 / 10", "wrong"))
        self.assertEqual(states[2], ("0 / 20", "does not compile"))
        self.assertEqual(states[3], ("30 / 30", "right"))
        self.assertEqual(states[4], ("0 / 20", "not written yet"))
        self.assertIn("total", self.run_tool("where"))
        self.assertIn("./stage test 1", rest)
        states, rest = self.states(language="zh")
        self.assertEqual(states[3], ("30 / 30", "正确"))
        self.assertIn("下一步", rest)

    def test_half_a_stage_is_no_mistake(self):
        self.write("00-hello/add.cpp", "RIGHT")
        self.write("01-silu/silu.cpp", "the group Silu")
        states, rest = self.states()
        self.assertEqual(states[1], ("6 / 10", "right so far, not finished"))
        self.assertIn("write silu.cpp", rest)
        self.write("06-self-attention/softmax.cpp", "the group Softmax")
        text = self.run_tool("test", "6", code=1)
        self.assertIn("6 of 50 points", text)
        self.assertNotIn("reference versions", text)
        self.assertTrue(text.splitlines()[-1].startswith("write it in "), text)
        self.write("06-self-attention/softmax.cpp", "WRONG")
        self.assertIn("(this group tests part 6.2: stages/06-self-attention/2-softmax.md)",
                      self.run_tool("test", "6", code=1))
        self.assertNotIn("(this group tests", self.run_tool("test", "6.2", code=1))

    def test_what_this_machine_cannot_judge_is_passed_over(self):
        for stage in course.stages()[:9]:
            for unit in stage.units:
                self.write(f"{stage.folder.name}/{unit['file']}", "RIGHT")
        self.write("09-simd/matmul_packed.cpp", "OLD")
        states, rest = self.states()
        self.assertEqual(states[9], ("0 / 30", "cannot be judged on this machine"))
        self.assertIn("next: stage 10", rest)
        self.assertIn("stage 9 must be tested on another machine", self.run_tool("test", "9"))
        self.assertIn("write it in stages/10-", self.run_tool("test", code=1))

    def test_a_file_that_is_gone_is_the_matter_of_its_stage(self):
        (self.made / "stages" / "02-rms-norm" / "rms_norm.cpp").unlink()
        shutil.rmtree(self.made / "stages" / "11-cuda")
        states, _ = self.states()
        self.assertEqual((states[2][1], states[11][1]), ("a file is missing", "optional"))

    def test_settings_that_cannot_be_read_are_one_line(self):
        (self.made / "course.json").write_bytes('{"nickname": "小明"}'.encode("gbk"))
        self.addCleanup((self.made / "course.json").unlink)
        self.run_tool("update", code=2)
        self.assertEqual(self.stderr.count("\n"), 1)

    def test_what_is_right_and_slow_has_the_points_of_its_bands_and_is_no_mistake(self):
        self.write("09-simd/matmul_packed.cpp", "SLOW")
        states, _ = self.states()
        self.assertEqual(states[9], ("17 / 30", "right, and can be faster"))
        self.assertEqual(self.states()[0][9], states[9])  # from the stored verdict
        text = self.run_tool("test", "9", code=1)
        self.assertIn("SpeedOfOneRow              2/6   right, and can be faster\n    this band begins at", text)
        self.assertNotIn("other wrong cases", text)
        self.assertTrue(text.splitlines()[-1].startswith("right; to make it faster edit "), text)

    def test_speed_is_shown_with_the_steps_that_are_reached(self):
        self.write("09-simd/matmul_packed.cpp", "SLOW")
        text = self.run_tool("bench", "--mine", "9")
        self.assertEqual(text.splitlines()[1:3], ["  7 GFLOP/s", "    reached: 1 of 3"])
        self.run_tool("bench", "--mine", "2", code=2)
        self.assertIn("judged by their speed: 9, 10", self.stderr)
        self.write("09-simd/matmul_packed.cpp", "changed, and not written")
        self.run_tool("bench", "--mine", "9", code=2)
        self.assertIn("stage 9 is not written yet", self.stderr)

    def test_finds_nothing_out_twice(self):
        self.write("00-hello/add.cpp", "RIGHT")
        first, _ = self.states()
        self.assertIn("testing stage 0", self.stderr)
        n = len(self.calls())
        self.assertGreater(n, 0)
        self.assertEqual(self.states()[0], first)
        self.assertEqual((len(self.calls()), self.stderr), (n, ""))

    def test_a_change_of_the_students_or_of_ours_is_looked_at(self):
        self.write("00-hello/add.cpp", "RIGHT")
        self.states()
        self.write("00-hello/add.cpp", "WRONG")
        self.assertEqual(self.states()[0][0][1], "wrong")
        n = len(self.calls())
        answer = self.made / "src" / "operators" / "add.cpp"
        answer.write_text(answer.read_text() + "\n")
        self.states()
        self.assertGreater(len(self.calls()), n)

    def test_writes_nothing_outside_build(self):
        self.write("00-hello/add.cpp", "WRONG")
        self.states()
        self.run_tool("hint")
        self.assertEqual(self.git("status", "--porcelain").split(), ["M", "stages/00-hello/add.cpp"]
                         + ["??", "bin/"])

    def test_columns_stand_below_each_other_in_chinese(self):
        table = self.run_tool("where", language="zh").partition("\n\n")[0].splitlines()
        ends = {course.width(line[:line.index("/")]) for line in table if "/" in line}
        self.assertEqual(len(ends), 1 + len({len(str(stage.points)) for stage in course.stages()}), ends)


class Test(Repository):
    def test_shows_one_part_of_a_stage_and_names_the_next(self):
        self.write("06-self-attention/softmax.cpp", "the group Softmax")
        lines = self.run_tool("test", "6.2").splitlines()
        self.assertEqual(lines[0], "stage 6.2 · Self-attention: 6 of 6 points")
        self.assertRegex(lines[1], r"^  Softmax +6/6 +right$")
        self.assertEqual(lines[2:], [
            "next: part 6.3, stages/06-self-attention/3-queries-and-keys.md (in the terminal: ./stage read 6.3)"])
        lines = self.run_tool("test", "6.3", code=1).splitlines()
        self.assertEqual(lines[0], "stage 6.3 · Self-attention: 0 of 12 points")
        self.assertEqual(len(lines), 3)
        self.assertTrue(lines[2].startswith("write it in "), lines)
        self.run_tool("test", "2.1", code=2)
        self.assertIn("stage 2 is tested as a whole", self.stderr)

    def test_a_passed_stage_takes_one_line_among_several(self):
        self.write("00-hello/add.cpp", "RIGHT")
        self.write("01-silu/silu.cpp", "RIGHT")
        self.write("02-rms-norm/rms_norm.cpp", "WRONG")
        lines = self.run_tool("test", "0-3", code=1).splitlines()
        self.assertTrue(lines[0].startswith("stage 0 "))
        self.assertTrue(lines[1].startswith("stage 1 "))
        self.assertTrue(lines[2].startswith("stage 2 "))
        self.assertIn("a case", "".join(lines[3:]))
        self.assertIn("total: 10 of 60 points", lines)
        self.assertIn("./stage test 2", lines[-1])
        self.assertEqual(self.run_tool("test", "0-1").splitlines()[-1],
                         "see it in the model: ./stage story --mine 0-1; ours beside yours: ./stage diff 1")

    def test_without_a_number_it_is_the_next_unfinished(self):
        self.write("00-hello/add.cpp", "RIGHT")
        self.write("01-silu/silu.cpp", "WRONG")
        lines = self.run_tool("test", code=1).splitlines()
        self.assertEqual(lines[0], "stage 0 · Hello, residual: 0 of 0 points, right")
        self.assertIn("./stage story --mine 0", lines[1])  # the reward is still shown
        self.assertTrue(lines[2].startswith("stage 1 "), lines)
        self.assertIn("./stage test 1", lines[-1])
        self.assertTrue(self.run_tool("test", code=1).startswith("stage 1 "))  # stage 0 is known to pass

    def test_the_next_command_names_a_stage_by_its_number(self):
        for name in ("01-silu/silu.cpp", "02-rms-norm/rms_norm.cpp"):
            self.write(name, "RIGHT")
        self.assertIn("./stage story --mine 1;", self.run_tool("test", "01"))
        self.assertIn("./stage story --mine 1-2;", self.run_tool("test", "01-02"))

    def test_a_composed_stage_says_what_it_was_composed_of(self):
        self.write("04-mlp/mlp.cpp", "WRONG")
        self.assertIn("(0, 1, 2, 3) are the reference versions here", self.run_tool("test", "4", code=1))
        self.write("04-mlp/mlp.cpp", "RIGHT")
        self.assertNotIn("reference versions", self.run_tool("test", "4"))

    def test_a_file_that_is_gone_is_one_line(self):
        (self.made / "stages" / "02-rms-norm" / "rms_norm.cpp").unlink()
        self.assertIn("./stage reset 2 rms_norm.cpp", self.run_tool("test", "2", code=1))

    def test_own_tests_are_shown_and_count_for_nothing(self):
        self.write("01-silu/silu.cpp", "RIGHT")
        self.write("01-silu/my_tests.cpp", "mine")
        self.put("build/release/course/my_tests_01", "#!/bin/sh\necho one of mine failed\nexit 1\n")
        text = self.run_tool("test", "1")
        self.assertIn("stage 1 · SiLU and SwiGLU: 10 of 10 points", text)
        self.assertIn("    one of mine failed", text)
        self.assertIn("build --only my_tests_01", self.calls())
        self.put("build/release/course/my_tests_01", "#!/bin/sh\nkill -SEGV $$\n")
        self.assertIn("ended by signal 11", self.run_tool("test", "1"))


    def test_waits_for_another_one_of_the_same_stage_before_it_builds(self):
        self.write("01-silu/silu.cpp", "RIGHT")
        path = self.made / "build" / "course" / "requests-01.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            with subprocess.Popen(self.command("test", "1"), env=self.environment(), stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True) as running:
                said, calls = running.stderr.readline(), self.calls()
                fcntl.flock(other, fcntl.LOCK_UN)
                running.communicate(timeout=60)
        self.assertIn("waiting for another ./stage that tests stage 1", said)
        self.assertEqual((running.returncode, calls, self.calls()), (0, [], ["build --only gate worker_01"]))

    def test_nobody_replaces_the_requests_before_all_is_explained(self):
        stage = course.stages()[1]
        path, seen = stage.requests.with_suffix(".lock"), []
        with mock.patch.object(progress, "judge"), mock.patch.object(test, "run_my_tests"), \
                mock.patch.object(course, "tell"), mock.patch.object(test, "next_step"), \
                mock.patch.object(test, "tell", lambda *_: seen.append(path in lock.mine)):
            test.test_and_tell(stage)
            test.test_part(stage, 1)
        self.assertEqual((seen, path in lock.mine), ([True, True], False))

    def test_notes_of_several_processes_are_all_kept(self):
        script = ("import sys; sys.path[:0] = sys.argv[1:3]; from testing import progress; from shared import course\n"
                  "for n in range(40): progress.note(f'{sys.argv[3]} {n}', course.stages()[0], n)")
        words = [sys.executable, "-B", "-c", script, str(self.made / "course"), str(self.made / "tools")]
        for child in [subprocess.Popen([*words, name]) for name in "abc"]:
            self.assertEqual(child.wait(60), 0)
        self.assertEqual(len(json.loads((self.made / "build" / "course" / "notes.json").read_text())), 120)


class Hint(Repository):
    def test_one_more_a_call_and_then_no_more(self):
        shown = [self.run_tool("hint", "2") for _ in range(5)]
        self.assertEqual(len(set(shown)), 4)
        for n in range(3):
            self.assertIn(f"hint {n + 1} of 3", shown[n])
        self.assertIn("./stage broken 2", shown[3])
        self.assertEqual(shown[3], shown[4])
        self.assertIn("hint 1 of 3", self.run_tool("hint", "3"))

    def test_in_the_readers_language_and_of_the_next_stage(self):
        self.write("00-hello/add.cpp", "RIGHT")
        self.assertIn("阶段 1，提示 1 / 3", self.run_tool("hint", language="zh"))

    def test_of_a_stage_with_parts_those_of_the_first_part_that_is_not_right_or_of_one_that_is_named(self):
        self.assertIn("stage 6.2, hint 1 of 2", self.run_tool("hint", "6"))
        self.assertIn("stage 6.5, hint 1 of 2", self.run_tool("hint", "6.5"))
        self.write("06-self-attention/softmax.cpp", "the group Softmax")
        self.assertIn("stage 6.3, hint 1 of 3", self.run_tool("hint", "6"))
        self.assertIn("stage 6.2, hint 2 of 2", self.run_tool("hint", "6.2"))
        self.assertIn("stages/06-self-attention/2-softmax.md", self.run_tool("hint", "6.2"))
        self.run_tool("hint", "6.1", code=2)
        self.assertIn("expected 6.2 to 6.6", self.stderr)

    def test_code_is_marked_and_chinese_lines_are_joined(self):
        page = self.made / "page.md"
        page.write_text("<details><summary>提示 1</summary>\n\n用 <code>x</code> 乘\n每一行。\n\n</details>\n"
                        "<details><summary>答案</summary>3</details>\n", encoding="utf-8")
        self.assertEqual(hint.hints(page), ["用 `x` 乘每一行。"])

    def test_every_one_is_plain_text(self):
        for language in ("en", "zh"):
            with mock.patch.dict(os.environ, STAGECRAFT_LANG=language):
                for page in (page for stage in course.stages() for page in stage.pages):
                    for text in hint.hints(page):
                        self.assertNotRegex(text, r"</?(code|details|summary)>|&lt;|&gt;|^$")
                        for line in course.wrapped(text, hint.COLUMNS, hint.INDENT, hint.INDENT):
                            self.assertLessEqual(course.width(line), hint.COLUMNS)


class Terminal(io.StringIO):
    def __init__(self, columns):
        super().__init__()
        self.columns = columns

    def isatty(self):
        return True


class Screen(unittest.TestCase):
    def setUp(self):
        patched = mock.patch.dict(os.environ, {"TERM": "xterm", "NO_COLOR": "", "COLUMNS": "30"})
        patched.start()
        self.addCleanup(patched.stop)

    def test_text_is_broken_between_words_where_a_person_reads_it_and_left_alone_elsewhere(self):
        text = "    a sentence of which a terminal would break a word\n" + "x" * 40
        terminal, pipe = Terminal(30), io.StringIO()
        screen.tell(text, terminal)
        screen.tell(text, pipe)
        self.assertEqual(pipe.getvalue(), text + "\n")
        self.assertEqual(terminal.getvalue().splitlines(), [
            "    a sentence of which a", "      terminal would break a", "      word", "x" * 40])
        with mock.patch.object(sys, "stdout", terminal):
            painted = course.paint("a sentence of which a terminal", "31")  # colours take no columns
        self.assertEqual(list(screen.fitted(painted, 30)), [painted])

    def test_what_takes_more_than_a_second_is_named_and_the_line_taken_back(self):
        with mock.patch.object(screen, "PATIENCE", 0.01), mock.patch.object(sys, "stderr", Terminal(30)) as said:
            with screen.doing("testing stage 3"):
                while not said.getvalue().endswith("testing stage 3 ..."):
                    time.sleep(0.01)
                with screen.doing("compiling stage 3, with a text that is too long for the line"):
                    while not said.getvalue().endswith("\033[Kcompiling stage 3, with a"):
                        time.sleep(0.01)
                self.assertTrue(said.getvalue().endswith("\r\033[Ktesting stage 3 ..."))  # shown again
            self.assertTrue(said.getvalue().endswith("\r\033[K"))
        with mock.patch.object(screen, "PATIENCE", 60), mock.patch.object(sys, "stderr", Terminal(30)) as said:
            with screen.doing("at once"):
                pass
            self.assertEqual(said.getvalue(), "")
        with contextlib.redirect_stderr(io.StringIO()) as said, mock.patch.object(screen, "PATIENCE", 0):
            with screen.doing("in a log"):
                time.sleep(0.05)
            self.assertEqual(said.getvalue(), "")

    def test_what_is_longer_than_the_terminal_goes_through_a_pager(self):
        with mock.patch.object(sys, "stdin", Terminal(30)), mock.patch.object(sys, "stdout", Terminal(30)) as said, \
                mock.patch.dict(os.environ, {"LINES": "5", "PAGER": f"{sys.executable} -c 'pass'"}), \
                mock.patch.object(subprocess, "run") as run:
            screen.page(["a", "b", "c", "d"])
            self.assertEqual(said.getvalue(), "a\nb\nc\nd\n")
            run.assert_not_called()
            screen.page(["a"] * 9)
            self.assertEqual(run.call_args[0][0], [sys.executable, "-c", "pass"])
            with mock.patch.dict(os.environ, {"STAGECRAFT_LANG": "zh"}):
                course.page(["a"] * 9)
            self.assertIn("空格：下一页，q：退出", run.call_args[1]["env"]["LESS"])

    def test_a_reader_who_has_enough_ends_it_quietly(self):
        for words, code in (("course broken 5", "(0|141)"),
                            ("-c 'from shared import course; course.main(lambda: [print(\"stage \" * 99) for _ in range(9999)])'", ".*")):
            done = subprocess.run(["bash", "-c", f"{sys.executable} {words} | head -1; echo ${{PIPESTATUS[0]}}"],
                                  cwd=course.ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env=dict(os.environ, STAGECRAFT_LANG="en", PYTHONPATH=f"{course.ROOT}/course:{course.ROOT}/tools"))
            self.assertEqual(done.stderr, "")
            self.assertRegex(done.stdout, rf"^stage .*\n{code}\n$")


class Card(Repository):
    def test_is_for_who_has_every_stage_right(self):
        self.write("00-hello/add.cpp", "RIGHT")
        self.assertEqual(self.run_tool("card", code=2), "")
        self.assertIn("not yet right: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10", self.stderr)

    def test_the_story_of_a_card_ends_with_a_sentence(self):
        self.assertEqual(card.whole_sentences('A cat sat. "Hi!"\nIt was shi'), 'A cat sat. "Hi!"')
        self.assertEqual(card.whole_sentences("no end at all"), "no end at all")

    def test_is_a_picture_that_says_in_words_what_it_shows(self):
        picture = xml.etree.ElementTree.fromstring(card.svg(["A & B", "100 points"], ["One day, <Tom> said:"]))
        texts = {element.tag.rpartition("}")[2]: "".join(element.itertext()) for element in picture}
        self.assertEqual(texts["title"], "A & B")
        self.assertEqual(texts["desc"], "A & B 100 points One day, <Tom> said:")

    def test_days_are_those_from_the_first_verdict_to_the_last_right_stage(self):
        first, second = course.stages()[:2]
        with mock.patch.object(progress, "NOTES", self.made / "notes.json"):
            self.assertEqual(progress.days([first, second]), 0)
            for kind, stage, day in (("begun", first, "2026-02-27"), ("begun", second, "2026-02-28"),
                                     ("right", first, "2026-02-27"), ("right", second, "2026-03-01")):
                progress.note(kind, stage, day)
            self.assertEqual(progress.days([first, second]), 3)


class Gain(unittest.TestCase):
    def test_adds_one_stage_about_speed_at_a_time(self):
        found = [(new and new.id, gain.selection(stages)) for new, stages in gain.rungs(course.stages())]
        self.assertEqual(found, [(None, "0-8"), (9, "0-9"), (10, "0-10")])
        found = [(new and new.id, gain.selection(stages))
                 for new, stages in gain.rungs([course.stages()[at] for at in (3, 5, 10)])]
        self.assertEqual(found, [(None, "3,5"), (10, "3,5,10")])

    def test_takes_the_speed_of_the_new_tokens_not_of_the_prompt(self):
        line = "[64 tokens, 88 tokens/s; prompt 5 tokens, 67 tokens/s; first token after 75 ms; x; 1 thread; seed 1]"
        self.assertEqual(gain.SPEED.search(line)[1], "88")


class Diff(Repository):
    def test_ours_is_shown_only_after_passing(self):
        for text in "WRONG", "SYNTAX", "changed":
            self.write("00-hello/add.cpp", text)
            self.assertEqual(self.run_tool("diff", "0", code=2), "")
            self.assertEqual(self.stderr.splitlines()[-1],
                             "stage: our code is shown once stage 0 passes: ./stage test 0")
        self.write("00-hello/add.cpp", "RIGHT")
        lines = self.run_tool("diff", "0").splitlines()
        self.assertEqual(lines[0], "--- stages/00-hello/add.cpp (yours)")
        self.assertTrue(any(line.startswith("+void add(") for line in lines))

    def test_shows_code_without_comments_includes_and_namespaces_and_where_it_stands(self):
        mine = """// mine
#include <vector>
namespace stagecraft {
namespace {
int twice(int x) { return 2 * x; }  // of an integer
}  // namespace

/* for each
   row */
void f() {
  const char* text = "// no comment, no }";  // but this is

  char quote = '"'; int many = 1'000;
  g(text);
}
}  // namespace stagecraft
"""
        ours = mine.replace("// mine", "// Copyright\n").replace("of an integer", "doubles").replace("<vector>", "<string>")
        self.assertEqual([line for _, line in diff.code(mine)], [
            "int twice(int x) { return 2 * x; }", "void f() {", '  const char* text = "// no comment, no }";',
            "  char quote = '\"'; int many = 1'000;", "  g(text);", "}"])
        self.assertEqual(list(diff.difference(diff.code(mine), diff.code(ours))), [])
        found = list(diff.difference(diff.code(mine), diff.code(ours.replace("g(text)", "h(text)"))))
        self.assertEqual(found[0], ("@", 10))
        self.assertEqual([line for line in found if line[0] in "+-"], [("-", "  g(text);"), ("+", "  h(text);")])

    def test_leaves_out_helpers_that_the_starter_gave_and_nobody_changed(self):
        starter = """namespace stagecraft {
namespace {

// Given: twice x.
[[maybe_unused]] int twice(int x) {
  return 2 * x;
}

// Given: half of x.
[[maybe_unused]] int half(int x) { return x / 2; }

}  // namespace

void f() { NOT_IMPLEMENTED("f"); }

}  // namespace stagecraft
"""
        mine = starter.replace('NOT_IMPLEMENTED("f");', "g(twice(1));").replace("x / 2", "x >> 1")
        ours = "int twice(int x) { return x + x; }\nvoid f() { g(2); }\n"
        given = diff.helpers(starter)
        self.assertEqual(list(given), ["twice", "half"])
        left, of_ours, names = diff.without_given(diff.code(mine), diff.code(ours), given)
        self.assertEqual([line for _, line in left], ["int half(int x) { return x >> 1; }", "void f() { g(twice(1)); }"])
        self.assertEqual([line for _, line in of_ours], ["void f() { g(2); }"])
        self.assertEqual(names, ["twice"])
        self.assertEqual(diff.helpers("namespace stagecraft {\nvoid f() {\n}\n}  // namespace stagecraft\n"), {})

    def test_colour_is_for_a_terminal_that_wants_it(self):
        terminal = mock.Mock(isatty=lambda: True)
        for environment, painted in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
            with mock.patch.dict(os.environ, {"NO_COLOR": "", "TERM": "xterm", **environment}), \
                    mock.patch.object(sys, "stdout", terminal):
                self.assertEqual(course.paint("x", "31") != "x", painted)
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(course.paint("x", "31"), "x")


class Reset(Repository):
    def starter(self):
        return self.git("show", "HEAD:stages/02-rms-norm/rms_norm.cpp")

    def test_gives_back_what_was_committed_over_and_keeps_what_stood_there(self):
        folder = self.made / "stages" / "02-rms-norm"
        starter, head = self.starter(), self.git("rev-parse", "HEAD").strip()
        for text in ("first", "second"):
            self.write("02-rms-norm/rms_norm.cpp", text)
            self.git("commit", "-qam", text)
            self.assertIn("rms_norm.cpp", self.run_tool("reset", "2"))
            self.assertEqual((folder / "rms_norm.cpp").read_text(), starter)
        self.assertEqual((folder / "rms_norm.cpp.1").read_text(), "// first\n")
        self.assertEqual((folder / "rms_norm.cpp.2").read_text(), "// second\n")
        self.assertNotIn("cpp.1", self.git("status", "--porcelain"))
        self.assertIn("nothing to do", self.run_tool("reset", "2"))
        self.assertFalse((folder / "rms_norm.cpp.3").exists())
        self.git("reset", "-q", "--hard", head)

    def test_one_file_of_several_and_one_that_is_gone(self):
        self.write("06-self-attention/softmax.cpp", "mine")
        self.write("06-self-attention/rope.cpp", "mine")
        (self.made / "stages" / "06-self-attention" / "attention.cpp").unlink()
        self.run_tool("reset", "6", "rope.cpp")
        self.assertEqual(self.git("status", "--porcelain", "stages").split(),
                         ["D", "stages/06-self-attention/attention.cpp",
                          "M", "stages/06-self-attention/softmax.cpp"])
        self.run_tool("reset", "6")
        self.assertEqual(self.git("status", "--porcelain", "stages"), "")
        self.run_tool("reset", "6", "other.cpp", code=2)
        self.assertIn("softmax.cpp", self.stderr)

    def test_without_the_history_nothing_is_moved(self):
        self.write("02-rms-norm/rms_norm.cpp", "mine")
        (self.made / ".git").rename(self.made / "away")
        try:
            self.run_tool("reset", "2", code=2, GIT_CEILING_DIRECTORIES=str(self.made.parent))
        finally:
            (self.made / "away").rename(self.made / ".git")
        self.assertIn("has no starter of", self.stderr)
        self.assertFalse((self.made / "stages" / "02-rms-norm" / "rms_norm.cpp.1").exists())

    def test_renew_takes_over_a_starter_that_was_edited_and_no_solution(self):
        registry = self.made / "stages" / "stages.json"
        before = registry.read_text()
        path = self.made / "stages" / "02-rms-norm" / "rms_norm.cpp"
        path.write_text(path.read_text() + "// more\n")
        self.write("01-silu/silu.cpp", "RIGHT")
        self.run_tool("grading.starters", "--write")
        after = registry.read_text()
        self.assertEqual(len(before), len(after))
        self.assertIn(self.git("hash-object", str(path)).strip(), after)
        changed = [line for line in after.splitlines() if line not in before.splitlines()]
        self.assertEqual(len(changed), 1, changed)
        self.run_tool("reset", code=2)


class Watch(Repository):
    def setUp(self):
        super().setUp()
        self.seen = self.made / "build" / "seen"

    def start(self, *words):
        with self.seen.open("w") as out:
            running = subprocess.Popen(self.command("watch", *words), env=self.environment(),
                                       stdout=out, stderr=subprocess.STDOUT)
        self.addCleanup(running.wait, 10)
        self.addCleanup(running.kill)
        return running

    def wait_for(self, words, seconds=30.0):
        start = time.monotonic()
        while words not in self.seen.read_text():
            self.assertLess(time.monotonic() - start, seconds, self.seen.read_text())
            time.sleep(0.02)

    def test_every_save_is_tested_and_passing_leads_on(self):
        self.assertLess(watch.SECONDS, 1.0)  # two seconds are promised, but a busy machine may need more
        running = self.start()
        self.wait_for("watching stages/00-hello")
        self.write("00-hello/add.cpp", "WRONG")
        self.wait_for("Add is wrong", 10.0)
        self.write("00-hello/add.cpp", "RIGHT")
        self.wait_for("watching stages/01-silu", 10.0)
        self.assertIn("stage 0 passes. On to stage 1", self.seen.read_text())
        running.send_signal(signal.SIGINT)
        self.assertEqual(running.wait(10), 130)
        self.assertNotIn("Traceback", self.seen.read_text())
        self.assertNotIn("\033", self.seen.read_text())

    def test_when_all_is_done_it_stays_and_says_so_and_tests_whatever_is_saved(self):
        known = course.stages()
        saved = iter([known[3], None])  # then Ctrl-C
        tested = []

        def wait(stages, before):
            stage = next(saved)
            if stage is None:
                raise KeyboardInterrupt
            return stage

        with mock.patch.object(watch, "wait_for_a_save", wait), mock.patch.object(sys, "argv", ["watch"]), \
                mock.patch.object(watch.progress, "next_unfinished", lambda known: None), \
                mock.patch.object(watch, "test_once", lambda stage, part: tested.append(stage.id) or True), \
                contextlib.redirect_stdout(io.StringIO()) as said, self.assertRaises(KeyboardInterrupt):
            watch.run()
        self.assertEqual(tested, [3])
        self.assertEqual(said.getvalue().count(course.say("where_all_done")), 2)

    def test_a_stage_that_was_named_is_kept(self):
        self.write("01-silu/silu.cpp", "RIGHT")
        self.start("1")
        self.wait_for("watching stages/01-silu")
        self.assertIn("see it in the model: ./stage story --mine 1", self.seen.read_text())  # there is nothing to edit
        self.write("01-silu/silu.cpp", "SYNTAX")
        self.wait_for("that is no C++", 10.0)


    def test_a_part_that_was_named_is_shown(self):
        self.write("06-self-attention/softmax.cpp", "WRONG")
        self.start("6.2")
        self.wait_for("watching stages/06-self-attention")
        self.assertIn("stage 6.2", self.seen.read_text())
        self.assertNotIn("AttentionBlock", self.seen.read_text())


class Debug(Repository):
    def test_starts_the_worker_on_the_case_that_fails(self):
        self.write("01-silu/silu.cpp", "WRONG")
        self.run_tool("test", "1", code=1)
        n = len(self.calls())
        text = self.run_tool("debug", "1")
        self.assertIn("worker_01_debug][", text)
        self.assertIn("/requests-01.debug/001-Silu.T-another_case][", text)  # which the next test does not delete
        self.assertIn("stagecraft::swiglu", text)  # the function in the request
        self.assertNotIn("stagecraft::silu", text)
        self.assertEqual(self.calls()[n:], ["build --only worker_01_debug"])

    def test_or_on_the_one_that_is_named(self):
        self.write("01-silu/silu.cpp", "WRONG")
        self.assertIn("000-Silu.T-a_case][", self.run_tool("debug", "1", "silu.t-a case"))
        self.run_tool("debug", "1", "no such", code=2)
        self.assertIn("\n  000-Silu.T-a_case\n", self.stderr)

    def test_or_on_the_first_one_of_a_part(self):
        self.write("07-generation/sampler.cpp", "WRONG")
        self.assertIn("001-Forward.T-another_case][", self.run_tool("debug", "7"))
        self.assertIn("001-Sample.T-another_case][", self.run_tool("debug", "7.2"))
        self.assertIn("000-Sample.T-a_case][", self.run_tool("debug", "7.2", "a case"))
        self.run_tool("debug", "7.2", "forward", code=2)
        self.assertIn("stage 7.2 has no case like 'forward'", self.stderr)
        self.assertNotIn("Forward.T", self.stderr)

    def test_says_why_there_is_nothing_to_debug(self):
        self.run_tool("debug", "1", code=2)
        self.assertIn("not written yet", self.stderr)
        self.write("01-silu/silu.cpp", "WRONG")
        self.run_tool("test", "1", code=1)
        self.write("01-silu/silu.cpp", "SYNTAX")
        self.run_tool("debug", "1", code=2)
        self.assertIn("does not compile", self.stderr)
        self.write("01-silu/silu.cpp", "RIGHT")  # the requests of the last test are about other code
        self.run_tool("debug", "1", code=2)
        self.assertIn("no case fails", self.stderr)
        self.run_tool("debug", "6.1", code=2)
        self.assertIn("6.2 to 6.6", self.stderr)
        self.run_tool("reset", "6.3", code=2)
        self.assertIn("takes whole stages: 6", self.stderr)

    def test_without_a_debugger_it_says_how_to_get_one(self):
        tools = pathlib.Path(tempfile.mkdtemp(dir=self.made / "build"))
        (tools / "git").symlink_to(shutil.which("git"))
        self.run_tool("debug", "1", code=2, **{"PATH": str(tools)})
        self.assertRegex(self.stderr, "no debugger is installed: (install gdb|xcode-select)")
        (tools / "apt-get").symlink_to("/bin/true")
        self.run_tool("debug", "1", code=2, **{"PATH": str(tools)})
        self.assertRegex(self.stderr, "./stage packages gdb|xcode-select")


class Sanitized(unittest.TestCase):
    STAGE = next(stage for stage in course.stages() if stage.id == 2)

    def test_the_first_complaint_without_addresses(self):
        for text, expected in {
            "==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602 at pc 0x1 bp 0x2\nREAD of size 4 at":
                "AddressSanitizer: heap-buffer-overflow, READ of size 4",
            "==7==ERROR: AddressSanitizer: stack-overflow on address 0x7ffe (pc 0x56 bp 0x7)":
                "AddressSanitizer: stack-overflow",
            "../../stages/a.cpp:8:29: runtime error: store to null pointer of type 'int'\n":
                "runtime error: store to null pointer of type 'int'",
            "/usr/include/c++/12/span:278: constexpr std::span<_Type, _Extent>::element_type& std::span<"
            "_Type, _Extent>::operator[](size_type) const [with _Type = float]: Assertion "
            "'__idx < size()' failed.\nAddressSanitizer: ABRT":
                "span::operator[]: Assertion '__idx < size()' failed",
            "worker: ../../src/tensor/matrix.h:45: T& stagecraft::MatrixView<T>::operator()(std::size_t, "
            "std::size_t) const [with T = float]: Assertion `r < rows_ && c < cols_' failed.":
                "MatrixView::operator(): Assertion `r < rows_ && c < cols_' failed",
            "nothing of that kind": "",
        }.items():
            self.assertEqual(sanitized.first_complaint(text), expected)

    def test_a_complaint_of_addresses_is_also_said_in_other_words(self):
        with course.in_language("en"):
            for complaint, expected in (("use-after-poison, READ of size 32", "reads 32 bytes behind the end of a row"),
                                        ("heap-buffer-overflow, WRITE of size 4", "writes 4 bytes outside"),
                                        ("heap-use-after-free, READ of size 4", "memory that was freed"),
                                        ("stack-overflow", "memory for local variables is used up")):
                line, = sanitized.meaning(f"AddressSanitizer: {complaint}")
                self.assertIn(expected, line)
        self.assertEqual(sanitized.meaning("runtime error: store to null pointer"), [])

    def test_the_first_place_in_the_students_own_files(self):
        trace = ("    #0 0x1 in operator() ../../src/tensor/matrix.h:46\n"
                 "    #1 0x2 in stagecraft::rms_norm ../../stages/02-rms-norm/rms_norm.cpp:21\n"
                 "    #2 0x3 in f ../../stages/02-rms-norm/rms_norm.cpp:30\n")
        self.assertEqual(sanitized.own_line(trace, self.STAGE),
                         (f"stages/{self.STAGE.folder.name}/rms_norm.cpp", 21, "crash_at", ""))
        self.assertIsNone(sanitized.own_line("#0 in main worker.cpp:3", self.STAGE))

    def test_a_line_that_freed_the_memory_is_not_called_its_use(self):
        own = f"stages/{self.STAGE.folder.name}/rms_norm.cpp"
        used = "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x602\n    #0 0x1 in f {0}\n\n"
        freed = f"freed by thread T0 here:\n    #0 0x2 in ~vector stl_vector.h:366\n    #1 0x2 in g {own}:8\n\n"
        made = f"previously allocated by thread T0 here:\n    #0 0x3 in g {own}:7\n"
        self.assertEqual(sanitized.own_line(used.format(f"{own}:30") + freed + made, self.STAGE),
                         (own, 30, "crash_at", ""))
        self.assertEqual(sanitized.own_line(used.format("worker.cpp:3") + freed + made, self.STAGE),
                         (own, 8, "crash_freed_at", ""))
        overflow = "AddressSanitizer: heap-buffer-overflow\n    #0 0x1 in f worker.cpp:3\n\n" + made[11:]
        self.assertEqual(sanitized.own_line(overflow, self.STAGE), (own, 7, "crash_memory_at", ""))
        stack = f"Address 0x7 is located in stack of thread T0 at offset 32 in frame\n    #0 0x2 in g {own}:9\n"
        self.assertEqual(sanitized.own_line("AddressSanitizer: stack-buffer-overflow\n" + stack, self.STAGE),
                         (own, 9, "crash_memory_at", ""))

    def test_the_file_that_called_the_first_place(self):
        stage = next(stage for stage in course.stages() if stage.id == 6)
        called, caller = (f"stages/06-self-attention/{name}.cpp" for name in ("attention", "attention_block"))
        trace = f"    #0 0x1 in attention ../../{called}:31\n    #1 0x2 in attention_block ../../{caller}:40\n"
        place = sanitized.own_line(f"runtime error: division by zero\n{trace}", stage)
        self.assertEqual(place, (called, 31, "crash_at", f"{caller}:40"))
        with course.in_language("en"):
            self.assertEqual(sanitized.in_words("runtime error: division by zero", place, "")[-1], f"called from {caller}:40")


if __name__ == "__main__":
    unittest.main()
