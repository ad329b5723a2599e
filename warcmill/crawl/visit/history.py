"""What the last visit of a URI leaves, in up to 200 bytes, so that the next can tell whether anything changed.

With it a request asks only for what is new, and a page that is the same becomes a
revisit that names the record with its bytes. *The same* means SHA-1, length and a
second digest: SHA-1 alone can be made to collide.

MERGED warcmill/crawl/visit/history.py: When a URI is visited again, as its job says: after a visit that brought an
answer, or none.

MERGED warcmill/crawl/visit/history.py: What an answer is, next to what the last visit left: new, the same bytes, or
not modified. Pure.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from warcmill.base import clock
from warcmill.crawl.fetch import exchange
from warcmill.crawl.fetch.exchange import Exchange
from warcmill.crawl.frontier import LONGEST_HISTORY
from warcmill.crawl.job.job import Job
from warcmill.crawl.policies import recrawl
from warcmill.crawl.uri import Uri
from warcmill.errors import BadInput
from warcmill.formats.warc.records import Original, Pairs, Record, sha1_bytes, sha1_text

SECOND = 16  # bytes of the second digest
_VERSION = 1
_FIXED = struct.Struct(f"<B20sQ{SECOND}sI16sB")
_VALIDATOR = re.compile(r"[\x20-\x7e\x80-\xff]*")  # what may stand in a header of a request


class History(NamedTuple):
    """A visit: digests and length of its payload, the validators that the server sent with it, and its record."""

    sha1: bytes
    length: int
    second: bytes
    date: str
    record_id: str
    etag: str = ""
    last_modified: str = ""

    def same(self, sha1: str, length: int, second: str) -> bool:
        """True if a payload is the one of this visit: `sha1:BASE32`, its length, and the second digest in hex."""
        return (self.sha1, self.length, self.second) == (_sha1(sha1), length, bytes.fromhex(second)[:SECOND])

    @property
    def hash(self) -> str:
        """The SHA-1 as the crawl log has it."""
        return sha1_text(self.sha1)

    @property
    def conditions(self) -> tuple[tuple[str, str], ...]:
        """The headers of a request for what is newer (RFC 9110, section 13.1)."""
        asked = (("If-None-Match", self.etag), ("If-Modified-Since", self.last_modified))
        return tuple((name, value) for name, value in asked if value)

    def original(self, uri: str) -> Original:
        """The record that a revisit of this URI refers to."""
        return Original(self.record_id, self.date, uri)

    def renewed(self, etag: str, last_modified: str) -> History:
        """The history after a revisit: the record is still the first, and the validators are the newest."""
        return self._replace(etag=etag or self.etag, last_modified=last_modified or self.last_modified)


def of_visit(
    sha1: str, length: int, second: str, date: str, record_id: str, etag: str = "", last_modified: str = ""
) -> History:  # fmt: skip
    """The history that a stored payload leaves; digests, date and id are as its record has them."""
    return History(_sha1(sha1), length, bytes.fromhex(second)[:SECOND], date, record_id, etag, last_modified)


def pack(history: History) -> bytes:
    """Return a history in at most 200 bytes; a validator that does not fit, or was no header, is left out."""
    etag, last_modified = _validator(history.etag), _validator(history.last_modified)
    room = LONGEST_HISTORY - _FIXED.size
    if len(last_modified) > room:
        last_modified = b""
    if len(etag) > room - len(last_modified):
        etag = b""
    moment = datetime.fromisoformat(history.date)
    fixed = _FIXED.pack(
        _VERSION,
        history.sha1,
        history.length,
        history.second,
        int(moment.timestamp()),
        bytes.fromhex(history.record_id[len("<urn:uuid:") : -1].replace("-", "")),
        len(etag),
    )
    return fixed + etag + last_modified


def read(raw: bytes) -> History | None:
    """Return the history of these bytes; None when there is none, or it is of another version: all is fetched anew."""
    if len(raw) < _FIXED.size or raw[0] != _VERSION:
        return None
    _, sha1, length, second, moment, record, etag = _FIXED.unpack_from(raw)
    text = raw[_FIXED.size :].decode("latin-1")
    date = clock.text(datetime.fromtimestamp(moment, UTC))
    return History(sha1, length, second, date, f"<{UUID(bytes=record).urn}>", text[:etag], text[etag:])


def since(raw: bytes, now: float) -> float:
    """Since when the payload of a visit is what it is; `now` when the visit left nothing."""
    return float(_FIXED.unpack_from(raw)[4]) if read(raw) else now


def _sha1(text: str) -> bytes:
    try:
        return sha1_bytes(text)
    except ValueError as error:
        raise BadInput(text, "not a sha1 in base32") from error


def _validator(text: str) -> bytes:
    return text.encode("latin-1") if _VALIDATOR.fullmatch(text) else b""


def when(job: Job, uri: Uri, left: bytes) -> float:
    """The time of the next visit after one that ends now and has `left` this history; 0: there is none.

    A visit after the end of its crawl would not be made, so nothing waits for it.
    """
    if job.recrawl is None or uri.uri.startswith("data:"):
        return recrawl.NEVER
    now = clock.steady()
    found = recrawl.again(job.recrawl, now, since(left, now))
    return found if found < job.expiry.ends.get(uri.crawl, math.inf) else recrawl.NEVER


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
        left = pack(before.renewed(etag, modified)) if before else b""
        return Answered(exchange.records_of(answer, metadata, original), (NOT_MODIFIED,), left)
    if before and is_same(answer, before):
        records = exchange.records_of(answer, metadata, before.original(uri))
        return Answered(records, (DUPLICATE,), pack(before.renewed(etag, modified)))
    records = exchange.records_of(answer, metadata)
    return Answered(records, (), b"" if answer.truncated else _left(answer, records[0], etag, modified))


def is_same(answer: Exchange, before: History) -> bool:
    """True if a whole payload is that of the visit before: an empty one needs no revisit."""
    same = before.same(answer.payload_sha1, answer.payload_length, answer.payload_sha256)
    return same and bool(answer.payload_length) and not answer.truncated


def _left(answer: Exchange, record: Record, etag: str, modified: str) -> bytes:
    sha1, length, second = answer.payload_sha1, answer.payload_length, answer.payload_sha256
    return pack(of_visit(sha1, length, second, record.date, record.id, etag, modified))
