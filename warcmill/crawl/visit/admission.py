"""May this URI be fetched now? Asked at its lease.

MERGED warcmill/crawl/visit/admission.py: How long hosts are left alone, as their last answers say: by queue, and by
the address that several may share.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from warcmill.base import clock
from warcmill.crawl.fetch.addresses import Judge
from warcmill.crawl.fetch.exchange import Exchange
from warcmill.crawl.fetch.limits import NOT_ALLOWED, Failure
from warcmill.crawl.frontier.accounts import Sums
from warcmill.crawl.job.job import Job, Live
from warcmill.crawl.logs import lines
from warcmill.crawl.policies import decision, quotas
from warcmill.crawl.policies.decision import AT_LEASE, Ask, Decision, Own, Verdict
from warcmill.crawl.policies.politeness import Politeness, wait
from warcmill.crawl.policies.robots import Standing
from warcmill.crawl.uri import Uri
from warcmill.crawl.visit.hosts import Hosts, RobotsFiles, RobotsSite

REMEMBERED = 20_000  # hosts that are strained, and addresses that are left alone


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

    def begin(self, settings: Politeness, address: str) -> None:
        """Note that an address is being asked: another host there waits."""
        if settings.by_address and not self._is_hurried(address):
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
    if len(known) > REMEMBERED:
        known.popitem(last=False)


class Admitted(NamedTuple):
    """It may be fetched from one of these addresses; `delay` is what its robots.txt asks for between two fetches."""

    addresses: tuple[str, ...]
    delay: float


class Refused(NamedTuple):
    """It will not be fetched: the `status` of its line, and the policy that refused it."""

    status: int
    against: Decision


class Later(NamedTuple):
    """Not yet: its queue is left alone until `opens`, and it itself until `again`."""

    opens: float
    again: float = 0.0


_STATUSES = {"scope": lines.OUT_OF_SCOPE, "expiry": lines.QUOTA, "quotas": lines.QUOTA}
Answer = Admitted | Refused | Later | Failure


class JudgedSums:
    """What quotas count, of the URIs that are judged now: it is read before, as a policy does not wait."""

    def __init__(self, read: Callable[[Uri], Awaitable[Sums]]) -> None:
        self._read = read
        self._found: dict[tuple[str, str], Sums] = {}

    async def read(self, uri: Uri) -> None:
        """Read the sums of a URI, for `of`."""
        self._found[uri.crawl, uri.key] = await self._read(uri)

    def of(self, uri: Uri) -> Sums:
        """Return the sums that were read; none, where the job has no quotas."""
        return self._found.get((uri.crawl, uri.key), {})

    def forget(self, uri: Uri) -> None:
        """Forget the sums of a URI that was judged."""
        self._found.pop((uri.crawl, uri.key), None)


@dataclass(frozen=True, slots=True)
class Admission:
    """What is asked at a lease: `policies` that need no network, then the address, robots.txt, and whose turn it is."""

    live: Live
    policies: Sequence[Ask]
    sums: JudgedSums
    hosts: Hosts
    robots: RobotsFiles
    manners: Manners

    async def ask(self, uri: Uri) -> Answer:
        """Judge a URI; what is admitted is under way from now on."""
        job = self.live.job.of(uri)
        if job.quotas:
            await self.sums.read(uri)
        against = decision.judge(self.policies, uri)
        self.sums.forget(uri)
        if against.verdict is Verdict.DEFER:
            return Later(0.0, against.until)
        if against.verdict is Verdict.REJECT:
            return Refused(_STATUSES.get(against.policy, lines.BY_OWN), against)
        addresses = await self.hosts.addresses(uri)
        if isinstance(addresses, Failure):
            return _no_address(addresses)
        if job.robots and not self.robots.knows(uri):  # other hosts of the address wait for this one's robots.txt, too
            if opens := self.manners.turn(job.politeness, addresses[0]):
                return Later(opens)
            self.manners.begin(job.politeness, addresses[0])
        site = await self.robots.site(uri) if job.robots else None
        if site and (answer := await self._by_robots(uri, job, site, addresses[0])):
            return answer
        if opens := self.manners.turn(job.politeness, addresses[0]):
            return Later(opens)
        self.manners.begin(job.politeness, addresses[0])
        return Admitted(addresses, site.rules.delay if site else 0.0)

    async def _by_robots(self, uri: Uri, job: Job, site: RobotsSite, address: str) -> Answer | None:
        if site.standing is Standing.DEFERRED:
            if not self.robots.is_given_up(site):
                return Later(site.until, site.until)
            why = f"its robots.txt cannot be had: {site.why}"
            return Refused(lines.NO_ROBOTS, Decision(Verdict.REJECT, "robots", why))
        verdict = await self.robots.judge(site, uri)
        if not verdict.allowed:
            return Refused(lines.ROBOTS_FORBID, Decision(Verdict.REJECT, "robots", f"robots.txt says {verdict.rule}"))
        if not site.is_new:
            return None
        opens = self.manners.after(job.politeness, uri.queue, address, None, 0.0, site.rules.delay)
        return Later(opens) if opens else None


def at_lease(live: Live, sums: JudgedSums, own: Own) -> list[Ask]:
    """Return the policies that need no network, in the job's order, as its files have them at the time."""

    def scope(uri: Uri) -> Decision | None:
        return live.job.scope.judge(uri)  # the job's of now: an edit replaces it

    built_in: dict[str, Ask] = {
        "scope": scope,
        "expiry": lambda uri: live.job.expiry.judge(uri, clock.steady()),
        "quotas": lambda uri: quotas.judge(live.job.of(uri).quotas, sums.of(uri), uri),
    }
    return list(own.among(built_in, AT_LEASE).values())


def _no_address(why: Failure) -> Answer:
    """The host has no address, or none that may be dialled."""
    if why.status == NOT_ALLOWED:
        return Refused(why.status, Decision(Verdict.REJECT, "addresses", why.why))
    return replace(why, status=lines.NO_HOST)
