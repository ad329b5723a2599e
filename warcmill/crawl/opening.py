"""Open all that a launch writes: folders, books, WARCs, logs.

    open_launch(places, job, launch)                    a new one, that begins afresh
    open_launch(..., resume=checkpoint)                 a new one, that continues a checkpoint
    open_launch(..., follows=launch_id)                 a new one, with what waited in the job's newest launch
    open_launch(...) of a launch that was killed        it is put in order, and continues

PREPARING is in job.log before anything else, so a launch that is killed while it is opened is known.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from functools import partial

from warcmill import __version__
from warcmill.crawl import continues, launch_folders, restore
from warcmill.crawl.books import Begins, Books, open_books
from warcmill.crawl.checkpoint import STATISTICS
from warcmill.crawl.durable import make_folder
from warcmill.crawl.figures import Figures
from warcmill.crawl.frontier import Gate, Rate
from warcmill.crawl.frontier_sqlite import SqliteFrontier
from warcmill.crawl.job import Job
from warcmill.crawl.job_log import NAME as JOB_LOG
from warcmill.crawl.job_log import JobLog
from warcmill.crawl.kit import make_kit
from warcmill.crawl.launch import Running, began
from warcmill.crawl.logs import Logs
from warcmill.crawl.places import Places
from warcmill.crawl.recovery import Folders
from warcmill.crawl.reporter import Reporter
from warcmill.crawl.restore import Checkpoint
from warcmill.crawl.spider import Spider
from warcmill.crawl.uri import canonical
from warcmill.errors import BadInput
from warcmill.formats.warc.writer import WarcFiles, Writer
from warcmill.model import Launch


async def open_launch(
    places: Places, job: Job, launch: Launch, resume: Checkpoint | None = None, follows: str = ""
) -> Running:
    """Open a launch, and offer its seeds. Unavailable when a disk is not there: nothing was written then."""
    places.require()
    folders = places.folders(launch)
    job_log = JobLog(folders.job, folders.own, launch)
    make_folder(places.state(job.name))
    make_folder(places.scratch(job.name))
    if not (folders.own / JOB_LOG).exists():
        launch_folders.begin(folders)
        continues.write(folders.own, resume)
        continues.write_followed(folders.own, follows)
        job_log.launched()
        if resume:
            restore.database(resume, places.database(job.name))
            for what in restore.damaged(folders.checkpoints, resume):
                job_log.warn(_passed_over(what))
    frontier = SqliteFrontier(places.database(job.name))
    try:
        books = await open_books(
            frontier, launch.id, Folders(folders.warcs, folders.logs), partial(_warcs, places, job, launch),
            Begins.CONTINUES if resume else Begins.FOLLOWS if follows else Begins.FRESH,
        )  # fmt: skip
    except BaseException:
        await frontier.close()
        raise
    await books.frontier.set_rate(Gate(""), Rate(at_once=job.workers) if job.is_hurried else None)
    running = _opened(places, job, launch, books, job_log, resume)
    seeds = running.kit.offers.seeds(job.seeds)
    running.kit.offers.taken(seeds, await books.frontier.offer(seeds))
    return running


def _opened(
    places: Places, job: Job, launch: Launch, books: Books, job_log: JobLog, resume: Checkpoint | None
) -> Running:
    folders = places.folders(launch)
    logs, figures = Logs(folders.logs, scope=job.scope_log), _figures(job, resume)
    for what in figures.catch_up(folders.logs):
        logs.alert("SEVERE", what)
    for what in restore.damaged(folders.checkpoints, resume) if resume else ():
        logs.alert("WARNING", _passed_over(what))
    for what in books.mended:
        logs.alert("WARNING", f"launch {launch.id} was killed: {what}")
    reporter = Reporter(figures, logs)
    if books.set_back:
        logs.alert("WARNING", f"the clock was set back by {books.set_back:,.0f} s; what waits for a while was moved")
    kit = make_kit(job, books, reporter, places.scratch(job.name))
    books.hear = partial(reporter.kept, kit.offers)
    spider = Spider(kit, figures, began(launch))
    stage = resume.stage if resume else None
    return Running(places, folders, job, launch, books, logs, figures, job_log, kit, spider, reporter, stage)


def _passed_over(what: str) -> str:
    return f"checkpoint {what}. It is passed over; what was fetched since the one that is resumed is fetched again"


def _figures(job: Job, resume: Checkpoint | None) -> Figures:
    """The figures up to a checkpoint; none yet for a launch that begins afresh."""
    if resume is None:
        return Figures(_canonical(job.seeds))
    path = resume.folder / STATISTICS
    return Figures.load(path.read_bytes(), str(path))


def _warcs(places: Places, job: Job, launch: Launch, serial: int) -> WarcFiles:
    host = socket.gethostname()
    fields = (
        ("software", f"Warcmill/{__version__}"),
        ("hostname", host),
        ("isPartOf", job.name),
        ("robots", "obey" if job.robots else "ignore"),
        ("http-header-user-agent", job.user_agent),
        *((("operator", job.contact),) if job.contact else ()),
    )
    writer = Writer(job.name, os.getpid(), host)
    return WarcFiles(places.folders(launch).warcs, writer, fields, serial, job.warc_size, places.require)


def _canonical(seeds: Iterable[str]) -> list[str]:
    found = []
    for text in seeds:
        try:
            found.append(canonical(text))
        except BadInput:  # it is named in uri-errors.log
            continue
    return found
