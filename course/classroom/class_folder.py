"""A class: its roster, which versions of each repository were seen and when, and the results. All of it is in one
folder of the teacher's, never in the repository (docs/teaching.md describes the folder).
"""
import collections
import collections.abc
import csv
import datetime
import difflib
import hmac
import io
import json
import os
import pathlib
import re
import secrets
import tempfile

import lock_file
from grading import students_git
from grading import submission
from shared import atomic
from shared import course
from classroom import lateness
from classroom import repositories

ID = re.compile(r"\w[\w.@+-]{0,59}")  # part of file names (at most 255 bytes); no spreadsheet formula begins so
OPTIONAL = ("extensions", "late_days", "identifier")  # columns of a roster
NEAR = 0.85  # of two names: the share of letters that they have in common
SEEN = ("id", "sha", "seen_at")
Seen = collections.namedtuple("Seen", "sha at")  # a commit, and when it was first seen


class Student(collections.namedtuple("Student", "id place more")):
    """more: the other columns of the roster's line, by their names."""

    def cell(self, name):
        """The cell in the column of that name, whatever its case; "" if there is none."""
        return next((value.strip() for key, value in self.more.items() if key.strip().lower() == name), "")

    @property
    def repository(self):
        return repository_of(self.place)


def repository_of(place):
    """A key that is equal for students who hand in the same repository."""
    place = course.without_login(repositories.without_scheme(place))
    place = place if students_git.URL.match(place) else os.path.normpath(place)
    return place.rstrip("/").removesuffix("/.git").removesuffix(".git")


def now():
    return datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)


PRIVATE = 0o077  # umask: students may have accounts on this machine


def rows(text):
    """The rows of a CSV as spreadsheets write it: with commas or semicolons, with or without a byte order mark."""
    first = text.partition("\n")[0]
    return csv.DictReader(io.StringIO(text, newline=""),
                          delimiter=";" if first.count(";") > first.count(",") else ",")


def read_table(path, columns):
    """({name of a column in lower case: as the file writes it}, [(number of a line, its cells)]) of a CSV that must have
    these columns."""
    try:
        table = rows(path.read_text(encoding="utf-8-sig"))
        lines = [(table.line_num, line) for line in table]
    except UnicodeError:
        raise course.Problem(course.say("class_no_utf8", path)) from None
    except (OSError, ValueError, csv.Error) as problem:
        raise course.Problem(f"{path}: {getattr(problem, 'strerror', None) or problem}") from None
    names = {name.strip().lower(): name for name in table.fieldnames or () if name}
    if not set(columns) <= set(names):
        raise course.Problem(f"{path}: expected a first line with the columns {', '.join(columns)}")
    return names, lines


def refuse_misspelt(path, names):
    """A column of another name is ignored, so a misspelt one would cost a student something."""
    for name in sorted(set(names) - set(OPTIONAL)):
        if near := difflib.get_close_matches(name, OPTIONAL, 1, NEAR):
            raise course.Problem(course.say("class_misspelt", path, names[name], near[0]))


def read_roster(path):
    """The students of a roster.csv, in its order."""
    names, lines = read_table(path, ("id", "repository"))
    refuse_misspelt(path, names)
    students, known = [], set()
    for number, line in lines:
        id, place = ((line[names[key]] or "").strip() for key in ("id", "repository"))
        if not id and not place:
            continue
        if not ID.fullmatch(id):
            raise course.Problem(f"{path}: line {number}: id '{id}': expected at most 60 letters, digits and "
                                 ". _ @ + -, a letter or digit first")
        if id.lower() in known:
            raise course.Problem(f"{path}: line {number}: id '{id}' is used twice")
        if not place or place.startswith("-"):
            raise course.Problem(f"{path}: line {number}: repository: expected a path or a URL")
        known.add(id.lower())
        if not students_git.URL.match(place):
            try:
                place = str((path.parent / pathlib.Path(place).expanduser()).absolute())
            except RuntimeError:  # ~name/
                raise course.Problem(f"{path}: line {number}: repository: '{place}' names a user that this machine does "
                                     "not have") from None
        more = {key: value for key, value in line.items() if key and isinstance(value, str)}
        students.append(Student(id, place, more))
    if not students:
        raise course.Problem(f"{path}: expected a line for each student, found none")
    return students


def by_repository(students):
    """Lists of students who hand in the same repository, in the roster's order."""
    found = collections.defaultdict(list)
    for student in students:
        found[student.repository].append(student)
    return list(found.values())


def outside(path):
    """Returns the path. Refuses one inside this repository, which would publish names and marks."""
    path = path.resolve()
    if path == course.ROOT or course.ROOT in path.parents:
        raise course.Problem(course.say("class_inside", path))
    return path


# ---- what was handed in, version by version -----------------------------------------------------


def version(folder, id, sha):
    return folder / "pulled" / id / sha


def is_whole(folder, id, sha):
    """True if a stored submission has all files of the present registry that its repository has. Otherwise it was stored
    before the course had some of its stages."""
    place = version(folder, id, sha)
    if not place.exists():
        return False
    refused = json.loads((place / "about.json").read_text(encoding="utf-8"))["refused"]
    return all(name in refused or (place / name).exists() for name in submission.names(course.stages()))


def keep(folder, id, handed_in):
    """Stores a submission's files in a folder of their own."""
    place = version(folder, id, handed_in.sha)
    if is_whole(folder, id, handed_in.sha):
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    # A version that lacks files of the present registry gets them where it is: a grading may read it now.
    new = place if place.exists() else pathlib.Path(tempfile.mkdtemp(dir=place.parent, prefix=".new-"))
    for name, text in handed_in.files.items():
        (new / name).parent.mkdir(parents=True, exist_ok=True)
        if not (new / name).exists():
            atomic.write(new / name, text)
    about = {"source": handed_in.source, "refused": handed_in.refused, "language": handed_in.language,
             "nickname": handed_in.nickname, "unread": handed_in.unread}
    atomic.write(new / "about.json", json.dumps(about, indent=1) + "\n")
    if new is not place:
        new.rename(place)


def is_hash(text):
    """False for the reason why there is no file, a key of messages.json."""
    return re.fullmatch("[0-9a-f]{40}", text) is not None


class Texts(collections.abc.Mapping):
    """Files of a stored version: {name: bytes}. They are read when they are asked for, because a class may have a million
    versions."""

    def __init__(self, place, names):
        self.place, self.names = str(place), tuple(names)

    def __getitem__(self, name):
        if name not in self.names:
            raise KeyError(name)
        return pathlib.Path(self.place, name).read_bytes()

    def __iter__(self):
        return iter(self.names)

    def __len__(self):
        return len(self.names)


def kept(folder, id, sha, names=None):
    """The stored submission with this `sha`. names: those of the registry, if the caller knows them."""
    place = version(folder, id, sha)
    about = json.loads((place / "about.json").read_text(encoding="utf-8"))
    handed_in = submission.Submission(about["source"], sha)
    handed_in.language, handed_in.refused = about["language"], about["refused"]
    handed_in.nickname, handed_in.unread = about.get("nickname"), about.get("unread")  # missing in old versions
    names = names or submission.names(course.stages())
    there = [name for name in names if name not in handed_in.refused and os.path.exists(f"{place}/{name}")]
    for name in names:
        if name not in there:  # refused, or this version is older than the file in the registry
            handed_in.refused.setdefault(name, "grade_missing")
    handed_in.files = Texts(place, there)
    return handed_in


def came_from(folder, id, sha):
    """The repository_of a stored submission; None if it was deleted."""
    path = version(folder, id, sha) / "about.json"
    return repository_of(json.loads(path.read_text(encoding="utf-8"))["source"]) if path.exists() else None


class Classroom:
    """roster: the path of roster.csv. folder: where all other files go; default: the roster's folder."""

    def __init__(self, roster, folder=None):
        roster = outside(roster)
        self.folder = outside(folder) if folder else roster.parent
        self.places = {roster.parent, self.folder}  # where the teacher's own files may be
        self.students = read_roster(roster)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.refuse_second(roster.name if roster.parent == self.folder else str(roster))
        self.log = self.folder / "seen.csv"
        self.feedback = self.folder / "feedback"
        self.results = self.folder / "results"

    def given(self, name):
        """The path of a file that the teacher may have written, beside the roster or in the folder; or None."""
        found = sorted(place / name for place in self.places if (place / name).exists())
        if len(found) > 1:
            raise course.Problem(course.say("class_two_files", *found))
        return found[0] if found else None

    def refuse_second(self, name):
        """Two rosters in one folder would overwrite each other's results. name: of the roster, or its path if it is in
        another folder."""
        path = self.folder / ".roster"
        other = path.read_text(encoding="utf-8").strip() if path.exists() else None
        if other == name:
            return
        if other and (self.folder / other).exists():  # else it was renamed
            raise course.Problem(course.say("class_two_rosters", self.folder, other, name))
        atomic.write(path, f"{name}\n")

    def lock(self, what):
        """Only one process at a time may write these files; the lock ends with the process. A pull has its own lock:
        its time decides what is late, and grading may take longer than the time between two pulls. A pull may run while
        a grading reads, because it stores a version before seen.csv names it."""
        self.locked = lock_file.take(self.folder / (".lock-pull" if what == "pull" else ".lock"))
        if self.locked is None:
            raise course.Problem(course.say("class_locked", self.folder))

    def seed(self, id, sha):
        """The seed of the random numbers for a student's commit. Only someone with the secret of this class can compute
        it, and then it is the same each time."""
        digest = hmac.digest(self.secret(), f"{id}\0{sha}".encode(), "sha256")
        return int.from_bytes(digest[:8], "big") >> 1

    def secret(self):
        path = self.folder / "seed.key"
        if not path.exists():
            atomic.write(path, f"{secrets.token_hex(32)}\n", mode=0o600)
        found = path.read_text(encoding="ascii").strip()
        if len(found) < 32:
            raise course.Problem(f"{path}: expected at least 32 characters that nobody can guess, found {len(found)}")
        return found.encode()

    # ---- what was seen --------------------------------------------------------------------------

    def seen(self):
        """{id: [Seen]}, in the order in which they were the newest. A version may become the newest again; it keeps the time
        when it was first seen."""
        found, first = collections.defaultdict(list), {}
        text = self.log.read_text(encoding="utf-8-sig", errors="replace") if self.log.exists() else ""
        head = ",".join(SEEN)
        if text and text.splitlines()[0] != head:  # else no version that is noted from now on would be found
            raise course.Problem(f"{self.log}: expected a first line {head}: a spreadsheet may have saved this file. Put "
                                 "the old file back: it decides what was late")
        lines, damaged = rows(text.replace("\0", "")), []  # zeros: the machine was switched off while it wrote
        for line in lines:
            at = lateness.time_of(line.get("seen_at"))
            if line.get("id") and at:
                found[line["id"]].append(Seen(line["sha"], first.setdefault((line["id"], line["sha"]), at)))
            else:
                damaged.append(str(lines.line_num))
        if damaged and text.endswith("\n"):  # else the last line may be one that a pull is writing now
            course.tell(course.say("class_damaged", self.log, course.listed(damaged)))
        return found

    def note_seen(self, id, sha, at):
        with self.log.open("a+b") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(size - 1, 0))
            last = log.read(1)
        with self.log.open("a", encoding="utf-8", newline="") as log:
            out = csv.writer(log, lineterminator="\n")
            if not last:
                out.writerow(SEEN)
            elif last != b"\n":  # the last line is incomplete
                log.write("\n")
            out.writerow([id, sha, at.isoformat()])

    def problems(self, new=None):
        """{id: why the last pull of its repository failed}"""
        path = self.folder / "pull.json"
        if new is not None:
            atomic.write(path, json.dumps(new, indent=1, ensure_ascii=False) + "\n")
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def forget_others(self):
        """Deletes feedback of students who have left the roster."""
        ids = {student.id for student in self.students}
        for path in self.feedback.glob("*.md"):
            if path.stem not in ids:
                path.unlink()
