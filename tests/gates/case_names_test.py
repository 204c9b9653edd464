"""Each case has a name in Chinese, too: the gate asks our own code, in Chinese, and stores the names.

    case_names_test.py BUILD

A name made of symbols and of names in code ("m = 3, n = 5", "head_dim: 15", "BF16") is the same in each language.
Standard library only; ctest runs it.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

WORD = re.compile(r"[a-z_]{2,}")
SAME = {"alpha", "beta", "eps", "rows", "dim", "top", "and", "null", "small", "models", "story"}  # also as in head_dim
ROOT = pathlib.Path(__file__).resolve().parents[2]


def needs_words(name):
    return any(word not in SAME and "_" not in word for word in WORD.findall(name))


def main():
    course = pathlib.Path(sys.argv[1]) / "course"
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, STAGECRAFT_LANG="zh", STAGE_KEEP=folder, STAGE_WORKER=str(course / "worker_ours"))
        # Other tests check the answers: this worker has no kernels for the GPU, for example.
        done = subprocess.run([course / "gate", "--gtest_filter=-*Speed*"], env=environment, stdout=subprocess.DEVNULL)
        assert done.returncode in (0, 1), done.returncode
        names = sorted(set((pathlib.Path(folder) / "names").read_text(encoding="utf-8").splitlines()))
    assert len(names) > 300, len(names)
    bare = [name for name in names if "：" not in name and needs_words(name)]
    for name in bare:
        print(f"stages/case_names.json: '{name}' has no Chinese words")
    told = json.loads((ROOT / "stages" / "case_names.json").read_text(encoding="utf-8"))
    known = {name.partition("：")[0] for name in names}
    unused = [name for name in told if "{" not in name and name not in known]
    for name in unused:
        print(f"stages/case_names.json: no case is called '{name}'")
    return 1 if bare or unused else 0


if __name__ == "__main__":
    sys.exit(main())
