"""The catalogue: `{index}/catalogue.sqlite`, the rows of every SIP that has its 08. Writes to it alone.

It is made from markers alone. It is never backed up, and never the authority: deleted, it is rebuilt equal, row by row.
So it has no numbers of its own, and no times but those of markers. Writers wait for each other; the file is on a disk
of one host.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from warcmill import layout
from warcmill.errors import BadInput, Busy, NotReady, Unavailable
from warcmill.formats.sip import ark
from warcmill.launches import holdings
from warcmill.launches.holdings import StageHoldings
from warcmill.markers.claim import Evidence
from warcmill.markers.facts.package import GivenArks, Packaged
from warcmill.markers.state import MarkerStore
from warcmill.model import Key, Launch, Stage
from warcmill.package import identifiers
from warcmill.package.identifiers import GIVE
from warcmill.package.sips import BUILD
from warcmill.package.submit import SUBMIT
from warcmill.package.verify import VERIFY

NAME: Final = "catalogue.sqlite"
PATIENCE: Final = 60.0  # seconds to wait for another writer
REBUILD: Final = "warcmill catalogue rebuild"
_VERSION: Final = 1  # of the tables: of another version, it is made anew
_SIP: Final = ("job", "launch_id", "sip")
TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "sips": (*_SIP, "name", "path", "size", "sha512", "form", "covers", "before", "state", "claim"),
    "warcs": (*_SIP, "stage", "name", "word", "path", "size", "sha512"),
    "arks": (*_SIP, "ark", "path", "name"),
    "events": (*_SIP, "marker", "task", "stage", "claim", "host", "started", "finished"),
}
_KEYS: Final = {
    "sips": _SIP,
    "warcs": (*_SIP, "stage", "name", "path", "size"),
    "arks": (*_SIP, "ark", "path"),
    "events": (*_SIP, "marker"),
}
_INDEXES: Final = ("warcs (name)", "warcs (sha512)", "arks (ark)")
_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_SCHEMA)


class Catalogue:
    """The catalogue in an index folder."""

    def __init__(self, index: Path) -> None:
        self.path = index / NAME

    def write(self, rows: RowSet) -> None:
        """Put the rows of one SIP in, in place of those that it had. Durable when this returns."""
        with self._writing() as database:
            _remove(database, rows)
            _insert(database, rows)

    def rebuild(self, rows: Iterable[RowSet]) -> int:
        """Put these rows in place of all; return how many SIPs.

        A file that is damaged is removed first. SQLite notices that, and fails another writer that has it open.
        """
        if not self._is_sound():
            for name in (NAME, f"{NAME}-journal"):
                self.path.with_name(name).unlink(missing_ok=True)
        with self._writing() as database:
            for table in TABLES:
                database.execute(f"DELETE FROM {table}")  # noqa: S608 - no text from outside is in any statement
            sips = 0
            for one in rows:
                _insert(database, one)
                sips += 1
        return sips

    def of_launch(self, launch: Launch) -> dict[str, tuple[str, str]]:
        """The SIPs of a launch that it has: by stage, the state and the digest of the claim of 05."""
        with self.reading() as database:
            found = database.execute(
                "SELECT sip, state, claim FROM sips WHERE job = ? AND launch_id = ?", (launch.job, launch.id)
            )
            return {str(sip): (str(state), str(claim)) for sip, state, claim in found}

    def check(self) -> int:
        """Read it whole; return how many SIPs it has. NotReady when there is none, BadInput when it is damaged."""
        with self.reading() as database:
            (answer,) = database.execute("PRAGMA quick_check(1)").fetchone()
            if answer != "ok":
                raise self._damaged(str(answer))
            return int(database.execute("SELECT count(*) FROM sips").fetchone()[0])

    def rows(self) -> Iterator[tuple[str, Row]]:
        """Every row with its table, in order."""
        with self.reading() as database:
            for table, columns in TABLES.items():
                for row in database.execute(f"SELECT * FROM {table} ORDER BY {', '.join(columns)}"):  # noqa: S608
                    yield table, tuple(row)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The database, to be read only. NotReady when there is none."""
        if not self._is_there():
            raise NotReady(f"index:{NAME}", f"there is no catalogue yet; '{REBUILD}' makes it from the markers")
        with self._errors(), closing(_connect(f"{self.path.as_uri()}?mode=ro")) as database:
            self._check_tables(database)
            yield database

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """The database in a transaction: all of it is done, or nothing."""
        with self._errors(), closing(_connect(f"{self.path.as_uri()}?mode=rwc")) as database:
            database.execute("BEGIN IMMEDIATE")
            if not _version(database):
                _make(database)
            self._check_tables(database)
            yield database
            database.execute("COMMIT")

    def _check_tables(self, database: sqlite3.Connection) -> None:
        if (found := _version(database)) != _VERSION:
            raise self._damaged(f"its tables are of version {found}, not {_VERSION}")
        there = {str(name) for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if lacks := sorted(TABLES.keys() - there):
            raise self._damaged(f"it has no table {lacks[0]}")

    def _is_sound(self) -> bool:
        try:
            self.check()
        except NotReady:
            return True
        except BadInput:
            return False
        return True

    def _is_there(self) -> bool:
        try:
            self.path.stat()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise Unavailable(f"index:{NAME}", f"{error.strerror} ({self.path})") from error
        return True

    def _damaged(self, why: str) -> BadInput:
        return BadInput(f"index:{NAME}", f"{why}; '{REBUILD}' makes it anew from the markers")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Errors of SQLite as ours."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # the rest is a detail of it
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise Busy(f"a change of index:{NAME}") from error
            if code in _DAMAGED:
                raise self._damaged(str(error)) from error
            raise Unavailable(f"index:{NAME}", f"{error} ({self.path})") from error


def _connect(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None)


def _version(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def _make(database: sqlite3.Connection) -> None:
    for table, columns in TABLES.items():
        key = ", ".join(_KEYS[table])
        database.execute(f"CREATE TABLE {table} ({', '.join(columns)}, PRIMARY KEY ({key})) WITHOUT ROWID")
    for number, place in enumerate(_INDEXES):
        database.execute(f"CREATE INDEX by_{number} ON {place}")
    database.execute(f"PRAGMA user_version = {_VERSION}")


def _remove(database: sqlite3.Connection, rows: RowSet) -> None:
    of_sip = (rows.launch.job, rows.launch.id, str(rows.stage))
    for table in TABLES:
        database.execute(f"DELETE FROM {table} WHERE job = ? AND launch_id = ? AND sip = ?", of_sip)  # noqa: S608


def _insert(database: sqlite3.Connection, rows: RowSet) -> None:
    parts = {"sips": rows.sips, "warcs": rows.warcs, "arks": rows.arks, "events": rows.events}
    for table, columns in TABLES.items():
        marks = ", ".join("?" * len(columns))
        database.executemany(f"INSERT INTO {table} VALUES ({marks})", parts[table])  # noqa: S608


NOT_STORED: Final = "not stored"  # the word of a WARC whose name the store cannot have
_STATES: Final = {BUILD: "packaged", SUBMIT: "submitted", VERIFY: "verified"}  # the last one that is there
STATES: Final = tuple(_STATES.values())
Row = tuple[str | int, ...]


class RowSet(Struct, frozen=True):
    """The rows of one SIP by table, as `catalogue.TABLES` names their columns."""

    launch: Launch
    stage: Stage
    sips: tuple[Row, ...]
    warcs: tuple[Row, ...]
    arks: tuple[Row, ...]
    events: tuple[Row, ...]


def row_set(state: MarkerStore, launch: Launch, stage: Stage) -> RowSet:
    """Return the rows of a SIP. NotReady without its 05, or a marker of a stage that it covers."""
    built = state.require(layout.key(BUILD, launch, stage=stage))
    facts = Packaged.from_claim(built.claim)
    proofs = [built, *_later(state, launch, stage)]
    name, (word, claim) = layout.sip_name(launch, facts.sip.path), _standing(proofs)
    held = [holdings.of_stage(state, launch, covered) for covered in facts.covers]

    def rows(some: Iterable[Row]) -> tuple[Row, ...]:
        return tuple(sorted({(launch.job, launch.id, str(stage), *row) for row in some}))

    file = facts.sip.path, facts.sip.size, str(facts.sip.sha512)
    sip = name, *file, facts.form, " ".join(map(str, facts.covers)), str(facts.before or ""), word, claim
    return RowSet(
        launch,
        stage,
        rows([sip]),
        rows(row for one in held for row in _warcs(one)),
        rows(_arks(state, held, facts, name, identifiers.zone_of(state, launch, stage, facts))),
        rows(_events(state, proofs)),
    )


def standing(state: MarkerStore, launch: Launch, stage: Stage) -> tuple[str, str] | None:
    """The state of a SIP and the digest of the claim of its 05, as its row has them; None without a 05."""
    built = state.read(layout.key(BUILD, launch, stage=stage))
    return _standing([built, *_later(state, launch, stage)]) if built else None


def _standing(proofs: list[Evidence]) -> tuple[str, str]:
    return _STATES[proofs[-1].claim.key.task], proofs[0].digest


def _later(state: MarkerStore, launch: Launch, stage: Stage) -> Iterator[Evidence]:
    """The proofs that came after 05, in order."""
    for task in list(_STATES)[1:]:
        if marker := state.read(layout.key(task, launch, stage=stage)):
            yield marker


def _warcs(held: StageHoldings) -> Iterator[Row]:
    for one in held.holdings:
        yield str(held.stage), one.name, str(one.word), one.stored.path, one.stored.size, str(one.stored.sha512)
    for left in held.unstored:
        yield str(held.stage), left.name, NOT_STORED, "", left.size, ""


def _arks(
    state: MarkerStore, held: list[StageHoldings], sip: Packaged, name: str, zone: tuple[str, str] | None
) -> Iterator[Row]:
    """The ARK of the SIP, and those of its files: as a minter gave them, or derived, stage by stage."""
    if sip.ark:
        yield sip.ark, sip.sip.path, name
    for one in held:
        given = state.read(layout.key(GIVE, one.launch, stage=one.stage))
        known = GivenArks.from_claim(given.claim).files if given else {}
        files = [(holding.name, holding.stored) for holding in one.holdings]
        for own, stored in (*files, *((file.name, file) for file in one.logs)):
            if found := known.get((stored.path, stored.sha512)):
                yield found, stored.path, own
            elif given is None and zone:
                derived = ark.derived(*zone, one.launch.job, one.launch.id, own, str(stored.sha512))
                yield derived, stored.path, own


def _events(state: MarkerStore, proofs: list[Evidence]) -> Iterator[Row]:
    """An event for each marker that the proofs rest on, directly or not, and for themselves."""
    met: dict[str, Evidence | None] = {}
    waiting = [layout.marker_path(proof.claim.key) for proof in proofs]
    while waiting:
        path = waiting.pop()
        if path in met:
            continue
        key = layout.parse_marker_path(path)
        met[path] = marker = state.read(key) if key else None
        waiting += [source.marker for source in marker.claim.inputs] if marker else []
    for path, marker in met.items():
        if marker:
            run = state.run_of(marker)
            done = run.host, run.started, run.finished
            yield path, marker.claim.key.task, _stage(marker.claim.key), marker.digest, *done


def _stage(key: Key) -> str:
    return dict(key.params).get("stage", "")
