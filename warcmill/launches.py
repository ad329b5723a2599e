"""A launch as its engine left it: its stages, logs, WARCs, and how it ended. Reads only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date

from warcmill import layout
from warcmill.errors import BadInput, NotReady
from warcmill.formats import joblog
from warcmill.layout import KINDS, Kind, OutputLayout
from warcmill.model import FINAL, FileRef, Launch, Stage
from warcmill.stores import Stat, Store

JOB_FILES = ("crawler-beans.cxml", "job.log", "seeds.txt", "surts.dump")


@dataclass(frozen=True, slots=True)
class Engines:
    """The two roots that engines write, and how they lay out their output."""

    output: Store
    jobs: Store
    layout: OutputLayout


@dataclass(frozen=True, slots=True)
class Found:
    """One listing of the launches in a span of days. `odd` names folders that are no launch, with why."""

    launches: tuple[Launch, ...]
    odd: tuple[str, ...]


@dataclass(slots=True)
class Listing:
    """What lies in a launch's folders. `odd` names entries that are nothing the line knows, with why."""

    logs: dict[Stage, list[FileRef]] = field(default_factory=dict)
    warcs: list[FileRef] = field(default_factory=list)
    reports: list[FileRef] = field(default_factory=list)
    job_files: list[FileRef] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)


def find(engines: Engines, first: date, end: date) -> Found:
    """All launches whose id falls on a day from `first` up to, not including, `end`."""
    names: dict[tuple[str, str], str] = {}
    for store, folder in _job_parents(engines):
        for job in store.list(folder):
            if job.kind == "folder" and not job.name.startswith("."):
                names.update(_dated_folders(store, job, f"{first:%Y%m%d}", f"{end:%Y%m%d}"))
    launches: list[Launch] = []
    odd: list[str] = []
    for (launch_id, job_name), path in sorted(names.items()):
        try:
            launches.append(Launch.parse(job_name, launch_id))
        except BadInput as error:
            odd.append(f"{path}: {error.path} is {error.why}")
    return Found(tuple(launches), tuple(odd))


def _job_parents(engines: Engines) -> Iterator[tuple[Store, str]]:
    yield engines.jobs, ""
    if engines.layout is OutputLayout.KIND_FIRST:
        yield from ((engines.output, kind) for kind in KINDS)
    else:
        yield engines.output, ""


def _dated_folders(store: Store, job: Stat, first: str, end: str) -> Iterator[tuple[tuple[str, str], str]]:
    """The folders of a job that may be launches of these days: (launch id, job), and the path."""
    for entry in store.list(job.path):
        name = entry.name
        if entry.kind != "folder" or (name[:8].isdigit() and not first <= name[:8] < end):
            continue
        if not layout.NEVER_A_LAUNCH.fullmatch(name):
            yield (name, job.name), entry.path


def read(engines: Engines, launch: Launch) -> Listing:
    """List all files of a launch, once."""
    listing = Listing()
    for kind in KINDS:
        for entry in engines.output.list(engines.layout.folder(kind, launch)):
            _sort_in(listing, kind, entry)
    job_folder = f"{launch.job}/{launch.id}"
    for name in JOB_FILES:
        paper = engines.jobs.stat(f"{job_folder}/{name}")
        if paper and paper.kind == "file":
            listing.job_files.append(FileRef("jobs", paper.path, paper.size))
    return listing


def _sort_in(listing: Listing, kind: Kind, entry: Stat) -> None:
    file = FileRef("output", entry.path, entry.size)
    if entry.kind == "other":
        listing.odd.append(f"{entry.path}: a link or a special file; not followed")
    elif entry.kind == "folder":
        listing.odd.append(f"{entry.path}: a folder where {kind} are expected")
    elif kind == "logs":
        _sort_log(listing, file)
    elif kind == "reports":
        listing.reports.append(file)
    elif layout.is_warc_name(entry.name):
        listing.warcs.append(file)
    elif not entry.name.endswith(".lck"):
        listing.odd.append(f"{entry.path}: not named as a WARC")


def _sort_log(listing: Listing, file: FileRef) -> None:
    if not layout.is_log_name(file.name):
        return
    try:
        stage = Stage.parse(layout.split_log_name(file.name)[1])
    except BadInput as error:
        listing.odd.append(f"{file.path}: {error.why}")
        return
    listing.logs.setdefault(stage, []).append(file)


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
    found = []
    for event in _events(engines, f"{launch.job}/{launch.id}/job.log"):
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
