"""What a student hands in: the files that the registry names, and nothing else.

Whoever wrote them may be hostile: a folder is read without following a link anywhere below it, a
repository by git's plumbing without ever being checked out, and no name comes from either.
"""
import contextlib
import os
import pathlib
import re
import stat
import subprocess
import tempfile

import course
import official

MAX_BYTES = 256 << 10  # of one file; our own longest answer has 5 KB
SECONDS = 300  # for git to fetch a repository


class Submission:
    """files: {"stages/02-rms-norm/rms_norm.cpp": bytes}. refused: {such a name: why, a key of
    messages.json}. sha: the commit, or None; is_changed: do the files differ from it? language: that of
    its course.json, or None."""

    def __init__(self, source, sha=None):
        self.source = str(source)
        self.sha = sha
        self.is_changed = False
        self.files = {}
        self.refused = {}
        self.language = None

    def take_language(self, text):
        try:
            found = official.parse(text)["language"]
            self.language = found if found in course.HANDOUTS else None
        except course.Problem:
            pass


class Refused(Exception):
    """The message is a key of messages.json."""


def names(stages):
    return [course.unit_name(stage, unit) for stage in stages for unit in stage.units]


def run_git(*words, protocols="", most=None, folder=None):
    """What git prints, or None where it fails. protocols: those it may use ("file:https")."""
    environment = dict(os.environ, GIT_TERMINAL_PROMPT="0", GIT_ALLOW_PROTOCOL=protocols or "none",
                       GIT_SSH_COMMAND="ssh -o BatchMode=yes")
    if folder is not None:  # it is a repository itself or none, whatever it lies in and whosever it is
        environment.update(GIT_CEILING_DIRECTORIES=str(pathlib.Path(folder).parent), GIT_CONFIG_COUNT="1",
                           GIT_CONFIG_KEY_0="safe.directory", GIT_CONFIG_VALUE_0="*")
        words = ("-C", str(folder), *words)
    try:
        done = subprocess.run(["git", *words], env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout[:most] if done.returncode == 0 else None


def read_below(folder, name):
    """The bytes of a regular file below a folder; none of the steps to it may be a link."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    opened = []
    try:
        opened.append(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        for step in name.split("/"):
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
    except OSError:  # a link, a file in a folder's place, no right to read it
        raise Refused("grade_no_file") from None
    finally:
        for one in opened:
            os.close(one)


def tree(folder, wanted):
    """{name: (mode, hash)} of these files in the commit that is checked out, or would be."""
    listed = run_git("ls-tree", "-z", "HEAD", "--", *wanted, folder=folder) or b""
    found = {}
    for line in listed.decode("utf-8", "replace").split("\0")[:-1]:
        about, _, name = line.partition("\t")
        mode, _, blob = about.split(" ")
        found[name] = mode, blob
    return found


def head(folder):
    sha = run_git("rev-parse", "--verify", "-q", "HEAD", folder=folder)
    return sha.decode().strip() if sha else None


def from_folder(folder, stages):
    """As the files lie there now."""
    folder = pathlib.Path(folder).resolve()
    handed_in = Submission(folder, head(folder))
    committed = tree(folder, names(stages)) if handed_in.sha else {}
    for name in names(stages):
        try:
            text = handed_in.files[name] = read_below(folder, name)
        except Refused as problem:
            handed_in.refused[name] = str(problem)
            continue
        handed_in.is_changed |= committed.get(name, ("", ""))[1] != course.blob_hash(text)
    with contextlib.suppress(Refused):
        handed_in.take_language(read_below(folder, official.FILE))
    return handed_in


def read_blob(folder, entry):
    mode, blob = entry
    if mode not in ("100644", "100755"):
        raise Refused("grade_no_file")
    size = run_git("cat-file", "-s", blob, folder=folder)
    if size is None or int(size) > MAX_BYTES:  # what is too large was not even fetched
        raise Refused("grade_large")
    return run_git("cat-file", "blob", blob, folder=folder)


def from_git(folder, stages, source=None):
    """As committed in a git folder, HEAD's."""
    handed_in = Submission(source or folder, head(folder))
    if handed_in.sha is None:
        raise course.Problem(course.say("grade_no_commit", handed_in.source))
    committed = tree(folder, [*names(stages), official.FILE])
    for name in names(stages):
        try:
            if name not in committed:
                raise Refused("grade_missing")
            handed_in.files[name] = read_blob(folder, committed[name])
        except Refused as problem:
            handed_in.refused[name] = str(problem)
    with contextlib.suppress(Refused, KeyError):
        handed_in.take_language(read_blob(folder, committed[official.FILE]))
    return handed_in


def from_url(url, stages):
    with tempfile.TemporaryDirectory() as folder:
        clone = pathlib.Path(folder) / "clone"
        if run_git("clone", "-q", "--bare", "--depth", "1", "--single-branch", "--filter=blob:limit=1m", "--",
                   url, str(clone), protocols="file:git:http:https:ssh") is None:
            raise course.Problem(course.say("grade_no_clone", url))
        return from_git(clone, stages, url)


def collect(place, stages):
    """What is handed in at a path or URL."""
    if re.match(r"\w+://|[\w.-]+@[\w.-]+:", place):
        return from_url(place, stages)
    folder = pathlib.Path(place)
    if not folder.is_dir():
        raise course.Problem(course.say("grade_no_folder", place))
    if (folder / "objects").is_dir() and (folder / "HEAD").is_file():
        return from_git(folder.resolve(), stages)
    return from_folder(folder, stages)
