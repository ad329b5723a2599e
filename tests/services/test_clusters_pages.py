"""The pages of a group of clusters over a real PostgreSQL: each number leads to its list, no centre holds them up."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit
from urllib.request import Request, urlopen

import asyncpg
import pytest
from crawls import centres
from crawls.centres import EAST, HIDDEN, LARGE, MARKUP, NAME, ODD, SMALL, URIS, WARC, WEST
from crawls.clustered import GROUP, HOSTS, JOB, cluster, web
from crawls.endless_job import until
from launches.engine import Engine
from msgspec.structs import replace
from operating.web_client import WebAnswer
from operating.web_site import WebSite

from servers import serving
from servers.postgresql import PostgresqlServer
from warcmill.clusters.group import Group
from warcmill.errors import BadConfig
from warcmill.stores.opening import open_folder
from warcmill.versions import hidden_list
from warcmill.web.access import Role, add_token

PATH = f"/groups/{NAME}"
LONGEST = 10.0  # seconds until a page says that its centre is silent: to connect or ask, to close, and some


class GroupSite(WebSite):
    """The pages of a line with a group."""

    def __init__(self, base: Path, group: Group) -> None:
        engine = Engine(base)
        super().__init__(engine, engine.audited)
        self.group = group
        self.more = {"groups": lambda: [self.group.name], "group_named": lambda _: self.group}

    def document(self, path: str, role: str = "operator", **fields: str) -> Any:
        answer = self.get(path, {**fields, "format": "json"}, role)
        assert answer.status == 200, answer.text
        return answer.document

    def follow(self, href: str, role: str = "operator", **more: str) -> WebAnswer:
        """The page of a link."""
        parts = urlsplit(unescape(href))
        return self.get(unquote(parts.path), {**dict(parse_qsl(parts.query)), **more}, role)

    def query(self, text: str, *args: object) -> list[Any]:
        async def ask() -> list[Any]:
            connection = await asyncpg.connect(self.group.centre.url)
            try:
                return list(await connection.fetch(text, *args))
            finally:
                await connection.close()

        return asyncio.run(ask())


@pytest.fixture(scope="module")
def group(postgresql: PostgresqlServer, tmp_path_factory: pytest.TempPathFactory) -> Group:
    return centres.leave(postgresql, tmp_path_factory.mktemp("centre"))


@pytest.fixture
def site(group: Group, tmp_path: Path) -> GroupSite:
    return GroupSite(tmp_path, group)


def links(answer: WebAnswer) -> set[str]:
    """The links of a page to pages of groups."""
    return {unescape(href) for href in re.findall(r'href="(/groups[^"]*)"', answer.text)}


def walked(site: GroupSite, path: str, key: str, role: str = "operator", **fields: str) -> list[Any]:
    """All entries of a list, by the links to its next pages."""
    found: list[Any] = []
    while True:
        found += site.document(path, role, **fields)[key]
        way = re.search(r'href="([^"]*)" rel="next"', site.get(path, fields, role).text)
        if not way:
            return found
        fields = dict(parse_qsl(urlsplit(unescape(way[1])).query))


def test_each_number_leads_to_its_list(site: GroupSite) -> None:
    assert site.document("/groups") == {"groups": [{"group": NAME, "clusters": [EAST, WEST]}]}
    east, west = site.document(PATH)["clusters"]
    counts = {row["status"]: row["n"] for row in site.query(
        "SELECT status, count(*) AS n FROM uris WHERE cluster = $1 GROUP BY status", EAST)}  # fmt: skip
    assert {name: number for name, number in east["uris"].items() if number} == counts
    assert (east["behind"], east["orders"], east["updater"], west["updated"]) == (12345, 2, "", "")
    assert east["oldest"]["uri"].startswith(f"http://{LARGE}/") or HIDDEN in east["oldest"]["uri"]
    text = site.get(PATH).text
    assert text.count("nobody updates it") == 2
    assert f'<a href="{PATH}/clusters/{EAST}?status=Failed">{counts["Failed"]}</a>' in text
    for status, number in counts.items():
        hosts = walked(site, f"{PATH}/clusters/{EAST}", "hosts", status=status)
        assert sum(one["uris"][status] for one in hosts) == number
        for one in hosts[:2]:
            found = walked(site, f"{PATH}/hosts/{one['host']}", "uris", status=status)
            assert len({row["uri"] for row in found}) == len(found) == one["uris"][status]
            assert {row["status"] for row in found} == {status}
    hosts = walked(site, f"{PATH}/clusters/{EAST}", "hosts")
    assert [one["host"] for one in hosts[:2]] == [LARGE, HIDDEN]
    assert len({one["host"] for one in hosts}) == len(hosts) == 62
    assert len(walked(site, f"{PATH}/hosts/{LARGE}", "uris")) == URIS
    below = walked(site, f"{PATH}/clusters/{WEST}", "hosts", domain="small.example")
    assert [one["host"] for one in below] == [SMALL]
    assert len(walked(site, f"{PATH}/clusters/{EAST}", "hosts", domain="small.example")) == 60
    waiting = walked(site, f"{PATH}/orders", "orders", state="waiting", cluster=EAST)
    assert [one["verb"] for one in waiting] == ["add", "remove"]
    assert len(walked(site, f"{PATH}/orders", "orders")) == len(site.query("SELECT 1 FROM orders"))


def test_every_link_of_every_page_is_answered(site: GroupSite) -> None:
    seen, todo = set[str](), {"/groups"}
    while todo:
        href = todo.pop()
        seen.add(href)
        answer = site.follow(href)
        assert answer.status == 200, href
        assert MARKUP not in answer.text
        assert site.follow(href, format="json").status == 200
        todo |= {one for one in links(answer) - seen if "uri?" not in one or len(seen) < 60}
    assert any("/uri?" in one for one in seen)


def test_a_uri_shows_its_row_its_visits_with_captures_and_the_orders_for_it(site: GroupSite) -> None:
    first = site.document(f"{PATH}/uri", url=f"http://{LARGE}/0")
    assert (first["uri"]["status"], first["uri"]["stage"]) == ("Scheduled", "20261129010000")
    assert [one.get("warc") for one in first["visits"]] == [WARC, None]
    assert [one["verb"] for one in first["orders"]] == ["resume", "suspend", "add"]
    text = unescape(site.get(f"{PATH}/uri", {"url": f"http://{LARGE}/0"}).text)
    assert f"/capture?url=http%3A%2F%2Flarge.example%2F0&warc={WARC}&offset=1234" in text
    of_others = {
        number: site.document(f"{PATH}/uri", url=f"http://{LARGE}/{number}")["orders"] for number in (1, 7, 70)
    }
    verbs = {number: [one["verb"] for one in found] for number, found in of_others.items()}
    assert verbs == {1: ["resume", "remove", "suspend", "add"], 7: ["remove", "resume", "suspend"],
                     70: ["resume", "suspend"]}  # fmt: skip
    suspended = site.document(f"{PATH}/uri", url=f"http://{SMALL}/", crawl=MARKUP)
    assert (suspended["uri"]["status"], suspended["uri"]["suspended"]) == ("Suspended", "site")
    assert len(site.document(f"{PATH}/uri", url=ODD)["orders"]) == 50
    never = site.get(f"{PATH}/uri", {"url": "http://never.test/"})
    assert (never.status, "has never had this URI" in never.text) == (404, True)
    assert site.get(f"{PATH}/uri").status == 200
    assert site.get(f"{PATH}/uri", {"format": "json"}).status == 400


@pytest.mark.parametrize(("path", "fields"), [
    ("/uri", {"url": "no URL"}), ("/orders", {"state": "odd"}), ("/orders", {"before": "1x"}),
    (f"/hosts/{LARGE}", {"status": "odd"}), (f"/hosts/{LARGE}", {"after": "zz"}),
    (f"/clusters/{EAST}", {"status": "parsed"}), (f"/clusters/{EAST}", {"before": "x"}),
])  # fmt: skip
def test_what_is_no_place_or_no_word_is_refused(site: GroupSite, path: str, fields: dict[str, str]) -> None:
    assert site.get(PATH + path, fields).status == 400


@pytest.mark.parametrize(
    "odd", ["\0", "%00", "'", "%", "_", "\\", "9" * 40, MARKUP, "..", "[::1]", "\u0130", "h" * 9000]
)
def test_no_odd_part_or_field_is_a_fault(site: GroupSite, odd: str) -> None:
    asked = [(f"/clusters/{odd}", {}), (f"/hosts/{odd}", {}), (f"/clusters/{EAST}", {"domain": odd}),
             (f"/clusters/{EAST}", {"before": f"9:{odd}"}), (f"/hosts/{LARGE}", {"after": odd}),
             ("/uri", {"url": odd}), ("/uri", {"url": f"http://{LARGE}/{odd}"}), ("/orders", {"cluster": odd}),
             *(("/uri", {"url": f"http://{LARGE}/", name: odd}) for name in ("crawl", "key"))]  # fmt: skip
    for path, fields in asked:
        assert site.get(PATH + path, fields).status in (200, 400, 404), (path, fields)


def test_what_is_not_there_is_named(site: GroupSite) -> None:
    for path in ("/groups/none", f"{PATH}/clusters/none", f"{PATH}/hosts/never.test"):
        assert site.get(path).status == 404
    assert '<a href="/groups"' in site.get("/jobs").text
    site.more = {}
    del site.app
    assert "no section [group.NAME]" in site.get("/groups").text
    assert {site.get(one).status for one in ("/groups", PATH, f"{PATH}/orders")} == {404}
    assert '<a href="/groups"' not in site.get("/jobs").text


def test_readers_get_nothing_of_what_is_hidden(site: GroupSite) -> None:
    hidden_list.decide(site.state, lambda: site.roots.store, "example,secret)/", "order of a court", hides=True)
    for role, is_there in (("reader", False), ("curator", True)):
        hosts = [one["host"] for one in walked(site, f"{PATH}/clusters/{EAST}", "hosts", role)]
        assert (HIDDEN in hosts, len(hosts)) == (is_there, 61 + is_there)
        pages = [PATH, f"{PATH}/clusters/{EAST}", f"{PATH}/orders?state=waiting"]
        assert any(HIDDEN in site.follow(page, role).text for page in pages) is is_there
        assert site.get(f"{PATH}/hosts/{HIDDEN}", role=role).status == (200 if is_there else 404)
        assert site.get(f"{PATH}/uri", {"url": f"http://{HIDDEN}/1"}, role).status == (200 if is_there else 404)


@contextmanager
def locked(group: Group) -> Iterator[None]:
    """No query of hosts is answered while the block runs."""
    ready, end = threading.Event(), threading.Event()

    async def hold() -> None:
        connection = await asyncpg.connect(group.centre.url)
        async with connection.transaction():
            await connection.execute("LOCK TABLE hosts IN ACCESS EXCLUSIVE MODE")
            ready.set()
            await asyncio.to_thread(end.wait)
        await connection.close()

    thread = threading.Thread(target=lambda: asyncio.run(hold()))
    thread.start()
    try:
        assert ready.wait(10)
        yield
    finally:
        end.set()
        thread.join()


def test_a_centre_that_is_slow_silent_or_away_is_named_within_seconds(site: GroupSite) -> None:
    def refused() -> str:
        begun = time.monotonic()
        answer = site.get(PATH, {"format": "json"}, "reader")
        assert (answer.status, time.monotonic() - begun < LONGEST) == (503, True), answer.text
        return str(answer.document["error"])

    with locked(site.group):
        assert "PostgreSQL did not answer within" in refused()
        waiting = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'warcmill group web' AND state = 'active'"
        assert site.query(waiting) == [], "no query of a page goes on at the server"
    assert site.get(PATH).status == 200
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = site.group.centre
        site.group = replace(
            site.group, centre=replace(place, url=f"postgresql://x@127.0.0.1:{silent.getsockname()[1]}/x")
        )
        assert "127.0.0.1" not in refused()
        threads = [threading.Thread(target=site.get, args=(PATH,)) for _ in range(8)]
        for one in threads:
            one.start()
        time.sleep(0.5)
        begun = time.monotonic()
        assert "others ask it" in refused()
        assert site.get("/jobs").status == 200
        assert time.monotonic() - begun < 3, "they do not wait for the centre"
        for one in threads:
            one.join()
    assert "127.0.0.1" in site.get(PATH, {"format": "json"}).document["error"], "who may fix it sees where"
    site.more["group_named"] = _broken
    del site.app
    assert site.get(PATH).status == 503


def test_a_crawl_is_seen_in_the_pages_of_a_server(postgresql: PostgresqlServer, tmp_path: Path) -> None:
    with cluster(tmp_path, postgresql, web(3)) as east:
        serving.configure(east.line.config)
        token = add_token(open_folder("state", str(east.line.folders["state"])), "anna", Role.READER, None)
        with serving.serving(east.line.config, tmp_path / "serve.log", token) as server:

            def page(path: str) -> Any:
                asked = Request(f"{server.address}{path}", headers={"Authorization": f"Bearer {token}"})
                with urlopen(asked, timeout=LONGEST) as answer:
                    return json.load(answer)

            (before,) = page(f"groups/{GROUP}?format=json")["clusters"]
            assert (before["updater"], before["hosts"], before["oldest"]) == ("", 0, None)
            east.start()
            updater = east.update()
            until(lambda: east.state()["queued"] == 0)
            until(lambda: east.counts().get("Scheduled", 0) == 0 < east.counts().get("Parsed", 0))
            (after,) = page(f"groups/{GROUP}?format=json")["clusters"]
            assert {name: number for name, number in after["uris"].items() if number} == east.counts()
            assert (f"pid {updater.pid} on" in after["updater"], after["hosts"]) == (True, len(HOSTS))
            url = f"http://{HOSTS[1]}:{east.port}/1"
            found = page(f"groups/{GROUP}/uri?{urlencode({'url': url, 'format': 'json'})}")
            assert (found["uri"]["status"], found["uri"]["http_status"]) == ("Parsed", 200)
            assert found["visits"][0]["warc"].startswith(JOB)


def _broken(_: str) -> Group:
    raise BadConfig("[group.web] centre", "is not postgresql://")
