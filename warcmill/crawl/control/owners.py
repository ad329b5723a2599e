"""Whose hosts are, as the leader of a crawl over Redis tells it to the workers. Talks to Redis.

The leader has the file, and tells Redis each change with a number; all anew, under another name, where Redis has lost
any. A worker keeps nothing: it asks when it joins, each second, and before it hands a lease over. Until it knows all,
and while the cluster is alone, it leases nothing.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from warcmill.crawl.frontier.link import RedisLink
from warcmill.crawl.frontier.outbox import parts
from warcmill.crawl.policies.owners import OTHERS, HeardOwners, HostOwner, Owners
from warcmill.errors import Unavailable
from warcmill.model import Json

AT_ONCE = 400  # hosts of a call
MOST = 1000  # hosts of an answer, as the script has it


class ToldOwners:
    """The end of the leader: tells what its file says."""

    def __init__(self, link: RedisLink, owners: Owners) -> None:
        self._link, self._owners, self._turn = link, owners, asyncio.Lock()
        self._name, self._number, self._is_there = "", 0, False

    @property
    def mark(self) -> list[Json]:
        """The name and the number of the newest that was told; empty while Redis has not all of it."""
        return [self._name, self._number] if self._is_there else []

    async def tell(self, told: Sequence[HostOwner] = (), *, anew: bool = False) -> None:
        """Tell some changes, and that the others of the group are there. A Redis that is away hears all with the next
        ones."""
        async with self._turn:
            try:
                await self._tell(told, anew=anew)
            except Unavailable:
                self._is_there = False

    async def _tell(self, told: Sequence[HostOwner], *, anew: bool) -> None:
        is_told = self._is_there and not anew
        for some in parts(told, AT_ONCE) if is_told else ():
            is_told = is_told and await self._send(some, is_first=False, is_whole=True)
        if not is_told or not await self._hear():
            await self._tell_all()
            await self._hear()

    async def _tell_all(self) -> None:
        self._name, self._number, self._is_there = uuid.uuid4().hex, 0, False
        every = [*parts(self._owners.known, AT_ONCE)] or [()]
        for place, some in enumerate(every, 1):
            if not await self._send(some, is_first=place == 1, is_whole=place == len(every)):
                return  # another leads
        self._is_there = True

    async def _send(self, some: Sequence[HostOwner], *, is_first: bool, is_whole: bool) -> bool:
        self._number += 1
        words = [word for one in some for word in (one.host, f"{one.owner}{one.why}")]
        return bool(await self._call("tell", self._name, self._number, int(is_first), int(is_whole), *words))

    async def _hear(self) -> bool:
        """Tell that the others are there; False if Redis has something else. Of one that never heard it, nothing."""
        left = self._owners.alone_in
        if left <= 0:
            return True
        return bool(await self._call("hear", self._name, self._number, max(1, round(left * 1000))))

    async def _call(self, *words: Any) -> Any:
        return await asyncio.to_thread(self._link.call, "owners", *words)

    def close(self) -> None:
        """Close the link."""
        self._link.close()


class FollowedOwners(HeardOwners):
    """The end of a worker."""

    def __init__(self, link: RedisLink) -> None:
        super().__init__()
        self._link, self._turn = link, asyncio.Lock()
        self._name, self._number, self._is_whole, self._until = "", 0, False, 0.0

    @property
    def is_alone(self) -> bool:
        """True until it knows whose hosts are, and when that is not told any more."""
        return not self._is_whole or time.monotonic() > self._until

    @property
    def mark(self) -> list[Json]:
        """The name and the number of what it knows."""
        return [self._name, self._number] if self._is_whole else []

    async def refresh(self) -> None:
        """Hear what is new. While Redis is away, what was heard counts."""
        with suppress(Unavailable):
            async with self._turn:
                while await self._look():
                    pass

    async def _look(self) -> bool:
        """Hear some; True if there are more."""
        begun = time.monotonic()
        found = await asyncio.to_thread(self._link.call, "owners", "look", self._name, self._number)
        name, number, is_whole, left = found[0].decode(), int(found[1]), found[2] == b"1", found[3]
        if name != self._name:
            self._forget()
            self._name, self._number = name, 0
        rows = [*zip(*[iter(found[4:])] * 3, strict=True)]
        for _, host, raw in rows:
            owner = raw.decode() if raw else OTHERS
            self._put(HostOwner(host.decode(), owner[:1], owner[1:]))
        has_more = len(rows) == MOST
        self._number = int(float(rows[-1][0])) - 1 if has_more else number  # the last number may have more hosts
        self._is_whole, self._until = is_whole and not has_more, begun + left / 1000
        return has_more

    def close(self) -> None:
        """Close the link."""
        self._link.close()
