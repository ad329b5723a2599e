"""A connection to a PostgreSQL, by asyncpg; its errors are ours. Talks to the server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from msgspec import Struct

from warcmill.errors import BadConfig, Unavailable

T = TypeVar("T")
SCHEMES = ("postgresql", "postgres")
CONNECT_SECONDS, SECONDS = 10.0, 600.0
# Seconds until the server ends the session, and the locks, of one whose machine or network is gone: else hours.
_GONE = {"tcp_keepalives_idle": "60", "tcp_keepalives_interval": "10", "tcp_keepalives_count": "3"}
TRIES, AGAIN = 20, 0.05  # of a transaction that was in another's way; seconds until the second
_REFUSED = ("28", "3D", "42501")  # who asks is not let in; there is no such database; a right is lacking
_PASSING = ("08", "53", "57", "58", "25006", "XX")  # connection, room, shutdown, disk; it only reads; it is damaged
_IN_THE_WAY = ("40001", "40P01", "55P03")  # one of several transactions that wait for each other


class PostgresqlPlace(Struct, frozen=True):
    """A database of a PostgreSQL: its URL, without a password in it, and the password. `key` is its name in luigi.cfg,
    for messages."""

    url: str
    password: str = ""
    key: str = "centre"

    def __repr__(self) -> str:
        return f"PostgresqlPlace({self.url!r})"


def read_place(key: str, url: str, password: str = "") -> PostgresqlPlace:
    """Return the place that a setting names, `postgresql://USER@HOST:PORT/DATABASE`; BadConfig with what is wrong."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise BadConfig(key, f"cannot be read as a URL: {error}") from error
    if parts.scheme not in SCHEMES or not parts.hostname or not parts.path.strip("/"):
        raise BadConfig(key, "is not postgresql://USER@HOST:PORT/DATABASE")
    if parts.password is not None or "password" in parse_qs(parts.query):
        raise BadConfig(key, "has a password in it; write that into a file, and name it in password_file")
    return PostgresqlPlace(url, password, key)


class Postgresql:
    """A connection, from `connect` to `close`; its calls are made one after the other. Every one may raise Unavailable:
    whether it was done is not known then."""

    def __init__(self, place: PostgresqlPlace, connection: Any, patience: float) -> None:
        self.place, self._connection, self._patience = place, connection, patience

    @classmethod
    async def connect(cls, place: PostgresqlPlace, name: str, seconds: float = SECONDS) -> Postgresql:
        """Connect; `name` is who asks, as `pg_stat_activity` shows it. `seconds`: for so long a statement may last,
        here and at the server. Unavailable when nobody answers, BadConfig when one is not let in."""
        asyncpg, patience = _asyncpg(place), min(CONNECT_SECONDS, seconds)
        limit = str(round(seconds * 1000))
        try:
            found = await asyncpg.connect(
                place.url, password=place.password or None, timeout=patience, command_timeout=seconds,
                server_settings={
                    "application_name": name, "timezone": "UTC", "statement_timeout": limit, **_GONE,
                },
            )  # fmt: skip
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise _ours(place, error) from error
        return cls(place, found, patience)

    async def whole(self, act: Callable[[Any], Awaitable[T]], *, is_snapshot: bool = False) -> T:
        """Do something in one transaction, with asyncpg's connection: all or nothing. It is done again when the server
        ended it because it was in the way of another. `is_snapshot`: it reads alone, all as of its begin."""
        asyncpg, tries = _asyncpg(self.place), 0
        isolation = "repeatable_read" if is_snapshot else "read_committed"
        while True:
            tries += 1
            try:
                async with self._connection.transaction(isolation=isolation, readonly=is_snapshot):
                    return await act(self._connection)
            except asyncpg.PostgresError as error:
                if error.sqlstate not in _IN_THE_WAY or tries == TRIES:
                    raise _ours(self.place, error) from error
            except (OSError, TimeoutError, asyncpg.InterfaceError) as error:
                raise _ours(self.place, error) from error
            await asyncio.sleep(AGAIN * tries)

    async def rows(self, query: str, *args: Any) -> list[Any]:
        """Return the rows of a query."""

        async def fetch(connection: Any) -> list[Any]:
            found: list[Any] = await connection.fetch(query, *args)
            return found

        return await self.whole(fetch)

    async def close(self) -> None:
        """Close it, without waiting for a server that is silent."""
        asyncpg = _asyncpg(self.place)
        try:
            await self._connection.close(timeout=self._patience)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            self._connection.terminate()


def _ours(place: PostgresqlPlace, error: Exception) -> Exception:
    """The error of ours that one of asyncpg is; a bug stays as it is."""
    state = str(getattr(error, "sqlstate", None) or "")
    words = " ".join(str(error).split()) or type(error).__name__
    if state.startswith(_REFUSED):
        return BadConfig(place.key, f"{_shown(place)} does not let us in: {words}")
    if state.startswith(_PASSING) or state in _IN_THE_WAY:
        room = "; its disk is full: make room, nothing is lost" if state == "53100" else ""
        return Unavailable(_shown(place), f"{words}{room}")
    if state:
        return error
    return Unavailable(_shown(place), f"{words}. Look whether PostgreSQL runs there, and takes connections from here")


def _shown(place: PostgresqlPlace) -> str:
    parts = urlsplit(place.url)
    return f"PostgreSQL {unquote(parts.hostname or '')}:{parts.port or 5432}{parts.path}"


def _asyncpg(place: PostgresqlPlace) -> Any:
    """The library of the extra `clusters`."""
    try:
        import asyncpg  # noqa: PLC0415 - of an extra
    except ImportError as error:
        raise BadConfig(place.key, "needs asyncpg; pip install 'warcmill[clusters]'") from error
    return asyncpg
