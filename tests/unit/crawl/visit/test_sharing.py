"""Requests that are answered by what their equals got, and those that the site is asked for once more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from crawls import crawled
from crawls.plain_browser import Asks, PlainBrowser
from msgspec.structs import replace
from sites import scripted_site
from sites.scripted_site import HOST, ScriptedSite

from warcmill.crawl.fetch.answer import AnswerSpool, HeaderFields
from warcmill.crawl.fetch.exchange import Exchange
from warcmill.crawl.fetch.http import ACCEPT
from warcmill.crawl.render import PageRequest, RenderSettings
from warcmill.crawl.visit import page_requests
from warcmill.crawl.visit.sharing import PageGet

URL = f"http://{HOST}/list"
Pairs = tuple[tuple[str, str], ...]
PAGE = (("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"),)
IFRAME: Pairs = (*PAGE, ("Sec-Fetch-Dest", "iframe"))
FETCH: Pairs = (("Accept", "*/*"), ("Sec-Fetch-Dest", "empty"))
SCRIPT: Pairs = (("Accept", "*/*"), ("Sec-Fetch-Dest", "script"))
PLAIN: Pairs = (("Accept", "*/*"),)  # of a script, or of what a script asks for: a site without TLS is not told
CRAWL: Pairs = (("Host", HOST), ("User-Agent", "us"), ("Accept", ACCEPT), ("Accept-Encoding", "gzip"))
ONE, TWO = (("Cookie", "a=1"),), (("Cookie", "a=1; b=2"),)


def takes(sent: Pairs, asked: Pairs, status: int, fields: Pairs, tmp_path: Path) -> bool:
    """True if the answer with these fields to one request answers another."""
    head = "".join(f"{name}: {value}\r\n" for name, value in sent)
    kind = dict(fields).get("content-type", "text/html")
    spool = AnswerSpool(tmp_path)
    answer = Exchange(
        URL, "GET", "", datetime.now(UTC), 0, f"GET /list HTTP/1.1\r\n{head}\r\n".encode(), spool, status,
        HeaderFields(list(fields)), kind, 0, (), 0, "", "",
    )  # fmt: skip
    try:
        return PageGet(PageRequest("GET", URL, asked), asked, "en").takes(answer)
    finally:
        answer.close()


def vary(names: str) -> Pairs:
    return (("vary", names),)


JS = (("content-type", "text/javascript"),)
CASES: dict[str, tuple[Pairs, Pairs, int, Pairs, bool]] = {
    "the same": (FETCH, FETCH, 200, (), True),
    "a frame that the crawl has": (CRAWL, IFRAME, 200, (), True),
    "a script's fetch of a page that the crawl has": (CRAWL, FETCH, 200, (), False),
    "another Accept": (FETCH, (("Accept", "application/json"), *FETCH[1:]), 200, (), False),
    "a field of a script": (FETCH, (*FETCH, ("X-Page", "2")), 200, (), False),
    "a field of a script before": ((*FETCH, ("X-Page", "2")), FETCH, 200, (), False),
    "the same field": ((*FETCH, ("X-Page", "2")), (*FETCH, ("x-page", "2")), 200, (), True),
    "a type of a script's": (FETCH, (*FETCH, ("Content-Type", "application/json")), 200, (), False),
    "a language of a script's": (FETCH, (*FETCH, ("Accept-Language", "de")), 200, (), False),
    "the browser's language": (FETCH, (*FETCH, ("Accept-Language", "en")), 200, (), True),
    "Authorization": (FETCH, (*FETCH, ("Authorization", "Bearer x")), 200, (), False),
    "another cookie": ((*FETCH, *ONE), (*FETCH, *TWO), 200, (), False),
    "cookies in another order": ((*FETCH, *TWO), (*FETCH, ("Cookie", "b=2; a=1")), 200, (), True),
    "Referer, Sec-*, User-Agent": (
        FETCH, (*FETCH, ("Referer", URL), ("User-Agent", "x"), ("Sec-CH-UA", "y"), ("Sec-Fetch-Site", "none")),
        200, vary("Referer, User-Agent, Sec-CH-UA, Sec-Fetch-Site, Accept-Encoding"), True,
    ),
    "a script, another cookie": ((*SCRIPT, *ONE), (*SCRIPT, *TWO), 200, (), True),
    "a script that varies by cookie": ((*SCRIPT, *ONE), (*SCRIPT, *TWO), 200, vary("Cookie"), False),
    "a script that the crawl has": (CRAWL, SCRIPT, 200, (), True),
    "a script that varies by Accept": (CRAWL, SCRIPT, 200, vary("Accept-Encoding, ACCEPT"), False),
    "a script that varies by all": (SCRIPT, SCRIPT, 200, vary("*"), False),
    "without TLS, a script": ((*PLAIN, *ONE), (*PLAIN, *TWO), 200, JS, True),
    "without TLS, data": ((*PLAIN, *ONE), (*PLAIN, *TWO), 200, (("content-type", "application/json"),), False),
    "without TLS, a field of a script": (PLAIN, (*PLAIN, ("X-Page", "2")), 200, JS, False),
    "a range": (FETCH, (*FETCH, ("Range", "bytes=0-3")), 206, (), False),
    "the whole after a range": ((*SCRIPT, ("Range", "bytes=0-3")), SCRIPT, 206, (), False),
    "the same range": ((*FETCH, ("Range", "bytes=0-3")), (*FETCH, ("Range", "bytes=0-3")), 206, (), True),
    "a picture that redirected without a cookie": (SCRIPT, (*SCRIPT, *ONE), 302, (), False),
    "not there": (FETCH, FETCH, 404, (), True),
    "gone": (FETCH, FETCH, 410, (), True),
    "forbidden": (SCRIPT, SCRIPT, 403, (), False),
    "busy": (SCRIPT, SCRIPT, 503, (), False),
    "not to be stored": (SCRIPT, SCRIPT, 200, (("cache-control", "private, No-Store"),), False),
    "a reload": (FETCH, (*FETCH, ("Cache-Control", "max-age=0")), 200, (), False),
    "fetched past caches": (FETCH, (*FETCH, ("Pragma", "no-cache"), ("Cache-Control", "no-cache")), 200, (), False),
    "for a script of another site": (CRAWL, (*SCRIPT, ("Origin", "http://b.example")), 200, (), False),
    "for scripts of all sites": (
        CRAWL, (*SCRIPT, ("Origin", "http://b.example")), 200, (("access-control-allow-origin", "*"),), True,
    ),
    "a font of its own site": (CRAWL, (*SCRIPT, ("Origin", f"http://{HOST}")), 200, (), True),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_answer_is_for_its_equals_alone(name: str, tmp_path: Path) -> None:
    sent, asked, status, fields, expected = CASES[name]
    assert takes(sent, asked, status, fields, tmp_path) is expected


@pytest.fixture
def site() -> Iterator[ScriptedSite]:
    with scripted_site.serve() as served:
        served.pages |= {"/": ('<a href="/2">2</a>', "text/html"), "/2": ("two", "text/html")}
        yield served


def crawl(folder: Path, site: ScriptedSite, steps: dict[str, list[Any]], **more: Any) -> PlainBrowser:
    browser = PlainBrowser(steps)
    job = crawled.job(site.port, HOST, render=RenderSettings(which="pages", sandbox=False))
    crawled.crawl(folder, replace(job, resolve={HOST: ("127.0.0.1",)}, **more), browser.use)
    assert crawled.unbalanced(folder) == []
    return browser


def bodies(browser: PlainBrowser, path: str) -> list[str]:
    return [body.decode() for url, _, body in browser.seen if crawled.plain(url) == f"http://{HOST}{path}"]


def captures(folder: Path, path: str) -> int:
    """How many lines, and records, there are of a path."""
    return sum(crawled.plain(line.uri) == f"http://{HOST}{path}" for line in crawled.lines(folder))


def answers(
    body: Callable[[BaseHTTPRequestHandler], str], *more: tuple[str, str], status: int = 200, kind: str = "text/plain"
) -> Callable[[BaseHTTPRequestHandler], None]:
    """Answer with what a function makes of the request."""

    def act(handler: BaseHTTPRequestHandler) -> None:
        raw = body(handler).encode()
        handler.send_response(status)
        for name, value in (*more, ("Content-Type", kind), ("Content-Length", str(len(raw)))):
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(raw)

    return act


def test_one_url_with_other_fields_is_asked_for_once_a_launch_by_each(site: ScriptedSite, tmp_path: Path) -> None:
    site.acts["/list"] = answers(lambda handler: handler.headers["X-Page"])
    wanted = [Asks("/list", headers=(("X-Page", str(number)),)) for number in (1, 2, 3)]
    browser = crawl(tmp_path, site, {"/": [*wanted, wanted], "/2": [wanted]})
    assert Counter(bodies(browser, "/list")) == {"1": 3, "2": 3, "3": 3}
    assert site.asked[f"GET {HOST}/list"] == captures(tmp_path, "/list") == 3


def test_a_page_that_is_reloaded_or_asks_for_itself_is_asked_for_again(site: ScriptedSite, tmp_path: Path) -> None:
    """As one behind a script that checks its visitor: the visit continues, and its page is crawled once."""
    times = Counter[str]()

    def number(handler: BaseHTTPRequestHandler) -> str:
        times[handler.path] += 1
        return str(times[handler.path])

    site.acts["/2"] = answers(number, kind="text/html")
    frame, reload = ("Sec-Fetch-Dest", "document"), ("Cache-Control", "max-age=0")
    steps = [Asks("/2", headers=(frame, reload)), Asks("/2", headers=(frame,)), Asks("/2", headers=FETCH)]
    browser = crawl(tmp_path, site, {"/2": steps})
    assert bodies(browser, "/2") == ["1", "2", "3", "4"]
    lines = [(line.hops, line.annotations) for line in crawled.lines(tmp_path) if line.uri.endswith("/2")]
    assert lines == [("L", ()), ("L", ()), ("LE", ()), ("L", ())]
    assert len([uri for kind, uri in crawled.records(crawled.warcs(tmp_path)) if uri.startswith("urn:dom:")]) == 2


def test_a_script_that_is_sent_for_a_session_and_back_gets_its_answer(site: ScriptedSite, tmp_path: Path) -> None:
    def bounce(handler: BaseHTTPRequestHandler) -> None:
        if "session=1" in handler.headers.get("Cookie", ""):
            answers(lambda _: "the data")(handler)
        else:
            answers(lambda _: "", ("Location", "/session"), status=302)(handler)

    site.acts["/data"] = bounce
    site.acts["/session"] = answers(lambda _: "", ("Location", "/data"), ("Set-Cookie", "session=1"), status=302)
    browser = crawl(tmp_path, site, {"/": ["/data", "/session", "/data", "/data"]})
    assert bodies(browser, "/data") == ["", "the data", "the data"]
    assert site.asked[f"GET {HOST}/data"] == captures(tmp_path, "/data")  # the crawl follows the redirects, too


def test_recorded_errors_are_asked_for_again_but_for_what_is_not_there(site: ScriptedSite, tmp_path: Path) -> None:
    site.acts["/busy"] = answers(lambda _: "", status=503)
    browser = crawl(tmp_path, site, {"/": ["/busy", "/none"], "/2": ["/busy", "/none"]})
    assert bodies(browser, "/none") == ["none", "none"]
    assert {path: site.asked[f"GET {HOST}{path}"] for path in ("/busy", "/none")} == {"/busy": 2, "/none": 1}


def test_one_url_is_asked_for_so_many_times_by_a_page(
    site: ScriptedSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest is refused and named; the page is there, and what else it asks for."""
    monkeypatch.setattr(page_requests, "TIMES", 3)
    site.acts["/list"] = answers(lambda handler: handler.headers["X-Page"])
    steps = [[Asks("/list", headers=(("X-Page", str(number)),)) for number in range(20)], "/data.json"]
    browser = crawl(tmp_path, site, {"/": steps})
    assert Counter(status for url, status, _ in browser.seen if url.endswith("/list")) == {200: 3, 403: 17}
    assert site.asked[f"GET {HOST}/list"] == captures(tmp_path, "/list") == 3
    assert site.asked[f"GET {HOST}/data.json"] == 1
    (line,) = [line for line in crawled.lines(tmp_path) if crawled.plain(line.uri) == f"http://{HOST}/"]
    assert line.annotations == ("render:repeats",)
