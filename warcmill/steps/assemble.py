"""Freeze the list of a stage's files: what its crawl log names, found on disk.

Everything after this step works on that list. A WARC that the log names and
that is still `.open` is carried to the next stage; `final` takes it as it is,
and sweeps up every WARC of the launch that no log names. Rendered WARCs, which
lie in no folder of the launch, are told by the prefixes that the logs name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

from warcmill import launches, layout
from warcmill.clock import stamp_text
from warcmill.ending import how_it_ended
from warcmill.evidence import Claim, Evidence
from warcmill.formats.crawlcounts import CrawlCounts
from warcmill.launches import Engines, Listing
from warcmill.layout import Kind
from warcmill.model import FileRef, Item, Json, Launch, Outcome, Stage
from warcmill.state import State, input_of
from warcmill.steps import continued, crawl_logs, rendered
from warcmill.steps.rendered import Prefixes

WARC_KINDS: tuple[Kind, ...] = ("warcs", "viral")
Offsets = dict[str, int | None]


@dataclass(slots=True)
class Picked:
    """Which WARCs are a stage's, and what could not be had."""

    found: list[tuple[FileRef, int | None]] = field(default_factory=list)
    carried: Offsets = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)
    unnamed: list[FileRef] = field(default_factory=list)
    named_again: list[str] = field(default_factory=list)


def stage_before(state: State, engines: Engines, launch: Launch, stage: Stage) -> Stage | None:
    """The stage that comes before this one, on disk or among the markers; None for the first."""
    known = launches.stages(launches.read(engines, launch), state.stages(launch))
    earlier = [one for one in known if one < stage]
    return earlier[-1] if earlier else None


def assemble(state: State, engines: Engines, launch: Launch, stage: Stage) -> Claim:
    """The claim of 03 for a stage."""
    before = stage_before(state, engines, launch, stage)
    logs_key = layout.key("output.PackageLogs", launch, stage=stage)
    earlier = _earlier(state, launch, stage)
    counts, uncounted = crawl_logs.count(state, state.need(logs_key))
    listing = launches.read(engines, launch)
    taken = {item.file for one in earlier for item in one.claim.items}
    names = counts.warcs | _carried(earlier)
    picked = _pick(engines, launch, listing, names, {file.label for file in taken}, stage)
    prefixes = Prefixes.of(counts, earlier)
    web = rendered.pick(engines, launch, prefixes, taken, stage)
    rendered.refuse_alike(engines, launch, {*listing.warcs, *web, *taken})
    inputs = [input_of(state, logs_key), *continued.said_by(state, launch)]
    if before:
        inputs.append(input_of(state, layout.key("output.AssembleOutput", launch, stage=before)))
    resumed = continued.of(state, engines, launch)
    rest = [(file, None) for file in (*picked.unnamed, *web)]
    items = tuple(_item(file, offset) for file, offset in [*picked.found, *rest])
    return Claim(
        key=layout.key("output.AssembleOutput", launch, stage=stage),
        inputs=tuple(inputs),
        outputs=tuple(item.file for item in items if item.outcome is Outcome.OK),
        items=items,
        counts=_counts(counts, items),
        facts=_facts(picked, listing, stage)
        | rendered.facts(prefixes, {*taken, *web}, stage)
        | _dates(state, launch, stage, before, counts)
        | (resumed.facts() if resumed else {})
        | ({"uncounted_log": list(uncounted)} if uncounted else {}),
    )


def _earlier(state: State, launch: Launch, stage: Stage) -> list[Evidence]:
    stages = [one for one in sorted(state.stages(launch)) if one < stage]
    keys = [layout.key("output.AssembleOutput", launch, stage=one) for one in stages]
    return [found for key in keys if (found := state.read(key))]


def _carried(earlier: list[Evidence]) -> Offsets:
    carried = earlier[-1].claim.facts["carried"] if earlier else {}
    assert isinstance(carried, dict)
    return {name: offset if isinstance(offset, int) else None for name, offset in carried.items()}


def _pick(engines: Engines, launch: Launch, listing: Listing, names: Offsets, taken: set[str], stage: Stage) -> Picked:
    picked = Picked()
    on_disk = {file.name: file for file in listing.warcs}
    taken_names = {layout.closed_name(label.rpartition("/")[2]) for label in taken}
    for name, offset in sorted(names.items()):
        file = on_disk.get(name) or on_disk.get(f"{name}.open") or _look_again(engines, launch, name)
        if name in taken_names:
            picked.named_again.append(name)
        elif file is None:
            picked.absent.append(name)
        elif file.name != name and not stage.is_final:
            picked.carried[name] = offset
        else:
            picked.found.append((file, offset))
    if stage.is_final:
        claimed = taken | {file.label for file, _ in picked.found}
        picked.unnamed = [file for file in listing.warcs if file.label not in claimed]
    return picked


def _look_again(engines: Engines, launch: Launch, name: str) -> FileRef | None:
    """A file renamed while its folder is read may be missed by the listing; ask for it by name before it is absent."""
    if "/" in name or "\0" in name or not layout.is_warc_name(name):
        return None
    for (store, known), kind, candidate in product(engines.sources(), WARC_KINDS, (name, f"{name}.open")):
        entry = store.stat(f"{known.folder(kind, launch)}/{candidate}")
        if entry and entry.kind == "file":
            return FileRef(store.root, entry.path, entry.size)
    return None


def _item(file: FileRef, offset: int | None) -> Item:
    facts: dict[str, Json] = {} if offset is None else {"offset": offset}
    why = layout.why_unpublishable(file.name)
    if why:
        shown = FileRef(file.root, layout.shown(file.path), file.size)
        return Item(shown, Outcome.REFUSED, why=why, facts=facts)
    return Item(file, Outcome.OK, facts=facts)


def _counts(counts: CrawlCounts, items: tuple[Item, ...]) -> dict[str, Json]:
    return {
        "lines": counts.lines,
        "uris": counts.uris,
        "bytes": counts.bytes,
        "unread": counts.unread,
        "by_status": dict(counts.by_status),
        "by_mime": dict(counts.by_mime),
        "by_host_top": dict(counts.by_host_top),
        "warcs": len(items),
        "warc_bytes": sum(item.file.size for item in items),
    }


def _facts(picked: Picked, listing: Listing, stage: Stage) -> dict[str, Json]:
    return {
        "absent": [layout.shown(name) for name in picked.absent],
        "carried": {layout.shown(name): offset for name, offset in picked.carried.items()},
        "named_again": [layout.shown(name) for name in picked.named_again],
        "unnamed": [layout.shown(file.label) for file in picked.unnamed],
        "odd": [layout.shown(text) for text in sorted(listing.odd)] if stage.is_final else [],
    }


def _dates(state: State, launch: Launch, stage: Stage, before: Stage | None, counts: CrawlCounts) -> dict[str, Json]:
    start = stamp_text(before.stamp if before else launch.id)
    if not stage.is_final:
        return {"start_date": start, "end_date": stamp_text(stage.stamp)}
    how, finished = how_it_ended(state, launch)
    end = finished or counts.last or start
    return {"start_date": start, "end_date": end[:19].rstrip("Z") + "Z", "ended": how}
