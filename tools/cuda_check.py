"""Runs a CUDA program without a GPU, and checks what its kernels do.

The command compiles FILE.cu with g++ and the emulator in src/cuda_emulator, and runs its main. It prints the findings
(races, accesses out of bounds, reads of memory that nobody wrote, divergent barriers, deadlocks, shuffles from inactive
lanes, misaligned accesses), then what each line asks of the memory. The exit code is 1 if there is a finding, and 2 if
the command line is wrong.

Two things in FILE.cu differ from plain CUDA: #include "cuda_emulator.h", and
cuda_launch(kernel, {grid, block}, arguments...) instead of kernel<<<grid, block>>>(arguments...).
"""
import argparse
import collections
import functools
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

import repository

ROOT = repository.ROOT
EMULATOR = ROOT / "src" / "cuda_emulator"
INCLUDES = [f"-I{EMULATOR}", f"-I{EMULATOR / 'include'}", f"-I{EMULATOR / 'cuda_names'}"]
# The counts depend on the compiler's flags, so these are fixed. Without optimisation, an access in the source is an
# access in the program: none is merged, hoisted or left out.
FLAGS = ["-std=c++20", "-O0", "-g", "-fno-pie", "-Werror=vla", "-fno-builtin", "-ffp-contract=off", "-fno-extern-tls-init",
         "-fno-jump-tables",  # a switch through a table looks like a call through a pointer
         "-ftrivial-auto-var-init=pattern", "-fsanitize=thread,bounds-strict", "--param=tsan-distinguish-volatile=1"]
OLDEST_GCC = 12  # the first with -ftrivial-auto-var-init
PADDING = 16 << 10  # bytes after each shared array: a small overrun does not reach the next one
VARIABLE_PADDING = 1 << 10  # the same after each variable
DYNAMIC_BYTES = 227 << 10  # dynamic_bytes in memory.h
COMPILE_SECONDS = 300
TIMED_OUT = 124  # the exit code if the program was stopped
OWN_NAMES = {name: f"cuda_emulator_{name}" for name in ("memcpy", "memmove", "memset")}
ARITHMETIC = re.compile(r"\t(?:add|sub|mul|div|sqrt)s[sd]\t")
# g++ fills local variables without a value with bytes 0xfe. As a float this is finite, and 0 times it is 0. Words of
# 0xfffefffe are NaN as float, double, half and bf16, and a negative int, so a product with 0 does not hide them.
UNSET = (
    (re.compile(r"^(\tmovl\t\$)-16843010,", re.M), r"\1-65538,"),
    (re.compile(r"^(\tmovabsq\t\$)-72340172838076674,", re.M), r"\1-281479271743490,"),
    (re.compile(r"(?<=^\.LC)(\d+:\n)((?:\t\.long\t-16843010\n)+)", re.M),
     lambda found: found[1] + found[2].replace("-16843010", "-65538")),
    (re.compile(r"(?<=^\.LC)(\d+:\n)(?:\t\.byte\t-2\n){16}", re.M), r"\1" + "\t.byte\t-2\n\t.byte\t-1\n" * 8))
UNMARKED = "-ftrivial-auto-var-init=uninitialized"
OBJECT = re.compile(r"\t\.type\t([^,]+), ?[@%]object")
LOCAL_VARIABLE = re.compile(r"\t\.comm\t([^,]+),(\d+),(\d+)$")
DATA = re.compile(r"\t\.(?:zero|skip|space|long|quad|byte|value|short|word|string|ascii|asciz|float|double|base64|[248]byte|xword|hword)\t")
ATOMIC = re.compile(r"\tcall\t_Z\d+atomic[A-Z]\w*?(P[fd])?[^P]*$")
RETURNED = {False: re.compile(r"%(?:[re]?ax|al)\b"), True: re.compile(r"%xmm0\b")}  # {floating-point: its register}
READS_RETURNED = re.compile(r"\t(?:cltq|cltd|cqto|cwtl|ret|leave)\b")
MOVES = re.compile(r"\t(?:mov|lea|cvt|pxor|xor)\w*\t")
FILE = re.compile(r'\t\.file (\d+) "([^"]*)"(?: "([^"]*)")?')
LOCATION = re.compile(r"\t\.loc (\d+) (\d+) ")
FUNCTION = re.compile(r"\t\.type\t([^,]+), [@%]function")
CALL = re.compile(r"\t(?:call|jmp|bl|b)\t(_Z(?!T)\w+)")
SYMBOL = re.compile(r"(?<![\w.])_Z(?!T)\w+")
# By its alignment (emulated/cuda.h).
KERNEL = re.compile(r"^\t\.align[ \t](?:64|6)\n(?:\t\.(?:globl|weak)\t.*\n)*\t\.type\t([^,]+), [@%]function", re.M)
# Nobody writes __device__ before a lambda, or before a constructor, destructor or assignment that the compiler makes.
NEEDS_NO_MARK = re.compile(r"NK?Ul|(?:[CD][0-4]|aS)E")
THREAD_LOCAL = re.compile(r"(?i:([\w.$]+)@(?:got)?tpoff)|:(?:got)?tprel(?:_\w+)?:([\w.$]+)")


# Words that could switch the checker off: code that the compiler does not instrument, and lines that name another file.
HARMLESS_BUILTINS = (r"(?:expect|unreachable|bit_cast|offsetof|va_\w+|popcount\w*|clz\w*|ctz\w*|ffs\w*|abs|"
                     r"fabs\w*|inf\w*|nan\w*|huge_val\w*|is\w+|signbit\w*|FUNCTION|FILE|LINE)")
FORBIDDEN = re.compile(r"asm|__asm|__asm__|__attribute__|__attribute|gnu|__gnu__|clang|_Pragma|_mm\w*|"
                       r"\w*(?:no_sanitize|tsan_|ubsan_|cuda_emulator|CUDA_EMULATOR)\w*|"
                       rf"__builtin_(?!{HARMLESS_BUILTINS}$)\w+")
ONLY_SEEN, TRUSTED = "expected only code that the checker sees", "(--trusted skips this check)"
MARK = re.compile(r'# (\d+) "((?:[^"\\]|\\.)*)"((?: \d)*)$')  # from the compiler: the place of the next line
RESERVED_MACRO = re.compile(r"#\s*(?:define|undef)\s+_[A-Z_]\w*")  # such as the include guards of system headers
FOR_A_PROCESSOR = re.compile(r"/(?:\w*intrin|\w*cpuid|arm_\w+)\.h$")  # headers of functions that no checker sees
PRAGMA = re.compile(r"^#\s*pragma (?!once\b|unroll\b).*", re.M)
OWN_ATTRIBUTES = re.compile(r"__attribute__\(\((?:always_inline|aligned\([^()]*\))\)\)")
# Functions of <cmath>, in double precision, that access no memory of the program.
MATH = (r"a?(?:sin|cos|tan)h?|atan2|exp|exp2|exp10|expm1|log|log2|log10|log1p|pow|sqrt|cbrt|rsqrt|hypot|erfc?|"
        r"tgamma|lgamma|floor|ceil|round|trunc|rint|nearbyint|l?lround|l?lrint|fabs|fmod|remainder|fma|fmin|fmax|fdim|"
        r"copysign|ldexp|scalbn?|logb|ilogb|nextafter")
# Functions that a program may call besides the emulator: none that starts threads, opens or maps files, or writes to a
# place named by an argument unseen by the checker.
LIBRARY = re.compile(
    r"_Z(?:N[KR]*)?S[tsabiod](?!.*(?:filebuf|fstream|filesystem|6thread|jthread|5async|condition_variable)).*|"
    r"_Zn[wa]m.*|_Zd[la]Pv.*|_ZT[IVS].*|__cxa_\w+|__gxx_personality_v0|__gcc_personality_v0|_Unwind_Resume|__dso_handle|"
    r"_GLOBAL_OFFSET_TABLE_|__stack_chk_fail|__libc_single_threaded|__throw_\w+|__\w+[dts][ifc]\d|printf|puts|putchar|fprintf|"
    r"fflush|fputs|fputc|stdout|stderr|malloc|calloc|free|exit|abort|"
    r"__assert_fail|strlen|strcmp|strncmp|memcmp|atoi|atof|atol|strto[dfl]|strtoull?|strtoll?|rand|srand|time|clock|"
    r"abs|l?labs|isdigit|isspace|logl|"
    rf"(?:{MATH}|frexp|modf|sincos|nan)f?")


class Problem(Exception):
    """An error of one line, for the user."""


def compiler():
    name = os.environ.get("CXX", "g++")
    if platform.system() != "Linux":
        raise Problem(f"the emulator reads ELF files: expected Linux, found {platform.system()}")
    if shutil.which(name) is None:
        raise Problem(f"expected the C++ compiler {name}, found none")
    if "clang" in os.path.basename(os.path.realpath(shutil.which(name))):
        raise Problem(f"the emulator needs the code that g++ generates: expected g++ in CXX, found {name}")
    version = version_of(name)
    if version.split(".")[0].isdecimal() and int(version.split(".")[0]) < OLDEST_GCC:
        raise Problem(f"the emulator: expected g++ {OLDEST_GCC} or newer, found {version}")
    return ["ccache", name] if can_use_ccache() else [name]


@functools.cache
def version_of(compiler_name):
    return subprocess.run([compiler_name, "-dumpversion"], stdout=subprocess.PIPE, text=True, check=False).stdout.strip()


@functools.cache
def can_use_ccache():
    """Whether ccache is there and can write its cache; it compiles nothing if it cannot."""
    try:
        done = subprocess.run(["ccache", "--get-config", "cache_dir"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True, check=True)
        cache = pathlib.Path(done.stdout.strip())
        cache.mkdir(parents=True, exist_ok=True)
        return os.access(cache, os.W_OK)
    except (OSError, subprocess.SubprocessError):
        return False


def run(words, **options):
    try:
        return subprocess.run([str(word) for word in words], capture_output=True, text=True, errors="replace",
                              check=False, timeout=COMPILE_SECONDS, **options)
    except subprocess.TimeoutExpired:
        raise Problem(f"{words[0]}: expected it to end within {COMPILE_SECONDS} s") from None


def emulator_object():
    """The emulator as one object file, compiled once per state of its sources and compiler. Its instances of the C++
    library's templates are made local, so that the linker cannot use them in place of the program's instrumented
    ones."""
    state = hashlib.sha256(" ".join(compiler()).encode())
    for file in [pathlib.Path(__file__), *sorted(EMULATOR.rglob("*.[hc]*"))]:
        state.update(file.read_bytes())
    final = ROOT / "build" / "cuda_emulator" / f"{state.hexdigest()[:16]}.o"
    if final.is_file():
        return final
    final.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=final.parent) as folder:
        work = pathlib.Path(folder)
        together = work / "together.cpp"  # in half of the time
        together.write_text("".join(f'#include "{file}"\n' for file in sorted(EMULATOR.glob("*.cpp"))))
        must([*compiler(), "-std=c++20", "-O1", "-fno-pie", "-fno-gnu-unique", "-Wall", *INCLUDES, "-I", EMULATOR, "-c",
              together, "-o", work / "together.o"])
        must([compiler()[-1], "-r", "-nostdlib", "-Wl,--force-group-allocation", work / "together.o", "-o", work / "all.o"])
        shared = [name for name, kind in names(work / "all.o") if kind in "WV"]
        (work / "shared").write_text("".join(f"{name}\n" for name in shared))
        must(["objcopy", f"--localize-symbols={work / 'shared'}", work / "all.o", work / "final.o"])
        os.replace(work / "final.o", final)  # atomic: another process may be building it, too
    return final


def must(words):
    done = run(words)
    if done.returncode != 0:
        raise Problem(first_error(done.stderr))


def names(thing):
    """(symbol, kind) for each symbol of an object file, from nm."""
    lines = [line.split() for line in run(["nm", "-P", thing]).stdout.splitlines()]
    return [(fields[0], fields[1]) for fields in lines if len(fields) > 1]


def first_error(text):
    lines = text.strip().splitlines()
    telling = [line for line in lines if "error:" in line or "undefined" in line or "multiple" in line]
    first = (telling or lines or ["no message"])[0]
    return launch_of_nvcc(first) or first


def launch_of_nvcc(error):
    """A better message for an error of g++, if its line has a kernel launch in a form that only nvcc can compile."""
    found = re.match(r"(.+?):(\d+):\d+: error: ", error)
    if not found or not pathlib.Path(found[1]).is_file():
        return None
    lines = pathlib.Path(found[1]).read_text(errors="replace").splitlines()
    line = int(found[2])
    if not 0 < line <= len(lines) or "<<<" not in lines[line - 1]:
        return None
    return (f"{found[1]}:{line}: error: expected cuda_launch(kernel, {{blocks, threads}}, arguments...), found "
            "kernel<<<blocks, threads>>>(arguments...), which only nvcc can compile")


def mark(match):
    """A key that distinguishes the fill values of local variables: the place in the source, and the text."""
    at = match.string.rfind("\n\t.loc ", 0, match.start())
    is_code = match[0].startswith("\t") and at >= 0
    place = match.string[at + 1:match.string.index("\n", at + 1)] if is_code else ""
    return re.sub(r" (?:is_stmt|discriminator).*", "", place), match[0].lstrip("0123456789")


def with_nan_marks(text, unmarked):
    """The assembler file, in which local variables without a value are NaN. unmarked(): the same file without fill
    values. A number that also occurs there is one of the program, such as 0xfefefefe."""
    if platform.machine() != "x86_64" or not any(pattern.search(text) for pattern, _ in UNSET):
        return text
    plain = unmarked()
    for pattern, instead in UNSET:
        own = {mark(match) for match in pattern.finditer(plain)}

        def change(match):
            if own and mark(match) in own:
                return match[0]
            return instead(match) if callable(instead) else match.expand(instead)
        text = pattern.sub(change, text)
    return text


def is_discarded(lines, call, labels):
    """True if nothing reads the result of the atomic function that line `call` calls. x86-64, without optimisation."""
    register = RETURNED[ATOMIC.match(lines[call])[1] is not None]
    line = call
    for _ in range(100):
        line += 1
        if line >= len(lines) or READS_RETURNED.match(lines[line]):
            return False
        text = lines[line]
        if text.startswith("\tcall"):
            return True
        if text.startswith("\tjmp\t"):
            line = labels.get(text.split()[1], len(lines))
        elif text[:1] == "\t" and text[1:2] != "." and register.search(text):
            sources, _, target = text.rpartition(", ")
            return bool(MOVES.match(text) and register.fullmatch(target) and
                        (not register.search(sources) or sources.split("\t")[-1] == target))
    return False


def padding(number):
    """Lines for the gap after a variable. It has a name, so that the emulator knows it."""
    name = f"cuda_emulator_padding.{number}"
    return [f"\t.type\t{name}, %object", f"\t.size\t{name}, {VARIABLE_PADDING}", f"{name}:",
            f"\t.zero\t{VARIABLE_PADDING}"]


def padded_variables(text):
    """The assembler file with a gap after each variable, so that a small overrun does not reach the next one."""
    lines, objects, inside, is_thread_local = [], set(), False, False
    for number, line in enumerate(text.split("\n")):
        if inside and not DATA.match(line):
            lines += padding(number)
            inside = False
        if line.startswith(("\t.section", "\t.text", "\t.data", "\t.bss")):
            is_thread_local = ".tbss" in line or ".tdata" in line
        elif found := OBJECT.match(line):
            objects.add(found[1])
        elif line[-1:] == ":" and line[:-1] in objects:
            inside = not is_thread_local
        elif found := LOCAL_VARIABLE.match(line):
            name, size, alignment = found.groups()
            lines += ["\t.pushsection .bss", f"\t.balign\t{alignment}", f"\t.type\t{name}, %object",
                      f"\t.size\t{name}, {size}", f"{name}:", f"\t.zero\t{size}", *padding(number), "\t.popsection"]
            continue
        lines.append(line)
    return "\n".join(lines)


def changed_assembly(text, checked=True):
    """Adds what the compiler cannot add: padding after each shared array, and storage for the dynamic arrays. If
    checked, it also adds padding after each variable, makes the checker see memcpy and similar calls, counts
    floating-point operations, and marks calls of atomic functions whose result is not used."""
    counting = checked and platform.machine() == "x86_64"
    own_names = OWN_NAMES if checked else {}
    lines, in_shared, used, defined = [], False, set(), set()
    before = (padded_variables(text) if checked else text).split("\n")
    labels = {line[:-1]: number for number, line in enumerate(before) if line[:2] == ".L" and line[-1:] == ":"}
    for number, line in enumerate(before):
        if counting and ATOMIC.match(line) and is_discarded(before, number, labels):
            lines.append("\tmovb\t$1, cuda_emulator_discards(%rip)")
        if line[:1] != "\t":
            defined.add(line.rstrip(":"))
        elif line.startswith(("\t.section", "\t.text", "\t.data", "\t.bss")):
            in_shared = ".tbss" in line
        elif in_shared and line.startswith("\t.zero"):
            lines.append(line)
            line = f"\t.zero\t{PADDING}"
        elif line.startswith(("\tcall\t", "\tjmp\t", "\tbl\t", "\tb\t")):
            jump, target = line.split()[:2]
            line = f"\t{jump}\t{own_names.get(target, target)}"
        elif "tpoff" in line.lower() or "tprel" in line:
            used.update((a or b).lstrip("$") for a, b in THREAD_LOCAL.findall(line))  # "$" begins a number
        if counting and ARITHMETIC.match(line):
            lines.append("\tincq\tcuda_emulator_flops(%rip)")
        lines.append(line)
    dynamic = sorted(used - defined)
    if dynamic:
        lines += ['\t.section .tbss.dynamic,"awT",%nobits', "\t.balign 1024"]
        for name in dynamic:
            lines += [f"\t.type {name}, %object", f"\t.size {name}, {DYNAMIC_BYTES}", f"{name}:"]
        lines += [f"\t.zero {DYNAMIC_BYTES + PADDING}", ""]
    return "\n".join(lines)


def name_of(symbol):
    """_ZN10stagecraft12_GLOBAL__N_111sum_of_warpEf -> sum_of_warp"""
    rest, name = re.sub("^_Z+N?K?", "", symbol), symbol
    while found := re.match(r"\d+", rest):
        end = found.end() + int(found[0])
        name, rest = rest[found.end():end], rest[end:]
    return name


def unmarked_function(text, source):
    """(line, what is wrong) if a kernel in the assembler file calls a function of this source that lacks __device__, or
    if a function without __global__ is launched. A function with __device__ is inlined, so no kernel calls it."""
    kernels = KERNEL.findall(text)
    own, inside, on_gpu, begins = None, "", False, False
    unmarked, uses = {}, []  # unmarked: {function of this source: its line}
    for line in text.split("\n"):
        if line.startswith("\t."):
            if found := FUNCTION.match(line):
                inside, begins = found[1], True
                on_gpu = inside in kernels or any(inside.startswith(f"_ZZ{kernel[2:]}") for kernel in kernels)
            elif (found := LOCATION.match(line)) and begins:
                begins = False
                if found[1] == own and not on_gpu:
                    unmarked[inside] = int(found[2])
            elif (found := FILE.match(line)) and pathlib.Path(found[3] or found[2]).name == source.name:
                own = found[1]
        elif found := CALL.match(line):
            if on_gpu and not NEEDS_NO_MARK.search(found[1]):
                uses.append((found[1], "__device__", f"which the kernel {name_of(inside)} calls"))
        elif line.startswith("\t") and (found := SYMBOL.search(line)):
            uses.append((found[0], "__global__", "which is launched"))
    return next(((unmarked[symbol], f"expected {expected} before {name_of(symbol)}, {why}")
                 for symbol, expected, why in uses if symbol in unmarked), None)


def preprocessed(words, source, **options):
    done = run([compiler()[-1], *FLAGS, *INCLUDES, *words, "-x", "c++", "-E", "-dD", source], **options)
    if done.returncode != 0:
        raise Problem(first_error(done.stderr))
    return done


def forbidden_words(text):
    text = OWN_ATTRIBUTES.sub("", text)
    return PRAGMA.findall(text) + [word for word in re.findall(r"[A-Za-z_]\w*", text) if FORBIDDEN.fullmatch(word)]


@functools.cache  # asked for each line of the headers
def real_path(name):
    return os.path.realpath(name)


def is_system(name):
    return real_path(name).startswith(("/usr/include/", "/usr/lib/", "/usr/local/lib/", f"{EMULATOR}/"))


def lines_of_files(text, source, included):
    """(file, number, line) for each line that the compiler sees. included: the files that it opened (-H). Refuses a
    #line, or a line like the compiler's own marks: these would assign lines to another file."""
    stack, entered, begins, number = [], [], 2, 0  # begins: the compiler's own lines end at the source's second mark
    for line in text.split("\n"):
        mark = MARK.match(line)
        if mark is None:
            if not begins:
                yield stack[-1], number, line
            number += 1
            continue
        name, kinds = mark[2], mark[3].split()
        if begins:
            begins -= name == str(source)
            stack = [name]
        elif "1" in kinds:
            entered.append(name)
            stack.append(name)
        else:
            if "2" in kinds:
                stack.pop()
            if stack[-1:] != [name]:
                raise Problem(f"{source}:{number}: {ONLY_SEEN}, found #line {TRUSTED}")
        number = int(mark[1])
    if entered != included or len(stack) != 1:
        raise Problem(f"{source}:1: {ONLY_SEEN}, found #line {TRUSTED}")


def refuse_source(source, macros=()):
    """Refuses a file with a forbidden word. The system's headers must not have more such words than they have without
    the file, because its macros could add them. Compared after preprocessing."""
    mine = preprocessed(["-H", *macros], source)
    opened = re.findall(r"^(\.+) (.*)$", mine.stderr, re.M)
    headers, own = [], {0}
    for dots, name in opened:
        own = {depth for depth in own if depth < len(dots)}
        if not is_system(name):
            own.add(len(dots))
        elif len(dots) - 1 in own:
            headers.append(real_path(name))
            if FOR_A_PROCESSOR.search(name):
                raise Problem(f"{source}:1: {ONLY_SEEN}, found {os.path.basename(name)} {TRUSTED}")
    found = collections.Counter()
    for file, number, line in lines_of_files(mine.stdout, source, [name for _, name in opened]):
        words = forbidden_words(line)
        if is_system(file):
            found.update((real_path(file), word) for word in words)
        elif words or (reserved := RESERVED_MACRO.match(line)):
            raise Problem(f"{file}:{number}: {ONLY_SEEN}, found {sorted(words)[0] if words else reserved[0]} {TRUSTED}")
    extra = found - words_of_headers(tuple(headers))
    if extra:
        raise Problem(f"{source}:1: {ONLY_SEEN}, found {min(word for _, word in extra)} {TRUSTED}")


@functools.cache
def words_of_headers(headers):
    """A Counter of (file, forbidden word)."""
    found = preprocessed(["-H"], "-", input="".join(f'#include "{name}"\n' for name in headers))
    opened = [name for _, name in re.findall(r"^(\.+) (.*)$", found.stderr, re.M)]
    lines = lines_of_files(found.stdout, "<stdin>", opened)
    return collections.Counter((real_path(file), word) for file, _, line in lines for word in forbidden_words(line))


def refuse_object(source, thing, emulator):
    mine, theirs = names(thing), names(emulator)
    outside = {name for name, kind in theirs if kind.isupper()}  # symbols that the emulator defines or needs
    for name in sorted(name for name, kind in mine if kind not in "Uw" and name in outside):
        raise Problem(f"{source}: expected names of its own, found {name}, a name of the emulator or the system "
                      "(--trusted skips this check)")
    allowed = {name for name, kind in theirs if kind in "TDBR"} | set(OWN_NAMES.values())
    for name in sorted(name for name, kind in mine if kind in "Uw" and name not in allowed):
        if not LIBRARY.fullmatch(name) and not name.startswith(("_ZTH", "_ZTW")):
            raise Problem(f"{source}: expected functions of CUDA, of arithmetic and to print, found {name} "
                          "(--trusted skips this check)")


def compile_checked(source, thing, macros=()):
    """Compiles to one object file whose kernels call the checker before each access."""
    assembly = thing.with_suffix(".s")

    def compiled(*more):
        must([*compiler(), *FLAGS, *more, *INCLUDES, *macros, "-x", "c++", "-S", source, "-o", assembly])
        return assembly.read_text(encoding="utf-8")
    text = compiled()
    if unmarked := unmarked_function(text, source):
        raise Problem("{}:{}: error: {}".format(source, *unmarked))
    assembly.write_text(changed_assembly(with_nan_marks(text, lambda: compiled(UNMARKED))), encoding="utf-8")
    must([compiler()[-1], "-c", assembly, "-o", thing])


def build(source, work, macros=(), trusted=False):
    """Compiles and links `source`; returns the program."""
    if not trusted:
        refuse_source(source, macros)
    thing, program = work / "program.o", work / "program"
    compile_checked(source, thing, macros)
    emulator = emulator_object()
    if not trusted:
        refuse_object(source, thing, emulator)
    must([compiler()[-1], "-no-pie", "-Wl,-z,relro,-z,now", thing, emulator, "-o", program])
    return program


class Lines:
    """Turns program counters into file:line, with one call of addr2line for all."""

    def __init__(self, program, source, report):
        self.source = source
        addresses = sorted({int(a, 16) for a in re.findall(r"@([0-9a-f]+)@", report)} |
                           {int(a) - 1 for a in re.findall(r"#(\d+)#", report)})
        self.place = {}
        if not addresses:
            return
        words = ["addr2line", "-a", "-i", "-e", str(program)]
        done = subprocess.run(words, input="".join(f"{a:#x}\n" for a in addresses), capture_output=True, text=True,
                              check=False)
        for part in re.split(r"^0x", done.stdout, flags=re.M)[1:]:
            address, *frames = part.splitlines()
            self.place[int(address, 16)] = self.choose([frame.split(" (disc")[0] for frame in frames])

    def choose(self, frames):
        """The innermost frame that is not in a header of the emulator or of the system."""
        for frame in frames:
            file, _, line = frame.rpartition(":")
            if not file.startswith(("/usr/", str(EMULATOR))) and file != "??":
                return pathlib.Path(file).name, int(line) if line.isdigit() else 0
        file, _, line = (frames or ["?:0"])[0].rpartition(":")
        return pathlib.Path(file).name, int(line) if line.isdigit() else 0

    def at(self, address):
        file, line = self.place.get(address, ("?", 0))
        return f"{file}:{line}" if line else file

    def buffer(self, address):
        """The name of the variable that the cudaMalloc on that line sets."""
        _, line = self.place.get(address, ("?", 0))
        lines = self.source.read_text(errors="replace").splitlines()
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        found = re.findall(r"cudaMalloc\w*\s*\(\s*(?:\(\s*void\s*\*\*\s*\)\s*)?&\s*([\w.\->\[\]]+)", text)
        return found[0] if len(found) == 1 else f"the buffer of {self.at(address)}"

    def resolve(self, text):
        text = re.sub(r"@([0-9a-f]+)@", lambda m: self.at(int(m[1], 16)), text)
        return re.sub(r"#(\d+)#", lambda m: self.buffer(int(m[1]) - 1), text)


class Finding:
    def __init__(self, kind, place, text):
        self.kind, self.place, self.text, self.times = kind, place, text, 1

    def __repr__(self):
        return f"{self.place}: {self.kind}: {self.text}" + (f" ({self.times} times)" if self.times > 1 else "")


LINE_COUNTS = ("requests", "sectors", "ideal", "conflicts", "bytes")


class Kernel:
    """All launches of one kernel."""

    def __init__(self, name):
        self.name = name
        self.launches = self.blocks = self.threads = self.shared_bytes = self.flops = self.distinct_bytes = 0
        self.lines = {}  # (place, space, way) -> its counts

    def add_launch(self, blocks, threads, shared_bytes, flops, distinct_bytes):
        self.launches += 1
        self.blocks += blocks
        self.threads, self.shared_bytes = max(self.threads, threads), max(self.shared_bytes, shared_bytes)
        self.flops += flops
        self.distinct_bytes += distinct_bytes

    def add_line(self, place, space, way, numbers):
        counts = self.lines.setdefault((place, space, way), dict.fromkeys(LINE_COUNTS, 0))
        for name, number in zip(LINE_COUNTS, numbers):
            counts[name] += number

    def total(self, count, *ways):
        """The sum of a count for global memory."""
        return sum(c[count] for (_, space, way), c in self.lines.items()
                   if space == "global" and (not ways or way in ways))


class Report:
    def __init__(self, text, lines):
        self.findings, self.end = [], None
        by_name, kernel = {}, None
        for record in text.splitlines():
            kind, *fields = record.split("\t")
            if kind == "finding":
                self.findings.append(Finding(fields[0], lines.resolve(fields[1]), lines.resolve(fields[2])))
            elif kind == "times":
                self.findings[int(fields[0])].times = int(fields[1])
            elif kind == "launch":
                kernel = by_name.setdefault(fields[0], Kernel(fields[0]))
                kernel.add_launch(*map(int, fields[1:]))
            elif kind == "line":
                kernel.add_line(lines.resolve(fields[0]), *fields[1:3], map(int, fields[3:]))
            elif kind == "end":
                self.end = fields[0]
        self.kernels = list(by_name.values())


def run_for(seconds, words, **options):
    """The exit code of a program, or None if it was stopped. When asked to stop, the emulator reports what was
    running."""
    with subprocess.Popen(words, **options) as process:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.terminate()
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            process.kill()
    return None


def check(source, seconds=60, macros=(), trusted=False, stdout=None):
    """Compiles and runs a program; returns (its report, its exit code). macros: -DNAME=VALUE and the like."""
    source = pathlib.Path(source)
    with tempfile.TemporaryDirectory(prefix="cuda-check-") as folder:
        work = pathlib.Path(folder)
        program = build(source, work, macros, trusted)
        path = work / "report"
        path.touch()
        code = run_for(seconds, [str(program)], env=dict(os.environ, CUDA_CHECK_REPORT=str(path)), stdout=stdout)
        text = path.read_text(errors="replace")
        report = Report(text, Lines(program, source, text))
    if code is None:
        if not report.findings:
            raise Problem(f"{source}: expected it to end within {seconds} s (--seconds)")
        return report, TIMED_OUT
    if report.end is None:
        raise Problem(f"{source}: the program ended (code {code}) without a report")
    if report.end != "exit" and not report.findings:
        report.findings.append(Finding("crash", source.name, f"the program ended with {report.end}"))
    return report, code


def print_counts(report):
    for kernel in report.kernels:
        print(f"\nkernel {kernel.name}: {kernel.launches} launch{'es' * (kernel.launches != 1)}, "
              f"{kernel.blocks} blocks of {kernel.threads} threads, "
              f"{kernel.shared_bytes} bytes of shared memory per block")
        if kernel.lines:
            print(f"  {'line':<24} {'access':<14} {'requests':>9} {'sectors':>9} {'ideal':>9} {'each':>6} "
                  f"{'conflicts':>9} {'bytes':>11}")
        for (place, space, way), c in sorted(kernel.lines.items(), key=natural):
            of_global = (c["sectors"], c["ideal"], format(c["sectors"] / c["requests"], ".1f"), "")
            sectors, ideal, each, conflicts = of_global if space == "global" else ("", "", "", c["conflicts"])
            print(f"  {place:<24} {space + ' ' + way:<14} {c['requests']:>9} {sectors:>9} {ideal:>9} {each:>6} "
                  f"{conflicts:>9} {c['bytes']:>11}")
        moved = 32 * kernel.total("sectors")
        written = kernel.total("bytes", "write", "atomic")
        print(f"  global memory: {kernel.total('bytes', 'read')} bytes read, {written} written; "
              f"{moved} in sectors, {kernel.distinct_bytes} distinct")
        if kernel.flops:
            per_byte = f"{kernel.flops / moved:.2f} per byte in sectors" if moved else "no global memory used"
            print(f"  arithmetic: {kernel.flops} operations, {per_byte}")


def natural(item):
    (place, space, way), _ = item
    file, _, line = place.rpartition(":")
    return file, int(line) if line.isdigit() else 0, space, way


def main():
    parser = argparse.ArgumentParser(prog="./stage cuda-check", description=__doc__,
                                     formatter_class=repository.Paragraphs)
    parser.add_argument("file", metavar="FILE.cu", type=pathlib.Path)
    parser.add_argument("--seconds", type=repository.whole(1), default=60, metavar="N", help="how long the program may run (default: 60)")
    parser.add_argument("--no-counts", action="store_true", help="print only the findings")
    parser.add_argument("--trusted", action="store_true",
                        help="skip the check of the source: run it even if it uses files, threads, asm or attributes, which can blind the checker")
    options = parser.parse_args()
    if not options.file.is_file():
        parser.error(f"{options.file}: expected a file with CUDA C++, found none")
    try:
        report, code = check(options.file, options.seconds, trusted=options.trusted)
    except Problem as problem:
        print(f"cuda-check: {problem}", file=sys.stderr)
        return 1
    sys.stdout.flush()
    for finding in report.findings:
        print(finding)
    if not options.no_counts:
        print_counts(report)
    count = len(report.findings)
    end = f"the program was stopped after {options.seconds} s (--seconds)" if code == TIMED_OUT else \
        f"the program ended with code {code}"
    print(f"\n{count or 'no'} finding{'s' * (count != 1)}" + (f"; {end}" if code else ""))
    return 1 if report.findings or code else 0


if __name__ == "__main__":
    sys.exit(repository.main(main))
