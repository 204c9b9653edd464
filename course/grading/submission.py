"""What a student hands in: the files that the registry names, and no others.

Their author may be hostile. So a folder is read without following any link below it, a repository is read with git's
low-level commands and never checked out, and file names come only from the registry.
"""
import contextlib
import os
import stat

from shared import course
from shared import official
from grading import students_git

MAX_BYTES = 256 << 10  # per file; our own longest answer has 5 KB
NICKNAME = 24  # characters


class Submission:
    """files: {"stages/02-rms-norm/rms_norm.cpp": bytes}. refused: {such a name: the reason, a key of messages.json}.
    sha: the commit, or None; is_changed: True if the files differ from it. language, nickname: from its course.json, or
    None. unread: why that file could not be read, or None."""

    def __init__(self, source, sha=None):
        self.source = course.without_login(str(source))
        self.sha = sha
        self.is_changed = False
        self.files = {}
        self.refused = {}
        self.language = None
        self.nickname = None
        self.unread = None

    def take_settings(self, text):
        try:
            found = official.parse(text)
        except course.Problem as problem:
            self.unread = str(problem)
        else:
            self.language = found["language"] if found["language"] in course.HANDOUTS else None
            nickname = found["nickname"].encode("utf-8", "replace").decode()  # JSON may name half a character
            self.nickname = " ".join(nickname.split())[:NICKNAME] or None


class Refused(Exception):
    """The message is a key of messages.json."""


def names(stages):
    return [course.unit_name(stage, unit) for stage in stages for unit in stage.units]


def read_below(folder, name):
    """The bytes of a regular file below a folder (a path or a file descriptor); no part of the path may be a link."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    opened = []
    try:
        opened.append(os.dup(folder) if isinstance(folder, int) else
                      os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        for step in name.split("/"):
            status = os.stat(step, dir_fd=opened[-1], follow_symlinks=False)
            if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
                raise Refused("grade_no_file")  # not opened: opening a device may have effects
            opened.append(os.open(step, flags, dir_fd=opened[-1]))
        status = os.fstat(opened[-1])
        if not stat.S_ISREG(status.st_mode):
            raise Refused("grade_no_file")
        data = b""
        while len(data) <= MAX_BYTES:
            block = os.read(opened[-1], MAX_BYTES + 1 - len(data))
            if not block:
                return data
            data += block
        raise Refused("grade_large")
    except FileNotFoundError:
        raise Refused("grade_missing") from None
    except OSError:  # a link, a file instead of a folder, or no permission
        raise Refused("grade_no_file") from None
    finally:
        for one in opened:
            os.close(one)


def tree(folder, wanted):
    """{name: (mode, hash)} for these files in the commit that HEAD names."""
    listed = students_git.run("ls-tree", "-z", "HEAD", "--", *wanted, folder=folder)
    if listed is None:
        raise course.Problem(course.say("grade_unread_commit"))
    found = {}
    for line in listed.decode("utf-8", "replace").split("\0")[:-1]:
        about, _, name = line.partition("\t")
        mode, _, blob = about.split(" ")
        found[name] = mode, blob
    return found


def from_folder(folder, stages):
    """The files as they are now. folder: our own, which git may ask; for a student's folder see
    repositories.collect."""
    handed_in = files_in(folder, stages, folder)
    handed_in.sha = students_git.head(folder)
    committed = tree(folder, names(stages)) if handed_in.sha else {}
    for name, text in handed_in.files.items():
        handed_in.is_changed |= committed.get(name, ("", ""))[1] != course.blob_hash(text)
    return handed_in


def files_in(folder, stages, source):
    """The same without asking git. folder: as in read_below."""
    handed_in = Submission(source)
    for name in names(stages):
        try:
            handed_in.files[name] = read_below(folder, name)
        except Refused as problem:
            handed_in.refused[name] = str(problem)
    with contextlib.suppress(Refused):
        handed_in.take_settings(read_below(folder, official.FILE))
    return handed_in


def read_blob(folder, entry):
    mode, blob = entry
    if mode not in ("100644", "100755"):
        raise Refused("grade_no_file")
    size = students_git.run("cat-file", "-s", blob, folder=folder)
    if size is None or int(size) > MAX_BYTES:  # files that are too large were not fetched
        raise Refused("grade_large")
    text = students_git.run("cat-file", "blob", blob, folder=folder)
    if text is None:  # its object is damaged
        raise course.Problem(course.say("grade_unread_commit"))
    return text


def from_git(folder, stages, source=None):
    """The files as committed in a git folder, at HEAD."""
    handed_in = Submission(source or folder, students_git.head(folder))
    if handed_in.sha is None:
        named = students_git.run("symbolic-ref", "-q", "--short", "HEAD", folder=folder)
        raise students_git.no_commit(handed_in.source, students_git.run("show-ref", "--heads", folder=folder), named)
    committed = tree(folder, [*names(stages), official.FILE])
    for name in names(stages):
        try:
            if name not in committed:
                raise Refused("grade_missing")
            handed_in.files[name] = read_blob(folder, committed[name])
        except Refused as problem:
            handed_in.refused[name] = str(problem)
    with contextlib.suppress(Refused, KeyError):
        handed_in.take_settings(read_blob(folder, committed[official.FILE]))
    return handed_in
