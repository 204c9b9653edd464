"""./stage selftest: every test of the project, and around it the longer checks.

Each part says what it does and how long it took. The tests themselves come last, so that ctest's own
closing lines are the last ones, whatever else was asked for.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import time

import sysroot

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
CORES = str(os.cpu_count() or 2)
# Rooms whose tests feed files and text from outside to a parser.
PARSER_ROOMS = ("base", "checkpoint", "hostile", "model", "programs", "text")


class Failed(Exception):
    """A part did not pass; the message is one line."""


def run(*command, out=None):
    words = [str(word) for word in command]
    try:
        code = subprocess.run(words, cwd=ROOT, stdout=out, stderr=out and subprocess.STDOUT).returncode
    except OSError as problem:
        raise Failed(f"{words[0]}: {problem.strerror}") from None
    if code != 0:
        raise Failed(" ".join(words))


def quietly(log, *command, show=True):
    """Runs the command with its output in build/LOG; shows that only if it fails."""
    path = BUILD / log
    path.parent.mkdir(exist_ok=True)
    try:
        with path.open("w") as out:
            run(*command, out=out)
    except Failed:
        if show:
            sys.stdout.write(path.read_text(errors="replace"))
        raise


def packages(*names):
    run(ROOT / "stage", "packages", *names)


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, check=True,
                         stdout=subprocess.PIPE).stdout
    return [name for name in out.decode().split("\0") if name]


def preset(name, *targets):
    """Configures a preset of CMakePresets.json and builds these targets of it, or all."""
    quietly(f"{name}.log", "cmake", "--preset", name)
    quietly(f"{name}.log", "cmake", "--build", "--preset", name, "--target", *(targets or ["all"]))


# ---- parts --------------------------------------------------------------------------------------


def check_format():
    """clang-format over every tracked C++ file"""
    packages("clang-format-14")  # each version formats a little differently: all use this one
    run("clang-format-14", "--dry-run", "-Werror", *tracked("*.h", "*.cpp"))


def check_reference():
    """the PyTorch dumps, made again and compared with the committed ones"""
    packages("python3-venv")
    python = BUILD / "venv" / "bin" / "python"
    if not python.exists():
        quietly("venv.log", sys.executable, "-m", "venv", BUILD / "venv")
    install = [python, "-m", "pip", "install", "--disable-pip-version-check",
               "-r", ROOT / "reference" / "requirements.txt"]
    # PyTorch's CPU wheel ("+cpu") is not on PyPI: it lies where pip's configuration says, or there.
    try:
        quietly("venv.log", *install, show=False)
    except Failed:
        quietly("venv.log", *install, "--extra-index-url", "https://download.pytorch.org/whl/cpu")
    run(python, ROOT / "reference" / "make_all.py", "--check")


def check_asan():
    """the tests of all that parses, under AddressSanitizer and UndefinedBehaviorSanitizer"""
    rooms = [room for room in PARSER_ROOMS if list((ROOT / "tests" / room).glob("*_test.cpp"))]
    preset("asan", *(f"{room}_tests" for room in rooms))
    run("ctest", "--preset", "asan", "-j", CORES, "-L", f"^({'|'.join(rooms)})$")


def check_clang():
    """everything built and tested with Clang 16"""
    packages("clang-16")
    preset("clang")
    # what drives a build by ./stage is of the machine, not of the compiler
    run("ctest", "--preset", "clang", "-j", CORES, "-LE", "^tools$")


def check_tidy():
    """clang-tidy over every source file"""
    packages("clang-16", "clang-tidy-16")
    preset("clang", "version")  # for compile_commands.json and the one header that is made
    sources = [str(ROOT / name) for name in tracked("src/*.cpp")]
    quietly("tidy.log", "run-clang-tidy-16", "-quiet", "-p", BUILD / "clang", "-j", CORES, *sources)


def check_aarch64():
    """everything built for 64-bit ARM, and its tests run under qemu"""
    packages("g++-aarch64-linux-gnu", "qemu-user")
    try:
        sysroot.make(BUILD / "sysroot-arm64", "arm64")
    except (OSError, subprocess.CalledProcessError) as problem:
        raise Failed(f"no arm64 libraries: {problem}") from None
    preset("aarch64")
    # what drives a build or a shell is of the machine, not of the processor
    run("ctest", "--preset", "aarch64", "-j", CORES, "-LE", "^tools$")


def run_tests():
    """every test, built as it is shipped"""
    run(ROOT / "stage", "build", "all")
    run("ctest", "--preset", "release", "-j", CORES, "--no-label-summary")


PARTS = {
    "format": check_format,
    "asan": check_asan,
    "reference": check_reference,
    "clang": check_clang,
    "tidy": check_tidy,
    "aarch64": check_aarch64,
}


def main():
    parser = argparse.ArgumentParser(
        prog="./stage selftest", description="Builds everything and runs every test of the project.",
        epilog="e.g. ./stage selftest --asan")
    for name, part in PARTS.items():
        parser.add_argument(f"--{name}", action="store_true", help=f"before them: {part.__doc__}")
    parser.add_argument("--all", action="store_true", help="all of these")
    parser.add_argument("--only", action="store_true", help="what is named, without the tests")
    options = parser.parse_args()

    chosen = [name for name in PARTS if options.all or getattr(options, name)]
    if options.only and not chosen:
        parser.error("--only: expected one of " + ", ".join(f"--{name}" for name in PARTS))
    failed = []
    for name in chosen:
        part = PARTS[name]
        print(f"== {name}: {part.__doc__}", flush=True)
        start = time.monotonic()
        try:
            part()
            print(f"== {name}: passed in {time.monotonic() - start:.0f} s", flush=True)
        except Failed as problem:
            failed.append(name)
            print(f"== {name}: FAILED after {time.monotonic() - start:.0f} s: {problem}", flush=True)
    if not options.only:
        print(f"== tests: {run_tests.__doc__}" + (f" (failed before: {', '.join(failed)})"
                                                  if failed else ""), flush=True)
        try:
            run_tests()
        except Failed:
            failed.append("tests")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
