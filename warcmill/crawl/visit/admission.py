"""Admission, the first step of a visit: it decides if a URI may be fetched now, and from which addresses.

Policies that need no network are asked first, then the host's address, its robots.txt, and the turn among hosts
of one address. `Admission.admit` is the step; below it are the three that it asks:

    Hosts        the addresses of hosts: each look-up is judged, logged and recorded, once
    RobotsFiles  the robots.txt of each site: fetched before its first page, kept for a day, and a record like any
    Manners      until when a queue, and an address that several may share, is left alone

Asks name servers, fetches robots.txt, and writes the results of both to the books.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import ip_address
from typing import NamedTuple, TypeVar

from warcmill.base import clock
from warcmill.crawl.books.books import BookEntry, Books
from warcmill.crawl.extract import feeds
from warcmill.crawl.extract.links import REDIRECT, TOO_MANY, Outlinks
from warcmill.crawl.extract.links import links as header_links
from warcmill.crawl.fetch import addresses as dns
from warcmill.crawl.fetch import exchange
from warcmill.crawl.fetch.addresses import HostLookup, Judge, Resolver
from warcmill.crawl.fetch.exchange import Exchange, FetchRequest
from warcmill.crawl.fetch.http import Fetcher, Site
from warcmill.crawl.fetch.limits import NOT_ALLOWED, Failure
from warcmill.crawl.frontier import SiteRow, Sums
from warcmill.crawl.job.job import Job, Live, Retries
from warcmill.crawl.logs import lines
from warcmill.crawl.logs.lines import FaultListener
from warcmill.crawl.policies import decision, quotas, robots
from warcmill.crawl.policies.decision import AT_LEASE, Ask, Decision, Own, Verdict
from warcmill.crawl.policies.politeness import Politeness, wait
from warcmill.crawl.policies.robots import Rules, Standing
from warcmill.crawl.uri import Uri, make
from warcmill.crawl.visit.offers import Offers
from warcmill.errors import BadInput

HOSTS_REMEMBERED = 20_000  # hosts that are strained, that were logged, and addresses that are left alone
RULES_REMEMBERED, SITE = 100_000, 2  # rules of all sites that are kept in memory; a site itself takes as much as these
ASKS, ASKS_AGAIN = 60.0, 0.5  # seconds: one process asks a site for its robots.txt; until others look at the result
SMALL = 1 << 15  # bytes that the loop reads itself: the worst take some 25 ms
LITTLE, MUCH = 1 << 20, 1 << 25  # letters that the loop compares itself, in some 20 ms, and that are compared for a URI
TOO_MUCH = robots.RobotsVerdict(False, "more than can be judged for a URI of this length")
_STATUSES = {"scope": lines.OUT_OF_SCOPE, "expiry": lines.QUOTA, "quotas": lines.QUOTA}

T = TypeVar("T")


class Admitted(NamedTuple):
    """It may be fetched from one of these addresses; `delay` is what its robots.txt asks for between two fetches."""

    addresses: tuple[str, ...]
    delay: float


class Refusal(NamedTuple):
    """It will not be fetched: the `status` of its line, and the policy that refused it."""

    status: int
    against: Decision


class Later(NamedTuple):
    """Not yet: its queue is left alone until `opens`, and it itself until `again`."""

    opens: float
    again: float = 0.0


NotAdmitted = Refusal | Later | Failure


class Admission:
    """The first step of each visit of a launch."""

    def __init__(self, live: Live, own: Own, books: Books, hosts: Hosts, sites: RobotsFiles, manners: Manners) -> None:
        self._live, self._own, self._books = live, own, books
        self._hosts, self._sites, self._manners = hosts, sites, manners
        self._by, self._policies = live.job, self._policies_of(live.job)
        self._sums: dict[tuple[str, str], Sums] = {}

    async def admit(self, uri: Uri, job: Job, *, in_turn: bool = True) -> Admitted | NotAdmitted:
        """Judge a leased URI; `job` is the job as it is for it. One that is admitted is under way from now on.

        `in_turn`: False for a part of a page that is open, whose parts are fetched at once.
        """
        against = await self._judged(uri, job)
        if against.verdict is Verdict.DEFER:
            return Later(0.0, against.until)
        if against.verdict is Verdict.REJECT:
            return Refusal(_STATUSES.get(against.policy, lines.BY_OWN), against)
        addresses = await self._hosts.addresses(uri)
        if isinstance(addresses, Failure):
            return _no_address(addresses)
        manners, address, delay = self._manners, addresses[0], 0.0
        if job.robots:
            if in_turn and not self._sites.knows(uri):  # other hosts of the address wait for this one's robots.txt, too
                if opens := manners.turn(job.politeness, address) or await self._turn(job, address):
                    return Later(opens)
                manners.begin(job.politeness, address)
            site = await self._sites.site(uri)
            if answer := await self._by_robots(uri, site):
                return answer
            delay = site.rules.delay
            if (
                in_turn
                and site.is_new
                and (opens := manners.after(job.politeness, uri.queue, address, None, 0.0, delay))
            ):
                await self._rest(job.politeness, address, opens)
                return Later(opens)
        opens = max(manners.turn(job.politeness, address), manners.rests(uri.queue)) if in_turn else 0.0
        if opens or (in_turn and (opens := await self._turn(job, address))):
            return Later(opens)
        manners.begin(job.politeness, address)
        return Admitted(addresses, delay)

    async def rest(
        self, settings: Politeness, queue: str, admitted: Admitted, answer: Exchange | Failure, took: float
    ) -> float:
        """Let an address rest that was asked, for all processes of the crawl; return until when its queue does, 0: not
        at all."""
        address = answer.address if isinstance(answer, Exchange) else admitted.addresses[0]
        until = self._manners.after(settings, queue, address, answer, took, admitted.delay)
        await self._rest(settings, address, until)
        return until

    async def _rest(self, settings: Politeness, address: str, until: float) -> None:
        if address and self._manners.shares(settings, address) and (span := until - clock.steady()) > 0:
            await self._books.frontier.turn(f"address {address}", span, waits=False)

    async def _turn(self, job: Job, address: str) -> float:
        """When it is this process's turn to ask an address that others ask too; 0: now."""
        if not self._manners.shares(job.politeness, address):
            return 0.0
        return await self._books.frontier.turn(f"address {address}", job.politeness.least)

    def close(self) -> None:
        """Ask no more: of no host, and of no site."""
        self._sites.close()
        self._hosts.close()

    async def _judged(self, uri: Uri, job: Job) -> Decision:
        """Ask the policies that need no network. Sums of quotas are read before, as a policy does not wait."""
        if self._by is not self._live.job:  # an edit replaces it
            self._by, self._policies = self._live.job, self._policies_of(self._live.job)
        policies = self._policies_of(job) if job.target else self._policies
        if not job.quotas:
            return decision.judge(policies, uri)
        self._sums[uri.crawl, uri.key] = (await self._books.frontier.spent([uri]))[0]
        try:
            return decision.judge(policies, uri)
        finally:
            del self._sums[uri.crawl, uri.key]

    def _policies_of(self, job: Job) -> Sequence[Ask]:
        """The policies that need no network, in the job's order."""
        built_in: dict[str, Ask] = {"scope": job.scope.judge}
        if job.expiry.ends:
            built_in["expiry"] = lambda uri: job.expiry.judge(uri, clock.steady())
        if job.target:
            built_in["expiry"] = job.target.judge
        if job.has_quotas:
            built_in["quotas"] = self._within_quotas
        return list(self._own.among(built_in, AT_LEASE).values())

    def _within_quotas(self, uri: Uri) -> Decision | None:
        return quotas.judge(self._live.job.of(uri).quotas, self._sums.get((uri.crawl, uri.key), {}), uri)

    async def _by_robots(self, uri: Uri, site: RobotsSite) -> NotAdmitted | None:
        if site.standing is Standing.DEFERRED:
            if not self._sites.is_given_up(site):
                return Later(site.until, site.until)
            why = f"its robots.txt cannot be had: {site.why}"
            return Refusal(lines.NO_ROBOTS, Decision(Verdict.REJECT, "robots", why))
        verdict = await self._sites.judge(site, uri)
        if verdict.allowed:
            return None
        return Refusal(lines.ROBOTS_FORBID, Decision(Verdict.REJECT, "robots", f"robots.txt says {verdict.rule}"))


def _no_address(why: Failure) -> Refusal | Failure:
    """The result for a host without an address, or with none that may be connected to."""
    if why.status == NOT_ALLOWED:
        return Refusal(why.status, Decision(Verdict.REJECT, "addresses", why.why))
    return replace(why, status=lines.NO_HOST)


class Hosts:
    """Finds the addresses of hosts; `via` is the URI for whose sake a host is asked for."""

    def __init__(self, resolver: Resolver, judge: Judge, books: Books, heard: FaultListener) -> None:
        self._resolver, self._judge, self._books, self._heard = resolver, judge, books, heard
        self._logged: OrderedDict[str, int] = OrderedDict()
        self._asking: dict[str, asyncio.Task[HostLookup | Failure]] = {}

    async def addresses(self, via: Uri) -> tuple[str, ...] | Failure:
        """The addresses that may be connected to for a URI; why there is none."""
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

    async def _shared(self, host: str, via: Uri) -> HostLookup | Failure:
        """Ask for a host; all who want it meanwhile wait for one answer."""
        if host not in self._asking:
            self._asking[host] = asyncio.create_task(self._ask(host, via))
            self._asking[host].add_done_callback(lambda _: self._asking.pop(host, None))
        return await asyncio.shield(self._asking[host])

    async def _ask(self, host: str, via: Uri) -> HostLookup | Failure:
        began = time.time()
        found = await self._resolver.lookup(host)
        status = found.status
        if found.status != dns.BY_DNS and await self._last(host, via) == status:
            self._remember(host, status)
            return found  # the same as before: once in the log is enough
        uri = lines.prerequisite(f"dns:{host}", via)
        lines.visited(self._books.frontier.transitions, uri, status, failed=isinstance(found, Failure))
        record = dns.record_of(found) if isinstance(found, HostLookup) else None
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
    """Return those of a host's addresses that may be connected to; why there is none."""
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


@dataclass(frozen=True, slots=True)
class RobotsSite:
    """The robots.txt of a site, as it is known until a time. `failures`: the number of fetches that failed. `is_new`:
    it was fetched just now, so its host should be left alone before the next fetch."""

    standing: Standing
    rules: Rules
    until: float
    failures: int = 0
    why: str = ""
    is_new: bool = False


class RobotsFiles:
    """Asks each site for its rules, when the first URI of it is to be fetched."""

    def __init__(
        self, live: Live, books: Books, fetcher: Fetcher, hosts: Hosts, offers: Offers, heard: FaultListener
    ) -> None:
        self._live, self._books, self._fetcher = live, books, fetcher
        self._hosts, self._offers, self._heard = hosts, offers, heard
        self._sites: OrderedDict[str, RobotsSite] = OrderedDict()
        self._size = 0
        self._asking: dict[str, asyncio.Task[RobotsSite]] = {}
        self._thread = ThreadPoolExecutor(1, "robots")  # one: each takes its turn with the loop's

    async def site(self, via: Uri) -> RobotsSite:
        """The present robots.txt of a URI's site."""
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

    async def judge(self, site: RobotsSite, uri: Uri) -> robots.RobotsVerdict:
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
        """Read it from the books, if the launch continued after a kill; else ask."""
        frontier = self._books.frontier
        while True:  # of the processes of a crawl one asks, and the others read what it has kept
            row = None if known and not frontier.is_shared else (await frontier.sites([origin])).get(origin)
            if row and clock.steady() < row.until:
                return await self._taken(row, "")
            if not (until := await frontier.turn(f"robots {origin}", ASKS)):
                break
            await asyncio.sleep(min(max(until - clock.steady(), 0.0), ASKS_AGAIN))
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
            uri = redirected(uri, answer)
        return await self._taken(row, why)

    async def _fetched(self, uri: Uri) -> Exchange | Failure:
        addresses = await self._hosts.addresses(uri)
        if isinstance(addresses, Failure):
            return addresses
        return await self._fetcher.fetch(FetchRequest(uri.uri), addresses, self._live.job.of(uri).limits)

    async def _keep(self, uri: Uri, answer: Exchange, origin: str, failures: int) -> SiteRow:
        """Write a robots.txt, and offer the sitemaps that it names."""
        job = self._live.job.of(uri)
        data, cut = exchange.document(answer, replace(job.limits, decoded=min(job.limits.decoded, robots.LIMIT)))
        row = self._row(origin, answer.status, failures, data, answer.retry_after)
        links, notes = Outlinks(), answer.annotations
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
        """Log a robots.txt that could not be fetched; only the last time, as Heritrix does."""
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


def redirected(uri: Uri, answer: Exchange) -> Uri | None:
    """The place to which a robots.txt is redirected; None when that is the end."""
    where = next((link.uri for link in header_links(answer.fields, uri.uri, answer.status) if link.hop == REDIRECT), "")
    if not where or not 300 <= answer.status < 400:
        return None
    try:
        return make(where, crawl=uri.crawl, hops=uri.hops + REDIRECT, via=uri.uri, source=uri.source)
    except BadInput:
        return None


class Manners:
    """The politeness of one launch. A job of `no_delay` does not wait for addresses that only `allow_private` lets
    pass."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._public = Judge()
        self._strains: OrderedDict[str, float] = OrderedDict()
        self._closed: OrderedDict[str, float] = OrderedDict()
        self._turns: OrderedDict[str, float] = OrderedDict()

    def turn(self, settings: Politeness, address: str) -> float:
        """When it is a host's turn to ask an address that others ask too; 0: now."""
        until = self._closed.get(address, 0.0)
        if until <= clock.steady():
            return 0.0
        turn = max(until, self._turns.get(address, 0.0))
        _put(self._turns, address, turn + settings.least)
        return turn

    def shares(self, settings: Politeness, address: str) -> bool:
        """True if an address rests after each fetch, whichever host of it was asked."""
        return settings.by_address and not self._is_hurried(address)

    def begin(self, settings: Politeness, address: str) -> None:
        """Note that an address is being asked: another host there waits."""
        if self.shares(settings, address):
            self._close(address, clock.steady() + settings.least)

    def after(
        self, settings: Politeness, queue: str, address: str, answer: Exchange | Failure | None, took: float,
        crawl_delay: float,
    ) -> float:  # fmt: skip
        """When the queue may be asked again; 0: at once. `answer` is None after its robots.txt."""
        if self._is_hurried(address):
            return 0.0
        asked = answer.retry_after if isinstance(answer, Exchange) else 0.0
        strain = self._strains.get(queue, 1.0)
        found = wait(settings, strain, took, answer.status if answer else 0, asked, crawl_delay)
        if found.strain > 1.0:
            _put(self._strains, queue, found.strain)
        else:
            self._strains.pop(queue, None)
        until = clock.steady() + found.seconds
        if settings.by_address and address:
            self._close(address, until)
        return until

    def rest(self, queue: str, until: float) -> None:
        """Let a queue rest that was asked without a lease."""
        self._close(queue, until)

    def rests(self, queue: str) -> float:
        """Until when a queue rests that was asked without a lease; 0: it does not."""
        until = self._closed.get(queue, 0.0)
        return until if until > clock.steady() else 0.0

    def _close(self, address: str, until: float) -> None:
        _put(self._closed, address, until)
        for times in (self._closed, self._turns):
            while times and next(iter(times.values())) <= clock.steady():
                times.popitem(last=False)

    def _is_hurried(self, address: str) -> bool:
        return self._live.job.no_delay and bool(address) and bool(self._public.why_refused(address))


def _put(known: OrderedDict[str, float], name: str, value: float) -> None:
    known[name] = value
    known.move_to_end(name)
    if len(known) > HOSTS_REMEMBERED:
        known.popitem(last=False)
