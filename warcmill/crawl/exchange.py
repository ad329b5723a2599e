"""What one request brought: all bytes that were sent and received, what they mean, and the WARC records of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from warcmill.base import clock
from warcmill.crawl.fetch import Fetch
from warcmill.crawl.head import Fields, Head
from warcmill.crawl.limits import ANNOTATIONS, HEADER_CUT
from warcmill.crawl.policies.politeness import retry_after
from warcmill.crawl.scratch import Spool
from warcmill.formats.warc import records
from warcmill.formats.warc.codings import Dechunk
from warcmill.formats.warc.records import Block, Capture, Original, Record

_type = re.compile(r"\s*+([!#$%&'*+.^_`|~0-9A-Za-z/-]{1,255}+)(?=[\s;,]|\Z)").match


class Request(NamedTuple):
    """What is asked for: a canonical http or https URI; `headers` come after ours and replace those of one name."""

    uri: str
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    timeout: float = 0.0


def request_of(uri: str, fetch: Fetch, headers: tuple[tuple[str, str], ...] = ()) -> Request:
    """The request for a URI that is fetched so; `headers` are the crawl's: Referer, If-None-Match, Cookie."""
    first, last = fetch.range or (0, None)
    asked = (("Range", f"bytes={first}-{'' if last is None else last}"),) if fetch.range else ()
    return Request(uri, fetch.method, (*headers, *asked, *fetch.headers), fetch.body.encode(), fetch.timeout)


def as_received(value: str) -> str:
    """A server's own value, read as ISO 8859-1, so that the request sends the bytes that came (RFC 6265, 5.4)."""
    return value if value.isascii() else value.encode("latin-1").decode("utf-8", "surrogateescape")


class Exchange(NamedTuple):
    """An answer and its request. `close` it when its records are durable: a long block is in a scratch file.

    `truncated`: length, time or disconnect, '' when whole. `payload_sha1` is as
    WARCs write it; `payload_sha256`, in hex, is the second digest of *identical*.
    They and `payload_length` count the `extra` bytes beyond the end, unless the body has chunks.
    `interim`: the 1xx answers. `certificate`: what is wrong with the server's.
    """

    uri: str
    method: str
    address: str
    started: datetime
    took_ms: int
    sent: bytes
    spool: Spool
    head: Head
    head_length: int
    interim: tuple[bytes, ...]
    payload_length: int
    payload_sha1: str
    payload_sha256: str
    chunked: bool = False
    truncated: str = ""
    header_cut: bool = False
    extra: int = 0
    certificate: str = ""
    notes: tuple[str, ...] = ()

    @property
    def status(self) -> int:
        """The status of the final answer."""
        return self.head.status

    @property
    def fields(self) -> Fields:
        """The header fields of the final answer."""
        return self.head.fields

    @property
    def date(self) -> str:
        """When the request was sent, as its records say it."""
        return clock.text(self.started)

    @property
    def retry_after(self) -> float:
        """How many seconds its Retry-After asks to wait, counted from now; 0 without one."""
        return retry_after(self.fields.first("retry-after"), datetime.now(UTC))

    @property
    def mime(self) -> str:
        """The type of the payload, as sent, without parameters; '' when the server named none that is one word."""
        return mime_of(self.fields.first("content-type"))

    @property
    def annotations(self) -> tuple[str, ...]:
        """What the crawl log notes, in Heritrix's words where it has one."""
        cut = HEADER_CUT if self.header_cut else ANNOTATIONS.get(self.truncated, "")
        return tuple(note for note in (cut, *self.notes) if note)

    def payload(self) -> Iterator[bytes]:
        """Yield the payload: the body without chunk framing, and nothing beyond its end."""
        pieces = self.spool.pieces(self.head_length)
        if self.chunked:
            yield from _dechunked(pieces)
            return
        left = self.payload_length - self.extra
        for piece in pieces:
            if part := piece[:left]:
                left -= len(part)
                yield part

    def close(self) -> None:
        """Give the bytes up."""
        self.spool.close()


def mime_of(content_type: str) -> str:
    """The type that a header or a `data:` URI names, up to a blank, a comma or a semicolon, as Heritrix cuts it; ''
    for what is no type: logs have it as a column."""
    found = _type(content_type)
    return found[1] if found else ""


def _dechunked(pieces: Iterable[bytes]) -> Iterator[bytes]:
    step = Dechunk()
    for piece in pieces:
        yield from step.feed(piece)
    yield from step.close()


def records_of(exchange: Exchange, more: records.Pairs = (), original: Original | None = None) -> list[Record]:
    """The records of an exchange: response or revisit, request, metadata.

    With an `original` it is a revisit of it; a 304 is one always. `more` are fields of the metadata, besides ours.
    """
    answer = _answer(exchange, original)
    fields = [*_told(exchange), *more]
    return [answer, records.request(answer, Block.of(exchange.sent)), records.metadata(answer, fields)]


def _answer(exchange: Exchange, original: Original | None) -> Record:
    capture = Capture(exchange.uri, exchange.date, exchange.address)
    if exchange.status == 304:
        return records.not_modified(capture, exchange.spool.block(), original)
    if original is None:
        return records.response(capture, exchange.spool.block(), exchange.payload_sha1, exchange.truncated)
    head = b"".join(exchange.spool.pieces())[: exchange.head_length]
    return records.identical(capture, Block.of(head), exchange.payload_sha1, original)


def _told(exchange: Exchange) -> list[tuple[str, str]]:
    """What the records' blocks do not show: 1xx answers as they came, the time, the certificate."""
    return [
        ("fetchTimeMs", str(exchange.took_ms)),
        *(("interimResponse", records.readable(raw)) for raw in exchange.interim),
        *([("certificate", exchange.certificate)] if exchange.certificate else []),
        *([("beyondEnd", str(exchange.extra))] if exchange.extra else []),
    ]
