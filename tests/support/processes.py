"""The descendants of a process, for tests that check what is left after it is killed. Linux only."""
import pathlib
import time


STARTED, PAGES = 19, 21  # fields of /proc/PID/stat, counted from the state of the process


def descendants(pid, field=STARTED):
    """{pid: start time, or another field} of all descendants of a process; pid 0: of all processes."""
    parents, found_in = {}, {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents[int(path.parent.name)], found_in[int(path.parent.name)] = int(fields[1]), fields[field]
    found = {pid}
    while more := {one for one, parent in parents.items() if parent in found} - found:
        found |= more
    return {one: found_in[one] for one in found - {pid} if one in found_in}


def wait_for_descendants(pid, count, seconds):
    """The descendants of a process, as soon as there are `count` of them, or after `seconds`."""
    deadline = time.monotonic() + seconds
    while len(found := descendants(pid)) < count and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def still_running(before, seconds):
    """The pids of those in `before` that still run; waits up to `seconds` for them to end."""
    deadline = time.monotonic() + seconds
    while True:
        now = descendants(0)
        left = [pid for pid, started in before.items() if now.get(pid) == started]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.1)
