"""Helper processes that work through tasks, one task at a time. A task that ends or stops its helper fails alone.

A helper ends with the process that started it, even after kill -9 (`end_with`), and so does everything that the helper
started.
"""
import collections
import concurrent.futures
import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading

from shared import course

GRACE = 5  # seconds for a helper to end what it started
SET_DEATH_SIGNAL = 1  # option number of prctl


def end_with(parent, number=signal.SIGKILL):
    """From this call on, this process gets that signal when `parent`, which started it, ends. (On Linux; on other
    systems it ends with its stdin.)"""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(SET_DEATH_SIGNAL, int(number))
    if os.getppid() != parent:
        sys.exit(1)


class Helpers:
    """words: the command of a helper; this process's id is appended. environment: of the helper. seconds: limit per
    task. An answer is a dictionary; for a task that failed it is {"problem": reason}."""

    def __init__(self, words, jobs, environment=None, seconds=None):
        self.words, self.jobs, self.environment, self.seconds = words, jobs, environment, seconds
        self.stopping = False
        self.children = set()

    def start(self):
        # In a session of its own: Ctrl-C reaches only this process, which then ends the helpers.
        child = subprocess.Popen([*self.words, str(os.getpid())], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                 encoding="utf-8", errors="replace", env=self.environment, start_new_session=True)
        self.children.add(child)
        return child

    def ask(self, child, task):
        """(the answer, the helper for the next task): a new helper, if this one ended."""
        for _ in range(2):
            late = threading.Event()
            timer = threading.Timer(self.seconds, self.stop, [child, late]) if self.seconds else None
            if timer:
                timer.daemon = True
                timer.start()
            try:
                print(json.dumps(task), file=child.stdin, flush=True)
                answer = json.loads(child.stdout.readline())
            except (OSError, ValueError):
                answer = None
            finally:
                if timer:
                    timer.cancel()
            if answer is not None and not late.is_set() or self.stopping:
                return answer, child
            self.stop(child)
            child = self.start()
            if late.is_set():
                return {"problem": course.say("class_no_answer", self.seconds)}, child
        return {"problem": course.say("class_grader_ended")}, child

    @staticmethod
    def stop(child, late=None):
        """Ends a helper and all that it started."""
        if late is not None:
            late.set()
        child.terminate()
        try:
            child.wait(GRACE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        for stream in (child.stdin, child.stdout) if late is None else ():
            with contextlib.suppress(OSError):
                stream.close()

    def run(self, tasks, done):
        """Calls done(task, answer) for each task, one call at a time."""
        left, taking = collections.deque(tasks), threading.Lock()

        def work():
            child = self.start()
            try:
                while True:
                    with taking:
                        if not left or self.stopping:
                            return
                        task = left.popleft()
                    answer, child = self.ask(child, task)
                    with taking:
                        if not self.stopping:
                            done(task, answer)
            finally:
                self.stop(child)

        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            try:
                for one in [pool.submit(work) for _ in range(min(self.jobs, len(left)))]:
                    one.result()
            except BaseException:
                self.stopping = True
                for child in list(self.children):
                    child.terminate()
                raise
