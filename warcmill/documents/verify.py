"""The check of the extracts of a stage against its stored crawl logs, by other code than wrote them. Reads only.

Each line of the logs with a status of 2xx and the type of a document has to have its entry: a document, or a revisit of
one, at its WARC and offset, or by its URL and time where the log names no WARC. The record of a line without one is
read in the store by warcio, and judged by its first bytes: if these are a document's, the check fails; if not, the line
is counted by its reason.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple
from zipfile import BadZipFile, ZipFile

import brotli

from warcmill import layout
from warcmill.errors import BadInput, NotReady, Unsettled, WarcmillError
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.harvest import HARVEST
from warcmill.extracts.stage_extracts import unread
from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawllog import CrawlRecord
from warcmill.formats.text.document import OFFICE_TYPES
from warcmill.launches import holdings, stored_logs
from warcmill.launches.holdings import Holding, HoldingKind
from warcmill.markers.claim import Claim
from warcmill.markers.facts.documents import UnharvestedLine
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import Key, Launch, Stage
from warcmill.stores import Store

if TYPE_CHECKING:
    from warcio.recordloader import ArcWarcRecord

TYPES = OFFICE_TYPES | {"application/pdf", "application/x-pdf"}
MOST_LISTED = 1_000  # lines without an entry
REVISIT = "revisit of a payload that no document of the launch has"
HTML, GZIP, OTHER, EMPTY = "its bytes are HTML", "its bytes are gzip", "its bytes are of another kind", "empty"
REFUSED, VIRAL, ELSEWHERE = "its WARC is refused", "its WARC is viral", "its WARC is of no stage up to this one"
UNNAMED, BAD, UNREADABLE = "the log names no WARC", "bad record", "its record cannot be judged"
_MOST = 64 << 20  # bytes of a body that is judged; a zip shows what it is at its end


class _Typed(NamedTuple):
    """A line with the type of a document."""

    url: str
    date: str
    warc: str
    offset: int


class _Entries:
    """The lines of the extracts that stand for lines of the logs. `wanted`: the payload digests of the revisits among
    them; `payloads`: those that a document of the launch has."""

    def __init__(self, lines: Sequence[_Typed]) -> None:
        self._places = {(one.warc, one.offset): ("", "") for one in lines}
        self._dated = {(one.url, one.date): ("", "") for one in lines}
        self.wanted, self.payloads = set[str](), set[str]()

    def add(self, warc: str, raw: Mapping[str, Any]) -> None:
        """Add a line of the extract of a WARC, if it is one of them."""
        place, dated = (warc, raw["offset"]), (raw["url"], raw["date"])
        if place not in self._places and dated not in self._dated:
            return
        kind = next(kind for kind in ("document", "revisit", "page") if kind in raw)
        payload = raw[kind].get("payload", "")
        if place in self._places:
            self._places[place] = kind, payload
        if dated in self._dated and (kind != "page" or not self._dated[dated][0]):
            self._dated[dated] = kind, payload
        if kind == "revisit":
            self.wanted.add(payload)

    def has(self, line: _Typed) -> bool:
        """True if a line has a document, or a revisit of one."""
        kind, payload = self._of(line)
        return kind == "document" or (kind == "revisit" and payload in self.payloads)

    def why(self, line: _Typed) -> str:
        """The reason why the record of a line is not a document, by what the extracts have; '' if they have nothing."""
        return {"revisit": REVISIT, "page": HTML}.get(self._of(line)[0], "")

    def _of(self, line: _Typed) -> tuple[str, str]:
        at = self._places[line.warc, line.offset]
        return at if at[0] else self._dated[line.url, line.date]


def verify(state: MarkerStore, store: Store, extracts: Extracts, launch: Launch, stage: Stage) -> Claim:
    """The claim of documents.verified.

    NotReady without documents.extracted of this stage and of those before; Unsettled if a document has no entry.
    """
    extracted = state.require(layout.step("documents", launch, stage))
    verified = state.require(layout.step("verify", launch, stage))
    stages = [*earlier(state, launch, stage), stage]
    before = [state.require(layout.step("documents", launch, one)) for one in stages[:-1]]
    lines = list[_Typed]()
    with state.scratch() as folder, stored_logs.opened(store, verified, folder) as logs:
        unread_logs = logs.read_crawl_logs(lambda stream: lines.extend(_typed(stream)))
    held = [holding for one in stages for holding in holdings.of_stage(state, launch, one).holdings]
    entries = _entries(extracts, extracted.claim.key, held, lines)
    reading, reasons = _Judging(store, held), list[UnharvestedLine]()
    faults = list[str]()
    for line in lines:
        if entries.has(line):
            continue
        if why := entries.why(line) or reading.why(line):
            reasons.append(UnharvestedLine(*line, why))
        else:
            faults.append(f"{line.url}, a document at {line.offset} of {line.warc}, is not in its extract")
    if faults:
        raise Unsettled(layout.marker_name(layout.step("verify-documents", launch, stage)), faults)
    listed = [{**one._asdict()} for one in sorted(reasons)[:MOST_LISTED]]
    return Claim(
        layout.step("verify-documents", launch, stage),
        rests_on(extracted, verified, *before),
        counts={"lines": len(lines), "entries": len(lines) - len(reasons)},
        facts={"reasons": dict(Counter(one.why for one in reasons)), "first": [*listed], "unread": [*unread_logs]},
    )


def earlier(state: MarkerStore, launch: Launch, stage: Stage) -> list[Stage]:
    """The stages of a launch before a stage, as far as they are assembled."""
    known = (one for one in sorted(state.stages(launch)) if one < stage)
    return [one for one in known if state.holds(layout.step("assemble", launch, one))]


def _typed(stream: BinaryIO) -> Iterator[_Typed]:
    for line in crawllog.lines(stream):
        if not isinstance(line, CrawlRecord) or not 200 <= (line.status or 0) < 300:
            continue
        if (line.mime or "").partition(";")[0].strip().lower() in TYPES:
            warc = layout.final_name(line.warc_filename or "")
            offset = -1 if line.warc_offset is None else line.warc_offset
            yield _Typed(line.uri, (line.fetched or "")[:14], layout.shown(warc), offset)


def _entries(extracts: Extracts, step: Key, held: Sequence[Holding], lines: Sequence[_Typed]) -> _Entries:
    """The entries that the extracts have at the places of these lines."""
    found = _Entries(lines)
    warcs = [one for one in held if one.is_indexed and lines]
    for holding in warcs:
        for raw in _raw(extracts, step, str(holding.stored.sha512)):
            found.add(layout.shown(layout.final_name(holding.name)), raw)
    for holding in warcs if found.wanted else ():
        for raw in _raw(extracts, step, str(holding.stored.sha512)):
            if "document" in raw and raw["document"]["payload"] in found.wanted:
                found.payloads.add(raw["document"]["payload"])
    return found


def _raw(extracts: Extracts, step: Key, sha512: str) -> Iterator[Mapping[str, Any]]:
    """The lines of an extract, but the first, by Python's own JSON."""
    try:
        for number, line in enumerate(extracts.lines(HARVEST, sha512)):
            if number:
                yield json.loads(line)
    except (BadInput, NotReady) as error:
        raise unread(error, step) from error
    except ValueError as error:
        raise unread(BadInput(HARVEST.path(sha512), f"not JSON Lines: {error}"), step) from error


class _Judging:
    """The records of lines without an entry, in the stored WARCs."""

    def __init__(self, store: Store, held: Sequence[Holding]) -> None:
        self._store = store
        self._by_name = defaultdict[str, list[Holding]](list)
        for holding in held:
            self._by_name[layout.shown(layout.final_name(holding.name))].append(holding)

    def why(self, line: _Typed) -> str:
        """The reason why a line rightly has no entry; '' if its record is a document."""
        if not line.warc or line.offset < 0:
            return UNNAMED
        known = self._by_name.get(line.warc, [])
        holding = next((one for one in known if one.is_indexed), None)
        if holding is None:
            is_viral = any(one.word is HoldingKind.VIRAL for one in known)
            return (VIRAL if is_viral else REFUSED) if known else ELSEWHERE
        with self._store.open(holding.stored.path, line.offset) as stream:
            return _judged(stream, may_be_bad=holding.word is not HoldingKind.WHOLE)


def _judged(stream: BinaryIO, *, may_be_bad: bool) -> str:
    """The reason why the record that a stream begins with is not a document; '' if it is one."""
    from warcio.archiveiterator import ArchiveIterator  # noqa: PLC0415 takes 100 ms

    try:
        record: ArcWarcRecord | None = next(iter(ArchiveIterator(stream)), None)
        if record is None or record.rec_type not in ("response", "resource"):
            return REVISIT if record and record.rec_type == "revisit" else BAD
        body = _body(record)
    except (OSError, WarcmillError):  # the store: an outage says nothing of a record
        raise
    except Exception:  # noqa: BLE001 warcio raises anything at what it cannot read
        return BAD if may_be_bad else UNREADABLE
    return _of_bytes(body)


def _body(record: ArcWarcRecord) -> bytes:
    """The body, its codings undone by warcio; by brotli's own decoder, which warcio does not know in this version."""
    coding = record.http_headers.get_header("Content-Encoding") if record.http_headers else ""
    if (coding or "").strip().lower() != "br":
        return bytes(record.content_stream().read(_MOST))
    record.http_headers.remove_header("Content-Encoding")
    raw = record.content_stream().read(_MOST)
    return bytes(brotli.Decompressor().process(raw, output_buffer_limit=_MOST))


def _of_bytes(body: bytes) -> str:
    """Why a body is not a document; '' if it is."""
    head = body[:1_024].lstrip()
    if not head:
        return EMPTY
    if head.startswith(b"\x1f\x8b"):
        return GZIP
    if head[:1] == b"<":
        return HTML if b"<html" in head.lower() or b"<!doctype html" in head.lower() else OTHER
    if head.startswith(b"PK"):
        return "" if _is_package(body) else OTHER
    is_compound = head.startswith(b"\xd0\xcf\x11\xe0") and any(
        name.encode("utf-16-le") in body for name in ("WordDocument", "Workbook", "PowerPoint Document")
    )
    return "" if is_compound or b"%PDF-" in head or head.startswith(b"{\\rtf") else OTHER


def _is_package(body: bytes) -> bool:
    try:
        names = set(ZipFile(BytesIO(body)).namelist())
    except (BadZipFile, ValueError, NotImplementedError):
        return False
    return "mimetype" in names or any(name.startswith(("word/", "xl/", "ppt/")) for name in names)
