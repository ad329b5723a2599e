"""Counts in Redis that several processes share, of a window of time or of all time. Writes to Redis.

A counter that *rolls* has a key for each window, `{key}:2016-01-31_19:00:00`, and keeps some of those before. A thread
of each counter removes what is over, every `cycle_time` seconds.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from abc import ABC, abstractmethod
from datetime import UTC, datetime
from threading import Event, Thread
from typing import Any, Final, TypeVar

import redis

_log = logging.getLogger(__name__)

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_DATED: Final = re.compile(r"\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d")
_TIMEOUT: Final = 10  # seconds for which Redis may be silent
_KEPT: Final = 12


class ThreadedCounter(ABC):
    """The key of a counter, its windows, and the thread that removes what is over."""

    def __init__(
        self,
        key: str = "default_counter",
        cycle_time: float = 5,
        start_time: float | None = None,
        window: float | None = None,
        roll: bool = False,
        keep_max: int | None = None,
    ) -> None:
        """Count from `start_time`, by default that of the current window, in windows of so many seconds."""
        self.key, self.cycle_time, self.window = key, cycle_time, window
        self.roll, self.keep_max = roll and window is not None, keep_max
        now = int(self._time())
        self.start_time = start_time if start_time is not None else now - now % window if window else now
        self.redis_conn: Any = None
        self._connected = False  # by itself
        self._ended = Event()
        self._thread: Thread | None = None

    def setup(
        self, redis_conn: Any = None, host: str = "localhost", port: int = 6379, password: str | None = None
    ) -> None:
        """Connect, and start the thread. redis.RedisError when Redis does not answer."""
        self._connected = redis_conn is None
        self.redis_conn = redis_conn or redis.Redis(
            host=host,
            port=int(port),
            password=password,
            decode_responses=True,
            socket_timeout=_TIMEOUT,
            socket_connect_timeout=_TIMEOUT,
        )
        self.redis_conn.ping()
        self._thread = Thread(target=self._cycle, name=f"counter {self.key}", daemon=True)
        self._thread.start()

    @abstractmethod
    def value(self) -> int:
        """Return the count; of the current window, if there are windows."""

    def expire(self) -> None:
        """Remove from the current key what is no longer counted: nothing, where all of a window is."""
        return

    def get_key(self) -> str:
        """Return the key in Redis that is counted in now."""
        if not self.roll:
            return self.key
        began = datetime.fromtimestamp(self._window_start(), UTC).replace(tzinfo=None)
        return f"{self.key}:{began.isoformat('_', 'seconds')}"

    def delete_key(self) -> None:
        """Remove that key."""
        self.redis_conn.delete(self.get_key())

    def is_expired(self) -> bool:
        """Return True if the window that the counter began with is over."""
        return self.window is not None and self._time() - self.start_time >= self.window

    def deactivate(self) -> None:
        """End the thread, and do not wait for it."""
        self._ended.set()

    def stop(self) -> None:
        """End the thread, wait for it, and close a connection of its own. The count may still be asked for."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        if self._connected:
            self.redis_conn.close()

    def purge_old(self) -> None:
        """Remove the keys of all windows before the current one but the newest `keep_max`."""
        if not self.keep_max:
            return
        pattern = re.sub(r"([\\*?\[\]])", r"\\\1", self.key) + ":*"
        found = self.redis_conn.scan_iter(match=pattern)
        names = [name.decode() if isinstance(name, bytes) else name for name in found]
        dated = {name for name in names if _DATED.fullmatch(name[len(self.key) + 1 :])}
        for name in sorted(dated - {self.get_key()})[: -self.keep_max]:
            self.redis_conn.delete(name)

    def _window_start(self) -> float:
        if not self.roll or not self.window:
            return self.start_time
        return self.start_time + (self._time() - self.start_time) // self.window * self.window

    def _time(self) -> float:
        return time.time()

    def _cycle(self) -> None:
        while not self._ended.is_set():
            try:
                self.expire()
                self.purge_old()
            except redis.RedisError as error:
                _log.warning("counter %s: Redis failed, the next cycle retries: %s", self.key, error)
            self._ended.wait(self.cycle_time)


class TimeWindow(ThreadedCounter):
    """The number of events of the current window; without `roll` of the first one alone."""

    def increment(self) -> None:
        """Count an event now."""
        now = self._time()
        if self.roll or not self.is_expired():
            self.redis_conn.zadd(self.get_key(), {_event(now): now})

    def value(self) -> int:
        return int(self.redis_conn.zcard(self.get_key()))

    def expire(self) -> None:
        start = self._window_start()
        self.redis_conn.zremrangebyscore(self.get_key(), "-inf", f"({start}")
        if self.window:
            self.redis_conn.zremrangebyscore(self.get_key(), start + self.window, "inf")


class RollingTimeWindow(ThreadedCounter):
    """The number of events of the last seconds."""

    def __init__(
        self, key: str = "rolling_time_window_counter", cycle_time: float = 5, window: float = _MINUTE
    ) -> None:
        """Count the events of so many seconds before now."""
        super().__init__(key=key, cycle_time=cycle_time, window=window)
        self._span = window

    def increment(self) -> None:
        """Count an event now."""
        now = self._time()
        self.redis_conn.zadd(self.key, {_event(now): now})

    def value(self) -> int:
        return int(self.redis_conn.zcount(self.key, f"({self._time() - self._span}", "inf"))

    def expire(self) -> None:
        self.redis_conn.zremrangebyscore(self.key, "-inf", self._time() - self._span)


class Counter(ThreadedCounter):
    """A number."""

    def __init__(self, *args: Any, start_at: int = 0, **words: Any) -> None:
        """Count up from `start_at`; a number that is in Redis already is continued."""
        super().__init__(*args, **words)
        self.start_at = start_at

    def increment(self) -> None:
        """Count one more."""
        key = self.get_key()
        with self.redis_conn.pipeline() as together:
            together.set(key, self.start_at, nx=True)
            together.incr(key)
            together.execute()

    def value(self) -> int:
        found = self.redis_conn.get(self.get_key())
        return self.start_at if found is None else int(found)


class UniqueCounter(ThreadedCounter):
    """The number of different items; exact, and as large as they are."""

    def increment(self, item: Any) -> None:
        """Count an item, if it is new."""
        self.redis_conn.sadd(self.get_key(), item)

    def value(self) -> int:
        return int(self.redis_conn.scard(self.get_key()))


class HyperLogLogCounter(ThreadedCounter):
    """The number of different items, to about one in a hundred, in 12 kB."""

    def increment(self, item: Any) -> None:
        """Count an item, if it is new."""
        self.redis_conn.pfadd(self.get_key(), str(item))

    def value(self) -> int:
        return int(self.redis_conn.pfcount(self.get_key()))


class BitmapCounter(ThreadedCounter):
    """The number of bits that are set, one for each index."""

    def increment(self, index: int) -> None:
        """Set the bit of an index."""
        self.redis_conn.setbit(self.get_key(), index, 1)

    def value(self) -> int:
        return int(self.redis_conn.bitcount(self.get_key()))


BitMapCounter = BitmapCounter  # as the files of Scrapy Cluster spell it
Which = TypeVar("Which", bound=ThreadedCounter)


class StatsCollector:
    """Makes counters. Each method takes a connection, or the address of a Redis."""

    SECONDS_1_MINUTE = _MINUTE
    SECONDS_15_MINUTE = 15 * _MINUTE
    SECONDS_30_MINUTE = 30 * _MINUTE
    SECONDS_1_HOUR = _HOUR
    SECONDS_2_HOUR = 2 * _HOUR
    SECONDS_4_HOUR = 4 * _HOUR
    SECONDS_6_HOUR = 6 * _HOUR
    SECONDS_12_HOUR = 12 * _HOUR
    SECONDS_24_HOUR = _DAY
    SECONDS_48_HOUR = 2 * _DAY
    SECONDS_1_DAY = _DAY
    SECONDS_2_DAY = 2 * _DAY
    SECONDS_3_DAY = 3 * _DAY
    SECONDS_7_DAY = 7 * _DAY
    SECONDS_1_WEEK = 7 * _DAY
    SECONDS_30_DAY = 30 * _DAY

    @classmethod
    def get_time_window(
        cls,
        redis_conn: Any = None,
        host: str = "localhost",
        port: int = 6379,
        password: str | None = None,
        key: str = "time_window_counter",
        cycle_time: float = 5,
        start_time: float | None = None,
        window: float = SECONDS_1_HOUR,
        roll: bool = True,
        keep_max: int = _KEPT,
    ) -> TimeWindow:
        """Return a counter of the events of a window."""
        counter = TimeWindow(key, cycle_time, start_time, window, roll, keep_max)
        return _set_up(counter, redis_conn, host, port, password)

    @classmethod
    def get_rolling_time_window(
        cls,
        redis_conn: Any = None,
        host: str = "localhost",
        port: int = 6379,
        password: str | None = None,
        key: str = "rolling_time_window_counter",
        cycle_time: float = 5,
        window: float = SECONDS_1_HOUR,
    ) -> RollingTimeWindow:
        """Return a counter of the events of the last `window` seconds."""
        return _set_up(RollingTimeWindow(key, cycle_time, window), redis_conn, host, port, password)

    @classmethod
    def get_counter(
        cls,
        redis_conn: Any = None,
        host: str = "localhost",
        port: int = 6379,
        password: str | None = None,
        key: str = "counter",
        cycle_time: float = 5,
        start_time: float | None = None,
        window: float = SECONDS_1_HOUR,
        roll: bool = True,
        keep_max: int = _KEPT,
        start_at: int = 0,
    ) -> Counter:
        """Return a counter that begins at `start_at`."""
        counter = Counter(key, cycle_time, start_time, window, roll, keep_max, start_at=start_at)
        return _set_up(counter, redis_conn, host, port, password)

    @classmethod
    def get_unique_counter(
        cls,
        redis_conn: Any = None,
        host: str = "localhost",
        port: int = 6379,
        password: str | None = None,
        key: str = "unique_counter",
        cycle_time: float = 5,
        start_time: float | None = None,
        window: float = SECONDS_1_HOUR,
        roll: bool = True,
        keep_max: int = _KEPT,
    ) -> UniqueCounter:
        """Return an exact counter of different items."""
        counter = UniqueCounter(key, cycle_time, start_time, window, roll, keep_max)
        return _set_up(counter, redis_conn, host, port, password)

    @classmethod
    def get_hll_counter(
        cls,
        redis_conn: Any = None,
        host: str = "localhost",
        port: int = 6379,
        password: str | None = None,
        key: str = "hyperloglog_counter",
        cycle_time: float = 5,
        start_time: float | None = None,
        window: float = SECONDS_1_HOUR,
        roll: bool = True,
        keep_max: int = _KEPT,
    ) -> HyperLogLogCounter:
        """Return a small counter of different items, to about one in a hundred."""
        counter = HyperLogLogCounter(key, cycle_time, start_time, window, roll, keep_max)
        return _set_up(counter, redis_conn, host, port, password)

    @classmethod
    def get_bitmap_counter(
        cls,
        redis_conn: Any = None,
        host: str = "localhost",
        port: int = 6379,
        password: str | None = None,
        key: str = "bitmap_counter",
        cycle_time: float = 5,
        start_time: float | None = None,
        window: float = SECONDS_1_HOUR,
        roll: bool = True,
        keep_max: int = _KEPT,
    ) -> BitmapCounter:
        """Return a counter of the indices that were seen."""
        counter = BitmapCounter(key, cycle_time, start_time, window, roll, keep_max)
        return _set_up(counter, redis_conn, host, port, password)


def _set_up(counter: Which, redis_conn: Any, host: str, port: int, password: str | None) -> Which:
    counter.setup(redis_conn=redis_conn, host=host, port=port, password=password)
    return counter


def _event(now: float) -> str:
    """A member of a sorted set that no other event has, also none of another process in the same microsecond."""
    return f"{now:.6f}:{secrets.token_hex(4)}"
