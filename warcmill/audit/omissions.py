"""Gaps between the markers and the places they speak of: the store, the catalogue, the launches of a scan. Reads only.

By names and lengths; no file is read. A marker calls a file stored that the store lacks; a SIP is in the store that
no 05 names; an 08 stands for a SIP that the catalogue lacks or has otherwise. Launches that ended, and checkpoints
taken, after the scans of one run began are kept apart: those could not see them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from warcmill import chain, layout
from warcmill.audit import findings, remedies
from warcmill.audit.gaps import Gap
from warcmill.audit.survey import Survey
from warcmill.errors import Unavailable, WarcmillError
from warcmill.launches import full_dumps
from warcmill.launches.roots import RootMap
from warcmill.launches.view import LaunchView
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Key, Launch, Stage
from warcmill.stores import Store

KINDS = ("warcs", "viral", "logs", "sips")
Catalogued = Callable[[Launch], Mapping[str, tuple[str, str]]]
"""The SIPs of a launch in the catalogue: by stage, the state and the digest of the claim of 05."""
_LATER = {"packaged": ("verify-sip", "submit"), "submitted": ("verify-sip",)}  # steps that come after a state
_REBUILD = "warcmill catalogue rebuild"


def listed(store: Store, launch: Launch) -> dict[str, int]:
    """The files of a launch in the store: path to length in bytes. Unavailable when the store does not answer."""
    folders = (f"{kind}/{launch.job}/{launch.id}" for kind in KINDS)
    return {entry.path: entry.size for folder in folders for entry in store.list(folder) if entry.kind == "file"}


def missing(seen: Survey, in_store: dict[str, int]) -> tuple[Gap, ...]:
    """A gap for every file that a marker calls stored and that is not in the store, or has another length there.

    `in_store` is what `listed` returns.
    """
    return tuple(gap for stage in seen.stages for gap in _of_stage(seen, stage, in_store))


def _of_stage(seen: Survey, stage: Stage, in_store: dict[str, int]) -> Iterator[Gap]:
    sips = (row for row in chain.of_stage(chain.ROWS) if row.by_sip and row.stored)
    for step in (*chain.storing(chain.ROWS), *sips):
        key = seen.key(step.word, stage)
        marker = seen.markers.get(key)
        for file in marker.claim.stored if marker else ():
            if in_store.get(file.path) != file.size:
                redo = remedies.redo(key)
                todo = remedies.replace_stored(redo) if file.path in in_store else redo
                yield Gap(seen.launch, str(stage), "lost", file.path, _why(file, in_store), todo)


def lost_dumps(state: MarkerStore, seen: Survey, store: Store) -> tuple[Gap, ...]:
    """A gap for every dump of a package index of which the store lacks files, or has some of another length."""
    dumps = full_dumps.needed(state, seen.launch, seen.facts)
    return tuple(gap for key, files in dumps for gap in _of_dump(seen, key, files, store))


def _of_dump(seen: Survey, key: Key, files: Iterable[FileRef], store: Store) -> Iterator[Gap]:
    """One gap for all of its files: with `dumps/` away they are hundreds."""
    there = {
        entry.path: entry.size
        for folder in sorted({file.path.rpartition("/")[0] for file in files})
        for entry in store.list(folder)
    }
    lost = [file for file in files if there.get(file.path) != file.size]
    if not lost:
        return
    redo, more = remedies.redo(key), f"; of this dump {len(lost)} files are lost" if lost[1:] else ""
    todo = remedies.replace_stored(redo) if any(file.path in there for file in lost) else redo
    yield Gap(seen.launch, "", "lost", lost[0].path, _why(lost[0], there) + more, todo)


def _why(file: FileRef, in_store: dict[str, int]) -> str:
    size = in_store.get(file.path)
    now = "it is not there" if size is None else f"it has {size}"
    return f"it was stored with {file.size} bytes, and {now}"


def unclaimed(seen: Survey, in_store: Iterable[str]) -> tuple[Gap, ...]:
    """A gap for every SIP in the store that no 05 names. `in_store`: the paths of the launch's files in the store."""
    return tuple(
        Gap(seen.launch, str(sip.stage or ""), sip.kind, sip.name, sip.why, _claim(seen, sip.redo))
        for sip in findings.unclaimed_sips(seen, in_store)
    )


def _claim(seen: Survey, build: Key | None) -> str:
    """Have a 05 name the SIP."""
    if build is None:
        return "look at it, and move it away by hand"
    return remedies.redo(build) if build in seen.facts else remedies.step(build)


def uncatalogued(seen: Survey, catalogued: Catalogued) -> tuple[Gap, ...]:
    """A gap for every SIP whose 08 the catalogue does not bear out. One that cannot be read bears out none."""
    stages = [stage for stage in seen.stages if seen.marker("catalogue", stage)]
    if not stages:
        return ()
    try:
        sips = catalogued(seen.launch)
    except Unavailable:
        raise
    except WarcmillError as error:
        return tuple(_uncatalogued(seen, stage, str(error)) for stage in stages)
    return tuple(gap for stage in stages for gap in _of_sip(seen, stage, sips))


def _of_sip(seen: Survey, stage: Stage, sips: Mapping[str, tuple[str, str]]) -> Iterator[Gap]:
    built = seen.marker("package", stage)
    state, claim = sips.get(str(stage), ("", ""))
    if not state:
        yield _uncatalogued(seen, stage, "the catalogue has no such SIP")
    elif built and claim != built.digest:
        yield _uncatalogued(seen, stage, "the catalogue has another SIP of this stage than there is now")
    elif later := next((word for word in _LATER.get(state, ()) if seen.marker(word, stage)), ""):
        yield _uncatalogued(seen, stage, f"the catalogue has it as {state}, and {later} is done since")


def _uncatalogued(seen: Survey, stage: Stage, why: str) -> Gap:
    return Gap(
        seen.launch, str(stage), "not catalogued", layout.marker_name(seen.key("catalogue", stage)), why, _REBUILD
    )


class ScanStart(Struct, frozen=True):
    """The work there was when the scans began: launches that had ended, and sealed stages of running ones."""

    ended: frozenset[Launch]
    sealed: frozenset[tuple[Launch, Stage]]


def look(state: MarkerStore, rootmap: RootMap, launches: Iterable[Launch]) -> ScanStart:
    """The work that scans have now. A launch that cannot be read counts as ended, so that its gaps are reported."""
    ended: set[Launch] = set()
    sealed: set[tuple[Launch, Stage]] = set()
    for launch in launches:
        try:
            stages = _sealed_while_running(state, rootmap, launch)
        except WarcmillError:
            stages = None
        if stages is None:
            ended.add(launch)
        else:
            sealed |= {(launch, stage) for stage in stages}
    return ScanStart(frozenset(ended), frozenset(sealed))


def _sealed_while_running(state: MarkerStore, rootmap: RootMap, launch: Launch) -> list[Stage] | None:
    """The sealed stages of a running launch; None when it has ended."""
    view = LaunchView(state, launch, rootmap.of)
    return None if view.is_processed or view.ended else view.sealed


def split(seen: Survey, gaps: Iterable[Gap], before: ScanStart) -> tuple[tuple[Gap, ...], tuple[Gap, ...]]:
    """The gaps of a launch, and apart from them those of steps that no scan could try yet."""
    parts: dict[bool, list[Gap]] = {False: [], True: []}
    for gap in gaps:
        parts[_is_unscanned(seen, gap, before)].append(gap)
    return tuple(parts[False]), tuple(parts[True])


def _is_unscanned(seen: Survey, gap: Gap, before: ScanStart) -> bool:
    key = layout.parse_marker_name(gap.name) if gap.kind == "lacking" else None
    if key is None or seen.attempts.get(key) or seen.launch in before.ended:
        return False
    if not chain.by_task(chain.ROWS)[key.task].scan:
        return False  # an operator's: no scan will publish it
    stage = Stage.parse(gap.stage) if gap.stage else None
    return stage is None or stage.is_final or (seen.launch, stage) not in before.sealed
