"""Builds targets with ./stage build."""
import json
import re
import subprocess
import sys

from sandbox import confine
from shared import course
from testing import build_errors

WARNINGS = course.ROOT / "build" / "course" / "warnings.json"  # {file: [hash of its text, its warnings]}
WHAT_IS_BUILT = {"worker": "build_stage", "counted": "build_stage", "my_tests": "build_my_tests",
                 "mistakes": "build_mistakes", "broken": "build_broken", "stagecraft_mine": "build_mine",
                 "storyteller_mine": "build_mine"}
# Targets that take minutes the first time: {target: (what it makes, what is said meanwhile)}. The gate is built before
# any other target; but what runs beside `stagecraft`, such as a mistake's story, needs no gate.
TAKE_MINUTES = {"gate": ("course/gate", "first_build"), "engine": ("src/libstagecraft.a", "first_engine"),
                "stagecraft": ("src/stagecraft", "first_program")}


def what_is_built(targets):
    """What these targets build, in words; the last target decides."""
    last = targets[-1].removeprefix("course/") if targets else ""
    key = next((key for name, key in WHAT_IS_BUILT.items() if last.startswith(name)), "build_engine")
    number = re.search(r"_(\d\d)", last)
    return course.say(key, int(number[1]) if number else "")


def build(*targets, limited=False, warn=True):
    """Builds targets without output. Returns the compiler's output if that fails, else None. The compiler's warnings
    about a student's file are shown, unless `warn` is False. limited: the build ends with this process, even after
    kill -9."""
    command = [str(course.ROOT / "stage"), "build", "--only"]
    long_builds = targets if "stagecraft" in targets else ("gate", *targets)
    for target, (path, message) in TAKE_MINUTES.items():
        # A person must see this build: ./stage may also ask whether to install packages.
        if target in long_builds and not (course.BUILD / path).exists():
            course.tell(course.say(message), sys.stderr)
            if subprocess.run([*command, target], stdout=sys.stderr).returncode != 0:
                raise course.Problem(course.say("first_build_failed"))
    if limited and (course.BUILD / "course" / "confine").exists():
        command = confine.limited(command, seconds=3600)
    with course.doing(what_is_built(targets)):
        done = subprocess.run([*command, *targets], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace")
    if done.returncode != 0:
        return done.stdout
    for line in with_earlier(warnings(done.stdout), targets) if warn else []:
        course.tell(line, sys.stderr)
    return None


def build_mistakes(stage, limited=False, found=None):
    """Builds the wrong programs that explain failures. Returns their folder, or None if there are none. found: the
    result to explain. The first build takes long, so its owner, who waits, sees the first failure meanwhile."""
    if not course.mistakes(stage):
        return None
    if found and not course.mistakes_folder(stage).exists():
        if found.first_wrong:
            course.tell(f"{found.first_wrong.name}: {build_errors.short(found.first_wrong.failures[0])}\n", sys.stderr)
        course.tell(course.say("first_mistakes"), sys.stderr)
    # If this build fails, the verdict only lacks the mistake's name. The build for the test has shown the warnings.
    problem = build(f"mistakes_{stage.number}", limited=limited, warn=False)
    return course.mistakes_folder(stage) if problem is None else None


def listed():
    """The objects of the engine and of each stage that this build has: {"stagecraft": paths, "storyteller": paths,
    "stages": {number: ...}}."""
    path = course.BUILD / "course" / "mine.json"
    if not path.exists():  # the build may have been deleted although verdicts are still stored
        build("gate")
    return json.loads(path.read_text(encoding="utf-8").replace("/./", "/"))


def has(stage):
    """False if this build leaves out the stage: it needs the emulator of a GPU, and there is none on this machine."""
    return not stage.is_emulated or stage.number in listed()["stages"]


def warnings(output):
    """A compiler's warnings about students' files, one line each, with short names of files."""
    found = (build_errors.short(line.replace("../../", "")) for line in output.splitlines() if ": warning: " in line)
    return list(dict.fromkeys(line for line in found if line.startswith("stages/")))


def with_earlier(new, targets):
    """These warnings, and those of an earlier build about the same text of the other files of these stages: a file that
    has not changed is not compiled again, and its warnings may still explain a failure."""
    try:
        known = json.loads(WARNINGS.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    lines = {}
    for line in new:
        lines.setdefault(line.partition(":")[0], []).append(line)
    known.update((file, [course.blob_hash((course.ROOT / file).read_bytes()), found]) for file, found in lines.items())
    if new:
        WARNINGS.parent.mkdir(exist_ok=True)
        WARNINGS.write_text(json.dumps(known), encoding="utf-8")
    numbers = {found[1] for target in targets if (found := re.search(r"_(\d\d)$", target))}
    is_of_them = re.compile(rf"stages/(?:{'|'.join(numbers)})-").match if numbers else lambda _: None
    return new + [line for file, (text, found) in known.items() for line in found
                  if file not in lines and is_of_them(file) and (course.ROOT / file).exists()
                  and course.blob_hash((course.ROOT / file).read_bytes()) == text]
