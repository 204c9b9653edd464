"""The cost of a grammar per token: ./stage serve with and without one.

    python3 reference/grammar_cost.py PROGRAM MODEL [PROMPT]

Generates 30 texts of each kind in turn, on one thread. Prints the median CPU time of the server per
new token, and the median ratio to a text with the same seed without a grammar. Linux; standard
library only.
"""
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "serve"))
from serving import serving  # noqa: E402

PERSON = {"type": "object", "required": ["name", "age", "tags"], "additionalProperties": False,
          "properties": {"name": {"type": "string", "maxLength": 60},
                         "age": {"type": "integer", "minimum": 0, "maximum": 150},
                         "tags": {"type": "array", "minItems": 20, "maxItems": 30,
                                  "items": {"type": "string", "minLength": 8}}}}
KINDS = {
    "no grammar": {},
    "any text": {"grammar": "root ::= [\\x00-\\U0010ffff]*"},
    "any JSON": {"json_schema": {"type": "array", "minItems": 60}},
    "a schema": {"json_schema": PERSON},
}
N_TEXTS = 30


def processor_seconds(server):
    threads = pathlib.Path(f"/proc/{server.process.pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def per_token(server, prompt, seed, fields):
    """(new tokens, CPU seconds per token) of one text."""
    begin = processor_seconds(server)
    body = {"prompt": prompt, "max_tokens": 150, "seed": seed, **fields}
    n = server.post("/v1/completions", body, timeout=600)["usage"]["completion_tokens"]
    return n, (processor_seconds(server) - begin) / max(n, 1)  # the text may be empty


def main():
    program, model, prompt = sys.argv[1], sys.argv[2], (sys.argv[3:] or ["Once upon a time"])[0]
    texts = {kind: [] for kind in KINDS}
    with serving([program], "--model", model, "--parallel", 1, "--threads", 1) as server:
        for seed in range(N_TEXTS + 1):  # the first text compiles the grammars
            for kind, fields in KINDS.items():
                texts[kind].append(per_token(server, prompt, seed, fields))
    plain = [each for _, each in texts["no grammar"][1:]]
    for kind, of_kind in texts.items():
        seconds = [each for _, each in of_kind[1:]]
        low, ratio, high = statistics.quantiles([a / b - 1 for a, b in zip(seconds, plain)], n=4)
        print(f"{kind:12} {sum(n for n, _ in of_kind[1:]):5} tokens, "
              f"{statistics.median(seconds) * 1e6:7.0f} us each ({ratio:+.1%}; half of them {low:+.1%} to {high:+.1%})")


if __name__ == "__main__":
    main()
