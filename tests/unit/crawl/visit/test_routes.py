"""Seeds with a route: opened there by a browser, else named; each route is a URI of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from crawls import crawled
from msgspec.structs import replace
from sites.several_hosts import Page, serve

from warcmill.crawl.extract.links import Link
from warcmill.crawl.fetch import exchange
from warcmill.crawl.job import file
from warcmill.crawl.launch.reachability import unseen_routes
from warcmill.crawl.render import RenderSettings
from warcmill.crawl.uri import make
from warcmill.crawl.visit import redirects
from warcmill.errors import BadInput
from warcmill.formats.seeds import route_of

SEEDS = ("http://a.example/#/about", "http://a.example/#!team", "http://a.example/#top")


@pytest.mark.parametrize(
    ("url", "route"),
    [
        ("http://a.example/#/about", "#/about"),
        ("http://a.example/x?y#!/about?z=1", "#!/about?z=1"),
        ("http://a.example/#/ä b", "#/%C3%A4%20b"),
        ("http://a.example/#top", ""),
        ("http://a.example/", ""),
        ("http://a.example/#/" + "a" * 3_000, ""),
    ],
)
def test_a_route_is_what_a_script_reads(url: str, route: str) -> None:
    assert route_of(url) == route


@pytest.mark.parametrize("renders", [False, True])
def test_a_seed_with_a_route_is_named_or_opened(tmp_path: Path, renders: bool) -> None:
    answer = Page(b"text", "text/plain")  # it is not a page: no browser is started for it
    with serve({("a.example", "/"): answer}) as port:
        seeds = tuple(seed.replace("a.example", f"a.example:{port}") for seed in SEEDS)
        job = crawled.job(port, "a.example", render=RenderSettings("seeds" if renders else "never"), seeds=seeds)
        offers: list[tuple[str, str]] = []
        crawled.crawl(
            tmp_path, job,
            lambda running: offers.extend((uri.key, uri.payload) for uri in running.kit.offers.seeds(seeds)),
        )  # fmt: skip
    base = f"http://a.example:{port}/"
    named = [line.split(" ", 2)[2] for line in crawled.told(tmp_path, "alerts.log").splitlines() if "route" in line]
    if renders:
        assert offers == [
            (f"{base} #/about", '{"fetch":{"render":{"route":"#/about"}}}'),
            (f"{base} #!team", '{"fetch":{"render":{"route":"#!team"}}}'),
            (base, ""),
        ]
        assert named == []
    else:
        assert offers == [(base, "")] * 3
        assert set(named) == {f"{seed}: its route needs --render" for seed in seeds[:2]}


def test_a_route_is_known_before_a_crawl_and_its_page_keeps_its_reach() -> None:
    toml = b'[pages]\n"http://a.example/" = "resource"\n'
    job = file.parse({file.SEEDS: "\n".join(SEEDS).encode(), "crawl.toml": toml}, "news")
    assert unseen_routes(job) == list(SEEDS[:2])
    assert unseen_routes(replace(job, render=RenderSettings("seeds"))) == []
    part = make("http://cdn.example/x", hops="E" * 5, source="http://a.example/")
    assert job.scope.judge(part) is None


def test_a_redirect_keeps_the_route() -> None:
    uri = make("http://a.example/", payload=exchange.at_route("#/about"))
    target = Link("http://a.example/app/", "R", "location:")
    (link,) = redirects.followed(uri, "", [target], lambda _: "").links
    assert exchange.read(link.payload).route == "#/about"


@pytest.mark.parametrize("route", ["7", '"/about"', '"#a b"', '"#"'])
def test_a_payload_has_no_other_route(route: str) -> None:
    with pytest.raises(BadInput, match="'route' is not a fragment"):
        exchange.read(f'{{"fetch": {{"render": {{"route": {route}}}}}}}')
