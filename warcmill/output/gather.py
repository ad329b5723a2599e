"""All that the claim of 03 follows from: earlier markers, counts of packed logs, one listing of the disk. Reads only.

`gather` reads it. Crawl logs are counted in a stage's zip, rotated ones too, in the order they were written. WARCs that
a web renderer wrote belong to the stage by a prefix that the launch's crawl logs name: `pick_rendered`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import product

from msgspec import Struct

from warcmill import layout
from warcmill.errors import Conflict, NotReady
from warcmill.formats.logs import crawllog, logzip
from warcmill.formats.logs.crawlcounts import CrawlCounts, Tally
from warcmill.launches.listing import Listing, all_stages, list_files, list_rendered
from warcmill.launches.roots import JobRoots
from warcmill.launches.stored_logs import in_order
from warcmill.launches.view import LaunchView, how_it_ended, rests_on_start
from warcmill.layout import Kind
from warcmill.markers.claim import Evidence, Input
from warcmill.markers.facts.output import Assembled, Ended, PackedLogs
from warcmill.markers.facts.pulse import Continued
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FileRef, Item, Json, Launch, Stage

_WARC_KINDS: tuple[Kind, ...] = ("warcs", "viral")
Offsets = dict[str, int | None]
_LONGEST, _MOST = 100, 1_000  # of refused prefixes: characters shown of each, and how many are listed


class Gathered(Struct, frozen=True):
    """All that the claim of 03 for a stage follows from. No field is read from disk or state again."""

    launch: Launch
    stage: Stage
    inputs: tuple[Input, ...]
    before: Stage | None
    earlier: tuple[Assembled, ...]  # of the stages before, in order
    taken: frozenset[FileRef]  # the files that these list
    counts: CrawlCounts
    uncounted: tuple[str, ...]  # labels of crawl logs that were not counted, or only in part
    names: Offsets  # WARCs that the logs name, or that the stage before carried over; the greatest offset in each
    prefixes: WarcPrefixes
    listing: Listing
    overlooked: Mapping[str, FileRef]  # by the name that the logs give: on disk, and not in the listing
    rendered: tuple[FileRef, ...]  # WARCs with one of the prefixes, those of other stages too
    kinds: Mapping[FileRef, Kind]  # of all WARCs: listed, rendered, taken
    continued: Continued | None
    ended: tuple[str, str] | None  # of `final`: how, and the time of FINISHED or ''

    @property
    def is_imported(self) -> bool:
        """True if no engine wrote this launch, so that no log names a WARC."""
        return self.ended is not None and self.ended[0] == Ended.IMPORTED


def gather(state: MarkerStore, roots: JobRoots, launch: Launch, stage: Stage) -> Gathered:
    """Read all of it for a stage.

    NotReady without the stage's 02, the 03 of the stage before, or for `final` the 01.stopped.
    """
    logs = state.require(layout.key("output.PackageLogs", launch, stage=stage))
    stages = state.stages(launch)
    markers = {of: marker for of, marker in _assembled(state, launch, stages) if of < stage}
    earlier = tuple(Assembled.from_claim(marker.claim) for marker in markers.values())
    taken = frozenset(item.file for marker in markers.values() for item in marker.claim.items)
    counts, uncounted = count_logs(state, logs)
    names = counts.warcs | (dict(earlier[-1].carried) if earlier else {})
    prefixes = WarcPrefixes.of(counts, earlier)
    listing = list_files(roots, launch)  # late: counting takes long, and a crawl may be running
    before = _last_before(stage, all_stages(listing, stages))
    rendered = tuple(list_rendered(roots, launch, prefixes.all))
    return Gathered(
        launch=launch,
        stage=stage,
        inputs=(*rests_on(logs), *rests_on_start(state, launch), *_rests_on_stage(launch, before, markers)),
        before=before,
        earlier=earlier,
        taken=taken,
        counts=counts,
        uncounted=tuple(uncounted),
        names=names,
        prefixes=prefixes,
        listing=listing,
        overlooked=dict(_look_again(roots, launch, names, listing)),
        rendered=rendered,
        kinds={file: roots.kind_of(file) for file in {*listing.warcs, *rendered, *taken}},
        continued=LaunchView.of(state, roots, launch).continues,
        ended=how_it_ended(state, launch) if stage.is_final else None,
    )


def stage_before(state: MarkerStore, roots: JobRoots, launch: Launch, stage: Stage) -> Stage | None:
    """The stage that comes before this one, on disk or among the markers; None for the first."""
    return _last_before(stage, all_stages(list_files(roots, launch), state.stages(launch)))


def _last_before(stage: Stage, stages: list[Stage]) -> Stage | None:
    return max((other for other in stages if other < stage), default=None)


def _assembled(state: MarkerStore, launch: Launch, stages: Collection[Stage]) -> Iterator[tuple[Stage, Evidence]]:
    for stage in sorted(stages):
        if marker := state.read(layout.key("output.AssembleOutput", launch, stage=stage)):
            yield stage, marker


def _rests_on_stage(launch: Launch, before: Stage | None, markers: Mapping[Stage, Evidence]) -> tuple[Input, ...]:
    if before is None:
        return ()
    if before not in markers:
        key = layout.key("output.AssembleOutput", launch, stage=before)
        raise NotReady(layout.marker_path(key), f"run {key} first")
    return rests_on(markers[before])


def _look_again(roots: JobRoots, launch: Launch, names: Offsets, listing: Listing) -> Iterator[tuple[str, FileRef]]:
    """Ask for each unlisted WARC by name: a listing may miss a file that is renamed meanwhile."""
    listed = {file.name for file in listing.warcs}
    for name in names:
        if listed.isdisjoint((name, f"{name}.open")) and (file := _stat(roots, launch, name)):
            yield name, file


def _stat(roots: JobRoots, launch: Launch, name: str) -> FileRef | None:
    if "/" in name or "\0" in name or not layout.is_warc_name(name):
        return None
    for (store, folders), kind, candidate in product(roots.sources(), _WARC_KINDS, (name, f"{name}.open")):
        entry = store.stat(f"{folders.folder(kind, launch)}/{candidate}")
        if entry and entry.kind == "file":
            return FileRef(store.root, entry.path, entry.size)
    return None


def count_logs(state: MarkerStore, logs: Evidence) -> tuple[CrawlCounts, list[str]]:
    """Count every line of every crawl log in a 02 zip; also return the paths not counted, or only in part.

    Without crawl logs all counts are zero. BadInput when the zip itself is damaged.
    """
    tally = Tally()
    members = PackedLogs.from_claim(logs.claim).members
    packed = (item for item in logs.claim.items if members[item.file].startswith("logs/"))
    crawl_logs = [item for item in packed if layout.is_crawl_log(_plain(item))]
    ordered = in_order(crawl_logs)
    uncounted = {item.file.label for item in crawl_logs} - {item.file.label for item in ordered}
    for item in ordered:
        if not _add(state, logs, item, members[item.file], tally):
            uncounted.add(item.file.label)
    return tally.counts(), sorted(uncounted)


def _plain(item: Item) -> str:
    return layout.split_log_name(item.file.name)[0]


def _add(state: MarkerStore, logs: Evidence, item: Item, member: str, tally: Tally) -> bool:
    """Count a log as far as it can be read; return True if that is to its end."""
    with state.store.open(layout.marker_path(logs.claim.key)) as file:
        return crawllog.read(logzip.open_member(file, member), tally.add, is_gzip=_plain(item).endswith(".gz"))


class WarcPrefixes(Struct, frozen=True, dict=True):
    """The prefixes that a stage's crawl log names, valid and refused, and the valid ones of earlier stages."""

    named: frozenset[str]
    refused: frozenset[str]
    before: frozenset[str]

    @classmethod
    def of(cls, counts: CrawlCounts, earlier: Iterable[Assembled]) -> WarcPrefixes:
        """The prefixes of a stage, from its counts and from the stages before it."""
        before = {prefix for stage in earlier for prefix in stage.prefixes}
        named = frozenset(filter(layout.is_prefix, counts.prefixes))
        return cls(named, counts.prefixes - named, frozenset(before))

    @cached_property
    def all(self) -> frozenset[str]:
        """The valid prefixes of the launch up to this stage."""
        return self.named | self.before


def pick_rendered(
    rendered: Iterable[FileRef], prefixes: WarcPrefixes, taken: Collection[FileRef], stage: Stage
) -> list[FileRef]:
    """The stage's WARCs among the rendered ones of its launch, without those in `taken`.

    A checkpoint gets those that were begun before it and have their final name.
    NotReady when `final` meets a `.open` one. An engine's files do not change after its launch has ended; a renderer
    may still rename this one, and the launch would list it twice.
    """
    labels = {file.label for file in taken}
    new = [file for file in rendered if file.label not in labels]
    for file in new if stage.is_final else ():
        if not _has_final_name(file):
            why = "its renderer has not closed it; when that is gone for good, rename the file to its closed name"
            raise NotReady(file.label, why)
    named = filter(_has_final_name, new)
    return [file for file in named if stage.is_final or _begun_before(file, prefixes, stage)]


def _has_final_name(file: FileRef) -> bool:
    return layout.final_name(file.name) == file.name


def _begun_before(file: FileRef, prefixes: WarcPrefixes, stage: Stage) -> bool:
    own = layout.prefixes_of(file.name, prefixes.all)
    return all(layout.name_time(file.name.removeprefix(prefix)) <= stage.stamp for prefix in own)


def refuse_clashes(launch: Launch, kinds: Mapping[FileRef, Kind]) -> None:
    """Conflict when two of these files would get one name in the store. Checked before any file is copied."""
    stored: dict[str, FileRef] = {}
    for file, kind in sorted(kinds.items()):
        path = layout.stored_path(kind, launch, file.name)
        other = stored.setdefault(path, file)
        if other.label != file.label:
            why = f"{other.label} and {file.label} would both have this name; rename one of them on disk"
            raise Conflict(f"store:{path}", f"{why}. Nothing of the stage was copied")


def prefix_facts(prefixes: WarcPrefixes, claimed: Collection[FileRef], stage: Stage) -> dict[str, Json]:
    """A claim's facts about prefixes, empty lists left out. Only `final` lists prefixes without a WARC."""
    without_warc = prefixes.all - {prefix for file in claimed for prefix in layout.prefixes_of(file.name, prefixes.all)}
    lists = {
        "prefixes": sorted(prefixes.named),
        "refused_prefix": sorted({ascii(prefix[:_LONGEST]) for prefix in prefixes.refused})[:_MOST],
        "absent_prefix": sorted(without_warc) if stage.is_final else [],
    }
    return {name: list(values) for name, values in lists.items() if values}
