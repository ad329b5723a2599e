"""A spider of Scrapy as a worker of a job whose frontier is in a real Redis."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from crawls.redis_crawls import DEADLINE, JOB, Crawl
from requesting.scrapy_idioms import served
from requesting.scrapy_runs import HERE, HURRIED, SHELVES, SPIDERS, by_plain_scrapy, items, site
from sites import several_hosts
from waiting import wait_for

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


READER = """
import scrapy

class Reader(scrapy.Spider):
    name = "reader"

    async def start(self):
        form = {"user": "ann"}
        yield scrapy.FormRequest(f"{self.site}/login", self.opened, formdata=form, meta={"cookiejar": ("a", 1)})

    def opened(self, response):
        self.state["by"] = {"ann"}
        for number in range(12):
            jar = response.meta["cookiejar"]
            yield response.follow(f"/private?{number}", self.private, meta={"cookiejar": jar})

    def private(self, response):
        yield {"page": response.url[-2:], "text": response.text, "by": sorted(self.state.get("by", ()))}
"""


def test_two_processes_of_a_spider_share_its_cookies_and_its_state(redis: RedisServer, tmp_path: Path) -> None:
    """One logs in and is killed; the other is logged in; so is the first, when it continues."""
    (tmp_path / "reader.py").write_text(READER)
    with served() as site:
        crawl = Crawl(tmp_path, 0, redis, "spider-memory")
        job = crawl.places.job(JOB)
        several = HURRIED.replace("factor", "at_once = 20\nfactor", 1)
        (job / "crawl.toml").write_text(f"endless = true\nworkers = 2\n{several}")
        (job / "seeds.txt").write_text(f"{site.url}/book/00\n")
        (job / "surts.txt").write_text("+http://(\n")
        leader, processes = crawl.begin(), list[subprocess.Popen[bytes]]()

        def begin(name: str) -> subprocess.Popen[bytes]:
            (tmp_path / name).mkdir(exist_ok=True)
            words = [sys.executable, "-m", "commands.main", "run", "spider", str(tmp_path / "reader.py"), "--job", JOB]
            words += ["--frontier", f"{redis.url}?prefix=spider-memory", "--name", name, "-a", f"site={site.url}"]
            words += ["--output", str(tmp_path / name), "-o", "items.jsonl"]
            with (tmp_path / name / "printed").open("ab") as out:
                processes.append(subprocess.Popen(words, cwd=tmp_path / name, stdout=out, stderr=out))
            return processes[-1]

        def printed(name: str) -> str:
            return (tmp_path / name / "printed").read_text()

        def found(name: str) -> list[dict[str, str]]:
            file = tmp_path / name / "items.jsonl"
            return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

        try:
            wait_for(lambda: len(site.asked) == 1, crawl.told)
            site.hold = 5  # the seed, the login, two pages
            first = begin("w1")
            wait_for(lambda: len(site.asked) >= 5, lambda: printed("w1"))
            first.send_signal(signal.SIGKILL)
            first.wait()
            site.hold = 0
            site.release.set()
            second = begin("w2")
            wait_for(lambda: len(found("w2")) >= 3, lambda: printed("w2"))
            first = begin("w1")
            assert (first.wait(DEADLINE), second.wait(DEADLINE)) == (0, 0), printed("w1") + printed("w2")
            crawl.stop()
            assert leader.wait(DEADLINE) == 0, crawl.told()
        finally:
            for process in (leader, *processes):
                process.kill()
    assert site.asked.count("POST /login") == 1
    every = [*found("w1"), *found("w2")]
    assert {one["page"] for one in every} == {f"?{n}"[-2:] for n in range(10)} | {"10", "11"}
    assert {(one["text"], *one["by"]) for one in every} == {("user=ann", "ann")}
