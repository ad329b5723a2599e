"""A site on loopback that shows nothing without scripts, and its own log: of each request its method, host and path.

Its pages use what pages use: styles, frames, workers, streams of events, beacons, redirects, pictures
that are chosen by the width of the window or fetched when they are scrolled to, cookies, answers that are packed.
"""

from __future__ import annotations

import gzip
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOST, OTHER = "a.example", "b.example"
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc000000301010018dd8db0"
    "0000000049454e44ae426082"
)
START = """<!doctype html><title>Only by script</title><link rel=stylesheet href=/style.css><p id=said></p>
<script defer src=/main.js></script><iframe src=/frame></iframe>"""
MAIN = """const later = document.createElement('div');
later.innerHTML = '<img src=/pixel.png><img loading=lazy style="margin-top:4000px" src=/lazy.png>'
  + '<img srcset="/small.png 400w, /large.png 3000w" sizes=100vw>'
  + '<img src="http://%(other)s:%(port)d/far.png">';
document.body.append(later);
fetch('/moved').then(answer => answer.json()).then(data => {
  document.getElementById('said').innerHTML = data.pages.map(one => `<a href="${one}">${one}</a>`).join(' ');
});
new Worker('/worker.js').onmessage = () => navigator.sendBeacon('/beacon', 'seen');
new EventSource('/events');
document.cookie = 'script=1; path=/needs-cookie';
fetch('/needs-cookie');
"""
PAGES: Mapping[str, tuple[str, str]] = {
    "/": (START, "text/html"),
    "/style.css": ("@import '/more.css'; body { background: url(/background.png) }", "text/css"),
    "/more.css": ("p { color: red }", "text/css"),
    "/data.json": (json.dumps({"pages": ["/second", "/third"]}), "application/json"),
    "/frame": ("<script>fetch('/from-frame')</script>", "text/html"),
    "/from-frame": ("from the frame", "text/plain"),
    "/worker.js": ("fetch('/from-worker').then(() => postMessage(1))", "text/javascript"),
    "/from-worker": ("from the worker", "text/plain"),
    "/second": (START.replace("Only by script", "Second"), "text/html"),
    "/third": ("<title>Third</title><img src=/pixel.png>", "text/html"),
    "/needs-cookie": ("yes", "text/plain"),
    "/robots.txt": ("User-agent: *\nDisallow:", "text/plain"),
    "/events": ("data: one\n\n", "text/event-stream"),
}


@dataclass
class ScriptedSite:
    """The site while it is served. `pages` may be added to, by path: text, or bytes, and type."""

    port: int = 0
    log: list[str] = field(default_factory=list)
    pages: dict[str, tuple[str | bytes, str]] = field(default_factory=lambda: dict(PAGES))
    acts: dict[str, Callable[[BaseHTTPRequestHandler], None]] = field(default_factory=dict)

    @property
    def asked(self) -> Counter[str]:
        """How often each was asked for: `GET a.example/`."""
        return Counter(self.log)


class _Handler(BaseHTTPRequestHandler):
    """The answers; modules are left out, as pywb replays none whose imports are of another folder."""

    protocol_version = "HTTP/1.1"
    site: ScriptedSite

    def do_GET(self) -> None:
        host = (self.headers.get("Host") or "").partition(":")[0]
        self.site.log.append(f"{self.command} {host}{self.path}")
        if act := self.site.acts.get(self.path):
            act(self)
        elif self.path == "/moved":
            self._send(302, b"", "text/html", {"Location": "/data.json"})
        elif self.path.endswith(".png"):
            self._send(200, PNG, "image/png", {})
        elif self.path == "/main.js":
            self._send(200, (MAIN % {"other": OTHER, "port": self.site.port}).encode(), "text/javascript", {})
        elif found := self.site.pages.get(self.path):
            self._page(*found)
        else:
            self._send(200 if self.path == "/beacon" else 404, b"none", "text/plain", {})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.do_GET()

    def _page(self, body: str | bytes, kind: str) -> None:
        raw = body.encode() if isinstance(body, str) else body
        more = {"Set-Cookie": "server=1"} if self.path == "/" else {}
        if kind == "text/html" and "gzip" in self.headers.get("Accept-Encoding", ""):
            raw, more = gzip.compress(raw), {**more, "Content-Encoding": "gzip"}
        self._send(200, raw, kind, more)

    def _send(self, status: int, body: bytes, kind: str, more: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**more, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class calls it so
        """Nothing: `log` has it."""


@contextmanager
def serve() -> Iterator[ScriptedSite]:
    """Serve it while the block runs."""
    site = ScriptedSite()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("_OfSite", (_Handler,), {"site": site}))
    server.daemon_threads = True
    site.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
