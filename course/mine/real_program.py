"""The real program with the student's functions: checks their stages, builds it, runs it."""
import contextlib
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from rules import links
from shared import course
from shared import lock
from testing import build_errors
from testing import building
from testing import progress
from mine import mine_objects
from mine import real_gpu

PLACE = course.ROOT / "build" / "course"


def check_gates(chosen):
    """Stages that cannot run are a Problem; those that earn no points run after a warning. True if there are none."""
    right = True
    for stage in chosen:
        result = progress.result_of(stage)
        status = result.status
        if status == "missing":
            raise course.Problem(result.compile_error)
        if status in ("unwritten", "uncompiled"):
            raise course.Problem(course.say(f"mine_{status}", stage.id))
        if status in ("wrong", "refused"):
            course.tell(course.say("mine_wrong", stage.id), sys.stderr)
            right = False
    return right


def build(chosen, on_gpu=False, ours="stagecraft"):
    """Compiles the chosen stages, looks for helpers that two of them define, and links the program. Builds ours, too,
    with which it is compared. on_gpu: nvcc compiles the kernels, not the emulator's compiler. ours: "storyteller" makes
    the smaller program of a first ./stage story."""
    problem = building.build(*mine_objects.targets(chosen, on_gpu))
    if problem is not None:
        raise course.Problem(build_errors.first_error(problem))
    kernels, options = [], []
    if on_gpu:
        kernels, options = real_gpu.objects(next(stage for stage in chosen if stage.is_emulated))
    objects = mine_objects.objects(chosen, on_gpu=kernels, ours=ours)
    found = links.clashes(course.BUILD, course.ROOT, [file for file in objects if links.stage_of(file)])
    if found:
        raise course.Problem("\n".join(course.say(*clash) for clash in found))
    mine_objects.write(objects, chosen, options, ours)
    problem = building.build(ours, f"{ours}_mine")
    if problem is not None:
        raise course.Problem(build_errors.why_not_made(problem, objects))


@contextlib.contextmanager
def built(chosen, on_gpu=False, ours="stagecraft"):
    """Builds the program, and yields a copy in a folder of its own: the next --mine command links its program in the
    same place."""
    PLACE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mine-", dir=PLACE) as folder:
        with lock.held(PLACE / "mine.lock", course.say("mine_waits")):
            build(chosen, on_gpu, ours)
            program = shutil.copy2(course.BUILD / mine_objects.program(ours), pathlib.Path(folder) / "stagecraft")
        yield program


def run(program, words, **options):
    """Runs a program to its end; returns how it ended. Signals that would end this process are left to the program."""
    running = []
    before = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        before[number] = signal.getsignal(number)
        if before[number] != signal.SIG_IGN:  # the terminal also sends Ctrl-C to the program
            signal.signal(number, lambda number, _: [child.send_signal(number) for child in running
                                                     if number != signal.SIGINT])
    try:
        running.append(subprocess.Popen([str(course.BUILD / program), *words], **options))
        return running[0].wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def read_ids(path):
    return path.read_text().strip().split(",") if path.exists() else []
