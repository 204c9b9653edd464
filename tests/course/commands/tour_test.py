"""Checks the tour, the glossary and the READMEs: what they say about models/story equals what the program says, both
languages agree, each link has a target, and ./stage tour fits a terminal of 80x24: tour_test.py BUILD

--update writes the present output of the commands into both tours. Standard library only.
"""
import functools
import json
import os
import pathlib
import pty
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "course"), str(ROOT / "tools")]
from shared import course  # noqa: E402
from shared import markdown  # noqa: E402
from commands import read as read_command  # noqa: E402
from commands import tour  # noqa: E402

TOURS = DOCS / "tour.md", DOCS / "tour.zh.md"
GLOSSARIES = DOCS / "glossary.md", DOCS / "glossary.zh.md"
READMES = ROOT / "README.md", ROOT / "README.zh.md"
CHECK = re.compile(r"([\d,.]+)(?:\D*?)<!-- check: (.*?) -->")
BLOCK = re.compile(r"^```\n(\$ .*?)\n```$", re.M | re.S)


def read(path):
    return path.read_text(encoding="utf-8")


def printed(command):
    program = shlex.quote(str(pathlib.Path(BUILD) / "src" / "stagecraft"))
    done = subprocess.run(["bash", "-c", command.replace("./stage", program)], cwd=ROOT, text=True, timeout=120,
                          env=dict(os.environ, STAGECRAFT_HOME=str(ROOT), COLUMNS="78", LC_ALL="C.UTF-8"),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.rstrip("\n")


def steps(block):
    """[(command, its output)] in a code block."""
    _, *parts = re.split(r"^\$ (.*)\n", block, flags=re.M)
    return list(zip(parts[::2], (part.rstrip("\n") for part in parts[1::2])))


def says(expected, found):
    """True if the output fits. "..." on a line of its own stands for any number of lines."""
    pattern = re.escape(expected).replace(re.escape("...") + "\\\n", "(.*\n)*")
    return re.fullmatch(pattern, found) is not None


def updated(text):
    """The page with the present output of the commands; after "..." the page keeps its number of lines."""
    def renewed(match):
        blocks = []
        for command, expected in steps(match[1]):
            found = printed(command)
            if expected.startswith("...\n"):
                found = "\n".join(["...", *found.split("\n")[-expected.count("\n"):]])
            blocks.append(f"$ {command}\n{found}")
        return "```\n" + "\n".join(blocks) + "\n```"
    return BLOCK.sub(renewed, text)


class Numbers(unittest.TestCase):
    def test_every_command_of_the_tour_prints_what_the_tour_says(self):
        for path in TOURS:
            for block in BLOCK.findall(read(path)):
                for command, expected in steps(block):
                    found = printed(command)
                    self.assertTrue(says(expected, found), f"{path.name}: $ {command}\n{found}")

    def test_every_number_with_a_check_is_the_models(self):
        data = json.loads(read(DOCS / "figures" / "story.json"))
        names = {**data["sizes"], **data, "round": round, "__builtins__": {}}
        for path in (*TOURS, *GLOSSARIES):
            found = CHECK.findall(read(path))
            self.assertGreaterEqual(len(found), 5, path)
            for said, expression in found:
                said = said.strip(".,").replace(",", "")
                digits = len(said.partition(".")[2])
                self.assertEqual(float(said), round(eval(expression, dict(names)), digits), f"{path}: {expression}")

    def test_both_languages_hold_the_same(self):
        for english, chinese in (TOURS, GLOSSARIES):
            english, chinese = read(english), read(chinese)
            self.assertEqual([re.sub(r"\D", "", said) + expression for said, expression in CHECK.findall(english)],
                             [re.sub(r"\D", "", said) + expression for said, expression in CHECK.findall(chinese)])
            for pattern in (r"^#+ ", r"<details>", r"!\[.*?\]\((.*?)\)", BLOCK.pattern):
                self.assertEqual(len(re.findall(pattern, english, re.M | re.S)),
                                 len(re.findall(pattern, chinese, re.M | re.S)), pattern)
            self.assertEqual(BLOCK.findall(english), BLOCK.findall(chinese))


def anchors(path):
    """The possible targets of links in a page: its headings as GitHub spells them, and its <a id>."""
    text = re.sub(r"^```.*?^```$", "", read(path), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    spelled = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return spelled | set(re.findall(r'<a id="(.*?)"', text))


class Links(unittest.TestCase):
    def test_lead_to_a_file_and_to_an_anchor_that_exist(self):
        folders = "course", "docs", "examples", "models", "python", "reference", "src", "stages", "tests"
        pages = [*ROOT.glob("*.md"), *(page for folder in folders for page in (ROOT / folder).rglob("*.md"))]
        self.assertGreater(len(pages), 60)
        for page in pages:
            text = re.sub(r"^```.*?^```$", "", read(page), flags=re.M | re.S)
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, anchor = target.partition("#")
                path = (page.parent / name).resolve() if name else page
                self.assertTrue(path.exists(), f"{page.relative_to(ROOT)}: {target}")
                if anchor and path.suffix == ".md":
                    self.assertIn(anchor, anchors(path), f"{page.relative_to(ROOT)}: {target}")

    def test_both_glossaries_have_the_same_terms(self):
        english = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
                   for heading in re.findall(r"^### (.*)$", read(GLOSSARIES[0]), re.M)}
        self.assertEqual(english, set(re.findall(r'<a id="(.*?)"', read(GLOSSARIES[1]))))

    def test_no_readme_leads_to_an_answer(self):
        answers = {answer for stage in course.stages() for unit in stage.units for answer in unit["answers"]}
        for readme in READMES:
            for target in re.findall(r"\]\(([^)#\s]+)", read(readme)):
                self.assertNotIn(target, answers, f"{readme.name}: this gives a stage away")


def lines_of(paths):
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def counted():
    """{what a README counts lines of: their number}"""
    answers = {ROOT / answer for stage in course.stages() for unit in stage.units for answer in unit["answers"]}
    headers = {path.with_suffix(".h") for path in answers if path.with_suffix(".h").exists()}
    sources = [path for ending in ("*.cpp", "*.h") for path in (ROOT / "src").rglob(ending)]
    return {"answers": lines_of(answers | headers), "src": lines_of(sources)}


class Readme(unittest.TestCase):
    def test_counts_lines_within_a_tenth(self):
        for readme in READMES:
            said = re.findall(r"([\d,]+)\D*?<!-- lines: (\w+) -->", read(readme))
            self.assertEqual(len(said), 2, readme)
            for number, what in said:
                number, found = int(number.replace(",", "")), counted()[what]
                self.assertLessEqual(abs(number - found), 0.1 * found, f"{readme.name}: {what} has {found} lines")

    def test_shows_the_same_commands_and_sections_in_both_languages(self):
        english, chinese = map(read, READMES)
        for pattern in (r"^(\./stage [^#\n]*?) *(?:#.*)?$", r"\]\((?!docs/|stages/|README|#)(.*?)\)"):
            self.assertEqual(re.findall(pattern, english, re.M), re.findall(pattern, chinese, re.M))
        self.assertEqual(len(re.findall(r"^## ", english, re.M)), len(re.findall(r"^## ", chinese, re.M)))


class Pages(unittest.TestCase):
    def screens(self, language, width):
        with mock.patch.dict(os.environ, STAGECRAFT_LANG=language):
            return tour.screens(tour.page(), width)

    def test_there_are_six_and_each_half_fits_80x24(self):
        for language in ("en", "zh"):
            screens = self.screens(language, 80)
            self.assertEqual(len(screens), 6)
            for screen in screens:
                for half in (screen.asks, screen.answers):
                    self.assertLessEqual(len(half) + 3, 24, f"{language}: {screen.title}")
                    for line in half:
                        self.assertLessEqual(course.width(line), 80, f"{language}: {line}")

    def test_wrap_at_the_width_of_the_terminal(self):
        for language in ("en", "zh"):
            for screen in self.screens(language, 50):
                for line in (*screen.asks, *screen.answers):
                    is_code = line.startswith("  ") or line in tour.summary(read(TOURS[language == "zh"]))
                    self.assertTrue(is_code or course.width(line) <= 50, line)

    def run_tour(self, *words, language="en"):
        return subprocess.run([sys.executable, ROOT / "course", "tour", *words], text=True, timeout=60,
                              env=dict(os.environ, STAGECRAFT_LANG=language), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def test_without_a_terminal_everything_is_printed_at_once(self):
        done = self.run_tour()
        self.assertEqual(done.returncode, 0, done.stderr)
        for number in range(1, 7):
            self.assertIn(f"\n{number} · " if number > 1 else f"{number} · ", done.stdout)
        for markup in ("<details>", "<!--", "](", "```"):
            self.assertNotIn(markup, done.stdout)
        self.assertNotIn("\033", done.stdout)
        self.assertIn("残差流", self.run_tour(language="zh").stdout)

    def test_one_screen_can_be_asked_for(self):
        self.assertTrue(self.run_tour("3").stdout.startswith("3 · "))
        self.assertEqual(self.run_tour("7").returncode, 2)

    def test_on_a_terminal_the_answer_waits_for_enter(self):
        try:
            master, slave = pty.openpty()
        except OSError:
            self.skipTest("no pseudo terminals")
        with subprocess.Popen([sys.executable, ROOT / "course", "tour"], stdin=slave, stdout=slave, stderr=slave,
                              env=dict(os.environ, STAGECRAFT_LANG="en", TERM="dumb")) as process:
            os.close(slave)
            seen = self.read_until(master, "answer, and")
            self.assertIn("Guess: ", seen)
            self.assertNotIn("One and six", seen)
            os.write(master, b"\n")
            self.assertIn("One and six", self.read_until(master, "screen 2"))
            os.write(master, b"q\n")
            self.assertEqual(process.wait(30), 0)
        os.close(master)

    @staticmethod
    def read_until(master, end):
        seen = ""
        while end not in seen:
            seen += os.read(master, 4096).decode()
        return seen

    def test_without_its_pages_the_summary_says_nothing(self):
        with tempfile.TemporaryDirectory() as folder:  # such as a copy for grading
            for name in ("course", "tools", "stages"):
                (pathlib.Path(folder) / name).symlink_to(ROOT / name)
            script = "import sys; sys.path[:0] = ['course', 'tools']; import pathlib; from shared import course; " \
                     "course.ROOT = pathlib.Path.cwd(); sys.argv = ['tour', '--summary']; " \
                     "from commands import tour; sys.exit(course.main(tour.run))"
            done = subprocess.run([sys.executable, "-B", "-c", script], cwd=folder, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_the_summary_is_short(self):
        for language in ("en", "zh"):
            lines = self.run_tour("--summary", language=language).stdout.splitlines()
            self.assertLessEqual(len(lines), 9)
            self.assertLessEqual(max(map(course.width, lines)), 80)
            self.assertIn("./stage tour", lines[-1])


class Reading(unittest.TestCase):
    def read(self, *words, language="en", code=0):
        done = subprocess.run([sys.executable, ROOT / "course", "read", *words], text=True, timeout=60,
                              env=dict(os.environ, STAGECRAFT_LANG=language), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    @staticmethod
    @functools.cache
    def pages(language):
        with mock.patch.dict(os.environ, STAGECRAFT_LANG=language):
            return [(page, "\n".join(markdown.rendered(read_command.without_hints(read(page), "N"), 80, page.parent)))
                    for stage in course.stages() for page in stage.pages]

    def test_every_handout_fits_80_columns_and_has_no_markup(self):
        for language in ("en", "zh"):
            for page, text in self.pages(language):
                for line in text.split("\n"):
                    if " " in line.strip():  # a word longer than the line stays whole
                        self.assertLessEqual(course.width(line), 80, f"{page}: {line}")
                    self.assertNotRegex(line, r"</?(details|summary|code)>|<!--|\]\(|^(```|#|\|)|&lt;|\*\*\w", page)

    def test_every_paragraph_of_an_answer_stands_below_its_number(self):
        for language in ("en", "zh"):
            for page, text in self.pages(language):
                self.assertNotRegex(text, r"(?m)^(?:Question|问题) ?\d", page)

    def test_hints_are_left_to_the_command_and_answers_stand_at_the_end(self):
        for language, answers in ("en", " Answers 1. "), ("zh", " 答案 1. "):
            for page, text in self.pages(language):
                source, flat = read(page), " ".join(text.split())
                end = flat.find(answers.strip())
                fold = r"<details><summary>(?:((?:Hint|提示) \d)|(.*?))</summary>(.*?)</details>"
                for kind, question, answer in re.findall(fold, source, re.S):
                    begin = flat.find(markdown.plain(answer, True)[:40])
                    self.assertTrue(begin == -1 if kind else begin > end > 0, f"{page}: {question or kind}")

    def test_the_last_lines_say_what_comes_next(self):
        then = "then write stages/06-self-attention/softmax.cpp, and run ./stage test 6.2\nnext page: ./stage read 6.3\n"
        self.assertTrue(self.read("6.2").endswith(then))
        self.assertTrue(self.read("6.1").endswith("6-self-attention/1-averages.md\nnext page: ./stage read 6.2\n"))
        self.assertTrue(self.read("1", language="zh").endswith("读完后写 stages/01-silu/silu.cpp，再运行 ./stage test 1\n"))

    def test_lines_of_chinese_are_joined_without_a_blank(self):
        self.assertEqual(markdown.plain("- 检查你的循环：\n  会不会\n  有"), "- 检查你的循环：会不会有")

    def test_a_page_that_is_not_there_is_named_in_one_line(self):
        self.assertIn("expected 6.1 to 6.6", self.read("6.7", code=2))
        self.assertIn("stage 2 has one page", self.read("2.1", code=2))
        self.assertIn("expected 0 to", self.read("12", code=2))
        self.assertEqual(self.read("7.2").replace("hint 7.2", "hint 7"), self.read("7"))  # its parts share one page

    def test_a_table_that_is_too_wide_loses_no_word(self):
        text = "| a name | what it is |\n|---|---|\n| x | " + "many words " * 12 + "|"
        for room in (30, 80):
            lines = list(markdown.table(text, room))
            self.assertLessEqual(max(map(len, lines)), room)
            expected = "a name what it is x".split() + ["many", "words"] * 12
            self.assertEqual(sorted(" ".join(lines).split()), sorted(expected))

    def test_a_bar_within_a_cell_of_a_table_is_shown_without_its_backslash(self):
        lines = list(markdown.table("| call | gives |\n|---|---|\n| `f()` | the id of `<\\|end\\|>` |", 80))
        self.assertEqual(lines[-1].split("  ")[-1].strip(), "the id of `<|end|>`")

    def test_no_line_of_chinese_begins_with_the_end_of_a_sentence(self):
        for page, text in self.pages("zh"):
            self.assertNotRegex(text, r"\n\s*[，。；：！？、）》」]", page)


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    if "--update" in sys.argv:
        english, chinese = updated(read(TOURS[0])), read(TOURS[1])
        blocks = (found[0] for found in BLOCK.finditer(english))
        TOURS[0].write_text(english, encoding="utf-8")
        TOURS[1].write_text(BLOCK.sub(lambda _: next(blocks), chinese), encoding="utf-8")
    else:
        unittest.main()
