"""Builds what a test needs: build_targets.py BUILD TARGET...

It waits while ./stage builds. Two ninjas in one folder would write the same files, and GCC crashes if it reads a
precompiled header that two compilers wrote.
"""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))
import lock_file  # noqa: E402


def build(folder, *targets):
    with lock_file.take(ROOT / "build" / ".lock", wait=True):  # ./stage holds it, too
        subprocess.run(["cmake", "--build", str(folder), "--target", *targets], check=True)


if __name__ == "__main__":
    try:
        build(*sys.argv[1:])
    except subprocess.CalledProcessError as failed:  # the compiler has said why
        sys.exit(failed.returncode)
