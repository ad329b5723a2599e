"""Keep connections open between requests to one host (RFC 9112, 9.3)."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from warcmill.crawl.wire import Target, Wire

IDLE = 10.0  # seconds that a connection is kept; servers close theirs after 5 to 60
KEPT = 500  # connections


class Pool:
    """Idle connections, one a target, the longest idle first."""

    def __init__(self) -> None:
        self._wires: OrderedDict[Target, Wire] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    async def take(self, target: Target) -> Wire | None:
        """Return a connection to the target that is still open and silent; None when there is none."""
        if target not in self._wires:
            return None
        await asyncio.sleep(0)  # the loop reads what has come meanwhile: an end, or an answer nobody asked for
        wire = self._wires.pop(target, None)
        if wire is None or wire.closed:
            return None
        wire.idle = False
        return wire

    def give(self, wire: Wire) -> None:
        """Keep a connection whose answer was read to its end."""
        if wire.closed:
            return
        if other := self._wires.pop(wire.target, None):
            other.abort("another connection is kept")
        wire.idle = True
        self._wires[wire.target] = wire
        wire.last = asyncio.get_running_loop().time()
        if len(self._wires) > KEPT:
            self._wires.popitem(last=False)[1].abort("too many are kept")
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(IDLE, self._sweep)

    def close(self) -> None:
        """Close all."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._wires:
            self._wires.popitem()[1].abort("closed")

    def _sweep(self) -> None:
        loop, self._timer = asyncio.get_running_loop(), None
        for target, wire in list(self._wires.items()):
            if wire.closed or loop.time() - wire.last >= IDLE:
                del self._wires[target]
                wire.abort("idle")
        if self._wires:
            self._timer = loop.call_later(IDLE, self._sweep)
