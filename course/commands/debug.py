"""./stage debug: runs the failing case in a debugger, as a process of its own.

The gate keeps its requests (STAGE_KEEP); a worker built for debuggers is started with the same request.
"""
import json
import os
import pathlib
import re
import shutil
import sys

from shared import course
from shared.parser import Parser
from testing import building
from testing import gate
from testing import stage_here
from testing import progress

# The rest of a debugger's command line: one option per breakpoint, one for exceptions, then run.
DEBUGGERS = {
    "gdb": (["-q", "-iex", "set debuginfod enabled off", "-iex", "set print frame-arguments scalars",
             "-x", str(course.ROOT / "course" / "commands" / "views.gdb")],
            "-ex", "break stagecraft::{}", "catch throw", "--args"),
    "lldb": ([], "-o", "breakpoint set --name stagecraft::{}", "breakpoint set -E c++", "--"),
}


def kept(stage, part=None):
    """The requests that the last test kept, in order; part: those of its groups only."""
    suites = {group["name"] for group in stage.groups if part in (None, group.get("part"))}
    found = (path for path in stage.requests.glob("*-*") if path.is_file())
    return sorted(path for path in found if part is None or suite_of(path) in suites)


def suite_of(request):
    """000-Rope.RotatesHeads-two_heads -> Rope"""
    return request.name.partition("-")[2].partition(".")[0]


def plain(text):
    """The text as the gate writes it in a file name."""
    return re.sub(r"[^A-Za-z0-9.-]+", "_", text).lower()


def pick(stage, text, part=None):
    """The request that the text names, failed ones first; without a text, the first that failed; part: of this part."""
    asked = kept(stage, part)
    failed = [path for _, path in gate.failed_requests(stage.requests) if path in asked]
    everything = failed + asked
    if text is None and failed:
        return failed[0]
    # A line of ./stage test has the name, a colon, and what the name means.
    attempts = [] if text is None else [text, re.split(": |：", text)[0]]
    for words in attempts:
        found = [path for path in everything if plain(words) in path.name.lower()]
        if found:
            return found[0]
    names = "".join(f"\n  {path.name}" for path in asked)
    where = stage.with_part(part)
    reason = course.say("debug_none", where) if text is None else course.say("debug_no_case", where, text)
    raise course.Problem(reason + names)


def function_of(request):
    """The function that a request calls, from the header of its safetensors file."""
    with request.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        return json.loads(file.read(length))["__metadata__"]["function"]


def copy_of(request):
    """A copy that the next test does not delete."""
    folder = request.parent.with_suffix(".debug")
    folder.mkdir(exist_ok=True)
    return pathlib.Path(shutil.copy(request, folder))


def command(debugger, stage, request, functions):
    options, each, stop, stop_at_throw, then = DEBUGGERS[debugger]
    steps = [word for function in functions for word in (each, stop.format(function))]
    worker = course.BUILD / "course" / f"worker_{stage.number}_debug"
    return [debugger, *options, *steps, each, stop_at_throw, each, "run", then, str(worker), str(request),
            str(request.with_name("response"))]


def find_debugger():
    names = ["lldb", "gdb"] if sys.platform == "darwin" else ["gdb", "lldb"]
    for name in names:
        if shutil.which(name):
            return name
    if sys.platform == "darwin":
        raise course.Problem(course.say("debug_no_debugger_mac"))
    kind = "debug_no_debugger" if shutil.which("apt-get") else "debug_no_debugger_other"
    raise course.Problem(course.say(kind))


def run():
    parser = Parser("debug")
    parser.add_argument("stage")
    parser.add_argument("case", nargs="?")
    options = parser.parse_args()
    stage, part = course.find_part(options.stage, course.stages())
    if stage.is_emulated:
        raise course.Problem(course.say("gpu_no_debugger", stage.id))
    debugger = find_debugger()
    if not stage.is_started:
        raise course.Problem(course.say("debug_unwritten", stage.id))
    with stage_here.one_at_a_time(stage):
        if not kept(stage) or progress.remembered(stage) is None:
            if progress.judge(stage).compile_error:
                raise course.Problem(course.say("debug_uncompiled", stage.id))
        request = pick(stage, options.case, part)
        copy = copy_of(request)
    problem = building.build(f"worker_{stage.number}_debug", warn=False)  # the test has shown them
    if problem is not None:
        raise course.Problem(course.say("debug_uncompiled", stage.id))
    function = function_of(request)
    functions = [function] if function in stage.functions else stage.functions
    course.tell(course.say("debug_case", request.name, course.listed(functions)), sys.stderr)
    course.tell(course.say(f"debug_keys_{debugger}"), sys.stderr)
    sys.stderr.flush()
    words = command(debugger, stage, copy, functions)
    os.execvp(words[0], words)


if __name__ == "__main__":
    sys.exit(course.main(run))
