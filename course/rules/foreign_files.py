"""Which files a student's file may depend on: those of its stage, headers of ours, and those of the C++ library."""
import os
import re
import subprocess
import sys

from shared import course

# Headers of the system that a file may depend on: those of the compiler, of the C library and of the kernel (Conda has
# them in a "sysroot", Nix in its store, Debian 13 those of the kernel in /usr/lib), and those that our headers include.
# Another template library on the machine could do the student's work.
LIBRARY = re.compile(r"(?:/usr/(?:local/)?|.*/sysroot/usr/|/nix/store/\w+-(?:glibc|linux-headers)-[^/]+/)include/"
                     r"(?:[\w.-]*-linux-gnu\w*/)?(?:(?:arpa|asm|asm-generic|bits|fmt|gnu|linux|net|"
                     r"netinet|nlohmann|rpc|sys)/|[^/]+$)|/usr/lib/linux/uapi/\w+/asm/|.*/c\+\+/|"
                     r".*/lib/(?:gcc|clang|llvm-\d+)/")


def is_below(path, places):
    return any(path == place or path.startswith(f"{place}/") for place in places)


def foreign_file(name, paths, allowed, folders):
    """The first of these absolute paths that a student's file may not depend on, as (message key, values...), or None.
    allowed: the files of its stage, and the files and folders of ours that it may include. folders: the student's
    repository and ours; no other file in them is allowed, and no header of a library that not every student has."""
    allowed, folders = ([os.path.realpath(path) for path in places] for places in (allowed, folders))
    for path in map(os.path.normpath, paths):
        real = os.path.realpath(path)
        if is_below(real, allowed):
            continue
        for folder in folders:
            if is_below(real, [folder]):
                return "own_other_file", name, os.path.relpath(real, folder)
        if sys.platform.startswith("linux") and not LIBRARY.match(path):
            return "own_system_header", name, path
    return None


def files_of_rule(text):
    """The dependencies of a file in a compiler's output (-MD)."""
    files = re.sub(r".*?:(?=\s|$)", "", text, count=1, flags=re.S)  # a ":" in the path of the object has no blank behind it
    words = re.findall(r"(?:\\.|\S)+", files.replace("\\\n", " "))
    return [re.sub(r"\\([ #:\\])", r"\1", word).replace("$$", "$") for word in words]


def files_of_object(object_file):
    """The dependencies of an object that ninja has built."""
    done = subprocess.run(["ninja", "-C", str(course.BUILD), "-t", "deps", object_file], check=True,
                          stdout=subprocess.PIPE, text=True)
    return [line.strip() for line in done.stdout.split("\n")[1:] if line.strip()]
