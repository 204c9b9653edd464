"""The official tree, with which all students are graded: it is built once, and its version is part of each result."""
import concurrent.futures
import functools
import os
import re
import shutil
import subprocess
import threading

from rules import foreign_files
from rules import own_work
from sandbox.confine import SYSTEM
from shared import atomic
from shared import course
from testing import build_errors
from testing import building
from testing import progress
from grading import recipe
from grading import students_git
from grading import workplace

# What a verdict depends on, besides the student's files, the seed and the compiler.
OFFICIAL = (*progress.OFFICIAL, "course/grading", "course/mistakes", "course/shared", "stages/messages.json",
            "stages/case_names.json")
build_lock = threading.Lock()
built = {}  # {number of a stage: the folder of its wrong programs, or None}
prepared = None  # the folder of the headers, if another process made it


def headers():
    """A folder with one folder per stage ("02"), which holds the headers that the stage may include."""
    folder = workplace.PLACE / "include"
    wanted = {f"{stage.number}/{name}": course.ROOT / "src" / name for stage in course.stages()
              for name in own_work.rules(stage.number)["headers"]}
    for path in [path for path in folder.rglob("[!.]*") if path.is_file()]:  # not another grading's new files
        if path.relative_to(folder).as_posix() not in wanted:
            path.unlink()
    for name, path in wanted.items():
        copy = folder / name
        if not copy.exists() or copy.read_bytes() != path.read_bytes():
            atomic.write(copy, path.read_bytes())  # another grading may be compiling
    return folder


def build(target):
    problem = building.build("engine", target, limited=True)
    if problem is not None:
        raise course.Problem(f"the official tree does not build:\n{build_errors.first_error(problem)}")


@functools.lru_cache(maxsize=None)
def prepare():
    """Builds what all students are graded with; returns the folder of the headers."""
    if prepared is not None:
        return prepared
    if foreign_files.is_below(os.path.realpath(course.ROOT), SYSTEM):
        raise course.Problem(f"{course.ROOT}: expected the official tree outside of {', '.join(SYSTEM)}, which a "
                             "student's compiler may read")
    build("grading")
    return headers()


def use(folder):
    """Tells this process that another one has built everything, and that the headers are in this folder."""
    global prepared
    prepared = folder
    prepare.cache_clear()


def precompile(folder):
    """Copies the headers, and puts a precompiled header beside each one that a starter includes first. A student's file
    that begins with the same #include means the same and compiles in half the time. (GCC finds precompiled headers by
    itself, and uses none that was made with other options; Clang does not look for them.)"""
    shutil.copytree(prepare(), folder)
    commands = {}  # by header
    for stage in course.stages():
        if stage.is_emulated:
            continue
        steps = recipe.recipe(stage.number)
        for unit in stage.units:
            first = re.search(r'^#include "(.*)"', stage.starter(unit).decode(), re.M)
            header = folder / stage.number / first[1] if first else None
            if header and header.exists():
                words = steps.compile_command(course.unit_name(stage, unit), f"{header}.gch",
                                              headers=folder / stage.number)[:-2]
                commands.setdefault(header, [*words, "-w", "-x", "c++-header", str(header)])
    # Without one, such as on a full disk, a file is compiled as usual.
    run = functools.partial(subprocess.run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(run, commands.values()))


def mistakes(number):
    """The folder of a stage's wrong programs, built for the first student who needs them; None if they do not build."""
    with build_lock:
        if number not in built:
            built[number] = building.build_mistakes(course.find_stage(number, course.stages()), limited=True)
        return built[number]


@functools.lru_cache(maxsize=None)
def version():
    """The commit of this official tree; changed: True if files that decide about marks differ from it."""
    changed = students_git.run("--no-optional-locks", "status", "--porcelain", "--", *OFFICIAL, "course",
                                 folder=course.ROOT)
    return {"commit": students_git.head(course.ROOT), "changed": bool(changed)}


def stamps():
    """{file: its size and time}, for the files that decide about marks. Reading these is quicker than fingerprint()."""
    stats = {path: path.stat() for path in progress.files_of(OFFICIAL)}
    return {path: (stat.st_size, stat.st_mtime_ns) for path, stat in stats.items()}


@functools.lru_cache(maxsize=None)
def first_look():
    """(stamps, a hash of the files)"""
    return stamps(), progress.fingerprint(progress.files_of(OFFICIAL))


def fingerprint():
    """A hash of this tree's files, because a commit says nothing about a tree with edits."""
    return first_look()[1]


def is_changed():
    """True if files of this tree have changed since fingerprint() was first called."""
    return stamps() != first_look()[0]


@functools.lru_cache(maxsize=None)
def compiler():
    words = [recipe.recipe(course.stages()[0].number).compiler, "--version"]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[0]
