"""Which of our headers and functions the code of each stage may use (docs/confinement.md says it in words; refusal.py
checks it).

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
import re
import sys

from mistakes import catalogue
from shared import course
from rules import cpp_text

SRC = course.ROOT / "src"
LIST = course.ROOT / "stages" / "own_work.json"
FOR_ALL = ("base/error.h", "base/not_implemented.h", "operators/check.h", "tensor/matrix.h", "tensor/print.h")
BASIC = {"Error", "Matrix", "MatrixView", "NotImplemented", "Printable"}  # no handout needs to name these
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.M)
CALL = re.compile(r"\b(\w+)(?:<[^<>()]*>)?\(")
STATIC = re.compile(r"\bstatic\s[^;{}()]*?(\w+)\(")
CLASS = re.compile(r"\b(?:class|struct)\s+(\w+)\s*(?:final\s*)?(?::[^:{][^{]*)?\{")
PHRASES = re.compile(r"[^\s、，。；：]*(?:[、，。；：]+|\s+|$)")  # a browser shows a line end as a space
BEGIN, END = "<!-- own work: python3 course rules.own_work --write -->", "<!-- end of own work -->"
HANDOUT = {
    "en": "**Your own work.** You may use all of the C++ standard library, except `std::execution`, which needs another "
          "library. Of our functions, your code for this stage may call {calls} (`print` shows values, `printed` "
          "returns the same text, and `printable` shortens a text for an error message and escapes its control characters); it may include the headers that "
          "declare them. It may also use our types `Error`, `Matrix` and `MatrixView`. If your code calls another function, "
          "the test refuses it and names the function: see [docs/confinement.md](../../docs/confinement.md#your-own-work).",
    "zh": "**可以用的代码。** C++ 标准库可以随意使用，只有 `std::execution` 除外，它需要另一个库。"
          "我们的函数中，本阶段的代码可以调用 {calls}（`print` 显示数值，`printed` 返回同样的文字，"
          "`printable` 截短要放进错误消息的文字，并转义其中的控制字符），并可以包含声明它们的头文件，"
          "也可以用我们的类型 `Error`、`Matrix` 和 `MatrixView`。"
          "调用其他函数会被拒绝，并指出函数名：见 [docs/confinement.md](../../docs/confinement.md#your-own-work)（英文）。",
}
EMULATED = {
    "en": "**Your own work.** Your code for this stage may call the functions of CUDA that a kernel uses, `cuda_launch`, "
          "the arithmetic of `<cmath>`, and of our functions {calls}. The checker must see every access, so nothing "
          "else may be called: no other function of a library, nothing that allocates or copies, no function "
          "through a pointer. Outside functions, only constants are allowed, and no arrays. See "
          "[docs/confinement.md](../../docs/confinement.md#your-own-work).",
    "zh": "**可以用的代码。** 本阶段的代码可以调用核函数里用的 CUDA 函数、`cuda_launch`、`<cmath>` 的数学函数，以及我们的 "
          "{calls}。检查器必须看到每一次访问，所以不能调用别的：不能用其他库函数，不能分配或复制内存，不能通过指针调用；"
          "函数之外只能有常量，不能有数组。见 [docs/confinement.md](../../docs/confinement.md#your-own-work)（英文）。",
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
    paths = [course.ROOT / answer for unit in stage.units for answer in unit["answers"]]
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


# ---- the lists, read ----------------------------------------------------------------------------


@functools.lru_cache(maxsize=None)
def rules(number):
    """{"headers", "calls"} of a stage, as sets."""
    lists = course.read_json(LIST)
    if number not in lists:
        raise course.Problem(f"stages/own_work.json: expected stage {number}, found none: run python3 course rules.own_work --write")
    found = lists[number]
    return {key: set(names) for key, names in found.items()}


# ---- as a program -------------------------------------------------------------------------------


def run():
    parser = argparse.ArgumentParser(description="Computes the lists of our functions that each stage may use.")
    parser.add_argument("--write", action="store_true", help="write the lists into stages/own_work.json and the handouts")
    write = parser.parse_args().write
    differing = {path: text for path, text in files().items()
                 if not path.exists() or path.read_text(encoding="utf-8") != text}
    for path, text in differing.items():
        if write:
            path.write_text(text, encoding="utf-8")
        else:
            print(f"{path.relative_to(course.ROOT)}: differs from what the starters, our answers and the right "
                  "programs use: run python3 course rules.own_work --write")
    return 1 if differing and not write else 0


if __name__ == "__main__":
    sys.exit(course.main(run))
