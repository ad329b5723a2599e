"""The comparison of markers with what is there now: stored files, zips of logs and markers, read again. Reads only.

Steps trust a valid marker. This module trusts only bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from msgspec import Struct

from warcmill import chain, layout
from warcmill.audit import gaps, remedies
from warcmill.audit.survey import Unsound, read_markers
from warcmill.base import digests
from warcmill.base.progress import Advance, Counted
from warcmill.errors import BadInput, Mismatch, NotReady, Unavailable, WarcmillError
from warcmill.formats.logs import logzip
from warcmill.formats.logs.logzip import PackedLog
from warcmill.launches import full_dumps
from warcmill.markers.claim import Evidence
from warcmill.markers.facts.output import PackedLogs
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Key, Launch
from warcmill.stores import Store


class FixityFinding(Struct, frozen=True):
    """Something that differs from its marker. `unavailable`: it could not be read, so its state is unknown."""

    launch: Launch
    name: str
    why: str
    todo: str
    unavailable: bool = False


class FixityPlan(Struct, frozen=True):
    """The files to read again for one launch. `findings` are already known from the markers."""

    launch: Launch
    stored: tuple[tuple[FileRef, Key], ...] = ()  # each with the key of the marker that names it
    zips: tuple[Evidence, ...] = ()
    findings: tuple[FixityFinding, ...] = ()

    @property
    def size(self) -> int:
        """Bytes to read."""
        logs = sum(item.file.size for packed in self.zips for item in packed.claim.items)
        return sum(file.size for file, _ in self.stored) + logs


def work(state: MarkerStore, launch: Launch) -> FixityPlan:
    """The files that the markers of a launch promise. Markers that are not sound are findings."""
    try:
        markers = read_markers(state, launch)
    except WarcmillError as error:
        out = isinstance(error, Unavailable)
        return FixityPlan(launch, findings=(FixityFinding(launch, str(launch), str(error), remedies.DOCTOR, out),))
    sound, packs = markers.sound, chain.by_word(chain.ROWS)["pack"].task
    zips = tuple(evidence for key, evidence in sorted(sound.items()) if key.task == packs)
    findings = [_unsound(launch, name, unsound) for name, unsound in sorted(markers.unsound.items())]
    differ = gaps.left_out(sound)
    findings += [FixityFinding(launch, gap.path, f"{gap.kind}: {gap.why}", remedies.redo(gap.key)) for gap in differ]
    dumps = full_dumps.needed(state, launch, markers.facts)
    stored = (*_stored(sound), *((file, key) for key, files in dumps for file in files))
    return FixityPlan(launch, stored, zips, tuple(findings))


def _stored(sound: dict[Key, Evidence]) -> tuple[tuple[FileRef, Key], ...]:
    """The stored files, by the markers that name them. Where two markers differ on a file, it is compared with both."""
    named: dict[FileRef, Key] = {}
    for key, evidence in sorted(sound.items()):
        if chain.by_task(chain.ROWS)[key.task].stored:
            named |= {file: key for file in evidence.claim.stored if file not in named}
    return tuple(sorted(named.items(), key=lambda entry: entry[0].path))


def _unsound(launch: Launch, name: str, unsound: Unsound) -> FixityFinding:
    path = f"state:{layout.state_folder(launch)}/{name}"
    return FixityFinding(launch, path, f"{unsound.kind} marker: {unsound.why}", remedies.why(launch))


def read_again(state: MarkerStore, store: Store, todo: FixityPlan, advance: Advance) -> Iterator[FixityFinding]:
    """Read everything that a launch's markers promise, and yield what differs.

    `advance` is called with the number of bytes that were read.
    """
    yield from todo.findings
    for file, key in todo.stored:
        check = partial(_compare, store, file, advance)
        yield from _checked(todo.launch, f"store:{file.path}", remedies.redo(key), check)
    for packed in todo.zips:
        path = layout.marker_path(packed.claim.key)
        check = partial(_compare_zip, state, path, packed)
        yield from _checked(todo.launch, f"state:{path}", remedies.redo(packed.claim.key), check)
        advance(sum(item.file.size for item in packed.claim.items))


def _checked(launch: Launch, name: str, remedy: str, check: Callable[[], None]) -> Iterator[FixityFinding]:
    try:
        check()
    except OSError as error:  # the disk fails while it is read
        why = f"cannot be read: {error.strerror or error}"
        yield FixityFinding(launch, name, why, remedies.DOCTOR, unavailable=True)
    except WarcmillError as error:
        todo = remedies.replace_stored(remedy) if isinstance(error, Mismatch) else remedy
        yield _finding(launch, name, todo, error)


def _finding(launch: Launch, name: str, remedy: str, error: WarcmillError) -> FixityFinding:
    why = error.why if isinstance(error, BadInput | NotReady | Unavailable) else str(error)
    if isinstance(error, Unavailable):
        return FixityFinding(launch, name, why, remedies.DOCTOR, unavailable=True)
    return FixityFinding(launch, name, why, remedy)


def _compare(store: Store, file: FileRef, advance: Advance) -> None:
    """Raise Mismatch unless the stored bytes are those that the marker names."""
    with store.open(file.path) as stream:
        size, sha512 = digests.sha512(Counted(stream, advance))
    if size != file.size:
        raise Mismatch("its length in bytes", file.size, size)
    if sha512 != file.sha512:
        raise Mismatch("its sha512", file.sha512, sha512)


def _compare_zip(state: MarkerStore, path: str, marker: Evidence) -> None:
    """Raise BadInput unless the zip holds, byte for byte, the logs that its own claim lists."""
    members = PackedLogs.from_claim(marker.claim).members
    packed = [
        PackedLog(name, file.size, str(file.sha512), crc=0)  # zipfile checks the CRC
        for file, name in members.items()
    ]
    with state.store.open(path) as stream:
        logzip.verify(stream, sorted(packed, key=lambda member: member.name))
