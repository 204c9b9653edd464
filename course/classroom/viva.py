"""A sheet for two minutes with a student: three small changes of their own right code. Which case fails, and why? A
student who wrote or understood the code knows. The answers are at the end; the sheet is for the teacher.

Right are the groups of points that pass; the rest of their stage may be wrong or not written. A change is one token of
one line (mutants). It is on the sheet only if such a group is wrong with it: not if all still pass, or if the program
crashes or does not end.
"""
import collections
import copy
import random
import re
import textwrap
import traceback

from grading import programs
from grading import report
from grading import workplace
from rules import cpp_text
from shared import course
from testing import gate
from classroom import marks

WANTED = 3
CONTEXT = 2  # lines on the sheet before and behind a change
TRIES = 12  # compiled and judged programs per sheet
MOST_LINES = 4  # of the gate's message
LONGEST = 400  # letters per line: each change is a copy of it. Longer lines are broken first
SWAPS = ((r"(?<=\s)<(?=\s)", "<="), (r"(?<=\s)>(?=\s)", ">="), (r"==", "!="), (r"\+=", "="),
         (r"-=", "+="), (r"\*=", "="), (r" \+ ", " - "), (r" - ", " + "), (r" \* ", " / "), (r" / ", " * "),
         (r"\.rows\(\)", ".cols()"), (r"\.cols\(\)", ".rows()"), (r"\bmax\b", "min"), (r"\bmin\b", "max"),
         (r"\btrue\b", "false"), (r"\bfalse\b", "true"), (r"(?<![\w.])0(?![\w.])", "1"), (r"(?<![\w.])1(?![\w.])", "2"),
         (r"\b1\.0f?\b", "2.0f"), (r"\b2\b", "3"))
CHECK = re.compile(r"\bcheck_(?:size|shape|attention)\s*\(|\bthrow\b|\bassert\s*\(")
CONDITION = re.compile(r"\bif\s*\([^;]*\{\s*$")  # before a statement; looked for in a few letters only
NO_CODE = re.compile(r"^\s*#.*|\b(?:template|using|std::(?:span|array|function))\s*<[^;{]*>")


def blanked(line):
    """A line of code with blanks in place of the parts that are never changed."""
    return NO_CODE.sub(lambda found: " " * len(found[0]), line)


def in_short_lines(text):
    """The text with line breaks after the ; { } of long lines, except in directives: a file may be one line."""
    lines, continues = [], False
    for line, code in zip(text.split("\n"), cpp_text.without_comments(text, texts=False).split("\n")):
        directive = continues or re.match(cpp_text.DIRECTIVE, line) is not None
        if len(line) > LONGEST and not directive:
            ends = [at + 1 for at, letter in enumerate(code) if letter in ";{}"]
            lines += [line[begin:end] for begin, end in zip([0, *ends], [*ends, len(line)])]
        else:
            lines.append(line)
        continues = directive and line.endswith("\\")
    return "\n".join(lines)


def without_checks(code):
    """The code with blanks in place of statements that check arguments, and of conditions before a throw."""
    kept = []
    for statement in re.split(r"(?<=[;{}])", code):
        is_check = CHECK.search(statement)
        if is_check and "throw" in is_check[0] and kept and CONDITION.search(kept[-1][-LONGEST:]):
            kept[-1] = cpp_text.blanks(kept[-1])
        kept.append(cpp_text.blanks(statement) if is_check else statement)
    return "".join(kept)


def mutants(text):
    """[(line number, the line, the changed line)]"""
    found = []
    code_lines = cpp_text.compiled_lines(without_checks(cpp_text.without_comments(text, texts=False)))
    for number, (line, code) in enumerate(zip(text.split("\n"), code_lines), 1):
        if len(line) > LONGEST:
            continue
        code = blanked(code)
        for pattern, other in SWAPS:
            for at in re.finditer(pattern, code):
                found.append((number, line, line[:at.start()] + other + line[at.end():]))
    return found


def right_groups(record):
    """{stage: the names of the groups that give points and pass}, of the stages where there are any. (Groups for speed
    are left out: they ask for the same results.)"""
    found = {one.stage: [group["name"] for group in one.entry["groups"]
                         if group["status"] == "passed" and group["points"] and group["name"] not in one.stage.timed]
             for one in record.stages if one.entry and one.entry["started"]}
    return {stage: names for stage, names in found.items() if names}


def files_of(stage, names):
    """The units that these groups are about."""
    files = {group.get("file") for group in stage.groups if group["name"] in names}
    return [unit for unit in stage.units if None in files or unit["file"] in files]


def text_of(handed_in, name):
    return in_short_lines(handed_in.files[name].decode("utf-8", "replace"))


def candidates(handed_in, right, chance):
    """[(stage, file, one of mutants)] in random order, alternating between stages and lines. right: from
    right_groups."""
    every = []
    for stage, names in right.items():
        for unit in files_of(stage, names):
            name = course.unit_name(stage, unit)
            starter = set(stage.starter(unit).decode("utf-8", "replace").splitlines())
            every += [(stage, name, one) for one in mutants(text_of(handed_in, name)) if one[1] not in starter]
    chance.shuffle(every)
    order, n_of = [], collections.Counter()
    for stage, name, mutant in every:
        n_of[name, mutant[0]] += 1
        n_of[stage.id] += 1
        order.append((n_of[name, mutant[0]], n_of[stage.id]))
    return [one for _, one in sorted(zip(order, every), key=lambda row: row[0])]


def judged(handed_in, stage, groups, name, mutant, seed):
    """The gate's result about these groups for the program with this change: a verdict.Result, or None if it cannot be
    built."""
    number, _, changed = mutant
    other = copy.copy(handed_in)
    lines = text_of(handed_in, name).split("\n")
    lines[number - 1] = changed
    other.files = {**handed_in.files, name: "\n".join(lines).encode()}
    with workplace.temporary("viva") as folder:
        work = programs.Programs(other, folder)
        try:
            worker = work.make(stage)
        except programs.NotMade:
            return None
        except Exception:  # over this program: the sheets of the others do not depend on it
            traceback.print_exc()
            return None
        return gate.run(stage, worker, seed, keep=work.folder / "asked", only=groups)


def is_on_the_sheet(result):
    if result is None or result.unfinished or result.status != "wrong":
        return False
    kinds = {kind for group in result.groups for kind, _ in group.failed_requests}
    return any(group.failures for group in result.groups) and not kinds & {"crashed", "hung", "overrun", "printed"}


def around(handed_in, name, number):
    """(the lines before line `number`, the lines behind it), at most CONTEXT of each."""
    lines = text_of(handed_in, name).split("\n")
    return lines[max(number - 1 - CONTEXT, 0):number - 1], lines[number:number + CONTEXT]


def changes(handed_in, right, seed):
    """[(stage, file, mutant, verdict.Result, around())] for a sheet. right: from right_groups."""
    found, lines = [], set()
    for stage, name, mutant in candidates(handed_in, right, random.Random(seed))[:TRIES]:
        if (name, mutant[0]) in lines:
            continue
        result = judged(handed_in, stage, right[stage], name, mutant, seed)
        if is_on_the_sheet(result):
            found.append((stage, name, mutant, result, around(handed_in, name, mutant[0])))
            lines.add((name, mutant[0]))
        if len(found) == WANTED:
            break
    return found


def sheet(id, sha, found, right):
    """The sheet as lines of Markdown. found: from changes(). right: from right_groups."""
    yield f"# {course.say('viva_title', id, sha[:10])}\n"
    if not found:
        yield course.say("viva_no_change", marks.named(right)) if right else course.say("viva_none")
        return
    yield f"{course.say('viva_how' if len(found) == WANTED else 'viva_fewer', len(found))}\n"
    for number, (stage, name, (line, before, after), _, (above, below)) in enumerate(found, 1):
        yield f"## {number}. {name}:{line}\n"
        code = textwrap.dedent("\n".join([*above, before, after, *below])).split("\n")
        signs = [" "] * len(above) + ["-", "+"] + [" "] * len(below)
        shown = (f"{sign} {text[:LONGEST]}".rstrip() for sign, text in zip(signs, code))
        yield "\n".join(report.fenced(report.plain("\n".join(shown))).splitlines())
        yield f"\n{course.say('viva_question')}\n"
    yield f"---\n\n## {course.say('viva_answers')}\n"
    for number, (stage, name, _, result, _) in enumerate(found, 1):
        wrong = [group for group in result.groups if group.failures]
        names = course.listed(group.name for group in wrong)
        passed = course.listed(group.name for group in result.groups if group.status == "passed") or "-"
        yield f"{number}. {course.say('viva_answer', stage.id, names, passed)}\n"
        said = "\n".join(wrong[0].failures[0].splitlines()[:MOST_LINES])
        yield report.indent(report.fenced(report.plain(said)), 3) + "\n"
