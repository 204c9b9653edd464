"""A local HTTPS server for a test, with files and ways to misbehave.

openssl makes the certificate at run time; with SSL_CERT_FILE=site.certificate a program trusts it.
"""
import hashlib
import http.server
import re
import shutil
import socketserver
import ssl
import subprocess
import threading

HAS_OPENSSL = shutil.which("openssl") is not None


def make_certificate(folder):
    """(key, certificate): files from our own authority, for localhost and 127.0.0.1."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", str(key),
                    "-out", str(certificate)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return key, certificate


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # a client that hangs up is normal


class Site:
    """files: path -> bytes. answers: path -> a function that answers differently. asked: the requests."""

    def __init__(self, key, certificate):
        self.files, self.answers, self.asked = {}, {}, []
        self.certificate = certificate
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                site.asked.append((self.path, dict(self.headers)))
                self.close_connection = True
                answer = site.answers.get(self.path) or site.answers.get(self.path.partition("?")[0])
                if answer:
                    answer(self)
                else:
                    self.serve(site.files.get(self.path.partition("?")[0]))

            def serve(self, content, **how):
                if content is None:
                    self.respond(404, b"not found")
                    return
                etag = '"' + hashlib.md5(content).hexdigest() + '"'
                found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
                if found and self.headers.get("If-Range", etag) == etag:
                    start = int(found[1])
                    if start >= len(content):
                        self.respond(416, b"")
                        return
                    self.respond(206, content[start:], {
                        "ETag": etag, "Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"}, **how)
                else:
                    self.respond(200, content, {"ETag": etag}, **how)

            def respond(self, code, body, headers=None, length=None, stop=None):
                """length: the value of Content-Length; stop: hang up after this many bytes."""
                self.send_response(code)
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body) if length is None else length))
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(body if stop is None else body[:stop])

            def log_message(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                 do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        self.url = f"https://localhost:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def asked_for(self, path):
        return [headers for asked, headers in self.asked if asked.partition("?")[0] == path]


class Proxy:
    """A proxy that supports CONNECT; counts the connections."""

    def __init__(self):
        import socket

        proxy = self
        self.tunnels = []

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                line = self.rfile.readline().decode()
                while self.rfile.readline().strip():
                    pass
                target = line.split()[1]
                proxy.tunnels.append(target)
                host, _, port = target.partition(":")
                with socket.create_connection((host, int(port))) as there:
                    self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")

                    def back():
                        for piece in iter(lambda: there.recv(65536), b""):
                            self.wfile.write(piece)
                    thread = threading.Thread(target=back, daemon=True)
                    thread.start()
                    for piece in iter(lambda: self.request.recv(65536), b""):
                        there.sendall(piece)
                    there.shutdown(socket.SHUT_WR)
                    thread.join(5)

        class Tunnels(socketserver.ThreadingTCPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                pass

        self.server = Tunnels(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
