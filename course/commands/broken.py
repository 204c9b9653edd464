"""./stage broken: shows what a mistake does to a story or to a chat.

The mistakes are the wrong programs of course/mistakes, the same ones that the gates know by name.
"""
import argparse
import difflib
import os
import subprocess
import sys

from shared import course
from shared.parser import Parser
from testing import build_errors
from testing import building

COLUMNS = 80  # the widest line
QUESTIONS = b"Hello!\nWhat do you do on weekends?\nDo you have a dog?\n"
# Default options, so that the two texts can be compared: the option's spellings and its value.
SAME_FOR_BOTH = ((("--temperature", "--temp"), "0"), (("--max-tokens", "-n"), "60"), (("--seed",), "7"))


def pick(stage, name):
    known = course.mistakes(stage)
    wanted = name.replace("-", "_")
    if wanted in known:
        return wanted, known[wanted]
    near = difflib.get_close_matches(wanted, known, 1)
    raise course.Problem(course.say("no_mistake_near", stage.id, name, near[0]) if near else
                         course.say("no_mistake", stage.id, name))


def complete(options):
    given = {word.partition("=")[0] for word in options}
    added = [word for names, value in SAME_FOR_BOTH if not given.intersection(names)
             for word in (names[0], value)]
    return added + options


def tell(program, stage, options):
    """The program's text or, if it prints none, the reason. A chat has three questions, unless the options have one."""
    done = subprocess.run([str(program), stage.program, *complete(options)], input=QUESTIONS,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    text = done.stdout.decode("utf-8", "replace").strip()
    if done.returncode == 0:
        return text, None
    if done.returncode < 0:
        return text, course.say("test_mine_ended", -done.returncode)
    return text, done.stderr.decode("utf-8", "replace").strip()


def room():
    return min(COLUMNS, course.columns(usual=COLUMNS))


def show(title, text):
    course.tell(title)
    for paragraph in (text or "...").splitlines():
        print("\n".join(course.wrapped(paragraph.strip(), room(), "    ", "    ")))
    print()


def compare(ours, theirs):
    if ours == theirs:
        return course.say("broken_same")
    same = len(os.path.commonprefix([ours.split(), theirs.split()]))
    return course.say("broken_begins_alike", same, len(ours.split())) if same else course.say("broken_differs")


def list_mistakes(stage):
    """The list as lines. How to run one comes first, because the list may fill several pages."""
    known = course.mistakes(stage)
    if not known:
        raise course.Problem(course.say("no_catalogue", stage.id))
    language = course.language()
    yield from course.say("broken_list", stage.id, stage.title[language], next(iter(known))).splitlines()
    for name, sentence in known.items():
        lines = course.wrapped(course.say("case_named", name, sentence[language]), room(), "  ", "      ")
        for at, line in enumerate(lines):
            yield line.replace(name, course.paint(name, "1"), 1) if at == 0 else line


def run():
    parser = Parser("broken")
    parser.add_argument("stage")
    parser.add_argument("name", nargs="?")
    parser.add_argument("options", nargs=argparse.REMAINDER, help=argparse.SUPPRESS).required = False
    options = parser.parse_args()
    stage = course.find_stage(options.stage, course.stages())
    if options.name is None:
        course.page(list(list_mistakes(stage)))
        return 0
    name, sentence = pick(stage, options.name)
    target = f"course/broken_{stage.number}_{name}"
    problem = building.build("stagecraft", target)
    if problem is not None:
        raise course.Problem(build_errors.first_error(problem))
    with course.doing(course.say("doing_broken")):
        ours, ours_problem = tell(course.BUILD / "src" / "stagecraft", stage, options.options)
        theirs, theirs_problem = "", None
        if not ours_problem:
            theirs, theirs_problem = tell(course.BUILD / target, stage, options.options)
    if ours_problem:  # for example a wrong option or no model: not due to the mistake
        course.tell(ours_problem, sys.stderr)
        return 1
    show(course.say("broken_ours"), ours)
    show(course.say("case_named", name, sentence[course.language()]), theirs)
    if theirs_problem:
        course.tell(course.say("broken_then", theirs_problem))
    if theirs or not theirs_problem:
        course.tell(compare(ours, theirs))
    return 0


if __name__ == "__main__":
    sys.exit(course.main(run))
