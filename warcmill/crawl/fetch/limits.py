"""The limits of one fetch, and the words and statuses for those that were reached. Pure."""

from __future__ import annotations

from msgspec import Struct

# WARC-Truncated (ISO 28500, 5.13), and Heritrix's word for it in the crawl log; it has none for a connection lost.
LENGTH, TIME, DISCONNECT = "length", "time", "disconnect"
ANNOTATIONS = {LENGTH: "lenTrunc", TIME: "timeTrunc", DISCONNECT: "disconnectTrunc"}
HEADER_CUT = "headerTrunc"

# Heritrix's status codes of a fetch that brought no answer.
NO_ADDRESS, CONNECT_FAILED, CONNECTION_LOST, TIMED_OUT, NOT_ALLOWED = -1, -2, -3, -4, -5002


class FetchLimits(Struct, frozen=True):
    """The limits of one fetch: sizes in bytes, times in seconds, rates in bytes a second (0: none).

    `slowest` counts from `grace` on, for a server that sends a byte now and then.
    `decoded` and `ratio` bound what is decoded to be parsed, `links` what is taken of it, of a playlist `segments`; the
    record is whole.
    """

    header: int = 1 << 18
    body: int = 1 << 30
    connect: float = 20.0
    idle: float = 20.0
    total: float = 1200.0
    fastest: int = 0
    slowest: int = 64
    grace: float = 60.0
    decoded: int = 1 << 24
    ratio: int = 128
    links: int = 50_000
    segments: int = 20_000


class Failure(Struct, frozen=True):
    """No answer: Heritrix's `status` for the crawl log, and `why`. `final`: asking again would not help."""

    status: int
    why: str
    final: bool = False
