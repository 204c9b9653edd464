"""Pulls for ./stage class: one task per line of stdin, one answer per line of stdout (course/classroom/helpers.py).

    {"ids", "place", "last"} -> {"sha", "at", "problem": null}; sha: null if nothing is new

ids: of the students for whom it is stored.

Whatever a repository contains, only this answer can fail.
"""
import contextlib
import json
import os
import pathlib
import resource
import signal
import sys
import traceback

from classroom import class_folder
from shared import course
from classroom import helpers
from classroom import repositories
from grading import students_git

MEMORY = 1 << 30  # bytes of address space of this process
MOST_LETTERS = 300  # of a problem's text


def in_a_line(problem):
    text = course.without_login(" ".join(str(problem).split())) or type(problem).__name__
    return text[:MOST_LETTERS].encode("utf-8", "replace").decode()


def answer(folder, task):
    at = class_folder.now()
    try:
        handed_in = repositories.pull(task["place"], course.stages(), task["last"])
        if handed_in:
            for id in task["ids"]:
                class_folder.keep(folder, id, handed_in)  # before the log mentions it
        return {"sha": handed_in and handed_in.sha, "at": at.isoformat(), "problem": None}
    except (course.Problem, OSError) as problem:
        return {"problem": in_a_line(problem)}
    except Exception as problem:  # an unforeseen problem of this repository
        traceback.print_exc()
        return {"problem": in_a_line(f"{type(problem).__name__}: {problem}")}


def end(_number, _frame):
    students_git.end_all()
    os._exit(1)


def main():
    folder, parent = sys.argv[1:]
    signal.signal(signal.SIGTERM, end)
    helpers.end_with(int(parent), signal.SIGTERM)
    with contextlib.suppress(OSError, ValueError):  # macOS has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    for line in sys.stdin:
        print(json.dumps(answer(pathlib.Path(folder), json.loads(line))), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(course.main(main))
