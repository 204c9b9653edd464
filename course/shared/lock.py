"""A lock file, which only one process can hold at a time."""
import contextlib
import fcntl
import sys

from shared import course

mine = set()  # the lock files that this process holds


@contextlib.contextmanager
def held(path, waiting=None):
    """Holds the lock file in this block. waiting: said if another process holds it. May be nested."""
    if path in mine:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting:
                course.tell(waiting, sys.stderr)
            fcntl.flock(file, fcntl.LOCK_EX)
        mine.add(path)
        try:
            yield
        finally:
            mine.discard(path)
