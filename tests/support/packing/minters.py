"""A minter of ARKs on loopback, over a real socket, which answers as it is told."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

Answer = Callable[[int], bytes]
LARGE = 1 << 20


class _Request(BaseHTTPRequestHandler):
    minter: Minter

    def do_GET(self) -> None:
        self.minter.get(self)

    def log_message(self, *_: object) -> None:
        pass


class Minter:
    """A minter on loopback that gives `answer(N)`, with `status`."""

    def __init__(self) -> None:
        self.given, self.asked, self.status = 0, list[str](), 200
        self.answer: Answer = self.count
        self.drip = False  # bytes come one after another, each late
        handler = type("Handler", (_Request,), {"minter": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/mint?key=s3cret"

    def count(self, number: int) -> bytes:
        first, self.given = self.given, self.given + number
        return b"".join(b"ark:12345/x5%07d\n" % one for one in range(first, self.given))

    def get(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(request.path)
        body = self.answer(int(parse_qs(urlsplit(request.path).query)["arks"][0]))
        request.send_response(self.status)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        with suppress(OSError):  # the client gave up
            for place in range(0, len(body), 1 if self.drip else LARGE):
                request.wfile.write(body[place : place + (1 if self.drip else LARGE)])
                time.sleep(0.05 if self.drip else 0)


@contextmanager
def serving() -> Iterator[Minter]:
    """A minter that answers."""
    made = Minter()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made
    finally:
        made.server.shutdown()
        thread.join()
        made.server.server_close()
