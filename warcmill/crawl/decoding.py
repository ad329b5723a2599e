"""Undo the codings of a payload, for parsing alone: the record keeps what the server sent (RFC 9110, 8.4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warcmill.crawl.exchange import Exchange
from warcmill.crawl.limits import Limits
from warcmill.formats.warc.codings import STEPS, Decoder
from warcmill.formats.warc.http import CODINGS_LIMIT, DECODED_FREE

NOT_KNOWN, TOO_LONG = "unsatisfiableContentEncoding", "decodedTrunc"


def document(exchange: Exchange, limits: Limits) -> tuple[bytes, str]:
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
    """Join parts up to the limit; whether more followed."""
    kept, length = [], 0
    for part in parts:
        kept.append(part)
        length += len(part)
        if length > limit:
            return b"".join(kept)[:limit], True
    return b"".join(kept), False
