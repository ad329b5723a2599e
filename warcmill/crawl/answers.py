"""What an answer is, next to what the last visit left: new, the same bytes, or not modified. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warcmill.crawl import exchange, history
from warcmill.crawl.exchange import Exchange
from warcmill.crawl.history import History
from warcmill.formats.warc.records import Pairs, Record

DUPLICATE, NOT_MODIFIED = "duplicate:digest", "duplicate:server-not-modified"
_UNCHANGED = 304


@dataclass(frozen=True, slots=True)
class Answered:
    """The records of an answer, the word that the log has for a revisit, and the history that it leaves."""

    records: Sequence[Record]
    annotations: tuple[str, ...]
    history: bytes


def judge(answer: Exchange, before: History | None, metadata: Pairs) -> Answered:
    """Compare an answer with the visit before; a revisit refers to that one's record."""
    uri, etag, modified = answer.uri, answer.fields.first("etag"), answer.fields.first("last-modified")
    if answer.status == _UNCHANGED:
        original = before.original(uri) if before else None
        left = history.pack(before.renewed(etag, modified)) if before else b""
        return Answered(exchange.records_of(answer, metadata, original), (NOT_MODIFIED,), left)
    if before and is_same(answer, before):
        records = exchange.records_of(answer, metadata, before.original(uri))
        return Answered(records, (DUPLICATE,), history.pack(before.renewed(etag, modified)))
    records = exchange.records_of(answer, metadata)
    return Answered(records, (), b"" if answer.truncated else _left(answer, records[0], etag, modified))


def is_same(answer: Exchange, before: History) -> bool:
    """True if a whole payload is that of the visit before: an empty one needs no revisit."""
    same = before.same(answer.payload_sha1, answer.payload_length, answer.payload_sha256)
    return same and bool(answer.payload_length) and not answer.truncated


def _left(answer: Exchange, record: Record, etag: str, modified: str) -> bytes:
    sha1, length, second = answer.payload_sha1, answer.payload_length, answer.payload_sha256
    return history.pack(history.of_visit(sha1, length, second, record.date, record.id, etag, modified))
