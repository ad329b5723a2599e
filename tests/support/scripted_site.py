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
document.cookie = 'script=1';
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


@contextmanager
def serve() -> Iterator[ScriptedSite]:
    """Serve it while the block runs."""
    site = ScriptedSite()

    class Handler(BaseHTTPRequestHandler):
        """The answers; modules are left out, as pywb replays none whose imports are of another folder."""

        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._answer()

        def _answer(self) -> None:
            host = (self.headers.get("Host") or "").partition(":")[0]
            site.log.append(f"{self.command} {host}{self.path}")
            if act := site.acts.get(self.path):
                act(self)
                return
            if self.path == "/moved":
                self._send(302, b"", "text/html", Location="/data.json")
                return
            if self.path == "/main.js":
                body, kind = MAIN % {"other": OTHER, "port": site.port}, "text/javascript"
            elif self.path.endswith(".png"):
                self._send(200, PNG, "image/png")
                return
            else:
                body, kind = site.pages.get(self.path, ("none", "text/plain"))  # type: ignore[assignment]
            known = self.path in site.pages or self.path == "/main.js" or self.path == "/beacon"
            raw = body.encode() if isinstance(body, str) else body
            packs = "gzip" in self.headers.get("Accept-Encoding", "") and kind == "text/html"
            more = {"Content-Encoding": "gzip"} if packs else {}
            if self.path == "/":
                more["Set-Cookie"] = "server=1"
            self._send(200 if known else 404, gzip.compress(raw) if packs else raw, kind, **more)

        def _send(self, status: int, body: bytes, kind: str, **more: str) -> None:
            self.send_response(status)
            for name, value in more.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class calls it so
            """Nothing: `log` has it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
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
