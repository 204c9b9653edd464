"""A student's files as the compiler reads them: comments gone, macros replaced, the branches of #if chosen. A copy, or an
option for the compiler, cannot hide behind macros, nor behind anything that only a compiler reads right.

The preprocessor runs confined, with the options and the headers of grading. Comparing needs none of this for most files:
they hold no directives but plain #includes of headers.
"""
import functools
import os
import re

import cuda_check
from grading import official_tree
from grading import programs
from grading import recipe
from grading import submission
from grading import workplace
from rules import foreign_files
from rules import own_work
from sandbox import limited
from sandbox.confine import confined

SECONDS = 10
MOST_BYTES = 16 << 20  # of the output; the headers of the library have 2 MB
MOST_LINES = 10_000  # that a directive spans
MOST_OWN = submission.MAX_BYTES  # letters of a file, its macros replaced: one of 50 letters can make millions
PLAIN_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:<[\w./+-]+>|"(?P<ours>[\w./+-]+)")[ \t\r]*(?://[^\n\\]*)?$', re.M)
UNUSUAL = re.compile(r'#|%:|\?\?|\\[ \t\v\f\r]*\n|R"')  # a directive, a line that goes on, a raw text
# "# 3 "name" 1" and #line change what the preprocessor says about the place of a line. Each becomes a pragma first. (A
# comment between "#" and the name, which nobody writes, could hide them.)
SPLICE = r"(?:\\[ \t\v\f\r]*\n)*"
GAP = r"(?:[ \t\v\f]|\\[ \t\v\f\r]*\n)*"
DIRECTIVE = rf"(?<!#)(?<!%:)(#|%{SPLICE}:|\?{SPLICE}\?{SPLICE}=){GAP}"
PLACE_OF_A_LINE = re.compile(rf"{DIRECTIVE}(?:{SPLICE.join('line')}(?!\w)|\d)")
COMMENT_BEHIND = re.compile(rf"{DIRECTIVE}/{SPLICE}\*")
MARKER = re.compile(r'# (\d{1,9}) "((?:[^"\\]|\\.)*)"')
RAW = re.compile(r'R"([^()\\\s"]{0,16})\(')


@functools.lru_cache(maxsize=None)
def is_of_ours(header):
    return header in own_work.files_of_ours() and not header.endswith((".cpp", ".cu"))


def is_plain(text):
    """True if a preprocessor would only include headers and remove comments."""
    without = PLAIN_INCLUDE.sub(lambda found: found[0] if found["ours"] and not is_of_ours(found["ours"]) else "", text)
    return UNUSUAL.search(without) is None


def end_of_raw_text(line, end):
    """What ends the raw text that goes on behind this line, None if there is none; end: the same for the line before."""
    at = 0
    while True:
        begin = RAW.search(line, at) if end is None else None
        stop = -1 if end is None else line.find(end, at)
        if begin:
            at, end = begin.end(), f'){begin[1]}"'
        elif stop >= 0:
            at, end = stop + len(end), None
        else:
            return end


def own_lines(output, is_own):
    """The lines of a preprocessor's output that come from files of the student's, pragmas included; is_own: tells it from
    a path."""
    found, own, end = [], False, None
    for line in output.split("\n"):
        if end is None and (marker := MARKER.match(line)):
            own = is_own(marker[2])
            if own:  # line n of a file becomes line n of the result, unless the file was given out of order
                before = max(int(marker[1]) - 1, 0)
                while len(found) > before and not found[-1]:  # GCC prints a blank line too many before some markers
                    found.pop()
                found += [""] * min(before - len(found), MOST_LINES)
        elif own:
            found.append(line)
            end = end_of_raw_text(line, end)
    return "\n".join(found)


def own_texts(handed_in, stage):
    """{name: text} of the files of a stage."""
    return {name: handed_in.files[name].decode("utf-8", "replace") for name in submission.names([stage])
            if name in handed_in.files}


def hides_a_directive(text):
    """True if a comment stands between "#" and the name of a directive."""
    return COMMENT_BEHIND.search(text) is not None


def not_plain(mine):
    return [name for name, text in mine.items() if not is_plain(text)]


def texts(handed_in, stage, every=False):
    """{name of a file: its text as the compiler reads it} for the files of a stage that are not plain; every: for all. A
    text with more than MOST_OWN letters is cut off behind the next one. None in place of a text: the preprocessor did
    not end, or ended with an error."""
    mine = own_texts(handed_in, stage)
    wanted = list(mine) if every else not_plain(mine)
    if not wanted:
        return {}
    if any(hides_a_directive(text) for text in mine.values()):
        return dict.fromkeys(wanted)
    steps, include = recipe.recipe(stage.number), official_tree.prepare() / stage.number
    workplace.PLACE.mkdir(parents=True, exist_ok=True)
    with workplace.temporary("text") as folder:
        place = programs.Programs(handed_in, folder).folder
        for name, text in mine.items():
            (place / name).write_text(PLACE_OF_A_LINE.sub(r"\1pragma ", text), encoding="utf-8")
        return {name: text_of(name, mine, steps, include, place, stage) for name in wanted}


def text_of(name, mine, steps, include, place, stage):
    out = place / "out"
    out.mkdir(exist_ok=True)
    words = steps.compile_command(name, out / "text", headers=include)
    words = [word for word in words[words.index(steps.compiler):] if word != "-c"]
    words += cuda_check.INCLUDES if stage.is_emulated else []
    command = confined([*words, "-E", "-w"], reads=[include, *(place / one for one in mine),
                                                    *(programs.EMULATOR if stage.is_emulated else [])],
                       writes=[out], compiles=True, seconds=SECONDS, file=MOST_BYTES)
    ended = limited.run_patiently(command, place, SECONDS, programs.is_a_verdict)
    if ended.code != 0:
        return None
    ours = [str(path) for path in (include, *programs.EMULATOR)]

    @functools.lru_cache(maxsize=None)
    def is_own(path):
        path = os.path.normpath(path)
        return not (path.startswith("<") or foreign_files.is_below(path, ours) or foreign_files.LIBRARY.match(path))
    output = (out / "text").read_bytes().decode("utf-8", "replace")  # "\r" ends no line
    return own_lines(output, is_own)[:MOST_OWN + 1]
