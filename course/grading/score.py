"""The score of a student's whole program: tokens per second on models/story, on one thread, if its text equals ours.

The program is the student's, so it is not trusted. Its tokens must equal those of the reference implementation, for a
prompt that no student knows. The kernel measures the CPU time of the process, which includes opening the model.
"""
import functools
import pathlib
import tempfile

from mine import mine_objects
from sandbox import limited
from sandbox.confine import confined
from shared import course
from grading import official_tree
from grading import programs
from grading import recipe
from grading import submission
from grading import workplace
from testing import gate

MODEL = course.ROOT / "models" / "story"
COMMON = ["--model", str(MODEL), "--threads", "1"]
BEGINNING, TOKENS = 16, 64
RUNS = 5
SECONDS = 60  # per run


def run(program, words):
    """Runs a program confined: (the ids of its tokens, or None; the seconds of CPU time)."""
    with tempfile.TemporaryDirectory(dir=gate.quick_folder()) as folder:
        ids = pathlib.Path(folder) / "ids"
        ids.touch()  # the only file that it may write
        command = confined([program, *words, "--save-ids", ids], reads=[MODEL], writes=[ids], seconds=SECONDS)
        ended = limited.run(command, folder, SECONDS + 5)
        try:
            said = submission.read_below(folder, ids.name)
        except submission.Refused:
            said = b""
    return said.decode("ascii", "replace").strip() if ended.code == 0 else None, ended.cpu


class Texts:
    """The texts that every program has to write, a new one in each run, so that none can be remembered: the words of
    the command line, and the expected ids."""

    def __init__(self, seed):
        official_tree.build("ranking")
        ours = course.BUILD / "src" / "stagecraft"
        self.expected = []
        for number in range(RUNS):
            begin, _ = run(ours, ["story", "Once upon a time", "--temperature", "1", "--seed", str(seed + number),
                                  "-n", str(BEGINNING), *COMMON])
            words = ["story", "--ids", begin or "0", "--temperature", "0", "-n", str(TOKENS), *COMMON]
            ids, _ = run(ours, ["story", "--textbook", *words[1:]])
            if not begin or not ids:
                raise course.Problem(f"{MODEL}: the reference implementation wrote no text")
            self.expected.append((words, ids))

    def tokens_per_second(self, program):
        """The best of the runs; 0 if a text differs."""
        speeds = []
        for words, expected in self.expected:
            ids, seconds = run(program, words)
            if ids != expected:
                return 0.0
            speeds.append((ids.count(",") + 1) / max(seconds, 0.001))
        return max(speeds)


@functools.lru_cache(maxsize=None)
def link_words():
    """The words that link the program of ./stage story --mine, without its name."""
    words = recipe.ninja_runs(mine_objects.program())
    at = words.index("-o")
    return words[:at] + words[at + 2:]


def link(work, chosen, students):
    """Links the program with these stages of a student; students: {number: paths of objects}."""
    program = work.folder / "program" / "stagecraft"
    program.parent.mkdir(exist_ok=True)
    objects = mine_objects.objects(chosen, students)
    words = [part for word in link_words() for part in (objects if word.startswith("@") else [word])]
    files = [word for word in words if word.endswith((".o", ".a"))]
    work.link([*words, "-s", "-o", str(program)], files, program)
    return program


def score(handed_in, stages, texts):
    """The best of the student's programs: with all these stages, or without those that round, because rounding may
    decide between two tokens. 0 if no text equals ours. Throws programs.NotMade."""
    with workplace.temporary("student") as folder:
        work = programs.Programs(handed_in, folder)
        students = {stage.number: list(map(str, work.compile(stage).values())) for stage in stages}
        return max(texts.tokens_per_second(link(work, chosen, students))
                   for chosen in (stages, [stage for stage in stages if not stage.rounds]))
