"""The records of a WARC that stay out of a WACZ, and the WARC without them. Reads only.

`HiddenRecords` finds the records of hidden captures, with their requests and notes; where only some pages are wanted,
also the records of all others. Of a damaged WARC only the records
that are sound or odd are left, as nobody knows which captures bad bytes have.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import BinaryIO, Protocol, TypeVar, cast

from warcmill import layout
from warcmill.errors import Mismatch, NotReady
from warcmill.formats.index import cdxj
from warcmill.formats.index.cdxj import date_of, url_of
from warcmill.formats.index.request_body import BLOCK_LIMIT, posted
from warcmill.formats.index.urlkey import urlkey
from warcmill.formats.wacz import Write
from warcmill.formats.warc.header import END_OF_RECORD
from warcmill.formats.warc.hearers import Hearer, RecordHead, WholeRecord
from warcmill.launches.holdings import Holding
from warcmill.stores import Store
from warcmill.versions import hidden_list

Result = TypeVar("Result")
Range = tuple[int, int]
_offset = re.compile(rb'"offset": "(\d+)"').search
_POSTED = b"__wb_method="  # in keys, as `posted` writes it


def offset_of(line: bytes) -> int:
    """Where the record of an index line begins in its WARC."""
    match = _offset(line)
    assert match, "every line has an offset"
    return int(match[1])


class Cuts:
    """The cuts of a WARC: ranges of its bytes, in order."""

    def __init__(self, ranges: Sequence[Range] = ()) -> None:
        self.ranges = ranges
        self._begins = [begin for begin, _ in ranges]
        self._gone = [0, *accumulate(end - begin for begin, end in ranges)]  # bytes cut out before each range
        self._joints = [begin - gone for begin, gone in zip(self._begins, self._gone, strict=False)]

    def moved(self, offset: int) -> int | None:
        """Where a record is once the ranges are cut out; None for one in them."""
        at = bisect_right(self._begins, offset)
        return None if at and offset < self.ranges[at - 1][1] else offset - self._gone[at]

    def origin(self, offset: int, size: int) -> tuple[int, int]:
        """Where a place of what is left is in the file of this length, and how many bytes are left there at once."""
        at = bisect_right(self._joints, offset)
        end = self._joints[at] if at < len(self._joints) else size - self._gone[-1]
        return offset + self._gone[at], max(0, end - offset)

    def kept(self, piece: bytes, at: int) -> bytes:
        """The rest of a piece of the file that begins at an offset."""
        parts, end = [], at + len(piece)
        for first, last in self.ranges[max(0, bisect_right(self._begins, at) - 1) :]:
            if first >= end:
                break
            parts.append(piece[: max(0, first - at)])
            piece, at = piece[max(0, last - at) :], max(at, last)
        return b"".join([*parts, piece])


class Choice(Protocol):
    """The URLs that a WACZ is of."""

    def has(self, url: str, /) -> bool:
        """True for a page that was chosen, and for a part of one."""
        ...

    def may_be_in(self, warc: str, /) -> bool:
        """False for a WARC that has no record of these."""
        ...

    def meet(self, key: str, /) -> bool:
        """True for the key of a chosen page, of which a capture was met."""
        ...


class HiddenRecords(Hearer):
    """Finds the records of a WARC that are hidden, with the requests and notes that may be of hidden captures; with a
    choice, also those of other URLs. `captures`: of how many captures the records stay."""

    def __init__(self, prefixes: Mapping[bytes, str], choice: Choice | None = None) -> None:
        self._prefixes, self._sorted, self._choice = prefixes, tuple(sorted(prefixes)), choice
        self.captures = 0
        self._begins, self._gone = array("q"), array("q")
        self.met = Counter[str]()

    def begin(self, head: RecordHead, /) -> _Asked | None:
        """Note where a record begins, and judge it by its URL and date; `add_line` judges captures."""
        self._begins.append(head.offset)
        url = url_of(head.fields)
        if url and self._choice and not self._choice.has(url):
            self._gone.append(head.offset)
            return None
        if url and head.type == "request":
            return _Asked(self, head, url)
        if url:
            is_note = head.type == "continuation" or cdxj.is_about_a_capture(head)
            self.judge(head, urlkey(url).encode(), is_note=is_note)
        return None

    def judge(self, head: RecordHead, key: bytes, *, is_note: bool = False) -> None:
        """Leave a record out if its key is hidden; a request, or a note, if its capture may be."""
        line = key + b" " + date_of(head.fields).encode()
        is_timed = head.type == "request" or is_note
        if hidden_list.is_hidden(line, self._sorted) or (is_timed and self._may_be_of_hidden(key, is_note=is_note)):
            self._gone.append(head.offset)

    def _may_be_of_hidden(self, key: bytes, *, is_note: bool) -> bool:
        """True if a capture of this key may be hidden by its time, or, for a note, by what was posted."""
        page = key.partition(b"?")[0]
        for prefix in self._sorted[bisect_left(self._sorted, page) :]:
            if not prefix.startswith(page):
                return False
            if prefix.startswith(key + b" ") or (is_note and prefix.startswith(page + b"?") and _POSTED in prefix):
                return True
        return False

    def add_line(self, line: bytes) -> None:
        """Take a capture's line."""
        if self._choice and not self._choice.has(json.loads(line.split(b" ", 2)[2])["url"]):
            return
        met = set[str]()
        if any(hidden_list.visible([line], self._prefixes, met)):
            self.captures += 1
        else:
            self._gone.append(offset_of(line))
            self.met.update(met)

    def ranges(self, end: int, size: int) -> list[Range]:
        """The ranges to cut out: the records that are hidden, and all that is behind `end`."""
        found = list[Range]()
        for begin in sorted(set(self._gone)):
            at = bisect_right(self._begins, begin)
            last = min(end, self._begins[at]) if at < len(self._begins) else end
            if found and found[-1][1] == begin:
                found[-1] = found[-1][0], last
            else:
                found.append((begin, last))
        return [*found, (end, size)] if end < size else found

    def ranges_but(self, kept: Iterable[Range], size: int) -> list[Range]:
        """The ranges to cut out of a damaged WARC: all but the records that are sound or odd, and not hidden."""
        gone, found, at = set(self._gone), list[Range](), 0
        for begin, end in kept:
            if begin not in gone and begin >= at:
                found += [(at, begin)] if at < begin else []
                at = min(end, size)
        return [*found, (at, size)] if at < size else found


class Extents(Hearer):
    """Hears where the records of a WARC begin and end."""

    def __init__(self) -> None:
        self._begins, self._ends = array("q"), array("q")

    def whole(self, record: WholeRecord, /) -> None:
        """Note most records."""
        self.end(record.offset, record.extent)

    def begin(self, _head: RecordHead, /) -> Extents:
        """Wait for its end: only a sound or an odd record has one."""
        return self

    def feed(self, _piece: memoryview) -> None:
        """Its bytes do not matter."""

    def end(self, offset: int, length: int) -> None:
        """Note it."""
        self._begins.append(offset)
        self._ends.append(offset + length)

    def kept(self, name: str) -> Iterator[Range]:
        """The ranges of the records; in an uncompressed WARC with the line ends after each block."""
        more = 0 if layout.final_name(name).lower().endswith(".gz") else len(END_OF_RECORD)
        return ((begin, end + more) for begin, end in zip(self._begins, self._ends, strict=True))


class _Asked:
    """Listens to a request: what it posts is in the key of its capture."""

    def __init__(self, found: HiddenRecords, head: RecordHead, url: str) -> None:
        self._found, self._head, self._url = found, head, url
        self._block = bytearray()

    def feed(self, piece: memoryview) -> None:
        """The next bytes of the request."""
        self._block += piece[: BLOCK_LIMIT - len(self._block)]

    def end(self, _offset: int, _length: int) -> None:
        """It is whole: judge it."""
        request = posted(bytes(self._block))
        self._found.judge(self._head, urlkey(request.appended_to(self._url) if request else self._url).encode())


class CutWarc:
    """A WARC of the store, written while it is read, without the records that are cut out."""

    def __init__(self, store: Store, holding: Holding, cuts: Cuts, advance: Callable[[int], None]) -> None:
        self.name, self._stored = holding.name, holding.stored
        self._store, self._cuts, self._advance = store, cuts, advance
        self._sha512, self._size = hashlib.sha512(), 0

    def read_with(self, work: Callable[[CutWarc], Result], write: Write | None = None) -> Result:
        """Read the WARC by `work` to its end, and write it; Mismatch if it changed since it was verified."""
        self._write = write
        with self._open() as self._stream:
            result = work(self)
        if self._sha512.hexdigest() != self._stored.sha512:
            raise self._changed("sha512", self._stored.sha512, self._sha512.hexdigest())
        return result

    def read(self, size: int, /) -> bytes:
        """Read the store, and write what was read."""
        while piece := self._stream.read(size):
            at = self._size
            self._size += len(piece)
            if self._size > self._stored.size:
                raise self._changed("length", f"{self._stored.size} bytes", "more")
            self._sha512.update(piece)
            self._advance(len(piece))
            if kept := self._cuts.kept(piece, at) if self._cuts.ranges else piece:
                if self._write:
                    self._write(kept)
                return kept
        return b""

    def again(self) -> BinaryIO:
        """Open what is left of the WARC once more, to be read here and there."""
        file = self._open()
        return cast(BinaryIO, _Left(file, self._cuts, self._stored.size)) if self._cuts.ranges else file

    def _open(self) -> BinaryIO:
        try:
            return self._store.open(self._stored.path)
        except NotReady:
            raise self._changed("length", f"{self._stored.size} bytes", "no file") from None

    def _changed(self, what: str, expected: object, found: object) -> Mismatch:
        return Mismatch(f"store:{self._stored.path} changed since it was verified; {what}", expected, found)


class _Left(io.RawIOBase):
    """A WARC without the ranges that are cut out of it, as a file of its own."""

    def __init__(self, file: BinaryIO, cuts: Cuts, size: int) -> None:
        super().__init__()
        self._file, self._cuts, self._size, self._at = file, cuts, size, 0

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._at = offset + (self._cuts.moved(self._size) or 0 if whence == io.SEEK_END else 0)
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes, at most to the next range that is cut out."""
        place, left = self._cuts.origin(self._at, self._size)
        self._file.seek(place)
        piece = self._file.read(left if size < 0 else min(size, left))
        self._at += len(piece)
        return piece

    def close(self) -> None:
        super().close()
        self._file.close()
