"""Test servers on loopback that take notices: a mail server and a web server, real sockets both."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Received:
    """What a test server was sent."""

    port: int = 0
    mails: list[tuple[str, list[str], bytes]] = field(default_factory=list)
    posts: list[tuple[str, str, Any]] = field(default_factory=list)


class SmtpTestServer(socketserver.StreamRequestHandler):
    """A test server that takes mail: the commands of RFC 5321 that a client needs, and nothing more."""

    received: Received
    refuse = b""

    def handle(self) -> None:
        sender, to = "", []
        self._say(b"220 test server")
        for line in self.rfile:
            word = line[:4].upper()
            if word in (b"EHLO", b"HELO"):
                self._say(b"250 test server")
            elif word == b"MAIL":
                sender = line.decode().split("<")[1].split(">")[0]
                self._say(b"250 ok")
            elif word == b"RCPT":
                to.append(line.decode().split("<")[1].split(">")[0])
                self._say(self.refuse or b"250 ok")
            elif word == b"DATA":
                self._say(b"354 go on")
                self.received.mails.append((sender, to, b"".join(iter(self.rfile.readline, b".\r\n"))))
                self._say(b"250 taken")
            elif word == b"QUIT":
                self._say(b"221 bye")
                return
            else:
                self._say(b"250 ok")

    def _say(self, line: bytes) -> None:
        self.wfile.write(line + b"\r\n")


class WebTestServer(BaseHTTPRequestHandler):
    """A test server that takes a POST at /hook, sends /away elsewhere, and has nothing at other paths."""

    received: Received

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.received.posts.append((self.path, self.headers["Content-Type"], json.loads(body)))
        code = {"/hook?token=s3cret": 204, "/away": 302}.get(self.path, 500)
        self.send_response(code)
        if code == 302:
            self.send_header("Location", f"http://127.0.0.1:{self.received.port}/hook?token=s3cret")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.received.posts.append((self.path, "GET", None))
        self.send_error(500)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(server: socketserver.TCPServer) -> Iterator[int]:
    """The server's port, while it serves."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def mail_server(refuse: bytes = b"") -> Iterator[Received]:
    """A mail server on loopback, and what it is sent."""
    received = Received()
    handler = type("Handler", (SmtpTestServer,), {"received": received, "refuse": refuse})
    with serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler)) as received.port:
        yield received


@contextmanager
def web_server() -> Iterator[Received]:
    """A web server on loopback, and what it is sent."""
    received = Received()
    handler = type("Handler", (WebTestServer,), {"received": received})
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as received.port:
        yield received
