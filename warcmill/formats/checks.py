"""Do the digests that a WARC record declares fit its bytes? Computed as the bytes go by, never kept whole.

A block digest covers the block. A payload is "the HTTP body" (ISO 28500, 5.9),
and writers differ in which: as transferred with its chunks (Heritrix),
de-chunked, or decoded too. Any of these is accepted; `finish` says which.
"""

from __future__ import annotations

from warcmill.formats import digest
from warcmill.formats.digest import Digest
from warcmill.formats.http import Readings, payload_start
from warcmill.formats.warc import BLOCK_DIGEST, CONTENT_TYPE, PAYLOAD_DIGEST, SEGMENT, TYPE, Bad, Fields

AS_TRANSFERRED, NOT_CHECKED, UNFIT = "as-transferred", "not checked", ""
BLOCK, PAYLOAD = BLOCK_DIGEST.decode(), PAYLOAD_DIGEST.decode()
KEPT = 1 << 20  # bytes of a body that are kept to be read another way; a longer one is read all ways at once
HTTP_HEADER_LIMIT = 1 << 20
_UNKNOWN = "its algorithm is not known here"
_PORTION = 1 << 13  # of a block, looked through for the end of the HTTP header


class Check:
    """One declared digest: `feed` it all pieces of the block, then `finish`. `field` is the header that declares it.

    This one cannot be checked: its algorithm or what it covers is not here.
    """

    why_not = ""

    def __init__(self, field: str, why_not: str) -> None:
        self.field, self.why_not = field, why_not

    def feed(self, piece: memoryview) -> None:
        pass

    def finish(self) -> str:
        """The reading that fitted, NOT_CHECKED, or UNFIT."""
        return NOT_CHECKED


class WholeBlock(Check):
    """The digest of all bytes of a block: block digests, and payloads of what is not HTTP."""

    def __init__(self, field: str, declared: Digest) -> None:
        self.field = field
        self._digest, self._hash = declared, declared.new()

    def feed(self, piece: memoryview) -> None:
        self._hash.update(piece)

    def finish(self) -> str:
        return AS_TRANSFERRED if self._hash.digest() == self._digest.value else UNFIT


class HttpPayload(Check):
    """The digest of an HTTP message's body.

    One hash is computed, of the body as transferred; the others only when that
    does not fit, or when the body is too long to wait.
    """

    field = PAYLOAD
    why_not = "its HTTP body cannot be read here (unknown coding, or beyond the limits)"

    def __init__(self, declared: Digest, length: int, *, response: bool) -> None:
        self._digest, self._hash = declared, declared.new()
        self._length, self._response = length, response
        self._header, self._in_body = bytearray(), False
        self._kept: list[memoryview] = []
        self._kept_size = 0
        self._others: Readings | None = None

    def feed(self, piece: memoryview) -> None:
        if not self._in_body:
            piece = self._after_header(piece)
            if not self._in_body:  # keep nothing: an empty view holds on to its whole piece
                return
        self._hash.update(piece)
        if self._others is None:
            self._kept.append(piece)
            self._kept_size += len(piece)
            if self._kept_size > KEPT:
                self._read_otherwise()
        else:
            self._others.feed(piece)

    def finish(self) -> str:
        if len(self._header) > HTTP_HEADER_LIMIT:
            return NOT_CHECKED
        if self._hash.digest() == self._digest.value:
            return AS_TRANSFERRED
        others = self._others or self._read_otherwise()
        others.close()
        fitting = (reading.name for reading in others.made if reading.hash.digest() == self._digest.value)
        return next(fitting, UNFIT if others.complete else NOT_CHECKED)

    def _after_header(self, piece: memoryview) -> memoryview:
        """What of `piece` lies past the HTTP header. A header over the limit has no end."""
        for at in range(0, len(piece), _PORTION):
            before = len(self._header)
            if before > HTTP_HEADER_LIMIT:
                break
            self._header += piece[at : at + _PORTION]
            start = payload_start(self._header, max(0, before - 3), response=self._response)
            if start >= 0:
                del self._header[start:]
                self._in_body = True
                return piece[at + start - before :]
        return piece[:0]

    def _read_otherwise(self) -> Readings:
        self._others = Readings(bytes(self._header), self._digest.new, self._length)
        for piece in self._kept:
            self._others.feed(piece)
        self._kept.clear()
        return self._others


def checks_for(fields: Fields, length: int, bad: Bad) -> list[Check]:
    """What is to be checked over the block of a record of `length` bytes: usually nothing or one digest."""
    checks: list[Check] = []
    if BLOCK_DIGEST in fields:
        checks.append(_block_check(BLOCK, fields[BLOCK_DIGEST], bad))
    if PAYLOAD_DIGEST in fields and _type(fields) != b"revisit":
        checks.append(_payload_check(fields, length, bad))
    return checks


def _type(fields: Fields) -> bytes:
    return fields[TYPE].strip().lower()


def _payload_check(fields: Fields, length: int, bad: Bad) -> Check:
    """The payload of a revisit is in another record, that of a segment in several (ISO 28500, 5.9 and 8).

    A truncated record's digest covers what is there.
    """
    text = fields[PAYLOAD_DIGEST]
    if SEGMENT in fields:
        return Check(PAYLOAD, "the record is a segment of a larger one")
    if _is_http(fields):
        return _http_check(text, length, _type(fields) == b"response", bad)
    return _block_check(PAYLOAD, text, bad)


def _is_http(fields: Fields) -> bool:
    http = fields.get(CONTENT_TYPE, b"application/http").strip()[:16].lower() == b"application/http"
    return http and _type(fields) in (b"response", b"request")


def _block_check(field: str, text: bytes, bad: Bad) -> Check:
    declared = _parse(field, text, bad)
    return WholeBlock(field, declared) if declared else Check(field, _UNKNOWN)


def _http_check(text: bytes, length: int, response: bool, bad: Bad) -> Check:
    declared = _parse(PAYLOAD, text, bad)
    return HttpPayload(declared, length, response=response) if declared else Check(PAYLOAD, _UNKNOWN)


def _parse(field: str, text: bytes, bad: Bad) -> Digest | None:
    try:
        return digest.parse(text.strip())
    except ValueError as error:
        raise bad(f"its {field} is no digest ({error}): {text[:80]!r}") from error
