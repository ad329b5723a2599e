"""Gather what the claim of 03 follows from: the earlier markers, the packed logs' counts, one listing of the disk."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from warcmill import layout
from warcmill.errors import NotReady
from warcmill.formats.crawlcounts import CrawlCounts
from warcmill.launches import resumed
from warcmill.launches.ending import how_it_ended
from warcmill.launches.listing import Listing, all_stages, list_files, list_rendered
from warcmill.launches.roots import JobRoots
from warcmill.layout import Kind
from warcmill.markers.claim import Evidence, Input
from warcmill.markers.facts import Assembled, Continued, Ended
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FileRef, Launch, Stage
from warcmill.output import crawl_logs
from warcmill.output.rendered_pick import Prefixes

WARC_KINDS: tuple[Kind, ...] = ("warcs", "viral")
Offsets = dict[str, int | None]


@dataclass(frozen=True, slots=True)
class Gathered:
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
    prefixes: Prefixes
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
    """Read all of it. NotReady without the stage's 02, the 03 of the stage before, or for `final` the 01.stopped."""
    logs = state.require(layout.key("output.PackageLogs", launch, stage=stage))
    stages = state.stages(launch)
    markers = {one: marker for one, marker in _assembled(state, launch, stages) if one < stage}
    earlier = tuple(Assembled.from_claim(marker.claim) for marker in markers.values())
    taken = frozenset(item.file for marker in markers.values() for item in marker.claim.items)
    counts, uncounted = crawl_logs.count(state, logs)
    names = counts.warcs | (dict(earlier[-1].carried) if earlier else {})
    prefixes = Prefixes.of(counts, earlier)
    listing = list_files(roots, launch)  # late: counting takes long, and a crawl may be running
    before = _last_before(stage, all_stages(listing, stages))
    rendered = tuple(list_rendered(roots, launch, prefixes.all))
    return Gathered(
        launch=launch,
        stage=stage,
        inputs=(*rests_on(logs), *resumed.inputs(state, launch), *_rests_on_stage(launch, before, markers)),
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
        continued=resumed.of(state, roots, launch),
        ended=how_it_ended(state, launch) if stage.is_final else None,
    )


def stage_before(state: MarkerStore, roots: JobRoots, launch: Launch, stage: Stage) -> Stage | None:
    """The stage that comes before this one, on disk or among the markers; None for the first."""
    return _last_before(stage, all_stages(list_files(roots, launch), state.stages(launch)))


def _last_before(stage: Stage, known: list[Stage]) -> Stage | None:
    return max((other for other in known if other < stage), default=None)


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
    for (store, known), kind, candidate in product(roots.sources(), WARC_KINDS, (name, f"{name}.open")):
        entry = store.stat(f"{known.folder(kind, launch)}/{candidate}")
        if entry and entry.kind == "file":
            return FileRef(store.root, entry.path, entry.size)
    return None
