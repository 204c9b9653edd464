"""The verdict on one stage: a Result with its groups of points."""
import copy

from shared import course


class Group:
    """A gate's result for one group of points. If the group has bands, each test is a band and earns its share."""

    def __init__(self, name, points, bands=1, part=None, file=None):
        self.name = name
        self.points = points
        self.bands = bands
        self.part = part  # part of the handout, if it has parts
        self.file = file  # the file it is about, if the stage has several
        self.status = "unwritten"  # or "passed", "wrong", "slow" (right, not in all bands), "unjudged", "unmeasured"
        self.waits_for = None  # if unwritten: the part with the missing function, if it is in another file
        self.failures = []
        self.is_untried = False  # True if a case was not tried, because its function did not end in another group
        self.n_passed = 0  # passed tests
        self.measured = None  # the measured speed, in words
        self.failed_requests = []  # (how it failed, the request's file), if requests were kept
        self.mistake = None  # the name of the known mistake that explains them ...
        self.mistake_says = ""  # ... and a sentence about it
        self.mistake_in_part = False  # True if it does not explain all failing cases

    @property
    def earned(self):
        if self.status == "slow":
            return self.points * self.n_passed // self.bands
        return self.points if self.status == "passed" else 0


class Result:
    """The result of one stage: its groups, or the reason why there are none."""

    def __init__(self, stage):
        self.stage = stage
        self.compile_error = None  # or another reason why the gate did not run, with `blocked`:
        self.blocked = None  # "missing": a file of the stage; "refused": it compiles, but is not the student's own work
        self.unfinished = None  # how the gate ended, if it ended without a report
        self.peak = 0  # peak memory of the judge, in kilobytes
        self.seed = None  # seed of the random numbers in its questions
        self.part = None  # set if the result is about one part only
        self.of_others = []  # then the groups of the other parts
        self.groups = [Group(group["name"], group["points"], group.get("bands", 1), group.get("part"), group.get("file"))
                       for group in stage.groups]

    def of_part(self, part):
        """The result for the groups of one part."""
        result = copy.copy(self)
        result.part = part
        result.groups = [group for group in self.groups if group.part == part]
        result.of_others = [group for group in self.groups if group.part != part]
        return result

    @property
    def name(self):
        return self.stage.with_part(self.part)

    @property
    def points(self):
        return sum(group.points for group in self.groups)

    @property
    def next_part(self):
        """The first part, in reading order, that is not right yet; None if there is none."""
        open_parts = [group.part for group in self.groups if group.part and group.status != "passed"]
        return min(open_parts, default=None)

    @property
    def status(self):
        """"uncompiled", "missing" or "refused"; "wrong", if a group is; "begun": functions are missing, and nothing is
        wrong so far; "unjudged": this machine cannot judge all of it; "slow"; or the status of all groups."""
        if self.compile_error:
            return self.blocked or "uncompiled"
        found = {group.status for group in self.groups}
        if "wrong" in found:
            return "wrong"
        if len(found) == 1:
            return found.pop()
        if "unwritten" in found:
            return "begun"
        return "unjudged" if "unjudged" in found else "slow"

    @property
    def is_right(self):
        """True if all is written and nothing is wrong; it may be slow."""
        return self.status in ("passed", "slow")

    @property
    def is_done_here(self):
        """True if nothing is left to do on this machine."""
        return self.status in ("passed", "unjudged")

    @property
    def first_wrong(self):
        """The first group that is written and wrong. Later ones may be wrong because of it."""
        return next((group for group in self.groups if group.status == "wrong"), None)

    @property
    def mend_first(self):
        """A wrong group of another part, about a file whose functions the first wrong group calls; or None."""
        first = self.first_wrong
        called = self.stage.files_called_by(first.file) if first else []
        return next((group for group in self.of_others if group.status == "wrong" and group.file in called), None)

    @property
    def earned(self):
        return 0 if self.compile_error else sum(group.earned for group in self.groups)


def not_judged(stage, why, blocked=None):
    """A Result without verdicts; blocked: as in Result."""
    result = Result(stage)
    result.compile_error, result.blocked = why, blocked
    return result


def not_here(stage):
    """The Result of a stage that this build leaves out."""
    result = Result(stage)
    for group in result.groups:
        group.status = "unjudged"
    result.groups[0].failures = [course.say("gpu_not_here", stage.id)]
    return result
