"""The updater of a cluster: a process beside its crawl that writes its journals into the centre, and gives the orders
that wait there to the crawl, and the group's scope to its job. Talks to PostgreSQL and to the crawl; reads journals.

A centre that is away, or full, is asked again and again: the journal waits on the disk of the cluster. After a kill at
any moment the same command continues from the place that the centre has.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from typing import Any

from warcmill.clusters.centre import Centre
from warcmill.clusters.following import ClusterJournals, JournalPlace
from warcmill.clusters.group import STRANGE, Group
from warcmill.clusters.news import News, NewsBatch, batch_of
from warcmill.clusters.orders import give_orders
from warcmill.clusters.owning import HostAssigner, KeptRules, Moves, hear, tell
from warcmill.clusters.scopes import ScopeKeeper
from warcmill.crawl.control.calls import RunningJob
from warcmill.crawl.fetch.addresses import Resolver
from warcmill.errors import Busy, NotReady, Unavailable, WarcmillError

MOST = 10_000  # changes of a transaction
REACHED = 10.0  # seconds between two notes that the centre was reached
POLL, AGAIN = 0.5, 5.0  # seconds until the journal, and until a centre that is away, is looked at again
NAMED = 20  # refused moves that are named of one transaction

log = logging.getLogger(__name__)


class Updater:
    """The updater of a job of a group, from `run` until `ended` is set. `again`: it begins with all journals.
    `resolver` looks hosts up that it assigns."""

    def __init__(
        self, group: Group, journals: ClusterJournals, crawl: RunningJob, resolver: Resolver | None = None, *,
        again: bool = False,
    ) -> None:  # fmt: skip
        self._group, self._journals, self._crawl, self._again = group, journals, crawl, again
        self.ended = asyncio.Event()
        self._is_away = self._is_good = False
        self._noted: object = None  # of the writers, as the centre has it
        self._faults: dict[str, str] = {}
        self._strangers = ""
        self._scope = ScopeKeeper(journals.folder, journals.name)
        self._owned = group.owned
        self._assigner: HostAssigner | None = None
        self._moves, self._reached, self._warned = Moves(journals.name), 0.0, ""
        if group.owned:
            self._rules = KeptRules(group.owned, group.jobs)
            self._assigner = HostAssigner(self._rules, resolver or Resolver(), journals.name)
        self._sites: dict[str, dict[str, Any]] | None = None  # likewise

    async def run(self, told: Callable[[str], None]) -> None:
        """Update until the end; `told` hears when it begins. Unavailable if the centre does not answer at the begin,
        Busy if another updates this cluster."""
        centre: Centre | None = await self._opened()
        told(f"updates {self._group.name} with what {self._journals.name} crawls")
        try:
            while not self.ended.is_set():
                try:
                    centre = centre or await self._opened()
                    is_busy = await self.step(centre)
                    await self._note_good(centre)
                except (Unavailable, Busy) as error:
                    if isinstance(error, Busy) and not self._is_away:
                        raise
                    self._note_away(error)
                    if centre:
                        await centre.close()
                    centre = None
                    await self._wait(AGAIN)
                    continue
                except WarcmillError as error:
                    if centre:
                        with suppress(Unavailable):  # the end itself is what counts
                            await centre.note_fault(str(error))
                    raise
                if not is_busy:
                    await self._wait(POLL)
        finally:
            if self._assigner:
                self._assigner.close()
            if centre:
                await centre.close()

    async def step(self, centre: Centre) -> bool:
        """Write some news into the centre, and give the orders that wait; False if what is left can wait a moment: few
        news at a time cost more."""
        await self._scope.look(centre.db)
        before, faults = await centre.places(), dict[str, str]()
        there = self._journals.waiting(before, faults)
        with closing(self._journals.after(before, faults)) as groups:
            batch = batch_of(groups, MOST)
        if self._assigner:
            await self._assign(centre, batch)
        if batch:
            refused = await centre.keep(batch, before)
            for one in refused[:NAMED]:
                log.warning("%s: a journal lets it wait, and it is %s: the move is refused", one.uri, one.was)
            if len(refused) > NAMED:
                log.warning("... and %d more moves are refused", len(refused) - NAMED)
        places = {**before, **({name: read.place for name, read in batch.read.items()} if batch else {})}
        behind = await self._note_writers(centre, places, faults)
        since = self._journals.waiting(before, faults)
        is_read = not faults and all(there[name] <= since[name] - left for name, left in behind.items())
        given = await give_orders(centre, self._crawl, lambda: self._tell(centre, is_read=is_read))
        if (sites := self._journals.sites.read()) != self._sites:
            await centre.keep_sites(sites)
            self._sites = sites
        return given or (batch is not None and (batch.has_stage or batch.changes >= MOST))

    async def _note_writers(
        self, centre: Centre, places: Mapping[str, JournalPlace], faults: dict[str, str]
    ) -> dict[str, int]:  # fmt: skip
        """Note how far the journals of each writer are read; those that cannot be; and those of unknown workers. Return
        the bytes that are left of each."""
        behind = self._journals.waiting(places, faults)
        strangers = "; ".join(self._journals.strangers())
        if (noted := (behind, faults, strangers)) == self._noted:
            return behind
        await centre.note(behind, faults, strangers)
        self._noted = noted
        for name, fault in sorted(faults.items()):
            if self._faults.get(name) != fault:
                log.warning("the journals of %s are not read: %s", name, fault)
        for name in sorted(self._faults.keys() - faults.keys()):
            log.warning("the journals of %s are read again", name)
        if strangers and strangers != self._strangers:
            log.warning("%s: %s", strangers, STRANGE)
        self._faults, self._strangers = faults, strangers
        return behind

    async def _assign(self, centre: Centre, batch: NewsBatch | None) -> None:
        """Assign the hosts of news that are new, and keep the addresses of others fresh."""
        assert self._assigner
        await self._rules.current(centre.db, centre.cluster)
        hosts = {host for one in batch.news if isinstance(one, News) for host in one.hosts} if batch else ()
        await self._assigner.assign(centre.db, hosts)
        await self._assigner.refresh(centre.db)

    async def _tell(self, centre: Centre, *, is_read: bool) -> None:
        """Tell the crawl whose hosts are, and move those on that leave or arrive. NotReady while none runs."""
        if self._owned is None:
            return
        try:
            await tell(centre.db, self._crawl, centre.cluster, is_read=is_read)
            if time.monotonic() - self._reached > min(REACHED, self._owned.alone * 900):  # now it knows whose hosts are
                await hear(centre.db, self._crawl, centre.cluster, self._owned.alone)
                self._reached = time.monotonic()
            await self._moves.step(centre.db, self._crawl, is_read=is_read)
        except NotReady as error:
            if self._warned != error.why:
                log.warning("the crawl is not told whose hosts are: %s", error)
            self._warned = error.why
            raise
        self._warned = ""

    async def _opened(self) -> Centre:
        self._noted = self._sites = None  # another centre may be there now
        self._scope = ScopeKeeper(self._journals.folder, self._journals.name)
        names = self._journals.every
        centre = await Centre.open(self._group.centre, self._group.name, self._journals.name, names)
        if self._again:
            await centre.begin_again()
            self._again = False
        return centre

    def _note_away(self, error: Unavailable | Busy) -> None:
        if not self._is_away:
            log.warning("%s; the journal waits on the disk", error)
        self._is_away = True

    async def _note_good(self, centre: Centre) -> None:
        if self._is_away:
            log.warning("the centre of %s answers again", self._group.name)
        self._is_away = False
        if not self._is_good:
            await centre.note_fault("")
        self._is_good = True

    async def _wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.ended.wait()
