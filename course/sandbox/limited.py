"""Confined commands with a time limit; tells slow commands from a machine that had no time for them."""
import collections
import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time

from shared import course
from sandbox.confine import NOT_STARTED, TOO_LONG

MAX_OUTPUT = 256 << 10
TRIES = 2
PAUSES = (0.1, 0.5, 2, 5, 10)  # seconds between tries to start a process
GRACE = 8  # seconds for confine to end what it started; it takes up to 5

# code: None if it did not end in time. said: the beginning of its output. cpu: seconds.
Ended = collections.namedtuple("Ended", "code said cpu")


def how(code):
    """An exit code in words for a person."""
    name = signal.strsignal(code - 128) if 128 < code < 128 + signal.NSIG else None
    return f"signal {code - 128} ({name})" if name else f"exit code {code}"


Ended.how = property(lambda self: how(self.code))


running, is_stopping = set(), threading.Event()


def end_all():
    """Ends all commands that run, and starts no other. For Ctrl-C, which only the main thread notices."""
    is_stopping.set()
    for child in list(running):
        send(child, signal.SIGTERM)


def started(command, **options):
    """Starts a process. If there are too many processes, tries again later: other students' threads may end."""
    for pause in PAUSES:
        try:
            return subprocess.Popen(command, **options)
        except BlockingIOError:
            time.sleep(pause)
    return subprocess.Popen(command, **options)


def with_limits(words, file, addresses):
    """The words that run a command, which need not be confined, with at most so many bytes per file that it writes, and
    of address space. (A system without one of these limits, such as macOS, applies the other.)"""
    limits = f"ulimit -f {file // 512}; ulimit -v {addresses // 1024}"
    return ["sh", "-c", f'{{ {limits}; }} 2>/dev/null; exec "$@"', "sh", *words]


def run(command, folder, seconds, environment=None):
    """Runs a confined command and returns how it ended; `seconds` is a second limit, in addition to its own. Raises
    KeyboardInterrupt if end_all() may have ended it: how it ended says nothing then."""
    with tempfile.TemporaryFile() as said:
        child = started(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT,
                        start_new_session=True, env=environment)
        running.add(child)
        if is_stopping.is_set():
            send(child, signal.SIGTERM)
        late, ended = threading.Event(), threading.Event()

        def end():
            late.set()
            send(child, signal.SIGTERM)  # at SIGTERM, confine ends all that it started
            if not ended.wait(GRACE):
                send(child, signal.SIGKILL)

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            _, status, used = os.wait4(child.pid, 0)
        except BaseException:  # such as Ctrl-C
            send(child, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(GRACE)
            send(child, signal.SIGKILL)
            raise
        finally:
            running.discard(child)
            ended.set()
            timer.cancel()
        code = child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read(MAX_OUTPUT).decode("utf-8", "replace")
    if is_stopping.is_set():
        raise KeyboardInterrupt
    if code == NOT_STARTED:  # only confine exits with this, never a student's code
        raise course.Problem(text)
    code = None if late.is_set() or code == TOO_LONG else code if code >= 0 else 128 - code
    return Ended(code, text, used.ru_utime + used.ru_stime)


def send(child, number):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, number)


def run_patiently(command, folder, seconds, is_a_verdict):
    """The same, but runs it once more if the machine may be to blame: the command got CPU for less than half of its
    time, or ended without a verdict (out of memory or of processes). It gets no more time or memory."""
    for _ in range(TRIES):
        ended = run(command, folder, seconds + 5)
        if ended.code == 0 or ended.cpu > seconds / 2 or is_a_verdict(ended.said):
            break
    return ended
