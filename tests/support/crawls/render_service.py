"""`warcmill render serve` as a process of its own, and a site on loopback whose pages need a browser."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from warcio.archiveiterator import ArchiveIterator

from servers import pins
from warcmill.crawl.beside.page import WORK

HOST = "site.example"
SCRIPT = """<title>empty</title><script>
fetch('/more.json').then(r => r.json()).then(more => {
  for (const link of more) document.body.insertAdjacentHTML('beforeend', `<a href="${link}">x</a><img src="/i.png">`);
});
</script><body>"""
WEB: dict[str, tuple[int, str, str]] = {
    "/robots.txt": (200, "text/plain", "User-agent: *\nDisallow: /private"),
    "/": (200, "text/html", SCRIPT),
    "/more.json": (200, "application/json", '["/one", "/two", "http://other.example/"]'),
    "/i.png": (200, "image/png", "not a picture"),
    "/moved": (302, "text/html", "/"),
    "/leads": (302, "text/html", "/landing"),
    "/landing": (200, "text/html", "<script>document.write('<a href=/from-landing>x</a>')</script>"),
    "/inside": (200, "text/html", "<img src='http://10.1.2.3/i.png'><a href=/x>x</a>"),
    "/hangs": (200, "text/html", "<a href=/from-the-wire>x</a><script>while (true);</script>"),
    "/file.pdf": (200, "application/pdf", "%PDF-"),
    "/gone": (404, "text/html", "gone"),
}


class Site:
    """A site on loopback: its port, and how often each path was asked for."""

    def __init__(self, port: int, asked: Counter[str]) -> None:
        self.port, self.asked = port, asked
        self.url = f"http://{HOST}:{port}"


@contextmanager
def site() -> Iterator[Site]:
    """Serve the site while the block runs."""
    asked: Counter[str] = Counter()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked[self.path] += 1
            status, kind, body = WEB.get(self.path, (404, "text/plain", "none"))
            self.send_response(status)
            if status == 302:
                self.send_header("Location", body)
                body = ""
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield Site(server.server_address[1], asked)
    server.shutdown()
    server.server_close()
    thread.join()


class Service:
    """A service that runs: its process, its root, and its address."""

    def __init__(self, process: subprocess.Popen[str], root: Path, address: str) -> None:
        self.process, self.root, self.address = process, root, address

    def ask(self, body: object, address: str = "", **headers: str) -> tuple[int, dict[str, Any]]:
        place = urlsplit(address or self.address)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=300)
        data = body if isinstance(body, str | bytes) else json.dumps(body)
        connection.request("POST", f"{place.path}?{place.query}", data, headers)
        answer = connection.getresponse()
        text = answer.read()
        found = answer.status, json.loads(text) if text.startswith(b"{") else {}
        connection.close()
        return found

    def render(self, url: str, prefix: str) -> tuple[int, dict[str, Any]]:
        return self.ask({"url": url, "warc_prefix": prefix})

    @property
    def warcs(self) -> list[Path]:
        return sorted(self.root.glob("*.warc.gz"))


@contextmanager
def serving(root: Path, *more: str) -> Iterator[Service]:
    root.mkdir(exist_ok=True)
    port = pins.free({"http": 0})["http"]
    words = [sys.executable, "-m", "commands.main", "render", "serve", "--root", str(root), "--port", str(port)]
    words += ["--allow-private", "127.0.0.0/8", "--resolve", f"{HOST}=127.0.0.1", *more]
    sandbox = [] if os.geteuid() else ["--no-sandbox"]
    log = root.with_suffix(".log")
    with log.open("w") as file, subprocess.Popen(
        [*words, *sandbox], stdout=subprocess.PIPE, stderr=file, text=True
    ) as process:  # fmt: skip
        assert process.stdout
        address = process.stdout.readline().strip()
        assert address, log.read_text()
        try:
            yield Service(process, root, address)
        finally:
            process.terminate()
    if process.returncode >= 0:
        assert process.returncode == 0, log.read_text()
        assert not (root / WORK).exists()
    assert "Traceback" not in log.read_text(), log.read_text()


def responses(path: Path) -> list[str]:
    with path.open("rb") as file:
        return [
            record.rec_headers.get_header("WARC-Target-URI")
            for record in ArchiveIterator(file)
            if record.rec_type in ("response", "resource")
        ]
