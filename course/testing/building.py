"""Builds targets with ./stage build, and says in a student's words why a build failed."""
import json
import re
import subprocess
import sys

from rules import links
from sandbox import confine
from shared import course

WARNINGS = course.ROOT / "build" / "course" / "warnings.json"  # {file: [hash of its text, its warnings]}
WHAT_IS_BUILT = {"worker": "build_stage", "counted": "build_stage", "my_tests": "build_my_tests",
                 "mistakes": "build_mistakes", "broken": "build_broken", "stagecraft_mine": "build_mine",
                 "storyteller_mine": "build_mine"}
# Targets that take minutes the first time: {target: (what it makes, what is said meanwhile)}. The gate is built before
# any other target; but what runs beside `stagecraft`, such as a mistake's story, needs no gate.
TAKE_MINUTES = {"gate": ("course/gate", "first_build"), "engine": ("src/libstagecraft.a", "first_engine"),
                "stagecraft": ("src/stagecraft", "first_program")}
# Where names are declared whose header students forget. Compilers name only some of these headers.
HEADERS = {name: header for header, names in {
    "algorithm": "all_of any_of clamp copy count count_if fill find find_if max max_element min min_element "
                 "minmax_element mismatch none_of nth_element partial_sort reverse sort stable_sort transform",
    "array": "array",
    "bit": "bit_cast",
    "cmath": "abs ceil cos cosf erf exp exp2 expf fabs floor fma isfinite isinf isnan ldexp log log2 pow round sin "
             "sinf sqrt sqrtf tanh INFINITY NAN",
    "cstdint": "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t",
    "cstdio": "fprintf printf puts stderr stdout",
    "cstring": "memcmp memcpy memset",
    "functional": "function greater",
    "immintrin.h": "__m128 __m128i __m256 __m256i",
    "iomanip": "setprecision setw",
    "iostream": "cerr clog cout endl",
    "limits": "numeric_limits",
    "memory": "make_unique unique_ptr",
    "numeric": "accumulate inner_product iota reduce",
    "optional": "optional",
    "span": "span",
    "string": "string to_string",
    "string_view": "string_view",
    "thread": "thread",
    "tuple": "tuple",
    "utility": "exchange move pair swap",
    "vector": "vector",
}.items() for name in names.split()}
# Their names may be used without std::; others may be names of variables.
WITHOUT_STD = ("cmath", "cstdint", "cstdio", "cstring", "immintrin.h")
# GCC: 'sort' is not a member of 'std'; 'NAN' was not declared. Clang: no member named 'sort' in namespace 'std';
# use of undeclared identifier 'NAN'.
NOT_DECLARED = re.compile(
    r"['‘](?:std::)?(?P<name>\w+)['’] (?:is not a member of|in namespace|in) ['‘](?P<of>std(?:::ranges)?)['’]|"
    r"(?:named|template) ['‘](?P<name2>\w+)['’] in namespace ['‘](?P<of2>std(?:::ranges)?)['’]|"
    r"['‘](?P<bare>\w+)['’] (?:was not declared|does not name a type)|undeclared identifier ['‘](?P<bare2>\w+)['’]")


# Some editors and PowerShell write UTF-16.
OTHER_ENCODING = re.compile(r"stray ['‘]\\37[67]['’]|UTF-16")


def what_is_built(targets):
    """What these targets build, in words; the last target decides."""
    last = targets[-1].removeprefix("course/") if targets else ""
    key = next((key for name, key in WHAT_IS_BUILT.items() if last.startswith(name)), "build_engine")
    number = re.search(r"_(\d\d)", last)
    return course.say(key, int(number[1]) if number else "")


def build(*targets, limited=False, warn=True):
    """Builds targets without output. Returns the compiler's output if that fails, else None. The compiler's warnings
    about a student's file are shown, unless `warn` is False. limited: the build ends with this process, even after
    kill -9."""
    command = [str(course.ROOT / "stage"), "build", "--only"]
    long_builds = targets if "stagecraft" in targets else ("gate", *targets)
    for target, (path, message) in TAKE_MINUTES.items():
        # A person must see this build: ./stage may also ask whether to install packages.
        if target in long_builds and not (course.BUILD / path).exists():
            course.tell(course.say(message), sys.stderr)
            if subprocess.run([*command, target], stdout=sys.stderr).returncode != 0:
                raise course.Problem(course.say("first_build_failed"))
    if limited and (course.BUILD / "course" / "confine").exists():
        command = confine.limited(command, seconds=3600)
    with course.doing(what_is_built(targets)):
        done = subprocess.run([*command, *targets], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace")
    if done.returncode != 0:
        return done.stdout
    for line in with_earlier(warnings(done.stdout), targets) if warn else []:
        course.tell(line, sys.stderr)
    return None


def build_mistakes(stage, limited=False, found=None):
    """Builds the wrong programs that explain failures. Returns their folder, or None if there are none. found: the
    result to explain. The first build takes long, so its owner, who waits, sees the first failure meanwhile."""
    if not course.mistakes(stage):
        return None
    if found and not course.mistakes_folder(stage).exists():
        if found.first_wrong:
            course.tell(f"{found.first_wrong.name}: {short(found.first_wrong.failures[0])}\n", sys.stderr)
        course.tell(course.say("first_mistakes"), sys.stderr)
    # If this build fails, the verdict only lacks the mistake's name.
    return course.mistakes_folder(stage) if build(f"mistakes_{stage.number}", limited=limited) is None else None


def listed():
    """The objects of the engine and of each stage that this build has: {"stagecraft": paths, "storyteller": paths,
    "stages": {number: ...}}."""
    path = course.BUILD / "course" / "mine.json"
    if not path.exists():  # the build may have been deleted although verdicts are still stored
        build("gate")
    return json.loads(path.read_text(encoding="utf-8").replace("/./", "/"))


def has(stage):
    """False if this build leaves out the stage: it needs the emulator of a GPU, and there is none on this machine."""
    return not stage.is_emulated or stage.number in listed()["stages"]


def warnings(output):
    """A compiler's warnings about students' files, one line each, with short names of files."""
    found = (short(line.replace("../../", "")) for line in output.splitlines() if ": warning: " in line)
    return list(dict.fromkeys(line for line in found if line.startswith("stages/")))


def with_earlier(new, targets):
    """These warnings, and those of an earlier build about the same text of the other files of these stages: a file that
    has not changed is not compiled again, and its warnings may still explain a failure."""
    try:
        known = json.loads(WARNINGS.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    lines = {}
    for line in new:
        lines.setdefault(line.partition(":")[0], []).append(line)
    known.update((file, [course.blob_hash((course.ROOT / file).read_bytes()), found]) for file, found in lines.items())
    if new:
        WARNINGS.parent.mkdir(exist_ok=True)
        WARNINGS.write_text(json.dumps(known), encoding="utf-8")
    numbers = {found[1] for target in targets if (found := re.search(r"_(\d\d)$", target))}
    is_of_them = re.compile(rf"stages/(?:{'|'.join(numbers)})-").match if numbers else lambda _: None
    return new + [line for file, (text, found) in known.items() for line in found
                  if file not in lines and is_of_them(file) and (course.ROOT / file).exists()
                  and course.blob_hash((course.ROOT / file).read_bytes()) == text]


def short(text):
    """The text with short names for the files of this repository."""
    return text.replace(f"{course.ROOT}/", "")


def missing_header(error):
    """A line that names the header in which the unknown name of a compiler's error is declared; none: no such error."""
    found = NOT_DECLARED.search(error)
    if not found:
        return []
    bare = found["bare"] or found["bare2"]
    name = bare or found["name"] or found["name2"]
    header = "immintrin.h" if name.startswith("_mm") else HEADERS.get(name)
    if header is None or bare and header not in WITHOUT_STD:
        return []
    space = "" if name.isupper() or header == "immintrin.h" else "std::" if bare else f"{found['of'] or found['of2']}::"
    return [course.say("header_missing", f"{space}{name}", header)]


LED_TO_IT = re.compile(r"(stages/[^\s:]+:\d+)(?::\d+)?:\s+(?:note: )?(?:required|called) from")
OTHER_SET = re.compile(r"target specific option mismatch|needs isa option")


def own_line(lines, at):
    """A line that names the place in the student's file that led to an error in a header; none: the error is in it."""
    if "stages/" in lines[at].partition(" error:")[0]:
        return []
    found = (LED_TO_IT.search(line) for line in [*reversed(lines[max(at - 8, 0):at]), *lines[at + 1:at + 12]])
    return [course.say("error_from", place[1]) for place in found if place][:1]


# GCC: no matching function for call to 'min(int, unsigned long)'. Clang: no matching function for call to 'min'
OF_TWO_TYPES = re.compile(r"no matching function for call to ['‘](?:std::)?(min|max)\b")


def two_types(error):
    """A line about std::min or std::max of two types; none: no such error."""
    found = OF_TWO_TYPES.search(error)
    return [course.say("two_types", found[1])] if found else []


def other_set(error):
    """A line about an instruction that the file is not compiled for; none: no such error."""
    return [course.say("other_set")] if OTHER_SET.search(error) else []


def first_error(output):
    """The compiler's first error with its lines of context, without the noise around it. More lines name a well-known
    header that is missing, the student's line that led to an error in a header, an instruction of another set."""
    lines = output.splitlines()
    for at, line in enumerate(lines):
        if (": error:" in line or ": fatal error:" in line) and not links.failed(line):
            context = [short(line.replace("../../", ""))]
            if OTHER_ENCODING.search(line):  # its lines cannot be read
                return "\n".join([*context, course.say("not_utf8")])
            for more in lines[at + 1:at + 4]:
                if not more.startswith(" "):
                    break
                context.append(more)
            return "\n".join(context + own_line(lines, at) + missing_header(line) + two_types(line) + other_set(line))
    return output.strip()[-2000:]


def why_not_built(output, program):
    """The first error to fix, from the output of a build that failed; program: relative to course.BUILD."""
    files = links.object_files(course.BUILD, program) if links.failed(output) else []
    return why_not_made(output, files)


def why_not_made(output, files):
    """The same; files: the objects, if they were to be linked."""
    found = []
    if links.failed(output):
        functions = {stage.id: stage.functions for stage in course.stages()}
        found = links.why_not_linked(course.BUILD, files, functions)
    return "\n".join(course.say(*problem) for problem in found) or first_error(output)
