"""Our tokens/s beside llama2.c's `run` on the same weights: the two in turn, pinned to one processor,
medians and the ratio of neighbours.

    gcc -O3 -o run run.c -lm                       # llama2.c, on your side
    python3 tools/versus_llama2c.py --run ./run --bin story656k.bin --tokenizer story656k-tok.bin \\
        --model PATH/story656k

Both are asked for the same number of greedy tokens after "Once upon a time", one thread each.
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROMPT = "Once upon a time"


def rate(command, pattern):
    """The tokens/s that a command prints on stderr."""
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    return float(re.findall(pattern, done.stderr)[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", required=True, help="llama2.c's program")
    parser.add_argument("--bin", required=True, help="the weights in its format")
    parser.add_argument("--tokenizer", required=True, help="the tokenizer in its format")
    parser.add_argument("--model", required=True, help="the same weights as a model folder")
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

    theirs_command = [options.run, options.bin, "-z", options.tokenizer, "-t", "0",
                      "-n", str(options.tokens), "-i", PROMPT]
    ours_command = [str(ROOT / "build/release/src/stagecraft"), "story", PROMPT, "--model", options.model,
                    "--temperature", "0", "--threads", "1", "--max-tokens", str(options.tokens)]
    theirs, ours = [], []
    for _ in range(options.rounds):
        theirs.append(rate(theirs_command, r"achieved tok/s: ([\d.]+)"))
        ours.append(rate(ours_command, r"tokens, (\d+) tokens/s; prompt"))
    ratios = [mine / yours for mine, yours in zip(ours, theirs)]
    for name, values, digits in (("ours", ours, 0), ("llama2.c", theirs, 0), ("ratio", ratios, 2)):
        print(f"{name:<9} median {statistics.median(values):.{digits}f}  "
              f"from {min(values):.{digits}f} to {max(values):.{digits}f}")


if __name__ == "__main__":
    main()
