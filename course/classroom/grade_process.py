"""Grades for ./stage class: one task per line of stdin, one answer per line of stdout. It ends with stdin or with the
process that started it (course/classroom/helpers.py).

    {"id", "sha", "seeds": {"0": 17, "1": 4}, "language", "fresh", "out"} -> {"out", "problem": null}

The result is written to `out`, all of it or nothing.
"""
import json
import os
import pathlib
import sys

from classroom import class_folder
from shared import atomic
from shared import course
from grading import grader
from grading import official_tree
from classroom import helpers

MOST_BYTES = 4 << 20  # of a result; messages are cut much earlier


class Memory:
    """Stores entries of stages in a folder, by a key of all that they depend on (grader.Work.key)."""

    def __init__(self, folder, fresh=False):
        self.folder = folder
        self.fresh = fresh

    def path(self, key):
        return self.folder / key[:2] / f"{key[2:]}.json"

    def get(self, key):
        try:
            return None if self.fresh else json.loads(self.path(key).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def put(self, key, entry):
        atomic.write(self.path(key), json.dumps(entry, ensure_ascii=False))


def grade(folder, task):
    """Grades one submission; returns the problem, or None."""
    os.environ["STAGECRAFT_LANG"] = task["language"]
    memory = Memory(folder / "remembered", task["fresh"])
    seeds = {int(id): seed for id, seed in task["seeds"].items()}
    stages = [stage for stage in course.stages() if stage.id in seeds]
    try:
        handed_in = class_folder.kept(folder, task["id"], task["sha"])
        result = grader.grade(handed_in, seeds, 1, stages, memory)
    except (course.Problem, OSError, ValueError) as problem:
        return str(problem)
    text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
    if len(text) > MOST_BYTES:
        return f"a result of {len(text)} bytes"
    atomic.write(pathlib.Path(task["out"]), text)
    return None


def main():
    folder, headers, parent = sys.argv[1:]
    helpers.end_with(int(parent))
    folder = pathlib.Path(folder)
    official_tree.use(pathlib.Path(headers))
    for line in sys.stdin:
        task = json.loads(line)
        print(json.dumps({"out": task["out"], "problem": grade(folder, task)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(course.main(main))
