"""Copies of our answer that only a compiler sees: each is listed as similar to our answer, or as one that cannot be
compared. And files that would stop the comparison for a whole class.

    hidden_copies_test.py BUILD    (where grading is built)

Standard library only; ctest runs it. It is skipped on machines that cannot confine.
"""
import os
import pathlib
import re
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "course"), str(ROOT / "tools")]
from classroom import likeness  # noqa: E402
from grading import official_tree  # noqa: E402
from grading import preprocessed  # noqa: E402
from grading import submission  # noqa: E402
from grading import workplace  # noqa: E402
from rules import cpp_text  # noqa: E402
from sandbox import confine  # noqa: E402
from shared import course  # noqa: E402
from testing import building  # noqa: E402

SKIPPED = 77
STAGE = course.stages()[6]
NAME, OTHER = "stages/06-self-attention/attention.cpp", "stages/06-self-attention/softmax.cpp"
ANSWER = (ROOT / "src/operators/attention.cpp").read_text().split("\n", 1)[1]
SOFTMAX = (ROOT / "src/operators/softmax.cpp").read_text()
WORDS = {"for": "FOR", "<": "LT", "=": "SET", "+": "ADD", "-": "SUB", "*": "MUL", "(": "OPEN", ")": "SHUT", ",": "NEXT",
         ".": "DOT", "::": "IN", "float": "REAL", "const": "FIX", "auto": "VAR", "++": "INC", "[": "FROM", "]": "TO"}
WRONG = dict(zip(WORDS.values(), "while > + - % / [ ] ^ | & int static char -- ~ !".split()))
HEAD = "".join(f"{line}\n" for line in ANSWER.splitlines() if line.startswith("#"))
BODY = "".join(f"{line}\n" for line in ANSWER.splitlines() if not line.startswith("#"))


def coded(word=str):
    """The answer with a name in place of each of WORDS."""
    lines = cpp_text.without_comments(BODY).split("\n")
    return "\n".join(" ".join(word(WORDS[token]) if token in WORDS else token for _, token in cpp_text.words(line))
                     for line in lines)


def defined(word=str, meaning=None):
    return "".join(f"#define {word(name)} {meaning[name] if meaning else token}\n" for token, name in WORDS.items())


def in_one_macro():
    return HEAD + f"#define ALL {' '.join(cpp_text.without_comments(BODY).split())}\nALL\n"


# {the trick: text}
HIDDEN = {
    "macros": HEAD + defined() + coded(),
    "one macro": in_one_macro(),
    "false is a macro": f"#define false true\n#if false\n#undef false\n{ANSWER}\n#endif\n",
    "a line that goes on ends no raw text": f'auto note = R"(x)\\\n" /* )";\n{ANSWER}/* */\n',
    "so does one in the beginning of a raw text": f'auto note = R\\\n"(" /* )";\n{ANSWER}/* */\n',
    "backslash, blank, line end: the comment goes on": f"// notes \\ \n/*\n{ANSWER}// */\n",
    "a comment in __has_include": f"#if __has_include /**/ (<x/*y>)\n#endif\n{ANSWER}/* */\n",
    "macros with a second meaning in a branch": f"{HEAD}#if 1\n{defined()}#else\n{defined(meaning=WRONG)}#endif\n{coded()}",
    "#undef in a branch": HEAD + defined() + "#if 0 > 1\n" + "".join(f"#undef {name}\n" for name in WRONG) + "#endif\n" + coded(),
    "names with $": HEAD + defined("${}".format) + coded("${}".format),
    "names with letters of other languages": HEAD + defined("öö{}".format) + coded("öö{}".format),
    "names with \\u": HEAD + defined("\\u00f6{}".format) + coded("ö{}".format),
    "push_macro": HEAD + "".join(f'#define {name} {token}\n#pragma push_macro("{name}")\n#undef {name}\n#define {name} '
                                 f'{WRONG[name]}\n#pragma pop_macro("{name}")\n' for token, name in WORDS.items()) + coded(),
    "#line says that it is of a library": f'{HEAD}#line 3 "/usr/include/c++/12/vector"\n{defined()}{coded()}',
    "# 1 says so, too": f'{HEAD}# 1 "/usr/include/c++/12/vector" 1 3\n{defined()}{coded()}\n',
    "#line with a comment and over two lines": f'{HEAD}%: /* */ li\\\nne 3 "/usr/include/assert.h"\n{defined()}{coded()}',
    "#line over two lines": f'{HEAD}%: li\\\nne 3 "/usr/include/assert.h"\n{defined()}{coded()}',
    "a raw text says so": f'{HEAD}auto note = R"x(\n# 1 "/usr/include/c++/12/vector" 1 3\n)x";\n{defined()}{coded()}',
    "a text with a carriage return": f'{HEAD}auto note = "\r# 1 \\"/usr/include/c++/12/vector\\" 1 3";\n{defined()}{coded()}',
    "what seems to begin a raw text": f'{HEAD}auto note = "R"_x(3);\n{defined()}{coded()}',
    "behind macros that become nothing": "".join(f"#define a{at} a{at + 1} a{at + 1}\n" for at in range(60)) +
    f"#define a60\na0\n{HEAD}{defined()}{coded()}",
    "behind more than can be compared": f"{'- + * . ' * 3000}\n{ANSWER}",
}


def handed(files, id="eve"):
    one = submission.Submission(id)
    one.files = {name: text.encode() for name, text in files.items()}
    return likeness.Handed({id: [one]}, {(id, STAGE.id): [one]}, preprocessed.texts)


class HiddenCopies(unittest.TestCase):
    def listed(self, files):
        """The names of the files that are listed."""
        return {name for _, name, *_ in likeness.look_at_ours([STAGE], handed(files))}

    def test_macros_of_another_file_of_the_stage(self):
        other = f"#ifdef WORDS\n{defined()}#else\nint nothing_of_ours;\n#endif\n"
        for included in '"softmax.cpp"', '"../06-self-attention/softmax.cpp"', '"/proc/self/cwd/stages/06-self-attention/softmax.cpp"':
            self.assertIn(NAME, self.listed({NAME: f"#define WORDS\n#include {included}\n{HEAD}{coded()}", OTHER: other}))

    def test_code_in_another_file_of_the_stage(self):
        self.assertEqual(self.listed({NAME: '#define HERE\n#include "softmax.cpp"\n', OTHER: f"#ifdef HERE\n{ANSWER}\n#endif\n"}),
                         {NAME, OTHER})

    def test_own_code_with_macros_is_no_copy(self):
        text = "#include <cmath>\n#define TWICE(x) (2 * (x))\n#define NAME(x) x ## 1 ##2\n#if defined(__AVX2__)\n#endif\n" + "".join(
            f"static float f{at}(float x) {{ return TWICE(x) - std::sin({at} / x); }}\n" for at in range(30))
        self.assertEqual(self.listed({NAME: text}), set())
        found = preprocessed.texts(handed({NAME: text}).versions["eve"][0], STAGE)
        self.assertEqual(set(found), {NAME})
        self.assertIn("static float f7(float x) { return (2 * (x)) - std::sin(7 / x); }", found[NAME])
        self.assertLess(len(found[NAME]), 2 * len(text))  # nothing of <cmath>

    def test_answers_to_all_stages_can_be_preprocessed(self):
        for stage in filter(building.has, course.stages()):
            files = {course.unit_name(stage, unit): f"#define UNUSED\n{(ROOT / unit['answers'][0]).read_text()}"
                     for unit in stage.units}
            found = preprocessed.texts(handed(files).versions["eve"][0], stage)
            self.assertEqual([name for name in files if not found[name]], [])

    def test_a_plain_file_is_not_preprocessed(self):
        for text in (ANSWER, "// 中文 $\n#include <vector>  // why\nint ö;\n"):
            self.assertTrue(preprocessed.is_plain(text))
        for text in ("%:define x\n", "#include MACRO\n", '#include "softmax.cpp"\n', "int a\\ \n;", 'R"(x)"', "// \\\n x"):
            self.assertFalse(preprocessed.is_plain(text), text)

    def test_files_that_fill_memory_or_time_are_listed_soon(self):
        start = time.monotonic()
        for text in (f"#define F(x) {'x ' * 10_000}\nint a = F({'1 ' * 10_000});\n",
                     f"#define F(x) {'##'.join(['x'] * 10_000)}\n{'F() ' * 10_000}\n",
                     "#define X\n" + "#/*" * 80_000, "#define X\n" + "# /**/" * 40_000, "#define X\n" + "#\\ " * 80_000,
                     "#define X\n" + "#\\\n" * 80_000, "#define X\n" + '"R"(' * 60_000,
                     "#if 0 > 1\n" + "__has_include(<" * 17_000 + "\n#endif\n#define X\n", "(" * 200_000 + "\n#define X\n"):
            self.listed({NAME: text})
        self.assertLess(time.monotonic() - start, 8 * (preprocessed.SECONDS + 5))


def hidden_test(text):
    def test(self):
        self.assertEqual(self.listed({NAME: text}), {NAME})
    return test


for trick, text in HIDDEN.items():
    setattr(HiddenCopies, f"test_{re.sub(r'[^a-z0-9]+', '_', trick.lower())}", hidden_test(text))


if __name__ == "__main__":
    course.BUILD = pathlib.Path(os.path.abspath(sys.argv.pop(1)))
    workplace.PLACE = course.BUILD.parent / "grading"
    os.environ["STAGECRAFT_LANG"] = "en"
    if confine.why_not():
        print(f"not confined: {confine.why_not()}")
        sys.exit(SKIPPED)
    workplace.PLACE.mkdir(parents=True, exist_ok=True)
    official_tree.use(official_tree.headers())  # ctest's fixture has built the rest
    unittest.main()
