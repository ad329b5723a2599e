"""Admission, the first step of a visit: it decides if a URI may be fetched now, and from which addresses.

Policies that need no network are asked first, then the host's address, its robots.txt, and the turn among hosts
of one address. `Admission.admit` is the step; below it are two that it asks, beside `robots_files`:

    Hosts        the addresses of hosts: each look-up is judged, logged and recorded, once
    Manners      until when a queue, and an address that several may share, is left alone

Asks name servers, and has the books keep their answers.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import ip_address

from msgspec.structs import replace

from warcmill.base import clock
from warcmill.crawl.fetch import addresses as dns
from warcmill.crawl.fetch.addresses import HostLookup, Judge, Resolver
from warcmill.crawl.fetch.exchange import Exchange
from warcmill.crawl.fetch.http import Site
from warcmill.crawl.fetch.limits import NOT_ALLOWED, Failure
from warcmill.crawl.frontier import Frontier, Sums
from warcmill.crawl.job.job import NOBODY, Job, Live
from warcmill.crawl.logs import lines
from warcmill.crawl.policies import decision, quotas
from warcmill.crawl.policies.decision import AT_LEASE, Ask, Decision, Own, Verdict
from warcmill.crawl.policies.owners import POLICY, HeardOwners
from warcmill.crawl.policies.politeness import Politeness, wait
from warcmill.crawl.policies.robots import Standing
from warcmill.crawl.policies.scope import Patterns
from warcmill.crawl.uri import Uri
from warcmill.crawl.visit.fetching import Admitted, Entries, Later, NotAdmitted, Refusal
from warcmill.crawl.visit.robots_files import RobotsFiles, RobotsKeeper, RobotsSite

AT_ONCE = 6  # requests to a host that is not waited for, as browsers have it
SILENT = 1.0  # seconds: other hosts of an address wait so long for a host that does not answer
HOSTS_REMEMBERED = 20_000  # hosts that are strained, that were logged, and addresses that are left alone
_STATUSES = {"scope": lines.OUT_OF_SCOPE, "patterns": lines.OUT_OF_SCOPE, "expiry": lines.QUOTA, "quotas": lines.QUOTA}


class Admission:
    """The first step of each visit of a launch."""

    def __init__(
        self, live: Live, own: Own, frontier: Frontier, hosts: Hosts, sites: RobotsFiles, keeper: RobotsKeeper,
        manners: Manners,
    ) -> None:  # fmt: skip
        self._live, self._own, self._frontier = live, own, frontier
        self._hosts, self._sites, self._keeper, self._manners = hosts, sites, keeper, manners
        self._by, self._patterns = live.job, Patterns(live.job.patterns)
        self._policies = self._policies_of(live.job)
        self._sums: dict[tuple[str, str], Sums] = {}

    async def admit(self, uri: Uri, job: Job, *, in_turn: bool = True) -> Admitted | NotAdmitted:
        """Judge a leased URI; `job` is its job. One that is admitted is under way from now on.

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
            if in_turn and not self._sites.knows(uri, self._keeper):  # other hosts of the address wait for it, too
                if opens := manners.turn(job.politeness, address) or await self._turn(job, address):
                    return Later(opens)
                manners.begin(job.politeness, address)
            site = await self._sites.site(uri, self._keeper)
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
        self._widen(uri, job, addresses)
        return Admitted(addresses, delay)

    def _widen(self, uri: Uri, job: Job, addresses: Sequence[str]) -> None:
        """Have a host asked for several URIs at once that is not waited for."""
        if not (job.politeness.at_once or job.quotas) and self._manners.hurries(addresses):
            self._frontier.widen(uri.queue, AT_ONCE)

    async def rest(
        self, settings: Politeness, queue: str, admitted: Admitted, answer: Exchange | Failure, took: float, *,
        has_lease: bool = True,
    ) -> float:  # fmt: skip
        """Let an address rest that was asked, for all processes of the crawl; return until when its queue does, 0: not
        at all. The queue of a URI without a lease rests by `Manners`."""
        address = answer.address if isinstance(answer, Exchange) else admitted.addresses[0]
        until = self._manners.after(settings, queue, address, answer, took, admitted.delay)
        if isinstance(answer, Exchange):
            await self._rest(settings, address, until)
        if until and not has_lease:
            self._manners.rest(queue, until)
        return until

    async def _rest(self, settings: Politeness, address: str, until: float) -> None:
        if address and self._manners.shares(settings, address) and (span := until - clock.steady()) > 0:
            await self._frontier.turn(f"address {address}", span, waits=False)

    async def _turn(self, job: Job, address: str) -> float:
        """When it is this process's turn to ask an address that others ask too; 0: now."""
        if not self._manners.shares(job.politeness, address):
            return 0.0
        return await self._frontier.turn(f"address {address}", min(job.politeness.least, SILENT))

    def close(self) -> None:
        """Ask no more: of no host, and of no site."""
        self._sites.close()
        self._hosts.close()

    async def _judged(self, uri: Uri, job: Job) -> Decision:
        """Ask the policies that need no network. Sums of quotas are read before, as a policy does not wait."""
        if self._by is not self._live.job:  # an edit replaces it
            self._by, self._patterns = self._live.job, Patterns(self._live.job.patterns)
            self._policies = self._policies_of(self._live.job)
        policies = self._policies if job.audience is NOBODY else self._policies_of(job)
        if not job.quotas:
            return decision.judge(policies, uri)
        self._sums[uri.crawl, uri.key] = (await self._frontier.spent([uri]))[0]
        try:
            return decision.judge(policies, uri)
        finally:
            del self._sums[uri.crawl, uri.key]

    def _policies_of(self, job: Job) -> Sequence[Ask]:
        """The policies that need no network, in the job's order."""
        built_in: dict[str, Ask] = {"scope": job.scope.judge, "patterns": self._patterns.judge}
        if owners := self._frontier.owners:
            built_in[POLICY] = lambda uri: _forbidden(owners, uri)
        if job.expiry.ends:
            built_in["expiry"] = lambda uri: job.expiry.judge(uri, clock.steady())
        built_in |= job.audience.policies
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
            return Refusal(lines.NO_ROBOTS, Decision(Verdict.REJECT, "robots", why), site.status)
        verdict = await self._sites.judge(site, uri)
        if verdict.allowed:
            return None
        return Refusal(lines.ROBOTS_FORBID, Decision(Verdict.REJECT, "robots", f"robots.txt says {verdict.rule}"))


def _forbidden(owners: HeardOwners, uri: Uri) -> Decision | None:
    why = owners.forbids(uri.uri)
    return Decision(Verdict.REJECT, POLICY, why) if why else None


def _no_address(why: Failure) -> Refusal | Failure:
    """The result for a host without an address that may be connected to."""
    if why.status == NOT_ALLOWED:
        return Refusal(why.status, Decision(Verdict.REJECT, "addresses", why.why))
    return replace(why, status=lines.NO_HOST)


class Hosts:
    """Finds the addresses of hosts; `via` is the URI for whose sake a host is asked for."""

    def __init__(self, resolver: Resolver, judge: Judge, frontier: Frontier, entries: Entries) -> None:
        self._resolver, self._judge, self._frontier, self._entries = resolver, judge, frontier, entries
        self._logged: OrderedDict[str, int] = OrderedDict()
        self._asking: dict[str, asyncio.Task[HostLookup | Failure]] = {}

    async def addresses(self, via: Uri) -> tuple[str, ...] | Failure:
        """The addresses that may be connected to for a URI; or why it has no such address."""
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
        if found.status == dns.BY_DNS or await self._last(host, via) != found.status:  # else it is in the log already
            await self._entries.looked_up(lines.prerequisite(f"dns:{host}", via), found, began)
        self._remember(host, found.status)
        return found

    async def _last(self, host: str, via: Uri) -> int:
        """The status that was logged last for a host in this launch, also before a kill; 0 if nothing was logged."""
        if host in self._logged:
            return self._logged[host]
        seen = (await self._frontier.list(via.crawl, keys=[f"dns:{host}"])).uris
        return seen[0].http_status if seen else 0

    def _remember(self, host: str, status: int) -> None:
        self._logged[host] = status
        if len(self._logged) > HOSTS_REMEMBERED:
            self._logged.popitem(last=False)


def judged(judge: Judge, addresses: tuple[str, ...]) -> tuple[str, ...] | Failure:
    """Return those of a host's addresses that may be connected to; or why it has no such address."""
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
        _put(self._turns, address, turn + min(settings.least, SILENT))
        return turn

    def shares(self, settings: Politeness, address: str) -> bool:
        """True if an address rests after each fetch, whichever host of it was asked."""
        return settings.by_address and not self._is_hurried(address)

    def hurries(self, addresses: Sequence[str]) -> bool:
        """True if the job does not wait for a host with these addresses."""
        return self._live.job.no_delay and all(map(self._is_hurried, addresses))

    def begin(self, settings: Politeness, address: str) -> None:
        """Note that an address is being asked: another host there waits for the answer, but not for long."""
        if self.shares(settings, address):
            self._close(address, clock.steady() + min(settings.least, SILENT))

    def after(
        self, settings: Politeness, queue: str, address: str, answer: Exchange | Failure | None, took: float,
        crawl_delay: float,
    ) -> float:  # fmt: skip
        """When the queue may be asked again; 0: at once. `answer` is None after its robots.txt. Without an answer the
        queue alone rests: other hosts of the address may be well."""
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
        if settings.by_address and address and not isinstance(answer, Failure):
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
