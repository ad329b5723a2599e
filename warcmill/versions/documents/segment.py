"""A segment of the data set `documents`: the parts of some crawls in a SQLite file that never changes. Writes them.

    {name}.sqlite    see below
    {name}.inputs    the WARCs that it was made of, and the hidden entries that left something out; sealed
    {name}.counts    how many parts of each crawl were read back from it; sealed

Of a crawl that several segments have, the last one counts: a launch that still runs gets more stages, and its links may
lead to documents of an earlier one. So it is joined anew, and the larger segments are not touched. A crawl that is gone
has no inputs in the last one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from hashlib import sha512
from typing import BinaryIO

from msgspec import Struct

from warcmill.base import digests
from warcmill.errors import BadInput, Mismatch, NotReady
from warcmill.formats.seal import seal
from warcmill.stores import LocalStore, temporary_names
from warcmill.versions import hidden_list, segments
from warcmill.versions.documents.join import JoinedPart
from warcmill.versions.documents.parts import encode
from warcmill.versions.inputs import FOLDER, ListedWarc
from warcmill.versions.segments import COUNTS, INPUTS, Segment, SegmentSources, publish, publish_bytes
from warcmill.versions.text import SQLITE, opened, sqlite_errors

GENERATION = 1  # of the join; another one joins every crawl anew
_SCHEMA = """
    PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -8000;
    CREATE TABLE crawl (no INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, token TEXT NOT NULL, hidden TEXT NOT NULL);
    CREATE TABLE input (crawl INTEGER, line TEXT);
    CREATE TABLE part (name TEXT, crawl INTEGER, has_page INTEGER, data BLOB);
    CREATE TABLE place (key TEXT, date TEXT, name TEXT, crawl INTEGER);
    CREATE TABLE page (key TEXT, date TEXT, crawl INTEGER);
    CREATE TABLE payload (digest TEXT, name TEXT, crawl INTEGER);
"""
_INDEXES = """
    CREATE UNIQUE INDEX part_by_name ON part (name, crawl);
    CREATE INDEX place_by_key ON place (key, date);
    CREATE INDEX place_by_crawl ON place (crawl);
    CREATE INDEX page_by_key ON page (key, date);
    CREATE INDEX payload_by_digest ON payload (digest);
"""
_COPIED = {
    "input": "crawl, line",
    "part": "name, crawl, has_page, data",
    "place": "key, date, name, crawl",
    "page": "key, date, crawl",
    "payload": "digest, name, crawl",
}


class JoinedCrawl(Struct, frozen=True):
    """A crawl: its name, that of its first launch; its WARCs, none for one that is gone; its parts; and the hidden
    entries that have left something out, which are known at the end of them."""

    name: str
    inputs: tuple[ListedWarc, ...]
    parts: Iterable[JoinedPart]
    met: set[str]


class KeptCrawl(Struct, frozen=True):
    """A crawl in a segment: its number there, the token of what it was made of, and what was hidden in it."""

    segment: Segment
    number: int
    token: str
    hidden: frozenset[str]


class WrittenCrawls(Struct, frozen=True):
    """A segment that is not published yet: an open file that has no name any more."""

    stream: BinaryIO
    parts: int
    made: SegmentSources


def token(inputs: Iterable[ListedWarc]) -> str:
    """The same for the same WARCs, without the same records; '' for none."""
    lines = "".join(one.identity.line() for one in sorted(inputs))
    return sha512(f"{GENERATION}\n{lines}".encode()).hexdigest()[:32] if lines else ""


def crawls(index: LocalStore, known: Sequence[Segment]) -> dict[str, KeptCrawl]:
    """The crawls that segments have, each by the last one that has it. NotReady or BadInput if one is damaged."""
    found: dict[str, KeptCrawl] = {}
    for segment in known:
        with opened(index, segment.files[SQLITE].path) as database:
            for number, name, token_, hidden in database.execute("SELECT no, name, token, hidden FROM crawl"):
                found[name] = KeptCrawl(segment, number, token_, frozenset(filter(None, hidden.split("\n"))))
    return found


def inputs(index: LocalStore, crawl: KeptCrawl) -> tuple[ListedWarc, ...]:
    """The WARCs of a crawl, with the digests of the extracts that it was joined of."""
    with opened(index, crawl.segment.files[SQLITE].path) as database:
        lines = database.execute("SELECT line FROM input WHERE crawl = ?", (crawl.number,)).fetchall()
    return tuple(ListedWarc.parse(line.rstrip("\n")) for (line,) in lines)


def shows(index: LocalStore, segment: Segment, prefixes: tuple[bytes, ...]) -> frozenset[int]:
    """The numbers of the crawls of a segment that have what prefixes hide."""
    with opened(index, segment.files[SQLITE].path) as database:

        def look_up(prefix: bytes) -> Iterator[bytes]:
            key, blank, time = prefix.decode("ascii").partition(" ")
            for table in ("place", "page"):
                where = "key = ? AND date >= ? AND date < ?" if blank else "key >= ? AND key < ?"
                bounds = (key, time, f"{time}~") if blank else (key, key[:-1] + chr(ord(key[-1]) + 1))
                query = f"SELECT DISTINCT key || ' ' || date || ' ' || crawl FROM {table} WHERE {where}"  # noqa: S608
                yield from (line.encode() for (line,) in database.execute(query, bounds))

        return frozenset(int(line.rpartition(b" ")[2]) for line in hidden_list.hidden_lines(look_up, prefixes))


class SegmentWriter:
    """A segment in the making. `written` ends it; what is not ended leaves nothing behind."""

    def __init__(self, index: LocalStore, opened_: ExitStack) -> None:
        self._index = index
        folder = index.base / FOLDER
        folder.mkdir(exist_ok=True)
        index.sweep(FOLDER)
        self.folder, self._path = folder, folder / temporary_names.name("documents.sqlite")
        self._path.open("xb").close()
        opened_.callback(self._path.unlink, missing_ok=True)
        self._database = opened_.enter_context(closing(sqlite3.connect(self._path, isolation_level=None)))
        self._do = self._database.execute
        self._database.executescript(_SCHEMA)
        self._do("BEGIN")
        self.parts, self._inputs, self._hidden = 0, list[ListedWarc](), set[str]()

    def add(self, crawl: JoinedCrawl) -> None:
        """Write a crawl that was joined."""
        number = self._crawl(crawl.name, token(crawl.inputs))
        for joined in crawl.parts:
            part = joined.part
            self._do("INSERT INTO part VALUES (?,?,?,?)", (joined.name, number, part.has_page, encode(part)))
            rows = ((key, date, joined.name, number) for key, date in joined.at)
            self._database.executemany("INSERT INTO place VALUES (?,?,?,?)", rows)
            self._database.executemany("INSERT INTO page VALUES (?,?,?)", ((*page, number) for page in joined.pages))
            payloads = ((digest, joined.name, number) for digest in part.payloads)
            self._database.executemany("INSERT INTO payload VALUES (?,?,?)", payloads)
            self.parts += 1
        self._database.executemany("INSERT INTO input VALUES (?,?)", ((number, one.line()) for one in crawl.inputs))
        self._do("UPDATE crawl SET hidden = ? WHERE no = ?", ("\n".join(sorted(crawl.met)), number))
        self._inputs += crawl.inputs
        self._hidden |= crawl.met

    def copy(self, known: Mapping[str, KeptCrawl], segment: Segment) -> None:
        """Copy the crawls of another segment that it is the last to have."""
        self._do("COMMIT")
        self._do("ATTACH ? AS old", (str(self._index.real(segment.files[SQLITE].path)),))
        self._do("BEGIN")
        for name, crawl in known.items():
            if crawl.segment == segment:
                self._copy(name, crawl)
        self._do("COMMIT")
        self._do("DETACH old")
        self._do("BEGIN")

    def _copy(self, name: str, crawl: KeptCrawl) -> None:
        number = self._crawl(name, crawl.token)
        self._do("UPDATE crawl SET hidden = ? WHERE no = ?", ("\n".join(sorted(crawl.hidden)), number))
        for table, columns in _COPIED.items():
            taken = columns.replace("crawl", "?")
            query = f"INSERT INTO main.{table} SELECT {taken} FROM old.{table} WHERE crawl = ?"  # noqa: S608 - of constants
            count = self._do(query, (number, crawl.number)).rowcount
            self.parts += count if table == "part" else 0
        lines = self._do("SELECT line FROM input WHERE crawl = ?", (number,))
        self._inputs += (ListedWarc.parse(line.rstrip("\n")) for (line,) in lines)
        self._hidden |= crawl.hidden

    def _crawl(self, name: str, token_: str) -> int:
        row = self._do("INSERT INTO crawl (name, token, hidden) VALUES (?, ?, '')", (name, token_))
        return int(row.lastrowid or 0)

    def written(self) -> WrittenCrawls:
        """End it."""
        self._database.executescript(_INDEXES)  # it commits first
        self._database.close()
        made = SegmentSources(tuple(sorted(self._inputs)), frozenset(self._hidden))
        return WrittenCrawls(self._path.open("rb"), self.parts, made)


@contextmanager
def writing(index: LocalStore) -> Iterator[SegmentWriter]:
    """A segment to be written. Unavailable if the disk is full."""
    with sqlite_errors(FOLDER), ExitStack() as stack:
        yield SegmentWriter(index, stack)


def commit(index: LocalStore, folder: str, written: WrittenCrawls) -> Segment:
    """Publish a segment's files in a folder, read them back, and count what was read."""
    document, name = segments.named(written.made)
    path = f"{folder}/{name}{SQLITE}"
    with written.stream as stream:
        size, digest = digests.sha512(stream)
        stream.seek(0)
        files = {SQLITE: publish(index, path, stream, size, digest)}
    files[INPUTS] = publish_bytes(index, f"{folder}/{name}{INPUTS}", document)
    counts = read_back(index, path)
    if sum(counts.values()) != written.parts:
        raise Mismatch(f"parts in index:{path}", written.parts, sum(counts.values()))
    text = "".join(f"{number} {crawl}\n" for crawl, number in sorted(counts.items()))
    files[COUNTS] = publish_bytes(index, f"{folder}/{name}{COUNTS}", seal(text.encode()))
    return Segment(name, written.parts, files)


def read_back(index: LocalStore, path: str) -> dict[str, int]:
    """Read a segment from the disk; count its parts by crawl. BadInput if it is damaged."""
    with opened(index, path) as database:
        found = database.execute("PRAGMA quick_check").fetchall()
        if found != [("ok",)]:
            raise BadInput(f"index:{path}", f"SQLite finds it damaged: {found[:3]}")
        query = (
            "SELECT crawl.name, count(part.name) FROM crawl LEFT JOIN part ON part.crawl = crawl.no GROUP BY crawl.no"
        )
        return dict(database.execute(query).fetchall())


def check(index: LocalStore, segment: Segment) -> None:
    """Read a segment to its end. Mismatch, NotReady or BadInput if it is not as it was published."""
    file = segment.files[SQLITE]
    found = index.server_digest(file.path)
    if found != ("sha512", file.sha512):
        raise Mismatch(f"index:{file.path}", file.sha512, found)
    segments.made_of(index, segment)
    if read_back(index, file.path) != segments.counts_of(index, segment):
        raise Mismatch(f"index:{file.path}", segments.counts_of(index, segment), read_back(index, file.path))


def is_there(index: LocalStore, segment: Segment) -> bool:
    """True if all files of a segment have their sizes."""
    try:
        found = [(index.stat(file.path), file.size) for file in segment.files.values()]
    except NotReady:
        return False
    return all(entry is not None and entry.size == size for entry, size in found)
