"""The files of a launch on disk: its stages, logs, WARCs and job files. Reads only."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct, field

from warcmill import layout
from warcmill.launches.roots import JobRoots
from warcmill.layout import KINDS, Kind
from warcmill.model import FINAL, FileRef, Launch, Stage
from warcmill.stores import Stat, Store

JOB_FILES = ("crawler-beans.cxml", "job.log", "seeds.txt", "surts.dump")
OWN_CONFIGURATION = "crawl.toml"
OWN_FILES = (OWN_CONFIGURATION, "job.log", "seeds.txt")  # of a launch of the built-in crawler
FOLDERS = ("sheets", "scripts")  # of a launch, with files that configured it
FEED_FILES = (
    "edition.json",
    "exclude.txt",
    "seeds.jsonl",
    "surts.txt",
    "scripts.toml",
    *FOLDERS,
)  # only some jobs have them, so they are never reported as absent


class Listing(Struct):
    """The content of a launch's folders. `unexpected` names entries that the line does not know, with the reason."""

    logs: dict[Stage, list[FileRef]] = field(default_factory=dict)
    warcs: list[FileRef] = field(default_factory=list)
    reports: list[FileRef] = field(default_factory=list)
    job_files: list[FileRef] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)


def list_files(roots: JobRoots, launch: Launch) -> Listing:
    """List all files in the folders of a launch, once. WARCs outside, known by their prefix: `list_rendered`."""
    listing = Listing()
    for store, known in roots.sources():
        for kind in KINDS:
            for entry in store.list(known.folder(kind, launch)):
                _sort_in(listing, kind, entry, FileRef(store.root, entry.path, entry.size))
    for entry in roots.jobs.list(f"{launch.job}/{launch.id}"):
        if entry.name in (*JOB_FILES, *OWN_FILES, *FEED_FILES):
            _sort_job_file(listing, roots.jobs, entry)
    return listing


def _sort_job_file(listing: Listing, jobs: Store, entry: Stat) -> None:
    """Sort in a file that configured the crawl, or a folder of such files."""
    if entry.kind == "file":
        listing.job_files.append(FileRef("jobs", entry.path, entry.size))
    elif entry.name in FOLDERS and entry.kind == "folder":
        for one in jobs.list(entry.path):
            if one.kind == "file":
                listing.job_files.append(FileRef("jobs", one.path, one.size))
            else:
                listing.unexpected.append(f"{one.path}: not a file, where {entry.name} are expected")


def papers_of(listing: Listing) -> tuple[str, ...]:
    """Return the names of the files that a launch of its engine has among the job's."""
    is_own = any(file.name == OWN_CONFIGURATION for file in listing.job_files)
    return OWN_FILES if is_own else JOB_FILES


def list_rendered(roots: JobRoots, launch: Launch, prefixes: Collection[str]) -> list[FileRef]:
    """List the WARCs with one of these prefixes that were begun after the launch's start and before the job's next one.

    A WARC without a time in its name belongs to every launch that names its prefix.
    """
    if not roots.rendered or not prefixes:
        return []
    files = ((file, prefix) for root in roots.rendered for prefix in prefixes for file in root.of(prefix))
    begun = {file: layout.name_time(file.name.removeprefix(prefix)) for file, prefix in files}
    return sorted(file for file, time in begun.items() if not time or launch.id <= time < roots.end_of(launch))


def _sort_in(listing: Listing, kind: Kind, entry: Stat, file: FileRef) -> None:
    if entry.kind == "other":
        listing.unexpected.append(f"{file.label}: a link or a special file; not followed")
    elif entry.kind == "folder":
        listing.unexpected.append(f"{file.label}: a folder where {kind} are expected")
    elif kind == "logs":
        _sort_log(listing, file)
    elif kind == "reports":
        listing.reports.append(file)
    elif layout.is_warc_name(entry.name):
        listing.warcs.append(file)
    elif not layout.is_leftover(entry.name):
        listing.unexpected.append(f"{file.label}: not named as a WARC")


def _sort_log(listing: Listing, file: FileRef) -> None:
    if layout.is_log_name(file.name):
        listing.logs.setdefault(Stage.parse(layout.split_log_name(file.name)[1]), []).append(file)


def all_stages(listing: Listing, known: set[Stage]) -> list[Stage]:
    """Return the checkpoints on disk and those that have markers (`known`), in order, and `final`."""
    return sorted({*listing.logs, *known, FINAL})


def missing_numbers(seen: list[Stage]) -> list[int]:
    """Return the checkpoint numbers missing between the lowest and the highest: a resumed launch starts above 1."""
    numbers = {stage.number for stage in seen if stage.number is not None}
    return sorted(set(range(min(numbers), max(numbers))) - numbers) if numbers else []
