"""./stage reset: restores the starter of a stage; the present file is kept beside it."""
import itertools
import sys

from shared import course
from shared.parser import Parser


def keep_aside(path):
    """Renames the file to the first free name of rms_norm.cpp.1, .2, ... and returns that name."""
    for n in itertools.count(1):
        aside = path.with_name(f"{path.name}.{n}")
        if not aside.exists():
            path.rename(aside)
            return aside


def reset(stage, name=None):
    units = [unit for unit in stage.units if name in (None, unit["file"])]
    if not units:
        raise course.Problem(course.say("reset_no_file", stage.id, name, stage.file_names))
    changed = [unit for unit in units if not stage.is_handed_out(unit)]
    starters = [stage.starter(unit) for unit in changed]  # read all of them before anything is moved
    for unit, starter in zip(changed, starters):
        path = stage.path(unit)
        aside = keep_aside(path) if path.exists() else None
        path.write_bytes(starter)
        shown = path.relative_to(course.ROOT)
        course.tell(course.say("reset_kept", shown, aside.name) if aside else course.say("reset_back", shown))
    if not changed:
        course.tell(course.say("reset_nothing", stage.id))


def run():
    parser = Parser("reset")
    parser.add_argument("stage")
    parser.add_argument("file", nargs="?")
    options = parser.parse_args()
    reset(course.find_stage(options.stage, course.stages()), options.file)
    return 0


if __name__ == "__main__":
    sys.exit(course.main(run))
