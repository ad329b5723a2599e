"""Most records of a crawl, judged in one look: whole in one piece, and written as Heritrix writes them.

`warc` and `checks` judge every record with care, line by line and piece by
piece. Here one regular expression knows those that they can only pass, and
without a warning: each line is there at most once, in Heritrix's order, in the
standard's spelling, on one line; and no digest covers the record's own bytes (a
revisit's payload lies in another record), or it is a payload's SHA-1 that fits
the HTTP body as it was transferred. It need not know all that is sound; it must
know nothing else.
"""

from __future__ import annotations

import re

from warcmill.formats import digest
from warcmill.formats.http import payload_start
from warcmill.formats.warc import END_OF_RECORD, LENGTH_DIGITS


def _perhaps(*names: str) -> str:
    return "".join(rf"(?:{name}: .*\r\n|)" for name in names)


_ABOUT = _perhaps("WARC-Target-URI") + r"WARC-Date: \S.*\r\n"
_NO_DIGEST = rf"(?:request|metadata|response|resource)\r\n{_ABOUT}{_perhaps('WARC-IP-Address', 'WARC-Concurrent-To')}"
_REVISIT = rf"revisit\r\n{_ABOUT}" + _perhaps(
    "WARC-Profile",
    "WARC-Truncated",
    "WARC-Refers-To",
    "WARC-Payload-Digest",
    "WARC-Refers-To-Date",
    "WARC-Refers-To-Target-URI",
    "WARC-Etag",
    "WARC-Last-Modified",
)
_RESPONSE = (
    rf"response\r\n{_ABOUT}{_perhaps('WARC-Truncated')}"
    rf"WARC-Payload-Digest: (sha1:[A-Z2-7]{{32}})\r\n{_perhaps('WARC-IP-Address')}"
    r"(?=WARC-Record-ID: .*\r\nContent-Type: application/http)"
)
_HEADER = (
    rf"WARC/1\.[01]\r\nWARC-Type: (?:{_NO_DIGEST}|{_REVISIT}|{_RESPONSE})"
    rf"WARC-Record-ID: (\S.*)\r\n{_perhaps('Content-Type')}Content-Length: (\d{{1,{LENGTH_DIGITS}}})\r\n\r\n"
)
_match = re.compile(_HEADER.encode()).match


def look(record: bytes) -> tuple[bytes, bool] | None:
    """The WARC-Record-ID of a plain record, and whether it has a payload digest, which fits; None of any other."""
    header = _match(record)
    if header is None:
        return None
    declared, record_id, length = header.groups()
    begin = header.end()
    whole = begin + int(length) + len(END_OF_RECORD) == len(record) and record.endswith(END_OF_RECORD)
    if not whole or record.find(0, 0, begin) >= 0:
        return None
    if declared is None:
        return record_id, False
    return (record_id, True) if _fits(declared, record, begin) else None


def _fits(declared: bytes, record: bytes, begin: int) -> bool:
    """Is this the digest of the HTTP body in the block that begins there, as it was transferred?"""
    if not record.startswith(b"HTTP/", begin):
        return False
    body = payload_start(record, begin, response=False)
    end = len(record) - len(END_OF_RECORD)
    expected = digest.parse(declared)
    if expected is None or not begin <= body <= end:
        return False
    found = expected.new()
    found.update(memoryview(record)[body:end])
    return found.digest() == expected.value
