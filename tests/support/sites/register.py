"""A register of WARCs on loopback: it takes PUT, and has the faults that a server has; real sockets."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LOGIN = b"<html><title>Log in</title></html>"


class Register(ThreadingHTTPServer):
    """What it has, by `/{job}/{launch}`; how often each was put, with the Authorization; and its present `fault`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/warcs"
        self.has: dict[str, Any] = {}
        self.puts: list[tuple[str, str]] = []
        self.fault = ""
        self.ended = threading.Event()


class _Handler(BaseHTTPRequestHandler):
    server: Register
    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        path = self.path.removeprefix("/warcs")
        fault = self.server.fault
        self.server.puts.append((path, self.headers.get("Authorization", "")))
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if fault == "hang":
            self.server.ended.wait(60)
            return
        if fault == "drip":
            self._drip()
            return
        if fault in ("", "created", "killed after", "no content"):
            self.server.has[path] = json.loads(body)
        if fault.startswith("killed"):
            self.close_connection = True
            return
        answers = {
            "": (200, b"{}", {}), "created": (201, b"", {}), "no content": (204, b"", {}),
            "html": (200, LOGIN, {"Content-Type": "text/html; charset=utf-8"}),
            "redirect": (307, b"", {"Location": f"http://127.0.0.1:{self.server.server_port}/else"}),
            "refuse": (422, b"no such launch", {}), "denied": (401, b"", {}), "error": (500, b"oops", {}),
            "long": (200, b"x" * (2 << 20), {}),
        }  # fmt: skip
        status, answer, headers = answers[fault]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(answer)

    def _drip(self) -> None:
        """An answer whose bytes never end, a few at a time."""
        self.send_response(200)
        self.end_headers()
        with suppress(OSError):
            while not self.server.ended.wait(0.05):
                self.wfile.write(b" ")

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[Register]:
    """A register, until the block ends."""
    server = Register()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
