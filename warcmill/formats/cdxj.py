"""The CDXJ lines of a WARC: one for each capture, made while the gate reads the file.

    example,gov)/ 20161019234428 {"url": "http://gov.example/", "mime": "text/html", "status": "200",
     "digest": "sha1:3I42…", "length": "2144", "offset": "4620", "filename": ""}

A capture is a response, revisit, resource or metadata record; in an ARC every record but the first. What an engine
notes about a capture (metadata of the type `application/warc-fields`) is none. The key of a POST or PUT has the body of
its request in it. The request names the capture by WARC-Concurrent-To, or the capture the request; either comes first.

`filename` is empty, as the lines follow from the WARC's bytes alone: `named` fills it in.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from typing import NamedTuple

from warcmill.formats.cdxj_fields import (
    HTTP,
    Made,
    date_of,
    digest_shown,
    mime_shown,
    of_http,
    of_whole,
    truncated_shown,
    url_of,
)
from warcmill.formats.posted import BLOCK_LIMIT, Posted, posted
from warcmill.formats.urlkey import urlkey
from warcmill.formats.warc import plain
from warcmill.formats.warc.digest import Hash
from warcmill.formats.warc.header import CONTENT_TYPE, PAYLOAD_DIGEST, RECORD_ID
from warcmill.formats.warc.hearers import Head, Hearer, Listener, WholeRecord
from warcmill.formats.warc.http import payload_start

GENERATION = 1  # raise it when keys or fields change after a release: a new one has every WARC read again
NO_URL, NO_DATE = "no URL", "no date"
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
    """Lines with the name of their WARC. What is replaced can be nowhere else: inside a text, quotes are escaped."""
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

    `captures` counts them by record type, `left_out` counts those without a line, by reason.
    """

    def __init__(self, sink: Callable[[bytes], object]) -> None:
        self.captures: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self._sink = sink
        self._waiting: dict[bytes, Made] = {}
        self._requests: dict[bytes, _Requested] = {}

    def begin(self, head: Head, /) -> Listener | None:
        """Listen to captures and to requests."""
        kind = head.type
        if kind in _CAPTURES and not is_about_a_capture(head):
            return _Capture(self, head)
        return _Request(self, head) if kind == "request" else None

    def whole(self, record: WholeRecord, /) -> None:
        """Take most records in one look."""
        header = record.header
        kind = header[plain.TYPE]
        if kind == b"request":
            if not record.data.startswith(_P, header.end()):
                return
        elif kind == b"metadata":
            if (header[plain.CONTENT_TYPE] or b"").strip() == _ABOUT_A_CAPTURE:
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

    def made(self, made: Made) -> None:
        """Pass a capture on, after its request if it may have one."""
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

    def _pass_on(self, made: Made, request: Posted | None = None) -> None:
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

    def __init__(self, lines: CdxLines, head: Head) -> None:
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
        date = date_of(self._head.fields)
        if not (date and self._url):
            self._lines.left_out[NO_DATE if self._url else NO_URL] += 1
            return
        fields = self._head.fields
        truncated = fields.get(_TRUNCATED) if self._head.type != "revisit" else None  # Heritrix calls each revisit so
        shown = (
            f'"url": {quoted(self._url)}, {self._about()}{digest_shown(self._digest())}'
            f'"length": "{length}", "offset": "{offset}", "filename": ""'
        )
        record_id = fields.get(RECORD_ID, b"").strip() if self._http else b""
        concurrent = fields.get(_CONCURRENT, b"").strip()
        made = Made(self._head.type, self._url, date, shown, truncated_shown(truncated), record_id, concurrent)
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
    """Listens to a request. It keeps nothing of one that is no POST and no PUT."""

    __slots__ = ("_block", "_head", "_lines")

    def __init__(self, lines: CdxLines, head: Head) -> None:
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


def is_about_a_capture(head: Head) -> bool:
    """True if a record is what an engine notes about a capture."""
    return head.type == "metadata" and head.fields.get(CONTENT_TYPE, b"").strip() == _ABOUT_A_CAPTURE
