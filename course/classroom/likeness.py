"""Which files of a class are more alike than is usual in it, whatever their names and formatting. This is a hint for
the teacher, and never a part of a mark.

A file becomes a row of tokens in which all names are equal and all numbers are equal; comments and formatting are gone.
A file with directives is compared as it is, and in the versions that were graded also as the compiler reads it: with
macros replaced (grading/preprocessed.py).
Each run of RUN tokens has a fingerprint; of each WINDOW fingerprints in a row the smallest is kept (winnowing:
Schleimer, Wilkerson and Aiken 2003). Fingerprints that occur in the starters, our answers or our headers, or in more
than USUAL of the class, are ignored; the others are weighted by how rare they are. Two files are alike if they share
most of this weight, and more than other pairs of the class do. The files of the first stages are short, and right
answers differ in little but names and numbers. So there names and numbers count, and all runs of RUN_WITH_NAMES tokens
are compared.

Every file is also compared with what anyone can copy from this repository: our answers and the right programs of the
catalogue, in their present and all earlier versions. Here names and numbers count, since right answers to a small task
differ in little else; files that are equal to our answers but for names are found as well. In the first stages, only
whole copies are listed: honest answers share their loops with programs of the catalogue. If more than half of a class
is like ours, this says little about each of them: then the whole copies are listed one by one, and the others in one
line.

All versions of a student's file that were ever seen count, so a copy that was rewritten later is found as well. (Of many,
some: always the first, the last, and those that were graded.) A file that cannot be compared is listed: one that is too
long, or over which the preprocessor or this code ends.
"""
import collections
import functools
import hashlib
import itertools
import math
import pathlib
import re
import sys
import traceback
import typing

from mistakes import catalogue
from rules import cpp_text
from shared import course
from shared import official

FIRST_STAGE = 4  # in earlier stages, right answers are so short that they differ only in names
RUN = 9
WINDOW = 5
USUAL = 0.1  # share of the class, but at least
FEW = 4  # people
LEAST = 12  # rare fingerprints that two files share
SHARED = 0.6  # of the weight of the lighter file
LIKE_OURS = 0.7  # share of a student's text that is in one file of ours, with names
COPY_OF_OURS = 0.95  # the same, in the first stages and if most of a class is like ours
RENAMED = 0.85  # the same with fingerprints, without names
RUN_WITH_NAMES = 6
LEAST_WITH_NAMES = 25  # runs of tokens; fewer say too little
SHARED_WITH_NAMES = 0.85
BEYOND = 0.2  # above the share of nearly all other pairs
# Comparing costs time and memory, and a student can hand in a new file of 256 KB each hour.
MOST_TOKENS = 10_000  # of a file; our longest answer has 1,000. Longer files are listed, whatever they hold
MOST_ROWS, MOST_SETS = 4096, 1024  # of tokens, and of fingerprints or runs, in memory
MOST_VERSIONS = 20  # of a file: the first, the last, and some between them
KEYWORDS = frozenset("""auto bool break case catch char class const constexpr continue default delete do double
    else enum false float for if inline int long namespace new noexcept nullptr operator private public return
    short signed sizeof static struct switch template this throw true try typename union unsigned using virtual
    void volatile while size_t""".split())


def tokens(text, names=False):
    """The tokens of C++, without what can be changed without changing the program; names: with names and numbers."""
    for kind, token in cpp_text.rows(text):
        if kind in ("text", "header"):
            yield "S"
        elif kind == "word" and (token[0].isdigit() or token[0] == "."):
            yield token if names else "0"
        elif kind == "word":
            yield token if names or token in KEYWORDS else "N"
        elif kind == "sign" and token not in "{};":  # braces count as formatting
            yield token


@functools.lru_cache(maxsize=MOST_ROWS)
def row_of(text, names):
    """The first tokens, and one more if there are more. Equal texts of many versions and students are read once."""
    return tuple(map(sys.intern, itertools.islice(tokens(text, names), MOST_TOKENS + 1)))


def first_tokens(text, names=False):
    return row_of(text, names)[:MOST_TOKENS]


def is_long(text):
    return len(row_of(text, False)) > MOST_TOKENS


@functools.lru_cache(maxsize=MOST_SETS)
def fingerprints(text):
    row = first_tokens(text)
    runs = [int.from_bytes(hashlib.blake2b(" ".join(row[at:at + RUN]).encode(), digest_size=8).digest(), "big")
            for at in range(len(row) - RUN + 1)]
    return frozenset(min(runs[at:at + WINDOW]) for at in range(max(len(runs) - WINDOW + 1, min(len(runs), 1))))


@functools.lru_cache(maxsize=MOST_SETS)
def runs(text):
    """All runs of RUN_WITH_NAMES tokens, with names."""
    row = first_tokens(text, names=True)
    return frozenset(row[at:at + RUN_WITH_NAMES] for at in range(len(row) - RUN_WITH_NAMES + 1))


class Look(typing.NamedTuple):
    """A way to compare the files of a class."""
    see: typing.Callable  # text -> the set that is compared
    least: int  # members of the set that two files must share
    shared: float  # and the share of the lighter file's weight


NAMELESS = Look(fingerprints, LEAST, SHARED)
NAMED = Look(runs, LEAST_WITH_NAMES, SHARED_WITH_NAMES)


def look_of(stage):
    return NAMELESS if stage.id >= FIRST_STAGE else NAMED


def handed_out(stage):
    """The set for what all students have: the starters and our answers."""
    see, found = look_of(stage).see, set()
    for unit in stage.units:
        found |= see(stage.starter(unit).decode("utf-8", "replace"))
        for path in unit["answers"]:
            found |= see((course.ROOT / path).read_text(encoding="utf-8"))
    return found


def pairs(files, known, look=NAMELESS, n_people=None):
    """[(share, 0 to 1, one id, other id)] for the pairs that share at least look.least members.

    files: {id: text, or texts}. known: the set to ignore. n_people: who wrote them, if fewer than there are files.
    """
    n_people = n_people or len(files)
    mine = {id: set().union(*map(look.see, [texts] if isinstance(texts, str) else texts)) - known
            for id, texts in files.items()}
    holders = collections.defaultdict(list)
    for id, prints in mine.items():
        for one in prints:
            holders[one].append(id)
    most = max(FEW, USUAL * n_people)
    weight = {one: math.log(1 + n_people / len(ids)) for one, ids in holders.items() if len(ids) <= most}
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
    """The 95th percentile of the shares of all pairs of n files; pairs that are not in `found` share almost nothing."""
    n_pairs = n * (n - 1) // 2
    shares = sorted((share for share, *_ in found), reverse=True)
    at = n_pairs // 20
    return shares[at] if at < len(shares) else 0.0


def clusters(files, known, look=NAMELESS):
    """[(least likeness, [ids])] for each group of files that are alike, the most alike first."""
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


def copies(files, known, look=NAMELESS):
    """[[ids]] for each group of files whose tokens are all equal. (In `clusters`, what many have does not count.)"""
    holders, text_of = collections.defaultdict(set), {}
    for id, texts in files.items():
        for text in texts:
            row = tuple(first_tokens(text, names=look is NAMED))
            holders[row].add(id)
            text_of[row] = text
    return sorted(sorted(ids) for row, ids in holders.items()
                  if len(ids) > 1 and len(look.see(text_of[row]) - known) >= look.least)


# ---- ours ---------------------------------------------------------------------------------------


def paths_of_ours(stage):
    """The paths of answers to a stage in this repository."""
    folder = catalogue.folder_of(stage)
    right = [(folder / program["file"]).relative_to(course.ROOT).as_posix() for program in catalogue.entries(folder)
             if program["is"] == "right"]
    return [*(path for unit in stage.units for path in unit["answers"]), *right]


def text_of_ours(path):
    """The text of one of these; some right programs are edits of others."""
    file = course.ROOT / path
    return file.read_text(encoding="utf-8") if file.exists() else catalogue.source_of(file.parent, file.stem)


@functools.lru_cache(maxsize=None)
def history():
    """{name of a file: {(path, blob)}} for each C++ file that this repository ever had."""
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
    """[(path, text)]: the present answers, and all earlier files of the same name, in any folder."""
    found = {}
    for path in paths_of_ours(stage):
        text = text_of_ours(path)
        found.setdefault(text, path)
        is_ours = path.startswith("src/")
        for older, blob in history()[pathlib.PurePosixPath(path).name]:
            if older.startswith("src/") == is_ours and (is_ours or stage.slug in older):
                old = official.git("cat-file", "blob", blob)
                found.setdefault(old or text, f"{older}@{blob[:10]}")
    return [(path, text) for text, path in found.items()]


class Ours:
    """The answers to a stage that a text is compared with, as sets of runs or of fingerprints."""

    def __init__(self, stage, see, answers):
        self.see = see
        self.handed = set().union(*(see(stage.starter(unit).decode("utf-8", "replace")) for unit in stage.units))
        self.seen = {path: see(text) - self.handed for path, text in answers}
        for unit in stage.units:  # one student's file may answer several files of ours
            of = [path for path in self.seen if path.partition("@")[0] in unit["answers"]]
            if len(unit["answers"]) > 1:
                self.seen[" + ".join(unit["answers"])] = set().union(*(self.seen[path] for path in of))

    def best(self, text, least):
        """(share of the text, or of ours if that is shorter; path of ours)"""
        mine = self.see(text) - self.handed
        if len(mine) < least:
            return 0.0, ""
        # Added code does not hide a copy: the share is that of the shorter text.
        return max((len(mine & theirs) / min(len(mine), max(len(theirs), least)), path)
                   for path, theirs in self.seen.items())


def like_ours(stage, files):
    """[(share, id, path of ours, whether it is the share with names)], the most alike first; files: {id: texts} of one of
    the stage's files."""
    answers = answers_of_ours(stage)
    is_first = look_of(stage) is NAMED
    of_ours = [answer for answer in answers if answer[0].startswith("src/")]
    ways = [(NAMED, Ours(stage, NAMED.see, answers), COPY_OF_OURS if is_first else LIKE_OURS),
            (NAMELESS, Ours(stage, NAMELESS.see, of_ours if is_first else answers), RENAMED)]
    found = []
    for id, texts in files.items():
        for look, ours, limit in ways:
            share, path = max(ours.best(text, look.least) for text in texts)
            if share >= limit:
                found.append((share, id, path, look is NAMED))
                break
    return sorted(found, key=lambda one: (-one[0], one[1]))


# ---- a class ------------------------------------------------------------------------------------


class Handed(typing.NamedTuple):
    """What a class has handed in, for comparing it."""
    versions: dict  # {id: [Submission]}, all that were seen
    graded: dict = {}  # {(id, stage id): [Submission]}, those that may count
    preprocessed: typing.Callable = lambda handed_in, stage: {}  # as preprocessed.texts


def some_of(texts, always=()):
    """At most MOST_VERSIONS of them, with the first and the last; and those that are in `always`. Texts that differ only in
    blanks and comments count once, or many such versions would keep others from being chosen."""
    if len(texts) > MOST_VERSIONS:
        texts = list({re.sub(r"\s+", "", cpp_text.without_comments(text)): text for text in texts}.values())
    n = min(len(texts), MOST_VERSIONS)
    chosen = [texts[at * (len(texts) - 1) // max(n - 1, 1)] for at in range(n)]
    return list(dict.fromkeys([*chosen, *always]))


def can_be_compared(text):
    """False if there is no text, if it is too long, or if reading it ends with an error, which is no reason to end for all
    others."""
    try:
        return text is not None and not is_long(text) and first_tokens(text, names=True) is not None
    except Exception:  # noqa: BLE001: also MemoryError and RecursionError
        traceback.print_exc()
        return False


def written(stages, handed):
    """(stage, unit's name, {id: texts}, [ids]): what students have written themselves, in all versions; and who has a
    text that cannot be compared, which is not among the texts."""
    for stage in stages:
        read = {id: [handed.preprocessed(one, stage) for one in handed.graded.get((id, stage.id), [])]
                for id in handed.versions}
        for unit in stage.units:
            name = course.unit_name(stage, unit)

            def own(versions):
                data = dict.fromkeys(one.files[name] for one in versions if name in one.files)
                return [one.decode("utf-8", "replace") for one in data if course.blob_hash(one) != unit.get("starter")]
            files, unread = {}, []
            for id, versions in handed.versions.items():
                graded = own(handed.graded.get((id, stage.id), []))
                texts = [*some_of(own(versions), graded), *(one[name] for one in read[id] if name in one)]
                files[id] = [text for text in texts if can_be_compared(text)]
                if len(files[id]) < len(texts):
                    unread.append(id)
            yield stage, name, {id: texts for id, texts in files.items() if texts}, unread


def moved(files, known, look=NAMELESS):
    """[(share, [names], [ids])] for each pair of files with different names, of two people, that are alike; files: {(id,
    name): texts}. Code works in any file of its stage."""
    n_people = len({id for id, _ in files})
    return sorted(((share, sorted([one[1], other[1]]), sorted([one[0], other[0]]))
                   for share, one, other in pairs(files, known, look, n_people)
                   if share >= look.shared and one[0] != other[0] and one[1] != other[1]), reverse=True)


def look_at_these(stages, handed):
    """[(stage, file, likeness, [ids])]"""
    known = {stage.id: handed_out(stage) for stage in stages}
    every = collections.defaultdict(dict)
    found = []
    for stage, name, files, _ in written(stages, handed):
        look = look_of(stage)
        alike = clusters(files, known[stage.id], look)
        found += [(stage, name, 1.0, ids) for ids in copies(files, known[stage.id], look)
                  if not any(set(ids) <= set(others) for _, others in alike)]
        found += [(stage, name, share, ids) for share, ids in alike]
        every[stage].update({(id, name): texts for id, texts in files.items()})
    for stage, files in every.items():
        if len(stage.units) > 1:
            found += [(stage, " / ".join(names), share, ids)
                      for share, names, ids in moved(files, known[stage.id], look_of(stage))]
    return found


def look_at_ours(stages, handed):
    """[(stage, file, likeness, [ids], our file)]; for a file that cannot be compared, and for most of a class, the reason
    instead of ours."""
    found = []
    for stage, name, files, unread in written(stages, handed):
        found += [(stage, name, 1.0, [id], course.say("class_not_compared", MOST_TOKENS)) for id in sorted(unread)]
        alike = like_ours(stage, files) if files else []
        is_most = len(alike) > max(FEW, len(files) / 2)
        together = [(share, id) for share, id, _, named in alike if is_most and not (named and share >= COPY_OF_OURS)]
        ids = [id for _, id in together]
        found += [(stage, name, share, [id], path) for share, id, path, _ in alike if id not in ids]
        if together:
            found.append((stage, name, together[-1][0], ids,
                          course.say("class_most_like_ours", len(alike), len(files))))
    return found
