"""Two clusters of a group: each host has one owner, and each page is fetched once, by it."""

from __future__ import annotations

import random
import time
from pathlib import Path

from crawls.clustered_pair import EAST, GROUP, HOSTS, JOBS, WEST, asked_by, clustered_pair
from crawls.endless_job import until

from servers.postgresql import PostgresqlServer

PAGES = 20


def of_network(host: str) -> str:
    return WEST if host.startswith("w") else EAST


def test_each_page_is_fetched_once_by_the_owner_of_its_host_while_updaters_are_killed(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    chance = random.Random(5)
    with clustered_pair(tmp_path, postgresql, PAGES) as (pair, asked):
        pair.seed(WEST, f"http://e0.example:{pair.port}/")  # one new host is met by both at once
        pair.wait_between_pages(0.1)
        pair.begin()
        for _ in range(5):
            updaters = pair.update_all()
            time.sleep(1 + chance.random() * 2)
            for one in updaters:
                one.kill()
                one.wait()
        pair.wait_between_pages(0)
        pair.update_all()
        number = len(HOSTS) * PAGES
        pair.wait_for(number + 1, "http://%")
        by = asked_by(asked)
        assert {page: jobs for page, jobs in by.items() if jobs != [of_network(page[0])]} == {}
        assert len(by) == number + 1, "all pages of all hosts, and the seed"
        assert pair.owners() == {host: of_network(host) for host in HOSTS}
        pair.in_order()
        west = pair.query("SELECT * FROM uris WHERE uri LIKE '%//w1.example:%/0'")[0]
        assert (west["cluster"], west["hops"][-1], west["via"][-7:]) == (WEST, "L", west["via"][-7:])
        assert west["source"] == f"http://e0.example:{pair.port}/"
        handed = [pair.state_of(job)["queued"] for job in JOBS]
        assert handed == [0, 0]
        told = pair.asked("group", GROUP, "explain", "http://w3.example/x")
        assert (told["cluster"], told["rule"], told["known"]) == (WEST, "rule 1 (network 127.0.1.0/24)", True)
        assert told["addresses"] == ["127.0.1.13"]


def test_a_crawl_without_an_updater_asks_nobody_and_loses_nothing(postgresql: PostgresqlServer, tmp_path: Path) -> None:
    with clustered_pair(tmp_path, postgresql, 3) as (pair, asked):
        pair.begin(EAST)
        until(lambda: pair.state_of(EAST)["state"] == "RUNNING")
        time.sleep(1)
        assert asked == []
        pair.begin(WEST)
        pair.update_all()
        pair.wait_for(len(HOSTS) * 3 + 1, "http://%")
        assert all(jobs == [of_network(host)] for (host, _), jobs in asked_by(asked).items())
        pair.in_order()
