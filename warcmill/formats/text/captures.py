"""The documents of a WARC, with their payloads as a browser gets them, while the gate reads the file. Pure.

A document is a response or resource that was fetched (2xx), of a type that has words. Headers decide, never payloads.
The DOM that a browser made of a page counts as one of that page: it may have words that scripts alone have written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from warcmill.formats.index.cdxj import DOM, NO_DATE, NO_URL, date_of, has_offset, url_of
from warcmill.formats.text import charset
from warcmill.formats.text.document import Kind, kind_of
from warcmill.formats.warc.header import CONTENT_TYPE, PAYLOAD_DIGEST
from warcmill.formats.warc.hearers import Hearer, RecordHead
from warcmill.formats.warc.http import MessageHead
from warcmill.formats.warc.payload import Payload, is_http

REVISIT, NOT_FETCHED, OTHER_TYPE = "revisit", "status other than 2xx", "other type"
MOST_PAYLOAD = 64 << 20  # bytes of a document
TOO_LONG = f"over {MOST_PAYLOAD} bytes"
_HEARD = frozenset({"response", "resource", "arc", "revisit"})
_STATUS = re.compile(rb"(?:HTTP/\S*|ICY) +(\d{3})(?!\S)")
_TYPE = re.compile(rb"\ncontent-type[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE)


class Captured(Struct, frozen=True):
    """A document, as its record has it. `why`: why its payload is not whole, so that no text can be extracted."""

    offset: int
    record_type: str
    url: str
    date: str
    status: int | None
    media_type: str
    kind: Kind
    charset: str
    digest: str
    payload: bytes
    why: str

    def without_payload(self) -> Captured:
        """All but its payload: it waits for its text, and should take little memory."""
        return replace(self, payload=b"")


class DocumentHearer(Hearer):
    """Passes each document to `sink`. Counts documents by kind, other captures by reason, and dates with an offset.

    `most`: bytes of a payload to pass on, for a reader that wants only its beginning.
    """

    def __init__(self, sink: Callable[[Captured], object], most: int | None = None) -> None:
        self.documents: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.offset_dates = 0
        self.sink, self.most = sink, MOST_PAYLOAD if most is None else most

    def begin(self, head: RecordHead, /) -> _Record | None:
        """Listen to captures."""
        return _Record(self, head) if head.type in _HEARD else None


class _Record:
    """One capture. It keeps the payload of a document, and nothing of any other."""

    def __init__(self, captures: DocumentHearer, head: RecordHead) -> None:
        self._captures, self._head = captures, head
        self._url, self._date = url_of(head.fields).removeprefix(DOM), date_of(head.fields)
        self._status: int | None = None
        self._media_type = self._charset = ""
        self._kept: list[_Kept] = []
        self._payload: Payload | None = None
        self._message = MessageHead(response=True) if is_http(head) else None
        self._why_none = REVISIT if head.type == "revisit" else ""
        self._decided = bool(self._why_none)
        if not self._message and not self._decided:
            self._decide(head.fields.get(CONTENT_TYPE, b""))

    def feed(self, piece: memoryview) -> None:
        """The next bytes of the block."""
        if not self._decided and self._message:
            piece = self._message.feed(piece)
            if self._message.ended:
                self._read_header(bytes(self._message.header))
        if self._payload and piece:
            self._payload.feed(piece)

    def end(self, offset: int, _length: int) -> None:
        """The record is whole: count it, and pass on its document."""
        if not self._decided and self._message:
            self._read_header(bytes(self._message.header))
        if self._why_none != REVISIT:
            self._captures.offset_dates += has_offset(self._head.fields)
        if self._why_none or not self._payload:
            self._captures.left_out[self._why_none] += 1
            return
        self._payload.close()
        kind = kind_of(self._media_type) or Kind.UNDECLARED
        self._captures.documents[kind] += 1
        self._captures.sink(self._captured(offset, kind, self._payload.why_not))

    def _read_header(self, header: bytes) -> None:
        status, declared = _STATUS.match(header), _TYPE.search(header)
        self._status = int(status[1]) if status else None
        self._decide(declared[1] if declared else b"")
        if self._payload:
            self._payload.feed(memoryview(header))

    def _decide(self, declared: bytes) -> None:
        """Decide if this is a document, now that its header is known."""
        self._decided = True
        self._charset = charset.label_of(declared)
        self._media_type = declared.partition(b";")[0].strip().lower().decode("latin-1")
        self._why_none = self._none()
        if not self._why_none:
            self._payload = Payload(self._head, self._keep)

    def _none(self) -> str:
        if not self._url or not self._date:
            return NO_DATE if self._url else NO_URL
        if self._message and not 200 <= (self._status or 0) < 300:
            return NOT_FETCHED
        return OTHER_TYPE if kind_of(self._media_type) is None else ""

    def _keep(self) -> _Kept:
        self._kept.append(_Kept(self._captures.most))
        return self._kept[-1]

    def _captured(self, offset: int, kind: Kind, why: str) -> Captured:
        shown = next((reading for reading in reversed(self._kept) if reading.data), self._kept[0])
        digest = self._head.fields.get(PAYLOAD_DIGEST, b"").strip().decode("latin-1")
        about = (self._head.type, self._url, self._date, self._status, self._media_type, kind, self._charset, digest)
        return Captured(offset, *about, bytes(shown.data), why or (TOO_LONG if shown.is_cut else ""))


class _Kept:
    """One reading of a payload, up to the limit."""

    def __init__(self, most: int) -> None:
        self.data, self.is_cut = bytearray(), False
        self._most = most

    def write(self, piece: bytes | memoryview) -> None:
        """The next bytes."""
        room = self._most - len(self.data)
        self.data += piece[:room]
        self.is_cut = self.is_cut or len(piece) > room

    def drop(self) -> None:
        """It is not what a browser shows."""
        self.data.clear()
