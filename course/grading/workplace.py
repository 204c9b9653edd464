"""Where grading happens: folders under build/grading, and turns of the processes that grade on this machine."""
import contextlib
import errno
import fcntl
import os
import shutil
import tempfile

from shared import course

PLACE = course.BUILD.parent / "grading"


class Turns:
    """On this machine, either any number of compilers and gates run together, or one program whose time is measured
    runs alone. While a program waits to run alone, no other one may start."""

    def together(self):
        return self.take(fcntl.LOCK_SH)

    def alone(self):
        return self.take(fcntl.LOCK_EX)

    @contextlib.contextmanager
    def take(self, how):
        PLACE.mkdir(parents=True, exist_ok=True)
        with open(PLACE / "turn", "w") as turn:
            with open(PLACE / "door", "w") as door:
                fcntl.flock(door, fcntl.LOCK_EX)
                fcntl.flock(turn, how)
            yield


def temporary(kind):
    """A folder for a `with`. Its name contains the process, so that it can be deleted if the process is killed."""
    return tempfile.TemporaryDirectory(dir=PLACE, prefix=f"{kind}-{os.getpid()}-")


def is_running(pid):
    try:
        os.kill(pid, 0)
    except OSError as problem:
        return problem.errno != errno.ESRCH
    return True


def clean_up():
    """Deletes the files of processes that were killed."""
    for pattern in "*-*-*", "answers/*":
        for path in PLACE.glob(pattern):
            pid = path.name.split("-")[1] if "-" in path.name else path.name
            if pid.isdigit() and not is_running(int(pid)):
                shutil.rmtree(path, ignore_errors=True)
