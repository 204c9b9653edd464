"""Where the repository and its build lie, and what every command does at its end."""
import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"


class Problem(Exception):
    """Something the person has to change; the message is what they read."""


class Paragraphs(argparse.HelpFormatter):
    """Breaks the paragraphs of a docstring between words. One that begins with a space is a list: it stays as it is."""

    def _fill_text(self, text, width, indent):
        fill = super()._fill_text
        return "\n\n".join(paragraph if paragraph.startswith(" ") else fill(paragraph, width, indent)
                           for paragraph in re.split(r"\n\n+", text.strip("\n")))


def build(target):
    """Builds the program and `target`; what the compiler says goes to stderr."""
    if subprocess.run([str(ROOT / "stage"), "build", target], stdout=sys.stderr).returncode != 0:
        raise Problem(f"{target} could not be built")


def main(function, tell=lambda text, stream: print(text, file=stream)):
    """Runs a command: problems become one line; Ctrl-C, or a reader who has enough, ends quietly."""
    sys.stdout.reconfigure(encoding="utf-8", line_buffering=True)
    try:
        return function()
    except Problem as problem:
        tell(f"stage: {problem}", sys.stderr)
        return 2
    except BrokenPipeError:  # ./stage broken 5 | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            print(file=sys.stderr)  # the prompt begins a line of its own
        return 130
