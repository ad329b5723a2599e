"""A web of several small hosts on loopback for a real engine to crawl: pages by host and path, told apart by Host."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from msgspec import Struct

PROFILE = Path(__file__).parents[3] / "config" / "heritrix" / "profile.cxml"


class Page(Struct, frozen=True):
    """What one URL answers; a status of 301 leads to the URL in `body`. Who has this `etag` already gets a 304.

    A status of 0 answers nothing: the server closes the connection.
    """

    body: bytes
    kind: str = "text/html"
    status: int = 200
    etag: str = ""
    robots_tag: str = ""


def page(links: list[str], *images: str, filler: int = 0) -> Page:
    """An HTML page with links, images, and so many bytes besides."""
    parts = [f'<a href="{link}">x</a>' for link in links] + [f'<img src="{image}">' for image in images]
    return Page(f"<title>x</title>{' '.join(parts)}<p>{'x' * filler}</p>".encode())


Web = Mapping[tuple[str, str], Page]


@contextmanager
def serve(
    web: dict[tuple[str, str], Page], asked: list[tuple[float, str, str]] | None = None,
    agents: list[tuple[str, str, str]] | None = None,
) -> Iterator[int]:  # fmt: skip
    """Serve (host, path) -> page while the block runs; yields the port. Pages may be added meanwhile. `asked` is the
    site's own log: when, host and path; `agents` another: who, host and path. With that it is at all addresses of
    loopback."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            host = (self.headers.get("Host") or "").partition(":")[0]
            if asked is not None:
                asked.append((time.monotonic(), host, self.path))
            if agents is not None:
                agents.append((self.headers.get("User-Agent") or "", host, self.path))
            found = web.get((host, self.path), Page(b"none", "text/plain", 404))
            if not found.status:
                self.close_connection = True
                return
            known = bool(found.etag) and self.headers.get("If-None-Match") == found.etag
            self.send_response(304 if known else found.status)
            body = b"" if found.status == 301 or known else found.body
            if found.status == 301:
                self.send_header("Location", found.body.decode())
            if found.etag:
                self.send_header("ETag", found.etag)
            if found.robots_tag:
                self.send_header("X-Robots-Tag", found.robots_tag)
            self.send_header("Content-Type", found.kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class calls it so
            """Nothing: the engine's crawl log says it all."""

    server = ThreadingHTTPServer(("127.0.0.1" if agents is None else "", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def swift_profile() -> str:
    """The shipped profile without its politeness, which is for the world, and with a rule for the viral sheet."""
    swift = {
        "disposition.delayFactor=5.0": "disposition.delayFactor=0",
        "disposition.minDelayMs=3000": "disposition.minDelayMs=40",
        "disposition.maxDelayMs=30000": "disposition.maxDelayMs=40\nfetchDns.disableJavaDnsResolves=true",
        "frontier.retryDelaySeconds=900": "frontier.retryDelaySeconds=1",
        "frontier.maxRetries=30": "frontier.maxRetries=10",
        "fetchHttp.timeoutSeconds=1200": "fetchHttp.timeoutSeconds=20",
        "crawlController.maxToeThreads=50": "crawlController.maxToeThreads=8",
    }
    text = PROFILE.read_text("utf-8")
    for usual, quick in swift.items():
        assert text.count(usual) == 1
        text = text.replace(usual, quick)
    viral = re.compile(r'(<bean id="viralUrls".*?)<list/>', re.DOTALL)
    return viral.sub(r"\1<list><value>.*eicar.*</value></list>", text)
