"""The checks of a WARC record while its bytes are read: declared digests, and IDs that repeat. Pure.

A block digest covers the block. A payload is "the HTTP body" (ISO 28500, 5.9). Writers interpret this differently: as
transferred with its chunks (Heritrix), de-chunked, or decoded too. Any of these is accepted; `finish` returns which.
The whole block is never in memory.

A WARC-Record-ID must be "globally unique" (5.2). `RecordIds` keeps eight bytes for each record, the first of the ID's
SHA-256, and compares them in parts, so that few of them are Python objects at a time.
"""

from __future__ import annotations

from hashlib import sha256

from warcmill.formats.warc import http as digest
from warcmill.formats.warc.header import BLOCK_DIGEST, CONTENT_TYPE, PAYLOAD_DIGEST, SEGMENT, TYPE, Bad, Fields
from warcmill.formats.warc.http import ICY, BodyReadings, Digest, Hash, MessageHead

AS_TRANSFERRED, NOT_CHECKED, UNFIT = "as-transferred", "not checked", ""
BLOCK, PAYLOAD = BLOCK_DIGEST.decode(), PAYLOAD_DIGEST.decode()
KEPT = 1 << 20  # bytes of a body kept in memory to be decoded if need be; a longer body is decoded at once
_UNKNOWN = "its algorithm is not known here"


class DigestCheck:
    """One declared digest: `feed` all pieces of the block, then `finish`. `field` is the header that declares it.

    This base class is for a digest that cannot be checked; `why_not` is the reason.
    """

    why_not = ""

    def __init__(self, field: str, why_not: str) -> None:
        self.field, self.why_not = field, why_not

    def feed(self, piece: memoryview) -> None:
        pass

    def finish(self) -> str:
        """Return the name of the reading that matched, NOT_CHECKED, or UNFIT."""
        return NOT_CHECKED


class WholeBlock(DigestCheck):
    """A digest of all bytes of a block: a block digest, or a payload digest of a record that is not HTTP."""

    def __init__(self, field: str, declared: Digest) -> None:
        self.field = field
        self._digest, self._hash = declared, declared.new()

    def feed(self, piece: memoryview) -> None:
        self._hash.update(piece)

    def finish(self) -> str:
        return AS_TRANSFERRED if self._hash.digest() == self._digest.value else UNFIT


class HttpPayload(DigestCheck):
    """A digest of an HTTP message's body. `length` is the block's, in bytes.

    It hashes the body as transferred. The other readings are hashed only if
    that does not match, or if the body is too long to be kept.
    """

    field = PAYLOAD
    why_not = "its HTTP body cannot be read here (unknown coding, or beyond the limits)"

    def __init__(self, declared: Digest, length: int, *, response: bool) -> None:
        self._digest, self._hash = declared, declared.new()
        self._length, self._head = length, MessageHead(response=response)
        self._kept: list[memoryview] = []
        self._kept_size = 0
        self._others: BodyReadings | None = None
        self._block: Hash | None = None  # of one that some writers take for HTTP/0.9

    def feed(self, piece: memoryview) -> None:
        if not self._head.ended:
            piece = self._head.feed(piece)
            self._begin_body()
        if not piece:  # keep nothing: an empty view keeps its whole piece in memory
            return
        self._hash.update(piece)
        if self._block:
            self._block.update(piece)
        if self._others is None:
            self._kept.append(piece)
            self._kept_size += len(piece)
            if self._kept_size > KEPT:
                self._start_other_readings()
        else:
            self._others.feed(piece)

    def _begin_body(self) -> None:
        if self._head.ended and self._head.header.startswith(ICY):
            self._block = self._digest.new()
            self._block.update(bytes(self._head.header))

    def finish(self) -> str:
        if self._head.too_long:
            return NOT_CHECKED
        if self._digest.value in (self._hash.digest(), self._block and self._block.digest()):
            return AS_TRANSFERRED
        others = self._others or self._start_other_readings()
        others.close()
        fitting = (reading.name for reading in others.made if reading.hash.digest() == self._digest.value)
        return next(fitting, UNFIT if others.complete else NOT_CHECKED)

    def _start_other_readings(self) -> BodyReadings:
        self._others = BodyReadings(bytes(self._head.header), self._digest.new, self._length)
        for piece in self._kept:
            self._others.feed(piece)
        self._kept.clear()
        return self._others


def checks_for(fields: Fields, length: int, bad: Bad) -> list[DigestCheck]:
    """The checks for a record whose block has `length` bytes: usually none or one. BadInput for an invalid digest."""
    checks: list[DigestCheck] = []
    if BLOCK_DIGEST in fields:
        checks.append(_block_check(BLOCK, fields[BLOCK_DIGEST], bad))
    if PAYLOAD_DIGEST in fields and _type(fields) != b"revisit":
        checks.append(_payload_check(fields, length, bad))
    return checks


def _type(fields: Fields) -> bytes:
    return fields[TYPE].strip().lower()


def _payload_check(fields: Fields, length: int, bad: Bad) -> DigestCheck:
    """The check of a payload digest.

    A revisit's payload is in another record, a segment's in several (ISO 28500, 5.9 and 8). A truncated
    record's digest covers the bytes that are there.
    """
    text = fields[PAYLOAD_DIGEST]
    if SEGMENT in fields:
        return DigestCheck(PAYLOAD, "the record is a segment of a larger one")
    if _is_http(fields):
        return _http_check(text, length, _type(fields) == b"response", bad)
    return _block_check(PAYLOAD, text, bad)


def _is_http(fields: Fields) -> bool:
    http = fields.get(CONTENT_TYPE, b"application/http").strip()[:16].lower() == b"application/http"
    return http and _type(fields) in (b"response", b"request")


def _block_check(field: str, text: bytes, bad: Bad) -> DigestCheck:
    declared = _parse(field, text, bad)
    return WholeBlock(field, declared) if declared else DigestCheck(field, _UNKNOWN)


def _http_check(text: bytes, length: int, response: bool, bad: Bad) -> DigestCheck:
    declared = _parse(PAYLOAD, text, bad)
    return HttpPayload(declared, length, response=response) if declared else DigestCheck(PAYLOAD, _UNKNOWN)


def _parse(field: str, text: bytes, bad: Bad) -> Digest | None:
    try:
        return digest.parse(text.strip())
    except ValueError as error:
        raise bad(f"its {field} is no digest ({error}): {text[:80]!r}") from error


LIMIT = 1 << 21  # records that are compared: 16 MiB
_AT_ONCE = 1 << 17
_HELD = 1 << 9  # IDs hashed at a time: twice as fast as one by one
_LONG = 1 << 8  # bytes; a longer ID is hashed at once, as it may be as long as its header


class RecordIds:
    """The IDs of a file's records: `add` each, then call `repeated`."""

    def __init__(self) -> None:
        self.count = 0
        self._held: list[bytes] = []
        self._marks = bytearray()

    def add(self, record_id: bytes) -> None:
        self._held.append(record_id if len(record_id) < _LONG else sha256(record_id.strip()).digest())
        if len(self._held) == _HELD:
            self._hash()

    def repeated(self) -> int:
        """Return how many of the first LIMIT records have the ID of an earlier record."""
        self._hash()
        marks = memoryview(self._marks).cast("Q")
        parts = len(marks) // _AT_ONCE + 1
        return len(marks) - sum(len({mark for mark in marks if mark % parts == part}) for part in range(parts))

    def _hash(self) -> None:
        compared = self._held[: max(0, LIMIT - self.count)]
        self._marks += b"".join([sha256(record_id.strip()).digest()[:8] for record_id in compared])
        self.count += len(self._held)
        self._held.clear()
