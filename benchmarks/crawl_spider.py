"""Crawl one site of 3,000 pages by one spider of Scrapy: by `warcmill run spider`, beside plain Scrapy.

Both have the same Scrapy, spider and settings, and yield an item for each page; ours writes a record for each besides.
The site and the measure are those of `benchmarks.crawl`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from warcio.archiveiterator import ArchiveIterator

from benchmarks.crawl import ROUNDS, rate, site

PAGES, JOB = 3_000, "bench"
SPIDER = """
import scrapy

class Site(scrapy.Spider):
    name = "site"
    custom_settings = {
        "ROBOTSTXT_OBEY": False, "LOG_ENABLED": False, "TELNETCONSOLE_ENABLED": False, "CONCURRENT_REQUESTS": 50,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 50, "DOWNLOAD_DELAY": 0, "FEEDS": {"items.jsonl": {"format": "jsonlines"}},
    }

    async def start(self):
        yield scrapy.Request(self.url)

    def parse(self, response):
        yield {"url": response.url, "title": response.css("title::text").get()}
        yield from response.follow_all(css="a[href]")
"""
HURRIED = """\
hops = 255
workers = 50
no_delay = true
robots = "ignore"
allow_private = ["127.0.0.0/8"]
[politeness]
factor = 0.0
least = 0.0
most = 0.0
respected = 0.0
by_address = false
at_once = 50
"""
WARCMILL = (sys.executable, "-m", "commands.main")


def rows() -> Iterator[tuple[str, ...]]:
    """What, ours, peer, ratio, target."""
    with site(PAGES) as url:
        rounds = [(_by_warcmill(url), _by_scrapy(url)) for _ in range(ROUNDS)]
    ours, plain = (max(found) for found in zip(*rounds, strict=True))
    what, peer = f"spider of {PAGES:,} pages, each an item and a record", f"{plain:.0f} a CPU s plain Scrapy"
    yield what, f"{ours:.0f} a CPU s", peer, f"{plain / ours:.2f} x its CPU", "<= 1.5 x"


def _by_warcmill(url: str) -> float:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([*WARCMILL, "init", str(folder)], check=True, stdout=subprocess.DEVNULL)
        job = folder / "jobs" / JOB
        job.mkdir()
        files = {"crawl.toml": HURRIED, "seeds.txt": "", "seeds.jsonl": "", "surts.txt": "+http://(\n"}
        for file, text in files.items():
            (job / file).write_text(text)
        config = folder / "luigi.cfg"
        config.write_text(f"{config.read_text()}\n[engine.crawl]\nkind=warcmill\njobs={JOB}\n")
        words = [*WARCMILL, "run", "spider", _spider(folder), "--job", JOB, "-a", f"url={url}"]
        found = rate(words, folder, PAGES)
        records = sum(_pages(path) for path in (folder / "output").rglob("*.warc.gz"))
        assert records == PAGES, f"{records} of {PAGES} pages are records"
        _judge(folder)
    return found


def _by_scrapy(url: str) -> float:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = [sys.executable, "-m", "scrapy", "runspider", _spider(folder), "-a", f"url={url}"]
        found = rate(words, folder, PAGES)
        _judge(folder)
    return found


def _spider(folder: Path) -> str:
    path = folder / "spider.py"
    path.write_text(SPIDER)
    return str(path)


def _judge(folder: Path) -> None:
    items = (folder / "items.jsonl").read_text().count("\n")
    assert items == PAGES, f"{items} of {PAGES} pages gave an item"


def _pages(path: Path) -> int:
    with path.open("rb") as stream:
        return sum(record.rec_type == "response" for record in ArchiveIterator(stream))
