"""A result of course/grading/grader.py in words: for a terminal, for a summary in Markdown, as annotations.

It quotes what a student's code printed and what was said about it; such text is always escaped.
"""
import re
import secrets

from shared import course


def plain(quoted):
    """The text without control characters for a terminal."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "\N{REPLACEMENT CHARACTER}"
                   for letter in quoted)


def in_markdown(quoted):
    """The same for a Markdown line: nothing in it acts as a mark or as HTML."""
    return re.sub(r"([\\`*_\[\]<>|&])", r"\\\1", " ".join(plain(quoted).split()))


def indent(text, columns):
    return "\n".join(" " * columns + line for line in text.splitlines())


def words(group):
    """What is wrong with a group, in lines."""
    lines = [group["message"], group["mistake_says"]]
    if group["more"]:
        lines.append(course.say("test_more", group["more"]))
    return plain("\n".join(line for line in lines if line))


def still_to_write(entry):
    """The groups of a begun stage that are not written yet, in words; "" if there are none."""
    left = [course.say("group_points", group["name"], group["points"]) for group in entry["groups"]
            if group["status"] == "unwritten"]
    return course.say("still_to_write", course.listed(left)) if left and len(left) < len(entry["groups"]) else ""


def state(entry):
    return course.say(f"state_{entry['status']}")


def title(entry):
    return entry["title"][course.language()]


def text(result):
    """For a terminal: all stages; one line for a stage that passes or is not begun."""
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
    yield from not_confined(result)


def not_confined(result):
    """A line that says so if the code was not confined."""
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
        said = "; ".join(filter(None, [state(entry), still_to_write(entry)]))
        yield f"| {entry['id']} | {title(entry)} | {entry['earned']} / {entry['points']} | {said} |"
    for entry in result["stages"]:
        yield from problems(entry)
    yield from ending(result)


def problems(entry):
    """What is wrong with a stage, under a heading of its own, if something is."""
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


def version(official):
    """A tree that grades, in words. official: as in a result."""
    commit = (official.get("commit") or "-")[:10]
    return course.say("official_changed", commit) if official.get("changed") else commit


def how(result):
    """Which commit was graded, by which tree and compiler."""
    sha = (result["repository"]["sha"] or "-")[:10]
    return course.say("grade_how", sha, version(result["official"]), result["compiler"])


def ending(result):
    yield from (f"\n**{line}**" for line in not_confined(result))
    yield f"\n{how(result)}"


def escaped(value, more=""):
    """A value in a workflow command of GitHub."""
    for letter in "%\r\n" + more:
        value = value.replace(letter, f"%{ord(letter):02X}")
    return value


def annotations(result):
    """GitHub's commands that mark lines of the student's files."""
    for entry in result["stages"]:
        line = entry.get("line")
        if line:
            head = escaped(f"{entry['id']} · {title(entry)}", ":,")
            yield (f"::error file={escaped(line['file'], ':,')},line={line['line']},title={head}::"
                   f"{escaped(plain(line['message']))}")


def without_commands(lines):
    """Escapes lines that GitHub would take for commands, because a student's code may print such lines."""
    token = secrets.token_hex(16)
    return [f"::stop-commands::{token}", *lines, f"::{token}::"]
