"""The emulator of CUDA says nothing about correct kernels, and names what is wrong with broken ones.

Standard library only; ctest runs it.
"""
import pathlib
import platform
import re
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tools"))

import cuda_check  # noqa: E402


def expectations(source):
    """kernel -> (kinds, marked lines) from the comments of broken.cu."""
    found, kinds, name = {}, None, None
    for number, line in enumerate(source.read_text().splitlines(), 1):
        if match := re.match(r"// expect: (.*)", line):
            kinds = set(match[1].split(", "))
        elif match := re.match(r"__global__ void (\w+)", line):
            name = match[1]
            found[name] = (kinds, set())
            kinds = None
        elif line.endswith("// <-"):
            found[name][1].add(f"{source.name}:{number}")
    return found


class Kernels(unittest.TestCase):
    def test_correct_kernels_have_no_finding(self):
        report, code = cuda_check.check(HERE / "correct.cu")
        self.assertEqual(report.findings, [])
        self.assertEqual(code, 0, "a kernel computed a wrong result")
        sections = re.findall(r"^//// (\w+)", (HERE / "correct.cu").read_text(), re.M)
        self.assertEqual({kernel.name.split("<")[0] for kernel in report.kernels}, set(sections) - {"main"})

    def test_each_broken_kernel_has_its_finding_and_no_other(self):
        source = HERE / "broken.cu"
        report, _ = cuda_check.check(source)
        by_kernel = {}
        for finding in report.findings:
            match = re.match(r"kernel (\w+): ", finding.text)
            self.assertTrue(match, finding)
            by_kernel.setdefault(match[1], []).append(finding)
        expected = expectations(source)
        self.assertGreaterEqual(len(expected), 40)
        for name, (kinds, lines) in expected.items():
            with self.subTest(name):
                findings = by_kernel.pop(name, [])
                self.assertEqual({f.kind for f in findings}, kinds, findings)
                text = " ".join(f"{f.place} {f.text}" for f in findings)
                for line in lines:
                    self.assertRegex(text, re.escape(line) + r"\b")
        self.assertEqual(by_kernel, {})

    def test_counts_are_those_of_the_arithmetic_on_paper(self):
        source = HERE / "counts.cu"
        report, _ = cuda_check.check(source)
        self.assertEqual(report.findings, [])
        counted = {key: counts for kernel in report.kernels for key, counts in kernel.lines.items()}
        compared = 0
        for number, line in enumerate(source.read_text().splitlines(), 1):
            match = re.search(r"// count: (\w+) (\w+) ([\d ]+)$", line)
            if match is None:
                continue
            space, way, numbers = match.groups()
            names = ("requests", "sectors", "ideal") if space == "global" else ("requests", "conflicts")
            compared += 1
            with self.subTest(line.strip()):
                counts = counted[(f"counts.cu:{number}", space, way)]
                self.assertEqual([counts[name] for name in names], list(map(int, numbers.split())))
        self.assertGreater(compared, 20)

    def test_arithmetic_and_bytes_per_kernel(self):
        report, _ = cuda_check.check(HERE / "counts.cu")
        kernels = {kernel.name: kernel for kernel in report.kernels}
        if platform.machine() == "x86_64":
            self.assertEqual(kernels["product_naive"].flops, 2 * 64 ** 3)
            self.assertEqual(kernels["product_tiled"].flops, 2 * 64 ** 3)
        for name in ("product_naive", "product_tiled"):
            self.assertEqual(kernels[name].distinct_bytes, 3 * 64 * 64 * 4)
        self.assertEqual(kernels["product_tiled"].shared_bytes, 2 * 32 * 33 * 4)


if __name__ == "__main__":
    unittest.main()
