"""The header of a WARC record, parsed within limits (ISO 28500:2017, clauses 4 and 5). Pure.

All of it is bytes: a header may be any UTF-8, and real ones are not even that. Names are case-insensitive; those of the
standard are returned in its spelling, all others in lower case. A value may have blanks around it.

A violation of the standard that makes the record ambiguous is refused; one that every reader interprets alike is
reported by `warn`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from warcmill.errors import BadInput

HEADER_LIMIT = 1 << 20  # bytes of a record's header
LINES_LIMIT = 1_000
LENGTH_DIGITS = 18  # of a Content-Length: an exabyte
END_OF_HEADER = END_OF_RECORD = b"\r\n\r\n"
# 0.17 and 0.18 are drafts of the standard, with the same header; Heritrix wrote them in 2008.
VERSIONS = frozenset([b"WARC/1.0", b"WARC/1.1", b"WARC/0.17", b"WARC/0.18"])

TYPE, RECORD_ID, DATE, LENGTH = b"WARC-Type", b"WARC-Record-ID", b"WARC-Date", b"Content-Length"
CONTENT_TYPE, SEGMENT = b"Content-Type", b"WARC-Segment-Number"
BLOCK_DIGEST, PAYLOAD_DIGEST = b"WARC-Block-Digest", b"WARC-Payload-Digest"
MANDATORY = (RECORD_ID, LENGTH, DATE, TYPE)  # 5.2 to 5.5
_WORD = b"!"  # a value that sorts before it is empty, or begins with a blank
# The fields that define a record and its checks: with two values of one of them, the record is ambiguous.
_DECISIVE = frozenset([*MANDATORY, CONTENT_TYPE, SEGMENT, BLOCK_DIGEST, PAYLOAD_DIGEST])
_REPEATABLE = b"WARC-Concurrent-To"  # 5.7: the only field that may be repeated
STANDARD = _DECISIVE | {
    _REPEATABLE,
    b"WARC-IP-Address",
    b"WARC-Refers-To",
    b"WARC-Refers-To-Target-URI",
    b"WARC-Refers-To-Date",
    b"WARC-Target-URI",
    b"WARC-Truncated",
    b"WARC-Warcinfo-ID",
    b"WARC-Filename",
    b"WARC-Profile",
    b"WARC-Identified-Payload-Type",
    b"WARC-Segment-Origin-ID",
    b"WARC-Segment-Total-Length",
}
_SPELLING = {name.lower(): name for name in STANDARD}

Fields = dict[bytes, bytes]
Bad = Callable[[str], BadInput]
Warn = Callable[[str], None]

_FOLD = re.compile(rb"\r\n[ \t]+")


def parse_header(header: bytes, bad: Bad, warn: Warn) -> Fields:
    """Parse a header, with its closing blank line, into its fields; `bad` makes the error to raise."""
    lines = _lines(header, bad)
    if lines[0] not in VERSIONS and lines[0].upper() not in VERSIONS:  # 4: literals are case-insensitive
        raise bad(f"the record does not begin with WARC/1.0 or WARC/1.1: {header[:20]!r}")
    fields: Fields = {}
    for line in lines[1:-2]:
        name, _, fields[name] = line.partition(b": ")
    if len(fields) == len(lines) - 3 and STANDARD.issuperset(fields):  # as in nearly all headers: each field once
        return fields
    return _any_fields(header, bad, warn)


def _lines(header: bytes, bad: Bad) -> list[bytes]:
    """The header's lines without their ends, with the two empty ones that close it."""
    newlines = header.count(b"\n")
    if newlines > LINES_LIMIT:
        raise bad(f"the record's header has more than {LINES_LIMIT} lines")
    lines = header.split(b"\r\n")
    if newlines != len(lines) - 1:
        raise bad("a line of the record's header ends in LF alone, not in CR LF")
    if 0 in header:  # 4: no control character is TEXT; readers in C would stop at the NUL
        raise bad("the record's header has a NUL byte in it")
    return lines


def _any_fields(header: bytes, bad: Bad, warn: Warn) -> Fields:
    """Parse a header in any valid spelling; joins continued lines in one substitution, so never in quadratic time."""
    fields: Fields = {}
    for line in _FOLD.sub(b" ", header).split(b"\r\n")[1:-2]:
        name, colon, value = line.partition(b":")
        if not colon:
            raise bad(f"a line of the record's header has no colon: {line[:60]!r}")
        _add(fields, _standard_name(name, bad, warn), value.strip(), bad, warn)
    return fields


def _standard_name(written: bytes, bad: Bad, warn: Warn) -> bytes:
    """A field's name as the standard spells it. Blanks before the colon do not count (RFC 2616, 2.1, cited by 4)."""
    name = written.strip().lower()
    if not name:
        raise bad("a line of the record's header has no name before its colon")
    if written[-1:].isspace():
        warn("a header field with a blank before its colon: other readers may not see it")
    return _SPELLING.get(name, name)


def _add(fields: Fields, name: bytes, value: bytes, bad: Bad, warn: Warn) -> None:
    """Add a field. A field of the standard must not be repeated (5.1), but for one, of which all values are kept, with
    blanks between them; extensions define their own rules.
    """
    if name in fields and name in STANDARD and name != _REPEATABLE:
        shown = name.decode()
        if name in _DECISIVE and fields[name] != value:
            raise bad(f"the record's header has more than one {shown}: {fields[name][:60]!r} and {value[:60]!r}")
        warn(f"more than one {shown} in a record's header")
    fields[name] = fields[name] + b" " + value if name == _REPEATABLE and name in fields else value


def content_length(fields: Fields, bad: Bad, mandatory: Sequence[bytes] = MANDATORY) -> int:
    """Return the Content-Length in bytes; refuse a header without all four mandatory fields (5.2 to 5.5)."""
    for name in mandatory:
        if fields.get(name, b"") < _WORD and not fields.get(name, b"").strip():
            raise bad(f"the record's header has no {name.decode()}")
    text = fields[LENGTH]
    if not text.isdigit():
        text = text.strip()
    if not text.isdigit() or len(text) > LENGTH_DIGITS:
        raise bad(f"the record's Content-Length is no number: {text[:30]!r}")
    return int(text)
