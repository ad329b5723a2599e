"""Idioms of public projects of Scrapy, a spider each: a site for them, and their runs by plain Scrapy and by ours."""

from __future__ import annotations

import gzip
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar, NamedTuple

from requesting.scrapy_runs import HURRIED, line_for, run_spider, start_spider
from waiting import wait_for

IDIOMS = Path(__file__).parents[2] / "services" / "scrapy_idioms"
SPIDERS = sorted((IDIOMS / "spiders").glob("*.py"))
NAMES = {name: path for path in SPIDERS for name in re.findall(r'^    name = "(\w+)"$', path.read_text(), re.MULTILINE)}
"""By the name of each spider: its file."""
ARGUMENT = "given"
JOB = "idioms"
COUNTED = re.compile(
    r"item_scraped_count|item_dropped_count|item_dropped_reasons_count/.*|response_received_count|request_depth_m.*"
    r"|downloader/(?:request_count|response_count|response_status_count/.*|exception_count|exception_type_count/.*)"
    r"|retry/.*|httperror/.*|offsite/.*|urllength/.*|spider_exceptions/.*|scheduler/(?:enqueued|dequeued)"
    r"|dupefilter/filtered|file_.*|idiom/.*"
).fullmatch


class Answer(NamedTuple):
    """An answer of the site."""

    status: int = 200
    text: bytes = b"<h1>Page</h1>"
    kind: str = "text/html; charset=utf-8"
    headers: Mapping[str, str] = {}


FORM = b'<form action="/login" method="post"><input type="hidden" name="token" value="t"><input name="user"></form>'
PLAIN = {
    "/big": Answer(text=b"b" * 100_000),
    "/form": Answer(text=FORM),
    "/gzip": Answer(text=gzip.compress(b"<h1>pressed</h1>", mtime=0), headers={"Content-Encoding": "gzip"}),
    "/picture": Answer(text=b"\x89PNG", kind="image/png"),
    "/table.csv": Answer(text=b"1,one\n2,two\n", kind="text/csv"),
    "/slow": Answer(),
}


class Ran(NamedTuple):
    """A run of a spider: its exit code, the items, the requests that the site has had, and figures of Scrapy."""

    code: int
    items: list[str]
    asked: Counter[str]
    figures: dict[str, int]


class IdiomSite:
    """A site on loopback. `asked`: its own log. `hold`: the number of a request that gets no answer until `release`."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.asked: list[str] = []
        self.hold, self.release = 0, threading.Event()
        self.flaky = 0


@contextmanager
def served() -> Iterator[IdiomSite]:
    """Serve the site while the block runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    site = Handler.sites[server.server_address[1]] = IdiomSite(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        site.release.set()
        server.shutdown()
        server.server_close()


class Handler(BaseHTTPRequestHandler):
    """Shelves, books, a login, and answers of every kind."""

    protocol_version = "HTTP/1.1"
    sites: ClassVar[dict[int, IdiomSite]] = {}

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def _answer(self, body: bytes) -> None:
        site = self.sites[self.server.server_address[1]]
        path = self.path.partition("?")[0]
        if path != "/robots.txt":
            site.asked.append(f"{self.command} {self.path}")
            if site.hold and len(site.asked) >= site.hold:
                site.release.wait(120)
        found = self._found(site, path, body)
        try:
            self.send_response(found.status)
            for name, value in {"Content-Type": found.kind, **found.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(found.text)))
            self.end_headers()
            self.wfile.write(found.text)
        except OSError:
            self.close_connection = True

    def _found(self, site: IdiomSite, path: str, body: bytes) -> Answer:
        kind, _, name = path[1:].partition("/")
        match kind:
            case "flaky":
                site.flaky += 1
                return Answer(503 if site.flaky == 1 else 200)
            case "slow":
                time.sleep(2)
            case "login":
                user = body.decode().rpartition("user=")[2]
                return Answer(headers={"Set-Cookie": f"user={user}; Path=/"})
            case "private":
                return Answer(text=(self.headers.get("Cookie") or "no cookie").encode(), kind="text/plain")
            case "echo":
                found = {one: ", ".join(self.headers.get_all(one) or ()) for one in self.headers}
                return Answer(text=json.dumps(found).encode(), kind="application/json")
            case "api":
                return Answer(text=body, kind="application/json")
        return PLAIN.get(path) or _of_library(site, kind, name)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class calls it so
        """Nothing: the site has a log of its own."""


def _of_library(site: IdiomSite, kind: str, name: str) -> Answer:
    """Shelves and their books, and lists of these."""
    match kind:
        case "shelf":
            books = "".join(f'<a class="book" href="/book/{name}{book}">book {book}</a>' for book in range(6))
            after = f'<a class="next" href="/shelf/{int(name) + 1}">next</a>' if int(name) < 4 else ""
            return Answer(text=f"<h1>Shelf {name}</h1>{books}{after}".encode())
        case "book":
            return Answer(text=f"<h1>Book {name}</h1>".encode())
        case "status":
            return Answer(int(name))
        case "moved":
            return Answer(301, b"", headers={"Location": f"/book/0{name}"})
        case "sitemap.xml":
            listed = ("/book/00", "/book/01", "/shelf/1")
            pages = "".join(f"<url><loc>{site.url}{one}</loc></url>" for one in listed)
            return Answer(text=f"<urlset>{pages}</urlset>".encode(), kind="application/xml")
        case "feed.xml":
            entries = "".join(f"<item><title>{n}</title><link>{site.url}/book/0{n}</link></item>" for n in range(3))
            return Answer(text=f"<rss><channel>{entries}</channel></rss>".encode(), kind="application/xml")
    return Answer(404)


def by_plain_scrapy(folder: Path) -> dict[str, Ran]:
    """Run each spider by Scrapy itself, all in one process, and each against a site of its own."""
    folder.mkdir()
    with ExitStack() as stack:
        sites = {name: stack.enter_context(served()) for name in NAMES}
        words = [f"{name} {NAMES[name]} {site.url}" for name, site in sites.items()]
        command = [sys.executable, str(IDIOMS / "plain_scrapy.py"), ARGUMENT, *words]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return {name: ran(0, folder / name, site) for name, site in sites.items()}


def by_warcmill(name: str, folder: Path) -> tuple[Ran, str]:
    """Run a spider by ours; the run, and what it printed."""
    line = line_for(folder / "line", JOB, HURRIED)
    with served() as site:
        done = run_spider(line, *words_for(name, site), folder=folder / name)
        return ran(done.returncode, folder / name, site), done.stdout + done.stderr


def by_warcmill_killed(name: str, folder: Path, after: int) -> tuple[Ran, str]:
    """Run a spider by ours, killed while the site has a request of it in hand, and continued."""
    line = line_for(folder / "line", JOB, HURRIED)
    with served() as site:
        site.hold, words = after, words_for(name, site)
        with start_spider(line, *words, folder=folder / "killed") as process:
            wait_for(lambda: len(site.asked) >= after, (folder / "killed" / "printed").read_text)
            process.send_signal(signal.SIGKILL)
        site.hold = 0
        site.release.set()
        done = run_spider(line, *words, folder=folder / name)
        found = ran(done.returncode, folder / name, site)
        before = ran(0, folder / "killed", site).items
        return found._replace(items=sorted({*before, *found.items})), done.stdout + done.stderr


def words_for(name: str, site: IdiomSite) -> tuple[str, ...]:
    """The words of `warcmill run spider` for a spider."""
    spider, figures = f"{NAMES[name]}:{name}", "idiom_figures.KeptFigures"
    arguments = ("-a", f"site={site.url}", "-a", f"argument={ARGUMENT}")
    return (spider, "--job", JOB, *arguments, "-s", f"STATS_CLASS={figures}", "-o", "items.jsonl")


def ran(code: int, folder: Path, site: IdiomSite) -> Ran:
    """What a run has left in its folder, whatever the port of its site."""
    lines = _text(folder / "items.jsonl", site).splitlines()
    found = json.loads(_text(folder / "figures.json", site) or "{}")
    figures = {key: value for key, value in found.items() if COUNTED(key)}
    items = sorted(json.dumps(json.loads(one), sort_keys=True) for one in lines)
    return Ran(code, items, Counter(site.asked), figures)


def _text(file: Path, site: IdiomSite) -> str:
    text = file.read_text("utf-8").replace(site.url, "http://site") if file.exists() else ""
    return re.sub(r"full/[0-9a-f]{40}", "full/...", text)  # a digest of a URL
