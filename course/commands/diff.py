"""./stage diff: your code beside ours, once yours is right. Comments, includes and empty lines are left out."""
import difflib
import re
import sys

from shared import course
from shared.parser import Parser
from testing import progress

COLOURS = {"@": "36", "-": "31", "+": "32"}
CONTEXT = 3  # lines around each difference
# Literals, which contain no comments or braces, and comments.
PARTS = re.compile(r'R"(?P<end>[^\s()\\]*)\(.*?\)(?P=end)"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])*\''
                   r'|(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)', re.S)
NAMESPACE = re.compile(r"(?:inline )?namespace\b[^{;]*\{\s*$")
UNNAMED = re.compile(r"^namespace \{\n(.*?)^\}  // namespace\n", re.S | re.M)
INCLUDE = re.compile(r"\s*#\s*(?:include|pragma\s+once)\b")


def without_comments(text):
    """The text without comments; the number of lines stays the same."""
    def left(found):
        return "\n" * found[0].count("\n") or " " if found["comment"] else found[0]

    return PARTS.sub(left, text).replace("[[maybe_unused]] ", "")  # from the starters


def code(text):
    """[(number, line)] without comments, includes, empty lines, and lines that begin or end a namespace."""
    kept, braces = [], []  # per open brace: True if it belongs to a namespace
    for number, line in enumerate(without_comments(text).splitlines(), 1):
        opens = bool(NAMESPACE.match(line))
        dropped = opens or not line.strip() or INCLUDE.match(line)
        for brace in re.findall("[{}]", PARTS.sub("", line)):
            if brace == "{":
                braces.append(opens)
            elif braces and braces.pop():
                dropped = True
        if not dropped:
            kept.append((number, line.rstrip()))
    return kept


def difference(yours, ours):
    """(sign, line) where two lists of (number, line) differ; before each place, "@" and the number in yours."""
    mine, theirs = [line for _, line in yours], [line for _, line in ours]
    for group in difflib.SequenceMatcher(None, mine, theirs, autojunk=False).get_grouped_opcodes(CONTEXT):
        begin = group[0][1]
        yield "@", yours[min(begin, len(yours) - 1)][0] if yours else 1
        for kind, begin, end, first, last in group:
            if kind == "equal":
                yield from ((" ", line) for line in mine[begin:end])
            else:
                yield from (("-", line) for line in mine[begin:end])
                yield from (("+", line) for line in theirs[first:last])


def definitions(lines):
    """The (number, line) of each definition at the top level, such as a function: a list per definition."""
    found, open_braces = [[]], 0
    for number, line in lines:
        found[-1].append((number, line))
        text = PARTS.sub("", line)
        open_braces += text.count("{") - text.count("}")
        if open_braces == 0 and text.rstrip().endswith(("}", ";")):
            found.append([])
    return [lines for lines in found if lines]


def name_of(definition):
    """The name of a function: the word before its first parenthesis."""
    found = re.search(r"(\w+)\(", " ".join(line for _, line in definition))
    return found and found[1]


def helpers(starter):
    """The lines of the functions that a starter has in its unnamed namespace, by name."""
    found = UNNAMED.search(starter)
    return {name_of(one): [line for _, line in one] for one in definitions(code(found[1] if found else "")) if name_of(one)}


def without_given(yours, ours, given):
    """yours and ours without these helpers, if they are unchanged in yours; also the names of those left out."""
    mine = definitions(yours)
    unchanged = [name_of(one) for one in mine if given.get(name_of(one)) == [line for _, line in one]]

    def left(definitions):
        return [line for one in definitions if name_of(one) not in unchanged for line in one]

    return left(mine), left(definitions(ours)), unchanged


def of_unit(stage, unit):
    """Compares a unit's file with our answer, which may be several files."""
    yours = stage.path(unit)
    name = yours.relative_to(course.ROOT)
    ours = [line for answer in unit["answers"] for line in code((course.ROOT / answer).read_text(encoding="utf-8"))]
    try:
        given = helpers(stage.starter(unit).decode("utf-8"))
    except course.Problem:  # without git the starter is not known
        given = {}
    mine, ours, left_out = without_given(code(yours.read_text(encoding="utf-8", errors="replace")), ours, given)
    lines = list(difference(mine, ours))
    if not lines:
        yield course.say("diff_same", name)
        return
    yield course.paint(f"--- {name} {course.say('diff_yours')}", "1")
    yield course.paint(f"+++ {' + '.join(unit['answers'])} {course.say('diff_ours')}", "1")
    if left_out:
        yield course.say("diff_given", course.listed(left_out))
    for sign, line in lines:
        yield course.paint(course.say("diff_line", line) if sign == "@" else f"{sign}{line}", COLOURS.get(sign))


def run():
    parser = Parser("diff")
    parser.add_argument("stage")
    stage = course.find_stage(parser.parse_args().stage, course.stages())
    if progress.result_of(stage).status != "passed":
        raise course.Problem(course.say("diff_not_yet", stage.id))
    course.page([line for unit in stage.units for line in of_unit(stage, unit)])
    return 0


if __name__ == "__main__":
    sys.exit(course.main(run))
