"""The spider, the loop of a crawl: it leases what may be fetched now and visits it, until nothing waits. That of an
endless job then waits for more.

It keeps as many visits under way as the job has workers. Between visits it can be paused, and drained for a
checkpoint; it ends sooner when it is asked to, or when a ceiling is reached.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from pathlib import Path

from warcmill.base import clock
from warcmill.crawl.frontier import Change, Defer, Finish, Frontier, Lease, journal
from warcmill.crawl.job.job import Audiences, End, Fetched
from warcmill.crawl.logs.statistics import Figures
from warcmill.crawl.policies.owners import HeardOwners
from warcmill.crawl.uri import Status, Uri
from warcmill.crawl.visit.offers import AT_ONCE
from warcmill.crawl.visit.visit import Kit, Visit
from warcmill.errors import WarcmillError
from warcmill.formats.logs import crawllog
from warcmill.formats.seeds import lines

HOLDER = "spider"
SOON = 0.5  # seconds for which one waits to hear what is visited
LONGEST_WAIT = 1.0  # seconds until it looks again
TICK = 0.0005  # seconds: the database has its times in milliseconds
PATIENCE = 20.0  # seconds that visits have to end, before they are given back


class Spider:
    """Crawls with the parts of its kit. `began`: when the launch began, for its ceiling of time; at the latest now.

    `elsewhere`: what other processes of the launch have fetched.
    """

    def __init__(self, kit: Kit, figures: Figures, began: float) -> None:
        self._kit, self._figures, self._began = kit, figures, min(began, clock.steady())
        self._visits: dict[asyncio.Task[None], Lease] = {}
        self._threads = list(range(kit.job.workers, 0, -1))
        self._woken, self._gate = kit.woken, asyncio.Lock()
        self._held, self._leads = 0, True
        self.elsewhere = Fetched()
        self._ending: End | None = None
        self._failure: BaseException | None = None
        self._seeding: asyncio.Task[None] | None = None
        self.is_over = False  # it has nothing to do in any other launch, either

    @property
    def under_way(self) -> int:
        """The number of URIs that are being visited."""
        return len(self._visits)

    def visited(self) -> Sequence[Uri]:
        """The URIs that are being visited; the one that was begun first is the first."""
        return [lease.uri for lease in self._visits.values()]

    @property
    def seconds(self) -> float:
        """For how long the launch has run, whatever the clock is set to meanwhile."""
        return clock.steady() - self._began

    @property
    def is_paused(self) -> bool:
        """True if nothing new is begun."""
        return self._held > 0

    async def _offer_list(self, path: Path) -> None:
        """Offer the seeds of a long list. Those that the frontier has are passed over, so it may be repeated."""
        with path.open("rb") as stream:
            seeds = lines(stream)
            while some := await asyncio.to_thread(lambda: list(islice(seeds, AT_ONCE))):
                await self._kit.offers.listed(some, self._kit.books.frontier)
                self._woken.set()

    def _seeded(self, task: asyncio.Task[None]) -> None:
        self._seeding = None
        if not task.cancelled() and (error := task.exception()):
            self._failure = self._failure or error
            self.hurry()
        self._woken.set()

    def wake(self) -> None:
        """Look for URIs that may be leased, as some were offered, or a queue has opened."""
        self._woken.set()

    def follow(self) -> None:
        """Wait at a ceiling, until the process that leads ends the launch."""
        self._leads = False

    def only_lead(self) -> None:
        """Visit nothing: other processes do."""
        self._threads.clear()

    def stop(self, ending: End = End.STOPPED) -> None:
        """End the crawl: begin nothing new."""
        self._ending = self._ending or ending
        self._woken.set()

    def hurry(self) -> None:
        """End at once: what is under way is given back, and waits."""
        self.stop()
        for task in self._visits:
            task.cancel()

    def fail(self, error: WarcmillError) -> None:
        """End at once, with this error: the books take nothing more."""
        self._kit.books.stop(error)
        self._failure = self._failure or error
        self.hurry()

    def pause(self) -> None:
        """Begin nothing new until `resume`."""
        self._held += 1

    def resume(self) -> None:
        """Begin new visits again, when nobody else holds it paused."""
        self._held -= 1
        self._woken.set()

    @asynccontextmanager
    async def drained(self) -> AsyncIterator[None]:
        """Have nothing under way while the block runs: a checkpoint is taken."""
        self.pause()
        try:
            await self.settled()
            yield
        finally:
            self.resume()

    async def run(self, seed_list: Path | None = None) -> End:
        """Crawl; return how it ended. Raises what the books raised. `seed_list`: seeds that are offered meanwhile."""
        if seed_list:
            self._seeding = asyncio.create_task(self._offer_list(seed_list))
            self._seeding.add_done_callback(self._seeded)
        try:
            return await self._crawl()
        finally:
            if seeding := self._seeding:
                seeding.cancel()
                await asyncio.gather(seeding, return_exceptions=True)

    async def _crawl(self) -> End:
        while not (ending := self._over()):
            self._woken.clear()
            begun = await self._begin()
            is_idle = not (begun or self._visits or self.is_paused or self._seeding)
            if is_idle and await self._has_nothing_left():
                ending = End.EMPTY
                break
            if not begun:
                await self._rest()
        await self.settled()
        if self._failure:
            raise self._failure
        return ending

    async def _has_nothing_left(self) -> bool:
        """True if nothing will be to visit any more."""
        return not self._kit.job.endless and await self._kit.books.frontier.is_empty()

    async def _lease(self, limit: int) -> list[Lease]:
        """Lease what it visits."""
        return await self._kit.books.frontier.lease(HOLDER, limit)

    def _visit(self, lease: Lease, thread: int) -> Visit:
        """Make the visit of a lease."""
        return Visit(self._kit, lease, thread, self._kit.reader)

    def _over(self) -> End | None:
        if self._failure:
            return End.STOPPED
        return self._ending or (self._reached() if self._leads else None)

    def _reached(self) -> End | None:
        return self._kit.job.ceilings.reached(self._fetched(), self.seconds)

    def _fetched(self) -> Fetched:
        mine, others = self._figures, self.elsewhere
        under_way = len(self._visits) + others.under_way
        return Fetched(mine.documents + others.documents, mine.bytes + others.bytes, under_way)

    async def _begin(self) -> int:
        """Lease as many URIs as there are workers without one, and begin their visits."""
        async with self._gate:
            room = min(len(self._threads), self._kit.job.ceilings.room(self._fetched()))
            if not self._leads and self._reached():
                room = 0
            owners = self._kit.books.frontier.owners
            is_alone = owners is not None and owners.is_alone
            may_lease = room and not self.is_paused and not is_alone and self._kit.books.frontier.is_ready
            leases = await self._lease(room) if may_lease else []
            if leases and (audiences := self._kit.job.audiences):
                leases = await self._known(audiences, leases)
            if leases and owners:
                leases = await self._owned(owners, leases)
            for lease in leases:
                thread = self._threads.pop()
                task = asyncio.create_task(self._visit(lease, thread).run())
                self._visits[task] = lease
                task.add_done_callback(partial(self._ended, thread))
        return len(leases)

    async def _known(self, audiences: Audiences, leases: list[Lease]) -> list[Lease]:
        """Those whose audience is known here. The others are given back for a while."""
        unknown = await audiences.unknown(lease.uri for lease in leases)
        if later := [lease for lease in leases if lease.uri.source in unknown]:
            at = clock.steady() + LONGEST_WAIT
            await self._kit.books.frontier.defer([Defer(one.uri.crawl, one.uri.key, at, one) for one in later])
        return [lease for lease in leases if lease.uri.source not in unknown]

    async def _owned(self, owners: HeardOwners, leases: list[Lease]) -> list[Lease]:
        """Those of this crawl's hosts, and of forbidden ones, which their visit refuses. The others are handed over."""
        if any(_is_others(owners, one) for one in leases):
            await owners.refresh()
        if others := [one for one in leases if _is_others(owners, one)]:
            await let_go(self._kit.books.frontier, (), others)
        return [one for one in leases if one not in others]

    async def keeps_to(self, owners: HeardOwners) -> bool:
        """True if no visit is under way of a host that is another's; False when that is not known within a moment."""
        try:
            async with asyncio.timeout(SOON), self._gate:  # nothing is between its lease and its visit
                return not any(_is_others(owners, one) for one in self._visits.values())
        except TimeoutError:
            return False

    async def give_up(self, hosts: Collection[str]) -> list[str]:
        """Hand over what waits of hosts that are not this crawl's any more; return those of which a visit is still
        under way."""
        frontier, after = self._kit.books.frontier, 0
        async with self._gate:  # nothing is between its lease and its visit
            under_way = [lease.uri for lease in self._visits.values()]
        busy = {(uri.crawl, uri.key) for uri in under_way}
        while True:
            page = await frontier.list(after=after, limit=AT_ONCE)
            gone = [uri for uri in page.uris if crawllog.host(uri.uri) in hosts and (uri.crawl, uri.key) not in busy]
            if gone:
                await let_go(frontier, gone)
            after = page.next
            if not after:
                return sorted({crawllog.host(uri.uri) for uri in under_way}.intersection(hosts))

    def _ended(self, thread: int, task: asyncio.Task[None]) -> None:
        self._threads.append(thread)
        if not task.cancelled():
            self._visits.pop(task, None)
            self._failure = self._failure or task.exception()
        self._woken.set()

    async def _rest(self) -> None:
        """Sleep until a visit ends, or the next queue opens."""
        self._kit.books.end_group()
        opens = await self._kit.books.frontier.next_time() if self._threads else None
        pause = LONGEST_WAIT if opens is None else min(max(opens - clock.steady(), 0.0) + TICK, LONGEST_WAIT)
        try:
            async with asyncio.timeout(pause):
                await self._woken.wait()
        except TimeoutError:
            return

    async def settled(self) -> None:
        """Wait until no visit is under way; those that take too long are given back. Begin no visit meanwhile."""
        async with self._gate:
            if self._visits:
                await asyncio.wait(self._visits, timeout=PATIENCE)
            for task in self._visits:
                task.cancel()
            await asyncio.gather(*self._visits, return_exceptions=True)
            given_back = [lease for task, lease in self._visits.items() if task.cancelled()]
            self._visits.clear()
            if given_back and not self._kit.books.stopped:
                waits = [Defer(lease.uri.crawl, lease.uri.key, 0.0, lease) for lease in given_back]
                await self._kit.books.frontier.defer(waits)


def _is_others(owners: HeardOwners, lease: Lease) -> bool:
    """True if the host of a lease is another's, and nobody forbids it."""
    return not (owners.is_ours(lease.uri.uri) or owners.forbids(lease.uri.uri))


async def let_go(frontier: Frontier, uris: Sequence[Uri], leases: Sequence[Lease] = ()) -> None:
    """Hand over URIs that wait, and leases of others: none of them is in the frontier after that."""
    gone = [Uri(one.key, one.uri, "", one.crawl, status=Status.REMOVED, updated=time.time()) for one in uris]
    lines = [journal.handed(uri, left=True) for uri in (*uris, *(lease.uri for lease in leases))]
    for lease in leases:
        frontier.transitions.update(lease.uri, Status.REMOVED)

    def act(changes: Change) -> None:
        changes.finish([Finish(lease) for lease in leases])
        for uri in gone:
            changes.visit(uri, b"")
        frontier.note(lines)

    await frontier.change(act)
