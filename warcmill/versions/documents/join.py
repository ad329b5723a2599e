"""The documents of one crawl, joined with the pages that link to them. Writes to a file that it removes.

A crawl is a launch, with those that it continues. Its extracts are read twice: first the documents and revisits, then
the pages. Of a page only the links to documents are kept; nearly all links lead elsewhere, and a filter of fixed size
drops them. So memory is flat, and time grows with the links.

A subject is what a crawl has at some URLs, by its name in a segment:

    b{SHA-256}            a body
    p{payload digest}     revisits whose body is in another crawl
    r{key} {time}         a revisit without a payload digest: of what the URL with this key had at that time
"""

from __future__ import annotations

import heapq
import sqlite3
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import lru_cache
from itertools import chain
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import astuple, replace

from warcmill.formats.harvested import DocumentFacts, HarvestedRecord, NamedDocument, PageFacts
from warcmill.formats.index.urlkey import urlkey
from warcmill.stores import temporary_names
from warcmill.versions.documents import candidates, texts
from warcmill.versions.documents.candidates import PAGES, CrawledDocument, LinkingPage, TitleText
from warcmill.versions.documents.entries import DocumentCapture
from warcmill.versions.documents.parts import MOST, EntryPart

BODIES = 100  # of one URL in a crawl, to which a link leads
_SLOTS = 1 << 22  # of the counts of links
_BITS = 1 << 27  # of the filter: 16 MiB
_NAMING = frozenset(("citation", "jsonld"))
_SCHEMA = """
    PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -32000; PRAGMA locking_mode = EXCLUSIVE;
    CREATE TABLE warc (no INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE subject (no INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, facts BLOB, work INTEGER);
    CREATE TABLE payload (digest TEXT PRIMARY KEY, subject INTEGER) WITHOUT ROWID;
    CREATE TABLE named (subject INTEGER, digest TEXT, PRIMARY KEY (subject, digest)) WITHOUT ROWID;
    CREATE TABLE held (key TEXT, date TEXT, subject INTEGER, url TEXT, warc INTEGER, offset INTEGER, revisit INTEGER);
    CREATE TABLE revisit (payload TEXT, key TEXT, of TEXT, at TEXT, date TEXT, url TEXT, warc INTEGER, offset INTEGER);
    CREATE TABLE up (key TEXT, subject INTEGER);
    CREATE TABLE page (no INTEGER PRIMARY KEY, url TEXT, date TEXT, host TEXT, documents INTEGER, facts BLOB);
    CREATE TABLE link (subject INTEGER, page INTEGER, text TEXT, heading TEXT, names INTEGER, named BLOB);
    CREATE TABLE used (text INTEGER, work INTEGER);
"""
_RESOLVE = """
    INSERT INTO held SELECT revisit.key, date, payload.subject, url, warc, offset, 1
    FROM revisit JOIN payload ON payload.digest = revisit.payload;
    DELETE FROM revisit WHERE payload IN (SELECT digest FROM payload);
    CREATE INDEX held_by_key ON held (key, date);
    INSERT OR IGNORE INTO subject (name) SELECT 'p' || payload FROM revisit WHERE payload != '' ORDER BY rowid;
    INSERT INTO held SELECT key, date, subject.no, url, warc, offset, 1
    FROM revisit JOIN subject ON subject.name = 'p' || payload WHERE payload != '';
    DELETE FROM revisit WHERE payload != '';
"""
# What stands at the foot of half of the pages of a host is not a document of a page that has others.
_WITHOUT_EVERYWHERE = """
    CREATE TABLE host AS SELECT host, count(*) AS pages FROM page GROUP BY host;
    CREATE UNIQUE INDEX host_by_name ON host (host);
    CREATE TABLE everywhere AS
    SELECT link.subject, page.host FROM link JOIN page ON page.no = link.page GROUP BY link.subject, page.host
    HAVING count(*) >= 20
    AND count(DISTINCT page.no) * 2 >= (SELECT pages FROM host WHERE host.host = page.host);
    CREATE TABLE less AS SELECT page.no, count(DISTINCT subject.work) AS number FROM everywhere
    JOIN link ON link.subject = everywhere.subject JOIN page ON page.no = link.page AND page.host = everywhere.host
    JOIN subject ON subject.no = link.subject GROUP BY page.no;
    CREATE UNIQUE INDEX less_by_page ON less (no);
    UPDATE page SET documents = documents - (SELECT number FROM less WHERE less.no = page.no)
    WHERE documents > (SELECT number FROM less WHERE less.no = page.no);
"""
_BEFORE = "SELECT subject FROM held WHERE key = ? AND date <= ? AND NOT revisit ORDER BY date DESC LIMIT 1"
_AT = f"SELECT DISTINCT subject FROM held WHERE key = ? ORDER BY date DESC LIMIT {BODIES}"  # noqa: S608 - a constant
_PAGES = """
    SELECT page.no, page.url, page.documents, max(page.date || link.names)
    FROM link JOIN page ON page.no = link.page WHERE link.subject = ? GROUP BY page.url
"""  # of each URL the newest capture that has the link: SQLite takes the other columns from the row with the greatest
_encode, _facts_of, _page_of = msgspec.json.encode, msgspec.json.Decoder(DocumentFacts), msgspec.json.Decoder(PageFacts)
_named_of = msgspec.json.Decoder(NamedDocument)
Key = lru_cache(maxsize=1 << 16)(urlkey)
Read = Callable[[], Iterable[tuple[str, Iterable[HarvestedRecord]]]]


class JoinedPart(Struct, frozen=True):
    """A subject of a crawl, by its name: its part in an entry; the key and the time of each capture; and the keys and
    times of the pages that its candidates come from."""

    name: str
    part: EntryPart
    at: Iterator[tuple[str, str]]
    pages: tuple[tuple[str, str], ...]


def join(folder: Path, read: Read) -> Iterator[JoinedPart]:
    """The subjects of a crawl. `read` gives the names of its WARCs, each with the records that are shown; it is called
    twice. Each part is used before the next is asked for."""
    path = folder / temporary_names.name("documents.sqlite")
    path.open("xb").close()
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.executescript(_SCHEMA)
            database.execute("BEGIN")
            crawl = _Crawl(database)
            crawl.take_documents(read())
            if crawl.is_empty:
                return
            crawl.take_pages(read())
            yield from crawl.joined()
    finally:
        path.unlink(missing_ok=True)


class _Crawl:
    """A crawl as far as it is known, in a database; and the filter: a bit for the hash of each document's key."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._do = database.execute
        self._run = database.executescript
        self._filter = bytearray(_BITS >> 3)
        self._linked = array("I", bytes(4 * _SLOTS))

    @property
    def is_empty(self) -> bool:
        """True if it has no document, and no revisit of one."""
        return self._do("SELECT 1 FROM held LIMIT 1").fetchone() is None

    def take_documents(self, sources: Iterable[tuple[str, Iterable[HarvestedRecord]]]) -> None:
        """Read the documents and the revisits."""
        for number, (name, records) in enumerate(sources):
            self._do("INSERT INTO warc VALUES (?, ?)", (number, name))
            for one in records:
                if one.document:
                    self._take_document(one, one.document, number)
                elif one.revisit:
                    facts, key = one.revisit, Key(one.url)
                    row = (facts.payload, key, Key(facts.refers_to) if facts.refers_to else key, facts.refers_to_date)
                    self._do(
                        "INSERT INTO revisit VALUES (?,?,?,?,?,?,?,?)", (*row, one.date, one.url, number, one.offset)
                    )
        self._run(_RESOLVE)  # it commits first
        self._do("BEGIN")
        for row, key, of, at, date, *rest in self._do(
            "SELECT rowid, key, of, at, date, url, warc, offset FROM revisit"
        ):
            found = self._do(_BEFORE, (of, at or date)).fetchone()
            subject = found[0] if found else self._subject(f"r{of} {at or date} {row}")
            self._do("INSERT INTO held VALUES (?,?,?,?,?,?,1)", (key, date, subject, *rest))
        self._do("CREATE INDEX held_by_subject ON held (subject, date, key)")
        for (key,) in self._do("SELECT DISTINCT key FROM held"):
            bit = hash(key) % _BITS
            self._filter[bit >> 3] |= 1 << (bit & 7)
        first = "SELECT no, (SELECT key FROM held WHERE subject = no ORDER BY date, key LIMIT 1) FROM subject"
        for subject, key in self._rows(first):
            self._do("UPDATE subject SET work = ? WHERE no = ?", (_work(key or ""), subject))

    def _rows(self, query: str) -> Iterator[tuple[int, str]]:
        """The rows of a query about subjects, read in parts: their table is changed meanwhile."""
        last = 0
        while rows := self._do(f"{query} WHERE no > ? ORDER BY no LIMIT 1000", (last,)).fetchall():
            yield from rows
            last = rows[-1][0]

    def _take_document(self, one: HarvestedRecord, facts: DocumentFacts, warc: int) -> None:
        subject, key = self._subject(f"b{facts.id}", facts), Key(one.url)
        self._do("INSERT INTO held VALUES (?,?,?,?,?,?,0)", (key, one.date, subject, one.url, warc, one.offset))
        if facts.payload:
            self._do("INSERT OR IGNORE INTO payload VALUES (?, ?)", (facts.payload, subject))
            self._do("INSERT OR IGNORE INTO named VALUES (?, ?)", (subject, facts.payload))
        for url in dict.fromkeys(facts.up[:PAGES]):
            self._do("INSERT INTO up VALUES (?, ?)", (Key(url), subject))

    def _subject(self, name: str, facts: DocumentFacts | None = None) -> int:
        found = self._do("SELECT no FROM subject WHERE name = ?", (name,)).fetchone()
        if found is None:
            kept = _encode(facts) if facts else None
            return int(self._do("INSERT INTO subject (name, facts) VALUES (?, ?)", (name, kept)).lastrowid or 0)
        return int(found[0])

    def take_pages(self, sources: Iterable[tuple[str, Iterable[HarvestedRecord]]]) -> None:
        """Read the pages, and keep those that link to a document."""
        self._do("CREATE INDEX up_by_key ON up (key)")
        has_up = self._do("SELECT 1 FROM up LIMIT 1").fetchone() is not None
        for one in chain.from_iterable(records for _, records in sources):
            if one.page:
                ups = self._do("SELECT subject FROM up WHERE key = ?", (Key(one.url),)).fetchall() if has_up else ()
                self._take_page(one, one.page, [subject for (subject,) in ups])
        self._do("CREATE INDEX link_by_subject ON link (subject, page)")
        self._run(_WITHOUT_EVERYWHERE)  # it commits first
        self._do("BEGIN")

    def _take_page(self, one: HarvestedRecord, page: PageFacts, ups: list[int]) -> None:
        own, found, works, targets = Key(one.url), list[_FoundLink](), set[int](), set[int]()
        for link in page.links:
            key = Key(link.url)
            slot = hash(key)
            targets.add(slot % _SLOTS)
            subjects = self._at(key) if key != own else ()
            found += (_FoundLink(subject, _cut(link.text), _cut(link.heading)) for subject in subjects)
            if not subjects and _ending(key)[1]:
                works.add(_work(key))  # it was not captured
        targets.discard(hash(own) % _SLOTS)
        for slot in targets:
            self._linked[slot] = min(self._linked[slot] + 1, 0xFFFF_FFFF)
        for named in page.named:
            data = _encode(replace(named, urls=()))
            subjects = [subject for url in named.urls for subject in self._at(Key(url))]
            found += (_FoundLink(subject, names=int(named.by in _NAMING), named=data) for subject in subjects)
        found += (_FoundLink(subject, names=1) for subject in ups)
        if not found:
            return
        works |= {self._work_of(subject) for subject in {one_link.subject for one_link in found}}
        own_data = tuple(named for named in page.named if not named.urls)[: candidates.MOST]
        kept = replace(page, links=(), named=own_data, title=_cut(page.title), h1=_cut(page.h1))
        row = (one.url, one.date, own.partition(")")[0], len(works), _encode(kept))
        number = self._do("INSERT INTO page (url, date, host, documents, facts) VALUES (?,?,?,?,?)", row).lastrowid
        for one_link in dict.fromkeys(found):
            subject, *said = astuple(one_link)
            self._do("INSERT INTO link VALUES (?,?,?,?,?,?)", (subject, number, *said))

    def _at(self, key: str) -> list[int]:
        """The subjects at a key; nearly always none, as the filter shows at once."""
        bit = hash(key) % _BITS
        if not self._filter[bit >> 3] & 1 << (bit & 7):
            return []
        return [subject for (subject,) in self._do(_AT, (key,))]

    def _work_of(self, subject: int) -> int:
        return int(self._do("SELECT work FROM subject WHERE no = ?", (subject,)).fetchone()[0])

    def joined(self) -> Iterator[JoinedPart]:
        """The subjects in the order of their names, when all is read."""
        query = "SELECT no, name, facts, work FROM subject ORDER BY name"
        for number, _, facts, work in self._do(query):
            titles = candidates.title_texts(self._subject_of(number, facts))
            for text in {_use(title) for title in titles if not title.is_sure}:
                self._do("INSERT INTO used VALUES (?, ?)", (text, work))
        self._do("CREATE INDEX used_by_text ON used (text, work)")
        for number, name, facts, _ in self._do(query):
            subject = self._subject_of(number, facts)
            at = ((key, date) for key, date in self._do(_CAPTURED, (number,)))
            pages = tuple((Key(page.url), page.date) for page in subject.pages)
            yield JoinedPart(name, self._part(number, subject), at, pages)

    def _subject_of(self, number: int, facts: bytes | None) -> CrawledDocument:
        url, date = self._do(
            "SELECT url, date FROM held WHERE subject = ? ORDER BY date, key LIMIT 1", (number,)
        ).fetchone()
        pages = (_FoundPage(*row) for row in self._do(_PAGES, (number,)))
        chosen = heapq.nsmallest(PAGES, pages, key=lambda page: (page.rank(self._linked), page.url))
        return CrawledDocument(
            _facts_of.decode(facts) if facts else None, url, date, [self._page(number, one) for one in chosen]
        )

    def _page(self, subject: int, page: _FoundPage) -> LinkingPage:
        (facts,) = self._do("SELECT facts FROM page WHERE no = ?", (page.number,)).fetchone()
        where = "FROM link WHERE subject = ? AND page = ? ORDER BY rowid LIMIT ?"
        links = self._do(f"SELECT text, heading, named {where}", (subject, page.number, candidates.MOST)).fetchall()
        return LinkingPage(
            page.url,
            page.newest[:14],
            _page_of.decode(facts),
            page.documents,
            self._linked[hash(Key(page.url)) % _SLOTS],
            tuple((text, heading) for text, heading, _ in links if text or heading),
            tuple(_named_of.decode(named) for *_, named in links if named),
            page.is_named,
        )

    def _is_shared(self, title: TitleText) -> bool:
        found = self._do("SELECT DISTINCT work FROM used WHERE text = ? LIMIT 2", (_use(title),)).fetchall()
        return len(found) > 1

    def _part(self, number: int, subject: CrawledDocument) -> EntryPart:
        rows = self._do(_LISTED, (number, MOST)).fetchall()
        captures = tuple(_capture(*row) for row in rows)
        urls, count = self._do("SELECT count(DISTINCT url), count(*) FROM held WHERE subject = ?", (number,)).fetchone()
        listed = self._do(
            "SELECT url FROM held WHERE subject = ? GROUP BY url ORDER BY min(date), url LIMIT ?", (number, MOST)
        )
        facts = subject.facts
        digests = self._do("SELECT digest FROM named WHERE subject = ? ORDER BY digest", (number,))
        part = EntryPart(
            subject.date,
            tuple(url for (url,) in listed),
            captures,
            urls,
            count,
            filename=texts.of_file(facts.filename if facts else "", subject.url),
            payloads=tuple(digest for (digest,) in digests),
            fields=candidates.candidates(subject, self._is_shared),
        )
        if facts is None:
            return part
        return replace(part, type=facts.type, size=facts.size, declared=facts.declared, fault=facts.fault)


_CAPTURED = "SELECT DISTINCT key, date FROM held WHERE subject = ? ORDER BY key, date"
_LISTED = """
    SELECT url, date, warc.name, offset, revisit FROM held JOIN warc ON warc.no = held.warc
    WHERE subject = ? ORDER BY date, url, offset LIMIT ?
"""


class _FoundLink(Struct, frozen=True):
    """A link of a page to a subject. `names`: 1 if the page names it. `named`: what its structured data have for it."""

    subject: int
    text: str = ""
    heading: str = ""
    names: int = 0
    named: bytes | None = None


class _FoundPage(Struct, frozen=True):
    """A page that links to a subject. `newest`: the time of the capture, and `names` of its link."""

    number: int
    url: str
    documents: int
    newest: str

    @property
    def is_named(self) -> bool:
        return self.newest.endswith("1")

    def rank(self, linked: array[int]) -> tuple[int, ...]:
        """As LinkingPage has it."""
        return 1 - self.is_named, self.documents, -linked[hash(Key(self.url)) % _SLOTS], len(self.url)


def _capture(url: str, date: str, warc: str, offset: int, revisit: int) -> DocumentCapture:
    job, launch, _ = warc.split("/")
    return DocumentCapture(url, date, job, launch, f"warcs/{warc}", offset, bool(revisit))


def _cut(text: str) -> str:
    return text if len(text) <= texts.LONGEST else texts.plain(text)


def _ending(key: str) -> tuple[str, str]:
    path, _, query = key.partition("?")
    stem, dot, ending = path.rpartition(".")
    if dot and ending in texts.EXTENSIONS:
        return f"{stem}?{query}", ending
    return key, ""


def _work(key: str) -> int:
    """The publication that a URL is of: its PDF, its EPUB and its later bodies are one."""
    return hash(_ending(key)[0])


def _use(title: TitleText) -> int:
    """A text of a group on a host."""
    return hash((Key(title.url).partition(")")[0], title.group, texts.sharable(title.text)))
