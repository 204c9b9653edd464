"""./stage story --mine 1-3 (also chat, trace, peek): the real program with the student's functions.

Called by ./stage with the whole command line; takes --mine out of it.
"""
import os
import subprocess
import sys

import course


def split_mine(arguments, known):
    """The chosen stages and the other arguments. --mine takes a list, or stands alone for all that
    pass their gates."""
    rest = []
    chosen = None
    words = iter(range(len(arguments)))
    for at in words:
        word = arguments[at]
        if word == "--mine":
            following = arguments[at + 1] if at + 1 < len(arguments) else ""
            if following and (following[0].isdigit() or following == "all"):
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
    return [stage for stage in known if course.test_stage(stage).status == "passed"]


def select(chosen):
    """Tells CMake which stages stagecraft_mine takes from the student, if that is news to it."""
    setting = "STAGECRAFT_MINE", ";".join(stage.number for stage in chosen)
    cache = course.BUILD / "CMakeCache.txt"
    if "{}:STRING={}".format(*setting) in cache.read_text(encoding="utf-8").splitlines():
        return
    configure = ["cmake", "-S", str(course.ROOT), "-B", str(course.BUILD), "-D{}={}".format(*setting)]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)


def run():
    known = course.stages()
    chosen, rest = split_mine(sys.argv[1:], known)
    if not chosen:
        chosen = passing(known)
        if not chosen:
            raise course.Problem("--mine: none of your stages passes its gate yet: ./stage test 0")
    else:
        for stage in chosen:
            status = course.test_stage(stage).status
            if status == "unwritten":
                raise course.Problem(f"--mine: stage {stage.id} is not written yet: ./stage test {stage.id}")
            if status == "uncompiled":
                raise course.Problem(f"--mine: stage {stage.id} does not compile: ./stage test {stage.id}")
            if status == "wrong":
                print(f"stage {stage.id} does not pass its gate; running it all the same", file=sys.stderr)
    select(chosen)
    problem = course.build("stagecraft_mine")
    if problem is not None:
        raise course.Problem(course.first_error(problem))
    names = ", ".join(function for stage in chosen for function in stage.functions)
    print(f"yours: {names}; the rest is ours. Textbook code, compiled as you wrote it.", file=sys.stderr)
    sys.stderr.flush()
    program = course.BUILD / "src" / "stagecraft_mine"
    os.execv(program, [str(program), *rest])


if __name__ == "__main__":
    sys.exit(course.main(run))
