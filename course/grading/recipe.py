"""How to build a program with a student's files: the commands of ninja, changed for files in another folder.

So one build serves a whole class: only the student's files are compiled, and then linked with ours.
"""
import functools
import shlex
import subprocess

from shared import course

EMULATED = course.ROOT / "tools" / "cuda_compile.py"
WITH_ONE = ("-MT", "-MF", "-o", "-c")  # compiler options that take the next word


def ninja_runs(output):
    """The words of the command that makes a file, relative to BUILD."""
    try:
        done = subprocess.run(["ninja", "-C", str(course.BUILD), "-t", "commands", "-s", output], check=True,
                              stdout=subprocess.PIPE, text=True)
    except (OSError, subprocess.SubprocessError) as problem:  # no student can cause it
        raise course.Problem(f"{output}: {problem}") from None
    words = shlex.split(done.stdout)
    while ":" in words and "&&" in words:  # ": && c++ ... && :"
        words = words[words.index("&&") + 1:]
        words = words[:words.index("&&")]
    return words


def without_outputs(words):
    """A compiler's command without its input, its output and the dependency notes for ninja."""
    rest = []
    skip = False
    for word in words:
        if not skip and word not in (*WITH_ONE, "-MD"):
            rest.append(word)
        skip = word in WITH_ONE and not skip
    return rest


class Recipe:
    """A worker program of one stage: worker_02, worker_02_asan."""

    def __init__(self, stage, program):
        link = ninja_runs(f"course/{program}")
        self.compile = {}  # {"stages/02-rms-norm/rms_norm.cpp": words}
        self.compiler = link[0]
        self.link = []  # the student's objects are in it by name
        for word in link[:]:
            name = next((name for name in map(functools.partial(course.unit_name, stage), stage.units)
                         if word.endswith(f"{name}.o")), None)
            if name:
                words = without_outputs(ninja_runs(word))
                # Without ccache, which would have to write its cache with the student's rights.
                self.compile[name] = words[words.index(self.compiler):]
                if stage.is_emulated:  # the command begins with our script, which calls the compiler
                    begin = next(at for at, word in enumerate(words) if word == str(EMULATED))
                    self.compile[name] = [*words[begin - 2:begin + 1], "--no-cache", *self.compile[name]]
            self.link.append(name or word)
        at = self.link.index("-o")
        del self.link[at:at + 2]

    def compile_command(self, name, out, headers):
        """headers: replaces our src/ and holds only the headers of the stage. The compiled code does not contain its
        path, as it could print that."""
        words = [f"-I{headers}" if word == f"-I{course.ROOT / 'src'}" else word
                 for word in self.compile[name]]
        return [*words, f"-ffile-prefix-map={headers}=src", "-o", str(out), "-c", name]

    @property
    def ours(self):
        """The objects and archives that the student's objects are linked with, relative to BUILD."""
        return [word for word in self.link if word.endswith((".o", ".a"))]

    def link_command(self, objects, out):
        """objects: {name: its object}. To be run in BUILD."""
        return [*(str(objects.get(word, word)) for word in self.link), "-o", str(out)]


@functools.lru_cache(maxsize=None)
def recipe(number, kind=""):
    """The recipe of worker_NN, or of worker_NN + kind ("_asan")."""
    stage = course.find_stage(number, course.stages())
    return Recipe(stage, f"worker_{number}{kind}")
