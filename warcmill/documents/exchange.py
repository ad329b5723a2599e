"""Documents handed in, as W3ACT has them, and handed on: JSON Lines, CSV, Dublin Core. Writes decisions by the desk.

A line of W3ACT names a document by its URL and the time of its capture, or by its SHA-256. A document that is decided
here stays as it is: so an import that was cut continues, and the same one again changes nothing.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, BinaryIO, Final
from xml.sax.saxutils import escape

from msgspec import Struct, field

from warcmill.documents import decided
from warcmill.documents.decided import ID, NEW, STATUSES, TARGET, DocumentDecision
from warcmill.documents.desk import Desk, DeskDocument
from warcmill.errors import BadInput
from warcmill.formats.index.urlkey import urlkey
from warcmill.model import Json
from warcmill.stores import Store

COLUMNS: Final = (
    "id", "status", TARGET, "document_url", "landing_page_url", "wayback_timestamp", "filename", "size", "type",
    "title", "publisher", "publication_date", "authors", "isbn", "doi", "first_seen", "version_of", "urls",
)  # fmt: skip
LONGEST: Final = 1 << 20  # bytes of a line
AT_ONCE: Final = 2_000  # lines
_NAMES: Final = {  # of a field of ours, those that W3ACT has
    "title": ("title",),
    "landing_page_url": ("landing_page_url", "landingPageUrl"),
    "publisher": ("publisher", "publishers"),
    "publication_date": ("publication_date", "publicationDate"),
    "authors": ("authors", "author"),
    "isbn": ("isbn",),
    "doi": ("doi",),
    TARGET: ("id_watched_target", "target_id", "targetId"),
}
_URL, _TIME = ("document_url", "documentUrl"), ("wayback_timestamp", "waybackTimestamp")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ELEMENTS: Final = (
    ("title", "title"),
    ("authors", "creator"),
    ("publisher", "publisher"),
    ("publication_date", "date"),
)


class HandedIn(Struct):
    """The outcome of an import, line by line. `waiting`: those of documents that the archive has not yet; `bad`: those
    that cannot be read. Both by the number of the line, with its name and the reason."""

    lines: int = 0
    decided: int = 0
    known: int = 0
    new: int = 0
    waiting: list[tuple[int, str, str]] = field(default_factory=list)
    bad: list[tuple[int, str, str]] = field(default_factory=list)

    def json(self) -> dict[str, Json]:
        """As --json has it."""

        def listed(rows: list[tuple[int, str, str]]) -> list[Json]:
            return [{"line": line, "name": name, "why": why} for line, name, why in rows]

        counts = {name: getattr(self, name) for name in ("lines", "decided", "known", "new")}
        return {**counts, "bad": listed(self.bad), "waiting": listed(self.waiting)}


class _Line(Struct, frozen=True):
    """A line that can be read: the document that it names, and what it says of it."""

    id: str
    url: str
    time: str
    said: DocumentDecision

    @property
    def name(self) -> str:
        return self.id or f"{self.url} {self.time}".strip()


def hand_in(desk: Desk, open_store: Callable[[], Store], who: str, file: BinaryIO) -> HandedIn:
    """Make the decisions of a file of W3ACT, in parts that one decision has room for."""
    done, said, over = HandedIn(), dict[str, DocumentDecision](), desk.number
    for data in _lines(file):
        done.lines += 1
        try:
            line = _parsed(data)
        except BadInput as error:
            done.bad.append((done.lines, error.path, error.why))
            continue
        document_id, why = _found(desk, line)
        if why:
            done.waiting.append((done.lines, line.name, why))
        if not document_id:
            continue
        if document_id in said or desk.decided(document_id).decision:
            done.known += 1
        elif line.said.status == NEW:
            done.new += 1
        else:
            said[document_id] = DocumentDecision(document_id, line.said.status, line.said.fields)
        if len(said) == AT_ONCE:
            done.decided += desk.decide(open_store, who, said.values(), over)
            said.clear()
    done.decided += desk.decide(open_store, who, said.values(), over)
    return done


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines that are not blank, each cut after LONGEST bytes and one."""
    while data := file.readline(LONGEST + 1):
        rest = data
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(LONGEST)
        if data.strip():
            yield data


def _parsed(data: bytes) -> _Line:
    """A line; BadInput for one that names no document, or has a value that no field takes."""
    if len(data) > LONGEST:
        raise BadInput("the line", f"it has more than {LONGEST:,} bytes")
    try:
        found: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadInput("the line", f"it is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise BadInput("the line", "it is not an object of JSON")
    ids = [value for name in ("sha256", "id") if ID.fullmatch(value := _text(found, (name,)).lower())]
    url, time = _text(found, _URL), "".join(filter(str.isdecimal, _text(found, _TIME)))[:14]
    if not ids and not url:
        raise BadInput("the line", "it has no document_url and no sha256")
    status = _text(found, ("status",)).upper() or NEW
    if status not in STATUSES:
        raise BadInput(ids[0] if ids else url, f"its status is not one of {', '.join(STATUSES)}")
    fields: dict[str, str | None] = {name: value for name, names in _NAMES.items() if (value := _text(found, names))}
    if "publication_date" in fields:  # W3ACT has a time with it
        fields["publication_date"] = str(fields["publication_date"]).replace("T", " ").partition(" ")[0]
    try:
        said = decided.checked(DocumentDecision("", status, fields))
    except BadInput as error:
        raise BadInput(ids[0] if ids else url, f"its {error.path}: {error.why}") from error
    return _Line(ids[0] if ids else "", url, time, said)


def _text(found: Mapping[str, Any], names: Iterable[str]) -> str:
    """The first of these values that is not empty, as a text; a list's are joined."""
    for name in names:
        value = found.get(name)
        values = value if isinstance(value, list) else [value]
        texts = [str(one).strip() for one in values if isinstance(one, str | int) and not isinstance(one, bool)]
        if joined := "; ".join(filter(None, texts)):
            return joined
    return ""


def _found(desk: Desk, line: _Line) -> tuple[str, str]:
    """The id of the document that a line names, '' if it is not known; and why it is not in the archive."""
    if line.id:
        return line.id, "" if desk.document(line.id) else "the archive has no such body yet; what is said of it is kept"
    key, here = urlkey(line.url), desk.at_address(line.url)
    at = {one.entry.id: [two.date for two in one.entry.captures if urlkey(two.url) == key] for one in here}
    ids = [name for name, dates in at.items() if line.time in dates or not line.time]
    if len(ids) == 1:
        return ids[0], ""
    if not here:
        return "", "the archive has no document of this URL yet"
    if ids:
        return "", f"{len(ids)} documents were at this URL, and the line does not say when"
    times = sorted(date for dates in at.values() for date in dates)
    return "", f"the archive has this URL at other times: {', '.join(times[:3])}{' …' if len(times) > 3 else ''}"


def json_lines(documents: Iterable[DeskDocument]) -> Iterator[str]:
    """A line of JSON for each document, as `list --json` has it."""
    for one in documents:
        yield f"{json.dumps(one.json(), sort_keys=True)}\n"


def csv_lines(documents: Iterable[DeskDocument]) -> Iterator[str]:
    """A table with a head. No cell is a formula to a spreadsheet: one that begins like one gets an apostrophe."""
    yield _row(COLUMNS)
    for one in documents:
        values = one.json()
        urls = {"urls": " ".join(one.entry.urls)}
        yield _row(_cell(str({**values, **urls}[name])) for name in COLUMNS)


def _row(cells: Iterable[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(cells)
    return line.getvalue()


def _cell(text: str) -> str:
    line = decided.one_line(text)
    return f"'{line}" if line.startswith(_FORMULA) else line


def dublin_core(documents: Iterable[DeskDocument]) -> Iterator[str]:
    """One XML file with a record of Dublin Core for each document."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<records xmlns:dc="http://purl.org/dc/elements/1.1/"'
    yield ' xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/">\n'
    for one in documents:
        lines = "".join(f"<dc:{name}>{_xml(value)}</dc:{name}>\n" for name, value in _elements(one) if value)
        yield f"<oai_dc:dc>\n{lines}</oai_dc:dc>\n"
    yield "</records>\n"


def _elements(one: DeskDocument) -> Iterator[tuple[str, str]]:
    for name, element in _ELEMENTS:
        texts = one.text(name).split("; ") if name == "authors" else [one.text(name)]
        yield from ((element, text) for text in texts)
    yield "format", one.entry.type
    yield "identifier", one.entry.urls[0]
    yield "identifier", f"urn:sha256:{one.entry.id}"
    yield from (("identifier", f"{begin}{text}") for begin, name in (("urn:isbn:", "isbn"), ("doi:", "doi"))
                for text in one.text(name).split("; ") if text)  # fmt: skip
    yield "source", one.text("landing_page_url")
    yield "relation", f"urn:sha256:{one.entry.version_of}" if one.entry.version_of else ""


def _xml(text: str) -> str:
    return escape(_NOT_XML.sub(" ", text))


FORMATS: Final[Mapping[str, Callable[[Iterable[DeskDocument]], Iterator[str]]]] = {
    "jsonl": json_lines, "csv": csv_lines, "dc": dublin_core,
}  # fmt: skip
