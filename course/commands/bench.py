"""./stage bench --mine 9: the speed of the student's functions of a stage, band by band, as its gate measures it.
./stage bench --mine 0-10: the speed of the model with them, stage by stage (gain.py)."""
import sys

from mine import gain
from shared import course
from shared.parser import Parser, whole
from testing import build_errors
from testing import building
from testing import gate


def bench(stage):
    problem = building.build("gate", f"worker_{stage.number}")
    if problem is not None:
        raise course.Problem(build_errors.why_not_built(problem, f"course/worker_{stage.number}"))
    with course.doing(course.say("doing_measure", stage.id)):
        result = gate.run(stage, course.BUILD / "course" / f"worker_{stage.number}", only=stage.timed)
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
    parser = Parser("bench")
    parser.add_argument("--mine", metavar="STAGE", default="")
    parser.add_argument("--model", "-m")
    parser.add_argument("--threads", "-t", type=whole(1, 1024))
    parser.add_argument("--max-tokens", "-n", type=whole(1, 1 << 20))
    options = parser.parse_args()
    known = [stage for stage in course.stages() if stage.timed]
    for stage in known:
        if options.mine in (str(stage.id), stage.number, stage.slug):
            if options.model or options.threads or options.max_tokens:
                parser.error(course.say("bench_options"))
            return bench(stage)
    chosen = course.parse_selection(options.mine, course.stages()) if options.mine else []
    if len(chosen) > 1:
        return gain.gain(chosen, options.model, options.threads or 1, options.max_tokens or 64)
    raise course.Problem(course.say("bench_which", course.listed(str(stage.id) for stage in known)))


if __name__ == "__main__":
    sys.exit(course.main(run))
