"""What `serve` promises its clients: server_test.py PROGRAM [--update]

--update writes the answers into docs/server.md.
"""
import concurrent.futures
import json
import pathlib
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from serving import MODELS, ROOT, read_all, serving

PROGRAM = sys.argv[1:2]
COMPLETIONS, CHATS = "/v1/completions", "/v1/chat/completions"
HELLO = [{"role": "user", "content": "Hello, who are you?"}]


def run(*arguments):
    """What a command prints."""
    return subprocess.run([*PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          check=True).stdout


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.context = serving(PROGRAM, "--model", MODELS / "chat", "--parallel", 3, "--queue", 200)
        cls.server = cls.context.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.context.__exit__(None, None, None)

    def test_says_what_the_commands_say_with_the_same_seed(self):
        made = self.server.post(CHATS, {"messages": HELLO, "seed": 7, "max_tokens": 256})
        expected = run("chat", "--model", MODELS / "chat", "--seed", 7, HELLO[0]["content"])
        choice = made["choices"][0]
        self.assertEqual(choice["message"]["content"] + "\n", expected)
        self.assertEqual((choice["finish_reason"], made["object"]), ("stop", "chat.completion"))
        usage = made["usage"]
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"])
        made = self.server.post(COMPLETIONS, {"prompt": "The weather", "seed": 3, "max_tokens": 12,
                                              "top_k": 0})
        expected = run("story", "--model", MODELS / "chat", "The weather", "--seed", 3, "-n", 12,
                       "--top-k", 0)
        self.assertEqual("The weather" + made["choices"][0]["text"] + "\n", expected)

    def test_each_of_n_choices_has_the_next_seed(self):
        body = {"messages": HELLO, "seed": 20, "max_tokens": 30}
        several = self.server.post(CHATS, {**body, "n": 3})["choices"]
        self.assertEqual([choice["index"] for choice in several], [0, 1, 2])
        for i, choice in enumerate(several):
            alone = self.server.post(CHATS, {**body, "seed": 20 + i})["choices"][0]
            self.assertEqual(choice["message"], alone["message"])
        self.assertEqual(len({choice["message"]["content"] for choice in several}), 3)

    def test_a_stream_says_the_same_piece_by_piece(self):
        body = {"messages": HELLO, "seed": 5, "n": 2, "max_tokens": 20, "logprobs": True,
                "top_logprobs": 2}
        whole = self.server.post(CHATS, body)
        events = self.server.events(CHATS, {**body, "stream_options": {"include_usage": True}})
        *events, last = events
        self.assertEqual((last["choices"], last["usage"]["completion_tokens"]),
                         ([], whole["usage"]["completion_tokens"]))
        self.assertEqual({event["object"] for event in events}, {"chat.completion.chunk"})
        self.assertTrue(all(event["usage"] is None for event in events))
        for choice in whole["choices"]:
            own = [event["choices"][0] for event in events
                   if event["choices"][0]["index"] == choice["index"]]
            self.assertEqual(own[0]["delta"], {"role": "assistant", "content": ""})
            self.assertEqual("".join(one["delta"].get("content", "") for one in own),
                             choice["message"]["content"])
            self.assertEqual([one["finish_reason"] for one in own if one["finish_reason"]],
                             [choice["finish_reason"]])
            scores = [entry for one in own if one["logprobs"]
                      for entry in one["logprobs"]["content"]]
            self.assertEqual(scores, choice["logprobs"]["content"])
            self.assertTrue(all(len(entry["top_logprobs"]) == 2 for entry in scores))

    def test_logprobs_name_tokens_that_spell_the_text(self):
        made = self.server.post(COMPLETIONS, {"prompt": "The", "max_tokens": 8, "temperature": 0,
                                              "logprobs": 3})
        choice = made["choices"][0]
        logprobs = choice["logprobs"]
        self.assertEqual("".join(logprobs["tokens"]), choice["text"])
        self.assertEqual(len(logprobs["text_offset"]), len(logprobs["tokens"]))
        for token, logprob, top, offset in zip(*(logprobs[key] for key in (
                "tokens", "token_logprobs", "top_logprobs", "text_offset"))):
            self.assertLessEqual(logprob, 0)
            self.assertEqual(logprob, max(top.values()))  # temperature 0 takes the likeliest
            self.assertTrue(choice["text"][offset:].startswith(token))

    def test_texts_are_the_same_whatever_else_runs(self):
        dice = random.Random(4)
        words = "why does the sea taste of salt and who told you so".split()
        bodies = []
        for _ in range(40):
            text = " ".join(dice.choices(words, k=dice.choice((3, 10, 120))))
            body = {"seed": dice.randrange(10**6), "max_tokens": dice.randrange(1, 40),
                    "temperature": dice.choice((0, 0.7, 1.3)),
                    "stop": dice.choice((None, ["e "], "I"))}
            if dice.random() < 0.5:
                bodies.append((COMPLETIONS, {**body, "prompt": text, "logprobs": 1}))
            else:
                bodies.append((CHATS, {**body, "messages": [{"role": "user", "content": text}],
                                       "logprobs": True}))

        def ask(job):
            path, body = job
            time.sleep(body["seed"] % 200 / 1000)
            return self.server.post(path, body)["choices"]

        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            together = list(pool.map(ask, bodies))
        for job, made in zip(bodies, together):
            self.assertEqual(made, ask(job), job)

    def test_a_chat_that_goes_on_is_not_computed_again(self):
        body = {"messages": HELLO, "seed": 1, "max_tokens": 20}
        first = self.server.post(CHATS, body)
        messages = [*HELLO, {**first["choices"][0]["message"]}, {"role": "user", "content": "Why?"}]
        usage = self.server.post(CHATS, {**body, "messages": messages})["usage"]
        self.assertGreaterEqual(usage["prompt_tokens_details"]["cached_tokens"],
                                first["usage"]["total_tokens"] - 2)

    def test_errors_have_openais_form(self):
        def error(method, path, body, headers=None):
            status, found, answer = self.server.ask(method, path, body, headers)
            self.assertEqual(found["Content-Type"], "application/json")
            problem = json.loads(answer)["error"]
            self.assertEqual(set(problem), {"message", "type", "param", "code"})
            self.assertEqual(len(problem["message"].splitlines()), 1)
            return status, problem["param"], problem["code"], found

        good = {"prompt": "x"}
        for expected, request in {
                (400, "temperature", None): ("POST", COMPLETIONS, {**good, "temperature": "x"}),
                (400, "tools", "unsupported_parameter"):
                    ("POST", CHATS, {"messages": HELLO, "tools": [{}]}),
                (400, "prompt", "context_length_exceeded"):
                    ("POST", COMPLETIONS, {"prompt": "x y" * 2000}),
                (404, "model", "model_not_found"): ("POST", COMPLETIONS, {**good, "model": "x"}),
                (404, None, "not_found"): ("GET", "/v1/x", None),
                (405, None, "method_not_allowed"): ("GET", COMPLETIONS, None),
                (415, None, None): ("POST", COMPLETIONS, good, {"Content-Type": "text/plain"}),
                (403, None, None): ("POST", COMPLETIONS, good, {"Host": "evil.example"}),
                (413, None, None): ("POST", COMPLETIONS, b"x" * (1 << 20) + b"x"),
        }.items():
            status, param, code, headers = error(*request)
            self.assertEqual((status, param, code), expected)
            if status == 405:
                self.assertEqual(headers["Allow"], "POST")

    def test_other_paths(self):
        status, _, answer = self.server.ask("GET", "/v1/models")
        model = json.loads(answer)["data"][0]
        self.assertEqual((status, model["id"], model["max_model_len"]), (200, "chat", 512))
        self.assertEqual(self.server.ask("GET", "/health?x=1")[2], b'{"status":"ok"}\n')
        tokens = self.server.post("/tokenize", {"content": "Hello there"})["tokens"]
        self.assertEqual(",".join(map(str, tokens)) + "\n", subprocess.run(
            [*PROGRAM, "tokenize", "--model", MODELS / "chat"], input="Hello there", text=True,
            capture_output=True, check=True).stdout)
        self.assertGreater(self.server.metrics()["requests_total"], 0)

    def test_one_connection_carries_many_requests(self):
        head = f"Host: localhost:{self.server.port}\r\n"
        body = json.dumps({"prompt": "x", "max_tokens": 3})
        post = f"POST {COMPLETIONS} HTTP/1.1\r\n{head}Content-Type: application/json\r\n"
        requests = [
            f"HEAD /health HTTP/1.1\r\n{head}\r\n",
            f"{post}Content-Length: {len(body)}\r\n\r\n{body}",
            f"{post}Transfer-Encoding: chunked\r\n\r\n{len(body):x}\r\n{body}\r\n0\r\n\r\n",
            f"GET /health HTTP/1.1\r\n{head}Connection: close\r\n\r\n",
        ]
        with self.server.connect() as connection:
            connection.sendall("".join(requests).encode())  # all at once, before any answer
            answers = read_all(connection).decode()
        self.assertEqual(re.findall(r"^HTTP/1.1 (\d+)", answers, re.M), ["200"] * 4)
        self.assertEqual(answers.count('"text_completion"'), 2)
        self.assertEqual(answers.count('"status":"ok"'), 1)  # none to HEAD

    def test_tells_a_client_that_waits_to_go_on(self):
        body = json.dumps({"prompt": "x", "max_tokens": 1})
        with self.server.connect() as connection:
            connection.sendall((f"POST {COMPLETIONS} HTTP/1.1\r\nHost: localhost\r\n"
                                "Connection: close\r\nContent-Type: application/json\r\n"
                                f"Expect: 100-continue\r\nContent-Length: {len(body)}\r\n"
                                "\r\n").encode())
            self.assertEqual(connection.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
            connection.sendall(body.encode())
            self.assertTrue(read_all(connection).startswith(b"HTTP/1.1 200 OK"))


class Limits(unittest.TestCase):
    def test_a_full_queue_is_said(self):
        with serving(PROGRAM, "--parallel", 1, "--queue", 1) as server:
            begin = threading.Barrier(12)

            def ask(seed):
                begin.wait()
                status, headers, answer = server.ask("POST", COMPLETIONS, {
                    "prompt": "x", "seed": seed, "max_tokens": 400, "stop": "\0"})
                if status == 429:
                    self.assertEqual(headers["Retry-After"], "1")
                    self.assertEqual(json.loads(answer)["error"]["type"], "rate_limit_error")
                return status

            with concurrent.futures.ThreadPoolExecutor(12) as pool:
                statuses = list(pool.map(ask, range(12)))
            self.assertEqual(set(statuses), {200, 429})

    def test_a_client_that_goes_frees_its_place(self):
        with serving(PROGRAM, "--parallel", 1) as server:
            body = json.dumps({"prompt": "Once", "n": 16, "max_tokens": 500, "stream": True,
                               "temperature": 1.5}).encode()
            with server.connect() as connection:
                connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                                   b"Content-Type: application/json\r\n"
                                   b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                connection.recv(100)
            server.wait_for(lambda now: now["texts_running"] == now["texts_waiting"] == 0)
            now = server.metrics()
            self.assertEqual(now["clients_gone_total"], 1)
            self.assertLess(now["new_tokens_total"], 1000)

    def test_asks_for_the_key(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "key"
            file.write_text("secret\nnot this\n")
            options = "--api-key-file", file, "--alias", "one", "--alias", "two"
            with serving(PROGRAM, *options) as server:
                for given, status in (("Bearer secret", 200), ("Bearer secre", 401),
                                      ("Bearer ", 401), ("Bearer secretsecret", 401),
                                      ("secret", 401), (None, 401)):
                    headers = {"Authorization": given} if given else {}
                    found, _, answer = server.ask("GET", "/v1/models", headers=headers)
                    self.assertEqual(found, status, given)
                    if status == 200:
                        self.assertEqual([one["id"] for one in json.loads(answer)["data"]],
                                         ["one", "two"])
                self.assertEqual(server.ask("GET", "/health")[0], 200)
                server.post(COMPLETIONS, {"model": "two", "prompt": "x"},
                            headers={"Authorization": "Bearer secret"})

    def test_ends_after_the_answers_that_it_owes(self):
        with serving(PROGRAM) as server:
            body = json.dumps({"prompt": "Once", "n": 4, "max_tokens": 200,
                               "stream": True}).encode()
            idle = server.connect()
            with server.connect() as connection:
                connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                                   b"Content-Type: application/json\r\n"
                                   b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                connection.recv(100)
                server.process.terminate()
                self.assertTrue(read_all(connection).endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"))
            self.assertEqual(read_all(idle), b"")
            idle.close()
            self.assertEqual(server.process.wait(10), 0)
            with self.assertRaises(ConnectionRefusedError):
                server.connect()

    def test_a_model_for_stories_completes_and_does_not_chat(self):
        with serving(PROGRAM, "--model", MODELS / "story") as server:
            server.post(COMPLETIONS, {"prompt": "Once"})
            message = server.post(CHATS, {"messages": HELLO}, status=400)["error"]["message"]
            self.assertIn("expected a chat template", message)

    def test_says_why_it_cannot_start(self):
        with socket.socket() as taken, tempfile.TemporaryDirectory() as folder:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            empty = pathlib.Path(folder) / "key"
            empty.write_text("\n")
            for options, message in (
                    (["--port", taken.getsockname()[1]],
                     "cannot listen on 127.0.0.1: Address already"),
                    (["--host", "no.such.host.invalid"],
                     "--host: expected an address of this machine"),
                    (["--api-key-file", empty], "expected a key on the first line, found none"),
                    (["--parallel", "100", "-c", "10000000"], "for each of 100 texts")):
                found = subprocess.run([*PROGRAM, "serve", "--model", str(MODELS / "chat"),
                                        *map(str, options)],
                                       capture_output=True, text=True, timeout=60)
                self.assertEqual((found.returncode, found.stderr.count("\n")), (1, 1), found.stderr)
                self.assertIn(message, found.stderr)


PAGE = ROOT / "docs" / "server.md"
EXAMPLE = re.compile(r"(?<=^```sh\n)(curl .*?)(^```\n```\w*\n)(.*?)(?=^```$)", re.M | re.S)
CHANGING = re.compile(r'("(?:id|created)":\s*)("[^"]*"|\d+)')


def page_as_it_should_be():
    with serving(PROGRAM, "--model", MODELS / "chat") as server:
        def ask(example):
            command, between, expected = example.groups()
            here = command.replace("localhost:8080", f"localhost:{server.port}")
            found = subprocess.run(["sh", "-c", here.replace("curl", "curl -s", 1)],
                                   capture_output=True, text=True, check=True, timeout=60).stdout
            # An id and a time as they are on the page, wherever there is one.
            before = dict(CHANGING.findall(expected))
            found = CHANGING.sub(lambda one: one[1] + before.get(one[1], one[2]), found)
            return command + between + found
        return EXAMPLE.sub(ask, PAGE.read_text())


class Page(unittest.TestCase):
    def test_examples_of_the_page_work(self):
        if shutil.which("curl") is None:
            self.skipTest("no curl")
        self.assertGreater(len(EXAMPLE.findall(PAGE.read_text())), 4)
        self.maxDiff = None
        rounded = [re.sub(r"-?\d+\.\d{4,}", lambda number: f"{float(number[0]):.2f}", text)
                   for text in (PAGE.read_text(), page_as_it_should_be())]  # processors differ
        self.assertEqual(*rounded)


if __name__ == "__main__":
    if "--update" in sys.argv:
        PAGE.write_text(page_as_it_should_be())
        sys.exit()
    unittest.main(argv=sys.argv[:1], verbosity=2)
