"""The addresses of hosts, as a crawl asks for them: each look-up is judged, logged and recorded, once.

MERGED warcmill/crawl/visit/hosts.py: The robots.txt of each site that is crawled: fetched before its first page,
kept for a day, and a record like any.

Silence and 5xx defer the whole site (RFC 9309, 2.3.1.4). A site that stays silent is given up, for a day.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import ip_address
from typing import TypeVar

from warcmill.base import clock
from warcmill.crawl.books.books import BookEntry, Books
from warcmill.crawl.extract import feeds
from warcmill.crawl.extract.links import REDIRECT, TOO_MANY, Found
from warcmill.crawl.extract.links import links as header_links
from warcmill.crawl.fetch import addresses as dns
from warcmill.crawl.fetch import exchange
from warcmill.crawl.fetch.addresses import Judge, Lookup, Resolver
from warcmill.crawl.fetch.exchange import Exchange, Request
from warcmill.crawl.fetch.http import Fetcher, Site
from warcmill.crawl.fetch.limits import NOT_ALLOWED, Failure
from warcmill.crawl.frontier.accounts import SiteRow
from warcmill.crawl.job.job import Live, Retries
from warcmill.crawl.logs import lines
from warcmill.crawl.logs.lines import Heard
from warcmill.crawl.policies import robots
from warcmill.crawl.policies.robots import Rules, Standing, Verdict
from warcmill.crawl.uri import Uri, make
from warcmill.crawl.visit.offers import Offers
from warcmill.errors import BadInput

HOSTS_REMEMBERED = 20_000  # hosts of which it is known that they were logged


class Hosts:
    """Finds the addresses of hosts; `via` is the URI for whose sake a host is asked for."""

    def __init__(self, resolver: Resolver, judge: Judge, books: Books, heard: Heard) -> None:
        self._resolver, self._judge, self._books, self._heard = resolver, judge, books, heard
        self._logged: OrderedDict[str, int] = OrderedDict()
        self._asking: dict[str, asyncio.Task[Lookup | Failure]] = {}

    async def addresses(self, via: Uri) -> tuple[str, ...] | Failure:
        """The addresses that may be dialled for a URI; why there is none."""
        host = Site.of(via.uri).host
        if _is_address(host):
            return judged(self._judge, (host,))
        known = self._resolver.known(host)
        found = known if known is not None and host in self._logged else await self._shared(host, via)
        return found if isinstance(found, Failure) else judged(self._judge, found.addresses)

    def close(self) -> None:
        """Ask no more."""
        for task in self._asking.values():
            task.cancel()

    async def _shared(self, host: str, via: Uri) -> Lookup | Failure:
        """Ask for a host; all who want it meanwhile wait for one answer."""
        if host not in self._asking:
            self._asking[host] = asyncio.create_task(self._ask(host, via))
            self._asking[host].add_done_callback(lambda _: self._asking.pop(host, None))
        return await asyncio.shield(self._asking[host])

    async def _ask(self, host: str, via: Uri) -> Lookup | Failure:
        began = time.time()
        found = await self._resolver.lookup(host)
        status = found.status
        if found.status != dns.BY_DNS and await self._last(host, via) == status:
            self._remember(host, status)
            return found  # the same as before: once in the log is enough
        uri = lines.prerequisite(f"dns:{host}", via)
        lines.visited(self._books.frontier.transitions, uri, status, failed=isinstance(found, Failure))
        record = dns.record_of(found) if isinstance(found, Lookup) else None
        line = lines.of_lookup(uri, found, record, began)
        await self._books.keep(BookEntry(uri, None, [record] if record else (), line))
        if isinstance(found, Failure):
            self._heard.failed(line, found.why)
        self._remember(host, status)
        return found

    async def _last(self, host: str, via: Uri) -> int:
        """The status that was logged last for a host in this launch, also before a kill; 0 for none."""
        if host in self._logged:
            return self._logged[host]
        seen = (await self._books.frontier.list(via.crawl, keys=[f"dns:{host}"])).uris
        return seen[0].http_status if seen else 0

    def _remember(self, host: str, status: int) -> None:
        self._logged[host] = status
        if len(self._logged) > HOSTS_REMEMBERED:
            self._logged.popitem(last=False)


def judged(judge: Judge, addresses: tuple[str, ...]) -> tuple[str, ...] | Failure:
    """Return those of a host's addresses that may be dialled; why there is none."""
    refused = {address: judge.why_refused(address) for address in addresses}
    if all(refused.values()):
        address, why = next(iter(refused.items()))
        return Failure(NOT_ALLOWED, f"{address} is not dialled: {why}", final=True)
    return tuple(address for address in addresses if not refused[address])


@lru_cache(10_000)
def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


RULES_REMEMBERED, SITE = 100_000, 2  # rules of all sites that are kept in memory; a site itself takes as much as these
SMALL = 1 << 15  # bytes that the loop reads itself: the worst take some 25 ms
LITTLE, MUCH = 1 << 20, 1 << 25  # letters that the loop compares itself, in some 20 ms, and that are compared for a URI
TOO_MUCH = Verdict(False, "more than can be judged for a URI of this length")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RobotsSite:
    """What is known of a site's robots.txt until a time; `failures`: how often it could not be had. `is_new`: it was
    fetched just now, so its host should be left alone before the next fetch."""

    standing: Standing
    rules: Rules
    until: float
    failures: int = 0
    why: str = ""
    is_new: bool = False


class RobotsFiles:
    """Asks each site for its rules, when the first URI of it is to be fetched."""

    def __init__(self, live: Live, books: Books, fetcher: Fetcher, hosts: Hosts, offers: Offers, heard: Heard) -> None:
        self._live, self._books, self._fetcher = live, books, fetcher
        self._hosts, self._offers, self._heard = hosts, offers, heard
        self._sites: OrderedDict[str, RobotsSite] = OrderedDict()
        self._size = 0
        self._asking: dict[str, asyncio.Task[RobotsSite]] = {}
        self._thread = ThreadPoolExecutor(1, "robots")  # one: each takes its turn with the loop's

    async def site(self, via: Uri) -> RobotsSite:
        """What the robots.txt of a URI's site says now."""
        origin = origin_of(via.uri)
        known = self._sites.get(origin)
        if known and clock.steady() < known.until:
            return known
        if origin not in self._asking:
            self._asking[origin] = asyncio.create_task(self._find(origin, via, known))
            self._asking[origin].add_done_callback(lambda _: self._asking.pop(origin, None))
        return await asyncio.shield(self._asking[origin])

    def knows(self, uri: Uri) -> bool:
        """True if the robots.txt of a URI's site is known, or is being asked for."""
        known = self._sites.get(origin_of(uri.uri))
        return origin_of(uri.uri) in self._asking or (known is not None and clock.steady() < known.until)

    def close(self) -> None:
        """Ask no more."""
        for task in self._asking.values():
            task.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def judge(self, site: RobotsSite, uri: Uri) -> Verdict:
        """Judge a URI by the rules of its site. It is refused where that is too much work."""
        rules, path = site.rules, path_of(uri.uri)
        if (work := rules.work(path)) > MUCH:
            return TOO_MUCH
        return await self._beside(lambda: rules.judge(path), work <= LITTLE)

    def is_given_up(self, site: RobotsSite) -> bool:
        """True if a site was asked so often in vain that it is given up."""
        return site.standing is Standing.DEFERRED and site.failures >= self._retries.times

    @property
    def _retries(self) -> Retries:
        return self._live.job.retries

    async def _find(self, origin: str, via: Uri, known: RobotsSite | None) -> RobotsSite:
        """Read it from the books, if the launch went on after a kill; else ask."""
        frontier = self._books.frontier
        row = None if known else await frontier.within(lambda: frontier.ledger.sites.get(origin))
        if row and clock.steady() < row.until:
            return await self._taken(row, "")
        return replace(await self._ask(origin, via, known.failures if known else 0), is_new=True)

    async def _ask(self, origin: str, via: Uri, failures: int) -> RobotsSite:
        uri: Uri | None = lines.prerequisite(origin + robots.PATH, via)
        row, why = self._row(origin, 0, failures), ""
        for _ in range(robots.REDIRECTS + 1):
            if uri is None:
                break
            answer = await self._fetched(uri)
            if isinstance(answer, Failure):
                row, why = self._row(origin, answer.status, failures), answer.why
                await self._give_up(uri, answer, row)
                break
            with closing(answer):
                row = await self._keep(uri, answer, origin, failures)
            why = f"it is answered by {answer.status}"
            uri = _redirected(uri, answer)
        return await self._taken(row, why)

    async def _fetched(self, uri: Uri) -> Exchange | Failure:
        addresses = await self._hosts.addresses(uri)
        if isinstance(addresses, Failure):
            return addresses
        return await self._fetcher.fetch(Request(uri.uri), addresses, self._live.job.of(uri).limits)

    async def _keep(self, uri: Uri, answer: Exchange, origin: str, failures: int) -> SiteRow:
        """Write a robots.txt, and offer the sitemaps that it names."""
        job = self._live.job.of(uri)
        data, cut = exchange.document(answer, replace(job.limits, decoded=min(job.limits.decoded, robots.LIMIT)))
        row = self._row(origin, answer.status, failures, data, answer.retry_after)
        links, notes = Found(), answer.annotations
        if "sitemap" in job.extractors and answer.status == 200:
            links = await self._beside(lambda: feeds.from_robots(data, uri.uri), len(data) <= SMALL)
            notes = (*notes, *((cut,) if cut else ()), *((TOO_MANY,) if links.cut else ()))
        found = await self._offers.of_many(uri, links, self._books.frontier)
        lines.visited(self._books.frontier.transitions, uri, answer.status, failed=False, digest=answer.payload_sha1)
        line = lines.of_answer(uri, answer, notes)
        records = exchange.records_of(answer, lines.metadata(uri, links))
        await self._books.keep(BookEntry(uri, None, records, line, found=found, site=row))
        return row

    async def _give_up(self, uri: Uri, answer: Failure, row: SiteRow) -> None:
        """Log a robots.txt that cannot be had; only the last time, as Heritrix does."""
        uri.tries = row.failures
        line = lines.of_failure(uri, answer.status)
        self._heard.failed(line, answer.why)
        if row.failures >= self._retries.times:
            lines.visited(self._books.frontier.transitions, uri, answer.status, failed=True)
            await self._books.keep(BookEntry(uri, None, (), line, site=row))

    def _row(self, origin: str, status: int, failures: int, text: bytes = b"", asked: float = 0.0) -> SiteRow:
        deferred = robots.standing(status) is Standing.DEFERRED
        failures = failures + 1 if deferred else 0
        waits = deferred and failures < self._retries.times
        keep = max(self._retries.next(failures), asked) if waits else robots.KEPT
        return SiteRow(origin, status, clock.steady() + keep, failures, text)

    async def _beside(self, act: Callable[[], T], is_little: bool = False) -> T:
        """Do something in the loop if it is little, else beside it."""
        return act() if is_little else await asyncio.get_running_loop().run_in_executor(self._thread, act)

    async def _taken(self, row: SiteRow, why: str) -> RobotsSite:
        rules = Rules()
        if robots.standing(row.status) is Standing.RULES:
            rules = await self._beside(lambda: robots.rules_for(row.text, robots.PRODUCT), len(row.text) <= SMALL)
        return self._remember(row, rules, why)

    def _remember(self, row: SiteRow, rules: Rules, why: str) -> RobotsSite:
        why = why or f"it is answered by {row.status}"
        site = RobotsSite(robots.standing(row.status), rules, row.until, row.failures, why)
        self._size += _size(site) - _size(self._sites.pop(row.origin, None))
        self._sites[row.origin] = site
        while self._size > RULES_REMEMBERED and len(self._sites) > 1:  # the books have the others
            self._size -= _size(self._sites.popitem(last=False)[1])
        return site


def _size(site: RobotsSite | None) -> int:
    return SITE + site.rules.size if site else 0


def origin_of(uri: str) -> str:
    """The scheme, host and port of a canonical URI, without a path."""
    return "/".join(uri.partition("?")[0].split("/", 3)[:3])


def path_of(uri: str) -> str:
    """The path and query of a canonical URI."""
    return uri[len(origin_of(uri)) :] or "/"


def _redirected(uri: Uri, answer: Exchange) -> Uri | None:
    """Where a robots.txt is said to be; None when that is the end."""
    where = next((link.uri for link in header_links(answer.fields, uri.uri, answer.status) if link.hop == REDIRECT), "")
    if not where or not 300 <= answer.status < 400:
        return None
    try:
        return make(where, crawl=uri.crawl, hops=uri.hops + REDIRECT, via=uri.uri, source=uri.source)
    except BadInput:
        return None
