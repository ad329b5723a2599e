"""Queues in Redis that several processes push to and pop from. Writes to Redis.

Items are JSON. Another `encoding`, with `dumps` and `loads`, may be given; pickle too, which runs whatever a stranger
put into that Redis: give it only where nobody else can write.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any

_PICKLE = "pickle"
_LATIN = "latin1"  # as Scrapy Cluster stores a pickle: a text with a character for each byte


class Base(ABC):
    """The key of a queue, and how its items are written."""

    def __init__(self, server: Any, key: str, encoding: Any = json) -> None:
        """Take a connection of redis-py. NotImplementedError for an encoding without `dumps` or `loads`."""
        self.server, self.key, self.encoding = server, key, encoding
        for name in ("dumps", "loads"):
            if not hasattr(encoding, name):
                raise NotImplementedError(f"encoding does not support {name}()")

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of items."""

    def clear(self) -> None:
        """Remove all items."""
        self.server.delete(self.key)

    def _encode_item(self, item: Any) -> Any:
        return self.encoding.dumps(item, protocol=-1).decode(_LATIN) if self._pickles else self.encoding.dumps(item)

    def _decode_item(self, encoded_item: Any) -> Any:
        if not self._pickles:
            return self.encoding.loads(encoded_item)
        text = encoded_item.decode() if isinstance(encoded_item, bytes) else encoded_item
        return self.encoding.loads(text.encode(_LATIN))

    @property
    def _pickles(self) -> bool:
        return getattr(self.encoding, "__name__", "") == _PICKLE


class _Listed(Base):
    """A Redis list, pushed to on its left."""

    pops: str
    waits: str

    def __len__(self) -> int:
        return int(self.server.llen(self.key))

    def push(self, item: Any) -> None:
        """Add an item."""
        self.server.lpush(self.key, self._encode_item(item))

    def pop(self, timeout: float = 0) -> Any:
        """Remove and return an item; None if there is none. Wait so many seconds for one, if above 0."""
        if timeout > 0:
            found = getattr(self.server, self.waits)(self.key, timeout)
            data = found[1] if found else None
        else:
            data = getattr(self.server, self.pops)(self.key)
        return None if data is None else self._decode_item(data)


class RedisQueue(_Listed):
    """First in, first out."""

    pops, waits = "rpop", "brpop"


class RedisStack(_Listed):
    """Last in, first out."""

    pops, waits = "lpop", "blpop"


class RedisPriorityQueue(Base):
    """The greatest priority first. An item is in it once: pushed again it takes the new priority."""

    def __len__(self) -> int:
        return int(self.server.zcard(self.key))

    def push(self, item: Any, priority: float) -> None:
        """Add an item."""
        self.server.zadd(self.key, {self._encode_item(item): -priority})

    def pop(self, timeout: float = 0) -> Any:  # noqa: ARG002 the other queues have it
        """Remove and return the item with the greatest priority; None if there is none. `timeout` is not used."""
        popped = self.server.zpopmin(self.key)
        return self._decode_item(popped[0][0]) if popped else None


__all__ = ["RedisPriorityQueue", "RedisQueue", "RedisStack"]
