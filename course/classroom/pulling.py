"""Pulls the repositories of a class, several at a time (pull_process.py), and notes which version was seen when."""
import collections
import datetime
import os
import shutil
import sys
import tempfile

from classroom import class_folder
from classroom import helpers
from classroom.bar import Bar
from grading import report
from shared import course

PULLS = 8  # at the same time: pulling mostly waits
PULL_SECONDS = 900  # per student


def pull(classroom, students):
    for pattern in "pulled/*/.new-*", ".pull-*":
        for unfinished in classroom.folder.glob(pattern):  # of a pull that was killed
            shutil.rmtree(unfinished, ignore_errors=True)
    seen, problems = classroom.seen(), classroom.problems()
    bar = Bar(len(students))
    found = collections.Counter()

    lasts = {}  # {student id: the newest known version}

    def done(task, answer):
        """Students who share a repository get the same versions, at the same times."""
        sha, problem = answer.get("sha"), answer["problem"]
        for id in task["ids"]:
            is_new = sha and sha != lasts[id]
            if is_new:
                classroom.note_seen(id, sha, datetime.datetime.fromisoformat(answer["at"]))
            found["problem" if problem else "new" if is_new else "same"] += 1
            problems.pop(id, None)
            if problem:
                problems[id] = problem
            bar.step(id)

    tasks = []
    for together in class_folder.by_repository(students):
        join(classroom, seen, together)
        lasts.update({student.id: seen[student.id][-1].sha if seen[student.id] else None for student in together})
        known = {lasts[student.id] for student in together}
        is_known = len(known) == 1 and all(
            lasts[student.id] is None or class_folder.is_whole(classroom.folder, student.id, lasts[student.id])
            for student in together)
        tasks.append({"ids": [student.id for student in together], "place": together[0].place,
                      "last": known.pop() if is_known else None})
    words = [sys.executable, str(course.ROOT / "course"), "classroom.pull_process", str(classroom.folder)]
    with tempfile.TemporaryDirectory(dir=classroom.folder, prefix=".pull-") as room:  # a helper may be killed
        environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", TERM="dumb", TMPDIR=room)
        helpers.Helpers(words, PULLS, environment, PULL_SECONDS).run(tasks, done)
    bar.end()
    classroom.problems(problems)
    course.tell(course.say("class_pulled", len(students), found["new"], found["same"], found["problem"]))
    for student in students:
        if student.id in problems:
            course.tell(f"  {student.id}: {report.plain(problems[student.id])}")
    return 1 if found["problem"] else 0


def join(classroom, seen, together):
    """A student who joins a repository gets the versions of it that were seen earlier: those of another student who
    hands it in, or those under an id that the roster does not have any more, because the teacher changed it."""
    new = [student.id for student in together if not seen[student.id]]
    first = next((student.id for student in together if seen[student.id]), None)
    former = former_id(classroom, seen, together[0].repository) if new else None
    if former and (first is None or seen[former][-1] == seen[first][-1]):  # until now, it was in the roster
        first = former
        course.tell(course.say("class_former_id", course.listed(new), former))
    for id in new if first else ():
        for version in seen[first]:
            class_folder.keep(classroom.folder, id, class_folder.kept(classroom.folder, first, version.sha))
            classroom.note_seen(id, version.sha, version.at)
        seen[id] = seen[first]


def former_id(classroom, seen, repository):
    """The id that is not in the roster and whose newest version came from this repository; of several, the one with the
    most versions. None if there is none."""
    gone = seen.keys() - {student.id for student in classroom.students}
    came = [id for id in sorted(gone)
            if seen[id] and class_folder.came_from(classroom.folder, id, seen[id][-1].sha) == repository]
    return max(came, key=lambda id: len(seen[id]), default=None)
