"""The check of the published text for the documents of a stage: the current version, and the Solr that it is posted to.

Of every WARC are asked: how many documents each has; and its first document, its last, and some between, which must be
there as they are, or not at all if they must not be shown.

`AskingText` asks the current version. It is other code than the one that writes it. `AskingSolr` asks Solr by host, and
in each collection: a document must be in the collection that its key is routed to, and in no other.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from warcmill import layout
from warcmill.clients.solr import Solr
from warcmill.errors import BadInput, Mismatch, NotReady, Unavailable
from warcmill.extracts import text
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.stage_extracts import counts_differ, unread
from warcmill.extracts.text import DocumentCounts, extract_kind
from warcmill.formats.index.urlkey import urlkey
from warcmill.formats.text.captures import OTHER_TYPE
from warcmill.formats.text.document import Kind
from warcmill.index.sink_solr import Notes, SolrTarget, host_of
from warcmill.index.text import Line, ShownDocuments, key_of, lines_of
from warcmill.launches import holdings, listed_pages
from warcmill.launches.listed_pages import ListedPages
from warcmill.markers.attempts import Attempts, run_items
from warcmill.markers.claim import Claim
from warcmill.markers.facts.index import TextIndexed, TextIndexedFile
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FileRef, Item, Key, Launch, Outcome, Stage
from warcmill.stores import LocalStore
from warcmill.versions import hidden_list
from warcmill.versions.hidden_list import Hidden
from warcmill.versions.inputs import ListedWarc, Lists, VersionList
from warcmill.versions.publication import Payloads
from warcmill.versions.text import NAME

_ASKED = ("url", "wayback_date", "source_file_offset", "content_type_served", "content_text_length", "title", "content")
_COMPARED = 8_000  # characters of a field: of some the end may be cut off

Tally = dict[str, Counter[str]]  # documents by collection and host


class AskingSolr:
    """A Solr, for the documents of one version. Close it after use."""

    def __init__(self, index: LocalStore, place: SolrTarget, listed: VersionList) -> None:
        self._solr, self._routing, self._listed = Solr(place.server), place.routing, listed
        self._notes = Notes(index, place)
        self.name = f"{place.name} {place.routing.digest[:16]}"

    def close(self) -> None:
        """Close its connections."""
        self._solr.close()

    def tally(self) -> Tally:
        """A count of nothing, for each collection."""
        return {name: Counter() for name in self._routing.collections}

    def count(self, tally: Tally, line: Line) -> None:
        """Count a document that is to be shown."""
        tally[self._routing.collection(key_of(line))][host_of(line["url"])] += 1

    def require(self, one: ListedWarc) -> None:
        """NotReady until Solr has acknowledged a WARC as this version has it."""
        self._notes.require(one, self._listed)

    def check(self, name: str, tally: Tally, sample: Sequence[tuple[Line, bool]]) -> None:
        """Mismatch unless each collection has these documents of a WARC, and those of the sample as they are."""
        for collection, hosts in tally.items():
            where = f"documents of {name} in {self._solr.name(collection)}"
            compare(where, hosts.total(), self._solr.count(collection, source_file=name))
            found = self._solr.facet(collection, "host", source_file=name)
            expected = {host: number for host, number in hosts.items() if host}
            compare(f"{where} by host", dict(sorted(expected.items())), dict(sorted(found.items())))
        for collection in tally:
            documents = self._solr.documents(collection, [line["id"] for line, _ in sample])
            for line, is_shown in sample:
                is_here = is_shown and self._routing.collection(key_of(line)) == collection
                self._check_one(name, f"{line['url']} in {self._solr.name(collection)}", line, documents, is_here)

    def _check_one(
        self, name: str, what: str, line: Line, documents: Mapping[str, Mapping[str, Any]], is_here: bool
    ) -> None:
        found = documents.get(line["id"])
        compare(f"{what}: times found", int(is_here), int(found is not None))
        if found is not None:
            expected = {field: _begin(line[field]) for field in _ASKED if field in line}
            there = {field: _begin(found[field]) for field in _ASKED if field in found}
            compare(what, {**expected, "source_file": name}, {**there, "source_file": found.get("source_file")})


def _begin(value: object) -> object:
    return value[:_COMPARED] if isinstance(value, str) else value


_WARC = "SELECT id FROM warc WHERE name = ?"
_COUNT = "SELECT count(*) FROM page WHERE warc = ?"
_PAGE = """
    SELECT page.key, page.url, page.time, page.type, words.title, words.content, page.id FROM page
    JOIN words ON words.rowid = page.id WHERE page.warc = ? AND page.offset = ?
"""
_HAS = "SELECT count(*) FROM words WHERE words MATCH ? AND rowid = ?"


def compare(what: str, expected: object, found: object) -> None:
    """Mismatch unless both are the same."""
    if expected != found:
        raise Mismatch(what, expected, found)


class AskingText:
    """The current version, open. NotReady if there is none."""

    def __init__(self, state: LocalStore, index: LocalStore) -> None:
        current = Payloads(index, NAME).current()
        if current is None:
            raise NotReady(f"the current version of {NAME}", "run 'warcmill scan', which publishes one")
        self.listed: VersionList = Lists(state, NAME).read(current.number)
        self.hidden: Hidden = hidden_list.at(state, self.listed.hiding)
        self._open = ExitStack()
        self._parts = [
            self._opened(index, file.path)
            for segment in current.segments
            for end, file in segment.files.items()
            if end == ".sqlite"
        ]

    def close(self) -> None:
        """Close its segments."""
        self._open.close()

    def input(self, name: str, sha512: str) -> ListedWarc:
        """The WARC in the version's list. NotReady if the version does not list these bytes."""
        one = self.listed.by_name.get(name)
        if one is None or one.sha512 != sha512:
            raise NotReady(name, f"version {self.listed.number} does not list it; run 'warcmill scan'")
        return one

    def check(self, name: str, number: int, sample: Sequence[tuple[Line, bool]]) -> None:
        """Mismatch unless the version has that many documents of a WARC, and each of the sample once and as it is.

        The sample has True for each document that is in the version: for a hidden one too, which a query leaves out by
        its key; not for one with a virus.
        """
        try:
            found = [(part, row[0]) for part in self._parts for row in part.execute(_WARC, (name,))]
            counts = [part.execute(_COUNT, (warc,)).fetchone()[0] for part, warc in found]
            compare(f"documents of {name} in version {self.listed.number}", number, sum(counts))
            for line, is_there in sample:
                self._check_one(found, f"{line['url']} at {line['source_file_offset']} of {name}", line, is_there)
        except sqlite3.Error as error:
            raise Unavailable(f"version {self.listed.number} of {NAME}", f"SQLite: {error}") from error

    def _check_one(self, found: list[tuple[sqlite3.Connection, int]], what: str, line: Line, is_there: bool) -> None:
        place = line["source_file_offset"]
        rows = [(part, row) for part, warc in found for row in part.execute(_PAGE, (warc, place))]
        compare(f"{what}, in version {self.listed.number}: times found", int(is_there), len(rows))
        for part, (*fields, page) in rows:
            key, time = key_of(line).decode(), str(line["wayback_date"])
            type_ = line.get("content_type_served", "")
            words = [_letters(line.get("title", "")), _letters(line.get("content", ""))]
            compare(what, [key, line["url"], time, type_, *words], [*fields[:4], *map(_letters, fields[4:])])
            word = a_word(line.get("content", ""))
            times = part.execute(_HAS, (f'"{word}"', page)).fetchone()[0] if word else 1
            compare(f"{what}: times found by its word {word}", 1, times)

    def _opened(self, index: LocalStore, path: str) -> sqlite3.Connection:
        real = quote(str(index.real(path)))
        return self._open.enter_context(closing(sqlite3.connect(f"file:{real}?mode=ro&immutable=1", uri=True)))


def _letters(text: str) -> str:
    """A text without its zero-width spaces: the index has more of them, between letters of scripts without blanks."""
    return text.replace("\N{ZERO WIDTH SPACE}", "")


def a_word(text: str) -> str:
    """A word of a text that every tokenizer takes for one; '' if there is none."""
    return next((word for word in text[:100_000].split() if word.isascii() and word.isalpha() and len(word) < 50), "")


SAMPLE = 30  # documents of a WARC that are read back, besides the first and the last
WARCS = "warcs/"


def is_ready(state: MarkerStore, index: LocalStore, place: SolrTarget | None, launch: Launch, stage: Stage) -> bool:
    """True if the current version lists a stage, and Solr has all of it. Solr is not asked."""
    marker = state.require(layout.step("text", launch, stage))
    if not (known := TextIndexed.from_claim(marker.claim).files):
        return True
    try:
        with ExitStack() as opened:
            asking, solr = _open(opened, state, index, place)
            for file in known:
                require(asking, solr, file)
    except NotReady:
        return False
    return True


def verify(state: MarkerStore, index: LocalStore, place: SolrTarget | None, launch: Launch, stage: Stage) -> Claim:
    """The claim of index.text-verified. It follows from index.text alone.

    NotReady until a version lists the stage, and Solr has acknowledged that; Unsettled when a document is missing, not
    as it should be, in another collection, or shown although it is hidden.
    """
    key = layout.step("verify-text", launch, stage)
    indexed = state.require(layout.step("text", launch, stage))
    known = TextIndexed.from_claim(indexed.claim).files
    held = {one.stored: one for one in holdings.of_stage(state, launch, stage).holdings}
    hits = {file: tuple(hit.offset for hit in one.hits or ()) for file, one in held.items()}
    sources = {item.made or item.file: item.file for item in indexed.claim.items}
    items: tuple[Item, ...] = ()
    if known:  # an archive without a WARC never publishes a version: there is nothing to ask
        with ExitStack() as opened:
            asking, solr = _open(opened, state, index, place)
            if pages := listed_pages.of_launch(state, launch):
                opened.enter_context(closing(pages))
            work = _Verifying(indexed.claim.key, asking, solr, Extracts(index), known, hits, sources, pages)
            for file in known:
                require(asking, solr, file)
            items = run_items(Attempts(state, key), known, work.version, work.item)
    claim = Claim(key, rests_on(indexed), items=items)
    return replace(claim, counts={"warcs": len(items), "documents": sum(map(_documents, known.values()))})


class _Verifying(Struct, frozen=True):
    indexed: Key
    asking: AskingText
    solr: AskingSolr | None
    extracts: Extracts
    known: Mapping[FileRef, TextIndexedFile]
    hits: Mapping[FileRef, tuple[int, ...]]
    sources: Mapping[FileRef, FileRef]
    pages: ListedPages | None

    def version(self, file: FileRef) -> str:
        """Changes with the version of the text and with Solr: another one is asked again."""
        return f"{self.asking.listed.number} {self.solr.name if self.solr else '-'} {file.sha512}"

    def item(self, file: FileRef) -> tuple[Item, ...]:
        """Ask for the documents of one WARC."""
        one, number = require(self.asking, self.solr, file), _documents(self.known[file])
        lines = self._counted(one, self.known[file])
        left_out = (*one.left_out, *self.hits.get(file, ()))
        in_version, shown = ShownDocuments(left_out, {}), ShownDocuments(left_out, self.asking.hidden.prefixes())
        tally: Tally = self.solr.tally() if self.solr else {}
        asked, sample, seen, kept = _sample(lines), list[Line](), 0, 0
        for line in self._lines(one):
            if seen in asked:
                sample.append(line)
            if self.solr and shown.has(line):
                self.solr.count(tally, line)
            kept += in_version.has(line)
            seen += 1
        compare(f"lines of {extract_kind(one.generation).path(one.sha512)}", lines, seen)
        self.asking.check(one.name, kept, [(self._titled(line), in_version.has(line)) for line in sample])
        if self.solr:
            self.solr.check(one.name, tally, [(line, shown.has(line)) for line in sample])
        return (Item(self.sources[file], Outcome.OK, file, facts={"documents": number}),)

    def _titled(self, line: Line) -> Line:
        """A document with the title that is listed for it, as the version has it; Solr has its own alone."""
        if self.pages is None:
            return line
        title = self.pages.titled(urlkey(line["url"]), str(line["wayback_date"]), line.get("title", ""))
        return {**line, "title": title}

    def _counted(self, one: ListedWarc, known: TextIndexedFile) -> int:
        """The number of lines that its extract must have. NotReady if that counts other documents than index.text."""
        kind = extract_kind(one.generation)
        try:
            found = text.counts(self.extracts, kind, one.sha512)
        except (BadInput, NotReady) as error:
            raise unread(error, self.indexed) from error
        if not _is_same(known, found):
            raise unread(BadInput(kind.path(one.sha512), counts_differ(_shown(found), _shown(known))), self.indexed)
        return sum(found.documents.values())

    def _lines(self, one: ListedWarc) -> Iterator[Line]:
        try:
            yield from lines_of(self.extracts, one)
        except (BadInput, NotReady) as error:
            raise unread(error, self.indexed) from error


def _open(
    opened: ExitStack, state: MarkerStore, index: LocalStore, place: SolrTarget | None
) -> tuple[AskingText, AskingSolr | None]:
    asking = opened.enter_context(closing(AskingText(state.store, index)))
    return asking, opened.enter_context(closing(AskingSolr(index, place, asking.listed))) if place else None


def require(asking: AskingText, solr: AskingSolr | None, file: FileRef) -> ListedWarc:
    """A WARC in the version's list. NotReady if it is not in it, or not in Solr."""
    one = asking.input(file.path.removeprefix(WARCS), str(file.sha512))
    if solr:
        solr.require(one)
    return one


def _sample(number: int) -> frozenset[int]:
    """The documents to ask for: the first, the last, and some at equal distances."""
    inner = (at * number // (SAMPLE + 1) for at in range(1, SAMPLE + 1))
    return frozenset({0, number - 1, *inner})


def _documents(file: TextIndexedFile) -> int:
    return sum(file.documents.values())


def _is_same(known: TextIndexedFile, found: DocumentCounts) -> bool:
    """True if a marker and an extract count the same. Markers made before office documents were documents have them
    among captures of another type, and stay as they are."""
    documents, left_out = Counter(found.documents), Counter(found.left_out)
    if Kind.OFFICE not in known.documents:
        left_out[OTHER_TYPE] += documents.pop(Kind.OFFICE, 0)
    return documents == Counter(known.documents) and left_out == Counter(known.left_out)


def _shown(counted: TextIndexedFile | DocumentCounts) -> str:
    return f"{dict(counted.documents)}, and left out {dict(counted.left_out)}"
