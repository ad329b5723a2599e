"""A trial of a job's pages, for `warcmill job NAME try --crawl`: politely crawled into a folder of its own.

Writes to that folder, beside the files of pages, whose sweep removes it. The crawl is removed once the report is made.
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from commands.console import job_papers
from commands.console.crawl import LOOK, ProgressLine
from commands.console.job_desk import OwnJobs
from commands.console.luigi_cfg import engine_for
from commands.console.show import as_json, err, out
from tasks.line import open_line
from warcmill.base import clock, disk
from warcmill.crawl import trial
from warcmill.crawl.control import control
from warcmill.crawl.engine import WarcmillEngine
from warcmill.crawl.launch import folders
from warcmill.crawl.launch.folders import Places
from warcmill.errors import BadConfig, Busy, Conflict, Unavailable, WarcmillError
from warcmill.markers import job_edits, locks
from warcmill.reports import page_trial
from warcmill.reports.page_trial import ENDS, PageTrial
from warcmill.stores import sentinel
from warcmill.web.handover import files

FEW = 20  # addresses of a rule that are printed


def run(args: argparse.Namespace) -> int:
    """Try some pages of a job by its papers, or by those with some other fields; 1 if none was answered."""
    pages = trial.MOST if args.pages is None else args.pages
    if not 0 < pages <= trial.MOST:
        err(f"warcmill job: --pages takes a number from 1 to {trial.MOST}")
        return 2
    desk, job = OwnJobs(), args.job
    papers = desk.new(job) if args.new else desk.papers(job)
    before = job_edits.opened(papers).files
    wanted = job_papers.read(args.source) if args.source else {}
    after = job_papers.change_of({k: v for k, v in wanted.items() if k not in job_papers.SCHEDULE})(before)
    networks = desk.networks(job)
    job_edits.check(papers, before, after, after, may_all=True, networks=networks)
    state = open_line().state
    folder = files.folder_of(state.store, args.id or f"{clock.stamp()}-{secrets.token_hex(6)}")
    state.store.names(files.FOLDER)  # Unavailable while the state is not mounted: nothing may be written beside it
    with closing(engine_for(job)) as engine, locks.alone(state, f"trial.{job}", f"a trial of {job}"):
        if job in engine.places.owned:
            raise BadConfig(f"job {job}", "its hosts are shared with other clusters, which a trial would ask besides")
        own = engine.places.state(job)
        if folders.holder(own):
            raise Busy(f"the crawl of {job}", "a trial is never beside it: try again when it has ended")
        found = _tried(job, trial.papers(after, job, pages), folder, own, networks)
    if args.json:
        print(as_json(found.json()))
    else:
        _show(found, folder)
    return int(not found.pages)


def _tried(job: str, papers: dict[str, bytes], folder: Path, own: Path, networks: Sequence[str]) -> PageTrial:
    """Crawl, and make the report. `own`: where the job's own crawl has its lock."""
    with _places(folder) as places:
        engine = WarcmillEngine(places, networks)
        engine.configure(job, papers)
        with _watched(engine, job, own) as given_way:
            end = trial.crawl(places, job, networks)
        ended = f"the crawl of {job} began" if given_way.is_set() else ENDS[end]
        return page_trial.finish(places, job, folder, ended)


@contextmanager
def _places(folder: Path) -> Iterator[Places]:
    """The roots of the trial in a folder, which are removed however it ends."""
    roots, places = folder / trial.CRAWL, trial.places(folder)
    try:
        roots.mkdir(parents=True)
    except FileExistsError as error:
        raise Conflict(str(roots), "another trial has this id; leave the id out") from error
    except OSError as error:
        raise Unavailable(str(roots), disk.reason(error, roots)) from error
    try:
        sentinel.adopt({"output": places.output, "jobs": places.jobs})
        yield places
    except OSError as error:
        raise Unavailable(str(roots), disk.reason(error, roots)) from error
    finally:
        shutil.rmtree(roots, ignore_errors=True)


@contextmanager
def _watched(engine: WarcmillEngine, job: str, own: Path) -> Iterator[threading.Event]:
    """Show the progress of the crawl in the block. It ends when the job's own crawl begins, and the event is set."""
    progress, over, given_way = ProgressLine(job), threading.Event(), threading.Event()

    def watch() -> None:
        while not over.wait(LOOK):
            progress.show(engine.state(job))
            with suppress(WarcmillError):  # it does not listen yet; or the disk is away on which the other would crawl
                if not given_way.is_set() and folders.holder(own):
                    control.ask(engine.places.state(job) / folders.CONTROL, "stop")
                    given_way.set()

    thread = threading.Thread(target=watch, name="trial", daemon=True)
    thread.start()
    try:
        yield given_way
    finally:
        over.set()
        thread.join()
        progress.close()


def _show(found: PageTrial, folder: Path) -> None:
    out(f"{found.job}: a trial, of which nothing is archived", *(f"  {line}" for line in found.words))
    out(*(f"  {one.status}  {one.url}{f'  {one.title}' if one.title else ''}" for one in found.pages))
    for one in found.left_out:
        _show_some(f"left out by {one.rule}: {one.number:,}", one.first, one.number)
    if found.robots.number:
        _show_some(f"forbidden by robots.txt: {found.robots.number:,}", found.robots.first, found.robots.number)
    for failed in found.failed:
        out(f"not got: {failed.url}: {failed.why}")
    if found.next.number:
        _show_some(f"next: {found.next.number:,}", found.next.first, found.next.number)
    err(f"its report, and pictures of pages that were rendered: {folder}")


def _show_some(head: str, first: list[str], number: int) -> None:
    more = [f"  and {number - FEW:,} more"] if number > FEW else []
    out(head, *(f"  {address}" for address in first[:FEW]), *more)
