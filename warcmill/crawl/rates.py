"""Rates as the database keeps them, and what they allow now. Pure."""

from __future__ import annotations

import json
import struct
from dataclasses import asdict
from functools import lru_cache

from warcmill.crawl.frontier import Rate

UNBOUNDED = 1 << 30
_TIME = struct.Struct("<d")


def pack(rate: Rate | None) -> str | None:
    """Return a rate as text; None for none."""
    return None if rate is None else json.dumps(asdict(rate), sort_keys=True)


@lru_cache(1000)
def read(text: str) -> Rate:
    """Return the rate of a text."""
    return Rate(**json.loads(text))


def allowed(rate: Rate, out: int, recent: bytes, now: float) -> int:
    """How many leases a gate may give now, of which `out` are out; `recent` are its last hits."""
    room = UNBOUNDED if rate.at_once is None else rate.at_once - out
    if rate.hits is None:
        return room
    hits, window = rate.whole
    if rate.moderated:
        return min(room, 1)  # it is closed until the next is due
    return min(room, hits - len(_within(recent, now - window)))


def after_hits(rate: Rate, recent: bytes, taken: int, now: float) -> tuple[bytes, float]:
    """The last hits of a gate that gave so many leases now, and until when it is closed for that; 0: it is open."""
    hits, window = rate.whole
    if rate.moderated:
        return b"", now + window / hits
    kept = [*_within(recent, now - window), *[now] * taken]
    return b"".join(map(_TIME.pack, kept)), kept[0] + window if len(kept) >= hits else 0.0


def earlier(recent: bytes, seconds: float) -> bytes:
    """The last hits of a gate as if they had been so many seconds earlier."""
    return b"".join(_TIME.pack(moment - seconds) for (moment,) in _TIME.iter_unpack(recent))


def _within(recent: bytes, begin: float) -> list[float]:
    return [moment for (moment,) in _TIME.iter_unpack(recent) if moment > begin]
