"""What one student reads about their work, in Markdown and in their language: feedback/ID.md."""
import course
import marks
import report


def when(at):
    return f"{at:%Y-%m-%d %H:%M} UTC"


def lateness(one, rules):
    """What it costs that a stage was late, or that an older version of it counts; empty if nothing is."""
    if one.version is None or one.entry is None:
        return ""
    if one.days:
        return course.say("class_late", one.days, when(one.version.at), marks.number(rules.percent))
    return ""


def markdown(record, rules):
    """Lines. The language is the one that course.language() says now."""
    points = sum(one.stage.points for one in record.stages)
    yield f"# {record.id}: {course.say('class_mark', marks.number(record.mark), points)}\n"
    if record.newest is None:
        yield course.say("class_nothing_seen", record.problem or "-")
        return
    yield course.say("class_seen", record.newest.sha[:10], when(record.newest.at))
    if record.problem:
        yield f"\n**{course.say('class_not_pulled', report.plain(record.problem))}**"
    if record.ungraded:
        yield f"\n**{course.say('class_ungraded', report.plain(record.ungraded))}**"
        return
    yield (f"\n| | {course.say('where_stage')} | {course.say('where_points')} | {course.say('class_counts')} | "
           f"{course.say('where_state')} | |")
    yield "|--:|---|--:|--:|---|---|"
    for one in record.stages:
        entry = one.entry
        older = "" if one.version.sha == record.newest.sha or not is_older(one, record) else (
            course.say("class_older", one.version.sha[:10], when(one.version.at)))
        notes = "; ".join(note for note in (lateness(one, rules), older) if note)
        yield (f"| {one.stage.id} | {report.title(entry)} | {entry['earned']} / {one.stage.points} | "
               f"{marks.number(one.mark)} | {report.state(entry)} | {notes} |")
    for entry in record.result["stages"]:
        yield from report.problems(entry)
    yield from report.ending(record.result)


def is_older(one, record):
    """Does a version count that is not the newest one's?"""
    newest = next(entry for entry in record.result["stages"] if entry["id"] == one.stage.id)
    return one.entry is not newest and one.entry != newest
