"""A fetcher of one URI by HTTP/1.1: it sends a request, keeps every byte of the answer, stops at the limits.

Redirects are not followed and codings not undone: the crawler decides what comes next. Connections stay open between
requests to one host (RFC 9112, 9.3). A request that a kept connection swallowed is sent once more, on a new one.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from warcmill.crawl.fetch import heartbeat
from warcmill.crawl.fetch import wire as tls
from warcmill.crawl.fetch.addresses import Judge
from warcmill.crawl.fetch.conversation import Conversation
from warcmill.crawl.fetch.exchange import Exchange, FetchRequest
from warcmill.crawl.fetch.limits import CONNECTION_LOST, NO_ADDRESS, Failure, FetchLimits
from warcmill.crawl.fetch.wire import Connection, Endpoint, dial

PORTS = {"http": 80, "https": 443}
_URI = re.compile(
    r"(https?)://(?:[^/?#@]*@)?(\[[0-9a-f:.]+\]|[^\s/?#@:\[\]\\]+)(?::(\d{1,5}))?((?:[/?][^#]*)?)(?:#.*)?"
)
REPEATABLE = frozenset(["GET", "HEAD", "OPTIONS"])  # others get a new connection, which swallows none (RFC 9110, 9.2.2)
_OURS = frozenset(["host", "user-agent", "accept", "accept-encoding"])
NOTED = 10_000  # hosts whose bad certificate is remembered
ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

IDLE = 10.0  # seconds that a connection is kept; servers close theirs after 5 to 60
KEPT = 500  # connections


class Site(Struct, frozen=True):
    """The place that a URI's request goes to, and the words of its request line and Host."""

    host: str
    port: int
    tls: bool
    host_field: str
    path: str

    @classmethod
    @lru_cache(1_000)  # each is asked for several times, in one visit
    def of(cls, uri: str) -> Site:
        """The site of a canonical http or https URI; ValueError for another. Credentials are not sent."""
        parts = _URI.fullmatch(uri)
        if not parts:
            raise ValueError(f"{uri[:80]!r} is no canonical http or https URL")
        scheme, host, port, path = parts.groups("")
        field = f"{host}:{port}" if port else host
        return cls(host.strip("[]"), int(port or PORTS[scheme]), scheme == "https", field, path or "/")


class Fetcher:
    """Fetches URIs; keeps connections between them. `scratch` is a folder for long answers; `close` it at the end."""

    def __init__(self, judge: Judge, limits: FetchLimits, user_agent: str, scratch: Path) -> None:
        self.limits = limits
        self._judge, self._agent, self._scratch = judge, user_agent, scratch
        self._pool = ConnectionPool()
        self._certificates: OrderedDict[tuple[str, int], str] = OrderedDict()

    async def fetch(
        self, request: FetchRequest, addresses: Sequence[str], limits: FetchLimits | None = None
    ) -> Exchange | Failure:
        """Fetch a URI from the first of its host's addresses that takes the connection; `limits` may be its own."""
        site = Site.of(request.uri)
        limits = limits or self.limits
        if request.timeout:
            limits = replace(limits, total=request.timeout)
        sent = request_bytes(request, site, self._agent)
        for address in addresses if request.method in REPEATABLE else ():
            target = Endpoint(address, site.port, site.host if site.tls else "", request.proxy)
            if wire := await self._pool.take(target):
                result = await self._exchange(wire, request, sent, limits)
                if isinstance(result, Exchange) or result.status != CONNECTION_LOST:
                    return result
        return await self._anew(site, addresses, request, sent, limits)

    def close(self) -> None:
        """Close the kept connections."""
        self._pool.close()

    async def _anew(
        self, site: Site, addresses: Sequence[str], request: FetchRequest, sent: bytes, limits: FetchLimits
    ) -> Exchange | Failure:
        failure = Failure(NO_ADDRESS, f"no address of {site.host} is known")
        for address in addresses:
            target = Endpoint(address, site.port, site.host if site.tls else "", request.proxy)
            wire = await dial(target, self._judge, limits.connect, self._certificates.get((site.host, site.port), ""))
            if isinstance(wire, Connection):
                self._note(site, wire.certificate)
                return await self._exchange(wire, request, sent, limits)
            failure = wire
        return failure

    def _note(self, site: Site, certificate: str) -> None:
        """Remember a host's bad certificate, so that its next connection needs one handshake, not two. A handshake that
        the server ended proves nothing: the next may succeed."""
        if certificate and certificate != tls.ENDED:
            self._certificates[site.host, site.port] = certificate
            if len(self._certificates) > NOTED:
                self._certificates.popitem(last=False)

    async def _exchange(
        self, wire: Connection, request: FetchRequest, sent: bytes, limits: FetchLimits
    ) -> Exchange | Failure:
        talk = Conversation(wire, request, sent, limits, self._scratch)
        try:
            result = await talk.run()
        except BaseException:
            talk.give_up()
            raise
        if talk.reusable:
            self._pool.give(wire)
        else:
            wire.abort("its answer has ended")
        return result


def request_bytes(request: FetchRequest, site: Site, user_agent: str) -> bytes:
    """The request as it is sent (RFC 9112, 3)."""
    ours = [("Host", site.host_field), ("User-Agent", user_agent), ("Accept", ACCEPT), ("Accept-Encoding", "gzip")]
    given = {name.lower() for name, _ in request.headers}
    if not _OURS.isdisjoint(given):
        ours = [(name, value) for name, value in ours if name.lower() not in given]
    fields = [*ours, *request.headers]
    if request.body and "content-length" not in given:
        fields.append(("Content-Length", str(len(request.body))))
    head = f"{request.method} {site.path} HTTP/1.1\r\n" + "".join([f"{name}: {value}\r\n" for name, value in fields])
    if head.count("\n") != len(fields) + 1 or head.count("\r") != len(fields) + 1 or "\0" in head:
        raise ValueError(f"a line end in what would be a header of the request to {request.uri[:80]!r}")
    if " " in site.path or not site.path.isascii():
        raise ValueError(f"{request.uri[:80]!r} is not escaped")
    return head.encode("utf-8", "surrogateescape") + b"\r\n" + request.body


class ConnectionPool:
    """Idle connections, any number a target. The targets that were given one longest ago come first."""

    def __init__(self) -> None:
        self._idle: OrderedDict[Endpoint, list[Connection]] = OrderedDict()
        self._number = 0
        self._timer: asyncio.TimerHandle | None = None

    async def take(self, target: Endpoint) -> Connection | None:
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

    def give(self, wire: Connection) -> None:
        """Keep a connection whose answer was read to its end."""
        if wire.closed:
            return
        wire.idle = True
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

    def _pop(self, target: Endpoint, place: int) -> Connection:
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
