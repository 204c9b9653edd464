"""Why a student's files are not their own work: which header or function of ours they use that is not on the list of
their stage (own_work.py), and which of our symbols they define. docs/confinement.md says it in words.
"""
import os
import re
import subprocess

import cuda_check
from rules import cpp_text
from rules import foreign_files
from rules import links
from rules import own_work
from rules import plain_objects
from rules import symbols
from shared import course

ANY_INCLUDE = re.compile(r'^[ \t]*(?:#|%:)[ \t]*include[ \t]*(["<]([^">\n]+)[">])', re.M)
# Options for the compiler, in place of those of the stage: in a pragma, or in an attribute
OPTIONS_IN_PRAGMA = re.compile(r"\b(?:GCC\s+(optimize|target)|clang\s+(fp|loop|optimize)|(float_control)\s*\()")
OPTION = re.compile(r"(?:__)?(?:optimize|target|target_clones|target_version|no_sanitize\w*?)(?:__)?")
MOST_LINES = 8  # shown to a student
MOST_NAME = 200  # letters of a function's name
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


# In these three, `without` is the text of a file without comments.


def foreign_headers(stage, without):
    """[(line, header of ours)] for each header that a file includes and its stage may not."""
    foreign = own_work.included(without) - own_work.rules(stage.number)["headers"]
    return [(without.count("\n", 0, found.start(1)) + 1, found[1]) for found in own_work.INCLUDE.finditer(without)
            if found[1] in foreign]


def headers_by_path(stage, without):
    """[(line, its right spelling, the spelling)] for each header of ours that a file includes by its path from another
    folder, such as "../../src/operators/silu.h". The grader has only copies of headers, in another place."""
    found = []
    for include in ANY_INCLUDE.finditer(without):
        if ".." in include[2].split("/") or include[2].startswith("/"):
            paths = {os.path.relpath(os.path.join(folder, include[2]), own_work.SRC)
                     for folder in (stage.folder, own_work.SRC)}
            line = without.count("\n", 0, include.start(1)) + 1
            found += [(line, path, include[1]) for path in sorted(paths & own_work.files_of_ours())]
    return found


def options(without):
    """[(line, word)] for each option for the compiler that a file sets. Macros can hide them: the output of the
    preprocessor tells them all. In time proportional to the length."""
    joined = without.replace("\\\n", "")
    found = [(pragma.start(), pragma[pragma.lastindex]) for pragma in OPTIONS_IN_PRAGMA.finditer(joined)]
    tokens = [(token.start(), cpp_text.SPELLED.get(token[0], token[0])) for token in cpp_text.TOKEN.finditer(joined)]
    depth, within = 0, False  # of brackets in an attribute
    for (at, token), (_, after) in zip(tokens, [*tokens[1:], (len(joined), "")]):
        within |= token in ("__attribute__", "__attribute") and after == "(" or token == after == "["
        if within and token in "([":
            depth += 1
        elif within and token in ")]":
            depth -= 1
            within = depth > 0
        elif within and OPTION.fullmatch(token):
            found.append((at, token))
    return [(joined.count("\n", 0, at) + 1, word) for at, word in found[:MOST_LINES]]


# From the emulator, code may call the launch of a kernel and the functions that kernels need, but nothing that copies
# or allocates, and no internal function. From the C and C++ libraries, it may call arithmetic. Other allowed names are
# calls that the compiler adds.
EMULATORS = re.compile(r"_Z(?!\d+cuda[A-Z]|N\d)\w+|_ZN13cuda_emulator(?:3runERKNS_6LaunchE|\d+b?f\d+_to_b?f\d+E\w)|__tsan_\w+|__ubsan_\w+|"
                       r"cuda_emulator_(?:memcpy|memmove|memset|flops|discards)|threadIdx|blockIdx|blockDim|gridDim|warpSize")
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
    allowed = own_work.rules(stage.number)["calls"]
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
            found.append(("own_main", file) if name == "main" else ("own_define", file, stage.id, name))
        elif name in of_libraries:
            found.append(("own_replace", file, stage.id, name))
        elif not symbols.is_data(kind) and not name.startswith("_Z") and name not in COMPILERS_OWN:
            found.append(("own_c_name", file, stage.id, name))
    return in_words(found, objects, build)


def in_lines(found):
    lines = [course.say(*problem) for problem in found[:MOST_LINES]]
    return "\n".join(lines + ([course.say("own_rules")] if lines else []))


def why_options(name, preprocessed):
    """The same as why(), about options for the compiler in the preprocessor's output."""
    return in_lines([("own_options", name, *option) for option in options(preprocessed)])


def why(stage, texts, objects=(), ours=(), build=None):
    """Why a student's files are not their own work, in lines for the student; "" if they are.

    texts: {name: text}. objects: {name: path of the object}, once they are compiled. ours: the objects and archives
    that they are to be linked with, in the folder `build`; without these, symbols are not checked.
    """
    bare = {name: cpp_text.without_comments(text) for name, text in texts.items()}
    found = [("own_include", name, line, stage.id, header) for name, without in bare.items()
             for line, header in foreign_headers(stage, without)]
    found += [("own_include_path", name, *include) for name, without in bare.items()
              for include in headers_by_path(stage, without)]
    found += [("own_options", name, *option) for name, without in bare.items()
              for option in options("\n".join(cpp_text.compiled_lines(without)))]
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
    return in_lines(found)


def why_here(stage):
    """The same for the files in this repository, after ninja has compiled and linked them."""
    every = links.object_files(course.BUILD, f"course/worker_{stage.number}")
    objects = {links.source_of(file): course.BUILD / file for file in every if links.stage_of(file) == stage.id}
    ours = [file for file in every if links.stage_of(file) != stage.id]
    allowed = [*(stage.path(unit) for unit in stage.units), *(own_work.SRC / name for name in own_work.rules(stage.number)["headers"]),
               *([cuda_check.EMULATOR] if stage.is_emulated else [])]
    try:
        for name, path in objects.items():
            read = [course.BUILD / file for file in foreign_files.files_of_object(os.path.relpath(path, course.BUILD))]
            if foreign := foreign_files.foreign_file(name, read, allowed, [course.ROOT]):
                return course.say(*foreign)
        return why(stage, texts_here(stage), objects, ours)
    except (OSError, subprocess.SubprocessError):
        return ""  # no nm on this machine, or one that fails; the grading machine has one


def texts_here(stage):
    return {course.unit_name(stage, unit): stage.path(unit).read_text(encoding="utf-8", errors="replace")
            for unit in stage.units}
