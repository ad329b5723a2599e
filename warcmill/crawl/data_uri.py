"""`data:` URIs (RFC 2397): they hold their own bytes, so they are read without a network, and write no record."""

from __future__ import annotations

import base64
import binascii
import re
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from warcmill.crawl.uri import shown
from warcmill.errors import BadInput

_PLAIN = "text/plain;charset=US-ASCII"
_SPACE = re.compile(rb"[\t\n\f\r ]")
_IN_BASE64 = re.compile(r";[ ]*base64\Z", re.IGNORECASE)


class Data(NamedTuple):
    """The media type of a `data:` URI and its bytes."""

    mime: str
    body: bytes


def read(uri: str) -> Data:
    """Return what a `data:` URI holds, as browsers read it; BadInput when it has no comma or its base64 is broken."""
    head, comma, body = uri.partition(":")[2].partition(",")
    if not comma:
        raise BadInput(shown(uri), "a data: URI without a comma")
    raw = unquote_to_bytes(body)
    mime = _IN_BASE64.sub("", head.strip())
    if mime != head.strip():
        raw = _decoded(_SPACE.sub(b"", raw), uri)
    return Data((_PLAIN.partition(";")[0] + mime if mime.startswith(";") else mime) or _PLAIN, raw)


def _decoded(text: bytes, uri: str) -> bytes:
    bare = text.rstrip(b"=") if len(text) % 4 == 0 else text
    try:
        return base64.b64decode(bare + b"=" * (-len(bare) % 4), validate=True)
    except binascii.Error as error:
        raise BadInput(shown(uri), f"a data: URI with broken base64: {error}") from error
