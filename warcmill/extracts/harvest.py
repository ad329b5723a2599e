"""The extract of a WARC's documents, revisits and pages: a first line that counts them, then their lines.

     {"documents": 5, "faults": 1, "left_out": {"neither": 31}, "pages": 196, "revisits": 12}
    {"date": "20261121081736", "document": {…}, "offset": 692, "url": "https://site.example/report.pdf"}
    {"date": …, "offset": …, "page": {…}, "url": …}

It follows from the WARC alone: no list and no setting has a part in it. The bytes of a body decide (`kinds`), once its
codings are undone, as a browser does it: a PDF in gzip that no Content-Encoding names is not a document. A body that is
only begun, or that no reader can read, stays a document with its fault. Large bodies are held in nameless files while a
WARC is read; worker processes read them. `formats/harvested` has the values.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence, Set
from concurrent.futures import Future
from contextlib import closing
from email.message import Message
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import IO
from urllib.parse import unquote

import msgspec
from ada_url import join_url
from msgspec import Struct
from msgspec.structs import replace

from warcmill.base import clock
from warcmill.base.worker import WorkerLimits
from warcmill.base.workers import Outside
from warcmill.errors import BadInput
from warcmill.extracts import extracts as making
from warcmill.extracts.extracts import ExtractKind, Extracts, Maker
from warcmill.extracts.text_workers import PayloadWorkers, unstarted
from warcmill.formats.harvested import DocumentFacts, HarvestedRecord, PageFacts, RevisitFacts
from warcmill.formats.index.cdxj import DOM, NO_DATE, NO_URL, VIEW, date_of, url_of
from warcmill.formats.publications.identifiers import cleaned
from warcmill.formats.publications.kinds import HEAD, OFFICE, PDF, RTF, Begin, DocumentFile, begins_as, may_declare
from warcmill.formats.text.document import OFFICE_TYPES, begins_as_office
from warcmill.formats.warc.header import CONTENT_TYPE, PAYLOAD_DIGEST
from warcmill.formats.warc.hearers import RecordHead
from warcmill.formats.warc.http import MessageHead, comparable
from warcmill.formats.warc.payload import Payload, is_http
from warcmill.model import Json
from warcmill.stores import Store

HARVEST = ExtractKind("harvest", 1, "jsonl.gz")
NOT_FETCHED, EMPTY, NEITHER, UNREAD_PAGE = "status other than 2xx", "empty", "neither", "page that cannot be read"
MOST_FILE, MOST_PAGE = 256 << 20, 16 << 20  # bytes of a document that are read, and of a page
_IN_MEMORY = 1 << 20  # bytes of a body; more of them go to a nameless file in the index root
_PENDING, _PENDING_BYTES = 256, 128 << 20  # bodies, and bytes of them, that wait for their reader
_MOST_ANSWER = 64 << 20
_LONGEST_URL = 16_384
_MODULE = "warcmill.extracts.harvest_worker"
_HEARD = frozenset({"response", "resource", "arc", "revisit"})
_status_of = re.compile(rb"(?:HTTP/\S*+|ICY) ++(\d{3})(?!\S)").match
_FIELD = re.compile(
    rb"\n(content-type|content-disposition|content-range|last-modified|link)[ \t]*:[ \t]*([^\r\n]{0,20000})",
    re.IGNORECASE,
)
_LINK = re.compile(r"""<([^<>]*+)>((?:\s*+;\s*+[^\s=;,"]++(?:\s*+=\s*+(?:"(?:[^"\\]|\\.)*+"|[^\s;,"]*+))?+)*+)""")
_UP = re.compile(r"""(?:^|;)\s*+rel\s*+=\s*+(?:"[^"]*?(?<![^\s"])up(?![^\s"])|up(?![^\s;,]))""", re.IGNORECASE)
_WHOLE_RANGE = re.compile(rb"bytes 0-(\d{1,18})/(\d{1,18})")
_TRUNCATED, _REFERS_TO, _REFERS_TO_DATE = b"WARC-Truncated", b"WARC-Refers-To-Target-URI", b"WARC-Refers-To-Date"
_FILES = (Begin.PDF, Begin.ZIP, Begin.OLE, Begin.RTF)
_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder(HarvestedRecord).decode


class ReadBody(Struct, frozen=True):
    """A body as its reader has it: a page, a document file, or the reason why there is neither."""

    page: PageFacts | None = None
    document: DocumentFile | None = None
    why: str = ""


_read_body = msgspec.json.Decoder(ReadBody).decode


def _failed(why: str) -> ReadBody:
    return ReadBody(why=why)


class HarvestWorkers(PayloadWorkers):
    """Worker processes that read pages and document files."""

    def __init__(self, number: int | None = None, limits: WorkerLimits | None = None) -> None:
        super().__init__((sys.executable, "-P", "-m", _MODULE), number, limits)

    def submit(self, begin: Begin, data: bytes, url: str, media_type: str) -> Future[ReadBody]:
        """Have a body read, by how it begins. Unavailable if no worker begins."""
        return self._threads.submit(self._read, begin, data, url, media_type)

    def _read(self, begin: Begin, data: bytes, url: str, media_type: str) -> ReadBody:
        question: dict[str, object] = {"begin": begin, "url": url[:_LONGEST_URL], "type": media_type[:200]}
        found = self._processes.ask(question, data, _read_body, _failed, _MOST_ANSWER)
        if isinstance(found, Outside):
            raise unstarted("a worker that reads documents", _MODULE, found)
        return found


class HarvestCounts(Struct, frozen=True):
    """The counts of an extract: its lines by kind, documents with a fault, other captures by reason, pages that could
    not be read; and the bad records of the WARC."""

    documents: int
    revisits: int
    pages: int
    faults: int
    left_out: Mapping[str, int]
    bad: int = 0


class HarvestTally(HarvestCounts, frozen=True, kw_only=True):
    """The counts of an extract, and how many of its lines are for certain records."""

    found: int


class _Waiting(Struct):
    """A record whose body is being read."""

    record: HarvestedRecord
    begin: Begin
    answer: Future[ReadBody]
    size: int
    looks_like_office: bool = False


class HarvestHearer(Maker):
    """Makes the extract of one WARC while the gate reads it. `leave` publishes it, or `close` forgets it."""

    def __init__(self, extracts: Extracts, workers: HarvestWorkers) -> None:
        self._extracts, self._workers = extracts, workers
        self.folder: Path = extracts.folder
        self._lines = tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=str(extracts.folder))  # noqa: SIM115 close() does
        self._numbers: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self._pending: deque[_Waiting] = deque()
        self._pending_bytes = 0

    def begin(self, head: RecordHead, /) -> _Record | None:
        """Listen to captures."""
        return _Record(self, head) if head.type in _HEARD else None

    def skipped(self, _offset: int, _why: str, /) -> None:
        """Count a bad record."""
        self._numbers["bad"] += 1

    def revisit(self, record: HarvestedRecord) -> None:
        """Add a revisit, in its place."""
        answer: Future[ReadBody] = Future()
        answer.set_result(ReadBody())
        self._wait(_Waiting(record, Begin.OTHER, answer, 0))

    def read(self, record: HarvestedRecord, begin: Begin, body: HeldBody, content_type: str) -> None:
        """Have the body of a page or a document read. One that is too long is not read."""
        most = MOST_PAGE if begin is Begin.PAGE else MOST_FILE
        if body.size > most:
            answer: Future[ReadBody] = Future()
            answer.set_result(ReadBody(why=f"over {most} bytes"))
            self._wait(_Waiting(record, begin, answer, 0, looks_like_office=begins_as_office(body.head)))
            return
        data = body.whole()
        answer = self._workers.submit(begin, data, record.url, content_type)
        self._wait(_Waiting(record, begin, answer, len(data), looks_like_office=begins_as_office(body.head)))

    def _wait(self, waiting: _Waiting) -> None:
        """Keep a record until its body is read; wait for the oldest ones when there are too many."""
        self._pending.append(waiting)
        self._pending_bytes += waiting.size
        while len(self._pending) > _PENDING or self._pending_bytes > _PENDING_BYTES:
            self._take()

    def _take(self) -> None:
        """Add the line of the oldest record."""
        waiting = self._pending.popleft()
        self._pending_bytes -= waiting.size
        made = _made(waiting, waiting.answer.result())
        if made is None:
            self.left_out[UNREAD_PAGE if waiting.begin is Begin.PAGE else NEITHER] += 1
            return
        kind = "documents" if made.document else "pages" if made.page else "revisits"
        self._numbers[kind] += 1
        self._numbers["faults"] += bool(made.document and made.document.fault)
        self._lines.write(_encode(made) + b"\n")

    def leave(self, sha512: str) -> None:
        """Publish the extract of the WARC with this SHA-512."""
        while self._pending:
            self._take()
        self._extracts.leave(HARVEST, sha512, self._content())

    def _content(self) -> Iterator[bytes]:
        names = ("documents", "faults", "pages", "revisits", *(["bad"] if self._numbers["bad"] else ()))
        counts: dict[str, Json] = {name: self._numbers[name] for name in names}
        yield f" {json.dumps(counts | {'left_out': dict(self.left_out)}, sort_keys=True)}\n".encode()
        self._lines.seek(0)
        while piece := self._lines.read(1 << 16):
            yield piece

    def close(self) -> None:
        """Free what it holds."""
        for waiting in self._pending:
            waiting.answer.cancel()
        self._pending.clear()
        self._lines.close()


def _made(waiting: _Waiting, answer: ReadBody) -> HarvestedRecord | None:
    """The line of a record whose body was read; None if it is neither a document nor a page that can be read."""
    record, begin = waiting.record, waiting.begin
    if record.revisit:
        return record
    if begin is Begin.PAGE:
        return replace(record, page=answer.page) if answer.page else None
    facts = record.document
    assert facts is not None, "every other body may be of a document"
    found = answer.document or DocumentFile(_unread_type(waiting, facts.declared), fault=cleaned(answer.why))
    if not found.type:
        return None
    others = found.properties, found.largest, found.isbn, found.doi
    fault = facts.fault or found.fault
    known = DocumentFacts(facts.id, facts.payload, found.type, facts.size, facts.declared, *others)
    return replace(
        record, document=replace(known, up=facts.up, filename=facts.filename, modified=facts.modified, fault=fault)
    )


def _unread_type(waiting: _Waiting, declared: str) -> str:
    """The type of a file that no reader got to the end of; '' if nothing but its first bytes is like a document's."""
    if waiting.begin in (Begin.PDF, Begin.RTF):
        return PDF if waiting.begin is Begin.PDF else RTF
    if declared in OFFICE_TYPES:
        return declared
    return OFFICE if waiting.looks_like_office else ""


class _Record:
    """One capture: its body is kept while it may be that of a document or a page."""

    def __init__(self, hearer: HarvestHearer, head: RecordHead) -> None:
        self._hearer, self._head = hearer, head
        self._url, self._date = url_of(head.fields).removeprefix(DOM), date_of(head.fields)
        self._fields = dict[bytes, list[bytes]]()
        self._bodies: list[HeldBody] = []
        self._payload: Payload | None = None
        self._status, self._declared, self._why = 0, "", ""
        self._message = MessageHead(response=True) if is_http(head) else None
        self._is_decided = False
        if not self._message:
            self._fields[b"content-type"] = [head.fields.get(CONTENT_TYPE, b"")]
            self._decide()

    def feed(self, piece: memoryview) -> None:
        """The next bytes of the block."""
        if not self._is_decided and self._message:
            piece = self._message.feed(piece)
            if not self._message.ended:
                return
            self._read_header(bytes(self._message.header))
        if self._payload and piece and not (self._bodies and self._bodies[-1].is_other):
            self._payload.feed(piece)

    def end(self, offset: int, _length: int) -> None:
        """The record is whole: pass it on."""
        if not self._is_decided and self._message:
            self._read_header(bytes(self._message.header))
        record = HarvestedRecord(self._url, self._date, offset)
        if self._why:
            self._hearer.left_out[self._why] += 1
        elif self._head.type == "revisit":
            self._hearer.revisit(replace(record, revisit=self._revisit()))
        elif self._payload:
            self._payload.close()
            body = next((one for one in reversed(self._bodies) if one.size), self._bodies[0])
            self._pass_on(record, body, self._payload.why_not)
        for body in self._bodies:
            body.close()

    def _pass_on(self, record: HarvestedRecord, body: HeldBody, why: str) -> None:
        begin = body.decide()
        if begin is Begin.OTHER:
            self._hearer.left_out[NEITHER if body.size else EMPTY] += 1
            return
        if begin in _FILES:
            record = replace(record, document=self._document(body, why))
        content_type = b"".join(self._fields.get(b"content-type", [])[:1]).decode("latin-1")
        self._hearer.read(record, begin, body, content_type)

    def _read_header(self, header: bytes) -> None:
        status = _status_of(header)
        self._status = int(status[1]) if status else 0
        for name, value in _FIELD.findall(header):
            self._fields.setdefault(name.lower(), []).append(value)
        self._decide()
        if self._payload:
            self._payload.feed(memoryview(header))

    def _decide(self) -> None:
        """Decide if the body is to be looked at, now that its header is known."""
        self._is_decided = True
        written = b"".join(self._fields.get(b"content-type", [])[:1])
        self._declared = cleaned(written.partition(b";")[0].decode("latin-1").lower())
        self._why = self._why_not()
        if not self._why and self._head.type != "revisit":
            self._payload = Payload(self._head, self._body)

    def _why_not(self) -> str:
        if not self._url or not self._date:
            return NO_DATE if self._url else NO_URL
        if self._head.type == "revisit":
            is_of_document = may_declare(self._declared) and self._status in (0, 304, *range(200, 300))
            return "" if is_of_document else NEITHER
        if self._message and not 200 <= self._status < 300:
            return NOT_FETCHED
        return NEITHER if self._url.startswith(VIEW) else ""

    def _body(self) -> HeldBody:
        self._bodies.append(HeldBody(self._hearer.folder, self._declared))
        return self._bodies[-1]

    def _digest(self) -> str:
        return comparable(self._head.fields.get(PAYLOAD_DIGEST, b"").strip()).decode("latin-1")

    def _revisit(self) -> RevisitFacts:
        fields = self._head.fields
        refers_to = fields.get(_REFERS_TO, b"").strip().decode("utf-8", "replace")
        stamp = re.sub(rb"\D", b"", fields.get(_REFERS_TO_DATE, b""))[:14].decode()
        return RevisitFacts(self._digest(), self._declared, refers_to[:_LONGEST_URL], stamp if len(stamp) == 14 else "")

    def _document(self, body: HeldBody, why: str) -> DocumentFacts:
        """The facts of a document that its reader does not find."""
        fault = f"it is not whole: {why}" if why else ""
        if reason := self._head.fields.get(_TRUNCATED, b"").strip():
            fault = f"the record is cut: {cleaned(reason.decode('latin-1'), 40)}"
        elif self._status == 206 and not self._is_whole_range():
            fault = "the answer is a part of the file (206)"
        fields = {name: values[0].decode("latin-1") for name, values in self._fields.items()}
        return DocumentFacts(
            body.sha256(), self._digest(), "", body.size, self._declared,
            up=_up(self._fields.get(b"link", []), self._url),
            filename=_filename(fields.get(b"content-disposition", "")),
            modified=_time(fields.get(b"last-modified", "")), fault=fault,
        )  # fmt: skip

    def _is_whole_range(self) -> bool:
        match = _WHOLE_RANGE.match(b"".join(self._fields.get(b"content-range", [])[:1]))
        return match is not None and int(match[1]) + 1 == int(match[2])


class HeldBody:
    """One reading of a body: as much as shows that it is neither a page nor a document, else all of it, in memory or in
    a nameless file."""

    def __init__(self, folder: Path, declared: str) -> None:
        self._folder, self._declared = folder, declared
        self.size, self.head = 0, b""
        self._begin: Begin | None = None
        self._file: IO[bytes] | None = None

    @property
    def is_other(self) -> bool:
        """True once it is known to be neither."""
        return self._begin is Begin.OTHER

    def write(self, piece: bytes | memoryview) -> None:
        """The next bytes."""
        self.size += len(piece)
        if self._begin is Begin.OTHER:
            return
        if self._begin is None:
            self.head += piece
            if len(self.head) >= HEAD:
                self.decide()
            return
        if self._file:
            self._file.write(piece)

    def decide(self) -> Begin:
        """The kind by the bytes so far; it is decided once."""
        if self._begin is None:
            self._begin = begins_as(self.head, self._declared)
            if self._begin is not Begin.OTHER:
                self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=str(self._folder))  # noqa: SIM115 close() does
                self._file.write(self.head)
        return self._begin

    def drop(self) -> None:
        """It is not what a browser shows."""
        self.size, self._begin = 0, Begin.OTHER
        self.close()

    def sha256(self) -> str:
        """The SHA-256 of all of it, in hex."""
        digest = hashlib.sha256()
        for piece in self._pieces():
            digest.update(piece)
        return digest.hexdigest()

    def whole(self) -> bytes:
        """All of it."""
        return b"".join(self._pieces())

    def _pieces(self) -> Iterator[bytes]:
        assert self._file is not None, "only documents and pages are read"
        self._file.seek(0)
        while piece := self._file.read(1 << 20):
            yield piece

    def close(self) -> None:
        """Free what it holds."""
        if self._file:
            self._file.close()
            self._file = None


def _up(headers: Sequence[bytes], url: str) -> tuple[str, ...]:
    """The targets of `Link` with `rel=up` (RFC 8288), absolute."""
    found = list[str]()
    for target, parameters in _LINK.findall("\n".join(header.decode("latin-1") for header in headers)):
        if _UP.search(parameters):
            try:
                found.append(str(join_url(url, target)).partition("#")[0])
            except ValueError:
                continue
    return tuple(dict.fromkeys(found))[:20]


def _filename(disposition: str) -> str:
    """The name that a Content-Disposition gives (RFC 6266), without folders; '' without one."""
    if "filename" not in disposition.lower():
        return ""
    message = Message()
    message["content-disposition"] = disposition
    try:
        found = message.get_filename("") or ""
    except (LookupError, ValueError):
        return ""
    return cleaned(unquote(found).replace("\\", "/").rpartition("/")[2])


def _time(written: str) -> str:
    """The time of an HTTP date, 14 digits; '' for an invalid one."""
    try:
        return clock.digits(parsedate_to_datetime(written)) if written else ""
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""


def read(extracts: Extracts, sha512: str, without: Set[int] = frozenset()) -> Iterator[HarvestedRecord]:
    """The records in the extract of a WARC, but for those at some offsets. NotReady if there is no extract.

    BadInput if it is damaged, at the latest after the last line: use none of them before.
    """
    lines = extracts.lines(HARVEST, sha512)
    known, number = counts_of(next(lines, b""), sha512), 0
    for line in lines:
        try:
            record = _decode(line)
        except msgspec.DecodeError as error:
            raise BadInput(HARVEST.path(sha512), f"a line is not a record: {line[:80]!r}") from error
        number += 1
        if record.offset not in without:
            yield record
    if number != known.documents + known.revisits + known.pages:
        raise BadInput(HARVEST.path(sha512), f"it has {number} lines, and counts {known}")


def tally(extracts: Extracts, sha512: str, offsets: Set[int] = frozenset()) -> HarvestTally:
    """Read an extract to its end, and count its lines for records at these offsets; fails as `read`."""
    known = counts_of(next(extracts.lines(HARVEST, sha512), b""), sha512)
    found = sum(record.offset in offsets for record in read(extracts, sha512))
    counted = known.documents, known.revisits, known.pages, known.faults, known.left_out, known.bad
    return HarvestTally(*counted, found=found)


def counts_of(first: bytes, sha512: str) -> HarvestCounts:
    """The counts in the first line of an extract; BadInput if it has none."""
    try:
        return msgspec.json.decode(first, type=HarvestCounts)
    except msgspec.DecodeError as error:
        raise BadInput(HARVEST.path(sha512), f"its first line does not count its lines: {first[:80]!r}", 0) from error


def make(extracts: Extracts, store: Store, workers: HarvestWorkers, path: str, sha512: str) -> None:
    """Read a stored WARC, have its bodies read, and leave its extract.

    NotReady if it is missing, Mismatch if it is no longer as it was verified.
    """
    with closing(HarvestHearer(extracts, workers)) as hearer:
        making.make(store, path, sha512, hearer)
