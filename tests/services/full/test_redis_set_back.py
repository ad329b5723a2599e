"""A Redis that comes back from an older copy under a leader and a worker: pages asked for twice are counted."""

from __future__ import annotations

import shutil
import signal
from collections import Counter
from pathlib import Path

from crawls import crawled, killed_crawls
from crawls.redis_crawls import DEADLINE, JOB, Crawl, site

from servers import pins
from servers import redis as redis_server
from warcmill.crawl.launch.reports import bounds_of

PAGES = 60


def test_pages_that_are_asked_for_twice_are_counted_with_an_example(work: Path, tmp_path: Path) -> None:
    """The worker is halted meanwhile, so that it cannot send its journal again in time."""
    server = redis_server.at(work / "set back", pins.free(pins.REDIS))
    server.start()
    with site(PAGES) as port:
        crawl = Crawl(tmp_path, port, server, "twice", "workers = 3\n")
        try:
            leader, worker = crawl.begin(), crawl.work("w1")
            assert crawl.until(leader, 60, "w1"), crawl.told()
            server.stop()
            shutil.copytree(server.folder / "appendonlydir", tmp_path / "older")
            server.start()
            assert crawl.until(leader, crawl.lines("w1") + 60, "w1"), crawl.told()
            worker.send_signal(signal.SIGSTOP)
            server.kill()
            shutil.rmtree(server.folder / "appendonlydir")
            shutil.copytree(tmp_path / "older", server.folder / "appendonlydir")
            server.start()
            assert crawl.until(leader, crawl.lines() + 200), crawl.told()
            worker.send_signal(signal.SIGCONT)
            assert leader.wait(DEADLINE) == 0, crawl.told()
            worker.terminate()
            assert worker.wait(DEADLINE) == 0, crawl.told()
            assert crawl.lost_or_open(PAGES) == []
            found = crawl.books()
            assert (found.differences, found.miscounted, found.unread) == ([], [], [])
        finally:
            crawl.kill()
            server.stop()
    lines = [line for root in (tmp_path, tmp_path / "w1") for line in killed_crawls.lines(root)]
    logged = Counter(line.uri for line in lines if not line.uri.startswith("dns:"))
    twice = {uri for uri, number in logged.items() if number > 1 and not uri.endswith("/robots.txt")}
    assert len(twice) > 10
    assert max(logged.values()) == 2
    summary = crawled.json_of(crawl.places.job(JOB) / crawl.last.launch / "summary.json")  # type: ignore[union-attr]
    (cut,) = [one for one in bounds_of(summary) if one.bound == "twice"]
    assert (cut.number, cut.is_finding, cut.first in twice) == (len(twice), False, True), cut
    report = (tmp_path / "output").rglob("bounds-report.txt")
    assert f"{len(twice)} twice 0 set http://" in next(report).read_text()
