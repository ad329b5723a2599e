"""The register of a launch's files: which there are, and how long each is by what was committed last.

It is a small database on the machine that has the files, whatever form the frontier has. Beside a frontier of SQLite it
is in that one's database, so one transaction has what was found and the lengths of the files that record it. It also
has the places of records by which the launch answers a browser: a page that is rendered asks for much that was fetched.
"""

from __future__ import annotations

import sqlite3
import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from warcmill.crawl.frontier import Intake, Offered
from warcmill.crawl.frontier.database import examine, transaction
from warcmill.crawl.policies.owners import HeardOwners
from warcmill.crawl.uri import Uri, digest
from warcmill.formats.logs.bounds import BoundTally
from warcmill.formats.warc.writer import RecordPlace

FED: Final = "fed"
"""The number that is kept of how far the job's feed of requests was read."""

_HANDED = "CREATE TABLE IF NOT EXISTS handed (uri BLOB PRIMARY KEY) WITHOUT ROWID"
_PLACES = (
    "CREATE TABLE IF NOT EXISTS places (uri BLOB PRIMARY KEY, name TEXT NOT NULL, offset INTEGER NOT NULL,"
    " length INTEGER NOT NULL) WITHOUT ROWID"
)


class KnownFile(NamedTuple):
    """A file by its final name: `folder` is `warcs` or `logs`, `length` is its length at the last commit."""

    name: str
    folder: str
    length: int


class Register:
    """The register in the database at `path`. Its calls are made on one thread at a time; within a transaction of the
    caller they are part of it, else each has its own. `is_shared`: the frontier is elsewhere, and hears the journal."""

    def __init__(self, db: sqlite3.Connection, path: Path, is_shared: bool = False) -> None:
        self._db, self._path, self.is_shared = db, path, is_shared

    def disconnect(self) -> None:
        """Close the database, unless the frontier is in it too."""
        self._db.close()

    @property
    def launch(self) -> str:
        """The launch that it was last open for; '' before the first."""
        return str(self._about("launch") or "")

    @property
    def is_clean(self) -> bool:
        """True if the files of that launch were closed."""
        return bool(self._about("clean"))

    @property
    def rotating(self) -> str:
        """The stage that logs are being renamed for; '' without one."""
        return str(self._about("rotating") or "")

    @property
    def writer(self) -> str:
        """The name by which a shared frontier knows this register: made once, by chance. A new register is another."""
        if not (name := self._about("writer")):
            name = uuid.uuid4().hex
            with self.whole():
                self._put("writer", name)
        return str(name)

    @property
    def group(self) -> int:
        """The number of the last group of the journal, over all launches; 0: they are not numbered."""
        return int(str(self._about("group") or 0))

    def next_group(self) -> Mapping[str, str | int | float]:
        """Return what the end of a group of the journal names besides files: how far the feed of requests was read; for
        a shared frontier that is to hear it, its number, its writer, and when it was written."""
        fed = self.number(FED)
        if not self.is_shared:
            return {FED: fed} if fed else {}
        number = self.group + 1
        self._put("group", number)
        at = round(time.time(), 3)
        return {"group": number, "writer": self.writer, "at": at, **({FED: fed} if fed else {})}

    def restore_group(self, writer: str, number: int) -> None:
        """Note who wrote the last group of a journal, and its number."""
        with self.whole():
            self._put("writer", writer)
            self._put("group", number)

    def restore_fed(self, number: int) -> None:
        """Note how far the feed was read when a group was written; 0: it had not been."""
        if number:
            self.keep_number(FED, number)

    def examine(self) -> None:
        """Read all of the database; BadInput when it is damaged."""
        examine(self._db, self._path)

    def begin(self, launch: str, *, has_places: bool = False) -> None:
        """Begin with a launch that has no files yet. `has_places`: the records of the one before answer its browser."""
        with self.whole():
            self._db.execute("DELETE FROM files")
            if not has_places:
                self._db.execute("DROP TABLE IF EXISTS places")
            self._db.execute("DELETE FROM about WHERE name IN ('rotating', 'bounds')")
            self._put("launch", launch)

    def open(self) -> None:
        """Note that the files are open: from now on a kill leaves them longer than they are known to be."""
        with self.whole():
            self._db.execute("DELETE FROM about WHERE name = 'clean'")
            self._db.execute(_PLACES)

    def close(self) -> None:
        """Note that the files were closed."""
        with self.whole():
            self._put("clean", 1)

    def files(self) -> list[KnownFile]:
        """Return the files of the launch, in the order of their folders and names; a WARC without `.open`."""
        rows = self._db.execute("SELECT name, folder, length FROM files ORDER BY folder, name")
        return [KnownFile(*row) for row in rows]

    def put(self, folder: str, lengths: Mapping[str, int]) -> None:
        """Note how long files are."""
        with self.whole():
            rows = [(name, folder, length) for name, length in lengths.items()]
            self._db.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", rows)

    def keep_places(self, places: Mapping[bytes, RecordPlace], gone: Collection[bytes] = ()) -> None:
        """Note the records of URIs, by their digests; the newest of each counts. Forget the `gone`."""
        with self.whole():
            rows = [(uri, place.name, place.offset, place.length) for uri, place in places.items()]
            self._db.executemany("INSERT OR REPLACE INTO places VALUES (?, ?, ?, ?)", rows)
            self._db.executemany("DELETE FROM places WHERE uri = ?", [(uri,) for uri in gone])

    def place(self, uri: bytes) -> RecordPlace | None:
        """Return the record of a URI, by its digest; None when none was noted in this launch."""
        row = self._db.execute("SELECT name, offset, length FROM places WHERE uri = ?", (uri,)).fetchone()
        return RecordPlace(*row) if row else None

    def hand_over(self, owners: HeardOwners, uris: Sequence[Uri], answers: list[Offered]) -> None:
        """Answer those of some offers that are handed over: each once."""
        with self.whole():
            hand_over(owners, self._db, uris, answers)

    def begin_rotation(self, stage: str) -> None:
        """Note that logs are being renamed for a stage."""
        with self.whole():
            self._put("rotating", stage)

    def end_rotation(self, names: Mapping[str, str]) -> None:
        """Note that logs were renamed: the new names by the old ones."""
        with self.whole():
            self._db.executemany("UPDATE files SET name = ? WHERE name = ?", [(new, old) for old, new in names.items()])
            self._db.execute("DELETE FROM about WHERE name = 'rotating'")

    def number(self, name: str) -> int:
        """Return a number that was kept, over all launches; 0 if it was never kept."""
        return int(str(self._about(name) or 0))

    def keep_number(self, name: str, value: int) -> None:
        """Keep a number."""
        with self.whole():
            self._put(name, value)

    def left_out(self) -> BoundTally:
        """Return what bounds have left out of the launch."""
        kept = self._about("bounds")
        return msgspec.json.decode(str(kept), type=BoundTally) if kept else BoundTally()

    def keep_left_out(self, tally: BoundTally) -> None:
        """Note what bounds have left out."""
        with self.whole():
            self._put("bounds", msgspec.json.encode(tally).decode())

    def _about(self, name: str) -> object:
        row = self._db.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def _put(self, name: str, value: object) -> None:
        self._db.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, value))

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Keep all notes made within, or, on an error, no note."""
        if self._db.in_transaction:
            yield
        else:
            with transaction(self._db, self._path):
                yield


def hand_over(owners: HeardOwners, db: sqlite3.Connection, uris: Sequence[Uri], answers: list[Offered]) -> None:
    """Answer those of some offers that are taken, and of a host that is not surely ours. `db` has what was handed over
    before, within a transaction of the caller."""
    others = [
        place
        for place, answer in enumerate(answers)
        if answer.answer is Intake.NEW and not owners.is_ours(uris[place].uri)
    ]
    if others:
        db.execute(_HANDED)
    for place in others:
        name = digest(uris[place].crawl, uris[place].key)
        is_new = db.execute("INSERT OR IGNORE INTO handed VALUES (?)", (name,)).rowcount == 1
        answers[place] = Offered(Intake.HANDED if is_new else Intake.SEEN)
