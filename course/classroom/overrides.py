"""A teacher's corrections: overrides.csv beside the roster or in the folder of the class. A line replaces the mark of
one stage of one student, and stays valid until it is removed, whatever is graded later.

    id,stage,points,reason
    ann,3,30,her compiler was newer than ours
    bob,0-10,0,handed in cat's files

stage: as in ./stage test: 3, 1-4, all. Extra columns (who, when) are ignored. So are lines about students who are no
longer in the roster.
"""
import collections
import math

from shared import course
from classroom import class_folder

FILE = "overrides.csv"
COLUMNS = ("id", "stage", "points", "reason")
Override = collections.namedtuple("Override", "points reason")


def points_of(text, stage, where):
    try:
        points = float(text.replace(",", "."))
    except ValueError:
        points = math.nan
    if not 0 <= points <= stage.points:
        raise course.Problem(f"{where}: points: expected a number from 0 to {stage.points} for stage {stage.id}, "
                             f"found '{text}'")
    return points


def read(path, students, stages):
    """{(student id, stage id): Override}, and messages about lines that are ignored. path: of the file, or None if
    there is none."""
    if path is None:
        return {}, []
    names, lines = class_folder.read_table(path, COLUMNS)
    known = {student.id for student in students}
    found, ignored = {}, []
    for number, line in lines:
        id, chosen, points, reason = ((line[names[key]] or "").strip() for key in COLUMNS)
        where = f"{path}: line {number}"
        if not any((id, chosen, points, reason)):
            continue
        if id not in known:
            ignored.append(course.say("class_unknown_override", where, id))
            continue
        if not reason:
            raise course.Problem(f"{where}: reason: expected a reason, which {id} will read, found none")
        try:
            selected = course.parse_selection(chosen, stages, whole_class=True)
        except course.Problem as problem:
            raise course.Problem(f"{where}: {problem}") from None
        for stage in selected:
            if (id, stage.id) in found:
                raise course.Problem(f"{where}: stage: expected one line about stage {stage.id} of {id}, found two")
            found[id, stage.id] = Override(points_of(points, stage, where), reason)
    return found, ignored
