"""The changes that students are told of: lines of CHANGELOG.md such as "- tests: ..."."""
import re

from shared import course

CHANGE = re.compile(r"- (?:handout|tests|code): ")


def lines():
    path = course.ROOT / "CHANGELOG.md"
    return [line for line in path.read_text(encoding="utf-8").splitlines() if CHANGE.match(line)] if path.exists() else []
