"""Kill a crawl that takes checkpoints, at every write, sync, rename and commit, and look at what can be resumed from.

The crawl is that of `killed_books`, with all logs of a launch, and a checkpoint after every some visits.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from crawls import killed_books
from crawls.killed_books import LAUNCH, MOMENT, Kill

from warcmill.crawl.books.books import open_books
from warcmill.crawl.books.files import Folders
from warcmill.crawl.frontier import Gate, Rate
from warcmill.crawl.frontier.database import open_database
from warcmill.crawl.frontier.sqlite import SqliteFrontier
from warcmill.crawl.launch import checkpoint
from warcmill.crawl.launch import folders as launch_folders
from warcmill.crawl.launch.folders import LaunchFolders
from warcmill.crawl.launch.job_log import JobLog
from warcmill.crawl.logs.logs import SCOPE, Logs
from warcmill.crawl.logs.statistics import Statistics
from warcmill.crawl.policies.decision import Decision, Verdict
from warcmill.crawl.uri import make
from warcmill.errors import BadInput
from warcmill.formats.logs import joblog
from warcmill.launches.view import checkpoints_in
from warcmill.layout import ENGINE_LOGS, RESULTS_LOG, OutputLayout, split_log_name
from warcmill.model import Launch

NOW, CHECKPOINTS, EACH = "20261121081902", 3, 24
THE_LAUNCH = Launch("killed", LAUNCH)


def folders(folder: Path) -> LaunchFolders:
    return launch_folders.of(folder, folder, OutputLayout.JOB_FIRST, THE_LAUNCH)


def new_folder(folder: Path) -> Path:
    made = folders(folder)
    made.make()
    launch_folders.state_of(folder, "killed").mkdir()
    for name in launch_folders.PAPERS:
        (made.own / name).write_text(name)
    # where killed_books looks
    (folder / "warcs").symlink_to(made.warcs)
    (folder / "logs").symlink_to(made.logs)
    (folder / "books.sqlite").symlink_to(database(folder))
    return folder


def database(folder: Path) -> Path:
    return launch_folders.state_of(folder, "killed") / "books.sqlite"


async def crawl(folder: Path) -> None:
    """Crawl until nothing waits, going on from whatever is there."""
    made = folders(folder)
    frontier = SqliteFrontier(database(folder), now=lambda: MOMENT)
    books = await open_books(
        frontier,
        frontier.register,
        LAUNCH,
        Folders(made.warcs, made.logs),
        lambda serial: killed_books.warc_files(folder, serial),
        results=True,
    )
    logs, found = Logs(made.logs, lambda: MOMENT, scope=True), Statistics()
    found.catch_up(made.logs)
    job_log = JobLog(made.job, made.own, THE_LAUNCH, lambda: MOMENT)
    await frontier.set_rate(Gate(""), Rate(at_once=None))
    await frontier.offer([make(killed_books.page(0))])
    await killed_books.fetch_robots(books)
    visits = 0
    while leases := await frontier.lease("holder", 12):
        await asyncio.gather(*(killed_books.visit(books, lease) for lease in leases))
        logs.alert("WARNING", f"{len(leases)} visits")
        logs.judged(0, Decision(Verdict.REJECT, "scope", "far"), make("http://far.example/"))
        visits += len(leases)
        if visits >= EACH:
            visits = 0
            stage = checkpoint.next_stage(made, NOW)
            await checkpoint.take(books, logs, job_log, found, made, THE_LAUNCH, stage, "a row")
    await books.close()
    logs.close()
    job_log.finished()


def points(folder: Path) -> list[str]:
    """The calls of a crawl that nothing disturbs, by name."""
    trace = folder.with_suffix(".trace")
    assert killed_books.run(new_folder(folder), trace=trace, crawl=crawl) == 0
    assert not wrong(folder)
    assert not killed_books.at_the_end(folder)
    return trace.read_text().splitlines()


def survives(folder: Path, kill: Kill) -> list[str]:
    """Kill a crawl, judge its checkpoints, let the next go on, and return what is wrong."""
    killed_books.run(new_folder(folder), kill, crawl=crawl)
    found = wrong(folder)
    if status := killed_books.run(folder, crawl=crawl):
        return [*found, f"the second ended with {status}"]
    return [*found, *wrong(folder), *killed_books.at_the_end(folder), *_without_a_log(folder)]


def wrong(folder: Path) -> list[str]:
    """What is wrong with the checkpoints: one with `valid` that is not whole, one that job.log has and the disk not."""
    made, bad = folders(folder), []
    whole = set()
    for path in made.checkpoints.iterdir():
        try:
            found = checkpoint.read(path, "killed")
        except BadInput as error:
            bad += [f"{path.name} is valid and {error.why}"] if (path / checkpoint.VALID).exists() else []
            continue
        whole.add(found.stage)
        bad += _unusable(folder, found)
    if (made.own / "job.log").exists():
        with (made.own / "job.log").open("rb") as stream:
            bad += [f"job.log has {one}" for one in set(checkpoints_in(joblog.events(stream))) - whole]
    newest = checkpoint.newest(made.checkpoints, THE_LAUNCH).checkpoint
    if (newest.stage if newest else None) != max(whole, default=None):
        bad.append(f"the newest of {whole} is not {newest}")
    return bad


def _unusable(folder: Path, found: checkpoint.Checkpoint) -> list[str]:
    """What is wrong with the database of a checkpoint that claims to be whole."""
    target = folder / "restored.sqlite"
    checkpoint.database(found, target)
    logs = folders(folder).logs
    with sqlite3.connect(target) as db:
        (visits,) = db.execute("SELECT coalesce(sum(parsed + failed), 0) FROM crawls").fetchone()
        leases = db.execute("PRAGMA integrity_check").fetchone()[0]
    target.unlink()
    shutil.rmtree(target, ignore_errors=True)
    names = [path for path in logs.glob("crawl.log.cp*") if split_log_name(path.name)[1] <= str(found.stage)]
    lines = sum(len(path.read_bytes().splitlines()) for path in names)
    bad = [] if leases == "ok" else [f"{found.stage}: {leases}"]
    return bad if visits == lines else [*bad, f"{found.stage}: {visits} visits, {lines} lines up to it"]


def _without_a_log(folder: Path) -> list[str]:
    """Stages that lack one of the nine logs."""
    names = {split_log_name(path.name) for path in folders(folder).logs.iterdir() if path.suffix != ".orphan"}
    stages = {stage for _, stage in names}
    return [
        f"{stage} has no {name}"
        for stage in stages
        for name in (*ENGINE_LOGS, SCOPE, RESULTS_LOG)
        if (name, stage) not in names
    ]


# The restoring, in a child


async def restoring(folder: Path) -> None:
    """Bring the first checkpoint's database back over that of the crawl."""
    made = folders(folder)
    first = min(made.checkpoints.iterdir())
    checkpoint.database(checkpoint.read(first, "killed"), database(folder))


def visits(folder: Path) -> int:
    """How many visits the crawl's database has, when it is opened as the next launch would."""
    with closing(open_database(database(folder))) as db:
        found: int = db.execute("SELECT coalesce(sum(parsed + failed), 0) FROM crawls").fetchone()[0]
    return found
