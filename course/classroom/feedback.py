"""The feedback for one student, in Markdown and in the student's language: feedback/ID.md."""
from classroom import changes
from shared import course
from classroom import marks
from grading import report


def when(at):
    return f"{at:%Y-%m-%d %H:%M} UTC"


def days(number):
    return course.say("class_day" if number == 1 else "class_days", number)


def lateness(one, rules):
    """What the lateness of a stage costs; empty if it was not late."""
    if not one.late:
        return ""
    seen = when(one.version.at)
    if not one.days:
        return course.say("class_late_covered", days(one.late), seen)
    cost = course.say("class_late", days(one.days), seen, marks.number(rules.percent))
    return f"{cost}, {course.say('class_late_days_took', days(one.covered))}" if one.covered else cost


def notes(one, record):
    """The reasons for the mark of a stage."""
    if one.override:
        yield course.say("class_corrected", report.in_markdown(one.override.reason), changes.shown(one.graded))
    elif lateness(one, record.rules):
        yield lateness(one, record.rules)
    if is_older(one, record):
        yield course.say("class_older", one.version.sha[:10], when(one.version.at))


def row(one, record):
    title = one.stage.title[course.language()]
    earned = f"{one.entry['earned']} / {one.stage.points}" if one.entry else "-"
    counts = marks.number(one.mark) or course.say("state_ungraded")
    state = course.say(f"state_{one.status}")
    return f"| {one.stage.id} | {title} | {earned} | {counts} | {state} | {'; '.join(notes(one, record))} |"


def head(record):
    yield f"# {record.id}: " + (course.say("class_mark", marks.number(record.mark), record.points)
                                if record.mark is not None else course.say("class_no_mark")) + "\n"
    if record.newest is not None:
        yield course.say("class_seen", record.newest.sha[:10], when(record.newest.at))
        if record.started and not any(record.started.values()):
            yield "\n" + course.say("class_nothing_begun")
    if record.rules.late_days:
        yield "\n" + course.say("class_late_days", record.late_days_used, record.rules.late_days)
    if record.problem and record.newest is not None:
        yield f"\n**{course.say('class_not_pulled', report.in_markdown(record.problem))}**"
    if record.unread:
        yield "\n" + course.say("class_unread", report.in_markdown(record.unread))
    if record.ungraded:
        yield f"\n**{course.say('class_ungraded', report.in_markdown(record.ungraded))}**"


def changed(record):
    """The latest changes of the marks."""
    if not record.changes:
        return
    yield f"\n**{course.say('class_changes', record.changes['at'][:10])}**\n"
    for one in record.changes["stages"]:
        yield "- " + course.say("class_changed_stage", one["stage"], changes.shown(one["before"]),
                                changes.shown(one["after"]), report.in_markdown(changes.told(one["why"])))


def markdown(record):
    """The feedback as lines, in course.language()."""
    yield from head(record)
    yield from changed(record)
    if any(one.entry or one.override for one in record.stages):
        yield (f"\n| | {course.say('where_stage')} | {course.say('where_points')} | {course.say('class_counts')} | "
               f"{course.say('where_state')} | |")
        yield "|--:|---|--:|--:|---|---|"
        yield from (row(one, record) for one in record.stages)
    if record.result:
        for entry in record.result["stages"]:
            yield from report.problems(entry)
        yield from report.ending(record.result)


def is_older(one, record):
    """True if an older version counts, and its result differs from that of the newest one."""
    if not record.result or one.mark is None or not one.entry or one.override:
        return False
    newest = next(entry for entry in record.result["stages"] if entry["id"] == one.stage.id)
    return one.version.sha != record.newest.sha and one.entry != newest
