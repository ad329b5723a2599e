"""A spider of Scrapy as a worker of a job whose frontier is in a real Redis."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from crawls.redis_crawls import DEADLINE, JOB, Crawl
from requesting.scrapy_runs import HERE, HURRIED, SHELVES, SPIDERS, by_plain_scrapy, items, site
from sites import several_hosts

from servers.redis import RedisServer
from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawllog import CrawlRecord


def test_a_spider_works_in_a_launch_that_another_process_leads(redis: RedisServer, tmp_path: Path) -> None:
    with several_hosts.serve(site()) as port:
        crawl = Crawl(tmp_path, port, redis, "spider-worker")
        job = crawl.places.job(JOB)
        (job / "crawl.toml").write_text(f"endless = true\n{HURRIED}")
        (job / "seeds.txt").write_text(f"http://{HERE}:{port}/visitors\n")
        (job / "surts.txt").write_text("+http://(\n")
        url = f"http://{HERE}:{port}/shelf/0"
        wanted = by_plain_scrapy("books", url, tmp_path)
        leader = crawl.begin()
        try:
            assert crawl.until(leader, 2), crawl.told()
            (tmp_path / "w1").mkdir()
            words = [sys.executable, "-m", "commands.main", "run", "spider", str(SPIDERS / "books.py"), "--job", JOB]
            words += ["--frontier", f"{redis.url}?prefix=spider-worker", "--name", "w1", "-a", f"url={url}"]
            words += ["--output", str(tmp_path / "w1")]
            done = subprocess.run(
                words, cwd=tmp_path / "w1", env=dict(os.environ), capture_output=True, text=True, timeout=DEADLINE,
                check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            assert items(tmp_path / "w1") == wanted
            crawl.stop()
            assert leader.wait(DEADLINE) == 0, crawl.told()
        finally:
            leader.kill()
    logs = (tmp_path / "w1" / "logs").rglob("crawl.log*")
    found = [crawllog.parse(line) for log in logs for line in log.read_bytes().splitlines()]
    pages = [one for one in found if isinstance(one, CrawlRecord) and not one.uri.endswith("/robots.txt")]
    assert len(pages) == SHELVES * 20
    assert not [*(tmp_path / "w1").rglob("*.open")]
