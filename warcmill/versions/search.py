"""Find documents by their words in the current version of the text index, without what is hidden now.

All that match are counted. The best are chosen by bm25 among the RANKED that the index has last: SQLite takes a second
for a million of them, and a word that so many documents have does not distinguish them.
"""

from __future__ import annotations

import heapq
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import date
from functools import partial

from msgspec import Struct

from warcmill.errors import NotReady
from warcmill.formats import hosts
from warcmill.formats.index.urlkey import same_page, urlkey
from warcmill.stores import LocalStore
from warcmill.versions import hidden_list, text
from warcmill.versions import text as unspaced
from warcmill.versions.publication import Payloads, Published, hidden_now
from warcmill.versions.segments import Segment
from warcmill.versions.text import SQLITE, opened

MOST = 20  # documents that are shown
RANKED = 10_000
MARKS = ("[", "]")  # around the words that were asked for
TYPES = {
    "html": ("text/html", "application/xhtml+xml"),
    "pdf": ("application/pdf", "application/x-pdf"),
    "text": ("text/plain",),
}
OTHER = "other"  # what no other word has: office documents, and what was served without a type
TYPE_WORDS = (*TYPES, OTHER)
_WORDS_OF_LINE = 24
_WHERE = "FROM words JOIN page ON page.id = words.rowid WHERE words MATCH :words"
_COUNT_ALL = "SELECT count(*) FROM words WHERE words MATCH :words"  # a quarter of the time: no page is looked up
_MATCHES = f"SELECT bm25(words, 5.0, 1.0), page.url, page.time, page.id {_WHERE}"
_LAST = " ORDER BY words.rowid DESC LIMIT :ranked"
_DAY = re.compile(r"[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?")
_BEST = " ORDER BY 1, 2, 3 LIMIT :most"
_TIMES = " AND page.time BETWEEN :first AND :last"
_HIDDEN = """ AND page.key >= coalesce(
    (SELECT after FROM hidden WHERE first <= page.key ORDER BY first DESC LIMIT 1), '')"""
_OF_PAGES = " OR ".join(f"page.key GLOB '{word.decode()}*'" for word in hidden_list.OF_PAGES)  # few: each costs a call
_HIDDEN_PAGES = f" AND NOT (({_OF_PAGES}) AND of_hidden_page(page.key))"
_TITLES = """
    SELECT words.title, page.url FROM page JOIN words ON words.rowid = page.id
    WHERE page.key >= ? AND page.key < ? ORDER BY page.key DESC
"""
_SHOWN = f"""
    SELECT words.title, snippet(words, 1, ?, ?, '…', {_WORDS_OF_LINE}), page.type, page.offset, warc.name FROM words
    JOIN page ON page.id = words.rowid JOIN warc ON warc.id = page.warc WHERE words MATCH ? AND words.rowid = ?
"""  # noqa: S608 - of constants


class Query(Struct, frozen=True):
    """A question: words that a document has, each a phrase; of a host and its subdomains; captured between times.

    `type`: one of TYPE_WORDS, by the media type that was served; '' for each.
    """

    words: Sequence[str]
    site: str = ""
    first: str = ""
    last: str = ""
    type: str = ""


class FoundDocument(Struct, frozen=True):
    """A document: its record, and a line of its text."""

    url: str
    time: str
    title: str
    line: str
    type: str
    warc: str
    offset: int


class SearchAnswer(Struct, frozen=True):
    """The number of captures that have the words, in which version; the best of them, or of the RANKED last."""

    version: int
    captures: int
    best: tuple[FoundDocument, ...]

    @property
    def ranked(self) -> int:
        """Among how many captures the best were chosen."""
        return min(self.captures, RANKED)


class _Match(Struct, frozen=True, order=True):
    rank: float
    url: str
    time: str
    segment: int
    page: int


def is_day(text: str) -> bool:
    """True if a text is a year, a month or a day that exists: `2016`, `2016-10`, `2016-10-19`."""
    try:
        return bool(_DAY.fullmatch(text) and date.fromisoformat(f"{text}-01-01"[:10]))
    except ValueError:
        return False


def type_word(media_type: str) -> str:
    """The word of a media type: `pdf`."""
    return next((word for word, types in TYPES.items() if media_type in types), OTHER)


def search(
    state: LocalStore, index: LocalStore, query: Query, *, skipped: int = 0, marks: tuple[str, str] = MARKS
) -> SearchAnswer:
    """Find the best documents, after those that are skipped. NotReady if no version is published."""
    published = Payloads(index, text.NAME).current()
    if published is None:
        raise NotReady("the current version of text", "'warcmill scan' publishes it, where [text] is on")
    only = _Only.of(query, tuple(hidden_now(state, index, text.NAME).prefixes()))
    matches, captures, left = list[_Match](), 0, RANKED
    for number, segment in reversed(list(enumerate(published.segments))):  # the last has what is newest
        with _searched(index, segment, only) as database:
            count = only.count(database)
            matches += only.best(database, number, left, skipped + MOST)
        captures, left = captures + count, max(0, left - count)
    best = heapq.nsmallest(skipped + MOST, matches)[skipped:]
    with ExitStack() as stack:
        paths = {one.segment: published.segments[one.segment].files[SQLITE].path for one in best}
        databases = {number: stack.enter_context(opened(index, path)) for number, path in paths.items()}
        shown = tuple(_found(databases[one.segment], one, query, marks) for one in best)
    return SearchAnswer(published.number, captures, shown)


def hidden_documents(index: LocalStore, published: Published, prefixes: tuple[bytes, ...]) -> int:
    """The number of documents of a version that prefixes hide: they stay in its segments, and no search shows them."""
    return sum(_hidden_in(index, segment, prefixes) for segment in published.segments) if prefixes else 0


def _hidden_in(index: LocalStore, segment: Segment, prefixes: tuple[bytes, ...]) -> int:
    with _searched(index, segment, _Only("", {}, prefixes)) as database:
        shown = database.execute(f"SELECT count(*) FROM page WHERE true{_HIDDEN}{_HIDDEN_PAGES}").fetchone()[0]  # noqa: S608
        return segment.lines - int(shown)


def title_of(index: LocalStore, url: str) -> str:
    """The title of the newest document of a URL; '' without one. A page that has not changed since keeps it.

    Its key may have documents of other URLs.
    """
    published, key, page = Payloads(index, text.NAME).current(), urlkey(hosts.in_url(url)), same_page(url)
    for segment in reversed(published.segments if published else ()):
        with opened(index, segment.files[SQLITE].path) as database:
            rows = database.execute(_TITLES, (f"{key} ", f"{key} 9"))
            title = next((title for title, found in rows if same_page(found) == page), None)
        if title is not None:
            return unspaced.join(title)
    return ""


class _Only(Struct, frozen=True):
    """Which documents are asked for, in SQL. `prefixes`: what the keys begin with that are hidden."""

    where: str
    values: dict[str, str]
    prefixes: tuple[bytes, ...]

    @property
    def spans(self) -> tuple[tuple[str, str], ...]:
        """The keys that are hidden, from the first to the one after."""
        return tuple(map(_span, self.prefixes))

    @classmethod
    def of(cls, query: Query, prefixes: tuple[bytes, ...]) -> _Only:
        """The documents that a query asks for, without the keys with these prefixes."""
        values = {"words": _expression(query), "first": query.first.ljust(14, "0"), "last": query.last.ljust(14, "9")}
        sites = [_span(prefix) for prefix in _site(query.site)]
        for number, (first, after) in enumerate(sites):
            values |= {f"site{number}": first, f"after{number}": after}
        asked = " OR ".join(f"page.key >= :site{one} AND page.key < :after{one}" for one in range(len(sites)))
        times, hides = _TIMES if query.first or query.last else "", _HIDDEN + _HIDDEN_PAGES if prefixes else ""
        only = times + (f" AND ({asked})" if asked else "") + _of_type(query.type) + hides
        return cls(only, values, prefixes)

    def count(self, database: sqlite3.Connection) -> int:
        """The number of documents of a segment that match."""
        counting = f"SELECT count(*) {_WHERE}{self.where}" if self.where else _COUNT_ALL
        return int(database.execute(counting, self.values).fetchone()[0])

    def best(self, database: sqlite3.Connection, number: int, ranked: int, most: int) -> Iterator[_Match]:
        """The best of the last documents of a segment that match."""
        query = f"SELECT * FROM ({_MATCHES}{self.where}{_LAST}){_BEST}"  # noqa: S608
        rows = database.execute(query, {**self.values, "ranked": ranked, "most": most})
        return (_Match(rank, url, time, number, page) for rank, url, time, page in rows)


@contextmanager
def _searched(index: LocalStore, segment: Segment, only: _Only) -> Iterator[sqlite3.Connection]:
    """A segment, beside a table of hidden documents."""
    with opened(index, segment.files[SQLITE].path) as database:
        database.execute("CREATE TEMP TABLE hidden (first TEXT PRIMARY KEY, after TEXT NOT NULL) WITHOUT ROWID")
        database.executemany("INSERT INTO hidden VALUES (?, ?)", only.spans)
        is_hidden = partial(hidden_list.is_hidden, prefixes=only.prefixes)
        database.create_function("of_hidden_page", 1, lambda key: is_hidden(key.encode()), deterministic=True)
        yield database


def _span(prefix: bytes) -> tuple[str, str]:
    """The first key that begins with a prefix, which is ASCII, and the first after all of them."""
    text = prefix.decode("ascii")
    return text, text[:-1] + chr(ord(text[-1]) + 1)


def _expression(query: Query) -> str:
    """The words in the syntax of FTS5: strings, which must all be there; each has no operators in it."""
    return " AND ".join('"{}"'.format(unspaced.part(word).replace('"', '""')) for word in query.words)


def _of_type(word: str) -> str:
    """The condition that a page is of a type, in SQL: of constants alone."""
    if not word:
        return ""
    types = TYPES.get(word) or [type_ for known in TYPES.values() for type_ in known]
    listed = ", ".join(f"'{type_}'" for type_ in types)
    return f" AND page.type {'' if word in TYPES else 'NOT '}IN ({listed})"


def _site(host: str) -> tuple[bytes, ...]:
    """The beginning of the keys of a host and its subdomains."""
    return hidden_list.prefixes_of(urlkey(hosts.in_url(f"http://{host}/")).partition(")")[0]) if host else ()


def _found(database: sqlite3.Connection, match: _Match, query: Query, marks: tuple[str, str]) -> FoundDocument:
    title, line, type_, offset, warc = _row(database, match, query, marks)
    shown = " ".join(unspaced.join(line).split())
    return FoundDocument(match.url, match.time, unspaced.join(title), shown, type_, warc, offset)


def _row(
    database: sqlite3.Connection, match: _Match, query: Query, marks: tuple[str, str]
) -> tuple[str, str, str, int, str]:
    found: tuple[str, str, str, int, str] = database.execute(
        _SHOWN, (*marks, _expression(query), match.page)
    ).fetchone()
    return found
