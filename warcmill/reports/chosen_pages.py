"""The pages of a launch that a person chose, with the parts that they need to replay. Reads the list of the launch, and
the records of chosen pages in the store.

A part is what the crawl log has as led to by a page, or by a part of it, with a last hop of E, I, X or R: embedded,
implied, guessed in a script, redirected. The log has each URL once, though, with the first page that led there, and a
style sheet is a part of many pages: so the links of chosen pages and of their style sheets are read again, of a revisit
those of its original. Parts are URLs of the list. Memory is flat: what is chosen is in tables of SQLite, beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

from warcmill.crawl import extract
from warcmill.crawl.books.files import recall_from
from warcmill.crawl.fetch import exchange
from warcmill.crawl.fetch.limits import FetchLimits
from warcmill.errors import BadInput, NotReady
from warcmill.extracts.revisits import is_revisit
from warcmill.formats.index.urlkey import urlkey
from warcmill.reports.pages import MOST, REDIRECTED, LaunchPages, ListedUrl, ListFilter
from warcmill.stores import Store
from warcmill.versions import hidden_list
from warcmill.versions.index_inputs import WARCS
from warcmill.versions.publication import CdxLookup

NAMED = 20  # of what is lacking
READ = 10_000  # captures of a URL among which an original is looked for
_BESIDE = re.compile(r"\Aurn:[\w-]+:(?=https?://)")  # what is kept beside a page: its DOM, its picture, its words
_READ = ("headers", "html", "css")  # extractors
_PARTS = ("E", "I", "X")  # hops of links
_SCHEMA = """
    CREATE TEMP TABLE asked (url TEXT PRIMARY KEY) WITHOUT ROWID;
    CREATE TEMP TABLE linked (url TEXT PRIMARY KEY) WITHOUT ROWID;
    CREATE TEMP TABLE chosen (id INTEGER PRIMARY KEY, key TEXT, is_page INTEGER, is_hidden INTEGER, round INTEGER,
        is_met INTEGER DEFAULT 0);
    CREATE TEMP TABLE held (warc TEXT PRIMARY KEY) WITHOUT ROWID;
    CREATE INDEX temp.chosen_key ON chosen (key);
    CREATE INDEX temp.chosen_round ON chosen (round);
"""
_ADD = "INSERT OR IGNORE INTO chosen SELECT id, surt(url), ?, hides(url, time), ?, 0 FROM page WHERE "
_ADD_ROW = f"{_ADD} id = ?"
_ADD_ASKED = f"{_ADD} url IN (SELECT url FROM asked)"  # noqa: S608 - of our names
_ADD_LINKED = f"{_ADD} url IN (SELECT url FROM linked)"  # noqa: S608
_ADD_LED_TO = f"""{_ADD} substr(hops, -1) IN ('E', 'I', 'X', 'R') AND via IN
    (SELECT url FROM chosen JOIN page USING (id) WHERE round = ? AND NOT is_hidden)"""  # noqa: S608
_HELD = """INSERT OR IGNORE INTO held SELECT coalesce(replace(warc, '.open', ''), '') FROM chosen JOIN page USING (id)
    WHERE is_got OR warc IS NOT NULL"""
_TO_READ = """SELECT url, status, warc, offset FROM chosen JOIN page USING (id) WHERE round = ? AND NOT is_hidden
    AND is_got AND type IN ('text/html', 'application/xhtml+xml', 'text/css') ORDER BY warc, offset"""
_LOST = """SELECT url, CASE WHEN is_hidden THEN 'it is hidden' WHEN why <> '' THEN why
    ELSE 'no record of it is in a WARC that is taken' END FROM chosen JOIN page USING (id)
    WHERE chosen.is_page AND NOT (is_met AND (is_got OR why = ?))
    UNION ALL SELECT url, 'the launch did not ask for it' FROM asked WHERE url NOT IN (SELECT url FROM page)"""
_PARTS_LOST = """SELECT url, why FROM chosen JOIN page USING (id)
    WHERE NOT (chosen.is_page OR is_hidden OR is_got) AND why <> ?
    UNION ALL SELECT url, 'the crawl did not ask for it' FROM linked WHERE url NOT IN (SELECT url FROM page)"""


class ChosenPages:
    """The choice among the pages of an open list: first `add_rows`, `add_urls` or `add_below`, then `find_parts`.

    `prefixes`: the beginnings of hidden lines; `lookup`: the published CDX, which has the originals of revisits.
    `unread`: pages whose links could not be read again.
    """

    def __init__(self, listed: LaunchPages, prefixes: Iterable[bytes], lookup: CdxLookup | None) -> None:
        self._listed, self._database, self._lookup, self._round = listed, listed.database, lookup, 0
        known = tuple(prefixes)
        self._database.create_function("surt", 1, urlkey)
        self._database.create_function("hides", 2, lambda url, time: _is_hidden(url, time, known))
        self._database.executescript(_SCHEMA)
        self.unread = 0

    def add_rows(self, wanted: ListFilter) -> None:
        """Choose all that a filter shows."""
        for rows in self._batches(wanted):
            self._add_ids(one.id for one in rows)

    def add_below(self, entry: str) -> None:
        """Choose the pages below a SURT, or that of a URL. BadInput for another text."""
        prefixes = hidden_list.prefixes_of(hidden_list.entry_of(entry))
        for rows in self._batches(ListFilter(is_got=True, only_pages=True)):
            self._add_ids(one.id for one in rows if f"{urlkey(one.url)} {one.time}".encode().startswith(prefixes))

    def add_urls(self, lines: Iterable[str]) -> None:
        """Choose the URLs of a list, one a line."""
        urls = ((line.strip(),) for line in lines if line.strip())
        self._database.executemany("INSERT OR IGNORE INTO asked VALUES (?)", urls)
        self._database.execute(_ADD_ASKED, [1, 0])

    def __bool__(self) -> bool:
        """True if anything of the list is chosen."""
        return self._number("chosen") > 0

    def _batches(self, wanted: ListFilter) -> Iterator[Sequence[ListedUrl]]:
        after = 0
        while rows := self._listed.rows(wanted, after, MOST):
            yield rows
            after = rows[-1].id

    def _add_ids(self, ids: Iterable[int]) -> None:
        self._database.executemany(_ADD_ROW, ((1, 0, one) for one in ids))

    def find_parts(self, store: Store, paths: Mapping[str, str], scratch: Path) -> None:
        """Find the parts of what is chosen. `paths`: of WARCs in the store, by name."""
        while self._number(f"chosen WHERE round = {self._round}"):
            self._read_links(store, paths, scratch)
            self._round += 1
            self._database.execute(_ADD_LED_TO, [0, self._round, self._round - 1])
            self._database.execute(_ADD_LINKED, [0, self._round])
        self._database.execute(_HELD, [])

    def _read_links(self, store: Store, paths: Mapping[str, str], scratch: Path) -> None:
        for url, status, warc, offset in self._database.execute(_TO_READ, [self._round]):
            path, found = paths.get((warc or "").removesuffix(".open")), None
            if path and offset is not None:
                found = _links(store, path, offset, url, status, scratch)
            if path and found is None and (original := _original(self._lookup, url, path, offset)):
                found = _links(store, *original, url, status, scratch)
            if found is None:
                self.unread += 1
            else:
                self._database.executemany("INSERT OR IGNORE INTO linked VALUES (?)", ((one,) for one in found))

    def has(self, url: str) -> bool:
        """True for a page that was chosen, for a part of one, and for what is kept beside it."""
        key = urlkey(_BESIDE.sub("", url))
        return self._database.execute("SELECT 1 FROM chosen WHERE key = ?", [key]).fetchone() is not None

    def may_be_in(self, warc: str) -> bool:
        """False for a WARC that has no record of what is chosen, by the crawl log."""
        names = [warc.removesuffix(".open"), ""]  # without the crawl log's word any WARC may have it
        return self._database.execute("SELECT 1 FROM held WHERE warc IN (?, ?)", names).fetchone() is not None

    def meet(self, key: str) -> bool:
        """True for the key of a chosen page, of which a capture was met."""
        return self._database.execute("UPDATE chosen SET is_met = 1 WHERE key = ? AND is_page", [key]).rowcount > 0

    def lost(self) -> tuple[int, list[tuple[str, str]]]:
        """The chosen pages of which no capture was met: how many, and the first ones, each with the reason."""
        return self._some(_LOST, [REDIRECTED])

    def lost_parts(self) -> tuple[int, list[tuple[str, str]]]:
        """The parts that were not got."""
        return self._some(_PARTS_LOST, [REDIRECTED])

    def _some(self, query: str, values: Sequence[object] = ()) -> tuple[int, list[tuple[str, str]]]:
        number = self._number(f"({query})", values)
        return number, self._database.execute(f"{query} ORDER BY 1 LIMIT {NAMED}", values).fetchall()

    def _number(self, rows: str, values: Sequence[object] = ()) -> int:
        return int(self._database.execute(f"SELECT count(*) FROM {rows}", values).fetchone()[0])  # noqa: S608 - of our names


def _is_hidden(url: str, time: str, prefixes: tuple[bytes, ...]) -> bool:
    return bool(prefixes) and hidden_list.is_hidden(f"{urlkey(url)} {time}".encode(), prefixes)


def _original(lookup: CdxLookup | None, url: str, path: str, offset: int | None) -> tuple[str, int] | None:
    """Where the payload of a revisit is: the path of the WARC, and the offset there."""
    every = islice(lookup.captures(urlkey(url)), READ) if lookup else ()
    known = [(json.loads(line.split(b" ", 2)[2]), is_revisit(line)) for line in every]
    place = path.removeprefix(WARCS), str(offset)
    digest = next((one.get("digest") for one, _ in known if (one["filename"], one["offset"]) == place), None)
    same = (one for one, is_empty in known if not is_empty and digest and one.get("digest") == digest)
    return next(((WARCS + one["filename"], int(one["offset"])) for one in same), None)


def _links(store: Store, path: str, offset: int, url: str, status: int, scratch: Path) -> list[str] | None:
    """The parts that an answer names; None for a record of another kind, as a revisit, or a damaged one."""
    try:
        with closing(store.open(path, offset)) as stream:
            answer = recall_from(url, stream, f"store:{path}", offset, scratch)
            with closing(answer):
                data, _ = exchange.document(answer, FetchLimits())
                links = extract.find(data, url, status, answer.fields, _READ)
    except (BadInput, NotReady):
        return None
    return [link.uri for link in links if link.hop in _PARTS and link.is_uri]
