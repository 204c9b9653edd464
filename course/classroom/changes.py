"""Which marks differ from those of the previous grading of the class, and why.

graded.json stores what each mark was made of; changes.csv is the log, one line per change, for the teacher.
"""
import json

from classroom import lateness
from grading import report
from shared import changelog
from shared import atomic
from shared import course
from classroom import marks

KEPT = "graded.json"
LOG = "changes.csv"
COLUMNS = ("at", "id", "stage", "before", "after", "why")
MOST_LINES = 10  # on a terminal


def made_of(record, one, versions):
    """All that the mark of a stage depends on."""
    entry = one.entry or {}
    return {"mark": one.mark, "graded": one.graded, "earned": entry.get("earned"),
            "seed": entry.get("seed", (record.result or {}).get("seed")),
            "sha": one.version.sha if one.version else None,
            "files": one.version and list(versions.files(one.stage, one.version.sha)),
            "late": [one.late, one.covered, record.rules.percent], "rules": rules(record, one.stage),
            "override": list(one.override) if one.override else None}


def rules(record, stage):
    """What decides about the lateness of a stage."""
    due = record.rules.deadline(stage)
    return [due and due.isoformat(), record.rules.grace.total_seconds(), record.rules.percent, record.rules.late_days]


def moved(old, new):
    """The reasons for which a stage is more or less late than before, though nothing was handed in."""
    was, now = old.get("rules", new["rules"]), new["rules"]  # missing in the notes of an older version
    if was[0] != now[0]:
        before, after = (due and lateness.when(lateness.time_of(due)) for due in (was[0], now[0]))
        if before and after:
            return [["changed_deadline", before, after]]
        return [["changed_new_deadline", after] if after else ["changed_no_deadline", before]]
    # What earns nothing is never late, so a mark that rises from 0 may also become late.
    same_code = new["files"] == old["files"] and new["earned"] == old["earned"]
    return [["changed_lateness"]] if was != now or same_code and new["late"] != old["late"] else []


def terms(record, tests):
    """What all marks of a student depend on."""
    result = record.result or {}
    return {"tests": tests, "commit": report.version(result.get("official", {})),
            "with": [result.get("compiler"), result.get("confined")]}


def why(stage, old, new, was, now):
    """The reasons, each a key of messages.json with its values. was, now: the terms of the last grading and of this
    one."""
    found = []
    if new["override"] != old["override"]:
        found.append(["changed_override", new["override"][1]] if new["override"] else ["changed_no_override"])
    if new["graded"] == old["graded"]:
        return found
    if new["graded"] is None or old["graded"] is None:
        return [*found, ["changed_ungraded"] if new["graded"] is None else ["changed_graded"]]
    same_files = new["files"] == old["files"]
    if not same_files:
        found.append(["changed_files", new["sha"][:10]])
    if not same_files or new["earned"] != old["earned"]:
        if now["tests"] != was["tests"]:
            found.append(["changed_tests", was["commit"], now["commit"]])
        elif same_files and now["with"] != was["with"]:
            found.append(["changed_machine"])
        elif same_files and any("bands" in group for group in stage.groups) and not stage.is_emulated:
            found.append(["changed_speed"])
        elif same_files and new["seed"] != old["seed"]:
            found.append(["changed_seed"])
    found += moved(old, new)
    return found or [["changed_again"]]


def in_words(reasons):
    return "; ".join(course.say(*reason) for reason in reasons)


def shown(value):
    return course.say("state_ungraded") if value is None else marks.number(value)


def read(folder):
    path = folder / KEPT
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"students": {}, "changelog": None}


def is_by(folder, tests):
    """True if a tree with these tests graded the class last, or if nothing was graded yet."""
    return all(old["terms"]["tests"] == tests for old in read(folder)["students"].values())


class Changes:
    """The changes that a run of ./stage class grade made; sets each record's `changes`."""

    def __init__(self, run, tests):
        self.folder, self.at = run.classroom.folder, run.at.isoformat()
        before = read(self.folder)
        lines = changelog.lines()
        news = [] if before["changelog"] is None else [
            line for line in lines if line not in before["changelog"]]
        self.now = {"students": {}, "changelog": lines}
        self.new = []  # [(id, change)] of this run
        for record in run.records:
            old = before["students"].get(record.id)
            new = self.kept(record, run.versions[record.id], tests, old)
            found = list(self.compare(run.stages, old, new)) if old else []
            record.changes = new["changes"] = (
                {"at": self.at, "stages": found, "news": news} if found else old and old["changes"])
            self.now["students"][record.id] = new
            self.new += [(record.id, change) for change in found]

    @staticmethod
    def kept(record, versions, tests, old):
        stages = {str(one.stage.id): made_of(record, one, versions) for one in record.stages}
        for one in record.stages:
            new, was = stages[str(one.stage.id)], (old or {"stages": {}})["stages"].get(str(one.stage.id), {})
            # What the teacher corrected: the page says if it rises later.
            is_same = new["override"] and new["override"] == was.get("override") and "corrected" in was
            new["corrected"] = one.corrected = was["corrected"] if is_same else new["graded"]
        return {"terms": terms(record, tests), "stages": stages}

    @staticmethod
    def compare(stages, old, new):
        """stages: those that count. A mark is None for a stage that does not count."""
        known = {str(stage.id): stage for stage in stages}
        for id in sorted(old["stages"].keys() | known.keys(), key=int):
            was, now = old["stages"].get(id, {}), new["stages"].get(id, {})
            before, after = was.get("mark"), now.get("mark")
            if was and now:
                reasons = before != after and why(known[id], was, now, old["terms"], new["terms"])
            else:
                reasons = (before or after) and [["changed_counts" if now else "changed_no_count"]]
            if reasons:
                yield {"stage": int(id), "before": before, "after": after, "why": reasons}

    def write(self):
        """Writes the log first: if the process is killed in between, a change is logged twice rather than never."""
        path = self.folder / LOG
        if self.new:
            # A spreadsheet may have saved the file in another encoding.
            text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else marks.table([COLUMNS])
            text += marks.table([self.at, id, change["stage"], marks.number(change["before"]),
                                 marks.number(change["after"]), in_words(change["why"])] for id, change in self.new)
            atomic.write(path, text)
        atomic.write(self.folder / KEPT, json.dumps(self.now, ensure_ascii=False) + "\n")


def latest(records):
    """The latest changes: (when, [lines of CHANGELOG.md], [(stage id, before, after, why, ids)]), the most frequent
    first; None if there were none."""
    times = [record.changes["at"] for record in records if record.changes]
    if not times:
        return None
    groups, news = {}, []
    for record in records:
        if record.changes and record.changes["at"] == max(times):
            news = record.changes["news"]
            for one in record.changes["stages"]:
                key = one["stage"], shown(one["before"]), shown(one["after"]), in_words(one["why"])
                groups.setdefault(key, []).append(record.id)
    rows = sorted(((*key, ids) for key, ids in groups.items()), key=lambda row: (-len(row[4]), row[0], row[4]))
    return max(times), news, rows


def by_reason(found):
    """[([ids of stages], sum before, sum after, why)] of a student's changes: one correction may change all stages."""
    groups = {}
    for one in found:
        key = one["before"] is None, one["after"] is None, json.dumps(one["why"])
        groups.setdefault(key, []).append(one)
    for ones in groups.values():
        before, after = (None if ones[0][key] is None else round(sum(one[key] for one in ones), 2)
                         for key in ("before", "after"))
        yield [one["stage"] for one in ones], before, after, ones[0]["why"]


def lines(found):
    """For a terminal. found: Changes.new."""
    for id, one in found[:MOST_LINES]:
        yield "  " + course.say("class_changed", id, one["stage"], shown(one["before"]), shown(one["after"]),
                                in_words(one["why"]))
    if len(found) > MOST_LINES:
        yield "  " + course.say("class_changed_more", len(found) - MOST_LINES, LOG)
