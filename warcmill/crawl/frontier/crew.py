"""The workers of a job whose frontier is in Redis: who lives, what is ordered, and who has done it. Talks to Redis.

The leader publishes the files of its launch, and gives orders: to close a stage, or to end the launch. A worker gives a
sign of life every second and learns of the order; when it has done it, it reports. Nothing of this is durable: files
and journals are. `retire` declares a worker dead: nothing waits for it, and it may not come back.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import os
import socket
import zlib
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from warcmill import __version__
from warcmill.base import clock
from warcmill.crawl.frontier.link import RedisLink
from warcmill.crawl.frontier.outbox import parts
from warcmill.errors import Busy, Conflict, NotReady
from warcmill.model import Json

ALIVE = 30.0  # seconds after its last sign for which a worker without open files keeps its name
LAUNCH, EDITION, ELSEWHERE = "launch", "edition", "elsewhere"
LEFT = 1e8  # seconds: it gave its name up, so its last sign is of 1970
WRITER = 32  # letters of a token that name a register; the rest names the host
NO_LAUNCH = "-"
_MOST = 100  # documents of a call


class Order(StrEnum):
    """The kinds of orders: close a stage, and wait; continue; end the launch."""

    CHECKPOINT = "checkpoint"
    CONTINUE = "continue"
    END = "end"


class Orders(NamedTuple):
    """The launch that Redis has, the edition of its files, what is to be counted of others; and the newest order: its
    number, the launch that it is for, its kind and stage. `purged`: how many crawls were."""

    current: str
    edition: str
    elsewhere: str
    number: int
    launch: str
    kind: str
    stage: str
    purged: int


class WorkerSigns(NamedTuple):
    """A worker as others see it: seconds since its last sign, the launch whose files it has open ('-': none), the order
    that it did last, its leases; and what it says of itself, such as host, version and figures."""

    name: str
    age: float
    launch: str
    done: int
    token: str
    leases: int
    about: Mapping[str, Json]

    @property
    def is_open(self) -> bool:
        """True if it has files open."""
        return self.launch != NO_LAUNCH

    @property
    def has_left(self) -> bool:
        """True if it has ended by a signal, with its files closed."""
        return not self.is_open and self.age > LEFT


class RetiredWorker(NamedTuple):
    """A worker that was declared dead: the reason, when, its host, and how many visits since its last stage only its
    disk has."""

    name: str
    reason: str
    at: str
    host: str
    launch: str
    visits: int


def token_of(writer: str) -> str:
    """Return the token of a worker: another register, or a copy of it on another host, has another."""
    return f"{writer}{zlib.crc32(socket.gethostname().encode()):08x}"


class Crew:
    """The workers of a job, over a link of its own. Every call may raise Unavailable."""

    def __init__(self, link: RedisLink) -> None:
        self._link, self._turn = link, asyncio.Lock()

    async def sign(self, name: str, token: str, launch: str = "", figures: Mapping[str, Json] | None = None) -> Orders:
        """Give a sign of life of a worker, and return the orders. `launch`: the one whose files it has open. Busy when
        another has its name, Conflict when it was retired."""
        about = {"host": socket.gethostname(), "version": __version__, "pid": os.getpid(), **(figures or {})}
        text = json.dumps(about, sort_keys=True)
        found = await self._call("sign", name, token, round(ALIVE * 1000), launch or NO_LAUNCH, text)
        if len(found) == 2:
            raise _refused(name, found[0].decode(), json.loads(found[1]))
        current, edition, elsewhere, number, of, kind, stage = (one.decode() for one in found[:-1])
        return Orders(current, edition, elsewhere, int(number), of, kind, stage, found[-1])

    async def leave(self, name: str, token: str) -> None:
        """Give up a worker's name."""
        await self._call("leave", name, token)

    async def remember(self, one: WorkerSigns) -> None:
        """Note a worker that Redis may have lost."""
        about = json.dumps(dict(one.about), sort_keys=True)
        await self._call("remember", one.name, one.token, one.launch, about)

    async def report(self, name: str, number: int, writer: str, statistics: bytes) -> None:
        """Report that a worker has done an order, and closed its files for it; its statistics go with it."""
        await self._call("report", name, number, writer, gzip.compress(statistics, 1, mtime=0))

    async def statistics(self) -> list[bytes]:
        """Return the statistics that workers reported last."""
        found = await self._call("statistics")
        return [gzip.decompress(data) for _, data in sorted(zip(found[::2], found[1::2], strict=True))]

    async def publish(self, launch: str, files: Mapping[str, bytes], is_new: bool) -> None:
        """Publish what a worker needs of a launch. A new launch has no orders yet."""
        words = [word for pair in sorted(files.items()) for word in pair]
        digest = hashlib.sha256(b"\0".join(w.encode() if isinstance(w, str) else w for w in words)).hexdigest()
        await self._call("publish", int(is_new), launch, digest, *words)

    async def job(self) -> tuple[str, str, dict[str, bytes]]:
        """Return the launch, the edition of its files, and these; '' when there is none."""
        found = await self._call("job")
        files = {name.decode(): data for name, data in zip(found[::2], found[1::2], strict=True)}
        launch, edition, _ = (files.pop(name, b"").decode() for name in (LAUNCH, EDITION, ELSEWHERE))
        return launch, edition, files

    async def teach(self, documents: Mapping[int, Mapping[str, Json]]) -> None:
        """Publish the documents of a service, by number: each process needs them to visit URIs of these."""
        for some in parts([*documents.items()], _MOST):
            await self._call("teach", *(word for number, one in some for word in (number, json.dumps(one))))

    async def documents(self, numbers: Sequence[int]) -> list[bytes | None]:
        """Return documents by number; None for one that Redis has not: the leader is asked for it."""
        return [one for some in parts(numbers, _MOST) for one in await self._call("targets", *some)]

    async def asked(self) -> list[int]:
        """Return numbers of documents that others ask for, up to a hundred."""
        return [int(one) for one in await self._call("asked")]

    async def keep_documents(self, numbers: Collection[int]) -> None:
        """Remove all documents but these."""
        cursor: Any = b"0"
        while True:
            cursor, *found = await self._call("taught", cursor)
            if gone := [one for one in map(int, found) if one not in numbers]:
                await self._call("forget", *gone)
            if cursor == b"0":
                return

    async def share(self, elsewhere: str) -> None:
        """Publish what processes are to count of each other."""
        await self._call("elsewhere", elsewhere)

    async def order(self, launch: str, kind: Order, stage: str = "") -> int:
        """Give an order to all workers, and return its number."""
        return int(await self._call("order", launch, kind, stage))

    async def pause(self, is_paused: bool) -> None:
        """Let no process of the crawl lease anything; or let them again."""
        await self._call("pause", int(is_paused))

    async def release(self, token: str) -> None:
        """Give back the leases of a worker."""
        cursor: Any = b"0"
        while True:
            async with self._turn:
                cursor = await asyncio.to_thread(self._link.call, "manage", "release", token[:WRITER], cursor)
            if cursor == b"0":
                return

    async def retire(self, name: str, reason: str) -> RetiredWorker:
        """Declare a worker dead. NotReady for one that is not known, Conflict for one that is retired."""
        retired = {one.name: one for one in await self.retired()}
        if one := retired.get(name):
            raise Conflict(f"worker {name}", f"was retired at {one.at}: {one.reason}")
        signs = {one.name: one for one in (await self.workers())[1]}
        if (found := signs.get(name)) is None:
            known = ", ".join(signs) or "none"
            raise NotReady(f"worker {name}", f"is not known; the workers of this job: {known}")
        writer = found.token[:WRITER]
        visits = int(await self._call("visits", writer))
        dead = RetiredWorker(name, reason, clock.now(), str(found.about.get("host", "")), found.launch, visits)
        await self._call("retire", name, json.dumps(dead._asdict(), sort_keys=True))
        await self.release(found.token)
        return dead

    async def bury(self, dead: RetiredWorker) -> None:
        """Note a worker that was declared dead: a Redis that was emptied has lost it."""
        await self._call("retire", dead.name, json.dumps(dead._asdict(), sort_keys=True))

    async def retired(self) -> list[RetiredWorker]:
        """Return who was declared dead, by name."""
        found = await self._call("retired")
        return sorted(RetiredWorker(**json.loads(text)) for text in found[1::2])

    async def workers(self) -> tuple[int, list[WorkerSigns]]:
        """Return the number of the newest order, and the workers by name."""
        number, *found = await self._call("list")
        rows = zip(*[iter(found)] * 7, strict=True)
        return number, sorted(
            WorkerSigns(name.decode(), age / 1000, launch.decode(), done, token.decode(), leases, json.loads(more))
            for name, age, launch, done, token, leases, more in rows
        )

    def close(self) -> None:
        """Close the link."""
        self._link.close()

    async def _call(self, *words: Any) -> Any:
        async with self._turn:
            return await asyncio.to_thread(self._link.call, "crew", *words)


def _refused(name: str, why: str, of: Mapping[str, Json]) -> Busy | Conflict:
    if why == "retired":
        text = f"was retired at {of['at']}: {of['reason']}. Begin it under another name, with another folder"
        return Conflict(f"worker {name}", text)
    if why == "open":
        return Busy(
            f"the name of worker {name} on {of['host']}, which has files of the launch (start it there, or retire it),"
        )
    return Busy(f"worker {name} on {of['host']}, pid {of['pid']},")
