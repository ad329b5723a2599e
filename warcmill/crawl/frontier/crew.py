"""The workers of a job whose frontier is in Redis: who lives, what is ordered, and who has done it. Talks to Redis.

The leader publishes the files of its launch, and gives orders: to close a stage, or to end the launch. A worker gives a
sign of life every second and learns of the order; when it has done it, it reports. Nothing of this is durable: files
and journals are.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from warcmill import __version__
from warcmill.crawl.frontier.link import RedisLink
from warcmill.errors import Busy
from warcmill.model import Json

ALIVE = 30.0  # seconds after its last sign for which a worker is taken to live
LAUNCH = "launch"


class Order(StrEnum):
    """The kinds of orders: close a stage, and wait; go on; end the launch."""

    CHECKPOINT = "checkpoint"
    GO_ON = "go on"
    END = "end"


class Orders(NamedTuple):
    """The launch that Redis has, and the newest order: its number, the launch that it is for, its kind and stage."""

    current: str
    number: int
    launch: str
    kind: str
    stage: str


class WorkerSigns(NamedTuple):
    """A worker as others see it: seconds since its last sign, the order that it did last; its host, version and pid."""

    name: str
    age: float
    done: int
    about: Mapping[str, Json]

    @property
    def is_alive(self) -> bool:
        """True if it gave a sign of late."""
        return self.age < ALIVE


class Crew:
    """The workers of a job, over a link of its own. Every call may raise Unavailable."""

    def __init__(self, link: RedisLink) -> None:
        self._link, self._turn = link, asyncio.Lock()

    async def sign(self, name: str, token: str) -> Orders:
        """Give a sign of life of a worker, and return the orders. Busy when another has its name."""
        about = json.dumps({"host": socket.gethostname(), "version": __version__, "pid": os.getpid()}, sort_keys=True)
        found = await self._call("sign", name, token, round(ALIVE * 1000), about)
        if isinstance(found, bytes):
            other = json.loads(found)
            raise Busy(f"worker {name} on {other['host']}, pid {other['pid']},")
        launch, number, of, kind, stage = (one.decode() for one in found)
        return Orders(launch, int(number), of, kind, stage)

    async def leave(self, name: str, token: str) -> None:
        """Give up a worker's name."""
        await self._call("leave", name, token)

    async def report(self, name: str, number: int) -> None:
        """Report that a worker has done an order."""
        await self._call("report", name, number)

    async def publish(self, launch: str, files: Mapping[str, bytes], is_new: bool) -> None:
        """Publish what a worker needs of a launch. One that is new has no orders yet."""
        await self._call("publish", int(is_new), launch, *(word for pair in files.items() for word in pair))

    async def job(self) -> tuple[str, dict[str, bytes]]:
        """Return the launch, and its files; '' when there is none."""
        found = await self._call("job")
        files = {name.decode(): data for name, data in zip(found[::2], found[1::2], strict=True)}
        return files.pop(LAUNCH, b"").decode(), files

    async def order(self, launch: str, kind: Order, stage: str = "") -> int:
        """Give an order to all workers, and return its number."""
        return int(await self._call("order", launch, kind, stage))

    async def workers(self) -> list[WorkerSigns]:
        """Return the workers, by name."""
        found = await self._call("list")
        rows = zip(*[iter(found)] * 4, strict=True)
        return sorted(WorkerSigns(name.decode(), age / 1000, done, json.loads(more)) for name, age, done, more in rows)

    def close(self) -> None:
        """Close the link."""
        self._link.close()

    async def _call(self, *words: Any) -> Any:
        async with self._turn:
            return await asyncio.to_thread(self._link.call, "crew", *words)
