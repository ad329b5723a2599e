"""The extract of a WARC's answers from a package index: a first line that counts, then a line for each answer.

     {"files": 5, "other": 1, "pages": 2, "without_facts": 1}
    {"date": "20261121081736", "offset": 692, "page": {…}, "url": "https://pypi.example/simple/six/"}
    {"date": …, "file": {"begin": 0, "filename": "six-1.17.0.tar.gz", "sha256": …, "facts": {…}, …}, …}
    {"date": …, "offset": …, "status": 404, "type": "text/html", "url": …}

A page is an answer of the index's own media type, or HTML at a URL that ends in the name of a project and a slash; a
file one whose URL ends in the name of a distribution, or in that of a wheel and `.metadata`; both with status 200 or
206. Every other answer is kept by its status: a project that is gone is one of 404. A file is held in a nameless file
while it is read. Lines are in the order of their records.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import closing
from http import HTTPStatus
from typing import Any, BinaryIO, cast
from urllib.parse import unquote, urlsplit

from msgspec import Struct
from msgspec.structs import asdict

from warcmill.errors import BadInput
from warcmill.extracts import extracts as making
from warcmill.extracts.extracts import ExtractKind, Extracts, Maker
from warcmill.formats.index.cdxj import date_of, url_of
from warcmill.formats.pypi import distribution, filenames, simple_page
from warcmill.formats.pypi.distribution import DistributionFacts
from warcmill.formats.pypi.dump import ListedFile
from warcmill.formats.pypi.filenames import DistributionName
from warcmill.formats.pypi.simple_page import SimplePage
from warcmill.formats.pypi.zip_directory import TooEarly
from warcmill.formats.warc.codings import STEPS, Decoder, UnknownCoding
from warcmill.formats.warc.hearers import RecordHead
from warcmill.formats.warc.http import MessageHead, codings_of
from warcmill.formats.warc.payload import is_http
from warcmill.stores import Store

FACTS = ExtractKind("facts", 2, "jsonl.gz")
_IN_MEMORY = 1 << 20  # bytes of an answer; more of them go to a nameless file in the index root
_STATUS = re.compile(rb"(?:HTTP/\S*|ICY) +(\d{3})(?!\S)")
_TYPE = re.compile(rb"\ncontent-type[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE)
_RANGE = re.compile(rb"\ncontent-range[ \t]*:[ \t]*bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)", re.IGNORECASE)
_TRANSFER = re.compile(rb"\ntransfer-encoding[ \t]*:[ \t]*[^\r\n]*chunked", re.IGNORECASE)
_ETAG = re.compile(rb"\netag[ \t]*:([^\r\n]*)", re.IGNORECASE).search
_MODIFIED = re.compile(rb"\nlast-modified[ \t]*:([^\r\n]*)", re.IGNORECASE).search
_LONGEST_VALIDATOR = 500
_TRUNCATED = b"WARC-Truncated"
_FETCHED = frozenset({200, 206})


class CapturedPage(Struct, frozen=True):
    """The page of a project; `why`: the reason why it is None. `etag`, `modified`: its validators (RFC 9110, 8.8)."""

    page: SimplePage | None
    why: str = ""
    etag: str | None = None
    modified: str | None = None


class CapturedFile(Struct, frozen=True):
    """A file, or its end from `begin` on. `size`: that of the whole file. `sha256`: that of a whole file alone.

    `fault`: the reason why the answer is not enough to read the file; '' if it is. Of a file that is unreadable in
    itself `facts` has the reason. The end of a wheel may be enough for its modules alone: it has a `fault`, and them.
    """

    filename: str
    begin: int
    size: int
    sha256: str | None
    facts: DistributionFacts
    fault: str = ""


class IndexAnswer(Struct, frozen=True):
    """An answer of an index: a page, a file, or neither, which `status` and `media_type` alone are known of.

    `warc`: the path of its WARC in the store; '' in an extract, which any copy of the WARC may have.
    """

    url: str
    date: str
    offset: int
    status: int
    media_type: str
    page: CapturedPage | None = None
    file: CapturedFile | None = None
    warc: str = ""


class FactTally(Struct, frozen=True):
    """The counts of an extract, and how many of its lines are for certain records; and the bad records of the WARC."""

    pages: int
    files: int
    without_facts: int
    other: int
    found: int = 0
    bad: int = 0


class DistributionHearer(Maker):
    """Makes the extract of one WARC while the gate reads it. `leave` publishes it, or `close` forgets it."""

    def __init__(self, extracts: Extracts) -> None:
        self._extracts = extracts
        self.folder = extracts.folder
        self._lines = tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=str(extracts.folder))  # noqa: SIM115 close() does
        self._counts = {"pages": 0, "files": 0, "without_facts": 0, "other": 0}

    def begin(self, head: RecordHead, /) -> _Record | None:
        """Listen to responses."""
        return _Record(self, head) if head.type in ("response", "arc") and is_http(head) else None

    def take(self, answer: IndexAnswer) -> None:
        """Add the line of an answer."""
        kind = "pages" if answer.page else "files" if answer.file else "other"
        self._counts[kind] += 1
        file, page = answer.file, answer.page
        if (file and (file.facts.why or (file.fault and file.facts.modules is None))) or (page and not page.page):
            self._counts["without_facts"] += 1
        self._lines.write(line_of(answer))

    def skipped(self, _offset: int, _why: str, /) -> None:
        """Count a bad record."""
        self._counts["bad"] = self._counts.get("bad", 0) + 1

    def leave(self, sha512: str) -> None:
        """Publish the extract of the WARC with this SHA-512."""
        self._extracts.leave(FACTS, sha512, self._content())

    def _content(self) -> Iterator[bytes]:
        yield f" {json.dumps(self._counts, sort_keys=True)}\n".encode()
        self._lines.seek(0)
        while piece := self._lines.read(1 << 16):
            yield piece

    def close(self) -> None:
        """Free what it holds."""
        self._lines.close()


class _Record:
    """One response. It keeps the body of a page or a file, and nothing of any other."""

    def __init__(self, hearer: DistributionHearer, head: RecordHead) -> None:
        self._hearer, self._head = hearer, head
        self._url = url_of(head.fields)
        self._message: MessageHead | None = MessageHead(response=True)
        self._status, self._type, self._header = 0, "", b""
        self._name: DistributionName | None = None
        self._metadata = False
        self._body: _Body | None = None

    def feed(self, piece: memoryview) -> None:
        """The next bytes of the block."""
        if self._message:
            piece = self._message.feed(piece)
            if not self._message.ended:
                return
            self._begin(bytes(self._message.header))
        if self._body:
            self._body.write(bytes(piece))

    def end(self, offset: int, _length: int) -> None:
        """The record is whole: read its page or its file."""
        if self._message:
            self._begin(bytes(self._message.header))
        page = file = None
        if self._body:
            with closing(self._body) as body:
                body.finish()
                if self._metadata:
                    file = self._beside(body)
                elif self._name:
                    file = self._file(self._name, body)
                else:
                    page = self._page(body)
        answer = IndexAnswer(self._url, date_of(self._head.fields), offset, self._status, self._type, page, file)
        self._hearer.take(answer)

    def _begin(self, header: bytes) -> None:
        self._message, self._header = None, header
        status, declared = _STATUS.match(header), _TYPE.search(header)
        self._status = int(status[1]) if status else 0
        self._type = declared[1].partition(b";")[0].strip().lower().decode("latin-1") if declared else ""
        if self._status not in _FETCHED:
            return
        if simple_page.is_page(self._type) or (simple_page.is_html(self._type) and _has_project(self._url)):
            self._body = _Body(self._hearer, codings_of(header), simple_page.LARGEST)
        elif filenames.of_metadata(_filename(self._url)):
            self._metadata = True
            self._body = _Body(self._hearer, codings_of(header), simple_page.LARGEST)
        elif name := filenames.parse(_filename(self._url)):
            self._name = name
            self._body = _Body(self._hearer, [b"chunked"] if _TRANSFER.search(header) else [], None)

    def _page(self, body: _Body) -> CapturedPage | None:
        """The page of an answer; None for HTML that is not a page of an index, as an error has it."""
        why = self._why_cut(body)
        if simple_page.is_html(self._type) and (why or simple_page.page_in(body.stream.read(), self._url) is None):
            return None
        if why:
            return CapturedPage(None, why)
        body.stream.seek(0)
        try:
            etag, modified = (_validator(search(self._header)) for search in (_ETAG, _MODIFIED))
            page = simple_page.read(body.stream.read(), self._url, self._type)
            return CapturedPage(page, "", etag, modified)
        except BadInput as error:
            return CapturedPage(None, error.why)

    def _file(self, name: DistributionName, body: _Body) -> CapturedFile:
        part = _RANGE.search(self._header) if self._status == 206 else None
        begin = int(part[1]) if part else 0
        size = int(part[3]) if part and part[3] != b"*" else begin + body.size
        facts, fault = DistributionFacts(), self._why_cut(body)
        if not fault and self._status == 206 and (part is None or begin + body.size != size):
            fault = "the answer is a part of the file, and not its end"
        if not fault:
            try:
                facts = distribution.read(body.stream, name, size, begin)
            except TooEarly as early:
                fault = f"the answer begins at byte {begin}, and the file is needed from {early.needed} on"
                facts = distribution.modules_alone(body.stream, name, size, begin)
        whole = body.digest.hexdigest() if not fault and not begin else None
        return CapturedFile(name.filename, begin, size, whole, facts, fault)

    def _beside(self, body: _Body) -> CapturedFile:
        """The METADATA of a wheel, which the index has beside it."""
        facts, fault = DistributionFacts(), self._why_cut(body)
        if not fault and self._status != HTTPStatus.OK:
            fault = f"status {self._status}"
        if not fault:
            facts = distribution.of_metadata(body.stream)
        return CapturedFile(
            _filename(self._url), 0, body.size, None if fault else body.digest.hexdigest(), facts, fault
        )

    def _why_cut(self, body: _Body) -> str:
        if reason := self._head.fields.get(_TRUNCATED, b"").strip():
            return f"the record is cut: {reason[:40].decode('latin-1')}"
        return body.why


class _Body:
    """The body of an answer, its codings undone, in memory or in a nameless file; `digest` is its SHA-256."""

    def __init__(self, hearer: DistributionHearer, codings: Sequence[bytes], most: int | None) -> None:
        self._steps: list[Decoder] = [STEPS.get(coding, UnknownCoding)() for coding in codings]
        self._most = most
        self._spool = tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=str(hearer.folder))  # noqa: SIM115 close() does
        self.digest, self.size, self.why = hashlib.sha256(), 0, ""

    @property
    def stream(self) -> BinaryIO:
        """The body; it can seek."""
        return cast("BinaryIO", self._spool)

    def write(self, data: bytes) -> None:
        """The next bytes as they were transferred."""
        self._push(data, 0)

    def finish(self) -> None:
        """The body has ended: note a coding that could not be undone, and go back to its begin."""
        for at, step in enumerate(self._steps):
            for part in step.close():
                self._push(part, at + 1)
        if any(step.gave_up or step.unfit for step in self._steps):
            self.why = self.why or "its coding cannot be undone"
        self._spool.seek(0)

    def _push(self, data: bytes, at: int) -> None:
        if self.why:
            return
        if at < len(self._steps):
            for part in self._steps[at].feed(data):
                self._push(part, at + 1)
            return
        self.size += len(data)
        if self._most is not None and self.size > self._most:
            self.why = f"it has more than {self._most:,} bytes"
            return
        self.digest.update(data)
        self._spool.write(data)

    def close(self) -> None:
        """Free what it holds."""
        self._spool.close()


def _has_project(url: str) -> bool:
    """True if a URL may be that of a project's page, as all are in HTML."""
    try:
        path = urlsplit(url).path
    except ValueError:
        return False
    return path.endswith("/") and filenames.is_project(path.rstrip("/").rpartition("/")[2])


def _filename(url: str) -> str:
    """The last part of a URL's path."""
    try:
        return unquote(urlsplit(url).path.rpartition("/")[2])
    except ValueError:
        return ""


def line_of(answer: IndexAnswer) -> bytes:
    """The line of an answer in an extract."""
    raw: dict[str, Any] = {"url": answer.url, "date": answer.date, "offset": answer.offset, "status": answer.status}
    raw["type"] = answer.media_type
    if answer.warc:
        raw["warc"] = answer.warc
    if answer.page:
        validators = {"etag": answer.page.etag, "modified": answer.page.modified}
        raw["page"] = {"why": answer.page.why} | {name: value for name, value in validators.items() if value}
        if page := answer.page.page:
            raw["page"] |= {**asdict(page), "files": [asdict(file) for file in page.files]}
    if answer.file:
        raw["file"] = {**asdict(answer.file), "facts": asdict(answer.file.facts)}
    return json.dumps(raw, sort_keys=True).encode() + b"\n"


def answers(extracts: Extracts, sha512: str, without: Set[int] = frozenset()) -> Iterator[IndexAnswer]:
    """The answers in the extract of a WARC, but for the records at some offsets. NotReady if there is no extract.

    BadInput if it is damaged, at the latest after the last line: use none of them before.
    """
    lines = extracts.lines(FACTS, sha512)
    known, number = _counts(next(lines, b""), sha512), 0
    for line in lines:
        answer = answer_of(line, FACTS.path(sha512))
        number += 1
        if answer.offset not in without:
            yield answer
    if number != known.pages + known.files + known.other:
        raise BadInput(FACTS.path(sha512), f"it has {number} lines, and counts {known}")


def tally(extracts: Extracts, sha512: str, offsets: Set[int] = frozenset()) -> FactTally:
    """Read an extract to its end, and count its lines for records at these offsets; fails as `answers`."""
    known = _counts(next(extracts.lines(FACTS, sha512), b""), sha512)
    found = sum(answer.offset in offsets for answer in answers(extracts, sha512))
    return FactTally(known.pages, known.files, known.without_facts, known.other, found, known.bad)


def _counts(first: bytes, sha512: str) -> FactTally:
    try:
        raw = json.loads(first)
        return FactTally(raw["pages"], raw["files"], raw["without_facts"], raw["other"], bad=raw.get("bad", 0))
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(FACTS.path(sha512), f"its first line does not count its lines: {first[:80]!r}", 0) from error


def answer_of(line: bytes, path: str) -> IndexAnswer:
    """Read the line of an answer; BadInput, of the extract at `path`, if it is invalid."""
    try:
        raw = json.loads(line)
        return IndexAnswer(
            raw["url"],
            raw["date"],
            raw["offset"],
            raw["status"],
            raw["type"],
            _page(raw["page"]) if "page" in raw else None,
            _file(raw["file"]) if "file" in raw else None,
            raw.get("warc", ""),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(path, f"a line is not an answer: {line[:80]!r}") from error


def _page(raw: Mapping[str, Any]) -> CapturedPage:
    if "project" not in raw:
        return CapturedPage(None, raw["why"])
    files, known = tuple(ListedFile(**file) for file in raw["files"]), (raw.get("status"), raw.get("reason"))
    page = SimplePage(raw["project"], raw["serial"], files, raw["unfit"], *known)
    return CapturedPage(page, raw["why"], raw.get("etag"), raw.get("modified"))


def _validator(found: re.Match[bytes] | None) -> str | None:
    """The value of a validator; None for one that would not be sent back as it came."""
    value = found[1].strip().decode("latin-1") if found else ""
    return value if value.isascii() and value.isprintable() and 0 < len(value) <= _LONGEST_VALIDATOR else None


def _file(raw: Mapping[str, Any]) -> CapturedFile:
    facts: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in raw["facts"].items()
    }
    return CapturedFile(**{**raw, "facts": DistributionFacts(**facts)})


def make(extracts: Extracts, store: Store, path: str, sha512: str) -> None:
    """Read a stored WARC, and leave its extract.

    NotReady if it is missing, Mismatch if it is no longer as it was verified.
    """
    with closing(DistributionHearer(extracts)) as hearer:
        making.make(store, path, sha512, hearer)
