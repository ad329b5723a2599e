"""The book of tasks: the fate of each task of a job's scripts, their newest results, and counts. Writes tasks.sqlite.

It is written after each commit, for pages and commands, and proves nothing: without it a crawl does the same. One that
is lost or damaged is begun anew, with the results of the job's logs; after a kill it takes those that it lacks. Pages
and commands read it while the crawl writes.
"""

from __future__ import annotations

import heapq
import json
import sqlite3
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from warcmill.errors import Unavailable
from warcmill.model import Json

NAME, SCHEMA = "tasks.sqlite", 1
MINUTE = 60
SPANS = {"5m": 5 * MINUTE, "1h": 60 * MINUTE, "1d": 24 * 60 * MINUTE}
KINDS = ("pending", "success", "retry", "failed")
STATUSES = ("active", "success", "failed")
LONGEST_LOG = 4096
MOST, LARGEST = 1000, 4 << 20  # rows, and letters of results, that are read at once
FOLD = 10  # minutes
LEAP = 1_000_000  # numbers of results that are left out where some may have been given by a book that was set back
_TABLES = """
CREATE TABLE tasks (script TEXT NOT NULL, taskid TEXT NOT NULL, url TEXT NOT NULL, callback TEXT NOT NULL,
    status TEXT NOT NULL, task TEXT NOT NULL, due REAL, changed REAL NOT NULL, http INTEGER, ms INTEGER, why TEXT,
    log TEXT, follows INTEGER, results INTEGER, warc TEXT, place INTEGER, retried INTEGER, uri TEXT,
    PRIMARY KEY (script, taskid)) WITHOUT ROWID;
CREATE TABLE results (number INTEGER PRIMARY KEY AUTOINCREMENT, script TEXT NOT NULL, taskid TEXT NOT NULL,
    url TEXT NOT NULL, result TEXT NOT NULL, updated INTEGER NOT NULL, warc TEXT, place INTEGER);
CREATE UNIQUE INDEX by_task ON results (script, taskid);
CREATE INDEX by_script ON results (script, number);
CREATE TABLE counts (script TEXT NOT NULL, minute INTEGER NOT NULL, kind TEXT NOT NULL, number INTEGER NOT NULL,
    PRIMARY KEY (script, minute, kind)) WITHOUT ROWID;
CREATE TABLE about (name TEXT PRIMARY KEY, value) WITHOUT ROWID
"""
# Three million tasks are looked at in no other order than these. A book of before has others.
_INDEXES = """
DROP INDEX IF EXISTS by_change;
DROP INDEX IF EXISTS by_due;
CREATE INDEX IF NOT EXISTS by_status ON tasks (script, status, changed);
CREATE INDEX IF NOT EXISTS by_wait ON tasks (script, max(coalesce(due, 0), changed)) WHERE status = 'active'
"""

_FORGET = tuple(f"DELETE FROM {table} WHERE script = ?" for table in ("tasks", "results", "counts"))  # noqa: S608 - ours
_COLUMNS = (
    "SELECT script, taskid, url, callback, status, task, due, changed, http, ms, why, log, follows, results, warc,"
    " place, retried, uri FROM tasks"
)
_NAMES = tuple(_COLUMNS.removeprefix("SELECT ").removesuffix(" FROM tasks").split(", "))
_SCRIPTS = (
    "WITH RECURSIVE names(script) AS (SELECT min(script) FROM tasks UNION ALL"
    " SELECT (SELECT min(script) FROM tasks WHERE script > names.script) FROM names WHERE names.script IS NOT NULL)"
    " SELECT script FROM names WHERE script IS NOT NULL"
)
_LATE = _SCRIPTS.replace(
    " SELECT script FROM names",
    " SELECT script, (SELECT max(coalesce(due, 0), changed) FROM tasks WHERE tasks.script = names.script"
    " AND status = 'active' ORDER BY max(coalesce(due, 0), changed) LIMIT 1) FROM names",
)
_NEWEST = "SELECT changed, script, taskid FROM tasks WHERE script = ? AND status = ? ORDER BY changed DESC LIMIT ?"
_PAGES = (
    f"{_COLUMNS} WHERE script = ? AND status = ? AND callback = ? AND warc != '' AND http = 200"
    " ORDER BY changed DESC LIMIT ?"
)
_NEXT = (
    "SELECT about.value, number, script, taskid, url, result, updated, warc, place FROM about CROSS JOIN results"
    " WHERE name = 'identity' AND number > CASE value WHEN ?1 THEN ?2 ELSE 0 END ORDER BY number LIMIT ?3"
)
_VISITED = "INSERT OR REPLACE INTO tasks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_WAITS = (
    f"{_VISITED.replace(' OR REPLACE', '')} ON CONFLICT DO UPDATE SET url = excluded.url, callback = excluded.callback,"
    " status = excluded.status, task = excluded.task, due = excluded.due, changed = excluded.changed,"
    " why = CASE excluded.why WHEN '' THEN why ELSE excluded.why END"
)
_RESULTS = "SELECT number, script, taskid, url, result, updated, warc, place FROM results WHERE number > ?"
_COUNTS = (
    "SELECT script, kind, sum(iif(minute >= ?1, number, 0)), sum(iif(minute >= ?2, number, 0)),"
    " sum(iif(minute >= ?3, number, 0)), sum(number) FROM counts GROUP BY script, kind"
)
# Counts that are over an hour old are by ten minutes, those over a day old are one: a job may run for years.
_FOLD = (
    "INSERT INTO counts SELECT script, iif(minute < ?1, 0, minute - minute % 10) AS since, kind, sum(number)"
    " FROM counts WHERE minute > 0 AND (minute < ?1 OR (minute < ?2 AND minute % 10 > 0))"
    " GROUP BY script, since, kind ON CONFLICT DO UPDATE SET number = number + excluded.number"
)
_UNFOLDED = "DELETE FROM counts WHERE minute > 0 AND (minute < ?1 OR (minute < ?2 AND minute % 10 > 0))"
_CALLBACKS = "SELECT DISTINCT callback FROM tasks WHERE script = ? AND warc != ''"


class TaskNote(Struct, frozen=True):
    """A task as its last visit has left it, or as it waits. `kind`: as which of KINDS it counts; '' for none. `uri` is
    that of its record, at the end of redirects. `http` is None for one that waits: what its last visit has left, such
    as its record, stays."""

    script: str
    taskid: str
    url: str
    callback: str
    status: str
    task: Mapping[str, Any]
    due: float | None = None
    kind: str = ""
    http: int | None = None
    ms: int | None = None
    why: str = ""
    log: str = ""
    follows: int = 0
    results: int = 0
    warc: str = ""
    place: int | None = None
    retried: int = 0
    uri: str = ""


class ResultNote(Struct, frozen=True):
    """A result of a script, with the record of its page."""

    script: str
    taskid: str
    url: str
    result: Json
    updated: int
    warc: str = ""
    place: int | None = None

    @property
    def answer(self) -> dict[str, Json]:
        """The result as commands and pages have it."""
        return {
            "offset": self.place, "result": self.result, "script": self.script, "taskid": self.taskid,
            "updatetime": self.updated, "url": self.url, "warc": self.warc or None,
        }  # fmt: skip


class ResultPlace(NamedTuple):
    """A place in the results of a book: behind the result of a number. Each book has an identity of its own."""

    book: str = ""
    number: int = 0


class TaskBook:
    """The book of a job's process, which alone writes it."""

    def __init__(self, state: Path) -> None:
        self.path = state / NAME
        self._db = _opened(self.path)
        self._folded = 0
        self._db.execute("INSERT OR IGNORE INTO about VALUES ('identity', ?)", (uuid.uuid4().hex,))

    def begin(self, launch: str, logs: Callable[[str], Iterable[Path]], scripts: Collection[str]) -> None:
        """Begin a launch: take the results of these scripts that the book lacks and logs have, of the launches from an
        id on: of all for a new book, else of those since one that did not end it in order."""
        with self._named():
            about = dict(self._db.execute("SELECT name, value FROM about WHERE name IN ('read', 'open')").fetchall())
        if "read" not in about or "open" in about:
            self._leap(is_new="open" not in about)
            for log in logs(str(about.get("open", "")) if "read" in about else ""):
                self._take(log, scripts)
        with self._named():
            self._db.execute("PRAGMA synchronous=FULL")  # a power cut must not take the mark away
            self._db.execute("INSERT OR REPLACE INTO about VALUES ('read', 1), ('open', ?)", (launch,))
            self._db.execute("PRAGMA synchronous=OFF")

    def _leap(self, *, is_new: bool) -> None:
        """Give no number of a result again that the book may have given before a power cut has set it back."""
        with self._named():
            (last,) = self._db.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = 'results'").fetchone()
            if last or not is_new:
                self._db.execute("DELETE FROM sqlite_sequence WHERE name = 'results'")
                self._db.execute("INSERT INTO sqlite_sequence VALUES ('results', ?)", ((last or 0) + LEAP,))

    def _take(self, log: Path, scripts: Collection[str]) -> None:
        """Note the results of a log that the book lacks. Of those that one visit has made, the last counts."""
        forgotten, found = self._forgotten(), list[ResultNote]()
        for _, same in groupby(results_of(log), lambda one: (one.script, one.taskid, one.updated, one.warc, one.place)):
            *_, one = same
            if one.script in scripts and one.updated > forgotten.get(one.script, -1) and self._lacks(one):
                found.append(one)
            if len(found) == MOST:
                self.note((), found)
                found = []
        self.note((), found)

    def _lacks(self, one: ResultNote) -> bool:
        query = "SELECT updated, warc, place FROM results WHERE script = ? AND taskid = ?"
        with self._named():
            row = self._db.execute(query, (one.script, one.taskid)).fetchone()
        return row is None or (row != (one.updated, one.warc, one.place) and row[0] <= one.updated)

    def _forgotten(self) -> dict[str, int]:
        """When scripts were forgotten, in seconds since 1970."""
        return dict(json.loads(self._kept("forgotten") or "{}"))

    def _kept(self, name: str) -> str | bytes:
        with self._named():
            row = self._db.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
        return row[0] if row else b""

    def note(self, tasks: Sequence[TaskNote], results: Sequence[ResultNote]) -> None:
        """Note tasks and results, in their order."""
        now = time.time()
        minute = int(now) // MINUTE
        with self._named():
            self._db.execute("BEGIN")
            for one in tasks:
                self._put(one, now)
            self._db.executemany(
                "INSERT INTO counts VALUES (?, ?, ?, 1) ON CONFLICT DO UPDATE SET number = number + 1",
                [(one.script, minute, one.kind) for one in tasks if one.kind],
            )
            self._db.executemany(
                "INSERT OR REPLACE INTO results (script, taskid, url, result, updated, warc, place)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (one.script, one.taskid, one.url, as_text(one.result), one.updated, one.warc, one.place)
                    for one in results
                ],
            )
            if minute // FOLD != self._folded:
                for statement in (_FOLD, _UNFOLDED):
                    self._db.execute(statement, (minute - SPANS["1d"] // MINUTE, minute - SPANS["1h"] // MINUTE - FOLD))
            self._db.execute("COMMIT")
            self._folded = minute // FOLD

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Name an error of the book; what was not committed is undone."""
        try:
            yield
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            if (getattr(error, "sqlite_errorcode", 0) & 0xFF) == sqlite3.SQLITE_CORRUPT:
                with suppress(sqlite3.Error):  # the next launch checks it
                    self._db.execute("DELETE FROM about WHERE name = 'boot'")
            raise Unavailable(str(self.path), f"{error}; the crawl continues without it") from error

    def _put(self, one: TaskNote, now: float) -> None:
        self._db.execute(
            _WAITS if one.http is None else _VISITED,
            (
                one.script, one.taskid, one.url, one.callback, one.status, as_text(one.task), one.due, now, one.http,
                one.ms, one.why, one.log[-LONGEST_LOG:], one.follows, one.results, one.warc, one.place,
                one.retried, one.uri,
            ),
        )  # fmt: skip

    def late(self, now: float) -> dict[str, float]:
        """The seconds for which the oldest task of each script that is due has waited."""
        with self._named():
            return _waits(self._db.execute(_LATE).fetchall(), now)

    @property
    def watch(self) -> tuple[str | bytes, str | bytes]:
        """The state of the watch, and its findings, as they were left."""
        return self._kept("watch"), self._kept("findings")

    def keep_watch(self, state: bytes, findings: Mapping[str, Sequence[Mapping[str, Json]]]) -> None:
        """Keep the state of the watch, and its findings by script."""
        rows = [("watch", state), ("findings", as_text(findings))]
        with self._named():
            self._db.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", rows)

    def forget(self, script: str, now: float) -> None:
        """Forget all of a script."""
        forgotten = {**self._forgotten(), script: int(now)}
        with self._named():
            self._db.execute("INSERT OR REPLACE INTO about VALUES ('forgotten', ?)", (as_text(forgotten),))
            for statement in _FORGET:
                self._db.execute(statement, (script,))

    def end(self) -> None:
        """End a launch all of whose results are noted."""
        with self._named():
            self._db.execute("DELETE FROM about WHERE name = 'open'")

    def close(self) -> None:
        """Close it."""
        self._db.close()


class TaskReader:
    """The book as pages and commands read it, while the crawl writes. It may be missing: then all is empty."""

    def __init__(self, state: Path) -> None:
        self.path = state / NAME

    def counts(self, now: float) -> dict[str, dict[str, dict[str, int]]]:
        """The counts of each script by span: 5m, 1h, 1d, all."""
        found: dict[str, dict[str, dict[str, int]]] = {}
        least = [int(now - seconds) // MINUTE for seconds in SPANS.values()]
        for script, kind, *numbers in self._rows(_COUNTS, *least):
            for span, number in zip((*SPANS, "all"), numbers, strict=True):
                found.setdefault(script, {}).setdefault(span, dict.fromkeys(KINDS, 0))[kind] = number
        return found

    def late(self, now: float) -> dict[str, float]:
        """The seconds for which the oldest task of each script that is due has waited."""
        return _waits(self._rows(_LATE), now)

    def tasks(self, script: str = "", *, status: str = "", limit: int = MOST) -> list[dict[str, Json]]:
        """The tasks that changed last."""
        with self._reading() as db:
            if db is None:
                return []
            scripts = [script] if script else [name for (name,) in db.execute(_SCRIPTS)]
            statuses = [status] if status else STATUSES
            places = (db.execute(_NEWEST, (name, one, limit)) for name in scripts for one in statuses)
            newest = heapq.nlargest(limit, (row for rows in places for row in rows))
            found = (db.execute(f"{_COLUMNS} WHERE script = ? AND taskid = ?", key).fetchone() for _, *key in newest)
            return [_task(row) for row in found if row]

    def task(self, script: str, taskid: str) -> dict[str, Json] | None:
        """One task; None if nobody knows it."""
        rows = self._rows(f"{_COLUMNS} WHERE script = ? AND taskid = ?", script, taskid)
        return next(map(_task, rows), None)

    def findings(self) -> dict[str, list[dict[str, Json]]]:
        """The findings of the watch, by script."""
        found: dict[str, list[dict[str, Json]]] = {}
        for (text,) in self._rows("SELECT value FROM about WHERE name = 'findings'"):
            found = json.loads(text)
        return found

    def results(self, script: str = "", after: int = 0) -> Iterator[tuple[int, ResultNote]]:
        """The results after a number, each with its own: the last of a task counts. Some at a time, however many."""
        query = f"{_RESULTS}{' AND script = ?' if script else ''} ORDER BY number"
        while rows := self._some(query, after, *([script] if script else [])):
            yield from ((number, _result(*columns)) for number, *columns in rows)
            after = rows[-1][0]

    def next_results(self, place: ResultPlace, limit: int) -> list[tuple[ResultPlace, ResultNote]]:
        """The next results behind a place, each with its own; behind a place in another book, from the beginning."""
        rows = self._rows(_NEXT, place.book, place.number, limit)
        return [
            (ResultPlace(book, number), _result(script, taskid, url, result, updated, warc, at))
            for book, number, script, taskid, url, result, updated, warc, at in rows
        ]

    def last(self, script: str, callback: str, limit: int) -> list[dict[str, Json]]:
        """The newest tasks of a callback whose pages are in a WARC."""
        rows = [row for one in ("active", "success") for row in self._rows(_PAGES, script, one, callback, limit)]
        return [_task(row) for row in heapq.nlargest(limit, rows, key=lambda row: float(row[_NAMES.index("changed")]))]

    def result(self, script: str, taskid: str) -> Json:
        """The newest result of a task; None if it has none."""
        rows = self._rows("SELECT result FROM results WHERE script = ? AND taskid = ?", script, taskid)
        return json.loads(rows[0][0]) if rows else None

    def callbacks(self, script: str) -> list[str]:
        """The callbacks that have read pages."""
        return [name for (name,) in self._rows(_CALLBACKS, script)]

    def _rows(self, query: str, *values: object) -> list[Any]:
        with self._reading() as db:
            return db.execute(query, values).fetchall() if db else []

    def _some(self, query: str, *values: object) -> list[Any]:
        """The first rows of results, and no more than the memory should hold."""
        found, letters = [], 0
        with self._reading() as db:
            for row in db.execute(query, values) if db else ():
                found.append(row)
                letters += len(row[4])
                if len(found) >= MOST or letters > LARGEST:
                    break
        return found

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        """The book, for a moment; None if it is missing."""
        if not self.path.exists():
            yield None
            return
        try:
            with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=5)) as db:
                yield db
        except sqlite3.Error as error:
            raise Unavailable(str(self.path), f"{error}; the job's next launch makes it anew") from error


def results_of(log: Path) -> Iterator[ResultNote]:
    """The results of a results.jsonl; a line that was cut is passed over."""
    with suppress(FileNotFoundError), log.open("rb") as stream:
        for raw in stream:
            try:
                line = json.loads(raw)
                value = line["value"]
                yield ResultNote(
                    value["script"], value["taskid"], value["url"], value["result"], int(value["updatetime"]),
                    line["warc"] or "", line["offset"],
                )  # fmt: skip
            except (ValueError, KeyError, TypeError):
                continue


def _opened(path: Path) -> sqlite3.Connection:
    """Open the book, or begin it: one that is damaged, or of another version, is of no use any more."""
    for is_last in (False, True):
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=OFF")
            (schema,) = db.execute("PRAGMA user_version").fetchone()
            (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if not tables:
                for statement in _TABLES.split(";\n"):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version={SCHEMA}")
            elif schema != SCHEMA or not _is_whole(db):
                raise sqlite3.DatabaseError("it is of another version, or damaged")
            for statement in _INDEXES.split(";\n"):
                db.execute(statement)
            db.execute("INSERT OR REPLACE INTO about VALUES ('boot', ?)", (_boot(),))
            return db
        except sqlite3.Error as error:
            db.close()
            if is_last:
                raise Unavailable(str(path), str(error)) from error
            for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
                path.with_name(name).unlink(missing_ok=True)
    raise AssertionError


def _is_whole(db: sqlite3.Connection) -> bool:
    """True for a book without damage. A killed process leaves it whole; only where the machine has gone down since may
    writes be lost, and all of it is read."""
    (known,) = db.execute("SELECT max(value) FROM about WHERE name = 'boot'").fetchone()
    if known and known == _boot():
        return True
    (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
    return bool(verdict == "ok")


def _boot() -> str:
    """The name of the run of this machine, '' if it has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def _waits(rows: Iterable[tuple[str, float | None]], now: float) -> dict[str, float]:
    return {script: now - since for script, since in rows if since is not None and since <= now}


def _task(row: Sequence[Any]) -> dict[str, Json]:
    found = dict(zip(_NAMES, row, strict=True))
    changed, due = int(found.pop("changed")), found.pop("due")
    return {
        **found, "due": int(due) if due else None, "task": json.loads(found["task"]), "updatetime": changed,
        "warc": found["warc"] or None, "offset": found.pop("place"),
    }  # fmt: skip


def _result(script: str, taskid: str, url: str, result: str, updated: int, warc: str | None, place: int) -> ResultNote:
    return ResultNote(script, taskid, url, json.loads(result), updated, warc or "", place)


def as_text(value: object) -> str:
    """A value of JSON as one line of text, as the book and the answers have it."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
