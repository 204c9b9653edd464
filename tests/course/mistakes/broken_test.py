"""Tests ./stage broken: broken_test.py BUILD, where broken_02_no_mean is already built."""
import contextlib
import io
import os
import pathlib
import sys
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "course"), str(ROOT / "tools")]
from commands import broken  # noqa: E402
from shared import course  # noqa: E402
from testing import building  # noqa: E402

STORY = ROOT / "models" / "story" / "config.json"


def answer(*arguments, language="en"):
    out = io.StringIO()
    with mock.patch.dict(os.environ, STAGECRAFT_LANG=language), \
            mock.patch.object(sys, "argv", ["broken", *arguments]), \
            mock.patch.object(building, "build", lambda *targets: None), \
            mock.patch.dict(os.environ, STAGECRAFT_HOME=str(ROOT)), \
            contextlib.redirect_stdout(out):
        code = broken.run()
    return code, out.getvalue()


class Broken(unittest.TestCase):
    def test_lists_every_mistake_in_both_languages(self):
        for stage in course.stages():
            for language, colon in (("en", ": "), ("zh", "：")) if course.mistakes(stage) else ():
                code, text = answer(str(stage.id), language=language)
                self.assertEqual(code, 0)
                for name in course.mistakes(stage):
                    self.assertIn(f"\n  {name}{colon}", text)

    def test_names_the_nearest_mistake(self):
        with self.assertRaisesRegex(course.Problem, "did you mean 'no_mean'"):
            answer("2", "nomean")
        with self.assertRaisesRegex(course.Problem, "./stage broken 2 lists them"):
            answer("2", "xyzzy")

    @unittest.skipUnless(STORY.exists(), "no model")
    def test_tells_another_story_where_the_mean_is_missing(self):
        code, text = answer("2", "no-mean", "--max-tokens", "12")
        self.assertEqual(code, 0)
        self.assertIn("\nno_mean: this is RMSNorm without the mean", text)
        self.assertRegex(text, r"the first \d of the \d+ words of our story are the same")

    def test_says_what_story_says_about_a_wrong_option(self):
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            code, _ = answer("2", "no_mean", "--max-tokens", "none")
        self.assertEqual(code, 1)
        self.assertIn("--max-tokens", errors.getvalue())


if __name__ == "__main__":
    course.BUILD = pathlib.Path(sys.argv.pop(1))
    unittest.main()
