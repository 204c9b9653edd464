"""Compiles and links what one student handed in, beside the official tree. Each stage is compiled separately, and only if
it is the student's own work (rules/refusal.py)."""
import errno
import os
import pathlib
import re
import signal
import sys

from rules import foreign_files
from rules import links
from rules import own_work
from rules import refusal
from sandbox import limited
from sandbox.confine import confined
from shared import course
from testing import build_errors
from grading import official_tree
from grading import recipe
from grading import workplace

COMPILE_SECONDS = 60
SOURCE_LINE = re.compile(r"^\S[^\n]*:\d+:(?:\d+:)? (?:fatal )?error: ", re.M)
NOT_READ = re.compile(
    r"fatal error: (?:cannot open file )?'?([^\s:']+)'?:? (?:No such file|Permission denied|file not found)")
STARVED = os.strerror(errno.EAGAIN)  # what programs say if they may start no more threads or processes
KILLED = signal.strsignal(signal.SIGKILL)  # what the gate says of a program that the system ended
# The script that compiles a stage for the CUDA emulator, and the headers that it includes.
EMULATOR = [course.ROOT / name for name in ("tools", "src/cuda_emulator")]
# For the linker: a program exports no names. Otherwise the C and C++ libraries would call a function of the program in
# place of their own one with this name, such as malloc.
PRIVATE = course.ROOT / "course" / "grading" / "private.map"


class NotMade(Exception):
    """A student's program cannot be built; the message is for the student."""


class Unsure(NotMade):
    """The compiler ended without a verdict: the machine may be to blame (no memory, no processes, no time)."""


class NotTheirs(NotMade):
    """It could be built, but it is not the student's own work (rules/refusal.py)."""


def is_a_verdict(said):
    """True if a compiler complains about a source, or a linker about names. Else the machine may be to blame."""
    return SOURCE_LINE.search(said) or links.failed(said)


class Programs:
    """The programs of one student, in a folder of their own: compiles the files, and links them with the official tree."""

    turns = workplace.Turns()

    def __init__(self, handed_in, folder):
        self.handed_in = handed_in
        self.folder = pathlib.Path(folder)
        for name, text in handed_in.files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)

    def compile(self, stage, kind=""):
        """Compiles the student's files of a stage: {name: its object}. Throws if they are not their own work."""
        steps = recipe.recipe(stage.number, kind)
        include = official_tree.prepare() / stage.number
        made = self.folder / f"{stage.number}{kind}"
        mine = [self.folder / name for name in steps.compile]  # the files that identify the stage
        texts = {name: self.handed_in.files[name].decode("utf-8", "replace") for name in steps.compile}
        self.refuse(refusal.why(stage, texts))
        objects = {name: made / "CMakeFiles" / "mine.dir" / f"{name}.o" for name in steps.compile}
        for name, out in objects.items():
            out.parent.mkdir(parents=True, exist_ok=True)
            emulator = EMULATOR if stage.is_emulated else []
            notes = out.with_suffix(".d")
            *words, dash_c, source = steps.compile_command(name, out, headers=include)
            assembled = None if stage.is_emulated or sys.platform == "darwin" else out.with_suffix(".s.d")
            if assembled:  # GNU's assembler notes which files it has read; Clang's own does not
                # -Wa would split a path at its commas.
                words += ["-Xassembler", "--MD", "-Xassembler", str(assembled),
                          *(["-fno-integrated-as"] if "clang" in official_tree.compiler() else [])]
            command = confined([*words, "-MD", "-MF", str(notes), dash_c, source],
                               reads=[include, *mine, *emulator], writes=[out.parent],
                               compiles=True, seconds=COMPILE_SECONDS)
            self.run(command, self.folder, name)
            self.refuse_other_files(name, notes, [include, *mine, *emulator])
            if assembled:
                self.refuse_assembled_files(name, assembled, notes)
        self.refuse(refusal.why(stage, {}, objects, () if kind else steps.ours))
        return objects

    def make(self, stage, kind=""):
        """Compiles the student's files of a stage and links its worker with them."""
        objects, steps = self.compile(stage, kind), recipe.recipe(stage.number, kind)
        worker = self.folder / f"{stage.number}{kind}" / "worker"
        words = steps.link_command(objects, worker)
        if not kind and not stage.is_emulated:
            # A student must not see the addresses of our functions, and libraries must not call the student's.
            words += ["-s", *(["-Xlinker", f"--version-script={PRIVATE}"] if sys.platform.startswith("linux") else [])]
        self.link(words, [*map(str, objects.values()), *steps.ours], worker)
        return worker

    def link(self, words, files, program):
        """words: the linker's command, to be run in BUILD. files: what it reads."""
        reads = [PRIVATE, *(course.BUILD / name for name in files)]
        command = confined(words, reads=reads, writes=[program.parent],
                           compiles=True, seconds=COMPILE_SECONDS)
        self.run(command, course.BUILD, program.name, files)

    @staticmethod
    def refuse(why):
        if why:
            raise NotTheirs(why)

    def refuse_other_files(self, name, notes, allowed):
        """notes: the compiler's list of files it has read. (If nothing is confined, it could read others.)"""
        read = foreign_files.files_of_rule(notes.read_text(encoding="utf-8", errors="replace"))
        read = [self.folder / path for path in read]
        foreign = foreign_files.foreign_file(name, read, allowed, [self.folder, course.ROOT])
        if foreign:
            self.refuse(course.say(*foreign))

    def refuse_assembled_files(self, name, notes, headers):
        """notes: the assembler's list of files it has read; a library of this machine, taken by .incbin, is code that
        can run. headers: the compiler's list."""
        known, here = ({os.path.realpath(self.folder / path) for path in foreign_files.files_of_rule(
            file.read_text(encoding="utf-8", errors="replace"))} for file in (headers, notes))
        foreign = sorted(path for path in here - known if not foreign_files.is_below(path, [os.path.realpath(self.folder)]))
        if foreign:
            self.refuse(course.say("own_assembled_file", name, foreign[0]))

    def run(self, command, folder, what, files=()):
        """Runs the compiler or the linker; files: the objects, for the linker."""
        with self.turns.together():
            ended = limited.run_patiently(command, folder, COMPILE_SECONDS, is_a_verdict)
        if ended.code != 0 and STARVED in ended.said and not is_a_verdict(ended.said):  # not an #error of the student's
            with self.turns.alone():
                ended = limited.run_patiently(command, folder, COMPILE_SECONDS, is_a_verdict)
        if ended.code == 0:
            return
        if ended.code is None or ended.cpu >= COMPILE_SECONDS - 1:
            problem = NotMade if ended.cpu > COMPILE_SECONDS / 2 else Unsure
            raise problem(course.say("grade_endless_compile", what, COMPILE_SECONDS, round(ended.cpu, 1)))
        if not is_a_verdict(ended.said):
            said = self.without_places(ended.said.strip()[-1000:])
            raise Unsure(course.say("grade_compiler_ended", what, ended.how, said))
        error = (build_errors.why_not_made(ended.said, files) if files
                else build_errors.first_error(self.without_places(ended.said)))  # first_error also shortens paths
        missing = NOT_READ.search(error)
        text = self.handed_in.files.get(what, b"").decode("utf-8", "replace")
        if missing and any(missing[1].endswith(name) for name in own_work.INCLUDE.findall(text)):
            error += f"\n{course.say('own_files_only', what)}"
        raise NotMade(self.without_places(error))

    def without_places(self, error):
        """A compiler's message with paths as in a student's repository, without the grader's own folders."""
        error = re.sub(rf"{re.escape(str(official_tree.prepare()))}/\d\d\b", "src", error)
        error = re.sub(rf"{re.escape(str(self.folder))}/\d\d(?:_asan)?/", "", error)
        for folder in (self.folder, course.BUILD, workplace.PLACE, course.ROOT):
            error = error.replace(f"{folder}/", "").replace(str(folder), ".")
        return error
