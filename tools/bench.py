"""./stage bench --mine 9: how fast the student's functions of a stage are, band by band, as its gate measures it."""
import argparse
import sys

import course


def timed(stage):
    """Its groups of points that are for speed."""
    return [group["name"] for group in stage.groups if "bands" in group]


def bench(stage):
    problem = course.build("gate", f"worker_{stage.number}")
    if problem is not None:
        raise course.Problem(course.why_not_built(problem, f"tests/worker_{stage.number}"))
    with course.doing(course.say("doing_measure", stage.id)):
        result = course.run_gate(stage, course.BUILD / "tests" / f"worker_{stage.number}", only=timed(stage))
    if result.status in ("unwritten", "unjudged"):
        raise course.Problem(course.say("mine_unwritten", stage.id) if result.status == "unwritten"
                             else result.groups[0].failures[0])
    course.tell(course.say("bench_begins", stage.id, stage.title[course.language()]))
    for group in result.groups:
        course.tell(f"  {group.measured or group.failures[0]}")
        if group.measured:
            course.tell(f"    {course.say('bench_bands', group.n_passed, group.bands)}")
    return 0 if result.is_right else 1


def run():
    parser = argparse.ArgumentParser(
        prog="./stage bench", epilog="e.g. ./stage bench --mine 9",
        description="Measures your functions of a stage that is judged by its speed, as its gate does.")
    parser.add_argument("--mine", metavar="STAGE", default="", help="9, say")
    options = parser.parse_args([word for word in sys.argv[1:] if word != "bench"])
    known = [stage for stage in course.stages() if timed(stage)]
    for stage in known:
        if options.mine in (str(stage.id), stage.number, stage.slug):
            return bench(stage)
    raise course.Problem(course.say("bench_which", ", ".join(str(stage.id) for stage in known)))


if __name__ == "__main__":
    sys.exit(course.main(run))
