"""The records of a WARC 1.1 (ISO 28500:2017): values in, the bytes of one gzip member out. No file is touched.

Digests are sha1 in base32, as Heritrix and wget write them. A payload is the HTTP body without chunk framing. The block
of a `response` begins with the status line of the final answer; 1xx answers before it are in `metadata`.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import quote

from isal import isal_zlib
from msgspec import Struct

from warcmill.errors import BadInput, Mismatch
from warcmill.formats.warc.header import END_OF_RECORD

LEVEL = 1  # of isal: half the time of its level 2, one part in twenty larger
AT_ONCE = 1 << 20  # bytes of a block that are compressed in one call
RESPONSE, REQUEST = "application/http; msgtype=response", "application/http; msgtype=request"
FIELDS, DNS = "application/warc-fields", "text/dns"
_PROFILES = "http://netpreserve.org/warc/1.1/revisit"  # 6.7.2 and 6.7.3
IDENTICAL, NOT_MODIFIED = f"{_PROFILES}/identical-payload-digest", f"{_PROFILES}/server-not-modified"
CONFORMS_TO = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
_GZIP = 31  # zlib's wbits for a gzip member
_BASE32 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_TO_BASE32 = _BASE32.ljust(256, b"\0")
_FROM_BASE32 = bytes([_BASE32.find(byte) & 0xFF for byte in range(256)])
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_CONTROLS = bytes([*range(32), 127])
_READABLE = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")

Pairs = Sequence[tuple[str, str]]


def _halves(bits: int) -> tuple[int, int, int]:
    """The masks of the higher and the lower halves of all groups of so many bits in a sha1, and how far they move
    apart."""
    room = bits * 8 // 5
    low = sum(((1 << bits // 2) - 1) << at for at in range(0, 256, room))
    return low << bits // 2, low, room // 2 - bits // 2


_HALVES = [_halves(bits) for bits in (160, 80, 40, 20, 10)]


def sha1_text(digest: bytes) -> str:
    """Return a sha1 as WARCs and crawl logs write it: `sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ`.

    Its 160 bits are spread over 32 bytes, five each, by halves: a third of the time of `base64.b32encode`.
    """
    number = int.from_bytes(digest)
    for high, low, shift in _HALVES:
        number = (number & high) << shift | number & low
    return "sha1:" + number.to_bytes(32).translate(_TO_BASE32).decode()


def sha1_bytes(text: str) -> bytes:
    """Return the sha1 that `sha1_text` has written; ValueError for any other text."""
    found = text.encode("ascii").removeprefix(b"sha1:").translate(_FROM_BASE32)
    if len(found) != 32 or not found.isascii():
        raise ValueError(f"{text[:80]!r} is no sha1 in base32")
    number = int.from_bytes(found)
    for high, low, shift in reversed(_HALVES):
        number = number >> shift & high | number & low
    return number.to_bytes(20)


def new_id() -> str:
    """Return the id of a new record: a random UUID (RFC 9562, 5.4)."""
    text = os.urandom(16).hex()
    return f"<urn:uuid:{text[:8]}-{text[8:12]}-4{text[13:16]}-{'89ab'[int(text[16], 16) & 3]}{text[17:20]}-{text[20:]}>"


class Block(NamedTuple):
    """The bytes of a record's block: `pieces` yields them, from the beginning each time it is called."""

    length: int
    digest: str
    pieces: Callable[[], Iterable[bytes]]

    @classmethod
    def of(cls, data: bytes) -> Block:
        """The block that has these bytes."""
        return cls(len(data), sha1_text(hashlib.sha1(data, usedforsecurity=False).digest()), lambda: (data,))


class Capture(NamedTuple):
    """The values that records of one exchange share: `date` is when its request was sent, as `2016-10-19T23:44:28Z`."""

    uri: str
    date: str
    ip: str = ""


class Original(Struct, frozen=True):
    """The record that a revisit refers to: its id, date, URI and payload digest ('' if not known), as written there."""

    id: str
    date: str
    uri: str
    payload_digest: str = ""


class Record(NamedTuple):
    """One record. `payload_digest` is '' where the record has none."""

    type: str
    id: str
    date: str
    uri: str
    header: bytes
    block: Block
    payload_digest: str = ""

    def member(self) -> Iterator[bytes]:
        """Yield the record as one gzip member. Mismatch when the block is not as long as its header has it."""
        if self.block.length <= AT_ONCE:
            block = b"".join(self.block.pieces())
            self._check(len(block))
            yield isal_zlib.compress(b"".join((self.header, block, END_OF_RECORD)), LEVEL, _GZIP)
        else:
            yield from self._long_member()

    def _long_member(self) -> Iterator[bytes]:
        packer, found = isal_zlib.compressobj(LEVEL, isal_zlib.DEFLATED, _GZIP), 0
        yield packer.compress(self.header)
        for piece in self.block.pieces():
            found += len(piece)
            yield packer.compress(piece)
        self._check(found)
        yield packer.compress(END_OF_RECORD) + packer.flush()

    def _check(self, found: int) -> None:
        if found != self.block.length:
            raise Mismatch(f"the bytes kept for {self.type} {self.uri}", self.block.length, found)


def response(capture: Capture, block: Block, payload_digest: str, truncated: str = "") -> Record:
    """An HTTP answer as it was received. `truncated`: length, time, disconnect or unspecified (5.13)."""
    more = [*_ip(capture), ("WARC-Truncated", truncated)]
    return _record("response", capture, RESPONSE, block, more, payload_digest)


def identical(capture: Capture, head: Block, payload_digest: str, original: Original) -> Record:
    """A revisit: the answer had the payload of `original`, and only its `head` is kept (6.7.2)."""
    more = [*_ip(capture), *_refers_to(original), ("WARC-Profile", IDENTICAL), ("WARC-Truncated", "length")]
    return _record("revisit", capture, RESPONSE, head, more, payload_digest)


def not_modified(capture: Capture, block: Block, original: Original | None) -> Record:
    """A revisit: the server answered 304 (6.7.3)."""
    more = [*_ip(capture), *_refers_to(original), ("WARC-Profile", NOT_MODIFIED)]
    return _record("revisit", capture, RESPONSE, block, more, original.payload_digest if original else "")


def request(answer: Record, block: Block) -> Record:
    """The request that `answer`, a response or revisit, was given to."""
    return _record("request", _capture(answer), REQUEST, block, _concurrent(answer))


def metadata(answer: Record, fields: Pairs) -> Record:
    """The other facts of the exchange of `answer`: via, hops, outlinks, 1xx answers."""
    return _record("metadata", _capture(answer), FIELDS, Block.of(fields_block(fields)), _concurrent(answer))


def resource(capture: Capture, content_type: str, block: Block, about: Record | None = None) -> Record:
    """A file that came without a protocol's answer around it; `about`: the record of the page that it was made of."""
    more = [*_ip(capture), *(_concurrent(about) if about else ())]
    return _record("resource", capture, content_type, block, more, block.digest)


def dns(capture: Capture, text: str) -> Record:
    """An answer of the domain name system, as Heritrix keeps it; `capture.ip` is the name server's."""
    return _record("response", capture, DNS, Block.of(text.encode()), _ip(capture))


def warcinfo(filename: str, date: str, fields: Pairs) -> Record:
    """The first record of a file. `filename` is its final name, without `.open`."""
    block = Block.of(fields_block(fields))
    return _record("warcinfo", Capture("", date), FIELDS, block, [("WARC-Filename", filename)])


def fields_block(fields: Pairs) -> bytes:
    """The block of a record of type application/warc-fields; control characters are percent-encoded."""
    block = _lines(fields).encode("utf-8", "replace")
    if _has_controls(block, len(fields)):
        return _lines([(name, _CONTROL.sub(_escape, value)) for name, value in fields]).encode("utf-8", "replace")
    return block


def _lines(fields: Pairs) -> str:
    return "\r\n".join([*map(": ".join, fields), ""])


def readable(raw: bytes) -> str:
    """Bytes in one line of ASCII, from which `urllib.parse.unquote_to_bytes` makes the same bytes again."""
    return quote(raw, safe=_READABLE)


def _has_controls(text: bytes, lines: int) -> bool:
    """True if there are control characters besides the ends of so many lines."""
    return len(text) - len(text.translate(None, _CONTROLS)) != 2 * lines


def _escape(char: re.Match[str]) -> str:
    return f"%{ord(char[0]):02X}"


def _capture(answer: Record) -> Capture:
    return Capture(answer.uri, answer.date)


def _concurrent(answer: Record) -> list[tuple[str, str]]:
    return [("WARC-Concurrent-To", answer.id)]


def _ip(capture: Capture) -> list[tuple[str, str]]:
    return [("WARC-IP-Address", capture.ip)]


def _refers_to(original: Original | None) -> list[tuple[str, str]]:
    if original is None:
        return []
    return [
        ("WARC-Refers-To", original.id),
        ("WARC-Refers-To-Target-URI", original.uri),
        ("WARC-Refers-To-Date", original.date),
    ]


def _record(kind: str, capture: Capture, content_type: str, block: Block, more: Pairs, payload: str = "") -> Record:
    record_id = new_id()
    fields = (
        ("WARC-Type", kind),
        ("WARC-Target-URI", capture.uri),
        ("WARC-Date", capture.date),
        ("WARC-Record-ID", record_id),
        *more,
        ("WARC-Block-Digest", block.digest),
        ("WARC-Payload-Digest", payload),
        ("Content-Type", content_type),
        ("Content-Length", str(block.length)),
    )
    given = [field for field in fields if field[1]]
    header = f"WARC/1.1\r\n{_lines(given)}\r\n".encode("utf-8", "surrogateescape")
    if _has_controls(header, len(given) + 2):
        raise BadInput(repr(capture.uri), "a control character in what would be a WARC header; nothing was written")
    return Record(kind, record_id, capture.date, capture.uri, header, block, payload)
