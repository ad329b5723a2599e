"""The body of a POST or PUT as a query, so that its captures get keys of their own in a CDX index. Pure.

    POST /search HTTP/1.1 + `q=a&page=2`   ->   q=a&page=2

Forms are decoded, JSON is flattened into names and values, all else becomes base64. The rules are as in the indexers
in use, found by experiment; a service test compares them. At most the first 4,096 characters count.
"""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Iterator
from urllib.parse import quote_plus, unquote_plus, urlencode

from msgspec import Struct

from warcmill.formats.warc.codings import STEPS, UnknownCoding
from warcmill.formats.warc.http import codings_of, payload_start

QUERY_LIMIT = 1 << 12  # characters
BODY_LIMIT = 1 << 20  # bytes that are decoded; what comes after them does not count
BODY_WITHOUT_LENGTH = 1 << 13  # bytes that are read of a body without Content-Length
BLOCK_LIMIT = BODY_LIMIT + (1 << 16)
_REQUEST = re.compile(rb"(POST|PUT) ")
_LENGTH = re.compile(rb"\ncontent-length[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE)
_TYPE = re.compile(rb"\ncontent-type[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE)
_BOUNDARY = re.compile(rb'boundary="?([^\s";,]{1,200})', re.IGNORECASE)
_NAME = re.compile(rb'\bname="([^"\r\n]*)"|\bname=([^\s;"]+)', re.IGNORECASE)


class Posted(Struct, frozen=True):
    """A request with a body: `method` is POST or PUT, `query` stands for the body."""

    method: str
    query: str

    def appended_to(self, url: str) -> str:
        """The URL whose key the capture gets."""
        more = f"&{self.query}" if self.query else ""
        return f"{url}{'&' if '?' in url else '?'}__wb_method={self.method}{more}"


def posted(block: bytes) -> Posted | None:
    """Read the block of a request; its first BLOCK_LIMIT bytes are enough. None if it is neither POST nor PUT."""
    method = _REQUEST.match(block)
    begin = payload_start(block, 0, response=False)
    if not method or begin < 0:
        return None
    header = block[:begin]
    return Posted(method[1].decode(), _query(_first(_TYPE, header), _body(header, block[begin:]))[:QUERY_LIMIT])


def _first(pattern: re.Pattern[bytes], header: bytes) -> bytes | None:
    match = pattern.search(header)
    return match[1].strip() if match else None


def _body(header: bytes, body: bytes) -> bytes:
    """The body without its codings, as long as its Content-Length has it."""
    length = _first(_LENGTH, header)
    for coding in codings_of(header):
        body = b"".join(_decoded(coding, body))
    if length is None:
        return body[:BODY_WITHOUT_LENGTH]
    return body[: int(length)] if length.isdigit() and len(length) < 19 else b""


def _decoded(coding: bytes, body: bytes) -> Iterator[bytes]:
    decoder, left = STEPS.get(coding, UnknownCoding)(), BODY_LIMIT
    for part in decoder.feed(body):
        yield part[:left]
        left -= len(part)
        if left <= 0:
            return
    yield from decoder.close()


def _query(kind: bytes | None, body: bytes) -> str:
    kind = kind or b""
    if kind.startswith(b"multipart/") and (boundary := _BOUNDARY.search(kind)):
        return "&".join(_parts(body, b"--" + boundary[1]))
    if kind.startswith(b"application/x-www-form-urlencoded"):
        return _form(body)
    if kind.startswith(b"application/json"):
        return _json(body) or ""
    query = _json(body) if kind.startswith(b"text/plain") and body else None
    return _binary(body) if query is None else query


def _binary(body: bytes) -> str:
    return "__wb_post_data=" + binascii.b2a_base64(body[:QUERY_LIMIT], newline=False).decode()


def _form(body: bytes) -> str:
    try:
        return unquote_plus(body.decode())
    except UnicodeDecodeError:
        return _binary(body)


def _json(body: bytes) -> str | None:
    """Values by name, in order; a name's second value is `name.2_`. None if it is not JSON, as a whole or by line."""
    try:
        documents = _documents(body)
        return urlencode(list(_numbered(pair for document in documents for pair in _values("", document))))
    except (ValueError, RecursionError):
        return None


def _documents(body: bytes) -> list[object]:
    try:
        return [json.loads(body)]
    except ValueError:
        return [json.loads(line) for line in body.split(b"\n")]


def _values(name: str, value: object) -> Iterator[tuple[str, str]]:
    """The values below one, depth first; values of a list have the list's name. Without a name they do not count."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _values(key, inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _values(name, inner)
    elif name:
        yield name, str(value)


def _numbered(pairs: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    counts: dict[str, int] = {}
    for name, value in pairs:
        shown = name
        while shown in counts:
            counts[name] += 1
            shown = f"{name}.{counts[name]}_"
        counts[shown] = 1
        yield shown, value


def _parts(body: bytes, boundary: bytes) -> Iterator[str]:
    """The whole parts of a multipart body (RFC 7578); one that is cut off does not count."""
    pieces = (b"\r\n" + body).split(b"\r\n" + boundary)
    for piece in pieces[1:-1]:
        header, _, value = piece.partition(b"\r\n\r\n")
        if name := _NAME.search(header):
            yield f"{quote_plus(name[1] or name[2] or b'')}={quote_plus(value)}"
