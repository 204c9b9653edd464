"""Starts our server for a test: with serving(PROGRAM, ...) as server."""
import contextlib
import http.client
import json
import os
import pathlib
import re
import socket
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "models"


class Server:
    def __init__(self, program, options):
        # AddressSanitizer keeps freed memory for a while. With much of it, the server would seem to grow.
        environment = {**os.environ, "STAGECRAFT_HOME": str(ROOT), "ASAN_OPTIONS": ":".join(
            filter(None, (os.environ.get("ASAN_OPTIONS"), "quarantine_size_mb=16")))}
        self.process = subprocess.Popen([*program, "serve", "--port", "0", *map(str, options)],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        cwd=ROOT, env=environment)
        line = self.first_line = self.process.stdout.readline()
        found = re.search(r":(\d+)$", line)
        if not found:
            raise AssertionError(f"no address: {line!r} {self.process.stderr.read()!r}")
        self.port = int(found.group(1))

    def ask(self, method, path, body=None, headers=None, timeout=60):
        """Sends one request on a connection of its own. Returns (status, headers, body)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        with contextlib.closing(connection):
            if body is not None and not isinstance(body, bytes):
                body = json.dumps(body).encode()
            connection.request(method, path, body,
                               {"Content-Type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()

    def post(self, path, body, status=200, **options):
        """Sends a POST and returns the JSON of the answer, whose status must be `status`."""
        found, _, answer = self.ask("POST", path, body, **options)
        if found != status:
            raise AssertionError(f"{path} {body}: expected {status}, found {found}: {answer!r}")
        return json.loads(answer)

    def events(self, path, body):
        """Returns the JSON objects of a stream, which must end in [DONE]."""
        status, headers, answer = self.ask("POST", path, {**body, "stream": True})
        if status != 200 or headers["Content-Type"] != "text/event-stream":
            raise AssertionError(f"{path} {body}: {status} {answer!r}")
        *events, done, rest = answer.decode().split("\n\n")
        if done != "data: [DONE]" or rest:
            raise AssertionError(f"the stream ends in {done!r}, {rest!r}")
        return [json.loads(event.removeprefix("data: ")) for event in events]

    def connect(self, timeout=30):
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def metrics(self):
        text = self.ask("GET", "/metrics")[2].decode()
        return {name: float(value) for name, value in
                re.findall(r"^stagecraft_(\w+) (\S+)$", text, re.M)}

    def wait_for(self, condition, seconds=120):
        """Waits until `condition` is true for the metrics."""
        end = time.monotonic() + seconds
        while not condition(self.metrics()):
            if time.monotonic() > end:
                raise AssertionError(f"not after {seconds} s: {self.metrics()}")
            time.sleep(0.02)

    def resident_bytes(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.M).group(1)) * 1024

    def processor_seconds(self):
        """The processor time that the server has used (Linux). It does not depend on what other programs do."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        """Ends the server. Returns its exit code and its stderr."""
        self.process.terminate()
        _, errors = self.process.communicate(timeout=30)
        return self.process.returncode, errors


@contextlib.contextmanager
def serving(program, *options):
    server = Server(program, options)
    try:
        yield server
        code, errors = server.end()
        if code != 0:
            raise AssertionError(f"exit code {code}: {errors}")
    finally:
        server.process.kill()
        server.process.communicate()


def request_bytes(path, body, *headers):
    """The bytes of a POST after which the server closes the connection."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json",
             "Connection: close", *headers, f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def read_all(connection):
    """Reads a socket until the server closes it."""
    answer = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(1 << 16):
            answer += piece
    return answer
