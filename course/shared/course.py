"""What the commands of the course share: the registry of stages, and the messages."""
import contextlib
import functools
import hashlib
import json
import os
import re
import subprocess

import repository
from mistakes import catalogue
from repository import BUILD, ROOT, Problem
from shared import screen
from shared.screen import columns, doing, padded, paint, tell, width, wrapped  # noqa: F401  (for those who import this)

HANDOUTS = {"en": "README.md", "zh": "README.zh.md"}


def language():
    for name in ("STAGECRAFT_LANG", "LC_ALL", "LANG"):
        if os.environ.get(name):
            return "zh" if os.environ[name].startswith("zh") else "en"
    return "en"


@contextlib.contextmanager
def in_language(chosen):
    """Texts inside of this block are in that language."""
    before = os.environ.get("STAGECRAFT_LANG")
    os.environ["STAGECRAFT_LANG"] = chosen
    try:
        yield
    finally:
        if before is None:
            del os.environ["STAGECRAFT_LANG"]
        else:
            os.environ["STAGECRAFT_LANG"] = before


def read_json(path):
    """The content of a JSON file of this repository."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise Problem(f"{path.relative_to(ROOT)}: expected JSON: {problem}. Did a merge stop in this file? git status says "
                      "so") from None


@functools.cache
def messages():
    return read_json(ROOT / "stages" / "messages.json")


def page(lines):
    screen.page(lines, say("pager"))


def without_login(text):
    """The text with no user and no password in its URLs: tables and feedback are read by others."""
    return re.sub(r"(\w://)[^/\s'\"]*@", r"\1", text)


def say(key, *values):
    """A text of stages/messages.json in the reader's language, like the gates' own say()."""
    values = [without_login(value) if isinstance(value, str) else value for value in values]
    return messages()[key][language()].format(*values)


def number_in_environment(name, usual):
    """The whole number in a variable of the environment; usual: if it is not set."""
    text = os.environ.get(name)
    if text and not (text.isdecimal() and int(text) < 1 << 64):
        raise Problem(say("environment_number", name, text))
    return int(text) if text else usual


def listed(names):
    """The names as a list inside of a sentence, in the reader's language."""
    return {"en": ", ", "zh": "、"}[language()].join(names)


def blob_hash(text):
    """Git's hash of a file with these bytes."""
    return hashlib.sha1(b"blob %d\0" % len(text) + text).hexdigest()


class Stage:
    """One entry of stages/stages.json."""

    def __init__(self, entry):
        self.id = entry["id"]
        self.slug = entry["slug"]
        self.title = entry["title"]
        self.minutes = entry["minutes"]
        self.functions = entry["functions"]
        self.groups = entry["groups"]
        self.units = entry["units"]
        self.needs = entry["needs"]
        self.rounds = entry.get("in_the_model", {}).get("rounds", False)  # differently from f32
        self.program = entry.get("program", "story")  # the command in which its effect is heard
        self.needs_whole_engine = entry.get("whole_engine", False)  # its worker opens models of other formats
        self.is_optional = entry.get("optional", False)  # it counts only for students who begin it
        self.is_emulated = self.units[0]["file"].endswith(".cu")  # CUDA, which runs on the emulator
        self.milestone = entry.get("milestone")  # what the student now has, per language

    @property
    def number(self):  # as in names of folders and targets
        return f"{self.id:02d}"

    @property
    def folder(self):
        return ROOT / "stages" / f"{self.number}-{self.slug}"

    @property
    def handout(self):  # in the reader's language
        return self.folder / HANDOUTS[language()]

    @property
    def pages(self):
        """The handout's pages in reading order: the first page, and one page per part if the stage has parts."""
        ending = HANDOUTS[language()].removeprefix("README")
        parts = (path for path in self.folder.glob("[1-9]-*.md") if path.name.partition(".")[2] == ending[1:])
        return [self.handout, *sorted(parts)]

    def with_part(self, part):
        """How commands name the stage, or a part of it: "6" or "6.3"."""
        return f"{self.id}.{part}" if part else f"{self.id}"

    def page(self, part):
        return self.pages[part] if self.has_pages else self.handout

    @property
    def has_pages(self):  # one page per part
        return len(self.pages) > 1

    def files_called_by(self, file):
        """The files of this stage whose functions a file calls. In its test they are the student's own."""
        return next((unit.get("calls", []) for unit in self.units if unit["file"] == file), [])

    @property
    def file_names(self):  # as a sentence names them
        return listed(unit["file"] for unit in self.units)

    @property
    def points(self):
        return sum(group["points"] for group in self.groups)

    @property
    def timed(self):
        """The names of the groups whose points are for speed."""
        return [group["name"] for group in self.groups if "bands" in group and not self.is_emulated]

    @property
    def requests(self):  # where the last run of the gate kept its requests
        return ROOT / "build" / "course" / f"requests-{self.number}"

    @property
    def my_tests(self):
        return self.folder / "my_tests.cpp"

    def path(self, unit):
        return self.folder / unit["file"]

    def is_handed_out(self, unit):
        """True if the file of a unit equals its starter, byte for byte."""
        path = self.path(unit)
        return path.exists() and blob_hash(path.read_bytes()) == unit.get("starter")

    def is_marked(self, unit):
        """True if a line NOT_IMPLEMENTED(...) of the starter is still in the file of a unit."""
        path = self.path(unit)
        return path.exists() and b"NOT_IMPLEMENTED(" in path.read_bytes()

    @property
    def is_started(self):
        """True if a file is not the starter. An optional stage whose files were all deleted is not begun."""
        there = any(self.path(unit).exists() for unit in self.units)
        return (there or not self.is_optional) and not all(map(self.is_handed_out, self.units))

    @property
    def is_expected(self):
        """True if the stage counts. An optional stage counts only if the student began it."""
        return not self.is_optional or self.is_started

    def starter(self, unit):
        """The starter of a unit, byte for byte. If its file has changed, git still has the starter."""
        if self.is_handed_out(unit):
            return self.path(unit).read_bytes()
        ask = ["git", "-C", str(ROOT), "cat-file", "blob", unit.get("starter", "none")]
        try:
            done = subprocess.run(ask, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        except OSError:
            raise Problem(say("git_missing")) from None
        if done.returncode != 0:
            raise Problem(say("no_starter", self.path(unit).relative_to(ROOT)))
        return done.stdout


def unit_name(stage, unit):
    """The path of a unit's file in any repository."""
    return f"stages/{stage.folder.name}/{unit['file']}"


def stages():
    return [Stage(entry) for entry in read_json(ROOT / "stages" / "stages.json")["stages"]]


def starters():
    """All starters: {path in any repository: bytes}."""
    return {unit_name(stage, unit): stage.starter(unit) for stage in stages() for unit in stage.units}


def find_stage(text, known):
    for stage in known:
        if text in (str(stage.id), stage.number, stage.slug):
            return stage
    number, dot, _ = text.partition(".")
    if dot and number in (str(stage.id) for stage in known):
        raise Problem(say("whole_stage", text, number))
    raise Problem(say("no_stage", text, known[-1].id))


def find_part(text, known):
    """'6.3' -> stage 6 and 3, a part that has groups of points; '6' -> stage 6 and None."""
    number, dot, part = text.partition(".")
    stage = find_stage(number, known)
    if not dot:
        return stage, None
    parts = sorted({group["part"] for group in stage.groups if "part" in group})
    if part not in map(str, parts):
        raise Problem(say("no_part", text, stage.id, parts[0], parts[-1]) if parts else say("no_parts", text, stage.id))
    return stage, int(part)


def parse_selection(text, known, whole_class=False):
    """'1-3', '1,4', 'all' -> stages. whole_class: 'all' includes the optional stages that were not begun here."""
    if text == "all":
        return [stage for stage in known if whole_class or stage.is_expected]
    chosen, slugs = set(), {stage.slug for stage in known}
    for part in text.split(","):
        first, _, last = part.partition("-")
        is_range = first and last and part not in slugs
        low = find_stage(first if is_range else part, known).id
        high = find_stage(last, known).id if is_range else low
        if low > high:
            raise Problem(say("lower_first", part))
        chosen.update(range(low, high + 1))
    return [stage for stage in known if stage.id in chosen]


def mistakes(stage):
    """The mistakes of a stage that have a sentence: {name: {"en", "zh"}}."""
    programs = catalogue.entries(catalogue.folder_of(stage))
    return {catalogue.name_of(program): program for program in programs if catalogue.kind(program) == "named"}


def mistakes_folder(stage):
    """The folder of a stage's wrong programs, once they are built."""
    return BUILD / "course" / "mistakes" / f"{stage.number}-{stage.slug}"


main = functools.partial(repository.main, tell=tell)
