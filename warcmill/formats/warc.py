"""The header of a WARC record (ISO 28500:2017, clause 4), parsed under limits.

Bytes only: a header may hold any UTF-8, and real ones hold worse. Names are
case-insensitive and given in lower case.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from warcmill.errors import BadInput

HEADER_LIMIT = 1 << 20  # bytes of a record's header
LINES_LIMIT = 1_000
LENGTH_DIGITS = 18  # of a Content-Length: an exabyte
END_OF_HEADER = END_OF_RECORD = b"\r\n\r\n"
VERSIONS = (b"WARC/1.0", b"WARC/1.1")

Fields = dict[bytes, bytes]
Bad = Callable[[str], BadInput]

_FOLD = re.compile(rb"\r\n[ \t]+")


def parse_header(header: bytes, bad: Bad) -> Fields:
    """The named fields of a header given with its closing blank line; `bad` makes the error to raise."""
    lines = _lines(header, bad)
    if lines[0] not in VERSIONS:
        raise bad(f"the record does not begin with WARC/1.0 or WARC/1.1: {header[:20]!r}")
    fields = {}
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        if not colon:
            raise bad(f"a line of the record's header has no colon: {line[:60]!r}")
        fields[name.lower()] = value.strip()
    if len(fields) < len(lines) - 1 and header.lower().count(b"\r\ncontent-length:") > 1:
        raise bad("the record's header has more than one Content-Length")
    return fields


def _lines(header: bytes, bad: Bad) -> list[bytes]:
    """The header's lines without their ends, continued ones joined (one substitution: never quadratic)."""
    newlines = header.count(b"\n")
    if newlines > LINES_LIMIT:
        raise bad(f"the record's header has more than {LINES_LIMIT} lines")
    lines = header.split(b"\r\n")[:-2]  # without the blank line
    if newlines != len(lines) + 1:
        raise bad("a line of the record's header ends in LF alone, not in CR LF")
    if b"\r\n " in header or b"\r\n\t" in header:
        return _FOLD.sub(b" ", header).split(b"\r\n")[:-2]
    return lines


def content_length(fields: Fields, bad: Bad) -> int:
    """The record's Content-Length, which every record has (clause 5.3)."""
    text = fields.get(b"content-length")
    if text is None:
        raise bad("the record's header has no Content-Length")
    if not text.isdigit() or len(text) > LENGTH_DIGITS:
        raise bad(f"the record's Content-Length is no number: {text[:30]!r}")
    return int(text)
