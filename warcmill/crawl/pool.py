"""Keep connections open between requests to one host (RFC 9112, 9.3)."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from warcmill.crawl import heartbeat
from warcmill.crawl.wire import Target, Wire

IDLE = 10.0  # seconds that a connection is kept; servers close theirs after 5 to 60
KEPT = 500  # connections


class Pool:
    """Idle connections, any number a target. The targets that were given one longest ago come first."""

    def __init__(self) -> None:
        self._idle: OrderedDict[Target, list[Wire]] = OrderedDict()
        self._number = 0
        self._timer: asyncio.TimerHandle | None = None

    async def take(self, target: Target) -> Wire | None:
        """Return a connection to the target that is still open and silent; None when there is none."""
        if target not in self._idle:
            return None
        await asyncio.sleep(0)  # the loop reads what has come meanwhile: an end, or an answer nobody asked for
        while target in self._idle:
            wire = self._pop(target, -1)
            if not wire.closed:
                wire.idle = False
                return wire
        return None

    def give(self, wire: Wire) -> None:
        """Keep a connection whose answer was read to its end."""
        if wire.closed:
            return
        wire.idle = True
        wire.last = heartbeat.current().now()
        self._idle.setdefault(wire.target, []).append(wire)
        self._idle.move_to_end(wire.target)
        self._number += 1
        if self._number > KEPT:
            self._pop(next(iter(self._idle)), 0).abort("too many are kept")
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(IDLE, self._sweep)

    def close(self) -> None:
        """Close all."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._idle:
            self._pop(next(iter(self._idle)), 0).abort("closed")

    def _pop(self, target: Target, place: int) -> Wire:
        wires = self._idle[target]
        wire = wires.pop(place)
        self._number -= 1
        if not wires:
            del self._idle[target]
        return wire

    def _sweep(self) -> None:
        now, self._timer = heartbeat.current().now(), None
        for target, wires in list(self._idle.items()):
            for place in reversed(range(len(wires))):
                if wires[place].closed or now - wires[place].last >= IDLE:
                    self._pop(target, place).abort("idle")
        if self._idle:
            self._timer = asyncio.get_running_loop().call_later(IDLE, self._sweep)
