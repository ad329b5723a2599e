"""The crawler's database: one SQLite file, of one process, on a local disk. Opens, copies and checks it.

WAL with synchronous NORMAL: a kill loses nothing that was committed; a power cut may lose the last commits, never their
order. The books cut their files to what the database knows.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from warcmill.base import disk
from warcmill.crawl.durable import failed, sync
from warcmill.errors import BadInput, Busy, Conflict, Foreign, Unavailable, WarcmillError

APPLICATION, SCHEMA = 0x57434D4C, 6  # "WCML"
CACHE_KIB = 16 << 10
MOST_NAMES = 10_000  # of each table of them, kept in memory
_CHUNK = 500  # parameters of one query
PAGE, CHECKPOINT_AT = 2048, 8000  # bytes, and pages of the WAL: each commit writes a few rows here and there

# statfs(2): these keep no lock, or no memory, that two hosts share. FUSE may be sshfs or rclone.
_NETWORKS = {
    0x6969: "NFS", 0x517B: "SMB", 0xFF534D42: "CIFS", 0xFE534D42: "SMB2", 0x5346414F: "AFS", 0x00C36400: "Ceph",
    0x0BD00BD0: "Lustre", 0x47504653: "GPFS", 0x01021997: "9P", 0x7461636F: "OCFS2", 0x01161970: "GFS2",
    0x65735546: "FUSE",
}  # fmt: skip

_TABLES = """
CREATE TABLE cookies (crawl INTEGER NOT NULL, domain TEXT NOT NULL, path TEXT NOT NULL, name TEXT NOT NULL,
    value TEXT NOT NULL, expires REAL NOT NULL, created REAL NOT NULL, host_only INTEGER NOT NULL,
    secure INTEGER NOT NULL, PRIMARY KEY (crawl, domain, path, name)) WITHOUT ROWID;
CREATE TABLE sites (origin TEXT PRIMARY KEY, status INTEGER NOT NULL, until REAL NOT NULL,
    failures INTEGER NOT NULL, text BLOB NOT NULL) WITHOUT ROWID;
-- What was fetched of each host, target and crawl: `what` is one of these.
CREATE TABLE spent (what TEXT NOT NULL, name TEXT NOT NULL, documents INTEGER NOT NULL, bytes INTEGER NOT NULL,
    seconds REAL NOT NULL, PRIMARY KEY (what, name)) WITHOUT ROWID;
-- What a spider that is not this crawler remembers.
CREATE TABLE memory (spider TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (spider, name))
    WITHOUT ROWID;
-- Those of the launch that the books are open for.
CREATE TABLE files (name TEXT PRIMARY KEY, folder TEXT NOT NULL, length INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE about (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE crawls (id INTEGER PRIMARY KEY, name TEXT UNIQUE,  -- NULL: being purged
    waiting INTEGER NOT NULL DEFAULT 0, suspended INTEGER NOT NULL DEFAULT 0, parsed INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0, removed INTEGER NOT NULL DEFAULT 0);

-- Closed until `wake`; else open, and `priority` and `head` are those of its first URI; all NULL: nothing waits.
CREATE TABLE queues (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
    priority INTEGER, head INTEGER, wake INTEGER, rate TEXT, recent BLOB);
CREATE INDEX open_queues ON queues (priority, head) WHERE head IS NOT NULL;
CREATE INDEX closed_queues ON queues (wake) WHERE wake IS NOT NULL;

-- `id` is the order of arrival. `until` is NULL when it may be leased. `via` is a page's id, `source` a source's;
-- source NULL: the URI itself. `spider` is NULL for this crawler.
CREATE TABLE waiting (id INTEGER PRIMARY KEY, queue INTEGER NOT NULL, priority INTEGER NOT NULL, until INTEGER,
    crawl INTEGER NOT NULL, uri TEXT NOT NULL, hops TEXT, via INTEGER, source INTEGER, more TEXT, spider TEXT);
CREATE INDEX turn ON waiting (queue, priority) WHERE until IS NULL;
CREATE INDEX later ON waiting (until) WHERE until IS NOT NULL;
CREATE TABLE pages (id INTEGER PRIMARY KEY, uri TEXT NOT NULL);
CREATE TABLE sources (id INTEGER PRIMARY KEY, uri TEXT NOT NULL UNIQUE);

-- Every URI ever taken. `round` counts the crawl's starts: a row of an older one whose id does not wait is history, and
-- may come again. An id below `first` (in `about`) does not wait. `tag` is that of a URI that may be renewed.
CREATE TABLE seen (crawl INTEGER NOT NULL, digest BLOB NOT NULL, round INTEGER NOT NULL, id INTEGER, visit BLOB,
    tag BLOB, PRIMARY KEY (crawl, digest)) WITHOUT ROWID;
"""


# By the schema before: what turns its tables into those of the next.
_RENEWALS = {
    3: "ALTER TABLE waiting ADD COLUMN spider TEXT",
    4: "CREATE TABLE memory (spider TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (spider, name))"
    " WITHOUT ROWID",
    5: "ALTER TABLE seen ADD COLUMN tag BLOB",
}


def open_database(path: Path) -> sqlite3.Connection:
    """Open the database, or make an empty one. Unavailable on a network file system, Busy when another process has it,
    BadInput when it is damaged."""
    refuse_networks(path.parent)
    with named(path):
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute(f"PRAGMA page_size={PAGE}")
    connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    schema = _schema(connection, path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
    connection.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT_AT}")
    connection.execute("PRAGMA journal_size_limit=67108864")
    connection.execute("BEGIN EXCLUSIVE")
    if not schema:
        _create(connection)
    while 0 < schema < SCHEMA:
        connection.execute(_RENEWALS[schema])
        schema += 1
        connection.execute(f"PRAGMA user_version={schema}")
    connection.execute("COMMIT")


def _schema(connection: sqlite3.Connection, path: Path) -> int:
    """The version of its tables, 0 if the file is still empty; Foreign, before anything is written, when it is another
    program's."""
    application, schema, tables = (
        connection.execute(query).fetchone()[0]
        for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    )
    if tables and not (application == APPLICATION and (schema in _RENEWALS or schema == SCHEMA)):
        raise Foreign(str(path), f"not a database of this crawler, or of another version ({schema}, not {SCHEMA})")
    return int(schema) if tables else 0


def _create(connection: sqlite3.Connection) -> None:
    for statement in _TABLES.split(";\n"):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id={APPLICATION}")
    connection.execute(f"PRAGMA user_version={SCHEMA}")


def examine(connection: sqlite3.Connection, path: Path) -> None:
    """Read all of the database; BadInput when it is damaged."""
    with named(path):
        verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if verdict != "ok":
        raise damaged(path, str(verdict).splitlines()[-1])


def copy(connection: sqlite3.Connection, path: Path) -> None:
    """Copy a database to a new file, durable, as of a launch that has ended. Conflict when the file exists."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    except FileExistsError as error:
        raise Conflict(str(path), "it exists; a snapshot needs a new name") from error
    except OSError as error:
        raise failed(path, error) from error
    with named(path), closing(sqlite3.connect(path)) as target:
        connection.backup(target)
        target.execute("INSERT OR REPLACE INTO about VALUES ('clean', 1)")
        target.commit()
        target.execute("PRAGMA journal_mode=DELETE")
    sync(path)


def last_launch(path: Path) -> str | None:
    """Return the launch that a database was last open for: '' before its first commit, None when it is gone or empty.
    BadInput when it is damaged, or not one of this crawler."""
    if not path.exists():
        return None
    with named(path), closing(sqlite3.connect(f"file:{path}?mode=rw", uri=True)) as db:  # a kill may be rolled back
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
        if not tables:
            return None
        if "about" not in tables:
            raise damaged(path, "it has no table 'about'")
        row = db.execute("SELECT value FROM about WHERE name = 'launch'").fetchone()
    return str(row[0]) if row else ""


def write_back(connection: sqlite3.Connection, path: Path) -> None:
    """Write what is in the WAL into the database. SQLite does so unasked at CHECKPOINT_AT, but then reports no failing
    disk: https://sqlite.org/c3ref/wal_autocheckpoint.html"""
    with named(path):
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


@contextmanager
def transaction(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Keep all changes made within, or, on an error, no change; errors of SQLite name the file."""
    with named(path):
        connection.execute("BEGIN")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Raise SQLite's errors as ours, with the file and what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise translated(path, error) from error


def translated(path: Path, error: sqlite3.Error) -> WarcmillError:
    """Our error for one of SQLite's."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Busy(f"the crawl of {path}")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return damaged(path, str(error))
    full = disk.full([path.parent])  # SQLite names it only at some calls; at others this is an I/O error
    why = f"{os.strerror(errno.ENOSPC)}; make room on its disk, and do the same again" if full else str(error)
    return Unavailable(str(path), f"{why}. Nothing of this group was kept, and all before it is safe")


def damaged(path: Path, why: str) -> BadInput:
    """The error for a database that cannot be read any more."""
    return BadInput(str(path), f"the database is damaged ({why}); it can be rebuilt from the journal and crawl.log")


def refuse_networks(folder: Path) -> None:
    """Unavailable when a folder is on a network: SQLite's locks and shared memory are not safe there."""
    if name := _NETWORKS.get(_magic(folder)):
        raise Unavailable(str(folder), f"it is on {name}; the crawler's database needs a local disk")


def _magic(folder: Path) -> int:
    """The type of the file system (statfs(2), f_type)."""
    answer = (ctypes.c_long * 64)()
    if ctypes.CDLL(None, use_errno=True).statfs(os.fsencode(folder), answer):
        error = ctypes.get_errno()
        raise Unavailable(str(folder), os.strerror(error))
    return int(answer[0]) & 0xFFFFFFFF


def milliseconds(moment: float) -> int | None:
    """A time as rows have it; None for one that is not set."""
    return round(moment * 1000) if moment > 0 else None


def select_in(
    db: sqlite3.Connection, query: str, values: Iterable[object], before: tuple[object, ...] = ()
) -> list[tuple]:  # type: ignore[type-arg]
    """Return the rows of a query that ends in `IN`, for any number of values."""
    todo, found = list(values), []
    for begin in range(0, len(todo), _CHUNK):
        part = todo[begin : begin + _CHUNK]
        found += db.execute(f"{query} ({','.join('?' * len(part))})", (*before, *part)).fetchall()
    return found


class Names:
    """A table of names and their ids, of which the last used are kept in memory."""

    def __init__(self, db: sqlite3.Connection, table: str, column: str) -> None:
        self._db, self._table, self._column = db, table, column
        self._ids: dict[str, int] = {}
        self._names: dict[int, str] = {}

    def find(self, name: str) -> int | None:
        """Return the id of a name; None when it has none."""
        if name in self._ids:
            return self._ids[name]
        row = self._db.execute(f"SELECT id FROM {self._table} WHERE {self._column} = ?", (name,)).fetchone()
        return self._keep(row[0], name) if row else None

    def id(self, name: str) -> int:
        """Return the id of a name, and give it one if it has none."""
        if (known := self.find(name)) is not None:
            return known
        made = self._db.execute(f"INSERT INTO {self._table} ({self._column}) VALUES (?)", (name,)).lastrowid
        return self._keep(made or 0, name)

    def name(self, number: int) -> str:
        """Return the name of an id."""
        if number not in self._names:
            row = self._db.execute(f"SELECT {self._column} FROM {self._table} WHERE id = ?", (number,)).fetchone()
            self._keep(number, row[0])
        return self._names[number]

    def forget(self) -> None:
        """Read all from the table again."""
        self._ids.clear()
        self._names.clear()

    def _keep(self, number: int, name: str) -> int:
        if len(self._ids) >= MOST_NAMES:
            self.forget()
        self._ids[name], self._names[number] = number, name
        return number
