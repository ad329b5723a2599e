"""One request and all that it brought: the bytes that were sent and received, their meaning, and their WARC records.

`read` has the options of a request, under `fetch` in a URI's payload. `document` undoes the codings of a payload (RFC
9110, 8.4), for parsing alone: the record keeps what the server sent. Reads only, from the scratch file of a long
answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from warcmill.base import clock
from warcmill.crawl.fetch.answer import AnswerSpool, HeaderFields, retry_after
from warcmill.crawl.fetch.limits import ANNOTATIONS, HEADER_CUT, FetchLimits
from warcmill.crawl.uri import shown
from warcmill.errors import BadInput
from warcmill.formats.warc import records
from warcmill.formats.warc.codings import STEPS, Dechunk, Decoder
from warcmill.formats.warc.http import CODINGS_LIMIT, DECODED_FREE
from warcmill.formats.warc.records import Block, Capture, Original, Record

if TYPE_CHECKING:
    from warcmill.crawl.fetch.wire import ForwardProxy

NOT_KNOWN, TOO_LONG = "unsatisfiableContentEncoding", "decodedTrunc"
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")  # RFC 9110, section 5.6.2
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]{0,8192}")  # RFC 9110, section 5.5: no line ends, no NUL
_LONGEST_TIMEOUT = 86_400
_ROUTE = re.compile(r"#[\x21-\x7e]{1,8000}")
WINDOW = 10_000  # pixels that the window of a page may be wide, or high
_OURS = frozenset({"host", "connection", "content-length", "transfer-encoding"})


class FetchRequest(NamedTuple):
    """A request for a canonical http or https URI; `headers` come after ours and replace those of one name.
    `signed_in`: cookies of a login are among them, so what signs it in is left out of its record. `proxy`: what leads
    to its server."""

    uri: str
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    timeout: float = 0.0
    signed_in: bool = False
    proxy: ForwardProxy | None = None


def request_of(uri: str, fetch: FetchOptions, headers: tuple[tuple[str, str], ...] = ()) -> FetchRequest:
    """The request for a URI that is fetched so; `headers` are the crawl's: Referer, If-None-Match, Cookie."""
    asked = (("Range", _asked(fetch.range)),) if fetch.range else ()
    return FetchRequest(uri, fetch.method, (*headers, *asked, *fetch.headers), fetch.body.encode(), fetch.timeout)


def key_of(key: str, payload: str) -> str:
    """The key of a URI with this payload: another part of it is another URI, and so is another route of a page.
    BadInput names a fault of the payload."""
    options = read(payload, key)
    if options.range:
        return f"{key} {_asked(options.range)}"  # no URI has a blank
    return f"{key} {options.route}" if options.route else key


def at_route(route: str) -> str:
    """The payload of a page that a browser opens at a route."""
    return json.dumps({"fetch": {"render": {"route": route}}}, separators=(",", ":"))


def _asked(wanted: tuple[int, int | None]) -> str:
    """A range as a request has it (RFC 9110, 14.1.2)."""
    first, last = wanted
    return f"bytes={first}" if first < 0 else f"bytes={first}-{'' if last is None else last}"


def as_received(value: str) -> str:
    """A server's own value, read as ISO 8859-1, so that the request sends the bytes that came (RFC 6265, 5.4)."""
    return value if value.isascii() else value.encode("latin-1").decode("utf-8", "surrogateescape")


class Exchange(NamedTuple):
    """An answer and its request. `close` it when its records are durable: a long block is in a scratch file.

    `status`, `fields` and `mime` are the final answer's; `mime` is its type as sent, '' when it named none.
    `truncated`: length, time or disconnect, '' when whole. `payload_sha1` is as
    WARCs write it; `payload_sha256`, in hex, is the second digest of *identical*.
    They and `payload_length` count the `extra` bytes beyond the end, unless the body has chunks.
    `interim`: the 1xx answers. `certificate`: what is wrong with the server's. `record_id`: it was read from this
    record of the launch, and came before. `sent` lacks the fields `left_out`, which sign it in.
    """

    uri: str
    method: str
    address: str
    started: datetime
    took_ms: int
    sent: bytes
    spool: AnswerSpool
    status: int
    fields: HeaderFields
    mime: str
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
    record_id: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def date(self) -> str:
        """When the request was sent, as in its records."""
        return clock.text(self.started)

    @property
    def retry_after(self) -> float:
        """The seconds that its Retry-After asks to wait, counted from now; 0 without one."""
        return retry_after(self.fields.first("retry-after"), datetime.now(UTC))

    @property
    def validators(self) -> tuple[str, str]:
        """ETag and Last-Modified, by which a later request asks for what is new; '' for a missing one."""
        return self.fields.first("etag"), self.fields.first("last-modified")

    @property
    def set_cookies(self) -> list[str]:
        """The cookies that it sets."""
        return self.fields.all("set-cookie")

    @property
    def annotations(self) -> tuple[str, ...]:
        """The notes for the crawl log, in Heritrix's words where it has one."""
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


def _dechunked(pieces: Iterable[bytes]) -> Iterator[bytes]:
    step = Dechunk()
    for piece in pieces:
        yield from step.feed(piece)
    yield from step.close()


def records_of(exchange: Exchange, more: records.Pairs = (), original: Original | None = None) -> list[Record]:
    """The records of an exchange: response or revisit, request, metadata.

    With an `original` it is a revisit of it; a 304 is one always. `more` are fields of the metadata, besides ours. One
    that the launch has already gets this metadata alone.
    """
    if exchange.record_id:
        return [records.metadata(recorded(exchange), more)]
    answer = _answer(exchange, original)
    fields = [*_besides(exchange), *more]
    return [answer, records.request(answer, Block.of(exchange.sent)), records.metadata(answer, fields)]


def recorded(exchange: Exchange) -> Record:
    """The record that an exchange was read from, for those that name it; its block is not there."""
    return Record("response", exchange.record_id, exchange.date, exchange.uri, b"", Block.of(b""))


def _answer(exchange: Exchange, original: Original | None) -> Record:
    capture = Capture(exchange.uri, exchange.date, exchange.address)
    if exchange.status == 304:
        return records.not_modified(capture, exchange.spool.block(), original)
    if original is None:
        return records.response(capture, exchange.spool.block(), exchange.payload_sha1, exchange.truncated)
    head = b"".join(exchange.spool.pieces())[: exchange.head_length]
    return records.identical(capture, Block.of(head), exchange.payload_sha1, original)


def _besides(exchange: Exchange) -> list[tuple[str, str]]:
    """Metadata that the records' blocks do not show: 1xx answers as they came, the time, the certificate."""
    return [
        ("fetchTimeMs", str(exchange.took_ms)),
        *(("interimResponse", records.readable(raw)) for raw in exchange.interim),
        *([("certificate", exchange.certificate)] if exchange.certificate else []),
        *([("beyondEnd", str(exchange.extra))] if exchange.extra else []),
        *([("leftOutOfRequest", ", ".join(exchange.left_out))] if exchange.left_out else []),
    ]


def document(exchange: Exchange, limits: FetchLimits) -> tuple[bytes, str]:
    """Return the decoded payload, up to the limits, and a note for the crawl log: '' when it is whole.

    A payload whose coding is not known, or which is not of the coding it claims, is returned as it came.
    """
    limit = min(limits.decoded, limits.ratio * exchange.payload_length + DECODED_FREE)
    if not exchange.fields.has("content-encoding") and not exchange.fields.has("transfer-encoding"):
        text, cut = _up_to(limit, exchange.payload())
        return text, TOO_LONG if cut else ""
    codings = codings_of(exchange)
    unknown = [coding for coding in codings if coding.encode() not in STEPS]
    if unknown or len(codings) > CODINGS_LIMIT:
        text, _ = _up_to(limit, exchange.payload())
        return text, f"{NOT_KNOWN}:{(unknown or codings)[0][:20]}"
    steps = [STEPS[coding.encode()]() for coding in codings]
    text, cut = _up_to(limit, _through(exchange.payload(), steps))
    if not text and any(step.unfit for step in steps):
        text, cut = _up_to(limit, exchange.payload())
    if cut and limit < limits.decoded:
        return text, f"{TOO_LONG}:ratio"
    return text, TOO_LONG if cut or any(step.gave_up for step in steps) else ""


def codings_of(exchange: Exchange) -> list[str]:
    """The codings of the payload, in the order in which they are undone; the chunks are undone already."""
    transfer, content = exchange.fields.words("transfer-encoding"), exchange.fields.words("content-encoding")
    if exchange.chunked:
        transfer.pop()
    return [word for word in [*reversed(transfer), *reversed(content)] if word not in ("identity", "none")]


def _through(parts: Iterable[bytes], steps: list[Decoder]) -> Iterator[bytes]:
    """Send the parts of a payload through the steps, one after another."""
    for step in steps:
        parts = _decoded(parts, step)
    return iter(parts)


def _decoded(parts: Iterable[bytes], step: Decoder) -> Iterator[bytes]:
    for part in parts:
        yield from step.feed(part)
    yield from step.close()


def _up_to(limit: int, parts: Iterable[bytes]) -> tuple[bytes, bool]:
    """Join parts up to the limit; True if more followed."""
    kept, length = [], 0
    for part in parts:
        kept.append(part)
        length += len(part)
        if length > limit:
            return b"".join(kept)[:limit], True
    return b"".join(kept), False


class RenderOptions(Struct, frozen=True):
    """The way a page is rendered: a `script` that is run at its `start` or `end`; the size of the window, 0 for the
    job's; `images`: False if none is to be asked for. `route`: the fragment that the page's own script reads."""

    script: str = ""
    run_at: str = "end"
    width: int = 0
    height: int = 0
    images: bool = True
    route: str = ""


class FetchOptions(Struct, frozen=True):
    """One request. `range` is first and last byte, the last may be None: up to the end. A first byte below 0 is counted
    from the end, as Python does. `timeout` in seconds, 0 for the job's.

    `render`: the page is opened in a browser, whatever the job says; None: as the job says.
    """

    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    range: tuple[int, int | None] | None = None
    render: RenderOptions | None = None
    timeout: float = 0

    @property
    def is_plain(self) -> bool:
        """True if every browser would get the same answer."""
        return self.method == "GET" and not (self.headers or self.body or self.range)

    @property
    def route(self) -> str:
        """The route at which the page is opened in a browser, '' for none."""
        return self.render.route if self.render else ""


_PLAIN = FetchOptions()
_NAMES = frozenset(FetchOptions.__struct_fields__)
_RENDER_NAMES = frozenset(RenderOptions.__struct_fields__)


def read(payload: str, uri: str = "") -> FetchOptions:
    """Return how the URI with this payload is fetched; a plain GET if it has no options. BadInput names a fault."""
    if '"fetch"' not in payload:
        return _PLAIN
    try:
        whole = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise _bad(uri, "not JSON") from error
    asked = whole.get("fetch") if isinstance(whole, dict) else None
    if asked is None:
        return _PLAIN
    if not isinstance(asked, dict):
        raise _bad(uri, "'fetch' is not an object")
    if unknown := sorted(map(str, asked.keys() - _NAMES)):
        raise _bad(uri, f"'fetch' has no {unknown[0]!r}; it has {', '.join(sorted(_NAMES))}")
    return FetchOptions(
        _method(asked.get("method", "GET"), uri),
        _headers(asked.get("headers", {}), uri),
        _body(asked.get("body", ""), uri),
        _range(asked.get("range"), uri),
        _render(asked.get("render", False), uri),
        _timeout(asked.get("timeout", 0), uri),
    )


def _method(value: object, uri: str) -> str:
    if not isinstance(value, str) or not _TOKEN.fullmatch(value) or value.upper() == "CONNECT":
        raise _bad(uri, "'method' is no HTTP method")
    return value


def _headers(value: object, uri: str) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        raise _bad(uri, "'headers' is not an object")
    for name, text in value.items():
        if not _TOKEN.fullmatch(name) or not isinstance(text, str) or not _VALUE.fullmatch(text):
            raise _bad(uri, f"'headers': {name!r} is no header, or its value is no text of one line")
        if name.lower() in _OURS:
            raise _bad(uri, f"'headers': {name!r} is set by the crawler alone")
    return tuple(value.items())


def _body(value: object, uri: str) -> str:
    if not isinstance(value, str):
        raise _bad(uri, "'body' is no text")
    return value


def _range(value: object, uri: str) -> tuple[int, int | None] | None:
    if value is None:
        return None
    if isinstance(value, list) and len(value) == 2 and type(value[0]) is int:
        first, last = value
        if last is None or (type(last) is int and last >= first >= 0):
            return first, last
    raise _bad(uri, "'range' is not [first, last], the last a byte or null; and null after a first below 0")


def _render(value: object, uri: str) -> RenderOptions | None:
    if isinstance(value, bool):
        return RenderOptions() if value else None
    if not isinstance(value, dict):
        raise _bad(uri, "'render' is neither true nor false, nor an object")
    if unknown := sorted(map(str, value.keys() - _RENDER_NAMES)):
        raise _bad(uri, f"'render' has no {unknown[0]!r}; it has {', '.join(sorted(_RENDER_NAMES))}")
    script, run_at = value.get("script", ""), value.get("run_at", "end")
    if not isinstance(script, str) or run_at not in ("start", "end"):
        raise _bad(uri, "'render': 'script' is no text, or 'run_at' neither start nor end")
    for name in ("width", "height"):
        if type(value.get(name, 0)) is not int or not 0 <= value.get(name, 0) <= WINDOW:
            raise _bad(uri, f"'render': {name!r} is no number of pixels up to {WINDOW}")
    if not isinstance(value.get("images", True), bool):
        raise _bad(uri, "'render': 'images' is neither true nor false")
    route = value.get("route", "")
    if not isinstance(route, str) or (route and not _ROUTE.fullmatch(route)):
        raise _bad(uri, "'render': 'route' is not a fragment of a URL, such as #/about")
    return RenderOptions(**value)


def _timeout(value: object, uri: str) -> float:
    if type(value) not in (int, float) or not 0 <= value <= _LONGEST_TIMEOUT:  # type: ignore[operator]
        raise _bad(uri, f"'timeout' is no number of seconds up to {_LONGEST_TIMEOUT}")
    return float(value)  # type: ignore[arg-type]


def _bad(uri: str, why: str) -> BadInput:
    return BadInput(shown(uri) or "payload", f"payload: {why}")
