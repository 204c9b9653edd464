"""Compiles a .cu file of a student for the emulator. The build calls this script instead of the compiler.

    cuda_compile.py [--fast] [--trusted] [--no-cache] COMPILER OPTIONS... -o OBJECT -c FILE

A .cu file becomes an object that calls the emulator's checker before every access (cuda_check.py). With --fast,
which `./stage story --mine 11` uses, nothing is checked or counted. Any other file is compiled as it is.

The object shares a process with the checker, and a mark depends on the checker's report. Therefore a file is refused
if it holds a forbidden word (cuda_check.py), if it calls a function through a pointer (so that no function can be
called by its address), if it calls new, delete or the C++ runtime, or if it has code that runs before main(). With
--trusted, for our own programs, no file is refused.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import cuda_check

# The flags for an instrumented file.
CHECKED = [{"-g": "-g1"}.get(flag, flag) for flag in cuda_check.FLAGS] + ["-Wno-attributes", "-Wno-unknown-pragmas"]
FAST = ["-std=c++20", "-O2", "-g1", "-fno-pie", "-Werror=vla", "-ffp-contract=off", "-fno-extern-tls-init",
        "-ftrivial-auto-var-init=pattern", "-Wno-attributes", "-Wno-unknown-pragmas"]
# Options of the compiler that take the next word as their argument.
TAKES_NEXT = ("-MT", "-MF", "-o", "-c")
KEPT = re.compile(r"-I.*|-Wall|-Wextra|-Wno-.*|-f(?:file-prefix-map|instrument-functions).*|-MD")
SECTION = re.compile(r'^(\t\.section\t[^,\n]+,"[^"\n]*)G([^"]*",[@%]progbits),[^,\n]+,comdat', re.M)
CALL_BY_POINTER = re.compile(r"\t(?:call|(?:notrack )?jmp)\t\*|\tblr\t|\tbr\t")
# These functions write to addresses in their arguments, or call functions that they receive. The checker's own data is
# in the same heap.
CALL_OF_RUNTIME = re.compile(r"\t(?:call|jmp|bl|b)\t(?:_Z[nd][wal]\w+|__cxa_\w+|_Unwind_(?!Resume\b)\w+|__gxx_\w+)")
EMULATORS_OWN = re.compile(r"_ZZ?NK?13cuda_emulator")  # its template calls kernels; students cannot define such names
EARLY = re.compile(r"_GLOBAL__(?:sub_)?[ID]_|\t\.section\t\.(?:preinit_array|ctors|dtors)")


class Refused(Exception):
    """(line, what is wrong)"""


def parts_of(words):
    """(kept options, options of dependencies, output, source) of a compiler's command without its first word."""
    kept, dependencies, output, source = [], [], None, None
    words = iter(words)
    for word in words:
        if word in TAKES_NEXT:
            following = next(words)
            if word == "-o":
                output = pathlib.Path(following)
            elif word == "-c":
                source = pathlib.Path(following)
            else:
                dependencies += [word, following]
        elif word == "-MD":
            dependencies.append(word)
        elif KEPT.fullmatch(word):
            kept.append(word)
    return kept, dependencies, output, source


def own_functions(text):
    """The assembler file, in which each function that other files may also define becomes local to this file: the
    copies in other files are not instrumented. The stage's functions, which other files call, stay global."""
    defined = set(re.findall(r"^(?:\t\.set\t)?([^\s:,]+)(?::$|,)", text, re.M))
    text = re.sub(r"^\t\.weak\t(.*)\n", lambda found: "" if found[1] in defined else found[0], text, flags=re.M)
    return SECTION.sub(r"\1\2", text).replace("gnu_unique_object", "object")


def look(text):
    """Throws Refused if there is code that could deceive the checker."""
    if EARLY.search(text):
        raise Refused(1, "expected no variable whose value is computed before main() begins")
    inside, line_number = "", 1
    for line in text.split("\n"):
        if line.startswith("\t."):
            if found := cuda_check.FUNCTION.match(line):
                inside = found[1]
            elif found := cuda_check.LOCATION.match(line):
                line_number = int(found[2])
        elif CALL_BY_POINTER.match(line) and not EMULATORS_OWN.match(inside):
            raise Refused(line_number, "expected calls by name, found one through a pointer (a function pointer, "
                                       "std::function, or a virtual function)")
        elif CALL_OF_RUNTIME.match(line) and not EMULATORS_OWN.match(inside):
            raise Refused(line_number, "expected no new, delete, exception or function of the C++ runtime")


def with_tables(text, source):
    """The assembler file with two tables at its end (guest.cpp): its functions, and the return address and line of each
    call."""
    own, line_number, lines, table = None, 0, [], []
    for line in text.split("\n"):
        lines.append(line)
        if line.startswith("\t."):
            if found := cuda_check.LOCATION.match(line):
                line_number = int(found[2]) if found[1] == own else line_number
            elif (found := cuda_check.FILE.match(line)) and pathlib.Path(found[3] or found[2]).name == source.name:
                own = found[1]
        elif line.startswith(("\tcall\t", "\tbl\t")):
            lines.append(f".Lcuda_return_{len(table)}:")
            table.append(f"\t.quad\t.Lcuda_return_{len(table)}, {line_number}, .Lcuda_file")
    functions = [found[1] for line in lines if (found := cuda_check.FUNCTION.match(line))]
    lines += ['\t.section\tcuda_functions,"a",@progbits', "\t.balign\t8", *(f"\t.quad\t{name}" for name in functions)]
    lines += ["\t.section\t.rodata", f'.Lcuda_file:\t.string "{source.name}"',
              '\t.section\tcuda_lines,"a",@progbits', "\t.balign\t8", *table, ""]
    return "\n".join(lines)


def run(words):
    done = subprocess.run([str(word) for word in words], check=False, stderr=subprocess.PIPE, text=True,
                          errors="replace")
    errors = [line for line in done.stderr.splitlines() if "error: " in line]
    better = cuda_check.launch_of_nvcc(errors[0]) if errors else None
    print(better or done.stderr, end="\n" if better else "", file=sys.stderr)
    if done.returncode != 0:
        sys.exit(done.returncode)


def compile_cuda(words, fast, trusted, cached):
    os.environ["CXX"] = words[0]
    kept, dependencies, output, source = parts_of(words[1:])
    compiler = cuda_check.compiler() if cached else [words[0]]
    options = [*(FAST if fast else CHECKED), *cuda_check.INCLUDES, *kept]
    if not fast and not trusted:
        try:
            cuda_check.refuse_source(source, [word for word in kept if word.startswith("-I")])
        except cuda_check.Problem as problem:
            if cuda_check.ONLY_SEEN not in str(problem):
                run([*compiler, *options, "-fsyntax-only", "-x", "c++", source])  # for its better message
            place, _, what = str(problem).partition(": ")
            raise Refused(place.rpartition(":")[2], what.removesuffix(f" {cuda_check.TRUSTED}")) from None
    with tempfile.TemporaryDirectory(prefix="cuda-compile-") as folder:
        assembly = pathlib.Path(folder) / "program.s"
        run([*compiler, *options, *dependencies, "-x", "c++", "-S", source, "-o", assembly])
        text = assembly.read_text(encoding="utf-8")

        def unmarked():
            run([*compiler, *options, "-w", cuda_check.UNMARKED, "-x", "c++", "-S", source, "-o", assembly])
            return assembly.read_text(encoding="utf-8")
        if not fast:
            text = cuda_check.with_nan_marks(text, unmarked)
        if not fast and not trusted:
            look(text)
            if found := cuda_check.unmarked_function(text, source):  # nvcc would refuse it, too
                raise Refused(*found)
        text = cuda_check.changed_assembly(own_functions(text), checked=not fast)
        assembly.write_text(with_tables(text, source), encoding="utf-8")
        run([words[0], "-c", assembly, "-o", output])


def main():
    words = sys.argv[1:]
    options = []
    while words and words[0].startswith("--"):
        options.append(words.pop(0))
    if not words or not words[-1].endswith(".cu"):
        os.execvp(words[0], words)
    try:
        compile_cuda(words, "--fast" in options, "--trusted" in options, "--no-cache" not in options)
    except Refused as refused:
        line, what = refused.args
        sys.exit(f"{words[-1]}:{line}: error: {what}")
    except cuda_check.Problem as problem:
        sys.exit(f"{words[-1]}:1: error: {problem}")


if __name__ == "__main__":
    main()
