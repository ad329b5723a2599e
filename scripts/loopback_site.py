"""Sites on loopback for an engine to crawl: numbered pages, each with links to the next few; chapters that a script
shows; a small museum, as files and as it lives: with news, and a calendar that leads a crawler on and on."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

PAGES = 400
SLOWLY = 0.05  # seconds that a page takes while the site is slow


class LoopbackServer(ThreadingHTTPServer):
    """A server that prints nothing when a crawler hangs up, as one that is killed does."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print the error, but of a connection that has ended."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hurry = threading.Event()

    def do_GET(self) -> None:
        self.hurry.wait(SLOWLY)
        page = self.path.removeprefix("/")
        if page == "robots.txt":
            self._answer(b"User-agent: *\nAllow: /\n", "text/plain")
        elif not page or page.isdigit():
            number = int(page or 0)
            following = range(number + 1, min(number + 4, PAGES))
            links = "".join(f'<a href="/{next_one}">{next_one}</a> ' for next_one in following)
            self._answer(f"<title>Page {number}</title><p>{links}</p>".encode(), "text/html")
        else:
            self.send_error(404)

    def _answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        with suppress(ConnectionError):  # the client has been killed
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class calls it so
        """Log nothing: the engine's crawl log has every request."""


@contextmanager
def site() -> Iterator[int]:
    """Serve the site while the block runs; yields the port."""
    hurry = threading.Event()
    hurry.set()
    with slow_site(hurry) as port:
        yield port


@contextmanager
def slow_site(hurry: threading.Event, port: int = 0) -> Iterator[int]:
    """Serve the site, slowly until `hurry` is set, on this port or a free one; yields it."""
    with _serving(LoopbackServer(("127.0.0.1", port), type("_Paced", (_Handler,), {"hurry": hurry}))) as served:
        yield served


@contextmanager
def _serving(server: ThreadingHTTPServer) -> Iterator[int]:
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


CHAPTERS = 5
_SHELL = """<!doctype html><meta charset=utf-8><title>A book by script</title><main>One moment, please.</main>
<script>
fetch(`/api/chapters.json`).then(answer => answer.json()).then(chapters => {
  const at = chapters.findIndex(one => one.path === location.pathname);
  document.title = at < 0 ? 'A book by script' : chapters[at].title;
  document.querySelector('main').innerHTML = `<h1>${document.title}</h1>`
    + chapters.map(one => `<p><a href="${one.path}">${one.title}</a>`).join('');
});
</script>
"""


class _ByScript(_Handler):
    def do_GET(self) -> None:
        chapters = [{"path": f"/chapter/{n}", "title": f"Chapter {n}"} for n in range(1, CHAPTERS + 1)]
        if self.path == "/api/chapters.json":
            self._answer(json.dumps(chapters).encode(), "application/json")
        elif self.path == "/" or self.path in {one["path"] for one in chapters}:
            self._answer(_SHELL.encode(), "text/html")
        else:
            self.send_error(404)


@contextmanager
def by_script(port: int = 0) -> Iterator[int]:
    """Serve a site that shows nothing without a script; yields the port."""
    with _serving(LoopbackServer(("127.0.0.1", port), _ByScript)) as served:
        yield served


class Gazette:
    """A newspaper: its front page links to its articles, the newest first. `change` gives it another template."""

    def __init__(self, articles: int) -> None:
        self.articles, self.is_new = articles, False

    def publish(self, articles: int) -> None:
        """Publish more articles."""
        self.articles += articles

    def change(self, articles: int) -> None:
        """Take a new template, and publish more articles."""
        self.is_new = True
        self.publish(articles)

    def page(self, path: str) -> str:
        """The page at a path; '' if there is none."""
        if path == "/":
            links = (f'<li><a href="/{number}">Article {number}</a>' for number in range(self.articles, 0, -1))
            return f"<!doctype html><title>The Gazette</title><nav><ul>{''.join(links)}</ul></nav>"
        number = path.removeprefix("/")
        if not number.isdigit() or not 0 < int(number) <= self.articles:
            return ""
        title = f"Day {number}: the mill turns"
        heading = f"<h2>{title}</h2>" if self.is_new else f'<h1 class="title">{title}</h1>'
        return f"<!doctype html><title>Gazette {number}</title><article>{heading}<p>It turned at noon.</p></article>"


class _OfGazette(_Handler):
    paper: Gazette

    def do_GET(self) -> None:
        if found := self.paper.page(self.path):
            self._answer(found.encode(), "text/html")
        else:
            self.send_error(404)


@contextmanager
def gazette(articles: int) -> Iterator[tuple[Gazette, int]]:
    """Serve a newspaper; yields it, and the port."""
    paper = Gazette(articles)
    with _serving(LoopbackServer(("127.0.0.1", 0), type("_Served", (_OfGazette,), {"paper": paper}))) as served:
        yield paper, served


MUSEUM = Path(__file__).with_name("windmills")


class _Files(SimpleHTTPRequestHandler):
    extensions_map: ClassVar = {**SimpleHTTPRequestHandler.extensions_map, ".svg": "image/svg+xml"}

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class calls it so
        """Log nothing."""


@contextmanager
def windmills(port: int = 0) -> Iterator[int]:
    """Serve the museum's site in scripts/windmills, for a page and its pictures; yields the port."""
    with _serving(LoopbackServer(("127.0.0.1", port), partial(_Files, directory=str(MUSEUM)))) as served:
        yield served


class _Living(_Files):
    """The museum has news, which differ each time, and a slow calendar, whose months lead to days and on for ever. The
    picture of the news is missing until it is asked for a third time."""

    asked: dict[str, int]

    def do_GET(self) -> None:
        self.asked[self.path] = times = self.asked.get(self.path, 0) + 1
        kind, _, date = self.path[1:].partition("/")
        if kind == "calendar" and date.isdigit():
            time.sleep(_DAWDLING)
            days = "".join(f'<a href="/calendar/{date}.{day}">{day}</a> ' for day in range(1, 31))
            self._page(f"Month {date}", f'{days}<a href="/calendar/{int(date) + 1}">The month after it</a>')
        elif kind == "calendar":
            time.sleep(_DAWDLING)
            self._page(f"Day {date[:9]}", "<p>The mill is open.</p>")
        elif self.path == "/news.html":
            self._page("News", f'<img src="barn.svg" alt="A barn"><p>The miller has ground {times} sacks.</p>')
        elif self.path == "/barn.svg" and times < 3:
            self.send_error(HTTPStatus.NOT_FOUND)
        elif self.path == "/barn.svg":
            self._answer((MUSEUM / "tower.svg").read_bytes(), "image/svg+xml")
        elif self.path == "/":
            page = (MUSEUM / "index.html").read_text("utf-8")
            self._answer(page.replace("</nav>", f"{_MORE}</nav>").encode(), "text/html")
        else:
            super().do_GET()

    def _page(self, title: str, rest: str) -> None:
        head = f'<title>{title} - The Windmill Museum</title><link rel="stylesheet" href="/style.css">'
        self._answer(f"<!doctype html><meta charset=utf-8>{head}<h1>{title}</h1>{rest}".encode(), "text/html")

    def _answer(self, body: bytes, kind: str) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        with suppress(ConnectionError):  # the client has hung up
            self.end_headers()
            self.wfile.write(body)


_DAWDLING = 2  # seconds that a page of the calendar takes
_MORE = '<a href="news.html">News</a><a href="calendar/1">Calendar</a>'


@contextmanager
def living_museum(port: int = 0) -> Iterator[int]:
    """Serve the museum as it lives, on this port or a free one; yields the port."""
    handler = partial(type("_Museum", (_Living,), {"asked": {}}), directory=str(MUSEUM))
    with _serving(LoopbackServer(("127.0.0.1", port), handler)) as served:
        yield served
