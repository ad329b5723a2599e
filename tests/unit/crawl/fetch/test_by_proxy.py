"""Fetches by a proxy that connects for us: a tunnel to the address that was judged, with and without TLS."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from sites.certificates import server_context
from sites.raw_server import RawServer, answering, serving

from warcmill.crawl.fetch.addresses import Judge
from warcmill.crawl.fetch.exchange import Exchange, FetchRequest
from warcmill.crawl.fetch.http import Fetcher
from warcmill.crawl.fetch.limits import CONNECT_FAILED, NOT_ALLOWED, Failure, FetchLimits
from warcmill.crawl.fetch.wire import ForwardProxy

HI = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
TAKEN = b"HTTP/1.1 200 Connection established\r\nVia: 1.1 x\r\n\r\n"
LIMITS = FetchLimits(connect=1.0, idle=10.0, total=30.0)
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Connect to where the client asks for, and pass on what both send."""
    place = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
    there, back = await asyncio.open_connection(*place.rsplit(":", 1))
    writer.write(TAKEN)
    client: asyncio.StreamReader = reader._reader  # type: ignore[attr-defined]  # the recorded one

    async def passed(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(1 << 16):
            sink.write(data)
        sink.close()

    try:
        await asyncio.gather(passed(client, back), passed(there, writer))
    finally:
        back.transport.abort()


def fetched(
    folder: Path, proxy: Handler, login: str = "", scheme: str = "http", allowed: str = "127.0.0.0/8", number: int = 1
) -> tuple[list[Exchange | Failure], RawServer, RawServer]:
    """Results of fetches by a proxy, the proxy, and the site."""

    async def run() -> tuple[list[Exchange | Failure], RawServer, RawServer]:
        context = server_context(folder) if scheme == "https" else None
        fetcher = Fetcher(Judge([allowed]), LIMITS, "Warcmill/test", folder)
        async with serving(answering(HI, HI, close=False), context) as site, serving(proxy) as by:
            uri = f"{scheme}://localhost:{site.port}/"
            asked = FetchRequest(uri, proxy=ForwardProxy("127.0.0.1", by.port, login))
            found = [await fetcher.fetch(asked, ["127.0.0.1"]) for _ in range(number)]
            fetcher.close()
        return found, by, site

    return asyncio.run(run())


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_tunnel_leads_to_the_judged_address_and_is_kept(tmp_path: Path, scheme: str) -> None:
    found, by, site = fetched(tmp_path, tunnel, "me:a b", scheme, number=2)
    for one in found:
        assert isinstance(one, Exchange), one
        assert (one.status, one.address, one.annotations) == (200, "127.0.0.1", ("byProxy",))
        assert b"".join(one.spool.pieces()) == HI
        assert b"Proxy-Authorization" not in one.sent
        one.close()
    assert len(by.requests) == (1 if scheme == "http" else 2)  # its certificate is noted by a second handshake
    head = by.requests[0]
    assert head.startswith(f"CONNECT 127.0.0.1:{site.port} HTTP/1.1\r\n".encode())
    assert b"Proxy-Authorization: Basic bWU6YSBi\r\n" in head
    assert len(site.requests) == 2
    assert site.requests[0].startswith(b"GET / HTTP/1.1\r\nHost: localhost:")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "407 Proxy Authentication Required"),
        (b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\nnot the site", "it sends what nobody asked for"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "SSH-2.0"),
        (b"x" * 70_000, "it answers"),
        (b"", "it closed the connection"),
    ],
)
def test_a_proxy_that_gives_no_way_is_named(tmp_path: Path, answer: bytes, why: str) -> None:
    (found,), by, site = fetched(tmp_path, answering(answer))
    assert isinstance(found, Failure)
    assert found.status == CONNECT_FAILED
    assert why in found.why
    assert f"127.0.0.1:{by.port}" in found.why
    assert site.connections == 0


def test_a_proxy_that_is_silent_ends_at_the_limit(tmp_path: Path) -> None:
    (found,), _, _ = fetched(tmp_path, answering([30.0]))
    assert isinstance(found, Failure)
    assert "in 1 s" in found.why


def test_no_proxy_leads_to_an_inside_address(tmp_path: Path) -> None:
    (found,), by, _ = fetched(tmp_path, tunnel, allowed="10.0.0.0/8")
    assert isinstance(found, Failure)
    assert (found.status, by.connections) == (NOT_ALLOWED, 0)
