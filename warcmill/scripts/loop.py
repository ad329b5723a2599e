"""The loop of a launch that crawls for scripts: it leases for those that may run, each at its rate, and calls them at
their ticks. Reads and writes by the books of the launch.

    RUNNING, DEBUG      a script runs; else what it has waits
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from warcmill.base import clock
from warcmill.crawl.books.books import BookEntry, Kept
from warcmill.crawl.frontier import LEASE_SECONDS, Lease
from warcmill.crawl.job.job import End
from warcmill.crawl.logs.statistics import Figures
from warcmill.crawl.uri import Status
from warcmill.crawl.visit.spider import HOLDER, Spider
from warcmill.crawl.visit.visit import Kit, Visit
from warcmill.errors import BadConfig
from warcmill.formats.warc.writer import RecordPlace
from warcmill.model import Json
from warcmill.scripts import task as tasks
from warcmill.scripts.asking import ScriptAsker
from warcmill.scripts.folder import ScriptFolder
from warcmill.scripts.visit import RESULT, ScriptDesk, ScriptReader, ScriptRun

ResultListener = Callable[[Mapping[str, Json], RecordPlace | None], None]
LOOK = 1.0  # seconds between two looks at the folder
SOON = 60.0  # seconds: a run of scripts from a terminal waits so long for what is tried again


class TokenBucket:
    """The tokens of a script: one a fetch, `rate` more each second, and never more than `burst`."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self._tokens, self._at = burst, 0.0

    def room(self, now: float) -> int:
        """The number of fetches that may begin now."""
        if self.rate <= 0:
            return 0
        self._tokens = min(self.burst, self._tokens + self.rate * max(0.0, now - (self._at or now)))
        self._at = now
        return int(self._tokens)

    def take(self, number: int) -> None:
        """Take tokens."""
        self._tokens -= number

    def full(self, now: float) -> float:
        """When there is a token."""
        lacks = max(0.0, 1 - self._tokens)
        return now + lacks / self.rate if self.rate > 0 else float("inf")


class ScriptLoop(Spider):
    """A `Spider` whose visits go to scripts. `once`: begin them, and end when only ticks wait; `told` hears each run,
    and `kept` each result, once it is durable."""

    def __init__(
        self, kit: Kit, figures: Figures, began: float, folder: ScriptFolder, asker: ScriptAsker, *, once: bool = False,
        told: Callable[[ScriptRun], None] | None = None, kept: ResultListener | None = None,
    ) -> None:  # fmt: skip
        super().__init__(kit, figures, began)
        if kit.books.frontier.is_shared:
            raise BadConfig("scripts", "a job of scripts has a frontier of its own; its engine names one in Redis")
        self._folder, self._asker, self._once = folder, asker, once
        self._told, self._kept = told, kept
        self.desk = ScriptDesk(kit, folder, asker, self._ran)
        self._buckets: dict[str, TokenBucket] = {}
        self._ticked: dict[tuple[str, int], float] = {}
        self._looked = 0.0
        self.waits_until = 0.0  # when the next of those is due that were left
        self._before, kit.books.hear = kit.books.hear, self._heard

    async def run(self, seed_list: Path | None = None) -> End:
        """Crawl until the launch is to end."""
        self._folder.look()
        try:
            if self._once:
                await self.begin([*self._folder.all])
            return await super().run(seed_list)
        finally:
            self._asker.close()

    async def begin(self, names: list[str]) -> None:
        """Have scripts called at their beginning, unless a launch before has left what waits for them."""
        frontier = self._kit.books.frontier
        for name in names:
            if not (await frontier.count(name)).get(Status.SCHEDULED):
                await frontier.offer([tasks.called(name, tasks.ON_START, tasks.ON_START)])
        self.wake()

    async def _lease(self, limit: int) -> list[Lease]:
        now = clock.steady()
        if now >= self._looked + LOOK:
            self._looked = now
            self._folder.look()
            await self._tick(now)
        rooms = {name: room for name in self._running() if (room := self._bucket(name).room(now))}
        if not rooms:
            return []
        leases = await self._kit.books.frontier.lease_each(HOLDER, limit, LEASE_SECONDS, rooms)
        for lease in leases:
            self._bucket(lease.uri.spider).take(1)
        return leases

    def _running(self) -> Iterator[str]:
        """The scripts that may run now."""
        yield from self._folder.all

    def _bucket(self, name: str) -> TokenBucket:
        return self._buckets.setdefault(name, TokenBucket(float(self._kit.job.workers), float(self._kit.job.workers)))

    async def _tick(self, now: float) -> None:
        """Call the methods of scripts that are due; one that was missed, once."""
        due = []
        for name in self._running():
            known = await self.desk.known(name)
            for span in known.about.ticks if known else ():
                last = self._ticked.get((name, span))
                if last is None:
                    last = (
                        now if self._once else await self._last_tick(name, span, known.script.written if known else now)
                    )
                if (tick := now // span * span) > last:
                    due.append(tasks.ticked(name, span, tick))
                self._ticked[name, span] = max(last, tick)
        if due:
            await self._kit.books.frontier.offer(due)

    async def _last_tick(self, name: str, span: int, written: float) -> float:
        """The last tick at which a script was called, in this launch or one before; when it was written, if there was
        none."""
        found = (await self._kit.books.frontier.memory(name)).texts.get(tasks.tick_name(span), "")
        return float(found) if found else written

    def _visit(self, lease: Lease, thread: int) -> Visit:
        if not lease.uri.spider:
            return super()._visit(lease, thread)
        return Visit(self._kit, lease, thread, ScriptReader(self.desk))

    async def _has_nothing_left(self) -> bool:
        if not self._once:
            return await super()._has_nothing_left()
        opens = await self._kit.books.frontier.next_time()
        if await self._kit.books.frontier.is_empty():
            return True
        self.waits_until = opens or 0.0
        return opens is not None and opens > clock.steady() + SOON

    def _ran(self, run: ScriptRun) -> None:
        if self._told:
            self._told(run)

    def _heard(self, entry: BookEntry, kept: Kept) -> None:
        self._before(entry, kept)
        if self._kept:
            place = kept.places[0] if kept.places else None
            for result in entry.results:
                if result.kind == RESULT:
                    self._kept(result.value, place)
