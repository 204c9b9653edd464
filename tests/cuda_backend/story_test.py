"""The program with the emulator tells the stories that the CPU backend tells: story_test.py PROGRAM MODEL

The kernels are optimised and not checked. With temperature 0 only tokens leave the GPU's memory, with a penalty logits do.
"""
import subprocess
import sys

STORIES = (["--temperature", "0"],
           ["--temperature", "0", "--repeat-penalty", "1.3"],
           ["--temperature", "0", "--stories", "2"])


def told(words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True).stdout


def main():
    program, model = sys.argv[1:]
    for flags in STORIES:
        words = [program, "story", "One day", "-m", model, "-n", "8", "--seed", "1", *flags]
        expected, found = (told([*words, "--backend", name]) for name in ("cpu", "cuda-emulator"))
        if found != expected:
            sys.exit(f"{' '.join(flags)}: expected the story of the CPU, {expected!r}, found {found!r}")
        print(f"{' '.join(flags)}: {found!r}")


if __name__ == "__main__":
    main()
