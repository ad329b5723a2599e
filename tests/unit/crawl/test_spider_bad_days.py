"""Servers that are slow, endless, wrong or away: each costs its own URIs, with a clear line, and the others go on."""

from __future__ import annotations

import asyncio
import errno
import gzip
import os
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from crawls import crawled
from sites.name_server import SILENT, name_server
from sites.raw_server import answering, serving
from sites.several_hosts import Page, page, serve

from warcmill.base import clock
from warcmill.crawl.fetch import addresses
from warcmill.crawl.fetch.limits import FetchLimits
from warcmill.crawl.frontier import Gate
from warcmill.crawl.frontier.sqlite import SqliteFrontier
from warcmill.crawl.job.job import End
from warcmill.crawl.launch import database, launch
from warcmill.crawl.policies.politeness import Politeness
from warcmill.crawl.uri import FOREVER, make

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
NO_ROBOTS = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
QUICK = FetchLimits(connect=60.0, idle=0.2, total=0.5, grace=0.1)


def raw(tmp_path: Path, *answers: bytes | list[bytes | float], limits: FetchLimits = QUICK) -> dict[str, int | None]:
    """Crawl one page of a server that answers so, after its robots.txt."""

    async def scenario() -> None:
        async with serving(answering(*answers)) as server:
            await crawled.whole(tmp_path, crawled.job(server.port, "a.example", limits=limits))

    asyncio.run(scenario())
    assert crawled.unbalanced(tmp_path) == []
    return crawled.statuses(tmp_path)


def annotations(folder: Path, uri: str) -> tuple[str, ...]:
    return next(line.annotations for line in crawled.lines(folder) if crawled.plain(line.uri) == uri)


def test_a_slow_loris_is_cut_off_and_what_came_is_kept(tmp_path: Path) -> None:
    drops: list[bytes | float] = [OK + b"Content-Length: 999\r\n\r\n"]
    for _ in range(99):
        drops += [b"x", 0.05]
    found = raw(tmp_path, NO_ROBOTS, drops)
    assert found["http://a.example/"] == 200
    assert annotations(tmp_path, "http://a.example/") == ("timeTrunc",)


def test_a_server_that_is_silent_is_tried_again_and_given_up(tmp_path: Path) -> None:
    async def robots_alone(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while b"robots" in await reader.readuntil(b"\r\n\r\n"):
            writer.write(NO_ROBOTS)
        await asyncio.Event().wait()

    async def scenario() -> None:
        async with serving(robots_alone) as server:
            await crawled.whole(tmp_path, crawled.job(server.port, "a.example", limits=QUICK))

    asyncio.run(scenario())
    found = crawled.statuses(tmp_path)
    assert found["http://a.example/"] == -4
    assert annotations(tmp_path, "http://a.example/") == ("2t",)
    assert "no answer in" in crawled.told(tmp_path, "nonfatal-errors.log")


def test_a_gzip_bomb_is_kept_as_it_came_and_not_unpacked(tmp_path: Path) -> None:
    bomb = gzip.compress(b"<a href=/far>x</a>" + bytes(60 << 20))
    head = OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb)
    found = raw(tmp_path, NO_ROBOTS, head + bomb, limits=FetchLimits())
    assert found["http://a.example/"] == 200
    assert annotations(tmp_path, "http://a.example/") == ("decodedTrunc:ratio",)


def test_a_header_without_end_is_cut(tmp_path: Path) -> None:
    raw(tmp_path, NO_ROBOTS, OK + b"X: " + b"y" * 400_000, limits=FetchLimits(idle=0.5))
    assert "headerTrunc" in annotations(tmp_path, "http://a.example/")


def test_a_redirect_loop_ends_since_each_uri_is_visited_once(tmp_path: Path) -> None:
    site: dict[tuple[str, str], Page] = {}
    with serve(site) as port:
        site["a.example", "/"] = Page(b"/b", status=301)
        site["a.example", "/b"] = Page(f"http://a.example:{port}/".encode(), status=301)
        end, _ = crawled.crawl(tmp_path, crawled.job(port, "a.example"))
    assert end is End.EMPTY
    assert crawled.statuses(tmp_path)["http://a.example/b"] == 301
    assert len(crawled.lines(tmp_path)) == 4


def test_a_site_whose_robots_txt_fails_is_deferred_and_then_given_up(tmp_path: Path) -> None:
    site = {("a.example", "/robots.txt"): Page(b"sorry", status=503), ("a.example", "/"): page([])}
    with serve(site) as port:
        _, running = crawled.crawl(tmp_path, crawled.job(port, "a.example"))
    robots = [line.status for line in crawled.lines(tmp_path) if line.uri.endswith("robots.txt")]
    assert robots == [503, 503]
    assert crawled.statuses(tmp_path)["http://a.example/"] == -61
    assert "503" in running.kit.offers.refused.first["robots"]


def test_a_clock_that_is_set_back_or_forward_hurries_no_host_and_lets_none_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock alone is a fake: the test may not set the machine's."""
    asked, real, steps = [], time.time, iter((-86_400.0, 0.0, 86_400.0, 0.0, 0.0))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            asked.append(time.monotonic())
            step = next(steps, 0.0)
            monkeypatch.setattr(time, "time", lambda step=step: real() + step)
            body = b"<a href=/%d>x</a>" % len(asked)
            last = NO_ROBOTS if b"robots" in head or len(asked) > 5 else b""
            writer.write(last or OK + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    async def scenario() -> None:
        async with serving(answer) as server:
            polite = Politeness(0.0, 0.1, 0.1)
            job = crawled.job(server.port, "a.example", no_delay=False, politeness=polite)
            async with asyncio.timeout(300):
                await crawled.whole(tmp_path, job)

    asyncio.run(scenario())
    assert len(asked) == 6
    assert all(after - before >= 0.1 for before, after in pairwise(asked))
    assert crawled.unbalanced(tmp_path) == []


DAY = 86_400.0


def test_a_clock_that_is_set_back_between_two_processes_lets_no_host_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first process has a clock that is a day ahead, and is stopped while its host is left alone."""
    real = clock.steady
    hosts = {(host, "/"): page(["/1", "/2"]) for host in ("a.example", "b.example")}
    with serve(hosts) as port:
        job = crawled.job(port, "a.example", "b.example", no_delay=False, politeness=Politeness(0.0, 0.5, 0.5))
        job = crawled.replace(job, seeds=(*job.seeds, "http://a.example:1/"))

        async def first() -> None:
            monkeypatch.setattr(database, "SqliteFrontier", partial(SqliteFrontier, now=lambda: real() + DAY))
            monkeypatch.setattr(clock, "steady", lambda: real() + DAY)
            running = await launch.open_launch(crawled.places(tmp_path), job, crawled.LAUNCH)
            running.books.hear = lambda *_: running.spider.hurry()
            await running.crawl()
            frontier = running.books.frontier
            await frontier.block(Gate("never.example"), FOREVER)
            await frontier.offer([make("http://b.example/calendar", not_before=real() + 30 * DAY)])
            await running.books.close()  # as a kill leaves it: without its end

        async def second() -> list[float]:
            monkeypatch.undo()
            running = await launch.open_launch(crawled.places(tmp_path), job, crawled.LAUNCH)
            db = running.books.frontier.db
            (calendar,) = (await running.books.frontier.list(keys=["http://b.example/calendar"])).uris
            assert calendar.not_before > real() + 29 * DAY
            waits = [wake / 1000 for (wake,) in db.execute("SELECT wake FROM queues WHERE wake IS NOT NULL")]
            await running.books.frontier.remove("", ["http://b.example/calendar"])
            async with asyncio.timeout(300):
                end = await running.crawl()
            await running.close(end)
            return waits

        asyncio.run(first())
        assert FOREVER in (waits := asyncio.run(second()))
    assert all(wait < time.time() + 60 for wait in waits if wait != FOREVER)
    assert crawled.statuses(tmp_path)["http://b.example/2"] == 404
    assert "the clock was set back by 86,4" in crawled.told(tmp_path, "alerts.log")


def test_a_site_is_asked_as_slowly_as_it_wants_by_its_own_log(tmp_path: Path) -> None:
    """Two hosts of one address: least delay, crawl-delay, Retry-After, and the second gate by address."""
    asked: list[tuple[float, str]] = []
    delayed = b"User-agent: *\nCrawl-delay: 0.3\n"
    links = b"".join(b"<a href=/%d>x</a>" % number for number in range(4))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := (await reader.readuntil(b"\r\n\r\n")).decode():
            host, path = head.partition("Host: ")[2].partition(":")[0], head.split(" ")[1]
            asked.append((time.monotonic(), f"{host}{path}"))
            if path == "/robots.txt" and host == "b.example":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(delayed) + delayed)
            elif path == "/robots.txt":
                writer.write(NO_ROBOTS)
            elif f"{host}{path}" == "a.example/2":
                writer.write(b"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n")
            else:
                writer.write(OK + b"Content-Length: %d\r\n\r\n" % len(links) + links)

    async def scenario() -> None:
        async with serving(answer) as server:
            polite = Politeness(0.0, 0.1, 0.1)
            job = crawled.job(server.port, "a.example", "b.example", no_delay=False, politeness=polite)
            await crawled.whole(tmp_path, job)

    asyncio.run(scenario())
    pages = {host: [one for one in asked if one[1].startswith(host)] for host in ("a.example", "b.example")}
    assert [len(found) for found in pages.values()] == [7, 6], "one is asked for again"
    assert all(later[0] - earlier[0] >= 0.1 for earlier, later in pairwise(asked)), "they share an address"
    assert all(later[0] - earlier[0] >= 0.3 for earlier, later in pairwise(pages["b.example"]))
    busy = next(place for place, (_, page) in enumerate(pages["a.example"]) if page == "a.example/2")
    assert pages["a.example"][busy + 1][0] - pages["a.example"][busy][0] >= 1.0


def test_a_robots_txt_is_asked_for_again_when_its_site_says(tmp_path: Path) -> None:
    asked: list[float] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while b"/robots.txt" in await reader.readuntil(b"\r\n\r\n"):
            asked.append(time.monotonic())
            busy = b"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
            writer.write(busy if len(asked) == 1 else NO_ROBOTS)
        writer.write(OK + b"Content-Length: 0\r\n\r\n")

    async def scenario() -> None:
        async with serving(answer) as server:
            await crawled.whole(tmp_path, crawled.job(server.port, "a.example"))

    asyncio.run(scenario())
    assert asked[1] - asked[0] >= 1.0


def test_a_robots_txt_like_a_bomb_is_kept_whole_and_read_in_part(tmp_path: Path) -> None:
    """Very many rules for others, then one that forbids all: beyond 500 KiB no rule is read (RFC 9309, 2.5)."""
    bomb = b"User-agent: other\nDisallow: /x\n" * 20_000 + b"User-agent: *\nDisallow: /\n"
    plain = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(bomb)
    found = raw(tmp_path, plain + bomb, OK + b"Content-Length: 0\r\n\r\n", limits=FetchLimits())
    assert (found["http://a.example/robots.txt"], found["http://a.example/"]) == (200, 200)


def test_other_hosts_go_on_while_one_is_dead(tmp_path: Path) -> None:
    with serve({("a.example", "/"): page([])}) as port:
        job = crawled.job(port, "a.example")
        crawled.crawl(tmp_path, crawled.replace(job, seeds=("http://dead.example:1/", *job.seeds),
                                                resolve={"dead.example": ("127.0.0.1",), **job.resolve}))  # fmt: skip
    found = crawled.statuses(tmp_path)
    assert found["http://a.example/"] == 200
    assert (found["http://dead.example/robots.txt"], found["http://dead.example/"]) == (-2, -61)


@pytest.mark.parametrize("answer", ["unknown", "silent"])
def test_a_host_that_does_not_resolve_has_a_line_and_its_page_too(
    tmp_path: Path, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "LIFETIME", 0.2)

    async def scenario() -> None:
        async with name_server({"gone.example": [SILENT]} if answer == "silent" else {}) as server:
            job = crawled.job(80, "x.example", name_servers=(("127.0.0.1", server.port),), resolve={})
            await crawled.whole(tmp_path, crawled.replace(job, seeds=("http://gone.example/",)))

    asyncio.run(scenario())
    assert crawled.statuses(tmp_path) == {"dns:gone.example": -1, "http://gone.example/": -6}
    assert annotations(tmp_path, "http://gone.example/") == (("2t",) if answer == "silent" else ())


def test_a_look_up_of_a_name_server_is_a_record(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with name_server({"a.example": ["60 A 127.0.0.1"]}) as server, serving(answering(NO_ROBOTS)) as site:
            job = crawled.job(site.port, "a.example", name_servers=(("127.0.0.1", server.port),), resolve={})
            await crawled.whole(tmp_path, job)

    asyncio.run(scenario())
    line = crawled.lines(tmp_path)[0]
    assert (line.uri, line.status, line.mime, line.hops) == ("dns:a.example", 1, "text/dns", "P")
    assert ("response", "dns:a.example") in crawled.records(crawled.warcs(tmp_path))


def test_an_inside_address_is_not_dialled_by_a_name_or_by_a_redirect(tmp_path: Path) -> None:
    site: dict[tuple[str, str], Page] = {}
    with serve(site) as port:
        site["a.example", "/"] = Page(b"http://10.0.0.1/", status=302)
        site["a.example", "/robots.txt"] = Page(b"http://169.254.169.254/latest", status=301)
        job = crawled.job(port, "a.example", "inside.example", resolve={
            "a.example": ("127.0.0.1",), "inside.example": ("192.168.7.7",)})  # fmt: skip
        _, running = crawled.crawl(tmp_path, job)
    found = crawled.statuses(tmp_path)
    assert found["http://inside.example/"] == -5002
    assert found["http://169.254.169.254/latest"] == -5002
    assert "http://a.example/" not in found or found["http://a.example/"] == -61
    assert "192.168.7.7 is not dialled: private" in running.kit.offers.refused.first["addresses"]


def test_rows_of_progress_that_a_disk_does_not_take_are_said_in_another_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The crawl goes on: its books are whole."""
    real, failed = os.write, []

    def failing(descriptor: int, data: bytes) -> int:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if path.endswith("progress-statistics.log") and b"RUNNING" not in bytes(data) and not failed:
            failed.append(path)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(descriptor, data)

    def fail(_: object) -> None:
        monkeypatch.setattr(os, "write", failing)
        monkeypatch.setattr(launch, "ROW_SECONDS", 0.001)

    with serve({("a.example", "/"): page(["/b"]), ("a.example", "/b"): page([])}) as port:
        end, _ = crawled.crawl(tmp_path, crawled.job(port, "a.example"), fail)
    assert end is End.EMPTY
    assert crawled.statuses(tmp_path)["http://a.example/b"] == 200
    assert "SEVERE no more rows of progress: " in crawled.told(tmp_path, "alerts.log")
    assert "Input/output error" in crawled.told(tmp_path, "alerts.log")


def test_a_fault_of_ours_at_one_uri_is_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from warcmill.crawl import extract  # noqa: PLC0415

    real = extract.find

    def find(data: bytes, uri: str, *more: object) -> object:
        if uri.endswith("/bad"):
            raise RuntimeError("made to fail")
        return real(data, uri, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(extract, "find", find)
    with serve({("a.example", "/"): page(["/bad", "/good"]), ("a.example", "/good"): page([])}) as port:
        crawled.crawl(tmp_path, crawled.job(port, "a.example"))
    found = crawled.statuses(tmp_path)
    assert (found["http://a.example/bad"], found["http://a.example/good"]) == (-5, 200)
    assert "RuntimeError: made to fail" in crawled.told(tmp_path, "runtime-errors.log")
    assert "SEVERE" in crawled.told(tmp_path, "alerts.log")
