"""Find documents by their words in the current version of the text index, without what is hidden now."""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from warcmill.errors import NotReady
from warcmill.formats.urlkey import urlkey
from warcmill.stores import LocalStore
from warcmill.versions import hidden, text
from warcmill.versions.payloads import Payloads
from warcmill.versions.segments import Segment
from warcmill.versions.text_segments import SQLITE, opened

MOST = 20  # documents that are shown
MARKS = ("[", "]")  # around the words that were asked for
_WORDS_OF_LINE = 24
_WHERE = "FROM words JOIN page ON page.id = words.rowid WHERE words MATCH ? AND page.time BETWEEN ? AND ?"
_SHOWS = " AND shows(page.key)"
_COUNT = f"SELECT count(*) {_WHERE}"
_MATCHES = f"SELECT bm25(words, 5.0, 1.0), page.url, page.time, page.id {_WHERE}"
_BEST = " ORDER BY 1, 2, 3 LIMIT ?"
_SHOWN = f"""
    SELECT words.title, snippet(words, 1, ?, ?, '…', {_WORDS_OF_LINE}), page.type, page.offset, warc.name FROM words
    JOIN page ON page.id = words.rowid JOIN warc ON warc.id = page.warc WHERE words MATCH ? AND words.rowid = ?
"""  # noqa: S608 - of constants


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked: words that a document has, each a phrase; of a host and its subdomains; captured between times."""

    words: Sequence[str]
    site: str = ""
    first: str = ""
    last: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """A document: its record, and a line of its text."""

    url: str
    time: str
    title: str
    line: str
    type: str
    warc: str
    offset: int


@dataclass(frozen=True, slots=True)
class Answer:
    """How many captures have the words, in which version; the best of them."""

    version: int
    captures: int
    best: tuple[Found, ...]


@dataclass(frozen=True, order=True, slots=True)
class _Match:
    rank: float
    url: str
    time: str
    segment: int
    page: int


def search(
    state: LocalStore, index: LocalStore, query: Query, *, skipped: int = 0, marks: tuple[str, str] = MARKS
) -> Answer:
    """Find the best documents, after those that are skipped. NotReady if no version is published."""
    published = Payloads(index, text.NAME).current()
    if published is None:
        raise NotReady("the current version of text", "index.ScanForIndexing publishes it, where [text] is on")
    shows, captures, best = _shows(query, hidden.read(state).prefixes()), 0, list[_Match]()
    for number, segment in enumerate(published.segments):
        count, matches = _matches(index, number, segment, query, shows, skipped + MOST)
        captures += count
        best = heapq.nsmallest(skipped + MOST, [*best, *matches])
    shown = (_found(index, published.segments, one, query, marks) for one in best[skipped:])
    return Answer(published.number, captures, tuple(shown))


def _shows(query: Query, prefixes: Mapping[bytes, str]) -> Callable[[str], bool] | None:
    """Which keys are shown: of the site, and not hidden. None if all are, which a search of many learns sooner."""
    site = _site(query.site)

    def shows(key: str) -> bool:
        line = key.encode()
        return line.startswith(site) and next(hidden.visible([line], prefixes, set()), None) is not None

    return shows if query.site or prefixes else None


def _matches(
    index: LocalStore, number: int, segment: Segment, query: Query, shows: Callable[[str], bool] | None, most: int
) -> tuple[int, list[_Match]]:
    """How many documents of a segment match, and the best of them."""
    values = (_expression(query), query.first.ljust(14, "0"), query.last.ljust(14, "9"))
    with opened(index, segment.files[SQLITE].path) as database:
        if shows:
            database.create_function("shows", 1, shows, deterministic=True)
        only = _SHOWS if shows else ""
        count = int(database.execute(_COUNT + only, values).fetchone()[0])
        rows = database.execute(_MATCHES + only + _BEST, (*values, most))
        return count, [_Match(rank, url, time, number, page) for rank, url, time, page in rows]


def _expression(query: Query) -> str:
    """The words in the syntax of FTS5: strings, which must all be there; each has no operators in it."""
    return " AND ".join('"{}"'.format(word.replace('"', '""')) for word in query.words)


def _site(host: str) -> tuple[bytes, ...]:
    """What the keys of a host and its subdomains begin with."""
    return hidden.prefixes_of(urlkey(f"http://{host}/").partition(")")[0]) if host else (b"",)


def _found(
    index: LocalStore, segments: Sequence[Segment], match: _Match, query: Query, marks: tuple[str, str]
) -> Found:
    with opened(index, segments[match.segment].files[SQLITE].path) as database:
        row = _row(database, match, query, marks)
    title, line, type_, offset, warc = row
    return Found(match.url, match.time, title, " ".join(line.split()), type_, warc, offset)


def _row(
    database: sqlite3.Connection, match: _Match, query: Query, marks: tuple[str, str]
) -> tuple[str, str, str, int, str]:
    found: tuple[str, str, str, int, str] = database.execute(
        _SHOWN, (*marks, _expression(query), match.page)
    ).fetchone()
    return found
