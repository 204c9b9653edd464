"""The programs of the catalogue (course/mistakes), and the texts of those that are edits of others:

    catalogue.py                lists all programs, for CMake
    catalogue.py FOLDER OUT     writes those that are edits into OUT

An entry of mistakes.json with "of" and "edit" is that file with texts replaced, one after the other: each
occurs in it at least once, and every occurrence is replaced. Standard library only.
"""
import json
import pathlib
import sys


CATALOGUE = pathlib.Path(__file__).resolve().parent


class Wrong(Exception):
    """An entry that makes no program; the message names it."""


def folder_of(stage):
    return CATALOGUE / f"{stage.number}-{stage.slug}"


def entries(folder):
    """The programs of a stage; none where it has no catalogue yet."""
    registry = folder / "mistakes.json"
    return json.loads(registry.read_text(encoding="utf-8"))["programs"] if registry.exists() else []


def source(folder, program):
    """The text of a program of the catalogue."""
    if "of" not in program:
        return (folder / program["file"]).read_text(encoding="utf-8")
    text = (folder / program["of"]).read_text(encoding="utf-8")
    kind = "Right" if program["is"] == "right" else "Mistake"
    why = program.get("en") or program.get("why") or f"{program.get('same_as')}, in other code"
    text = f"// {kind}: {why}.\n" + text.split("\n", 1)[1]
    for old, new in program["edit"]:
        if old not in text:
            raise Wrong(f"{folder.name}/{program['file']}: '{old}' is not in {program['of']}")
        text = text.replace(old, new)
    return text


def name_of(program):
    return pathlib.Path(program["file"]).stem


def entry_of(folder, name):
    return next(one for one in entries(folder) if name_of(one) == name)


def source_of(folder, name):
    """The text of a program by its name: no_mean."""
    return source(folder, entry_of(folder, name))


def kind(program):
    """named: a mistake with a sentence; again: one of these in other code; right."""
    return "named" if "en" in program else "right" if program["is"] == "right" else "again"


def object_of(folder, program):
    """Where the build folder has it compiled (course/cmake/mistakes.cmake)."""
    group = "named" if kind(program) == "named" else "other"
    place = "__/generated/mistakes" if "of" in program else "mistakes"
    return f"course/CMakeFiles/{group}_{folder.name[:2]}.dir/{place}/{folder.name}/{program['file']}.o"


def main():
    if len(sys.argv) == 1:
        for folder, program in ((path.parent, one) for path in sorted(CATALOGUE.glob("*/mistakes.json"))
                                for one in entries(path.parent)):
            print(folder.name, name_of(program), program["file"], program.get("of", ""), kind(program),
                  " ".join(program.get("flags", [])), sep="|")
        return 0
    folder = pathlib.Path(sys.argv[1])
    out = pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    for program in entries(folder):
        if "of" in program:
            path = out / program["file"]
            text = source(folder, program)
            if not path.exists() or path.read_text(encoding="utf-8") != text:  # else ninja would compile it
                path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Wrong as problem:
        sys.exit(f"catalogue.py: {problem}")
