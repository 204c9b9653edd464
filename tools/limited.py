"""Confined commands with a time of their own, told from a machine that had no time for them."""
import collections
import contextlib
import os
import signal
import subprocess
import tempfile
import threading

import course
from confine import NOT_STARTED, TOO_LONG

MAX_OUTPUT = 256 << 10
TRIES = 2

# code: None where it did not end in time. said: the beginning of what it printed. cpu: seconds.
Ended = collections.namedtuple("Ended", "code said cpu")


def how(code):
    """An exit code in words for a person."""
    return f"exit code {code}" if code <= 128 else f"signal {code - 128} ({signal.strsignal(code - 128)})"


Ended.how = property(lambda self: how(self.code))


def run(command, folder, seconds):
    """The end of a confined command; `seconds` is a second limit, behind its own."""
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=said,
                                 stderr=subprocess.STDOUT, start_new_session=True)
        late = threading.Event()

        def end():
            late.set()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            _, status, used = os.wait4(child.pid, 0)
        except BaseException:
            os.killpg(child.pid, signal.SIGKILL)
            raise
        finally:
            timer.cancel()
        code = child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read(MAX_OUTPUT).decode("utf-8", "replace")
    if code == NOT_STARTED or text.startswith("ccache: error"):  # no fault of the student's
        raise course.Problem(text)
    code = None if late.is_set() or code == TOO_LONG else code if code >= 0 else 128 - code
    return Ended(code, text, round(used.ru_utime + used.ru_stime, 1))


def run_patiently(command, folder, seconds, is_a_verdict):
    """The same, once more where the machine may be to blame: it gave the command less than half of its time,
    or the command ended without a verdict (out of memory or of processes). It gets no more time or memory."""
    for _ in range(TRIES):
        ended = run(command, folder, seconds + 5)
        if ended.code == 0 or ended.cpu > seconds / 2 or is_a_verdict(ended.said):
            break
    return ended
