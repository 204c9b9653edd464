"""./stage watch: the test again, at every save."""
import argparse
import sys
import time

import course
import progress
import test

SECONDS = 0.3  # between two looks at the files


def snapshot(stage):
    """What changes when a file of the stage is saved, comes or goes."""
    seen = {}
    for path in [*progress.files(stage), stage.my_tests]:
        try:
            status = path.stat()
        except OSError:  # an editor is putting another in its place
            continue
        seen[path] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return seen


def wait_for_a_save(stage, before):
    while snapshot(stage) == before:
        time.sleep(SECONDS)


def test_once(stage):
    """Whether the stage passes."""
    try:
        result = test.test_and_tell(stage)
    except course.Problem as problem:  # a build that can't be: the next save may mend it
        print(f"stage: {problem}", file=sys.stderr)
        return False
    print(test.next_step(result))
    return result.status == "passed"


def announce(stage, after):
    print("\n" + course.say("watch_next", after.id, stage.id, stage.title[course.language()],
                            stage.handout.relative_to(course.ROOT), stage.file_names))


def run():
    parser = argparse.ArgumentParser(
        prog="./stage watch", description="Runs the test of a stage at every save of its files.",
        epilog="e.g. ./stage watch 3; without a stage: the next unfinished one, and then the one after")
    parser.add_argument("stage", nargs="?", help="3, say")
    options = parser.parse_args()
    known = course.stages()
    stage = course.find_stage(options.stage, known) if options.stage else progress.next_unfinished(known)
    while stage is not None:
        before = snapshot(stage)
        passed = test_once(stage)
        if passed and not options.stage:
            last, stage = stage, progress.next_unfinished(known)
            if stage is None:
                break
            announce(stage, last)
            if not stage.is_started:
                before = snapshot(stage)
            else:
                continue
        print(course.say("watching", stage.folder.relative_to(course.ROOT)), flush=True)
        wait_for_a_save(stage, before)
        print(f"\n-- {time.strftime('%H:%M:%S')}")
    print(course.say("where_all_done"))
    return 0


if __name__ == "__main__":
    sys.exit(course.main(run))
