"""A launch as the built-in crawler leaves it: real books, logs, checkpoint and reports; only the network is made up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from crawls import killed_books

from warcmill.crawl.books.books import BookEntry, Books, open_books
from warcmill.crawl.books.files import Folders
from warcmill.crawl.frontier import Gate, Lease, Rate
from warcmill.crawl.frontier.sqlite import SqliteFrontier
from warcmill.crawl.launch import checkpoint, reports
from warcmill.crawl.launch import folders as launch_folders
from warcmill.crawl.launch.job_log import JobLog, Word
from warcmill.crawl.launch.reports import Ending, Processor
from warcmill.crawl.logs.logs import Logs
from warcmill.crawl.logs.progress import Moment
from warcmill.crawl.logs.statistics import Statistics
from warcmill.crawl.policies.decision import Decision, Verdict
from warcmill.crawl.uri import Status, Uri, make
from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawllog import CrawlRecord
from warcmill.formats.warc.writer import WarcFiles, Writer
from warcmill.layout import OutputLayout
from warcmill.model import Launch, Stage

PAGES, FIRST = 40, 20  # pages in all, and those before the checkpoint


def write(output: Path, jobs: Path, layout: OutputLayout, launch: Launch) -> Stage:
    """Write a launch that has ended, with one checkpoint; return that one's stage."""
    return asyncio.run(_crawl(output, jobs, layout, launch))


async def _crawl(output: Path, jobs: Path, layout: OutputLayout, launch: Launch) -> Stage:
    _configure(jobs / launch.job)
    folders = launch_folders.of(output, jobs, layout, launch)
    launch_folders.begin(folders)
    launch_folders.require_root(output, "output")
    state = launch_folders.state_of(jobs, launch.job)
    state.mkdir()
    job_log = JobLog(folders.job, folders.own, launch)
    job_log.launched()
    frontier = SqliteFrontier(state / "books.sqlite")
    books = await open_books(
        frontier, frontier.register, launch.id, Folders(folders.warcs, folders.logs), _warcs_in(folders.warcs),
        results=True,
    )  # fmt: skip
    await frontier.set_rate(Gate(""), Rate(at_once=None))
    logs, found = Logs(folders.logs, scope=True), Statistics([killed_books.page(0)])
    job_log.write(Word.PAUSED)
    job_log.write(Word.RUNNING)
    await frontier.offer([make(killed_books.page(0))])
    await _visit_all(books, logs, found, FIRST)
    stage = checkpoint.next_stage(folders, _later(launch, 60))
    row = logs.progress(_moment(found))
    await checkpoint.take(books, logs, job_log, found, folders, launch, stage, row)
    await _visit_all(books, logs, found, PAGES)
    job_log.write(Word.STOPPING)
    job_log.write(Word.EMPTY)
    logs.event("ENDED", "Finished")
    waiting = await frontier.waiting(reports.MOST_QUEUES)
    await books.close()
    logs.close()
    chains = {"FetchChain": [Processor("warcmill.crawl.fetch.http")]}
    ending = Ending(launch.job, time.time(), 60.0, "Finished", "EMPTY", found, waiting, chains)
    reports.write(folders.reports, ending)
    job_log.finished()
    return stage


def _configure(job: Path) -> None:
    """The papers that a feed makes of a job."""
    job.mkdir(parents=True)
    for name, text in (("crawl.toml", "[crawl]\n"), ("seeds.txt", "http://h0.example/page/0\n"), ("surts.txt", "")):
        (job / name).write_text(text)


def _warcs_in(folder: Path) -> Callable[[int], WarcFiles]:
    return lambda serial: WarcFiles(folder, Writer("WM", 4711, "crawler01"), (("software", "Warcmill"),), serial)


async def _visit_all(books: Books, logs: Logs, found: Statistics, until: int) -> None:
    while found.processed < until and (leases := await books.frontier.lease("holder", 10)):
        await asyncio.gather(*(_visit(books, logs, found, lease) for lease in leases))


async def _visit(books: Books, logs: Logs, found: Statistics, lease: Lease) -> None:
    uri, number = lease.uri, int(lease.uri.uri.rpartition("/")[2])
    fails = number % 11 == 5
    books.frontier.transitions.update(uri, Status.DOWNLOADING)
    books.frontier.transitions.update(uri, Status.FAILED if fails else Status.PARSED, http_status=-2 if fails else 200)
    line = _line(uri)
    links = [make(killed_books.page(one), via=uri.uri, hops=f"{uri.hops}L", source=killed_books.page(0))
             for one in killed_books.links(number) if one < PAGES]  # fmt: skip
    kept = await books.keep(BookEntry(uri, lease, killed_books.made(uri.uri) if not fails else (), line, b"", links))
    assert kept.held
    found.add(line)
    if fails:
        logs.nonfatal(line, "ConnectionRefusedError: Connect call failed")
        logs.no_uri(uri.uri, "http://[bad/", "not a URI with scheme and host")
        logs.judged(0, Decision(Verdict.REJECT, "scope", "of no site of the crawl"), make("http://far.example/"))


def _line(uri: Uri) -> CrawlRecord:
    now = time.time()
    line = CrawlRecord(crawllog.moment(now), uri.http_status, None, uri.uri, uri.hops or None, uri.via or None,
                       "unknown", "#001", None, None, uri.source or None, ())  # fmt: skip
    if uri.http_status < 0:
        return line
    begun, digest = crawllog.begun(now, now), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
    return line._replace(size=200, mime="text/html", content_size=240, fetched=begun, digest=digest)


def _moment(found: Statistics) -> Moment:
    return Moment(time.time(), 60.0, PAGES, PAGES - found.processed, found.succeeded, found.total[1], found.failed)


def _later(launch: Launch, seconds: int) -> str:
    return f"{int(launch.id) + seconds // 60 * 100}"
