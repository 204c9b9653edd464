"""Decides what counts as a student's own work: which headers and functions of ours the code of a stage may use, and
which of our symbols it may not define. docs/confinement.md says it in words.

stages/own_work.json holds the list of each stage, and each handout prints it. The lists are computed, not written by
hand. They contain: the headers that the starters, our answers and the right programs of the catalogue include; the
functions that they and these headers call; the methods of the classes that they name; the functions of the stages that
the stage builds on ("needs"); and what every stage may use.

    python3 course rules.own_work --write    computes the lists again, for stages/own_work.json and the handouts
    python3 course rules.own_work            says what differs; exit code 1 if something does
"""
import argparse
import functools
import json
import os
import re
import subprocess
import sys

import cuda_check
from mistakes import catalogue
from shared import course
from rules import cpp_text
from rules import foreign_files
from rules import links
from rules import plain_objects
from rules import symbols

SRC = course.ROOT / "src"
LIST = course.ROOT / "stages" / "own_work.json"
FOR_ALL = ("base/error.h", "base/not_implemented.h", "operators/check.h", "tensor/matrix.h", "tensor/print.h")
BASIC = {"Error", "Matrix", "MatrixView", "NotImplemented", "Printable"}  # no handout needs to name these
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.M)
ANY_INCLUDE = re.compile(r'^[ \t]*(?:#|%:)[ \t]*include[ \t]*(["<]([^">\n]+)[">])', re.M)
CALL = re.compile(r"\b(\w+)(?:<[^<>()]*>)?\(")
STATIC = re.compile(r"\bstatic\s[^;{}()]*?(\w+)\(")
CLASS = re.compile(r"\b(?:class|struct)\s+(\w+)\s*(?:final\s*)?(?::[^:{][^{]*)?\{")
MOST_LINES = 8  # shown to a student
MOST_NAME = 200  # letters of a function's name
PHRASES = re.compile(r"[^\s、，。；：]*(?:[、，。；：]+|\s+|$)")  # a browser shows a line end as a space
BEGIN, END = "<!-- own work: python3 course rules.own_work --write -->", "<!-- end of own work -->"
HANDOUT = {
    "en": "**Your own work.** You may use all of the C++ standard library, except `std::execution`, which needs another "
          "library. Of our functions, your code for this stage may call {calls} (`print` shows values, `printed` "
          "returns the same text, and `printable` makes a text fit for an error message); it may include the headers that "
          "declare them. It may also use our types `Error`, `Matrix` and `MatrixView`. If your code calls another function, "
          "the test refuses it and names the function: see [docs/confinement.md](../../docs/confinement.md#your-own-work).",
    "zh": "**可以用的代码。** C++ 标准库可以随意使用，只有 `std::execution` 除外，它需要另一个库。"
          "我们的函数中，本阶段的代码可以调用 {calls}（`print` 显示数值，`printed` 返回同样的文字，`printable` 使文字适合放进错误消息），并可以包含声明它们的头文件，"
          "也可以用我们的类型 `Error`、`Matrix` 和 `MatrixView`。"
          "调用其他函数会被拒绝，并指出函数名：见 [docs/confinement.md](../../docs/confinement.md#your-own-work)（英文）。",
}
EMULATED = {
    "en": "**Your own work.** Your code for this stage may call the functions of CUDA that a kernel uses, `cuda_launch`, "
          "the arithmetic of `<cmath>`, and of our functions {calls}. The checker must see every access, so nothing "
          "else may be called: no other function of a library, nothing that allocates or copies, nothing through a "
          "pointer; and a variable outside a function may be a constant only. See "
          "[docs/confinement.md](../../docs/confinement.md#your-own-work).",
    "zh": "**可以用的代码。** 本阶段的代码可以调用核函数里用的 CUDA 函数、`cuda_launch`、`<cmath>` 的数学函数，以及我们的 "
          "{calls}。检查器必须看到每一次访问，所以不能调用别的：不能用其他库函数，不能分配或复制内存，不能通过指针调用；"
          "函数之外只能有常量。见 [docs/confinement.md](../../docs/confinement.md#your-own-work)（英文）。",
}
METHODS = {"en": "the methods of {}", "zh": "{} 的成员函数"}
COMMA = {"en": ", ", "zh": "、"}


# ---- the lists, computed ------------------------------------------------------------------------


def code(text):
    """C++ without comments and texts."""
    return cpp_text.without_comments(text, texts=False)


@functools.lru_cache(maxsize=None)
def files_of_ours():
    return {path.relative_to(SRC).as_posix() for path in SRC.rglob("*.*")}


def included(text):
    return set(INCLUDE.findall(text)) & files_of_ours()


def with_theirs(headers):
    """These headers, and all headers that they include."""
    found, left = set(), set(headers)
    while left:
        name = left.pop()
        found.add(name)
        left |= included((SRC / name).read_text(encoding="utf-8")) - found
    return found


def bodies(text):
    """[(name of a class, its body)], and the text without them."""
    found, rest, at = [], "", 0
    for match in CLASS.finditer(text):
        if match.start() < at:
            continue  # a class in a class
        depth, end = 1, match.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        found.append((match[1], text[match.end():end]))
        rest += text[at:match.start()]
        at = end
    return found, rest + text[at:]


def declared(text):
    """(the functions that a header declares, those that its inline functions call); text: a header's without its
    classes, or a class's."""
    text = re.sub(r"\b(inline )?namespace\s*[\w:]*\s*\{|\b(requires|template|if|alignas|decltype)\b", " ", text)
    text = re.sub(r"^\s*#.*", "", text, flags=re.M)
    outside, inside, depth = "", "", 0
    for letter in text:
        depth -= letter in "})" and depth > 0
        outside += letter if depth == 0 else ""
        inside += letter if depth else " "
        depth += letter in "{("
    return set(re.findall(r"[\w>&*]\s+[&*]*(\w+)\(", outside)), set(CALL.findall(inside))


def right_programs(stage):
    """The source texts of the catalogue's right programs."""
    folder = catalogue.folder_of(stage)
    return [catalogue.source(folder, program) for program in catalogue.entries(folder) if program["is"] == "right"]


def needed(stage, known):
    """The stages that a stage builds on, directly or indirectly."""
    found = set(stage.needs)
    return found.union(*(needed(known[number], known) for number in found))


def computed(stage):
    """{"headers", "calls"} of a stage: what its starters, our answers and right programs use."""
    for_all = () if stage.is_emulated else FOR_ALL  # the checker does not see memory accesses inside these
    sources = [stage.starter(unit).decode() for unit in stage.units]
    paths = [course.ROOT / twin for unit in stage.units for twin in unit["twins"]]
    sources += [path.read_text(encoding="utf-8") for path in paths]
    sources += right_programs(stage)
    known = course.stages()
    before = [known[number] for number in sorted(needed(stage, known))]
    direct = set().union(*map(included, sources), *(included(one.starter(unit).decode())
                                                    for one in before for unit in one.units)) | set(for_all)
    headers = with_theirs(direct)
    texts = {name: code((SRC / name).read_text(encoding="utf-8")) for name in headers}
    called = {name for text in sources for name in CALL.findall(code(text))}
    called.update(*(one.functions for one in before))
    named = {word for text in [*map(code, sources), *(texts[name] for name in direct)]
             for word in re.findall(r"\w+", text)}
    calls, functions = set(), set()
    for name, text in texts.items():
        classes, rest = bodies(text)
        here, inline = declared(rest)
        functions |= here
        called |= inline | (here if name in for_all else set())
        for one, body in classes:
            if one in named or name in for_all:  # the stage receives one, or creates one
                methods, inline = declared(body[:-1])
                called |= inline
                methods -= {*STATIC.findall(body), one, "operator"}
                methods |= {one} if one in called or name in for_all else set()  # creates one
                calls |= {f"{one}::{method}" for method in methods}
    return {"headers": sorted(headers), "calls": sorted(calls | functions & called)}


def handout_block(rules, language, is_emulated):
    def quoted(names):
        return COMMA[language].join(f"`{name}`" for name in names)

    functions = [name for name in rules["calls"] if "::" not in name and name != "NOT_IMPLEMENTED"]
    classes = sorted({name.partition("::")[0] for name in rules["calls"] if "::" in name} - BASIC)
    calls = quoted(functions) + (COMMA[language] + METHODS[language].format(quoted(classes)) if classes else "")
    text = (EMULATED if is_emulated else HANDOUT)[language].format(calls=calls)
    return "\n".join([BEGIN, *course.wrapped(text, 116, words=PHRASES), END])


def with_block(text, block):
    """A handout with this block in place of the old one, or at its end."""
    if BEGIN in text and END in text:
        return text[:text.index(BEGIN)] + block + text[text.index(END) + len(END):]
    return f"{text.rstrip()}\n\n{block}\n"


def files():
    """{path: text} for all computed files."""
    known = {stage.number: (stage, computed(stage)) for stage in course.stages()}
    lists = {number: rules for number, (_, rules) in known.items()}
    made = {LIST: json.dumps(lists, indent=1) + "\n"}
    for stage, rules in known.values():
        for language, name in course.HANDOUTS.items():
            path = stage.folder / name
            if path.exists():  # a new stage may have no handout yet
                made[path] = with_block(path.read_text(encoding="utf-8"), handout_block(rules, language, stage.is_emulated))
    return made


# ---- the lists, used ----------------------------------------------------------------------------


@functools.lru_cache(maxsize=None)
def rules(number):
    """{"headers", "calls"} of a stage, as sets."""
    lists = course.read_json(LIST)
    if number not in lists:
        raise course.Problem(f"stages/own_work.json: expected stage {number}, found none: run python3 course rules.own_work --write")
    found = lists[number]
    return {key: set(names) for key, names in found.items()}


COMPILERS_OWN = ("__clang_call_terminate",)
FOR_EXCEPTIONS = "DW.ref."  # each object has its own pointer to the function or type of the rest of such a name


def may_call(symbol, allowed):
    """allowed: names of functions, and of methods with their class. From an allowed class, the compiler may also call
    the destructor and the typeinfo. (The destructor of another class would bring all that it calls into the worker.)"""
    name = symbols.qualified(symbol).removeprefix("stagecraft::")
    owner, _, last = name.rpartition("::")
    if last.startswith("~"):
        name = owner
    return name in allowed or any(one.startswith(f"{name}::") for one in allowed)  # typeinfo of a class


def foreign_headers(stage, text):
    """[(line, header of ours)] for each header that a file includes and its stage may not."""
    without = cpp_text.without_comments(text)
    foreign = included(without) - rules(stage.number)["headers"]
    return [(without.count("\n", 0, found.start(1)) + 1, found[1]) for found in INCLUDE.finditer(without)
            if found[1] in foreign]


def headers_by_path(stage, text):
    """[(line, its right spelling, the spelling)] for each header of ours that a file includes by its path from another
    folder, such as "../../src/operators/silu.h". The grader has only copies of headers, in another place."""
    without, found = cpp_text.without_comments(text), []
    for include in ANY_INCLUDE.finditer(without):
        if ".." in include[2].split("/") or include[2].startswith("/"):
            paths = {os.path.relpath(os.path.join(folder, include[2]), SRC) for folder in (stage.folder, SRC)}
            line = without.count("\n", 0, include.start(1)) + 1
            found += [(line, path, include[1]) for path in sorted(paths & files_of_ours())]
    return found


# From the emulator, code may call the launch of a kernel and the functions that kernels need, but nothing that copies
# or allocates, and no internal function. From the C and C++ libraries, it may call arithmetic. Other allowed names are
# calls that the compiler adds.
EMULATORS = re.compile(r"_Z(?!\d+cuda[A-Z]|N\d)\w+|_ZN13cuda_emulator(?:3runERKNS_6LaunchE|\d+b?f\d+_to_b?f\d+E\w)|__tsan_\w+|__ubsan_\w+|"
                       r"cuda_emulator_(?:memcpy|memmove|memset|flops|discards)|threadIdx|blockIdx|blockDim|gridDim")
ARITHMETIC = re.compile(
    rf"(?:{cuda_check.MATH})f?|abs|l?labs|"
    r"_Zn[wa]m|_Zd[la]Pvm?|_ZTVN10__cxxabiv1\w+|__cxa_pure_virtual|__gxx_personality_v0|_Unwind_Resume|__dso_handle|"
    r"_GLOBAL_OFFSET_TABLE_|__stack_chk_fail|_ZTH\w+|_ZTW\w+|__\w+[dts][ifc]\d|_ZSt\d+__throw_\w+|_ZSt9terminatev")


def may_call_emulated(name, defined, allowed):
    """True if a kernel, or the code that launches it, may call this. It must not access memory unseen by the
    checker."""
    if symbols.is_ours(name):
        return may_call(name, allowed)
    return ARITHMETIC.fullmatch(name) or name in defined and EMULATORS.fullmatch(name)


def in_words(problems, objects, build):
    """The same problems, the name of a function at the end of each as in C++."""
    plain = {}
    if not all(symbols.qualified(problem[-1]) for problem in problems):  # a name of the library
        plain = {one.mangled: one.name[:MOST_NAME] for one in links.symbols(build, list(objects.values()))}
    named = ((*values, symbols.qualified(name).removeprefix("stagecraft::") or plain.get(name, name))
             for *values, name in problems)
    return list(dict.fromkeys(named))  # functions of one name may differ in their arguments


def foreign_symbols(stage, objects, ours, build):
    """[(message key, values...)] for symbols that are not allowed. objects: {name of a student's file: its object}.
    ours: the objects and archives that they are linked with."""
    defined, wanted, shared = symbols.of_ours(build, tuple(map(str, ours)))
    found_in = [(file, kind, name) for file, path in objects.items() for kind, name in symbols.listed(build, [path])]
    own = {name for _, kind, name in found_in if symbols.is_strong(kind) or symbols.is_shared(kind)}
    allowed = rules(stage.number)["calls"]
    # Our objects need these, and have no copy: a definition by a student would take the library's place, even a weak one.
    of_libraries = {name for name in wanted - defined - shared
                    if not symbols.is_ours(name) and not name.startswith(FOR_EXCEPTIONS)}
    found = []
    for file, kind, name in found_in:
        if symbols.is_wanted(kind):
            if stage.is_emulated:
                if name not in own and not may_call_emulated(name, defined, allowed):
                    found.append(("own_emulated", file, name))
            elif name.startswith(("_ZN3tbb", "_ZNK3tbb")):
                found.append(("own_execution", file))
            elif name in own:
                continue
            elif name in shared or (symbols.is_ours(name) or name in defined) and not may_call(name, allowed):
                found.append(("own_call", file, stage.id, name))
        elif not symbols.is_shared(kind) and not symbols.is_strong(kind):
            continue  # local to its object
        elif name in defined or name in shared and symbols.is_strong(kind):
            found.append(("own_define", file, stage.id, name))
        elif name in of_libraries:
            found.append(("own_replace", file, stage.id, name))
        elif not symbols.is_data(kind) and not name.startswith("_Z") and name not in COMPILERS_OWN:
            found.append(("own_c_name", file, stage.id, name))
    return in_words(found, objects, build)


def refusal(stage, texts, objects=(), ours=(), build=None):
    """Why a student's files are not their own work, in lines for the student; "" if they are.

    texts: {name: text}. objects: {name: path of the object}, once they are compiled. ours: the objects and archives
    that they are to be linked with, in the folder `build`; without these, symbols are not checked.
    """
    found = [("own_include", name, line, stage.id, header) for name, text in texts.items()
             for line, header in foreign_headers(stage, text)]
    found += [("own_include_path", name, *include) for name, text in texts.items()
              for include in headers_by_path(stage, text)]
    if objects:
        try:
            for name, path in objects.items():
                plain_objects.check(path)
        except plain_objects.NotPlain as problem:
            return course.say("own_object", name, problem)
        except plain_objects.OtherLetters as problem:
            return course.say("own_letters", name, problem)
        if ours:
            found += foreign_symbols(stage, objects, ours, build or course.BUILD)
    lines = [course.say(*problem) for problem in found[:MOST_LINES]]
    return "\n".join(lines + ([course.say("own_rules")] if lines else []))


def refusal_here(stage):
    """The same for the files in this repository, after ninja has compiled and linked them."""
    every = links.object_files(course.BUILD, f"course/worker_{stage.number}")
    objects = {links.source_of(file): course.BUILD / file for file in every if links.stage_of(file) == stage.id}
    ours = [file for file in every if links.stage_of(file) != stage.id]
    allowed = [*(stage.path(unit) for unit in stage.units), *(SRC / name for name in rules(stage.number)["headers"]),
               *([cuda_check.EMULATOR] if stage.is_emulated else [])]
    try:
        for name, path in objects.items():
            read = [course.BUILD / file for file in foreign_files.files_of_object(os.path.relpath(path, course.BUILD))]
            if foreign := foreign_files.foreign_file(name, read, allowed, [course.ROOT]):
                return course.say(*foreign)
        return refusal(stage, texts_here(stage), objects, ours)
    except (OSError, subprocess.SubprocessError):
        return ""  # no nm on this machine, or one that fails; the grading machine has one


def texts_here(stage):
    return {course.unit_name(stage, unit): stage.path(unit).read_text(encoding="utf-8", errors="replace")
            for unit in stage.units}


# ---- as a program -------------------------------------------------------------------------------


def run():
    parser = argparse.ArgumentParser(description="Computes the lists of our functions that each stage may use.")
    parser.add_argument("--write", action="store_true", help="write the lists into stages/own_work.json and the handouts")
    write = parser.parse_args().write
    differing = [path for path, text in files().items()
                 if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in differing:
        if write:
            path.write_text(files()[path], encoding="utf-8")
        else:
            print(f"{path.relative_to(course.ROOT)}: differs from what the starters, our answers and the right "
                  "programs use: run python3 course rules.own_work --write")
    return 1 if differing and not write else 0


if __name__ == "__main__":
    sys.exit(course.main(run))
