"""Tests a stage as the student has written it in this repository: builds its worker, and runs the gate on it."""
import secrets

from rules import refusal
from shared import course
from shared import lock
from testing import build_errors
from testing import building
from testing import gate
from testing import verdict


def one_at_a_time(stage):
    """A block in which no other process judges this stage here: both would build the same worker, and write the same
    folder of requests. It is also for those who read this folder."""
    return lock.held(stage.requests.with_suffix(".lock"), course.say("test_waits", stage.id))


def test(stage, explain=False, seed=None):
    """Builds the student's files of a stage and runs the gate on them.

    explain: if they are wrong, look for the known mistake. seed: as in gate.run.
    """
    for unit in stage.units:
        if not stage.path(unit).exists():
            why = course.say("file_missing", stage.path(unit).relative_to(course.ROOT), stage.id, unit["file"])
            return verdict.not_judged(stage, why, "missing")
    with one_at_a_time(stage):
        return build_and_judge(stage, explain, seed)


def build_and_judge(stage, explain, seed):
    refused = refusal.why(stage, refusal.texts_here(stage))
    engine = ["engine"] if stage.needs_whole_engine else []
    problem = refused or building.build("gate", *engine, f"worker_{stage.number}")
    if problem is None:
        problem = refused = refusal.why_here(stage) or None
    if refused:
        return verdict.not_judged(stage, refused, "refused")
    if not building.has(stage):
        return verdict.not_here(stage)
    if problem is not None:
        if f"stages/{stage.number}-{stage.slug}/" not in problem:
            raise course.Problem(course.say("build_failed", build_errors.first_error(problem)))
        return verdict.not_judged(stage, build_errors.why_not_built(problem, f"course/worker_{stage.number}"))
    worker = course.BUILD / "course" / f"worker_{stage.number}"
    seed = course.number_in_environment("STAGE_SEED", seed or secrets.randbits(63))
    with course.doing(course.say("doing_test", stage.id)):
        result = gate.judge(stage, worker, seed, stage.requests,
                            lambda found: building.build_mistakes(stage, found=found) if explain else None)
    result.seed = seed
    return result
