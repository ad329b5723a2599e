"""One open launch of a job: crawl it, take checkpoints of it, end it.

`opening` opens one. Nothing here outlives the launch.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from warcmill.base import clock
from warcmill.crawl import checkpoint, frontier_report, lock, reports, summary
from warcmill.crawl.books import Books
from warcmill.crawl.figures import Figures
from warcmill.crawl.job import Job
from warcmill.crawl.job_log import JobLog, Word
from warcmill.crawl.kit import Kit
from warcmill.crawl.launch_folders import LaunchFolders
from warcmill.crawl.logs import Logs
from warcmill.crawl.places import Places
from warcmill.crawl.progress import Moment
from warcmill.crawl.reporter import Reporter
from warcmill.crawl.spider import Spider
from warcmill.crawl.statistics import Figure
from warcmill.crawl.status import Status
from warcmill.crawl.stop import End
from warcmill.errors import Unavailable
from warcmill.model import Json, Launch, Stage, stamp_time

ROW_SECONDS = 20.0  # between two rows of progress-statistics.log


@dataclass(slots=True)
class Running:
    """A launch with all its files open. `continues`: the checkpoint that it was resumed from."""

    places: Places
    folders: LaunchFolders
    job: Job
    launch: Launch
    books: Books
    logs: Logs
    figures: Figures
    job_log: JobLog
    kit: Kit
    spider: Spider
    reporter: Reporter
    continues: Stage | None = None
    is_closed: bool = False

    async def crawl(self) -> End:
        """Crawl until nothing waits, a ceiling is reached, or the spider is asked to stop."""
        self.job_log.write(Word.PAUSED)  # as Heritrix, which waits there until it is asked to crawl
        self.job_log.write(Word.RUNNING)
        self.logs.event("RUNNING", "Preparing")
        rows = asyncio.create_task(self._report())
        try:
            return await self.spider.run()
        finally:
            rows.cancel()
            await asyncio.gather(rows, return_exceptions=True)

    async def moment(self) -> Moment:
        """The figures of now."""
        counts, now = await self.books.frontier.count(), time.time()
        return Moment(
            at=now,
            seconds=self.spider.seconds,
            discovered=sum(counts.values()),
            queued=counts[Status.SCHEDULED] + counts[Status.DOWNLOADING] + counts[Status.SUSPENDED],
            downloaded=self.figures.succeeded,
            bytes=self.figures.total[Figure.BYTES],
            failures=self.figures.failed,
            busy=self.spider.under_way,
        )

    def watched(self) -> list[Path]:
        """The folders and files that it writes to or holds: without one of these it must not continue."""
        name, own = self.job.name, self.folders
        state = self.places.state(name)
        folders = [own.job, own.own, own.warcs, own.logs, self.places.scratch(name), state]
        return [*folders, state / lock.NAME, self.places.database(name)]

    def summary(self) -> dict[str, Json]:
        """What it has come to."""
        return summary.figures(
            self.figures, self.kit.offers.refused, self.reporter.first_failure, self.reporter.policies_failed
        )  # fmt: skip

    async def checkpoint(self) -> Stage:
        """Let what is under way end, take a checkpoint, and continue."""
        async with self.spider.drained():
            await self.books.settle()
            stage = checkpoint.next_stage(self.folders, clock.stamp(), self.continues)
            row = self.logs.progress(await self.moment())
            await checkpoint.take(
                self.books, self.logs, self.job_log, self.figures, self.folders, self.launch, stage, row,
                self.places.require,
            )  # fmt: skip
        return stage

    async def close(self, end: End) -> None:
        """Close all files, write the reports, and then FINISHED."""
        self.job_log.write(Word.STOPPING)
        if end is End.EMPTY:
            self.job_log.write(Word.EMPTY)
        self.kit.close()
        await self.books.settle()
        self.logs.progress(await self.moment())
        self.logs.event("ENDED", end)
        left, now = await frontier_report.waiting(self.books.frontier), time.time()
        self.is_closed = True
        await self.books.close()
        self.logs.close()
        ending = reports.Ending(self.job.name, now, self.spider.seconds, end, "FINISHED", self.figures, left)
        reports.write(self.folders.reports, ending)
        summary.write(self.folders.own, end, self.summary())
        self.job_log.finished()

    async def abandon(self) -> None:
        """Let go of all files after an error of a disk; the next start puts the launch in order."""
        self.kit.close()
        if not self.is_closed:
            await self.books.close()

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(ROW_SECONDS)
            try:
                self.logs.progress(await self.moment())
            except Unavailable as error:
                with suppress(Unavailable):  # its disk may be the same; the spider says why the books have stopped
                    self.logs.alert("SEVERE", f"no more rows of progress: {error}")
                return


def began(launch: Launch) -> float:
    """When a launch began, by its id."""
    return stamp_time(launch.id).timestamp()
