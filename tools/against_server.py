"""The part of ./stage bench --against that measures servers: the tokens per second of all clients together, and how
long one client waits."""
import asyncio
import contextlib
import json
import os
import pathlib
import random
import re
import socket
import statistics
import subprocess
import time

import repository

PROGRAM = repository.BUILD / "src" / "stagecraft"
SHORTEST, LONGEST = 50, 2000  # approximate tokens per prompt
TURNS, SYSTEM_WORDS, MESSAGE_WORDS = 3, 400, 40  # per conversation
WORDS_PER_TOKEN = 0.6  # for our pages; a vocabulary made for chats needs fewer tokens
MEASURES = [("tokens/s of all answers", "{:,.0f}"), ("to the first token, median, ms", "{:,.0f}"),
            ("to the first token, 99%, ms", "{:,.0f}"), ("between tokens, median, ms", "{:,.1f}"),
            ("between tokens, 99%, ms", "{:,.0f}"), ("most memory, MiB", "{:,.0f}")]


def words_of_pages():
    return " ".join(page.read_text(encoding="utf-8") for page in sorted(repository.ROOT.glob("docs/*.md"))
                    if ".zh." not in page.name).split()


def chats_of(n, seed):
    """Conversations, each a list of messages. The first ones begin with the same 400 words, like a system prompt."""
    words, draw = words_of_pages(), random.Random(seed)

    def text(length):
        start = draw.randrange(len(words) - length)
        return " ".join(words[start:start + length])

    system = text(SYSTEM_WORDS)
    return [[f"{system} {i}", *(text(MESSAGE_WORDS) for _ in range(TURNS - 1))] for i in range(n)]


def prompts_of(clients, seed):
    """A list of prompts per client. The logarithms of the lengths are spread evenly. No two prompts begin alike, so
    that no server finds one in its cache."""
    words, draw = words_of_pages(), random.Random(seed)

    def prompt():
        length = round(SHORTEST * (LONGEST / SHORTEST) ** draw.random() * WORDS_PER_TOKEN)
        start = draw.randrange(len(words) - length)
        return f"{draw.randrange(10**6)} {' '.join(words[start:start + length])}"

    return [[prompt() for _ in range(max(2, 8 // clients))] for _ in range(clients)]


class Answer:
    """One streamed completion: when it was requested, when each piece of text arrived, how many tokens it has."""

    def __init__(self):
        self.asked = time.perf_counter()
        self.pieces = []
        self.text = ""
        self.tokens = 0

    def take(self, event):
        if event == b"[DONE]":
            return
        read = json.loads(event)
        if "error" in read:
            raise repository.Problem(f"the server answered: {read['error']}")
        piece = "".join(choice.get("text") or "" for choice in read.get("choices", []))
        self.text += piece
        if piece:
            self.pieces.append(time.perf_counter())
        if read.get("usage"):
            self.tokens = read["usage"]["completion_tokens"]


async def body_of(reader):
    """The bytes of a chunked answer, as they arrive."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    if " 200 " not in head.split("\r\n")[0]:
        raise repository.Problem(f"the server answered: {head.splitlines()[0]} {(await reader.read(300)).decode()}")
    if "transfer-encoding: chunked" not in head.lower():
        while piece := await reader.read(65536):
            yield piece
        return
    while size := int((await reader.readline()).split(b";")[0], 16):
        yield (await reader.readexactly(size + 2))[:-2]


async def ask(port, prompt, generate):
    body = json.dumps({"prompt": prompt, "max_tokens": generate, "temperature": 0, "stream": True,
                       "stream_options": {"include_usage": True}}).encode()
    answer = Answer()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                     b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        rest = b""
        async for piece in body_of(reader):
            *events, rest = (rest + piece).split(b"\n\n")
            for event in events:
                if event.startswith(b"data: "):
                    answer.take(event.removeprefix(b"data: "))
    finally:
        writer.close()
    if not answer.tokens:
        raise repository.Problem("the server ended a stream without saying how many tokens it has")
    return answer


async def load(port, prompts, generate):
    """Runs all clients at the same time; each sends one request after the other."""
    async def client(own):
        return [await ask(port, prompt, generate) for prompt in own]
    begun = time.perf_counter()
    answers = sum(await asyncio.gather(*(client(own) for own in prompts)), [])
    return answers, time.perf_counter() - begun


async def talk(port, chats, clients, generate):
    """Runs conversations that alternate in changing order, with at most `clients` requests at the same time."""
    texts, answers, gate = [""] * len(chats), [], asyncio.Semaphore(clients)

    async def go_on(chat, turn):
        async with gate:
            texts[chat] = f"{texts[chat]} {chats[chat][turn]}"
            answers.append(await ask(port, texts[chat], generate))
            texts[chat] += answers[-1].text
    begun = time.perf_counter()
    draw = random.Random(len(chats))
    for turn in range(TURNS):
        order = draw.sample(range(len(chats)), len(chats))
        await asyncio.gather(*(go_on(chat, turn) for chat in order))
    return answers, time.perf_counter() - begun


def a_free_port():
    with socket.create_server(("127.0.0.1", 0)) as held:
        return held.getsockname()[1]


def is_ready(port):
    """True if /health answers 200: llama-server listens before it has loaded its model."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return b" 200 " in connection.recv(64)
    return False


@contextlib.contextmanager
def serving(command, log):
    """Starts a server and waits until it is ready; its port is appended to `command`."""
    port = a_free_port()
    with open(log, "wb") as said:
        server = subprocess.Popen([*map(str, command), "--port", str(port)], stdin=subprocess.DEVNULL, stdout=said,
                                  stderr=said)
    try:
        while not is_ready(port):
            if server.poll() is not None:
                last = pathlib.Path(log).read_text(errors="replace").strip().splitlines()[-1:]
                raise repository.Problem(f"{command[0]}: exit code {server.returncode}: {' '.join(last)}")
            time.sleep(0.05)
        yield server.pid, port
    finally:
        server.terminate()
        server.wait()


def most_memory(pid):
    """The peak memory in MiB, including the model; 0 if the system does not say."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) / 1024


def measure(command, requests, log):
    """One value per entry of MEASURES. requests: called with the port, like `load` and `talk`."""
    with serving(command, log) as (pid, port):
        asyncio.run(ask(port, "Once", 2))  # the first request does one-time work
        answers, seconds = asyncio.run(requests(port))
        memory = most_memory(pid)
    first = [1000 * (answer.pieces[0] - answer.asked) for answer in answers if answer.pieces]
    between = [1000 * (b - a) for answer in answers for a, b in zip(answer.pieces, answer.pieces[1:])]

    def percent(values, part):
        return sorted(values)[min(len(values) - 1, int(len(values) * part))]

    return [sum(answer.tokens for answer in answers) / seconds, statistics.median(first), percent(first, 0.99),
            statistics.median(between), percent(between, 0.99), memory]


def compare_servers(options, command, model, folder):
    """Runs both servers in turn, for each number of clients; each run starts its server again."""
    log = os.path.join(folder, "server.log")
    threads = options.threads[-1]
    what = (f"{options.chats} conversations of {TURNS} turns" if options.chats else
            f"prompts of {SHORTEST} to {LONGEST} tokens")
    print(f"{model}: ours beside {' '.join(command)}, {threads} threads, {what}, {options.generate} generated, "
          f"medians of {options.rounds}")
    for clients in options.clients:
        room = LONGEST * 3 // 2 + options.generate
        ours = [PROGRAM, "serve", "--model", model, "-t", threads, "--parallel", clients, "-c", room, "--kv-type", "f16",
                "--queue", max(clients, options.chats)]
        theirs = [*command, "-m", model, "-t", threads, "-np", clients, "-c", room * clients]
        runs = []
        for index in range(options.rounds):
            def requests(port, clients=clients, index=index):
                if options.chats:
                    return talk(port, chats_of(options.chats, index), clients, options.generate)
                return load(port, prompts_of(clients, index), options.generate)
            pair = [ours, theirs] if index % 2 == 0 else [theirs, ours]
            taken = [measure(each, requests, log) for each in pair]
            runs.append(taken if index % 2 == 0 else taken[::-1])
        print(f"  {clients} client{'s' if clients > 1 else ''}{'':<31} {'ours':>10} {'theirs':>10} {'ratio':>8}"
              "   lowest - highest")
        for place, (title, form) in enumerate(MEASURES):
            mine, other = (statistics.median(run[side][place] for run in runs) for side in (0, 1))
            ratios = sorted(run[0][place] / run[1][place] for run in runs if run[1][place])
            if ratios:
                print(f"    {title:<38} {form.format(mine):>10} {form.format(other):>10} {statistics.median(ratios):>8.2f}"
                      f"   {ratios[0]:.2f} - {ratios[-1]:.2f}", flush=True)
