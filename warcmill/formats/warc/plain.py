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


_NO_DIGEST = _optional("WARC-IP-Address", "WARC-Concurrent-To")
_REVISIT = _optional("WARC-Profile", "WARC-Truncated", "WARC-Refers-To") + (
    r"(?:WARC-Payload-Digest: (?P<original>.*)\r\n|)"
    + _optional("WARC-Refers-To-Date", "WARC-Refers-To-Target-URI", "WARC-Etag", "WARC-Last-Modified")
)
_WITH_DIGEST = (
    r"(?:WARC-Truncated: (?P<truncated>.*)\r\n|)"
    rf"WARC-Payload-Digest: (?P<digest>sha1:[A-Z2-7]{{32}})\r\n{_optional('WARC-IP-Address')}"
    r"(?=WARC-Record-ID: .*\r\nContent-Type: application/http)"
)
_OF_TYPE = rf"(?(response)(?:{_WITH_DIGEST}|{_NO_DIGEST})|(?(revisit){_REVISIT}|{_NO_DIGEST}))"
_HEADER = (
    r"WARC/1\.[01]\r\nWARC-Type: (?P<type>request|metadata|resource|(?P<response>response)|(?P<revisit>revisit))\r\n"
    rf"(?:WARC-Target-URI: (?P<url>.*)\r\n|)WARC-Date: (?P<date>\S.*)\r\n{_OF_TYPE}"
    r"WARC-Record-ID: (?P<id>\S.*)\r\n(?:Content-Type: (?P<content_type>.*)\r\n|)"
    rf"Content-Length: (?P<length>\d{{1,{LENGTH_DIGITS}}})\r\n\r\n"
)
_PATTERN = re.compile(_HEADER.encode())
_match_header = _PATTERN.match
# Groups of a match, by number: by name they take twice as long. `original` is the digest of a revisit's payload,
# which is in another record; `digest` matches the payload of this one.
TYPE, URL, DATE, ORIGINAL, TRUNCATED, DIGEST, RECORD_ID, CONTENT_TYPE, LENGTH = (
    _PATTERN.groupindex[name]
    for name in ("type", "url", "date", "original", "truncated", "digest", "id", "content_type", "length")
)


def match(record: bytes, *, proven: bool = False) -> re.Match[bytes] | None:
    """Match the header of a plain record, up to the begin of its block; None for any other record.

    `proven`: the digest is known to match the payload.
    """
    header = _match_header(record)
    if header is None:
        return None
    declared, length = header.group(DIGEST, LENGTH)
    begin = header.end()
    whole = begin + int(length) + len(END_OF_RECORD) == len(record) and record.endswith(END_OF_RECORD)
    if not whole or record.find(0, 0, begin) >= 0:
        return None
    return header if proven or declared is None or _fits(declared, record, begin) else None


def _fits(declared: bytes, record: bytes, begin: int) -> bool:
    """True if this is the digest of the HTTP body, as transferred, of the block at `begin`."""
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
