"""Where a launch keeps its files, in either layout, and what is made there when it begins.

{output}/{warcs,viral,logs,reports}/{job}/{launch}/     kind-first
{output}/{job}/{launch}/{warcs,viral,logs,reports}/     job-first
{jobs}/{job}/                crawl.toml seeds.txt surts.txt exclude.txt job.log latest -> {launch}
{jobs}/{job}/{launch}/       the launch's copies of them, and its own job.log
{jobs}/{job}/checkpoints/    a folder for each checkpoint
{jobs}/{job}/state/          lock, control socket, database, ballast
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from warcmill.base import disk
from warcmill.crawl import durable
from warcmill.crawl.appended import sync_folder
from warcmill.crawl.durable import failed
from warcmill.crawl.job_log import NAME as JOB_LOG
from warcmill.errors import BadConfig, Unavailable
from warcmill.formats import joblog
from warcmill.layout import SENTINEL, OutputLayout, check_sentinel, next_launch_id
from warcmill.model import Launch, Root

PAPERS = ("crawl.toml", "seeds.txt", "surts.txt", "exclude.txt")
"""The files that configure a job; each launch keeps a copy."""

LATEST, CHECKPOINTS, STATE, CONTROL = "latest", "checkpoints", "state", "control.sock"


@dataclass(frozen=True, slots=True)
class LaunchFolders:
    """The folders of one launch. `job` is its job's, `own` is that of its papers and its job.log."""

    job: Path
    own: Path
    warcs: Path
    logs: Path
    reports: Path

    @property
    def checkpoints(self) -> Path:
        """Where the job has its checkpoints, those of all launches."""
        return self.job / CHECKPOINTS

    def make(self) -> None:
        """Make all of them, durable; those that are there are taken."""
        for folder in (self.own, self.warcs, self.logs, self.reports, self.checkpoints):
            durable.make_folder(folder)


def of(output: Path, jobs: Path, layout: OutputLayout, launch: Launch) -> LaunchFolders:
    """Return the folders of a launch, from the roots that the job's section of luigi.cfg names."""
    warcs, logs, reports = (output / layout.folder(kind, launch) for kind in ("warcs", "logs", "reports"))
    return LaunchFolders(jobs / launch.job, jobs / launch.job / launch.id, warcs, logs, reports)


def state_of(jobs: Path, job: str) -> Path:
    """Return the folder of what a job keeps for itself: lock, control socket, database."""
    return jobs / job / STATE


def begin(folders: LaunchFolders) -> None:
    """Make a launch's folders, copy the job's papers into them, and point `latest` at it. Safe to repeat."""
    folders.make()
    for name in PAPERS:
        if (paper := folders.job / name).exists():
            durable.replace(folders.own / name, _read(paper))
    _point(folders.job / LATEST, folders.own.name)


def next_id(job: Path, now: str) -> str:
    """Return the id of the next launch of the job in folder `job`: it is later than all that the job had, whatever the
    clock says."""
    return next_launch_id(now, _known(job))


def require_root(folder: Path, root: Root) -> None:
    """Raise Unavailable or BadConfig unless the file that `warcmill init` wrote marks this folder as the root.

    An unmounted disk is an empty folder without it: nothing must be written there.
    """
    path = folder / SENTINEL
    try:
        data = path.read_bytes()
    except OSError as error:
        todo = ". The crawl writes nothing here; mount the disk, then resume the crawl"
        why = f"{SENTINEL}: {disk.reason(error, path)}{'' if disk.is_refused(error) else todo}"
        raise Unavailable(f"root '{root}' ({folder})", why) from error
    check_sentinel(root, data, str(path))


def local(key: str, place: str) -> Path:
    """Return the folder that a key of luigi.cfg names; BadConfig for a URL: this engine writes to a disk."""
    if "://" in place:
        raise BadConfig(key, f"'{place}' is not a folder; kind=warcmill writes to a disk of this host")
    return Path(place)


def _known(job: Path) -> Iterator[str]:
    """What may be launch ids: names of folders, and what job.log says."""
    try:
        yield from (path.name for path in job.iterdir())
        with (job / JOB_LOG).open("rb") as stream:
            yield from (event.subject for event in joblog.events(stream) if event.word == "PREPARING")
    except FileNotFoundError:
        return
    except OSError as error:
        raise Unavailable(str(job), disk.reason(error, job)) from error


def _point(link: Path, target: str) -> None:
    half = link.with_name(f".{link.name}.tmp")
    try:
        half.unlink(missing_ok=True)
        half.symlink_to(target)
        os.rename(half, link)
    except OSError as error:
        raise failed(link, error) from error
    sync_folder(link.parent)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unavailable(str(path), disk.reason(error, path)) from error
