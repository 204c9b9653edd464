"""The points for speed of stage 9, with programs of the catalogue that are far from every edge of a band:

    speed_test.py BUILD    (where the gate and the catalogue of stage 9 are built)

Exit code 77 if this machine or this build cannot judge speed. Standard library only; ctest runs it.
"""
import os
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "course"), str(ROOT / "tools")]
from shared import course  # noqa: E402
from testing import gate  # noqa: E402

SKIPPED = 77
STAGE = course.find_stage("9", course.stages())


def judged(name, only):
    result = gate.run(STAGE, course.mistakes_folder(STAGE) / name, seed=7, only=only)
    return {group.name: group for group in result.groups}


class Speed(unittest.TestCase):
    def test_of_the_textbooks_loop_earns_nothing(self):
        for group in judged("textbook", STAGE.timed).values():
            self.assertEqual((group.status, group.earned), ("slow", 0), group.measured)

    def test_of_fast_code_earns_points_in_each_group(self):
        for group in judged("tile_of_dots", STAGE.timed).values():  # step 3
            self.assertIn(group.status, ("passed", "slow"), group.failures)
            self.assertGreater(group.earned, 0, group.measured)

    def test_of_the_first_step_does_not_earn_all(self):
        for group in judged("eight_sums", STAGE.timed).values():
            self.assertEqual(group.status, "slow", group.measured)

    def test_of_wrong_code_is_not_measured(self):
        found = judged("added_to_c", None)
        self.assertEqual({found[name].status for name in STAGE.timed}, {"unmeasured"})
        self.assertIn("wrong", {group.status for group in found.values()})
        self.assertEqual(sum(found[name].earned for name in STAGE.timed), 0)

    def test_of_wrong_code_that_is_asked_nothing_else_earns_nothing(self):
        for group in judged("added_to_c", STAGE.timed).values():
            self.assertEqual((group.status, group.earned), ("wrong", 0))


if __name__ == "__main__":
    course.BUILD = pathlib.Path(os.path.abspath(sys.argv.pop(1)))
    os.environ["STAGECRAFT_LANG"] = "en"
    if any(group.status in ("unjudged", "unmeasured") or not group.n_passed and not group.failures
           for group in judged("textbook", STAGE.timed).values()):
        print("the speed of stage 9 is not judged here")
        sys.exit(SKIPPED)
    unittest.main()
