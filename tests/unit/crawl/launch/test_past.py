"""The past of a frontier in SQLite: the journals of launches, and what differs from them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from crawls import crawled
from sites.several_hosts import page, serve

from warcmill.crawl.frontier.sqlite import SqliteFrontier
from warcmill.crawl.launch import past
from warcmill.crawl.launch.database import lines_of
from warcmill.errors import NotReady

HOST = "a.example"


def compared(folder: Path, name: str) -> past.Comparison:
    places = crawled.places(folder)
    return past.compare(past.read(places, name, []), lines_of(places.database(name)))


def test_the_journals_of_a_crawl_are_its_frontier(tmp_path: Path) -> None:
    web = {(HOST, "/"): page(["/1", "/2", "/gone"]), (HOST, "/1"): page(["/2"]), (HOST, "/2"): page([])}
    with serve(web) as port:
        job = crawled.job(port, HOST)
        crawled.crawl(tmp_path, job)
        found = compared(tmp_path, job.name)
        assert not found.differs, found
        assert found.journals == found.frontier
        assert found.journals["", "Parsed"] >= 3
        frontier = SqliteFrontier(crawled.places(tmp_path).database(job.name))
        assert asyncio.run(frontier.remove("", [f"http://{HOST}:{port}/1"])) == 0
        asyncio.run(frontier.close())
        (one,) = compared(tmp_path, job.name).differences
        assert (one.uri, one.journals, one.frontier) == (f"http://{HOST}:{port}/1", "Parsed", "Removed")


def test_a_frontier_of_this_machine_is_not_rebuilt_by_hand(tmp_path: Path) -> None:
    with pytest.raises(NotReady, match="which the next start puts in order"):
        past.rebuild(crawled.places(tmp_path), "daily", [])
