"""W3ACT's login and its POST /documents on loopback, with the faults that a server has; real sockets. W3ACT itself is
no package of a registry."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

FORM = b'<html><form action="/act/login"><input name="email"></form></html>'
LOGIN = {"email": ["anna@library.example"], "password": ["a secret"]}


class W3actServer(ThreadingHTTPServer):
    """Its `documents` by id; each POST's ids; the number of logins; and its present `fault`. `cookie`: of the session;
    '' where it was started again."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/act"
        self.documents: dict[str, Any] = {}
        self.posts: list[list[str]] = []
        self.logins = 0
        self.cookie = ""
        self.fault = ""
        self.ended = threading.Event()


class _Handler(BaseHTTPRequestHandler):
    server: W3actServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.fault == "hang":
            self.server.ended.wait(60)
        elif self.path == "/act/login":
            self._log_in(body)
        else:
            self._take(json.loads(body))

    def _log_in(self, body: bytes) -> None:
        self.server.logins += 1
        if parse_qs(body.decode()) != LOGIN:
            self._say(400, FORM, "text/html; charset=utf-8")
            return
        self.server.cookie = f"PLAY_SESSION=number-{self.server.logins}"
        self._say(
            303, b"", "text/plain", {"Set-Cookie": f"{self.server.cookie}; Path=/; HTTPOnly", "Location": "/act/"}
        )

    def _take(self, documents: list[dict[str, Any]]) -> None:
        ids = [one["id"] for one in documents]
        self.server.posts.append(ids)
        if not self.server.cookie or self.headers.get("Cookie", "") != self.server.cookie:
            self._say(303, b"", "text/plain", {"Location": "/act/login"})
        elif self.server.fault == "form":
            self._say(200, FORM, "text/html; charset=utf-8")
        elif self.server.fault == "error":
            self._say(500, b"oops", "text/plain")
        elif self.server.fault in ids:
            self._say(400, b"no such target", "text/plain")
        else:
            for one in documents:
                self.server.documents.setdefault(one["id"], {}).update(one)
            if self.server.fault == "killed after":
                self.close_connection = True
            else:
                self._say(200, b"", "text/plain")

    def _say(self, status: int, body: bytes, kind: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[W3actServer]:
    """A W3ACT, until the block ends."""
    server = W3actServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
