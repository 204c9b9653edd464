"""./stage class: pulls and grades a whole class, with one command each.

    ./stage class pull --roster ../class/roster.csv      fetches the newest versions, and notes when they were seen
    ./stage class grade --roster ../class/roster.csv     marks, feedback, the page of the class
    ./stage class send --roster ../class/roster.csv      feedback as a zip for Moodle, or to each repository

A roster has one line per student: id,repository (a path or a URL). docs/teaching.md describes the output.
"""
import os
import pathlib
import sys

from classroom import changes
from classroom import class_folder
from classroom import marks
from classroom import sending
from classroom import viva
from classroom.bar import Bar
from classroom.pulling import pull
from classroom.run import Run
from grading import official_tree
from grading import report
from grading import workplace
from shared import atomic
from shared import course
from shared.parser import JOBS, Parser, SEEDS


# ---- grade --------------------------------------------------------------------------------------


def warnings(run):
    """What the teacher may regret when the marks are known."""
    if official_tree.version()["changed"]:
        yield course.say("class_uncommitted")
    if run.rules.has_deadlines and not run.rules.has_grace:
        yield course.say("class_no_grace")


def grade_all(classroom, options):
    run = Run(classroom, options)
    for line in warnings(run):
        course.tell(line, sys.stderr)
    problems = run.grade(lambda: [task for record in run.records for task in run.tasks(record)])
    for record in run.records:
        run.fill(record, problems)
    changed = run.note_changes()
    for record in run.records:
        run.write_feedback(record)
    run.write_class(changed)
    ungraded = [record for record in run.records if record.ungraded]
    course.tell(course.say("class_graded", len(run.records) - len(ungraded), classroom.folder))
    for record in ungraded:
        course.tell(f"  {record.id}: {course.say('class_ungraded', report.plain(record.ungraded))}")
    for record in run.records:
        if starved := [one.stage for one in record.stages if one.entry and one.entry.get("starved")]:
            course.tell(f"  {course.say('class_starved', record.id, marks.named(starved))}")
    tell_changes(changed)
    return 1 if any(record.failed for record in ungraded) else 0


def tell_changes(changed):
    if changed.new:
        course.tell(course.say("class_n_changed", len(changed.new), changes.LOG))
        course.tell("\n".join(changes.lines(changed.new)))


def grade_one(classroom, options):
    """Grades one student again, ignoring stored results, and shows the result. The tables are written if all other
    students have a result from the same tree, compiler and settings, if the seed and the language are the usual ones,
    and if this tree has written the tables before: an older tree may only compute an old mark again."""
    run = Run(classroom, options)
    record = next(record for record in run.records if record.id == options.only)
    if record.newest is None:
        raise course.Problem(record.nothing_seen)
    found = {one.sha for one in record.seen if one.sha.startswith(options.sha or record.newest.sha)}
    if len(found) != 1:
        raise course.Problem(course.say("class_no_sha", record.id, options.sha, len(found)))
    task = run.task(record, found.pop(), None, fresh=True)
    problems = run.grade(lambda: [task])
    # If it is an older version, the tables read a result of its own for each stage that it may count for.
    counted = [one for one in run.tasks(record) if one.sha == task.sha and one.out != task.out]
    for one in counted:
        pathlib.Path(one.out).unlink(missing_ok=True)
    problems.update(run.grade(lambda: counted))
    if problems:
        raise course.Problem(next(iter(problems.values())))
    result = marks.read(pathlib.Path(task.out))
    course.tell("\n".join(report.text(result)))
    course.tell(report.how(result))
    course.tell(course.say("class_result", task.out))
    if options.seed is not None or options.language:  # an experiment
        return 0
    if not changes.is_by(classroom.folder, official_tree.fingerprint()):
        course.tell(course.say("class_other_tree"))
        return 0
    if not all([run.fill(one, {}) for one in run.records]):
        if record.result and record.stages:
            run.write_feedback(record)
        course.tell(course.say("class_tables_wait"))
        return 0
    changed = run.note_changes()
    for one in run.records:
        run.write_feedback(one)
    run.write_class(changed)
    tell_changes(changed)
    return 0


# ---- viva ---------------------------------------------------------------------------------------


def vivas(classroom, options):
    """A sheet for each student, or for one."""
    run = Run(classroom, options)
    chosen = [record for record in run.records if options.only in (None, record.id)]
    bar = Bar(len(chosen))
    workplace.PLACE.mkdir(parents=True, exist_ok=True)
    missing = {}  # {id: why there is no sheet}
    for record in chosen:
        if record.newest is None:
            missing[record.id] = record.nothing_seen
            continue
        if not run.fill(record, {}) or record.result is None:
            missing[record.id] = course.say("viva_not_graded")
            continue
        right = viva.right_groups(record)
        sha = record.newest.sha
        found = viva.changes(run.what_counts(record), right, classroom.seed(record.id, sha))
        lines = viva.sheet(record.id, sha, found, right)
        atomic.write(classroom.folder / "viva" / f"{record.id}.md", "\n".join(lines) + "\n")
        bar.step(record.id)
    bar.end()
    course.tell(course.say("viva_done", len(chosen) - len(missing), classroom.folder / "viva"))
    for id, why in missing.items():
        course.tell(f"  {id}: {report.plain(why)}")
    return 1 if missing else 0


# ---- the command --------------------------------------------------------------------------------


def run():
    parser = Parser("class")
    parser.add_argument("what", choices=("pull", "grade", "viva", "send"))
    parser.add_argument("--roster", type=pathlib.Path, required=True, metavar="FILE")
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--only", metavar="ID")
    parser.add_argument("--sha")
    parser.add_argument("--seed", type=SEEDS)
    parser.add_argument("--jobs", type=JOBS)
    parser.add_argument("--language", choices=course.HANDOUTS)
    parser.add_argument("--as", dest="way", choices=sending.WAYS)
    parser.add_argument("--public", action="store_true")
    options = parser.parse_args()
    if (options.what == "send") != bool(options.way):
        parser.error(course.say("expected_way"))
    if options.public and options.way != "branch":
        parser.error(course.say("expected_branch"))
    if options.sha and not (options.only and options.what == "grade"):
        parser.error(course.say("expected_only"))
    for name in "seed", "jobs", "language":
        if getattr(options, name) is not None and options.what != "grade":
            parser.error(course.say("expected_grade", f"--{name}"))
    os.umask(class_folder.PRIVATE)
    classroom = class_folder.Classroom(options.roster, options.folder)
    if options.only and options.only not in {student.id for student in classroom.students}:
        raise course.Problem(course.say("class_no_student", options.only, options.roster))
    classroom.lock(options.what)
    chosen = {one.repository for one in classroom.students if options.only in (None, one.id)}
    students = [one for one in classroom.students if one.repository in chosen]
    if options.what == "pull":
        return pull(classroom, students)
    if options.what == "viva":
        return vivas(classroom, options)
    if options.what == "send":
        return sending.send(classroom, students, options.way, options.public)
    return grade_one(classroom, options) if options.only else grade_all(classroom, options)


if __name__ == "__main__":
    sys.exit(course.main(run))
