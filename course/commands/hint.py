"""./stage hint: shows one more hint of a handout."""
import sys

from shared import course
from shared import markdown
from shared.parser import Parser
from testing import progress

COLUMNS = 80
INDENT = "    "


def hints(page):
    """The folded hints of a page, as plain text."""
    text = page.read_text(encoding="utf-8")
    return [markdown.plain(hint) for title, hint in markdown.DETAILS.findall(text) if markdown.HINT.fullmatch(title)]


def run():
    parser = Parser("hint")
    parser.add_argument("stage", nargs="?")
    options = parser.parse_args()
    known = course.stages()
    stage, part = (course.find_part(options.stage, known) if options.stage
                   else (progress.next_unfinished(known) or known[-1], None))
    if stage.has_pages and part is None:  # the first part that is not right
        part = progress.result_of(stage).next_part or max(group.get("part", 0) for group in stage.groups)
    name = stage.with_part(part)
    page, kind = (stage.page(part), f"hints of part {part}") if part else (stage.handout, "hints")
    all_hints = hints(page)
    if part and not stage.has_pages:  # the hints of this part
        all_hints = [hint for hint in all_hints if hint.startswith(name)]
    shown = progress.recall(kind, stage) or 0
    if shown >= len(all_hints):
        course.tell(course.say("hint_last_on_gpu" if stage.is_emulated else "hint_last", stage.id, page.relative_to(course.ROOT)))
        return 0
    course.tell(course.say("hint", name, shown + 1, len(all_hints)))
    room = min(COLUMNS, course.columns(usual=COLUMNS))
    print("\n".join(course.wrapped(all_hints[shown], room, INDENT, INDENT)))
    progress.note(kind, stage, shown + 1)
    if shown + 1 < len(all_hints):
        course.tell(course.say("hint_next", name))
    return 0


if __name__ == "__main__":
    sys.exit(course.main(run))
