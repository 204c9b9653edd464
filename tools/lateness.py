"""What a version of a stage counts, by when it was first seen here and what course.json says about deadlines.

Never by the dates of commits, which anyone can set. Keys of the teacher's course.json:

    "deadlines": {"all": "2026-12-01T23:59+01:00", "2": "2026-11-10T23:59+01:00"}
    "grace_hours": 12            until then nothing is late
    "late_percent_a_day": 10     of the points, for each day begun after that
"""
import collections
import datetime

import course
import official

Version = collections.namedtuple("Version", "sha at days")  # of a stage; days late


def moment(text, key):
    try:
        found = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
        if found.tzinfo is not None:
            return found
    except (ValueError, TypeError, AttributeError):
        pass
    raise course.Problem(f"{official.FILE}: {key}: expected a time with its zone, as 2026-12-01T23:59+01:00")


def number(settings, key, most):
    found = settings.get(key, 0)
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0 <= found <= most:
        raise course.Problem(f"{official.FILE}: {key}: expected a number from 0 to {most}")
    return found


class Rules:
    def __init__(self, settings, stages):
        deadlines = settings.get("deadlines", {})
        known = {"all", *(str(stage.id) for stage in stages)}
        if not isinstance(deadlines, dict) or not set(deadlines) <= known:
            raise course.Problem(f"{official.FILE}: deadlines: expected an object with a time for 'all' or for "
                                 "numbers of stages")
        self.deadlines = {key: moment(text, f"deadlines: {key}") for key, text in deadlines.items()}
        self.grace = datetime.timedelta(hours=number(settings, "grace_hours", 24 * 365))
        self.percent = number(settings, "late_percent_a_day", 100)

    def deadline(self, stage):
        return self.deadlines.get(str(stage.id), self.deadlines.get("all"))

    def days_late(self, stage, at):
        due = self.deadline(stage)
        if due is None or at <= due + self.grace:
            return 0
        return -((due + self.grace - at) // datetime.timedelta(days=1))

    def counted(self, points, days):
        return round(points * max(0.0, 1 - self.percent * days / 100), 2)

    def candidates(self, stage, seen, files_of):
        """The versions of a stage that can count: the newest, and the last that was not late.

        seen: [(sha, at)] in order. files_of: gives of a sha what identifies the stage's files in it.
        """
        first = {}  # when these files were first seen, in whichever commit
        for sha, at in seen:
            first.setdefault(files_of(sha), at)
        versions = []
        for sha, _ in seen:
            at = first[files_of(sha)]
            versions.append(Version(sha, at, self.days_late(stage, at)))
        if not versions:
            return []
        newest = versions[-1]
        in_time = next((one for one in reversed(versions) if one.days == 0), newest)
        return [newest] if files_of(in_time.sha) == files_of(newest.sha) else [newest, in_time]
