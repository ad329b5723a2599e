"""The import of WARCs without a launch, of a folder or of WACZ files: they become one. Writes it and its marker.

The work is done in a hidden folder of the root of imported launches, and one rename makes it a launch. The marker
01.imported comes last, and records that the launch has ended. A kill before the rename leaves no launch. A kill between
the two leaves a launch that seems to run, so no scan begins a step; the next import of the job publishes its marker.

The WARCs are taken one after the other, and sorted: new, known from an earlier import, or double. `intake` links or
copies each. A WARC that the job already has, by its digest, is not imported again, so importing the same folder twice
changes nothing. Files that have come since make a second launch: the first is frozen, as its markers name exactly its
files. Logs and lists of pages that come with the WARCs become logs and reports of the launch, so 02 packs them.

A folder of an engine cannot be imported, nor one of the line itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import date
from pathlib import Path
from shutil import copyfileobj

from msgspec import Struct, field

from warcmill import layout
from warcmill.base.clock import stamp_text
from warcmill.decisions import folder_layouts, workspace
from warcmill.decisions.folder_layouts import (
    TASK,
    BareFolder,
    FolderContent,
    ImportOrder,
    ImportResult,
    WarcSource,
    why_never_found,
)
from warcmill.decisions.intake import Advance, Taken, may_link, take
from warcmill.decisions.workspace import Incoming
from warcmill.errors import BadInput, Mismatch, NotReady, Unavailable, Unsettled
from warcmill.launches.discovery import with_markers
from warcmill.launches.roots import RootMap
from warcmill.markers.claim import Claim
from warcmill.markers.facts.operator import Imported
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Item, Json, Launch, Outcome
from warcmill.stores import Stat
from warcmill.stores.file import FileStore

Shown = Callable[[int], AbstractContextManager[Advance]]  # shows the progress of so many bytes


def complete_cut_imports(state: MarkerStore, root: FileStore, job: str) -> Iterator[Launch]:
    """Complete the imports of a job that were killed when only the name, or the marker, was missing; yield them."""
    with own_disk(root):
        for left in list(workspace.leftovers(root, job)):
            claim = workspace.claim_in(root, left.folder)
            if claim and claim.key.task == TASK:
                left.place(layout.launch_of(claim.key))
    for launch in list(workspace.launches(root, job)):
        key = layout.key(TASK, launch)
        if state.read(key) is None and (claim := workspace.claim_in(root, str(launch))) and claim.key == key:
            state.publish(key, claim)
            yield launch


def import_folder(
    state: MarkerStore, root: FileStore, source: WarcSource, order: ImportOrder, shown: Shown
) -> ImportResult:
    """Import the WARCs of a source as one launch, and publish its marker.

    BadInput when there is no WARC, none that is what the source says, no date, or such a launch already. Unsettled when
    a file cannot be read: what was done is kept, and the next import continues from there.
    """
    result = ImportResult(completed=tuple(complete_cut_imports(state, root, order.job)))
    found = source.find()
    if not found.warcs:
        some = f", such as {found.missing[0]}" if found.missing else ""
        why = f"there is no WARC in it; what it has: {len(found.left_out) + len(found.missing)} other entries{some}"
        raise BadInput(str(source.base), why)
    before = EarlierImports.of(state, order.job)
    with own_disk(root):
        at = workspace.begin(root, order.job)
        packed = folder_layouts.packed(source, found.warcs)
        names = folder_layouts.names((entry.path for entry in found.warcs), packed=packed)
        taking = Taking(source, at, before, names, at.settled())
        check_room(root, taking, found)
        with shown(sum(entry.size for entry in found.warcs)) as advance:
            taking.all(found.warcs, advance)
        found.missing += taking.bad
        result.known, result.bad = taking.known, taking.bad
        if not taking.new:
            at.discard()
            if not taking.known:
                raise BadInput(str(source.base), f"no WARC in it can be taken; {taking.bad[0]}")
            return result
        launch = launch_of(state, root, source, order, taking)
        papers = take_papers(source, at, found)
        placed = {path: at.path / workspace.WARCS / taking.names[path] for path in taking.new}
        found.remarks += found.compare(placed, at.path)
        result.claim = claim_of(launch, order, source, found, taking, papers)
        result.linked = sum(taken.linked for taken in taking.new.values())
        at.complete([taking.names[path] for path in taking.new], result.claim)
        at.place(launch)
    state.publish(result.claim.key, result.claim)
    return result


@contextmanager
def own_disk(root: FileStore) -> Iterator[None]:
    """Make an error of the system on the root of imported launches an outage of that root."""
    try:
        yield
    except OSError as error:
        why = f"{error.strerror or error}. What is copied there is kept: import again when that is put right"
        raise Unavailable(f"the root of imported launches ({root.base})", why) from error


def why_not(rootmap: RootMap, state: MarkerStore, job: str) -> str:
    """Return why nothing can be imported as this job: something crawls it; '' when nothing does."""
    if section := rootmap.engine_of(job):
        return f"job '{job}' is crawled by {section.name}"
    for writer in rootmap.writers:
        if job in writer.jobs:
            return f"[{writer.root}] writes WARCs of job '{job}'"
    for (place, folder), root in rootmap.default.folders().items():
        if rootmap.open(root, place).stat(f"{folder}/{job}".lstrip("/")):
            return f"an engine crawls job '{job}': {place}/{folder} has a folder of it".replace("//", "/")
    crawled = (launch for launch in with_markers(state, *EVER) if launch.job == job and _is_crawled(state, launch))
    return next((f"an engine crawled job '{job}': launch {launch.id} was not imported" for launch in crawled), "")


def _is_crawled(state: MarkerStore, launch: Launch) -> bool:
    names = state.store.names(layout.state_folder(launch))
    return any(map(layout.parse_marker_name, names)) and layout.marker_name(layout.key(TASK, launch)) not in names


def is_inside(source: Path, root: str) -> bool:
    """True if a folder is in a root, or holds it."""
    place = Path(root).resolve()
    return source.is_relative_to(place) or place.is_relative_to(source)


def launch_of(state: MarkerStore, root: FileStore, source: WarcSource, order: ImportOrder, taking: Taking) -> Launch:
    """The launch that these WARCs become; BadInput when no record has a date, no scan could find it, or it exists."""
    dates = [taken.first for taken in taking.new.values() if taken.first]
    if not order.launch_id and not dates:
        why = "no whole record in it has a date that could name the launch; name it: --launch-id 14 digits"
        raise BadInput(str(source.base), why)
    launch = Launch.parse(order.job, order.launch_id or min(dates))
    if why := why_never_found(launch.id):
        why = f"the earliest date of its records is {stamp_text(launch.id)}, and {why}; name it: --launch-id 14 digits"
        raise BadInput(str(source.base), why)
    if root.stat(str(launch)) or state.store.names(layout.state_folder(launch)) - {"aside", "attempts"}:
        why = "there is such a launch already, with other files; give this one an id of its own: --launch-id 14 digits"
        raise BadInput(str(launch), why)
    return launch


def take_papers(source: WarcSource, at: Incoming, found: FolderContent) -> dict[str, str]:
    """Copy the logs and lists of pages; return their paths in the launch, each with that in the source.

    One that is damaged is missing.
    """
    named, taken = folder_layouts.paper_names(found.papers), dict[str, str]()
    for kind, entry in found.papers:
        name = named[entry.path]
        try:
            with at.paper(kind, name) as file, source.open(entry.path) as stream:
                copyfileobj(stream, file)
        except BadInput as error:
            found.missing.append(f"{layout.shown(entry.path)}: {error.why}")
        else:
            taken[f"{kind}/{layout.shown(name)}"] = layout.shown(entry.path)
    return taken


def claim_of(
    launch: Launch,
    order: ImportOrder,
    source: WarcSource,
    found: FolderContent,
    taking: Taking,
    papers: Mapping[str, str],
) -> Claim:
    items = tuple(
        sorted((_item(launch, taking.names[path], path, taken) for path, taken in taking.new.items()), key=_path)
    )
    known = [f"{path}: imported already, {where}" for path, where in taking.known.items()]
    facts: dict[str, Json] = {
        "by": order.by,
        "source": layout.shown(str(source.base)),
        "layout": source.layout,
        "first": _date(min, launch, taking, "first"),
        "last": _date(max, launch, taking, "last"),
        "missing": list(found.missing),
        "left_out": [*sorted([*found.left_out, *taking.doubles, *known])],
    }
    if source.is_packed:
        facts |= {"papers": dict(papers), "remarks": list(found.remarks)}
    return Claim(layout.key(TASK, launch), items=items, counts=_counts(items), facts=facts)


def _path(item: Item) -> str:
    return item.file.path


def _item(launch: Launch, name: str, path: str, taken: Taken) -> Item:
    place = f"{layout.OutputLayout.JOB_FIRST.folder('warcs', launch)}/{name}"
    file = FileRef("output", place, taken.size, taken.sha512)
    outcome = Outcome.OK if taken.ok else Outcome.REFUSED
    return Item(file, outcome, why=taken.why, offset=taken.offset, facts={"origin": layout.shown(path)})


def _date(choose: Callable[[list[str]], str], launch: Launch, taking: Taking, name: str) -> str:
    """The earliest or latest date of a record as text; the launch's own where no record has one."""
    dates = [date for taken in taking.new.values() if (date := str(getattr(taken, name)))]
    return stamp_text(choose(dates) if dates else launch.id)


def _counts(items: tuple[Item, ...]) -> dict[str, Json]:
    refused = sum(item.outcome is Outcome.REFUSED for item in items)
    total = sum(item.file.size for item in items)
    return {"files": len(items), "bytes": total, "ok": len(items) - refused, "refused": refused}


EVER = date.min, date.max


class EarlierImports(Struct, frozen=True):
    """The WARCs of the job's earlier imports: their places, by digest; and their paths in those folders, with sizes."""

    where: Mapping[str, str]
    origins: frozenset[tuple[str, int]]

    @classmethod
    def of(cls, state: MarkerStore, job: str) -> EarlierImports:
        where, origins = dict[str, str](), set[tuple[str, int]]()
        for launch in (launch for launch in with_markers(state, *EVER) if launch.job == job):
            if marker := state.read(layout.key(TASK, launch)):
                where |= {str(item.file.sha512): f"{launch}: {item.file.name}" for item in marker.claim.items}
                named = Imported.from_claim(marker.claim).origins
                origins |= {(origin, file.size) for file, origin in named.items()}
        return cls(where, frozenset(origins))


class Taking(Struct):
    """The WARCs of a source as they are read: those that are `new`, `known` from earlier imports, `doubles`, or `bad`:
    not what their source says of them."""

    source: WarcSource
    at: Incoming
    before: EarlierImports
    names: Mapping[str, str]
    settled: Mapping[str, Taken]
    new: dict[str, Taken] = field(default_factory=dict)
    known: dict[str, str] = field(default_factory=dict)
    doubles: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)

    def all(self, entries: list[Stat], advance: Advance) -> None:
        """Take every WARC; Unsettled when some could not be read."""
        failures, first = list[str](), dict[str, str]()
        for entry in entries:
            try:
                taken, is_here = self._taken(entry, advance)
            except (Unavailable, NotReady, Mismatch) as error:
                failures.append(str(error))
                continue
            except BadInput as error:
                self.bad.append(f"{layout.shown(entry.path)}: {error.why}")
                continue
            if is_here:  # an error of our own disk ends the import at once
                self.at.settle(file_key(entry, self.names[entry.path]), taken)
            self._sort_in(entry, taken, first)
        if failures:
            raise Unsettled(f"the import of {self.source.base}", failures)

    def _taken(self, entry: Stat, advance: Advance) -> tuple[Taken, bool]:
        """A WARC, and True if it is here now and has to be settled."""
        name = self.names[entry.path]
        if earlier := self.settled.get(file_key(entry, name)):
            advance(entry.size)
            return earlier, False
        if self.looks_known(entry):
            taken = take(self.source, entry, None, advance, name)
            if taken.sha512 in self.before.where:
                return taken, False
        return take(self.source, entry, self.at.target(name), advance, name), True

    def looks_known(self, entry: Stat) -> bool:
        """True if an earlier import had a WARC of this path and size: it is read before it is copied."""
        return (layout.shown(entry.path), entry.size) in self.before.origins

    def _sort_in(self, entry: Stat, taken: Taken, first: dict[str, str]) -> None:
        path = layout.shown(entry.path)
        if where := self.before.where.get(taken.sha512):
            self.known[path] = where
        elif taken.sha512 in first:
            self.doubles.append(f"{path}: the same bytes as {first[taken.sha512]}")
        else:
            first[taken.sha512] = path
            self.new[entry.path] = taken
            return
        self.at.drop(self.names[entry.path])


def file_key(entry: Stat, name: str) -> str:
    """The name of a settled WARC: its version in the source, and its name in the launch."""
    return f"{entry.version}/{name}"


def check_room(root: FileStore, taking: Taking, found: FolderContent) -> None:
    """Unavailable when what has to be copied is more than the disk has room for: better now than after hours."""
    needed = sum(entry.size for entry in found.warcs if _is_copied(root, taking, entry))
    needed += sum(entry.size for _, entry in found.papers)
    disk = os.statvfs(root.base)
    if needed > disk.f_bavail * disk.f_frsize:
        why = f"{needed:,} bytes have to be copied, and {disk.f_bavail * disk.f_frsize:,} are free; make room"
        raise Unavailable(f"the root of imported launches ({root.base})", why)


def _is_copied(root: FileStore, taking: Taking, entry: Stat) -> bool:
    if file_key(entry, taking.names[entry.path]) in taking.settled or taking.looks_known(entry):
        return False
    if not isinstance(taking.source, BareFolder):
        return True
    try:
        status = os.lstat(taking.source.real(entry.path))
    except OSError:
        return True  # reading it will report the error
    return status.st_dev != os.stat(root.base).st_dev or not may_link(status, os.geteuid())
