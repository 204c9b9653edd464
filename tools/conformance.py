"""./stage conformance: every kind of step on every backend, instruction set and weight format of this
machine, with random shapes, compared with formulas in double precision. Prints a table of what ran. Then it
breaks kernels on purpose; each broken kernel must be noticed.
"""
import argparse
import os
import subprocess
import sys

import repository


def main():
    parser = argparse.ArgumentParser(prog="./stage conformance", description=__doc__,
                                     formatter_class=repository.Paragraphs)
    parser.add_argument("--seed", type=repository.whole(0), default=1, metavar="N", help="seed of the random shapes and numbers (default: 1)")
    parser.add_argument("--random", type=repository.whole(0), default=20, metavar="N", help="random shapes per row of the table (default: 20)")
    parser.add_argument("--break", dest="broken", type=repository.whole(0), default=1000, metavar="N",
                        help="how many kernels to break, one at a time (default: all)")
    options = parser.parse_args()
    repository.build("backends_tests")
    environment = dict(os.environ, GTEST_BRIEF="1", STAGECRAFT_CONFORMANCE_SEED=str(options.seed),
                       STAGECRAFT_CONFORMANCE_RANDOM=str(options.random),
                       STAGECRAFT_CONFORMANCE_BREAK=str(options.broken))
    done = subprocess.run([str(repository.BUILD / "tests" / "backends_tests"), "--gtest_filter=Conformance.*"],
                          cwd=repository.BUILD / "tests", env=environment, check=False)
    return 0 if done.returncode == 0 else 1


if __name__ == "__main__":
    sys.exit(repository.main(main))
