"""Which files of a class are alike beyond what is usual in it, whatever they are called and however they are
set: something to look at, and never a part of a mark.

A file becomes a row of tokens in which every name is the same name, every number the same number; comments and
formatting are gone. Of each run of RUN tokens there is a fingerprint; of WINDOW of them in a row the least is
kept (winnowing: Schleimer, Wilkerson and Aiken 2003). What the starters, our answers and our headers have, and
what more than USUAL of the class has, counts nothing; the rest counts by how rare it is. Two files are alike
if they share most of that, and more than others of the class do. The files of the first stages are short, and right
answers differ in little but names and numbers. There names and numbers count, and every run of RUN_WITH_NAMES tokens
is compared.

Every file is also laid beside what anybody can copy from this repository: our answers and the right programs of
the catalogue, as they are and as they ever were in its history. There names and numbers count, since right answers
to a small task differ in little else, and it does not matter how many of the class are alike.

Of a student all versions that were ever seen count, so that what was copied and then rewritten is found as well.
"""
import collections
import functools
import hashlib
import itertools
import math
import pathlib
import typing

from grading import cpp_text
from mistakes import catalogue
from shared import course
from shared import official

FIRST_STAGE = 4  # before it, right answers are so short that they are alike but for their names
RUN = 9
WINDOW = 5
USUAL = 0.1  # of the class, but at least
FEW = 4  # people
LEAST = 12  # fingerprints of their own that two files share
SHARED = 0.6  # of the lighter one's weight
LIKE_OURS = 0.7  # of what a student has written stands in one file of ours, names and all
RENAMED = 0.85  # the same by fingerprints, which see no names
RUN_WITH_NAMES = 6
LEAST_WITH_NAMES = 25  # runs of tokens, or there is too little to tell
SHARED_WITH_NAMES = 0.85
BEYOND = 0.2  # more than nearly all other pairs share
KEYWORDS = frozenset("""auto bool break case catch char class const constexpr continue default delete do double
    else enum false float for if inline int long namespace new noexcept nullptr operator private public return
    short signed sizeof static struct switch template this throw true try typename union unsigned using virtual
    void volatile while size_t""".split())


def tokens(text, names=False):
    """Of C++, without what a person can change and keep the program; names: with names and numbers."""
    for kind, token in cpp_text.tokens(text):
        if kind == "text":
            yield "S"
        elif token[0].isdigit() or (token[0] == "." and len(token) > 1):
            yield token if names else "0"
        elif token[0].isalpha() or token[0] == "_":
            yield token if names or token in KEYWORDS else "N"
        elif token not in "{};":  # a brace more or less is formatting
            yield token


def fingerprints(text):
    row = list(tokens(text))
    runs = [int.from_bytes(hashlib.blake2b(" ".join(row[at:at + RUN]).encode(), digest_size=8).digest(), "big")
            for at in range(len(row) - RUN + 1)]
    return {min(runs[at:at + WINDOW]) for at in range(max(len(runs) - WINDOW + 1, min(len(runs), 1)))}


def runs(text):
    """Every run of tokens, with their names."""
    row = list(tokens(text, names=True))
    return {tuple(row[at:at + RUN_WITH_NAMES]) for at in range(len(row) - RUN_WITH_NAMES + 1)}


class Look(typing.NamedTuple):
    """A way to lay the files of a class beside each other."""
    see: typing.Callable  # text -> the set of what is compared
    least: int  # so many members of it must two files share
    shared: float  # and so much of the lighter file's weight


NAMELESS = Look(fingerprints, LEAST, SHARED)
NAMED = Look(runs, LEAST_WITH_NAMES, SHARED_WITH_NAMES)


def look_of(stage):
    return NAMELESS if stage.id >= FIRST_STAGE else NAMED


def handed_out(stage):
    """What is seen of the starters, which everybody has, and of the answers that are in the tree."""
    see, found = look_of(stage).see, set()
    for unit in stage.units:
        found |= see(stage.starter(unit).decode("utf-8", "replace"))
        for twin in unit["twins"]:
            found |= see((course.ROOT / twin).read_text(encoding="utf-8"))
    return found


def pairs(files, known, look=NAMELESS):
    """[(how much they share, 0 to 1, one id, other id)] of the pairs that share enough to be compared.

    files: {id: text, or texts}. known: what counts nothing.
    """
    mine = {id: set().union(*map(look.see, [texts] if isinstance(texts, str) else texts)) - known
            for id, texts in files.items()}
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
            for pair in shared if count[pair] >= look.least]


def usual(found, n):
    """What the 95th of a hundred pairs of n files share; most pairs share nothing to speak of."""
    n_pairs = n * (n - 1) // 2
    shares = sorted((share for share, *_ in found), reverse=True)
    at = n_pairs // 20
    return shares[at] if at < len(shares) else 0.0


def clusters(files, known, look=NAMELESS):
    """[(least likeness, [ids])], the most alike first."""
    found = pairs(files, known, look)
    limit = max(look.shared, min(usual(found, len(files)) + BEYOND, 0.95)) if len(files) > 20 else look.shared
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


# ---- ours ---------------------------------------------------------------------------------------


def paths_of_ours(stage):
    """Where answers to a stage stand in this repository."""
    folder = catalogue.folder_of(stage)
    right = [(folder / program["file"]).relative_to(course.ROOT).as_posix() for program in catalogue.entries(folder)
             if program["is"] == "right"]
    return [*(twin for unit in stage.units for twin in unit["twins"]), *right]


def text_of_ours(path):
    """What stands in one of these; some right programs are edits of others."""
    file = course.ROOT / path
    return file.read_text(encoding="utf-8") if file.exists() else catalogue.source_of(file.parent, file.stem)


@functools.lru_cache(maxsize=None)
def history():
    """{name of a file: {(path, blob)}} of every C++ file that this repository ever had."""
    found = collections.defaultdict(set)
    log = official.git("log", "--all", "--raw", "--no-renames", "--no-abbrev", "--format=", "--", "src", "course/mistakes")
    for line in (log or "").splitlines():
        about, _, path = line.partition("\t")
        blob = about.split(" ")[3]
        if path.endswith((".cpp", ".cu")) and blob.strip("0"):
            found[pathlib.PurePosixPath(path).name].add((path, blob))
    return found


@functools.lru_cache(maxsize=None)
def answers_of_ours(stage):
    """[(path, text)]: as they are, and as they were under that name, wherever it then lay."""
    found = {}
    for path in paths_of_ours(stage):
        text = text_of_ours(path)
        found.setdefault(text, path)
        is_twin = path.startswith("src/")
        for older, blob in history()[pathlib.PurePosixPath(path).name]:
            if older.startswith("src/") == is_twin and (is_twin or stage.slug in older):
                old = official.git("cat-file", "blob", blob)
                found.setdefault(old or text, f"{older}@{blob[:10]}")
    return [(path, text) for text, path in found.items()]


class Ours:
    """What of a stage's answers a text can be laid beside, by one way to see it (runs, or fingerprints)."""

    def __init__(self, stage, see, answers):
        self.see = see
        self.handed = set().union(*(see(stage.starter(unit).decode("utf-8", "replace")) for unit in stage.units))
        self.seen = {path: see(text) - self.handed for path, text in answers}
        for unit in stage.units:  # several of ours may stand in one file of a student's
            of = [path for path in self.seen if path.partition("@")[0] in unit["twins"]]
            if len(unit["twins"]) > 1:
                self.seen[" + ".join(unit["twins"])] = set().union(*(self.seen[path] for path in of))

    def best(self, text, least):
        """(share of the text, or of ours if that is shorter, path of ours)"""
        mine = self.see(text) - self.handed
        if len(mine) < least:
            return 0.0, ""
        # What was added to a copy does not hide it: the shorter of the two counts.
        return max((len(mine & theirs) / min(len(mine), max(len(theirs), least)), path)
                   for path, theirs in self.seen.items())


def like_ours(stage, files):
    """[(share, id, path of ours)], the most alike first; files: {id: texts} of one of its files."""
    answers = answers_of_ours(stage)
    ways = [(Ours(stage, NAMED.see, answers), NAMED.least, LIKE_OURS)]
    if look_of(stage) is NAMELESS:
        ways.append((Ours(stage, NAMELESS.see, answers), NAMELESS.least, RENAMED))
    found = []
    for id, texts in files.items():
        for ours, least, limit in ways:
            share, path = max(ours.best(text, least) for text in texts)
            if share >= limit:
                found.append((share, id, path))
                break
    return sorted(found, key=lambda one: (-one[0], one[1]))


# ---- a class ------------------------------------------------------------------------------------


def written(stages, submissions):
    """(stage, unit's name, {id: texts}): what students have written themselves, all versions of it."""
    for stage in stages:
        for unit in stage.units:
            name = course.unit_name(stage, unit)
            files = {}
            for id, versions in submissions.items():
                data = {one.files[name] for one in versions if name in one.files}
                texts = sorted(one.decode("utf-8", "replace") for one in data
                               if course.blob_hash(one) != unit.get("starter"))
                if texts:
                    files[id] = texts
            yield stage, name, files


def look_at_these(stages, submissions):
    """[(stage, file, likeness, [ids])]; submissions: {id: [Submission]}, all versions that were seen."""
    known = {stage.id: handed_out(stage) for stage in stages}
    return [(stage, name, share, ids) for stage, name, files in written(stages, submissions)
            for share, ids in clusters(files, known[stage.id], look_of(stage))]


def look_at_ours(stages, submissions):
    """[(stage, file, likeness, id, our file)]"""
    return [(stage, name, share, id, path) for stage, name, files in written(stages, submissions) if files
            for share, id, path in like_ours(stage, files)]
