"""What a grammar costs per token: ./stage serve with and without one.

    python3 reference/grammar_cost.py PROGRAM MODEL [PROMPT]

Prints the processor time of the server per new token, on one thread, so that other programs of the
machine disturb it little. Linux; standard library only.
"""
import os
import pathlib
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


def processor_seconds(server):
    fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def measure(server, prompt, fields):
    """(new tokens, processor seconds) of several texts."""
    n_tokens, begin = 0, processor_seconds(server)
    for seed in range(10):
        body = {"prompt": prompt, "max_tokens": 150, "seed": seed, **fields}
        n_tokens += server.post("/v1/completions", body, timeout=600)["usage"]["completion_tokens"]
    return n_tokens, processor_seconds(server) - begin


def main():
    program, model, prompt = sys.argv[1], sys.argv[2], (sys.argv[3:] or ["Once upon a time"])[0]
    with serving([program], "--model", model, "--parallel", 1, "--threads", 1) as server:
        plain = None
        for kind, fields in KINDS.items():
            measure(server, prompt, fields)
            n_tokens, seconds = measure(server, prompt, fields)
            each = seconds / max(n_tokens, 1)  # some models end at once
            plain = plain or each
            print(f"{kind:12} {n_tokens:5} tokens, {each * 1e6:7.0f} us each ({each / plain - 1:+.1%})",
                  flush=True)


if __name__ == "__main__":
    main()
