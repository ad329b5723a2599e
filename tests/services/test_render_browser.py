"""The browser of a launch, a real Chromium, behind a proxy whose answers are made up: what it asks for, and returns."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from storing import nobody

from servers import packages
from warcmill.crawl.extract import html
from warcmill.crawl.render import (
    Answer,
    Answerer,
    Behavior,
    BrowserSettings,
    Fields,
    PageRequest,
    Refused,
    RenderedPage,
    RenderFailed,
    Result,
    Wishes,
    anew,
    check_browser,
)  # fmt: skip
from warcmill.crawl.render import browser as browsers
from warcmill.crawl.render import page as opened_page
from warcmill.crawl.render.browser import Browser
from warcmill.crawl.render.proxy import LOOPBACK, SERVICE_WORKER, Proxy, ProxyKeys
from warcmill.errors import BadConfig, Unavailable
from warcmill.formats.text.extract import html_document

AS_ROOT = BrowserSettings(user_agent="Mozilla/5.0 (compatible; warcmill)", sandbox=bool(os.geteuid()))
HTML = (("content-type", "text/html; charset=utf-8"),)
PLAIN = Wishes()
SECONDS = 300.0  # for what takes a blink of an eye on an idle machine
URL = "http://a.example/"


class Site:
    """An answerer that has pages, and keeps what it is asked."""

    def __init__(self, **pages: str | bytes | tuple[Fields, str | bytes]) -> None:
        self.pages: dict[str, str | bytes | tuple[Fields, str | bytes]] = {"/": "", **pages}
        self.asked: list[PageRequest] = []
        self.closed = 0

    def page(self, path: str, what: str | bytes, *fields: tuple[str, str]) -> Site:
        self.pages[path] = (fields, what) if fields else what
        return self

    @property
    def urls(self) -> list[str]:
        return [request.url for request in self.asked]

    async def __call__(self, request: PageRequest) -> Answer | Refused:
        self.asked.append(request)
        path = "/" + request.url.split("/", 3)[3].partition("?")[0]
        if request.is_socket:
            return Refused("socket")
        if path not in self.pages:
            return Answer(404, HTML, [b""], self._close)
        found = self.pages[path]
        fields, body = found if isinstance(found, tuple) else (self._fields(path), found)
        status = 302 if any(name == "location" for name, _ in fields) else 200
        return Answer(status, fields, [body.encode() if isinstance(body, str) else body], self._close)

    def _fields(self, path: str) -> Fields:
        kinds = {"js": "text/javascript", "css": "text/css", "png": "image/png", "json": "application/json"}
        return (("content-type", kinds.get(path.rpartition(".")[2], HTML[0][1])),)

    def _close(self) -> None:
        self.closed += 1


@pytest.fixture(scope="module", autouse=True)
def chromium() -> Path:
    return packages.program("chromium", "chromium")


@asynccontextmanager
async def opened(settings: BrowserSettings = AS_ROOT) -> AsyncIterator[tuple[Browser, Proxy]]:
    keys = ProxyKeys()
    browser = Browser(settings, keys)
    try:
        yield browser, Proxy(keys, settings.user_agent)
    finally:
        await browser.close()
        assert mine() == [], "a process is left"
        assert [*Path(tempfile.gettempdir()).glob(f"{browsers._FOLDER}{os.getpid()}.*")] == []


def mine() -> list[int]:
    """The processes of Chromium below this one."""
    return [*_pids("/chromium")]


def _pids(what: str, top: int = 0) -> Iterator[int]:
    """The processes below one whose words have this in them."""
    found = subprocess.run(["ps", "-wweo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    lines = [line.split(None, 2) for line in found.splitlines()]
    below = {top or os.getpid()}
    for _ in range(8):
        below |= {int(pid) for pid, parent, *_ in lines if int(parent) in below}
    return (int(pid) for pid, _, *args in lines if int(pid) in below and args and what in args[0])


def render(
    site: Answerer,
    url: str = URL,
    wishes: Wishes = PLAIN,
    *,
    images: bool = True,
) -> RenderedPage | RenderFailed:
    async def whole() -> RenderedPage | RenderFailed:
        async with opened() as (browser, proxy), proxy.page(site, images=images) as page:
            return await browser.open(url, page, wishes)

    return asyncio.run(asyncio.wait_for(whole(), SECONDS))


def rendered(site: Answerer, url: str = URL, wishes: Wishes = PLAIN) -> RenderedPage:
    found = render(site, url, wishes)
    assert isinstance(found, RenderedPage), found
    return found


def rendered_at_once(pages: Mapping[str, tuple[Answerer, Wishes]]) -> dict[str, RenderedPage | RenderFailed]:
    """Some pages, by name, in one browser: each has its answerer and its wishes."""

    async def one(browser: Browser, proxy: Proxy, site: Answerer, wishes: Wishes) -> RenderedPage | RenderFailed:
        async with proxy.page(site) as page:
            return await browser.open(URL, page, wishes)

    async def whole() -> list[RenderedPage | RenderFailed]:
        async with opened() as (browser, proxy):
            return await asyncio.gather(*(one(browser, proxy, *page) for page in pages.values()))

    return dict(zip(pages, asyncio.run(asyncio.wait_for(whole(), SECONDS)), strict=True))


def failed(site: Answerer, wishes: Wishes) -> RenderFailed:
    found = render(site, URL, wishes)
    assert isinstance(found, RenderFailed), found
    return found


def test_a_page_made_by_scripts_is_returned_with_all_that_it_asked_for() -> None:
    site = Site().page(
        "/",
        """<!DOCTYPE html><link rel=stylesheet href=/a.css><img src=/i.png><iframe src=/frame></iframe>
        <script src=/a.js></script>""",
    )
    site.page("/a.js", "fetch('/d.json').then(r => r.json()).then(d => { document.title = d.title })")
    site.page("/d.json", '{"title": "made by a script"}').page("/a.css", "body { background: url(/b.png) }")
    site.page("/frame", "<script>new Worker('/w.js')</script>").page("/w.js", "fetch('/from-worker')")
    found = rendered(site)
    assert found.dom.startswith(b"<!DOCTYPE html>\n<html>")
    assert b"<title>made by a script</title>" in found.dom
    assert found.final_url == URL
    paths = {url.removeprefix(URL) for url in site.urls}
    assert {"", "a.js", "d.json", "a.css", "b.png", "i.png", "frame", "w.js", "from-worker"} <= paths
    assert len(site.urls) == len(set(site.urls)), "one was asked for twice"
    assert [one.url for one in site.asked if one.is_frame] == [URL, f"{URL}frame"]
    assert {one.header("user-agent") for one in site.asked} == {AS_ROOT.user_agent}
    assert site.closed == len(site.asked)


def test_by_tls_it_is_the_same() -> None:
    site = Site().page("/", "<img src=/i.png><iframe src=https://b.example:8443/frame></iframe>")
    found = rendered(site, "https://a.example/")
    assert found.final_url == "https://a.example/"
    assert {"https://a.example/", "https://a.example/i.png", "https://b.example:8443/frame"} <= set(site.urls)


def test_what_stands_below_is_loaded_as_well() -> None:
    site = Site().page("/", "<div style='height: 30000px'></div><img loading=lazy src=/lazy.png>")
    rendered(site)
    assert f"{URL}lazy.png" in site.urls


ENDLESS = """<style>.p { height: 700px }</style><div id=box><div id=list></div><div id=end>.</div></div><script>
let n = 0, busy = false;
async function more() {
  if (busy || n >= 6) return;
  busy = true;
  const number = await (await fetch('/batch' + n++)).text();
  list.insertAdjacentHTML('beforeend', `<div class=p><a href="/post/${number}">x</a></div>`.repeat(3));
  busy = false;
}
%s</script>"""
ENDS = {
    "observer": "new IntersectionObserver(all => { if (all.some(one => one.isIntersecting)) more() }).observe(end)",
    "events": "onscroll = () => { if (scrollY + innerHeight > document.body.scrollHeight - 50) more() }; more()",
    "box": """document.body.style = 'margin: 0; height: 100vh; overflow: hidden';
        box.style = 'height: 100vh; overflow: auto';
        box.onscroll = () => { if (box.scrollTop + box.clientHeight > box.scrollHeight - 50) more() };
        more().then(more)""",
}


def test_a_list_is_scrolled_until_nothing_comes() -> None:
    """Each batch takes its time, and is waited for."""

    def slow(end: str) -> Answerer:
        site = Site().page("/", ENDLESS % end)
        for n in range(6):
            site.page(f"/batch{n}", str(n))

        async def answer(request: PageRequest) -> Answer | Refused:
            await asyncio.sleep(0.6 if "/batch" in request.url else 0)
            return await site(request)

        return answer

    for name, found in rendered_at_once({name: (slow(end), PLAIN) for name, end in ENDS.items()}).items():
        assert isinstance(found, RenderedPage), found
        assert [b'"/post/%d"' % n in found.dom for n in range(6)] == [True] * 6, name
        assert found.notes == ()


def test_a_list_without_end_ends_with_the_requests_of_the_page() -> None:
    site = Site().page("/", (ENDLESS % ENDS["observer"]).replace("n >= 6", "false"))
    for n in range(100):
        site.page(f"/batch{n}", str(n))
    found = rendered(site, wishes=Wishes(requests=20))
    assert opened_page.NOT_TO_END in found.notes
    assert len(site.urls) <= 20
    assert b"/post/3" in found.dom


def test_what_a_person_can_open_and_scroll_to_is_there() -> None:
    site = Site().page(
        "/",
        """<details name=a><summary>1</summary><img loading=lazy src=/1.png></details>
        <details name=a ontoggle="if (this.open) fetch('/toggled')"><summary>2</summary></details>
        <div style="width: 300px; height: 100px; overflow-x: auto; white-space: nowrap">
        <div style="display: inline-block; width: 6000px"></div><img loading=lazy src=/side.png></div>""",
    )
    found = rendered(site)
    assert {f"{URL}1.png", f"{URL}toggled", f"{URL}side.png"} <= set(site.urls)
    assert b"<details" in found.dom


def test_open_shadow_roots_are_in_the_dom() -> None:
    site = Site().page(
        "/",
        """<x-a></x-a><div><template shadowrootmode=open><a href=/declared>x</a></template></div><script>
        const make = (name, mode, html) => customElements.define(name, class extends HTMLElement {
          connectedCallback() { this.attachShadow({mode}).innerHTML = html } });
        make('x-a', 'open', '<a href=/in-shadow><slot></slot></a><x-b></x-b>');
        make('x-b', 'open', '<p>inside</p><x-c></x-c>');
        make('x-c', 'closed', '<p>nobody sees it</p>');
        </script>""",
    )
    dom = rendered(site).dom
    assert dom.count(b'<template shadowrootmode="open">') == 3
    assert b'<a href="/in-shadow">' in dom
    assert b'<a href="/declared">' in dom
    assert b"<p>inside</p><x-c></x-c>" in dom


def test_redirects_are_followed_by_http_and_by_scripts() -> None:
    site = Site().page("/", "", ("location", "/two")).page("/two", "<script>location = '/three'</script>")
    site.page("/three", "<p>the end")
    found = rendered(site)
    assert (found.final_url, b"the end" in found.dom) == (f"{URL}three", True)
    assert [url.removeprefix(URL) for url in site.urls][:3] == ["", "two", "three"]


def test_a_refused_frame_and_a_refused_page_leave_the_page_as_it_is() -> None:
    site = Site().page("/", "<p>here</p><iframe src=/no></iframe><script>location = '/no'</script>")

    async def answerer(request: PageRequest) -> Answer | Refused:
        return Refused("scope") if request.url.endswith("/no") else await site(request)

    found = rendered(answerer)
    assert found.final_url == URL
    assert b"<p>here</p>" in found.dom


def test_sockets_are_refused_and_reported() -> None:
    site = Site().page("/", "<script>new WebSocket('ws://a.example/s'); new WebSocket('wss://b.example/s')</script>")
    rendered(site)
    assert {one.url for one in site.asked if one.is_socket} == {"ws://a.example/s", "wss://b.example/s"}


def test_service_workers_are_refused_and_pages_find_none() -> None:
    site = Site().page(
        "/",
        """<script>
        document.title = 'serviceWorker' in navigator;
        const frame = document.createElement('iframe'); frame.src = '/frame'; document.documentElement.append(frame);
        </script>""",
    )
    site.page("/frame", "<script>top.document.title += 'serviceWorker' in navigator</script>")
    site.page("/sw.js", "self.addEventListener('fetch', e => e.respondWith(new Response('made up')))")
    found = rendered(site, "https://a.example/")
    assert b"<title>falsefalse</title>" in found.dom


def test_a_service_worker_that_gets_through_is_refused_by_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened_page, "_NO_SERVICE_WORKERS", ";")
    site = Site().page(
        "/", "<script>navigator.serviceWorker.register('/sw.js').catch(e => document.title = e.name)</script>"
    )
    site.page("/sw.js", "self.addEventListener('fetch', e => e.respondWith(new Response('made up')))")
    found = rendered(site, "https://a.example/")
    assert b"Error</title>" in found.dom
    assert SERVICE_WORKER in found.notes
    assert "https://a.example/sw.js" not in site.urls


def test_a_download_is_refused_and_noted() -> None:
    site = Site().page("/", "<p>here<script>location = '/x.bin'</script>")
    site.page(
        "/x.bin", b"x" * 1000, ("content-type", "application/octet-stream"), ("content-disposition", "attachment")
    )
    found = rendered(site)
    assert b"<p>here" in found.dom
    assert opened_page.DOWNLOAD in found.notes


def test_popups_are_closed_and_named() -> None:
    site = Site().page(
        "/",
        """<p>here<a id=link target=_blank href=/blank>x</a><form id=form action=/form target=_blank></form><script>
        for (let i = 0; i < 2000; i++) window.open('/pop' + i % 20); link.click(); form.submit()</script>""",
    )
    found = rendered(site)
    assert b"<p>here" in found.dom
    assert found.notes == (opened_page.POPUP,)
    wanted = [*(f"pop{n}" for n in range(20)), "blank", "form?"]
    assert found.windows == tuple(f"{URL}{path}" for path in wanted)
    assert not {f"{URL}{path}" for path in wanted} & set(site.urls)


def test_frames_are_in_the_dom_with_their_own_bases() -> None:
    """Of the same site, of another, in each other, in a shadow root, without an address; what scripts made is there."""
    site = Site().page(
        "/",
        """<p>outside<iframe src=http://b.example/far/></iframe><iframe src=/near></iframe>
        <iframe srcdoc="<p id=p>old</p><script>p.innerHTML = '<a href=made>new</a>'</script>"></iframe>
        <div id=host></div>
        <script>host.attachShadow({mode: 'open'}).innerHTML = '<iframe src=/in-shadow></iframe>'</script>""",
    )
    site.page(
        "/far/", "<script>document.write('<a href=x>far</a>')</script><iframe src=http://c.example/deep></iframe>"
    )
    site.page("/near", "<base href=/dir/><a href=x>near</a>").page("/deep", "<a href=y>deep</a>")
    site.page("/in-shadow", "<a href=z>shadow</a>")
    found = rendered(site)
    assert found.notes == ()
    links = {link.uri for link in html.links(found.dom, found.final_url) if link.hop == "L"}
    assert links == {
        "http://b.example/far/x", "http://c.example/y", f"{URL}dir/x", f"{URL}made", f"{URL}z",
    }  # fmt: skip
    words = html_document(found.dom, "utf-8").text.split()
    assert sorted(words) == ["deep", "far", "near", "new", "outside", "shadow"]


def test_a_frame_that_hangs_and_too_many_cost_themselves_alone() -> None:
    many = "<iframe srcdoc='<p>f'></iframe>" * 150
    site = Site().page("/", f"<p>here<iframe src=http://b.example/loops></iframe>{many}")
    site.page("/loops", "<script>onload = () => setTimeout(() => { while (true); }, 300)</script>")
    found = rendered(site, wishes=Wishes(seconds=10))
    assert b"<p>here" in found.dom
    assert opened_page.FRAMES_LOST in found.notes
    assert b"&lt;p&gt;f" in found.dom


BEHAVIORS = {
    "while (true);": "it did not end in the 4 s of its page",
    "new Promise(() => {})": "it did not end in the 4 s of its page",
    "throw new Error('no')": "Error: no",
    "(": "SyntaxError",
    "location = '/away'": "it led the page to http://a.example/away",
    "location = 'about:blank'": "it led the page to about:blank",
}


def test_a_behaviour_that_fails_costs_itself_alone() -> None:
    site = Site().page("/", "<p>here").page("/away", "<p>elsewhere")
    found = rendered_at_once(
        {source: (site, Wishes(seconds=4, behaviors=(Behavior("bad.js", source),))) for source in BEHAVIORS}
    )
    for source, page in found.items():
        assert isinstance(page, RenderedPage), page
        assert (b"<p>here" in page.dom, page.final_url) == (True, URL)
        assert opened_page.BEHAVIOR_FAILED in page.notes
        (fault,) = page.faults
        assert fault.startswith("bad.js: ")
        assert BEHAVIORS[source] in fault


def test_behaviours_act_in_the_page_one_after_another() -> None:
    """A promise, a function, one that only changes the address that is shown, and one that opens 1,000 windows."""
    site = Site().page("/", "<button id=more onclick=\"fetch('/more.json')\">more</button>").page("/more.json", "{}")
    sources = [
        "(async () => { await 1; document.body.append('first ') })()",
        "async () => { document.body.append('second '); more.click() }",
        "history.pushState(1, '', '/route')",
        "for (let i = 0; i < 1000; i++) open('/' + i)",
    ]
    behaviors = tuple(Behavior(f"{n}.js", source) for n, source in enumerate(sources))
    found = rendered(site, wishes=Wishes(behaviors=behaviors))
    assert b"first second " in found.dom
    assert (found.faults, len(found.windows)) == ((), 1000)
    assert f"{URL}more.json" in site.urls


def test_dialogs_are_dismissed() -> None:
    site = Site().page(
        "/", "<script>for (let i = 0; i < 50; i++) alert(i); document.title = confirm('?') + prompt('?')</script>"
    )
    assert b"<title>0</title>" in rendered(site).dom


def test_files_are_not_read() -> None:
    site = Site().page(
        "/", "<iframe src=file:///etc/passwd></iframe><script>location = 'file:///etc/passwd'</script><p>here"
    )
    found = rendered(site)
    assert b"root:" not in found.dom
    assert b"<p>here" in found.dom


def test_a_script_at_the_end_and_at_the_start() -> None:
    site = Site().page("/", "<title>t</title><script>window.early = window.mine</script>")
    at_end = Wishes(script="({title: document.title, early: window.early ?? null})")
    assert json.loads(rendered(site, wishes=at_end).script_value) == {"title": "t", "early": None}
    called = Wishes(script="async () => { document.title = 'new'; return [1, 'ü'] }")
    found = rendered(site, wishes=called)
    assert (json.loads(found.script_value), b"<title>new</title>" in found.dom) == ([1, "ü"], True)
    at_start = Wishes(script="() => { window.mine = 5; return {mine: 5} }", run_at="start")
    found = rendered(site, wishes=at_start)
    assert json.loads(found.script_value) == {"mine": 5}
    statements = Wishes(script="window.mine = 7; let x = 8;", run_at="start")
    found = rendered(site.page("/", "<script>document.title = window.mine</script>"), wishes=statements)
    assert (found.script_value, b"<title>7</title>" in found.dom) == ("", True)


@pytest.mark.parametrize(
    "script", ["throw new Error()", "(", "new Promise(() => {})", "(() => { const a = {}; a.a = a; return a })"]
)
def test_a_script_that_fails_is_noted(script: str) -> None:
    found = rendered(Site().page("/", "<p>here"), wishes=Wishes(seconds=5, script=script))
    assert (found.script_value, b"<p>here" in found.dom) == ("", True)
    assert opened_page.SCRIPT_FAILED in found.notes


def test_a_policy_of_the_page_does_not_stop_scripts() -> None:
    site = Site().page("/", "<p>here", *HTML, ("content-security-policy", "default-src 'none'; script-src 'none'"))
    for run_at in ("start", "end"):
        assert rendered(site, wishes=Wishes(script="() => 42", run_at=run_at)).script_value == "42"


def test_a_screenshot_is_as_wide_as_the_window_and_as_high_as_the_page() -> None:
    site = Site().page("/", "<body style='margin: 0'><div style='height: 3000px; background: red'></div>")
    shot = rendered(site, wishes=Wishes(width=400, height=300, screenshot=True)).screenshot
    assert shot
    assert shot.startswith(b"\x89PNG")
    assert (int.from_bytes(shot[16:20]), int.from_bytes(shot[20:24])) == (400, 3000)
    site.page("/", "<div style='height: 90000000px'></div>")
    found = rendered(site, wishes=Wishes(width=400, height=300, screenshot=True))
    assert found.screenshot is None or int.from_bytes(found.screenshot[20:24]) <= opened_page.TALLEST


def test_without_images_none_is_asked_for() -> None:
    site = Site().page("/", "<img src=/i.png><script src=/a.js></script>").page("/a.js", "")
    assert isinstance(render(site, images=False), RenderedPage)
    assert site.urls == [URL, f"{URL}a.js"]


@pytest.mark.parametrize(
    "page",
    [
        "<p>here<script>setInterval(() => fetch('/again?' + Math.random()), 50)</script>",
        "<p>here<script>setTimeout(() => location = '/?' + Math.random(), 10)</script>",
        "<p>here<script>setInterval(() => alert(1), 1)</script>",
        "<p>here<script>new EventSource('/events'); setInterval(() => document.body.append('x'), 1)</script>",
        "<p>here<img src=/never>",
    ],
    ids=["requests", "redirects", "alerts", "events", "slow"],
)
def test_a_page_that_never_rests_is_taken_as_it_is_in_the_end(page: str) -> None:
    site = Site().page("/", page)

    async def answerer(request: PageRequest) -> Answer | Refused:
        if request.url.endswith(("/never", "/events")):
            await asyncio.sleep(SECONDS)
        return await site(request)

    found = rendered(answerer, wishes=Wishes(seconds=3))
    assert b"<p>here" in found.dom


@pytest.mark.parametrize(
    "page",
    [
        "<script>while (true);</script>",
        "<script>onload = () => { while (true); }</script>",
        "<script>while (true) alert(1)</script>",
    ],
)
def test_a_page_that_hangs_is_given_up_and_the_next_is_rendered(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browsers, "GRACE", 3.0)
    site = Site().page("/", page).page("/next", "<p>here")

    async def whole() -> list[RenderedPage | RenderFailed]:
        async with opened() as (browser, proxy):
            found = []
            for url, seconds in ((URL, 2), (f"{URL}next", 30)):
                async with proxy.page(site) as one:
                    found.append(await browser.open(url, one, Wishes(seconds=seconds)))
            return found

    first, second = asyncio.run(asyncio.wait_for(whole(), SECONDS))
    assert isinstance(first, RenderFailed)
    assert first.why == browsers.HUNG
    assert isinstance(second, RenderedPage)
    assert b"<p>here" in second.dom


async def _killed(site: Site, kill: Callable[[], Any]) -> list[RenderedPage | RenderFailed]:
    """What becomes of a page whose browser is killed while it waits, and of the next."""
    reached, found = asyncio.Event(), []

    async def waits(request: PageRequest) -> Answer | Refused:
        if request.url.endswith("/wait"):
            reached.set()
            await asyncio.sleep(SECONDS)
        return await site(request)

    async with opened() as (browser, proxy):
        async with proxy.page(waits) as one:
            opening = asyncio.create_task(browser.open(URL, one, Wishes()))
            await reached.wait()
            kill()
            found.append(await opening)
        async with proxy.page(site) as one:
            found.append(await browser.open(f"{URL}next", one, Wishes()))
    return found


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("--type=renderer", browsers.CRASHED),
        (browsers._MARK, browsers.BROWSER_ENDED),
        ("run-driver", browsers.BROWSER_ENDED),
        ("network.mojom.NetworkService", browsers.BROWSER_ENDED),
    ],
)
def test_what_is_killed_fails_and_the_next_page_is_rendered(what: str, why: str) -> None:
    site = Site().page("/", "<img src=/wait>").page("/next", "<p>here")

    def kill() -> None:
        for pid in list(_pids(what)):
            os.kill(pid, signal.SIGKILL)

    first, second = asyncio.run(asyncio.wait_for(_killed(site, kill), SECONDS))
    assert isinstance(first, RenderFailed)
    assert first.why == why
    assert isinstance(second, RenderedPage)
    assert b"<p>here" in second.dom


@pytest.mark.parametrize("what", [browsers._MARK, "run-driver"])
def test_the_page_that_comes_next_has_another_browser(what: str) -> None:
    """Nobody has seen yet that the one before has ended: no page was open in it."""
    site = Site().page("/next", "<p>here")

    async def whole() -> list[Result]:
        found = []

        async def attempt(alone: bool) -> Result:
            async with proxy.page(site) as one:
                return await browser.open(f"{URL}next", one, PLAIN, alone=alone)

        async with opened() as (browser, proxy):
            for _ in range(2):
                found.append(await anew(attempt))
                for pid in list(_pids(what)):
                    os.kill(pid, signal.SIGKILL)
        return found

    assert [type(one) for one in asyncio.run(asyncio.wait_for(whole(), SECONDS))] == [RenderedPage] * 2


def test_a_page_that_hangs_or_fills_the_memory_costs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The browser that all have is ended by one: it fails when it is alone, and each other is there."""
    monkeypatch.setattr(browsers, "LOOK", 0.1)
    monkeypatch.setattr(browsers, "MEMORY_FACTOR", 1)
    site = (
        Site()
        .page("/", "<p>here<img src=/slow>")
        .page("/bad", "<script>const all = []; for (;;) all.push(new Array(1 << 18).fill(Math.random()))</script>")
    )
    settings = BrowserSettings(sandbox=AS_ROOT.sandbox, memory=600 << 20)

    async def slow(request: PageRequest) -> Answer | Refused:
        if request.url.endswith("/slow"):
            await asyncio.sleep(2)
        return await site(request)

    async def whole() -> list[Result]:
        async with opened(settings) as (browser, proxy):

            async def one(path: str) -> Result:
                async def attempt(alone: bool) -> Result:
                    async with proxy.page(slow) as page:
                        return await browser.open(f"{URL}{path}", page, Wishes(seconds=60), alone=alone)

                return await anew(attempt)

            return await asyncio.gather(*map(one, ("bad", "", "")))

    bad, *good = asyncio.run(asyncio.wait_for(whole(), SECONDS))
    assert isinstance(bad, RenderFailed)
    assert bad.why in (browsers.CRASHED, browsers.MEMORY)
    assert [type(one) for one in good] == [RenderedPage] * 2


@pytest.mark.parametrize("length", [browsers.SHORT, browsers.SHORT + 1, 50])
def test_it_starts_wherever_temporary_files_are(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="w", dir="/tmp") as base:
        place = Path(base, "t" * (length - len(base) - 1))
        place.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(place))
        rendered(Site().page("/", "<p>here"))


def unable(program: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The reason for which this program, as Chromium, opens no page."""
    path = folder / "chromium"
    path.write_text(f"#!/bin/sh\n{program}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    with pytest.raises(Unavailable) as raised:
        render(Site())
    return str(raised.value)


def test_a_browser_that_does_not_start_is_named_with_the_reason_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = "libnss3.so: cannot open shared object file"
    why = unable(f"echo 'error while loading shared libraries: {lacking}' >&2; exit 127", tmp_path, monkeypatch)
    assert f"{tmp_path}/chromium is unavailable: it ends as soon as it is started: error while" in why
    assert f"{lacking}, exit code 127; install that library" in why
    assert "warcmill doctor" in why
    assert "SIGKILL; Chromium breaks off so when memory is short" in unable("kill -9 $$", tmp_path, monkeypatch)
    sandbox = "echo '[1:1:1128/1.2:FATAL:zygote_host.cc:1] No usable sandbox!' >&2; exit 1"
    assert ": No usable sandbox!, exit code 1; crawl as a user" in unable(sandbox, tmp_path, monkeypatch)
    monkeypatch.setattr(browsers, "START", 1.0)
    assert "it was started, and did not answer in 1 s" in unable("exec sleep 300", tmp_path, monkeypatch)
    (tmp_path / "chromium").unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="it is not installed; apt-get install chromium"):
        asyncio.run(_opened_alone())


async def _opened_alone() -> None:
    keys = ProxyKeys()
    async with Proxy(keys).page(Site()) as page:
        await Browser(AS_ROOT, keys).open(URL, page, PLAIN)


def test_a_page_of_ours_tries_it_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    browsers.try_out(AS_ROOT)
    assert mine() == []
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="it is not installed"):
        browsers.try_out(AS_ROOT)


@pytest.mark.parametrize("dies", ["$PPID", "$$"], ids=["driver", "browser"])
def test_one_that_is_killed_while_it_starts_is_started_again(
    dies: str, tmp_path: Path, chromium: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "chromium"
    path.write_text(
        f'#!/bin/sh\nif mkdir {tmp_path}/once 2>/dev/null; then kill -9 {dies}; sleep 300; fi\nexec {chromium} "$@"\n'
    )
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    rendered(Site().page("/", "<p>here"))


def test_a_page_that_crashes_is_named() -> None:
    site = Site().page(
        "/", "<script>const all = []; for (;;) all.push(new Array(1 << 20).fill(Math.random()))</script>"
    )
    found = failed(site, Wishes(seconds=60))
    assert found.why in (browsers.CRASHED, browsers.MEMORY)


def test_a_browser_that_takes_too_much_memory_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browsers, "LOOK", 0.1)
    site = Site().page("/", "<img src=/never>")

    async def answerer(request: PageRequest) -> Answer | Refused:
        if request.url.endswith("/never"):
            monkeypatch.setattr(browsers, "MEMORY_FACTOR", 0.001)  # not before: it would be ended while it starts
            await asyncio.sleep(SECONDS)
        return await site(request)

    assert failed(answerer, Wishes(seconds=60)).why == browsers.MEMORY


def test_a_page_that_comes_after_the_end_of_its_browser_has_the_reason_of_that_end() -> None:
    async def whole() -> Result:
        async with opened() as (browser, proxy), proxy.page(Site()) as one:
            chromium = await browser._running()
            chromium._end(browsers.MEMORY)
            chromium.kill()
            return await chromium.open(URL, one, Wishes())

    assert asyncio.run(asyncio.wait_for(whole(), SECONDS)) == RenderFailed(browsers.MEMORY)


def test_a_new_browser_after_so_many_pages() -> None:
    site = Site().page("/", "<p>here")
    seen = []

    async def whole() -> None:
        async with opened(BrowserSettings(sandbox=AS_ROOT.sandbox, pages=2)) as (browser, proxy):
            for _ in range(5):
                async with proxy.page(site) as one:
                    assert isinstance(await browser.open(URL, one, Wishes()), RenderedPage)
                seen.append(frozenset(_pids(browsers._MARK)))

    asyncio.run(asyncio.wait_for(whole(), SECONDS))
    assert len({pids for pids in seen if pids}) == 3
    assert seen[1] == seen[3] == frozenset()


def test_pages_side_by_side_have_nothing_in_common() -> None:
    async def whole() -> list[RenderedPage | RenderFailed]:
        async with opened() as (browser, proxy):

            async def one(number: int) -> RenderedPage | RenderFailed:
                site = Site().page(
                    "/", f"<script>document.title = document.cookie; document.cookie = 'n={number}'</script>"
                )
                async with proxy.page(site) as page:
                    return await browser.open(URL, page, Wishes())

            return [*await asyncio.gather(*map(one, range(6))), await one(7)]

    for found in asyncio.run(asyncio.wait_for(whole(), SECONDS)):
        assert isinstance(found, RenderedPage)
        assert b"<title></title>" in found.dom


def test_a_render_that_is_cancelled_leaves_nothing() -> None:
    async def whole() -> None:
        reached = asyncio.Event()

        async def waits(request: PageRequest) -> Answer | Refused:
            reached.set()
            await asyncio.sleep(SECONDS)
            return Refused("")

        async with opened() as (browser, proxy), proxy.page(waits) as one:
            opening = asyncio.create_task(browser.open(URL, one, Wishes()))
            await reached.wait()
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening

    asyncio.run(asyncio.wait_for(whole(), SECONDS))


PROGRAM = """
import asyncio, sys
sys.path[:0] = [{tests!r}]
from test_render_browser import *
async def whole():
    async def waits(request):
        if request.url.endswith("/wait"):
            print("waits", flush=True)
            await asyncio.sleep(3600)
        return Answer(200, HTML, [{page!r}], lambda: None)
    keys = ProxyKeys()
    browser = Browser(AS_ROOT, keys)
    async with Proxy(keys).page(waits) as one:
        print(one.port, flush=True)
        await browser.open(URL, one, Wishes(seconds=3600))
asyncio.run(whole())
"""


@pytest.mark.parametrize(
    "page", [b"<img src=/wait>", b"<img src=/wait><script>setTimeout(() => { while (true); }, 300)</script>"]
)
def test_nothing_is_left_of_a_crawler_that_is_killed(page: bytes, tmp_path: Path) -> None:
    program = PROGRAM.format(tests=str(Path(__file__).parent), page=page)
    environment = {
        **os.environ,
        "TMPDIR": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(map(str, filter(None, sys.path))),
    }
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment
    ) as crawler:
        assert crawler.stdout
        port = int(crawler.stdout.readline())
        assert crawler.stdout.readline() == "waits\n"
        time.sleep(0.5)
        assert list(tmp_path.glob("playwright*")), "its profile is there while it runs"
        left = [*_pids("", crawler.pid)]
        assert len(left) > 2
        crawler.send_signal(signal.SIGKILL)
    until = time.monotonic() + SECONDS
    while (left := [pid for pid in left if Path(f"/proc/{pid}/cmdline").exists()]) and time.monotonic() < until:
        time.sleep(0.1)
    assert left == []
    while (kept := [path.name for path in tmp_path.iterdir()]) and time.monotonic() < until:
        time.sleep(0.1)
    assert kept == []
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((LOOPBACK, port)).close()


def test_what_a_killed_crawler_kept_is_removed_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    with nobody.folder() as place:
        monkeypatch.setattr(tempfile, "tempdir", str(place))
        pid = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True).stdout.strip()
        (place / f"{browsers._FOLDER}{pid}.x").mkdir()
        (place / f"{browsers._FOLDER}1.x").mkdir()
        rendered(Site().page("/", "<p>here"))
        assert [path.name for path in place.iterdir() if browsers._FOLDER in path.name] == [f"{browsers._FOLDER}1.x"]


def test_nothing_is_asked_past_the_proxy() -> None:
    """Calls in real time, prefetched names, hosts by their addresses: none is reached but by the proxy."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stun, socket.create_server((LOOPBACK, 0)) as server:
        stun.bind((LOOPBACK, 0))
        udp, tcp = stun.getsockname()[1], server.getsockname()[1]
        site = Site().page(
            "/",
            f"""<link rel=preconnect href=http://{LOOPBACK}:{tcp}><link rel=dns-prefetch href=//localhost:{tcp}>
            <img src=http://{LOOPBACK}:{tcp}/i.png><img src=http://localhost:{tcp}/j.png>
            <script type=speculationrules>{{"prerender": [{{"urls": ["/pre"], "eagerness": "immediate"}}],
            "prefetch": [{{"urls": ["http://localhost:{tcp}/pre"], "eagerness": "immediate"}}]}}</script>
            <script>
            const call = new RTCPeerConnection({{iceServers: [{{urls: 'stun:{LOOPBACK}:{udp}'}},
              {{urls: 'turn:{LOOPBACK}:{tcp}?transport=tcp', username: 'x', credential: 'x'}}]}});
            call.createDataChannel('x'); call.createOffer().then(o => call.setLocalDescription(o));
            try {{ new WebTransport('https://{LOOPBACK}:{udp}/') }} catch {{}}
            setTimeout(() => fetch('/last'), 2000); setTimeout(() => fetch('/first'), 400);
            setTimeout(() => fetch('/second'), 800); setTimeout(() => fetch('/third'), 1200);
            setTimeout(() => fetch('/fourth'), 1600);
            </script>""",
        )
        rendered(site)
        assert f"{URL}last" in site.urls
        assert {f"http://{LOOPBACK}:{tcp}/i.png", f"http://localhost:{tcp}/j.png"} <= set(site.urls)
        for one in (stun, server):
            one.setblocking(False)
        with pytest.raises(BlockingIOError):
            stun.recv(1)
        with pytest.raises(BlockingIOError):
            server.accept()


FORM = """<!DOCTYPE html><form id=f method=post action=/go target=n><input name=name><input name=email type=email>
<input name=p type=password><input name=again type=password><input name=address><input name=city></form>
<iframe name=n></iframe><script>
setTimeout(() => f.submit(), 1200); for (let n = 1; n < 12; n++) setTimeout(() => fetch(`/wait?${n}`), 400 * n);
</script>"""


@pytest.mark.parametrize("is_off", [True, False], ids=["off", "on"])
def test_a_form_that_is_filled_in_asks_nothing_of_chromiums_maker(
    is_off: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is off by a switch; and what no page asks for is refused all the same, and named."""
    if not is_off:
        others = tuple(one for one in browsers._ARGUMENTS if not one.startswith("--disable-features"))
        monkeypatch.setattr(browsers, "_ARGUMENTS", others)
    site = Site().page("/", FORM)
    found = rendered(site)
    assert f"{URL}go" in site.urls
    assert [url for url in site.urls if not url.startswith(URL)] == []
    assert found.notes == (() if is_off else ("noPage",))


def test_workers_of_workers_and_what_is_prefetched_have_a_page() -> None:
    site = Site().page(
        "/",
        """<link rel=prefetch href=/later><script>new Worker('/w.js'); new SharedWorker('/s.js')
        setTimeout(() => fetch('/last'), 1000); setTimeout(() => fetch('/first'), 400);</script>""",
    )
    site.page("/w.js", "new Worker('/inner.js')").page("/inner.js", "fetch('/from-inner')")
    site.page("/s.js", "fetch('/from-shared')")
    assert rendered(site).notes == ()
    assert {f"{URL}{path}" for path in ("later", "inner.js", "from-inner", "from-shared")} <= set(site.urls)


def test_with_its_sandbox_it_renders_as_another_user() -> None:
    program = f"""
import asyncio, os, sys
sys.path[:0] = [{str(Path(__file__).parent)!r}]
import test_render_browser as tests
import playwright.async_api
tests.ProxyKeys()  # what is imported late: the Python of root may be where nobody else reads
if not os.getuid():
    os.setgroups([]); os.setgid({nobody.NOBODY}); os.setuid({nobody.NOBODY})
async def whole():
    async with tests.opened(tests.BrowserSettings(sandbox=True)) as (browser, proxy):
        async with proxy.page(tests.Site().page("/", "<p>here")) as one:
            print(await browser.open(tests.URL, one, tests.Wishes()))
            print(open("/proc/%d/cmdline" % [*tests._pids(tests.browsers._MARK)][0]).read())
asyncio.run(whole())
"""
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": path, "HOME": "/nonexistent", "TMPDIR": "/tmp"}
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False
    )
    assert "<p>here</p>" in found.stdout, found.stdout + found.stderr
    assert "--no-sandbox" not in found.stdout


def test_root_has_no_sandbox() -> None:
    settings = BrowserSettings(sandbox=True)
    if os.geteuid():
        check_browser(settings)
        return
    with pytest.raises(BadConfig, match="no sandbox as root"):
        check_browser(settings)
    check_browser(BrowserSettings(sandbox=False))


def test_without_the_browser_nothing_is_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(BadConfig, match="apt-get install chromium"):
        check_browser(AS_ROOT)
