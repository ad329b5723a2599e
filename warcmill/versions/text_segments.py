"""A segment of the text index: the documents of some WARCs, in a SQLite file with FTS5 that is never changed.

    {name}.sqlite    `warc`, `page`, and `words`, the full text of title and content
    {name}.inputs    the WARCs that it was made of; sealed
    {name}.counts    how many documents of each WARC were read back from it; sealed

`page.key` is the key of the URL, a blank, and the time: by it a query leaves out what is hidden.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import quote

from warcmill.base import digests
from warcmill.errors import BadInput, Mismatch, Unavailable
from warcmill.formats.sealed import seal
from warcmill.formats.urlkey import urlkey
from warcmill.stores import LocalStore, temporary
from warcmill.versions import unspaced
from warcmill.versions.inputs import Input
from warcmill.versions.lists import FOLDER
from warcmill.versions.segments import COUNTS, INPUTS, Made, Segment, named, publish, publish_bytes

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


@dataclass(frozen=True, slots=True)
class Written:
    """A segment that is not published yet: an open file that has no name any more."""

    stream: BinaryIO
    lines: int


def write(index: LocalStore, sources: Iterable[tuple[Input, Iterable[bytes]]]) -> Written:
    """Write the documents of some WARCs into a nameless file. Unavailable if the disk is full."""
    folder = index.base / FOLDER
    folder.mkdir(exist_ok=True)
    index.sweep(FOLDER)
    path = folder / temporary.name("text.sqlite")
    path.open("xb").close()
    try:
        with _errors(FOLDER), closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.executescript(_SCHEMA)
            database.execute("BEGIN")
            lines = sum(_insert(database, number, *source) for number, source in enumerate(sources))
            database.execute("INSERT INTO words (words) VALUES ('optimize')")
            database.execute("INSERT INTO words (words) VALUES ('integrity-check')")
            database.execute("COMMIT")
        return Written(path.open("rb"), lines)
    finally:
        path.unlink(missing_ok=True)


def _insert(database: sqlite3.Connection, number: int, one: Input, documents: Iterable[bytes]) -> int:
    """Insert the documents of a WARC; return how many there are."""
    database.execute("INSERT INTO warc VALUES (?, ?)", (number, one.name))
    count = 0
    for line in documents:
        document: dict[str, Any] = json.loads(line)
        url, time = document["url"], str(document["wayback_date"])
        type_ = document.get("content_type_served", "")
        row = (number, document["source_file_offset"], f"{urlkey(url)} {time}", url, time, type_)
        at = database.execute("INSERT INTO page VALUES (NULL, ?, ?, ?, ?, ?, ?)", row).lastrowid
        words = (at, unspaced.part(document.get("title", "")), unspaced.part(document.get("content", "")))
        database.execute("INSERT INTO words (rowid, title, content) VALUES (?, ?, ?)", words)
        count += 1
    return count


def commit(index: LocalStore, folder: str, written: Written, made: Made) -> Segment:
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
    with _errors(path), closing(sqlite3.connect(f"file:{quote(real)}?mode=ro&immutable=1", uri=True)) as database:
        yield database


@contextmanager
def _errors(path: str) -> Iterator[None]:
    """Errors of SQLite as errors of the index."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if "malformed" in str(error) or "not a database" in str(error):
            raise BadInput(f"index:{path}", f"SQLite cannot read it: {error}") from error
        raise Unavailable(f"index:{path}", f"SQLite: {error}") from error
    except OSError as error:
        raise Unavailable(f"index:{path}", error.strerror or str(error)) from error
