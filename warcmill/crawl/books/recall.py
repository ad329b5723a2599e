"""Recall reads a recorded answer from a WARC of the launch; it stands alone, as the reader of what `files` writes.

A browser that asks for what the launch has gets it so. The block of the record is the answer as its server sent it,
so it is read as it was when it came. A long one is in a scratch file again.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from warcmill.base import disk
from warcmill.crawl.fetch.answer import AnswerReader, AnswerSpool, mime_of
from warcmill.crawl.fetch.exchange import Exchange
from warcmill.errors import BadInput, Unavailable
from warcmill.formats.warc import header as warc
from warcmill.formats.warc.reader import MemberReader


def recall(uri: str, path: Path, offset: int, scratch: Path) -> Exchange:
    """Read the answer to a GET of a URI again; `close` it. BadInput when no record of it is there."""
    try:
        with path.open("rb") as stream:
            stream.seek(offset)
            reader = MemberReader(stream, str(path))
            reader.begin()
            fields = warc.parse_header(reader.through(warc.END_OF_HEADER, warc.HEADER_LIMIT), reader.bad, _pass_over)
            if fields.get(warc.TYPE) != b"response" or fields.get(b"WARC-Target-URI") != uri.encode():
                raise BadInput(str(path), f"the books know a record of {uri} there, and it is another", offset)
            return _exchange(uri, fields, reader, scratch)
    except OSError as error:
        raise Unavailable(str(path), disk.reason(error, path)) from error


def _exchange(uri: str, fields: warc.Fields, reader: MemberReader, scratch: Path) -> Exchange:
    spool = AnswerSpool(scratch)
    answer = AnswerReader("GET", spool, warc.HEADER_LIMIT)
    try:
        for piece in reader.take(warc.content_length(fields, reader.bad)):
            answer.feed(bytes(piece))
    except BaseException:
        spool.close()
        raise
    answer.end()
    if (head := answer.head) is None:
        raise reader.bad(f"the record of {uri} is empty")
    return Exchange(
        uri, "GET", "", datetime.fromisoformat(fields[warc.DATE].decode()), 0, b"", spool, head.status, head.fields,
        mime_of(head.fields.first("content-type")), answer.head_length, (), answer.payload_length,
        answer.payload_sha1, answer.payload_sha256, answer.chunked, fields.get(b"WARC-Truncated", b"").decode(),
        extra=answer.extra,
    )  # fmt: skip


def _pass_over(_: str) -> None:
    """Our own header warns of nothing."""
