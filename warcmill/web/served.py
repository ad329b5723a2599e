"""The archive as the pages get it: what `warcmill serve` opened, once, for all requests. Reads only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from warcmill.audit.answers.line import AuditedLine
from warcmill.clusters.group import Group
from warcmill.documents.desk import Desk
from warcmill.errors import BadConfig
from warcmill.formats.pypi.lives import StatusInterval
from warcmill.formats.pypi.simple_pages import OfferedFile
from warcmill.markers.papers import JobPapers
from warcmill.markers.state import MarkerStore
from warcmill.model import Json
from warcmill.pulse.feed_edits import JobFeed
from warcmill.pypi.answers import PublishedData
from warcmill.reports.rule_trial import RuleTrial
from warcmill.scripts.folder import ScriptPlace
from warcmill.web.access import Forms, WebAccess
from warcmill.web.actions import Actions
from warcmill.web.archive import Archive
from warcmill.web.askers import AskedJob, Askers
from warcmill.web.handover.files import KEPT_DAYS

if TYPE_CHECKING:
    from warcmill.scripts.debugger import ScriptDebugger  # of the extra `scripts`


class Replay(Protocol):
    """The server of captures."""

    @property
    def address(self) -> str:
        """The address before the time and the URL of a capture."""
        ...

    @property
    def missing(self) -> str:
        """Why there is none, and what installs it; '' where there is one."""
        ...

    def state(self) -> str:
        """`ready`, or what it is instead."""
        ...


class PackageHistory(Protocol):
    """The files of a package index, by the serials between which each was there."""

    @property
    def newest(self) -> int:
        """The last serial that is known."""
        ...

    def projects(self, serial: int) -> Iterator[str]:
        """The normalised names of the projects that had a file at a serial, sorted. NotReady if that is not known."""
        ...

    def files(self, project: str, serial: int) -> Iterator[OfferedFile]:
        """The files that a project had at a serial, as its page listed them. NotReady if that is not known."""
        ...

    def addresses(self, project: str) -> Iterator[tuple[str, str]]:
        """The files that a project ever had, also those in quarantine, each with its last address."""
        ...

    def status(self, project: str, serial: int) -> StatusInterval | None:
        """The status of a project at a serial (PEP 792); None: it is unknown."""
        ...

    def close(self) -> None:
        """Close what is open."""
        ...


class JobDesk(Protocol):
    """The jobs of our own engine, as a person edits them. BadConfig for a job whose papers another writes."""

    def papers(self, job: str) -> JobPapers:
        """The papers of a job. NotReady for one that there is not."""
        ...

    def new(self, job: str) -> JobPapers:
        """The papers of a job that is to be made. BadInput for a name that is taken."""
        ...

    def name_of(self, url: str) -> str:
        """The name that a job of an address has, as a rule."""
        ...

    def list_job(self, job: str) -> None:
        """List a job under an engine, so that it can be crawled."""
        ...

    def networks(self, job: str) -> Sequence[str]:
        """The inside addresses that the engine of a job lets in."""
        ...

    def schedule(self, job: str) -> tuple[str, str]:
        """The schedule of a job in words, and its time zone; '' without one."""
        ...

    def check_schedule(self, words: str, zone: str) -> list[str]:
        """The next dates of a schedule in words, UTC. BadInput for invalid words."""
        ...

    def set_schedule(self, job: str, words: str, zone: str) -> list[str]:
        """Write the schedule of a job, '' for none; return what was done, in words."""
        ...

    def reserved(self, url: str, settings: Mapping[str, Json]) -> str:
        """The job that crawls this address, made if there is none: its name."""
        ...

    def look(self, url: str, allow_private: Sequence[str] = ()) -> Mapping[str, Json]:
        """A first look at an address, by a process of its own."""
        ...

    def feed(self, job: str) -> JobFeed:
        """The feed of a job. NotReady for a job without one."""
        ...

    def is_running(self, job: str) -> bool:
        """True while a crawl of the job runs."""
        ...

    def tried(self, job: str, papers: Mapping[str, bytes], *, most: int = 0) -> RuleTrial:
        """These papers over what the newest launch has logged. NotReady if there is none."""
        ...


def _no_group(name: str) -> Group:
    raise BadConfig(f"[group.{name}]", "there is no such section")


def _no_crawl(job: str) -> AskedJob:
    raise BadConfig(f"job {job}", "its crawl cannot be asked by this server")


class Served(Struct, frozen=True):
    """The parts that views may ask. Between requests it keeps the keys of forms and sessions, and which actions run.

    `file_days`: the days for which files for download are kept. `largest_upload`: the most bytes of one; 0: as many as
    the disk has room for. `why_no_import`: why nothing can be imported as a job, or at all where none is named; or ''.

    `line` opens the line anew, by luigi.cfg as it is now: a view calls it once. `refresh` has engines asked, in the
    background and at most every few seconds: a view calls it while a running crawl is looked at. `packages` opens the
    current history of a package index; None where none is published. `package_data`: the places of its data sets; None
    for a line without an index root. `has_walls`: False where scripts may do all that their crawl may; or BadConfig.
    `script_place` finds the parts of a job of scripts that its steps need, BadInput for another job; `debugger` is the
    one of this server, BadConfig where what it needs is not installed. `groups`: the names of the groups of clusters,
    by luigi.cfg as it is now; `group_named`: a group, or BadConfig. `desk` opens the desk of documents; None for a line
    without an index root; `has_documents`: crawls are searched for documents, by luigi.cfg as it is now.
    `job_desk`: what edits and begins jobs.
    `askers` ask the crawls that are watched.
    """

    state: MarkerStore
    archive: Archive
    replay: Replay
    access: WebAccess
    line: Callable[[], AuditedLine]
    refresh: Callable[[], object] = lambda: None
    actions: Actions = field(default_factory=Actions)
    forms: Forms = field(default_factory=Forms)
    packages: Callable[[], PackageHistory | None] | None = None
    package_data: Callable[[], PublishedData | None] | None = None
    has_walls: Callable[[], bool] = lambda: True
    script_place: Callable[[str], ScriptPlace] | None = None
    debugger: Callable[[], ScriptDebugger] | None = None
    groups: Callable[[], Sequence[str]] = tuple
    group_named: Callable[[str], Group] = _no_group
    desk: Callable[[], AbstractContextManager[Desk]] | None = None
    has_documents: Callable[[], bool] = lambda: False
    job_desk: JobDesk | None = None
    askers: Askers = field(default_factory=lambda: Askers(_no_crawl))
    file_days: int = KEPT_DAYS
    largest_upload: int = 0
    why_no_import: Callable[[str], str] = lambda _: ""

    def missing(self) -> Iterator[str]:
        """The parts that are not there to be searched or replayed, each with the command that brings it."""
        yield from dict.fromkeys(filter(None, (*self.archive.missing(), self.replay.missing)))
