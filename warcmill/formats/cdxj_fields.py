"""What a line of a CDX index says of a capture: the URL, date, media type and status of its record, as they are shown.

Captures meet their requests as `Made`. Most are made by `of_whole`, in one look at a record that `plain` accepted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from typing import NamedTuple

from warcmill.formats.warc import plain
from warcmill.formats.warc.header import END_OF_RECORD
from warcmill.formats.warc.hearers import WholeRecord
from warcmill.formats.warc.http import payload_start

HTTP = ("http://", "https://", "http:", "https:")
_PLAIN_HTTP = (b"http://", b"https://")
_DATE = re.compile(
    rb"(\d{4})(?:-?(0[1-9]|1[0-2])(?:-?(0[1-9]|[12]\d|3[01])"
    rb"(?:T?([01]\d|2[0-3]):?([0-5]\d)(?::?([0-5]\d|60)(?:\.\d+)?)?)?)?)?Z?"
)  # ISO 28500:2017, annex on dates of less precision; ARC has digits alone
_LONGEST_DATE = 64
_EARLIEST = (b"01", b"01", b"00", b"00", b"00")
_STATUS = re.compile(rb"HTTP/\S* +(\d{3})(?!\S)")
_MIME = re.compile(rb"\ncontent-type[ \t]*:[ \t]*([^;\s]*)", re.IGNORECASE)
_REVISIT = b"warc/revisit"
_WANTED = (plain.URL, plain.DATE, plain.DIGEST, plain.ORIGINAL, plain.TRUNCATED, plain.RECORD_ID)
_REMEMBERED, _LONG = 256, 100  # records of one second, type and status follow each other; bytes of a type


class Made(NamedTuple):
    """A capture that the gate accepted. Without `record_id` it waits for no request."""

    kind: str
    url: str
    date: str
    fields: str
    last: str
    record_id: bytes
    concurrent: bytes


def of_whole(record: WholeRecord) -> Made | None:
    """The capture of a response that declares its digest, or of a revisit. None for others, and for odd ones."""
    data, header = record.data, record.header
    raw, when, digest, original, truncated, record_id = header.group(*_WANTED)
    begin, is_revisit = header.end(), header[plain.TYPE] == b"revisit"
    if not (raw and raw.startswith(_PLAIN_HTTP) and (digest or is_revisit)):
        return None
    body, date = _body(data, begin), _date(when)
    if body < 0 or not date:
        return None
    status, mime = _STATUS.match(data, begin, body), None if is_revisit else _MIME.search(data, begin, body)
    url = _decoded(raw.strip()).replace(" ", "%20")
    about = _about(_REVISIT if is_revisit else mime and mime[1], status and status[1])
    declared = f'"digest": "{digest.decode()}", ' if digest else digest_shown((original or b"").strip())
    shown = (
        f'"url": {quoted(url)}, {about}{declared}'
        f'"length": "{record.extent}", "offset": "{record.offset}", "filename": ""'
    )
    kind = "revisit" if is_revisit else "response"
    last = "" if truncated is None else truncated_shown(truncated)
    return Made(kind, url, date, shown, last, record_id.strip(), b"")


def _body(data: bytes, begin: int) -> int:
    """Where the HTTP body of a record's block begins; -1 if the block is no such message, or not clearly one."""
    end = len(data) - len(END_OF_RECORD)
    if begin == end:
        return begin
    body = payload_start(data, begin, response=False) if data.startswith(b"HTTP/", begin) else -1
    return body if body <= end else -1


def _about(mime: bytes | None, status: bytes | None) -> str:
    return _known(mime, status) if mime is None or len(mime) < _LONG else _known.__wrapped__(mime, status)


@lru_cache(_REMEMBERED)
def _known(mime: bytes | None, status: bytes | None) -> str:
    return mime_shown(mime) + (f'"status": "{status.decode()}", ' if status else "")


def mime_shown(mime: bytes | None) -> str:
    """The media type as a line has it."""
    return "" if mime is None else f'"mime": {_quoted(mime)}, '


def of_http(header: bytes, *, is_revisit: bool) -> str:
    """Media type and status of an HTTP header, as a line has them."""
    status, mime = _STATUS.match(header), None if is_revisit else _MIME.search(header)
    return _about(_REVISIT if is_revisit else mime and mime[1], status and status[1])


def digest_shown(digest: bytes) -> str:
    """A payload's digest as a line has it."""
    return f'"digest": {_quoted(digest)}, ' if digest else ""


def truncated_shown(truncated: bytes | None) -> str:
    """Why a record is truncated, as the end of a line has it."""
    return "" if truncated is None else f', "truncated": {_quoted(truncated)}'


def url_of(fields: Mapping[bytes, bytes]) -> str:
    """The URL as others write it, without angle brackets and blanks; '' if there is none."""
    raw = (fields.get(b"WARC-Target-URI") or fields.get(b"URL", b"")).strip()
    if raw.startswith(b"<") and raw.endswith(b">"):
        raw = raw[1:-1]
    return _decoded(raw).replace(" ", "%20")


def date_of(fields: Mapping[bytes, bytes]) -> str:
    """The date as 14 digits, the earliest if it is not exact; '' if it is none."""
    return _date(fields.get(b"WARC-Date") or fields.get(b"Archive-date", b""))


def _date(raw: bytes) -> str:
    raw = raw.strip()
    return _digits(raw) if len(raw) <= _LONGEST_DATE else ""


@lru_cache(_REMEMBERED)
def _digits(raw: bytes) -> str:
    match = _DATE.fullmatch(raw)
    if not match:
        return ""
    year, *rest = match.groups()
    return (year + b"".join(part or least for part, least in zip(rest, _EARLIEST, strict=True))).decode()


def _quoted(text: bytes) -> str:
    return quoted(_decoded(text))


def _decoded(text: bytes) -> str:
    """A text of a header: UTF-8, or what is not even that as Latin 1."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text.decode("latin-1")
