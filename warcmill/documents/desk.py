"""The desk: a table of all documents with what people decided of them. Writes to the index root, and decisions.

    {index}/documents/desk.sqlite

A row is an entry of the published version, with what a person wrote in front of what was extracted. The table is never
the authority: it remembers of which version it is, and the last decision that it has, and whoever opens it brings it
up to date. Deleted, damaged or of another version of the program, it is made anew, with all decisions.

An entry that leaves the version leaves the table; what is decided of it stays, and counts again if it comes back.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from warcmill.documents import decided
from warcmill.documents.decided import TARGET, DecidedDocument, DocumentDecision
from warcmill.errors import BadInput, Busy, Conflict, Unavailable
from warcmill.formats.index.urlkey import urlkey
from warcmill.markers import decisions
from warcmill.markers.decisions import DOCUMENTS, RecordedDecision
from warcmill.model import Json
from warcmill.stores import LocalStore, Store
from warcmill.versions import text
from warcmill.versions.documents import published
from warcmill.versions.documents.dataset import NAME
from warcmill.versions.documents.entries import Entry
from warcmill.versions.documents.watching import WatchedTargets
from warcmill.versions.publication import Payloads, Published

PATH: Final = "documents/desk.sqlite"
PATIENCE: Final = 60.0  # seconds to wait for another writer
SHORTEST: Final = 8  # hex digits of an id
LONGEST: Final = 4_000  # characters of a text that is shown
OTHER: Final = "other"
FAMILIES: Final[Mapping[str, tuple[str, ...]]] = {  # a word for each type that may be asked for: parts of media types
    "pdf": ("application/pdf",),
    "epub": ("application/epub",),
    "text": ("wordprocessingml", "opendocument.text", "msword", "rtf"),
    "sheet": ("spreadsheetml", "opendocument.spreadsheet", "ms-excel"),
    "slides": ("presentationml", "opendocument.presentation", "ms-powerpoint"),
}
_VERSION: Final = 1  # of the tables
_TABLES: Final = """
    CREATE TABLE known (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE document (
        number INTEGER PRIMARY KEY, id TEXT NOT NULL, published TEXT NOT NULL, first_seen TEXT NOT NULL,
        status TEXT NOT NULL, target TEXT NOT NULL, family TEXT NOT NULL, key TEXT NOT NULL, changed TEXT NOT NULL,
        version_of TEXT NOT NULL
    );
    CREATE UNIQUE INDEX by_id ON document (id);
    CREATE TABLE entry (number INTEGER PRIMARY KEY, entry BLOB NOT NULL);
    CREATE TABLE address (key TEXT, number INTEGER, PRIMARY KEY (key, number)) WITHOUT ROWID;
    CREATE TABLE decided (id TEXT PRIMARY KEY, document BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE history (id TEXT, decision INTEGER, PRIMARY KEY (id, decision)) WITHOUT ROWID;
    CREATE VIRTUAL TABLE words USING fts5 (title, publisher, url);
"""
# by_publication has all that most filters ask for, so that a scan of it looks up no row.
_INDEXES: Final = {
    "by_publication": "(published, first_seen, number, status, target, family)",
    "by_seen": "(first_seen)",
    "by_status": "(status, changed)",
    "by_target": "(target, first_seen)",
    "by_family": "(family, first_seen)",
    "by_key": "(key)",
    "by_version": "(version_of) WHERE version_of != ''",
}
_PUT: Final = """
    INSERT INTO document (id, published, first_seen, status, target, family, key, changed, version_of)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET
        published = excluded.published, first_seen = excluded.first_seen, status = excluded.status,
        target = excluded.target, family = excluded.family, key = excluded.key, changed = excluded.changed,
        version_of = excluded.version_of
    RETURNING number
"""
_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_SCHEMA)
log = logging.getLogger(__name__)


class PublishedEntries(Struct, frozen=True):
    """The entries of a version. `name` is another one for each version. `changed` gives what differs from a version, by
    its name: ids, each with its entry or None. It is None where that version is not there any more."""

    name: str
    entries: Callable[[], Iterator[Entry]]
    changed: Callable[[str], Iterator[tuple[str, Entry | None]] | None]


class DeskSources(Struct, frozen=True):
    """The parts that the desk is made of. `watched` reads the list of watched targets, `targets` is a name of that
    list, another one for each: a list of tens of thousands is not read to look at a page."""

    state: LocalStore
    index: LocalStore
    published: Callable[[], PublishedEntries | None]
    targets: str
    watched: Callable[[], WatchedTargets]


def published_entries(index: LocalStore) -> PublishedEntries | None:
    """The entries of the current version; None if none is published."""
    payloads = Payloads(index, NAME)
    if not (now := payloads.current()):
        return None

    def changed(name: str) -> Iterator[tuple[str, Entry | None]] | None:
        before = payloads.at(name)
        return _differing(index, before, now) if before else None

    return PublishedEntries(now.folder, partial(published.entries, index, now), changed)


def _differing(index: LocalStore, before: Published, now: Published) -> Iterator[tuple[str, Entry | None]]:
    with published.reading(index, now) as found:
        for document_id in published.changed(index, before, now):
            yield document_id, found.entry(document_id)


class DeskDocument(Struct, frozen=True):
    """A document as it is shown: its entry with what a person wrote in front, its target, and what is decided."""

    entry: Entry
    target: str
    decided: DecidedDocument

    @property
    def title(self) -> str:
        """Its title; its address without one."""
        return self.text("title") or self.entry.filename or self.entry.urls[0]

    def text(self, name: str) -> str:
        """The value of a field that is shown, cut where it is too long."""
        return self.entry.shown(name)[:LONGEST]

    def json(self) -> dict[str, Json]:
        """As --json has it."""
        entry = self.entry
        texts = ("landing_page_url", "title", "publisher", "publication_date", "authors", "isbn", "doi")
        return {
            **{name: self.text(name) for name in texts},
            "id": entry.id, "status": self.decided.status, "target_id": self.target, "document_url": entry.urls[0],
            "wayback_timestamp": entry.captures[0].date if entry.captures else entry.first_seen,
            "filename": entry.filename, "size": entry.size, "type": entry.type, "first_seen": entry.first_seen,
            "version_of": entry.version_of, "urls": [*entry.urls],
        }  # fmt: skip


def family(media_type: str) -> str:
    """The word of a type: `pdf`."""
    return next((word for word, parts in FAMILIES.items() if any(part in media_type for part in parts)), OTHER)


class Desk:
    """The table, open and up to date."""

    def __init__(self, sources: DeskSources, database: sqlite3.Connection) -> None:
        self.state, self._sources, self.database = sources.state, sources, database
        self._seen, self._own = self.number, set[int]()  # the last decision when it was opened, and its own since

    # Looking

    @property
    def number(self) -> int:
        """The last decision that it has."""
        return int(self._known("decision") or 0)

    @property
    def missing(self) -> str:
        """Why it has no document, and what brings some; '' where a version is published."""
        if self._known("version"):
            return ""
        return "nothing is published yet: 'warcmill scan' lists documents, where luigi.cfg has [documents] since"

    def document(self, document_id: str) -> DeskDocument | None:
        """A document of the version; None if it has no such."""
        found = self.database.execute("SELECT number FROM document WHERE id = ?", (document_id,)).fetchone()
        return self.numbered(found[0]) if found else None

    def documents(self) -> Iterator[DeskDocument]:
        """All documents of the version, in no order."""
        for (number,) in self.database.execute("SELECT number FROM document"):
            yield self.numbered(number)

    def made_of(self) -> tuple[str, ...]:
        """The names of what the table is made of: others for another version, list of targets or decision."""
        return tuple(self._known(name) for name in ("version", "targets", "decision", "digest"))

    def numbered(self, number: int) -> DeskDocument:
        """The document of a row."""
        asked = "SELECT entry, target FROM entry JOIN document USING (number) WHERE number = ?"
        data, target = self.database.execute(asked, (number,)).fetchone()
        entry = msgspec.json.decode(data, type=Entry)
        said = self.decided(entry.id)
        return DeskDocument(said.over(entry), target, said)

    def decided(self, document_id: str) -> DecidedDocument:
        """All that is decided of a document, also of one that the version has not."""
        found = self.database.execute("SELECT document FROM decided WHERE id = ?", (document_id,)).fetchone()
        return msgspec.json.decode(found[0], type=DecidedDocument) if found else DecidedDocument()

    def id_of(self, typed: str) -> str:
        """The id of a document by the first digits of it. BadInput if there is none, or several."""
        digits = typed.strip().lower()
        if not SHORTEST <= len(digits) <= 64 or set(digits) - set("0123456789abcdef"):
            raise BadInput(typed, f"it is not an id of a document, or the first {SHORTEST} or more digits of one")
        asked = "SELECT id FROM document WHERE id >= ? AND id < ? LIMIT 2"
        found = [str(one) for (one,) in self.database.execute(asked, (digits, f"{digits}g"))]
        if len(found) != 1:
            why = "several documents have these digits; type more of them" if found else "the version has no such"
            raise BadInput(typed, f"{why}; 'warcmill documents list' has the ids")
        return found[0]

    def history(self, document_id: str) -> list[tuple[RecordedDecision, DocumentDecision]]:
        """The decisions about a document, the last one first."""
        asked = "SELECT decision FROM history WHERE id = ? ORDER BY decision DESC"
        made = [
            decisions.read_one(self.state, DOCUMENTS, row[0]) for row in self.database.execute(asked, (document_id,))
        ]
        return [(one, said) for one in made for said in decided.parse(one) if said.id == document_id]

    def versions(self, entry: Entry, most: int = 100) -> list[DeskDocument]:
        """The documents that took its place at its URL, and the one whose place it took."""
        asked = "SELECT id FROM document WHERE version_of = ? ORDER BY first_seen LIMIT ?"
        ids = [entry.version_of, *(row[0] for row in self.database.execute(asked, (entry.id, most)))]
        return [found for one in ids if one and (found := self.document(one))]

    def at_address(self, url: str) -> list[DeskDocument]:
        """The documents that were at a URL."""
        asked = "SELECT number FROM address WHERE key = ?"
        return [self.numbered(row[0]) for row in self.database.execute(asked, (urlkey(url),))]

    def target_title(self, target: str) -> str:
        """The title of a target; '' if it is not watched."""
        found = self._sources.watched().targets.get(target)
        return found.title if found else ""

    # Deciding

    def decide(
        self, open_store: Callable[[], Store], who: str, said: Iterable[DocumentDecision], over: int | None = None
    ) -> int:
        """Make the decisions that bring something new; return how many documents they change. They are in the store
        when this returns.

        `over`: the last decision that who decides has seen; None: the last one when the desk was opened. Conflict, and
        nothing is made, if a newer one is about one of these documents.
        """
        seen = self._seen if over is None else over
        new = [one for one in map(decided.checked, said) if self.decided(one.id).is_changed_by(one)]
        for one in new:
            if (last := self.decided(one.id).decision) > seen and last not in self._own:
                raise _newer(decisions.read_one(self.state, DOCUMENTS, last), one.id)
        if not new:  # of a decision whose store was away, the same again copies it
            decisions.copy_last(self.state, open_store, DOCUMENTS, self.number)
        for part in decided.in_parts(new):
            facts: dict[str, Json] = {"documents": [one.json() for one in part], "over": seen, "who": who}
            refuse = partial(_refuse_newer, frozenset(one.id for one in part))
            made = decisions.make(self.state, open_store, DOCUMENTS, facts, after=self.number, unless=refuse)
            self._own.add(made.number)
            self.update()
        return len(new)

    # Making

    def update(self) -> None:
        """Bring the table up to date with the version, the list of targets and the decisions."""
        version = self._sources.published()
        name, stamp = version.name if version else "", str(self.state.changed(f"{decisions.FOLDER}/{DOCUMENTS}"))
        now = {"version": name, "targets": self._sources.targets, "stamp": stamp}
        is_newest = not self.state.stat(decisions.path_of(DOCUMENTS, self.number + 1))  # a stamp may stand for two
        if is_newest and all(self._known(key) == value for key, value in now.items()):
            return
        with self._writing():
            is_first = not self._known("version")
            self._apply_decisions()
            if self._known("version") != name:
                self._apply_version(version, is_whole=is_first)
            if self._known("targets") != self._sources.targets:
                self._apply_targets()
            for key, value in now.items():
                self._note(key, value)
            if is_first:
                for index, columns in _INDEXES.items():
                    self.database.execute(f"CREATE INDEX IF NOT EXISTS {index} ON document {columns}")

    def _apply_decisions(self) -> None:
        """Put in the decisions that are newer than the last one that it has; all, if that one is another one now."""
        last = self.number
        newer = decisions.read(self.state, DOCUMENTS, after=last)  # names a missing one as missing
        if last and self._known("digest") != _digest(decisions.read_one(self.state, DOCUMENTS, last)):
            log.warning("documents: decision %d is another one than before; all of them are read", last)
            ids = [row[0] for row in self.database.execute("SELECT id FROM decided")]
            self.database.execute("DELETE FROM decided")
            self.database.execute("DELETE FROM history")
            for document_id in ids:
                self._put_again(document_id)
            newer = decisions.read(self.state, DOCUMENTS)
        for one in newer:
            for said in decided.parse(one):
                then = self.decided(said.id).after(said, one.number, one.time)
                self.database.execute("REPLACE INTO decided VALUES (?, ?)", (said.id, msgspec.json.encode(then)))
                self.database.execute("INSERT OR IGNORE INTO history VALUES (?, ?)", (said.id, one.number))
                self._put_again(said.id)
            self._note("decision", str(one.number))
            self._note("digest", _digest(one))

    def _put_again(self, document_id: str) -> None:
        asked = "SELECT entry FROM entry JOIN document USING (number) WHERE id = ?"
        if found := self.database.execute(asked, (document_id,)).fetchone():
            self._put(msgspec.json.decode(found[0], type=Entry))

    def _apply_version(self, version: PublishedEntries | None, *, is_whole: bool) -> None:
        changed = version.changed(self._known("version")) if version and not is_whole else None
        if changed is not None:
            for document_id, entry in changed:
                if entry:
                    self._put(entry)
                else:
                    self._remove("= ?", (document_id,))
            return
        self.database.execute("CREATE TEMP TABLE seen (id TEXT PRIMARY KEY) WITHOUT ROWID")
        for entry in version.entries() if version else ():
            self._put(entry)
            self.database.execute("INSERT INTO seen VALUES (?)", (entry.id,))
        self._remove("NOT IN (SELECT id FROM seen)")
        self.database.execute("DROP TABLE seen")

    def _apply_targets(self) -> None:
        """Find the target of each document in another list."""
        rows = self.database.execute("SELECT number, target, entry FROM document JOIN entry USING (number)")
        moved = list[tuple[str, int]]()
        for number, target, data in rows:
            entry = msgspec.json.decode(data, type=Entry)
            if (found := self._target(entry, self.decided(entry.id))) != target:
                moved.append((found, number))
        self.database.executemany("UPDATE document SET target = ? WHERE number = ?", moved)

    def _target(self, entry: Entry, said: DecidedDocument) -> str:
        return said.fields[TARGET] if TARGET in said.fields else self._sources.watched().target_of(said.over(entry))

    def _put(self, entry: Entry) -> None:
        """Put an entry in, in place of the one of its id."""
        said = self.decided(entry.id)
        shown = said.over(entry)
        row = (
            entry.id, shown.shown("publication_date")[:10], entry.first_seen, said.status, self._target(entry, said),
            family(entry.type), urlkey(entry.urls[0]),
            "".join(filter(str.isdecimal, said.time)) or entry.first_seen, entry.version_of,
        )  # fmt: skip
        number = self.database.execute(_PUT, row).fetchone()[0]
        self.database.execute("REPLACE INTO entry VALUES (?, ?)", (number, msgspec.json.encode(entry)))
        self.database.execute("DELETE FROM words WHERE rowid = ?", (number,))
        words = (text.part(one[:LONGEST]) for one in (shown.shown("title"), shown.shown("publisher"), entry.urls[0]))
        self.database.execute("INSERT INTO words (rowid, title, publisher, url) VALUES (?, ?, ?, ?)", (number, *words))
        keys = ((urlkey(url), number) for url in entry.urls)
        self.database.executemany("INSERT OR IGNORE INTO address VALUES (?, ?)", keys)

    def _remove(self, which: str, values: Sequence[str] = ()) -> None:
        asked = f"SELECT number, entry FROM document JOIN entry USING (number) WHERE id {which}"  # noqa: S608
        for number, data in self.database.execute(asked, values).fetchall():
            for url in msgspec.json.decode(data, type=Entry).urls:
                self.database.execute("DELETE FROM address WHERE key = ? AND number = ?", (urlkey(url), number))
            for table, column in (("document", "number"), ("entry", "number"), ("words", "rowid")):
                self.database.execute(f"DELETE FROM {table} WHERE {column} = ?", (number,))  # noqa: S608

    def _known(self, name: str) -> str:
        found = self.database.execute("SELECT value FROM known WHERE name = ?", (name,)).fetchone()
        return str(found[0]) if found else ""

    def _note(self, name: str, value: str) -> None:
        self.database.execute("REPLACE INTO known VALUES (?, ?)", (name, value))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction: all of it is done, or nothing. Writers wait for each other."""
        self.database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.database.execute("ROLLBACK")
            raise
        self.database.execute("COMMIT")


@contextmanager
def opened(sources: DeskSources) -> Iterator[Desk]:
    """The desk, up to date. One that is damaged is made anew."""
    path = sources.index.real(PATH)
    sources.index.names("documents")  # Unavailable if the root is away: no folder is made in its place
    with _errors():
        try:
            database = _ready(path)
            Desk(sources, database).update()
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
            log.warning("index:%s: %s; it is made anew", PATH, error)
            for end in ("", "-wal", "-shm"):
                path.with_name(f"{path.name}{end}").unlink(missing_ok=True)
            database = _ready(path)
            Desk(sources, database).update()
    with closing(database), _errors(of_disk=False):  # the disk of who uses it is another's
        yield Desk(sources, database)


def _ready(path: Path) -> sqlite3.Connection:
    """The database with its tables."""
    with suppress(FileExistsError):
        path.parent.mkdir()
    database = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    if (found := database.execute("PRAGMA user_version").fetchone()[0]) == _VERSION:
        return database
    if found:
        database.close()
        raise sqlite3.DatabaseError(f"its tables are of version {found}, not {_VERSION}")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("BEGIN IMMEDIATE")
    if not database.execute("PRAGMA user_version").fetchone()[0]:
        for statement in _TABLES.split(";"):
            database.execute(statement)
        database.execute(f"PRAGMA user_version = {_VERSION}")
    database.execute("COMMIT")
    return database


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in _DAMAGED  # the rest is a detail of it


@contextmanager
def _errors(*, of_disk: bool = True) -> Iterator[None]:
    """Errors of SQLite as ours, and those of the disk."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise Busy(f"a change of index:{PATH}") from error
        raise Unavailable(f"index:{PATH}", str(error)) from error
    except OSError as error:
        if not of_disk:
            raise
        raise Unavailable(f"index:{PATH}", error.strerror or str(error)) from error


def _digest(one: RecordedDecision) -> str:
    return sha256(one.encode()).hexdigest()


def _refuse_newer(ids: frozenset[str], made: Sequence[RecordedDecision]) -> None:
    for one in made:
        for said in decided.parse(one):
            if said.id in ids:
                raise _newer(one, said.id)


def _newer(one: RecordedDecision, document_id: str) -> Conflict:
    said = next((said for said in decided.parse(one) if said.id == document_id), None)
    by = decided.author(one) or "somebody"
    what = f"{by} has decided meanwhile, as decision {one.number} of {one.time}: {said.words if said else ''}"
    return Conflict(f"document {document_id[:16]}", f"{what}. Nothing was written; look at it, then decide again")
