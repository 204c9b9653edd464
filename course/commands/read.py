"""./stage read: shows a handout in the terminal, page by page."""
import re
import sys

from shared import course
from shared import markdown
from shared.parser import Parser
from testing import progress

WIDEST = 100  # longer lines are hard to read
PARAGRAPHS = re.compile(r"\n\n(?=[^\s`|<])")  # between them; code and tables stay at the margin
ANSWER = re.compile(r"Answers?|答案")  # answers to the questions above them


def without_hints(text, name):
    """A page without its hints, which ./stage hint shows, and with its answers at the end."""
    answers = []

    def shown(match):
        if markdown.HINT.fullmatch(match[1]):
            return ""
        answers.append(match[2].strip())
        if ANSWER.fullmatch(match[1]):
            return "\n" + course.say("read_answer", len(answers))
        return f"{len(answers)}. {match[1]}"

    text = markdown.DETAILS.sub(shown, text)
    text = re.sub(r"^(## (?:Hints|提示))$.*?(?=^## )", rf"\1\n\n{course.say('read_hints', name)}\n\n", text, flags=re.M | re.S)
    if answers:
        inside = (PARAGRAPHS.sub("\n\n   ", answer) for answer in answers)  # of the item of a list
        listed = "\n".join(f"{at}. {answer}" for at, answer in enumerate(inside, 1))
        text += f"\n\n## {course.say('read_answers')}\n{listed}"
    return text


def endings(stage, part):
    """The lines below page `part` (0: the first): where its figures are, and what comes next."""
    pages, name = stage.pages, stage.with_part(part)
    yield course.say("read_end", pages[part].relative_to(course.ROOT))
    groups = [group for group in stage.groups if group.get("part") == part] if stage.has_pages else stage.groups
    if groups:
        files = dict.fromkeys(group["file"] for group in groups if "file" in group) or [unit["file"] for unit in stage.units]
        yield course.say("read_then", f"{stage.folder.relative_to(course.ROOT)}/{course.listed(files)}", name)
    if part + 1 < len(pages):
        yield course.say("read_next", stage.with_part(part + 1))


def run():
    parser = Parser("read")
    parser.add_argument("stage", nargs="?")
    options = parser.parse_args()
    known = course.stages()
    number, _, part = (options.stage or str((progress.next_unfinished(known) or known[-1]).id)).partition(".")
    stage = course.find_stage(number, known)
    pages = stage.pages
    name = stage.with_part(part)
    parts = range(1, len(pages)) if stage.has_pages else {group.get("part") for group in stage.groups}
    if part and not (part.isdecimal() and int(part) in parts):
        raise course.Problem(course.say("no_page", name, stage.id, len(pages) - 1) if stage.has_pages else
                             course.say("one_page", name, stage.id))
    number = int(part or 0) if stage.has_pages else 0
    page = pages[number]
    text = without_hints(page.read_text(encoding="utf-8"), name)
    room = min(WIDEST, course.columns(usual=80))
    lines = [line for said in endings(stage, number) for line in course.wrapped(said, room)]
    course.page([*markdown.rendered(text, room, page.parent), *lines])
    return 0


if __name__ == "__main__":
    sys.exit(course.main(run))
