"""./stage bench --against: our tokens/s beside llama.cpp's, llama2.c's, or another version of our own.

    ./stage bench --against llama-bench --model FILE.gguf             llama.cpp's program, and its options
    ./stage bench --against "run MODEL.bin -z TOK.bin" --model DIR    llama2.c's, generation alone
    ./stage bench --against OTHER/build/release/src/stagecraft --model A,B,C    a stagecraft built elsewhere
    ./stage bench --against llama-server --model FILE.gguf            llama.cpp's server, and its options; ours is ./stage serve

Both programs run in turn, on the same processors. The table shows the median speed of each, and the median of the
ratios of neighbouring runs: these stay right if the machine becomes slower during the measurement.
Servers are not pinned: their clients run beside them.
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

import against_server
import repository

BEHIND = 0.97  # if all ratios are below this, we are slower
PROGRAM = repository.BUILD / "src" / "stagecraft"


def run(command, **options):
    done = subprocess.run(command, text=True, stdin=subprocess.DEVNULL, capture_output=True, check=False, **options)
    if done.returncode != 0:
        raise repository.Problem(f"{command[0]}: exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    return done


def ours(model, threads, prompt, generate, depth, program=PROGRAM):
    """Tokens per second of one test, in a process of its own, as for the other program."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "bench.json"
        run([str(program), "bench", "--model", model, "-t", str(threads), "-p", str(prompt), "-n", str(generate),
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


def compare(title, first, second, rounds, rows):
    """Runs both in turn, with alternating order; adds the median ratio and its spread to `rows`."""
    pairs = []
    for index in range(rounds):
        if index % 2 == 0:
            pairs.append((first(), second()))
        else:
            theirs = second()
            pairs.append((first(), theirs))
    mine, theirs = (statistics.median(values) for values in zip(*pairs))
    ratios = sorted(a / b for a, b in pairs)
    print(f"  {title:<32} {mine:>10,.0f} {theirs:>10,.0f} {statistics.median(ratios):>8.2f}"
          f"   {ratios[0]:.2f} - {ratios[-1]:.2f}", flush=True)
    rows.append((title, statistics.median(ratios), ratios[0], ratios[-1]))


def numbers(low):
    """The type of an argument that is a list of whole numbers of at least `low`."""
    return lambda text: [repository.whole(low)(word) for word in text.split(",")]


def compare_model(options, command, model, rows):
    """All tests of one model."""
    is_llama2_c = "-z" in command
    is_ours = pathlib.Path(command[0]).name.startswith("stagecraft")
    other = "other" if is_ours else "theirs"
    print(f"{model}: ours beside {command[0]}, tokens/s, medians of {options.rounds}")
    print(f"  {'test':<32} {'ours':>10} {other:>10} {'ratio':>8}   lowest - highest")
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
                test = (model, threads, prompt, generate, depth)
                theirs = (lambda: ours(*test, program=command[0])) if is_ours else (lambda: llama_cpp(command, *test))
                name = f"prompt {prompt}" if prompt else f"generate {generate}"
                compare(f"{name}{after}, {text}", lambda: ours(*test), theirs, options.rounds, rows)
        if is_llama2_c:
            compare(f"generate {options.generate}, {text}",
                    lambda: ours(model, threads, 0, options.generate, 0),
                    lambda: llama2_c(command, threads, options.generate), options.rounds, rows)
        if processors:
            os.sched_setaffinity(0, set(processors))


def main():
    parser = argparse.ArgumentParser(prog="./stage bench", description=__doc__,
                                     formatter_class=repository.Paragraphs)
    parser.add_argument("--against", required=True, metavar="COMMAND")
    parser.add_argument("--model", required=True, metavar="PATH,PATH",
                        help="for llama.cpp GGUF files, which both open")
    parser.add_argument("-t", "--threads", type=numbers(1), default=[1, 2], metavar="N,N")
    parser.add_argument("-p", "--prompt", type=repository.whole(0), default=512, metavar="N")
    parser.add_argument("-n", "--generate", type=repository.whole(0), default=128, metavar="N")
    parser.add_argument("-d", "--depth", type=numbers(0), default=[0], metavar="N,N")
    parser.add_argument("--clients", type=numbers(1), default=[1, 4, 16, 64], metavar="N,N", help="of a server, at the same time")
    parser.add_argument("--chats", type=repository.whole(0), default=0, metavar="N", help="of a server: conversations that take turns, not prompts")
    parser.add_argument("-r", "--rounds", type=repository.whole(1), default=5, metavar="N")
    options = parser.parse_args()
    command = shlex.split(options.against)
    if not command:
        parser.error("--against: expected a program, found none")
    repository.build("stagecraft")
    rows = []
    for model in options.model.split(","):
        if any(word.endswith("llama-server") for word in command):
            with tempfile.TemporaryDirectory() as folder:
                against_server.compare_servers(options, command, model, folder)
        else:
            compare_model(options, command, model, rows)
    if len(rows) > 1:
        mean = statistics.geometric_mean(ratio for _, ratio, _, _ in rows)
        behind = [title for title, _, _, highest in rows if highest < BEHIND]
        print(f"geometric mean of {len(rows)} ratios: {mean:.3f}; whole spread below {BEHIND}: "
              f"{', '.join(behind) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(repository.main(main))
