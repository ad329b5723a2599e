"""The robots.txt of each site: asked for before its first page, kept for a day, judged by. Its keeper asks and writes.

RobotsFiles    the sites of a crawl, or of all pages that another engine asks for
RobotsKeeper   who asks for the files of some of them, and keeps these: the books of a launch, the WARC of a page
LaunchRobots   the keeper of a launch
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from warcmill.base import clock
from warcmill.crawl.extract import feeds
from warcmill.crawl.extract.links import REDIRECT, Outlinks, cut_note
from warcmill.crawl.extract.links import links as header_links
from warcmill.crawl.fetch import exchange
from warcmill.crawl.fetch.exchange import Exchange, FetchRequest
from warcmill.crawl.fetch.http import Fetcher
from warcmill.crawl.fetch.limits import Failure
from warcmill.crawl.frontier import Frontier, SiteRow
from warcmill.crawl.job.job import Live, Retries
from warcmill.crawl.logs import lines
from warcmill.crawl.policies import robots
from warcmill.crawl.policies.robots import RobotsVerdict, Rules, Standing
from warcmill.crawl.uri import Uri, make
from warcmill.crawl.visit import history
from warcmill.crawl.visit.extraction import link_limits
from warcmill.crawl.visit.fetching import Entries
from warcmill.crawl.visit.offers import Offers
from warcmill.errors import BadInput

RULES_REMEMBERED, SITE = 100_000, 2  # rules of all sites that are kept in memory; a site itself takes as much as these
ASKS, ASKS_AGAIN = 60.0, 0.5  # seconds: one process asks a site for its robots.txt; until others look at the result
SMALL = 1 << 15  # bytes that the loop reads itself: the worst take some 25 ms
LITTLE, MUCH = 1 << 20, 1 << 25  # letters that the loop compares itself, in some 20 ms, and that are compared for a URI
TOO_MUCH = RobotsVerdict(False, "more than can be judged for a URI of this length")

T = TypeVar("T")


class RobotsSite(Struct, frozen=True):
    """The robots.txt of a site, as it is known until a time. `failures`: the number of fetches that failed. `is_new`:
    it was fetched just now, so its host should be left alone before the next fetch. `status` is of the last fetch."""

    standing: Standing
    rules: Rules
    until: float
    failures: int = 0
    why: str = ""
    is_new: bool = False
    status: int = 0


class RobotsKeeper(Protocol):
    """Asks for robots.txt files, and keeps what came."""

    async def known(self, origin: str, *, is_first: bool) -> SiteRow | None:
        """The answer that is kept of a site; None if it is to be asked. `is_first`: this process has not known it."""
        ...

    async def ask(self, uri: Uri) -> Exchange | Failure:
        """Fetch a robots.txt, or the place that it is redirected to."""
        ...

    async def keep(self, uri: Uri, answer: Exchange, row: SiteRow, links: Outlinks, notes: tuple[str, ...]) -> None:
        """Keep an answer, what it says of its site, and the sitemaps that it names. Nobody else needs it any more."""
        ...

    async def give_up(self, uri: Uri, failure: Failure, row: SiteRow, *, is_last: bool) -> None:
        """Hear that no answer came; `is_last`: the site is asked no more for a day."""
        ...


class RobotsFiles:
    """The rules of sites. Of several who want those of one site by one keeper at one time, one has them asked for."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._sites: OrderedDict[str, RobotsSite] = OrderedDict()
        self._size = 0
        self._asking: dict[tuple[str, RobotsKeeper], asyncio.Task[RobotsSite]] = {}
        self._thread = ThreadPoolExecutor(1, "robots")  # one: each takes its turn with the loop's

    async def site(self, via: Uri, keeper: RobotsKeeper) -> RobotsSite:
        """The present robots.txt of a URI's site."""
        origin = origin_of(via.uri)
        known = self._sites.get(origin)
        if known and clock.steady() < known.until:
            return known
        key = (origin, keeper)
        if key not in self._asking:
            self._asking[key] = asyncio.create_task(self._find(origin, via, known, keeper))
            self._asking[key].add_done_callback(lambda _: self._asking.pop(key, None))
        return await asyncio.shield(self._asking[key])

    def knows(self, uri: Uri, keeper: RobotsKeeper) -> bool:
        """True if the robots.txt of a URI's site is known, or is being asked for."""
        origin = origin_of(uri.uri)
        known = self._sites.get(origin)
        return (origin, keeper) in self._asking or (known is not None and clock.steady() < known.until)

    def close(self) -> None:
        """Ask no more."""
        for task in self._asking.values():
            task.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def judge(self, site: RobotsSite, uri: Uri) -> RobotsVerdict:
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
        return self._live.retries

    async def _find(self, origin: str, via: Uri, known: RobotsSite | None, keeper: RobotsKeeper) -> RobotsSite:
        """Take what the keeper has, as after a kill; else have it ask."""
        if row := await keeper.known(origin, is_first=known is None):
            return await self._taken(row, "")
        return replace(await self._ask(origin, via, known.failures if known else 0, keeper), is_new=True)

    async def _ask(self, origin: str, via: Uri, failures: int, keeper: RobotsKeeper) -> RobotsSite:
        uri: Uri | None = lines.prerequisite(origin + robots.PATH, via)
        row, why = self._row(origin, 0, failures), ""
        for _ in range(robots.REDIRECTS + 1):
            if uri is None:
                break
            answer = await keeper.ask(uri)
            if isinstance(answer, Failure):
                row, why = self._row(origin, answer.status, failures), answer.why
                await keeper.give_up(uri, answer, row, is_last=row.failures >= self._retries.times)
                break
            row = await self._read(uri, answer, origin, failures, keeper)
            why = f"it is answered by {answer.status}"
            uri = redirected(uri, answer)
        return await self._taken(row, why)

    async def _read(self, uri: Uri, answer: Exchange, origin: str, failures: int, keeper: RobotsKeeper) -> SiteRow:
        """Read a robots.txt, with the sitemaps that it names, and have it kept."""
        job = self._live.job.of(uri)
        data, cut = exchange.document(answer, replace(job.limits, decoded=min(job.limits.decoded, robots.LIMIT)))
        row = self._row(origin, answer.status, failures, data, answer.retry_after)
        links, notes = Outlinks(), tuple[str, ...]()
        if "sitemap" in job.extractors and answer.status == 200:
            most = link_limits(job)
            links = await self._beside(lambda: feeds.from_robots(data, uri.uri, most), len(data) <= SMALL)
            notes = (*((cut,) if cut else ()), *cut_note(links.cut_by))
        await keeper.keep(uri, answer, row, links, notes)
        return row

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
        site = RobotsSite(robots.standing(row.status), rules, row.until, row.failures, why, status=row.status)
        self._size += _size(site) - _size(self._sites.pop(row.origin, None))
        self._sites[row.origin] = site
        while self._size > RULES_REMEMBERED and len(self._sites) > 1:  # the books have the others
            self._size -= _size(self._sites.popitem(last=False)[1])
        return site


class LaunchRobots:
    """The robots.txt files of a launch, in its books. `reach` returns the addresses of a URI's host."""

    def __init__(
        self, live: Live, frontier: Frontier, fetcher: Fetcher, entries: Entries, offers: Offers,
        reach: Callable[[Uri], Awaitable[tuple[str, ...] | Failure]],
    ) -> None:  # fmt: skip
        self._live, self._frontier, self._fetcher = live, frontier, fetcher
        self._entries, self._offers, self._reach = entries, offers, reach

    async def known(self, origin: str, *, is_first: bool) -> SiteRow | None:
        """Read what the books have, if the launch continued after a kill. Of the processes of a crawl one asks, and the
        others read what it has kept."""
        frontier = self._frontier
        while True:
            row = (await frontier.sites([origin])).get(origin) if is_first or frontier.is_shared else None
            if row and clock.steady() < row.until:
                return row
            if not (until := await frontier.turn(f"robots {origin}", ASKS)):
                return None
            await asyncio.sleep(min(max(until - clock.steady(), 0.0), ASKS_AGAIN))

    async def ask(self, uri: Uri) -> Exchange | Failure:
        addresses = await self._reach(uri)
        if isinstance(addresses, Failure):
            return addresses
        return await self._fetcher.fetch(FetchRequest(uri.uri), addresses, self._live.job.of(uri).limits)

    async def keep(self, uri: Uri, answer: Exchange, row: SiteRow, links: Outlinks, notes: tuple[str, ...]) -> None:
        with closing(answer):
            found = await self._offers.of_many(uri, links, self._frontier)
            entry = self._entries.answered(uri, answer, history.compare(answer, None), links, notes)
            await self._entries.keep(replace(entry, history=b"", found=found, site=row))

    async def give_up(self, uri: Uri, failure: Failure, row: SiteRow, *, is_last: bool) -> None:
        """Log it; it has an entry only the last time, as in Heritrix."""
        uri.tries = row.failures
        if is_last:
            await self._entries.keep(replace(self._entries.given_up(uri, failure.status, failure.why), site=row))
        else:
            self._entries.in_vain(uri, failure.status, failure.why)


def _size(site: RobotsSite | None) -> int:
    return SITE + site.rules.size if site else 0


def origin_of(uri: str) -> str:
    """The scheme, host and port of a canonical URI, without a path."""
    return "/".join(uri.partition("?")[0].split("/", 3)[:3])


def path_of(uri: str) -> str:
    """The path and query of a canonical URI."""
    return uri[len(origin_of(uri)) :] or "/"


def redirected(uri: Uri, answer: Exchange) -> Uri | None:
    """The place to which a robots.txt is redirected; None when that is the end."""
    where = next((link.uri for link in header_links(answer.fields, uri.uri, answer.status) if link.hop == REDIRECT), "")
    if not where or not 300 <= answer.status < 400:
        return None
    try:
        return make(where, crawl=uri.crawl, hops=uri.hops + REDIRECT, via=uri.uri, source=uri.source)
    except BadInput:
        return None
