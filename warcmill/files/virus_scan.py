"""The virus scan of a stage's stored WARCs: clamd gets their payloads. Reads the store only.

clamd gets each payload while the gate reads the WARC; its answers are counted.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from warcmill import layout
from warcmill.base.progress import Progress
from warcmill.clients.clamd import CHUNK, LIMITS, Clamd, ClamdStream, Scans
from warcmill.errors import Mismatch, Unavailable
from warcmill.files import transfer
from warcmill.files.transfer import Tee, place, present, stored
from warcmill.formats.warc import gate
from warcmill.formats.warc.hearers import Hearer, RecordHead
from warcmill.formats.warc.payload import Payload, has_payload
from warcmill.markers.attempts import Attempts, run_items
from warcmill.markers.claim import Claim
from warcmill.markers.facts.files import BAD, Hit, Scanned, is_salvaged
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FileRef, Item, Json, Launch, Outcome, Stage
from warcmill.stores import Store

OVER_STREAM, OVER_FILE = "over StreamMaxLength", "over MaxFileSize"


class ClamdLimits(Struct, frozen=True):
    """clamd's own limits, in bytes: up to both, "OK" means that all of a stream was scanned."""

    stream_max_length: int
    max_file_size: int

    def why_not(self, length: int) -> str:
        """Why "OK" does not mean that a stream of this length is clean; '' when it does."""
        if length > self.stream_max_length:
            return OVER_STREAM
        return OVER_FILE if length > self.max_file_size else ""


class PayloadScan(Hearer):
    """The scan of one WARC. Its counts are valid after `finish`."""

    def __init__(self, scans: Scans, limits: ClamdLimits) -> None:
        self.clean, self.hits = 0, list[Hit]()
        self.not_scanned = Counter[str]()
        self.scans, self.limits = scans, limits
        self._record: _Record | None = None

    def begin(self, head: RecordHead, /) -> _Record | None:
        """Listen to every record that has a payload."""
        self._abandon()
        if not has_payload(head):
            return None
        self.scans.make_room()
        self._record = _Record(self, head)
        return self._record

    def skipped(self, _offset: int, _why: str, /) -> None:
        """Count a bad record as not scanned."""
        self._abandon()
        self.not_scanned[BAD] += 1

    def finish(self) -> None:
        """Wait for all answers. A record that the gate refused is not counted as clean."""
        self._abandon()
        self.scans.finish()
        self.hits.sort()

    def close(self) -> None:
        """Give up whatever was not finished."""
        self._abandon()
        self.scans.close()

    def _abandon(self) -> None:
        if self._record:
            self._record.abandon()
        self._record = None


class _Record:
    """One record: its payload's readings on their way, and what clamd found in each."""

    def __init__(self, scan: PayloadScan, head: RecordHead) -> None:
        self._scan, self._head = scan, head
        self._readings: list[_Reading] = []
        self._ended = False
        self._payload = Payload(head, self._make)

    def _make(self) -> _Reading:
        self._readings.append(_Reading(self._scan))
        return self._readings[-1]

    def feed(self, piece: memoryview) -> None:
        """The next bytes of the block."""
        self._payload.feed(piece)

    def end(self, _offset: int, _length: int) -> None:
        """The record is whole: have its readings scanned."""
        self._payload.close()
        self._drop_equal()
        wanted = self._wanted()
        for reading in wanted:
            reading.end(self._heard)
        self._ended = True
        if not wanted and self._payload.why_not:
            self._count()

    def abandon(self) -> None:
        """The gate refused the record, or an error came up: nobody waits for its readings."""
        for reading in self._readings if not self._ended else ():
            reading.drop()

    def _drop_equal(self) -> None:
        """A body that its server called chunked and sent in one piece is the same bytes in both readings."""
        raw, *others = self._readings
        for reading in others:
            if reading.is_same(raw):
                reading.drop()

    def _wanted(self) -> list[_Reading]:
        return [reading for reading in self._readings if reading.length and not reading.dropped]

    def _heard(self) -> None:
        if all(reading.found is not None for reading in self._wanted()):
            self._count()

    def _count(self) -> None:
        """Count the payload once: as a hit, or as not scanned for the first reason, or as clean."""
        found = [reading.found for reading in self._wanted() if reading.found]
        viruses = [name for name in found if not name.startswith(LIMITS)]
        if viruses:
            self._scan.hits.append(Hit(self._head.offset, _uri(self._head), viruses[0]))
        elif why := next(iter(found), "") or next(self._limits(), "") or self._payload.why_not:
            self._scan.not_scanned[why] += 1
        else:
            self._scan.clean += 1

    def _limits(self) -> Iterator[str]:
        return filter(None, (self._scan.limits.why_not(reading.length) for reading in self._wanted()))


class _Reading:
    """One reading of a payload on its way to clamd. A short one is kept, and sent whole when it ends."""

    def __init__(self, scan: PayloadScan) -> None:
        self.length, self.dropped = 0, False
        self.found: str | None = None  # None: clamd has not answered
        self._scan, self._kept = scan, bytearray()
        self._stream: ClamdStream | None = None

    def write(self, piece: bytes | memoryview) -> None:
        """Take the next bytes. The part over StreamMaxLength is counted, and not sent: clamd would refuse all of it."""
        room = max(0, self._scan.limits.stream_max_length - self.length)
        self.length += len(piece)
        if self._stream:
            self._stream.send(piece[:room])
        else:
            self._kept += piece[:room]
            if len(self._kept) > CHUNK:
                self._begin()

    def drop(self) -> None:
        """Give it up."""
        self.dropped = True
        self._kept.clear()
        if self._stream:
            self._stream.close()

    def is_same(self, other: _Reading) -> bool:
        """True if both are short, and the same bytes; what is kept ends at StreamMaxLength."""
        is_short = not self._stream and not other._stream
        return is_short and self.length == other.length and self._kept == other._kept

    def end(self, heard: Callable[[], None]) -> None:
        """Have it scanned; `heard` is called when `found` is known."""
        stream = self._stream or self._begin()
        stream.end()

        def answered(signature: str) -> None:
            self.found = signature
            heard()

        self._scan.scans.wait_for(stream, answered)

    def _begin(self) -> ClamdStream:
        self._stream = self._scan.scans.clamd.stream()
        self._stream.send(self._kept)
        self._kept.clear()
        return self._stream


def _uri(head: RecordHead) -> str:
    """The address of a record, as text that a claim can have."""
    uri = head.fields.get(b"WARC-Target-URI") or head.fields.get(b"URL") or b""
    return uri.strip().strip(b"<>").decode("utf-8", "backslashreplace")


AT_ONCE = 8  # payloads that wait for clamd's answer; MaxThreads of its own is 10


class ScannedStage(NamedTuple):
    """The claim of files.scanned, and the tools of its run: the versions of engine and database."""

    claim: Claim
    tools: Mapping[str, str]


def scan(
    state: MarkerStore, store: Store, clamd: Clamd, limits: ClamdLimits, launch: Launch, stage: Stage
) -> ScannedStage:
    """Scan a stage. A hit refuses nothing: the claim lists it, and who reads the claim leaves the record out.

    Unsettled when clamd does not answer, or answers with an error, and when a stored file is missing or has changed.
    A WARC that an earlier attempt scanned with the same database is not scanned again.
    """
    key = layout.key("files.VirusScan", launch, stage=stage)
    verified = state.require(layout.key("files.Verify", launch, stage=stage))
    groups = _groups(verified.claim)
    attempts = Attempts(state, key)
    scanning = _Scanning(store, clamd, limits, groups, transfer.progress(attempts, groups))
    items = run_items(attempts, groups, scanning.version, scanning.items)
    claim = Claim(key, rests_on(verified), items=items)
    counts = transfer.counts(items) | _totals(claim)
    return ScannedStage(replace(claim, counts=counts), tools(scanning.versions))


def _groups(verified: Claim) -> dict[FileRef, list[Item]]:
    """The WARCs, by the stored file to read: a WARC that is stored under two names is read once."""
    groups: dict[tuple[FileRef, str | None], list[Item]] = {}
    for item in verified.items:
        if item.file.is_engines:
            groups.setdefault((item.file, stored(item).sha512), []).append(item)
    return {stored(items[0]): items for items in groups.values()}


def tools(versions: list[str]) -> dict[str, str]:
    """Name clamd's versions for a run: `ClamAV 1.4.6/27000/Mon Nov 23 2026`. Several when it was updated meanwhile."""
    parts = [version.partition("/") for version in dict.fromkeys(versions)]
    engines = dict.fromkeys(engine for engine, _, _ in parts)
    databases = dict.fromkeys(database or "none of ClamAV's own" for _, _, database in parts)
    return {"clamd": ", then ".join(engines), "virus database": ", then ".join(databases)} if parts else {}


class _Scanning(Struct):
    store: Store
    clamd: Clamd
    limits: ClamdLimits
    groups: Mapping[FileRef, list[Item]]
    progress: Progress
    versions: list[str] = field(default_factory=list)
    gone: Unavailable | None = None

    def version(self, copy: FileRef) -> str:
        """A text that changes when the stored file does, or clamd's database. Once clamd is gone, it is not asked."""
        if self.gone:
            raise self.gone
        try:
            self.versions.append(self.clamd.version())
        except Unavailable as error:
            self.gone = error
            raise
        return f"{present(self.store, copy).version} {self.versions[-1]}"

    def items(self, copy: FileRef) -> tuple[Item, ...]:
        """Scan a stored WARC; the facts are the same for every name that it is stored under."""
        found = self._scan(copy)
        facts: dict[str, Json] = {
            "clean": found.clean,
            "hits": [hit._asdict() for hit in found.hits],
            "not_scanned": dict(found.not_scanned),
        }
        return tuple(_item(item, facts) for item in self.groups[copy])

    def _is_whole(self, copy: FileRef) -> bool:
        """True if the gate accepted a WARC. Where it refused one, it must find the same fault again."""
        return all(item.outcome is Outcome.OK for item in self.groups[copy])

    def _scan(self, copy: FileRef) -> PayloadScan:
        sha512 = hashlib.sha512()
        scans = Scans(self.clamd, AT_ONCE)
        with closing(PayloadScan(scans, self.limits)) as found, self.store.open(copy.path) as stream:
            tee = Tee(stream, copy, self.progress, sha512.update)
            again = partial(self.store.open, copy.path)
            verdict = gate.examine(tee, copy.name, hearers=[found], proven=self._is_whole(copy), again=again)
            for failure in verdict.unheard:
                raise failure.error
            found.finish()
        if sha512.hexdigest() != copy.sha512:
            raise Mismatch(f"sha512 of {place(copy)}, read to be scanned", copy.sha512, sha512.hexdigest())
        return found


def _item(item: Item, facts: Mapping[str, Json]) -> Item:
    salvaged: dict[str, Json] = {"salvaged": True} if is_salvaged(item) else {}
    return Item(item.file, item.outcome, item.made, item.why, item.offset, {**salvaged, **facts})


def _totals(claim: Claim) -> dict[str, Json]:
    """The payloads of the stage. A salvaged WARC is not counted: the file it was salvaged from has all its records."""
    files = Scanned.from_claim(claim).files
    ours = [files[stored(item)] for item in claim.items if not is_salvaged(item)]
    return {
        "clean": sum(file.clean for file in ours),
        "hits": sum(len(file.hits) for file in ours),
        "not_scanned": sum(sum(file.not_scanned.values()) for file in ours),
    }
