"""Records of ARC files, the format before WARC: one header line, then the block.

    http://gov.example/ 192.0.2.7 20041019234428 text/html 1234

The last word is the length in bytes, in version 1 (five words) and 2 (ten).
There are no digests. A newline separates two records; files with none or with
several exist. A URL may hold any byte that a page's author wrote, even a CR:
only LF ends the line.
"""

from __future__ import annotations

import re

from warcmill.formats.warc.reader import Reader

HEADER_LIMIT = 1 << 16  # bytes of the header line
FIRST_RECORD = b"filedesc:"
NEWLINES = 4  # at most so many bytes between two records
_HEADER = re.compile(rb"[^ \n]+ .+ ([0-9]{1,18})\r?\n")
# The last address that a date follows: anything like it before belongs to the URL.
_ABOUT = re.compile(rb"([^\n]+) ([^ \n]+) ([0-9]{12,17}) ([^ \n]+)(?: [^\n]+)? [0-9]{1,18}\r?\n")
_FIELDS = (b"URL", b"IP-address", b"Archive-date", b"Content-type")


def read_header(reader: Reader) -> tuple[bytes, int]:
    """Read the current record's header; return it and the length of its block in bytes. BadInput if it is none."""
    header = reader.through(b"\n", HEADER_LIMIT)
    match = _HEADER.fullmatch(header)
    if not match or header.count(b" ") < 4:
        raise reader.bad(f"not the header of an ARC record: {header[:60]!r}")
    return header, int(match[1])


def fields(header: bytes) -> dict[bytes, bytes]:
    """The fields of a header beside the length: URL, IP-address, Archive-date, Content-type (the server's).

    Empty if they are not there in this order.
    """
    match = _ABOUT.fullmatch(header)
    return dict(zip(_FIELDS, match.groups(), strict=True)) if match else {}
