"""The helpers that keep something in Redis, against a real one: the documented examples, several processes, a kill."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from redis import Redis
from waiting import wait_for

from servers.redis import RedisServer
from warcmill.scutils.redis_queue import RedisPriorityQueue, RedisQueue, RedisStack
from warcmill.scutils.redis_throttled_queue import RedisThrottledQueue
from warcmill.scutils.stats_collector import (
    BitMapCounter,
    BitmapCounter,
    Counter,
    HyperLogLogCounter,
    RollingTimeWindow,
    StatsCollector,
    ThreadedCounter,
    TimeWindow,
    UniqueCounter,
)

NEVER = 3600  # seconds: a window that does not end, a thread that does not come round
POPPER = """
import sys, time
from redis import Redis
from warcmill.scutils.redis_queue import RedisPriorityQueue
from warcmill.scutils.redis_throttled_queue import RedisThrottledQueue
conn = Redis(port=int(sys.argv[1]), decode_responses=True)
queue = RedisThrottledQueue(conn, RedisPriorityQueue(conn, "shared"), 3600, int(sys.argv[2]))
while conn.get("over") is None:
    item = queue.pop()
    if item is None:
        conn.incr("refused")
    else:
        conn.rpush("popped", item)
"""


@pytest.fixture(params=[True, False], ids=["texts", "bytes"])
def conn(redis: RedisServer, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A connection to an empty database, that answers with texts or with bytes."""
    with Redis(port=redis.port, decode_responses=request.param) as connection:
        connection.flushdb()
        yield connection


@pytest.fixture
def started() -> Iterator[Callable[[ThreadedCounter], Any]]:
    """Remember counters, and stop them after the test."""
    counters: list[ThreadedCounter] = []

    def start(counter: ThreadedCounter) -> ThreadedCounter:
        counters.append(counter)
        return counter

    yield start
    for counter in counters:
        counter.stop()


@pytest.mark.parametrize(
    ("kind", "priorities", "order"),
    [
        (RedisQueue, [(), (), ()], ["item1", "item2", "item3"]),
        (RedisStack, [(), (), ()], ["item3", "item2", "item1"]),
        (RedisPriorityQueue, [(50,), (100,), (20,)], ["item2", "item1", "item3"]),
    ],
)
def test_the_documented_queues_give_items_in_their_order(
    conn: Any, kind: Any, priorities: list[Any], order: list[str]
) -> None:
    queue = kind(conn, "my_key")
    for number, priority in enumerate(priorities, start=1):
        queue.push(f"item{number}", *priority)
    assert len(queue) == 3
    assert [queue.pop() for _ in order] == order
    assert (queue.pop(), len(queue)) == (None, 0)


@pytest.mark.parametrize("kind", [RedisQueue, RedisStack])
def test_items_are_json_and_come_back_as_they_were(conn: Any, kind: Any) -> None:
    queue, items = kind(conn, "stack_key"), ["item1", ["my", "array"], {"a": None, "é": [1.5]}, 0, "", False]
    for item in items:
        queue.push(item)
        assert queue.pop() == item
    queue.push({"a": 1})
    assert json.loads(conn.lrange("stack_key", 0, -1)[0]) == {"a": 1}
    queue.clear()
    assert len(queue) == 0


def test_a_queue_may_wait_for_an_item(conn: Any) -> None:
    queue = RedisQueue(conn, "key")
    assert queue.pop(timeout=1) is None
    queue.push("here")
    assert queue.pop(timeout=60) == "here"
    assert RedisStack(conn, "key").pop(timeout=1) is None


def test_an_item_that_is_pushed_again_is_once_in_a_priority_queue_with_its_new_priority(conn: Any) -> None:
    queue = RedisPriorityQueue(conn, "key")
    for item, priority in (("a", 1), ("b", 5), ("a", 9)):
        queue.push(item, priority)
    assert [queue.pop(), queue.pop(timeout=60), queue.pop()] == ["a", "b", None]


def test_another_encoding_is_taken_pickle_as_the_original_stores_it(conn: Any) -> None:
    queue = RedisQueue(conn, "key", encoding=pickle)
    queue.push({"at": (1, b"\xff")})
    stored = conn.lrange("key", 0, -1)[0]
    text = stored.decode() if isinstance(stored, bytes) else stored
    assert pickle.loads(text.encode("latin1")) == {"at": (1, b"\xff")}
    assert queue.pop() == {"at": (1, b"\xff")}
    upper = SimpleNamespace(dumps=str.upper, loads=lambda text: text)
    other = RedisStack(conn, "key", encoding=upper)
    other.push("x")
    assert other.pop() in ("X", b"X")


@pytest.mark.parametrize("lacking", [SimpleNamespace(dumps=str), SimpleNamespace(loads=str), ModuleType("nothing")])
def test_an_encoding_that_is_none_is_refused(conn: Any, lacking: Any) -> None:
    with pytest.raises(NotImplementedError, match="encoding does not support"):
        RedisQueue(conn, "key", encoding=lacking)


def test_a_throttled_queue_gives_so_many_items_in_a_window(conn: Any) -> None:
    queue = RedisThrottledQueue(conn, RedisPriorityQueue(conn, "my_key"), NEVER, 2)
    for item, priority in (("item", 5), ("item2", 10), ("item3", 1)):
        queue.push(item, priority)
    assert [queue.pop(), queue.pop(), queue.pop(), len(queue)] == ["item2", "item", None, 1]
    assert conn.zcard("my_key:throttle_window") == 2
    queue.clear()
    assert (len(queue), conn.exists("my_key:throttle_window")) == (0, 0)


def test_a_window_that_is_over_lets_items_through_again(conn: Any) -> None:
    queue = RedisThrottledQueue(conn, RedisQueue(conn, "key"), 0.2, 1)
    for item in "ab":
        queue.push(item)
    popped = [queue.pop()]
    while len(popped) < 2:
        item = queue.pop()
        popped += [item] if item else []
    assert popped == ["a", "b"]
    assert 0 < conn.ttl("key:throttle_window") <= 1


def test_a_moderated_queue_spreads_its_items_evenly(conn: Any) -> None:
    queue = RedisThrottledQueue(conn, RedisQueue(conn, "key"), 1, 5, moderate=True)
    for item in range(4):
        queue.push(item)
    times: list[float] = []
    while len(times) < 4:
        if queue.pop() is not None:
            times.append(float(conn.get("key:throttle_time")))
    assert queue.moderation == 0.2
    assert all(later - earlier >= 0.2 - 1e-6 for earlier, later in pairwise(times))


def test_keys_may_be_shared_by_queues_under_other_names(conn: Any) -> None:
    first, second = (
        RedisThrottledQueue(conn, RedisQueue(conn, key), NEVER, 3, True, windowName="w", modName="m") for key in "ab"
    )
    first.push(1)
    second.push(2)
    assert (first.pop(), second.pop()) == (1, None), "the other one has just popped"
    assert sorted(map(str, conn.keys("*:throttle*"))) == sorted(
        map(str, [conn.keys("m:throttle_time")[0], conn.keys("w:throttle_window")[0]])
    )


def test_an_elastic_queue_that_fell_behind_breaks_moderation_once_it_reached_its_limit(conn: Any) -> None:
    queue = RedisThrottledQueue(conn, RedisQueue(conn, "key"), 0.4, 2, moderate=True, elastic=True)
    for item in range(8):
        queue.push(item)
    assert (queue.pop(), queue.pop()) == (0, None), "moderated at first"
    wait_for(lambda: queue.pop() is not None)
    assert queue.elastic_kick_in == 2
    wait_for(lambda: not conn.zcount("key:throttle_window", time.time() - 0.4, "inf"))
    assert [queue.pop() is not None, queue.pop() is not None, queue.pop()] == [True, True, None]


def test_with_a_buffer_it_need_not_reach_its_limit(conn: Any) -> None:
    queue = RedisThrottledQueue(conn, RedisQueue(conn, "key"), NEVER, 3, True, elastic=True, elastic_buffer=2)
    queue.elastic_kick_in = 3
    for item in range(3):
        queue.push(item)
    assert [queue.pop(), queue.pop()] == [0, None], "1 of 3 is near enough to it"


@pytest.mark.parametrize("conn", [True], indirect=True)
def test_several_processes_together_get_the_limit_and_each_item_once(redis: RedisServer, conn: Any) -> None:
    inside = RedisPriorityQueue(conn, "shared")
    for number in range(300):
        inside.push(f"item-{number}", number)
    words = [sys.executable, "-c", POPPER, str(redis.port), "200"]
    running = [subprocess.Popen(words) for _ in range(3)]
    try:
        wait_for(lambda: int(conn.get("refused") or 0) >= 30)
        assert all(process.poll() is None for process in running)
    finally:
        conn.set("over", 1)
        assert [process.wait() for process in running] == [0, 0, 0]
    popped = conn.lrange("popped", 0, -1)
    assert len(popped) == len(set(popped)) == 200
    assert set(popped) == {f"item-{number}" for number in range(100, 300)}
    assert len(inside) == 100


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (StatsCollector.get_counter, Counter),
        (StatsCollector.get_time_window, TimeWindow),
        (StatsCollector.get_rolling_time_window, RollingTimeWindow),
    ],
)
def test_the_documented_counters_count_events(conn: Any, started: Any, make: Any, kind: type) -> None:
    counter = started(make(conn, window=StatsCollector.SECONDS_1_DAY))
    assert isinstance(counter, kind)
    assert counter.value() == 0
    for _ in range(3):
        counter.increment()
    assert counter.value() == 3
    counter.delete_key()
    assert counter.value() == 0


@pytest.mark.parametrize(
    ("make", "kind", "items", "value"),
    [
        (StatsCollector.get_unique_counter, UniqueCounter, [n % 100 for n in range(1000)], 100),
        (StatsCollector.get_hll_counter, HyperLogLogCounter, [n % 10 for n in range(100)], 10),
        (StatsCollector.get_bitmap_counter, BitmapCounter, [1, 5, 5, 9], 3),
    ],
)
def test_the_documented_counters_count_what_is_different(
    conn: Any, started: Any, make: Any, kind: type, items: list[int], value: int
) -> None:
    counter = started(make(redis_conn=conn, key="k", window=StatsCollector.SECONDS_1_WEEK))
    assert isinstance(counter, kind)
    for item in items:
        counter.increment(item)
    assert counter.value() == value
    assert BitMapCounter is BitmapCounter


def test_a_counter_connects_by_itself_and_its_key_has_the_start_of_its_window(
    redis: RedisServer, conn: Any, started: Any
) -> None:
    counter = started(StatsCollector.get_counter(host="127.0.0.1", port=redis.port))
    counter.increment()
    now = time.gmtime(counter._window_start())
    assert counter.get_key() == f"counter:{now.tm_year}-{now.tm_mon:02}-{now.tm_mday:02}_{now.tm_hour:02}:00:00"
    assert conn.exists(counter.get_key())


def test_processes_that_begin_later_do_not_begin_the_count_anew(conn: Any, started: Any) -> None:
    first, second = (started(StatsCollector.get_counter(conn, start_at=10, roll=False)) for _ in range(2))
    assert first.value() == 10
    for _ in range(5):
        first.increment()
        second.increment()
    assert (first.value(), second.value(), first.get_key()) == (20, 20, "counter")


def test_a_counter_that_rolls_counts_each_window_by_itself_and_keeps_some(
    conn: Any, started: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    conn.set("k:mine", "another one's")
    counter = TimeWindow(key="k", cycle_time=NEVER, start_time=1_454_266_800, window=3600, roll=True, keep_max=2)
    started(counter)
    counter.setup(conn)
    times = iter([0, 0, 3600, 2 * 3600, 3 * 3600, 3 * 3600 + 1])
    keys = []
    for seconds in times:
        monkeypatch.setattr(counter, "_time", lambda seconds=seconds: 1_454_266_800 + seconds)
        counter.increment()
        keys.append(counter.get_key())
    assert keys[0] == "k:2016-01-31_19:00:00"
    assert (len(set(keys)), counter.value()) == (4, 2)
    assert conn.zcard(keys[0]) == 2
    counter.purge_old()
    left = sorted(key.decode() if isinstance(key, bytes) else key for key in conn.keys("k:*"))
    assert left == ["k:2016-01-31_20:00:00", "k:2016-01-31_21:00:00", "k:2016-01-31_22:00:00", "k:mine"]


def test_a_window_that_does_not_roll_ends(conn: Any, started: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = TimeWindow(key="k", cycle_time=NEVER, window=100)
    started(counter)
    counter.setup(conn)
    counter.increment()
    monkeypatch.setattr(counter, "_time", lambda: counter.start_time + 100)
    assert counter.is_expired()
    counter.increment()
    assert counter.value() == 1


def test_the_last_seconds_are_counted_also_before_the_thread_comes_round(
    conn: Any, started: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = RollingTimeWindow(key="k", cycle_time=NEVER, window=5)
    started(counter)
    counter.setup(conn)
    for seconds in (0, 0, 3, 3, 6):
        monkeypatch.setattr(counter, "_time", lambda seconds=seconds: 1000 + seconds)
        counter.increment()
    assert (counter.value(), conn.zcard("k")) == (3, 5)
    counter.expire()
    assert conn.zcard("k") == 3


@pytest.mark.parametrize("conn", [True], indirect=True)
def test_a_counter_outlives_a_redis_that_is_killed(redis: RedisServer, conn: Any, started: Any) -> None:
    counter = started(RollingTimeWindow(key="k", cycle_time=0.02, window=0.5))
    counter.setup(port=redis.port, host="127.0.0.1")
    counter.increment()
    redis.kill()
    redis.start()
    wait_for(lambda: not conn.exists("k"), lambda: "the thread no longer removes what is over")


def test_the_seconds_have_their_documented_names() -> None:
    names = {name: getattr(StatsCollector, name) for name in vars(StatsCollector) if name.startswith("SECONDS_")}
    units = {"MINUTE": 60, "HOUR": 3600, "DAY": 86400, "WEEK": 7 * 86400}
    assert names == {name: int(name.split("_")[1]) * units[name.split("_")[2]] for name in names}
    assert len(names) == 16
