"""Runs code that crashed or wrote to a wrong place again, with AddressSanitizer, UndefinedBehaviorSanitizer and all
assertions, to find the line and the reason."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import typing

from shared import course
from testing import building

SECONDS = 30
MOST_BYTES = 4 << 20
MOST_LETTERS = 2000  # per line
COMPLAINT = re.compile(r"AddressSanitizer: .*|runtime error: .*")
ASSERTED = re.compile(r".*Assertion .* failed")
WHOSE = re.compile(r"(\w+)(?:<[^()]*?>)?::(operator\(\)|operator\[\]|\w+)\(.*(Assertion .*)")
ACCESS = re.compile(r"^(READ|WRITE) of size \d+", re.M)  # the second line of a complaint
# What follows tells the history of the memory, not of its use.
HISTORY = re.compile(r"^(?=freed by |previously allocated by |allocated by |Address \S+ is located in stack)", re.M)
# Addresses help nobody, and differ from run to run.
NOISE = re.compile(r" on (unknown )?address 0x.*| \(pc 0x.*")


# What a complaint means: a key of messages.json.
MEANS = {"stack-overflow": "crash_stack", "heap-use-after-free|use-after-return|use-after-scope": "crash_freed",
         "use-after-poison, READ of size ([0-9]+)": "crash_reads_between",  # the worker poisons the gaps
         "use-after-poison, WRITE of size ([0-9]+)": "crash_writes_between",
         ".*, READ of size ([0-9]+)": "crash_reads_outside", ".*, WRITE of size ([0-9]+)": "crash_writes_outside"}


def meaning(complaint):
    """[a line that says it in other words], if it is one of AddressSanitizer's."""
    for pattern, key in MEANS.items():
        if found := re.match(f"AddressSanitizer: (?:{pattern})", complaint):
            return [course.say(key, *found.groups())]
    return []


def first_complaint(text):
    for line in text.splitlines():
        asserted, found = ASSERTED.match(line), COMPLAINT.search(line)
        if asserted:
            whose = WHOSE.search(asserted[0])  # an assertion of a view or a span, in the compiler's long words
            return "{}::{}: {}".format(*whose.groups()) if whose else asserted[0]
        if found:
            access = ACCESS.search(text)
            return NOISE.sub("", found[0]) + (f", {access[0]}" if access else "")
    return ""


class Place(typing.NamedTuple):
    """A line in a student's file, and the name of the message that says what happened there."""
    file: str
    line: int
    message: str = "crash_at"
    caller: str = ""  # "FILE:LINE" in another file of the student that called it


def own_line(text, stage):
    """The first place in the student's files, or None. If only other code used the memory, it is the place that freed
    the memory, or that it comes from."""
    names = "|".join(re.escape(course.unit_name(stage, unit)) for unit in stage.units)
    message = "crash_at"
    for part in HISTORY.split(text):
        found = re.findall(rf"({names}):(\d{{1,9}})\b", part)
        if found:
            (file, line), *callers = found
            caller = next((f"{other}:{at}" for other, at in callers if other != file), "")
            return Place(file, int(line), message, caller)
        message = "crash_freed_at" if message == "crash_at" and "\nfreed by" in text else "crash_memory_at"
    return None


def printed(words):
    """The output of a command, or ""; the code in it may print without end, and in one line."""
    environment = dict(os.environ, ASAN_OPTIONS="handle_abort=1", UBSAN_OPTIONS="print_stacktrace=1")
    with subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, start_new_session=True) as child:
        timer = threading.Timer(SECONDS, end, [child])
        timer.start()
        try:
            said = child.stdout.read(MOST_BYTES + 1)
        finally:  # also after Ctrl-C
            end(child)
            timer.cancel()
    if len(said) > MOST_BYTES:
        return ""
    lines = said.decode("utf-8", "replace").splitlines()
    return "\n".join(line[:MOST_LETTERS] for line in lines)


def end(child):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def ask(worker, request, stage, command=list):
    """(the sanitizers' message, the place in the student's files) for a worker that was built with them.

    command: turns the words of a command into those to run.
    """
    with tempfile.TemporaryDirectory() as folder:
        response = pathlib.Path(folder, "response")  # the only file that it may write
        response.touch()
        said = printed(command([str(worker), str(request), str(response)]))
    complaint = first_complaint(said)
    return complaint, own_line(said, stage) if complaint else None


def in_words(complaint, place, source):
    """Lines for the student; source: the text of the file that the place is in. complaint: None if no sanitizer ran."""
    if complaint is None:
        return []
    if not complaint:
        return [course.say("crash_nothing_found")]
    said = [complaint, *meaning(complaint)]
    if place is None:
        return said
    lines = source.splitlines()
    line = lines[place.line - 1].strip() if 0 < place.line <= len(lines) else ""
    called = [course.say("crash_caller", place.caller)] if place.caller else []
    return [*said, course.say(place.message, f"{place.file}:{place.line}"), f"  {line}", *called]


def where_it_happens(stage, request, doubtful=False):
    """Lines for the student; none if this machine has no sanitizer. doubtful: the failure may have nothing to do with
    memory; then the lines may be empty, too."""
    target = f"worker_{stage.number}_asan"
    course.tell(course.say("wrong_building" if doubtful else "crash_building"), sys.stderr)
    worker = course.BUILD / "course" / target
    # The build for the test has shown the warnings.
    if building.build(target, warn=False) is not None or not worker.exists():
        return []
    complaint, place = ask(worker, request, stage)
    if doubtful and complaint == "":
        return [course.say("wrong_nothing_found")]
    return in_words(complaint, place, (course.ROOT / place[0]).read_text(errors="replace") if place else "")
