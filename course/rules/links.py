"""The symbols that object files define and need: explains why a program cannot be linked.

The functions return problems as (message key, values...), for course.say.
"""
import collections
import functools
import pathlib
import re
import subprocess
import sys
import tempfile

from sandbox.limited import with_limits

Symbol = collections.namedtuple("Symbol", "file kind mangled name address")
LINE = re.compile(r"^\s*([0-9a-fA-F]*)\s+([A-Za-z?-])\s(.+)$", re.A)
OBJECT = re.compile(r"(.*/|)CMakeFiles/[^/]+\.dir/(.*)\.o(bj)?$")
LINKED = re.compile(OBJECT.pattern + r"|course/libengine_\d\d\.a")
STAGE_FILE = re.compile(r"(?:^|/)stages/(\d\d)-[^/]+/")
# Names of our namespace, of the global one, and of C; all others (std::, fmt::, typeinfo) are not written by students.
CPP_BY_HAND = re.compile(r"_ZNK?10stagecraft|_Z\d")
BY_HAND = re.compile(r"_ZNK?10stagecraft|_Z\d|[A-Za-z]\w*$")
MOST_LETTERS = 4096  # of a line of nm, or of a name: real ones have hundreds
NM_SECONDS, NM_BYTES, NM_MEMORY = 30, 32 << 20, 256 << 20
LINK_FAILED = ("ld returned", "linker command failed", "link editor")


def failed(output):
    """True if this is the output of a build whose link failed."""
    return any(sign in output for sign in LINK_FAILED)


@functools.lru_cache(maxsize=None)
def nm_of(build):
    for line in (pathlib.Path(build) / "CMakeCache.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("CMAKE_NM:"):
            return line.partition("=")[2]
    return "nm"


def run_nm(build, files, *options):
    """The lines of nm's output, split only at "\\n": a name may contain other line ends of Unicode. Runs under limits:
    a name that repeats the same part becomes gigabytes when it is demangled."""
    command = with_limits([nm_of(build), "-p", *options, *map(str, files)], NM_BYTES, NM_MEMORY)
    with tempfile.TemporaryFile() as said:
        subprocess.run(command, cwd=build, check=True, stdin=subprocess.DEVNULL, stdout=said,
                       stderr=subprocess.DEVNULL, timeout=NM_SECONDS)
        said.seek(0)
        return [line.decode(errors="replace")[:MOST_LETTERS] for line in said.read().split(b"\n")]


def symbols(build, files):
    """The symbols of object files or of a program, paths relative to build; [] if nm is missing."""
    if not files:
        return []
    try:
        mangled, plain = run_nm(build, files), run_nm(build, files, "-C")
    except (OSError, subprocess.SubprocessError):
        return []
    found = []
    headings = {f"{file}:": str(file) for file in files}
    file = str(files[0])
    for raw, readable in zip(mangled, plain):
        if raw in headings:
            file = headings[raw]
        elif raw.endswith(".o:"):  # in an archive
            file = raw[:-1]
        line, name = LINE.match(raw), LINE.match(readable)
        if line and name:
            symbol = line[3][1:] if sys.platform == "darwin" else line[3]
            found.append(Symbol(file, line[2], symbol, pretty(name[3]), int(line[1] or "0", 16)))
    return found


def pretty(name):
    return re.sub(r", 18446744073709551615ul", "", name).replace("[abi:cxx11]", "")


def is_defined(symbol):
    return symbol.kind.isupper() and symbol.kind != "U"


def is_strong(symbol):
    return is_defined(symbol) and symbol.kind not in "WV"


def last_name(name):
    """'void stagecraft::x<int>::dot<4>(float)' -> 'dot'"""
    head = name.partition("(")[0] if not name.startswith("(anonymous") else name
    left, opened = [], []  # opened: the places of "<" in left
    for letter in head:
        left.append(letter)
        if letter == "<":
            opened.append(len(left) - 1)
        elif letter == ">" and opened:
            del left[opened.pop():]
    return re.split(r"::|\s|~", "".join(left))[-1]


@functools.lru_cache(maxsize=None)
def functions_of_headers(root):
    names = set()
    for header in (pathlib.Path(root) / "src").rglob("*.h"):
        code = re.sub(r"//.*", "", header.read_text(encoding="utf-8"))
        names.update(re.findall(r"(\w+)\(", code))
        names.update(re.findall(r"\b(?:class|struct) (\w+)", code))  # code that the compiler generates for them
    return names


def comes_from_a_header(symbol, root):
    """True if the symbol is a function of one of our headers: many objects may define it. (Mach-O's nm does not
    say.)"""
    if symbol.kind not in "WV" and sys.platform != "darwin":
        return False
    return ("operator" in symbol.name or "{lambda" in symbol.name
            or last_name(symbol.name) in functions_of_headers(root))


def object_files(build, program):
    """The objects and our archives from which a program is linked."""
    ask = ["ninja", "-C", str(build), "-t", "query", program]
    done = subprocess.run(ask, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    inputs = done.stdout.partition("outputs:")[0]
    files = [line.strip(" |") for line in inputs.splitlines()]  # "| libx.a": a dependency of the link
    return list(dict.fromkeys(file for file in files if LINKED.fullmatch(file)))


def source_of(file):
    """course/CMakeFiles/mine_02.dir/__/stages/02-rms-norm/rms_norm.cpp.o -> stages/02-..."""
    found = OBJECT.fullmatch(file)
    if not found:
        return file
    parts = []
    for part in (found[1] + found[2]).split("/"):
        if part == "__" and parts:
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def stage_of(file):
    found = STAGE_FILE.search(file)
    return int(found[1]) if found else None


def without_namespace(name):
    return name.replace("stagecraft::", "")


def clashes(build, root, files):
    """Symbols that two stages define, even if the linker would silently take one of the two."""
    first = {}
    found = []
    for symbol in symbols(build, files):
        if not is_defined(symbol) or not BY_HAND.match(symbol.mangled):
            continue
        if comes_from_a_header(symbol, root):
            continue
        stage = stage_of(symbol.file)
        other = first.setdefault(symbol.mangled, stage)
        if other != stage:
            found.append(("clash_stages", *sorted((other, stage)), without_namespace(symbol.name)))
    return found


def why_not_linked(build, files, functions):
    """Why the linker refused a program from these objects, some of which are a student's.

    functions: {stage: names of its functions}
    """
    every = symbols(build, files)
    strong = collections.defaultdict(list)
    for symbol in every:
        if is_strong(symbol):
            strong[symbol.mangled].append(symbol)
    found = []
    for same in strong.values():
        sources = [source_of(symbol.file) for symbol in same]
        if len(sources) > 1 and any(map(stage_of, sources)):
            sources.sort(key=lambda source: stage_of(source) is None)
            name = without_namespace(same[0].name)
            found.append(("own_main", sources[0]) if name == "main" else ("clash_files", *sources[:2], name))

    known = {symbol.mangled for symbol in every if is_defined(symbol)}
    for symbol in every:
        if symbol.kind == "U" and symbol.mangled not in known and CPP_BY_HAND.match(symbol.mangled):
            known.add(symbol.mangled)
            found.append(why_undefined(symbol, every, files, functions))
    return found


def why_undefined(symbol, every, files, functions):
    function = last_name(symbol.name)
    stage = next((stage for stage, names in functions.items() if function in names), None)
    sources = [source_of(file) for file in files if stage is not None and stage_of(file) == stage]
    if not sources:
        return "undefined", source_of(symbol.file), without_namespace(symbol.name)
    for other in every:
        source = source_of(other.file)
        if is_strong(other) and source in sources and last_name(other.name) == function:
            return "other_signature", source, symbol.name, other.name
    named = [source for source in sources if pathlib.Path(source).stem == function]
    return "not_defined", (named or sources)[0], symbol.name
