"""Records of ARC files, what web archives were before WARC: one line of header, then the bytes.

    http://gov.example/ 192.0.2.7 20041019234428 text/html 1234

The last word is the length, in version 1 (five words) and 2 (ten). There are no
digests. Records are parted by a newline; files with none or with several exist.
A URL may hold whatever a page's author wrote, a CR too: LF alone ends the line.
"""

from __future__ import annotations

import re

from warcmill.formats.reader import Reader

HEADER_LIMIT = 1 << 16  # the header's line
FIRST_RECORD = b"filedesc:"
_NEWLINES = 4
_HEADER = re.compile(rb"[^ \n]+ .+ ([0-9]{1,18})\r?\n")


def examine_record(reader: Reader) -> bytes:
    """Read the record in hand to its end, BadInput when it is not whole; its header."""
    header = reader.through(b"\n", HEADER_LIMIT)
    found = _HEADER.fullmatch(header)
    if not found or header.count(b" ") < 4:
        raise reader.bad(f"not the header of an ARC record: {header[:60]!r}")
    reader.skip(int(found[1]))
    reader.skip_newlines(_NEWLINES)
    return header
