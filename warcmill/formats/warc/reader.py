"""Records one after another, from gzip members or from an uncompressed file, WARC or ARC. Reads its stream only.

A `Reader` returns a record's bytes in order, as many as requested, and knows the raw offset at which the record began.
It keeps only a few pieces in memory.

ARC is the format before WARC: one header line, then the block.

    http://gov.example/ 192.0.2.7 20041019234428 text/html 1234

The last word is the length in bytes, in version 1 (five words) and 2 (ten). There are no digests. A newline separates
two records; files with none or with several exist. A URL may hold any byte that a page's author wrote, even a CR: only
LF ends the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Protocol

from warcmill.base.digests import Readable
from warcmill.errors import BadInput
from warcmill.formats.warc.gzip import MAGIC, PIECE, Members

Match = Callable[[bytes, int], re.Match[bytes] | None]


class Reader(Protocol):
    """The needs of a record format: `begin` a record, take its bytes, `end` it.

    `offset` is the raw offset of the current record, `position` that of the
    first byte after the last record that was ended.
    """

    offset: int
    position: int

    def begin(self) -> bool: ...
    def whole(self) -> bytes: ...
    def end_whole(self) -> None: ...
    def through(self, mark: bytes, limit: int) -> bytes: ...
    def take(self, size: int) -> Iterator[memoryview]: ...
    def skip(self, size: int) -> None: ...
    def expect(self, mark: bytes) -> bool: ...
    def skip_newlines(self, limit: int) -> int: ...
    def starts(self, match: Match, limit: int) -> bool: ...
    def ends(self) -> bool: ...
    def end(self) -> None: ...
    def end_after(self, size: int, mark: bytes) -> bool: ...
    def extent(self, size: int, /) -> int: ...
    def skip_rest(self, most: int, /) -> int | None: ...
    def bad(self, why: str) -> BadInput: ...


class _Pieces:
    """Bytes that arrive in pieces and are taken in portions of any size."""

    def __init__(self, path: str, at: int) -> None:
        self.path = path
        self.offset = at
        self.position = at
        self._piece, self._at = b"", 0

    def _more(self) -> bytes:
        """The next piece of this record's bytes; b"" at its end."""
        raise NotImplementedError

    def bad(self, why: str) -> BadInput:
        """Make the error for the current record."""
        return BadInput(self.path, why, self.offset)

    def whole(self) -> bytes:
        """The whole record at which the reader is, if it is in one piece; else b"". Consumes nothing."""
        return b""

    def end_whole(self) -> None:
        """Consume what `whole` returned, and end the record."""
        raise NotImplementedError

    def through(self, mark: bytes, limit: int) -> bytes:
        """Take all bytes up to and including `mark`; BadInput if it is not within `limit` bytes."""
        if self._at == len(self._piece):
            self._piece, self._at = self._more(), 0
        end = self._piece.find(mark, self._at) + len(mark)
        if end < len(mark):
            end = self._gather(mark, limit)
        if end - self._at > limit:
            raise self.bad(f"the record's header is longer than {limit} bytes")
        taken = self._piece[self._at : end]
        self._at = end
        return taken

    def _gather(self, mark: bytes, limit: int) -> int:
        """Join pieces until `mark` is in them; return where it ends. Searches each byte once."""
        gathered = bytearray(self._piece[self._at :])
        place = -1
        while place < 0:
            if len(gathered) > limit:
                raise self.bad(f"the record's header is longer than {limit} bytes")
            searched = max(0, len(gathered) - len(mark) + 1)
            piece = self._more()
            if not piece:
                raise self.bad(f"the record's header has no end: {bytes(gathered[:20])!r}")
            gathered += piece
            place = gathered.find(mark, searched)
        self._piece, self._at = bytes(gathered), 0
        return place + len(mark)

    def take(self, size: int) -> Iterator[memoryview]:
        """Yield the next `size` bytes in pieces; BadInput if there are fewer."""
        left = size
        while left:
            if not self._ahead():
                raise self.bad(f"the record is cut short: {size} bytes announced, {size - left} there")
            piece = memoryview(self._piece)[self._at : self._at + left]
            self._at += len(piece)
            left -= len(piece)
            yield piece

    def skip(self, size: int) -> None:
        """Skip the next `size` bytes; BadInput if there are fewer."""
        end = self._at + size
        if end <= len(self._piece):
            self._at = end
        else:
            for _ in self.take(size):
                pass

    def skip_newlines(self, limit: int) -> int:
        """Skip at most `limit` CRs and LFs; return how many there were."""
        skipped = 0
        while skipped < limit and self._ahead() and self._piece[self._at] in b"\r\n":
            self._at += 1
            skipped += 1
        return skipped

    def expect(self, mark: bytes) -> bool:
        """Take as many bytes as `mark` has; return whether they are `mark`."""
        if self._piece.startswith(mark, self._at):
            self._at += len(mark)
            return True
        taken = b""
        while len(taken) < len(mark) and self._ahead():
            end = self._at + len(mark) - len(taken)
            taken += self._piece[self._at : end]
            self._at = min(end, len(self._piece))
        return taken == mark

    def end(self) -> None:
        """End the record."""
        raise NotImplementedError

    def extent(self, size: int, /) -> int:
        """The raw bytes of the record that just ended; `size` are its header's and block's.

        The line ends between an uncompressed file's records do not count.
        """
        return size

    def end_after(self, size: int, mark: bytes) -> bool:
        """Skip `size` bytes and `mark`, and end the record. False, and not ended, if `mark` is not there."""
        self.skip(size)
        if not self.expect(mark):
            return False
        self.end()
        return True

    def skip_rest(self, _most: int, /) -> int | None:
        """Go to the end of a record that was refused; return the bytes that were skipped, at most so many.

        None if its end is not known.
        """
        return 0 if self.position > self.offset else None

    def starts(self, match: Match, limit: int) -> bool:
        """True if `match` finds something in the next bytes: at least `limit`, if there are as many. Takes none."""
        if len(self._piece) - self._at < limit:
            parts = [self._piece[self._at :]]
            ahead = len(parts[0])
            while ahead < limit and (piece := self._more()):
                parts.append(piece)
                ahead += len(piece)
            self._piece, self._at = b"".join(parts), 0
        return match(self._piece, self._at) is not None

    def ends(self) -> bool:
        """True if there are no more bytes."""
        return not self._ahead()

    def _ahead(self) -> bool:
        """True if there is another byte."""
        if self._at == len(self._piece):
            self._piece, self._at = self._more(), 0
        return bool(self._piece)


class MemberReader(_Pieces):
    """Reads records that are each one gzip member; `members` counts the whole ones."""

    def __init__(self, stream: Readable, path: str, at: int = 0) -> None:
        super().__init__(path, at)
        self._members = Members(stream, path, at)
        self._more = self._members.read  # type: ignore[method-assign]  # saves a call for every piece

    @property
    def members(self) -> int:
        return self._members.count

    def begin(self) -> bool:
        """Go to the next record; False at the end of the file."""
        members = self._members
        begun = members.begin()
        self.offset = members.offset
        return begun

    def whole(self) -> bytes:
        self._piece, self._at = self._more(), 0
        return self._piece if self._members.whole else b""

    def end_whole(self) -> None:
        self._at = len(self._piece)
        self.position = self._members.position

    def end(self) -> None:
        """End the record; its member must end here, too, with the right CRC and length."""
        members = self._members
        if self._at < len(self._piece) or (not members.whole and self._ahead()):
            rest = self._piece[self._at : self._at + 8]
            second = rest.startswith(b"WARC/")
            why = "a second record in the same gzip member" if second else f"bytes after the record's end: {rest!r}"
            raise self.bad(why)
        self.position = members.position

    def skip_rest(self, most: int, /) -> int | None:
        self._piece, self._at = b"", 0
        skipped = self._members.skip_rest(most)
        if skipped is not None:
            self.position = self._members.position
        return skipped

    def extent(self, _size: int, /) -> int:
        """The raw bytes of its member."""
        return self.position - self.offset

    def end_after(self, size: int, mark: bytes) -> bool:
        """As the base class; faster for a record in one piece, as nearly all are."""
        members, piece, end = self._members, self._piece, self._at + size
        if members.whole and end + len(mark) == len(piece) and piece.startswith(mark, end):
            self._at = len(piece)
            self.position = members.position
            return True
        return super().end_after(size, mark)


class PlainReader(_Pieces):
    """Reads the records of an uncompressed file, end to end."""

    members = 0

    def __init__(self, stream: Readable, path: str, at: int = 0) -> None:
        super().__init__(path, at)
        self._stream = stream
        self._read = at

    def _more(self) -> bytes:
        piece = self._stream.read(PIECE)
        self._read += len(piece)
        return piece

    def begin(self) -> bool:
        """Go to the next record; False at the end of the file."""
        self.offset = self.position
        begun = self._ahead()
        if self.offset == 0 and self._piece.startswith(MAGIC):
            raise self.bad("gzip, under a name that does not end in .gz: rename it")
        return begun

    def end(self) -> None:
        """End the record; the next one may begin at once."""
        self.position = self._read - (len(self._piece) - self._at)


FIRST_OF_ARC = b"filedesc:"
NEWLINES_OF_ARC = 4  # at most so many bytes between two records
HEADER_LIMIT = 1 << 16  # bytes of the header line
ARC_LINE_LIMIT = 1 << 14  # bytes of one that is searched in a damaged file
_ARC_HEADER = re.compile(rb"[^ \n]+ .+ ([0-9]{1,18})\r?\n")
_is_arc_header, may_begin_arc = _ARC_HEADER.fullmatch, _ARC_HEADER.match
# The last address that a date follows: anything like it before belongs to the URL. The type may be missing.
_about_arc = re.compile(rb"([^\n]+) ([^ \n]+) ([0-9]{12,17}) (?:([^ \n]*) )?(?:[^\n]+ )?[0-9]{1,18}\r?\n").fullmatch
_ARC_FIELDS = (b"URL", b"IP-address", b"Archive-date", b"Content-type")
_ARC_LINE = rb"[a-z][a-z0-9+.-]{0,30}:[^\n]{1,8192} [^ \n]{1,64} [0-9]{14} (?:[^\n]{0,512} )?[0-9]{1,18}\r?\n"
at_arc_line = re.compile(_ARC_LINE, re.IGNORECASE).match
find_arc_line = re.compile(rb"\n" + _ARC_LINE, re.IGNORECASE).search


def read_arc_header(reader: Reader) -> tuple[bytes, int]:
    """Read the header of an ARC's current record; return it and the bytes of its block. BadInput if it is invalid."""
    header = reader.through(b"\n", HEADER_LIMIT)
    match = _is_arc_header(header)
    if not match or (header.count(b" ") < 4 and not _about_arc(header)):
        raise reader.bad(f"not the header of an ARC record: {header[:60]!r}")
    return header, int(match[1])


def arc_fields(header: bytes) -> dict[bytes, bytes]:
    """The fields of an ARC's header beside the length: URL, IP-address, Archive-date, Content-type (the server's).

    Empty if they are not there in this order; without Content-type where it is missing.
    """
    match = _about_arc(header)
    return {name: value for name, value in zip(_ARC_FIELDS, match.groups(), strict=True) if value} if match else {}
