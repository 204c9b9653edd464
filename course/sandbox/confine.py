"""Runs commands that touch a student's code so that they can read, write and start only what they need.

The program confine does the work (course/sandbox/confinement.h); docs/confinement.md says what each system supports.
Build it first: building.build("gate") does.
"""
import functools
import itertools
import os
import pathlib
import shutil
import subprocess
import sys

from shared import course

TOO_LONG = 124  # the exit code if the command exceeded its time or memory
NOT_STARTED = 125
THREADS = 64  # threads of a student's program, plus two per processor
SYSTEM = ("/usr", "/bin", "/lib", "/lib64")  # where compilers and their headers are


@functools.lru_cache(maxsize=None)
def why_not():
    """The reason why commands are not confined here, for a person; empty if they are."""
    if not sys.platform.startswith("linux"):
        return "confinement needs Linux"
    done = subprocess.run([str(course.BUILD / "course" / "confine"), "--why"], stdout=subprocess.PIPE, text=True)
    return done.stdout.strip() or (f"confine ended with {done.returncode}" if done.returncode else "")


def programs_of(command):
    """The programs at its start: "env NAME=value /opt/gcc/bin/c++ -c x.cpp" starts two."""
    words = itertools.takewhile(lambda word: not word.startswith("-"), command)
    return [pathlib.Path(path) for path in map(shutil.which, words) if path]


def limits(seconds, memory, file):
    return [str(course.BUILD / "course" / "confine"), "--parent", str(os.getpid()), "--seconds", str(seconds),
            "--memory", str(memory), "--file", str(file)]


def limited(command, seconds, memory=0, file=0):
    """Wraps a command of ours, which confines what it starts itself: it gets limits only."""
    return [*limits(seconds, memory, file), "--limits-only", "--open-files", "0", "--processes", "0", "--",
            *map(str, command)]


def confined(command, reads=(), writes=(), programs=(), compiles=False, sanitized=False, seconds=10,
             memory=2 << 30, file=64 << 20):
    """Wraps a command so that it runs confined, for subprocess. The exit code is the command's own, 128 + the signal
    that ended it, TOO_LONG or NOT_STARTED.

    reads: files, and folders with all below them. writes: existing files; for a compiler also folders to make files in,
    of which the first is its TMPDIR. (A student's program gets no folder: it could fill one without end.) programs:
    what it executes, besides its own first word. compiles: the command is a compiler or linker, which reads and starts
    what the system has. sanitized: it was built with AddressSanitizer, which needs much address space, so its real
    memory is limited instead. seconds, and bytes per process and per file: its limits. It sees only those environment
    variables that compilers and sanitizers need. On a machine that cannot confine (why_not), the limits still hold. The
    command and all that it started end with this process.
    """
    command = list(map(str, command))
    words = [*limits(seconds, 0 if sanitized else memory, file), "--libraries"]
    words += ["--resident", str(memory)] if sanitized else []
    programs = [*programs, command[0]]
    if compiles:
        words += ["--starts-processes", "--open-files", "1024"]
        reads = [*reads, "/etc/alternatives"]
        started = programs_of(command)
        programs += [*SYSTEM, *(path.resolve().parent.parent for path in started)]
    else:
        words += ["--processes", str(THREADS + 2 * (os.cpu_count() or 1))]
    for option, paths in (("--read", reads), ("--execute", programs), ("--write", ["/dev/null", *writes])):
        for path in paths:
            words += [option, str(path)]
    return [*words, "--", *command]
