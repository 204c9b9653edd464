"""The official tree that a student's repository follows; course.json names it (docs/teaching.md).

As a program, for the workflows: python3 course shared.official FOLDER fetches that tree into FOLDER. In the official
repository itself there is nothing to fetch, and it says so.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

from shared import course
import strict_json

FILE = "course.json"
MOST_SHOWN = 60  # letters of a wrong value in a message
DEFAULTS = {"url": "", "ref": "main", "commit": "", "language": "en", "nickname": ""}
# Files that only the official repository has: its own checks and packages. Students get one of GitHub's workflows.
OURS_ALONE = re.compile(r"\.ci/|\.github/workflows/(?!grade\.yml$)")
COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def shown(found):
    """A wrong value, as a message shows it."""
    text = json.dumps(found, ensure_ascii=False)
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "..."


def unexpected(key, what, found):
    """The Problem of a value in course.json that only a teacher writes. key: where it is."""
    return course.Problem(f"{FILE}: {key}: expected {what}, found {shown(found)}")


def parse(text):
    """The settings of a course.json, which may be written by a student; text: str or bytes."""
    if (b"\n<<<<<<< " if isinstance(text, bytes) else "\n<<<<<<< ") in text:
        raise course.Problem(course.say("settings_merge", FILE))
    try:
        found = strict_json.parse(text)
    except ValueError as problem:
        raise course.Problem(course.say("settings_object", FILE, problem)) from None
    if not isinstance(found, dict):
        raise course.Problem(course.say("settings_object", FILE, shown(found)))
    for key, default in DEFAULTS.items():
        if not isinstance(found.setdefault(key, default), str) or found[key].startswith("-"):
            raise course.Problem(course.say("settings_text", FILE, key, shown(found[key])))
    return found


def read(folder=course.ROOT):
    path = pathlib.Path(folder) / FILE
    return parse(path.read_bytes()) if path.exists() else dict(DEFAULTS)


def write(settings, folder=course.ROOT):
    text = json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
    (pathlib.Path(folder) / FILE).write_text(text, encoding="utf-8")


def ssh_command():
    """ssh as this user's git runs it. A repository's own core.sshCommand does not count: it may be hostile."""
    if "GIT_SSH_COMMAND" in os.environ:
        return os.environ["GIT_SSH_COMMAND"]
    for scope in "--global", "--system":
        with contextlib.suppress(OSError):
            done = subprocess.run(["git", "config", scope, "--get", "core.sshCommand"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True, errors="replace", check=False)
            if done.stdout.strip():
                return done.stdout.strip()
    return shlex.quote(os.environ.get("GIT_SSH", "ssh"))


def without_questions(connect_seconds):
    """The environment of a git that asks for nothing and does not wait for ever."""
    return dict(os.environ, GIT_TERMINAL_PROMPT="0",
                GIT_SSH_COMMAND=f"{ssh_command()} -o BatchMode=yes -o ConnectTimeout={connect_seconds}")


def git(*words, folder=course.ROOT, given="", seconds=None):
    """The output of git, or None if it fails or takes longer than `seconds`. given: its input."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], env=without_questions(3), input=given,
                              encoding="utf-8", errors="surrogateescape", stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=seconds)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def is_here(url):
    """True if the URL is the repository that this workflow runs in, on GitHub, Gitea or GitLab."""
    at = os.environ
    here = at.get("CI_PROJECT_URL") or f"{at.get('GITHUB_SERVER_URL')}/{at.get('GITHUB_REPOSITORY')}"
    return url.rstrip("/").removesuffix(".git") == here


def remote_commit(settings, *options, seconds=None):
    """The commit that the official repository has under this branch, tag or hash. "": none. None: the repository cannot
    be read. options: of git."""
    ref = settings["ref"]
    said = git(*options, "ls-remote", "--", settings["url"], ref, f"{ref}^{{}}", seconds=seconds)
    if said is None:
        return None
    found = dict(reversed(line.split("\t", 1)) for line in said.splitlines())  # also of refs/heads/x/main
    names = (ref, f"refs/{ref}", f"refs/tags/{ref}", f"refs/heads/{ref}")  # in git's order
    commits = (found.get(full) for name in names for full in (f"{name}^{{}}", name))
    return next(filter(None, commits), ref if COMMIT.fullmatch(ref) else "")


def has_ref(settings, seconds=None):
    """True if the branch or tag exists and can be read without a password. None if the repository cannot be read."""
    commit = remote_commit(settings, "-c", "credential.helper=", seconds=seconds)
    return None if commit is None else bool(commit)


def why_not_fetched(settings):
    """The reason, in words, after a fetch that failed."""
    is_there = has_ref(settings)
    if is_there:
        return course.say("update_git", "fetch")
    return course.say("update_unreachable" if is_there is None else "update_no_ref", settings["url"], settings["ref"])


def fetch(settings, folder):
    """Fetches the official tree into a new folder, or one it was fetched into before. Returns its commit."""
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists() and not (folder / ".git").exists():  # a student committed it: git stores no .git
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    url, ref = settings["url"], settings["ref"]
    if (git("init", "-q", folder=folder) is None
            or git("fetch", "-q", "--depth", "1", "--", url, ref, folder=folder) is None
            or git("checkout", "-q", "--force", "--detach", "FETCH_HEAD", folder=folder) is None):
        raise course.Problem(why_not_fetched(settings))
    return git("rev-parse", "HEAD", folder=folder).strip()


def run():
    parser = argparse.ArgumentParser(description="Fetches the official tree that course.json names.")
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    settings = read(pathlib.Path.cwd())
    if not settings["url"] or is_here(settings["url"]):
        print(course.say("official_is_here", FILE))
        return 0
    print(course.say("official_fetched", settings["url"], settings["ref"], fetch(settings, folder)))
    return 0


if __name__ == "__main__":
    sys.exit(course.main(run))
