"""The feedback for one student, in Markdown and in the student's language: feedback/ID.md."""
from classroom import changes
from shared import course
from classroom import marks
from classroom import repositories
from classroom.lateness import when
from grading import report


def days(number):
    return course.say("class_day" if number == 1 else "class_days", number)


def lateness(one, rules):
    """What the lateness of a stage costs; empty if it was not late."""
    if not one.late:
        return ""
    due = rules.deadline(one.stage)
    cost = course.say("class_late_covered", one.covered) if one.covered else ""
    cost += course.say("class_late_lost", one.days, marks.number(rules.percent)) if one.days else ""
    return course.say("class_late", days(one.late), when(due), seen(one.version.at, due), cost)


def seen(at, due):
    """The moment when a version was first seen, in the time zone of the deadline if there is one."""
    return when(at.astimezone(due.tzinfo) if due else at)


def notes(one, record):
    """The reasons for the mark of a stage."""
    if one.override:
        yield corrected(one, report.in_markdown)
    elif cost := lateness(one, record.rules):
        yield cost
    if is_older(one, record):
        yield course.say("class_older", one.version.sha[:10], seen(one.version.at, record.rules.deadline(one.stage)))
        if (earned := entry_of_newest(one, record)["earned"]) >= one.entry["earned"]:
            yield course.say("class_newest_late", earned)
    if one.entry and (missing := report.still_to_write(one.entry)):
        yield missing
    if one.entry and one.entry["started"] and one.status == "unwritten":
        yield course.say("test_marked", course.listed(unit["file"] for unit in one.stage.units))


def corrected(one, shown=str):
    """The teacher's reason; shown: makes a text of it that fits the page."""
    if one.graded is None:
        return course.say("changed_override", shown(one.override.reason))
    return course.say("class_corrected", shown(one.override.reason), marks.number(one.graded))


def row(one, record):
    """Of the table. The points of an optional stage that was not begun are not among those of the student."""
    title = one.stage.title[course.language()]
    counts = marks.number(one.mark) or course.say("state_ungraded")
    earned = f"{one.entry['earned']} / {one.stage.points}" if one.entry else "-"
    state = course.say(f"state_{one.status}")
    if one.stage.is_optional and not one.points and one.mark is not None:
        earned, counts, state = "-", "-", course.say("where_optional")
    due = [when(record.rules.deadline(one.stage))] if record.rules.has_deadlines else []
    return f"| {' | '.join([str(one.stage.id), title, *due, earned, counts, state, '; '.join(notes(one, record))])} |"


def table(record):
    due = [course.say("class_deadline")] if record.rules.has_deadlines else []
    heads = [course.say(key) for key in ("where_points", "class_counts", "where_state")]
    yield f"\n| | {' | '.join([course.say('where_stage'), *due, *heads])} | |"
    yield f"|--:|---|{'---|' if due else ''}--:|--:|---|---|"
    yield from (row(one, record) for one in record.stages)


def head(record):
    yield f"# {record.id}: " + (course.say("class_mark", marks.number(record.mark), record.points)
                                if record.mark is not None else course.say("class_no_mark")) + "\n"
    if record.newest is not None:
        at = seen(record.newest.at, next(filter(None, record.rules.deadlines.values()), None))
        is_commit = not record.newest.sha.startswith(repositories.WITHOUT_COMMIT)
        yield course.say("class_seen", record.newest.sha[:10], at) if is_commit else course.say("class_seen_files", at)
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
    for together in changes.by_reason(record.changes["stages"]):
        ids, before, after, why = together
        yield "- " + course.say("class_changed_stage" if len(ids) == 1 else "class_stages_together",
                                course.listed(map(str, ids)), changes.shown(before), changes.shown(after),
                                report.in_markdown(changes.in_words(why)))


def markdown(record):
    """The feedback as lines, in course.language()."""
    yield from head(record)
    yield from changed(record)
    if any(one.entry or one.override for one in record.stages):
        yield from table(record)
    if record.result:
        for one in record.stages:
            entry = entry_of_newest(one, record)
            yield from report.problems(entry)
            if entry["failed"] and is_older(one, record):
                yield f"\n{course.say('class_of_newest', record.newest.sha[:10], one.version.sha[:10])}"
        yield from report.ending(record.result)


def is_older(one, record):
    """True if an older version counts, and its result differs from that of the newest one."""
    if not record.result or one.mark is None or not one.entry or one.override:
        return False
    return one.version.sha != record.newest.sha and one.entry != entry_of_newest(one, record)


def entry_of_newest(one, record):
    """The entry of a stage in the result of the newest version."""
    return next(entry for entry in record.result["stages"] if entry["id"] == one.stage.id)
