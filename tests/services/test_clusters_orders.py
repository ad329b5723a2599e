"""Orders of a group: put into the centre, given to the crawl by the updater, and what stays of them."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from crawls.clustered import GROUP, HOSTS, JOB, Clustered, cluster, web
from crawls.endless_job import until
from redis import Redis

from servers.postgresql import PostgresqlServer
from servers.redis import RedisServer


def ordered(east: Clustered, *words: str) -> list[int]:
    """Put an order into the centre; return its number."""
    found: list[int] = east.asked("uri", GROUP, *words)["orders"]
    return found


def outcome(east: Clustered, number: int) -> Any:
    return east.asked("uri", GROUP, "order", str(number), code=None)


def given(east: Clustered, *words: str) -> Any:
    """Put an order into the centre; return what became of it."""
    (number,) = ordered(east, *words)
    until(lambda: outcome(east, number)["state"] != "waiting")
    return outcome(east, number)


def test_what_is_added_suspended_resumed_and_removed_by_orders_becomes_so(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    with cluster(tmp_path, postgresql, web(6)) as east:
        east.start()
        east.update()
        until(lambda: east.state()["queued"] == 0)
        site = f"h0.example:{east.port}"
        url = f"http://{site}/5"
        assert given(east, "suspend", url)["reason"] == "nothing of it waits"
        assert given(east, "suspend", "--site", site)["state"] == "done"
        added = [f"http://{site}/added/{n}" for n in range(3)]
        assert given(east, "add", *added)["state"] == "done"
        refused = given(east, "add", "dns:h0.example")
        assert (refused["state"], "the crawler asks for names itself" in refused["reason"]) == ("refused", True)
        partly = given(east, "add", "dns:h0.example", added[0])
        assert (partly["state"], "1 of 2 are refused" in partly["reason"]) == ("done", True)
        until(lambda: east.counts().get("Scheduled") == 3)
        listed = east.asked("uri", GROUP, "list", "--status", "Scheduled", "--host", "h0.example")
        assert sorted(one["uri"] for one in listed["uris"]) == added
        assert {(one["status"], one["suspended"]) for one in listed["uris"]} == {("Suspended", "site")}
        assert given(east, "suspend", added[0])["state"] == "done"
        until(lambda: east.counts().get("Suspended") == 1)
        assert east.asked("uri", GROUP, "get", added[0])["status"] == "Suspended"
        assert given(east, "remove", added[1])["state"] == "done"
        assert given(east, "suspend", "--prefix", "http://(example,h0,)/added/")["reason"] == "1 URIs"
        until(lambda: east.counts().get("Suspended") == 2)
        found = given(east, "resume", "--prefix", "http://(example,")
        assert (found["state"], found["reason"]) == ("done", "2 URIs")
        assert given(east, "resume", "--site", site)["state"] == "done"
        until(lambda: east.state()["queued"] == 0)
        until(lambda: east.asked("uri", GROUP, "get", added[0])["status"] == "Parsed")
        assert east.query("SELECT * FROM sites") == []
        assert east.asked("uri", GROUP, "get", added[0])["http_status"] == 404
        (visit,) = east.asked("uri", GROUP, "history", url)["visits"]
        assert (visit["status"], visit["http_status"], visit["cluster"]) == ("Parsed", 200, JOB)
        assert visit["warc"].startswith(JOB)
        assert east.asked("uri", GROUP, "get", "http://h0.example/never", code=1) == {}
        assert east.asked("uri", GROUP, "order", "999", code=1) == {}
        assert east.books()["clusters"][0]["differences"] == []
        with socket.create_server(("127.0.0.1", 0)) as silent:
            slow = f"http://h3.example:{silent.getsockname()[1]}/"
            assert given(east, "add", slow)["state"] == "done"
            until(lambda: east.asked("uri", GROUP, "get", slow, code=None).get("status") == "Downloading")
            assert east.query("SELECT status FROM uris WHERE uri = $1", slow)[0]["status"] == "Scheduled"


def test_orders_wait_while_no_crawl_runs_and_no_kill_of_the_updater_loses_one(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    with cluster(tmp_path, postgresql, web(2)) as east:
        updater = east.update()
        file = tmp_path / "urls.txt"
        urls = [f"http://{HOSTS[n % 8]}:{east.port}/loaded/{n}" for n in range(2000)]
        file.write_text("\n".join([*urls[:700], "no URL", *urls[700:], ""]))
        first = east.asked("uri", GROUP, "load", str(file), code=1)
        assert (first["lines"], first["new"], [one["line"] for one in first["bad"]]) == (2001, 2000, [701])
        assert first["orders"] == {"waiting": 4}
        assert east.asked("uri", GROUP, "load", str(file), code=1)["new"] == 0, "it was loaded"
        time.sleep(1)
        assert east.asked("uri", GROUP, "load", str(file), code=1)["orders"] == {"waiting": 4}
        east.wait_between_pages(60)
        east.start()
        for _ in range(3):
            time.sleep(0.8)
            updater.kill()
            updater.wait()
            updater = east.update()
        until(lambda: east.asked("uri", GROUP, "load", str(file), code=1)["orders"] == {"done": 4})
        rows = "SELECT count(*) AS number FROM uris WHERE uri LIKE '%/loaded/%'"
        until(lambda: east.query(rows)[0]["number"] == 2000)
        (number,) = ordered(east, "suspend", "--prefix", "http://(example,")
        until(lambda: east.query("SELECT given FROM orders WHERE number = $1", number)[0]["given"])
        updater.kill()
        updater.wait()
        east.update()
        until(lambda: outcome(east, number)["state"] != "waiting")
        until(lambda: east.counts().get("Suspended", 0) > 1900)
        assert east.counts().get("Scheduled", 0) <= len(HOSTS), "those that are being fetched"
        assert east.books()["clusters"][0]["differences"] == []


def stays(east: Clustered, lose: Any) -> None:
    """A suspended site and a rate are there after something was lost."""
    east.start()
    east.update()
    until(lambda: east.state()["queued"] == 0)
    site = f"h0.example:{east.port}"
    assert given(east, "suspend", "--site", site)["state"] == "done"
    assert given(east, "rate", "--site", f"h1.example:{east.port}", "--hits", "1", "--window", "20")["state"] == "done"
    lose()
    before = {one["uri"] for one in east.query("SELECT uri FROM uris WHERE status = 'Parsed'")}
    for host in HOSTS[:3]:
        urls = [f"http://{host}:{east.port}/later/{n}" for n in range(3)]
        assert given(east, "add", *urls)["state"] == "done"
    until(lambda: parsed(east, before, "h2") == 3)
    until(lambda: parsed(east, before, "h1") > 0)
    time.sleep(1)
    assert parsed(east, before, "h0") == 0
    assert parsed(east, before, "h1") < 3, "one in 20 seconds"
    assert given(east, "resume", "--site", site)["state"] == "done"
    until(lambda: parsed(east, before, "h0") == 3)


def parsed(east: Clustered, before: set[str], host: str) -> int:
    rows = east.query("SELECT uri FROM uris WHERE status = 'Parsed' AND uri LIKE '%/later/%'")
    return sum(f"//{host}." in row["uri"] for row in rows if row["uri"] not in before)


def test_a_suspended_site_and_a_rate_stay_over_launches(postgresql: PostgresqlServer, tmp_path: Path) -> None:
    with cluster(tmp_path, postgresql, web(1)) as east:

        def again() -> None:
            east.stop()
            east.start()

        stays(east, again)


def test_a_suspended_site_and_a_rate_stay_when_the_database_is_built_again(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    with cluster(tmp_path, postgresql, web(1)) as east:

        def damage() -> None:
            os.kill(east.pid, signal.SIGKILL)
            until(lambda: not east.pid)
            (east.own / "state" / "books.sqlite").write_bytes(b"SQLite format 3\0" + b"x" * 5000)
            for path in (east.own / "state").glob("books.sqlite-*"):
                path.unlink()
            east.start()

        stays(east, damage)


@pytest.mark.parametrize("while_crawled", [True, False])
def test_a_suspended_site_and_a_rate_stay_when_redis_is_emptied(
    postgresql: PostgresqlServer, redis: RedisServer, tmp_path: Path, while_crawled: bool
) -> None:
    with cluster(tmp_path, postgresql, web(1), f"{redis.url}?prefix=emptied{while_crawled}") as east:

        def empty() -> None:
            if not while_crawled:
                east.stop()
            with Redis(port=redis.port) as client:
                client.flushall()
            if not while_crawled:
                east.warcmill("job", JOB, "rebuild")
                east.start()

        stays(east, empty)
