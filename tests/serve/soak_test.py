"""Many clients ask `serve` at once. Each gets the answer that it gets alone, and the server does not grow.
soak_test.py PROGRAM [SECONDS] [SEED]. The build's own test takes 10 seconds; give a build with sanitizers an hour."""
import contextlib
import json
import random
import sys
import threading
import time
import unittest

from serving import MODELS, read_all, request_bytes, serving

PROGRAM = sys.argv[1:2]
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 10
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 9
CLIENTS, QUESTIONS = 8, 24
# Bytes that the second half may add. On a busy machine, a short first half does not fill all caches of the server.
GROWTH = (32 if SECONDS >= 60 else 64) << 20
SCHEMA = {"type": "json_schema", "json_schema": {"name": "n", "schema": {
    "type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 99}}}}}
WORDS = "the cat sat on a small red boat and looked at the moon while rain fell in the old town".split()


def text_of(dice, most):
    return " ".join(dice.choice(WORDS) for _ in range(dice.randrange(1, most)))


def question_of(dice):
    """A request whose answer is always the same: (path, body)."""
    common = {"seed": dice.randrange(100), "max_tokens": dice.randrange(1, 40),
              "temperature": dice.choice((0, 0.7, 1.0)), "top_k": dice.choice((0, 5, 40))}
    if dice.random() < 0.5:
        # Most requests have a common beginning, so that they share keys and values.
        system = " ".join(WORDS * 6) if dice.random() < 0.7 else text_of(dice, 40)
        body = {"messages": [{"role": "system", "content": system},
                             {"role": "user", "content": text_of(dice, 30)}], **common}
        if dice.random() < 0.2:
            body["response_format"] = SCHEMA
        elif dice.random() < 0.3:
            body |= {"logprobs": True, "top_logprobs": 3}
        return "/v1/chat/completions", body
    shared = " ".join(WORDS * 8) + " " if dice.random() < 0.5 else ""
    return "/v1/completions", {"prompt": shared + text_of(dice, 60), "n": dice.choice((1, 1, 3)), **common}


class Client(threading.Thread):
    """Sends requests until the time is up. `problem`: the exception that ended it, or None."""

    def __init__(self, server, questions, seed, end):
        super().__init__()
        self.server, self.questions, self.end = server, questions, end
        self.dice = random.Random(seed)
        self.counts = {}
        self.problem = None

    def run(self):
        acts = (self.asks, self.asks, self.asks, self.streams, self.streams, self.leaves, self.talks, self.mutates,
                self.says_half, self.looks)
        try:
            while time.monotonic() < self.end:
                act = self.dice.choice(acts)
                act()
                self.counts[act.__name__] = self.counts.get(act.__name__, 0) + 1
        except Exception as problem:  # of any kind: the test reports it
            self.problem = problem

    def expect(self, found, expected, what):
        if found != expected:
            raise AssertionError(f"{what}: expected {expected}, found {found}")

    def asks(self):
        path, body, expected = self.dice.choice(self.questions)
        self.expect(self.server.post(path, body)["choices"], expected, body)

    def streams(self):
        path, body, expected = self.dice.choice(self.questions)
        texts = [""] * len(expected)
        for event in self.server.events(path, body):
            for choice in event.get("choices", []):
                piece = choice["text"] if "text" in choice else choice["delta"].get("content")
                texts[choice["index"]] += piece or ""
        self.expect(texts, [choice.get("text", choice.get("message", {}).get("content")) for choice in expected], body)

    def leaves(self):
        path, body, _ = self.dice.choice(self.questions)
        data = json.dumps({**body, "stream": True, "max_tokens": 200}).encode()
        with self.server.connect() as connection:
            connection.sendall(request_bytes(path, data))
            if self.dice.random() < 0.7:
                connection.recv(self.dice.randrange(1, 2000))

    def talks(self):
        messages = []
        for _ in range(self.dice.randrange(2, 4)):
            messages.append({"role": "user", "content": text_of(self.dice, 20)})
            body = {"messages": messages, "max_tokens": 12, "seed": 1}
            answer = self.server.post("/v1/chat/completions", body)["choices"][0]["message"]["content"]
            messages.append({"role": "assistant", "content": answer})

    def mutates(self):
        path, body, _ = self.dice.choice(self.questions)
        data = json.dumps({**body, "max_tokens": 2}).encode()
        request = bytearray(request_bytes(path, data))
        for _ in range(self.dice.randrange(1, 4)):
            at = self.dice.randrange(len(request))
            request[at:at + self.dice.randrange(4)] = self.dice.randbytes(self.dice.randrange(4))
        with self.server.connect() as connection, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(request)
            connection.shutdown(1)
            if b" 500 " in read_all(connection)[:20]:
                raise AssertionError(f"status 500 for {bytes(request)!r}")

    def says_half(self):
        with self.server.connect() as connection, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(request_bytes("/v1/completions", b"x" * 50)[:self.dice.randrange(100)])
            time.sleep(self.dice.random() / 10)

    def looks(self):
        path, body = self.dice.choice((("/tokenize", {"content": text_of(self.dice, 50)}),
                                       ("/glass/choices", {"tokens": [1, 2, 3], "next": 4, "top": 5}),
                                       ("/glass/attention", {"tokens": [5, 6, 7]})))
        status, _, _ = self.server.ask("POST", path, body)
        if status not in (200, 429, 503):
            raise AssertionError(f"{path}: status {status}")
        self.server.metrics()


class Soak(unittest.TestCase):
    def test_each_client_gets_the_answer_that_it_gets_alone(self):
        dice = random.Random(SEED)
        with serving(PROGRAM, "--model", MODELS / "chat", "--parallel", 3, "--queue", 64, "-c", 700) as server:
            questions = [question_of(dice) for _ in range(QUESTIONS)]
            questions = [(path, body, server.post(path, body)["choices"]) for path, body in questions]
            end = time.monotonic() + SECONDS
            clients = [Client(server, questions, dice.random(), end) for _ in range(CLIENTS)]
            for client in clients:
                client.start()
            time.sleep(SECONDS / 2)  # by then, the server's caches are full
            before = server.resident_bytes() if sys.platform == "linux" else 0
            for client in clients:
                client.join()
            self.assertEqual([client.problem for client in clients if client.problem], [])
            server.wait_for(lambda now: now["texts_running"] == now["texts_waiting"] == 0)
            growth = server.resident_bytes() - before if sys.platform == "linux" else 0
            self.assertLess(growth, GROWTH)
        done = {}
        for client in clients:
            for act, count in client.counts.items():
                done[act] = done.get(act, 0) + count
        print(f"{SECONDS:.0f} s, {growth / 2**20:.1f} MiB more in the second half: {dict(sorted(done.items()))}")
        self.assertGreater(sum(done.values()), CLIENTS)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
