"""The names in object files: which kind each is, and what it is called in C++."""
import functools
import re
import subprocess
import sys

from shared import course
from rules import links

# The beginning of a mangled name: of a table, a guard, a local name, a thunk, a member.
SPECIAL = re.compile(r"_Z(?:T[VISTWH]|G[VR]|Z|Tc?[hv]n?\d+_(?:n?\d+_)?)?(?:N[rVKRO]*)?")
LENGTH = re.compile(r"\d+")


def names_from(symbol, at):
    """(the names in a mangled symbol from this place on, each behind its length; the place where they end)"""
    names = []
    while (number := LENGTH.match(symbol, at)) and int(number[0]) <= len(symbol):
        at = number.end() + int(number[0])
        names.append(symbol[number.end():at])
    return names, at


def qualified(symbol):
    """The name of a mangled symbol without its arguments: "stagecraft::KvCache::append"."""
    head = SPECIAL.match(symbol)
    if not head:
        return symbol
    names, at = names_from(symbol, head.end())
    rest = symbol[at:at + 2]
    if symbol.startswith("_ZT"):
        return "::".join(names)
    if len(names) > 1 and re.fullmatch(r"C[1-5I]", rest):
        names.append(names[-1])
    elif len(names) > 1 and re.fullmatch(r"D[0-5]", rest):
        names.append(f"~{names[-1]}")
    return "::".join(names)


def is_ours(symbol):
    return qualified(symbol).startswith("stagecraft::")


def listed(build, files):
    """(kind, mangled name) for each symbol; the kinds are those of nm."""
    for line in links.run_nm(build, files):
        found = links.LINE.match(line)
        if found:
            yield found[2], found[3][1:] if sys.platform == "darwin" else found[3]


def is_strong(kind):  # and a global definition
    return kind.isupper() and kind not in "UVW" or kind in "i?-"


def is_shared(kind):  # many objects may define it; the linker takes one
    return kind in "uVW"


def is_data(kind):
    return kind in "DBRSGCVu"


def is_wanted(kind):
    return kind in "Uwv"


@functools.lru_cache(maxsize=None)
def of_ours(build, files):
    """(symbols that these objects and archives define globally, those that they need, those that they share: instances
    of templates and inline functions, of which each file that calls one has a copy)"""
    try:
        found = list(listed(build, files))
    except (OSError, subprocess.SubprocessError) as problem:  # no student can cause it
        raise course.Problem(f"{files[0]}: {problem}") from None
    return tuple({name for kind, name in found if is_one(kind)} for is_one in (is_strong, is_wanted, is_shared))
