"""The payload of a record, passed on while it is read: as it was transferred, and as a browser gets it. Pure.

A browser undoes the codings of an HTTP message one after another. Only the last reading is what it shows, but which
one is the last is known only at the end: bytes that were never of a coding are shown as they are. So each reading
goes to a sink of its own; a reading is dropped when the next one has got its first bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from warcmill.formats.warc.header import CONTENT_TYPE, SEGMENT
from warcmill.formats.warc.hearers import RecordHead
from warcmill.formats.warc.http import BodyReadings, MessageHead

UNKNOWN_CODING, UNDECODED = "coding unknown", "beyond the limits of decoding"
LONG_HEADER, SEGMENTED = "HTTP header beyond the limit", "segment of a larger record"
_NOTES = ("warcinfo", "metadata", "filedesc")  # the crawler's own notes on the crawl; no browser gets them
_HTTP = b"application/http"


class PayloadSink(Protocol):
    """Gets one reading of a payload."""

    def write(self, piece: bytes | memoryview) -> None:
        """The next bytes; never empty ones."""

    def drop(self) -> None:
        """It is not wanted after all; nothing more comes."""


class _Stage:
    """Stands in for the hash of a reading: it passes the bytes on."""

    digest_size = 0

    def __init__(self, sink: PayloadSink, before: _Stage | None) -> None:
        self._sink: PayloadSink | None = sink
        self._before = before

    def update(self, data: bytes | memoryview, /) -> None:
        if data and self._before:
            self._before.drop()
            self._before = None
        if data and self._sink:
            self._sink.write(data)

    def drop(self) -> None:
        """Pass nothing more on: the next reading has bytes."""
        if self._sink:
            self._sink.drop()
            self._sink = None

    def digest(self) -> bytes:
        return b""


class Payload:
    """The payload of one record: `feed` all pieces of its block, then `close`.

    `sink` makes a sink; the first one made gets the payload as transferred, and is never dropped.
    `why_not`, valid after `close`: why a browser would get more than was passed on, '' when it would not.
    """

    def __init__(self, head: RecordHead, sink: Callable[[], PayloadSink]) -> None:
        self.why_not = "" if head.fields.get(SEGMENT) is None else SEGMENTED
        self._length, self._make, self._raw = head.length, sink, sink()
        self._http = MessageHead(response=head.type != "request") if is_http(head) else None
        self._readings: BodyReadings | None = None
        self._last: _Stage | None = None

    def feed(self, piece: memoryview) -> None:
        """Take the next bytes of the block."""
        if self._http:
            if not self._http.ended:
                piece = self._http.feed(piece)
            if piece and self._readings is None:
                self._readings = BodyReadings(bytes(self._http.header), self._stage, self._length)
        if piece:
            self._raw.write(piece)
            if self._readings:
                self._readings.feed(piece)

    def close(self) -> None:
        """End the payload."""
        if self._http and self._http.too_long:
            self.why_not = LONG_HEADER
        if self._readings:
            self._readings.close()
            if not self._readings.complete:
                self.why_not = UNKNOWN_CODING if self._readings.has_unknown else UNDECODED

    def _stage(self) -> _Stage:
        """Make the stage of the next reading. Its first bytes drop the reading before it, but not the raw one."""
        self._last = _Stage(self._make(), self._last)
        return self._last


def has_payload(head: RecordHead) -> bool:
    """True if a record may have something for a browser: all may but the crawler's own notes."""
    return head.type not in _NOTES


def is_http(head: RecordHead) -> bool:
    """True if a record's block is an HTTP message."""
    if head.type == "arc":
        return head.fields.get(b"URL", b"").lower().startswith(b"http")
    kind = head.fields.get(CONTENT_TYPE, _HTTP).strip().lower()
    return kind.startswith(_HTTP) and head.type in ("response", "request", "revisit")
