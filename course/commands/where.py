"""./stage without arguments: shows where you are, and what is next."""
import os
import sys

from shared import course
from shared import official
from testing import progress
from commands import tour
from commands import update

LINES = 32  # of the terminal, for table and map
COLOURS = {"passed": "32", "wrong": "31", "uncompiled": "31", "missing": "31", "refused": "31", "begun": "33", "slow": "33"}


def row(number, title, points, word, width):
    room = " " * (9 - course.width(points))
    return f" {number:>2}  {course.padded(title, width)}  {room}{points}   {word}".rstrip()


def table(results):
    titles = [result.stage.title[course.language()] for result in results]
    width = max(map(course.width, titles))
    yield row("", course.say("where_stage"), course.say("where_points"), course.say("where_state"), width)
    for result, title in zip(results, titles):
        yield row(result.stage.id, title, f"{result.earned} / {result.stage.points}",
                  course.paint(course.say(f"state_{result.status}" if result.stage.is_expected else "where_optional"),
                               COLOURS.get(result.status)), width)
    earned = sum(result.earned for result in results)
    points = sum(result.stage.points for result in results if result.stage.is_expected)
    yield row("", course.say("where_total"), f"{earned} / {points}", "", width)


def what_next(results):
    expected = [result for result in results if result.stage.is_expected]
    ahead = next((result for result in expected if not result.is_done_here), None)
    if ahead is None:
        elsewhere = [str(result.stage.id) for result in expected if result.status == "unjudged"]
        return course.say("where_elsewhere", course.listed(elsewhere)) if elsewhere else course.say("where_all_done")
    stage = ahead.stage
    if ahead.status in ("unwritten", "begun"):
        return course.say("where_next_write", stage.id, stage.title[course.language()], stage.minutes,
                          stage.handout.relative_to(course.ROOT), stage.file_names)
    if ahead.status == "slow":
        return course.say("where_next_faster", stage.id, stage.title[course.language()])
    return course.say("where_next_mend", stage.id, stage.title[course.language()])


def has_room():
    """True if the terminal has room for the map of the model below the table."""
    return not sys.stdout.isatty() or os.get_terminal_size(sys.stdout.fileno()).lines >= LINES


def run():
    results = [progress.result_of(stage) for stage in course.stages()]
    for line in table(results):
        print(line)
    if not any(result.stage.is_started for result in results):
        print()
        if has_room():
            tour.show_summary()
        else:
            course.tell(course.say("tour_more"))
    course.tell(f"\n{what_next(results)}\n{course.say('where_help')}")
    with course.doing(course.say("doing_ask", official.read()["url"])):
        is_behind = update.is_behind()
    if is_behind:
        course.tell(course.say("update_behind"))
    return 0


if __name__ == "__main__":
    sys.exit(course.main(run))
