"""Makes 200 mutants: correct kernels of correct.cu in which one thing was changed. Runs the checker on each.

A mutant must have a finding ("no end" is one) or compute a wrong result. If it does neither, it must be listed in
equivalent.txt, with the reason why it is as correct as the kernel was. Not part of ctest, because it takes minutes.

  python3 tests/cuda_emulator/mutants.py [--count N] [--seed N] [--all]
"""
import argparse
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tools"))

import cuda_check  # noqa: E402

# (pattern, replacement). Each match in a kernel gives one mutant.
CHANGES = [
    (r"__syncthreads\(\);", ";"), (r"__syncwarp\([^)]*\);", ";"), (r"__threadfence(_block)?\(\);", ";"),
    (r"__pipeline_wait_prior\(1\)", "__pipeline_wait_prior(2)"),
    (r" < ", " <= "), (r" <= ", " < "), (r" >= ", " > "), (r" > ", " >= "), (r" == ", " != "),
    (r"(?<=\w)\[((?:[^\[\]]|\[[^\[\]]*\])+)\]", r"[\1 + 1]"),
    (r"(?<=\w)\[((?:[^\[\]]|\[[^\[\]]*\])+)\]", r"[\1 - 1]"),
    (r"atomicAdd\(", "plain_add("), (r" \+ ", " - "), (r"0xffffffffu", "0x7fffffffu"),
]
DECLARATION = re.compile(r"//|template|struct|__global__|__device__|__constant__|  signed char|"
                         r"\s*(static |inline )*const(expr)? .*\[|\s*(extern )?__shared__|.*\(&\w+\)\[|\s*float \w+\[")


def sections():
    parts = re.split(r"^//// (\w+)\n", (HERE / "correct.cu").read_text(), flags=re.M)
    return parts[0], [(name, text) for name, text in zip(parts[1::2], parts[2::2]) if name != "main"]


def mutants():
    """(section, section:line in it, new line, new text of the section), of kernels alone."""
    found = []
    for name, text in sections()[1]:
        lines = text.split("\n")
        end = next(i for i, line in enumerate(lines) if line.startswith("bool run_"))
        for number, line in enumerate(lines[:end]):
            if DECLARATION.match(line):
                continue
            for pattern, replacement in CHANGES:
                for match in re.finditer(pattern, line):
                    changed = line[:match.start()] + match.expand(replacement) + line[match.end():]
                    section = "\n".join(lines[:number] + [changed] + lines[number + 1:])
                    found.append((name, f"{name}:{number + 1}", changed, section))
    return found


def program(chosen):
    head, _ = sections()
    text = [head, "template <class T>\n__device__ T plain_add(T* p, T v) {\n  T old = *p;\n  *p = old + v;\n"
            "  return old;\n}\n"]
    for number, (_, _, _, section) in enumerate(chosen):
        text.append(f"namespace m{number} {{\n{section}\n}}\n")
    text.append("int main(int, char** argv) {\n  bool right = true;\n  switch (std::atoi(argv[1])) {\n")
    text += [f"    case {n}: right = m{n}::run_{name}(); break;\n" for n, (name, _, _, _) in enumerate(chosen)]
    text.append("  }\n  return right ? 0 : 1;\n}\n")
    return "".join(text)


def fate(binary, number, folder):
    report = folder / "report"
    report.write_text("")
    code = cuda_check.run_for(20, [str(binary), str(number)], env=dict(os.environ, CUDA_CHECK_REPORT=str(report)),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    kinds = [line.split("\t")[1] for line in report.read_text().splitlines() if line.startswith("finding")]
    if kinds:
        return kinds[0]
    if code is None:
        return "no end"
    return "wrong result" if code else "survives"


def equivalents():
    """(section:line, changed line) -> reason, as equivalent.txt has them."""
    found = {}
    for line in (HERE / "equivalent.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            section, changed, reason = (part.strip() for part in line.split(" | ", 2))
            found[section, changed] = reason
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, metavar="N", help="mutants (default: 200)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="which of all (default: 1)")
    parser.add_argument("--all", action="store_true", help="every mutant there is")
    options = parser.parse_args()
    every = mutants()
    chosen = every if options.all else random.Random(options.seed).sample(every, options.count)
    known, fates, bad = equivalents(), {}, 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        source = folder / "mutants.cu"
        source.write_text(program(chosen))
        binary = cuda_check.build(source, folder, [f"-I{HERE}"], trusted=True)
        for number, (_, place, changed, _) in enumerate(chosen):
            result = fate(binary, number, folder)
            if result == "survives":
                result = "equivalent" if (place, changed.strip()) in known else result
            fates[result] = fates.get(result, 0) + 1
            if result in ("survives", "crash"):  # a crash would be one of the checker
                bad += 1
                print(f"{place} | {changed.strip()} | {result}")
    print(f"{len(chosen)} of {len(every)} mutants: " + ", ".join(f"{n} {what}" for what, n in sorted(fates.items())))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
