"""./stage hint: one more of a handout's hints."""
import argparse
import html
import re
import sys

import course
import progress

COLUMNS = 96
HINT = re.compile(r"<details><summary>(?:Hint|提示) \d</summary>(.*?)</details>", re.DOTALL)
WORDS = re.compile(r"\s+|[^\s\u2e80-\uffef]+|.")  # Chinese may be broken anywhere


def hints(stage):
    """The folded hints of the handout in the reader's language, as plain text."""
    text = (stage.folder / course.HANDOUTS[course.language()]).read_text(encoding="utf-8")
    return [html.unescape(re.sub(r"<[^>]*>", "", found)).strip() for found in HINT.findall(text)]


def wrapped(text, indent="    "):
    line = indent
    for word in WORDS.findall(text):
        word = " " if word.isspace() else word
        if course.width(line + word) > COLUMNS and line.strip():
            yield line.rstrip()
            line = indent
        line += word.lstrip() if line == indent else word
    yield line.rstrip()


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
        handout = (stage.folder / course.HANDOUTS[course.language()]).relative_to(course.ROOT)
        print(course.say("hint_last", stage.id, handout))
        return 0
    print(course.say("hint", stage.id, shown + 1, len(all_hints)))
    print("\n".join(wrapped(all_hints[shown])))
    progress.note("hints", stage, shown + 1)
    if shown + 1 < len(all_hints):
        print(course.say("hint_next", stage.id))
    return 0


if __name__ == "__main__":
    sys.exit(course.main(run))
