"""./stage watch: tests again at every save."""
import sys
import time

from shared import course
from shared.parser import Parser
from testing import progress
from commands import test

SECONDS = 0.3  # between two checks of the files


def snapshot(stage):
    """A value that changes when a file of the stage is saved, created or deleted."""
    seen = {}
    for path in [*progress.files(stage), stage.my_tests]:
        try:
            status = path.stat()
        except OSError:  # an editor is replacing it
            continue
        seen[path] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return seen


def wait_for_a_save(stages, before):
    """The first of these stages that was saved. before: {stage: its snapshot}"""
    while True:
        for stage in stages:
            if snapshot(stage) != before[stage]:
                print(f"\n-- {time.strftime('%H:%M:%S')}")
                return stage
        time.sleep(SECONDS)


def test_once(stage, part):
    """Tests a stage, or shows a part of it; True if nothing is left to do."""
    try:
        if part is not None:
            return test.test_part(stage, part).is_done_here
        result = test.test_and_tell(stage)
    except course.Problem as problem:  # a failed build: the next save may fix it
        course.tell(f"stage: {problem}", sys.stderr)
        return False
    course.tell(test.next_step(result))
    return result.is_done_here


def announce(stage, after):
    course.tell("\n" + course.say("watch_next", after.id, stage.id, stage.title[course.language()],
                                  stage.handout.relative_to(course.ROOT), stage.file_names))


def run():
    parser = Parser("watch")
    parser.add_argument("stage", nargs="?")
    options = parser.parse_args()
    known = course.stages()
    stage, part = (course.find_part(options.stage, known) if options.stage
                   else (progress.next_unfinished(known), None))
    while True:
        if stage is None:  # all pass: test the stage that is saved next
            before = {stage: snapshot(stage) for stage in known}
            course.tell(course.say("where_all_done"))
            course.tell(course.say("watching", "stages"))
            stage = wait_for_a_save(known, before)
        before = snapshot(stage)
        passed = test_once(stage, part)
        if passed and not options.stage:
            last, stage = stage, progress.next_unfinished(known)
            if stage is None:
                continue
            announce(stage, last)
            if stage.is_started:
                continue
            before = snapshot(stage)
        course.tell(course.say("watching", stage.folder.relative_to(course.ROOT)))
        wait_for_a_save([stage], {stage: before})


if __name__ == "__main__":
    sys.exit(course.main(run))
