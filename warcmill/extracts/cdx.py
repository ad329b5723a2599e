"""The extract of a WARC's CDXJ lines: a first line that counts them, which begins with a blank, then the lines, sorted.

     {"captures": {"response": 249, "revisit": 19}, "left_out": {}}
    dns:docs.example 20261121081736 {"url": "dns:docs.example", …, "offset": "692", "filename": ""}

The first line of a damaged WARC also counts its `bad` records; that of one with impossible dates lists its `odd` ones.
Lines are sorted by their bytes, as `LC_ALL=C sort` does it. `formats.index.cdxj.named` fills in the filename.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Set
from contextlib import closing
from itertools import chain, islice

from msgspec import Struct

from warcmill.base.line_sort import SortedLines
from warcmill.errors import BadInput
from warcmill.extracts import extracts as making
from warcmill.extracts.extracts import ExtractKind, Extracts, Maker
from warcmill.formats.index import cdxj
from warcmill.formats.index.cdxj import CdxLines
from warcmill.formats.warc.rest import RecordFault
from warcmill.model import Json
from warcmill.stores import Store

CDXJ = ExtractKind("cdxj", cdxj.GENERATION, "cdxj.gz")


class CaptureCounts(Struct, frozen=True):
    """The counts of an extract: captures by record type, and those without a line, by reason; and the bad records of
    the WARC, which are not captures. `odd`: the first captures with a line that have an impossible date, of so many.
    `offset_dates`: the captures with a line whose date has an offset from UTC."""

    captures: Mapping[str, int]
    left_out: Mapping[str, int]
    bad: int = 0
    odd: tuple[RecordFault, ...] = ()
    odd_records: int = 0
    offset_dates: int = 0


class CaptureTally(CaptureCounts, frozen=True, kw_only=True):
    """The counts of an extract, how many of its lines are for certain records, and its latest date."""

    found: int
    last: str = ""


class CdxHearer(Maker):
    """Makes the extract of one WARC while the gate reads it. `leave` publishes it, or `close` forgets it."""

    def __init__(self, extracts: Extracts) -> None:
        self._extracts = extracts
        self._sorted = SortedLines(extracts.folder)
        self._lines = CdxLines(self._sorted.add)
        self.begin = self._lines.begin  # type: ignore[method-assign]  # saves a call for every record
        self.whole = self._lines.whole  # type: ignore[method-assign]
        self._bad = 0

    def skipped(self, _offset: int, _why: str, /) -> None:
        """Count a bad record."""
        self._bad += 1

    def leave(self, sha512: str) -> None:
        """Publish the extract of the WARC with this SHA-512."""
        self._lines.close()
        counts: dict[str, Json] = {"captures": dict(self._lines.captures), "left_out": dict(self._lines.left_out)}
        if self._bad:
            counts["bad"] = self._bad
        if self._lines.odd:
            counts["odd"] = [[fault.offset, fault.why] for fault in self._lines.odd]
            counts["odd_records"] = self._lines.odd_records
        counts |= making.dating(self._lines.left_out, self._lines.offset_dates)
        first = f" {json.dumps(counts, sort_keys=True)}\n".encode()
        self._extracts.leave(CDXJ, sha512, chain([first], self._sorted))

    def close(self) -> None:
        """Free what it holds."""
        self._sorted.close()


def counts(extracts: Extracts, sha512: str) -> CaptureCounts:
    """The counts of the extract of a WARC. NotReady if there is none; BadInput if its first line is damaged."""
    return _counts(next(extracts.lines(CDXJ, sha512), b""), sha512)


def tally(extracts: Extracts, sha512: str, offsets: Set[int] = frozenset()) -> CaptureTally:
    """Read an extract to its end, and count its lines for records at these offsets.

    NotReady if there is none; BadInput if it is damaged, or has not the lines that it counts.
    """
    read = extracts.lines(CDXJ, sha512)
    known = _counts(next(read, b""), sha512)
    number = found = 0
    last = b""
    for line in read:
        number += 1
        found += bool(offsets) and cdxj.offset(line) in offsets
        last = max(last, _date(line))
    _check(known, number, sha512)
    counted = known.captures, known.left_out, known.bad, known.odd, known.odd_records, known.offset_dates
    return CaptureTally(*counted, found=found, last=last.decode("ascii", "replace"))


def later(extracts: Extracts, sha512: str, end: str) -> list[int]:
    """The offsets of the captures of a WARC that are dated after a time, 14 digits. Fails as `lines`."""
    after = end.encode()
    return sorted(cdxj.offset(line) for line in lines(extracts, sha512) if _date(line) > after)


def _date(line: bytes) -> bytes:
    """The date of a line, 14 digits."""
    return line.partition(b" ")[2][:14]


def _check(known: CaptureCounts, number: int, sha512: str) -> None:
    if number != sum(known.captures.values()):
        raise BadInput(CDXJ.path(sha512), f"it has {number} lines, and counts {dict(known.captures)}")


def _counts(first: bytes, sha512: str) -> CaptureCounts:
    try:
        document = json.loads(first)
        odd = tuple(RecordFault(offset, why) for offset, why in document.get("odd", ()))
        counted = document["captures"], document["left_out"], document.get("bad", 0)
        offset_dates = making.read_dating(document, CDXJ.path(sha512))
        return CaptureCounts(*counted, odd, document.get("odd_records", len(odd)), offset_dates)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(CDXJ.path(sha512), f"its first line does not count its lines: {first[:80]!r}", 0) from error


def lines(extracts: Extracts, sha512: str) -> Iterator[bytes]:
    """The lines of a WARC, sorted. NotReady if there is no extract; BadInput if it is damaged.

    Both come before the first line, since a line of a damaged one may be anything: the extract is read twice.
    """
    for _ in extracts.read(CDXJ, sha512):
        pass
    yield from islice(extracts.lines(CDXJ, sha512), 1, None)


def batches(extracts: Extracts, sha512: str, name: str, digest: hashlib._Hash | None = None) -> Iterator[list[bytes]]:
    """The lines of a WARC with its name, sorted, many at a time. NotReady if there is no extract.

    BadInput if it is damaged, or has not the lines that it counts, at the latest after the last batch: use none of
    them before. `digest` gets the content.
    """
    known, number, held = None, 0, b""
    for piece in extracts.read(CDXJ, sha512):
        if digest:
            digest.update(piece)
        whole, end, held = (held + piece).rpartition(b"\n")
        batch = cdxj.all_named(whole + end, name).splitlines(keepends=True)
        if batch and known is None:
            known = _counts(batch.pop(0), sha512)
        number += len(batch)
        yield batch
    _check(known or _counts(held, sha512), number + bool(held), sha512)


def make(extracts: Extracts, store: Store, path: str, sha512: str) -> None:
    """Read a stored WARC, and leave its extract.

    NotReady if it is missing, Mismatch if it is no longer as it was verified.
    """
    with closing(CdxHearer(extracts)) as lines:
        making.make(store, path, sha512, lines)
