"""A progress bar for many students."""
import os
import sys
import time

from shared import course


class Bar:
    """A progress bar, shown only in a terminal."""

    def __init__(self, n):
        self.n, self.done, self.start = n, 0, time.monotonic()
        self.shown = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self.show("")

    def step(self, name):
        self.done += 1
        self.show(name)

    def show(self, name):
        if not self.shown or not self.n:
            return
        full = 30 * self.done // self.n
        spent = time.monotonic() - self.start
        minutes = round(spent / self.done * (self.n - self.done) / 60) if self.done else None
        left = "" if minutes is None else course.say("class_minutes", minutes)
        print(f"\r\033[K[{'#' * full}{' ' * (30 - full)}] {self.done}/{self.n}  {left}  {name[:30]}", end="",
              file=sys.stderr, flush=True)

    def end(self):
        if self.shown and self.n:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
