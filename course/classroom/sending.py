"""Sends feedback to the students: as a zip for Moodle, or to a branch of each repository.

Moodle: Assignment, View all submissions, "Upload multiple feedback files in a zip". Moodle finds a participant by the
second field of a file name, NAME_NUMBER_assignfeedback_file_feedback.md; NUMBER is the one in "Participant NUMBER" in
the column Identifier of the grading worksheet.
"""
import collections
import concurrent.futures
import pathlib
import re
import tempfile
import zipfile

from classroom import class_folder
from shared import course
from grading import report
from grading import students_git

WAYS = ("moodle", "branch")
ZIP = "moodle-feedback.zip"
COLUMN = "identifier"  # a column of Moodle's grading worksheet: "Participant 4711"
BRANCH = "feedback"
PUSHES = 8  # at the same time
FAR = re.compile(r"(?:git|https?|ssh)://|[\w.-]+@[\w.-]+:")
WHO = ("-c", "user.name=Stagecraft", "-c", "user.email=stagecraft@localhost")


def written(classroom, students):
    """(the students who have feedback, {id: its text})"""
    paths = {student.id: classroom.feedback / f"{student.id}.md" for student in students}
    texts = {id: path.read_bytes() for id, path in paths.items() if path.exists()}
    if not texts:
        raise course.Problem(course.say("class_no_feedback", classroom.feedback))
    return [student for student in students if student.id in texts], texts


# ---- Moodle -------------------------------------------------------------------------------------


def file_name(id, participant):
    """A file name for Moodle: fields between underscores, so the first field must not contain any."""
    return f"{id.replace('_', '-')}_{participant}_assignfeedback_file_feedback.md"


def to_moodle(classroom, students):
    students, texts = written(classroom, students)
    numbers = {student.id: re.fullmatch(r"\D*(\d+)", student.cell(COLUMN)) for student in students}
    unknown = [id for id, number in numbers.items() if not number]
    of = collections.defaultdict(list)  # {number: ids}
    for id, found in numbers.items():
        if found:
            of[found[1]].append(id)
    for number, ids in of.items():
        if len(ids) > 1:
            raise course.Problem(course.say("class_same_identifier", COLUMN, number, course.listed(ids)))
    if len(unknown) == len(texts):
        raise course.Problem(course.say("class_no_identifier", "Identifier"))
    path = classroom.folder / ZIP
    new = path.with_name(f".{path.name}")
    with zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as out:
        for id, number in numbers.items():
            if number:  # the same feedback always gives the same bytes
                out.writestr(zipfile.ZipInfo(file_name(id, number[1])), texts[id], zipfile.ZIP_DEFLATED)
    new.replace(path)
    course.tell(course.say("class_zipped", len(texts) - len(unknown), path))
    for id in unknown:
        course.tell(f"  {id}: {course.say('class_no_identifier', 'Identifier')}")
    return 1 if unknown else 0


# ---- a branch of each repository ----------------------------------------------------------------


def push(place, files):
    """Adds a commit with exactly these files to the branch of a repository. False if the branch already has them.

    files: {name: bytes}. Nothing in the repository is checked out or run.
    """
    with tempfile.TemporaryDirectory() as folder:
        def git(*words):
            said = students_git.run(*students_git.FETCHING, *WHO, "-C", folder, *words, protocols=students_git.REMOTE)
            if said is None:
                raise course.Problem(course.say("class_no_push", place, BRANCH))
            return said.decode().strip()

        git("init", "-q", "--bare", "--template=")
        parent = []
        if git("ls-remote", "--", place, f"refs/heads/{BRANCH}"):
            git("fetch", "-q", "--depth", "1", "--no-tags", "--filter=tree:0", "--", place,
                f"+refs/heads/{BRANCH}:refs/heads/before")
            parent = ["-p", git("rev-parse", "refs/heads/before")]
        for name, text in files.items():
            blob = pathlib.Path(folder, "blob")
            blob.write_bytes(text)
            sha = git("hash-object", "-w", "--no-filters", "--", str(blob))
            git("update-index", "--add", "--cacheinfo", f"100644,{sha},{name}")
        tree = git("write-tree")
        if parent and git("rev-parse", "refs/heads/before^{tree}") == tree:
            return False
        commit = git("commit-tree", tree, *parent, "-m", "Feedback")
        git("push", "-q", "--no-verify", "--", place, f"{commit}:refs/heads/{BRANCH}")
        return True


def to_branches(classroom, students, public):
    students, texts = written(classroom, students)
    problems, pushed, seen = {}, [], classroom.seen()

    def one(together):
        place = together[0].place
        try:
            if not FAR.match(place):
                raise course.Problem(course.say("class_push_folder"))
            if not any(seen[student.id] for student in together):  # the branch would become the default one
                raise course.Problem(course.say("class_push_empty"))
            if not public and students_git.is_public(place):
                raise course.Problem(course.say("class_push_public"))
            if push(place, {f"{student.id}.md": texts[student.id] for student in together}):
                pushed.extend(together)
        except (course.Problem, OSError, ValueError) as problem:
            problems.update({student.id: str(problem) for student in together})

    with concurrent.futures.ThreadPoolExecutor(PUSHES) as pool:
        for _ in pool.map(one, class_folder.by_repository(students)):
            pass
    course.tell(course.say("class_pushed", len(pushed), len(students) - len(pushed) - len(problems), len(problems),
                           BRANCH))
    for student in students:
        if student.id in problems:
            course.tell(f"  {student.id}: {report.plain(problems[student.id])}")
    return 1 if problems else 0


def send(classroom, students, way, public=False):
    """public: also to repositories that anyone can read."""
    return to_moodle(classroom, students) if way == "moodle" else to_branches(classroom, students, public)
