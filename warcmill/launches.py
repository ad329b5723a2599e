"""A launch as its engine left it: its stages, logs, WARCs, and how it ended. Reads only."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from warcmill import layout
from warcmill.errors import BadConfig, BadInput, NotReady
from warcmill.formats import joblog
from warcmill.layout import KINDS, Kind, OutputLayout
from warcmill.model import FINAL, FileRef, Launch, Root, Stage
from warcmill.rendered import Rendered
from warcmill.stores import Stat, Store
from warcmill.stores.engine_folder import EngineFolder

JOB_FILES = ("crawler-beans.cxml", "job.log", "seeds.txt", "surts.dump")
FEED_FILES = ("exclude.txt", "surts.txt", "sheets")  # a launch has them where its job was made so: never absent


@dataclass(frozen=True, slots=True)
class Worker:
    """Another engine at work on the same launches: its root, and how the launches lie in it."""

    store: Store
    layout: OutputLayout


@dataclass(frozen=True, slots=True)
class Engines:
    """The roots that the engine of a job writes, and other writers of the same launches; how output is laid out."""

    output: Store
    jobs: Store
    layout: OutputLayout
    workers: tuple[Worker, ...] = ()
    rendered: tuple[Rendered, ...] = ()
    _ids: dict[str, list[str]] = field(default_factory=dict, compare=False, repr=False)

    def end_of(self, launch: Launch) -> str:
        """The id of the job's next launch; '~', which is after all, for its newest. The job is listed once."""
        if launch.job not in self._ids:
            folders = (entry.name for entry in self.jobs.list(launch.job) if entry.kind == "folder")
            self._ids[launch.job] = [name for name in folders if len(name) == len(launch.id) and name.isdigit()]
        ids = self._ids[launch.job]
        later = bisect_right(ids, launch.id)
        return ids[later] if later < len(ids) else "~"

    def sources(self) -> Iterator[tuple[Store, OutputLayout]]:
        """The roots that have folders for each launch, with their layouts: the engine's output first."""
        yield self.output, self.layout
        yield from ((worker.store, worker.layout) for worker in self.workers)

    def is_linked(self, launch: Launch) -> bool:
        """Whether some folder of a launch's files is reached through a symbolic link."""
        places = ((store, known.folder(kind, launch)) for store, known in self.sources() for kind in KINDS)
        return any(isinstance(store, EngineFolder) and store.is_linked(folder) for store, folder in places)

    def root(self, root: Root) -> Store:
        """The root of that name, or BadConfig when none of this job is called so."""
        writers = (one.store for some in (self.workers, self.rendered) for one in some)
        for store in (self.output, self.jobs, *writers):
            if store.root == root:
                return store
        raise BadConfig(
            f"[{root}]", "files of a launch lie there, as its markers say; luigi.cfg has no such root of its job"
        )

    def kind_of(self, file: FileRef) -> Kind:
        """The kind of a file that an engine or another writer wrote, from its path."""
        for store, known in self.sources():
            if store.root == file.root:
                return known.kind_of(file.path)
        return "warcs"


@dataclass(slots=True)
class Listing:
    """What lies in a launch's folders. `odd` names entries that are nothing the line knows, with why."""

    logs: dict[Stage, list[FileRef]] = field(default_factory=dict)
    warcs: list[FileRef] = field(default_factory=list)
    reports: list[FileRef] = field(default_factory=list)
    job_files: list[FileRef] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)


def read(engines: Engines, launch: Launch) -> Listing:
    """List all files that lie in folders of a launch, once. WARCs that are told by their prefix alone: `rendered`."""
    listing = Listing()
    for store, known in engines.sources():
        for kind in KINDS:
            for entry in store.list(known.folder(kind, launch)):
                _sort_in(listing, kind, entry, FileRef(store.root, entry.path, entry.size))
    for paper in engines.jobs.list(f"{launch.job}/{launch.id}"):
        if paper.name in (*JOB_FILES, *FEED_FILES):
            _sort_paper(listing, engines.jobs, paper)
    return listing


def _sort_paper(listing: Listing, jobs: Store, paper: Stat) -> None:
    """What a launch was crawled by; `sheets` may be a folder of files."""
    if paper.kind == "file":
        listing.job_files.append(FileRef("jobs", paper.path, paper.size))
    elif paper.name == "sheets" and paper.kind == "folder":
        for sheet in jobs.list(paper.path):
            if sheet.kind == "file":
                listing.job_files.append(FileRef("jobs", sheet.path, sheet.size))
            else:
                listing.odd.append(f"{sheet.path}: not a file, where sheets are expected")


def rendered(engines: Engines, launch: Launch, prefixes: Collection[str]) -> list[FileRef]:
    """The WARCs with one of these prefixes that were begun during a launch: not before it, nor after the job's next.

    One whose name tells no time is of every launch that names its prefix.
    """
    if not engines.rendered or not prefixes:
        return []
    found = ((file, prefix) for one in engines.rendered for prefix in prefixes for file in one.of(prefix))
    begun = {file: layout.name_time(file.name.removeprefix(prefix)) for file, prefix in found}
    return sorted(file for file, time in begun.items() if not time or launch.id <= time < engines.end_of(launch))


def _sort_in(listing: Listing, kind: Kind, entry: Stat, file: FileRef) -> None:
    if entry.kind == "other":
        listing.odd.append(f"{file.label}: a link or a special file; not followed")
    elif entry.kind == "folder":
        listing.odd.append(f"{file.label}: a folder where {kind} are expected")
    elif kind == "logs":
        _sort_log(listing, file)
    elif kind == "reports":
        listing.reports.append(file)
    elif layout.is_warc_name(entry.name):
        listing.warcs.append(file)
    elif not entry.name.endswith(".lck"):
        listing.odd.append(f"{file.label}: not named as a WARC")


def _sort_log(listing: Listing, file: FileRef) -> None:
    if layout.is_log_name(file.name):
        listing.logs.setdefault(Stage.parse(layout.split_log_name(file.name)[1]), []).append(file)


def stages(listing: Listing, known: set[Stage]) -> list[Stage]:
    """The checkpoints on disk united with those that have markers, in order, and `final`."""
    return sorted({*listing.logs, *known, FINAL})


def holes(found: list[Stage]) -> list[int]:
    """Checkpoint numbers missing between the lowest and the highest seen: a resumed launch starts above 1."""
    numbers = {stage.number for stage in found if stage.number is not None}
    return sorted(set(range(min(numbers), max(numbers))) - numbers) if numbers else []


def how_ended(engines: Engines, launch: Launch) -> str:
    """How the engine's own logs say that a launch ended: `finished`, `superseded`, or '' when they do not.

    Neither locks nor silence nor age prove an end; EMPTY and STOPPING come before the logs are whole.
    """
    own = _events(engines, f"{launch.job}/{launch.id}/job.log")
    if any(event.word == "FINISHED" and event.subject == launch.id for event in own):
        return "finished"
    later = _events(engines, f"{launch.job}/job.log")
    superseded = any(event.word == "PREPARING" and _is_later(event.subject, launch) for event in later)
    return "superseded" if superseded else ""


def _is_later(launch_id: str, launch: Launch) -> bool:
    return len(launch_id) == 14 and launch_id.isdigit() and launch_id > launch.id


def end_time(engines: Engines, launch: Launch) -> str:
    """The time of the launch's own FINISHED line; '' when there is none."""
    own = _events(engines, f"{launch.job}/{launch.id}/job.log")
    return next((event.time for event in own if event.word == "FINISHED" and event.subject == launch.id), "")


def is_checkpointed(engines: Engines, launch: Launch, stage: Stage) -> bool:
    """Whether the launch's log says that this checkpoint is done: its logs are renamed by then."""
    return stage in checkpoints(engines, launch)


def checkpoints(engines: Engines, launch: Launch) -> list[Stage]:
    """The checkpoints that the launch's own job.log tells of, in order of time."""
    return taken(_events(engines, f"{launch.job}/{launch.id}/job.log"))


def taken(events: Iterable[joblog.Event]) -> list[Stage]:
    """The checkpoints that the events of a launch's job.log tell of, in their order."""
    found = []
    for event in events:
        if event.word == "CHECKPOINTED":
            try:
                found.append(Stage.parse(event.subject))
            except BadInput:
                continue  # a name that no checkpoint of ours has
    return found


def history(engines: Engines, job: str) -> list[tuple[Launch, Stage]]:
    """Every checkpoint that the job's own job.log tells of, with the launch that took it, in order of time."""
    found: list[tuple[Launch, Stage]] = []
    running: Launch | None = None
    for event in _events(engines, f"{job}/job.log"):
        try:
            if event.word == "PREPARING":
                running = Launch.parse(job, event.subject)
            elif event.word == "CHECKPOINTED" and running:
                found.append((running, Stage.parse(event.subject)))
        except BadInput:
            continue  # a name that no launch or checkpoint of ours has
    return found


def _events(engines: Engines, path: str) -> Iterator[joblog.Event]:
    try:
        file = engines.jobs.open(path)
    except NotReady:
        return
    with file:
        yield from joblog.events(file)
