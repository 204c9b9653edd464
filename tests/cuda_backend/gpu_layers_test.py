"""--gpu-layers in every command that has --backend: gpu_layers_test.py PROGRAM

Some layers of models/story and models/chat are on the emulator. Each command must print the same as with the CPU alone.
Each wrong value of --gpu-layers must give an error in one line.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "serve"))
from serving import serving  # noqa: E402

STORY, CHAT = ROOT / "models" / "story", ROOT / "models" / "chat"
NO_SPLIT = ROOT / "tests" / "data" / "models" / "gemma4-shared-caches"
CPU, SOME = ["--backend", "cpu"], ["--backend", "cuda-emulator", "--gpu-layers", "2"]
GREEDY = ["--temperature", "0", "-n", "3", "--seed", "1"]


def run(*words, fails=False):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if (done.returncode != 0) != fails:
        sys.exit(f"{' '.join(map(str, words))}: exit code {done.returncode}: {done.stderr}")
    return done


def expect_same(name, of):
    expected, found = of(CPU), of(SOME)
    if not expected or found != expected:
        sys.exit(f"{name}: expected {expected!r}, found {found!r}")
    print(f"{name}: {found!r}")


def answer(program, flags):
    """Asks for the same text twice. The second time, the server already has the tokens of the prompt."""
    with serving([program], "-m", STORY, *flags) as server:
        request = {"prompt": "One day", "max_tokens": 3, "temperature": 0}
        return [server.post("/v1/completions", request)["choices"][0]["text"] for _ in range(2)]


def bench(program, flags, folder):
    path = pathlib.Path(folder) / "bench.json"
    run(program, "bench", "-m", STORY, "-p", "3", "-n", "1", "-r", "1", "-t", "1", "--json", path, *flags)
    return [(result["prompt"], result["generate"], result["tokens_per_second"] > 0)
            for result in json.loads(path.read_text())]


def perplexity(program, flags, folder):
    """Bits per byte and perplexity. Keys are rounded to f16, so the third digit may differ."""
    text = pathlib.Path(folder) / "text"
    text.write_text("One day, a girl went to the park.")
    printed = run(program, "perplexity", "-m", STORY, "--text", text, *flags).stdout
    return [round(float(number), 2) for number in re.findall(r"\d+\.\d+", printed)]


def main():
    program = sys.argv[1]
    # The weights of models/chat have 4 bits. With such weights, the CPU backend rounds activations to bytes; in a small
    # model, the GPU does not round. The first tokens of this answer are so likely that both choose the same.
    story = [program, "story", "One day", "-m", STORY]
    chat = [program, "chat", "What do you like?", "-m", CHAT]
    with tempfile.TemporaryDirectory() as folder:
        expect_same("story", lambda flags: run(*story, *GREEDY, *flags).stdout)
        expect_same("chat", lambda flags: run(*chat, *GREEDY, *flags).stdout)
        expect_same("serve", lambda flags: answer(program, flags))
        expect_same("bench", lambda flags: bench(program, flags, folder))
        expect_same("perplexity", lambda flags: perplexity(program, flags, folder))
    on_gpu = ["--backend", "cuda-emulator", "--gpu-layers"]
    option, count = "--gpu-layers: expected ", "GPU layers: expected "  # the command line's word, and the engine's
    for words, expected in (
            ([*story, *on_gpu, "many"], option + "a whole number from 0 to 10000, found 'many'"),
            ([*story, *on_gpu, "-1"], option + "a whole number from 0 to 10000, found '-1'"),
            ([*story, *on_gpu, "6"], count + "at most 5 (the model's layers), found 6"),
            ([*story, *CPU, "--gpu-layers", "1"], option + "--backend cuda or cuda-emulator, found cpu"),
            ([*story, "--gpu-layers", "1"], option + "--backend cuda or cuda-emulator, found cpu"),
            ([*story, "--textbook", "--gpu-layers", "1"], option + "--backend cuda or cuda-emulator, found textbook"),
            ([program, "story", "--ids", "1,2", "-m", NO_SPLIT, *on_gpu, "2"],
             count + "one of 0, 5, found 2: at another layer, the two parts of the model would share more than the "
             "residual stream")):
        found = run(*words, fails=True).stderr
        if found != f"stagecraft: {expected}\n":
            sys.exit(f"{' '.join(map(str, words))}: expected {expected!r}, found {found!r}")


if __name__ == "__main__":
    main()
