"""The program with the emulator tells the stories that the CPU backend tells: story_test.py PROGRAM MODEL

The kernels are optimised and not checked. With temperature 0, only tokens leave the GPU's memory; with a penalty,
logits do. With --gpu-layers, only the last layers are on the emulator.
"""
import json
import pathlib
import subprocess
import sys

STORIES = (["--temperature", "0"],
           ["--temperature", "0", "--repeat-penalty", "1.3"],
           ["--temperature", "0", "--stories", "2"])


def told(words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True).stdout


def main():
    program, model = sys.argv[1:]
    n_layers = json.loads((pathlib.Path(model) / "config.json").read_text())["num_hidden_layers"]
    half = ["--gpu-layers", n_layers // 2]
    for flags in STORIES:
        words = [program, "story", "One day", "-m", model, "-n", "8", "--seed", "1", *flags]
        expected = told([*words, "--backend", "cpu"])
        others = [["--gpu-layers", n] for n in (0, n_layers)] if flags is STORIES[0] else []
        for layers in ([], half, *others):
            found = told([*words, "--backend", "cuda-emulator", *layers])
            name = " ".join(map(str, [*flags, *layers]))
            if found != expected:
                sys.exit(f"{name}: expected the story of the CPU, {expected!r}, found {found!r}")
            print(f"{name}: {found!r}")


if __name__ == "__main__":
    main()
