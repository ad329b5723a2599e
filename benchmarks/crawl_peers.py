"""Crawl one site whole, beside Scrapy, which writes nothing, and Heritrix, which writes WARCs as we do.

The site and the measure are those of `benchmarks.crawl`. Scrapy runs in an environment of its own. Heritrix is a
server: its start, and the building of the job, are a row of their own; what its Java compiles while it crawls counts.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.crawl import ROUNDS, ours, rate, row, site
from benchmarks.stores import started
from servers import heritrix, packages, pins, process
from servers.heritrix import HeritrixServer as Server
from warcmill.clients.heritrix import job as heritrix_job
from warcmill.clients.heritrix.http import EngineHttp
from warcmill.clients.heritrix.rest import Heritrix
from warcmill.clients.heritrix.xml import JobState
from warcmill.formats.feed import Depth, Target
from warcmill.formats.targets import Caps, plan
from warcmill.layout import KINDS

PAGES, JOB = 5_000, "bench"
PROFILE = Path(__file__).resolve().parent.parent / "config/heritrix/profile.cxml"
HURRIED = {
    "disposition.delayFactor=5.0": "disposition.delayFactor=0",
    "disposition.minDelayMs=3000": "disposition.minDelayMs=0",
    "disposition.maxDelayMs=30000": "disposition.maxDelayMs=0",
}
SPIDER = """
import scrapy

class Site(scrapy.Spider):
    name = "site"
    custom_settings = {
        "ROBOTSTXT_OBEY": False, "LOG_ENABLED": False, "TELNETCONSOLE_ENABLED": False,
        "CONCURRENT_REQUESTS": 50, "CONCURRENT_REQUESTS_PER_DOMAIN": 50, "DOWNLOAD_DELAY": 0,
    }
    fetched = 0

    async def start(self):
        yield scrapy.Request(self.url)

    def parse(self, response):
        self.fetched += 1
        yield from response.follow_all(css="a[href]")

    def closed(self, reason):
        open("fetched", "w").write(str(self.fetched))
"""


def rows() -> Iterator[tuple[str, ...]]:
    """What, ours, peer, ratio, target."""
    with site(PAGES) as url:
        rounds = [(ours(url, PAGES), _by_scrapy(url)) for _ in range(ROUNDS)]
        yield row(PAGES, [one for one, _ in rounds], [other for _, other in rounds], "Scrapy", ">= 4 x")
        with started(heritrix, pins.HERITRIX) as server:
            start, crawled = _by_heritrix(server, url)
        yield row(PAGES, [ours(url, PAGES)], [PAGES / crawled], "Heritrix", ">= 4 x")
        yield "its start, and that of its job", "-", f"{start:.1f} CPU s Heritrix", "-", "-"


def _by_scrapy(url: str) -> float:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "spider.py").write_text(SPIDER)
        words = [packages.bin_folder("scrapy") / "scrapy", "runspider", folder / "spider.py", "-a", f"url={url}"]
        found = rate(words, folder, PAGES)
        fetched = int((folder / "fetched").read_text())
        assert fetched == PAGES, f"Scrapy fetched {fetched} of {PAGES} pages"
    return found


def _by_heritrix(server: Server, url: str) -> tuple[float, float]:
    """Crawl; seconds of CPU until the job is ready, and from then on."""
    with tempfile.TemporaryDirectory() as output:
        engine = Heritrix(EngineHttp(server.url, server.user, server.password, server.certificate))
        engine.create(JOB)
        for name, data in _files(url, output).items():
            engine.put(JOB, name, data)
        engine.launch(JOB)
        engine.wait(JOB, frozenset({JobState.PAUSED}))
        start = _cpu(server)
        engine.unpause(JOB)
        done = engine.wait(JOB, frozenset({JobState.FINISHED}), seconds=1800)
        took = _cpu(server) - start
        assert PAGES <= done.downloaded <= PAGES + 3, f"Heritrix fetched {done.downloaded} of {PAGES} pages"
        engine.teardown(JOB)
        engine.close()
    return start, took


def _files(url: str, output: str) -> dict[str, bytes]:
    """The files of a job that crawls the site without politeness, by the profile that is shipped."""
    profile = PROFILE.read_text("utf-8")
    for usual, quick in HURRIED.items():
        assert profile.count(usual) == 1
        profile = profile.replace(usual, quick)
    target = Target(JOB, JOB, (url,), depth=Depth.DEEP, ignore_robots=True)
    folders = {kind: f"{output}/{kind}/{JOB}/${{launchId}}" for kind in KINDS}
    values = {"job": JOB, "contact": "http://archive.example/", **folders}
    return heritrix_job.files(plan([target], ()), profile, values, Caps(1 << 40, 1 << 40))


def _cpu(server: Server) -> float:
    """Seconds of CPU that the engine's process has taken (proc(5), stat: utime and stime)."""
    found = process.running(server.folder, heritrix.NAME)
    assert found, "Heritrix has ended"
    fields = re.sub(r"^.*\) ", "", Path(f"/proc/{found.pid}/stat").read_text()).split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
