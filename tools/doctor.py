"""./stage doctor: what this machine lacks for building and running, and how to get it."""
import argparse
import contextlib
import os
import platform
import re
import shutil
import subprocess
import sys

import repository

ROOT = repository.ROOT
PROGRAMS = [ROOT / "build" / "release" / "src" / name for name in ("stagecraft", "storyteller")]
# CPU features that our kernels use (src/operators/kernels/instruction_sets.txt), in the spelling of /proc/cpuinfo.
FLAGS = ("avx2 fma f16c avx512f avx512bw avx512vl avx512dq avx512_vnni avx512_bf16 avx_vnni amx_tile amx_int8 amx_bf16 "
         "asimd asimddp i8mm").split()
LIBRARIES = ("fmt", "nlohmann_json", "CLI11", "libpcre2-8", "libutf8proc", "libedit", "gtest")
COMPILERS = {"GCC": 11, "Clang": 14, "Apple Clang": 15}  # the oldest versions that compile the tree
CMAKE = (3, 22)
PYTHON = (3, 9)
BUILD_GB = 1.2  # what ./build holds after ./stage selftest
SPARE_GB = 0.3  # what a command writes beside it, such as temporary files


def output(*command):
    """The output of a command, or "" if it is missing or fails."""
    try:
        answer = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                stdin=subprocess.DEVNULL, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.decode(errors="replace").strip() if answer.returncode == 0 else ""


def first_line(text):
    return text.split("\n", 1)[0]


def numbers(text):
    """The first dotted version in a text: "cmake version 3.25.1" -> (3, 25, 1)."""
    found = re.search(r"\d+(\.\d+)+", text)
    return tuple(int(part) for part in found.group().split(".")) if found else ()


def dotted(version):
    return ".".join(str(part) for part in version)


def compiler():
    """(kind, version, its first line of output) of the compiler that CMake would use, or None."""
    for name in filter(None, (os.environ.get("CXX"), "c++", "g++", "clang++")):
        line = first_line(output(name, "--version"))
        if line:
            kind = "Apple Clang" if "Apple" in line else "Clang" if "clang" in line else "GCC"
            # "g++ (Debian 12.2.0-14) 12.2.0": the last version is the compiler's
            version = numbers(line.split(") ")[-1]) or numbers(line)
            return kind, version, line
    return None


def model_problem(folder):
    """Why a model cannot be used, or ""."""
    if not (folder / "config.json").is_file():
        return "missing"
    weights = list(folder.glob("*.safetensors"))
    if not weights:
        return "config.json, but no weights"
    for file in weights:
        with file.open("rb") as stream:
            if stream.read(20).startswith(b"version https://git"):
                return f"{file.name} is a Git LFS pointer: git lfs pull"
    return ""


def disk_needed(built):
    """Free gigabytes that are needed where ./build already holds so many."""
    return max(BUILD_GB - built, 0) + SPARE_GB


def built_gb():
    """What ./build holds. A build or a test may remove files meanwhile."""
    size = 0
    for folder, _, names in os.walk(ROOT / "build"):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                size += os.lstat(os.path.join(folder, name)).st_size
    return size / 1e9


def examine():
    """(what, its state, the remedy or "", True if nothing works without it) for each thing."""
    found = []

    def note(what, state, remedy="", needed=True):
        found.append((what, state, remedy, needed))

    line = output(str(ROOT / "stage"), "packages")
    note("packages", "missing" if line else "all there", line)

    here = compiler()
    if here is None:
        note("compiler", "none", line or "install g++")
    else:
        kind, version, _ = here
        oldest = COMPILERS[kind]
        old = version < (oldest,)
        note("compiler", f"{kind} {dotted(version)}",
             f"{kind} {oldest} or newer is needed; then: rm -rf build; CXX=<it> ./stage" if old else "")

    version = numbers(output("cmake", "--version"))
    note("cmake", dotted(version) or "none",
         "" if version >= CMAKE else f"{dotted(CMAKE)} or newer is needed: pip install cmake")

    note("python", platform.python_version(),
         "" if sys.version_info >= PYTHON else f"{dotted(PYTHON)} or newer is needed")

    free = shutil.disk_usage(ROOT).free / 1e9
    needed = disk_needed(built_gb())
    note("disk", f"{free:.1f} GB free",
         "" if free >= needed else f"{needed:.1f} GB are needed; ./build may be deleted at any time")

    if not os.access(ROOT, os.W_OK):
        note("folder", "cannot be written", f"clone into a folder that you may write, not in {ROOT}")

    for config in output("git", "ls-files", "models/*/config.json").splitlines():
        folder = config[:config.rindex("/")]
        problem = model_problem(ROOT / folder)
        note(folder, problem or "there", f"git checkout {folder}" if problem else "")

    nvcc = shutil.which("nvcc")
    version = re.search(r"release ([\d.]+)", output(nvcc, "--version")) if nvcc else None
    note("cuda", f"nvcc {version[1] if version else 'of unknown version'}: docs/cuda.md says how to build --backend cuda"
         if nvcc else "no nvcc; --backend cuda-emulator runs the kernels without it. docs/cuda.md says where to get nvcc",
         needed=False)

    program = built_program()
    note("program", "built" if program else "not built yet", "" if program else "./stage build", needed=False)
    return found


def built_program():
    """The program, or the smaller one of the first ./stage story, or None."""
    return next((program for program in PROGRAMS if program.exists()), None)


def processor():
    """(model, relevant features) of the CPU."""
    model, flags = platform.processor() or platform.machine(), []
    try:
        with open("/proc/cpuinfo") as file:
            text = file.read()
        fields = dict(re.findall(r"^([^\t:]+?)\s*: (.*)$", text, re.M))
        model = fields.get("model name") or fields.get("Model") or model
        flags = (fields.get("flags") or fields.get("Features") or "").split()
    except OSError:
        model = output("sysctl", "-n", "machdep.cpu.brand_string") or model
        flags = re.split(r"[\s.]+", output("sysctl", "-n", "machdep.cpu.features",
                                           "machdep.cpu.leaf7_features").lower())
    return model, [flag for flag in FLAGS if flag in flags]


def memory():
    try:
        return f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.1f} GiB"
    except (ValueError, OSError):
        return "unknown"


def system():
    try:
        with open("/etc/os-release") as file:
            name = re.search(r'^PRETTY_NAME="?([^"\n]*)', file.read(), re.M)
        return name.group(1) if name else platform.platform()
    except OSError:
        return f"{platform.system()} {platform.mac_ver()[0] or platform.release()}"


def report(found):
    """A block for an issue, without names of people, hosts or folders."""
    model, flags = processor()
    program = built_program()
    changed = output("git", "status", "--porcelain").splitlines()
    untracked = sum(line.startswith("??") for line in changed)
    libraries = [f"{name} {output('pkg-config', '--modversion', name) or '?'}" for name in LIBRARIES]
    here = compiler()
    lines = [
        f"commit    {output('git', 'log', '-1', '--format=%h of %as') or 'unknown'}, "
        f"{len(changed) - untracked} files changed, {untracked} untracked",
        f"system    {system()}, {platform.system()} {platform.release()} {platform.machine()}",
        f"cpu       {model}, {os.cpu_count()} threads",
        f"flags     {' '.join(flags) or 'none known'}",
        f"memory    {memory()}",
        f"compiler  {here[2] if here else 'none'}",
        f"tools     cmake {dotted(numbers(output('cmake', '--version'))) or 'none'}, "
        f"ninja {output('ninja', '--version') or 'none'}, "
        f"ccache {dotted(numbers(output('ccache', '--version'))) or 'none'}, "
        f"python {platform.python_version()}",
        f"libraries {', '.join(libraries)}",
        *(f"{what:<9} {state}" for what, state, _, _ in found if what.startswith("models/")),
        *(f"program   {line}" for line in (output(str(program), "--version") if program else "").splitlines()),
        *(f"problem   {what}: {state}: {remedy}" for what, state, remedy, needed in found
          if remedy and needed),
    ]
    return "```\n" + "\n".join(lines) + "\n```"


def main():
    parser = argparse.ArgumentParser(
        prog="./stage doctor", description="Says what this machine lacks for building and running, and how to get it.",
        epilog="e.g. ./stage doctor --report, and paste what it prints into an issue")
    parser.add_argument("--report", action="store_true", help="print a description of this machine for an issue")
    options = parser.parse_args()
    found = examine()
    if options.report:
        print(report(found))
        return 0
    for what, state, remedy, needed in found:
        mark = "ok" if not remedy else "MISSING" if needed else "-"
        print(f"{mark:<8} {what:<14} {state}")
        if remedy:
            print(f"{'':<8} {'':<14} -> {remedy}")
    return 1 if any(remedy and needed for _, _, remedy, needed in found) else 0


if __name__ == "__main__":
    sys.exit(repository.main(main))
