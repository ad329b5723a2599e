"""What a feed says is what the built-in crawler then crawls: each row of the guide's tables, read from its crawl log.

`tests/services/test_feed_heritrix.py` has the same rows for Heritrix.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from crawls import crawled
from sites.fed_web import BIG_PAGES, CRAWLED, DEPTHS, FILLER, FONT, ROWS, SCOPES, big_site, moved_site, site_of
from sites.several_hosts import Page, page, serve

from warcmill.base.schedule import WEEKLY
from warcmill.crawl.job import file
from warcmill.errors import BadConfig
from warcmill.formats import feed
from warcmill.formats.targets import Caps, selected
from warcmill.model import stamp_time
from warcmill.pulse.feed import OwnRecipe

CAPS = Caps(capped=60 * 1024, capped_large=150 * 1024)
GUIDE = Path(__file__).parents[3] / "docs" / "operate" / "crawls.md"
SETTINGS = {"allow_private": ["127.0.0.0/8"], "no_delay": True, "workers": 1}


def whole_web(port: int) -> dict[tuple[str, str], Page]:
    web: dict[tuple[str, str], Page] = {}
    for scope in CRAWLED:
        web |= site_of(f"{scope}.example", port)
    for name in DEPTHS:
        web |= big_site(f"{name}.example")
    for host in ("obeyed.example", "ignored.example"):
        web[host, "/robots.txt"] = Page(b"User-agent: *\nDisallow: /private/\n", "text/plain")
        web[host, "/"] = page(["/private/x", "/public"])
        web[host, "/private/x"] = web[host, "/public"] = page([])
    web |= moved_site(port)
    web["excluded.example", "/"] = page(["/logout?now", "/never/x", "/fine"])
    web["excluded.example", "/fine"] = page([])
    web["page.example", "/"] = page([f"http://ignored.example:{port}/private/y"])
    web["ignored.example", "/private/y"] = page(["/private/z"])
    web["ignored.example", "/private/z"] = page([])
    return web


def target(name: str, port: int, path: str = "/", **more: Any) -> dict[str, Any]:
    schedules = [{"startDate": "2026-01-01T00:00:00Z", "frequency": "WEEKLY"}]
    return {"id": name, "seeds": [f"http://{name}.example:{port}{path}"], "schedules": schedules, **more}


def targets(port: int) -> list[feed.Target]:
    refresh = target("refresh", port, "/news/", depth="DEEP")
    refresh["schedules"][0]["refresh"] = True
    raw = [
        *(target(scope, port, "/news/", scope=scope, depth="DEEP") for scope in SCOPES),
        *(target(name, port, depth=depth) for name, depth in DEPTHS.items()),
        refresh,
        target("obeyed", port),
        target("ignored", port, ignoreRobotsTxt=True),
        target("excluded", port, logoutUrl=f"http://excluded.example:{port}/logout"),
        target("moved", port),
        target("page", port, scope="plus1"),
    ]
    found = feed.read(json.dumps(raw).encode(), "a feed")
    assert not found.faults
    return selected(found.targets, WEEKLY, stamp_time("20260301060000"))


def recipe(port: int, **settings: Any) -> OwnRecipe:
    excluded = ("# never", "", f"http://excluded.example:{port}/never/")
    return OwnRecipe({**SETTINGS, **settings}, "http://archive.example/", excluded, CAPS)


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int | None]:
    """`host/path` with its status, of all that was asked for but names, robots.txt and icons."""
    folder = tmp_path_factory.mktemp("fed")
    web: dict[tuple[str, str], Page] = {}
    with serve(web) as port:
        web.update(whole_web(port))
        resolve = [f"{host}=127.0.0.1" for host in sorted({host for host, _ in web})]
        files = recipe(port, resolve=resolve).files("fed", targets(port))
        crawled.crawl(folder, file.parse(files, crawled.LAUNCH.job))
    found = {}
    for line in crawled.lines(folder):
        parts = urlsplit(line.uri)
        if parts.scheme == "http" and parts.path not in ("/robots.txt", "/favicon.ico"):
            found[f"{parts.hostname}{parts.path}"] = line.status
    return found


@pytest.mark.parametrize(("head", "rows"), [("scope", SCOPES), ("depth", tuple(DEPTHS.values()))])
def test_each_row_of_the_guide_s_table_is_tested(head: str, rows: tuple[str, ...]) -> None:
    """Here and in the tests of Heritrix, which have the same rows."""
    _, _, after = GUIDE.read_text("utf-8").partition(f"| {head} |")
    table = after.partition("\n\n")[0].splitlines()[2:]
    assert sorted(row.split("`")[1] for row in table) == sorted(rows)


def test_a_site_that_moved_to_its_www_is_crawled_there(urls: dict[str, int | None]) -> None:
    assert {url: status for url, status in urls.items() if "moved" in url} == {
        "moved.example/": 301,
        "www.moved.example/": 200,
        "www.moved.example/inside": 200,
    }


@pytest.mark.parametrize("scope", ROWS)
def test_each_scope_is_crawled_so_far_and_no_further(urls: dict[str, int | None], scope: str) -> None:
    host = f"{scope}.example"
    wanted = {url.replace("far.H", f"far-{host}").replace("H", host) for url in CRAWLED[scope] | {FONT}}
    assert {url: status for url, status in urls.items() if host in url} == dict.fromkeys(wanted, 200)


@pytest.mark.parametrize(("name", "cap"), [("capped", CAPS.capped), ("large", CAPS.capped_large), ("deep", None)])
def test_each_depth_ends_at_its_cap(urls: dict[str, int | None], name: str, cap: int | None) -> None:
    statuses = [status for url, status in urls.items() if url.startswith(f"{name}.example/")]
    assert len(statuses) == BIG_PAGES
    fetched = statuses.count(200)
    if cap is None:
        assert fetched == BIG_PAGES
        return
    assert cap <= fetched * (FILLER + 1_000)
    assert (fetched - 1) * FILLER < cap
    assert set(statuses) == {200, -5003}


def test_robots_txt_is_obeyed_or_ignored_as_the_target_says(urls: dict[str, int | None]) -> None:
    found = {url: status for url, status in urls.items() if url.startswith(("obeyed.", "ignored."))}
    assert found == {
        "obeyed.example/": 200,
        "obeyed.example/public": 200,
        "obeyed.example/private/x": -9998,
        "ignored.example/": 200,
        "ignored.example/public": 200,
        "ignored.example/private/x": 200,
        "ignored.example/private/y": 200,  # reached from a page of a target that obeys: here the site decides
        "ignored.example/private/z": 200,
    }


def test_what_is_excluded_is_not_crawled(urls: dict[str, int | None]) -> None:
    assert {url for url in urls if "excluded" in url} == {"excluded.example/", "excluded.example/fine"}


def test_the_files_are_the_same_for_the_same_targets_in_any_order() -> None:
    both = recipe(80)
    assert both.files("fed", targets(80)) == both.files("fed", targets(80)[::-1])


@pytest.mark.parametrize("key", ["contact", "pages", "quotas", "settings"])
def test_what_the_feed_decides_is_refused_among_the_settings(key: str) -> None:
    with pytest.raises(BadConfig, match=rf"\[feed\] settings, {key}: the feed decides it"):
        recipe(80, **{key: {}}).refuse_faults("fed")


def test_other_settings_are_kept_and_each_way_to_crawl_is_written_once() -> None:
    written = tomllib.loads(recipe(80, politeness={"least": 1.5}).files("fed", targets(80))["crawl.toml"].decode())
    assert written["contact"] == "http://archive.example/"
    assert written["politeness"] == {"least": 1.5}
    assert written["pages"]["http://plus1.example:80/news/".replace(":80", "")] == "plus1"
    ways = [(one["robots"], json.dumps(one["quotas"]), "prefixes" in one) for one in written["settings"]]
    assert len(ways) == len(set(ways)) == 6


def test_a_key_that_no_crawl_toml_has_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="no such key"):
        recipe(80, hopps=3).refuse_faults("fed")
