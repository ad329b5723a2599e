"""The link to a Redis: which one, what is asked of it, and its scripts. Talks to Redis.

A Redis that would lose what is written to it is refused: Redis Cluster, a replica, one that keeps no log of what it
does (appendonly), or that throws keys away when it is full.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha1
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

from warcmill.crawl.frontier.outbox import Word
from warcmill.errors import BadConfig, Conflict, Foreign, Unavailable, WarcmillError

SCHEMES = ("redis", "rediss")
PREFIX, VERSION, OLDEST = "warcmill", 1, (6, 2)
OUTBOX_LIMIT = 10_000  # changes that wait for a Redis that is away, until fetching waits too
CHECKPOINT_WAIT = 120  # seconds of silence after which a worker is missing
FRONTIER = "--frontier"  # the option of a process that crawls
PARTLY = " partly"  # after the name of a launch: the journal, or a dump, is being loaded
CONNECT_SECONDS, SECONDS = 5.0, 30.0
LOST = object()
"""The answer to a call whose script Redis does not have any more: nothing was done."""
_PASSING = ("LOADING", "MISCONF", "BUSY", "MASTERDOWN", "NOREPLICAS", "max number of clients")


class RedisPlace(Struct, frozen=True):
    """Where a frontier is: a URL, the file with the password, the word that its keys begin with, and the number of
    changes that may wait for it. Of a launch with workers: after how many seconds of silence one is missing, and
    whether the job's own process only leads."""

    url: str
    password_file: str = ""
    prefix: str = PREFIX
    outbox_limit: int = OUTBOX_LIMIT
    checkpoint_wait: int = CHECKPOINT_WAIT
    leads_only: bool = False

    @property
    def shown(self) -> str:
        """The URL as messages show it."""
        return self.url

    @property
    def words(self) -> tuple[str, str, str]:
        """The option that names it to a process."""
        query = f"prefix={self.prefix}&outbox_limit={self.outbox_limit}&checkpoint_wait={self.checkpoint_wait}"
        return FRONTIER, f"{self.url}?{query}{'&leads_only=true' if self.leads_only else ''}", self.password_file

    def is_at(self, other: RedisPlace | None) -> bool:
        """True if the other has the same keys of the same Redis."""
        return other is not None and (self.url, self.prefix) == (other.url, other.prefix)

    def keys(self, job: str) -> str:
        """The beginning of the keys of a job."""
        return f"{self.prefix}:{job}:"


def read_place(key: str, url: str, password_file: str = "") -> RedisPlace:
    """Return the place that a setting names: redis:// or rediss://, host, port, number; `?prefix=WORD`,
    `outbox_limit=NUMBER`, and what `words` adds. BadConfig with what is wrong, such as a password in it."""
    try:
        parts = urlsplit(url)
        query = parse_qs(parts.query, strict_parsing=bool(parts.query))
        _ = parts.port
    except ValueError as error:
        raise BadConfig(key, f"cannot be read as a URL: {error}") from error
    if parts.scheme not in SCHEMES or not parts.hostname:
        raise BadConfig(key, "is not redis://HOST:PORT/NUMBER or rediss://HOST:PORT/NUMBER")
    if parts.password is not None:
        raise BadConfig(key, "has a password in it; write that into a file, and name it in frontier_password_file")
    prefix = query.pop("prefix", [PREFIX])[-1]
    limit = query.pop("outbox_limit", [str(OUTBOX_LIMIT)])[-1]
    wait = read_wait(key, query.pop("checkpoint_wait", [str(CHECKPOINT_WAIT)])[-1])
    leads_only = query.pop("leads_only", [""])[-1] == "true"
    if query or not prefix.replace("-", "").replace("_", "").isalnum():
        raise BadConfig(
            key, "has after its '?' more than prefix=WORD, of letters, digits, '-' and '_', and outbox_limit=NUMBER"
        )
    if not (limit.isascii() and limit.isdigit()) or int(limit) < 1:
        raise BadConfig(key, f"'outbox_limit={limit}' is not a number of changes, such as {OUTBOX_LIMIT}")
    if parts.path.strip("/") and not parts.path.strip("/").isdigit():
        raise BadConfig(key, f"'{parts.path}' is not the number of a database")
    url = parts._replace(query="", fragment="").geturl()
    return RedisPlace(url, password_file, prefix, int(limit), wait, leads_only)


def read_wait(key: str, text: str) -> int:
    """Return the seconds of silence after which a worker is missing; BadConfig for what is not a number."""
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise BadConfig(key, f"'checkpoint_wait={text}' is not a number of seconds, such as {CHECKPOINT_WAIT}")
    return int(text)


class RedisLink:
    """The way to Redis, for the keys of a job. Its calls are made on one thread at a time.

    `now` gives the time in place of Redis's clock; `seconds`: for so long Redis may be silent. Every call may raise
    Unavailable: whether it was done is not known then.
    """

    def __init__(
        self, place: RedisPlace, job: str, now: Callable[[], float] | None = None, seconds: float = SECONDS
    ) -> None:
        self.place, self.prefix, self.seconds, self._now = place, place.keys(job), seconds, now
        self._redis = _client()
        self._client = self._redis.Redis.from_url(
            place.url, password=_password(place), socket_connect_timeout=CONNECT_SECONDS, socket_timeout=seconds,
            retry=None, retry_on_timeout=False, client_name=f"warcmill-{job}",
        )  # fmt: skip
        self._loaded = set[str]()

    def examine(self) -> None:
        """Refuse a Redis that cannot hold a frontier: BadConfig, with the setting to change."""
        found: dict[str, Any] = self.attempt(self._client.info)
        name, version = self.place.shown, str(found.get("redis_version", "0"))
        if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
            raise BadConfig(name, f"is Redis {version}; 6.2 or later is needed")
        if found.get("redis_mode") == "cluster" or found.get("cluster_enabled"):
            raise BadConfig(name, "is a Redis Cluster; a frontier needs one Redis server")
        if found.get("role") != "master":
            raise BadConfig(name, "is a replica, which takes nothing; name its master")
        if not found.get("aof_enabled"):
            raise BadConfig(name, "keeps no log of what is written to it; set 'appendonly yes'")
        if (policy := found.get("maxmemory_policy")) != "noeviction":
            raise BadConfig(name, f"throws keys away when it is full ({policy}); set 'maxmemory-policy noeviction'")
        keys = self.attempt(lambda: self._client.hget(f"{self.prefix}about", "version"))
        if keys and int(keys) != VERSION:
            raise Foreign(f"{name} {self.prefix}", f"its keys are of version {int(keys)}, not {VERSION}")

    def call(self, script: str, *args: Word) -> Any:
        """Call a script, and return its answer."""
        wire = self.wire()
        try:
            found: Any = LOST
            while found is LOST:  # it was started anew, or somebody emptied its cache
                wire.send([(script, args)])
                found = wire.receive()
        finally:
            wire.close()
        if isinstance(found, WarcmillError):
            raise found
        return found

    def call_all(self, script: str, calls: Sequence[Sequence[Word]]) -> list[Any]:
        """Call a script several times, without waiting for each answer; return these. All are of what only reads."""
        wire = self.wire()
        try:
            wire.send([(script, words) for words in calls])
            answers = [wire.receive() for _ in calls]
        finally:
            wire.close()
        is_whole = not any(one is LOST or isinstance(one, WarcmillError) for one in answers)
        return answers if is_whole else [self.call(script, *words) for words in calls]

    def wire(self) -> Wire:
        """Take a connection."""
        return Wire(self, self.attempt(self._client.connection_pool.get_connection), self._client.connection_pool)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def packed(self, connection: Any, calls: Sequence[tuple[str, Sequence[Word]]]) -> tuple[list[bytes], list[bool]]:
        """Return calls as they are sent, with the scripts that Redis may not have, and which of all are calls."""
        moment = "" if self._now is None else str(round(self._now() * 1000))
        commands, kinds = list[tuple[Word, ...]](), list[bool]()
        for script, words in calls:
            if script not in self._loaded:
                self._loaded.add(script)
                commands.append(("SCRIPT", "LOAD", _source(script)))
                kinds.append(False)
            commands.append(("EVALSHA", _sha(script), 1, self.prefix, moment, *words))
            kinds.append(True)
        return list(connection.pack_commands(commands)), kinds

    def received(self, connection: Any) -> Any:
        """Return the next answer: what Redis says, our error for its own, or LOST. Raises when there is none."""
        errors = self._redis.exceptions
        try:
            return connection.read_response()
        except errors.NoScriptError:
            self._loaded.clear()
            return LOST
        except errors.ResponseError as error:
            return self._ours(error)
        except (errors.RedisError, OSError) as error:
            raise self._ours(error) from error

    def attempt(self, act: Callable[[], Any]) -> Any:
        """Do something; Redis's errors become ours."""
        try:
            return act()
        except (self._redis.exceptions.RedisError, OSError) as error:
            raise self._ours(error) from error

    def _ours(self, error: Exception) -> WarcmillError:
        errors = self._redis.exceptions
        if isinstance(error, errors.AuthenticationError):
            if not self.place.password_file:
                return BadConfig(self.place.shown, "wants a password; name its file in frontier_password_file")
            return BadConfig(self.place.shown, f"refuses this user or password: {error}")
        if isinstance(error, (errors.ConnectionError, errors.TimeoutError, OSError)):
            return Unavailable(self.place.shown, f"Redis does not answer: {error}")
        if isinstance(error, (errors.OutOfMemoryError, errors.ReadOnlyError)):
            name = "is full" if isinstance(error, errors.OutOfMemoryError) else "is read-only now"
            return Unavailable(self.place.shown, f"Redis {name}, and takes nothing: {error}")
        if any(word in str(error) for word in _PASSING):
            return Unavailable(self.place.shown, f"Redis takes nothing: {error}")
        if "WRONGTYPE" in str(error):
            why = f"a key that begins with {self.prefix} is not ours ({error}); remove it, or set another prefix"
            return Conflict(self.place.shown, why)
        return Conflict(self.place.shown, f"Redis refuses: {error}")


class Wire:
    """A connection of a link, until it is closed. Calls that are sent need not wait for each other: Redis does them,
    and answers, in their order."""

    def __init__(self, link: RedisLink, connection: Any, pool: Any) -> None:
        self._link, self._connection, self._pool = link, connection, pool
        self._sent: deque[bool] = deque()  # True for a call, False for a script

    def fileno(self) -> int:
        """The number of its socket."""
        return int(self._connection._sock.fileno())  # noqa: SLF001 - it has no other name

    def send(self, calls: Sequence[tuple[str, Sequence[Word]]]) -> None:
        """Send calls: of each the script, and the words."""
        commands, kinds = self._link.packed(self._connection, calls)
        self._sent += kinds
        self._link.attempt(lambda: self._connection.send_packed_command(commands, check_health=False))

    def has_answer(self) -> bool:
        """True if something has come of the next answer."""
        return bool(self._link.attempt(self._connection.can_read))

    def receive(self) -> Any:
        """Wait for the answer to the next call: what Redis says, our error for its own, or LOST. Raises when there will
        be none: the connection is broken."""
        error: WarcmillError | None = None
        while True:
            found, is_call = self._link.received(self._connection), self._sent.popleft()
            if is_call:
                return error or found
            error = found if isinstance(found, WarcmillError) else None

    def close(self) -> None:
        """Give the connection back. One that has answers to come is cut."""
        if self._sent:
            self._connection.disconnect()
        self._pool.release(self._connection)


def examined(place: RedisPlace) -> str:
    """Return the URL of a Redis that fits; else BadConfig, or Unavailable."""
    link = RedisLink(place, "", seconds=CONNECT_SECONDS)
    try:
        link.examine()
    finally:
        link.close()
    return place.shown


def _client() -> Any:
    try:
        import redis  # noqa: PLC0415 an extra
    except ImportError as error:
        raise BadConfig("frontier", "redis:// needs the package redis: pip install 'warcmill[redis]'") from error
    return redis


def _password(place: RedisPlace) -> str | None:
    if not place.password_file:
        return None
    try:
        return Path(place.password_file).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig("frontier_password_file", f"{place.password_file} cannot be read: {error}") from error


@cache
def _source(script: str) -> str:
    """The text of a script: what all have, and its own."""
    folder = resources.files("warcmill.crawl.frontier") / "lua"
    return "".join((folder / f"{name}.lua").read_text("utf-8") for name in ("common", script))


@cache
def _sha(script: str) -> str:
    return sha1(_source(script).encode()).hexdigest()  # noqa: S324 - as Redis names it
