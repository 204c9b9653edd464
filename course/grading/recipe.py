"""How a program with a student's files in it is made: what ninja would run, for files that lie elsewhere.

So one build serves a whole class: only what is the student's is compiled, and then linked with ours.
"""
import functools
import shlex
import subprocess

from shared import course

EMULATED = course.ROOT / "tools" / "cuda_compile.py"
WITH_ONE = ("-MT", "-MF", "-o", "-c")  # options of a compiler that take the next word


def ninja_runs(output):
    """The words of the command that makes a file, relative to BUILD."""
    done = subprocess.run(["ninja", "-C", str(course.BUILD), "-t", "commands", "-s", output], check=True,
                          stdout=subprocess.PIPE, text=True)
    words = shlex.split(done.stdout)
    while ":" in words and "&&" in words:  # ": && c++ ... && :"
        words = words[words.index("&&") + 1:]
        words = words[:words.index("&&")]
    return words


def without_outputs(words):
    """A compiler's command without what it reads, what it writes and the notes for ninja."""
    rest = []
    skip = False
    for word in words:
        if not skip and word not in (*WITH_ONE, "-MD"):
            rest.append(word)
        skip = word in WITH_ONE and not skip
    return rest


class Recipe:
    """A program of tests/ for one stage: worker_02, worker_02_asan."""

    def __init__(self, stage, program):
        link = ninja_runs(f"course/{program}")
        self.compile = {}  # {"stages/02-rms-norm/rms_norm.cpp": words}
        self.compiler = link[0]
        self.link = []  # the student's objects are names in it
        for word in link[:]:
            name = next((name for name in map(functools.partial(course.unit_name, stage), stage.units)
                         if word.endswith(f"{name}.o")), None)
            if name:
                words = without_outputs(ninja_runs(word))
                # Past ccache, which would have to write its cache on the student's behalf.
                self.compile[name] = words[words.index(self.compiler):]
                if stage.is_emulated:  # our script, which calls the compiler
                    begin = next(at for at, word in enumerate(words) if word == str(EMULATED))
                    self.compile[name] = [*words[begin - 2:begin + 1], "--no-cache", *self.compile[name]]
            self.link.append(name or word)
        at = self.link.index("-o")
        del self.link[at:at + 2]

    def compile_command(self, name, out, headers):
        """headers: stands for our src/, of which a student sees the stage's headers alone. What is compiled
        does not know where they lie, as it could print that."""
        words = [f"-I{headers}" if word == f"-I{course.ROOT / 'src'}" else word
                 for word in self.compile[name]]
        return [*words, f"-ffile-prefix-map={headers}=src", "-o", str(out), "-c", name]

    @property
    def ours(self):
        """The objects and archives that the student's are linked with, relative to BUILD."""
        return [word for word in self.link if word.endswith((".o", ".a"))]

    def link_command(self, objects, out):
        """objects: {name: its object}. To be run in BUILD."""
        return [*(str(objects.get(word, word)) for word in self.link), "-o", str(out)]


@functools.lru_cache(maxsize=None)
def recipe(number, kind=""):
    """Of worker_NN, or worker_NN with that ending."""
    stage = course.find_stage(number, course.stages())
    return Recipe(stage, f"worker_{number}{kind}")
