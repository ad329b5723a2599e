"""Accept most records of a crawl by one regular expression: whole in one piece, and written as Heritrix writes them.

`header` and `digest_checks` examine any record, line by line and piece by piece.
This is the fast way for records that they would accept without a warning: each
field at most once, in Heritrix's order, in the standard's spelling, on one line;
and no digest covers the record's own bytes (a revisit's payload is in another
record), or it is a payload's SHA-1 that matches the HTTP body as transferred.
It may miss sound records, which then take the slow way. It must accept no others.
"""

from __future__ import annotations

import re

from warcmill.formats.warc import digest
from warcmill.formats.warc.header import END_OF_RECORD, LENGTH_DIGITS
from warcmill.formats.warc.http import payload_start


def _optional(*names: str) -> str:
    return "".join(rf"(?:{name}: .*\r\n|)" for name in names)


_ABOUT = _optional("WARC-Target-URI") + r"WARC-Date: \S.*\r\n"
_NO_DIGEST = rf"(?:request|metadata|response|resource)\r\n{_ABOUT}{_optional('WARC-IP-Address', 'WARC-Concurrent-To')}"
_REVISIT = rf"revisit\r\n{_ABOUT}" + _optional(
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
    rf"response\r\n{_ABOUT}{_optional('WARC-Truncated')}"
    rf"WARC-Payload-Digest: (sha1:[A-Z2-7]{{32}})\r\n{_optional('WARC-IP-Address')}"
    r"(?=WARC-Record-ID: .*\r\nContent-Type: application/http)"
)
_HEADER = (
    rf"WARC/1\.[01]\r\nWARC-Type: (?:{_NO_DIGEST}|{_REVISIT}|{_RESPONSE})"
    rf"WARC-Record-ID: (\S.*)\r\n{_optional('Content-Type')}Content-Length: (\d{{1,{LENGTH_DIGITS}}})\r\n\r\n"
)
_match_header = re.compile(_HEADER.encode()).match


def match(record: bytes, *, proven: bool = False) -> tuple[bytes, bool] | None:
    """Return a plain record's WARC-Record-ID, and whether it has a (matching) payload digest; None for any other.

    `proven`: the digest is known to match.
    """
    header = _match_header(record)
    if header is None:
        return None
    declared, record_id, length = header.groups()
    begin = header.end()
    whole = begin + int(length) + len(END_OF_RECORD) == len(record) and record.endswith(END_OF_RECORD)
    if not whole or record.find(0, 0, begin) >= 0:
        return None
    if declared is None:
        return record_id, False
    return (record_id, True) if proven or _fits(declared, record, begin) else None


def _fits(declared: bytes, record: bytes, begin: int) -> bool:
    """Whether this is the digest of the HTTP body, as transferred, of the block at `begin`."""
    if not record.startswith(b"HTTP/", begin):
        return False
    body = payload_start(record, begin, response=False)
    end = len(record) - len(END_OF_RECORD)
    expected = digest.parse(declared)
    if expected is None or not begin <= body <= end:
        return False
    actual = expected.new()
    actual.update(memoryview(record)[body:end])
    return actual.digest() == expected.value
