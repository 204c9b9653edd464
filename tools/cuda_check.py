"""Runs a CUDA program without a GPU, and checks what its kernels do.

FILE.cu is compiled with g++ against the emulator in src/cuda_emulator, and its main is run. Printed are the
findings (races, accesses out of bounds, reads of memory that nobody wrote, divergent barriers, deadlocks,
shuffles from inactive lanes, misaligned accesses), then what each line asks of the memory. Exit code 1 if there is
a finding, 2 if the command line is wrong.
"""
import argparse
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
EMULATOR = ROOT / "src" / "cuda_emulator"
INCLUDES = [f"-I{EMULATOR}", f"-I{EMULATOR / 'include'}", f"-I{EMULATOR / 'cuda_names'}"]
# The counts depend on the compiler's flags, so these are fixed. Without optimisation an access in the source is an
# access in the program: none is merged, hoisted or left out.
FLAGS = ["-std=c++20", "-O0", "-g", "-fno-pie", "-w", "-fno-builtin", "-ffp-contract=off", "-fno-extern-tls-init",
         "-ftrivial-auto-var-init=pattern", "-fsanitize=thread,bounds-strict", "--param=tsan-distinguish-volatile=1"]
PADDING = 16 << 10  # bytes behind each shared array, so that the next one is not hit by chance
DYNAMIC_BYTES = 227 << 10  # dynamic_bytes in memory.h
OWN_NAMES = {name: f"cuda_emulator_{name}" for name in ("memcpy", "memmove", "memset")}
ARITHMETIC = re.compile(r"\t(?:add|sub|mul|div|sqrt)s[sd]\t")
THREAD_LOCAL = re.compile(r"([\w.$]+)@(?:got)?tpoff|:(?:got)?tprel(?:_\w+)?:([\w.$]+)")


class Problem(Exception):
    """One line for the person who called."""


def compiler():
    name = os.environ.get("CXX", "g++")
    if platform.system() != "Linux":
        raise Problem(f"the emulator reads ELF files: expected Linux, found {platform.system()}")
    if shutil.which(name) is None:
        raise Problem(f"no C++ compiler: {name} is not there")
    return ["ccache", name] if shutil.which("ccache") else [name]


def run(words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, errors="replace",
                          check=False, **options)


def runtime_objects():
    """The emulator's object files, compiled once for each state of its sources and compiler."""
    sources = sorted(EMULATOR.glob("*.cpp"))
    state = hashlib.sha256(" ".join(compiler()).encode())
    for file in sorted(EMULATOR.rglob("*.[hc]*")):
        state.update(file.read_bytes())
    folder = ROOT / "build" / "cuda_emulator" / state.hexdigest()[:16]
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            for source in sources:
                done = run([*compiler(), "-std=c++20", "-O1", "-fno-pie", "-Wall", *INCLUDES, "-c", source,
                            "-o", pathlib.Path(work, source.stem + ".o")])
                if done.returncode != 0:
                    raise Problem(f"{source}: {first_error(done.stderr)}")
            os.chmod(work, 0o755)
            try:
                os.rename(work, folder)
                os.mkdir(work)  # which the end of `with` removes
            except OSError:
                pass  # another process was first
    return sorted(folder.glob("*.o"))


def first_error(text):
    lines = text.strip().splitlines()
    return next((line for line in lines if "error" in line), lines[0] if lines else "no message")


def changed_assembly(text):
    """What the compiler cannot be asked for: room behind each shared array, storage for the dynamic ones, memcpy
    and its relatives seen, floating-point arithmetic counted."""
    counting = platform.machine() == "x86_64"
    lines, in_shared, used, defined = [], False, set(), set()
    for line in text.split("\n"):
        if line[:1] != "\t":
            defined.add(line.rstrip(":"))
        elif line.startswith(("\t.section", "\t.text", "\t.data", "\t.bss")):
            in_shared = ".tbss" in line
        elif in_shared and line.startswith("\t.zero"):
            lines.append(line)
            line = f"\t.zero\t{PADDING}"
        elif line.startswith(("\tcall\t", "\tjmp\t", "\tbl\t", "\tb\t")):
            jump, target = line.split()[:2]
            line = f"\t{jump}\t{OWN_NAMES.get(target, target)}"
        elif "tpoff" in line or "tprel" in line:
            used.update(a or b for a, b in THREAD_LOCAL.findall(line))
        if counting and ARITHMETIC.match(line):
            lines.append("\tincq\tcuda_emulator_flops(%rip)")
        lines.append(line)
    dynamic = sorted(used - defined)
    if dynamic:
        lines += ['\t.section .tbss.dynamic,"awT",%nobits', "\t.balign 1024"]
        for name in dynamic:
            lines += [f"\t.globl {name}", f"\t.type {name}, %object", f"\t.size {name}, {DYNAMIC_BYTES}", f"{name}:"]
        lines += [f"\t.zero {DYNAMIC_BYTES + PADDING}", ""]
    return "\n".join(lines)


def build(source, work, macros=()):
    """Compiles and links `source`; returns the program."""
    assembly, thing, program = work / "program.s", work / "program.o", work / "program"
    done = run([*compiler(), *FLAGS, *INCLUDES, *[f"-D{macro}" for macro in macros], "-x", "c++", "-S", source,
                "-o", assembly])
    if done.returncode != 0:
        raise Problem(first_error(done.stderr))
    assembly.write_text(changed_assembly(assembly.read_text()))
    for words in ([compiler()[-1], "-c", assembly, "-o", thing],
                  [compiler()[-1], "-no-pie", thing, *runtime_objects(), "-o", program]):
        done = run(words)
        if done.returncode != 0:
            raise Problem(f"{source}: {first_error(done.stderr)}")
    return program


class Lines:
    """Turns program counters into file:line, all of them by one call of addr2line."""

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
        return "?", 0

    def at(self, address):
        file, line = self.place.get(address, ("?", 0))
        return f"{file}:{line}" if line else file

    def buffer(self, address):
        """The name of the variable that the line with cudaMalloc fills."""
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
        """Of global memory."""
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


def check(source, seconds=60, macros=(), stdout=None):
    """Compiles and runs a program; returns (its report, its exit code)."""
    source = pathlib.Path(source)
    with tempfile.TemporaryDirectory(prefix="cuda-check-") as folder:
        work = pathlib.Path(folder)
        program = build(source, work, macros)
        path = work / "report"
        path.touch()
        try:
            code = subprocess.run([str(program)], env=dict(os.environ, CUDA_CHECK_REPORT=str(path)), check=False,
                                  timeout=seconds, stdout=stdout).returncode
        except subprocess.TimeoutExpired:
            raise Problem(f"{source}: expected an end within {seconds} s (--seconds), found none") from None
        text = path.read_text(errors="replace")
        report = Report(text, Lines(program, source, text))
    if report.end is None:
        raise Problem(f"{source}: the program ended (code {code}) without a report")
    if report.end != "exit" and not report.findings:
        report.findings.append(Finding("crash", source.name, f"the program ended with {report.end}"))
    return report, code


def print_counts(report):
    for kernel in report.kernels:
        print(f"\nkernel {kernel.name}: {kernel.launches} launch{'es' * (kernel.launches != 1)}, {kernel.blocks} blocks "
              f"of {kernel.threads} threads, {kernel.shared_bytes} bytes of shared memory per block")
        if kernel.lines:
            print(f"  {'line':<24} {'access':<14} {'requests':>9} {'sectors':>9} {'ideal':>9} {'each':>6} "
                  f"{'conflicts':>9} {'bytes':>11}")
        for (place, space, way), c in sorted(kernel.lines.items(), key=natural):
            of_global = (c["sectors"], c["ideal"], format(c["sectors"] / c["requests"], ".1f"), "")
            sectors, ideal, each, conflicts = of_global if space == "global" else ("", "", "", c["conflicts"])
            print(f"  {place:<24} {space + ' ' + way:<14} {c['requests']:>9} {sectors:>9} {ideal:>9} {each:>6} "
                  f"{conflicts:>9} {c['bytes']:>11}")
        moved = 32 * kernel.total("sectors")
        print(f"  global memory: {kernel.total('bytes', 'read')} bytes read, {kernel.total('bytes', 'write', 'atomic')} "
              f"written; {moved} in sectors, {kernel.distinct_bytes} distinct")
        if kernel.flops:
            per_byte = f"{kernel.flops / moved:.2f} per byte in sectors" if moved else "no global memory used"
            print(f"  arithmetic: {kernel.flops} operations, {per_byte}")


def natural(item):
    (place, space, way), _ = item
    file, _, line = place.rpartition(":")
    return file, int(line) if line.isdigit() else 0, space, way


def main():
    parser = argparse.ArgumentParser(prog="./stage cuda-check", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", metavar="FILE.cu", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=60, metavar="N", help="that the program may run (default: 60)")
    parser.add_argument("--no-counts", action="store_true", help="findings alone")
    options = parser.parse_args()
    if options.seconds < 1:
        parser.error(f"--seconds: expected 1 or more, found {options.seconds}")
    if not options.file.is_file():
        parser.error(f"{options.file}: expected a file with CUDA C++, found none")
    try:
        report, code = check(options.file, options.seconds)
    except Problem as problem:
        print(f"cuda-check: {problem}", file=sys.stderr)
        return 1
    sys.stdout.flush()
    for finding in report.findings:
        print(finding)
    if not options.no_counts:
        print_counts(report)
    count = len(report.findings)
    print(f"\n{count or 'no'} finding{'s' * (count != 1)}" + (f"; the program ended with code {code}" if code else ""))
    return 1 if report.findings or code else 0


if __name__ == "__main__":
    sys.exit(main())
