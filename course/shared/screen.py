"""What a person sees in a terminal: text that fits it, a page at a time where it is long, and what is being waited
for. Where nobody is looking (a pipe, a file) text stays as it is."""
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

# Chinese may be broken anywhere, but no line begins with a punctuation mark that ends something, or ends with one that
# begins something.
WORDS = re.compile(r"\s+|[（《【「『]*(?:[^\s\u2e80-\uffef]+|.)[，。；：！？、）》】」』]*")
COLOUR = re.compile(r"\033\[[\d;]*m")
# Of less: colours stay; a text that fits the screen ends by itself; the last line says what nobody guesses.
PAGER = "FRXPs-- {} --"
PATIENCE = 1.0  # seconds: what takes longer is named


# ---- columns ------------------------------------------------------------------------------------


def width(text):
    """How many columns of a terminal it takes."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in COLOUR.sub("", text))


def padded(text, columns):
    return text + " " * (columns - width(text))


def wrapped(text, columns, first="", then="", words=WORDS):
    """Lines of at most so many columns, broken between words, Chinese anywhere. They begin with `first`,
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
    """How wide the terminal is; `usual` where the stream is none."""
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
    """Lines that fit; one that is broken goes on a little further to the right."""
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
    """In that colour (of ANSI: "31" is red) where a person is looking and has not declined."""
    plain = is_plain(sys.stdout) or os.environ.get("NO_COLOR")
    return text if plain or not colour else f"\033[{colour}m{text}\033[0m"


def tell(text, stream=None):
    """Prints it, broken between words where a terminal would break it anywhere."""
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
    """Prints lines, through a pager where they are more than the terminal shows at once. keys: what its last line says."""
    text = "\n".join(lines) + "\n"
    words = pager() if sys.stdin.isatty() and not is_plain(sys.stdout) else None
    if words is None or text.count("\n") < shutil.get_terminal_size().lines:
        sys.stdout.write(text)
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the pager's
    try:
        subprocess.run(words, input=text.encode(), env={"LESS": PAGER.format(keys.replace(":", r"\:")), **os.environ})
    finally:
        signal.signal(signal.SIGINT, before)


waiting, redrawing = [], threading.Lock()  # [line, whether it has taken a second]; the last that has is shown


def redraw():
    shown = [line for line, is_due in waiting if is_due]
    print(f"\r\033[K{shown[-1] if shown else ''}", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def doing(what):
    """Says what is being waited for, once that has taken a second, and takes the line back at the end."""
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
