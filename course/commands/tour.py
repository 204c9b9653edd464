"""./stage tour: docs/tour.md, one screen per numbered section; the answers to its questions wait for Enter."""
import re
import shutil
import sys

from shared import course
from shared import markdown
from shared.parser import Parser

PAGES = {"en": "tour.md", "zh": "tour.zh.md"}
WIDEST = 100  # longer lines are hard to read


def columns():
    return min(shutil.get_terminal_size((80, 24)).columns, WIDEST)


def page():
    return (course.ROOT / "docs" / PAGES[course.language()]).read_text(encoding="utf-8")


def summary(text):
    """The map as lines: the first code block."""
    return re.search(r"^```\n(.*?)\n```$", text, re.M | re.S)[1].split("\n")


class Screen:
    """A section: its text with a question, and the answer with the command that shows it."""

    def __init__(self, heading, body, width):
        question = re.search(r"<details><summary>.*?</summary>", body, re.S)
        self.title = heading
        self.asks = list(markdown.rendered(body[:question.end()], width))
        self.answers = list(markdown.rendered(body[question.end():], width))


def screens(text, width):
    parts = re.split(r"^## (.*)$", text, flags=re.M)
    found = [Screen(heading, body, width) for heading, body in zip(parts[1::2], parts[2::2])
             if re.match(r"\d", heading)]
    found[0].asks[:0] = [*summary(text), ""]
    return found


def wait(key, *values):
    """Waits for Enter at a terminal; False if the reader wants to stop."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return True
    try:
        return input(course.paint(course.say(key, *values), "2") + " ").strip().lower() not in ("q", "quit")
    except EOFError:
        print()
        return False


def show(lines):
    for line in lines:
        print(course.paint(line, "36") if line.startswith("  $ ") else line)


def show_summary():
    if (course.ROOT / "docs" / PAGES[course.language()]).exists():  # a copy for grading has no docs
        show([*summary(page()), course.say("tour_more")])


def run():
    parser = Parser("tour")
    parser.add_argument("screen", nargs="?", type=int)
    parser.add_argument("--summary", action="store_true")
    arguments = parser.parse_args()
    if arguments.summary:
        show_summary()
        return 0
    found = screens(page(), columns())
    if arguments.screen is not None and not 1 <= arguments.screen <= len(found):
        raise course.Problem(course.say("no_screen", arguments.screen, len(found)))
    for number, screen in enumerate(found, 1):
        if arguments.screen not in (None, number):
            continue
        if number > 1 and arguments.screen is None:
            print()
        print(course.paint(screen.title, "1") + "\n")
        show(screen.asks)
        if not wait("tour_answer"):
            return 0
        show(screen.answers)
        if number < len(found) and arguments.screen is None and not wait("tour_next", number + 1, len(found)):
            return 0
    print(course.say("tour_end"))
    return 0


if __name__ == "__main__":
    sys.exit(course.main(run))
