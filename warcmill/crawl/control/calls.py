"""Calls of a crawl over Redis: what its control socket takes, from any machine. Talks to Redis, and to the socket.

The process that has the launch looks for calls many times a second, and answers each by a line, as on its socket.
`RunningJob` asks by the socket where the crawl runs, and over Redis elsewhere.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, Final

from warcmill.crawl.control import control, messages
from warcmill.crawl.control.control import CLIENTS, SECONDS
from warcmill.crawl.frontier.link import RedisLink, RedisPlace
from warcmill.errors import BadInput, NotReady, Unavailable, WarcmillError
from warcmill.model import Json

POLL: Final = 0.05  # seconds between two looks for calls
AGAIN: Final = 1.0  # seconds until a Redis that is away is asked again
LONGEST: Final = 0.2  # seconds between two looks for an answer; the first is soon
END: Final = 5.0  # seconds for which a crawl that ends lets answers be given

log = logging.getLogger(__name__)


class CallsOverRedis:
    """The end of the crawl: answers calls from `listen` to `close`."""

    def __init__(self, link: RedisLink, reply: Callable[[bytes], Awaitable[bytes]]) -> None:
        self._link, self._reply, self._one = link, reply, Lock()
        self._busy: set[asyncio.Task[None]] = set()
        self._listens: asyncio.Task[None] | None = None

    def open(self) -> asyncio.Task[None]:
        """Begin to listen; return the task that does, which ends by a bug only."""
        self._listens = asyncio.create_task(self._listen())
        return self._listens

    async def _listen(self) -> None:
        """Answer calls. A Redis that is away is asked again."""
        while True:
            try:
                found = await self._call("take", CLIENTS - len(self._busy))
            except WarcmillError as error:
                log.debug("nobody is heard: %s", error)
                await asyncio.sleep(AGAIN)
                continue
            for name, line in zip(found[::2], found[1::2], strict=True):
                task = asyncio.create_task(self._answer(name, line))
                self._busy.add(task)
                task.add_done_callback(self._busy.discard)
            await asyncio.sleep(POLL)

    async def close(self) -> None:
        """Give the answers that are ready soon, and hear no more."""
        if self._listens is None:
            return
        self._listens.cancel()
        self._listens = None
        if self._busy:
            await asyncio.wait(self._busy, timeout=END)
        for task in tuple(self._busy):
            task.cancel()
        await asyncio.gather(*self._busy, return_exceptions=True)
        with suppress(WarcmillError):  # who asks then waits a few seconds more
            await self._call("hang_up")
        self._link.close()

    async def _answer(self, name: bytes, line: bytes) -> None:
        with suppress(WarcmillError):  # who asked hears that it is not known
            await self._call("answer", name, await self._reply(line))

    async def _call(self, *words: Any) -> Any:
        return await asyncio.to_thread(self._alone, *words)

    def _alone(self, *words: Any) -> Any:
        """Call on one thread at a time: one that was cancelled may still be under way."""
        with self._one:
            return self._link.call("calls", *words)


class RunningJob:
    """A job, as others speak to the crawl that runs of it: by `socket` on this machine, or over the Redis that has its
    frontier. One of the two may be None."""

    def __init__(self, name: str, socket: Path | None, place: RedisPlace | None = None) -> None:
        self.name, self._socket, self._place = name, socket, place
        self._link: RedisLink | None = None
        self.is_elsewhere = False  # the last answer came over Redis

    def ask(self, verb: str, seconds: float = SECONDS, **fields: Json) -> Json:
        """Return what the crawl answers, or raise its refusal. NotReady without a crawl; Unavailable when it does not
        answer within `seconds`, and what became of the request is not known."""
        try:
            if self._socket:
                found = control.ask(self._socket, verb, seconds, **fields)
                self.is_elsewhere = False
                return found
        except NotReady:
            if not self._place:
                raise
        return messages.read_answer(self._over_redis({"verb": verb, **fields}, seconds))

    def watch(self, seconds: int) -> Iterator[Json]:
        """Yield the crawl's state again and again, until it ends."""
        try:
            if self._socket:
                yield from control.watch(self._socket, seconds)
                return
        except NotReady:
            if not self._place:
                raise
        yield self.ask("state")
        with suppress(NotReady):
            while True:
                time.sleep(seconds)
                yield self.ask("state")

    def close(self) -> None:
        """Close the connection."""
        if self._link:
            self._link.close()
            self._link = None

    def _over_redis(self, request: Mapping[str, Json], seconds: float) -> bytes:
        line = json.dumps(request).encode()
        if len(line) > messages.LINE:
            raise BadInput("request", f"the line is longer than {messages.LINE} bytes")
        if not self._place:
            raise NotReady(f"job {self.name}", "it is not crawled on this machine, and its frontier is in no Redis")
        self._link = self._link or RedisLink(self._place, self.name)
        name, deadline, wait = uuid.uuid4().hex, time.monotonic() + seconds, 0.01
        absent = NotReady(f"job {self.name}", f"no crawl of it runs; nobody listens at {self._place.shown}")
        if not self._link.call("calls", "ask", name, line, round(seconds * 1000)):
            raise absent
        while True:
            time.sleep(wait)
            wait = min(1.5 * wait, LONGEST)
            is_over = time.monotonic() >= deadline
            found = self._link.call("calls", "answered", name, int(is_over))
            if isinstance(found, bytes):
                self.is_elsewhere = True
                return found
            if found == 0 and not is_over:
                raise absent
            if found == 0:
                why = f"the crawl has not taken the request up within {seconds:.0f} s, and does not do so now"
                raise Unavailable(self._place.shown, f"{why}; ask again")
            if found is not None:
                why = "the crawl did not answer: what became of the request is not known; ask for 'state'"
                raise Unavailable(self._place.shown, why)
