"""Runs the tests of the CUDA backend in the emulator's checked mode: cuda_backend_test.py PROGRAM

Fails if a test fails, if the checker finds anything, or if a kernel was never launched.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import cuda_check  # noqa: E402

KERNELS = sorted((ROOT / "src" / "operators" / "cuda").glob("*.cu"))


def main():
    program = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "report"
        path.touch()
        code = subprocess.run([program, *sys.argv[2:]], env=dict(os.environ, CUDA_CHECK_REPORT=str(path)),
                              check=False).returncode
        text = path.read_text()
        report = cuda_check.Report(text, cuda_check.Lines(program, KERNELS[0], text))
    for finding in report.findings:
        print(finding)
    launched = {kernel.name.partition("<")[0].rpartition("::")[2] for kernel in report.kernels}
    written = {name for file in KERNELS for name in re.findall(r"__global__ void (?:__launch_bounds__\(.*\)\s+)?(\w+)\(", file.read_text())}
    for name in sorted(written - launched):
        print(f"kernel {name}: expected a launch, found none")
    print(f"{sum(kernel.launches for kernel in report.kernels)} launches of {len(launched)} kernels, "
          f"{len(report.findings)} findings")
    if code or report.findings or written - launched or report.end != "exit":
        sys.exit(1)


if __name__ == "__main__":
    main()
