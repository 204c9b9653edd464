"""Which files of a class are alike beyond what is usual in it, whatever they are called and however they are
set: something to look at, and never a part of a mark.

A file becomes a row of tokens in which every name is the same name, every number the same number; comments and
formatting are gone. Of each run of RUN tokens there is a fingerprint; of WINDOW of them in a row the least is
kept (winnowing: Schleimer, Wilkerson and Aiken 2003). What the starters, our answers and our headers have, and
what more than USUAL of the class has, counts nothing; the rest counts by how rare it is. Two files are alike
if they share most of that, and more than others of the class do.
"""
import collections
import hashlib
import itertools
import math
import re

import course

FIRST_STAGE = 4  # before it, right answers are so short that they are alike
RUN = 9
WINDOW = 5
USUAL = 0.1  # of the class, but at least
FEW = 4  # people
LEAST = 12  # fingerprints of their own that two files share
SHARED = 0.6  # of the lighter one's weight
BEYOND = 0.2  # more than nearly all other pairs share
TOKEN = re.compile(r"""//[^\n]*|/\*(?:.*?\*/|.*)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'
                       |[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.'])*
                       |<<=|>>=|<=>|->|::|[-+*/%&|^<>=!]=|&&|\|\||\+\+|--|\S""", re.S | re.X)
KEYWORDS = frozenset("""auto bool break case catch char class const constexpr continue default delete do double
    else enum false float for if inline int long namespace new noexcept nullptr operator private public return
    short signed sizeof static struct switch template this throw true try typename union unsigned using virtual
    void volatile while size_t""".split())


def tokens(text):
    """Of C++, without what a person can change and keep the program."""
    lines = (line for line in text.splitlines() if not re.match(r"\s*#\s*include\b", line))
    for token in TOKEN.findall("\n".join(lines)):
        if token.startswith(("//", "/*")):
            continue
        if token[0] in "\"'":
            yield "S"
        elif token[0].isdigit() or (token[0] == "." and len(token) > 1):
            yield "0"
        elif token[0].isalpha() or token[0] == "_":
            yield token if token in KEYWORDS else "N"
        elif token not in "{};":  # a brace more or less is formatting
            yield token


def fingerprints(text):
    row = list(tokens(text))
    runs = [int.from_bytes(hashlib.blake2b(" ".join(row[at:at + RUN]).encode(), digest_size=8).digest(), "big")
            for at in range(len(row) - RUN + 1)]
    return {min(runs[at:at + WINDOW]) for at in range(max(len(runs) - WINDOW + 1, min(len(runs), 1)))}


def handed_out(stage):
    """The fingerprints of what everybody has, and of the answers that are in the tree."""
    found = set()
    for unit in stage.units:
        found |= fingerprints(stage.starter(unit).decode("utf-8", "replace"))
        for twin in unit["twins"]:
            found |= fingerprints((course.ROOT / twin).read_text(encoding="utf-8"))
    return found


def pairs(files, known):
    """[(how much they share, 0 to 1, one id, other id)] of the pairs that share enough to be compared.

    files: {id: text}. known: fingerprints that count nothing.
    """
    mine = {id: fingerprints(text) - known for id, text in files.items()}
    holders = collections.defaultdict(list)
    for id, prints in mine.items():
        for one in prints:
            holders[one].append(id)
    most = max(FEW, USUAL * len(files))
    weight = {one: math.log(1 + len(files) / len(ids)) for one, ids in holders.items() if len(ids) <= most}
    total = {id: sum(weight.get(one, 0) for one in prints) for id, prints in mine.items()}
    shared, count = collections.Counter(), collections.Counter()
    for one, ids in holders.items():
        if one in weight:
            for pair in itertools.combinations(sorted(ids), 2):
                shared[pair] += weight[one]
                count[pair] += 1
    return [(shared[pair] / min(total[pair[0]], total[pair[1]]), *pair)
            for pair in shared if count[pair] >= LEAST]


def usual(found, n):
    """What the 95th of a hundred pairs of n files share; most pairs share nothing to speak of."""
    n_pairs = n * (n - 1) // 2
    shares = sorted((share for share, *_ in found), reverse=True)
    at = n_pairs // 20
    return shares[at] if at < len(shares) else 0.0


def clusters(files, known):
    """[(least likeness, [ids])], the most alike first."""
    found = pairs(files, known)
    limit = max(SHARED, min(usual(found, len(files)) + BEYOND, 0.95)) if len(files) > 20 else SHARED
    group = {id: {id} for id in files}
    least = {}
    for share, one, other in found:
        if share < limit:
            continue
        together = group[one] | group[other]
        share = min([share, *(least[id] for id in together if id in least)])
        for id in together:
            group[id], least[id] = together, share
    distinct = {tuple(sorted(ids)) for ids in group.values() if len(ids) > 1}
    return sorted(((least[ids[0]], list(ids)) for ids in distinct), reverse=True)


def look_at_these(stages, submissions):
    """[(stage, file, likeness, [ids])]; submissions: {id: Submission}. What is as handed out is not looked at."""
    found = []
    for stage in stages:
        if stage.id < FIRST_STAGE:
            continue
        known = handed_out(stage)
        for unit in stage.units:
            name = course.unit_name(stage, unit)
            files = {id: one.files[name].decode("utf-8", "replace") for id, one in submissions.items()
                     if name in one.files and course.blob_hash(one.files[name]) != unit.get("starter")}
            found += [(stage, name, share, ids) for share, ids in clusters(files, known)]
    return found
