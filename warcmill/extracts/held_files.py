"""A distribution that the archive holds whole: taken out of its WARC, and compared with its SHA-256. Reads the store,
and writes to nameless files.

It stands alone, as pages of `serve` need it without the makers of extracts.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from warcmill.errors import BadInput, Mismatch, Unavailable
from warcmill.formats.pypi.dump import HeldFile
from warcmill.formats.warc.codings import Dechunk
from warcmill.formats.warc.header import END_OF_HEADER, HEADER_LIMIT, content_length, parse_header
from warcmill.formats.warc.http import MessageHead, codings_of
from warcmill.formats.warc.reader import MemberReader, PlainReader, read_arc_header
from warcmill.stores import Store

_IN_MEMORY = 8 << 20  # bytes of a file; more of them go to a nameless file


def take_out(store: Store, held: HeldFile, sha256: str, folder: Path) -> tuple[BinaryIO, int]:
    """A file, whole, and its length in bytes. Close it; its bytes, if many, are in a nameless file of the folder.

    NotReady if its WARC is not in the store, Unavailable if that is damaged, Mismatch if it has another SHA-256.
    """
    spool = tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=str(folder))  # noqa: SIM115 the caller closes it
    digest, size = hashlib.sha256(), 0
    try:
        with store.open(held.warc, held.offset) as stream:
            for piece in _body(stream, held):
                size += spool.write(piece)
                digest.update(piece)
        if digest.hexdigest() != sha256:
            where = f"sha256 of the file at offset {held.offset} of store:{held.warc}"
            raise Mismatch(where, sha256, digest.hexdigest())
    except BadInput as error:
        spool.close()
        raise Unavailable(f"store:{held.warc}", f"{error.why}, at offset {held.offset}") from error
    except BaseException:
        spool.close()
        raise
    spool.seek(0)
    return cast("BinaryIO", spool), size


def _body(stream: BinaryIO, held: HeldFile) -> Iterator[bytes]:
    """The body of an answer, its chunks joined. A file has no other coding: the crawler asks for none."""
    name = held.warc.lower()
    reader = (MemberReader if name.endswith(".gz") else PlainReader)(stream, held.warc, held.offset)
    if not reader.begin():
        raise reader.bad("there is no record")
    if name.removesuffix(".gz").endswith(".arc"):
        length = read_arc_header(reader)[1]
    else:
        fields = parse_header(reader.through(END_OF_HEADER, HEADER_LIMIT), reader.bad, lambda _: None)
        length = content_length(fields, reader.bad)
    message: MessageHead | None = MessageHead(response=True)
    dechunk: Dechunk | None = None
    for piece in reader.take(length):
        rest = message.feed(piece) if message else piece
        if message and message.ended:
            dechunk = Dechunk() if b"chunked" in codings_of(bytes(message.header)) else None
            message = None
        if not message:
            yield from dechunk.feed(bytes(rest)) if dechunk else [bytes(rest)]
