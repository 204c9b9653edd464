"""Output for a person at a terminal: text that fits its width, long text page by page, and a line that says what is
being waited for. In a pipe or a file, text stays as it is."""
import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import unicodedata

# Chinese may be broken anywhere, but no line begins with a closing punctuation mark or ends with an opening one. Short
# code such as `a * b` is not broken.
WORDS = re.compile(r"\s+|[（《【「『]*(?:[^\s`\u2e80-\uffef]*`[^`\n]{1,40}`[^\s`\u2e80-\uffef]*|[^\s\u2e80-\uffef]+|.)"
                   r"[，。；：！？、）》】」』]*")
COLOUR = re.compile(r"\033\[[\d;]*m")
# Options of less: keep colours; end at once if the text fits the screen; explain the keys in the last line.
PAGER = "FRXPs-- {} --"
PATIENCE = 1.0  # seconds: waits that are longer are shown


# ---- columns ------------------------------------------------------------------------------------


def width(text):
    """The number of terminal columns that a text takes."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in COLOUR.sub("", text))


def padded(text, columns):
    return text + " " * (columns - width(text))


def wrapped(text, columns, first="", then="", words=WORDS):
    """Lines of at most `columns` columns, broken between words, Chinese anywhere. The first line begins with `first`,
    the others with `then`; a word that is longer than a line stays whole."""
    line, empty = first, True
    for word in words.findall(text):
        if not empty and width(line + word.rstrip()) > columns:
            yield line.rstrip()
            line, empty = then, True
        if not (empty and word.isspace()):
            line, empty = line + word, False
    yield line.rstrip()


def columns(stream=None, usual=None):
    """The width of the terminal; `usual` if the stream is no terminal."""
    stream = stream or sys.stdout
    if not stream.isatty():
        return usual
    if os.environ.get("COLUMNS", "").isdecimal():
        return int(os.environ["COLUMNS"]) or usual
    try:
        return os.get_terminal_size(stream.fileno()).columns or usual
    except (OSError, ValueError):
        return usual


def fitted(text, room):
    """Lines that fit; the rest of a broken line is indented a little."""
    for line in text.split("\n"):
        if room is None or width(line) <= room:
            yield line
        else:
            margin = line[:len(line) - len(line.lstrip())]
            yield from wrapped(line.lstrip(), room, margin, margin + "  ")


# ---- for a person -------------------------------------------------------------------------------


def is_plain(stream):
    return not stream.isatty() or os.environ.get("TERM") == "dumb"


def paint(text, colour):
    """The text in an ANSI colour ("31" is red), if the output is a terminal and the user has not turned colours off."""
    plain = is_plain(sys.stdout) or os.environ.get("NO_COLOR")
    return text if plain or not colour else f"\033[{colour}m{text}\033[0m"


def tell(text, stream=None):
    """Prints a text; long lines break between words."""
    stream = stream or sys.stdout
    lines = "\n".join(fitted(text, columns(stream)))
    with redrawing:
        is_waiting = any(is_due for _, is_due in waiting)
        if is_waiting:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        print(lines, file=stream, flush=True)
        if is_waiting:
            redraw()


def pager():
    wanted = [os.environ.get("PAGER", ""), "less", "more"]
    return next((words for words in map(shlex.split, wanted) if words and shutil.which(words[0])), None)


def page(lines, keys="space: next page, q: end"):
    """Prints lines, through a pager if they do not fit the terminal. keys: the pager's last line."""
    text = "\n".join(lines) + "\n"
    words = pager() if sys.stdin.isatty() and not is_plain(sys.stdout) else None
    if words is None or text.count("\n") < shutil.get_terminal_size().lines:
        sys.stdout.write(text)
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the pager handles Ctrl-C
    try:
        subprocess.run(words, input=text.encode(), env={"LESS": PAGER.format(keys.replace(":", r"\:")), **os.environ})
    finally:
        signal.signal(signal.SIGINT, before)


waiting, redrawing = [], threading.Lock()  # [line, True after one second]; the last such line is shown


def redraw():
    shown = [line for line, is_due in waiting if is_due]
    print(f"\r\033[K{shown[-1] if shown else ''}", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def doing(what):
    """Shows what is being waited for once it has taken a second, and deletes the line at the end."""
    if is_plain(sys.stderr):
        yield
        return
    entry = [next(wrapped(f"{what} ...", columns(sys.stderr, 80) - 1)), False]
    waiting.append(entry)

    def show():
        with redrawing:
            entry[1] = True
            redraw()

    timer = threading.Timer(PATIENCE, show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        with redrawing:
            waiting.remove(entry)
            if entry[1]:
                redraw()
