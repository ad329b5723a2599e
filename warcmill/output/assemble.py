"""Freeze the list of a stage's files: what its crawl log names, found on disk.

Every later step works on that list. A WARC that the log names and that is
still `.open` is carried to the next stage. `final` takes it as it is, and also
lists every WARC of the launch that no log names. An imported launch has no
logs: all its WARCs are of `final`, and none counts as unnamed. Rendered WARCs are outside
the launch's folders: they are found by the prefixes that the logs name.
"""

from __future__ import annotations

from msgspec import Struct, field

from warcmill import layout
from warcmill.base.clock import stamp_text
from warcmill.formats.logs.crawlcounts import CrawlCounts
from warcmill.launches.roots import JobRoots
from warcmill.markers.claim import Claim
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Item, Json, Launch, Outcome, Stage
from warcmill.output.gather import Gathered, Offsets, gather, pick_rendered, prefix_facts, refuse_clashes


class Picked(Struct):
    """A stage's WARCs, each with its greatest offset in the crawl log, and the names that led to none."""

    listed: list[tuple[FileRef, int | None]] = field(default_factory=list)
    carried: Offsets = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)
    unnamed: list[FileRef] = field(default_factory=list)
    named_again: list[str] = field(default_factory=list)


def assemble(state: MarkerStore, roots: JobRoots, launch: Launch, stage: Stage) -> Claim:
    """The claim of 03 for a stage. NotReady and Conflict as `gather` and `claim_of`."""
    return claim_of(gather(state, roots, launch, stage))


def claim_of(gathered: Gathered) -> Claim:
    """The claim of 03, from what was gathered and nothing else.

    NotReady when `final` meets a rendered WARC that is still `.open`; Conflict when two files of the launch would get
    one name in the store.
    """
    taken, stage = gathered.taken, gathered.stage
    picked = _pick(gathered)
    web = pick_rendered(gathered.rendered, gathered.prefixes, taken, stage)
    own = (*gathered.listing.warcs, *web, *taken)
    refuse_clashes(gathered.launch, {file: gathered.kinds[file] for file in own})
    others = [(file, None) for file in (*picked.unnamed, *web)]
    items = tuple(_item(file, offset) for file, offset in [*picked.listed, *others])
    return Claim(
        key=layout.key("output.AssembleOutput", gathered.launch, stage=stage),
        inputs=gathered.inputs,
        outputs=tuple(item.file for item in items if item.outcome is Outcome.OK),
        items=items,
        counts=_counts(gathered.counts, items),
        facts=_facts(picked, gathered)
        | prefix_facts(gathered.prefixes, {*taken, *web}, stage)
        | _dates(gathered)
        | (gathered.continued.facts() if gathered.continued else {})
        | ({"uncounted_log": list(gathered.uncounted)} if gathered.uncounted else {}),
    )


def _pick(gathered: Gathered) -> Picked:
    picked, is_final = Picked(), gathered.stage.is_final
    labels = {file.label for file in gathered.taken}
    taken_names = {layout.final_name(label.rpartition("/")[2]) for label in labels}
    on_disk = {file.name: file for file in gathered.listing.warcs}
    for name, offset in sorted(gathered.names.items()):
        file = on_disk.get(name) or on_disk.get(f"{name}.open") or gathered.overlooked.get(name)
        if name in taken_names:
            picked.named_again.append(name)
        elif file is None:
            picked.absent.append(name)
        elif file.name != name and not is_final:
            picked.carried[name] = offset
        else:
            picked.listed.append((file, offset))
    if is_final:
        claimed = labels | {file.label for file, _ in picked.listed}
        others = [file for file in gathered.listing.warcs if file.label not in claimed]
        if gathered.is_imported:
            picked.listed += [(file, None) for file in others]
        else:
            picked.unnamed = others
    return picked


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


def _facts(picked: Picked, gathered: Gathered) -> dict[str, Json]:
    unexpected = sorted(gathered.listing.unexpected) if gathered.stage.is_final else []
    return {
        "absent": [layout.shown(name) for name in picked.absent],
        "carried": {layout.shown(name): offset for name, offset in picked.carried.items()},
        "named_again": [layout.shown(name) for name in picked.named_again],
        "unnamed": [layout.shown(file.label) for file in picked.unnamed],
        "odd": [layout.shown(text) for text in unexpected],
    }


def _dates(gathered: Gathered) -> dict[str, Json]:
    start = stamp_text(gathered.before.stamp if gathered.before else gathered.launch.id)
    if gathered.ended is None:
        return {"start_date": start, "end_date": stamp_text(gathered.stage.stamp)}
    how, finished = gathered.ended
    end = finished or gathered.counts.last or start
    return {"start_date": start, "end_date": end[:19].rstrip("Z") + "Z", "ended": how}
