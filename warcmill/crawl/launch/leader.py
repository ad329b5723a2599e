"""The leader of a launch that has workers: the job's own process. It publishes the launch, and gives them orders.

A checkpoint waits for a silent worker for `checkpoint_wait` seconds at most: alerts.log names it, its leases are given
back, and its slice belongs to the next stage. The end of the launch waits for all who have files of it open, until they
have closed them, or `warcmill job JOB retire` has declared them dead.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple

from warcmill.crawl import durable
from warcmill.crawl.control.owners import ToldOwners
from warcmill.crawl.frontier.crew import WRITER, Crew, Order, RetiredWorker, WorkerSigns
from warcmill.crawl.job.job import Job
from warcmill.crawl.launch.folders import PAPERS, LaunchFolders
from warcmill.crawl.logs.statistics import Figure, Figures, Statistics
from warcmill.errors import Unavailable
from warcmill.formats.logs import retired as retired_report
from warcmill.formats.seeds import SEED_LIST
from warcmill.model import Json, Launch

POLL = 0.1  # seconds
WATCH_SECONDS = 1.0  # between two looks at the workers
SILENT = 5.0  # seconds: a sign of life comes every second
NETWORKS = "allow_private"
OWNED = "owned"
"""The file that is there when hosts have owners."""


class Share(NamedTuple):
    """The figures of one process of a launch: documents and their bytes; URIs under way, answered and failed; the bytes
    of all; its summary, as `reports.figures` has it; and its answers for requests, by spider and status."""

    launch: str
    documents: int = 0
    size: int = 0
    under_way: int = 0
    succeeded: int = 0
    failed: int = 0
    bytes: int = 0
    summary: Mapping[str, Json] = MappingProxyType({})
    served: Mapping[str, Mapping[str, int]] = MappingProxyType({})

    @classmethod
    def of(
        cls, launch: str, found: Figures, summary: Mapping[str, Json], under_way: int = 0,
        served: Mapping[str, Mapping[str, int]] | None = None,
    ) -> Share:  # fmt: skip
        """The figures of this process."""
        total = found.total[Figure.BYTES]
        return cls(
            launch, found.documents, found.bytes, under_way, found.succeeded, found.failed, total, summary, served or {}
        )

    @classmethod
    def read(cls, about: Mapping[str, Any]) -> Share:
        """The figures that a worker gives."""
        return cls(**{name: about[name] for name in cls._fields if name in about})


class Leader:
    """Leads the workers of a launch. `alert` hears of those that are silent, and that were retired. `owners` tells them
    whose hosts are, where these have owners."""

    def __init__(
        self, crew: Crew, launch: Launch, files: Mapping[str, bytes], wait: float, alert: Callable[[str], None],
        owners: ToldOwners | None = None,
    ) -> None:  # fmt: skip
        self._crew, self._launch, self._files, self._wait, self._alert = crew, launch, files, wait, alert
        self.owners = owners
        self._order: tuple[Order, str] = (Order.CONTINUE, "")
        self._number = 0
        self._is_paused = False
        self._known: dict[str, WorkerSigns] = {}
        self._missing: set[str] = set()
        self.retired: dict[str, RetiredWorker] = {}
        self.shares: dict[str, Share] = {}

    async def begin(self) -> None:
        """Publish the launch: workers join it."""
        if self.owners:
            await self.owners.tell(anew=True)
        await self._crew.publish(self._launch.id, self._papers(), is_new=True)

    async def renew(self, files: Mapping[str, bytes] | None = None) -> None:
        """Publish it once more, edited perhaps: a Redis that was emptied has lost it."""
        self._files = self._files if files is None else files
        with suppress(Unavailable):
            await self._crew.publish(self._launch.id, self._papers(), is_new=False)
            for dead in self.retired.values():
                await self._crew.bury(dead)
            await self._crew.pause(self._is_paused)

    def _papers(self) -> Mapping[str, bytes]:
        return {**self._files, **({OWNED: b""} if self.owners else {})}

    async def watch(self, own: Callable[[], Share], hear: Callable[[Iterable[Share]], None]) -> None:
        """Look after the workers until it is cancelled. `own` gives the figures of this process, and `hear` gets those
        of the others, who get all."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if self.owners:
                await self.owners.tell()
            with suppress(Unavailable):
                await self._look()
                hear(self.shares.values())
                counts = {name: one[1:4] for name, one in {"": own(), **self.shares}.items()}
                await self._crew.share(json.dumps(counts, sort_keys=True))

    async def pause(self, is_paused: bool) -> None:
        """Let nobody lease anything; or let all again."""
        self._is_paused = is_paused
        await self._crew.pause(is_paused)

    async def idle(self) -> None:
        """Wait until nothing is leased; not longer than for who is silent."""
        deadline = time.monotonic() + self._wait
        while time.monotonic() < deadline:
            _, workers = await self._crew.workers()
            if not any(one.leases for one in workers):
                return
            await asyncio.sleep(POLL)

    async def order(self, kind: Order, stage: str = "") -> None:
        """Give an order, and go on at once."""
        self._order = kind, stage
        with suppress(Unavailable):  # who is not reached is named by `done`
            self._number = await self._crew.order(self._launch.id, kind, stage)

    async def done(self) -> None:
        """Wait until all have done the order; for a checkpoint, or those who are silent, not for ever."""
        kind = self._order[0]
        began, named = time.monotonic(), set[str]()
        while True:
            try:
                late = await self._late(kind)
            except Unavailable as error:
                late = [one for one in self._known.values() if one.is_open]
                if kind is not Order.END:
                    self._alert(f"{error}. Workers were not waited for: what they have belongs to the next stage")
                    return
            has_waited = time.monotonic() - began >= self._wait
            for one in late if has_waited or all(each.age >= self._wait for each in late) else ():
                if one.name not in named:
                    named.add(one.name)
                    self._name(one, kind)
            if not late or (kind is not Order.END and named.issuperset(one.name for one in late)):
                return
            await asyncio.sleep(POLL)

    async def statistics(self, own: Statistics) -> Statistics:
        """Return the figures of all processes of the launch."""
        total = Statistics.load(own.dump(), "the figures of the leader")
        try:
            for data in await self._crew.statistics():
                total.merge(Statistics.load(data, "the figures of a worker"))
        except Unavailable as error:
            self._alert(f"{error}. The reports lack what workers have crawled")
        return total

    async def committed(self) -> list[Json]:
        """Return each worker: its name, its host, the name of its register, and the last group of its journal that no
        kill cuts off. Unavailable while Redis is."""
        _, workers = await self._crew.workers()
        alive = [one for one in workers if one.name not in self.retired]
        return [[one.name, one.about.get("host", ""), one.token[:WRITER], one.about.get("group", 0)] for one in alive]

    async def have_heard(self) -> bool:
        """True if all workers that may crawl have heard whose hosts are, and visit none that is another's. A silent one
        has not, until it is back, or retired."""
        if self.owners is None:
            return True
        try:
            _, workers = await self._crew.workers()
        except Unavailable:
            return False
        if not (mark := self.owners.mark):
            return False
        signs = {**self._known, **{one.name: one for one in workers}}
        heard = {one.name for one in workers if one.about.get("owners") == mark}
        return all(name in heard for name, one in signs.items() if one.is_open and name not in self.retired)

    def close(self) -> None:
        """Close the links to Redis."""
        self._crew.close()
        if self.owners:
            self.owners.close()

    async def _late(self, kind: Order) -> list[WorkerSigns]:
        """The workers that have not done the order yet."""
        number = await self._look()
        if number != self._number:  # a Redis that was emptied has lost it
            await self.renew()
            self._number = await self._crew.order(self._launch.id, *self._order)
        ours = [one for one in self._known.values() if one.is_open and one.name not in self.retired]
        return ours if kind is Order.END else [one for one in ours if one.done != self._number]

    async def _look(self) -> int:
        """See who lives, and who is missing or dead; return the number of the newest order."""
        number, workers = await self._crew.workers()
        await self._bury()
        ours = {one.name: one for one in workers if one.launch in (self._launch.id, "-")}
        for one in [one for name, one in self._known.items() if name not in ours and one.is_open]:
            await self._crew.remember(one)
        self._known |= ours
        told = {one.name: Share.read(one.about) for one in workers if one.about.get("launch") == self._launch.id}
        self.shares |= told
        missing = {name: one for name, one in ours.items() if one.is_open and one.age >= self._wait}
        for name, one in missing.items():
            if name not in self._missing and name not in self.retired:
                await self._crew.release(one.token)
                self._alert(
                    f"worker {name} on {one.about.get('host', '')} is missing: no sign of life for {one.age:.0f} s;"
                    f" {one.leases} URIs that it had are fetched by others"
                )
        for name in self._missing - missing.keys() - self.retired.keys():
            self._alert(f"worker {name} is back")
        self._missing = set(missing)
        return number

    async def _bury(self) -> None:
        for dead in await self._crew.retired():
            if dead.name not in self.retired:
                self.retired[dead.name] = dead
                if dead.launch == self._launch.id:
                    self._alert(f"worker {dead.name} on {dead.host} was retired ({dead.reason}): {lost(dead)}")

    def _name(self, one: WorkerSigns, kind: Order) -> None:
        what = f"worker {one.name} on {one.about.get('host', '')}"
        what += f" is silent, for {one.age:.0f} s" if one.age > SILENT else f" is not done after {self._wait:.0f} s"
        if kind is Order.END:
            retire = f"warcmill job {self._launch.job} retire {one.name} --reason TEXT"
            self._alert(f"{what}: the launch ends when it has closed its files; if it is dead, '{retire}'")
        else:
            self._alert(f"{what}: what it has belongs to the next stage")


def lost(dead: RetiredWorker) -> str:
    """The words for all that a dead worker has taken along."""
    return f"{dead.visits:,} visits since its last stage have no file"


def write_retired(folders: LaunchFolders, retired: Mapping[str, RetiredWorker]) -> None:
    """Keep who was declared dead with files of the launch open, among its reports."""
    rows = [one for _, one in sorted(retired.items()) if one.launch == folders.own.name]
    if rows:
        report = retired_report.write((one.visits, one.name, one.host, one.at, one.reason) for one in rows)
        durable.replace(folders.reports / retired_report.RETIRED, report)


def files_of(papers: Mapping[str, bytes], job: Job) -> dict[str, bytes]:
    """Return what a worker needs of a launch: its papers, and the networks that it may connect to. Of seeds.jsonl only
    the name counts."""
    known = {name: data for name, data in papers.items() if name in PAPERS}
    listed = {SEED_LIST: b""} if SEED_LIST in papers else {}
    return {**known, **listed, NETWORKS: json.dumps(job.allow_private).encode()}


def papers_of(folders: LaunchFolders) -> dict[str, bytes]:
    """Return the papers that a launch began with."""
    names = (*PAPERS, SEED_LIST)
    return {n: b"" if n == SEED_LIST else (folders.own / n).read_bytes() for n in names if (folders.own / n).exists()}
