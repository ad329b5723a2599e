"""The extract of a WARC's documents: a first line that counts them, which begins with a blank, then a line for each.

     {"documents": {"html": 196, "pdf": 5}, "left_out": {"other type": 31}, "unread": 0, "without_text": 1}
    {"id": "20161019234428/JY2Fdv…==/0b4a8cf0f5a1bd27-4620", "url": "http://gov.example/", …, "content": "…"}

Fields are named as webarchive-discovery's schema names them; so is the ID, up to its second `/`. After that, the
beginning of the WARC's SHA-512 and the record's offset set two captures of one URL in one second apart. A document
without text has `parse_error`, the reason. Lines are sorted by their bytes, as `LC_ALL=C sort` does it.

Office documents need an extractor, which need not be configured. So there are two generations of the same code: in an
extract of GENERATION they are `unread`; one of WITH_OFFICE has their text. A WARC without any has but the former, on
every machine, and both count the same documents.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Set
from concurrent.futures import Future
from contextlib import closing
from itertools import chain, islice
from typing import Protocol

from msgspec import Struct

from warcmill.base.line_sort import SortedLines
from warcmill.errors import BadInput, Mismatch
from warcmill.extracts import extracts as making
from warcmill.extracts.extracts import ExtractKind, Extracts, Maker
from warcmill.extracts.text_workers import TextWorkers
from warcmill.formats.text.captures import Captured, DocumentHearer
from warcmill.formats.text.document import NOT_A_DOCUMENT, Document, Kind, read_as, refused, tool_of
from warcmill.formats.warc.hearers import Listener, RecordHead
from warcmill.model import Json
from warcmill.stores import Store

# Raise both by 2 when the text of the same document, or the fields, change.
GENERATION, WITH_OFFICE = 2, 3
NO_EXTRACTOR = "no extractor configured"


def extract_kind(generation: int) -> ExtractKind:
    """The kind of the extracts of a generation."""
    return ExtractKind("text", generation, "jsonl.gz")


TEXT, OFFICE_TEXT = extract_kind(GENERATION), extract_kind(WITH_OFFICE)
KINDS = (OFFICE_TEXT, TEXT)  # the one with more text first
Submit = Callable[[Kind, bytes, str], Future[Document]]
_IN_MEMORY = 64 << 20  # bytes of lines that are sorted at once
_PENDING, _PENDING_BYTES = 256, 128 << 20  # documents, and bytes of them, that wait for their text
_OFFSET = re.compile(rb'\{"id": "[^"]*-(\d+)"')


class DocumentCounts(Struct, frozen=True):
    """The counts of an extract: documents by kind, other captures by reason, documents without text; and the bad
    records of the WARC, which are neither. `offset_dates`: the captures but revisits whose date has an offset from UTC.
    """

    documents: Mapping[str, int]
    left_out: Mapping[str, int]
    without_text: int
    unread: int = 0
    bad: int = 0
    offset_dates: int = 0


class DocumentTally(DocumentCounts, frozen=True, kw_only=True):
    """The counts of an extract, and how many of its documents are certain records."""

    found: int


class Office(Protocol):
    """An extractor of office documents: `submit` as for others; `tool` is what it is, with its version."""

    @property
    def tool(self) -> str: ...

    def submit(self, kind: Kind, data: bytes, charset: str, /) -> Future[Document]: ...


class TextHearer(Maker):
    """Makes the extract of the WARC with this SHA-512 while the gate reads it; `submit` has a document extracted."""

    def __init__(self, extracts: Extracts, sha512: str, submit: Submit, office: Office | None = None) -> None:
        self._extracts, self._sha512, self._submit, self._office = extracts, sha512, submit, office
        self._kind = TEXT
        self._sorted = SortedLines(extracts.folder, _IN_MEMORY)
        self._captures = DocumentHearer(self._captured)
        self._pending: deque[tuple[Captured, Kind | None, Future[Document], int]] = deque()
        self._pending_bytes = self._without_text = self._unread = self._bad = 0

    def begin(self, head: RecordHead, /) -> Listener | None:
        """Listen to captures."""
        return self._captures.begin(head)

    def skipped(self, _offset: int, _why: str, /) -> None:
        """Count a bad record."""
        self._bad += 1

    def leave(self, sha512: str) -> None:
        """Publish the extract of the WARC."""
        if sha512 != self._sha512:
            raise Mismatch("the SHA-512 of a WARC whose text was extracted", self._sha512, sha512)
        while self._pending:
            self._take()
        counts: dict[str, Json] = {
            "documents": dict(self._captures.documents),
            "left_out": dict(self._captures.left_out),
            "unread": self._unread,
            "without_text": self._without_text,
        }
        if self._bad:
            counts["bad"] = self._bad
        counts |= making.dating(self._captures.left_out, self._captures.offset_dates)
        first = f" {json.dumps(counts, sort_keys=True)}\n".encode()
        self._extracts.leave(self._kind, sha512, chain([first], self._sorted))

    def close(self) -> None:
        """Free what it holds."""
        for _, _, future, _ in self._pending:
            future.cancel()
        self._pending.clear()
        self._sorted.close()

    def _captured(self, captured: Captured) -> None:
        """Have a document extracted; wait for the oldest ones when there are too many."""
        kind = read_as(captured.kind, captured.payload)
        why = captured.why or ("" if kind else NOT_A_DOCUMENT)
        future: Future[Document] = Future()
        if why or not kind:
            future.set_result(refused(why))
        elif kind is Kind.OFFICE:
            future = self._submit_office(captured)
        else:
            future = self._submit(kind, captured.payload, captured.charset)
        size = len(captured.payload)
        self._pending.append((captured.without_payload(), kind, future, size))
        self._pending_bytes += size
        while len(self._pending) > _PENDING or self._pending_bytes > _PENDING_BYTES:
            self._take()

    def _submit_office(self, captured: Captured) -> Future[Document]:
        if self._office:
            self._kind = OFFICE_TEXT
            return self._office.submit(Kind.OFFICE, captured.payload, captured.charset)
        self._unread += 1
        unread: Future[Document] = Future()
        unread.set_result(refused(NO_EXTRACTOR))
        return unread

    def _take(self) -> None:
        """Wait for the text of the oldest document, and add its line."""
        captured, kind, future, size = self._pending.popleft()
        self._pending_bytes -= size
        document = future.result()
        self._without_text += bool(document.why)
        fields = _fields(captured, size, document, f"{self._sha512[:16]}-{captured.offset}")
        if tool := self._tool_of(kind):
            fields["tool"] = tool
        self._sorted.add(json.dumps(fields, ensure_ascii=False).encode() + b"\n")

    def _tool_of(self, kind: Kind | None) -> str:
        """The reader of documents of a kind, and its version; '' if nothing does."""
        if kind is Kind.OFFICE:
            return self._office.tool if self._office else ""
        return tool_of(kind) if kind else ""


def best(extracts: Extracts, sha512: str) -> ExtractKind:
    """The kind of the extract of a WARC that has most text. Its reader finds if there is one at all."""
    return OFFICE_TEXT if extracts.has(OFFICE_TEXT, sha512) else TEXT


def counts(extracts: Extracts, kind: ExtractKind, sha512: str) -> DocumentCounts:
    """The counts of an extract, which is not read further. Otherwise as `tally`."""
    return _counts(next(extracts.lines(kind, sha512), b""), kind.path(sha512))


def _fields(captured: Captured, size: int, document: Document, capture: str) -> dict[str, str | int | None]:
    """The fields of a document that are not empty."""
    md5 = base64.b64encode(hashlib.md5(captured.url.encode(), usedforsecurity=False).digest()).decode()
    known: dict[str, str | int | None] = {
        "id": f"{captured.date}/{md5}/{capture}",
        "url": captured.url,
        "wayback_date": int(captured.date),
        "record_type": captured.record_type,
        "status_code": captured.status,
        "content_type_served": captured.media_type,
        "content_length": size,
        "content_encoding": document.charset,
        "content_language": document.language,
        "hash": captured.digest,
        "source_file_offset": captured.offset,
        "title": document.title,
        "content": document.text,
        "content_text_length": None if document.why else len(document.text),
        "content_is_cut": document.is_cut or None,
        "parse_error": document.why,
    }
    return {name: value for name, value in known.items() if value not in ("", None)}


def tally(extracts: Extracts, sha512: str, offsets: Set[int] = frozenset()) -> DocumentTally:
    """Read an extract to its end, and count its documents that are records at these offsets.

    NotReady if there is none; BadInput if it is damaged, or has not the lines that it counts.
    """
    kind = best(extracts, sha512)
    read = extracts.lines(kind, sha512)
    known = _counts(next(read, b""), kind.path(sha512))
    number = found = 0
    for line in read:
        number += 1
        found += bool(offsets) and offset(line) in offsets
    if number != sum(known.documents.values()):
        raise BadInput(kind.path(sha512), f"it has {number} lines, and counts {dict(known.documents)}")
    counted = known.documents, known.left_out, known.without_text, known.unread, known.bad, known.offset_dates
    return DocumentTally(*counted, found=found)


def offset(line: bytes) -> int:
    """Where the record of a line begins in its WARC."""
    match = _OFFSET.match(line)
    return int(match[1]) if match else -1


def lines(extracts: Extracts, sha512: str, without: Set[int] = frozenset()) -> Iterator[bytes]:
    """The documents of a WARC, sorted, but for the records at some offsets. NotReady if there is no extract.

    BadInput if it is damaged, at the latest after the last line: use none of them before.
    """
    for line in islice(extracts.lines(best(extracts, sha512), sha512), 1, None):
        if not without or offset(line) not in without:
            yield line


def _counts(first: bytes, path: str) -> DocumentCounts:
    try:
        document = json.loads(first)
        documents, left_out = document["documents"], document["left_out"]
        counted = document["without_text"], document["unread"], document.get("bad", 0)
        return DocumentCounts(documents, left_out, *counted, making.read_dating(document, path))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(path, f"its first line does not count its lines: {first[:80]!r}", 0) from error


class TextLengths:
    """The lengths of a WARC's texts, in characters."""

    def __init__(self, extracts: Extracts, sha512: str) -> None:
        """Read them. NotReady if the extract of text is missing, BadInput if it is damaged."""
        try:
            known = sorted(map(_length, lines(extracts, sha512)))
        except ValueError as error:  # what a damaged one gives before its end is reached
            raise BadInput(best(extracts, sha512).path(sha512), f"not JSON Lines: {error}") from error
        self._offsets = array("q", (offset for offset, _ in known))
        self._lengths = array("q", (length for _, length in known))

    def at(self, offset: int) -> int | None:
        """The length of the text of the record at an offset; None if it is not a document, or has no text."""
        at = bisect_left(self._offsets, offset)
        there = at < len(self._offsets) and self._offsets[at] == offset
        return self._lengths[at] if there and self._lengths[at] >= 0 else None


def _length(line: bytes) -> tuple[int, int]:
    """Where a document is, and how long its text is; -1: it has none."""
    return offset(line), json.loads(line).get("content_text_length", -1)


def make(
    extracts: Extracts, store: Store, workers: TextWorkers, path: str, sha512: str, office: Office | None = None
) -> None:
    """Read a stored WARC, have its documents extracted, and leave its extract.

    NotReady if it is missing, Mismatch if it is no longer as it was verified.
    """
    with closing(TextHearer(extracts, sha512, workers.submit, office)) as hearer:
        making.make(store, path, sha512, hearer)
