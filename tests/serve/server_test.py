"""The behaviour of `serve` that its clients rely on: server_test.py PROGRAM [--update]

--update writes the answers into docs/server.md and docs/page.md.
"""
import concurrent.futures
import contextlib
import gzip
import itertools
import json
import math
import os
import pathlib
import random
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

from serving import MODELS, ROOT, Server, read_all, serving

PROGRAM = sys.argv[1:2]
COMPLETIONS, CHATS, RESPONSES = "/v1/completions", "/v1/chat/completions", "/v1/responses"
HELLO = [{"role": "user", "content": "Hello, who are you?"}]


def run(*arguments):
    """The output of a command."""
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

    def test_continues_a_last_message_of_the_assistant(self):
        body = {"temperature": 0, "max_tokens": 12, "logprobs": True}
        whole = self.server.post(CHATS, {**body, "messages": HELLO})["choices"][0]
        begin = "".join(one["token"] for one in whole["logprobs"]["content"][:5])
        made = self.server.post(CHATS, {**body, "max_tokens": 7, "messages": [
            *HELLO, {"role": "assistant", "content": begin}]})["choices"][0]
        self.assertEqual(begin + made["message"]["content"], whole["message"]["content"])

    def test_each_of_n_choices_has_the_next_seed(self):
        story = [{"role": "user", "content": "Tell me a story."}]
        body = {"messages": story, "seed": 20, "max_tokens": 30}
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
            self.assertEqual(logprob, max(top.values()))  # temperature 0 takes the likeliest token
            self.assertTrue(choice["text"][offset:].startswith(token))

    def test_offsets_of_tokens_do_not_depend_on_stop_texts(self):
        body = {"prompt": "The", "max_tokens": 8, "temperature": 0, "logprobs": 0}
        whole = self.server.post(COMPLETIONS, body)["choices"][0]
        # Beginnings of this stop text are held back, and it never comes.
        body["stop"] = [whole["text"][1:] + "never"]
        held = self.server.post(COMPLETIONS, body)["choices"][0]
        self.assertEqual(held["text"], whole["text"])
        expected = whole["logprobs"]["text_offset"]
        self.assertEqual(held["logprobs"]["text_offset"], expected)
        self.assertEqual(expected, sorted(set(expected)))
        streamed = [offset for event in self.server.events(COMPLETIONS, body)
                    for choice in event["choices"] if choice["logprobs"]
                    for offset in choice["logprobs"]["text_offset"]]
        self.assertEqual(streamed, expected)

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
                (400, "tools[0]", None): ("POST", CHATS, {"messages": HELLO, "tools": [{}]}),
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

    def test_a_compressed_body_is_refused_by_its_header(self):
        body = gzip.compress(b'{"prompt": "x", "max_tokens": 1}')
        status, _, answer = self.server.ask("POST", COMPLETIONS, body, {"Content-Encoding": "gzip"})
        self.assertEqual((status, json.loads(answer)["error"]["message"]),
                         (415, "request: header content-encoding: expected none, found 'gzip'"))
        self.assertEqual(self.server.ask("POST", COMPLETIONS, {"prompt": "x", "max_tokens": 1},
                                         {"Content-Encoding": "identity"})[0], 200)

    def test_other_paths(self):
        status, _, answer = self.server.ask("GET", "/v1/models")
        model = json.loads(answer)["data"][0]
        self.assertEqual((status, model["id"], model["max_model_len"]), (200, "chat", 1024))
        for name in ("chat", "ch%61t"):
            status, _, answer = self.server.ask("GET", f"/v1/models/{name}")
            self.assertEqual((status, json.loads(answer)), (200, model))
        for name in ("other", "", "chat/", "ch%"):
            status, _, answer = self.server.ask("GET", f"/v1/models/{name}")
            error = json.loads(answer)["error"]
            self.assertEqual((status, error["code"], error["param"]), (404, "model_not_found", "model"))
        self.assertEqual(self.server.ask("DELETE", "/v1/models/chat")[0], 405)
        message = json.loads(self.server.ask("GET", "/v1/x")[2])["error"]["message"]
        paths = re.fullmatch("request: path: expected one of (.*), found '/v1/x'", message)[1].split(", ")
        self.assertLessEqual({CHATS, COMPLETIONS, "/v1/models", "/health", "/glass/steps"}, set(paths))
        for path in paths:
            status, headers, _ = self.server.ask("DELETE", path)
            self.assertEqual(status, 405, path)
            self.assertIn(headers["Allow"], ("POST", "GET, HEAD"))
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
            connection.sendall("".join(requests).encode())  # all requests at once, before any answer
            answers = read_all(connection).decode()
        self.assertEqual(re.findall(r"^HTTP/1.1 (\d+)", answers, re.M), ["200"] * 4)
        self.assertEqual(answers.count('"text_completion"'), 2)
        self.assertEqual(answers.count('"status":"ok"'), 1)  # HEAD gets no body

    def test_answers_every_spelling_that_http_allows(self):
        body = json.dumps({"prompt": "x", "max_tokens": 2})
        here = f"localhost:{self.server.port}"
        for target, host, kind, status in (
                (COMPLETIONS, here, "Application/JSON", 200),
                (COMPLETIONS, here.upper(), "application/json ; charset=utf-8", 200),
                (f"http://{here}{COMPLETIONS}", here, "application/json", 200),
                (f"HTTP://{here}{COMPLETIONS}", "evil.example", "application/json", 200),
                (f"http://evil.example{COMPLETIONS}", here, "application/json", 403),
                (COMPLETIONS, f"127.0.0.2:{self.server.port}", "application/json", 200),
                (COMPLETIONS, f"[::1]:{self.server.port}", "application/json", 200),
                (COMPLETIONS, "127.evil.example", "application/json", 403),
                (COMPLETIONS, here, "application/jsonp", 415)):
            with self.subTest(target=target, host=host, kind=kind), self.server.connect() as one:
                one.sendall(f"POST {target} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\n"
                            f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
                one.shutdown(socket.SHUT_WR)
                answers = re.findall(rb"^HTTP/1.1 (\d+)", read_all(one), re.M)
                self.assertEqual(int(answers[-1]), status)

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


TEMPLATES = ROOT / "reference" / "chat_templates"
WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a place.",
    "parameters": {"type": "object", "required": ["place"], "additionalProperties": False,
                   "properties": {"place": {"enum": ["Bern", "Rome"]},
                                  "days": {"type": "integer", "minimum": 1, "maximum": 9}}}}}
CLOCK = {"type": "function", "function": {"name": "get_time"}}


class Structure(unittest.TestCase):
    def test_an_answer_follows_its_schema(self):
        schema = {"type": "object", "additionalProperties": False, "required": ["name", "age"],
                  "properties": {"name": {"type": "string", "maxLength": 12},
                                 "age": {"type": "integer", "minimum": 0, "maximum": 99},
                                 "mood": {"enum": ["sad", "glad"]}}}
        with serving(PROGRAM, "--model", MODELS / "chat", "--parallel", 3) as server:
            body = {"messages": HELLO, "seed": 4, "n": 8, "temperature": 1.3, "response_format": {
                "type": "json_schema", "json_schema": {"name": "person", "schema": schema}}}
            made = server.post(CHATS, body)["choices"]
            for choice in made:
                self.assertEqual(choice["finish_reason"], "stop")
                found = json.loads(choice["message"]["content"])
                self.assertLessEqual(set(found), set(schema["properties"]))
                self.assertIn(found["age"], range(100))
                self.assertLessEqual(len(found["name"]), 12)
                self.assertIn(found.get("mood", "sad"), ("sad", "glad"))
            alone = server.post(CHATS, {**body, "seed": 6, "n": 1})["choices"][0]
            self.assertEqual(alone["message"], made[2]["message"])
            streamed = server.events(CHATS, {**body, "seed": 6, "n": 1})
            self.assertEqual("".join(one["choices"][0]["delta"].get("content", "")
                                     for one in streamed), made[2]["message"]["content"])
            body = {"prompt": "x", "seed": 1, "grammar": 'root ::= "yes" | "no"', "n": 4,
                    "logprobs": 1}
            for choice in server.post(COMPLETIONS, body)["choices"]:
                self.assertIn(choice["text"], ("yes", "no"))
                self.assertEqual("".join(choice["logprobs"]["tokens"]), choice["text"])
            error = server.post(COMPLETIONS, {**body, "grammar": "root ::= root 'a'"}, status=400)
            self.assertEqual(error["error"]["param"], "grammar")
            ambiguous = 'root ::= [a-z ] root "x" | [a-z ] root "y" | [a-z ]'
            body = {"prompt": "x", "grammar": ambiguous, "max_tokens": 90}
            problem = ("too large or too ambiguous: expected at most 300000 steps per token, found "
                       "more")
            error = server.post(COMPLETIONS, body, status=400)["error"]
            self.assertEqual(error["message"], f"request: 'grammar': {problem}")
            self.assertEqual((error["type"], error["param"]), ("invalid_request_error", "grammar"))
            self.assertEqual(server.events(COMPLETIONS, body)[-1]["error"], error)
            large = {"type": "json_schema", "name": "x",
                     "schema": {"enum": [f"word {i}" for i in range(15000)]}}
            body = {"input": "x", "text": {"format": large}}
            error = server.post(RESPONSES, body, status=400)["error"]
            self.assertEqual((error["param"], error["message"]),
                             ("text.format", f"request: 'text.format': {problem}"))
            failed = self.response_events(server, body)[-1]
            self.assertEqual((failed["type"], failed["response"]["error"]["message"]),
                             ("response.failed", error["message"]))
            server.post(COMPLETIONS, {"prompt": "x"})  # the server still works

    def test_calls_of_tools_are_forced_and_read_back(self):
        for template in ("qwen-2.5", "llama-3.1"):
            with serving(PROGRAM, "--model", MODELS / "chat", "-c", 2048,
                         "--chat-template", TEMPLATES / f"{template}.jinja") as server:
                body = {"messages": HELLO, "tools": [WEATHER, CLOCK], "seed": 3, "n": 4,
                        "temperature": 1, "tool_choice": "required", "max_tokens": 200}
                made = server.post(CHATS, body)["choices"]
                for choice in made:
                    self.assertEqual(choice["finish_reason"], "tool_calls", choice)
                    for call in choice["message"]["tool_calls"]:
                        arguments = json.loads(call["function"]["arguments"])
                        if call["function"]["name"] == "get_time":
                            self.assertEqual(arguments, {})
                        else:
                            self.assertIn(arguments["place"], ("Bern", "Rome"))
                            self.assertIn(arguments.get("days", 1), range(1, 10))
                named = {**body, "n": 1, "parallel_tool_calls": False,
                         "tool_choice": {"type": "function", "function": {"name": "get_weather"}}}
                message = server.post(CHATS, named)["choices"][0]["message"]
                self.assertIsNone(message["content"])
                [call] = message["tool_calls"]
                self.assertEqual((call["type"], call["function"]["name"]),
                                 ("function", "get_weather"))
                for path, choice in (
                        ("tool_choice.nmae", {**named["tool_choice"], "nmae": 1}),
                        ("tool_choice.function.nmae",
                         {"type": "function", "function": {"name": "get_weather", "nmae": 1}})):
                    error = server.post(CHATS, {**named, "tool_choice": choice}, 400)["error"]
                    self.assertEqual((error["param"], error["code"]), (path, "unknown_parameter"))
                deltas = [one["choices"][0]["delta"] for one in server.events(CHATS, named)]
                [[streamed]] = [one["tool_calls"] for one in deltas if "tool_calls" in one]
                self.assertEqual(streamed["function"], call["function"])
                # Sends the result of the call back. The next answer may be any text.
                messages = [*HELLO, message, {"role": "tool", "tool_call_id": call["id"],
                                              "content": "sunny"}]
                choice = server.post(CHATS, {**body, "messages": messages, "tool_choice": "auto",
                                             "n": 1, "max_tokens": 20})["choices"][0]
                self.assertTrue(choice["message"]["content"] or choice["message"]["tool_calls"])
                # Agents continue a finished run with a question after the results.
                server.post(CHATS, {**body, "messages": [*messages, *HELLO]})
                without = server.post(CHATS, {"messages": HELLO, "tools": [CLOCK], "seed": 1,
                                              "tool_choice": "none", "max_tokens": 20})
                plain = server.post(CHATS, {"messages": HELLO, "seed": 1, "max_tokens": 20})
                self.assertEqual(without["choices"][0]["message"],
                                 plain["choices"][0]["message"])

    def test_with_tools_and_a_format_an_answer_is_a_call_or_in_the_format(self):
        body = {"messages": HELLO, "tools": [WEATHER], "temperature": 1.5, "max_tokens": 200,
                "n": 8, "seed": 1, "response_format": {"type": "json_schema", "json_schema": {
                    "name": "x", "schema": {"enum": ["yes", "no"]}}}}
        with serving(PROGRAM, "--model", MODELS / "chat", "-c", 2048,
                     "--chat-template", TEMPLATES / "qwen-2.5.jinja") as server:
            for choice in server.post(CHATS, body)["choices"]:
                if choice["finish_reason"] == "tool_calls":
                    for call in choice["message"]["tool_calls"]:
                        self.assertEqual(call["function"]["name"], "get_weather")
                        self.assertIn(json.loads(call["function"]["arguments"])["place"],
                                      ("Bern", "Rome"))
                else:
                    self.assertIn(choice["message"]["content"], ('"yes"', '"no"'))
            for choice in server.post(CHATS, {**body, "tool_choice": "required"})["choices"]:
                self.assertEqual(choice["finish_reason"], "tool_calls")
            for choice in server.post(CHATS, {**body, "tool_choice": "none"})["choices"]:
                self.assertIn(choice["message"]["content"], ('"yes"', '"no"'))
            refused = {**body, "response_format": None, "grammar": 'root ::= "x"'}
            self.assertEqual(server.post(CHATS, refused, status=400)["error"]["message"],
                             "request: 'tools': not supported together with 'grammar'")
        with serving(PROGRAM, "--model", MODELS / "chat", "-c", 2048,
                     "--chat-template", TEMPLATES / "llama-3.1.jinja") as server:
            self.assertEqual(server.post(CHATS, body, status=400)["error"]["message"],
                             "request: 'tools': not supported together with a schema of the "
                             "answer: with the chat template of this model, calls of tools are "
                             "JSON, too")

    def test_every_text_that_must_be_a_call_is_a_call(self):
        closing = {"type": "object", "required": ["</tool_call>"], "properties": {
            "</tool_call>": {"const": 'x" </tool_call>\\'}}}
        with serving(PROGRAM, "--model", MODELS / "chat", "-c", 2048,
                     "--chat-template", TEMPLATES / "qwen-2.5.jinja") as server:
            for parameters in (closing, {}, True, {"type": "object"}):
                function = {"name": "f", "parameters": parameters}
                for choice in "required", {"type": "function", "function": {"name": "f"}}:
                    tools = [{"type": "function", "function": function}]
                    body = {"messages": HELLO, "tools": tools, "tool_choice": choice,
                            "parallel_tool_calls": False, "seed": 1, "temperature": 0,
                            "max_tokens": 400}
                    made = server.post(CHATS, body)["choices"][0]
                    if parameters is not closing and made["finish_reason"] == "length":
                        continue  # a small model may fill its object without end
                    self.assertEqual(made["finish_reason"], "tool_calls", made)
                    [call] = made["message"]["tool_calls"]
                    arguments = json.loads(call["function"]["arguments"])
                    self.assertIsInstance(arguments, dict)
                    if parameters is closing:
                        self.assertEqual(arguments, {"</tool_call>": 'x" </tool_call>\\'})
                    deltas = [one["choices"][0]["delta"] for one in server.events(CHATS, body)]
                    [[streamed]] = [one["tool_calls"] for one in deltas if "tool_calls" in one]
                    self.assertEqual(streamed["function"], call["function"])
                    self.assertEqual("".join(one.get("content", "") for one in deltas), "")
                    named = choice if choice == "required" else {"type": "function", "name": "f"}
                    body = {"input": HELLO, "tools": [{"type": "function", **function}],
                            "tool_choice": named, "parallel_tool_calls": False, "seed": 1,
                            "temperature": 0, "max_output_tokens": 400}
                    [item] = server.post(RESPONSES, body)["output"]
                    self.assertEqual((item["type"], item["arguments"]),
                                     ("function_call", call["function"]["arguments"]))
                    [streamed] = self.response_events(server, body)[-1]["response"]["output"]
                    self.assertEqual((streamed["type"], streamed["arguments"]),
                                     ("function_call", item["arguments"]))
            for parameters in {"type": "string"}, {"type": "array"}, {"enum": [1]}:
                function = {"name": "f", "parameters": parameters}
                tools = [{"type": "function", "function": function}]
                error = server.post(CHATS, {"messages": HELLO, "tools": tools}, status=400)["error"]
                self.assertIn("tools[0].function.parameters.", error["message"])
                flat = [{"type": "function", **function}]
                error = server.post(RESPONSES, {"input": "x", "tools": flat}, status=400)["error"]
                self.assertIn("tools[0].parameters.", error["message"])
            server.post(CHATS, {"messages": HELLO, "tools": [WEATHER, WEATHER]}, status=400)

    def test_variables_of_the_template_come_from_the_request_or_the_command(self):
        body = {"messages": HELLO, "max_tokens": 1, "return_token_ids": True}
        off, on = ({"chat_template_kwargs": {"enable_thinking": value}} for value in (False, True))
        options = "--model", MODELS / "chat", "--chat-template", TEMPLATES / "qwen-3.jinja"

        def prompts(server):
            return [server.post(CHATS, {**body, **more})["prompt_token_ids"]
                    for more in ({}, on, off)]
        with serving(PROGRAM, *options) as server:
            plain, with_on, with_off = prompts(server)
            self.assertEqual(plain, with_on)
            self.assertEqual(with_off[:len(plain)], plain)  # then come empty thoughts
            self.assertGreater(len(with_off), len(plain))
            flat = {"input": HELLO, "max_output_tokens": 1, **off}
            self.assertEqual(server.post(RESPONSES, flat)["usage"]["input_tokens"], len(with_off))
        with serving(PROGRAM, *options, "--chat-template-kwargs",
                     json.dumps(off["chat_template_kwargs"])) as server:
            self.assertEqual(prompts(server), [with_off, plain, with_off])

    def test_a_response_is_a_chat_in_the_newer_form(self):
        with serving(PROGRAM, "--model", MODELS / "chat",
                     "--chat-template", TEMPLATES / "qwen-2.5.jinja") as server:
            chat = server.post(CHATS, {"messages": [{"role": "system", "content": "Be brief."},
                                                    *HELLO], "seed": 3, "max_tokens": 20})
            body = {"input": HELLO[0]["content"], "instructions": "Be brief.", "seed": 3,
                    "max_output_tokens": 20}
            made = server.post(RESPONSES, body)
            [item] = made["output"]
            self.assertEqual(item["content"][0]["text"],
                             chat["choices"][0]["message"]["content"])
            self.assertEqual(made["usage"]["output_tokens"], chat["usage"]["completion_tokens"])
            self.assertEqual((made["instructions"], made["store"]), ("Be brief.", False))
            events = self.response_events(server, body)
            self.assertEqual(events[-1]["response"]["output"][0]["content"], item["content"])
            self.assertEqual("".join(one["delta"] for one in events
                                     if one["type"] == "response.output_text.delta"),
                             item["content"][0]["text"])
            kinds = [one["type"].removeprefix("response.") for one in events]
            self.assertEqual([kind for kind in kinds if kind != "output_text.delta"],
                             ["created", "in_progress", "output_item.added", "content_part.added",
                              "output_text.done", "content_part.done", "output_item.done",
                              made["status"]])
            self.assertEqual([one["sequence_number"] for one in events], list(range(len(events))))
            flat = {"type": "function", **WEATHER["function"]}
            called = server.post(RESPONSES, {**body, "tools": [flat], "tool_choice": "required",
                                             "max_output_tokens": 99,
                                             "parallel_tool_calls": False})
            [call] = called["output"]
            self.assertEqual((call["type"], call["name"]), ("function_call", "get_weather"))
            self.assertIn(json.loads(call["arguments"])["place"], ("Bern", "Rome"))
            server.post(RESPONSES, {**body, "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "Rain?"}]}, call,
                {"type": "function_call_output", "call_id": call["call_id"], "output": "no"}]})
            formed = server.post(RESPONSES, {**body, "max_output_tokens": 99, "text": {"format": {
                "type": "json_schema", "name": "x",
                "schema": WEATHER["function"]["parameters"]}}})
            self.assertIn(json.loads(formed["output"][0]["content"][0]["text"])["place"],
                          ("Bern", "Rome"))
            for change in ({"previous_response_id": "resp_1"}, {"store": True},
                           {"input": [{"type": "image"}]}, {"input": 3}, {"tempreature": 1},
                           {"reasoning": {"effort": "high"}}):
                error = server.post(RESPONSES, {**body, **change}, status=400)["error"]
                self.assertTrue(error["param"].startswith(next(iter(change))), error)

    def response_events(self, server, body):
        answer = server.ask("POST", RESPONSES, {**body, "stream": True})[2].decode()
        events = []
        for event in answer.removesuffix("\n\n").split("\n\n"):
            kind, data = event.split("\n")
            events.append(json.loads(data.removeprefix("data: ")))
            self.assertEqual(kind, f"event: {events[-1]['type']}")
        return events


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
            # The grammar ends no text early: all 16 have some 6,000 tokens.
            body = json.dumps({"prompt": "Once", "n": 16, "max_tokens": 500, "stream": True,
                               "grammar": "root ::= [a-z ]{2000}"}).encode()
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
            options = "--api-key-file", file, "--alias", "one", "--alias", "its/two"
            with serving(PROGRAM, *options) as server:
                for given, status in (("Bearer secret", 200), ("bearer  secret", 200),
                                      ("Bearer secre", 401), ("Basic secret", 401),
                                      ("Bearer ", 401), ("Bearer secretsecret", 401),
                                      ("secret", 401), (None, 401)):
                    headers = {"Authorization": given} if given else {}
                    found, _, answer = server.ask("GET", "/v1/models", headers=headers)
                    self.assertEqual(found, status, given)
                    if status == 200:
                        self.assertEqual([one["id"] for one in json.loads(answer)["data"]],
                                         ["one", "its/two", "chat"])
                self.assertEqual(server.ask("GET", "/health")[0], 200)
                allowed = {"Authorization": "Bearer secret"}
                for name in ("its/two", "chat"):
                    server.post(COMPLETIONS, {"model": name, "prompt": "x"}, headers=allowed)
                for path in ("its/two", "its%2Ftwo"):
                    found, _, answer = server.ask("GET", f"/v1/models/{path}", headers=allowed)
                    self.assertEqual((found, json.loads(answer)["id"]), (200, "its/two"))

    def test_a_pulled_model_has_the_name_that_was_given(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder) / "ann" / "one"
            place.mkdir(parents=True)
            shutil.copy(ROOT / "tests/data/gguf/whole.gguf", place / "Whole.Q4_1.gguf")
            with mock.patch.dict(os.environ, STAGECRAFT_MODELS=folder), \
                    serving(PROGRAM, "--model", "ann/one", "--alias", "first") as server:
                names = [one["id"] for one in json.loads(server.ask("GET", "/v1/models")[2])["data"]]
                self.assertEqual(names, ["first", "ann/one", "Whole.Q4_1"])
                for name in names:
                    server.post(COMPLETIONS, {"model": name, "prompt": "the cat", "max_tokens": 1})
                server.post(COMPLETIONS, {"model": "one", "prompt": "the cat"}, status=404)

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

    @contextlib.contextmanager
    def busy(self, program):
        """A server that is writing an answer for many seconds."""
        body = json.dumps({"prompt": "Once", "n": 16, "max_tokens": 1000, "stream": True,
                           "grammar": "root ::= [a-z]{3000,}"}).encode()
        server = Server(program, ["--model", MODELS / "chat", "-c", 4000])
        try:
            with server.connect() as connection:
                connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                                   b"Content-Type: application/json\r\n"
                                   b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                connection.recv(100)
                yield server
        finally:
            server.process.kill()
            server.process.communicate()

    def test_refuses_new_clients_while_it_ends(self):
        with self.busy(PROGRAM) as server:
            server.process.terminate()
            self.assert_refuses_soon(server)
            self.assertIsNone(server.process.poll())

    def assert_refuses_soon(self, server):
        end = time.monotonic() + 5
        while time.monotonic() < end:
            try:
                server.connect().close()
            except ConnectionRefusedError:
                return
            time.sleep(0.02)
        self.fail("it still accepts connections")

    @unittest.skipIf(signal.getsignal(signal.SIGINT) == signal.SIG_IGN, "a job in the background")
    def test_a_second_signal_of_any_kind_ends_it_at_once(self):
        for first, second in itertools.permutations((signal.SIGINT, signal.SIGTERM)):
            with self.busy(PROGRAM) as server:
                server.process.send_signal(first)
                self.assert_refuses_soon(server)  # it has noted the first one
                server.process.send_signal(second)
                self.assertEqual(server.process.wait(5), -second)

    def test_a_signal_that_was_ignored_before_stays_ignored(self):
        with serving(["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *PROGRAM]) as server:
            server.process.send_signal(signal.SIGINT)
            time.sleep(0.5)
            self.assertEqual(server.ask("GET", "/health")[0], 200)

    def test_a_model_for_stories_completes_and_does_not_chat(self):
        with serving(PROGRAM, "--model", MODELS / "story") as server:
            server.post(COMPLETIONS, {"prompt": "Once"})
            message = server.post(CHATS, {"messages": HELLO}, status=400)["error"]["message"]
            self.assertIn("expected a chat template", message)

    def test_prints_an_address_that_a_browser_can_open(self):
        for host in ("0.0.0.0", "::", "*", "127.0.0.1", "::1"):
            with serving(PROGRAM, "--model", MODELS / "story", "--host", host) as server:
                everywhere = host in ("0.0.0.0", "::", "*")
                shown = "localhost" if everywhere else f"[{host}]" if ":" in host else host
                self.assertTrue(server.first_line.endswith(f" at http://{shown}:{server.port}\n"), server.first_line)
                server.process.terminate()
                rest, errors = server.process.stdout.read(), server.process.stderr.read()
                self.assertEqual("other machines" in rest, everywhere, rest)
                self.assertEqual("anyone who can reach this address" in errors, everywhere, errors)

    def test_says_at_the_start_that_a_chat_template_cannot_be_used(self):
        with tempfile.TemporaryDirectory() as folder:
            template = pathlib.Path(folder) / "mine.jinja"
            for text, problem in (("{{ messages | groupby('role') }}", "groupby"), ("{{ messages[0].content }}", None)):
                template.write_text(text)
                with serving(PROGRAM, "--model", MODELS / "chat", "--chat-template", template) as server:
                    server.post(CHATS, {"messages": HELLO, "max_tokens": 1}, status=400 if problem else 200)
                    server.process.terminate()
                    errors = server.process.stderr.read()
                if problem:
                    self.assertIn("note: the chat template refuses a short conversation, so chats will fail: ", errors)
                    self.assertIn(problem, errors)
                else:
                    self.assertNotIn("note", errors)

    def test_says_why_it_cannot_start(self):
        with socket.socket() as taken, tempfile.TemporaryDirectory() as folder:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            empty = pathlib.Path(folder) / "key"
            empty.write_text("\n")
            blank = pathlib.Path(folder) / "blank"
            blank.write_text("secret \n")
            marked = pathlib.Path(folder) / "marked"
            marked.write_text("\ufeffsecret\n", encoding="utf-8")
            for options, message in (
                    (["--port", taken.getsockname()[1]],
                     "cannot listen on 127.0.0.1: Address already"),
                    (["--host", "no.such.host.invalid"],
                     "host: expected an address of this machine"),
                    (["--host", "192.0.2.1", "--port", 0],  # RFC 5737: of no machine
                     "host: expected an address of this machine, found '192.0.2.1'"),
                    (["--api-key-file", empty], "expected a key on the first line, found none"),
                    (["--api-key-file", blank], "found byte 0x20 at position 7"),
                    (["--api-key-file", marked], "found byte 0xef at position 1"),
                    (["--parallel", "100", "-c", "10000000"], "for each of 100 texts")):
                found = subprocess.run([*PROGRAM, "serve", "--model", str(MODELS / "chat"),
                                        *map(str, options)],
                                       capture_output=True, text=True, timeout=60)
                self.assertEqual((found.returncode, found.stderr.count("\n")), (1, 1), found.stderr)
                self.assertIn(message, found.stderr)
            for options, message in ((["--alias", ""], "expected a name, found ''"),
                                     (["--host", ""], "expected an address, found ''")):
                found = subprocess.run([*PROGRAM, "serve", *options], capture_output=True, text=True,
                                       timeout=60)
                self.assertNotEqual(found.returncode, 0)
                self.assertIn(message, found.stderr)


def rows_of(trace, name):
    """The rows of one activation in a file of `trace --out`."""
    content = trace.read_bytes()
    size = int.from_bytes(content[:8], "little")
    entry = json.loads(content[8:8 + size])[name]
    begin, end = (8 + size + at for at in entry["data_offsets"])
    values = struct.unpack(f"<{(end - begin) // 4}f", content[begin:end])
    width = entry["shape"][-1]
    return [values[at:at + width] for at in range(0, len(values), width)]


class Glass(unittest.TestCase):
    def test_shows_the_numbers_of_trace_for_every_token_of_an_answer(self):
        with serving(PROGRAM, "--model", MODELS / "chat") as server, \
                tempfile.TemporaryDirectory() as folder:
            body = {"messages": HELLO, "seed": 3, "max_tokens": 6, "return_token_ids": True}
            made = server.post(CHATS, body)
            tokens = made["prompt_token_ids"] + made["choices"][0]["token_ids"]
            file = pathlib.Path(folder) / "trace"
            run("trace", "--model", MODELS / "chat", "--ids", ",".join(map(str, tokens)),
                "--out", file)
            logits = rows_of(file, "logits")
            for end in range(len(tokens) - 6, len(tokens)):  # the text before each new token
                asked = {"tokens": tokens[:end], "next": tokens[end], "top": 5, "temperature": 0}
                row = logits[end - 1]
                shares = [math.exp(value - max(row)) for value in row]
                likeliest = sorted(range(len(row)), key=lambda token: -row[token])
                choices = server.post("/glass/choices", asked)["choices"]
                self.assertEqual([one["token"] for one in choices[:5]], likeliest[:5])
                self.assertIn(tokens[end], [one["token"] for one in choices])
                for one in choices:
                    self.assertAlmostEqual(one["logit"], row[one["token"]], delta=1e-4)
                    self.assertAlmostEqual(one["probability"],  # its error is as large as that of the logits
                                           shares[one["token"]] / sum(shares), delta=1e-4)
                    self.assertEqual(one["after_top_p"], float(one["token"] == likeliest[0]))
                layers = server.post("/glass/layers", asked)["layers"]
                self.assertEqual([one["token"] for one in layers[-1]["guesses"]], likeliest[:5])
                for layer in server.post("/glass/attention", asked)["layers"]:
                    rows = rows_of(file, f"layers.{layer['layer']}.attn_probs")
                    for index, found in enumerate(layer["heads"]):
                        expected = rows[index * len(tokens) + end - 1]
                        self.assertEqual(len(found), end)
                        for a, b in zip(found, expected):
                            self.assertAlmostEqual(a, b, delta=5.1e-5)
                steps = server.post("/glass/steps", asked)["steps"]
                self.assertEqual((steps[0]["name"], steps[-1]["name"]), ("embedding", "logits"))

    def test_a_text_goes_on_from_the_ids_of_its_tokens(self):
        with serving(PROGRAM, "--model", MODELS / "chat") as server:
            body = {"messages": HELLO, "temperature": 0, "max_tokens": 200,
                    "return_token_ids": True}
            whole = server.post(CHATS, body)
            [choice] = whole["choices"]
            self.assertEqual(choice["finish_reason"], "stop")
            self.assertIsNone(choice["logprobs"])
            streamed = server.events(CHATS, body)
            self.assertEqual(streamed[0]["prompt_token_ids"], whole["prompt_token_ids"])
            self.assertEqual(sum((one["choices"][0]["token_ids"] for one in streamed), []),
                             choice["token_ids"])
            ends = json.loads(server.ask("GET", "/glass/model")[2])["end_tokens"]
            # Those of the model's settings and those of its chat template:
            self.assertEqual(ends, [0, 1, 2])
            rest = {"prompt": whole["prompt_token_ids"] + choice["token_ids"][:4], "temperature": 0,
                    "max_tokens": 200, "stop_token_ids": ends, "return_token_ids": True}
            [gone_on] = server.post(COMPLETIONS, rest)["choices"]
            self.assertEqual(gone_on["prompt_token_ids"], rest["prompt"])
            self.assertEqual(gone_on["token_ids"], choice["token_ids"][4:])
            self.assertEqual(gone_on["finish_reason"], "stop")

    def test_does_not_stop_others_and_refuses_too_many(self):
        with serving(PROGRAM, "--model", MODELS / "chat", "-c", 2048) as server:
            long = {"tokens": [5] * 2048}  # at least a second of work for the glass box
            with contextlib.ExitStack() as open_ones:
                connections = [open_ones.enter_context(server.connect()) for _ in range(12)]
                body = json.dumps(long).encode()
                for connection in connections:
                    connection.sendall(b"POST /glass/layers HTTP/1.1\r\nHost: localhost\r\n"
                                       b"Content-Type: application/json\r\n"
                                       b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                # The refused requests are answered first, because the others must be computed.
                [first, *_], _, _ = select.select(connections, [], [], 30)
                self.assertEqual(first.recv(12), b"HTTP/1.1 429")
                server.post(COMPLETIONS, {"prompt": "x", "max_tokens": 3})  # completions work meanwhile
            self.assertEqual(server.ask("GET", "/health")[0], 200)
            # All these clients are gone. The next one must not wait for their texts.
            server.post("/glass/choices", {"tokens": [5, 6]})

    def test_the_page_is_there_without_a_key_and_its_requests_are_not(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "key"
            file.write_text("secret\n")
            with serving(PROGRAM, "--model", MODELS / "chat", "--api-key-file", file) as server:
                kinds = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
                parts = [one for one in (ROOT / "src/serve/page").iterdir() if one.suffix in kinds]
                self.assertLessEqual({"index.html", "page.css", "page.js"}, {one.name for one in parts})
                for part in parts:
                    path = "/" if part.name == "index.html" else f"/{part.name}"
                    status, headers, answer = server.ask("GET", path)
                    self.assertEqual((status, headers["Content-Type"]),
                                     (200, f"{kinds[part.suffix]}; charset=utf-8"))
                    self.assertEqual(answer.decode(), part.read_text())
                    policy = headers["Content-Security-Policy"]
                    self.assertIn("default-src 'none'", policy)
                    self.assertNotIn("unsafe", policy)
                    elsewhere = server.ask("GET", path, headers={"Host": "evil.example"})
                    self.assertEqual(elsewhere[0], 403)
                for path in ("/glass/model", "/glass/choices"):
                    self.assertEqual(server.ask("GET", path)[0], 401)


PAGES = ROOT / "docs" / "server.md", ROOT / "docs" / "page.md"
EXAMPLE = re.compile(r"(?<=^```sh\n)(curl .*?)(^```\n```\w*\n)(.*?)(?=^```$)", re.M | re.S)
CHANGING = re.compile(r'("(?:id|created|created_at)":\s*)("[^"]*"|\d+)')


def page_as_it_should_be(page):
    with serving(PROGRAM, "--model", MODELS / "chat") as server:
        def ask(example):
            command, between, expected = example.groups()
            here = command.replace("localhost:8080", f"localhost:{server.port}")
            found = subprocess.run(["sh", "-c", here.replace("curl", "curl -s", 1)],
                                   capture_output=True, text=True, check=True, timeout=60).stdout
            # Replaces ids and times by those on the page, in order.
            before = iter(CHANGING.findall(expected))
            found = CHANGING.sub(lambda one: one[1] + next(before, one.groups())[1], found)
            return command + between + found
        return EXAMPLE.sub(ask, page.read_text())


class Page(unittest.TestCase):
    def test_examples_of_the_page_work(self):
        if shutil.which("curl") is None:
            self.skipTest("no curl")
        self.assertGreater(len(EXAMPLE.findall(PAGES[0].read_text())), 4)
        self.maxDiff = None
        number = re.compile(r"-?\d+\.\d{4,}")
        for page in PAGES:
            texts = page.read_text(), page_as_it_should_be(page)
            self.assertEqual(*(number.sub("(number)", text) for text in texts))
            for one, other in zip(*(number.findall(text) for text in texts)):
                # The kernels of each instruction set round at different places (docs/kernels.md).
                self.assertAlmostEqual(float(one), float(other), delta=0.05)


if __name__ == "__main__":
    if "--update" in sys.argv:
        for page in PAGES:
            page.write_text(page_as_it_should_be(page))
        sys.exit()
    unittest.main(argv=sys.argv[:1], verbosity=2)
