"""A cluster of several workers over a real Redis, and one of SQLite: each page is fetched once, by its owner."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

from crawls.clustered_pair import GROUP, asked_by
from crawls.clustered_workers import EAST, HOSTS, JOBS, WEST, Crews, clustered_crews
from crawls.endless_job import until
from redis import Redis

from servers.postgresql import PostgresqlServer
from servers.redis import RedisServer

PAGES = 20


def owner(host: str) -> str:
    return WEST if host.startswith("w") else EAST


def status(crews: Crews) -> dict[str, Any]:
    return {one["cluster"]: one for one in crews.asked("group", GROUP, "status")["clusters"]}


def test_each_page_is_fetched_once_by_its_owner_while_updaters_and_a_worker_are_killed(
    postgresql: PostgresqlServer, redis: RedisServer, tmp_path: Path
) -> None:
    chance = random.Random(6)
    with clustered_crews(tmp_path, postgresql, redis, PAGES) as (crews, asked):
        crews.wait_between_pages(0.6)
        crews.work("w1", "w2")
        crews.begin()
        is_killed = False
        for number in range(10):
            updaters = crews.update_all()
            time.sleep(0.8 + chance.random())
            if not is_killed and (busy := [name for name in ("w1", "w2") if crews.lines(name)]):
                crews.kill(busy[0])
                crews.work(busy[0])
                is_killed = True
            if number == 3:
                crews.work("w3")
            for one in updaters:
                one.kill()
                one.wait()
        crews.wait_between_pages(0)
        crews.update_all()
        crews.wait_for(len(HOSTS) * PAGES + 1, "http://%")
        by = asked_by(asked)
        assert {page: jobs for page, jobs in by.items() if {*jobs} != {owner(page[0])}} == {}
        twice = [page for page, jobs in by.items() if len(jobs) > 1]
        assert len(twice) <= 2, "those that the killed worker had under way"
        assert len(by) == len(HOSTS) * PAGES + 1
        crews.in_order()
        rows = crews.query("SELECT writer, count(*) FROM visits WHERE cluster = $1 GROUP BY writer", EAST)
        assert len(rows) > 1, "several processes crawled"
        assert is_killed
        assert [one["refused"] for one in status(crews).values()] == [0, 0]


def explained(crews: Crews, host: str) -> Any:
    return crews.asked("group", GROUP, "explain", host)


def test_a_host_moves_to_and_from_workers_once_all_have_let_go_of_it(
    postgresql: PostgresqlServer, redis: RedisServer, tmp_path: Path
) -> None:
    with clustered_crews(tmp_path, postgresql, redis, 30, ["w1", "w2"]) as (crews, asked):
        crews.wait_between_pages(0.15)
        crews.work()
        crews.begin()
        crews.update_all()
        until(lambda: sum(host == "e1.example" for _, host, _ in asked) > 8)
        crews.asked("group", GROUP, "move", "e1.example", WEST)
        until(lambda: not explained(crews, "e1.example")["moving"])
        crews.asked("group", GROUP, "move", "w1.example", EAST)
        os.kill(crews.working["w2"].pid, signal.SIGSTOP)  # nobody knows what a silent worker does
        crews.asked("group", GROUP, "move", "e2.example", WEST)
        time.sleep(3)
        assert explained(crews, "e2.example")["moving"] == "leaves"
        os.kill(crews.working["w2"].pid, signal.SIGCONT)
        until(lambda: not any(explained(crews, host)["moving"] for host in ("e2.example", "w1.example")))
        crews.wait_between_pages(0)
        crews.wait_for(len(HOSTS) * 30 + 1, "http://%")
        by = asked_by(asked)
        assert {page: jobs for page, jobs in by.items() if len(jobs) != 1} == {}
        for host, new in (("e1.example", WEST), ("e2.example", WEST), ("w1.example", EAST)):
            who = [next(job for job in JOBS if job in agent) for agent, name, _ in asked if name == host]
            assert who == sorted(who, key=lambda job: job == new), "one at a time"
        assert {job for agent, name, _ in asked for job in JOBS if name == "e1.example" and job in agent} == {*JOBS}
        crews.in_order()


def test_workers_stop_when_their_cluster_has_not_reached_the_centre_and_a_retired_one_crawls_nothing(
    postgresql: PostgresqlServer, redis: RedisServer, tmp_path: Path
) -> None:
    with clustered_crews(tmp_path, postgresql, redis, 12, ["w1", "w2"]) as (crews, asked):
        crews.line.config.write_text(f"{crews.line.config.read_text()}alone=0.0012\n")  # 4 seconds
        crews.wait_between_pages(0.4)
        crews.work()
        crews.begin()
        updaters = crews.update_all()
        until(lambda: sum(EAST in agent for agent, _, _ in asked) > 15)
        for one in updaters:
            one.terminate()
            assert one.wait(60) == 0
        until(lambda: all(crews.state_of(job).get("alone") for job in JOBS))
        time.sleep(1)
        number = len(asked)
        time.sleep(2)
        assert len(asked) == number, "no process asks anything"
        assert crews.state_of(EAST)["queued"] > 0
        crews.wait_between_pages(0.1)
        crews.updated(WEST)
        crews.query("UPDATE clusters SET reached = reached - interval '1 minute'")  # in which a crawl may still hear
        retired = crews.asked("group", GROUP, "retire", EAST, "--reason", "flood")
        assert retired["hosts"] > 0
        before = {(host, path) for agent, host, path in asked if EAST in agent}
        number = len(asked)
        crews.updated(EAST)
        until(lambda: not crews.state_of(EAST).get("alone"))
        crews.wait_between_pages(0)
        until(lambda: {*asked_by(asked)} >= {(host, f"/{n}") for host in HOSTS for n in range(12)})
        until(lambda: crews.waiting() == 0)
        assert [one for one in asked[number:] if EAST in one[0]] == [], "it has no host"
        again = {page for page, jobs in asked_by(asked).items() if len(jobs) > 1}
        assert again <= before
        crews.in_order()


def test_what_persons_want_of_sites_stays_with_workers_when_redis_is_emptied_and_over_launches(
    postgresql: PostgresqlServer, redis: RedisServer, tmp_path: Path
) -> None:
    with clustered_crews(tmp_path, postgresql, redis, 10, ["w1", "w2"]) as (crews, asked):
        crews.wait_between_pages(0.3)
        crews.work()
        crews.begin()
        crews.update_all()
        sites = [f"e{n}.example:{crews.port}" for n in (1, 2)]
        until(lambda: all(sum(site.startswith(host) for _, host, _ in asked) > 1 for site in sites))
        crews.asked("uri", GROUP, "suspend", "--site", sites[0])
        crews.asked("uri", GROUP, "rate", "--site", sites[1], "--hits", "50", "--window", "1")
        number = crews.asked("uri", GROUP, "add", f"http://{sites[0]}/more", f"http://w0.example:{crews.port}/more")
        until(lambda: len(crews.query("SELECT 1 FROM sites WHERE is_suspended OR rate IS NOT NULL")) == 2)
        until(lambda: all(order_state(crews, one) == "done" for one in number["orders"]))
        time.sleep(1)
        before = sum(host == "e1.example" for _, host, _ in asked)
        Redis(port=redis.port).flushall()
        crews.wait_between_pages(0)
        busy = "SELECT coalesce(sum(scheduled), 0) AS number FROM hosts WHERE host <> 'e1.example'"
        until(lambda: crews.query(busy)[0]["number"] == 0)
        crews.warcmill("pulse", "stop", EAST)
        crews.begin(EAST)
        until(lambda: crews.state_of(EAST)["state"] == "RUNNING")
        time.sleep(2)
        assert sum(host == "e1.example" for _, host, _ in asked) == before, "it is suspended, whatever Redis has lost"
        crews.asked("uri", GROUP, "resume", "--site", sites[0])
        crews.wait_for(len(HOSTS) * 10 + 1 + 2, "http://%")
        assert {page: jobs for page, jobs in asked_by(asked).items() if {*jobs} != {owner(page[0])}} == {}
        crews.in_order()


def order_state(crews: Crews, number: int) -> str:
    return str(crews.asked("uri", GROUP, "order", str(number), code=None)["state"])


def test_a_worker_whose_journals_cannot_be_read_is_named_until_they_are(
    postgresql: PostgresqlServer, redis: RedisServer, tmp_path: Path
) -> None:
    with clustered_crews(tmp_path, postgresql, redis, 12, ["w1", "w2"]) as (crews, asked):
        kept = crews.line.config.read_text()
        crews.line.config.write_text(kept.replace(crews.section("w2"), ""))
        crews.wait_between_pages(0.2)
        crews.work()
        crews.begin()
        updaters = crews.update_all()
        until(lambda: crews.lines("w2") > 3)
        until(lambda: "worker w2 on" in status(crews)[EAST]["strangers"])
        assert "no [writer.NAME] that its updater knows has what it journals" in health(crews)
        for one in updaters:
            one.terminate()
            one.wait()
        crews.line.config.write_text(kept)
        crews.root("w1").rename(tmp_path / "elsewhere")  # its disk is away, for those who read it
        crews.root("w1").mkdir()
        crews.update_all()
        until(lambda: any(one["fault"] for one in status(crews)[EAST]["writers"]))
        faults = {one["writer"]: one["fault"] for one in status(crews)[EAST]["writers"]}
        assert "mount the disk" in faults["writer.w1"]
        assert faults["writer.w2"] == status(crews)[EAST]["strangers"] == ""
        assert "the journals of writer.w1 are not read" in health(crews)
        crews.warcmill("group", GROUP, "books", code=4)
        crews.root("w1").rmdir()
        (tmp_path / "elsewhere").rename(crews.root("w1"))
        until(lambda: not any(one["fault"] for one in status(crews)[EAST]["writers"]))
        crews.wait_between_pages(0)
        crews.wait_for(len(HOSTS) * 12 + 1, "http://%")
        assert {page: jobs for page, jobs in asked_by(asked).items() if {*jobs} != {owner(page[0])}} == {}
        crews.in_order()
        assert "what is crawled here is updated" in health(crews)


def health(crews: Crews) -> str:
    """The line of `health` about the centre."""
    return next(line for line in crews.warcmill("health", code=None).splitlines() if "centre [group.web]" in line)


def test_rows_are_made_anew_and_a_cluster_that_lost_its_redis_and_all_disks_goes_on(
    postgresql: PostgresqlServer, redis: RedisServer, tmp_path: Path
) -> None:
    with clustered_crews(tmp_path, postgresql, redis, 12, ["w1", "w2"]) as (crews, asked):
        crews.wait_between_pages(0.3)
        crews.work()
        crews.begin()
        updaters = crews.update_all()
        until(lambda: sum(EAST in agent for agent, _, _ in asked) > 20)
        until(lambda: crews.lines("w1") + crews.lines("w2"))
        crews.wait_between_pages(10)
        for one in updaters:
            one.terminate()
            one.wait()
        made = crews.asked("group", GROUP, "recover", "--centre")
        assert made["clusters"][0]["uris"] > 20
        crews.update_all()
        crews.in_order()

        crews.end_updaters()
        os.kill(crews.pid_of(EAST), signal.SIGKILL)
        for name in ("w1", "w2"):
            crews.kill(name)
            shutil.rmtree(crews.root(name) / "logs")
            shutil.rmtree(crews.root(name) / ".worker")
        known = "SELECT uri FROM uris WHERE cluster = $1 AND status = 'Parsed' AND uri LIKE 'http://%'"
        visited = {row["uri"] for row in crews.query(known, EAST)}
        jobs = crews.line.folders["jobs"]
        (jobs / EAST).rename(tmp_path / "lost")
        shutil.rmtree(crews.line.folders["output"] / "logs" / EAST)
        Redis(port=redis.port).flushall()
        crews.write_papers(EAST)
        crews.seed(EAST)
        crews.wait_between_pages(0)
        lost = crews.asked("group", GROUP, "recover", "--cluster", EAST)
        assert lost["waiting"] > 0
        assert lost["visited"] >= len(visited)
        number = len(asked)
        crews.work()
        crews.begin(EAST)
        crews.update_all()
        crews.wait_for(len(HOSTS) * 12 + 1, "http://%")
        again = {f"http://{host}:{crews.port}{path}" for agent, host, path in asked[number:] if EAST in agent}
        assert {url for url in again if not url.endswith("/robots.txt")} & visited == set()
        assert {page: jobs for page, jobs in asked_by(asked).items() if {*jobs} != {owner(page[0])}} == {}
        books = crews.asked("group", GROUP, "books", code=None)["clusters"]
        assert {one["journals"] for one in books[0]["differences"]} <= {""}, "the rest only the centre has"
