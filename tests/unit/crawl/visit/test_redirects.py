"""Redirects back into their own chain: followed where something else would be sent, ended and named where not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crawls import crawled
from sites.raw_server import serving

from warcmill.crawl.extract import html
from warcmill.crawl.extract.links import Link
from warcmill.crawl.launch.launch import Running
from warcmill.crawl.uri import make
from warcmill.crawl.visit import redirects

Answer = tuple[str, dict[str, str], str]
Site = Callable[[str, dict[str, str]], Answer | None]
OK, MISSING = "200 OK", ("404 Not Found", dict[str, str](), "none")
HOST = "a.example"


def crawl(folder: Path, site: Site, launch: Any = crawled.LAUNCH, **more: Any) -> tuple[list[str], Running]:
    """Crawl a site, which answers a path by the cookies that were sent; return the paths in their order."""

    async def run() -> tuple[list[str], Running]:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            path = head.split(" ", 2)[1]
            sent = next((line[8:] for line in head.splitlines() if line.startswith("Cookie: ")), "")
            cookies = dict(pair.split("=", 1) for pair in sent.split("; ") if pair)
            status, fields, body = (path != "/robots.txt" and site(path, cookies)) or MISSING
            lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in fields.items())]
            lines += ["Content-Type: text/html", f"Content-Length: {len(body)}", "Connection: close", "", body]
            writer.write("\r\n".join(lines).encode())
            await writer.drain()
            writer.close()

        async with serving(handle) as server:
            _, running = await crawled.whole(folder, crawled.job(server.port, HOST, **more), launch=launch)
            asked = [head.split(b" ", 2)[1].decode() for head in server.requests]
            return [path for path in asked if path != "/robots.txt"], running

    return asyncio.run(run())


def to(place: str, cookie: str = "") -> Answer:
    return "302 Found", {"Location": place, **({"Set-Cookie": cookie} if cookie else {})}, ""


def wall(path: str, cookies: dict[str, str]) -> Answer | None:
    if path == "/":
        return OK, {}, "<a href=/page>page</a>"
    if path == "/page":
        return (OK, {}, "<a href=/deep>deep</a>") if "seen" in cookies else to("/page", "seen=1; Path=/")
    return (OK, {}, "deep") if path == "/deep" else None


def test_a_page_behind_a_cookie_is_fetched_and_each_hop_is_kept(tmp_path: Path) -> None:
    asked, running = crawl(tmp_path, wall)
    assert asked == ["/", "/page", "/page", "/deep"]
    lines = [line for line in crawled.lines(tmp_path) if line.uri.endswith("/page")]
    assert [(line.status, line.hops) for line in lines] == [(302, "L"), (200, "LR")]
    assert crawled.unbalanced(tmp_path) == []
    assert running.kit.offers.refused.counts == {}


def bounce(path: str, cookies: dict[str, str]) -> Answer | None:
    if path == "/":
        return OK, {}, "<a href=/1>1</a><a href=/2>2</a>"
    if path.startswith("/session"):
        return to(path.partition("=")[2], "id=7; Path=/")
    return (OK, {}, f"<a href={path}/deep>deep</a>") if "id" in cookies else to(f"/session?next={path}")


def test_articles_behind_a_session_are_fetched(tmp_path: Path) -> None:
    asked, _ = crawl(tmp_path, bounce, workers=1)
    assert asked[:4] == ["/", "/1", "/session?next=/1", "/1"] or asked[:3] == ["/", "/1", "/2"]
    assert {"/1/deep", "/2/deep"} <= set(asked)
    assert crawled.unbalanced(tmp_path) == []


@pytest.mark.parametrize("content", ["0", "1; url=/page", "0;url='/page'"])
def test_a_page_that_loads_itself_anew_with_a_cookie_is_fetched(tmp_path: Path, content: str) -> None:
    def site(path: str, cookies: dict[str, str]) -> Answer | None:
        if path == "/page" and not cookies:
            return OK, {"Set-Cookie": "seen=1"}, f'<meta http-equiv=refresh content="{content}">checking'
        return wall(path, cookies)

    asked, running = crawl(tmp_path, site)
    assert asked == ["/", "/page", "/page", "/deep"]
    assert running.kit.offers.refused.counts == {}


def test_a_page_that_loads_itself_anew_after_a_while_is_read_as_it_is(tmp_path: Path) -> None:
    def site(path: str, cookies: dict[str, str]) -> Answer | None:
        again = {"Refresh": "300; url=/", "Set-Cookie": f"times={int(cookies.get('times', 0)) + 1}"}
        return (OK, again, "<a href=/1>1</a>") if path == "/" else (OK, {}, "")

    asked, running = crawl(tmp_path, site)
    assert asked == ["/", "/1"]
    assert running.kit.offers.refused.counts == {}


@pytest.mark.parametrize("cookie", ["", "refused=1; Domain=other.example"])
def test_a_loop_that_changes_nothing_ends_and_is_named(tmp_path: Path, cookie: str) -> None:
    pages: dict[str, Answer] = {
        "/": (OK, {}, "<a href=/1>1</a><a href=/self>self</a>"), "/1": to("/2"), "/2": to("/1", cookie),
        "/self": to("/self"),
    }  # fmt: skip
    asked, running = crawl(tmp_path, lambda path, _: pages.get(path))
    assert sorted(asked) == ["/", "/1", "/2", "/self"]
    notes = {crawled.plain(line.uri): line.annotations for line in crawled.lines(tmp_path)}
    assert notes["http://a.example/2"] == notes["http://a.example/self"] == ("redirectLoop",)
    assert notes["http://a.example/1"] == ()
    assert running.kit.offers.refused.counts == {"redirects": 2}
    assert "it redirects back, and what would be sent was sent before" in running.kit.offers.refused.first["redirects"]


def test_a_loop_that_always_changes_ends_after_20_redirects(tmp_path: Path) -> None:
    def site(path: str, cookies: dict[str, str]) -> Answer | None:
        other = {"/": "/x", "/x": "/"}[path] if path in ("/", "/x") else ""
        return to(other, f"times={int(cookies.get('times', 0)) + 1}; Path=/") if other else None

    asked, running = crawl(tmp_path, site)
    assert asked == ["/", "/x"] * 10 + ["/"]
    assert running.kit.offers.refused.counts == {"redirects": 1}
    assert running.kit.offers.refused.first["redirects"].endswith("it redirects back, after 20 redirects")
    assert crawled.unbalanced(tmp_path) == []


def test_ten_thousand_redirects_end_where_hops_do(tmp_path: Path) -> None:
    asked, running = crawl(tmp_path, lambda path, _: to(f"/{int(path[1:] or 0) + 1}", f"at={path}"))
    assert len(asked) == 21
    assert running.kit.offers.refused.counts == {"scope": 1}


def test_a_cookie_leads_neither_to_data_nor_inside(tmp_path: Path) -> None:
    def site(path: str, cookies: dict[str, str]) -> Answer | None:
        if path == "/":
            return to("/", "at=1") if not cookies else to("http://169.254.169.254/latest/", "at=2")
        return None

    asked, running = crawl(tmp_path, site)
    assert asked == ["/", "/"]
    assert running.kit.offers.refused.counts == {"addresses": 1}
    asked, _ = crawl(tmp_path / "data", lambda path, sent: to("data:text/html,<a href=/b>") if sent else to("/", "a=1"))
    assert asked == ["/", "/"]


def test_another_uri_that_was_seen_is_not_asked_again(tmp_path: Path) -> None:
    pages = {"/": (OK, {}, "<a href=/1>1</a><a href=/2>2</a>"), "/2": (OK, {}, "two"), "/1": to("/2", "a=1")}
    asked, running = crawl(tmp_path, lambda path, _: pages.get(path))
    assert sorted(asked) == ["/", "/1", "/2"]
    assert running.kit.offers.refused.counts == {}


def test_an_address_with_the_id_of_a_session_is_another_request(tmp_path: Path) -> None:
    page, named = "/page", "/page;jsessionid=0123456789ABCDEF0123456789ABCDEF"
    pages = {
        "/": (OK, {}, f"<a href={page}>"),
        page: to(named),
        named: (OK, {}, "<a href=/deep>"),
        "/deep": (OK, {}, ""),
    }
    asked, _ = crawl(tmp_path, lambda path, _: pages.get(path))
    assert asked == ["/", page, named, "/deep"]


def test_the_next_launch_compares_each_visit_with_the_same_one_before(tmp_path: Path) -> None:
    crawl(tmp_path, wall)
    later = crawled.Launch("news", "20261121091844")
    asked, _ = crawl(tmp_path, wall, later)
    assert asked == ["/", "/page", "/page", "/deep"]


CHAIN = [["0" * 16, "1" * 16]]


@pytest.mark.parametrize(
    "payload", ["{", "7", '{"redirects": 7}', '{"redirects": {"chain": 7, "times": "x"}}', "[" * 9999]
)
def test_nothing_in_a_payload_raises(payload: str) -> None:
    payload = payload if "redirects" in payload else f'"redirects"{payload}'
    page = make("http://a.example/", hops="R", via="http://a.example/x", payload=payload)
    assert redirects.key_of(page.uri, payload) == page.uri
    found = redirects.followed(page, "", [Link("http://a.example/2", "R", "location:")], lambda url: "")
    assert len(found.links) == 1


def test_a_chain_of_one_plain_request_needs_no_payload() -> None:
    page = make("http://a.example/")
    (link,) = redirects.followed(
        page, redirects.sent(page.uri, ""), [Link("http://b.example/", "R", "location:")], lambda url: ""
    ).links
    assert link.payload == ""
    (link,) = redirects.followed(
        page, redirects.sent(page.uri, "a=1"), [Link("http://b.example/", "R", "location:")], lambda url: ""
    ).links
    assert len(json.loads(link.payload)["redirects"]["chain"]) == 1


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("0", [("http://a.example/p", False)]),
        ("300", []),
        ("5; url=/q", [("http://a.example/q", False)]),
        ("11; url=/q", [("http://a.example/q", True)]),
        ("/q", [("http://a.example/q", False)]),
        ("", []),
    ],
)
def test_refreshes(content: str, expected: list[tuple[str, bool]]) -> None:
    page = f'<base href="/other/"><meta http-equiv="refresh" content="{content}">'.encode()
    assert [(link.uri, link.is_slow) for link in html.links(page, "http://a.example/p")] == expected
