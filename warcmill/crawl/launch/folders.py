"""The folders of a job and of a launch, in either layout; they are made here, and the job's lock is held here.

{output}/{warcs,viral,logs,reports}/{job}/{launch}/     kind-first
{output}/{job}/{launch}/{warcs,viral,logs,reports}/     job-first
{jobs}/{job}/                crawl.toml seeds.txt seeds.jsonl surts.txt exclude.txt job.log latest -> {launch}
{jobs}/{job}/{launch}/       the launch's copies of them, and its own job.log
{jobs}/{job}/checkpoints/    a folder for each checkpoint
{jobs}/{job}/state/          lock, control socket, database, ballast, callback, callback.cause

`Places` has the roots, folders of this host. `held` holds `state/lock` while a process crawls the job: its pid alone
would prove nothing.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from warcmill.base import disk
from warcmill.crawl import durable
from warcmill.crawl.durable import failed, make_folder, sync_folder
from warcmill.crawl.frontier.link import RedisPlace
from warcmill.crawl.launch.job_log import NAME as JOB_LOG
from warcmill.errors import BadConfig, Busy, Unavailable
from warcmill.formats.logs import joblog
from warcmill.formats.seeds import SEED_LIST
from warcmill.layout import SENTINEL, OutputLayout, check_sentinel, next_launch_id
from warcmill.model import Launch, Root

PAPERS = ("crawl.toml", "seeds.txt", "surts.txt", "exclude.txt")
"""The files that configure a job; each launch keeps a copy."""

EDITION = "edition.json"
"""The file that names the edition of the papers; a launch keeps a copy."""

RETRY = "retry.jsonl"
"""The URIs that the next launch asks for again, if it follows one; it takes the file with it."""

LATEST, CHECKPOINTS, STATE, CONTROL = "latest", "checkpoints", "state", "control.sock"


class LaunchFolders(Struct, frozen=True):
    """The folders of one launch. `job` is its job's; `own` has its papers and its job.log."""

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
    """Return the folder that a job keeps for itself: lock, control socket, database."""
    return jobs / job / STATE


def begin(folders: LaunchFolders, *, retries: bool = False) -> None:
    """Make a launch's folders, copy the job's papers into them, and point `latest` at it. Safe to repeat.

    `retries`: take the list of what is to be asked for again, too; to another launch it is of no use any more.
    """
    folders.make()
    if (asked := folders.job / RETRY).exists():
        if retries:
            durable.copy(asked, folders.own / RETRY)
        asked.unlink()
    for name in (*PAPERS, EDITION):
        if (paper := folders.job / name).exists():
            durable.replace(folders.own / name, _read(paper))
    if (listed := folders.job / SEED_LIST).exists():
        durable.copy(listed, folders.own / SEED_LIST)
    _point(folders.job / LATEST, folders.own.name)


def next_id(job: Path, now: str) -> str:
    """Return the id of the next launch of the job in folder `job`: it is later than all that the job had, whatever the
    clock shows."""
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
    """The words that may be launch ids: names of folders, and those in job.log."""
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


NAME = "lock"
PATIENCE, POLL = 2.0, 0.05  # seconds: who only looks holds it for a moment


class Holder(NamedTuple):
    """Who crawls a job; '' and 0 before it has a launch."""

    launch: str
    pid: int


class Lock:
    """A lock that is held."""

    def __init__(self, file: int, path: Path) -> None:
        self._file, self._path = file, path

    def name(self, launch: Launch) -> None:
        """Write which launch is crawled."""
        text = json.dumps({"launch": launch.id, "pid": os.getpid()}).encode()
        try:
            os.pwrite(self._file, text + b"\n", 0)
            os.ftruncate(self._file, len(text) + 1)
        except OSError as error:
            raise failed(self._path, error) from error


@contextmanager
def held(state: Path) -> Iterator[Lock]:
    """Hold a job's lock. Busy, naming the launch, when another process crawls it."""
    make_folder(state)
    path, deadline = state / NAME, time.monotonic() + PATIENCE
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise failed(path, error) from error
    try:
        while not _locked(file, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                found = _read_holder(path)
                raise Busy(f"the crawl of {state.parent.name}, launch {found.launch or 'not begun'}, pid {found.pid},")
            time.sleep(POLL)
        os.ftruncate(file, 0)
        yield Lock(file, path)
    finally:
        os.close(file)


def holder(state: Path) -> Holder | None:
    """Who crawls a job; None when nobody does."""
    try:
        file = os.open(state / NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise failed(state / NAME, error) from error
    try:
        return None if _locked(file, fcntl.LOCK_SH) else _read_holder(state / NAME)
    finally:
        os.close(file)


def _locked(file: int, how: int) -> bool:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read_holder(path: Path) -> Holder:
    try:
        found = json.loads(path.read_bytes() or b"{}")
        return Holder(str(found.get("launch", "")), int(found.get("pid", 0)))
    except (OSError, ValueError, TypeError, AttributeError):  # it is being written
        return Holder("", 0)


DATABASE, SCRATCH = "books.sqlite", "scratch"
OWNED = "owned"  # the word for a process whose job is


class Places(Struct, frozen=True):
    """The roots `output` and `jobs`, and how the first is laid out; `frontier` is the Redis that has it, None for the
    database of each job. `owned`: the jobs that share hosts with others, each host with one owner."""

    output: Path
    jobs: Path
    layout: OutputLayout = OutputLayout.KIND_FIRST
    frontier: RedisPlace | None = None
    owned: frozenset[str] = frozenset()

    @property
    def roots(self) -> tuple[Path, Path]:
        """Both folders."""
        return self.output, self.jobs

    def folders(self, launch: Launch) -> LaunchFolders:
        """The folders of a launch."""
        return of(self.output, self.jobs, self.layout, launch)

    def job(self, name: str) -> Path:
        """The folder of a job."""
        return self.jobs / name

    def state(self, name: str) -> Path:
        """The folder that a job keeps for itself."""
        return state_of(self.jobs, name)

    def database(self, name: str) -> Path:
        """The database of a job's books."""
        return self.state(name) / DATABASE

    def scratch(self, name: str) -> Path:
        """The folder of answers that are too long for memory."""
        return self.job(name) / SCRATCH

    def require(self) -> None:
        """Raise Unavailable or BadConfig unless both disks are there: nothing may be written beside them."""
        require_root(self.output, "output")
        require_root(self.jobs, "jobs")
