"""One connection to a web server, judged by its address. Every byte that comes in is passed on as it is.

This module alone connects to web servers: `dial` is the only way, and asks the judge first. A first TLS handshake
verifies, and demands what is sound today. When that fails, a second one on a new connection takes what the server has:
old servers are still read, and a certificate that is not valid is noted, not refused. Through a proxy the way is the
same: it is asked for a tunnel to the address that was judged.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from base64 import b64encode
from functools import cache
from typing import NamedTuple, cast

from warcmill.crawl.fetch import heartbeat
from warcmill.crawl.fetch.addresses import Judge
from warcmill.crawl.fetch.limits import CONNECT_FAILED, NOT_ALLOWED, Failure

HELD = 1 << 18  # bytes that wait to be read before the server is made to wait
UNTIMED = 86_400.0  # seconds of a handshake, for asyncio, which counts those that the loop stood: `_connect` limits it

ALPN = ["http/1.1"]  # HTTP/2 has no agreed form in a WARC
REFUSED = (ssl.SSLError, ConnectionResetError)  # old servers end what they do not know without an alert
ENDED = "the server ended the connection during the handshake"
_OLD = "ALL:!aNULL:!eNULL:@SECLEVEL=0"
_LONGEST_HEAD = 1 << 16  # bytes of a proxy's answer
_TUNNEL = re.compile(rb"HTTP/1\.[01] 2\d\d[ \r\n]").match


class ForwardProxy(NamedTuple):
    """A proxy that connects for us (RFC 9110, 9.3.6); `login` is NAME:PASSWORD, '' without one."""

    host: str
    port: int
    login: str = ""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Endpoint(NamedTuple):
    """The end of a connection: a numeric address, a port, for TLS the host's name ('' without TLS), and the proxy that
    leads there, if one does."""

    address: str
    port: int
    tls_name: str = ""
    proxy: ForwardProxy | None = None


class Connection(asyncio.Protocol):
    """A connection. `read` returns what came; `idle` wires are closed by anything that comes unasked."""

    def __init__(self, target: Endpoint) -> None:
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
        """Keep what came, or close an idle connection: what comes unasked is not an answer to what is asked next."""
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

    async def encrypt(self, context: ssl.SSLContext) -> None:
        """Go on by TLS; what ends the handshake passes."""
        if self._transport is None:
            raise ConnectionResetError(self.error or "it was closed")
        new = await self._loop.start_tls(
            self._transport, self, context, server_hostname=self.target.tls_name, ssl_handshake_timeout=UNTIMED
        )
        if new is None:
            raise ConnectionResetError("it was closed")
        self._transport = new

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


async def dial(target: Endpoint, judge: Judge, timeout: float, certificate: str = "") -> Connection | Failure:
    """Connect. With a note on the host's `certificate` from an earlier connection, it is not verified again."""
    if why := judge.why_refused(target.address):
        return Failure(NOT_ALLOWED, f"{target.address} is not dialled: {why}")
    if not target.tls_name:
        return await _connect(target, None, timeout)
    if not all(0 < len(label) < 64 for label in target.tls_name.removesuffix(".").split(".")):
        return Failure(CONNECT_FAILED, "TLS cannot ask for the host: a label is empty, or longer than 63 letters")
    try:
        if not certificate:
            return await _connect(target, strict(), timeout)
    except REFUSED as error:
        certificate = tls_reason(error)
    try:
        wire = await _connect(target, lax(), timeout)
    except REFUSED as error:
        return Failure(CONNECT_FAILED, f"no TLS with {target.address}: {tls_reason(error)}")
    if isinstance(wire, Connection):
        wire.certificate = certificate
    return wire


async def _connect(target: Endpoint, context: ssl.SSLContext | None, timeout: float) -> Connection | Failure:
    """Connect; what ends a handshake passes."""
    if target.proxy:
        return await _connect_through(target.proxy, target, context, timeout)
    connecting = asyncio.get_running_loop().create_connection(
        lambda: Connection(target),
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
        if context and isinstance(error, REFUSED):
            raise
        return Failure(CONNECT_FAILED, f"no connection to {target.address} port {target.port}: {error}")
    return wire


async def _connect_through(
    proxy: ForwardProxy, target: Endpoint, context: ssl.SSLContext | None, timeout: float
) -> Connection | Failure:
    """Connect by a tunnel; what ends a handshake passes."""
    loop, wire = asyncio.get_running_loop(), Connection(target)
    try:
        async with heartbeat.timeout(timeout):
            await loop.create_connection(lambda: wire, proxy.host, proxy.port)
            if why := await _tunnelled(wire, proxy, target):
                wire.abort(why)
                return Failure(CONNECT_FAILED, f"the proxy {proxy} gives no way to {target.address}: {why}")
            if context:
                await wire.encrypt(context)
    except TimeoutError:
        wire.abort("too slow")
        return Failure(CONNECT_FAILED, f"no connection to {target.address} by the proxy {proxy} in {timeout:g} s")
    except OSError as error:
        wire.abort("no connection")
        if context and isinstance(error, REFUSED):
            raise
        return Failure(CONNECT_FAILED, f"no connection by the proxy {proxy}: {error}")
    wire.received = 0
    return wire


async def _tunnelled(wire: Connection, proxy: ForwardProxy, target: Endpoint) -> str:
    """Ask a proxy for a tunnel; return why there is none. Nothing follows the head of a 2xx answer to CONNECT."""
    host = f"[{target.address}]" if ":" in target.address else target.address
    head = f"CONNECT {host}:{target.port} HTTP/1.1\r\nHost: {host}:{target.port}\r\n"
    if proxy.login:
        head += f"Proxy-Authorization: Basic {b64encode(proxy.login.encode()).decode()}\r\n"
    wire.send(f"{head}\r\n".encode())
    answer = b""
    while b"\r\n\r\n" not in answer and len(answer) <= _LONGEST_HEAD:
        more = await wire.read()
        if not more:
            return "it closed the connection"
        answer += more
    if not _TUNNEL(answer):
        return f"it answers {answer.partition(bytes([13]))[0][:100].decode('latin-1')!r}"
    return "" if answer.endswith(b"\r\n\r\n") else "it sends what nobody asked for"


@cache
def strict() -> ssl.SSLContext:
    """The context that verifies."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(ALPN)
    return context


@cache
def lax() -> ssl.SSLContext:
    """The context that takes any certificate, and protocols and ciphers of old."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.set_ciphers(_OLD)
    context.options |= getattr(ssl, "OP_LEGACY_SERVER_CONNECT", 0x4)
    context.set_alpn_protocols(ALPN)
    return context


def tls_reason(error: ssl.SSLError | ConnectionResetError) -> str:
    """The reason of a failed handshake, for the note."""
    if isinstance(error, ConnectionResetError):
        return ENDED
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return (error.reason or str(error)).replace("_", " ").lower()
