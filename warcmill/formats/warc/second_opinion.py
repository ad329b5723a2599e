"""The reading of a WARC by warcio, an independent reader: a second opinion beside the gate's. Reads only.

Where the two readers differ over a digest, `unfit` computes the value from the record's bytes, by the code of neither.
"""

from __future__ import annotations

import hashlib
import zlib
from base64 import b32encode, b64encode
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Self

from msgspec import Struct

from warcmill.base.digests import Readable
from warcmill.errors import BadInput

if TYPE_CHECKING:
    from warcio.archiveiterator import ArchiveIterator
    from warcio.recordloader import ArcWarcRecord

_BLOCK = 4096  # bytes of a file at a time: they may inflate a thousandfold, and warcio holds several copies of that
BLOCK, PAYLOAD = "block", "payload"
_SHOWN = 200  # characters of a fault: some of warcio's fill a page
_PIECE = 1 << 16  # bytes inflated at a time
_HEAD = 1 << 20  # bytes of a record's header, or of the HTTP header in it
_END = b"\r\n\r\n"
_FIELDS = {BLOCK: b"warc-block-digest", PAYLOAD: b"warc-payload-digest"}


class Problem(Struct, frozen=True):
    """A fault that warcio finds in the record at `offset`, in bytes. `record`: its type and ID, as far as known.

    `digest`: block or payload, for a digest that does not fit.
    """

    offset: int
    record: str
    why: str
    digest: str = ""


class Opinion(Struct, frozen=True):
    """The number of records that warcio reads in a file, and the faults it finds."""

    records: int
    problems: tuple[Problem, ...]


def opinion(stream: Readable) -> Opinion:
    """Read `stream` to its end as `warcio check` does. Raises OSError only for the stream itself."""
    from warcio.archiveiterator import ArchiveIterator  # noqa: PLC0415 takes 100 ms

    records, last, problems = 0, 0, list[Problem]()
    iterator = ArchiveIterator(stream, check_digests=True, block_size=_BLOCK)
    iterator.INC_RECORD = ""  # else it writes to stderr; it counts errors all the same
    try:
        for record in iterator:
            records, last = records + 1, iterator.get_record_offset()
            problems += _problems(iterator, record)
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 whatever error warcio ends with is its answer
        problems.append(Problem(last, "", f"reads no further: {_short(error)}"))
    return Opinion(records, tuple(problems))


def _problems(iterator: ArchiveIterator, record: ArcWarcRecord) -> Iterator[Problem]:
    """The faults in the current record, which has been read to its end."""
    offset, get = iterator.get_record_offset(), record.rec_headers.get_header
    known = " ".join(filter(None, (get("WARC-Type"), get("WARC-Record-ID"))))
    for why in record.digest_checker.problems:
        digest = next((one for one in (BLOCK, PAYLOAD) if why.startswith(f"{one} digest failed")), "")
        yield Problem(offset, known, _short(why), digest)
    if iterator.err_count:
        iterator.err_count = 0
        yield Problem(offset, known, "no newline after the record: its Content-Length may be wrong")


def _short(why: object) -> str:
    """The fault on one line, with the error's class: the text alone is often not enough."""
    name = f"{type(why).__name__}: " if isinstance(why, Exception) else ""
    return (name + " ".join(str(why).split()))[:_SHOWN]


def unfit(stream: Readable) -> frozenset[str]:
    """Which digests of the record at the begin of `stream`, BLOCK or PAYLOAD, are not those of its bytes as they lie.

    The payload is the HTTP body as transferred. BadInput where no record begins there, or it cannot be computed.
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
    declared = {name: _Declared.of(fields[key]) for name, key in _FIELDS.items() if key in fields}
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
    def of(cls, text: bytes) -> Self:
        name, _, value = text.partition(b":")
        try:
            made = hashlib.new(name.decode().lower().replace("-", ""), usedforsecurity=False)
        except ValueError as error:
            raise BadInput("a digest", f"its algorithm is not known here: {text[:80]!r}") from error
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
