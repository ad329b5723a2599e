"""Documents for others: Solr and W3ACT have what the desk has, with each decision. Writes to them, and notes.

    {index}/documents/{sink}.sqlite    what each has acknowledged: the digest of a document as it was sent, by id

A document is noted as begun before it is sent, and acknowledged after the answer: killed at any moment, the next run
sends it again, or takes away what came of it. A document that leaves the desk, as it is hidden, is withdrawn. A file
that is lost costs only that all is sent again; but what was to be withdrawn is not known then, so empty the sink too.

Solr has every document. W3ACT has those of a target, as each of its documents has one; it deletes nothing, so what is
withdrawn there gets the status DELETED.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from hashlib import sha256
from typing import Final, NamedTuple, Protocol

from warcmill.clients.solr import Solr
from warcmill.clients.w3act import W3act
from warcmill.documents.decided import DELETED
from warcmill.documents.desk import Desk, DeskDocument, family
from warcmill.errors import BadInput, Unavailable, WarcmillError
from warcmill.formats.index.urlkey import urlkey
from warcmill.model import Json
from warcmill.stores import LocalStore

AT_ONCE: Final = 500  # documents of a POST
SHOWN: Final = 3  # refused documents in a message
LONGEST_TERM: Final = 8_000  # characters of a text that Solr finds as a whole: Lucene's limit is 32,766 bytes
_TABLES: Final = """
    -- With '' as its digest a document was begun: the sink may have it.
    CREATE TABLE IF NOT EXISTS sent (id TEXT PRIMARY KEY, digest TEXT NOT NULL, url TEXT, time TEXT) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS known (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
log = logging.getLogger(__name__)
Fields = Mapping[str, Json]


class SentDocument(NamedTuple):
    """A document that a sink has, or may have: by its id, and by its URL and time."""

    id: str
    url: str
    time: str


class DocumentSink(Protocol):
    """A server that has documents of the desk."""

    @property
    def name(self) -> str:
        """The name of its notes: another one for another server."""
        ...

    @property
    def place(self) -> str:
        """The name that operators have for it."""
        ...

    def fields(self, one: DeskDocument) -> Fields | None:
        """A document as it is sent; None for one that this sink does not get."""
        ...

    def has_lost(self, sent: int) -> bool:
        """True if it has fewer documents than it acknowledged, as far as that can be asked."""
        ...

    def post(self, documents: Sequence[Fields]) -> Mapping[str, str]:
        """Send some, in place of those of the same id. Returns why it refuses some, by id."""
        ...

    def withdraw(self, gone: Sequence[SentDocument]) -> None:
        """Take some away."""
        ...


class SolrDocuments:
    """A core of Solr, with the schema of config/solr/documents, as a sink."""

    def __init__(self, solr: Solr, core: str) -> None:
        self._solr, self._core, self.place = solr, core, f"Solr at {solr.name(core)}"
        self.name = _named("solr", solr.name(core))

    def fields(self, one: DeskDocument) -> Fields | None:
        found = {**one.json(), "family": family(one.entry.type)}
        found["surt"] = [urlkey(url)[:LONGEST_TERM] for url in one.entry.urls]
        for name in ("document_url", "landing_page_url", "filename", "doi", "isbn", "publication_date", "target_id"):
            found[name] = str(found[name])[:LONGEST_TERM]
        found["urls"] = [url[:LONGEST_TERM] for url in one.entry.urls]
        return {name: value for name, value in found.items() if value not in ("", [])}

    def has_lost(self, sent: int) -> bool:
        return self._solr.count(self._core) < sent

    def post(self, documents: Sequence[Fields]) -> Mapping[str, str]:
        refused = self._solr.post(self._core, documents)
        self._solr.commit(self._core)
        return {one.id: one.why for one in refused}

    def withdraw(self, gone: Sequence[SentDocument]) -> None:
        self._solr.delete(self._core, [one.id for one in gone])
        self._solr.commit(self._core)


class W3actDocuments:
    """W3ACT as a sink."""

    def __init__(self, w3act: W3act) -> None:
        self._w3act, self.place, self.name = w3act, f"W3ACT {w3act.url}", _named("w3act", w3act.url)

    def fields(self, one: DeskDocument) -> Fields | None:
        if not one.target:
            return None
        target: Json = int(one.target) if one.target.isascii() and one.target.isdigit() else one.target
        return {**one.json(), "id_watched_target": target, "sha256": one.entry.id}

    def has_lost(self, sent: int) -> bool:  # noqa: ARG002 it has no count of ours
        return False

    def post(self, documents: Sequence[Fields]) -> Mapping[str, str]:
        refused: dict[str, str] = {}
        try:
            self._w3act.post(documents)
        except BadInput as error:  # of which one is not said
            if len(documents) == 1:
                return {str(documents[0]["id"]): error.why}
            half = len(documents) // 2
            refused = {**self.post(documents[:half]), **self.post(documents[half:])}
        return refused

    def withdraw(self, gone: Sequence[SentDocument]) -> None:
        self._w3act.post([
            {"id": one.id, "sha256": one.id, "document_url": one.url, "wayback_timestamp": one.time, "status": DELETED}
            for one in gone
        ])  # fmt: skip


def bring(index: LocalStore, desk: Desk, sink: DocumentSink) -> tuple[str, ...]:
    """Have a sink have what the desk has. Returns what went wrong, of which nothing is lost: the next run tries again.

    With nothing new nothing is sent.
    """
    path = index.real(f"documents/{sink.name}.sqlite")
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.executescript(f"PRAGMA journal_mode = WAL; {_TABLES}")
            return tuple(_Bringing(desk, sink, database).run())
    except sqlite3.DatabaseError as error:
        what = f"index:documents/{path.name}"
        raise Unavailable(what, f"{error}; empty {sink.place}, and remove this file: all is sent again") from error


class _Bringing:
    def __init__(self, desk: Desk, sink: DocumentSink, database: sqlite3.Connection) -> None:
        self._desk, self._sink, self._database, self._do = desk, sink, database, database.execute

    def run(self) -> Iterator[str]:
        try:
            if self._sink.has_lost(self._do("SELECT count(*) FROM sent WHERE digest != ''").fetchone()[0]):
                log.warning("%s has lost documents, or may have: all are sent again", self._sink.place)
                self._do("UPDATE sent SET digest = ''")
            elif self._state() == self._do("SELECT max(value) FROM known WHERE name = 'state'").fetchone()[0]:
                return
            refused = self._send()
            self._withdraw()
        except Unavailable as error:
            yield f"{error}; the next scan sends what is missing"
            return
        except WarcmillError as error:
            yield f"{self._sink.place}: {error}"
            return
        if refused:
            few = "; ".join(f"{name}: {why}" for name, why in list(refused.items())[:SHOWN])
            yield f"{self._sink.place}: {len(refused)} documents are refused: {few}"
            return
        self._do("REPLACE INTO known VALUES ('state', ?)", (self._state(),))

    def _state(self) -> str:
        return sha256(repr(self._desk.made_of()).encode()).hexdigest()

    def _send(self) -> dict[str, str]:
        """Send what the sink lacks; return what it refuses."""
        held, refused = list[tuple[Fields, str]](), dict[str, str]()
        self._do("CREATE TEMP TABLE wanted (id TEXT PRIMARY KEY) WITHOUT ROWID")
        sent = checked = 0
        for one in self._desk.documents():
            fields = self._sink.fields(one)
            if fields is None:
                continue
            checked += 1
            digest = sha256(json.dumps(fields, sort_keys=True).encode("utf-8", "replace")).hexdigest()
            self._do("INSERT INTO wanted VALUES (?)", (one.entry.id,))
            if self._do("SELECT 1 FROM sent WHERE id = ? AND digest = ?", (one.entry.id, digest)).fetchone() is None:
                held.append((fields, digest))
            if len(held) == AT_ONCE:
                refused |= self._post(held)
                sent += len(held)
                held.clear()
        refused |= self._post(held)
        if sent + len(held):
            log.info("%s: %d of %d documents were sent", self._sink.place, sent + len(held), checked)
        return refused

    def _post(self, held: Sequence[tuple[Fields, str]]) -> Mapping[str, str]:
        if not held:
            return {}
        rows = [(str(fields["id"]), fields["document_url"], fields["wayback_timestamp"]) for fields, _ in held]
        self._note("REPLACE INTO sent VALUES (?, '', ?, ?)", rows)
        refused = self._sink.post([fields for fields, _ in held])
        taken = [(digest, str(fields["id"])) for fields, digest in held if fields["id"] not in refused]
        self._note("UPDATE sent SET digest = ? WHERE id = ?", taken)
        return refused

    def _withdraw(self) -> None:
        """Take away what is no longer wanted."""
        asked = "SELECT id, url, time FROM sent WHERE id NOT IN (SELECT id FROM wanted) ORDER BY id LIMIT ?"
        while rows := self._do(asked, (AT_ONCE,)).fetchall():
            gone = [SentDocument(*row) for row in rows]
            self._sink.withdraw(gone)
            self._note("DELETE FROM sent WHERE id = ?", [(one.id,) for one in gone])
            log.info("%s: %d documents were withdrawn", self._sink.place, len(gone))

    def _note(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        """Change the notes: all of it, or nothing."""
        self._do("BEGIN IMMEDIATE")
        self._database.executemany(statement, rows)
        self._do("COMMIT")


def _named(kind: str, url: str) -> str:
    return f"{kind}-{sha256(url.encode()).hexdigest()[:12]}"
