"""Hearers, which get a WARC's bytes while the gate reads them: no second pass is needed. Pure.

A hearer is made for one file. It gets records, raw bytes, or both:

    class Titles(Hearer):
        def begin(self, head: RecordHead) -> Listener | None:
            return Page(self) if head.type == "response" else None

Its result is valid after `examine` has returned, unless the verdict's `unheard` names it. It cannot change the verdict
or what others get: a hearer that raises is dropped, and its error is in `unheard`.

Most records of a crawl are *plain*: `match`, one regular expression, accepts a header that is whole in one piece and
written as Heritrix writes it. It takes only records that `header` and `checks` would accept without a warning:
each field at most once, in Heritrix's order, in the standard's spelling, on one line; and no digest covers the record's
own bytes (a revisit's payload is in another record), or it is a payload's SHA-1 that matches the HTTP body as
transferred. It may miss sound records, which then take the slow way. It must accept no others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from warcmill.base.digests import Readable
from warcmill.errors import describe
from warcmill.formats.warc import header as warc
from warcmill.formats.warc import http
from warcmill.formats.warc.header import END_OF_RECORD, LENGTH_DIGITS
from warcmill.formats.warc.reader import FIRST_OF_ARC, arc_fields


class Listener(Protocol):
    """Gets one record."""

    def feed(self, piece: memoryview) -> None:
        """The next bytes of the record's block, in order."""

    def end(self, offset: int, length: int) -> None:
        """The gate accepted the record; never called for a refused one.

        `offset` is where it, or its gzip member, begins in the file, `length` its bytes there; in an
        uncompressed file without the line ends after its block.
        """


class Hearer:
    """Gets one file. Inherit it, and override what you need."""

    def begin(self, _head: RecordHead, /) -> Listener | None:
        """Return a listener for the record that begins, or None."""
        return None

    def whole(self, record: WholeRecord, /) -> None:
        """Get a whole record that the gate accepted, as most are. Override it only where `begin` takes too long."""
        head = record.head()
        listener = self.begin(head)
        if listener is None:
            return
        if head.length:
            begin = record.header.end()
            listener.feed(memoryview(record.data)[begin : begin + head.length])
        listener.end(record.offset, record.extent)

    def raw(self, _piece: bytes, /) -> None:
        """The next raw bytes of the file, in order and to its end, also after a refused record."""
        return

    def skipped(self, _offset: int, _why: str, /) -> None:
        """A record of the file is bad, and was not heard; called only where the gate reads on behind it."""
        return


class RecordHead(NamedTuple):  # cheap to make: one for every record
    """The head of a record that the gate has not judged yet.

    `offset` is where the record, or its gzip member, begins in the file;
    `length` is its block's, in bytes. `type` is the WARC-Type in lower
    case; in an ARC it is "filedesc" for the first record, else "arc". `fields`
    are named as `header.parse_header` or `reader.arc_fields` names them; a value may
    have blanks around it.
    """

    offset: int
    type: str
    fields: Mapping[bytes, bytes]
    length: int


class WholeRecord(NamedTuple):
    """A plain record, in one piece: all of its bytes; its header, matched; its place in the file."""

    data: bytes
    header: re.Match[bytes]
    offset: int
    extent: int

    def head(self) -> RecordHead:
        """Its head, as other records have one."""
        begin, kind = self.header.end(), self.header[TYPE].decode("ascii")
        length = len(self.data) - begin - len(END_OF_RECORD)
        return RecordHead(self.offset, kind, _PlainFields(self.data[:begin]), length)


def _optional(*names: str) -> str:
    return "".join(rf"(?:{name}: .*\r\n|)" for name in names)


_NO_DIGEST = _optional("WARC-IP-Address", "WARC-Concurrent-To")
_REVISIT = _optional("WARC-Profile", "WARC-Truncated", "WARC-Refers-To") + (
    r"(?:WARC-Payload-Digest: (?P<original>.*)\r\n|)"
    + _optional("WARC-Refers-To-Date", "WARC-Refers-To-Target-URI", "WARC-Etag", "WARC-Last-Modified")
)
_WITH_DIGEST = (
    r"(?:WARC-Truncated: (?P<truncated>.*)\r\n|)"
    rf"WARC-Payload-Digest: (?P<digest>sha1:[A-Z2-7]{{32}})\r\n{_optional('WARC-IP-Address')}"
    r"(?=WARC-Record-ID: .*\r\nContent-Type: application/http)"
)
_OF_TYPE = rf"(?(response)(?:{_WITH_DIGEST}|{_NO_DIGEST})|(?(revisit){_REVISIT}|{_NO_DIGEST}))"
_HEADER = (
    r"WARC/1\.[01]\r\nWARC-Type: (?P<type>request|metadata|resource|(?P<response>response)|(?P<revisit>revisit))\r\n"
    rf"(?:WARC-Target-URI: (?P<url>.*)\r\n|)WARC-Date: (?P<date>\S.*)\r\n{_OF_TYPE}"
    r"WARC-Record-ID: (?P<id>\S.*)\r\n(?:Content-Type: (?P<content_type>.*)\r\n|)"
    rf"Content-Length: (?P<length>\d{{1,{LENGTH_DIGITS}}})\r\n\r\n"
)
_PATTERN = re.compile(_HEADER.encode())
_match_header = _PATTERN.match
# Groups of a match, by number: by name they take twice as long. `original` is the digest of a revisit's payload,
# which is in another record; `digest` matches the payload of this one.
TYPE, URL, DATE, ORIGINAL, TRUNCATED, DIGEST, RECORD_ID, CONTENT_TYPE, LENGTH = (
    _PATTERN.groupindex[name]
    for name in ("type", "url", "date", "original", "truncated", "digest", "id", "content_type", "length")
)


def match(record: bytes, *, proven: bool = False) -> re.Match[bytes] | None:
    """Match the header of a plain record, up to the begin of its block; None for any other record.

    `proven`: the digest is known to match the payload.
    """
    header = _match_header(record)
    if header is None:
        return None
    declared, length = header.group(DIGEST, LENGTH)
    begin = header.end()
    whole = begin + int(length) + len(END_OF_RECORD) == len(record) and record.endswith(END_OF_RECORD)
    if not whole or record.find(0, 0, begin) >= 0:
        return None
    return header if proven or declared is None or _fits(declared, record, begin) else None


def _fits(declared: bytes, record: bytes, begin: int) -> bool:
    """True if this is the digest of the HTTP body, as transferred, of the block at `begin`."""
    if not record.startswith(b"HTTP/", begin):
        return False
    body = http.payload_start(record, begin, response=False)
    end = len(record) - len(END_OF_RECORD)
    expected = http.parse(declared)
    if expected is None or not begin <= body <= end:
        return False
    actual = expected.new()
    actual.update(memoryview(record)[body:end])
    return actual.digest() == expected.value


_PLAIN_FIELDS = re.compile(rb"([^\r\n:]+): (.*)\r\n").findall
_STANDARD = warc.STANDARD
_NOT_STANDARD = frozenset({b"WARC-Etag", b"WARC-Last-Modified"})  # which `header` writes in lower case


class _PlainFields(Mapping[bytes, bytes]):
    """The fields of a plain record's header: each once, on a line of its own. Read when first asked for."""

    __slots__ = ("_fields", "_header")

    def __init__(self, header: bytes) -> None:
        self._header = header
        self._fields: dict[bytes, bytes] | None = None

    def _read(self) -> dict[bytes, bytes]:
        if self._fields is None:
            self._fields = fields = dict(_PLAIN_FIELDS(self._header))
            for name in _NOT_STANDARD.intersection(fields):
                fields[name.lower()] = fields.pop(name)
        return self._fields

    def __getitem__(self, name: bytes) -> bytes:
        return self._read()[name]

    def get(self, name: bytes, default: Any = None) -> Any:  # two thirds of the time, as a hearer asks for a few
        """The value of a field."""
        if self._fields is None and name in _STANDARD:
            header = self._header
            begin = header.find(b"\n%s: " % name) + len(name) + 3
            return header[begin : header.index(b"\r\n", begin)] if begin > len(name) + 2 else default
        return self._read().get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self._read()

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())


def warc_head(fields: warc.Fields, length: int, offset: int) -> RecordHead:
    """Make the head of a WARC record."""
    kind = fields[warc.TYPE].strip().lower().decode("ascii", "replace")
    return RecordHead(offset, kind, MappingProxyType(fields), length)


def arc_head(header: bytes, length: int, offset: int) -> RecordHead:
    """Make the head of an ARC record."""
    kind = "filedesc" if header.startswith(FIRST_OF_ARC) else "arc"
    return RecordHead(offset, kind, MappingProxyType(arc_fields(header)), length)


class Unheard(Struct, frozen=True):
    """A hearer that failed, and its error."""

    hearer: Hearer
    error: Exception

    @property
    def why(self) -> str:
        """The error in one line."""
        return describe(self.error)


class Hearers:
    """The hearers of one file; `unheard` are those that failed."""

    def __init__(self, hearers: Sequence[Hearer]) -> None:
        self.unheard: list[Unheard] = []
        self.size = 0  # bytes of the current record's header and block
        self._hearers = list(hearers)
        self._listeners: list[tuple[Hearer, Listener]] = []

    # Each method has the same `try`, as a call more for each would cost a tenth of the gate's time on small records.

    def raw(self, piece: bytes) -> None:
        """Pass on raw bytes of the file."""
        for hearer in self._hearers:
            try:
                hearer.raw(piece)
            except Exception as error:  # noqa: BLE001 - any error is the hearer's own, and is in the verdict
                self._drop(hearer, error)

    def skipped(self, offset: int, why: str) -> None:
        """Report a record as bad."""
        for hearer in self._hearers:
            try:
                hearer.skipped(offset, why)
            except Exception as error:  # noqa: BLE001 - as above
                self._drop(hearer, error)

    def begin(self, head: RecordHead, header: int) -> bool:
        """Begin a record, with a header of `header` bytes; return whether anybody listens to it."""
        self.size = header + head.length
        listeners = []
        for hearer in self._hearers:
            try:
                listener = hearer.begin(head)
            except Exception as error:  # noqa: BLE001 - as above
                self._drop(hearer, error)
            else:
                if listener is not None:
                    listeners.append((hearer, listener))
        self._listeners = listeners
        return bool(listeners)

    def whole(self, record: WholeRecord) -> None:
        """Pass on a whole record that was accepted."""
        self._listeners = []
        for hearer in self._hearers:
            try:
                hearer.whole(record)
            except Exception as error:  # noqa: BLE001 - as above
                self._drop(hearer, error)

    def feed(self, piece: memoryview) -> None:
        """Pass on bytes of the record's block. Each listener gets its own view, to keep or to release."""
        for hearer, listener in self._listeners:
            try:
                listener.feed(memoryview(piece))
            except Exception as error:  # noqa: BLE001 - as above
                self._drop(hearer, error)

    def end(self, offset: int, length: int) -> None:
        """Report the record as accepted."""
        for hearer, listener in self._listeners:
            try:
                listener.end(offset, length)
            except Exception as error:  # noqa: BLE001 - as above
                self._drop(hearer, error)

    def _drop(self, hearer: Hearer, error: Exception) -> None:
        """Call a hearer no more. The lists are new ones: a loop may be going over the old."""
        self.unheard.append(Unheard(hearer, error))
        self._hearers = [other for other in self._hearers if other is not hearer]
        self._listeners = [pair for pair in self._listeners if pair[0] is not hearer]


class HeardStream:
    """A stream that passes its raw bytes on to hearers."""

    def __init__(self, stream: Readable, heard_by: Hearers) -> None:
        self._stream, self._heard_by = stream, heard_by

    def read(self, size: int, /) -> bytes:
        """Read the next bytes, at most `size`."""
        data = self._stream.read(size)
        if data:
            self._heard_by.raw(data)
        return data
