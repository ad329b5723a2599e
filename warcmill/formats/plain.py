"""Most records of a crawl, told at one look: written as Heritrix writes them, and with no digest to check.

`warc` and `checks` judge every record with care, line by line. Here one regular
expression knows those that they can only pass, and without a warning: each line
is there at most once, in Heritrix's order, in the standard's spelling, on one
line, and no digest covers the record's own bytes (a revisit's payload lies in
another record). It need not know all that is sound; it must know nothing else.
"""

from __future__ import annotations

import re

from warcmill.formats.warc import END_OF_RECORD, LENGTH_DIGITS


def _perhaps(*names: str) -> str:
    return "".join(rf"(?:{name}: .*\r\n|)" for name in names)


_ABOUT = _perhaps("WARC-Target-URI") + r"WARC-Date: \S.*\r\n"
_OF_A_REVISIT = _perhaps(
    "WARC-Profile",
    "WARC-Truncated",
    "WARC-Refers-To",
    "WARC-Payload-Digest",
    "WARC-Refers-To-Date",
    "WARC-Refers-To-Target-URI",
    "WARC-Etag",
    "WARC-Last-Modified",
)
_HEADER = (
    r"WARC/1\.[01]\r\nWARC-Type: (?:"
    rf"(?:request|metadata|response|resource)\r\n{_ABOUT}{_perhaps('WARC-IP-Address', 'WARC-Concurrent-To')}"
    rf"|revisit\r\n{_ABOUT}{_OF_A_REVISIT})"
    rf"WARC-Record-ID: (\S.*)\r\n{_perhaps('Content-Type')}Content-Length: (\d{{1,{LENGTH_DIGITS}}})\r\n\r\n"
)
_match = re.compile(_HEADER.encode()).match


def record_id(record: bytes) -> bytes:
    """The WARC-Record-ID of a whole record that is plain as said above; b"" of any other."""
    header = _match(record)
    if header is None:
        return b""
    found, length = header.groups()
    end = header.end()
    ends_well = end + int(length) + len(END_OF_RECORD) == len(record) and record.endswith(END_OF_RECORD)
    return found if ends_well and record.find(0, 0, end) < 0 else b""
