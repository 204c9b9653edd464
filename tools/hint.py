"""./stage hint: one more of a handout's hints."""
import argparse
import html
import re
import sys

import course
import progress

COLUMNS = 96
INDENT = "    "
HINT = re.compile(r"<details><summary>(?:Hint|提示) \d</summary>(.*?)</details>", re.DOTALL)


def hints(stage):
    """The folded hints of the handout in the reader's language, as plain text."""
    text = stage.handout.read_text(encoding="utf-8")
    plain = (html.unescape(re.sub(r"<[^>]*>", "", found)) for found in HINT.findall(text))
    return [" ".join(hint.split()) for hint in plain]


def run():
    parser = argparse.ArgumentParser(prog="./stage hint",
                                     description="Shows one more hint of a stage.",
                                     epilog="e.g. ./stage hint 3; without a stage: of the next unfinished one")
    parser.add_argument("stage", nargs="?", help="3, say")
    options = parser.parse_args()
    known = course.stages()
    stage = (course.find_stage(options.stage, known) if options.stage
             else progress.next_unfinished(known) or known[-1])
    all_hints = hints(stage)
    shown = progress.recall("hints", stage) or 0
    if shown >= len(all_hints):
        course.tell(course.say("hint_last", stage.id, stage.handout.relative_to(course.ROOT)))
        return 0
    course.tell(course.say("hint", stage.id, shown + 1, len(all_hints)))
    room = min(COLUMNS, course.columns(usual=COLUMNS))
    print("\n".join(course.wrapped(all_hints[shown], room, INDENT, INDENT)))
    progress.note("hints", stage, shown + 1)
    if shown + 1 < len(all_hints):
        course.tell(course.say("hint_next", stage.id))
    return 0


if __name__ == "__main__":
    sys.exit(course.main(run))
