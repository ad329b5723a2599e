"""Repair of a launch whose process died: cut its files to its books, take a checkpoint, write FINISHED.

Resumed from there, it fetches nothing twice. Safe to repeat: a kill in the middle leaves the launch to the next one.
"""

from __future__ import annotations

import logging

from warcmill.crawl.books.files import Folders
from warcmill.crawl.job import file
from warcmill.crawl.job.job import End
from warcmill.crawl.job.values import CONFIGURATION
from warcmill.crawl.launch import checkpoint, job_log
from warcmill.crawl.launch.checkpoint import DATABASE, Checkpoint
from warcmill.crawl.launch.database import has_books, rebuild, refuse_lost
from warcmill.crawl.launch.folders import Places
from warcmill.crawl.launch.job_log import JobLog
from warcmill.crawl.launch.launch import Running, open_launch
from warcmill.errors import BadInput, Mismatch, NotReady
from warcmill.model import Launch

log = logging.getLogger(__name__)


async def put_in_order(places: Places, name: str) -> Launch | None:
    """End the job's newest launch, if it has not ended; return it. The job's lock must be held."""
    last = job_log.last(places.job(name))
    if last is None or last.ended:
        return None
    places.require()
    launch = Launch.parse(name, last.launch)
    folders = places.folders(launch)
    if not has_books(places.database(name), launch, folders.logs):  # it died before it had any books
        JobLog(folders.job, folders.own, launch).finished()
        return launch
    folders.make()  # one that is lost has lost its files: they are named then, not it
    running = await _opened(places, launch)
    if not last.empty:
        await running.checkpoint(workers_continue=False)
    await running.close(End.EMPTY if last.empty else End.STOPPED)
    return launch


async def _opened(places: Places, launch: Launch) -> Running:
    """Open it by the papers that it began with, or by the job's when those were removed; a damaged database is
    rebuilt."""
    folders = places.folders(launch)
    papers = folders.own if (folders.own / CONFIGURATION).exists() else folders.job
    job = file.described(file.files_in(papers), launch.job)  # it asks for nothing more: its browser may be missing
    resume = _resumed(places, launch)
    try:
        refuse_lost(places.database(launch.job), folders.logs)
        return await open_launch(places, job, launch, resume)
    except Mismatch as error:
        why = f"{error}. Put the file back; or, if it is lost, move {places.database(launch.job)} away"
        raise NotReady(str(launch), f"{why}: what it held is fetched again") from error
    except BadInput as error:
        if error.path != str(places.database(launch.job)):
            raise
        found = checkpoint.newest(folders.checkpoints, launch)
        base = found.checkpoint or resume or _followed(places, launch)
        await rebuild(
            places.database(launch.job), launch.id, Folders(folders.warcs, folders.logs),
            base.folder / DATABASE if base else None, str(base.stage) if base and base.launch == launch else "",
            places.frontier is not None,
        )  # fmt: skip
        running = await open_launch(places, job, launch, resume)
        running.logs.alert("SEVERE", f"{error}; it was made again from the journal and the logs")
        for what in found.passed_over:
            running.job_log.warn(f"checkpoint {what}. It is passed over")
            running.logs.alert("WARNING", f"checkpoint {what}. It is passed over")
        return running


def _resumed(places: Places, launch: Launch) -> Checkpoint | None:
    """The checkpoint that a launch continues, if any; None also for one that cannot be read."""
    folders = places.folders(launch)
    try:
        name = checkpoint.continued_from(folders.own)
        return checkpoint.named(folders.checkpoints, launch.job, name) if name else None
    except (BadInput, NotReady) as error:
        log.warning("%s; the reports of launch %s leave out what was crawled before it continued", error, launch)
        return None


def _followed(places: Places, launch: Launch) -> Checkpoint | None:
    """The last checkpoint of the launch that this one follows, if any."""
    folders = places.folders(launch)
    followed = checkpoint.followed(folders.own)
    return checkpoint.newest(folders.checkpoints, Launch(launch.job, followed)).checkpoint if followed else None
