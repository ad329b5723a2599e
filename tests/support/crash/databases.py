"""SQLite's databases, each statement of which is a call that is met: what SQLite itself does is not seen."""

from __future__ import annotations

import errno
import re
import sqlite3
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urlsplit

from crash.calls import Call
from crash.handles import Net

_REAL = sqlite3.connect
_TOLD = re.compile(r"\s*(?:BEGIN IMMEDIATE|\w+(?: (?:INTO|FROM|TABLE|INDEX) (?!sqlite)\w+| \w+)?)")
_READS = ("SELECT", "PRAGMA quick_check", "PRAGMA user_version")


def watched(net: Net) -> Callable[..., sqlite3.Connection]:
    """`sqlite3.connect` for databases under the watched folder."""

    def connect(database: Any, *args: Any, **kwargs: Any) -> sqlite3.Connection:
        seen = net.under(unquote(urlsplit(database).path) if kwargs.get("uri") else database)
        known = {} if seen is None else {"factory": _connection(net, seen)}
        return _REAL(database, *args, **kwargs, **known)

    return connect


def _connection(net: Net, path: str) -> type[sqlite3.Connection]:
    class Watched(sqlite3.Connection):
        def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
            found: sqlite3.Cursor = _met(net, path, sql, lambda _: super(Watched, self).execute(sql, *args))
            return found

        def executemany(self, sql: str, *args: Any) -> sqlite3.Cursor:
            found: sqlite3.Cursor = _met(net, path, sql, lambda _: super(Watched, self).executemany(sql, *args))
            return found

    return Watched


def _met(net: Net, path: str, sql: str, do: Callable[[bytes], Any]) -> Any:
    told = _TOLD.match(sql)
    op = "query" if sql.startswith(_READS) and "=" not in sql.partition("SELECT")[0] else "sql"
    try:
        return net.pass_on(Call(op, path, told[0].strip() if told else sql), do)
    except OSError as error:  # as SQLite tells it
        found = sqlite3.OperationalError(f"disk I/O error: {error.strerror}")
        is_full = error.errno == errno.ENOSPC
        found.sqlite_errorcode = sqlite3.SQLITE_FULL if is_full else sqlite3.SQLITE_IOERR
        raise found from error
