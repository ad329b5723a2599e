"""Crawls whose pages a real Chromium opens, judged by the site's own log, pywb, warcio and the gate; and bad days."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from crawls import crawled
from indexing.indexed import Archive
from indexing.pywb_server import of_collection, running
from msgspec.structs import replace
from playwright.sync_api import Response
from sites import scripted_site
from sites.scripted_site import HOST, OTHER, ScriptedSite
from warcio.archiveiterator import ArchiveIterator

from servers import browsing
from warcmill.crawl.job.job import Job
from warcmill.crawl.launch.launch import open_launch
from warcmill.crawl.render import RenderSettings, browser
from warcmill.formats.warc import gate

RENDER = RenderSettings(which="pages", seconds=20.0, sandbox=bool(os.geteuid()))


def listening(pid: int) -> set[str]:
    """The sockets, by inode, at which a process waits for connections."""
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()[1:]]
    waiting = {f"socket:[{row[9]}]" for row in rows if row[3] == "0A"}
    found = set()
    for place in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(str(place.readlink()))
    return found & waiting


@pytest.fixture(autouse=True)
def no_port_is_left() -> Iterator[None]:
    """The port of each page is closed with it, however it ends; the crawls of this file are in this process."""
    before = listening(os.getpid())
    yield
    assert listening(os.getpid()) <= before


@pytest.fixture
def site() -> Iterator[ScriptedSite]:
    with scripted_site.serve() as served:
        yield served


def job(site: ScriptedSite, **more: Any) -> Job:
    resolve = dict.fromkeys((HOST, OTHER), ("127.0.0.1",))
    return replace(crawled.job(site.port, HOST, render=RENDER), **{"resolve": resolve, **more})


def stored(folder: Path) -> Counter[str]:
    """The requests that the WARCs name: method, host and path."""
    found: Counter[str] = Counter()
    for path in crawled.warcs(folder):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream, check_digests="raise"):
                if record.rec_type == "request":
                    uri = crawled.plain(record.rec_headers.get_header("WARC-Target-URI"))
                    found[f"{record.http_headers.protocol} {uri.removeprefix('http://')}"] += 1
    return found


def chromiums(crawler: int | None = None) -> list[int]:
    """The processes of any browser that a crawler had started, by default this process; other tests have their own."""
    folder = f"warcmill-render.{crawler or os.getpid()}.".encode()
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            is_browser = b"--warcmill-render" in (place / "cmdline").read_bytes()
            if is_browser and folder in (place / "environ").read_bytes():
                found.append(int(place.name))
        except OSError:
            continue
    return found


def notes(folder: Path, path: str = "/") -> tuple[str, ...]:
    return next(line.annotations for line in crawled.lines(folder) if crawled.plain(line.uri) == f"http://{HOST}{path}")


def agree(site: ScriptedSite, folder: Path) -> None:
    """The site's own log and the WARCs name the same requests, each GET once; the gate reads each WARC; nothing is
    left."""
    assert site.asked == stored(folder)
    assert {text: n for text, n in site.asked.items() if n > 1 and text.startswith("GET")} == {}
    assert crawled.unbalanced(folder) == []
    for path in crawled.warcs(folder):
        with path.open("rb") as stream:
            gate.examine(stream, path.name)
    assert chromiums() == []


def test_a_site_that_exists_by_script_alone_is_crawled_once_and_replays_without_it(tmp_path: Path) -> None:
    with scripted_site.serve() as site:
        crawled.crawl(tmp_path / "crawl", job(site))
        agree(site, tmp_path / "crawl")
        for path in ("/second", "/third", "/from-frame", "/from-worker", "/lazy.png", "/data.json", "/more.css"):
            assert site.asked[f"GET {HOST}{path}"] == 1, path
        assert site.asked[f"GET {OTHER}/far.png"] == 1
        assert site.asked[f"POST {HOST}/beacon"] == 2  # of two pages
        port = site.port
    archive = Archive(tmp_path)
    warcs = {path.name: path.read_bytes() for path in crawled.warcs(tmp_path / "crawl")}
    archive.add("20261121081735", warcs, job="news")
    archive.fold()
    collection = (archive.base / "line/store/warcs", archive.base / "index/versions/cdx/current")
    with running(tmp_path / "pywb", {"all": collection}) as address:
        first = f"http://{HOST}:{port}/"
        captures = of_collection(address, "all", url=first)
        assert [(one["mime"], one["status"]) for one in captures] == [("text/html", "200")]
        answers = replayed(f"{address}/all/{first}")
        assert any("/from-worker" in url for url in answers)
        assert {url: status for url, status in answers.items() if status >= 400} == {}


CHECK = """<script>if (!document.cookie.includes('human=1')) {document.cookie = 'human=1; path=/'; %s}</script>"""
ASKS = """<title>Welcome</title><div id=o></div><script>(async () => {
for (const page of ['1', '2']) {
  const said = await (await fetch('/', {headers: {Accept: 'application/json', 'X-Page': page}})).json();
  o.innerHTML += `<a href=${said}>x</a>`;
}})()</script>"""


AGAIN = {
    "reload": "location.reload()",
    "same address": "location.replace(location)",
    "fetch": "fetch('/').then(a => a.text()).then(text => {document.open(); document.write(text); document.close()})",
}


@pytest.mark.parametrize("again", AGAIN)
def test_a_page_behind_a_check_is_archived_as_the_page_and_asks_itself_for_data(
    again: str, site: ScriptedSite, tmp_path: Path
) -> None:
    def answer(handler: Any) -> None:
        is_human = "human=1" in handler.headers.get("Cookie", "")
        page = handler.headers.get("X-Page")
        body = f'"/page-{page}"' if page else ASKS if is_human else CHECK % AGAIN[again]
        handler._send(200, body.encode(), "application/json" if page else "text/html", {})

    site.acts["/"] = answer
    crawled.crawl(tmp_path, job(site))
    assert site.asked == stored(tmp_path)
    assert site.asked[f"GET {HOST}/"] == 4
    assert {f"GET {HOST}/page-1", f"GET {HOST}/page-2"} <= site.asked.keys()
    assert crawled.unbalanced(tmp_path) == []
    assert notes(tmp_path) == ()
    texts = [text for path in crawled.warcs(tmp_path) for text in doms(path)]
    assert any("<title>Welcome</title>" in text and "/page-2" in text for text in texts)


def doms(path: Path) -> list[str]:
    """The pages of a WARC as the browser had them."""
    with path.open("rb") as stream:
        return [
            record.content_stream().read().decode() for record in ArchiveIterator(stream)
            if record.rec_headers.get_header("WARC-Target-URI", "").startswith("urn:dom:")
        ]  # fmt: skip


def replayed(address: str) -> dict[str, int]:
    """The status of each answer while a page is open in replay."""
    found: dict[str, int] = {}

    def note(response: Response) -> None:
        found[response.url] = response.status

    with browsing.opened() as browser, browsing.window(browser) as window:
        window.on("response", note)
        window.goto(address, wait_until="load")
        inside = window.frame_locator("#replay_iframe")
        inside.get_by_text("/third").wait_for(timeout=60_000)
        inside.locator("img").nth(1).scroll_into_view_if_needed(timeout=60_000)
        window.wait_for_timeout(2000)
    return found


# Bad days

SCRIPTS: dict[str, tuple[str, set[str]]] = {
    "10,000 requests": ("for (let n = 0; n < 10000; n++) fetch('/data.json?' + n);", {"render:failed:requests"}),
    "redirects without end": ("setTimeout(() => location = '/?' + Math.random(), 1);", set()),
    "alerts": ("for (let n = 0; n < 100000; n++) alert(n);", set()),
    "a loop": ("while (true);", {"render:failed:hung"}),
    "inside addresses": ("fetch('http://10.1.2.3/'); fetch('http://169.254.169.254/latest/');", set()),
    "memory": ("const all = []; while (true) all.push(new Array(1e7).fill(all.length));", set()),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_bad_page_costs_itself_alone(name: str, site: ScriptedSite, tmp_path: Path) -> None:
    script, expected = SCRIPTS[name]
    site.pages["/"] = (f"<a href=/third>x</a><script>{script}</script>", "text/html")
    settings = replace(RENDER, seconds=120.0 if "render:failed:requests" in expected else 5.0, requests=200)
    crawled.crawl(tmp_path, job(site, render=settings, extractors=frozenset(["html"])))
    assert f"GET {HOST}/third" in site.asked
    assert expected <= set(notes(tmp_path))
    assert not [url for url in stored(tmp_path) if "10.1.2.3" in url or "169.254" in url]
    agree(site, tmp_path)


def test_a_long_answer_is_cut_at_the_limit_of_the_page(site: ScriptedSite, tmp_path: Path) -> None:
    """2 GB for a picture: the fetch's own limit holds, the page is given up, and the crawl goes on."""

    def pour(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "image/png")
        handler.send_header("Content-Length", str(2 << 30))
        handler.end_headers()
        piece = bytes(1 << 20)
        try:
            for _ in range(2 << 10):
                handler.wfile.write(piece)
        except OSError:
            handler.close_connection = True

    site.acts["/long.png"] = pour
    site.pages["/"] = ("<a href=/third>x</a><img src=/long.png>", "text/html")
    limits = replace(Job("x", ()).limits, body=8 << 20)
    crawled.crawl(tmp_path, job(site, limits=limits, render=replace(RENDER, bytes=1 << 20)))
    assert notes(tmp_path) == ("render:failed:bytes",)
    assert f"GET {HOST}/third" in site.asked
    (long,) = [line for line in crawled.lines(tmp_path) if line.uri.endswith("/long.png")]
    assert "lenTrunc" in long.annotations
    agree(site, tmp_path)


@pytest.mark.parametrize("answers", [True, False], ids=["answered", "unanswered"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_browser_that_dies_costs_no_page(
    number: int, answers: bool, site: ScriptedSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser, "GRACE", 3.0)  # seconds, and those until one that is stopped is given up
    monkeypatch.setattr(browser, "END", 3.0)
    script = "fetch('/hangs').finally(() => document.body.innerHTML += '<a href=/from-script>x</a>')"
    site.pages["/"] = (f"<a href=/third>x</a><script>{script}</script>", "text/html")

    is_over = threading.Event()

    def once(handler: Any) -> None:
        del site.acts["/hangs"]
        _do(number)
        if not answers:
            is_over.wait(60)
        handler.send_response(200)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    site.acts["/hangs"] = once
    site.pages["/hangs"] = ("", "text/plain")
    crawled.crawl(tmp_path, job(site, render=replace(RENDER, seconds=5.0)))
    is_over.set()
    assert (notes(tmp_path), notes(tmp_path, "/third")) == ((), ())
    assert f"GET {HOST}/from-script" in site.asked
    assert answers or site.asked[f"GET {HOST}/hangs"] == 2
    assert stored(tmp_path)[f"GET {HOST}/hangs"] == 1
    assert chromiums() == []


def _do(number: int) -> None:
    for pid in chromiums():
        os.kill(pid, number)
    time.sleep(1)


CRAWL = """
import asyncio, os, sys
sys.path[:0] = {path!r}
import test_render_crawl
from pathlib import Path
from sites.scripted_site import ScriptedSite
test_render_crawl.crawl_in_child({port}, Path({folder!r}))
"""


def crawl_in_child(port: int, folder: Path) -> None:
    """Crawl a site that another process serves."""
    crawled.crawl(folder, job(ScriptedSite(port)))


def child(site: ScriptedSite, folder: Path) -> subprocess.Popen[bytes]:
    here = Path(__file__).parent
    path = [str(here), str(here.parent / "support"), str(here.parent.parent)]
    script = CRAWL.format(path=path, port=site.port, folder=str(folder))
    return subprocess.Popen([sys.executable, "-c", script])


@pytest.mark.parametrize("at", ["/main.js", "/from-worker", "/pixel.png", "/second"])
def test_a_crawler_that_is_killed_leaves_no_process_and_its_books_agree(
    at: str, site: ScriptedSite, tmp_path: Path
) -> None:
    """Killed while a page is open: the next start continues; what was in the books is fetched by nobody again."""
    process: subprocess.Popen[bytes] | None = None
    ports: set[str] = set()
    browsers: list[int] = []

    def kill(handler: Any) -> None:
        del site.acts[at]
        assert process
        ports.update(listening(process.pid))
        browsers.extend(chromiums(process.pid))
        process.kill()
        handler.close_connection = True

    site.acts[at] = kill
    process = child(site, tmp_path)
    assert process.wait(120) == -signal.SIGKILL
    until = time.monotonic() + 20
    while chromiums(process.pid) and time.monotonic() < until:
        time.sleep(0.1)
    assert chromiums(process.pid) == []
    assert browsers
    assert ports or at == "/second", "one is open for each page; the crawl fetches the second when none is"
    inodes = {f"socket:[{row.split()[9]}]" for row in Path("/proc/net/tcp").read_text().splitlines()[1:]}
    assert not ports & inodes
    assert child(site, tmp_path).wait(120) == 0
    assert crawled.unbalanced(tmp_path) == []
    kept = stored(tmp_path)
    assert {text for text, n in kept.items() if n > 1 and text.startswith("GET")} == set()
    last = [line.uri for line in crawled.lines(tmp_path) if not line.is_asked_again]
    lines = Counter(uri for uri in last if not uri.endswith("/beacon"))
    assert {uri: n for uri, n in lines.items() if n > 1} == {}
    assert notes(tmp_path, "/third") == ()


def test_a_checkpoint_takes_no_page_twice(site: ScriptedSite, tmp_path: Path) -> None:
    """A checkpoint is taken while a page is open whose time is longer than a checkpoint waits."""

    async def scenario() -> None:
        launch = await open_launch(crawled.places(tmp_path), job(site), crawled.LAUNCH)
        crawl = asyncio.create_task(launch.crawl())
        while f"GET {HOST}/main.js" not in site.asked:
            await asyncio.sleep(0.01)
        await launch.checkpoint()
        await launch.close(await crawl)

    asyncio.run(scenario())
    agree(site, tmp_path)
