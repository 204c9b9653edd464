"""Builds targets with ./stage build, and says in a student's words why a build failed."""
import json
import re
import subprocess
import sys

from rules import links
from sandbox import confine
from shared import course

WHAT_IS_BUILT = {"worker": "build_stage", "counted": "build_stage", "my_tests": "build_my_tests",
                 "mistakes": "build_mistakes", "broken": "build_broken", "stagecraft_mine": "build_mine"}


def what_is_built(targets):
    """What these targets build, in words; the last target decides."""
    last = targets[-1].removeprefix("course/") if targets else ""
    key = next((key for name, key in WHAT_IS_BUILT.items() if last.startswith(name)), "build_engine")
    number = re.search(r"_(\d\d)", last)
    return course.say(key, int(number[1]) if number else "")


def build(*targets, only=False, warn=True):
    """Builds targets without output; also the program stagecraft, unless `only` is True. Returns the compiler's output
    if that fails, else None. The compiler's warnings about a student's file are shown, unless `warn` is False."""
    command = [str(course.ROOT / "stage"), "build", *(["--only"] if only else [])]
    if not (course.BUILD / "course" / "gate").exists():
        # The first build takes minutes and may ask for packages, so a person must see it.
        course.tell(course.say("first_build"), sys.stderr)
        if subprocess.run([*command, "gate"], stdout=sys.stderr).returncode != 0:
            raise course.Problem(course.say("first_build_failed"))
    if only and (course.BUILD / "course" / "confine").exists():
        # So that the build ends with this process, even after kill -9.
        command = confine.limited(command, seconds=3600)
    with course.doing(what_is_built(targets)):
        done = subprocess.run([*command, *targets], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace")
    if done.returncode != 0:
        return done.stdout
    for line in warnings(done.stdout) if warn else []:
        course.tell(line, sys.stderr)
    return None


def listed():
    """The objects of the engine and of each stage that this build has: {"core": paths, "stages": {number: ...}}."""
    path = course.BUILD / "course" / "mine.json"
    if not path.exists():  # the build may have been deleted although verdicts are still stored
        build()
    return json.loads(path.read_text(encoding="utf-8").replace("/./", "/"))


def has(stage):
    """False if this build leaves out the stage: it needs the emulator of a GPU, and there is none on this machine."""
    return not stage.is_emulated or stage.number in listed()["stages"]


def warnings(output):
    """A compiler's warnings about students' files, one line each, with short names of files."""
    found = (short(line.replace("../../", "")) for line in output.splitlines() if ": warning: " in line)
    return list(dict.fromkeys(line for line in found if line.startswith("stages/")))


def short(text):
    """The text with short names for the files of this repository."""
    return text.replace(f"{course.ROOT}/", "")


def first_error(output):
    """The compiler's first error with its lines of context, without the noise around it."""
    lines = output.splitlines()
    for at, line in enumerate(lines):
        if (": error:" in line or ": fatal error:" in line) and not links.failed(line):
            context = [short(line.replace("../../", ""))]
            for more in lines[at + 1:at + 4]:
                if not more.startswith(" "):
                    break
                context.append(more)
            return "\n".join(context)
    return output.strip()[-2000:]


def why_not_built(output, program):
    """The first error to fix, from the output of a build that failed; program: relative to course.BUILD."""
    files = links.object_files(course.BUILD, program) if links.failed(output) else []
    return why_not_made(output, files)


def why_not_made(output, files):
    """The same; files: the objects, if they were to be linked."""
    found = []
    if links.failed(output):
        functions = {stage.id: stage.functions for stage in course.stages()}
        found = links.why_not_linked(course.BUILD, files, functions)
    return "\n".join(course.say(*problem) for problem in found) or first_error(output)
