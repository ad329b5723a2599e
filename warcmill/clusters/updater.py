"""The updater of a cluster: a process beside its crawl that writes its journal into the centre, and gives the orders
that wait there to the crawl. Talks to PostgreSQL and to the crawl; reads the journal.

A centre that is away, or full, is asked again and again: the journal waits on the disk of the cluster. After a kill at
any moment the same command continues from the place that the centre has.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

from warcmill.clusters.centre import Centre
from warcmill.clusters.following import JobJournals
from warcmill.clusters.group import Group
from warcmill.clusters.news import batch_of
from warcmill.clusters.orders import give_orders
from warcmill.crawl.control.calls import RunningJob
from warcmill.errors import Busy, Unavailable

MOST = 10_000  # changes of a transaction
POLL, AGAIN = 0.5, 5.0  # seconds until the journal, and until a centre that is away, is looked at again
NAMED = 20  # refused moves that are named of one transaction

log = logging.getLogger(__name__)


class Updater:
    """The updater of a job of a group, from `run` until `ended` is set. `again`: it begins with all journals."""

    def __init__(self, group: Group, journals: JobJournals, crawl: RunningJob, *, again: bool = False) -> None:
        self._group, self._journals, self._crawl, self._again = group, journals, crawl, again
        self.ended = asyncio.Event()
        self._is_away = False
        self._behind = -1  # as it was noted last
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
                    self._note_back()
                except (Unavailable, Busy) as error:
                    if isinstance(error, Busy) and not self._is_away:
                        raise
                    self._note_away(error)
                    if centre:
                        await centre.close()
                    centre = None
                    await self._wait(AGAIN)
                    continue
                if not is_busy:
                    await self._wait(POLL)
        finally:
            if centre:
                await centre.close()

    async def step(self, centre: Centre) -> bool:
        """Write some news into the centre, and give the orders that wait; False if there was nothing to do."""
        before = await centre.place()
        with closing(self._journals.after(before)) as groups:
            batch = batch_of(groups, MOST)
        behind = self._journals.waiting(batch.place if batch else before)
        if batch:
            refused = await centre.keep(batch, before, behind)
            for one in refused[:NAMED]:
                log.warning("%s: a journal lets it wait, and it is %s: the move is refused", one.uri, one.was)
            if len(refused) > NAMED:
                log.warning("... and %d more moves are refused", len(refused) - NAMED)
        elif behind != self._behind:
            await centre.note_behind(behind)
        self._behind = behind
        given = await give_orders(centre, self._crawl)
        if (sites := self._journals.sites.read()) != self._sites:
            await centre.keep_sites(sites)
            self._sites = sites
        return bool(batch) or given

    async def _opened(self) -> Centre:
        self._behind, self._sites = -1, None  # another centre may be there now
        centre = await Centre.open(self._group.centre, self._group.name, self._journals.name)
        if self._again:
            await centre.begin_again()
            self._again = False
        return centre

    def _note_away(self, error: Unavailable | Busy) -> None:
        if not self._is_away:
            log.warning("%s; the journal waits on the disk", error)
        self._is_away = True

    def _note_back(self) -> None:
        if self._is_away:
            log.warning("the centre of %s answers again", self._group.name)
        self._is_away = False

    async def _wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.ended.wait()
