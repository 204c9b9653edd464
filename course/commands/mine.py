"""./stage story --mine 1-3 (also chat, serve, trace, peek): runs the real program with the student's functions.

./stage calls it with the whole command line; it removes --mine.
"""
import os
import re
import secrets
import signal
import subprocess
import sys
import time

from mine import call_counts
from mine import real_gpu
from mine import real_program
from shared import course
from testing import progress

ENDED_FROM_OUTSIDE = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)
SLOWER = 1.5, 0.5  # mentioned if it takes this many times as long as ours, and this many seconds more


def split_mine(arguments, known):
    """The chosen stages and the other arguments. --mine takes a list. Without a list, it means all stages that
    pass their gates, except those that run on an emulator, because they are slow."""
    rest = []
    chosen = None
    words = iter(range(len(arguments)))
    for at in words:
        word = arguments[at]
        if word == "--":
            return chosen, rest + arguments[at:]
        if word == "--mine":
            following = arguments[at + 1] if at + 1 < len(arguments) else ""
            # A prompt, as in --mine "3 little pigs", has a space.
            if re.fullmatch(r"all|\d\S*", following) or following in {stage.slug for stage in known}:
                chosen = course.parse_selection(following, known)
                next(words)
            else:
                chosen = []
        elif word.startswith("--mine="):
            chosen = course.parse_selection(word[len("--mine="):], known)
        else:
            rest.append(word)
    return chosen, rest


def passing(known):
    return [stage for stage in known if not stage.is_emulated and progress.result_of(stage).is_right]


def has_option(words, *names):
    options = words[:words.index("--")] if "--" in words else words
    return any(word.partition("=")[0] in names for word in options)


def share(part, whole):
    percent = 100 * part / whole if whole else 0
    return f"{percent:.0f}%" if percent >= 1 else "<1%"


def tell_calls(table, code, with_shares):
    """Prints one line per function, and where the program crashed."""
    crashed = code < 0 and -code not in ENDED_FROM_OUTSIDE
    if crashed:
        print(file=sys.stderr)  # the story may have ended in the middle of a line
    if not table.counts:
        course.tell(course.say("mine_uncounted"), sys.stderr)
        return
    calls, inside, total = table.read()
    called = {name: one for name, one in calls.items() if one.count}
    if code == 0 and not called:
        course.tell(course.say("mine_none_called"), sys.stderr)
    for name, one in called.items():
        if with_shares:
            part = share(one.nanoseconds, total)
            key = "mine_called" if one.count > 1 else "mine_called_once"
            course.tell(course.say(key, name, one.count, part), sys.stderr)
        else:
            key = "mine_called_often" if one.count > 1 else "mine_called_just_once"
            course.tell(course.say(key, name, one.count), sys.stderr)
    if crashed:
        died = -code, signal.strsignal(-code)
        course.tell(course.say("mine_died_in", *died, inside, calls[inside].count) if inside
                    else course.say("mine_died", *died), sys.stderr)
        for stage in course.stages():
            if inside in stage.functions:
                course.tell(course.say("mine_where", stage.id), sys.stderr)


def tell_faster(chosen):
    """Plain loops are slow with a larger model: names the stages that make it faster, if none of them is chosen."""
    if not any(stage.timed for stage in chosen):
        faster = [stage for stage in course.stages() if stage.timed]
        stages = course.listed(f"{stage.id} {stage.title[course.language()]}" for stage in faster)
        course.tell(course.say("mine_plain", stages), sys.stderr)


def compare(mine, ours, why_not, times, slower="mine_slower"):
    """One line about the tokens; why_not: the key of the message if they differ."""
    same = len(os.path.commonprefix([mine, ours]))
    if same < max(len(mine), len(ours)):
        at_once = same == 0 and why_not == "mine_differs"
        return course.say("mine_differs_at_once" if at_once else why_not, same, len(ours))
    line = course.say("mine_same", same)
    if times[0] > SLOWER[0] * times[1] and times[0] > times[1] + SLOWER[1]:
        line += ("；" if course.language() == "zh" else "; ") + course.say(slower, times[0] / times[1])
    return line


def why_tokens_part(chosen, right):
    if not right:
        return "mine_differs"
    return "mine_rounded" if any(stage.rounds for stage in chosen) else "mine_tipped"


def story(words, run_mine, ours, why_not, folder, slower):
    """Prints the student's story, runs ours with the same options, and says whether the tokens are the same."""
    options = [] if has_option(words, "--seed") else ["--seed", str(secrets.randbits(32))]
    files = folder / "mine", folder / "ours"
    begin = time.monotonic()
    code = run_mine([words[0], *options, "--save-ids", str(files[0]), *words[1:]])
    middle = time.monotonic()
    if code != 0:
        return code, None
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with course.doing(course.say("doing_reference")):
        failed = real_program.run(f"src/{ours}",
                                  [words[0], "--textbook", *options, "--save-ids", str(files[1]), *words[1:]],
                                  **quiet)
    times = middle - begin, time.monotonic() - middle
    return code, None if failed else compare(*map(real_program.read_ids, files), why_not, times, slower)


def run():
    known = course.stages()
    chosen, words = split_mine(sys.argv[1:], known)
    right = True
    if chosen:
        right = real_program.check_gates(chosen)
    else:
        chosen = passing(known)
        if not chosen:
            raise course.Problem(course.say("mine_none", known[0].id))
    has_kernels = any(stage.is_emulated for stage in chosen)
    why_not = real_gpu.why_not() if has_kernels else None
    emulated = has_kernels and why_not is not None
    # ./stage names the program that it would run without --mine.
    ours = "stagecraft" if has_kernels else os.environ.get("STAGE_PROGRAM", "stagecraft")
    with real_program.built(chosen, has_kernels and not emulated, ours) as program:
        announce(chosen, why_not)
        return run_built(program, ours, words, chosen, right, emulated)


def announce(chosen, why_not):
    """Says what of the program is the student's. why_not: the key of the message that says why no GPU runs kernels."""
    functions = [function for stage in chosen for function in stage.functions]
    course.tell(course.say("mine_begins", course.listed(functions)), sys.stderr)
    if all(any(stage.id == one for stage in chosen) for one in (9, 10)):
        course.tell(course.say("mine_both"), sys.stderr)
    if any(stage.is_emulated for stage in chosen):
        said = course.say("mine_emulated", course.say(why_not)) if why_not else course.say("mine_on_gpu")
        course.tell(said, sys.stderr)


def run_built(program, ours, words, chosen, right, emulated):
    """Runs the program, in whose folder temporary files are written. ours: the one with which it is compared. right: no
    chosen stage is wrong."""
    folder = program.parent
    functions = [function for stage in chosen for function in stage.functions]
    table = call_counts.Table(folder / "calls", course.BUILD, program, functions)
    environment = dict(os.environ, STAGECRAFT_CALLS=str(table.path))

    def run_mine(words):
        return real_program.run(program, words, env=environment)

    if has_option(words, "--help", "-h"):
        return run_mine(words)
    if words[0] == "story" and not has_option(words, "--save-ids"):
        code, tokens = story(words, run_mine, ours, why_tokens_part(chosen, right), folder,
                             "mine_slower_emulated" if emulated else "mine_slower")
    else:
        code, tokens = run_mine(words), None
    # No percentages of time for a chat, which mostly waits for its user, or for a server, which computes in other
    # threads.
    tell_calls(table, code, with_shares=words[0] not in ("chat", "serve"))
    if code == 0 and words[0] in ("chat", "serve", "story") and has_option(words, "--model", "-m"):
        tell_faster(chosen)
    if tokens:
        course.tell(tokens, sys.stderr)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(course.main(run))
