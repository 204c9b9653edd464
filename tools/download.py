"""Downloads files over HTTPS. A download is resumed if it was cut off, and checked; a file gets its name only when it
is complete.

Servers are not trusted: not their lengths, not their redirects, and they may not answer at all. Each error is a Problem
of one line.
"""
import hashlib
import http.client
import json
import os
import re
import socket
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import strict_json

AGENT = "stagecraft-pull/1"
CHUNK = 1 << 18
MAX_REDIRECTS = 5
SLOWEST = 100  # bytes per second: a server that is slower for the whole timeout has stalled
MAX_WAIT = 30  # seconds that a server may ask us to wait before we try again
KEPT_HEADERS = ("Accept", "Accept-encoding", "If-range", "Range", "User-agent")  # on a redirect


class Problem(Exception):
    """An error of one line. `status`: the HTTP status of the answer, 0 if there was none."""

    def __init__(self, text, status=0, passing=False, wait=0):
        super().__init__(one_line(text))
        self.status = status
        self.passing = passing  # a retry may succeed
        self.wait = wait


def one_line(text):
    """A text from outside, made safe for one line of a terminal."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in str(text))


def megabytes(count):
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"


def host_of(url):
    return urllib.parse.urlsplit(url).hostname or url


def origin(url):
    """(host, port): only this origin may receive the token meant for it."""
    parts = urllib.parse.urlsplit(url)
    return (parts.hostname or "").lower(), parts.port or 443


def check_url(url, what):
    """Returns the URL unchanged if it is acceptable."""
    try:
        parts = urllib.parse.urlsplit(url)
        parts.port  # (raises ValueError if it is not a number)
    except ValueError:
        parts = None
    if not parts or parts.scheme != "https" or not parts.hostname or not url.isascii() \
            or any(c.isspace() or not c.isprintable() for c in url):
        raise Problem(f"{what}: expected https://HOST..., found '{url}'")
    return url


class Redirects(urllib.request.BaseHandler):
    """Follows only a few redirects, only to https, and sends a secret only to the host that it belongs to."""

    def follow(self, request, answer, code, _message, headers):
        answer.close()  # its body is not read
        host = host_of(request.full_url)
        try:
            url = urllib.parse.urljoin(request.full_url, headers.get("Location", ""))
        except ValueError:
            url = headers.get("Location", "")
        check_url(url, f"{host}: redirect")
        count = getattr(request, "redirects", 0) + 1
        if count > MAX_REDIRECTS:
            raise Problem(f"{host}: too many redirects")
        kept = {name: value for name, value in request.header_items() if name in KEPT_HEADERS}
        new = urllib.request.Request(url, headers=kept)
        new.redirects = count
        add_secret(new, request.secret)
        return self.parent.open(new, timeout=request.timeout)

    http_error_301 = http_error_302 = http_error_303 = http_error_307 = http_error_308 = follow


def add_secret(request, secret):
    """secret: (origin, the value of Authorization), or None."""
    request.secret = secret
    if secret and origin(request.full_url) == secret[0]:
        request.add_unredirected_header("Authorization", secret[1])


class Client:
    """Sends requests, each with a time limit; proxies and certificates come from the environment."""

    def __init__(self, timeout=30.0, tries=4, certificates=()):
        self.timeout = timeout
        self.tries = tries
        context = ssl.create_default_context()
        for file in certificates:
            try:
                context.load_verify_locations(file)
            except (OSError, ssl.SSLError) as problem:
                raise Problem(f"{file}: expected a file of certificates: {problem}") from None
        self.opener = urllib.request.OpenerDirector()
        for handler in (urllib.request.ProxyHandler(), urllib.request.HTTPSHandler(context=context),
                        urllib.request.HTTPDefaultErrorHandler(), urllib.request.HTTPErrorProcessor(),
                        urllib.request.UnknownHandler(), Redirects()):
            self.opener.add_handler(handler)

    def open(self, url, headers=None, secret=None):
        """The answer, if its status is good. Raises Problem."""
        host = host_of(url)
        request = urllib.request.Request(check_url(url, host), headers={
            "User-Agent": AGENT, "Accept-Encoding": "identity", **(headers or {})})
        add_secret(request, secret)
        try:
            return self.opener.open(request, timeout=self.timeout)
        except urllib.error.HTTPError as answer:
            answer.close()
            raise self.refusal(host, answer) from None
        except urllib.error.URLError as problem:
            raise self.unreachable(host, problem.reason) from None
        except (OSError, http.client.HTTPException, ValueError) as problem:
            raise self.unreachable(host, problem) from None

    def refusal(self, host, answer):
        code = answer.code
        if code == 429:
            asked = answer.headers.get("Retry-After", "")
            wait = int(asked) if asked.isdigit() and len(asked) < 9 else 0
            return Problem(f"{host}: answers 429, too many requests" +
                           (f"; it asks to wait {wait} seconds" if wait else ""), code,
                           passing=wait <= MAX_WAIT, wait=wait)
        return Problem(f"{host}: answers {code}", code, passing=code >= 500 or code == 408)

    def unreachable(self, host, reason):
        if isinstance(reason, Problem):
            return reason
        if isinstance(reason, ssl.SSLCertVerificationError):
            return Problem(f"{host}: its certificate is not trusted: {reason.verify_message}")
        if isinstance(reason, socket.gaierror):
            return Problem(f"{host}: the host was not found (offline?)")
        if isinstance(reason, socket.timeout):
            return Problem(f"{host}: no answer for {self.timeout:g} seconds", passing=True)
        if isinstance(reason, http.client.HTTPException):
            return Problem(f"{host}: its answer is not HTTP ({type(reason).__name__})", passing=True)
        text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
        return Problem(f"{host}: no connection: {text}", passing=True)

    def again(self, attempt):
        """Calls attempt() until it succeeds; after an error that may pass, it waits and tries again."""
        for number in range(1, self.tries + 1):
            try:
                return attempt()
            except Problem as problem:
                if not problem.passing or number == self.tries:
                    raise
                time.sleep(max(problem.wait, min(2 ** (number - 1), 8)))

    def text(self, url, secret=None, accept="*/*", limit=32 << 20):
        """(a small document, its type)"""
        def attempt():
            with self.open(url, {"Accept": accept}, secret) as answer:
                parts, total = [], 0
                for piece in self.pieces(answer, host_of(url)):
                    parts.append(piece)
                    total += len(piece)
                    if total > limit:
                        raise Problem(f"{host_of(url)}: its answer is longer than {megabytes(limit)}")
                announced = answer.headers.get("Content-Length", "")
                if announced.isdigit() and int(announced) != total:
                    raise Problem(f"{host_of(url)}: its answer ended too early", passing=True)
                return b"".join(parts).decode("utf-8", "replace"), answer.headers.get_content_type()
        return self.again(attempt)

    def json(self, url, secret=None):
        text, _ = self.text(url, secret, "application/json")
        try:
            return strict_json.parse(text)
        except (ValueError, RecursionError):
            raise Problem(f"{host_of(url)}: its answer is not JSON: does the network need a login in the browser?") from None

    def pieces(self, answer, host):
        """The answer piece by piece, as it arrives. Raises Problem if it is too slow."""
        since, count = time.monotonic(), 0
        while True:
            try:
                piece = answer.read1(CHUNK)
            except (OSError, http.client.HTTPException, ValueError) as problem:
                raise self.unreachable(host, problem) from None
            if not piece:
                return
            count += len(piece)
            if time.monotonic() - since > self.timeout:
                if count < SLOWEST * self.timeout:
                    raise Problem(f"{host}: stalled: {count} bytes in {self.timeout:g} seconds",
                                  passing=True)
                since, count = time.monotonic(), 0
            yield piece

    def download(self, file, path, bar=None):
        """Downloads file.url to path.part, which stays if the download is cut off, and renames it to path."""
        self.again(lambda: Transfer(self, file, path, bar).run())


class File:
    """One file of a model at a URL. digest: "sha256:..." or "git:..." (git's hash of the file)"""

    def __init__(self, name, size, digest, url, secret=None):
        self.name = name
        self.size = size
        self.digest = digest
        self.url = url
        self.secret = secret


class Digest:
    """Computes a digest over the bytes of a file of this size; same() compares it with `digest`."""

    def __init__(self, digest, size):
        self.kind, _, self.expected = digest.partition(":")
        self.state = hashlib.sha256() if self.kind == "sha256" else hashlib.sha1(b"blob %d\0" % size)
        self.update = self.state.update

    def same(self):
        return self.state.hexdigest() == self.expected

    def problem(self, where):
        return Problem(f"{where}: {self.kind}: expected {self.expected}, found {self.state.hexdigest()}: "
                       "this is not the published file, so it was not kept")


class Transfer:
    """One attempt to download one file."""

    def __init__(self, client, file, path, bar):
        self.client, self.file, self.path, self.bar = client, file, path, bar
        self.part = path.with_name(path.name + ".part")
        self.note = path.with_name(path.name + ".part.json")  # describes the partial file
        self.host = host_of(file.url)

    def kept(self):
        """(bytes that already exist, the ETag that they came with)"""
        try:
            note = strict_json.parse(self.note.read_text())
            size = self.part.stat().st_size
            if note.get("digest") == self.file.digest and 0 < size <= self.file.size:
                return size, note["etag"] if note.get("url") == self.file.url else ""
        except (OSError, ValueError, AttributeError, KeyError):
            pass
        self.forget()
        return 0, ""

    def forget(self):
        for path in self.part, self.note:
            if path.exists():
                path.unlink()

    def run(self):
        start, etag = self.kept()
        digest = Digest(self.file.digest, self.file.size)
        if start:
            with self.part.open("rb") as stream:
                for piece in iter(lambda: stream.read(CHUNK), b""):
                    digest.update(piece)
        if start < self.file.size or not self.file.size:
            start, digest = self.receive(start, etag, digest)
        if not digest.same():
            self.forget()
            if start:  # the old part may be wrong: once, begin again
                return self.run()
            raise digest.problem(f"{self.host}: {self.file.name}")
        with self.part.open("rb") as stream:
            os.fsync(stream.fileno())
        os.replace(self.part, self.path)
        self.forget()
        return None

    def receive(self, start, etag, digest):
        """Downloads the missing bytes; returns (the offset at which the server began, the digest of the whole file)."""
        headers = {}
        if start:
            headers["Range"] = f"bytes={start}-"
            if etag:
                headers["If-Range"] = etag
        try:
            answer = self.client.open(self.file.url, headers, self.file.secret)
        except Problem as problem:
            if start and problem.status == 416:
                self.forget()
                return self.receive(0, "", Digest(self.file.digest, self.file.size))
            problem.args = (f"{problem}: {one_line(self.file.name)}",) if problem.status else problem.args
            raise
        with answer:
            if start and not self.goes_on_at(answer, start):
                self.forget()
                if answer.status == 206:
                    return self.receive(0, "", Digest(self.file.digest, self.file.size))
                start, digest = 0, Digest(self.file.digest, self.file.size)
            self.check_length(answer, start)
            self.remember(answer)
            self.copy(answer, start, digest)
        return start, digest

    def goes_on_at(self, answer, start):
        found = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", answer.headers.get("Content-Range", ""))
        return (answer.status == 206 and found and int(found[1]) == start
                and found[3] in ("*", str(self.file.size)))

    def check_length(self, answer, start):
        if answer.status not in (200, 206) or (answer.status == 206) != bool(start):
            raise Problem(f"{self.host}: answers {answer.status}: {self.file.name}")
        if answer.headers.get("Content-Encoding", "identity") != "identity":
            raise Problem(f"{self.host}: {self.file.name}: expected the uncompressed file, found a compressed answer")
        announced = answer.headers.get("Content-Length")
        if announced is not None and announced != str(self.file.size - start):
            raise Problem(f"{self.host}: {self.file.name}: expected {self.file.size - start} bytes, "
                          f"the server offers {announced}")

    def remember(self, answer):
        etag = answer.headers.get("ETag", "")
        strong = etag if re.fullmatch(r'"[!-~]*"', etag) else ""  # a weak ETag proves too little
        self.note.write_text(json.dumps({"digest": self.file.digest, "url": self.file.url, "etag": strong}))

    def copy(self, answer, start, digest):
        done = start
        with self.part.open("ab" if start else "wb") as out:
            try:
                for piece in self.client.pieces(answer, self.host):
                    if done + len(piece) > self.file.size:
                        done += len(piece)
                        break
                    out.write(piece)
                    digest.update(piece)
                    done += len(piece)
                    if self.bar:
                        self.bar.show(self.file.name, done, self.file.size)
            except OSError as problem:
                raise Problem(f"{self.part}: cannot be written: {problem.strerror}") from None
        if done > self.file.size:
            self.forget()
            raise Problem(f"{self.host}: {self.file.name}: expected {self.file.size} bytes, found more")
        if done < self.file.size:
            raise Problem(f"{self.host}: {self.file.name}: broke off after {megabytes(done)} of "
                          f"{megabytes(self.file.size)}", passing=True)


class Bar:
    """A progress bar on a terminal; no output elsewhere."""

    def __init__(self, stream=None):
        self.stream = stream or sys.stderr
        self.shown = self.stream.isatty() and os.environ.get("TERM") != "dumb"
        self.name, self.last = None, 0.0

    def show(self, name, done, size):
        now = time.monotonic()
        if self.name != name:
            self.name, self.began, self.at = name, now, done
        if not self.shown or (now - self.last < 0.1 and done < size):
            return
        self.last = now
        rate = (done - self.at) / max(now - self.began, 0.001)
        left = f"{(size - done) / rate:.0f} s left" if rate > 0 and done < size else ""
        filled = 24 * done // max(size, 1)
        columns = os.get_terminal_size(self.stream.fileno()).columns or 80
        line = (f"{one_line(name)[:32]} [{'#' * filled}{'-' * (24 - filled)}] {100 * done // max(size, 1)}% "
                f"of {megabytes(size)}, {megabytes(rate)}/s {left}")
        self.stream.write(f"\r{line[:columns - 1]}\x1b[K")
        self.stream.flush()

    def clear(self):
        if self.shown and self.name:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
        self.name = None
