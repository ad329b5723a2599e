"""One connection to a web server, judged by the address that it dials. What comes in is handed on byte for byte.

This module alone connects to web servers: `dial` is the only way, and asks the
judge first.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import NamedTuple, cast

from warcmill.crawl import heartbeat, tls
from warcmill.crawl.addresses import Judge
from warcmill.crawl.limits import CONNECT_FAILED, NOT_ALLOWED, Failure

HELD = 1 << 18  # bytes that wait to be read before the server is made to wait
UNTIMED = 86_400.0  # seconds of a handshake, for asyncio, which counts those that the loop stood: `_connect` limits it


class Target(NamedTuple):
    """What is dialled: a numeric address, a port, and for TLS the host's name ('' without TLS)."""

    address: str
    port: int
    tls_name: str = ""


class Wire(asyncio.Protocol):
    """A connection. `read` returns what came; `idle` wires are closed by anything that comes unasked."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.certificate = ""
        self.idle = False
        self.closed = False
        self.error = ""
        self.received = 0
        self._heartbeat = heartbeat.current()
        self.last = self._heartbeat.now()
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._pieces: list[bytes] = []
        self._held, self._paused = 0, False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Keep what came, or close an idle connection: what comes unasked is no answer to what is asked next."""
        if self.idle:
            self.abort("an answer that was not asked for")
            return
        self._pieces.append(data)
        self._held += len(data)
        self.received += len(data)
        self.last = self._heartbeat.now()
        if self._held > HELD and self._transport is not None and not self._paused:
            self._transport.pause_reading()
            self._paused = True
        self._wake()

    def eof_received(self) -> None:
        """End: the server sends no more. None lets asyncio close the transport."""
        self.closed = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """End, by an error when there is one."""
        self.closed = True
        self.error = self.error or (str(exc) or type(exc).__name__ if exc else "")
        self._wake()

    def send(self, data: bytes) -> None:
        """Send a request."""
        if self._transport is not None and not self.closed:
            self._transport.write(data)

    async def read(self) -> bytes:
        """Return what came since the last call, and wait for it if need be; b"" at the end."""
        while not self._pieces:
            if self.closed:
                return b""
            self._waiter = self._loop.create_future()
            await self._waiter
        return self.waiting()

    def waiting(self) -> bytes:
        """Return what came since the last call, without waiting."""
        if not self._pieces:
            return b""
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._held = 0
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return data

    def abort(self, why: str) -> None:
        """Close at once; what `read` has not returned yet is still returned."""
        self.closed = True
        self.error = self.error or why
        if self._transport is not None:
            self._transport.abort()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


async def dial(target: Target, judge: Judge, timeout: float, certificate: str = "") -> Wire | Failure:
    """Connect. With a note on the host's `certificate` from an earlier connection, it is not verified again."""
    if why := judge.why_refused(target.address):
        return Failure(NOT_ALLOWED, f"{target.address} is not dialled: {why}")
    if not target.tls_name:
        return await _connect(target, None, timeout)
    try:
        target.tls_name.encode("idna")
    except UnicodeError as error:
        return Failure(CONNECT_FAILED, f"TLS cannot ask for the host: {error}")
    try:
        if not certificate:
            return await _connect(target, tls.strict(), timeout)
    except tls.REFUSED as error:
        certificate = tls.why(error)
    try:
        wire = await _connect(target, tls.lax(), timeout)
    except tls.REFUSED as error:
        return Failure(CONNECT_FAILED, f"no TLS with {target.address}: {tls.why(error)}")
    if isinstance(wire, Wire):
        wire.certificate = certificate
    return wire


async def _connect(target: Target, context: ssl.SSLContext | None, timeout: float) -> Wire | Failure:
    """Connect; what ends a handshake passes."""
    connecting = asyncio.get_running_loop().create_connection(
        lambda: Wire(target),
        target.address,
        target.port,
        ssl=context,
        server_hostname=target.tls_name if context else None,
        ssl_handshake_timeout=UNTIMED if context else None,
    )
    try:
        async with heartbeat.timeout(timeout):
            _, wire = await connecting
    except TimeoutError:
        return Failure(CONNECT_FAILED, f"no connection to {target.address} port {target.port} in {timeout:g} s")
    except OSError as error:
        if context and isinstance(error, tls.REFUSED):
            raise
        return Failure(CONNECT_FAILED, f"no connection to {target.address} port {target.port}: {error}")
    return wire
