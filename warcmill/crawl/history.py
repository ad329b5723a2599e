"""What the last visit of a URI leaves, in up to 200 bytes, so that the next can tell whether anything changed.

With it a request asks only for what is new, and a page that is the same becomes a
revisit that names the record with its bytes. *The same* means SHA-1, length and a
second digest: SHA-1 alone can be made to collide.
"""

from __future__ import annotations

import re
import struct
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from warcmill.base import clock
from warcmill.crawl.frontier import LONGEST_HISTORY
from warcmill.errors import BadInput
from warcmill.formats.warc.records import Original, sha1_bytes, sha1_text

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
