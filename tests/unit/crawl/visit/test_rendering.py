"""Pages that are rendered: each request is judged, answered once and kept. The browser is a plain client."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crawls import crawled
from crawls.plain_browser import Asks, PlainBrowser
from msgspec.structs import replace
from sites.several_hosts import Page, Web, page, serve
from warcio.archiveiterator import ArchiveIterator

from warcmill.crawl.books.books import BookEntry, Kept
from warcmill.crawl.fetch.exchange import FetchOptions, RenderOptions
from warcmill.crawl.fetch.exchange import read as read_fetch
from warcmill.crawl.job.job import End, Job
from warcmill.crawl.launch import checkpoint
from warcmill.crawl.launch.checkpoint import Checkpoint
from warcmill.crawl.launch.launch import open_launch
from warcmill.crawl.policies.politeness import Politeness
from warcmill.crawl.render import BROWSER_ENDED, RenderedPage, RenderFailed, RenderSettings, Result, Wishes
from warcmill.crawl.render.proxy import LOOPBACK, PageProxy
from warcmill.crawl.uri import make
from warcmill.errors import BadInput, Unavailable
from warcmill.model import Launch

PAGES = RenderSettings(which="pages", sandbox=False)
HOST = "a.example"


class CountedWeb(dict[tuple[str, str], Page]):
    """A web that counts what it is asked for; robots.txt and what it has not, too."""

    def __init__(self, pages: Web) -> None:
        super().__init__(pages)
        self.asked: Counter[str] = Counter()

    def get(self, key: tuple[str, str], default: Any = None) -> Any:  # type: ignore[override]
        self.asked["".join(key)] += 1
        return super().get(key, default)


def web(*paths: str, **pages: Page) -> CountedWeb:
    """A seed that links to nothing, and these paths with a byte each."""
    made = {(HOST, path): Page(path.encode(), "text/plain") for path in paths}
    return CountedWeb({(HOST, "/"): page([]), **made, **{(HOST, path): one for path, one in pages.items()}})


def job(port: int, **more: Any) -> Job:
    resolve = dict.fromkeys((HOST, "b.example", "inside.example"), ("127.0.0.1",))
    return replace(crawled.job(port, HOST, render=PAGES), **{"resolve": resolve, **more})


def crawl(folder: Path, site: CountedWeb, browser: PlainBrowser, **more: Any) -> int:
    """Crawl a web with this browser; return its port."""
    with serve(site) as port:
        crawled.crawl(folder, job(port, **more), browser.use)
    return port


def asked_once(site: CountedWeb, folder: Path) -> None:
    """The site's own counts and the WARCs name the same requests, each once."""
    stored = Counter(
        crawled.plain(uri).removeprefix("http://") for kind, uri in crawled.records(crawled.warcs(folder))
        if kind in ("response", "revisit")
    )  # fmt: skip
    assert site.asked == stored
    assert set(site.asked.values()) == {1}
    assert crawled.unbalanced(folder) == []


def notes(folder: Path, path: str = "/") -> tuple[str, ...]:
    return next(line.annotations for line in crawled.lines(folder) if crawled.plain(line.uri) == f"http://{HOST}{path}")


def opened(browser: PlainBrowser) -> list[str]:
    """The paths of the pages that were opened, in their order."""
    return ["/" + url.split("/", 3)[3] for url in browser.opened]


FRAME = (("Sec-Fetch-Dest", "iframe"), ("Sec-Fetch-Mode", "navigate"))
PRERENDER = (("Sec-Fetch-Dest", "document"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Purpose", "prefetch;prerender"))


def test_the_page_is_asked_for_once_and_all_that_it_asks_for_is_recorded(tmp_path: Path) -> None:
    site = web("/a.css", "/b.js", **{"/": page(["/next"], "/a.css"), "/next": page([], "/b.js")})
    browser = PlainBrowser({"/": ["/a.css", ["/b.js", "/data"]], "/next": ["/a.css", "/b.js"]})
    crawl(tmp_path, site, browser)
    asked_once(site, tmp_path)
    assert site.asked.keys() == {f"{HOST}{path}" for path in ("/", "/robots.txt", "/a.css", "/b.js", "/data", "/next")}
    bodies = {(crawled.plain(url), body) for url, _, body in browser.seen if url.endswith(".css")}
    assert bodies == {(f"http://{HOST}/a.css", b"/a.css")}
    hops = {crawled.plain(line.uri): line.hops for line in crawled.lines(tmp_path)}
    assert hops[f"http://{HOST}/data"] == "E"
    assert browser.closed == 1


def test_what_the_crawl_fetched_before_is_answered_from_its_warc(tmp_path: Path) -> None:
    """The picture is fetched by the crawl, before the second page asks for it; a redirect is one in the browser too."""
    site = web("/i.png", "/new", **{"/": page(["/2"], "/i.png", "/old"), "/2": page([])})
    site[HOST, "/old"] = Page(b"/new", status=301)
    browser = PlainBrowser({"/2": ["/i.png", "/old", "/new"]})
    crawl(tmp_path, site, browser)
    asked_once(site, tmp_path)
    seen = {crawled.plain(url).removeprefix(f"http://{HOST}"): (status, body) for url, status, body in browser.seen}
    assert seen["/i.png"] == (200, b"/i.png")
    assert seen["/old"] == (301, b"")
    assert seen["/new"] == (200, b"/new")


def test_the_redirect_of_a_part_is_followed_by_its_page_else_by_the_crawl(tmp_path: Path) -> None:
    """A worker that has nothing to do does not ask before the browser; it asks for what the browser leaves."""
    site = web("/new", "/left", **{"/": page([])})
    site[HOST, "/old"], site[HOST, "/older"] = Page(b"/new", status=301), Page(b"/left", status=301)
    browser = PlainBrowser({"/": ["/old", "/older", "/new"]})
    crawl(tmp_path, site, browser)
    asked_once(site, tmp_path)
    hops = {crawled.plain(line.uri).removeprefix(f"http://{HOST}"): line.hops for line in crawled.lines(tmp_path)}
    assert (hops["/new"], hops["/left"]) == ("E", "ER")


@pytest.mark.parametrize("conditional", ["embeds", "all"])
def test_the_next_launch_asks_once_for_each_too_and_has_what_its_browser_needs(
    tmp_path: Path, conditional: str
) -> None:
    """Nothing has changed: pages and their parts are asked for without conditions, and recorded whole. A file that is
    linked to alone is a revisit."""
    site = web(
        "/t", **{"/": page(["/2", "/t"], "/i.png"), "/2": page([]), "/i.png": Page(b"i", "image/png", etag='"i"')}
    )
    site[HOST, "/"] = replace(site[HOST, "/"], etag='"page"')
    with serve(site) as port:
        for launch in (crawled.LAUNCH, Launch("news", "20261122081844")):
            site.asked.clear()
            browser = PlainBrowser({"/2": ["/i.png"]})
            crawled.crawl(tmp_path, job(port, conditional=conditional), browser.use, launch)
            assert set(site.asked.values()) == {1}
            assert {status for _, status, _ in browser.seen} == {200}
            assert len(browser.opened) == 2
    kinds = {crawled.plain(uri): kind for kind, uri in crawled.records(crawled.warcs(tmp_path, launch))
             if kind in ("response", "revisit")}  # fmt: skip
    assert kinds.pop(f"http://{HOST}/t") == "revisit"
    assert kinds.keys() >= {f"http://{HOST}{path}" for path in ("/", "/2", "/i.png")}
    del kinds[f"http://{HOST}/robots.txt"]
    assert set(kinds.values()) == {"response"}
    assert not [line for line in crawled.lines(tmp_path, launch) if line.uri.endswith(".png") and line.annotations]


def test_a_page_that_is_recorded_whole_each_time_has_not_changed_by_that(tmp_path: Path) -> None:
    """It leaves the first record and its date, so it is not visited more often; a later revisit refers to it."""
    site = web()
    with serve(site) as port:
        for day, which in ((21, "pages"), (22, "pages"), (23, "never")):
            launch = Launch("news", f"202611{day}081844")
            crawled.crawl(tmp_path, job(port, render=replace(PAGES, which=which)), PlainBrowser().use, launch)
    ids = dict.fromkeys((21, 23), "")
    for day, kind, header in ((21, "response", "WARC-Record-ID"), (23, "revisit", "WARC-Refers-To")):
        for path in crawled.warcs(tmp_path, Launch("news", f"202611{day}081844")):
            with path.open("rb") as stream:
                for record in ArchiveIterator(stream):
                    if record.rec_type == kind and record.rec_headers.get_header("WARC-Target-URI").endswith("/"):
                        ids[day] = record.rec_headers.get_header(header)
    assert ids[21] == ids[23] != ""


def test_two_that_want_one_thing_at_one_time_share_one_fetch(tmp_path: Path) -> None:
    site = web("/shared", **{"/": page(["/1", "/2", "/3"]), **{f"/{n}": page([], "/shared") for n in (1, 2, 3)}})
    steps = {f"/{n}": [["/shared"] * 5, "/shared"] for n in (1, 2, 3)}
    browser = PlainBrowser(steps)
    crawl(tmp_path, site, browser, politeness=Politeness(0.0, 0.0, 0.0, 0.0, at_once=10))
    asked_once(site, tmp_path)
    assert [body for url, _, body in browser.seen if url.endswith("/shared")] == [b"/shared"] * 18


def test_pages_that_have_each_other_in_frames_wait_for_nobody(tmp_path: Path) -> None:
    site = web(**{"/": page(["/1", "/2"]), "/1": page([]), "/2": page([])})
    frame = (("Sec-Fetch-Dest", "iframe"),)
    browser = PlainBrowser({"/1": [Asks("/2", headers=frame)], "/2": [Asks("/1", headers=frame)]})
    crawl(tmp_path, site, browser, politeness=Politeness(0.0, 0.0, 0.0, 0.0, at_once=10))
    asked_once(site, tmp_path)


@pytest.mark.parametrize("headers", [FRAME, PRERENDER], ids=["frame", "prerender"])
@pytest.mark.parametrize("links", [[], ["/menu"]], ids=["unlinked", "linked"])
def test_a_page_that_a_browser_had_is_opened_in_its_turn_from_the_same_record(
    headers: tuple[tuple[str, str], ...], links: list[str], tmp_path: Path
) -> None:
    """Its first line in crawl.log is not the last; its DOM and its links are kept beside the one answer."""
    site = web(**{"/": page(links), "/menu": page(["/behind"]), "/behind": page([])})
    browser = PlainBrowser({"/": [Asks("/menu", headers=headers)]})
    crawl(tmp_path, site, browser)
    asked_once(site, tmp_path)
    assert sorted(opened(browser)) == ["/", "/behind", "/menu"]
    found = [line for line in crawled.lines(tmp_path) if line.uri.endswith("/menu")]
    assert [(line.annotations, line.is_document) for line in found] == [
        (("render:part", "askedAgain"), False),
        (("render:opened",), True),
    ]
    kinds = [kind for kind, uri in crawled.records(crawled.warcs(tmp_path)) if uri.endswith("/menu")]
    assert sorted(kinds) == ["metadata", "metadata", "request", "resource", "response"]
    concurrent = set()
    for path in crawled.warcs(tmp_path):
        with path.open("rb") as stream:
            concurrent |= {
                record.rec_headers.get_header("WARC-Concurrent-To") for record in ArchiveIterator(stream)
                if record.rec_headers.get_header("WARC-Target-URI", "").endswith("/menu")
            }  # fmt: skip
    assert len(concurrent - {None}) == 1


def test_a_page_that_a_script_fetched_is_asked_for_as_a_page_in_its_turn(tmp_path: Path) -> None:
    """By `fetch` it may have been another text; a part that is not a page is asked for once."""
    site = web(**{"/": page([]), "/p2": page(["/p3"]), "/p3": page([])})
    crawl(tmp_path, site, browser := PlainBrowser({"/": ["/p2"]}))
    assert sorted(opened(browser)) == ["/", "/p2", "/p3"]
    assert [site.asked[f"{HOST}{path}"] for path in ("/p2", "/p3")] == [2, 1]
    kinds = [kind for kind, uri in crawled.records(crawled.warcs(tmp_path)) if uri.endswith("/p2")]
    assert kinds.count("response") == 2


@pytest.mark.parametrize("header", [("Accept", "image/avif,*/*"), ("Sec-Fetch-Dest", "script")])
def test_a_picture_that_is_html_is_no_page(header: tuple[str, str], tmp_path: Path) -> None:
    """As of servers that answer all that they have not by the same page."""
    site = web(**{"/": page([]), "/favicon.ico": page([])})
    crawl(tmp_path, site, browser := PlainBrowser({"/": [Asks("/favicon.ico", headers=(header,))]}))
    assert opened(browser) == ["/"]
    asked_once(site, tmp_path)


def test_a_frame_of_a_job_that_opens_seeds_alone_is_opened_if_it_is_one(tmp_path: Path) -> None:
    site = web(**{"/": page([]), "/menu": page([]), "/other": page([])})
    browser = PlainBrowser({"/": [Asks("/menu", headers=FRAME), Asks("/other", headers=FRAME)]})
    with serve(site) as port:
        seeds = tuple(f"http://{HOST}:{port}{path}" for path in ("/", "/menu"))
        crawled.crawl(tmp_path, job(port, seeds=seeds, render=replace(PAGES, which="seeds")), browser.use)
    assert sorted(opened(browser)) == ["/", "/menu"]
    asked_once(site, tmp_path)


def test_a_page_that_was_opened_before_is_not_opened_again_as_a_frame(tmp_path: Path) -> None:
    site = web(**{"/": page(["/1"]), "/1": page([])})
    browser = PlainBrowser({"/1": [Asks("/", headers=FRAME)]})
    crawl(tmp_path, site, browser)
    asked_once(site, tmp_path)
    assert opened(browser) == ["/", "/1"]


def test_behaviours_are_files_of_the_job_and_their_faults_are_named(tmp_path: Path) -> None:
    """The bundle first, then the job's own by name. A fault is in nonfatal-errors.log each time, and once in
    alerts.log."""
    site = web(**{"/": page(["/2"]), "/2": page([])})
    bundle = tmp_path / "bundle.js"
    bundle.write_text("self.__bx_behaviors = {run: () => 1}")
    folder = crawled.places(tmp_path).job("news") / "behaviors"
    folder.mkdir(parents=True)
    for name in ("b.js", "a.js", "notes.txt"):
        (folder / name).write_text(name)
    result = RenderedPage(b"", "http://a.example/", None, "", ("behaviorFailed",), (), ("a.js: Error: no",))
    browser = PlainBrowser(result=result)
    crawl(tmp_path, site, browser, render=replace(PAGES, behaviors=str(bundle)))
    first, *own = next(iter(browser.opened.values())).behaviors
    assert first.source.startswith("self.__bx_behaviors = {run: () => 1}\n;self.__bx_behaviors.run({")
    assert [(one.name, one.source) for one in own] == [("a.js", "a.js"), ("b.js", "b.js")]
    assert notes(tmp_path) == ("render:behaviorFailed",)
    assert crawled.told(tmp_path, "nonfatal-errors.log").count("a.js: Error: no") == 2
    assert crawled.told(tmp_path, "alerts.log").count("behaviors/a.js: Error: no, at http://a.example") == 1


def test_a_behaviour_that_cannot_be_read_is_named_and_pages_are_opened(tmp_path: Path) -> None:
    folder = crawled.places(tmp_path).job("news") / "behaviors"
    (folder / "a.js").mkdir(parents=True)
    crawl(tmp_path, web(), browser := PlainBrowser())
    assert [wishes.behaviors for wishes in browser.opened.values()] == [()]
    assert "a.js: it cannot be read" in crawled.told(tmp_path, "alerts.log")


def test_windows_that_a_page_wants_to_open_are_links_of_it(tmp_path: Path) -> None:
    site = web(**{"/": page([]), "/window": page([])})
    with serve(site) as port:
        wanted = (f"http://{HOST}:{port}/window", f"http://other.example:{port}/")
        browser = PlainBrowser(result=RenderedPage(b"", f"http://{HOST}:{port}/", None, "", ("popup",), wanted))
        crawled.crawl(tmp_path, job(port), browser.use)
    assert opened(browser) == ["/", "/window"]
    asked_once(site, tmp_path)


@pytest.mark.parametrize(
    ("status", "body", "is_opened"), [(404, b"<p>x", True), (403, b"<p>x", True), (410, b"", False)]
)
def test_the_page_of_an_error_is_opened_if_it_has_a_text(
    status: int, body: bytes, is_opened: bool, tmp_path: Path
) -> None:
    site = web(**{"/": page(["/gone"]), "/gone": Page(body, status=status), "/by-script": page([])})
    crawl(tmp_path, site, browser := PlainBrowser(dom=b"<a href=/by-script>x</a>"))
    assert ("/gone" in opened(browser)) is is_opened
    asked_once(site, tmp_path)


def test_a_frame_is_a_link_and_all_else_an_embed(tmp_path: Path) -> None:
    site = web("/frame")
    site["b.example", "/far"] = Page(b"far", "text/plain")
    with serve(site) as port:
        far = f"http://b.example:{port}/far"
        frame = (("Sec-Fetch-Dest", "iframe"),)
        browser = PlainBrowser({"/": [Asks("/frame", headers=frame), Asks(far, headers=frame), far]})
        crawled.crawl(tmp_path, job(port), browser.use)
    hops = {crawled.plain(line.uri): line.hops for line in crawled.lines(tmp_path)}
    assert hops[f"http://{HOST}/frame"] == "L"
    assert hops["http://b.example/far"] == "E"
    assert [status for url, status, _ in browser.seen if url == far] == [204, 200]  # no link of the site's leads there


def test_what_signs_a_browser_in_is_left_out_of_its_records(tmp_path: Path) -> None:
    cookies = tmp_path / "cookies.txt"
    cookies.write_text(f"{HOST}\tFALSE\t/\tFALSE\t0\tsession\tS3CRET\n")
    cookies.chmod(0o600)
    signed = (("Authorization", "Bearer T0KEN"),)
    browser = PlainBrowser({"/": [Asks("/api", headers=signed), "/part"]})
    crawl(tmp_path / "crawl", web("/api", "/part"), browser, render=replace(PAGES, cookies=str(cookies)))
    left_out = dict[str, str]()
    for warc in crawled.warcs(tmp_path / "crawl"):
        with warc.open("rb") as stream:
            for record in ArchiveIterator(stream, no_record_parse=True):
                block = record.content_stream().read().decode()
                assert "S3CRET" not in block
                assert "T0KEN" not in block
                if record.rec_type == "metadata" and "leftOutOfRequest: " in block:
                    uri = crawled.plain(record.rec_headers.get_header("WARC-Target-URI"))
                    left_out[uri] = block.partition("leftOutOfRequest: ")[2].splitlines()[0]
    assert left_out[f"http://{HOST}/part"] == left_out[f"http://{HOST}/"] == "Cookie"
    assert set(left_out[f"http://{HOST}/api"].split(", ")) == {"Authorization", "Cookie"}


def test_what_may_not_be_fetched_is_refused_and_logged_once(tmp_path: Path) -> None:
    site = web(**{"/": page(["/2"]), "/2": page([])})
    site[HOST, "/robots.txt"] = Page(b"User-agent: *\nDisallow: /private", "text/plain")
    with serve(site) as port:
        steps = ["/private/x", f"http://10.1.2.3:{port}/", "/bad extension.zip".replace(" ", ""), "/private/x"]
        browser = PlainBrowser({"/": steps, "/2": steps})
        crawled.crawl(tmp_path, job(port, extensions=("zip",)), browser.use)
    assert site.asked.keys() == {f"{HOST}{path}" for path in ("/", "/2", "/robots.txt")}
    assert {status for url, status, _ in browser.seen if url.rpartition("/")[2] in ("x", "", "badextension.zip")
            and url not in browser.opened} == {403}  # fmt: skip
    counts = Counter(
        (crawled.plain(line.uri), line.status) for line in crawled.lines(tmp_path) if (line.status or 0) < 0
    )
    assert counts == {(f"http://{HOST}/private/x", -9998): 1, ("http://10.1.2.3/", -5002): 1}


def test_what_no_server_has_answered_is_tried_by_the_crawl(tmp_path: Path) -> None:
    """A part that scripts alone ask for, and one that the page names: each is cut off once."""

    class Failing(CountedWeb):
        def get(self, key: tuple[str, str], default: Any = None) -> Any:  # type: ignore[override]
            found = super().get(key, default)
            return Page(b"", status=0) if key[1].startswith("/late") and self.asked["".join(key)] == 1 else found

    site = Failing(web("/late-by-script", "/late-part", **{"/": page([], "/late-part")}))
    crawl(tmp_path, site, PlainBrowser({"/": ["/late-by-script", "/late-part"]}))
    lines = Counter((crawled.plain(line.uri), line.status, line.hops) for line in crawled.lines(tmp_path))
    for path in ("/late-by-script", "/late-part"):
        assert site.asked[f"{HOST}{path}"] == 2
        assert lines[f"http://{HOST}{path}", 200, "E"] == 1
    assert crawled.unbalanced(tmp_path) == []


def test_a_request_with_a_body_is_recorded_each_time_and_is_no_visit_of_its_uri(tmp_path: Path) -> None:
    site = web("/form", **{"/": page(["/form"])})
    browser = PlainBrowser({"/": [Asks("/form", "POST", b"q=1"), Asks("/form", "POST", b"q=1")]})
    crawl(tmp_path, site, browser)
    statuses = [line.status for line in crawled.lines(tmp_path) if line.uri.endswith("/form")]
    assert statuses == [501, 501, 200]  # this server knows no POST
    requests = []
    for path in crawled.warcs(tmp_path):
        with path.open("rb") as stream:
            requests += [
                (record.http_headers.protocol, record.content_stream().read()) for record in ArchiveIterator(stream)
                if record.rec_type == "request" and record.rec_headers.get_header("WARC-Target-URI").endswith("/form")
            ]  # fmt: skip
    assert sorted(requests) == [("GET", b""), ("POST", b"q=1"), ("POST", b"q=1")]


def test_a_socket_is_refused_and_noted(tmp_path: Path) -> None:
    site = web()
    upgrade = (("Connection", "Upgrade"), ("Upgrade", "websocket"))
    browser = PlainBrowser({"/": [Asks("/socket", headers=upgrade)]})
    crawl(tmp_path, site, browser)
    assert notes(tmp_path) == ("render:webSocket",)
    assert f"{HOST}/socket" not in site.asked


@pytest.mark.parametrize(
    ("limits", "why"), [({"requests": 3}, "requests"), ({"bytes": 100}, "bytes")], ids=["requests", "bytes"]
)
def test_a_page_that_takes_too_much_is_given_up_and_its_plain_links_count(
    tmp_path: Path, limits: dict[str, int], why: str
) -> None:
    site = web(*(f"/{n}{'x' * 40}" for n in range(9)), **{"/": page(["/next"]), "/next": Page(b"", "text/plain")})
    browser = PlainBrowser({"/": [f"/{n}{'x' * 40}" for n in range(9)]})
    crawl(tmp_path, site, browser, render=replace(PAGES, **limits))
    assert notes(tmp_path) == (f"render:failed:{why}",)
    assert f"{HOST}/next" in site.asked
    assert len(site.asked) < 8
    asked_once(site, tmp_path)
    assert not [uri for kind, uri in crawled.records(crawled.warcs(tmp_path)) if kind == "resource"]
    errors = (tmp_path / "output/logs/news" / crawled.LAUNCH.id / "nonfatal-errors.log").read_text()
    assert "not rendered: more than" in errors


def test_a_render_that_fails_costs_the_render_alone(tmp_path: Path) -> None:
    site = web("/a", **{"/": page(["/a"])})
    browser = PlainBrowser(result=RenderFailed("crashed"))
    crawl(tmp_path, site, browser)
    assert notes(tmp_path) == ("render:failed:crashed",)
    asked_once(site, tmp_path)


def test_the_dom_and_the_picture_are_records_that_are_no_captures_and_its_links_count(tmp_path: Path) -> None:
    site = web("/by-script", **{"/": page([])})
    browser = PlainBrowser(dom=b'<title>then</title><a href="/by-script">x</a>')
    port = crawl(tmp_path, site, browser, render=replace(PAGES, screenshot=True))
    asked_once(site, tmp_path)
    assert f"{HOST}/by-script" in site.asked
    found = [uri for kind, uri in crawled.records(crawled.warcs(tmp_path)) if kind == "resource"]
    assert found == [f"urn:dom:http://{HOST}:{port}/", f"urn:view:http://{HOST}:{port}/"]
    text = crawled.metadata(crawled.warcs(tmp_path)[0])[f"http://{HOST}:{port}/"]
    assert f"outlink: http://{HOST}:{port}/by-script L" in text


@pytest.mark.parametrize(("which", "rendered"), [("never", set()), ("seeds", {"/new"}), ("pages", {"/new", "/a"})])
def test_which_pages_are_rendered(tmp_path: Path, which: str, rendered: set[str]) -> None:
    """A seed that redirects, a page that it links to, a picture, a page that is not there."""
    site = web("/t", **{"/new": page(["/a", "/t", "/none"]), "/a": page([])})
    site[HOST, "/"] = Page(b"/new", status=301)
    browser = PlainBrowser()
    crawl(tmp_path, site, browser, render=replace(PAGES, which=which))
    assert {"/" + url.split("/", 3)[3] for url in browser.opened} == rendered


def test_a_uri_may_ask_for_it_with_a_script_whose_value_goes_to_who_hears(tmp_path: Path) -> None:
    """`fetch.render` in the payload of a URI of a job that renders nothing by itself."""
    site = web("/plain.png", **{"/studio": page([])})
    browser = PlainBrowser({"/studio": [Asks("/plain.png", headers=(("Sec-Fetch-Dest", "image"),))]})
    heard: dict[str, RenderedPage | None] = {}

    async def scenario(port: int) -> None:
        running = await open_launch(crawled.places(tmp_path), job(port, render=RenderSettings()), crawled.LAUNCH)
        browser.use(running)
        hear = running.books.hear

        def also(entry: BookEntry, kept: Kept) -> None:
            heard[crawled.plain(entry.uri.uri)] = entry.rendered
            hear(entry, kept)

        running.books.hear = also
        options = '{"script": "1 + 1", "run_at": "start", "width": 320, "height": 200, "images": false}'
        uri = make(f"http://{HOST}:{port}/studio", payload='{"fetch": {"render": %s}}' % options)  # noqa: UP031 braces
        await running.books.frontier.offer([uri])
        await running.close(await running.crawl())

    with serve(site) as port:
        asyncio.run(scenario(port))
    (wishes,) = browser.opened.values()
    assert (wishes.script, wishes.run_at, wishes.width, wishes.height) == ("1 + 1", "start", 320, 200)
    rendered = heard.pop(f"http://{HOST}/studio")
    assert rendered == RenderedPage(b"<p>done</p>", f"http://{HOST}:{port}/studio", None, "1 + 1", ("noImages",))
    assert set(heard.values()) == {None}
    assert f"{HOST}/plain.png" not in site.asked
    assert "renderScriptValue: 1 + 1" in crawled.metadata(crawled.warcs(tmp_path)[0])[f"http://{HOST}:{port}/studio"]


@pytest.mark.parametrize(
    "render",
    ['"yes"', '{"scripts": ""}', '{"script": 1}', '{"run_at": "then"}', '{"width": -1}', '{"height": 1e9}',
     '{"images": 1}', '{"width": true}'],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused_by_name(render: str) -> None:
    with pytest.raises(BadInput, match="render"):
        read_fetch('{"fetch": {"render": %s}}' % render)  # noqa: UP031 braces
    assert read_fetch('{"fetch": {"render": true}}') == FetchOptions(render=RenderOptions())
    assert read_fetch('{"fetch": {"render": false}}') == FetchOptions()


def test_a_visit_that_is_given_back_goes_on_without_its_render(tmp_path: Path) -> None:
    """The crawl is stopped at once while a page is open: nothing of it is fetched again by the next launch."""
    site = web("/a")
    browser = PlainBrowser({"/": ["/a"]})

    async def scenario(port: int) -> None:
        browser.hold = asyncio.Event()
        running = await open_launch(crawled.places(tmp_path), job(port), crawled.LAUNCH)
        browser.use(running)
        crawl = asyncio.create_task(running.crawl())
        while not browser.seen[1:]:
            await asyncio.sleep(0.01)
        running.spider.hurry()
        await running.close(await crawl)

    with serve(site) as port:
        asyncio.run(scenario(port))
    assert notes(tmp_path) == ("render:failed:stopped",)
    asked_once(site, tmp_path)


def test_a_visit_that_is_given_back_when_its_page_is_closed_gives_up_what_still_comes(tmp_path: Path) -> None:
    """The page is there, and a part of it, which nobody waits for, is not: the page is kept, and the part waits."""
    answered = threading.Event()

    class Slow(CountedWeb):
        def get(self, key: tuple[str, str], default: Any = None) -> Any:  # type: ignore[override]
            found = super().get(key, default)
            if key[1] == "/slow":
                answered.wait(60)
            return found

    class Hasty(PlainBrowser):
        async def open(self, url: str, proxy: PageProxy, wishes: Wishes, *, alone: bool = False) -> Result:
            _, writer = await asyncio.open_connection(LOOPBACK, proxy.port)
            writer.write(f"GET {url}slow HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
            while not site.asked[f"{HOST}/slow"]:
                await asyncio.sleep(0.01)
            writer.close()
            return await super().open(url, proxy, wishes, alone=alone)

    async def scenario(port: int) -> None:
        running = await open_launch(crawled.places(tmp_path), job(port), crawled.LAUNCH)
        browser.use(running)
        crawl = asyncio.create_task(running.crawl())
        while not browser.seen:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)  # until the page is closed
        running.spider.hurry()
        await running.close(await crawl)

    site, browser = Slow(web("/slow")), Hasty()
    with serve(site) as port:
        asyncio.run(scenario(port))
        answered.set()
        assert notes(tmp_path) == ()
        crawled.crawl(tmp_path, job(port), browser.use)
    assert site.asked == {f"{HOST}{path}": times for path, times in (("/robots.txt", 1), ("/", 1), ("/slow", 2))}
    assert [line.status for line in crawled.lines(tmp_path) if line.uri.endswith("/slow")] == [200]
    assert crawled.unbalanced(tmp_path) == []


def test_a_disk_that_is_full_while_a_page_is_open_stops_the_crawl_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it stops the crawl without a browser: the books name the disk. With room again the crawl goes on: what they
    have is asked for by nobody again."""
    browser = PlainBrowser({"/": ["/a", ["/b", "/late"]], "/2": ["/b"]})
    full = tmp_path / "full"
    pwrite, write = os.pwrite, os.write

    def failing(real: Callable[..., int]) -> Callable[..., int]:
        def call(*args: Any) -> int:
            if full.exists():
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(*args)

        return call

    def logged() -> set[str]:
        return {crawled.plain(line.uri) for line in crawled.lines(tmp_path)}

    class Filling(CountedWeb):
        def get(self, key: tuple[str, str], default: Any = None) -> Any:  # type: ignore[override]
            if key[1] == "/late" and not self.asked[f"{HOST}/late"]:
                while f"http://{HOST}/a" not in logged():
                    time.sleep(0.01)
                full.touch()
            return super().get(key, default)

    async def stopped(port: int) -> None:
        running = await open_launch(crawled.places(tmp_path), job(port), crawled.LAUNCH)
        browser.use(running)
        with pytest.raises(Unavailable, match=os.strerror(errno.ENOSPC)):
            await running.crawl()
        await running.abandon()

    site = Filling(web("/a", "/b", "/late", **{"/": page(["/2"]), "/2": page([], "/a")}))
    monkeypatch.setattr(os, "pwrite", failing(pwrite))
    monkeypatch.setattr(os, "write", failing(write))
    with serve(site) as port:
        asyncio.run(stopped(port))
        full.unlink()
        assert f"http://{HOST}/late" not in logged()
        crawled.crawl(tmp_path, job(port), browser.use)
    assert {name for name, times in site.asked.items() if times > 1} <= {
        f"{HOST}{path}" for path in ("/", "/b", "/late")
    }
    assert crawled.unbalanced(tmp_path) == []
    lines = Counter(crawled.plain(line.uri) for line in crawled.lines(tmp_path) if not line.uri.startswith("dns:"))
    assert lines == dict.fromkeys(
        (f"http://{HOST}{path}" for path in ("/", "/robots.txt", "/a", "/b", "/late", "/2")), 1
    )


class DyingBrowser(PlainBrowser):
    """A browser that ends as soon as a page has asked for all its steps, the first `deaths` times."""

    def __init__(self, steps: dict[str, list[str]], deaths: int) -> None:
        super().__init__(steps)
        self.deaths, self.attempts = deaths, list[bool]()

    async def open(self, url: str, proxy: PageProxy, wishes: Wishes, *, alone: bool = False) -> Result:
        self.attempts.append(alone)
        found = await super().open(url, proxy, wishes, alone=alone)
        return found if len(self.attempts) > self.deaths else RenderFailed(BROWSER_ENDED)


@pytest.mark.parametrize(("deaths", "left"), [(3, ()), (4, (f"render:failed:{BROWSER_ENDED}",))])
def test_a_page_whose_browser_ends_is_opened_anew_and_nothing_is_asked_twice(
    deaths: int, left: tuple[str, ...], tmp_path: Path
) -> None:
    """Its limit of requests counts from the beginning each time."""
    site = web("/a", "/b")
    browser = DyingBrowser({"/": ["/a", "/b"]}, deaths)
    crawl(tmp_path, site, browser, render=replace(PAGES, requests=4))
    assert browser.attempts == [False, False, False, True]
    asked_once(site, tmp_path)
    assert notes(tmp_path) == left


def test_a_browser_that_does_not_start_ends_the_crawl_and_the_next_one_has_the_page(tmp_path: Path) -> None:
    class Absent(PlainBrowser):
        async def open(self, url: str, proxy: PageProxy, wishes: Wishes, *, alone: bool = False) -> Result:
            raise Unavailable("/usr/bin/chromium", "it ends as soon as it is started")

    async def stopped(port: int) -> None:
        running = await open_launch(crawled.places(tmp_path), job(port), crawled.LAUNCH)
        Absent().use(running)
        with pytest.raises(Unavailable, match="/usr/bin/chromium is unavailable: it ends as soon"):
            await running.crawl()
        await running.abandon()

    site = web(**{"/": page(["/2"]), "/2": page([])})
    with serve(site) as port:
        asyncio.run(stopped(port))
        assert f"{HOST}/2" not in site.asked
        crawled.crawl(tmp_path, job(port), PlainBrowser().use)
    assert (notes(tmp_path), notes(tmp_path, "/2")) == ((), ())
    assert crawled.unbalanced(tmp_path) == []


@pytest.mark.parametrize("again", [False, True], ids=["once", "twice"])
def test_the_launch_that_continues_recalls_what_a_page_had_asked_for(again: bool, tmp_path: Path) -> None:
    """The page of a launch that broke off was open: what it had is neither asked for twice nor lost."""

    class Absent(PlainBrowser):
        async def open(self, url: str, proxy: PageProxy, wishes: Wishes, *, alone: bool = False) -> Result:
            await super().open(url, proxy, wishes, alone=alone)
            raise Unavailable("/usr/bin/chromium", "it ends as soon as it is started")

    async def broke_off(port: int, launch: Launch, resume: Checkpoint | None) -> Checkpoint | None:
        running = await open_launch(crawled.places(tmp_path), job(port), launch, resume)
        Absent({"/": ["/a", "/b"]}).use(running)
        with pytest.raises(Unavailable):
            await running.crawl()
        await running.abandon()
        running = await open_launch(crawled.places(tmp_path), job(port), launch, resume)  # as `put_in_order` does
        await running.checkpoint()
        await running.close(End.STOPPED)
        return checkpoint.newest(running.folders.checkpoints, launch).checkpoint

    async def whole(port: int, launch: Launch, resume: Checkpoint | None) -> None:
        running = await open_launch(crawled.places(tmp_path), job(port), launch, resume)
        browser.use(running)
        await running.close(await running.crawl())

    launches = [Launch("news", f"202611220818{number}") for number in (44, 45, 46)]
    site, browser = web("/a", "/b", "/c"), PlainBrowser({"/": ["/a", "/b", "/c"]})
    with serve(site) as port:
        resume = asyncio.run(broke_off(port, launches[0], None))
        if again:
            resume = asyncio.run(broke_off(port, launches[1], resume))
        asyncio.run(whole(port, launches[2], resume))
    assert {name: times for name, times in site.asked.items() if times > 1} == {f"{HOST}/": 2 + again}
    answers = {url.rpartition("/")[2]: status for url, status, _ in browser.seen}
    assert answers == dict.fromkeys(("", "a", "b", "c"), 200)


def test_the_host_of_a_page_rests_once_it_has_all_its_parts(tmp_path: Path) -> None:
    """Parts are asked for at once; the next page waits for its host, and a page on another host that was asked too."""
    site = web("/a", "/b", **{"/": page(["/2"]), "/2": page([])})
    browser = PlainBrowser({"/": ["/a", "/b"]})
    polite = Politeness(0.0, 0.6, 0.6, 0.0)
    crawl(tmp_path, site, browser, politeness=polite, no_delay=False, robots=False)
    times = {crawled.plain(line.uri): _began(line.fetched) for line in crawled.lines(tmp_path) if line.fetched}
    first, a, b, second = (times[f"http://{HOST}{path}"] for path in ("/", "/a", "/b", "/2"))
    assert b - first < 0.5
    assert second - max(a, b) >= 0.6


def _began(text: str) -> float:
    return float(text[:14]) + float(text[14:17]) / 1000
