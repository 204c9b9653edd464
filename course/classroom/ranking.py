"""Ranks the programs by speed, under nicknames, if the teacher's course.json says "ranking": true.

A student takes part with a nickname in their own course.json, once all stages that count are right. grading/score.py
measures.
"""
import collections
import hashlib
import json
import traceback

from grading import official_tree
from grading import programs
from grading import score
from grading import submission
from shared import atomic
from shared import course
from shared import official

FILE = "scores.json"  # stored measurements, so that only new programs are measured
Place = collections.namedtuple("Place", "speed nickname id")


def is_wanted(settings):
    found = settings.get("ranking", False)
    if not isinstance(found, bool):
        raise official.unexpected("ranking", "true or false", found)
    return found


def stages_of(run):
    return [stage for stage in run.stages if not stage.is_optional]


def competitors(run):
    """[(id, submission)], one per shared repository."""
    counted = {stage.id for stage in stages_of(run)}
    for record in run.records:
        if not record.result or run.graded_as[record.id, record.newest.sha] != record.id:
            continue
        states = {entry["status"] for entry in record.result["stages"] if entry["id"] in counted}
        handed_in = run.versions[record.id].handed_in(record.newest.sha)
        if handed_in.nickname and states and states <= {"passed", "slow"}:
            yield record.id, handed_in


def key_of(handed_in, stages):
    """The key under which a score is stored: all that it depends on, except the machine."""
    names = submission.names(stages)
    terms = [official_tree.fingerprint(), official_tree.compiler(),
             *(course.blob_hash(handed_in.files[name]) for name in names)]
    return hashlib.sha1(json.dumps(terms).encode()).hexdigest()


def places(run):
    """(the places, fastest first; {id: reason} for those who wanted a place and have none)"""
    path = run.classroom.folder / FILE
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    stages = stages_of(run)
    known, found, problems, texts = {}, [], {}, None
    for id, handed_in in competitors(run):
        key = key_of(handed_in, stages)
        speed = before.get(key)
        if speed is None:
            texts = texts or score.Texts(run.classroom.seed("ranking", ""))
            try:
                with course.doing(course.say("doing_score", id)):
                    speed = score.score(handed_in, stages, texts)
            except programs.NotMade as problem:
                problems[id] = str(problem)
                continue
            except Exception as problem:  # over this program: the class's page does not depend on it
                traceback.print_exc()
                problems[id] = type(problem).__name__
                continue
        known[key] = speed
        if speed:
            found.append(Place(speed, handed_in.nickname, id))
        else:
            problems[id] = course.say("score_other_text")
    atomic.write(path, json.dumps(known, indent=1) + "\n")
    return sorted(found, reverse=True), problems
