"""The rest of a damaged WARC or ARC: its records from the first fault on, each with a verdict. Reads only.

A record is *sound*; *odd*: readable, and heard, with the reason; or *bad*: not heard. The gate reads a file once, up to
the first bad record; who wants the rest opens the file again, and it is read from there. So a whole file pays nothing.

After a bad record the next one is where the bad one ends, if that is known: a gzip member whose deflate stream ends is
never searched, since a payload may be a WARC. Otherwise the next one is searched: at the next gzip magic, or the next
`WARC/`, in an ARC at the next URL line. A record that was found by a search is odd.

All of it is within limits: of the bytes that are looked at, and of those that members inflate to. Where a limit is
reached, the file is not read further.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from typing import BinaryIO, Protocol

from isal import isal_zlib
from msgspec import Struct, field

from warcmill.errors import BadInput
from warcmill.formats.warc import header as warc
from warcmill.formats.warc.gzip import CHUNK, MAGIC, InflateError
from warcmill.formats.warc.hearers import Hearers
from warcmill.formats.warc.reader import (
    ARC_LINE_LIMIT,
    NEWLINES_OF_ARC,
    MemberReader,
    PlainReader,
    at_arc_line,
    find_arc_line,
    read_arc_header,
)

MOST_LISTED = 1_000  # bad records by offset, and odd ones; more are counted
FOUND_AGAIN = "it was found by a search behind damaged bytes"
NO_NEXT = "no record begins after the bytes that its header announces"
NOT_READ = "the file is not read further: too much of it is damaged"
_LOOKED, _LOOKED_FREE = 8, 64 << 20  # bytes that may be looked at again: times the file's length, and beside that
_INFLATED = 64 << 30  # bytes of bad members that are inflated to find their ends
_AT_ONCE = 1 << 16
_HEADER = 1 << 16  # bytes in which a record's header is looked for
_BEGIN = 1 << 12  # raw bytes of a member that show what it begins with
_CANDIDATE = 1 << 6  # bytes that looking at one costs
_FEW = 1 << 12  # bytes by which an ARC's length may be wrong
_GZIP_HEADER, _TRAILER = 10, 8
_BARE = _GZIP_HEADER + 1  # bytes that show the length of a header without optional fields
_NEAR = 1 << 13  # bytes that are searched first; less than ARC_LINE_LIMIT, so that they are searched again
_FIRST, _LONGER = 1 << 13, 4  # bytes of a piece after a seek; times as many in the next
_DEFLATE = MAGIC + b"\x08"

_VERSION = rb"WARC/(?:1\.[01]|0\.1[78])\r\n[A-Za-z-]+[ \t]*:"
_next_warc = re.compile(_VERSION).search  # also within a line: the end of the record before it may be missing
_next_warc_line = re.compile(rb"\n(?=" + _VERSION + rb")", re.IGNORECASE).search
_is_warc = re.compile(rb"WARC/(?:1\.[01]|0\.1[78])\r\n", re.IGNORECASE).match
_length = re.compile(rb"\r\ncontent-length[ \t]*:[ \t]*([0-9]{1,18})[ \t]*\r\n", re.IGNORECASE).search


class RecordFault(Struct, frozen=True):
    """A record that is bad, or odd: where it begins, or its gzip member, and why."""

    offset: int
    why: str


class Rest(Struct):
    """The records from a file's first fault on. `bad` and `odd` list the first 1,000; no odd one counts as `sound`."""

    bad: list[RecordFault] = field(default_factory=list)
    odd: list[RecordFault] = field(default_factory=list)
    bad_records: int = 0
    odd_records: int = 0
    sound: int = 0


class Examiner(Protocol):
    """The gate's pass over records."""

    def one(self, reader: MemberReader | PlainReader, length: int | None = None) -> str:
        """Examine a record that was begun; return why it is odd, '' if it is sound. BadInput for a bad one.

        `length`: its block's, where its header has another.
        """


class RestOfFile:
    """Reads the rest of one file, which can seek. `heard_by` get its sound and odd records, and what was bad."""

    def __init__(
        self, file: BinaryIO, name: str, examiner: Examiner, heard_by: Hearers | None, *, gzip: bool, is_warc: bool
    ) -> None:
        self.rest = Rest()
        self._file, self._name, self._examiner, self._heard_by = _Window(file), name, examiner, heard_by
        self._gzip, self._is_warc = gzip, is_warc
        self._size = self._file.size
        self._looked = self._inflated = 0
        self._usual = self._file.at(0, _GZIP_HEADER)  # the header that members of this file have

    def read(self, offset: int) -> Rest:
        """Read the file from its first fault on."""
        place: int | None = offset
        searched = False
        while place is not None:
            place, searched = self._records(place, searched=searched)
        return self.rest

    def _records(self, place: int, *, searched: bool) -> tuple[int | None, bool]:
        """Read records up to the first after which the next has to be looked for; return where it is, or None, and
        True if it was searched."""
        reader = self._reader(place)
        while True:
            try:
                if not reader.begin():
                    return None, False
                odd = self._examiner.one(reader)
            except BadInput as bad:
                offset = place if bad.offset is None else bad.offset
                skipped = reader.skip_rest(_INFLATED - self._inflated)
                self._inflated += skipped or 0
                if skipped is None or self._is_chance(reader.position):
                    self._bad(offset, bad.why)
                    return self._after(offset)
                if self._is_odd_arc(offset):
                    self._odd(offset, bad.why)
                else:
                    self._bad(offset, bad.why)
            else:
                if searched and reader.offset == place:
                    odd = f"{odd}; {FOUND_AGAIN}" if odd else FOUND_AGAIN
                if odd:
                    self._odd(reader.offset, odd)
                else:
                    self.rest.sound += 1

    def _is_chance(self, end: int) -> bool:
        """True if an uncompressed WARC's record has its end by chance, within another one, as no record follows."""
        return self._is_warc and not self._gzip and end < self._size and not self._begins(end)

    def _reader(self, place: int) -> MemberReader | PlainReader:
        self._file.seek(place)
        return MemberReader(self._file, self._name, place) if self._gzip else PlainReader(self._file, self._name, place)

    def _bad(self, offset: int, why: str) -> None:
        self.rest.bad_records += 1
        if self.rest.bad_records <= MOST_LISTED:
            self.rest.bad.append(RecordFault(offset, why))
        if self._heard_by:
            self._heard_by.skipped(offset, why)

    def _odd(self, offset: int, why: str) -> None:
        self.rest.odd_records += 1
        if self.rest.odd_records <= MOST_LISTED:
            self.rest.odd.append(RecordFault(offset, why))

    def _is_odd_arc(self, offset: int) -> bool:
        """True if an ARC's record is readable by the end of its gzip member, where its header has a length some bytes
        off. Then it is heard."""
        if self._is_warc or not self._gzip:
            return False
        reader = self._reader(offset)
        try:
            reader.begin()
            total = reader.skip_rest(_INFLATED - self._inflated) or 0
            self._inflated += total
            there = self._length_there(offset, total)
            return there is not None and any(self._is_heard(offset, length) for length in (there - 1, there))
        except BadInput:
            return False

    def _length_there(self, offset: int, total: int) -> int | None:
        """The bytes behind the header of an ARC's record in a member of `total` bytes; None if they are far more or
        fewer than the header says, or have another record in them."""
        reader = self._reader(offset)
        reader.begin()
        header, declared = read_arc_header(reader)
        there = total - len(header)
        if there < 1 or abs(there - declared) > _FEW:
            return None
        if declared < there:
            reader.skip(declared)
            reader.skip_newlines(NEWLINES_OF_ARC)
            if reader.starts(at_arc_line, ARC_LINE_LIMIT):
                return None
        return there

    def _is_heard(self, offset: int, length: int) -> bool:
        """True if an ARC's record is readable with this length; then it was heard."""
        reader = self._reader(offset)
        reader.begin()
        try:
            self._examiner.one(reader, length)
        except BadInput:
            return False
        return True

    def _after(self, offset: int) -> tuple[int | None, bool]:
        """The place behind a bad record, and True if it was searched. None at the end of the file."""
        end = self._deflate_end(offset) if self._gzip else self._length_end(offset)
        if end is not None and (end >= self._size or self._begins(end)):
            return end, False  # otherwise it is not an end: a cut member goes on with the bytes of the next
        return self._search(offset + 1), True

    def _begins(self, place: int) -> bool:
        """True if a record may begin here."""
        if self._gzip:
            return self._file.at(place, len(_DEFLATE)) == _DEFLATE
        if self._is_warc:
            return _is_warc(self._file.at(place, len(b"WARC/0.17\r\n"))) is not None
        return at_arc_line(self._file.at(place, ARC_LINE_LIMIT), 0) is not None

    def _deflate_end(self, offset: int) -> int | None:
        """Where a member ends: its deflate stream, with the CRC and the length after it. None if it does not end."""
        header = _header_size(self._file.at(offset, _BARE)) or _header_size(self._file.at(offset, _HEADER))
        inflater = isal_zlib.decompressobj(-zlib.MAX_WBITS)
        if header is None:
            return None
        self._file.seek(offset + header)
        raw = self._file.read(_AT_ONCE)
        try:
            while raw and not inflater.eof and self._inflated < _INFLATED:
                self._inflated += len(inflater.decompress(raw, CHUNK))
                self._looked += len(raw) - len(inflater.unconsumed_tail)
                if not inflater.eof:
                    raw = inflater.unconsumed_tail or self._file.read(_AT_ONCE)
        except InflateError:
            return None
        return self._file.position - len(inflater.unused_data) + _TRAILER if inflater.eof else None

    def _length_end(self, offset: int) -> int | None:
        """Where an uncompressed record ends by its length; None if it does not end there as records do."""
        head = self._head(offset) if self._is_warc else b""
        declared = _length(head)
        if not _is_warc(head) or not declared:
            return None
        end = offset + len(head) + int(declared[1])
        closed = self._file.at(end, len(warc.END_OF_RECORD)) == warc.END_OF_RECORD
        return end + len(warc.END_OF_RECORD) if closed else None

    def _head(self, place: int) -> bytes:
        """The header of an uncompressed record, with its end; b"" if that is beyond a limit, or behind the begin of
        another record: it was cut."""
        for room in (_FIRST, _HEADER):
            data = self._file.at(place, room)
            another = _next_warc(data, 1)
            most = another.start() if another else len(data)
            end = data.find(warc.END_OF_HEADER, 0, most) + len(warc.END_OF_HEADER)
            if end >= len(warc.END_OF_HEADER):
                self._looked += end
                return data[:end]
            if another:
                break
        self._looked += most
        return b""

    def _search(self, place: int) -> int | None:
        """Where the next record may begin, at this place or behind it. None if nothing is found within limits."""
        find = self._next_member if self._gzip else self._next_line
        at: int | None = place
        room = _NEAR  # most records begin close to each other
        while at is not None and at < self._size:
            if self._looked > _LOOKED * self._size + _LOOKED_FREE or self._inflated >= _INFLATED:
                self._bad(at, NOT_READ)
                return None
            found, again = find(at, room)
            if found is not None:
                return found
            at, room = again, _AT_ONCE
        return None

    def _next_member(self, place: int, room: int) -> tuple[int | None, int | None]:
        """The next member that may have a record, in so many bytes; or where to search on."""
        data = self._file.at(place, room)
        at = data.find(_DEFLATE)
        if at < 0:
            return None, place + len(data) - 2 if len(data) > len(_DEFLATE) else None
        place += at
        self._looked += _CANDIDATE
        begin = self._begin_of(place)
        usual = self._file.at(place, _GZIP_HEADER) == self._usual
        is_record = _is_warc(begin) if self._is_warc else at_arc_line(begin, 0)
        if is_record or (usual and not begin):
            return place, None
        end = self._deflate_end(place) if begin else None  # a member of something else: nothing in it is searched
        return None, place + 1 if end is None else end

    def _begin_of(self, place: int) -> bytes:
        try:
            return zlib.decompressobj(31).decompress(self._file.at(place, _BEGIN), _BEGIN)
        except zlib.error:
            return b""

    def _next_line(self, place: int, room: int) -> tuple[int | None, int | None]:
        """The next line in so many bytes with which an uncompressed record may begin; or where to search on."""
        start = max(0, place - 1)  # with the end of the line before
        data = self._file.at(start, room)
        line = _next_warc_line(data) if self._is_warc else find_arc_line(data)
        begins = [start + line.start() + 1] if line else []
        if self._is_warc and (match := _next_warc(data, place - start)):
            begins.append(start + match.start())
        if not begins:
            if start + len(data) >= self._size:
                return None, None
            return None, max(place + 1, start + len(data) - ARC_LINE_LIMIT)
        found = min(begins)
        self._looked += found - start
        if self._is_warc:
            is_record = _length(self._head(found)) is not None
        else:
            is_record = self._fits(found)
            if not is_record:
                self._bad(found, NO_NEXT)
        return (found, None) if is_record else (None, found + 1)

    def _fits(self, place: int) -> bool:
        """True if the record of an ARC's URL line ends with a newline, or where another begins, or the file ends."""
        line = self._file.at(place, ARC_LINE_LIMIT).partition(b"\n")[0]
        self._looked += len(line)
        end = place + len(line) + 1 + int(line.split()[-1])
        data = self._file.at(end, ARC_LINE_LIMIT)
        return end <= self._size and (data[:1] in b"\r\n" or at_arc_line(data, 0) is not None)


class _Window:
    """A file that is read here and there: it remembers the last bytes, as most places are close to each other.

    After a `seek` the first piece is short, and each further one longer: from a bad record to the next one few bytes
    are read, and to copy many would take longer than to inflate these.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = file.seek(0, 2)
        self._data, self._begin = b"", 0
        self.position, self._most = 0, _FIRST

    def seek(self, place: int) -> None:
        """Go to a place."""
        self.position, self._most = place, _FIRST

    def at(self, place: int, size: int) -> bytes:
        """The bytes at a place, fewer only at the end of the file."""
        parts = list[bytes]()
        before, self.position, self._most = (self.position, self._most), place, size
        while size > 0 and (piece := self.read(size)):
            parts.append(piece)
            size -= len(piece)
        self.position, self._most = before
        return b"".join(parts)

    def read(self, size: int, /) -> bytes:
        """The next bytes, at most `size`."""
        at = self.position - self._begin
        if not 0 <= at < len(self._data):
            kept = self._data[-CHUNK:] if at == len(self._data) else b""
            self._file.seek(self.position)
            self._data, self._begin, at = kept + self._file.read(CHUNK), self.position - len(kept), len(kept)
        piece = self._data[at : at + min(size, self._most)]
        self.position += len(piece)
        self._most *= _LONGER
        return piece


def _header_size(data: bytes) -> int | None:
    """The length of a gzip member's header (RFC 1952, 2.3.1); None if it is damaged."""
    if not data.startswith(_DEFLATE) or len(data) < _GZIP_HEADER:
        return None
    flags, at = data[3], _GZIP_HEADER
    if flags & 4:
        at += 2 + int.from_bytes(data[at : at + 2], "little")
    for flag in (8, 16):
        if flags & flag:
            at = data.find(b"\0", at) + 1 or len(data)
    at += 2 * bool(flags & 2)
    return at if at < len(data) else None


Again = Callable[[], BinaryIO]
"""Opens the file that is examined once more, to read the rest of a damaged one."""
