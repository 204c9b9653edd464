"""./stage bench --against: our tokens/s beside llama.cpp's and llama2.c's, on the same weights.

    ./stage bench --against llama-bench --model FILE.gguf             llama.cpp's program, and its options
    ./stage bench --against "run MODEL.bin -z TOK.bin" --model DIR    llama2.c's, generation alone

The two in turn, round after round, both pinned to the same processors: what is quoted is the median of
each and of the ratios of neighbours, which hold when the machine's speed drifts.
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import tempfile

import course

PROGRAM = course.BUILD / "src" / "stagecraft"


def run(command, **options):
    done = subprocess.run(command, text=True, stdin=subprocess.DEVNULL, capture_output=True, check=False, **options)
    if done.returncode != 0:
        raise course.Problem(f"{command[0]}: exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    return done


def ours(model, threads, prompt, generate, depth):
    """Tokens a second of one test, in a process of its own as theirs."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "bench.json"
        run([str(PROGRAM), "bench", "--model", model, "-t", str(threads), "-p", str(prompt), "-n", str(generate),
             "-d", str(depth), "-r", "2", "--json", str(out)])
        return json.loads(out.read_text())[0]["tokens_per_second"]


def llama_cpp(command, model, threads, prompt, generate, depth):
    done = run([*command, "-m", model, "-t", str(threads), "-p", str(prompt), "-n", str(generate), "-d", str(depth),
                "-r", "2", "-o", "json"])
    return json.loads(done.stdout[done.stdout.index("["):])[0]["avg_ts"]


def llama2_c(command, threads, generate):
    done = run([*command, "-t", "0", "-n", str(generate), "-i", "Once upon a time"],
               env=dict(os.environ, OMP_NUM_THREADS=str(threads), OMP_PROC_BIND="close"))
    return float(re.findall(r"achieved tok/s: ([\d.]+)", done.stderr)[-1])


def compare(title, first, second, rounds):
    pairs = [(first(), second()) for _ in range(rounds)]
    mine, theirs = (statistics.median(values) for values in zip(*pairs))
    ratios = sorted(a / b for a, b in pairs)
    print(f"  {title:<32} {mine:>10,.0f} {theirs:>10,.0f} {statistics.median(ratios):>8.2f}"
          f"   {ratios[0]:.2f} - {ratios[-1]:.2f}", flush=True)


def numbers(text):
    return [int(word) for word in text.split(",")]


def main():
    parser = argparse.ArgumentParser(prog="./stage bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", required=True, metavar="COMMAND")
    parser.add_argument("--model", required=True, help="for llama.cpp a GGUF file, which both open")
    parser.add_argument("-t", "--threads", type=numbers, default=[1, 2], metavar="N,N")
    parser.add_argument("-p", "--prompt", type=int, default=512, metavar="N")
    parser.add_argument("-n", "--generate", type=int, default=128, metavar="N")
    parser.add_argument("-d", "--depth", type=numbers, default=[0], metavar="N,N")
    parser.add_argument("-r", "--rounds", type=int, default=5, metavar="N")
    options = parser.parse_args([word for word in sys.argv[1:] if word != "bench"])
    problem = course.build("stagecraft")
    if problem is not None:
        raise course.Problem(course.first_error(problem))
    command = shlex.split(options.against)
    is_llama2_c = "-z" in command
    print(f"{options.model}: ours beside {command[0]}, tokens/s, medians of {options.rounds}")
    print(f"  {'test':<32} {'ours':>10} {'theirs':>10} {'ratio':>8}   lowest - highest")
    processors = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else []
    for threads in options.threads:
        if processors:
            os.sched_setaffinity(0, set(processors[-threads:]))
        text = f"{threads} thread{'s' if threads > 1 else ''}"
        for depth in [] if is_llama2_c else options.depth:
            after = f" after {depth}" if depth else ""
            for prompt, generate in ((options.prompt, 0), (0, options.generate)):
                if prompt + generate == 0:
                    continue
                name = f"prompt {prompt}" if prompt else f"generate {generate}"
                compare(f"{name}{after}, {text}",
                        lambda: ours(options.model, threads, prompt, generate, depth),
                        lambda: llama_cpp(command, options.model, threads, prompt, generate, depth), options.rounds)
        if is_llama2_c:
            compare(f"generate {options.generate}, {text}",
                    lambda: ours(options.model, threads, 0, options.generate, 0),
                    lambda: llama2_c(command, threads, options.generate), options.rounds)
        if processors:
            os.sched_setaffinity(0, set(processors))
    return 0


if __name__ == "__main__":
    sys.exit(course.main(main))
