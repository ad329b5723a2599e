"""Very many hosts and very many links take bounded memory, and nothing is missing without a word.

`python -m benchmarks.crowd` does the same with a million of each.
"""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from crawls import crawled
from sites.several_hosts import Page, page, serve

from benchmarks import crowd
from warcmill.crawl.fetch import addresses
from warcmill.crawl.frontier import SiteRow
from warcmill.crawl.frontier.database import CACHE_KIB
from warcmill.crawl.job.job import Job, Live
from warcmill.crawl.logs import statistics
from warcmill.crawl.logs.statistics import Figures
from warcmill.crawl.policies import robots
from warcmill.crawl.uri import make
from warcmill.crawl.visit import admission, offers, robots_files
from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawllog import CrawlRecord

LINKS, HOSTS, SAMPLE = 300_000, 10_000, 200
AT_ONCE, BASE = 2_000, 60  # hosts that are measured; MB of a crawl of one host
RULES = b"User-agent: *\nDisallow: /cgi-bin/\nDisallow: /search\nAllow: /search/about\nDisallow: /private\n"


def test_very_many_hosts_whose_addresses_are_kept_for_no_time(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    hosts = HOSTS if pytestconfig.getoption("--every-point") else SAMPLE
    found = crowd.crawl(tmp_path, "hosts", hosts)
    assert found.documents == hosts + crowd.pages(hosts)
    assert found.log.count(" dns:h") == hosts, "each host was asked for once: its TTL of 0 is taken for seconds"
    assert found.memory < crowd.MEMORY


def test_a_page_of_very_many_links_is_kept_and_the_log_says_what_was_left_out(tmp_path: Path) -> None:
    found = crowd.crawl(tmp_path, "links", LINKS)
    page = next(line for line in found.log.splitlines() if line.split()[3].endswith("/links/0"))
    assert page.split()[1] == "200"
    assert page.split()[11] == "linksTrunc"
    assert found.memory < crowd.MEMORY


def test_what_is_kept_of_very_many_hosts_fits_into_memory() -> None:
    """Each of the tables is measured with a few hosts, and has a bound: when all are full it is not too much."""
    found = sum(_tables().values()) / 1e6
    assert found + BASE + CACHE_KIB / 1000 < crowd.MEMORY


def _tables() -> dict[str, float]:
    """Bytes of each table when it is full."""
    resolver = addresses.Resolver(servers=[("127.0.0.1", 9)])
    live, figures = Live(Job("news", ("http://a.example/",))), Figures()
    known = admission.Hosts(resolver, None, None, None)  # type: ignore[arg-type]
    polite = admission.Manners(live)
    sites = robots_files.RobotsFiles(live)
    offered: dict[tuple[str, str], None] = {}
    moment, now = crawllog.moment(1.8e9), datetime.now(UTC)

    def look_up(host: str, address: str) -> None:
        lines = f"20261123083000\n{host}.\t\t300\tIN\tA\t{address}\n"
        resolver._keep(host, addresses.HostLookup(host, (address,), 1, 300, now, 5, "127.0.0.1", lines), 300)

    def line(host: str, _: str) -> None:
        taken = "20261123083000123+5"
        figures.add(CrawlRecord(moment, 200, 9, f"http://{host}/", "L", "http://a.example/", "text/html", "#001", taken,
                                "sha1:X", "http://a.example/", ()))  # fmt: skip

    def offer(host: str, address: str) -> None:
        uri = make(f"http://{host}/archive/{address}/the-article.html")
        offered[uri.crawl, uri.uri] = None

    async def measured() -> dict[str, float]:
        return {
            "dns": _each(look_up) * addresses.KEPT,
            "logged": _each(lambda host, _: known._remember(host, 1)) * admission.HOSTS_REMEMBERED,
            "manners": _each(lambda host, address: polite.after(live.job.politeness, host, address, None, 9.0, 300.0))
            * admission.HOSTS_REMEMBERED,
            "robots": _each(
                lambda host, _: sites._remember(
                    SiteRow(f"http://{host}", 200, 2e10, 0, RULES), robots.rules_for(RULES, robots.PRODUCT), ""
                )
            )
            * robots_files.RULES_REMEMBERED / (robots_files.SITE + 4),
            "figures": _each(line) * statistics.HOSTS,
            "offers": _each(offer) * offers.REMEMBERED,
        }  # fmt: skip

    return asyncio.run(measured())


def _each(add: Callable[[str, str], object]) -> float:
    """How many bytes an entry takes."""
    tracemalloc.start()
    for number in range(AT_ONCE):
        add(f"www.host{number:07}.example", f"10.{number >> 8}.{number & 255}.7")
    found = tracemalloc.get_traced_memory()[0] / AT_ONCE
    tracemalloc.stop()
    return found


def test_a_robots_txt_that_is_not_in_memory_any_more_is_read_from_the_books(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(robots_files, "RULES_REMEMBERED", 1)
    names = ("a.example", "b.example", "c.example")
    site: dict[tuple[str, str], Page] = {}
    for name in names:
        site[name, "/robots.txt"] = Page(b"User-agent: *\nDisallow: /no\n", "text/plain")
        site[name, "/"] = page([*(f"/{number}" for number in range(5)), "/no"])
        site |= {(name, f"/{number}"): page([]) for number in range(5)}
    with serve(site) as port:
        _, running = crawled.crawl(tmp_path, crawled.job(port, *names))
    uris = [crawled.plain(line.uri) for line in crawled.lines(tmp_path)]
    assert [uris.count(f"http://{name}/robots.txt") for name in names] == [1, 1, 1]
    found = crawled.statuses(tmp_path)
    assert [found[f"http://{name}/{path}"] for name in names for path in ("4", "no")] == [200, -9998] * 3
    made = running.kit.fetching._admission
    assert isinstance(made, admission.Admission)
    assert len(made._sites._sites) == 1
