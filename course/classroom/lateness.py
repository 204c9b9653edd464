"""Which stages count, and what a version of a stage counts. This depends on when it was first seen here and on the
deadlines in course.json, never on the dates of commits, which anyone can set.

Keys of the teacher's course.json:

    "stages": "0-5"              the stages that count; default: all
    "deadlines": {"all": "2026-12-01T23:59+01:00", "2": "2026-11-10T23:59+01:00"}
    "grace_hours": 12            until then nothing is late
    "late_percent_a_day": 10     of the points, for each day begun after that
    "late_days": 5               per student; each moves one deadline by a day, for every stage due then

Columns of the roster, for one student: `extensions` ("all=+7 3=2026-11-20T23:59+01:00") and `late_days`.
"""
import collections
import copy
import datetime

from shared import course
from shared import official

Version = collections.namedtuple("Version", "sha at days")  # a version of a stage; days: how late it is
DAY = datetime.timedelta(days=1)
MOST_DAYS = 366
MOST_VERSIONS = 20  # of a stage, with different files
YEARS = 3000  # later years are refused


def time_of(text):
    """The moment that a text names, or None: a time needs its zone, and must be early enough to add days to it."""
    try:
        found = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except (ValueError, TypeError, AttributeError):
        return None
    return found if found.tzinfo is not None and found.year < YEARS else None


def when(at):
    """A moment as text, in its own time zone: UTC for a commit, the teacher's for a deadline."""
    return f"{at:%Y-%m-%d %H:%M %Z}" if at else "-"


def moment(text, key):
    found = time_of(text)
    if found is None:
        raise official.unexpected(key, "a time with its zone, for example 2026-12-01T23:59+01:00", text)
    return found


def number(settings, key, most):
    found = settings.get(key, 0)
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0 <= found <= most:
        raise official.unexpected(key, f"a number from 0 to {most}", found)
    return found


def whole(settings, key, most):
    found = number(settings, key, most)
    if found != int(found):
        raise official.unexpected(key, "a whole number of days", found)
    return int(found)


def deadlines(found, stages):
    """{stage id: its deadline or None}. found: times by "all", "3" or "1-2"; of two about a stage, the one about fewer
    stages holds."""
    if not isinstance(found, dict):
        raise official.unexpected("deadlines", "an object with a time for 'all' or for numbers of stages", found)
    chosen = []
    for key, text in found.items():
        try:
            selected = course.parse_selection(key, stages, whole_class=True)
        except course.Problem as problem:
            raise course.Problem(f"{official.FILE}: deadlines: {key}: {problem}") from None
        chosen.append((selected, moment(text, f"deadlines: {key}")))
    chosen.sort(key=lambda one: -len(one[0]))
    return {stage.id: None for stage in stages} | {stage.id: at for selected, at in chosen for stage in selected}


def stages_that_count(settings, stages):
    chosen = settings.get("stages", "all")
    if not isinstance(chosen, str):
        raise official.unexpected("stages", 'a text such as "0-5" or "1,3-5"', chosen)
    try:
        return course.parse_selection(chosen, stages, whole_class=True)
    except course.Problem as problem:
        raise course.Problem(f"{official.FILE}: stages: {problem}") from None


KEYS = {*official.DEFAULTS, "stages", "deadlines", "grace_hours", "late_percent_a_day", "late_days", "ranking"}


class Rules:
    def __init__(self, settings, stages):
        if unknown := sorted(settings.keys() - KEYS):
            raise course.Problem(f"{official.FILE}: {unknown[0]}: expected one of the keys {', '.join(sorted(KEYS))}")
        self.stages = stages  # all, also those that do not count: an entry about one of them is no mistake
        self.that_count = stages_that_count(settings, stages)
        self.deadlines = deadlines(settings.get("deadlines", {}), stages)
        self.grace = datetime.timedelta(hours=number(settings, "grace_hours", 24 * MOST_DAYS))
        self.has_grace = "grace_hours" in settings
        self.percent = number(settings, "late_percent_a_day", 100)
        self.late_days = whole(settings, "late_days", MOST_DAYS)

    # ---- one student's --------------------------------------------------------------------------

    def of(self, student):
        """The rules with the extensions and late days that the roster gives this student."""
        mine = copy.copy(self)
        mine.deadlines = dict(self.deadlines)
        for word in student.cell("extensions").split():
            mine.deadlines.update(self.extended(word, student.id))
        days = student.cell("late_days")
        if days:
            if not days.isascii() or not days.isdigit() or int(days) > MOST_DAYS:
                raise course.Problem(f"roster: {student.id}: late_days: expected a whole number from 0 to "
                                     f"{MOST_DAYS}, found '{days}'")
            mine.late_days = int(days)
        return mine

    def extended(self, word, id):
        """{stage id: deadline} for "3=+2" (days), "1-3=2026-11-20T23:59Z", or "+7" (all stages); a later word about a
        stage replaces an earlier one. A time that is earlier than a stage's deadline does not move it."""
        chosen, _, value = word.rpartition("=")
        until, days = time_of(value), value.removeprefix("+")
        if until is None and not (days.isascii() and days.isdigit() and int(days) <= MOST_DAYS):
            raise course.Problem(f"roster: {id}: extensions: '{word}': expected days or a time with its zone, for example "
                                 "3=+2 or 3=2026-11-20T23:59+01:00")
        try:
            stages = course.parse_selection(chosen or "all", self.stages, whole_class=True)
        except course.Problem as problem:
            raise course.Problem(f"roster: {id}: extensions: '{word}': {problem}") from None
        dues = {stage.id: self.deadlines[stage.id] for stage in stages}
        if until is None:
            return {id: due and due + int(days) * DAY for id, due in dues.items()}
        later = {id: until for id, due in dues.items() if due is None or until >= due}
        if not later:
            raise course.Problem(f"roster: {id}: extensions: '{word}': expected a time after the deadline of the class, "
                                 f"{when(min(dues.values()))}")
        return later

    # ---- how late, and what it costs -------------------------------------------------------------

    @property
    def has_deadlines(self):
        return any(self.deadlines.values())

    def deadline(self, stage):
        return self.deadlines[stage.id]

    def days_late(self, stage, at):
        due = self.deadline(stage)
        if due is None or at <= due + self.grace:
            return 0
        return -((due + self.grace - at) // DAY)

    def counted(self, points, days):
        return round(points * max(0.0, 1 - self.percent * days / 100), 2)

    def candidates(self, stage, seen, files_of, is_full=False):
        """The versions of a stage that can count, newest first: the newest MOST_VERSIONS with different files, and of
        earlier ones the last version of each lateness in days.

        seen: [(sha, at)] in order. files_of(sha): identifies the stage's files in that commit. is_full: True if the
        newest has all points; then only versions that are less late can count for more.
        """
        first = {}  # {files: when they were first seen, in any commit}
        for sha, at in seen:
            first.setdefault(files_of(sha), at)
        found = []
        for files, sha in {files_of(sha): sha for sha, _ in seen}.items():
            found.append(Version(sha, first[files], self.days_late(stage, first[files])))
        order = {sha: at for at, (sha, _) in enumerate(seen)}
        found.sort(key=lambda version: -order[version.sha])
        return self.best_chances(found, is_full)

    def best_chances(self, versions, is_full):
        """Those that can count; versions: all of a stage, newest first."""
        found = versions[:1]
        for version in versions[1:]:
            is_better = version.days < found[0].days if is_full else self.may_count(version.days)
            if is_better and (len(found) < MOST_VERSIONS or version.days not in {one.days for one in found}):
                found.append(version)
        return found

    def may_count(self, days):
        """True if a version that is this late can be worth something. Otherwise it need not be graded."""
        return self.percent * (days - self.late_days) < 100

    def spend(self, worth):
        """{deadline: late days} with the largest gain of points, and no more days than this needs. So the total never
        falls when another version is handed in.

        worth: {deadline: [points with 0 late days, with 1, ...]}; a list ends when another day gains nothing.
        """
        best = {0: (0.0, {})}  # {days used: (points, {deadline: days})}
        for due in sorted(worth):
            following = {}
            for used, (points, spent) in best.items():
                for days, more in enumerate(worth[due][:self.late_days - used + 1]):
                    before = following.get(used + days, (0.0,))[0]
                    if round(points + more - before, 6) >= 0:  # if equal, the earlier deadline
                        following[used + days] = points + more, {**spent, due: days}
            best = following
        return min(best.items(), key=lambda one: (-round(one[1][0], 6), one[0]))[1][1]
