"""./stage update: updates everything except the student's own files to the newest official tree.

The student's own files are: files of the registry that are no longer starters, my_tests.cpp, course.json, and all files
that the official tree does not have. Of other files of the registry, the student gets the newest starter, even if the
official tree has a solution in its place. This also undoes changes of other files, such as the tests. The update
is staged; the student commits it.
"""
import datetime
import json
import sys
import time

from shared import changelog
from shared import course
from shared import official
from shared.parser import Parser

ASKED = course.ROOT / "build" / "course" / "asked"  # when the official repository was last asked
DAY = 24 * 60 * 60
SECONDS = 3  # to ask for news; the user should not wait longer


# ---- is there anything new? ---------------------------------------------------------------------


def is_in_history(sha):
    return official.git("merge-base", "--is-ancestor", sha, "HEAD") is not None


def is_behind():
    """True if the official tree has a newer version. Asked at most once a day; False if it cannot be found out."""
    settings = official.read()
    if not settings["url"] or (ASKED.exists() and abs(time.time() - ASKED.stat().st_mtime) < DAY):
        return False
    try:
        ASKED.parent.mkdir(parents=True, exist_ok=True)
        ASKED.touch()
    except OSError:  # a repository that may only be read: it would ask, and wait, at every command
        return False
    newest = official.remote_commit(settings, seconds=SECONDS)
    return bool(newest) and newest != settings["commit"] and not is_in_history(newest)


# ---- the update ---------------------------------------------------------------------------------


def names_in(*words):
    said = official.git(*words)
    if said is None:
        raise course.Problem(course.say("update_git", words[0]))
    return set(said.split("\0")) - {""}


def students():
    """The files of the registry that the student has begun, and course.json."""
    begun = {course.unit_name(stage, unit) for stage in course.stages() for unit in stage.units
             if stage.path(unit).exists() and not stage.is_handed_out(unit)}
    return begun | {official.FILE}


def is_left(name, mine):
    """True if an update must not change this file."""
    absent = official.OURS_ALONE.match(name) and not (course.ROOT / name).exists()
    return name in mine or absent or name.endswith("/my_tests.cpp")


def files_of(commit):
    return names_in("ls-tree", "-r", "--name-only", "-z", commit)


def changes(new, settings):
    """(names to take from the commit `new`, names to delete). Files that the student added stay."""
    mine = students()
    differ = {name for name in names_in("diff", "--name-only", "--no-renames", "-z", "HEAD", new)
              if not is_left(name, mine)}
    there = files_of(new)
    base = settings["commit"] or (official.git("merge-base", "HEAD", new) or "").strip()
    if official.git("cat-file", "-e", f"{base}^{{commit}}") is None:
        return differ & there, set()
    once = files_of(base)
    if added := differ & there & files_of("HEAD") - once:
        raise course.Problem(course.say("update_added", "\n  ".join(sorted(added))))
    return differ & there, (differ - there) & once


def solved_in(new):
    """{path: git hash of its starter} for each file of the registry that is not its starter in the commit `new`."""
    registry = json.loads(official.git("show", f"{new}:stages/stages.json") or '{"stages": []}')
    starters = {course.unit_name(stage, unit): unit["starter"] for stage in map(course.Stage, registry["stages"])
                for unit in stage.units}
    lines = names_in("ls-tree", "-r", "-z", new, "--", *starters)
    there = {name: about.split()[2] for about, _, name in (line.partition("\t") for line in lines)}
    return {name: starter for name, starter in starters.items() if there.get(name, starter) != starter}


def committed(name):
    """The git hash of a file as the student has committed it; None if there is none."""
    return (official.git("rev-parse", "-q", "--verify", f"HEAD:{name}") or "").strip() or None


def hand_out(starters):
    """Writes these starters, {path: git hash}; a starter that git does not have stays as it is here."""
    for name, starter in starters.items():
        if official.git("cat-file", "-e", starter) is not None:
            official.git("update-index", "--add", "--cacheinfo", f"100644,{starter},{name}")
            apply({name}, "checkout", "-q")


def refuse_to_overwrite(names, new):
    """Refuses to overwrite edits that are not committed. A file that is as in `new` came from an update that is not
    committed yet, or that was interrupted."""
    lines = names_in("status", "--porcelain", "--no-renames", "--untracked-files=all", "-z")
    edited = sorted(names & {line[3:] for line in lines} & names_in("diff", "--name-only", "--no-renames", "-z", new))
    if edited:
        raise course.Problem(course.say("update_edited", "\n  ".join(edited)))


def apply(names, *words):
    """Runs a git command on these files."""
    paths = "\0".join(f":(literal){name}" for name in sorted(names))
    if names and official.git(*words, "--pathspec-from-file=-", "--pathspec-file-nul", given=paths) is None:
        raise course.Problem(course.say("update_git", words[0]))


def run():
    Parser("update").parse_args()
    settings = official.read()
    if not settings["url"]:
        raise course.Problem(course.say("update_no_url"))
    if official.git("rev-parse", "--show-prefix") != "\n":
        raise course.Problem(course.say("update_no_git"))
    if official.git("rev-parse", "-q", "--verify", "HEAD^{commit}") is None:
        raise course.Problem(course.say("update_no_commit"))
    with course.doing(course.say("doing_fetch", settings["url"])):
        fetched = official.git("fetch", "-q", "--no-tags", "--", settings["url"], settings["ref"])
    if fetched is None:
        raise course.Problem(official.why_not_fetched(settings))
    new = official.git("rev-parse", "FETCH_HEAD^{commit}").strip()
    if is_in_history(new):
        course.tell(course.say("update_nothing", new[:10]))
        return 0
    wanted, gone = changes(new, settings)
    # A teacher may have solved stages in the official tree: students get the starters.
    solved = {name: starter for name, starter in solved_in(new).items() if name in wanted}
    wanted -= {name for name, starter in solved.items() if committed(name) == starter}
    if new == settings["commit"] and not wanted | gone:
        course.tell(course.say("update_nothing", new[:10]))
        return 0
    refuse_to_overwrite(wanted | gone, new)
    before, engine_before = changelog.lines(), changelog.lines("engine")
    course.messages()  # read now: the update may change the file
    apply(wanted - solved.keys(), "checkout", "-q", new)
    hand_out({name: starter for name, starter in solved.items() if name in wanted})
    apply(gone, "rm", "-q")
    official.write({**settings, "commit": new})
    official.git("add", official.FILE)
    course.tell(course.say("update_done", len(wanted) + len(gone), new[:10]))
    for line in changelog.lines():
        if line not in before:
            course.tell(f"  {line.removeprefix('- ')}")
    if n_engine := sum(line not in engine_before for line in changelog.lines("engine")):
        course.tell(f"  {course.say('update_engine', n_engine)}")
    course.tell(course.say("update_commit", datetime.date.today().isoformat()))
    return 0


if __name__ == "__main__":
    sys.exit(course.main(run))
