"""Orders that programs and pages give to a group of clusters over HTTP, with a real PostgreSQL, updater and crawl."""

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
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import Request, urlopen

import asyncpg
import pytest
from crawls import centres
from crawls.centres import EAST, HIDDEN, LARGE, NAME, SMALL, WEST
from crawls.clustered import GROUP, Clustered, cluster, web
from crawls.endless_job import until
from launches.engine import Engine
from msgspec.structs import replace
from operating.web_client import WebAnswer
from operating.web_site import WebSite

from servers import serving
from servers.postgresql import PostgresqlServer
from warcmill.clusters import tables
from warcmill.clusters.group import Group
from warcmill.stores.opening import open_folder
from warcmill.versions import hidden_list
from warcmill.web.access import Role, add_token, withdraw_token

ROOT = f"/groups/{NAME}"
ORDERS, URIS, LOAD = f"{ROOT}/orders", f"{ROOT}/uris", f"{ROOT}/load"


class Site(WebSite):
    """The pages of a line with a group."""

    def __init__(self, base: Path, group: Group) -> None:
        engine = Engine(base)
        super().__init__(engine, engine.audited)
        self.group = group
        self.more = {"groups": lambda: [group.name], "group_named": lambda _: group}

    def query(self, text: str, *args: object) -> list[Any]:
        async def ask() -> list[Any]:
            connection = await asyncpg.connect(self.group.centre.url)
            try:
                return list(await connection.fetch(text, *args))
            finally:
                await connection.close()

        return asyncio.run(ask())

    def order(self, role: str = "operator", key: str = "", code: int = 202, **wanted: Any) -> list[int]:
        """Give an order; return its numbers."""
        more = {"idempotency_key": key} if key else {}
        answer = self.send(ORDERS, json.dumps(wanted).encode(), role, **more)
        assert answer.status == code, answer.text
        return list(answer.document["orders"]) if code == 202 else []

    def stored(self, number: int) -> Any:
        (row,) = self.query("SELECT * FROM orders WHERE number = $1", number)
        return {**dict(row), "subject": json.loads(row["subject"])}


@pytest.fixture(scope="module")
def group(postgresql: PostgresqlServer, tmp_path_factory: pytest.TempPathFactory) -> Group:
    return centres.leave(postgresql, tmp_path_factory.mktemp("centre of orders"))


@pytest.fixture
def site(group: Group, tmp_path: Path) -> Site:
    return Site(tmp_path, group)


def test_an_order_is_for_the_cluster_of_its_host_and_each_role_gives_what_it_may(site: Site) -> None:
    (number,) = site.order("curator", act="suspend", site=f"HTTP://{LARGE}:80/")
    found = site.stored(number)
    assert (found["cluster"], found["verb"], found["subject"]) == (EAST, "suspend", {"site": LARGE})
    east, west = site.order("curator", act="add", uris=[f"http://{LARGE}/n", f"http://{SMALL}/n", "http://new.test/"])
    assert [(site.stored(one)["cluster"], site.stored(one)["uris"]) for one in (east, west)] == [(EAST, 2), (WEST, 1)]
    assert len(site.order(act="remove", prefix="http://(example,")) == 2
    site.order("curator", act="remove", uris=[f"http://{LARGE}/1"], code=403)
    site.order("reader", act="suspend", uris=[f"http://{LARGE}/1"], code=403)
    site.order("", act="suspend", uris=[f"http://{LARGE}/1"], code=403)
    answer = site.get(f"{ORDERS}/{number}", {"format": "json"}, "reader")
    assert (answer.document["state"], answer.document["subject"]) == ("waiting", {"site": LARGE})
    for odd in ("0", "999999", "9" * 18, "9" * 40, "x", "-1", "1.0"):
        assert site.get(f"{ORDERS}/{odd}", {"format": "json"}).status == 404
    added = site.send(URIS, json.dumps({"uris": [f"http://{SMALL}/m"] * 2}).encode(), "curator")
    assert (added.status, site.stored(added.document["orders"][0])["subject"]) == (202, {"uris": [f"http://{SMALL}/m"]})


def test_the_same_post_with_the_same_key_is_one_order(site: Site) -> None:
    uris = [f"http://{LARGE}/k", f"http://{SMALL}/k"]
    first = site.order(act="add", uris=uris)
    assert site.order(act="add", uris=uris) != first, "without a key each is an order"
    kept = site.order(key="one", act="add", uris=uris)
    assert len(kept) == 2
    found = list[list[int]]()
    threads = [
        threading.Thread(target=lambda: found.append(site.order(key="one", act="add", uris=uris))) for _ in range(4)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == [kept] * 4
    site.order(key="one", act="add", uris=uris[:1], code=409)
    assert site.order("curator", key="one", act="add", uris=uris) != kept, "the key of somebody else"


def test_a_list_has_all_uris_of_a_sort_by_its_places(site: Site) -> None:
    def listed(role: str, **fields: str) -> list[str]:
        found, after = list[str](), ""
        while True:
            answer = site.get(URIS, {**fields, "after": after, "limit": "7"}, role)
            assert answer.status == 200, answer.text
            found += [one["uri"] for one in answer.document["uris"]]
            after = answer.document["next"]
            if not after:
                assert len({*found}) == len(found)
                return found

    def number(where: str, *args: object) -> int:
        return int(site.query(f"SELECT count(*) AS n FROM uris WHERE {where}", *args)[0]["n"])

    everything = number("true")
    assert len(listed("reader")) == everything
    assert len(listed("operator", status="Failed")) == number("status = 'Failed'")
    assert len(listed("operator", host=LARGE, status="Parsed")) == number("host = $1 AND status = 'Parsed'", LARGE)
    assert len(listed("operator", cluster=WEST)) == number("cluster = $1", WEST)
    assert len(listed("operator", prefix="http://(example,large,)/1")) == number("uri LIKE $1", f"http://{LARGE}/1%")
    assert site.get(URIS, {"prefix": "example.org"}).status == 400
    assert site.get(URIS, {"after": "x:zz"}).status == 400
    assert site.get(URIS, {"after": "x"}).status == 400
    hidden_list.decide(site.state, lambda: site.roots.store, "example,secret)/", "order of a court", hides=True)
    shown = listed("reader")
    assert (len(shown), any(HIDDEN in one for one in shown)) == (everything - number("host = $1", HIDDEN), False)
    assert len(listed("curator")) == everything
    one = site.get(f"{ROOT}/uri/history", {"url": f"http://{LARGE}/0"}, "reader").document
    assert [visit["status"] for visit in one["visits"]] == ["Parsed", "Parsed"]
    assert site.get(f"{ROOT}/uri/history", {"url": f"http://{HIDDEN}/0"}, "reader").status == 404
    (number_of,) = site.order(act="suspend", uris=[f"http://{HIDDEN}/1"])
    assert HIDDEN not in site.get(f"{ORDERS}/{number_of}", {"format": "json"}, "reader").text
    assert HIDDEN not in site.get(f"{ORDERS}/{number_of}", {}, "reader").text


def forms(answer: WebAnswer) -> list[tuple[dict[str, str], str]]:
    """The forms of a page that post: their hidden fields, and the command that does the same."""
    found = re.findall(r'<form method="post" action="/groups[^"]*">(.*?)</form>', answer.text, re.DOTALL)
    return [
        (
            {name: unescape(value) for name, value in re.findall(r'name="(\w+)" value="([^"]*)"', one)},
            unescape(re.findall(r'<code class="command">(.*?)</code>', one, re.DOTALL)[0]),
        )
        for one in found
    ]


def test_each_form_gives_an_order_once_and_shows_the_command_for_it(site: Site) -> None:
    url, crawl = f"http://{SMALL}/", centres.MARKUP
    pages: list[tuple[str, dict[str, str], int]] = [
        (f"{ROOT}/uri", {"url": f"http://{LARGE}/2"}, 4), (f"{ROOT}/uri", {"url": url, "crawl": crawl}, 3),
        (f"{ROOT}/uri", {"url": "http://never.test/"}, 1), (f"{ROOT}/hosts/{LARGE}", {}, 3),
        (f"{ROOT}/clusters/{EAST}", {}, 2), (ORDERS, {}, 2),
    ]  # fmt: skip
    typed = {"hits": "3", "window": "2.5", "prefix": "http://(example,large,)/x"}
    typed["uris"] = "http://a.typed.test/\r\n\r\nhttp://b.typed.test/\r\n"
    for path, fields, number in pages:
        assert forms(site.get(path, fields, "reader")) == []
        may_remove = [command for _, command in forms(site.get(path, fields, "curator")) if " remove " in command]
        assert may_remove == []
        found = forms(site.get(path, fields))
        assert len(found) == number, path
        for hidden, command in found:
            posted = {"act": "suspend", **typed, **hidden}
            wanted = {"uris"} if posted["act"] == "add" else {*hidden} & {"uris", "site"} or {"prefix"}
            rate = {"hits", "window"} if posted["act"] == "rate" and "none" not in posted else set()
            posted = {
                name: text for name, text in posted.items()
                if name in wanted | rate | {"act", "form", "crawl", "none"}
            }  # fmt: skip
            answer = site.post(ORDERS, posted)
            assert answer.status == 303, (answer.text, posted)
            assert site.post(ORDERS, posted).header("location") == answer.header("location"), "it was sent twice"
            assert f"warcmill uri {NAME} {posted['act']}" in command
            place = urlsplit(answer.header("location"))
            if place.query:  # of both clusters
                assert "prefix" in posted
                continue
            number_of = int(place.path.rpartition("/")[2])
            assert site.stored(number_of)["verb"] == posted["act"]
            page = site.get(place.path)
            assert (page.status, 'data-refresh="2"' in page.text) == (200, True)
    (last,) = site.query("SELECT subject FROM orders WHERE subject ? 'crawl' ORDER BY number DESC LIMIT 1")
    assert json.loads(last["subject"]) == {"uri": url, "crawl": crawl}
    (rate,) = site.query("SELECT subject FROM orders WHERE subject ? 'window' ORDER BY number DESC LIMIT 1")
    assert json.loads(rate["subject"]) == {"site": LARGE, "hits": 3, "window": 2.5}
    for odd in ({"act": "suspend"}, {"act": "suspend", "prefix": "x"}, {"act": "rate", "site": LARGE, "hits": "nan"},
                {"act": "rate", "site": LARGE, "window": "inf"}, {"act": "add", "uris": "no URL"}, {}):  # fmt: skip
        assert site.post(ORDERS, odd).status == 400
    assert site.post(ORDERS, {"act": "remove", "uris": url}, "curator").status == 403


def test_a_file_is_loaded_once_and_its_bad_lines_are_named(site: Site) -> None:
    lines = [f"http://h{n % 3}.loaded.test/{n}" for n in range(1200)]
    data = "\n".join([*lines[:700], "no URL", *lines[700:]]).encode()

    def load(data: bytes, role: str = "curator") -> WebAnswer:
        return site.send(LOAD, data, role, "text/plain; charset=utf-8")

    first = load(data)
    assert (first.status, first.document["new"], first.document["lines"]) == (202, 1200, 1201)
    assert first.document["bad"] == [{"line": 701, "why": "not a URI with scheme and host"}]
    assert first.document["orders"] == {"waiting": 3}
    assert load(data).document == {**first.document, "new": 0}
    assert load(b"").document == {"bad": [], "lines": 0, "new": 0, "orders": {}}
    many = load(b"x\n" * 2_000_000)
    assert (many.status, "more than 1,000 lines are not URLs" in many.document["why"]) == (400, True)
    assert load(data, "reader").status == 403


def test_the_orders_for_a_uri_are_found_among_all(site: Site) -> None:
    url = "http://www.sought.test/a/page?x=1"

    def found(crawl: str = "") -> list[str]:
        answer = site.get(f"{ROOT}/uri", {"url": url, "crawl": crawl, "format": "json"})
        return [one["verb"] for one in answer.document["orders"]]

    site.order(act="add", uris=["http://www.sought.test/", url])
    site.order(act="suspend", uris=[url])
    site.order(act="remove", uris=[url], crawl="shop")
    site.order(act="remove", uris=[url, "http://www.sought.test/b"])
    site.order(act="rate", site="www.sought.test", hits=1)
    site.order(act="resume", prefix="http://(test,sou")
    site.order(act="suspend", prefix="https://(test,sought,www,)/a/p")
    site.order(act="resume", prefix="http://(test,sought,)/")
    site.order(act="resume", prefix="http://(test,sought,www,)/b")
    rows = (
        "INSERT INTO orders (cluster, verb, subject, uris) SELECT $1, 'add', jsonb_build_object('uris',"
        " jsonb_build_array('http://o.test/' || n)), 1 FROM generate_series(1, 3000) n"
    )
    site.query(rows, EAST)
    both = ["suspend", "suspend", "resume", "resume", "rate"]
    assert found() == [*both, "remove", "suspend", "add"]
    assert found("shop") == [*both, "remove"]


def test_a_centre_of_an_earlier_version_is_named_with_the_command(site: Site) -> None:
    names = ("orders_by_uris", "orders_by_name", "orders_by_prefix")
    site.query("UPDATE about SET value = '2' WHERE name = 'version'")
    assert "warcmill group web init" in site.get(ORDERS).text
    site.query("UPDATE about SET value = $1 WHERE name = 'version'", str(tables.VERSION))
    assert site.get(ORDERS).status == 200
    (found,) = site.query("SELECT count(*) AS n FROM pg_indexes WHERE indexname = ANY($1::text[])", [*names])
    assert found["n"] == 3


class Program:
    """A program with a token, that asks a server."""

    def __init__(self, address: str, token: str) -> None:
        self.address, self.token = address, token

    def ask(self, path: str, document: bytes | None = None, type_: str = "application/json", **headers: str) -> Any:
        sent = {"Authorization": f"Bearer {self.token}", "Content-Type": type_, "Accept": "application/json", **headers}
        asked = Request(f"{self.address}groups/{GROUP}/{path}", document, sent)
        try:
            with urlopen(asked, timeout=60) as answer:
                return {"status": answer.status, **json.load(answer)}
        except HTTPError as error:
            return {"status": error.code, **json.load(error)}

    def order(self, **wanted: Any) -> Any:
        """Give an order; return what became of it."""
        found = self.ask("orders", json.dumps(wanted).encode())
        assert found["status"] == 202, found
        (number,) = found["orders"]
        until(lambda: self.ask(f"orders/{number}")["state"] != "waiting")
        return self.ask(f"orders/{number}")


@contextmanager
def served(east: Clustered, folder: Path) -> Iterator[Program]:
    serving.configure(east.line.config)
    token = add_token(open_folder("state", str(east.line.folders["state"])), "anna", Role.OPERATOR, None)
    with serving.serving(east.line.config, folder / "serve.log", token) as server:
        yield Program(server.address, token)


def test_orders_over_http_reach_a_crawl_and_their_end_is_seen(postgresql: PostgresqlServer, tmp_path: Path) -> None:
    with cluster(tmp_path, postgresql, web(2)) as east, served(east, tmp_path) as program:
        east.start()
        east.update()
        until(lambda: east.state()["queued"] == 0)
        site = f"h0.example:{east.port}"
        added = [f"http://{site}/added/{n}" for n in range(4)]
        assert program.order(act="suspend", site=site)["state"] == "done"
        assert program.order(act="add", uris=added)["state"] == "done"
        until(lambda: len(program.ask("uris?status=Scheduled")["uris"]) == 4)
        some = program.order(act="suspend", uris=[*added[:2], f"http://{site}/1"])
        assert (some["state"], some["uris"]) == ("done", 3)
        assert some["reason"] == f"2 URIs; not http://{site}/1: nothing of it waits"
        refused = program.order(act="suspend", uris=[f"http://{site}/1"])
        assert (refused["state"], refused["reason"]) == ("refused", "nothing of it waits")
        assert program.order(act="remove", uris=added[:1])["state"] == "done"
        assert program.order(act="resume", prefix="http://(example,h0,)/added/")["reason"] == "1 URIs"
        assert program.order(act="rate", site=site, hits=5, window=1)["state"] == "done"
        assert program.order(act="resume", site=site)["state"] == "done"
        visited = f"uri/history?{urlencode({'url': added[1]})}"
        until(lambda: program.ask(visited)["status"] == 200)
        assert program.ask(visited)["visits"][0]["http_status"] == 404
        one = f"uri?{urlencode({'url': added[0], 'format': 'json'})}"
        until(lambda: program.ask(one)["uri"]["status"] == "Removed")
        lines = "\n".join(f"http://h1.example:{east.port}/loaded/{n}" for n in range(600)).encode()
        loaded = program.ask("load", lines, "text/plain")
        assert (loaded["status"], loaded["new"]) == (202, 600)
        until(lambda: program.ask("load", lines, "text/plain")["orders"] == {"done": 2})
        until(lambda: east.counts().get("Parsed", 0) > 600)
        assert east.books()["clusters"][0]["differences"] == []


def test_hostile_programs_take_nothing_away_from_others(postgresql: PostgresqlServer, tmp_path: Path) -> None:
    with cluster(tmp_path, postgresql, web(1)) as east, served(east, tmp_path) as program:
        many = json.dumps({"act": "add", "uris": [f"http://h0.example/{n}" for n in range(1_000_000)]}).encode()
        assert program.ask("orders", many)["status"] == 413
        odd_text = b'{"act": "add", "uris": ["http://h0.example/\\u0000", "\\udfff"]}'
        for odd in (b"[" * 500_000, odd_text, b"\xff\xfe\x00"):
            assert program.ask("orders", odd)["status"] == 400
        host = urlsplit(program.address)
        slow = [socket.create_connection((str(host.hostname), host.port or 80)) for _ in range(3)]
        head = f"POST /groups/{GROUP}/load HTTP/1.1\r\nHost: {host.netloc}\r\nAuthorization: Bearer {program.token}\r\n"
        for one in slow:
            one.sendall(f"{head}Content-Type: text/plain\r\nContent-Length: 100000\r\n\r\nhttp://".encode())
        many_lines = b"http://h0.example/\n" * 2000
        until(lambda: program.ask("load", many_lines, "text/plain")["status"] == 503)
        assert "send it again" in program.ask("load", many_lines, "text/plain")["why"]
        assert program.ask("uris")["status"] == 200, "the others are answered"
        for one in slow:
            one.close()
        until(lambda: program.ask("load", many_lines, "text/plain")["status"] == 202)
        connection = HTTPConnection(str(host.hostname), host.port, timeout=60)
        parts = iter([b'{"uris": [', b'"http://h0.example/piece"', b"]}"])
        headers = {"Authorization": f"Bearer {program.token}", "Content-Type": "application/json"}
        connection.request("POST", f"/groups/{GROUP}/uris", parts, headers, encode_chunked=True)
        assert connection.getresponse().status == 202, "in chunks"
        connection.close()
        withdraw_token(open_folder("state", str(east.line.folders["state"])), "anna")
        assert program.ask("uris", b'{"uris": ["http://h0.example/"]}')["status"] == 403
        assert "Traceback" not in (tmp_path / "serve.log").read_text()


def test_while_postgresql_is_away_a_program_learns_what_to_do(site: Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = site.group.centre
        away = replace(site.group, centre=replace(place, url=f"postgresql://x@127.0.0.1:{silent.getsockname()[1]}/x"))
        site.more["group_named"] = lambda _: away
        begun = time.monotonic()
        answer = site.send(ORDERS, json.dumps({"act": "suspend", "site": quote(LARGE)}).encode(), "curator")
        assert (answer.status, time.monotonic() - begun < 20) == (503, True)
        assert answer.document["what"] == f"the centre of group {NAME}"
        assert "Idempotency-Key" in answer.document["why"]
