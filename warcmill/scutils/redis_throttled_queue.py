"""A queue in Redis that gives a limited number of items in a window of time, to all processes together.

Writes to Redis. One script there judges and counts a pop, by the clock of Redis: no process can come between.
"""

from __future__ import annotations

from typing import Any

# KEYS: hits, time of the last one. ARGV: window, limit, seconds between two (0: none), 1 if these may be broken,
# how far below the limit for that. Returns 1 if a pop is allowed, and counts it.
_ALLOW = """
local t = redis.call('TIME')
local now = tonumber(t[1]) + tonumber(t[2]) / 1e6
local window, limit, apart = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.6f', now - window))
local hits = redis.call('ZCARD', KEYS[1])
if hits >= limit then return 0 end
if apart > 0 then
    local since = now - tonumber(redis.call('GET', KEYS[2]) or '0')
    local behind = ARGV[4] == '1' and limit - hits > tonumber(ARGV[5])
    if since >= 0 and since < apart and not behind then return 0 end
end
local stamp, kept = string.format('%.6f', now), math.max(1, math.ceil(window * 2))
local member, again = stamp, 0
while redis.call('ZADD', KEYS[1], 'NX', stamp, member) == 0 do again = again + 1; member = stamp .. ':' .. again end
redis.call('EXPIRE', KEYS[1], kept)
if apart > 0 then redis.call('SET', KEYS[2], stamp, 'EX', kept) end
return 1
"""


class RedisThrottledQueue:
    """A queue around another one: pushes pass, pops are limited.

    All processes that pop from one queue must give the same settings. A pop of an empty queue counts as one.
    """

    window_append = ":throttle_window"
    time_append = ":throttle_time"

    def __init__(
        self,
        redisConn: Any,  # noqa: N803 the names are those of Scrapy Cluster
        myQueue: Any,  # noqa: N803
        throttleWindow: float,  # noqa: N803
        throttleLimit: float,  # noqa: N803
        moderate: bool = False,
        windowName: str | None = None,  # noqa: N803
        modName: str | None = None,  # noqa: N803
        elastic: bool = False,
        elastic_buffer: float = 0,
    ) -> None:
        """Limit pops to `throttleLimit` in `throttleWindow` seconds.

        `moderate` spreads them evenly; with `elastic` a queue that falls behind by more than `elastic_buffer` may pop
        sooner, once it has popped as many as the limit. `windowName` and `modName` are other keys to count by.
        """
        self.redis_conn, self.queue = redisConn, myQueue
        self.window, self.limit = float(throttleWindow), float(throttleLimit)
        self.window_key = (windowName or myQueue.key) + self.window_append
        self.moderate_key = (modName or myQueue.key) + self.time_append
        self.moderation = self.window / self.limit if moderate and self.limit > 1 else 0.0
        self.elastic, self.elastic_buffer = elastic and self.moderation > 0, elastic_buffer
        self.elastic_kick_in = 0
        self._allow = redisConn.register_script(_ALLOW)

    def __len__(self) -> int:
        return len(self.queue)

    def push(self, *args: Any) -> None:
        """Push to the queue inside."""
        self.queue.push(*args)

    def pop(self, *args: Any) -> Any:
        """Pop from the queue inside; None if it is empty, or if the limit does not allow it now."""
        if not self.allowed():
            return None
        if self.elastic_kick_in < self.limit:
            self.elastic_kick_in += 1
        return self.queue.pop(*args)

    def clear(self) -> None:
        """Remove all items, and forget what was counted."""
        self.redis_conn.delete(self.window_key, self.moderate_key)
        self.queue.clear()

    def allowed(self) -> bool:
        """Count a pop and return True, if the limit allows one now."""
        catches_up = self.elastic and self.elastic_kick_in >= self.limit
        keys = [self.window_key, self.moderate_key]
        args = [self.window, self.limit, self.moderation, int(catches_up), self.elastic_buffer]
        return bool(self._allow(keys=keys, args=args))
