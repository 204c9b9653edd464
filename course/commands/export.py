"""./stage export: makes the repository that a teacher uses as a template.

It has the tree as committed, but with all starters restored, our own checks left out, and course.json filled in; one
commit. It contains our answers and the catalogue of mistakes (docs/teaching.md says what follows from this).
"""
import io
import json
import pathlib
import subprocess
import sys
import tarfile

from shared import course
from shared import official
from shared.parser import Parser

SECONDS = 30  # to check that the URL answers


def is_left_out(name):
    return official.OURS_ALONE.match(name) or name.endswith("/my_tests.cpp")


def committed():
    done = subprocess.run(["git", "-C", str(course.ROOT), "archive", "--format=tar", "HEAD"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if done.returncode != 0:
        raise course.Problem(course.say("export_no_git"))
    return tarfile.open(fileobj=io.BytesIO(done.stdout))


def write_tree(folder):
    starters = course.starters()
    with committed() as tree:
        for member in tree.getmembers():
            if not member.isfile() or is_left_out(member.name):
                continue
            path = folder / member.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(starters.get(member.name) or tree.extractfile(member).read())
            path.chmod(0o755 if member.mode & 0o100 else 0o644)


def commit(folder):
    # The user's settings must not decide what the template contains: ignored files, hooks, signatures.
    alone = ["-c", "user.name=Stagecraft", "-c", "user.email=stagecraft@localhost", "-c", "commit.gpgSign=false",
             "-c", "core.hooksPath=/dev/null", "-c", "core.autocrlf=false"]
    for words in (["init", "-q", "--template=", "-b", "main"], ["add", "-A", "-f"],
                  ["commit", "-q", "-m", "The course, as handed out"]):
        if official.git(*alone, *words, folder=folder) is None:
            raise course.Problem(course.say("export_git", folder, words[0]))


def run():
    parser = Parser("export")
    parser.add_argument("folder", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--url", required=True)
    parser.add_argument("--ref", default="main")
    parser.add_argument("--language", choices=course.HANDOUTS, default="en")
    options = parser.parse_args()
    folder = options.folder.resolve()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise course.Problem(course.say("export_not_empty", options.folder))
    sha = official.git("rev-parse", "HEAD")
    settings = {**official.read(), "url": options.url, "ref": options.ref, "language": options.language,
                "commit": (sha or "").strip()}
    official.parse(json.dumps(settings))  # as each workflow will do
    write_tree(folder)
    official.write(settings, folder)
    commit(folder)
    course.tell(course.say("export_done", options.folder))
    is_there = official.has_ref(settings, SECONDS)
    if not is_there:
        key = "export_unreachable" if is_there is None else "export_no_ref"
        course.tell(course.say(key, options.url, options.ref), sys.stderr)
    if official.git("status", "--porcelain", "--untracked-files=no"):
        course.tell(course.say("export_uncommitted"), sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(course.main(run))
