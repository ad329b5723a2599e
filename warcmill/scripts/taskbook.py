"""The book of tasks: the fate of each task of a job's scripts, their newest results, and counts. Writes tasks.sqlite.

It is written after each commit, for pages and commands, and proves nothing: without it a crawl does the same. One that
is lost or damaged is begun anew, with the results of the job's logs; after a kill it takes those that it lacks. Pages
and commands read it while the crawl writes.
"""

from __future__ import annotations

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
LONGEST_LOG = 4096
MOST = 1000
LEAP = 1_000_000  # numbers of results that are left out where some may have been given by a book that was set back
_TABLES = """
CREATE TABLE tasks (script TEXT NOT NULL, taskid TEXT NOT NULL, url TEXT NOT NULL, callback TEXT NOT NULL,
    status TEXT NOT NULL, task TEXT NOT NULL, due REAL, changed REAL NOT NULL, http INTEGER, ms INTEGER, why TEXT,
    log TEXT, follows INTEGER, results INTEGER, warc TEXT, place INTEGER, retried INTEGER, uri TEXT,
    PRIMARY KEY (script, taskid)) WITHOUT ROWID;
CREATE INDEX by_change ON tasks (script, changed);
CREATE INDEX by_due ON tasks (script, due) WHERE status = 'active';
CREATE TABLE results (number INTEGER PRIMARY KEY AUTOINCREMENT, script TEXT NOT NULL, taskid TEXT NOT NULL,
    url TEXT NOT NULL, result TEXT NOT NULL, updated INTEGER NOT NULL, warc TEXT, place INTEGER);
CREATE UNIQUE INDEX by_task ON results (script, taskid);
CREATE INDEX by_script ON results (script, number);
CREATE TABLE counts (script TEXT NOT NULL, minute INTEGER NOT NULL, kind TEXT NOT NULL, number INTEGER NOT NULL,
    PRIMARY KEY (script, minute, kind)) WITHOUT ROWID;
CREATE TABLE about (name TEXT PRIMARY KEY, value) WITHOUT ROWID
"""


_FORGET = tuple(f"DELETE FROM {table} WHERE script = ?" for table in ("tasks", "results", "counts"))  # noqa: S608 - ours
_COLUMNS = (
    "SELECT script, taskid, url, callback, status, task, due, changed, http, ms, why, log, follows, results, warc,"
    " place, retried, uri FROM tasks"
)
_NAMES = tuple(_COLUMNS.removeprefix("SELECT ").removesuffix(" FROM tasks").split(", "))
_NEWEST = f"{_COLUMNS} WHERE (?1 = '' OR script = ?1) AND (?2 = '' OR status = ?2) ORDER BY changed DESC LIMIT ?3"
_LATE = (
    "SELECT script, min(max(coalesce(due, 0), changed)) FROM tasks WHERE status = 'active' AND coalesce(due, 0) <= ?"
    " GROUP BY script"
)
_PAGES = (
    f"{_COLUMNS} WHERE script = ? AND callback = ? AND warc != '' AND status != 'failed' AND http = 200"
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
            self._db.execute("COMMIT")

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Name an error of the book; what was not committed is undone."""
        try:
            yield
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
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
            rows = self._db.execute(_LATE, (now,)).fetchall()
        return {script: max(0.0, now - since) for script, since in rows}

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
        for span, seconds in {**SPANS, "all": 0}.items():
            least = int(now - seconds) // MINUTE if seconds else 0
            query = "SELECT script, kind, sum(number) FROM counts WHERE minute >= ? GROUP BY script, kind"
            for script, kind, number in self._rows(query, least):
                found.setdefault(script, {}).setdefault(span, dict.fromkeys(KINDS, 0))[kind] = number
        return found

    def late(self, now: float) -> dict[str, float]:
        """The seconds for which the oldest task of each script that is due has waited."""
        return {script: max(0.0, now - since) for script, since in self._rows(_LATE, now)}

    def tasks(self, script: str = "", *, status: str = "", limit: int = MOST) -> list[dict[str, Json]]:
        """The tasks that changed last."""
        return [_task(row) for row in self._rows(_NEWEST, script, status, limit)]

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
        query = (
            "SELECT number, script, taskid, url, result, updated, warc, place FROM results WHERE number > ?"
            " AND (?2 = '' OR script = ?2) ORDER BY number LIMIT ?3"
        )
        while rows := self._rows(query, after, script, MOST):
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
        return [_task(row) for row in self._rows(_PAGES, script, callback, limit)]

    def result(self, script: str, taskid: str) -> Json:
        """The newest result of a task; None if it has none."""
        rows = self._rows("SELECT result FROM results WHERE script = ? AND taskid = ?", script, taskid)
        return json.loads(rows[0][0]) if rows else None

    def callbacks(self, script: str) -> list[str]:
        """The callbacks that have read pages."""
        return [name for (name,) in self._rows(_CALLBACKS, script)]

    def _rows(self, query: str, *values: object) -> list[Any]:
        if not self.path.exists():
            return []
        try:
            with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=5)) as db:
                return db.execute(query, values).fetchall()
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
            elif schema != SCHEMA or db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                raise sqlite3.DatabaseError("it is of another version, or damaged")
            return db
        except sqlite3.Error as error:
            db.close()
            if is_last:
                raise Unavailable(str(path), str(error)) from error
            for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
                path.with_name(name).unlink(missing_ok=True)
    raise AssertionError


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
