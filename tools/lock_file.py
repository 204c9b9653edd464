"""Lock files, which one process can hold at a time. A lock ends with its process, also after kill -9."""
import fcntl
import os


def take(path, wait=False):
    """The open file, which holds the lock until it is closed. None if another process holds it; wait: waits instead."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        file = path.open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            file.close()
            return None
        if path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno())):
            return file
        file.close()  # its owner deleted it meanwhile: others would lock a new one
