"""History: the up to 200 bytes that a visit of a URI leaves, so that the next can detect a change. Pure.

With it a request asks only for what is new, and a page that is the same becomes a revisit that names the record with
its bytes. *The same* means SHA-1, length and a second digest: SHA-1 alone can be made to collide. `compare` is the step
of a visit that finds this out, `next_visit` the time at which the URI is visited again.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
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
from warcmill.crawl.visit.extraction import PARTLY
from warcmill.errors import BadInput
from warcmill.formats.warc.records import Original, Pairs, Record, sha1_bytes, sha1_text

SECOND = 16  # bytes of the second digest
_VERSION, _CAME_AGAIN = 1, 2
_CAME = struct.Struct("<I")  # behind the rest of one whose payload came again
_FIXED = struct.Struct(f"<B20sQ{SECOND}sI16sB")
_VALIDATOR = re.compile(r"[\x20-\x7e\x80-\xff]*")  # what may stand in a header of a request


class PastVisit(NamedTuple):
    """A visit: digests and length of its payload, the validators that the server sent with it, and its record. `again`:
    when the same payload came the last time, in seconds since 1970; 0 if it came once."""

    sha1: bytes
    length: int
    second: bytes
    date: str
    record_id: str
    etag: str = ""
    last_modified: str = ""
    again: int = 0

    @property
    def came(self) -> int:
        """When the payload came the last time, in seconds since 1970."""
        return self.again or _seconds(self.date)

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

    def renewed(self, etag: str, last_modified: str, again: int = 0) -> PastVisit:
        """The history after a revisit: the record is still the first, and the validators are the newest."""
        return self._replace(etag=etag or self.etag, last_modified=last_modified or self.last_modified, again=again)


def of_visit(
    sha1: str, length: int, second: str, date: str, record_id: str, etag: str = "", last_modified: str = ""
) -> PastVisit:  # fmt: skip
    """The history that a stored payload leaves; digests, date and id are as its record has them."""
    return PastVisit(_sha1(sha1), length, bytes.fromhex(second)[:SECOND], date, record_id, etag, last_modified)


def pack(history: PastVisit) -> bytes:
    """Return a history in at most 200 bytes; a validator that does not fit, or was not a header, is left out."""
    etag, last_modified = _validator(history.etag), _validator(history.last_modified)
    room = LONGEST_HISTORY - _FIXED.size - _CAME.size
    if len(last_modified) > room:
        last_modified = b""
    if len(etag) > room - len(last_modified):
        etag = b""
    fixed = _FIXED.pack(
        _CAME_AGAIN if history.again else _VERSION,
        history.sha1,
        history.length,
        history.second,
        _seconds(history.date),
        bytes.fromhex(history.record_id[len("<urn:uuid:") : -1].replace("-", "")),
        len(etag),
    )
    return fixed + (_CAME.pack(history.again) if history.again else b"") + etag + last_modified


def read(raw: bytes) -> PastVisit | None:
    """Return the history in these bytes; None for no bytes, or those of another version: all is fetched anew."""
    if len(raw) < _FIXED.size or raw[0] not in (_VERSION, _CAME_AGAIN):
        return None
    _, sha1, length, second, moment, record, etag = _FIXED.unpack_from(raw)
    rest, again = raw[_FIXED.size :], 0
    if raw[0] == _CAME_AGAIN:
        if len(rest) < _CAME.size:
            return None
        (again,), rest = _CAME.unpack_from(rest), rest[_CAME.size :]
    text = rest.decode("latin-1")
    date = clock.text(datetime.fromtimestamp(moment, UTC))
    return PastVisit(sha1, length, second, date, f"<{UUID(bytes=record).urn}>", text[:etag], text[etag:], again)


def without_validators(raw: bytes) -> bytes:
    """The history of a visit that did not do all its work, such as to find the links: the next asks for the whole
    payload, which a revisit record still refers to if it is the same."""
    before = read(raw)
    return pack(before._replace(etag="", last_modified="")) if before else b""


def since(raw: bytes, now: float) -> float:
    """Since when the payload of a visit is what it is; `now` when the visit left nothing."""
    return float(_FIXED.unpack_from(raw)[4]) if read(raw) else now


def _sha1(text: str) -> bytes:
    try:
        return sha1_bytes(text)
    except ValueError as error:
        raise BadInput(text, "not a sha1 in base32") from error


def _seconds(date: str) -> int:
    return int(datetime.fromisoformat(date).timestamp())


def _validator(text: str) -> bytes:
    return text.encode("latin-1") if _VALIDATOR.fullmatch(text) else b""


DUPLICATE, NOT_MODIFIED = "duplicate:digest", "duplicate:server-not-modified"
_UNCHANGED = 304


class AnswerComparison(NamedTuple):
    """An answer next to the visit before: `word` is what the log has for a revisit, '' for a new payload; `original` is
    the record that a revisit refers to. `is_whole`: the payload is the same, and is recorded once more."""

    before: PastVisit | None
    word: str = ""
    original: Original | None = None
    is_whole: bool = False

    def annotations(self, answer: Exchange) -> tuple[str, ...]:
        """The notes of the log about the answer."""
        return (self.word, *answer.annotations) if self.word else answer.annotations

    def whole(self) -> AnswerComparison:
        """The same, recorded whole if its bytes have come, as a browser of this launch may ask for them."""
        return AnswerComparison(self.before, is_whole=True) if self.word == DUPLICATE else self


def compare(answer: Exchange, before: PastVisit | None) -> AnswerComparison:
    """Compare an answer with the visit before: new, the same bytes, or not modified.

    An empty payload, or one that is cut, is never the same.
    """
    if answer.status == _UNCHANGED:
        return AnswerComparison(before, NOT_MODIFIED, before.original(answer.uri) if before else None)
    is_whole = bool(answer.payload_length) and not answer.truncated
    if before and is_whole and before.same(answer.payload_sha1, answer.payload_length, answer.payload_sha256):
        return AnswerComparison(before, DUPLICATE, before.original(answer.uri))
    return AnswerComparison(before)


def records(
    answer: Exchange, compared: AnswerComparison, metadata: Pairs, notes: Sequence[str] = ()
) -> tuple[Sequence[Record], bytes]:  # fmt: skip
    """The records of an answer, and the history that it leaves; `metadata` are fields of the metadata record, `notes`
    the words of its line in the log."""
    made = exchange.records_of(answer, metadata, compared.original)
    left = _left(answer, compared, made[0])
    return made, without_validators(left) if any(note.startswith(PARTLY) for note in notes) else left


def _left(answer: Exchange, compared: AnswerComparison, record: Record) -> bytes:
    """The history that an answer leaves, with the first of its records."""
    if (before := compared.before) and compared.word == NOT_MODIFIED and not before.conditions:
        return pack(before)  # nobody has asked for what is new
    if compared.word or compared.is_whole:  # since when the payload is the same is known by the first record
        if not before:
            return b""
        again = before.again if compared.word == NOT_MODIFIED else _seconds(record.date)
        return pack(before.renewed(*answer.validators, again))
    if answer.truncated:
        return b""
    sha1, length, second = answer.payload_sha1, answer.payload_length, answer.payload_sha256
    name = answer.record_id or record.id
    return pack(of_visit(sha1, length, second, record.date, name, *answer.validators))


def next_visit(job: Job, uri: Uri, left: bytes) -> float:
    """The time of the next visit after one that ends now and has `left` this history; 0: there is no next visit.

    A visit after the end of its crawl would not be made, so nothing waits for it.
    """
    if job.recrawl is None or uri.uri.startswith("data:"):
        return recrawl.NEVER
    now = clock.steady()
    due = recrawl.again(job.recrawl, now, since(left, now))
    return due if due < job.expiry.ends.get(uri.crawl, math.inf) else recrawl.NEVER
