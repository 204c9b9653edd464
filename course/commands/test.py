"""./stage test: says whether your code is right, and if not, why."""
import re
import subprocess
import sys
import tempfile

from grading import sanitized
from sandbox import limited
from shared import course
from shared.parser import Parser
from testing import build_errors
from testing import building
from testing import stage_here
from testing import progress

COLOURS = {"passed": "32", "wrong": "31", "slow": "33"}
SECONDS = 60  # for the student's own tests
LINES = 40
ADDRESSES = 1 << 46  # no limit: more than the sanitizers reserve
SANITIZED = ("crashed", "overrun")  # failures for which the sanitizers find the line


def tell(result, brief=False):
    """The verdict on one stage, for a person; brief: one line if there is nothing to fix."""
    stage = result.stage
    head = course.say("test_head", result.name, stage.title[course.language()], result.earned, result.points)
    if brief and result.status in ("passed", "unwritten"):
        course.tell(course.say("test_brief", head, course.say(f"state_{result.status}")))
        return
    course.tell(head)
    if result.compile_error:
        course.tell(f"  {course.say(f'test_{result.status}')}\n{indent(result.compile_error)}")
        return
    first = result.first_wrong  # the first in full; the others get one line each
    for group in result.groups:
        tell_group(group, stage)
        if group is first or group.status != "wrong":
            explain(group, stage)
        if group is first and stage.has_pages and result.part is None:  # the part may not be begun
            page = stage.page(group.part).relative_to(course.ROOT)
            course.tell(indent(course.say("test_of_part", stage.with_part(group.part), page)))
    others = [group for group in result.groups if group.status == "wrong" and group is not first]
    apart = dict.fromkeys(group.file for group in others if group.file != first.file)
    if others:
        course.tell("  " + (course.say("test_others_apart", first.name, course.listed(apart)) if apart
                            else course.say("test_others", first.name)))
    if result.status == "wrong" and stage.needs:
        course.tell("  " + course.say("test_needs", course.listed(map(str, stage.needs))))
    if result.mend_first:
        other = result.mend_first
        course.tell("  " + course.say("test_calls", first.file, other.file, stage.with_part(other.part)))


def tell_group(group, stage):
    said = course.say(f"state_{group.status}")
    if group.waits_for:
        said = course.say("state_waits", stage.with_part(group.waits_for))
    word = course.paint(said, COLOURS.get(group.status))
    course.tell(f"  {group.name:<24} {group.earned:>3}/{group.points:<3} {word}")


def explain(group, stage):
    """The first failure of a group: what is wrong, where, and the known mistake that it equals."""
    for failure in group.failures[:1]:
        course.tell(indent(build_errors.short(failure)))
    if group.mistake_says:
        course.tell(indent(group.mistake_says))
    else:
        for line in where_it_happens(group, stage):
            course.tell(indent(line, 6))
    if len(group.failures) > 1 and group.status != "slow":
        course.tell(indent(course.say("test_more", len(group.failures) - 1)))


def where_it_happens(group, stage):
    if not group.failed_requests or stage.is_emulated:  # its checker has explained it
        return []
    kind, request = group.failed_requests[0]
    if kind in SANITIZED:
        return sanitized.where_it_happens(stage, request)
    if kind == "hung":
        return [course.say("test_hung", stage.id)]
    if kind == "threw":
        return [course.say("test_threw", stage.id)]
    if group.status == "wrong" and kind not in ("exited", "refusal", "printed"):  # whose messages say all
        return sanitized.where_it_happens(stage, request, doubtful=True)
    return []


def indent(text, columns=4):
    """Indents each line by `columns`."""
    return "\n".join(" " * columns + line for line in text.splitlines())


def files_to_edit(result):
    """The files to edit, as text: the file of the first wrong group, those in the compiler's message, or those that are
    not right yet."""
    stage, wrong = result.stage, result.first_wrong
    files = [unit["file"] for unit in stage.units]
    broken = [file for file in files if result.compile_error and f"/{file}" in result.compile_error]
    if result.part is not None:
        files = [file for file in files if any(group.file == file for group in result.groups)]
    if wrong is not None and wrong.file:
        files = [wrong.file]
    elif result.compile_error:
        files = broken or files  # all parts of a stage are compiled together
    else:
        todo = [group for group in result.groups if group.status != "passed"]
        waited_for = {group.waits_for for group in todo} - {None}
        todo = [group for group in [*result.groups, *result.of_others]
                if group.part in waited_for or group in todo and not group.waits_for]
        files = [unit["file"] for unit in stage.units if any(group.file == unit["file"] for group in todo)] or files
    return f"{stage.folder.relative_to(course.ROOT)}/{course.listed(files)}"


def next_step(result, selection=None):
    """selection: the stages to run in the model, if it is not only this one."""
    stage = result.stage
    if result.status == "passed":
        milestone = stage.milestone and course.say("test_milestone", stage.milestone[course.language()])
        return "\n".join(filter(None, [milestone, course.say("test_hear", selection or stage.id, stage.program, stage.id)]))
    if result.status == "unjudged":
        return course.say("test_elsewhere", stage.id)
    if result.mend_first:
        return next_step_of(stage, result.mend_first)
    files = files_to_edit(result)
    if result.status == "slow":
        return course.say("test_faster_emulated" if stage.is_emulated else "test_faster", files, stage.id)
    if result.status not in ("unwritten", "begun"):
        return course.say("test_mend", files, result.name)
    left = [stage.path(unit) for unit in stage.units if stage.is_marked(unit) and not stage.is_handed_out(unit)]
    note = course.say("test_marked", course.listed(path.name for path in left)) if left else None
    return "\n".join(filter(None, [note, course.say("test_write", files)]))


def next_step_of(stage, group):
    """The next step if the functions of another part are to be mended first."""
    path = (stage.folder / group.file).relative_to(course.ROOT)
    return course.say("test_mend", path, stage.with_part(group.part))


def next_page(result):
    """The next step after a part that is right; result: of the whole stage."""
    part = result.next_part
    if part is None:
        return next_step(result)
    stage, name = result.stage, f"{result.stage.id}.{part}"
    page = stage.page(part).relative_to(course.ROOT)
    return course.say("test_next_part", name, page, name if stage.has_pages else stage.id)


def run_my_tests(result):
    """Shows the output of the student's own tests, if there are any. They are never graded."""
    stage = result.stage
    if not stage.my_tests.exists() or result.compile_error:
        return
    course.tell(course.say("test_mine", stage.my_tests.relative_to(course.ROOT)))
    target = f"my_tests_{stage.number}"
    problem = building.build(target)
    if problem is not None:
        course.tell(f"  {course.say('test_uncompiled')}\n{indent(build_errors.why_not_built(problem, f'course/{target}'))}")
        return
    # Its output goes to a file: a pipe would keep all that an endless loop prints in memory.
    words = limited.with_limits([str(course.BUILD / "course" / target), "--gtest_brief=1"], limited.MAX_OUTPUT, ADDRESSES)
    with tempfile.TemporaryFile() as said:
        try:
            with course.doing(course.say("doing_my_tests", stage.my_tests.name)):
                done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            course.tell(indent(course.say("test_mine_hung", SECONDS)))
            return
        said.seek(0)
        text = said.read().decode("utf-8", "replace")
    lines = text.splitlines()
    course.tell(indent("\n".join(lines[:LINES])))
    if len(lines) > LINES:  # GoogleTest's last line counts the failures
        course.tell(indent(course.say("test_mine_more", len(lines) - LINES - 1) + "\n" + lines[-1]))
    if done.returncode < 0:
        course.tell(indent(course.say("test_mine_ended", -done.returncode)))


def test_and_tell(stage, brief=False):
    with stage_here.one_at_a_time(stage):  # the sanitizers read the kept requests
        result = progress.judge(stage, explain=True)
        tell(result, brief)
    run_my_tests(result)
    return result


def test_part(stage, part):
    """The gate judges the whole stage, because its parts use each other; one part is shown."""
    with stage_here.one_at_a_time(stage):
        whole = progress.judge(stage, explain=True)
        result = whole.of_part(part)
        tell(result)
    run_my_tests(result)
    course.tell(next_page(whole) if result.status == "passed" else next_step(result))
    return result


def up_to_the_next_unfinished(known):
    """Tests the stages that are not known to pass, up to the first with work to do."""
    known = [stage for stage in known if stage.is_expected]
    for stage in known:
        before = progress.remembered(stage, official_too=False)
        if before is None or before.status != "passed" or stage is known[-1]:
            result = test_and_tell(stage, brief=True)
            if result.status == "passed" and stage is not known[-1]:
                course.tell(next_step(result))
            yield result
            if not result.is_done_here:
                return


def run():
    parser = Parser("test")
    parser.add_argument("stages", nargs="?")
    options = parser.parse_args()
    known = course.stages()
    if options.stages and "." in options.stages:
        return 0 if test_part(*course.find_part(options.stages, known)).status == "passed" else 1
    if options.stages:
        chosen = course.parse_selection(options.stages, known)
        results = [test_and_tell(stage, brief=len(chosen) > 1) for stage in chosen]
    else:
        results = list(up_to_the_next_unfinished(known))
    if options.stages and len(results) > 1:
        course.tell(course.say("test_total", sum(result.earned for result in results),
                         sum(result.stage.points for result in results)))
    unfinished = next((result for result in results if not result.is_done_here), None)
    selection = options.stages and re.sub(r"\b0+(?=\d)", "", options.stages)  # "06" is 6
    course.tell(next_step(unfinished or results[-1], selection))
    if unfinished is None and progress.are_all_right(known):
        course.tell(course.say("where_all_done"))
    return 1 if unfinished else 0


if __name__ == "__main__":
    sys.exit(course.main(run))
