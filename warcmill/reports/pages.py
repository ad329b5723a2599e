"""The list of what a launch asked for: each URL once, with its answer, its title, and what changed since the launch
before. Writes to the index root.

    index root   pages/{job}/{launch}.sqlite

It is made from the stored crawl logs, also those of the launches that this one continues, and from the extracts of
text, which have the titles; a revisit has the title that the list of the launch before has, if there is one. It can be
made again at will. The last line of a URL counts. A URL is got or not got: each
is one row, so that the sums add up. Rows are in the order of URLs, and a page of the list begins after a row's number.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from hashlib import sha256, sha512
from heapq import nsmallest
from itertools import groupby
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from msgspec import Struct

from warcmill import layout
from warcmill.base import clock
from warcmill.base.line_sort import SortedLines
from warcmill.errors import BadInput, NotReady, Unavailable
from warcmill.extracts import text
from warcmill.extracts.extracts import Extracts
from warcmill.formats.logs.crawllog import END, CrawlRecord, blocks, host, is_got, parse
from warcmill.launches import crawl_parts, holdings, stored_logs
from warcmill.launches.view import Part
from warcmill.markers.claim import Evidence
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, Launch
from warcmill.reports import comparison
from warcmill.reports.comparison import NOT_VISITED
from warcmill.reports.seed_fates import REDIRECTS, reason
from warcmill.stores import LocalStore, Store, temporary_names
from warcmill.versions.text import part

FOLDER = "pages"
CHANGES = ("new", "changed", "gone", NOT_VISITED)
MOST = 1_000  # rows of an answer
REDIRECTED = "it redirects"
PAGE_TYPES = frozenset({
    "text/html", "application/xhtml+xml", "application/pdf", "application/epub+zip", "application/msword",
    "application/rtf", "text/plain",
})  # fmt: skip
_IS_HTML = "type IN ('text/html', 'application/xhtml+xml')"
_OFFICE = ("application/vnd.openxmlformats", "application/vnd.oasis.opendocument", "application/vnd.ms-")
_SCHEMA = """
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
    CREATE TABLE title (warc TEXT, offset INTEGER, title TEXT, PRIMARY KEY (warc, offset)) WITHOUT ROWID;
    CREATE TABLE page (
        id INTEGER PRIMARY KEY, url TEXT, host TEXT, status INTEGER, is_got INTEGER, is_page INTEGER, why TEXT,
        type TEXT, size INTEGER, time TEXT, title TEXT, via TEXT, hops TEXT, warc TEXT, offset INTEGER
    );
    CREATE VIRTUAL TABLE words USING fts5 (url, title, content = '', tokenize = 'unicode61 remove_diacritics 2');
    CREATE TABLE change (id INTEGER PRIMARY KEY, url TEXT, host TEXT, kind TEXT, why TEXT);
    CREATE TABLE tally (host TEXT, status INTEGER, is_got INTEGER, is_page INTEGER, type TEXT, why TEXT,
        number INTEGER, bytes INTEGER);
"""
_INDEXES = """
    DROP TABLE title;
    INSERT INTO tally SELECT host, status, is_got, is_page, type, why, count(*), sum(size) FROM page
        GROUP BY host, status, is_got, is_page, type, why;
    CREATE INDEX page_kind ON page (is_got, is_page, id);
    CREATE INDEX page_host ON page (host, is_got, is_page, id);
    CREATE INDEX page_type ON page (type, is_page, id);
    CREATE INDEX page_status ON page (status, is_got, id);
    CREATE INDEX page_why ON page (why, id) WHERE is_got = 0;
    CREATE INDEX change_kind ON change (kind, id);
    INSERT INTO words (words) VALUES ('optimize');
    ANALYZE;
"""
_INSERT = "INSERT INTO page VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_COLUMNS = ("id", "url", "status", "is_got", "why", "type", "size", "time", "title", "via", "hops", "warc", "offset")
_WORD = re.compile(r"\w+")
_NOT_DIGITS = re.compile(r"[^0-9]+")


class ListFilter(Struct, frozen=True):
    """The rows that are wanted. `is_got` None: both; `only_pages`: no pictures, styles and scripts. `words`: each is in
    the URL or in the title, as the beginning of a word there."""

    is_got: bool | None = None
    only_pages: bool = False
    host: str = ""
    status: int | None = None
    type: str = ""
    why: str = ""
    words: str = ""


class ListedUrl(Struct, frozen=True):
    """A row. `time`: 14 digits; `type`: '' without one. `why`: the reason why it was not got. `warc` and `offset`: of
    its record, as the crawl log has it."""

    id: int
    url: str
    status: int | None
    is_got: bool
    why: str
    type: str
    size: int
    time: str
    title: str
    via: str
    hops: str
    warc: str | None = None
    offset: int | None = None

    def json(self) -> dict[str, Json]:
        """The row for programs."""
        names = ("url", "status", "type", "size", "time", "title", "via", "hops", "why")
        return {"got": self.is_got, **{name: getattr(self, name) for name in names}}


class ChangedUrl(Struct, frozen=True):
    """A page that is new, changed, gone, or was not visited this time."""

    id: int
    url: str
    kind: str
    why: str

    def json(self) -> dict[str, Json]:
        """The row for programs."""
        return {"change": self.kind, "url": self.url, "why": self.why}


class ListedSite(Struct, frozen=True):
    """A host with its sums. `id`: its place in the list."""

    id: int
    host: str
    pages: int
    got: int
    not_got: int

    def json(self) -> dict[str, Json]:
        """The row for programs."""
        return {name: getattr(self, name) for name in ("host", "pages", "got", "not_got")}


class ListSums(Struct, frozen=True):
    """The sums of a launch: `asked` is `got` and `not_got`. `pages` are among what was got, `sites` are the hosts that
    have some; `whys`: those that were not got, by reason, most first."""

    asked: int
    got: int
    pages: int
    not_got: int
    hosts: int
    sites: int
    whys: Mapping[str, int]
    changes: Mapping[str, int]

    def json(self) -> dict[str, Json]:
        """The sums for programs."""
        return {
            "asked": self.asked, "got": self.got, "hosts": self.hosts, "not_got": self.not_got, "pages": self.pages,
            "sites": self.sites, "why": dict(self.whys), "changes": dict(self.changes),
        }  # fmt: skip


class LaunchPages:
    """The open list of a launch. `before`: the launch that it is compared with, '' without one. `lacking`: what is not
    in it: stages that are not verified yet, WARCs without an extract of text. `is_stale`: there is more by now.
    `database`: the list itself, which takes temporary tables."""

    def __init__(self, database: sqlite3.Connection, path: str, seen: str) -> None:
        self.database, self._path = database, path
        database.create_function("sha256", 1, lambda url: sha256(url.encode("utf-8", "replace")).digest())
        about = dict(self._rows("SELECT name, value FROM about"))
        self.is_stale = about.get("seen") != seen
        self.before, self.made = about.get("before", ""), about.get("made", "")
        self.lacking: tuple[str, ...] = tuple(json.loads(about.get("lacking", "[]")))

    def sums(self) -> ListSums:
        """The sums of the whole list."""
        (row,) = self._rows(
            "SELECT total(number), total(number * is_got), total(number * is_got * is_page), count(DISTINCT host),"
            " count(DISTINCT CASE WHEN is_got * is_page THEN host END) FROM tally"
        )
        asked, got, pages, hosts, sites = map(int, row)
        whys = self._rows("SELECT why, sum(number) FROM tally WHERE NOT is_got GROUP BY why ORDER BY 2 DESC, 1")
        changes = dict(self._rows("SELECT kind, count(*) FROM change GROUP BY kind"))
        return ListSums(
            asked, got, pages, asked - got, hosts, sites, dict(whys), {kind: changes.get(kind, 0) for kind in CHANGES}
        )

    def number(self, wanted: ListFilter) -> int | None:
        """The number of rows that are wanted; None with words: only a walk would count them."""
        return None if _query(wanted.words) else self._number(wanted)

    def _number(self, wanted: ListFilter) -> int:
        """The number of rows that are wanted, whatever their words."""
        where, values = _where(wanted)
        (row,) = self._rows(f"SELECT total(number) FROM tally WHERE {where}", values)  # noqa: S608 - of our names
        return int(row[0])

    def rows(self, wanted: ListFilter, after: int = 0, limit: int = 100) -> list[ListedUrl]:
        """The next rows that are wanted, after the row of a number."""
        if not self._number(wanted):
            return []  # known without a walk over all words
        where, values = _where(wanted)
        names, most = ", ".join(f"page.{name}" for name in _COLUMNS), min(limit, MOST)
        if query := _query(wanted.words):
            first, last = self._span(wanted.host)
            columns = f"SELECT {names} FROM words CROSS JOIN page ON page.id = words.rowid"  # noqa: S608
            condition = f"words MATCH ? AND words.rowid BETWEEN ? AND ? AND {where} ORDER BY words.rowid LIMIT ?"
            found = self._rows(f"{columns} WHERE {condition}", [query, max(after + 1, first), last, *values, most])
        else:
            condition = f"page.id > ? AND {where} ORDER BY page.id LIMIT ?"
            found = self._rows(f"SELECT {names} FROM page WHERE {condition}", [after, *values, most])  # noqa: S608
        return [_row(row) for row in found]

    def _span(self, host_: str) -> tuple[int, int]:
        """The numbers between which a host has its rows."""
        if not host_:
            return 0, sys.maxsize
        (row,) = self._rows("SELECT min(id), max(id) FROM page WHERE host = ?", [host_.lower()])
        return row[0] or 0, row[1] or 0

    def sampled(self, number: int, *, seeds: bool) -> tuple[list[ListedUrl], int]:
        """Those pages of HTML that were got, or those seeds, whose URLs have the smallest SHA-256, so many at most; and
        the number of all of them. A seed that was got counts if it is HTML, too."""
        where = (
            f"({_IS_HTML} OR NOT is_got) AND hops = ''" if seeds else f"{_IS_HTML} AND is_got AND is_page AND hops > ''"
        )
        with _errors(self._path):
            every = self.database.execute(f"SELECT sha256(url), id FROM page WHERE {where}")  # noqa: S608 - of our names
            (all_,) = self.database.execute(f"SELECT count(*) FROM page WHERE {where}").fetchone()  # noqa: S608
            ids = [id_ for _, id_ in nsmallest(number, every)]
        return self._listed("id IN (SELECT value FROM json_each(?)) ORDER BY id", ids), int(all_)

    def named(self, urls: Collection[str]) -> dict[str, ListedUrl]:
        """The rows of some URLs."""
        return {row.url: row for row in self._listed("url IN (SELECT value FROM json_each(?))", [*urls])}

    def _listed(self, condition: str, values: Sequence[object]) -> list[ListedUrl]:
        query = f"SELECT {', '.join(_COLUMNS)} FROM page WHERE {condition}"  # noqa: S608 - of our names
        return [_row(row) for row in self._rows(query, [json.dumps(values)])]

    def changes(self, kind: str = "", after: int = 0, limit: int = 100) -> list[ChangedUrl]:
        """The next pages that changed, of a kind or of any, after the row of a number."""
        where, values = ("kind = ? AND", [kind]) if kind else ("", [])
        query = f"SELECT id, url, kind, why FROM change WHERE {where} id > ? ORDER BY id LIMIT ?"  # noqa: S608 - of our names
        return [ChangedUrl(*row) for row in self._rows(query, [*values, after, min(limit, MOST)])]

    def sites(self, after: int = 0, limit: int = 100) -> list[ListedSite]:
        """The next hosts, those with the most pages first, after the one at a place."""
        columns = "host, total(number * is_got * is_page), total(number * is_got), total(number * (1 - is_got))"
        query = f"SELECT {columns} FROM tally GROUP BY host ORDER BY 2 DESC, 1 LIMIT ? OFFSET ?"  # noqa: S608 - our names
        found = self._rows(query, [min(limit, MOST), after])
        return [ListedSite(place, row[0], *map(int, row[1:])) for place, row in enumerate(found, after + 1)]

    def most(self, column: str, wanted: ListFilter, limit: int = 20) -> list[tuple[str, int]]:
        """The most frequent values of `host`, `type`, `status` or `why` among what is wanted, each with its number."""
        where, values = _where(wanted)
        query = f"SELECT {column}, sum(number) FROM tally WHERE {where} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ?"  # noqa: S608 - of our names
        return [(str(value), int(number)) for value, number in self._rows(query, [*values, limit]) if value is not None]

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[tuple]:  # type: ignore[type-arg] # by the query
        with _errors(self._path):
            return self.database.execute(query, values).fetchall()


def _row(row: tuple) -> ListedUrl:  # type: ignore[type-arg] # of _COLUMNS
    return ListedUrl(row[0], row[1], row[2], bool(row[3]), *row[4:])


@contextmanager
def opened(state: MarkerStore, index: LocalStore, launch: Launch) -> Iterator[LaunchPages | None]:
    """Open the list of a launch; None if it was not made yet. BadInput for a damaged one."""
    path = path_of(launch)
    real = index.real(path)
    if not index.stat(path):
        yield None
        return
    with (
        _errors(path),
        closing(sqlite3.connect(f"file:{quote(str(real))}?mode=ro&immutable=1", uri=True)) as database,
    ):
        yield LaunchPages(database, path, _Sources(state, launch).seen)


def make(state: MarkerStore, store: Store, index: LocalStore, launch: Launch) -> None:
    """Make the list of a launch, unless it is there and nothing is new.

    NotReady if no stage of it is verified; Mismatch when a stored zip is no longer the verified one.
    """
    sources = _Sources(state, launch)
    if not sources.verified:
        raise NotReady(f"the list of pages of {launch}", f"none of its stages is verified: warcmill scan {launch.day}")
    with suppress(BadInput), opened(state, index, launch) as there:
        if there and not there.is_stale:
            return
    path = index.real(path_of(launch))
    index.sweep(f"{FOLDER}/{launch.job}")
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.parent / temporary_names.name(path.name)
    try:
        with _errors(path_of(launch)):
            with closing(sqlite3.connect(made, isolation_level=None)) as database:
                _fill(database, sources, store, Extracts(index))
            with made.open("rb") as file:
                os.fsync(file.fileno())
            made.replace(path)
    finally:
        made.unlink(missing_ok=True)


def path_of(launch: Launch) -> str:
    """The path of the list of a launch in the index root."""
    return f"{FOLDER}/{launch.job}/{launch.id}.sqlite"


class _Sources:
    """The markers that a list is made of, and a digest of them."""

    def __init__(self, state: MarkerStore, launch: Launch) -> None:
        self.state, self.launch = state, launch
        self.stages = crawl_parts.stages(state, crawl_parts.of(state, launch))
        self.verified = _verified(state, self.stages)
        is_whole = len(self.verified) == len(self.stages) and state.holds(layout.step("process", launch))
        self.before = comparison.before(state, launch) if is_whole else None
        self.earlier = _verified_of(state, self.before) if self.before else ()
        markers = [*self.verified.values(), *self.earlier]
        self.seen = sha512("\n".join(one.digest for one in markers).encode()).hexdigest()[:32]


def _verified_of(state: MarkerStore, launch: Launch) -> tuple[Evidence, ...]:
    return tuple(_verified(state, crawl_parts.stages(state, crawl_parts.of(state, launch))).values())


def _verified(state: MarkerStore, stages: Sequence[Part]) -> dict[Part, Evidence]:
    found = {one: state.read(layout.step("verify", *one)) for one in stages}
    return {one: marker for one, marker in found.items() if marker}


def _fill(database: sqlite3.Connection, sources: _Sources, store: Store, extracts: Extracts) -> None:
    database.executescript(_SCHEMA)
    database.execute("BEGIN")
    lacking = [f"{one} {stage} is not verified yet" for one, stage in sources.stages
               if (one, stage) not in sources.verified]  # fmt: skip
    without = sum(_insert_titles(database, sources.state, part_, extracts) for part_ in sources.verified)
    if without:
        lacking.append(f"the titles of WARCs without an extract of text: {without:,}")
    with sources.state.scratch() as folder:
        lacking += _insert_pages(database, sources, store, folder, _titles_before(extracts.index, sources))
        if sources.before:
            _insert_changes(database, sources, store, folder)
    about = {
        "before": sources.before.id if sources.before else "", "lacking": json.dumps(lacking),
        "made": clock.now(), "seen": sources.seen,
    }  # fmt: skip
    database.executemany("INSERT INTO about VALUES (?, ?)", about.items())
    database.execute("COMMIT")
    database.executescript(_INDEXES)


def _insert_titles(database: sqlite3.Connection, state: MarkerStore, part_: Part, extracts: Extracts) -> int:
    """Insert the titles of a stage's documents; return how many of its WARCs have no extract of text."""
    without = 0
    for one in holdings.of_stage(state, *part_).holdings:
        if not one.is_indexed:
            continue
        try:
            found = (json.loads(line) for line in text.lines(extracts, str(one.stored.sha512)))
            rows = ((one.name, line["source_file_offset"], line["title"]) for line in found if line.get("title"))
            database.executemany("INSERT OR REPLACE INTO title VALUES (?, ?, ?)", rows)
        except (NotReady, BadInput):
            without += 1
    return without


def _titles_before(index: LocalStore, sources: _Sources) -> sqlite3.Connection | None:
    """The list of the launch before, if there is one: a revisit has no title of its own."""
    path = path_of(sources.before) if sources.before else ""
    if not path or not index.stat(path):
        return None
    return sqlite3.connect(f"file:{quote(str(index.real(path)))}?mode=ro&immutable=1", uri=True)


def _insert_pages(
    database: sqlite3.Connection, sources: _Sources, store: Store, folder: Path, before: sqlite3.Connection | None
) -> list[str]:
    """Insert a row for each URL; return the logs that could not be read to their end. `before`: the list of the launch
    before, read in the same order."""
    unread: list[str] = []
    with closing(_UrlLines(folder)) as urls, closing(before) if before else nullcontext():
        earlier = _Titles(before)
        for marker in sources.verified.values():
            with stored_logs.opened(store, marker, folder) as logs:
                unread += [f"{name} could not be read to its end" for name in logs.read_crawl_logs(urls.add)]
        for url, facts in urls:
            status, type_, size, time, via, hops, annotations, warc, offset = facts
            own = database.execute("SELECT title FROM title WHERE warc = ? AND offset = ?", (warc, offset)).fetchone()
            title = own[0] if own else earlier.of(url) if is_got(status) else ""
            why = "" if is_got(status) else REDIRECTED if status in REDIRECTS else reason(status, annotations)
            row = (
                url, host(url), status, not why, _is_page(type_, hops), why, type_, size, time,
                title, via, hops, warc, offset,
            )  # fmt: skip
            at = database.execute(_INSERT, row).lastrowid
            words = (at, part(" ".join(_WORD.findall(url))), part(title))
            database.execute("INSERT INTO words (rowid, url, title) VALUES (?, ?, ?)", words)
    return unread


def _insert_changes(database: sqlite3.Connection, sources: _Sources, store: Store, folder: Path) -> None:
    kinds = comparison.kinds(store, folder, list(sources.verified.values()), list(sources.earlier))
    for url, kind, why in kinds:
        if kind in CHANGES:
            database.execute("INSERT INTO change VALUES (NULL, ?, ?, ?, ?)", (url, host(url), kind, why))


class _Titles:
    """The titles of a list, asked for in the order of URLs."""

    def __init__(self, database: sqlite3.Connection | None) -> None:
        query = "SELECT url, title FROM page WHERE title <> '' ORDER BY id"
        self._rows: Iterator[tuple[str, str]] = database.execute(query) if database else iter(())
        self._next: tuple[str, str] | None = next(self._rows, None)

    def of(self, url: str) -> str:
        """The title of a URL, which comes after that of the call before; '' without one."""
        while self._next and self._next[0].encode("utf-8", "replace") < url.encode("utf-8", "replace"):
            self._next = next(self._rows, None)
        return self._next[1] if self._next and self._next[0] == url else ""


class _UrlLines:
    """The lines of crawl logs by URL: the facts of the last line of each."""

    def __init__(self, folder: Path) -> None:
        self._lines, self._number = SortedLines(folder), 0

    def add(self, stream: BinaryIO) -> None:
        """Take a crawl log."""
        for lines in blocks(stream, END):
            for raw in lines:
                record = parse(raw)
                if isinstance(record, CrawlRecord) and not (record.hops or "").rstrip("R").endswith("P"):
                    self._add(record)

    def _add(self, record: CrawlRecord) -> None:
        self._number += 1
        type_ = (record.mime or "").partition(";")[0].strip().lower()
        facts = (
            record.status or 0, "" if type_ in ("no-type", "unknown") else type_, record.size or 0,
            _NOT_DIGITS.sub("", record.fetched or record.logged)[:14], record.via or "", record.hops or "",
            record.annotations, record.warc_filename, record.warc_offset,
        )  # fmt: skip
        url = record.uri.encode("utf-8", "replace").replace(b"\t", b"%09")
        self._lines.add(b"%b\t%016d\t%b\n" % (url, self._number, json.dumps(facts).encode()))

    def __iter__(self) -> Iterator[tuple[str, list]]:  # type: ignore[type-arg] # as _add has them
        for url, lines in groupby(self._lines, key=lambda line: line.partition(b"\t")[0]):
            last = b""
            for last in lines:  # noqa: B007 the last one counts
                pass
            yield url.decode("utf-8", "replace"), json.loads(last.split(b"\t", 2)[2])

    def close(self) -> None:
        self._lines.close()


def _is_page(type_: str, hops: str) -> bool:
    """True for what a person reads, and did not come as a part of a page."""
    return (type_ in PAGE_TYPES or type_.startswith(_OFFICE)) and not hops.rstrip("R").endswith("E")


def _where(wanted: ListFilter) -> tuple[str, list[object]]:
    """The condition, and its values."""
    given: dict[str, object] = {"host": wanted.host.lower(), "type": wanted.type.lower(), "why": wanted.why}
    found = {name: value for name, value in given.items() if value}
    if wanted.is_got is not None:
        found["is_got"] = int(wanted.is_got)
    if wanted.only_pages:
        found["is_page"] = 1
    if wanted.status is not None:
        found["status"] = wanted.status
    return " AND ".join(f"{name} = ?" for name in found) or "1", list(found.values())


def _query(words: str) -> str:
    """The query of the full text; '' without a word."""
    return " ".join(f'"{word}"*' for word in _WORD.findall(part(words)))


@contextmanager
def _errors(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN")):
            raise Unavailable(f"index:{path}", f"{error}; make room on the disk of the index root") from error
        why = f"the list of pages is damaged: {error}; remove it, and 'warcmill pages' makes it again"
        raise BadInput(f"index:{path}", why) from error
