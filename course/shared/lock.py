"""A lock file, which only one process can hold at a time."""
import contextlib
import sys

import lock_file
from shared import course

mine = set()  # the lock files that this process holds


@contextlib.contextmanager
def held(path, waiting=None):
    """Holds the lock file in this block. waiting: said if another process holds it. May be nested."""
    if path in mine:
        yield
        return
    file = lock_file.take(path)
    if file is None and waiting:
        course.tell(waiting, sys.stderr)
    with file or lock_file.take(path, wait=True):
        mine.add(path)
        try:
            yield
        finally:
            mine.discard(path)
