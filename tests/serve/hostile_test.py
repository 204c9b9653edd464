"""`serve` answers or refuses everything that a client sends; it does not grow and does not stop:
hostile_test.py PROGRAM [SEED]."""
import contextlib
import json
import random
import socket
import sys
import time
import unittest

from serving import MODELS, read_all, request_bytes, serving

PROGRAM = sys.argv[1:2]
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 9
MUTATIONS = 10000
# Bytes: a busy allocator's arenas, and the pages of earlier texts, 9 KB per token of models/chat. Three times the
# requests need the same.
GROWTH = 200 << 20
CHAT = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2, "seed": 1}


class Hostile(unittest.TestCase):
    def setUp(self):
        context = serving(PROGRAM, "--model", MODELS / "chat", "--parallel", 2, "--queue", 8)
        self.server = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        self.expected = self.server.post("/v1/chat/completions", CHAT)["choices"]
        self.before = self.server.resident_bytes() if sys.platform == "linux" else 0

    def is_well(self):
        """Checks that the server still gives the same answer, and has not grown."""
        self.assertEqual(self.server.post("/v1/chat/completions", CHAT)["choices"], self.expected)
        if sys.platform == "linux":
            self.assertLess(self.server.resident_bytes() - self.before, GROWTH)

    def status_of(self, *pieces):
        """The status of the answer to these bytes; 0 if the connection was closed without an answer."""
        with self.server.connect() as connection:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                for piece in pieces:
                    connection.sendall(piece)
                connection.shutdown(socket.SHUT_WR)
            answer = read_all(connection).removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
        return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0

    @unittest.skipUnless(sys.platform == "linux", "reads the processor time of another process")
    def test_many_members_take_no_longer_than_a_long_text(self):
        members = {f"a name of number {at}": "x" for at in range(25_000)}
        before = self.server.processor_seconds()
        self.assertEqual(self.status_of(request_bytes("/v1/chat/completions", json.dumps(members).encode())), 400)
        answer = self.server.post("/v1/responses", {"input": "Hi", "max_output_tokens": 2, "metadata": members})
        self.assertEqual(answer["metadata"], members)
        # a linear search for each member would take longer
        self.assertLess(self.server.processor_seconds() - before, 0.5)
        self.is_well()

    def test_floods_are_refused_early(self):
        def endless(first, again, most):
            with self.server.connect() as connection:
                connection.sendall(first)
                sent = 0
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    while sent < most:
                        connection.sendall(again)
                        sent += len(again)
                self.assertLess(sent, most, f"{first[:40]} {again[:10]}: nobody stopped it")

        most = 200 << 20
        begin = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
        endless(b"", b"x" * 10000, most)  # one endless line
        endless(b"", b"\r\n" * 5000, most)
        endless(begin + b"A: ", b"x" * 10000, most)
        endless(begin, b"A: b\r\n" * 2000, most)
        chunk = b"1000\r\n" + b"x" * 4096 + b"\r\n"
        endless(begin + b"Transfer-Encoding: chunked\r\n\r\n", chunk, most)
        endless(begin + b"Content-Length: 99999999999\r\n\r\n", b"x" * 10000, most)
        self.is_well()

    def test_bodies_that_would_take_long(self):
        for body in (b"[" * (1 << 20), b'{"a":' * 200000,
                     b'{"prompt": "' + b"\\ud800" * 100000 + b'"}',
                     json.dumps({"prompt": "a" * 1000000}).encode(),
                     json.dumps({"prompt": ["a " * 100000] * 5}).encode(),
                     json.dumps({"prompt": list(range(100000))}).encode(),
                     json.dumps({"prompt": "a", "stop": ["a" * 1000000]}).encode(),
                     b'{"prompt": 1e999}', b"\xff\xfe", b"null", b"1" * 1000000):
            begin = time.monotonic()
            self.assertEqual(self.status_of(request_bytes("/v1/completions", body)), 400, body[:40])
            self.assertLess(time.monotonic() - begin, 10, body[:40])
        self.is_well()

    def test_clients_that_say_nothing_or_read_nothing(self):
        with contextlib.ExitStack() as open_ones:
            for i in range(300):
                connection = open_ones.enter_context(self.server.connect())
                half = (b"", b"GET", request_bytes("/v1/completions", b"x" * 100)[:-50])[i % 3]
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    connection.sendall(half)
            self.is_well()
            body = json.dumps({"prompt": "x", "max_tokens": 400, "stream": True, "logprobs": 20,
                               "stop": "\0"}).encode()
            for _ in range(40):  # streams that no client reads
                connection = open_ones.enter_context(self.server.connect())
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
                connection.sendall(request_bytes("/v1/completions", body))
            self.server.wait_for(lambda now: now["texts_running"] == now["texts_waiting"] == 0)
            self.is_well()

    def test_clients_that_leave_at_once(self):
        dice = random.Random(SEED)
        body = json.dumps({"prompt": "x", "n": 4, "max_tokens": 400, "stream": True}).encode()
        request = request_bytes("/v1/completions", body)
        for _ in range(200):
            with self.server.connect() as connection:
                sent = dice.choice((len(request), dice.randrange(len(request))))
                connection.sendall(request[:sent])
                if sent == len(request) and dice.random() < 0.3:
                    connection.recv(10)
        self.server.wait_for(lambda now: now["texts_running"] == now["texts_waiting"] == 0)
        self.is_well()

    def test_mutated_requests(self):
        dice = random.Random(SEED)
        bodies = [("/v1/chat/completions", {**CHAT, "stream": True}),
                  ("/v1/chat/completions", {**CHAT, "logprobs": True, "stop": ["a"]}),
                  ("/v1/completions", {"prompt": ["a", "b"], "n": 2, "max_tokens": 2})]
        seeds = [*(request_bytes(path, json.dumps(body).encode()) for path, body in bodies),
                 request_bytes("/tokenize", b'{"content": "a"}'),
                 request_bytes("/glass/choices", b'{"tokens": [1, 2], "next": 3, "top": 4}'),
                 request_bytes("/glass/attention", b'{"tokens": [1, 2]}'),
                 b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"]
        statuses = {}
        for _ in range(MUTATIONS):
            request = bytearray(dice.choice(seeds))
            for _ in range(dice.randrange(1, 4)):
                at = dice.randrange(len(request))
                kind = dice.randrange(4)
                if kind == 0:
                    request[at] = dice.randrange(256)
                elif kind == 1:
                    del request[at:at + dice.randrange(1, 6)]
                elif kind == 2:
                    request[at:at] = request[dice.randrange(len(request)):][:dice.randrange(30)]
                else:
                    request[at:at] = dice.choice(
                        (b"\r\n", b"\0", b'"', b"{", b"[", b"9" * 30, b"\\u0000"))
            status = self.status_of(bytes(request))
            statuses[status] = statuses.get(status, 0) + 1
        self.assertGreater(statuses.get(400, 0), MUTATIONS / 10, statuses)
        self.assertNotIn(500, statuses)
        self.server.wait_for(lambda now: now["texts_running"] == now["texts_waiting"] == 0)
        self.is_well()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
