"""./stage selftest: all tests of the project, and longer checks before them.

Each part prints what it does and how long it took. The tests run last, so that ctest's summary is the end of the
output.
"""
import argparse
import functools
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent import futures

import repository
import sysroot

ROOT = repository.ROOT
BUILD = ROOT / "build"
CORES = str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2)
# Modules whose tests pass files and text from outside to a parser.
PARSER_MODULES = ("base", "checkpoint", "formats", "fuzz", "hostile", "model", "operators", "programs", "text")
# Tests of data that threads share: GoogleTest patterns by module.
THREADED = {"base": "ThreadPool.*", "generation": "GenerateBatch.*", "model": "Determinism.*",
            "backends": "*CpuRandom*:*LongTextOfGptOss*:SplitBackend*", "serve": "*Scheduler*:*HttpServer*"}
FUZZ_SECONDS, FUZZ_SECONDS_OF_ALL = 10, 60  # per target
LONGEST = 1500  # seconds per test program, as in ctest


class Failed(Exception):
    """A part failed; the message is one line."""


def run(*command, out=None, environment=None):
    words = [str(word) for word in command]
    try:
        code = subprocess.run(words, cwd=ROOT, stdout=out, stderr=out and subprocess.STDOUT,
                              env=environment).returncode
    except OSError as problem:
        raise Failed(f"{words[0]}: {problem.strerror}") from None
    if code != 0:
        shown = " ".join(words[:12]) + (f" ... ({len(words)} words)" if len(words) > 12 else "")
        raise Failed(f"exit code {code}: {shown}")


def quietly(log, *command, show=True):
    """Runs a command with its output in build/LOG; shows the output only if it fails."""
    path = BUILD / log
    path.parent.mkdir(exist_ok=True)
    try:
        with path.open("w") as out:
            run(*command, out=out)
    except Failed:
        if show:
            sys.stdout.write(path.read_text(errors="replace"))
        raise


def logged(log, command, cwd, environment, timeout=LONGEST):
    """(exit code, output) of a program; the output also goes to build/LOG."""
    path = BUILD / log
    with path.open("w") as out:
        try:
            code = subprocess.run([str(word) for word in command], cwd=cwd, env=environment, stdout=out,
                                  stderr=subprocess.STDOUT, timeout=timeout).returncode
        except subprocess.TimeoutExpired:
            code = f"none (stopped after {timeout} s)"
    return code, path.read_text(errors="replace")


def packages(*names):
    run(ROOT / "stage", "packages", *names)


def virtual_python(name, log):
    """The Python of the virtual environment build/NAME. Makes it, also if an earlier try stopped half-way."""
    folder = BUILD / name
    if not (folder / "bin" / "pip").exists():
        packages("python3-venv")
        quietly(log, sys.executable, "-m", "venv", folder)
    return folder / "bin" / "python"


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, check=True,
                         stdout=subprocess.PIPE).stdout
    return [name for name in out.decode().split("\0") if name]


def preset(name, *targets):
    """Configures a preset of CMakePresets.json and builds these targets of it; default: all."""
    quietly(f"{name}.log", "cmake", "--preset", name, "-DSTAGECRAFT_WERROR=ON")
    quietly(f"{name}.log", "cmake", "--build", "--preset", name, "--target", *(targets or ["all"]))


# ---- parts --------------------------------------------------------------------------------------


def check_format(_):
    """clang-format checks every tracked C++ file"""
    packages("clang-format-14")  # every version formats differently; all developers use this one
    run("clang-format-14", "--dry-run", "-Werror", *tracked("*.h", "*.cpp", "src/*.cu", "course/*.cu"))


def check_reference(_):
    """the PyTorch dumps are made again and compared with the committed ones"""
    python = virtual_python("venv", "venv.log")
    install = [python, "-m", "pip", "install", "--disable-pip-version-check",
               "-r", ROOT / "reference" / "requirements.txt"]
    # PyTorch's CPU wheel ("+cpu") is not on PyPI: it comes from pip's configured index, or from this one.
    try:
        quietly("venv.log", *install, show=False)
    except Failed:
        quietly("venv.log", *install, "--extra-index-url", "https://download.pytorch.org/whl/cpu")
    run(python, ROOT / "reference" / "make_all.py", "--check")


def shard_of_module(name, module, tests, shard, emulator):
    """Runs one core's share of a module's tests in one process; returns how many passed."""
    folder = BUILD / name / "tests"
    environment = dict(os.environ, GTEST_TOTAL_SHARDS=CORES, GTEST_SHARD_INDEX=str(shard), GTEST_BRIEF="1")
    command = [*emulator, folder / f"{module}_tests", f"--gtest_filter={tests}"]
    code, text = logged(f"{name}_{module}_{shard}.log", command, folder, environment)
    if code != 0:
        print(text[-20000:], flush=True)
        raise Failed(f"{module}_tests: exit code {code}")
    return int(re.search(r"PASSED  \] (\d+) test", text)[1])


def run_modules(name, modules, *emulator):
    """Runs the tests of modules ({module: pattern}) of a preset in few processes: with a sanitizer, each takes long to
    start."""
    with futures.ThreadPoolExecutor(int(CORES)) as pool:
        runs = {module: [pool.submit(shard_of_module, name, module, tests, shard, emulator)
                         for shard in range(int(CORES))]
                for module, tests in modules.items()}
    problems = [str(one.exception()) for shards in runs.values() for one in shards if one.exception()]
    if problems:
        raise Failed("; ".join(problems))
    passed = {module: sum(one.result() for one in shards) for module, shards in runs.items()}
    print("  passed: " + ", ".join(f"{module} {count}" for module, count in passed.items()), flush=True)
    for module, count in passed.items():
        if count == 0:
            raise Failed(f"{module}_tests: no test matches {modules[module]}")


def check_asan(_):
    """the tests of all parsers, under AddressSanitizer and UndefinedBehaviorSanitizer"""
    preset("asan", *(f"{module}_tests" for module in PARSER_MODULES))
    # the inputs of fuzz have their own programs
    run_modules("asan", {module: "*" for module in PARSER_MODULES if module != "fuzz"})
    run("ctest", "--preset", "asan", "-j", CORES, "-L", "^fuzz$", "--no-label-summary")


def check_tsan(_):
    """the tests of threads that share data, and the server with its clients, under ThreadSanitizer"""
    preset("tsan", "stagecraft", *(f"{module}_tests" for module in THREADED))
    run_modules("tsan", THREADED)
    for old in (BUILD / "tsan").glob("race.*"):
        old.unlink()
    # a race in the server is written to this log, whatever the server then answers
    run(sys.executable, ROOT / "tests" / "serve" / "server_test.py", BUILD / "tsan" / "src" / "stagecraft",
        environment=dict(os.environ, TSAN_OPTIONS=f"log_path={BUILD / 'tsan' / 'race'}"))
    races = sorted((BUILD / "tsan").glob("race.*"))
    if races:
        raise Failed(races[0].read_text(errors="replace")[:6000])


def fuzz(name, seconds, scratch):
    """Runs one target for some seconds. Inputs that it finds are kept in build/fuzz for the next run."""
    folder = BUILD / "fuzz" / "tests" / "fuzz"
    learned = BUILD / "fuzz" / "learned" / name
    learned.mkdir(parents=True, exist_ok=True)
    found = BUILD / "fuzz" / f"{name}-"
    code, text = logged(
        f"fuzz_{name}.log",
        [folder / f"fuzz_{name}", f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=2048",
         "-print_final_stats=1", f"-artifact_prefix={found}", f"-seed_inputs=@{folder / name}.inputs", learned],
        ROOT, dict(os.environ, TMPDIR=scratch), seconds + LONGEST)
    runs = re.findall(r"number_of_executed_units: (\d+)", text)
    print(f"  {name}: {runs[-1] if runs else 'no'} inputs tried", flush=True)
    if code != 0:
        print(text[-6000:])
        raise Failed(f"{name}: the input is {found}*; after the fix, add it to tests/fuzz/inputs/{name}/")


def check_fuzz(options):
    """libFuzzer feeds each parser for 10 s with generated inputs (with --all for 60 s; or --seconds N)"""
    packages("clang-16", "libclang-rt-16-dev")
    preset("fuzz", "fuzz_tests")
    seconds = options.seconds or (FUZZ_SECONDS_OF_ALL if options.all else FUZZ_SECONDS)
    names = sorted(path.stem for path in (BUILD / "fuzz" / "tests" / "fuzz").glob("*.inputs"))
    if not names:
        raise Failed("build/fuzz: expected a list of inputs per fuzz target, found none")
    # Most targets write each input to a file: on a disk they would mostly wait for that.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="stagecraft-", dir=memory) as scratch, \
            futures.ThreadPoolExecutor(int(CORES)) as pool:
        runs = [pool.submit(fuzz, name, seconds, scratch) for name in names]
    problems = [str(run.exception()) for run in runs if run.exception()]
    if problems:
        raise Failed("; ".join(problems))


def check_clang(_):
    """everything is built and tested with Clang 16"""
    packages("clang-16", "libclang-rt-16-dev", "llvm-16")  # sanitizers name lines by llvm-symbolizer-16
    preset("clang")
    # tests of builds with ./stage depend on the machine, not on the compiler
    run("ctest", "--preset", "clang", "-j", CORES, "-LE", "^tools$")


def check_tidy(_):
    """clang-tidy checks every source file"""
    packages("clang-16", "clang-tidy-16")
    preset("clang", "version")  # for compile_commands.json and the generated header
    sources = [str(ROOT / name) for name in tracked("src/*.cpp")]
    quietly("tidy.log", "run-clang-tidy-16", "-quiet", "-p", BUILD / "clang", "-j", CORES, *sources)


def check_aarch64(_):
    """everything is built for 64-bit ARM and tested under qemu, the kernels also on older processors"""
    packages("g++-aarch64-linux-gnu", "qemu-user")
    try:
        sysroot.make(BUILD / "sysroot-arm64", "arm64")
    except (OSError, subprocess.CalledProcessError) as problem:
        raise Failed(f"no arm64 libraries: {problem}") from None
    preset("aarch64")
    # tests of builds and of the shell depend on the machine, not on the processor
    run("ctest", "--preset", "aarch64", "-j", CORES, "-LE", "^tools$")
    # qemu's default processor has all extensions; these have no matrix instructions for bytes, the first no dot
    # products
    for processor in ("cortex-a72", "neoverse-n1"):
        run_modules("aarch64", {"operators": "*Kernel*:*EveryTable*"}, "qemu-aarch64", "-cpu", processor, "-L",
                    BUILD / "sysroot-arm64")


def check_amx(_):
    """the AMX kernels, with emulated AMX instructions, under both sanitizers; needs a processor with AVX-512 bf16"""
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    if not cpuinfo.exists() or "avx512_bf16" not in cpuinfo.read_text():
        print("  skipped: this processor has no AVX-512 with bf16")
        return
    preset("amx", "operators_tests", "backends_tests")
    run_modules("amx", dict.fromkeys(("operators", "backends"), "*amx*"))


def check_processors(_):
    """the program of this build on older x86 processors under qemu: each must choose kernels that it can run"""
    if platform.machine() not in ("x86_64", "AMD64"):
        print("  skipped: this is not an x86 processor")
        return
    packages("qemu-user")
    run(ROOT / "stage", "build", "--only", "stagecraft", "operators_tests", "backends_tests")
    story = [str(BUILD / "release" / "src" / "stagecraft"), "story", "--model", str(ROOT / "models" / "story"),
             "--seed", "5", "-n", "40"]
    here = subprocess.run(story, stdout=subprocess.PIPE, check=True).stdout
    for processor in ("qemu64", "Nehalem", "Haswell"):  # only SSE2; no AVX; AVX2
        qemu = ["qemu-x86_64", "-cpu", processor]
        found = subprocess.run([*qemu, *story], stdout=subprocess.PIPE).stdout
        if found != here:
            raise Failed(f"{processor}: expected the same story as on this processor, found {found[:200]!r}")
        run_modules("release", {"operators": "*EveryKernel*:*EveryTable*", "backends": "*CpuWeights*"}, *qemu)


def check_page(_):
    """the server's page in a real browser (installs Chromium)"""
    packages("chromium", "chromium-driver")
    run(ROOT / "stage", "build", "--only", "stagecraft")
    run(sys.executable, ROOT / "tests" / "serve" / "page_test.py", BUILD / "release" / "src" / "stagecraft")


def check_python(_):
    """the Python package, installed into its own environment, and its notebook"""
    packages("python3-dev")
    run(ROOT / "stage", "build", "--only", "version")  # installs the libraries
    python = virtual_python("python_package", "python.log")
    quietly("python.log", python, "-m", "pip", "install", ROOT, "matplotlib")
    run(python, ROOT / "tests" / "python" / "module_test.py")


def check_cuda(_):
    """the CUDA kernels compiled by nvcc for two GPUs, without warnings or spilled registers; the program for GPUs"""
    found = shutil.which("nvcc")
    nvcc = pathlib.Path(found) if found else nvcc_from_pypi(BUILD / "nvcc")
    of_stage_11 = [name for name in tracked("course/mistakes/11-cuda/*.cu")  # right answers that differ from ours
                   if (ROOT / name).read_text(encoding="utf-8").startswith("// Right")]
    ours = tracked("src/operators/cuda/*.cu", "src/operators/on_gpu/*.cu", "course/mine/*.cu")
    of_tests = [f"tests/cuda_emulator/{name}.cu" for name in ("broken", "fragments", "functions", "ladder",
                                                                   "unchecked")]
    with futures.ThreadPoolExecutor(int(CORES)) as pool:
        list(pool.map(functools.partial(compile_kernel, nvcc), [*ours, *of_stage_11, *of_tests]))
    if found:  # the packages on PyPI have no runtime library to link
        check_program_for_gpus()


def compile_kernel(nvcc, kernel):
    for processor in ("sm_80", "sm_90"):
        log = f"nvcc-{pathlib.Path(kernel).parent.name}-{pathlib.Path(kernel).stem}-{processor}.log"
        quietly(log, nvcc, "-std=c++20", f"-arch={processor}", "-Werror", "all-warnings", "-Xptxas", "-v", "-I", ROOT,
                "-I", ROOT / "src", "-I", ROOT / "src" / "cuda_emulator" / "include", "-c", ROOT / kernel, "-o",
                os.devnull)
        spilled = [line.strip() for line in (BUILD / log).read_text().splitlines()
                   if re.search(r"\b[1-9]\d* bytes spill", line)]
        if spilled:
            raise Failed(f"{kernel}: {processor}: expected no spilled registers, found {spilled[0]}")


def check_program_for_gpus():
    """Builds the program as docs/cuda.md says. With a GPU, it tells a story and the tests of the backend run on it;
    without one, the program must say what is missing."""
    folder = BUILD / "cuda"
    quietly("cuda-configure.log", "cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
            "-DSTAGECRAFT_CUDA=ON")
    quietly("cuda-build.log", "cmake", "--build", folder, "--target", "stagecraft_cuda")
    words = [folder / "src" / "stagecraft_cuda", "story", "-m", ROOT / "models" / "story", "-n", "20",
             "--temperature", "0", "--seed", "1", "--backend"]
    got = subprocess.run([*words, "nothing"], capture_output=True, text=True, check=False)
    if "expected one of cpu, textbook, cuda, found 'nothing'" not in got.stderr:
        raise Failed(f"--backend nothing: expected a list with cuda, found {got.stderr!r}")
    got = subprocess.run([*words, "cuda"], capture_output=True, text=True, check=False)
    if got.returncode == 0:
        expected = subprocess.run([*words, "cpu"], capture_output=True, text=True, check=False).stdout
        if got.stdout != expected:
            raise Failed(f"--backend cuda: expected the story of the CPU, {expected!r}, found {got.stdout!r}")
        quietly("cuda-build.log", "cmake", "--build", folder, "--target", "cuda_backend_gpu_tests")
        quietly("cuda-tests.log", folder / "tests" / "cuda_backend_gpu_tests")
    elif not re.fullmatch(r"stagecraft: cuda: expected a GPU.*\n", got.stderr):
        raise Failed(f"--backend cuda: expected a story, or one line about the GPU, found {got.stderr!r}")


def nvcc_from_pypi(folder):
    """Makes an environment that no other part of the project sees."""
    python = virtual_python(folder.name, "nvcc.log")
    quietly("nvcc.log", python, "-m", "pip", "install", "nvidia-cuda-nvcc", "nvidia-cuda-cccl")
    found = sorted(folder.glob("lib/python*/site-packages/nvidia/*/bin/nvcc"))
    if not found:
        raise Failed(f"{folder}: expected nvcc of the package nvidia-cuda-nvcc, found none")
    return found[0]


def catalogue():
    """The numbers of the stages that have known mistakes: 00 ..."""
    return [path.name[:2] for path in sorted((ROOT / "course" / "mistakes").glob("[0-9][0-9]-*"))]


def check_class(_):
    """a class of 500 students, made of known mistakes: pulled and graded, killed once and resumed (nearly an hour)"""
    run(ROOT / "stage", "build", "--only", "grading", *(f"catalogue_{number}" for number in catalogue()))
    run(sys.executable, ROOT / "tests" / "course" / "classroom" / "class_test.py", BUILD / "release", "all")


def check_catalogue(_):
    """gates and known mistakes with 200 seeds, and the mistakes that are named for 200 mutants and 40 pairs (hours)"""
    run(ROOT / "stage", "build", "--only", "gate", *(f"catalogue_{number}" for number in catalogue()))
    run("env", "STAGE_REFEREE=", BUILD / "release" / "course" / "gate", "--gtest_filter=-*Speed*", "--gtest_repeat=200",
        "--gtest_brief=1")
    for number in catalogue():
        run(sys.executable, ROOT / "tests" / "course" / "mistakes" / "catalogue_test.py", BUILD / "release", number, "200")
    run(sys.executable, ROOT / "tests" / "course" / "mistakes" / "names_test.py", BUILD / "release")


def ctest(*which):
    """Runs tests of the release build."""
    run(ROOT / "stage", "build", "all")
    # Some tests mostly wait for time limits, so one more runs than there are cores.
    run("ctest", "--preset", "release", "-j", str(int(CORES) + 1), "--no-label-summary", *which)


def check_course(_):
    """the proofs of the course: wrong programs, attacks on the grader, every command of every handout (15 minutes)"""
    ctest("-L", "^proof$")


def run_tests():
    """every test except those of --course"""
    ctest("-LE", "^proof$")


PARTS = {
    "format": check_format,
    "course": check_course,
    "asan": check_asan,
    "tsan": check_tsan,
    "fuzz": check_fuzz,
    "reference": check_reference,
    "clang": check_clang,
    "tidy": check_tidy,
    "page": check_page,
    "python": check_python,
    "aarch64": check_aarch64,
    "amx": check_amx,
    "processors": check_processors,
    "cuda": check_cuda,
    "class": check_class,
    "catalogue": check_catalogue,
}


def main():
    parser = argparse.ArgumentParser(
        prog="./stage selftest", description="Builds everything and runs every test of the project.",
        epilog="e.g. ./stage selftest --asan")
    for name, part in PARTS.items():
        parser.add_argument(f"--{name}", action="store_true", help=f"before them: {part.__doc__}")
    parser.add_argument("--all", action="store_true", help="all of these parts")
    parser.add_argument("--seconds", type=repository.whole(1), help="how many seconds --fuzz spends on each parser")
    parser.add_argument("--only", action="store_true", help="run only the named parts, not the tests after them")
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
            part(options)
            print(f"== {name}: passed in {time.monotonic() - start:.0f} s", flush=True)
        except (Failed, OSError, subprocess.SubprocessError) as problem:  # the other parts run, too
            failed.append(name)
            print(f"== {name}: FAILED after {time.monotonic() - start:.0f} s: {problem}", flush=True)
    if not options.only:
        print(f"== tests: {run_tests.__doc__}" + (f" (failed before: {', '.join(failed)})"
                                                  if failed else ""), flush=True)
        try:
            run_tests()
        except Failed as problem:
            failed.append("tests")
            print(f"== tests: FAILED: {problem}", flush=True)
    if failed:  # ctest's last line may report success
        print(f"selftest: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(repository.main(main))
