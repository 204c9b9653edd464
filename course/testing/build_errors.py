"""Why a build failed, in a student's words: the compiler's first error without the noise, and what it means."""
import re

from rules import links
from shared import course

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
LED_TO_IT = re.compile(r"(stages/[^\s:]+:\d+)(?::\d+)?:\s+(?:note: )?(?:required|called) from")
OTHER_SET = re.compile(r"target specific option mismatch|needs isa option")
# A header of the library that the compiler does not have, as <format> and GCC 12.
UNKNOWN_HEADER = re.compile(r"fatal error: ['‘]?(\w+)['’]?:? (?:No such file or directory|file not found)")
TEST_WITHOUT_HEADER = re.compile(r"expected constructor, destructor, or type conversion|a type specifier is required")
# Notes that explain an error. (GCC also adds "candidate expects" about functions of the library, which nobody meant.)
NOTE = re.compile(r"note: .*(?:evaluated to|to match this|previous(?:ly)? (?:defin|declar)|candidate expects)")
# GCC: no matching function for call to 'min(int, unsigned long)'. Clang: no matching function for call to 'min'
OF_TWO_TYPES = re.compile(r"no matching function for call to ['‘](?:std::)?(min|max)\b")

# GCC names the place where the next statement begins, often in the next line. Clang names the end of the first one.
NO_SEMICOLON = re.compile(r":(\d+): error: expected ['‘],['’] or ['‘];['’] before ")


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


def own_line(lines, at):
    """A line that names the place in the student's file that led to an error in a header; none: the error is in it."""
    if "stages/" in lines[at].partition(" error:")[0]:
        return []
    found = (LED_TO_IT.search(line) for line in [*reversed(lines[max(at - 8, 0):at]), *lines[at + 1:at + 12]])
    return [course.say("error_from", place[1]) for place in found if place][:1]


def note_of(lines, at):
    """The first note about the error in lines[at] that a student needs; none: there is no such note."""
    for line in lines[at + 1:]:
        if ": error: " in line:
            break
        if NOTE.search(line) and not ("candidate expects" in line and line.startswith("/")):
            return [re.sub(r"note: +", "note: ", short(line.replace("../../", "")))]
    return []


def header_of(error, context):
    """A line about a header that the compiler does not have, or that a test lacks; none: no such error."""
    if found := UNKNOWN_HEADER.search(error):
        return [course.say("header_unknown", found[1])]
    if TEST_WITHOUT_HEADER.search(error) and any(re.search(r"\bTEST(?:_F|_P)?\(", line) for line in context):
        return [course.say("header_missing", "TEST", "gtest/gtest.h")]
    return []


def two_types(error):
    """A line about std::min or std::max of two types; none: no such error."""
    found = OF_TWO_TYPES.search(error)
    return [course.say("two_types", found[1])] if found else []


def no_semicolon(error, context):
    """A line about a ; that a line before the error's may lack; none: no such error, or code stands
    before it in its line."""
    found = NO_SEMICOLON.search(error)
    before = context[1].partition("|")[2][1:int(found[1])] if found and len(context) > 1 else "-"
    return [] if before.strip() else [course.say("no_semicolon")]


def other_set(error):
    """A line about an instruction that the file is not compiled for; none: no such error."""
    return [course.say("other_set")] if OTHER_SET.search(error) else []


def first_error(output):
    """The compiler's first error with its lines of context and a note that helps, without the noise around it. More
    lines name a well-known header that is missing, the student's line that led to an error in a header, an
    instruction of another set."""
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
            return "\n".join(context + note_of(lines, at) + own_line(lines, at) + missing_header(line)
                             + header_of(line, context) + no_semicolon(line, context) + two_types(line) + other_set(line))
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
