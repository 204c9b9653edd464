"""The paths of the repository and its build, and the end of every command."""
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
    """An error that the user can fix; the message is shown."""


class Paragraphs(argparse.HelpFormatter):
    """Wraps the paragraphs of a docstring. A paragraph that begins with a space is a list, and is not changed."""

    def _fill_text(self, text, width, indent):
        fill = super()._fill_text
        return "\n\n".join(paragraph if paragraph.startswith(" ") else fill(paragraph, width, indent)
                           for paragraph in re.split(r"\n\n+", text.strip("\n")))


def whole(low):
    """The type of an argument that is a whole number of at least `low`."""
    def value_of(text):
        if not re.fullmatch("[0-9]{1,18}", text) or int(text) < low:
            raise argparse.ArgumentTypeError(f"expected a whole number of at least {low}, found '{text}'")
        return int(text)

    return value_of


def build(target):
    """Builds the program and `target`; the compiler's output goes to stderr."""
    if subprocess.run([str(ROOT / "stage"), "build", target], stdout=sys.stderr).returncode != 0:
        raise Problem(f"{target} could not be built")


def main(function, tell=lambda text, stream: print(text, file=stream)):
    """Runs a command; returns its exit code. A Problem is printed as one line, with code 2, because 1 means that a test
    says no. After Ctrl-C or a closed pipe there is no message."""
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape", line_buffering=True)
    try:
        return function()
    except Problem as problem:
        tell(f"stage: {problem}", sys.stderr)
        return 2
    except BrokenPipeError:  # ./stage broken 5 | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as problem:  # a file that cannot be written, a full disk
        tell(f"stage: {': '.join(map(str, filter(None, (problem.filename, problem.strerror or problem))))}", sys.stderr)
        return 2
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            print(file=sys.stderr)  # so that the shell's prompt begins a new line
        return 130
