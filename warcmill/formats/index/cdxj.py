"""The CDXJ lines of a WARC: one for each capture, made while the gate reads the file. Pure.

    example,gov)/ 20161019234428 {"url": "http://gov.example/", "mime": "text/html", "status": "200",
     "digest": "sha1:3I42…", "length": "2144", "offset": "4620", "filename": ""}

A capture is a response, revisit, resource or metadata record; in an ARC every record but the first. Not captures
are an engine's notes about a capture (metadata of the type `application/warc-fields`), and the DOM and the picture that
a browser made of a page (`urn:dom:`, `urn:view:`): whoever hides the page hides them. The key of a POST or PUT has the
body of its request in it. The request names the capture by WARC-Concurrent-To, or the capture the request; either comes
first. Captures meet their requests as `IndexedCapture`; `of_whole` makes most of them, in one look at a plain record.

`filename` is empty, as the lines follow from the WARC's bytes alone: `named` fills it in.
"""

from __future__ import annotations

import base64
import hashlib
import re
from calendar import monthrange
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from typing import NamedTuple

from warcmill.base import clock
from warcmill.formats.index.request_body import BLOCK_LIMIT, Posted, posted
from warcmill.formats.index.urlkey import urlkey
from warcmill.formats.warc import hearers
from warcmill.formats.warc.header import CONTENT_TYPE, END_OF_RECORD, PAYLOAD_DIGEST, RECORD_ID
from warcmill.formats.warc.hearers import Hearer, Listener, RecordHead, WholeRecord
from warcmill.formats.warc.http import Hash, payload_start
from warcmill.formats.warc.rest import MOST_LISTED, RecordFault

GENERATION = 1  # raise it when keys or fields change after a release: a new one has every WARC read again
NO_URL, NO_DATE, OF_RENDERING = "no URL", "no date", "of a rendered page"
IMPOSSIBLE = "dated on a day that is not in the calendar: taken as the last of that month"
WITH_OFFSET = "dated with an offset from UTC"
RENDERED = DOM, VIEW = "urn:dom:", "urn:view:"
_CAPTURES = frozenset({"response", "revisit", "resource", "metadata", "arc"})
_OF_HTTP = frozenset({"response", "revisit", "arc"})
_CONCURRENT, _TRUNCATED = b"WARC-Concurrent-To", b"WARC-Truncated"
_UNNAMED = b'"filename": ""'
_OFFSET = re.compile(rb'"offset": "(\d+)", "filename": "')
_HEADER_FIRST, _HEADER_LIMIT = 1 << 11, 1 << 20  # bytes in which the HTTP header is looked for
_WAITING = 64  # captures that wait for their request, and requests that wait for their capture
_LONG = 1 << 13  # characters of a URL that waits for nothing: what waits must take little memory
_P = b"P"  # of POST and PUT
_ABOUT_A_CAPTURE = b"application/warc-fields"
_WORD = re.compile(rb"[^;\s]*")


def named(line: bytes, filename: str) -> bytes:
    """A line with the name of its WARC."""
    return line.replace(_UNNAMED, _name(filename), 1)


def all_named(lines: bytes, filename: str) -> bytes:
    """Lines with the name of their WARC. The replaced text can be nowhere else: inside a text, quotes are escaped."""
    return lines.replace(_UNNAMED, _name(filename))


@lru_cache(maxsize=256)
def _name(filename: str) -> bytes:
    """The name as a line has it: made once for all lines of a WARC."""
    return b'"filename": ' + quoted(filename).encode()


def offset(line: bytes) -> int:
    """Where the record of a line begins in its WARC."""
    match = _OFFSET.search(line)
    return int(match[1]) if match else -1


class CdxLines(Hearer):
    """Makes the lines of one WARC, and passes each to `sink`. Call `close` when the gate has read the whole file.

    `captures` counts them by record type, `left_out` counts those without a line, by reason. `odd` lists the first
    captures that have a line and an impossible date, and `odd_records` counts all of them; `offset_dates` counts those
    whose date has an offset from UTC.
    """

    def __init__(self, sink: Callable[[bytes], object]) -> None:
        self.captures: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.odd: list[RecordFault] = []
        self.odd_records = self.offset_dates = 0
        self._sink = sink
        self._waiting: dict[bytes, IndexedCapture] = {}
        self._requests: dict[bytes, _Requested] = {}

    def begin(self, head: RecordHead, /) -> Listener | None:
        """Listen to captures and to requests."""
        kind = head.type
        if kind in _CAPTURES and not is_about_a_capture(head):
            return _Capture(self, head)
        return _Request(self, head) if kind == "request" else None

    def whole(self, record: WholeRecord, /) -> None:
        """Take most records in one look."""
        header = record.header
        kind = header[hearers.TYPE]
        if kind == b"request":
            if not record.data.startswith(_P, header.end()):
                return
        elif kind == b"metadata":
            if (header[hearers.CONTENT_TYPE] or b"").strip() == _ABOUT_A_CAPTURE:
                return
        elif made := of_whole(record):
            self.made(made)
            return
        super().whole(record)

    def close(self) -> None:
        """Pass on the captures that still waited for a request."""
        for made in self._waiting.values():
            self._pass_on(made)
        self._waiting.clear()

    def count_date(self, offset: int, kind: str) -> None:
        """Count a capture whose date is not plain: it has a line all the same."""
        self.offset_dates += kind == WITH_OFFSET
        if kind == IMPOSSIBLE:
            self.odd_records += 1
            if self.odd_records <= MOST_LISTED:
                self.odd.append(RecordFault(offset, kind))

    def made(self, made: IndexedCapture) -> None:
        """Pass a capture on, after its request if it may have one."""
        if made.kind == "resource" and made.url.startswith(RENDERED):
            self.left_out[OF_RENDERING] += 1
            return
        if self._requests:
            names = (made.record_id, *made.concurrent.split())
            requested = next((self._requests[name] for name in names if name in self._requests), None)
            if requested and requested.url == made.url:
                self._pass_on(made, requested.posted)
                return
        if not made.record_id or len(made.url) > _LONG:
            self._pass_on(made)
            return
        if made.record_id in self._waiting:  # some tools give several records one ID
            self._pass_on(self._waiting.pop(made.record_id))
        self._waiting[made.record_id] = made
        if len(self._waiting) > _WAITING:
            self._pass_on(self._waiting.pop(next(iter(self._waiting))))

    def requested(self, requested: _Requested) -> None:
        """Pass on the capture of a POST or PUT; remember the request if its capture is still to come."""
        names = requested.concurrent.split()
        for name in names:
            if name in self._waiting and self._waiting[name].url == requested.url:
                self._pass_on(self._waiting.pop(name), requested.posted)
                return
        if len(requested.url) <= _LONG:
            self._requests |= dict.fromkeys(filter(None, (requested.record_id, *names)), requested)
            while len(self._requests) > 2 * _WAITING:
                del self._requests[next(iter(self._requests))]

    def _pass_on(self, made: IndexedCapture, request: Posted | None = None) -> None:
        self.captures[made.kind] += 1
        if request is None:
            line = f"{urlkey(made.url)} {made.date} {{{made.fields}{made.last}}}\n"
        else:
            more = f', "requestBody": {quoted(request.query)}, "method": "{request.method}"'
            line = f"{urlkey(request.appended_to(made.url))} {made.date} {{{made.fields}{more}{made.last}}}\n"
        self._sink(line.encode("ascii"))


class _Requested(NamedTuple):
    """A POST or PUT that the gate accepted."""

    url: str
    posted: Posted
    record_id: bytes
    concurrent: bytes


class _Capture:
    """Listens to a capture. It keeps the HTTP header, and digests the payload if no digest is declared."""

    __slots__ = ("_begun", "_hash", "_head", "_header", "_http", "_lines", "_url")

    def __init__(self, lines: CdxLines, head: RecordHead) -> None:
        self._lines, self._head = lines, head
        self._url = url_of(head.fields)
        self._http = head.type in _OF_HTTP and self._url[:8].lower().startswith(HTTP)
        self._header, self._begun = b"", not self._http
        declared = head.type == "revisit" or head.fields.get(PAYLOAD_DIGEST) is not None
        self._hash: Hash | None = None if declared else hashlib.sha1(usedforsecurity=False)

    def feed(self, piece: memoryview) -> None:
        if not self._begun:
            piece = self._after_header(piece)
        if self._hash:
            self._hash.update(piece)

    def _after_header(self, piece: memoryview) -> memoryview:
        """Keep the bytes of the HTTP header; return those after it. A header without an end has nothing after it."""
        for room in (_HEADER_FIRST, _HEADER_LIMIT):
            before = len(self._header)
            header = self._header + piece[:room]
            begin = payload_start(header, 0, response=True)
            if begin >= 0:
                self._header, self._begun = header[:begin], True
                return piece[begin - before :]
            if len(piece) <= room:
                break
        self._header, self._begun = header, len(header) >= _HEADER_LIMIT
        return piece[:0]

    def end(self, offset: int, length: int) -> None:
        fields = self._head.fields
        date, kind = _date(_written(fields))
        if not (date and self._url):
            self._lines.left_out[NO_DATE if self._url else NO_URL] += 1
            return
        if kind:
            self._lines.count_date(offset, kind)
        truncated = fields.get(_TRUNCATED) if self._head.type != "revisit" else None  # Heritrix calls each revisit so
        shown = (
            f'"url": {quoted(self._url)}, {self._about()}{digest_shown(self._digest())}'
            f'"length": "{length}", "offset": "{offset}", "filename": ""'
        )
        record_id = fields.get(RECORD_ID, b"").strip() if self._http else b""
        concurrent = fields.get(_CONCURRENT, b"").strip()
        made = IndexedCapture(
            self._head.type, self._url, date, shown, truncated_shown(truncated), record_id, concurrent
        )
        self._lines.made(made)

    def _about(self) -> str:
        if self._head.type in _OF_HTTP:
            return of_http(self._header, is_revisit=self._head.type == "revisit")
        declared = self._head.fields.get(CONTENT_TYPE, b"").strip()
        match = _WORD.match(declared)
        return mime_shown(match[0] if match and declared else None)

    def _digest(self) -> bytes:
        if self._hash:
            return b"sha1:" + base64.b32encode(self._hash.digest())
        return self._head.fields.get(PAYLOAD_DIGEST, b"").strip()


class _Request:
    """Listens to a request. It keeps nothing of one that is neither POST nor PUT."""

    __slots__ = ("_block", "_head", "_lines")

    def __init__(self, lines: CdxLines, head: RecordHead) -> None:
        self._lines, self._head = lines, head
        self._block: bytearray | None = None

    def feed(self, piece: memoryview) -> None:
        if self._block is None:
            self._block = bytearray(piece[:BLOCK_LIMIT] if piece[:1] == _P else b"")
        elif self._block:
            self._block += piece[: BLOCK_LIMIT - len(self._block)]

    def end(self, _offset: int, _length: int) -> None:
        request = posted(bytes(self._block)) if self._block else None
        if request:
            fields = self._head.fields
            record_id, concurrent = fields[RECORD_ID].strip(), fields.get(_CONCURRENT, b"").strip()
            self._lines.requested(_Requested(url_of(fields), request, record_id, concurrent))


def is_about_a_capture(head: RecordHead) -> bool:
    """True if a record is what an engine notes about a capture."""
    return head.type == "metadata" and head.fields.get(CONTENT_TYPE, b"").strip() == _ABOUT_A_CAPTURE


HTTP = ("http://", "https://", "http:", "https:")
_PLAIN_HTTP = (b"http://", b"https://")
_DATE = re.compile(
    rb"(\d{4})(?:-?(0[1-9]|1[0-2])(?:-?(0[1-9]|[12]\d|3[01])"
    rb"(?:T?([01]\d|2[0-3]):?([0-5]\d)(?::?([0-5]\d|60)(?:\.\d+)?)?)?)?)?Z?"
)  # ISO 28500:2017, annex on dates of less precision; ARC has digits alone
_with_offset = re.compile(
    rb"(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?)(?:\.\d+)?([+-]\d\d:?\d\d)"
).fullmatch  # not by the standard, and what many tools write
_LONGEST_DATE = 64
_EARLIEST = (b"01", b"01", b"00", b"00", b"00")
_STATUS = re.compile(rb"(?:HTTP/\S*|ICY) +(\d{3})(?!\S)")
_MIME = re.compile(rb"\ncontent-type[ \t]*:[ \t]*([^;\s]*)", re.IGNORECASE)
_REVISIT = b"warc/revisit"
_WANTED = (hearers.URL, hearers.DATE, hearers.DIGEST, hearers.ORIGINAL, hearers.TRUNCATED, hearers.RECORD_ID)
_REMEMBERED, _LONG_FIELD = 256, 100  # records of one second, type and status follow each other; bytes of a type


class IndexedCapture(NamedTuple):
    """A capture that the gate accepted. Without `record_id` it waits for no request."""

    kind: str
    url: str
    date: str
    fields: str
    last: str
    record_id: bytes
    concurrent: bytes


def of_whole(record: WholeRecord) -> IndexedCapture | None:
    """The capture of a response that declares its digest, or of a revisit. None for others, and for odd ones."""
    data, header = record.data, record.header
    raw, when, digest, original, truncated, record_id = header.group(*_WANTED)
    begin, is_revisit = header.end(), header[hearers.TYPE] == b"revisit"
    if not (raw and raw.startswith(_PLAIN_HTTP) and (digest or is_revisit)):
        return None
    body, (date, kind_of_date) = _body(data, begin), _date(when)
    if body < 0 or kind_of_date:
        return None
    status, mime = _STATUS.match(data, begin, body), None if is_revisit else _MIME.search(data, begin, body)
    url = _decoded(raw.strip()).replace(" ", "%20")
    about = _about(_REVISIT if is_revisit else mime and mime[1], status and status[1])
    declared = f'"digest": "{digest.decode()}", ' if digest else digest_shown((original or b"").strip())
    shown = (
        f'"url": {quoted(url)}, {about}{declared}'
        f'"length": "{record.extent}", "offset": "{record.offset}", "filename": ""'
    )
    kind = "revisit" if is_revisit else "response"
    last = "" if truncated is None else truncated_shown(truncated)
    return IndexedCapture(kind, url, date, shown, last, record_id.strip(), b"")


def _body(data: bytes, begin: int) -> int:
    """Where the HTTP body of a record's block begins; -1 if the block is not such a message, or not clearly one."""
    end = len(data) - len(END_OF_RECORD)
    if begin == end:
        return begin
    body = payload_start(data, begin, response=False) if data.startswith(b"HTTP/", begin) else -1
    return body if body <= end else -1


def _about(mime: bytes | None, status: bytes | None) -> str:
    return _known(mime, status) if mime is None or len(mime) < _LONG_FIELD else _known.__wrapped__(mime, status)


@lru_cache(_REMEMBERED)
def _known(mime: bytes | None, status: bytes | None) -> str:
    return mime_shown(mime) + (f'"status": "{status.decode()}", ' if status else "")


def mime_shown(mime: bytes | None) -> str:
    """The media type as a line has it."""
    return "" if mime is None else f'"mime": {_quoted(mime)}, '


def of_http(header: bytes, *, is_revisit: bool) -> str:
    """Media type and status of an HTTP header, as a line has them."""
    status, mime = _STATUS.match(header), None if is_revisit else _MIME.search(header)
    return _about(_REVISIT if is_revisit else mime and mime[1], status and status[1])


def digest_shown(digest: bytes) -> str:
    """A payload's digest as a line has it."""
    return f'"digest": {_quoted(digest)}, ' if digest else ""


def truncated_shown(truncated: bytes | None) -> str:
    """Why a record is truncated, as the end of a line has it."""
    return "" if truncated is None else f', "truncated": {_quoted(truncated)}'


def url_of(fields: Mapping[bytes, bytes]) -> str:
    """The URL as others write it, without angle brackets and blanks; '' if there is none."""
    raw = (fields.get(b"WARC-Target-URI") or fields.get(b"URL", b"")).strip()
    if raw.startswith(b"<") and raw.endswith(b">"):
        raw = raw[1:-1]
    return _decoded(raw).replace(" ", "%20")


def date_of(fields: Mapping[bytes, bytes]) -> str:
    """The date as 14 digits, the earliest if it is not exact; '' if it is invalid. One that is not in the calendar has
    the last day of its month."""
    return _date(_written(fields))[0]


def has_offset(fields: Mapping[bytes, bytes]) -> bool:
    """True if the date has an offset from UTC: `date_of` converts it."""
    return _date(_written(fields))[1] == WITH_OFFSET


def _written(fields: Mapping[bytes, bytes]) -> bytes:
    return fields.get(b"WARC-Date") or fields.get(b"Archive-date", b"")


def _date(raw: bytes) -> tuple[str, str]:
    """The date as `date_of` has it, and its kind: '' for a plain one, IMPOSSIBLE, WITH_OFFSET or NO_DATE."""
    raw = raw.strip()
    return _digits(raw) if len(raw) <= _LONGEST_DATE else ("", NO_DATE)


@lru_cache(_REMEMBERED)
def _digits(raw: bytes) -> tuple[str, str]:
    match = _DATE.fullmatch(raw)
    if not match:
        date = _in_utc(raw)
        return date, WITH_OFFSET if date else NO_DATE
    year, *rest = match.groups()
    month, day, *time = (part or least for part, least in zip(rest, _EARLIEST, strict=True))
    last = b"%d" % monthrange(int(year), int(month))[1]
    return b"".join((year, month, min(day, last), *time)).decode(), "" if day <= last else IMPOSSIBLE


def _in_utc(raw: bytes) -> str:
    """A date with an offset from UTC, as 14 digits in UTC."""
    match = _with_offset(raw)
    try:
        return clock.digits(datetime.fromisoformat(b"".join(match.groups()).decode()).astimezone(UTC)) if match else ""
    except (ValueError, OverflowError):
        return ""


def _quoted(text: bytes) -> str:
    return quoted(_decoded(text))


def _decoded(text: bytes) -> str:
    """A text of a header: UTF-8, or what is not even that as Latin 1."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text.decode("latin-1")
