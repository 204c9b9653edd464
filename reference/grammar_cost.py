"""What a grammar costs per token: ./stage serve with and without one.

    python3 reference/grammar_cost.py PROGRAM MODEL [PROMPT]

Of every token, prints the time outside the forward pass (choosing, and following the grammar) and
in it, the median of several texts. Standard library only; needs a machine with nothing else to do.
"""
import json
import pathlib
import statistics
import sys
import time

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


def measure(server, body):
    """(tokens, seconds per token in a pass, seconds per token outside)"""
    before, begin = server.metrics(), time.perf_counter()
    made = server.post("/v1/completions", body, timeout=600)
    seconds = time.perf_counter() - begin
    passes = server.metrics()["pass_seconds_total"] - before["pass_seconds_total"]
    n_tokens = made["usage"]["completion_tokens"]
    return n_tokens, passes / n_tokens, (seconds - passes) / n_tokens


def main():
    program, model, prompt = sys.argv[1], sys.argv[2], (sys.argv[3:] or ["A list: "])[0]
    with serving([program], "--model", model, "--parallel", 1) as server:
        for kind, fields in KINDS.items():
            found = []
            for seed in range(9):
                body = {"prompt": prompt, "max_tokens": 150, "seed": seed, "stop": None, **fields}
                found.append(measure(server, json.loads(json.dumps(body))))
            tokens, inside, outside = (statistics.median(column) for column in zip(*found))
            print(f"{kind:12} {tokens:4.0f} tokens: {inside * 1e6:7.0f} us in a pass, "
                  f"{outside * 1e6:7.0f} us outside ({outside / inside:.1%})")


if __name__ == "__main__":
    main()
