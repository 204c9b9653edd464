"""git for the repositories of students, which may be hostile: with limits, without hooks, links, credentials or settings
of theirs. shared/official.py asks our own repository.
"""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading

from sandbox.limited import with_limits
from shared import course
from shared import official

SECONDS = 300  # to fetch a repository
ASK_SECONDS = 60  # to ask which commits it has
MAX_FETCHED = 256 << 20  # bytes of it; the course has 42 MB with all its history
MAX_ADDRESSES = 4 << 30  # address space of each git process that fetches,
MAX_TO_READ = 512 << 20  # of each that reads a local repository
MAX_SAID = 4 << 20  # bytes of output
MAX_COMPLAINTS = 256 << 10  # bytes that are read of what git says about a failure
MOST_BRANCHES = 5  # named in a message
MOST_REASON = 200  # characters of what git says about a URL
running = set()  # process groups of running commands
# Runs nothing that a repository or this machine's settings name; all fetched objects come as one pack file.
FETCHING = ("-c", "core.hooksPath=/dev/null", "-c", "fetch.unpackLimit=1", "-c", "gc.auto=0",
            "-c", "fetch.recurseSubmodules=false", "-c", "maintenance.auto=false")
# For a local repository, whoever owns it; large packs are read through small windows.
READING = {"safe.directory": "*", "core.packedGitWindowSize": "1m", "core.packedGitLimit": "64m"}
# A server of a student's could lead on to a repository that only our credentials open: another student's.
STAYING = {"http.followRedirects": "false"}
# What git says in English, and what a student can do about it: a key of messages.json.
CAUSES = {"clone_large": r"invalid index-pack output|index-pack (?:died|failed)|File too large",
          "clone_no_server": r"Could not resolve host|(?:Failed|unable) to connect|Connection (?:refused|timed out)",
          "clone_slow": r"^took too long$|Operation too slow|timed out after",
          # A forge also says "not found" about a repository that is private.
          "clone_private": r"could not read (?:Username|Password)|Authentication failed|Permission denied|"
                           r"error: 40[134]|not found|not appear to be a git repository|repository not exported"}
URL = re.compile(r"\w+://|[\w.-]+@[\w.-]+:")
REMOTE = "git:http:https:ssh"  # never a folder: git would follow links out of it, and a push would run its hooks


def limited(words, addresses=MAX_ADDRESSES):
    """The words that run a command under limits for which git has no option."""
    return with_limits(words, MAX_FETCHED, addresses)


@contextlib.contextmanager
def end_signal_waits():
    """A SIGTERM that arrives in this block is handled at its end. (Python handles signals only in its main thread,
    between any two steps of it.)"""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        if came:
            os.kill(os.getpid(), signal.SIGTERM)


def run_for(words, seconds, complaints=None, **options):
    """The output of a command, or None if it fails, prints more than MAX_SAID or takes longer; then it is ended with
    all that it started. complaints: a file for what it prints to stderr, or "took too long"."""
    with tempfile.TemporaryFile() as said:
        with end_signal_waits():  # else end_all would miss a process that runs but is not in `running` yet
            child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=said,
                                     stderr=complaints or subprocess.DEVNULL, start_new_session=True, **options)
            running.add(child.pid)
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            if complaints:
                complaints.write(b"\ntook too long\n")
                complaints.flush()
            return None
        finally:
            with contextlib.suppress(OSError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            running.discard(child.pid)
        said.seek(0)
        text = said.read(MAX_SAID + 1)
    return text if child.returncode == 0 and len(text) <= MAX_SAID else None


def end_all():
    """Ends the commands that run_for is running; for a process that is about to end itself."""
    for pid in list(running):
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)


def run(*words, protocols="", most=None, folder=None, seconds=SECONDS, complaints=None, home=None):
    """The output of git, or None if it fails. protocols: those it may use ("ssh:https"). complaints: as in run_for.
    home: instead of this user's, which may hold credentials."""
    environment = dict(official.without_questions(30), LC_ALL="C", GIT_ALLOW_PROTOCOL=protocols or "none",
                       GIT_NO_REPLACE_OBJECTS="1")
    if home is not None:
        environment.update(HOME=home, XDG_CONFIG_HOME=home, GIT_CONFIG_NOSYSTEM="1")
    settings = dict(STAYING)
    if folder is not None:  # only this folder counts as the repository, whoever owns it
        environment.update(GIT_CEILING_DIRECTORIES=str(pathlib.Path(folder).parent))
        settings |= READING
        words = ("-C", str(folder), *words)
    words = (*(word for key, value in settings.items() for word in ("-c", f"{key}={value}")), *words)
    addresses = MAX_ADDRESSES if folder is None else MAX_TO_READ
    try:
        said = run_for(limited(["git", *words], addresses), seconds, complaints, env=environment)
    except OSError:
        return None
    return None if said is None else said[:most]


def head(folder):
    sha = run("rev-parse", "--verify", "-q", "HEAD", folder=folder)
    return sha.decode().strip() if sha else None


def no_commit(source, listed, named=None):
    """The Problem that HEAD has no commit. listed: the branches, one line "sha refs/heads/name" each, or None; named:
    the branch that HEAD names. Both texts may be hostile."""
    def names(before, text):
        return re.findall(rf"{before}([\w./+@-]{{1,60}})$", (text or b"").decode("utf-8", "replace"), re.M)

    there = names(r"\srefs/heads/", listed)
    if not there:
        return course.Problem(course.say("grade_no_commit", source))
    return course.Problem(course.say("grade_no_branch", source, "".join(f" ({name})" for name in names("^", named)),
                                     ", ".join(there[:MOST_BRANCHES])))


def reason(lines):
    """Why git cannot read a URL, as a student understands it, or else in git's words. lines: what git said; may be
    hostile."""
    for key, said in CAUSES.items():
        if any(re.search(said, line) for line in lines):
            return course.say(key)
    named = next((line for line in lines if line.startswith(("fatal:", "ssh:"))), lines[-1] if lines else "")
    shown = course.without_login("".join(letter if letter.isprintable() else " " for letter in named))
    return shown[:MOST_REASON].strip()


def ask(url, *words, seconds=SECONDS):
    """The output of a git command that reads this URL. Raises a Problem with the reason if it fails."""
    with tempfile.TemporaryFile() as complaints:
        said = run(*words, protocols=REMOTE, complaints=complaints, seconds=seconds)
        if said is not None:
            return said
        complaints.seek(0)
        why = reason(complaints.read(MAX_COMPLAINTS).decode("utf-8", "replace").splitlines())
    raise course.Problem(course.say("grade_no_clone", url, f": {why}" if why else ""))


def head_of(url):
    """The commit of HEAD at a URL; "" if there is none."""
    said = ask(url, "ls-remote", "--", url, "HEAD", seconds=ASK_SECONDS)
    return said.decode("ascii", "replace").partition("\t")[0].strip()


def is_public(url):
    """True if anyone can read the repository at this URL."""
    if not re.match("git:|https?:", url):  # ssh knows who asks
        return False
    with tempfile.TemporaryDirectory() as nobody, tempfile.TemporaryFile() as complaints:
        said = run("ls-remote", "--", course.without_login(url), "HEAD", protocols="git:http:https",
                       seconds=ASK_SECONDS, complaints=complaints, home=nobody)
        complaints.seek(0)
        text = complaints.read(MAX_COMPLAINTS).decode("utf-8", "replace")
    if said is None and not re.search(CAUSES["clone_private"], text):
        raise course.Problem(course.say("grade_no_clone", url, ""))
    return said is not None


def branches_of(url):
    """The branches at a URL, as no_commit expects them."""
    return run("ls-remote", "--heads", "--", url, protocols=REMOTE, seconds=ASK_SECONDS)


@contextlib.contextmanager
def fetched(url):
    """A git folder with that commit. Nothing in it was run; submodules and large files were not fetched."""
    with tempfile.TemporaryDirectory() as folder:
        clone = pathlib.Path(folder) / "clone"
        asked = ("--depth", "1", "--no-tags", "--filter=blob:limit=1m", "--", url, "+HEAD:refs/heads/main")
        ask(url, "init", "-q", "--bare", "--template=", str(clone))
        ask(url, *FETCHING, "-C", str(clone), "fetch", "-q", *asked)
        (clone / "HEAD").write_text("ref: refs/heads/main\n")
        yield clone
