"""The entries of a published version of the data set `documents`: the parts of all crawls, merged by body. Reads only.

A version has nothing that is hidden, or has a virus. Revisits in one crawl whose body is in another meet it here, and
so do the bodies that a URL had one after the other.
"""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, closing, contextmanager
from itertools import chain, groupby

import msgspec
from msgspec import Struct

from warcmill.base.line_sort import SortedLines
from warcmill.errors import BadInput
from warcmill.formats.index.urlkey import urlkey
from warcmill.stores import LocalStore
from warcmill.versions.documents import parts, segment
from warcmill.versions.documents.entries import Entry
from warcmill.versions.documents.parts import EntryPart
from warcmill.versions.documents.segment import KeptCrawl
from warcmill.versions.publication import Published
from warcmill.versions.text import SQLITE, opened

_BACK = 1000  # captures of a URL that are looked at before one
_PARTS = "SELECT crawl, data FROM part WHERE name = ?"
_BODIES = "SELECT name, crawl, data FROM part WHERE name >= 'b' AND name < 'c' ORDER BY name"
_NAMES = "SELECT name, crawl FROM part WHERE name >= ? AND name < ? ORDER BY name"
_BEFORE = "SELECT date, name, crawl FROM place WHERE key = ? AND date < ? ORDER BY date DESC, name LIMIT ?"
_NAMED = "SELECT name, crawl FROM payload WHERE digest = ?"
_HAS_PAGE = "SELECT has_page FROM part WHERE name = ? AND crawl = ?"


def entries(index: LocalStore, published: Published) -> Iterator[Entry]:
    """All entries, in the order of their ids."""
    with reading(index, published) as found:
        yield from found.entries()


def entry(index: LocalStore, published: Published, id_: str) -> Entry | None:
    """The entry of a body; None without one."""
    with reading(index, published) as found:
        return found.entry(id_)


def changed(index: LocalStore, before: Published | None, after: Published) -> Iterator[str]:
    """The ids whose entry differs, in order, also of those that are gone; all if there is no version before."""
    with reading(index, after) as now:
        if before is None:
            yield from now.ids()
            return
        with reading(index, before) as was, closing(SortedLines(index.base)) as touched:
            old, new = was.made(), now.made()
            other = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
            for id_ in chain(was.touched_by(other, now), now.touched_by(other, was)):
                touched.add(f"{id_}\n".encode())
            for line, _ in groupby(touched):
                id_ = line.decode().rstrip("\n")
                if was.entry(id_) != now.entry(id_):
                    yield id_


@contextmanager
def reading(index: LocalStore, published: Published) -> Iterator[DocumentVersion]:
    """The segments of a version, open: who asks for many entries opens them once."""
    with ExitStack() as stack:
        crawls = segment.crawls(index, published.segments)
        live = {one.name: set[int]() for one in published.segments}
        for crawl in crawls.values():
            live[crawl.segment.name].add(crawl.number)
        segments = dict[str, _OpenSegment]()
        for one in published.segments:
            path = one.files[SQLITE].path
            segments[one.name] = _OpenSegment(path, stack.enter_context(opened(index, path)), live[one.name])
        yield DocumentVersion(crawls, segments)


class _Body(Struct, frozen=True):
    """The body that a URL had at a time: the id, and the part that says so."""

    date: str
    id: str
    name: str
    crawl: int
    segment: _OpenSegment


class _OpenSegment:
    """An open segment: the rows of the crawls that it is the last to have."""

    def __init__(self, path: str, database: sqlite3.Connection, live: Set[int]) -> None:
        self._path, self._do, self._live = path, database.execute, live

    def bodies(self) -> Iterator[tuple[str, EntryPart]]:
        """The names and parts of all bodies."""
        rows = self._do(_BODIES)
        return ((name, self._decoded(data)) for name, crawl, data in rows if crawl in self._live)

    def names(self, first: str, after: str) -> Iterator[str]:
        """The names of parts in a range."""
        return (name for name, crawl in self._do(_NAMES, (first, after)) if crawl in self._live)

    def parts(self, name: str) -> Iterator[EntryPart]:
        """The parts of a name."""
        return (self._decoded(data) for crawl, data in self._do(_PARTS, (name,)) if crawl in self._live)

    def part_with_page(self, name: str, crawl: int) -> EntryPart | None:
        """A part of a crawl, if a page links to it."""
        found = self._do(_HAS_PAGE, (name, crawl)).fetchone()
        rows = self._do(f"{_PARTS} AND crawl = ?", (name, crawl)) if found and found[0] else ()
        return next((self._decoded(data) for _, data in rows), None)

    def named(self, payload: str) -> Iterator[str]:
        """The ids of the bodies with this payload digest."""
        return (name[1:] for name, crawl in self._do(_NAMED, (payload,)) if crawl in self._live)

    def before(self, key: str, date: str) -> Iterator[tuple[str, str, int]]:
        """The time, name and crawl of each capture of a URL before a time, the last first."""
        rows = self._do(_BEFORE, (key, date, _BACK))
        return ((found, name, crawl) for found, name, crawl in rows if crawl in self._live and name[0] != "r")

    def held_by(self, crawl: int) -> Iterator[tuple[str, str]]:
        """The keys and names of what a crawl has."""
        return iter(self._do("SELECT DISTINCT key, name FROM place WHERE crawl = ?", (crawl,)))

    def _decoded(self, data: bytes) -> EntryPart:
        try:
            return parts.decode(data)
        except msgspec.DecodeError as error:
            raise BadInput(f"index:{self._path}", f"a part of a document is invalid: {error}") from error


class DocumentVersion:
    """An open version."""

    def __init__(self, crawls: Mapping[str, KeptCrawl], segments: Mapping[str, _OpenSegment]) -> None:
        self._crawls, self._by_name, self._segments = crawls, segments, list(segments.values())

    def made(self) -> dict[str, tuple[str, frozenset[str]]]:
        """The sources of each crawl."""
        return {name: (one.token, one.hidden) for name, one in self._crawls.items() if one.token}

    def ids(self) -> Iterator[str]:
        """The ids of all entries, in order."""
        for name, _ in groupby(heapq.merge(*(one.names("b", "c") for one in self._segments))):
            yield name[1:]

    def entries(self) -> Iterator[Entry]:
        """All entries, in the order of their ids."""
        found = heapq.merge(*(one.bodies() for one in self._segments), key=lambda pair: pair[0])
        for name, pairs in groupby(found, key=lambda pair: pair[0]):
            yield self._entry(name[1:], [part for _, part in pairs])

    def entry(self, id_: str) -> Entry | None:
        """The entry of a body; None without one."""
        found = [part for one in self._segments for part in one.parts(f"b{id_}")]
        return self._entry(id_, found) if found else None

    def touched_by(self, crawls: Iterable[str], other: DocumentVersion) -> Iterator[str]:
        """The ids whose entries may depend on what some crawls have, in this version or another; some several times."""
        for name in crawls:
            if crawl := self._crawls.get(name):
                for key, held in self._by_name[crawl.segment.name].held_by(crawl.number):
                    for version in (self, other):
                        yield from (held[1:],) if held[0] == "b" else version.named(held)
                        keys = {key, held[1:].partition(" ")[0]} if held[0] == "r" else {key}
                        yield from (one.id for key in keys for one in version.bodies(key, _AFTER_ALL))

    def named(self, name: str) -> Iterator[str]:
        """The ids that a name stands for: of revisits that of their body, if it is known."""
        if name[0] == "b":
            yield name[1:]
        elif name[0] == "p":
            yield from {id_ for one in self._segments for id_ in one.named(name[1:])}

    def bodies(self, key: str, date: str) -> Iterator[_Body]:
        """The bodies that a URL had before a time, the last first."""
        found = ([(*row, one) for row in one.before(key, date)] for one in self._segments)
        for time, name, crawl, held in heapq.merge(*found, key=lambda row: row[0], reverse=True):
            for id_ in sorted(self.named(name)):
                yield _Body(time, id_, name, crawl, held)

    def _entry(self, id_: str, own: Sequence[EntryPart]) -> Entry:
        revisits = [f"p{digest}" for digest in dict.fromkeys(chain.from_iterable(part.payloads for part in own))]
        keys = list(dict.fromkeys(urlkey(url) for part in own for url in part.listed_urls))[: parts.MOST]
        revisits += (name for key in keys for name in self._without_digest(id_, key))
        more = [part for name in revisits for one in self._segments for part in one.parts(name)]
        return self._with_version(parts.merged(id_, [*own, *more]))

    def _without_digest(self, id_: str, key: str) -> Iterator[str]:
        """The revisits without a payload digest that are of a body: the URL had it at that time."""
        for name in dict.fromkeys(name for one in self._segments for name in one.names(f"r{key} ", f"r{key}!")):
            before = self.bodies(key, f"{name.split(' ')[1]}~")  # at this time, too
            if next((body.id for body in before), "") == id_:
                yield name

    def _with_version(self, entry: Entry) -> Entry:
        """The entry, with the body that was at one of its URLs last before it was first seen."""
        has_page = "landing_page_url" in entry.fields
        last, earlier, taken = ("", ""), "", None
        for key in dict.fromkeys(map(urlkey, entry.urls)):
            for body in self.bodies(key, entry.first_seen):
                last = max(last, (body.date, body.id))
                part = None if has_page else body.segment.part_with_page(body.name, body.crawl)
                if part and body.date > earlier:
                    earlier, taken = body.date, part
                if has_page or part:
                    break
        return parts.with_version(entry, last[1], taken) if last[1] else entry


_AFTER_ALL = "~"
