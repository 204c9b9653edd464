"""./stage diff: mine against ours, once mine is right."""
import argparse
import difflib
import sys

import course
import progress

COLOURS = {"---": "1", "+++": "1", "@@": "36", "-": "31", "+": "32"}


def colour(line):
    return next((code for start, code in COLOURS.items() if line.startswith(start)), None)


def difference(stage, unit):
    """A unified diff of a unit's file against our twin, or twins one after the other."""
    yours = stage.path(unit)
    ours = "".join((course.ROOT / twin).read_text(encoding="utf-8") for twin in unit["twins"])
    return list(difflib.unified_diff(
        yours.read_text(encoding="utf-8", errors="replace").splitlines(), ours.splitlines(),
        f"{yours.relative_to(course.ROOT)} {course.say('diff_yours')}",
        f"{' + '.join(unit['twins'])} {course.say('diff_ours')}", lineterm=""))


def run():
    parser = argparse.ArgumentParser(prog="./stage diff",
                                     description="Compares your files of a stage with ours, once they pass.",
                                     epilog="e.g. ./stage diff 6")
    parser.add_argument("stage", help="6, say")
    stage = course.find_stage(parser.parse_args().stage, course.stages())
    if progress.result_of(stage).status != "passed":
        raise course.Problem(course.say("diff_not_yet", stage.id))
    for unit in stage.units:
        lines = difference(stage, unit)
        for line in lines:
            print(course.paint(line, colour(line)))
        if not lines:
            print(course.say("diff_same", stage.path(unit).relative_to(course.ROOT)))
    return 0


if __name__ == "__main__":
    sys.exit(course.main(run))
