"""A result of course/grading/grader.py in words: for a terminal, for a summary in Markdown, as annotations.

What it quotes was said by or about a student's code, so it is never taken for more than text.
"""
import re
import secrets

from shared import course


def plain(quoted):
    """Without what a terminal would obey."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "\N{REPLACEMENT CHARACTER}"
                   for letter in quoted)


def in_markdown(quoted):
    """The same as a part of a Markdown line, of which nothing is a mark or HTML."""
    return re.sub(r"([\\`*_\[\]<>|&])", r"\\\1", " ".join(plain(quoted).split()))


def indent(text, columns):
    return "\n".join(" " * columns + line for line in text.splitlines())


def words(group):
    """What is wrong with a group, in lines."""
    lines = [group["message"], group["mistake_says"]]
    if group["more"]:
        lines.append(course.say("test_more", group["more"]))
    return plain("\n".join(line for line in lines if line))


def state(entry):
    return course.say(f"grade_{entry['status']}")


def title(entry):
    return entry["title"][course.language()]


def text(result):
    """For a terminal: every stage, what passes or is not begun in one line."""
    for entry in result["stages"]:
        head = course.say("test_head", entry["id"], title(entry), entry["earned"], entry["points"])
        yield f"{head}, {state(entry)}"
        if entry["status"] in ("passed", "unwritten"):
            continue
        if "message" in entry:
            yield indent(plain(entry["message"]), 4)
            continue
        for group in entry["groups"]:
            yield f"  {group['name']:<24} {group['earned']:>3}/{group['points']:<3} {state(group)}"
            if words(group):
                yield indent(words(group), 4)
    yield course.say("test_total", result["earned"], result["points"])
    yield from walls(result)


def walls(result):
    """That there were none, where there were none."""
    if not result["confined"]:
        yield course.say("grade_not_confined", result["not_confined_because"])


def fenced(quoted):
    longest = max((len(run) for run in re.findall("`+", quoted)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{quoted}\n{fence}"


def markdown(result):
    """For the summary of a run: a table of the stages, and below it what is wrong."""
    yield f"## {course.say('test_total', result['earned'], result['points'])}\n"
    yield f"| | {course.say('where_stage')} | {course.say('where_points')} | {course.say('where_state')} |"
    yield "|--:|---|--:|---|"
    for entry in result["stages"]:
        yield f"| {entry['id']} | {title(entry)} | {entry['earned']} / {entry['points']} | {state(entry)} |"
    for entry in result["stages"]:
        yield from problems(entry)
    yield from ending(result)


def problems(entry):
    """What is wrong with a stage, where that is something, under a heading of its own."""
    if not entry["failed"]:
        return
    yield f"\n### {course.say('test_head', entry['id'], title(entry), entry['earned'], entry['points'])}\n"
    if "message" in entry:
        yield fenced(plain(entry["message"]))
        return
    for group in entry["groups"]:
        if words(group):
            yield (f"**{group['name']}** {group['earned']}/{group['points']}, {state(group)}\n\n"
                   f"{fenced(words(group))}\n")


def ending(result):
    """By what it was graded."""
    sha = (result["repository"]["sha"] or "")[:10]
    yield from (f"\n**{line}**" for line in walls(result))
    commit = (result["official"]["commit"] or "")[:10]
    yield f"\n{course.say('grade_how', sha or '-', commit or '-', result['compiler'])}"


def escaped(value, more=""):
    """A value of a workflow command of GitHub's."""
    for letter in "%\r\n" + more:
        value = value.replace(letter, f"%{ord(letter):02X}")
    return value


def annotations(result):
    """GitHub's commands that mark the student's own lines."""
    for entry in result["stages"]:
        line = entry.get("line")
        if line:
            head = escaped(f"{entry['id']} · {title(entry)}", ":,")
            yield (f"::error file={escaped(line['file'], ':,')},line={line['line']},title={head}::"
                   f"{escaped(plain(line['message']))}")


def without_commands(lines):
    """Lines that GitHub must not take for commands, whatever a student's code printed."""
    token = secrets.token_hex(16)
    return [f"::stop-commands::{token}", *lines, f"::{token}::"]
