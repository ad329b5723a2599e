"""The digests that a record declares, computed from its bytes by plain means: the code of neither reader. Reads only.

It decides where the gate and a second reader differ over a digest.
"""

from __future__ import annotations

import hashlib
import zlib
from base64 import b32encode, b64encode
from collections.abc import Callable, Iterator
from typing import Self

from msgspec import Struct

from warcmill.base.digests import Readable
from warcmill.errors import BadInput

BLOCK, PAYLOAD = "block", "payload"
_PIECE = 1 << 16  # bytes inflated at a time
_HEAD = 1 << 20  # bytes of a record's header, or of the HTTP header in it
_END = b"\r\n\r\n"
_ALGORITHMS = "md5", "sha1", "sha256", "sha384", "sha512"
_FIELDS = {BLOCK: b"warc-block-digest", PAYLOAD: b"warc-payload-digest"}


def unfit(stream: Readable) -> frozenset[str]:
    """Which digests of the record at the begin of `stream`, BLOCK or PAYLOAD, are not those of its bytes as they lie.

    The payload is the HTTP body as transferred. A digest of another algorithm is left out. BadInput without a record.
    """
    pieces = _inflated(stream)
    text = next(pieces, b"")
    while _END not in text and len(text) < _HEAD and (piece := next(pieces, b"")):
        text += piece
    head, _, text = text.partition(_END)
    parts = (line.partition(b":") for line in head.split(b"\n"))
    fields = {name.strip().lower(): value.strip() for name, _, value in parts}
    if not (length := fields.get(b"content-length", b"")).isdigit():
        raise BadInput("a WARC record", f"it has no Content-Length: {head[:80]!r}")
    texts = {name: fields[key] for name, key in _FIELDS.items() if key in fields}
    declared = {name: one for name, text in texts.items() if (one := _Declared.of(text))}
    is_http = fields.get(b"content-type", b"").lower().startswith(b"application/http")
    left = int(length)
    header: bytes | None = b"" if is_http else None  # of the HTTP message, until its end is there
    while left and (piece := (text or next(pieces, b""))[:left]):
        text, left = b"", left - len(piece)
        if BLOCK in declared:
            declared[BLOCK].feed(piece)
        if header is not None:
            header += piece
            _, end, piece = header.partition(_END)
            header = None if end or len(header) > _HEAD else header
        if PAYLOAD in declared:
            declared[PAYLOAD].feed(piece)
    return frozenset(name for name, one in declared.items() if left or not one.is_so())


class _Declared(Struct, frozen=True):
    """A digest as a record declares it, in hexadecimal digits, base32 or base64, and the hash that is fed."""

    value: bytes
    feed: Callable[[bytes], None]
    digest: Callable[[], bytes]

    @classmethod
    def of(cls, text: bytes) -> Self | None:
        """The digest; None where its algorithm is not known here."""
        name, _, value = text.partition(b":")
        if (label := name.decode("latin-1").lower().replace("-", "")) not in _ALGORITHMS:
            return None
        made = hashlib.new(label, usedforsecurity=False)
        return cls(value.strip(), made.update, made.digest)

    def is_so(self) -> bool:
        found, value = self.digest(), self.value.rstrip(b"=")
        written = {found.hex().encode(): value.lower(), b32encode(found).rstrip(b"="): value.upper()}
        return any(one == other for one, other in written.items()) or b64encode(found).rstrip(b"=") == value


def _inflated(stream: Readable) -> Iterator[bytes]:
    """The bytes of `stream`, some at a time: inflated to the end of the first member, if it begins with one of gzip."""
    piece = stream.read(_PIECE)
    if not piece.startswith(b"\x1f\x8b"):
        while piece:
            yield piece
            piece = stream.read(_PIECE)
        return
    member = zlib.decompressobj(16 + zlib.MAX_WBITS)
    while not member.eof:
        try:
            out = member.decompress(piece, _PIECE)
        except zlib.error as error:
            raise BadInput("a gzip member", f"damaged: {error}") from error
        if out:
            yield out
        elif not piece:
            return
        piece = member.unconsumed_tail or stream.read(_PIECE)
