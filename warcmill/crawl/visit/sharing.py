"""Sharing: of several who want one answer at one time, one asks for it, and all get it. No network.

A URI that is being visited may be asked for by the browser of another page, and two pages may embed one picture. The
`Turns` of a launch know which GETs are under way; each has a `SharedAnswer` until the books have it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from warcmill.crawl.fetch.exchange import Exchange
from warcmill.crawl.uri import Uri


class SharedAnswer:
    """An answer that is asked for, and then, until nobody needs its bytes any more, there.

    `has_waited`: who asks for it has waited for another to end. `why`: the reason for which it has no answer.
    """

    def __init__(self, *, has_waited: bool = False) -> None:
        self.has_waited, self.why = has_waited, ""
        self._exchange: Exchange | None = None
        self._is_there, self._ended = asyncio.Event(), asyncio.Event()
        self._users = 1  # its owner, and who waits for it or reads it

    def put(self, exchange: Exchange) -> None:
        """Give it to all who wait for it. It is closed when its owner and the last of them have left it."""
        self._exchange = exchange
        self._is_there.set()

    async def read(self) -> Exchange | None:
        """Wait for the answer: who gets one must `leave` it. None: it has ended without one, or is closed already."""
        self._users += 1
        try:
            await self._is_there.wait()
        except asyncio.CancelledError:
            self.leave()
            raise
        if self._exchange is None:
            self._users -= 1
        return self._exchange

    def leave(self) -> None:
        """Read it no more."""
        self._users -= 1
        if self._exchange is not None and not self._users:
            self._exchange.close()
            self._exchange = None

    def end(self) -> None:
        """Its owner has nothing more to do with it: the books have it, or it will not come."""
        self._is_there.set()
        self._ended.set()
        self.leave()

    async def ended(self) -> None:
        """Wait until its owner has nothing more to do with it."""
        await self._ended.wait()


class Turns:
    """The GETs that are under way, by crawl and URI."""

    def __init__(self) -> None:
        self._under_way: dict[tuple[str, str], SharedAnswer] = {}

    def find(self, uri: Uri) -> SharedAnswer | None:
        """Return the one that is under way, if any."""
        return self._under_way.get((uri.crawl, uri.uri))

    def begin(self, uri: Uri, *, has_waited: bool = False) -> SharedAnswer:
        """Begin one, unless it is under way already. It must be given to `end`."""
        shared = self._under_way[uri.crawl, uri.uri] = SharedAnswer(has_waited=has_waited)
        return shared

    def end(self, uri: Uri, shared: SharedAnswer) -> None:
        """End one."""
        del self._under_way[uri.crawl, uri.uri]
        shared.end()

    @asynccontextmanager
    async def of(self, uri: Uri, *, is_shared: bool = True) -> AsyncIterator[SharedAnswer]:
        """Have one under way while the block runs, once nobody else has it; `is_shared`: False if nobody asks."""
        has_waited = False
        if not is_shared:
            shared = SharedAnswer()
            try:
                yield shared
            finally:
                shared.end()
            return
        while other := self.find(uri):
            has_waited = True
            await other.ended()
        shared = self.begin(uri, has_waited=has_waited)
        try:
            yield shared
        finally:
            self.end(uri, shared)
