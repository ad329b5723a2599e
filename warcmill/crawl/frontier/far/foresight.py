"""Foresight: which URIs are known, asked for while the changes before are still made. Asks Redis by the sender.

An answer is old when it is used. Redis has heard what was sent before the question; all else that this process has
offered is known besides.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager

from warcmill.crawl.frontier.outbox import seen_words
from warcmill.crawl.frontier.sender import Sender
from warcmill.crawl.uri import Uri, digest
from warcmill.errors import Unavailable


class Foresight:
    """The answers for one change that is being made. URIs have the names of their digests."""

    def __init__(self, among: Foresights) -> None:
        self._among = among
        self.known: dict[bytes, bool] = {}
        self.offered = set[bytes]()  # by other changes
        self.own = set[bytes]()

    def knows(self, uris: Sequence[Uri]) -> list[bool]:
        """Say which URIs are known; Redis is asked for those that nobody has foreseen. On any thread."""
        names = [digest(uri.crawl, uri.key) for uri in uris]
        if unforeseen := self.unknown(uris):
            self.known |= self._among.ask(unforeseen)
        return [name in self.offered or self.known.get(name, False) for name in names]

    def unknown(self, uris: Sequence[Uri]) -> dict[bytes, str]:
        """The crawls of the URIs of which it has no answer."""
        names = {digest(uri.crawl, uri.key): uri.crawl for uri in uris}
        return {name: crawl for name, crawl in names.items() if not (name in self.known or name in self.offered)}

    def note_offered(self, offered: set[bytes]) -> None:
        """Note what its change offers; all others that are made hear it. On any thread."""
        self.own |= offered
        for other in self._among.all:
            if other is not self:
                other.offered |= offered


class Foresights:
    """The foresights of the changes that are being made."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self.all: tuple[Foresight, ...] = ()

    @asynccontextmanager
    async def begun(self, uris: Sequence[Uri]) -> AsyncIterator[Foresight]:
        """Ask which of some URIs are known, and have a foresight of it while the block runs, which hands the change to
        the sender."""
        one = Foresight(self)
        self.all = (*self.all, one)  # before it looks at the others: they offer on another thread
        try:
            for other in self.all[:-1]:
                one.offered |= other.own
            for group in self._sender.unsent:
                one.offered |= group.offered
            if not self._sender.away and (names := one.unknown(uris)):
                await self._ask_ahead(one, names)
            yield one
        finally:
            self.all = tuple(other for other in self.all if other is not one)

    async def _ask_ahead(self, one: Foresight, names: Mapping[bytes, str]) -> None:
        try:
            answers = await self._sender.call_all("look", seen_words(names))
        except Unavailable as error:
            self._sender.gone(error)
        else:
            one.known |= _by_name(names, answers)

    def ask(self, names: Mapping[bytes, str]) -> dict[bytes, bool]:
        """Ask which URIs are known; nothing is known of them while Redis is away."""
        try:
            return {} if self._sender.away else _by_name(names, self._sender.ask_all("look", seen_words(names)))
        except Unavailable:  # the next call that waits for Redis finds it away
            return {}


def _by_name(names: Iterable[bytes], answers: Sequence[Sequence[object]]) -> dict[bytes, bool]:
    return dict(zip(names, (one == 1 for some in answers for one in some), strict=True))
