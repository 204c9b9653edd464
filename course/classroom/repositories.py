"""Gets what a student's repository has to hand in, without running anything in it or following its links."""
import contextlib
import hashlib
import json
import os
import pathlib
import stat
import tempfile
import urllib.parse

from grading import students_git
from grading import submission
from shared import course

MOST_ENTRIES = 200_000  # files and folders in a local repository
MOST_BYTES = 1 << 30
MOST_DEPTH = 32
BLOCK = 1 << 20
WITHOUT_COMMIT = "files-"  # how the name of a version begins that is no commit
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
REFS = ("HEAD", "packed-refs", "refs", "reftable", "commondir")
OBJECTS = ("objects", "shallow")
LEADING = ("commondir", "objects/info/alternates", "objects/info/http-alternates")  # lead to other repositories
FORMATS = {"objectformat": "sha256", "refstorage": "reftable"}  # formats other than the usual ones


class Copy:
    """A private copy of a folder that someone else may change at the same time. It follows no links, refuses everything
    that is neither a file nor a folder, and has limits of size and number."""

    def __init__(self):
        self.entries, self.bytes = MOST_ENTRIES, MOST_BYTES

    def take(self, names, folder, target):
        """Copies the entries with these names, if they exist. folder: a file descriptor."""
        for name in names:
            try:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                continue
            self.entry(folder, name, status, target / name, name)

    def entry(self, folder, name, status, target, shown, depth=0):
        """shown: its path in the repository."""
        self.entries -= 1
        if self.entries < 0:
            raise course.Problem(course.say("class_many_files", MOST_ENTRIES))
        if depth > MOST_DEPTH:
            raise course.Problem(course.say("class_deep", MOST_DEPTH))
        if stat.S_ISLNK(status.st_mode):
            raise course.Problem(course.say("class_leads_elsewhere", shown))
        if stat.S_ISREG(status.st_mode):
            if status.st_size > self.bytes:  # it may still grow: file() counts again
                raise course.Problem(course.say("class_large", MOST_BYTES >> 20))
            self.file(folder, name, target, shown)
        elif stat.S_ISDIR(status.st_mode):
            target.mkdir(exist_ok=True)
            inner = os.open(name, FOLDER, dir_fd=folder)
            try:
                with os.scandir(inner) as entries:
                    for one in entries:
                        self.entry(inner, one.name, one.stat(follow_symlinks=False), target / one.name,
                                   f"{shown}/{one.name}", depth + 1)
            finally:
                os.close(inner)
        else:
            raise course.Problem(course.say("class_no_plain_file", shown))

    def file(self, folder, name, target, shown):
        opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        with open(opened, "rb", buffering=0) as source, target.open("wb") as out:
            if not stat.S_ISREG(os.fstat(opened).st_mode):  # it was replaced
                raise course.Problem(course.say("class_no_plain_file", shown))
            while block := source.read(BLOCK):
                self.bytes -= len(block)
                if self.bytes < 0:
                    raise course.Problem(course.say("class_large", MOST_BYTES >> 20))
                out.write(block)


def settings(folder, copy):
    """Our own git config; only the repository's format is taken from theirs. folder: a file descriptor."""
    lines, theirs = ["[core]", "bare = true"], copy / "theirs"
    with contextlib.suppress(submission.Refused):
        theirs.write_bytes(submission.read_below(folder, "config"))
        for key, value in FORMATS.items():
            said = students_git.run("config", "--file", str(theirs), "--get", f"extensions.{key}")
            if said is not None and said.decode("utf-8", "replace").strip() == value:
                lines = ["[core]", "bare = true", "repositoryformatversion = 1", *lines[2:],
                         f"[extensions] {key} = {value}"]
    (copy / "config").write_text("\n".join(lines) + "\n")


def is_there(folder, name):
    with contextlib.suppress(FileNotFoundError):
        return bool(os.stat(name, dir_fd=folder, follow_symlinks=False))
    return False


@contextlib.contextmanager
def opened(place):
    """A file descriptor for a student's folder on this machine."""
    try:
        folder = os.open(pathlib.Path(place), FOLDER)  # a Path: a link with / at its end would be followed
    except OSError as problem:
        if pathlib.Path(place).is_symlink():
            raise course.Problem(course.say("grade_link", place)) from None
        if isinstance(problem, (FileNotFoundError, NotADirectoryError)):
            raise course.Problem(course.say("grade_no_folder", place)) from None
        raise
    try:
        yield folder
    finally:
        os.close(folder)


def is_bare(folder):
    return all(is_there(folder, name) for name in ("objects", "HEAD")) and not is_there(folder, ".git")


@contextlib.contextmanager
def git_of(folder):
    """A file descriptor for the git folder in an opened folder, or None."""
    if is_bare(folder):
        yield folder
    elif not is_there(folder, ".git"):
        yield None
    else:
        try:
            git = os.open(".git", FOLDER, dir_fd=folder)
        except OSError:  # a link, or a file that names another folder
            raise course.Problem(course.say("class_leads_elsewhere", ".git")) from None
        try:
            yield git
        finally:
            os.close(git)


def from_copy(git, stages, last, place):
    """The submission committed in a git folder (a file descriptor), from a private copy; None if HEAD is still
    `last`."""
    with tempfile.TemporaryDirectory() as folder:
        copy, copying = pathlib.Path(folder) / "copy", Copy()
        for name in "objects", "refs":  # without these, git does not accept it as a repository
            (copy / name).mkdir(parents=True)
        copying.take(REFS, git, copy)
        settings(git, copy)
        head = students_git.head(copy)
        if head is not None and head == last:
            return None
        copying.take(OBJECTS, git, copy)
        for name in LEADING:
            if (copy / name).exists():
                raise course.Problem(course.say("class_leads_elsewhere", name))
        return submission.from_git(copy, stages, place)


def name_of(handed_in):
    """A name for files without a commit: a hash of their contents, and of what course.json says."""
    settings = [handed_in.nickname, handed_in.language, handed_in.unread]
    text = hashlib.sha1(json.dumps([sorted(handed_in.refused.items()), settings]).encode())
    for name, data in sorted(handed_in.files.items()):
        text.update(f"{name}\0{course.blob_hash(data)}\0".encode())
    return f"{WITHOUT_COMMIT}{text.hexdigest()}"


def without_scheme(place):
    return urllib.parse.unquote(place[len("file://"):]) if place.startswith("file://") else place


def pull(place, stages, last):
    """The submission of the repository at a path or URL; None if it is still at `last`."""
    handed_in = newest(place, stages, last)
    if handed_in and not handed_in.files and set(handed_in.refused.values()) <= {"grade_missing"}:
        raise course.Problem(course.say("class_no_stages", place))
    return handed_in


def newest(place, stages, last):
    """The same, also without any file of the course."""
    place = without_scheme(place)
    if not students_git.URL.match(place):
        with opened(place) as folder, git_of(folder) as git:
            if git is not None:
                return from_copy(git, stages, last, place)
            handed_in = submission.files_in(folder, stages, place)
        handed_in.sha = name_of(handed_in)
        return None if handed_in.sha == last else handed_in
    head = students_git.head_of(place)
    if not head:
        raise students_git.no_commit(place, students_git.branches_of(place))
    if head == last:
        return None
    with students_git.fetched(place) as clone:
        return submission.from_git(clone, stages, place)


def collect(place, stages):
    """The submission at a path or URL, to grade it once: the present files of a local folder, otherwise as in pull."""
    try:
        return pull(place, stages, None) if students_git.URL.match(place) else from_folder(place, stages)
    except OSError as problem:  # no permission to read it, or no space for the copy
        raise course.Problem(course.without_login(f"{place}: {problem.strerror or problem}")) from None


def from_folder(place, stages):
    with opened(place) as folder:
        if is_bare(folder):
            return from_copy(folder, stages, None, place)
        handed_in = submission.files_in(folder, stages, place)
        committed = submission.Submission(place)
        with contextlib.suppress(course.Problem, OSError), git_of(folder) as git:  # the commit is only mentioned
            committed = from_copy(git, stages, None, place) if git is not None else committed
    handed_in.sha = committed.sha
    handed_in.is_changed = any(committed.files.get(name) != text for name, text in handed_in.files.items())
    return handed_in
