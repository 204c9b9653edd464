"""./stage bench --mine 0-10: what each stage about speed gains in the student's own model, and the engine's speed.

Each program writes the same text with the same settings and threads.
"""
import os
import re
import subprocess
import time

from shared import course
from mine import real_program

PROMPT = "Once upon a time"
RUNS = 3
SECONDS = 20  # per program: a slow one is run less often
SPEED = re.compile(r"\[\d+ tokens, (\d+(?:\.\d+)?) tokens/s")


def rungs(chosen):
    """[(the new stage, all stages that are the student's)]: first without the stages about speed, then one more
    each."""
    chosen = [stage for stage in chosen if not stage.is_emulated]  # its speed says nothing about a GPU
    base = [stage for stage in chosen if not stage.timed]
    faster = [stage for stage in chosen if stage.timed]
    return [(None, base)] + [(stage, base + faster[:at + 1]) for at, stage in enumerate(faster)]


def tokens_per_second(program, words):
    """The best of several runs, because other load on the machine can only make a run slower. program: a path, absolute
    or relative to course.BUILD."""
    environment = {name: value for name, value in os.environ.items() if name != "STAGECRAFT_CALLS"}
    best, end = 0.0, time.monotonic() + SECONDS
    for _ in range(RUNS):
        done = subprocess.run([str(course.BUILD / program), *words], env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
        found = SPEED.search(done.stderr)
        if done.returncode != 0 or not found:
            raise course.Problem(done.stderr.strip().splitlines()[-1] if done.stderr.strip()
                                 else course.say("gain_failed", done.returncode))
        best = max(best, float(found[1]))
        if time.monotonic() > end:
            break
    return best


def selection(stages):
    """'0-8' for the stages 0 to 8; '0,2' for stages with a gap."""
    ids = [stage.id for stage in stages]
    in_a_row = ids == list(range(ids[0], ids[-1] + 1))
    return f"{ids[0]}-{ids[-1]}" if in_a_row and len(ids) > 1 else ",".join(map(str, ids))


def gain(chosen, model, threads, tokens):
    real_program.check_gates(chosen)
    words = ["story", PROMPT, "--temperature", "0", "--threads", str(threads), "-n", str(tokens)]
    words += ["--model", model] if model else []
    course.tell(course.say("gain_head", model or "models/story", threads, tokens, PROMPT))
    before = None
    for new, stages in rungs(chosen):
        if not stages:
            continue
        with real_program.built(stages) as program:
            speed = tokens_per_second(program, words)
        ids = selection(stages)
        name = course.say("gain_stages", ids) if new is None else course.say("gain_with", new.id, ids)
        times = course.say("gain_times", speed / before) if before else ""
        print(row(name, speed, times), flush=True)
        before = before or speed
    speed = tokens_per_second("src/stagecraft", words)
    print(row(course.say("gain_engine"), speed, course.say("gain_times", speed / before) if before else ""))
    return 0


def row(name, speed, times):
    return f"  {course.padded(name, 17)}{speed:>8.0f} tokens/s   {times}".rstrip()
