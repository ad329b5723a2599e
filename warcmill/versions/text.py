"""The text index as a data set: segments of documents with full text, folded so that a query opens few. Writes them.

As with the CDX, new WARCs make a new segment, and a segment that is not at least FACTOR times as large is rebuilt with
them. Documents come from extracts. Hidden documents stay in the segments: a query leaves them out. An extract in which
office documents are unread is rebuilt once something reads them, and becomes an input of another generation. Its text
stays when that is switched off. A document whose page is in a list of an imported WACZ has its title there, too.

A segment has the documents of some WARCs, in a SQLite file with FTS5 that is never changed.

    {name}.sqlite    `warc`, `page`, and `words`, the full text of title and content
    {name}.inputs    the WARCs that it was made of; sealed
    {name}.counts    how many documents of each WARC were read back from it; sealed

`page.key` is the key of the URL, a blank, and the time: by it a query leaves out what is hidden.

SQLite's tokenizer takes a run of letters for one word. Some scripts put no blanks between words, so a Japanese sentence
would only be found by all of it. In such scripts each character is a word of the index, and a word a phrase: `part`
puts an invisible character on both sides of each letter (U+200B, ZERO WIDTH SPACE: the tokenizer takes it for a
blank). The words of a query are parted in the same way, and are found wherever they are in a text.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager
from functools import partial
from itertools import groupby, islice
from typing import IO, Any, BinaryIO
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from warcmill.base import digests
from warcmill.errors import BadInput, Mismatch, NotReady, Unavailable
from warcmill.extracts import text
from warcmill.extracts.extracts import ExtractKind, Extracts
from warcmill.extracts.per_warc import Extractor
from warcmill.extracts.text import GENERATION, KINDS, OFFICE_TEXT, TEXT, WITH_OFFICE, extract_kind
from warcmill.formats.index.urlkey import urlkey
from warcmill.formats.seal import seal
from warcmill.launches import listed_pages
from warcmill.launches.listed_pages import ListedPages
from warcmill.markers.state import MarkerStore
from warcmill.stores import LocalStore, temporary_names
from warcmill.versions import dataset, index_inputs, segments
from warcmill.versions.dataset import Built, New, Wanted
from warcmill.versions.hidden_list import Hidden
from warcmill.versions.inputs import FOLDER, ListedWarc
from warcmill.versions.publication import Published
from warcmill.versions.segments import COUNTS, INPUTS, Segment, SegmentSources, named, publish, publish_bytes

FACTOR = 4
NAME = "text"
_LOST = "the text of its office documents is lost, and [text] tika, which would extract it anew, is not set"
Line = Mapping[str, Any]
log = logging.getLogger(__name__)


class Text(Struct, frozen=True):
    """The data set `text`."""

    state: MarkerStore
    making: Extractor
    index: LocalStore
    name: str = NAME
    generation: int = GENERATION

    @property
    def extracts(self) -> Extracts:
        """The extracts of the index root."""
        return Extracts(self.index)

    def seen(self) -> str:
        seen = index_inputs.seen(self.state, self.index, NAME, self.generation)
        return hashlib.sha512(f"{seen} {WITH_OFFICE}".encode()).hexdigest() if self.making.has_office else seen

    def wanted(self, before: Sequence[ListedWarc]) -> Wanted:
        found = index_inputs.wanted(self.state, before, NAME, self.generation)
        had = {one.sha512 for one in before if one.generation == WITH_OFFICE}
        inputs = (replace(one, generation=self._generation(one.sha512, had)) for one in found.inputs)
        return replace(found, inputs=tuple(inputs))

    def _generation(self, sha512: str, had: Set[str]) -> int:
        """Of which generation the extract of a WARC should be, as far as it is known before the WARC is read."""
        is_there = sha512 in had or self.index.stat(OFFICE_TEXT.path(sha512))
        return WITH_OFFICE if is_there or self._is_short(sha512) else GENERATION

    def _is_short(self, sha512: str) -> bool:
        """True if office documents are unread in an extract that could be read."""
        try:
            return self.making.has_office and text.counts(self.extracts, TEXT, sha512).unread > 0
        except (NotReady, BadInput):
            return False

    def _is_countable(self, kind: ExtractKind, sha512: str) -> bool:
        """False if an extract is missing, or has to be made again by its first line."""
        try:
            text.counts(self.extracts, kind, sha512)
        except (NotReady, BadInput):
            return False
        return True

    def build(self, wanted: Sequence[ListedWarc], _hidden: Hidden, before: Published | None, _room: IO[bytes]) -> Built:
        troubles: dict[str, str] = {}
        at_once = self.making.at_once(sum(self.index.stat(_path(one)) is None for one in wanted))
        there = dataset.each(lambda one: self._digested(one, troubles), wanted, at_once, self.name)
        kept, fresh = self._plan(there, before.segments if before else ())
        listed = tuple(sorted(there))
        if not fresh:
            return Built(listed, kept, troubles=list(troubles.values()))
        written = write(self.index, self._sources(fresh))
        if not written.lines:  # no document: nothing is published of it
            written.stream.close()
            return Built(listed, kept, troubles=list(troubles.values()))
        commit = partial(commit_segment, written=written, made=SegmentSources(tuple(fresh), frozenset()))
        return Built(listed, kept, New(written.lines, commit), list(troubles.values()))

    def _digested(self, one: ListedWarc, troubles: dict[str, str]) -> ListedWarc | None:
        """The input with the digest of its extract, which is made if it is missing, damaged, or short of office
        documents that can be read; None in trouble."""
        found = self._found(one)
        if found is None:
            try:
                log.info("text: %s is read again from the store", one.name)
                for kind in KINDS:
                    self.extracts.remove(kind, one.sha512, if_damaged=self._is_countable(kind, one.sha512))
                self.making.text(index_inputs.WARCS + one.name, one.sha512)
                found = self._found(one)
                if not found:
                    why = "it was written anew, and cannot be read; look at the disk of the index root"
                    raise BadInput(f"index:{_path(one)}", why)
            except (NotReady, Mismatch, BadInput) as error:
                troubles[one.name] = f"{one.name}: {error}; it is left out of the index"
        if found and found.generation < one.generation:
            troubles[one.name] = f"{one.name}: {_LOST}"
        return found

    def _found(self, one: ListedWarc) -> ListedWarc | None:
        """The input, with the digest and the generation of the extract that is there; None if one has to be made."""
        for kind in KINDS:
            digest = self.extracts.digest(kind, one.sha512) if self._is_countable(kind, one.sha512) else None
            if digest and (kind is OFFICE_TEXT or not self._is_short(one.sha512)):
                return replace(one, generation=kind.generation, extract=digest)
        return None

    def _plan(
        self, wanted: Sequence[ListedWarc], known: Sequence[Segment]
    ) -> tuple[tuple[Segment, ...], list[ListedWarc]]:
        """The segments that are kept, and the WARCs of which a new one is made."""
        open_, kept = {one.name: one for one in wanted}, list[tuple[int, Segment, SegmentSources]]()
        for segment in known:
            made = self._still_true(segment, open_)
            if made:
                kept.append((sum(map(self._size, made.inputs)), segment, made))
                for one in made.inputs:
                    del open_[one.name]
        kept.sort(key=lambda found: -found[0])
        fresh = list(open_.values())
        size = sum(self._size(one) for one in fresh)
        while fresh and kept and kept[-1][0] < FACTOR * size:
            length, _, made = kept.pop()
            fresh += made.inputs
            size += length
        return tuple(segment for _, segment, _ in kept), sorted(fresh)

    def _size(self, one: ListedWarc) -> int:
        found = self.index.stat(_path(one))
        return found.size if found else 0

    def _still_true(self, segment: Segment, wanted: dict[str, ListedWarc]) -> SegmentSources | None:
        """The sources of a segment, if it can be kept; else None."""
        try:
            made = segments.made_of(self.index, segment)
            entries = [(self.index.stat(file.path), file) for file in segment.files.values()]
            sound = all(entry and entry.size == file.size for entry, file in entries)
            return made if sound and all(wanted.get(one.name) == one for one in made.inputs) else None
        except (NotReady, BadInput, Mismatch) as error:
            log.warning("%s; its WARCs are taken from their extracts", error)
            return None

    def _sources(self, fresh: Iterable[ListedWarc]) -> Iterator[tuple[ListedWarc, Iterator[Line]]]:
        """The documents of WARCs, with the titles that are listed for their launch: those of one before the next."""
        for launch, ones in groupby(fresh, key=lambda one: one.launch):
            pages = listed_pages.of_launch(self.state, launch)
            for one in ones:
                documents = self._documents(one)
                yield one, map(partial(_titled, pages), documents) if pages else documents
            if pages:
                pages.close()

    def _documents(self, one: ListedWarc) -> Iterator[Line]:
        """The documents of a WARC, without those left out. Mismatch if its extract changed meanwhile."""
        digest = hashlib.sha512()
        for line in self._digesting(one, digest):
            if text.offset(line) not in one.left_out:
                yield json.loads(line)
        if digest.hexdigest() != one.extract:
            raise Mismatch(f"index:{_path(one)}", one.extract, digest.hexdigest())

    def _digesting(self, one: ListedWarc, digest: hashlib._Hash) -> Iterator[bytes]:
        lines = self.extracts.lines(extract_kind(one.generation), one.sha512)
        for first in islice(lines, 1):
            digest.update(first)
        for line in lines:
            digest.update(line)
            yield line


def _titled(pages: ListedPages, document: Line) -> Line:
    title = pages.titled(urlkey(document["url"]), str(document["wayback_date"]), document.get("title", ""))
    return {**document, "title": title}


def _path(one: ListedWarc) -> str:
    """The path of the extract of an input."""
    return extract_kind(one.generation).path(one.sha512)


SQLITE = ".sqlite"
_SCHEMA = """
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    CREATE TABLE warc (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
    CREATE TABLE page (
        id INTEGER PRIMARY KEY, warc INTEGER NOT NULL, offset INTEGER NOT NULL, key TEXT NOT NULL, url TEXT NOT NULL,
        time TEXT NOT NULL, type TEXT NOT NULL
    );
    CREATE VIRTUAL TABLE words USING fts5(title, content, tokenize = 'unicode61 remove_diacritics 2');
"""


class WrittenSegment(Struct, frozen=True):
    """A segment that is not published yet: an open file that has no name any more."""

    stream: BinaryIO
    lines: int


def write(index: LocalStore, sources: Iterable[tuple[ListedWarc, Iterable[Line]]]) -> WrittenSegment:
    """Write the documents of some WARCs into a nameless file. Unavailable if the disk is full."""
    folder = index.base / FOLDER
    folder.mkdir(exist_ok=True)
    index.sweep(FOLDER)
    path = folder / temporary_names.name("text.sqlite")
    path.open("xb").close()
    try:
        with sqlite_errors(FOLDER), closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.executescript(_SCHEMA)
            database.execute("BEGIN")
            lines = sum(_insert(database, number, *source) for number, source in enumerate(sources))
            database.execute("INSERT INTO words (words) VALUES ('optimize')")
            database.execute("INSERT INTO words (words) VALUES ('integrity-check')")
            database.execute("COMMIT")
        return WrittenSegment(path.open("rb"), lines)
    finally:
        path.unlink(missing_ok=True)


def _insert(database: sqlite3.Connection, number: int, one: ListedWarc, documents: Iterable[Line]) -> int:
    """Insert the documents of a WARC; return how many there are."""
    database.execute("INSERT INTO warc VALUES (?, ?)", (number, one.name))
    count = 0
    for document in documents:
        url, time = document["url"], str(document["wayback_date"])
        type_ = document.get("content_type_served", "")
        row = (number, document["source_file_offset"], f"{urlkey(url)} {time}", url, time, type_)
        at = database.execute("INSERT INTO page VALUES (NULL, ?, ?, ?, ?, ?, ?)", row).lastrowid
        words = (at, part(document.get("title", "")), part(document.get("content", "")))
        database.execute("INSERT INTO words (rowid, title, content) VALUES (?, ?, ?)", words)
        count += 1
    return count


def commit_segment(index: LocalStore, folder: str, written: WrittenSegment, made: SegmentSources) -> Segment:
    """Publish a segment's files in a folder, read them back, and count what was read."""
    document, name = named(made)
    path = f"{folder}/{name}{SQLITE}"
    with written.stream as stream:
        size, sha512 = digests.sha512(stream)
        stream.seek(0)
        files = {SQLITE: publish(index, path, stream, size, sha512)}
    files[INPUTS] = publish_bytes(index, f"{folder}/{name}{INPUTS}", document)
    counts = read_back(index, path)
    if sum(counts.values()) != written.lines:
        raise Mismatch(f"documents in index:{path}", written.lines, sum(counts.values()))
    text = "".join(f"{number} {warc}\n" for warc, number in sorted(counts.items()))
    files[COUNTS] = publish_bytes(index, f"{folder}/{name}{COUNTS}", seal(text.encode()))
    return Segment(name, written.lines, files)


def read_back(index: LocalStore, path: str) -> dict[str, int]:
    """Read a segment from the disk; count its documents by WARC. BadInput if it is damaged."""
    with opened(index, path) as database:
        found = database.execute("PRAGMA quick_check").fetchall()
        if found != [("ok",)]:
            raise BadInput(f"index:{path}", f"SQLite finds it damaged: {found[:3]}")
        query = "SELECT warc.name, count(*) FROM page JOIN warc ON warc.id = page.warc GROUP BY warc.id"
        return dict(database.execute(query).fetchall())


@contextmanager
def opened(index: LocalStore, path: str) -> Iterator[sqlite3.Connection]:
    """Open a segment to read it: it never changes."""
    real = os.fspath(index.real(path))
    with sqlite_errors(path), closing(sqlite3.connect(f"file:{quote(real)}?mode=ro&immutable=1", uri=True)) as database:
        yield database


@contextmanager
def sqlite_errors(path: str) -> Iterator[None]:
    """Errors of SQLite as errors of the index."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if "malformed" in str(error) or "not a database" in str(error):
            raise BadInput(f"index:{path}", f"SQLite cannot read it: {error}") from error
        raise Unavailable(f"index:{path}", f"SQLite: {error}") from error
    except OSError as error:
        raise Unavailable(f"index:{path}", error.strerror or str(error)) from error


_PART = "\u200b"
_LETTER = (
    "\u0e01-\u0e4e\u0e81-\u0edf"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17d3"  # Myanmar, Khmer
    "\u3005\u3007\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana, and what repeats a character
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"  # Han
)
_RUN = re.compile(f"[{_LETTER}]+")


def part(text: str) -> str:
    """Part the letters of such scripts from each other, and from those of others."""
    return text if text.isascii() else _RUN.sub(_parted, text)


def join(text: str) -> str:
    """A text as a reader sees it, without what parts its letters."""
    return text.replace(_PART, "")


def _parted(run: re.Match[str]) -> str:
    return f"{_PART}{_PART.join(run[0])}{_PART}"
