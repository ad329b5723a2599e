"""No spelling of an inside address is dialled: written in a link, named by a redirect or by
that of a robots.txt, or answered by a name server.

The proof is Python's own audit event of each connect, and a server that counts.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest
from ada_url import URL
from crawls import crawled
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from sites.name_server import name_server
from sites.raw_server import answering, serving

from warcmill.crawl.extract import links
from warcmill.crawl.fetch.addresses import HostLookup, Judge, Resolver
from warcmill.crawl.fetch.exchange import Exchange, FetchRequest
from warcmill.crawl.fetch.http import Fetcher, Site
from warcmill.crawl.fetch.limits import NOT_ALLOWED, Failure, FetchLimits
from warcmill.crawl.job.job import Retries
from warcmill.errors import BadConfig

INSIDE_4 = ["127.0.0.1", "10.1.2.3", "172.16.9.9", "192.168.0.1", "169.254.169.254", "0.0.0.0", "100.64.0.1"]
OTHERS_4 = ["127.255.255.254", "224.0.0.1", "255.255.255.255", "198.18.0.1", "192.0.0.8", "192.88.99.1", "240.0.0.1"]
INSIDE_6 = ["::", "::1", "fe80::1", "febf::1", "fc00::1", "fd12:3456::1", "fec0::1", "ff02::1", "2001:db8::1"]
INSIDE_6 += ["100::1", "2001::1", "2001:2::1", "3fff::1", "5f00::1", "4000::1"]
PUBLIC = [
    "93.184.215.14",
    "8.8.8.8",
    "172.15.0.1",
    "172.32.0.1",
    "192.169.0.1",
    "2606:2800:21f:cb07:6820:80da:af6b:8b2c",
]
PUBLIC += ["2a00:1450:4001:82b::2004", "2620:0:862:ed1a::1"]


def spelled_4(address: str) -> Iterator[str]:
    """An IPv4 address as hosts of URLs may write it: parts left out, in octal, in hex, as one number."""
    number = int(IPv4Address(address))
    a, b, c, d = IPv4Address(address).packed
    yield from (address, f"{address}.", str(number), hex(number), f"0{number:o}", f"0x{a:02X}.{b}.{c}.{d}")
    yield from (f"{a}.{number & 0xFFFFFF}", f"{a}.{b}.{number & 0xFFFF}", f"0{a:o}.0{b:o}.0{c:o}.0{d:o}")
    yield from (address.replace(".", "%2e"), address.replace(".", "\u3002"), address.translate(_WIDE))


_WIDE = {ord("0") + digit: 0xFF10 + digit for digit in range(10)}


def embedded(address: str) -> Iterator[str]:
    """An IPv4 address in IPv6: mapped, compatible, translated, NAT64, 6to4, Teredo, ISATAP."""
    number = int(IPv4Address(address))
    yield from (str(IPv6Address((0xFFFF << 32) | number)), f"::ffff:{address}", str(IPv6Address(number)))
    yield from (f"64:ff9b::{address}", f"64:ff9b:1::{address}", f"::ffff:0:{address}")
    yield str(IPv6Address((0x2002 << 112) | (number << 80) | 1))
    yield str(IPv6Address((0x20010000 << 96) | (0x41000000 << 64) | (number ^ 0xFFFFFFFF)))
    yield str(IPv6Address((0x20010DB7 << 96) | (0x00005EFE << 32) | number))


HOSTS_4 = [host for address in INSIDE_4 for host in spelled_4(address)]
NUMERIC_6 = [*INSIDE_6, *(text for address in [*INSIDE_4, *OTHERS_4[:1], "8.8.8.8"] for text in embedded(address))]
HOSTS = [*HOSTS_4, *OTHERS_4, *(f"[{text}]" for text in NUMERIC_6), "[0:0::0:1]", "[::FFFF:7f00:1]", "[FE80::1]"]
ADDRESSES = [*INSIDE_4, *OTHERS_4, *NUMERIC_6]

_dialled: list[object] = []
_listening = [False]


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if event == "socket.connect" and _listening[0]:
        _dialled.append(arguments[1])


sys.addaudithook(_hear)


@pytest.fixture
def dialled() -> Iterator[list[object]]:
    """The addresses to which a socket connects during the test."""
    _dialled.clear()
    _listening[0] = True
    yield _dialled
    _listening[0] = False


def fetcher(folder: Path, *allowed: str) -> Fetcher:
    return Fetcher(Judge(allowed), FetchLimits(connect=1.0), "Warcmill/test", folder)


async def refused(fetches: Fetcher, resolver: Resolver, uri: str) -> bool:
    """Fetch a URI as a crawl does: parse it, look its host up, fetch from what was found."""
    found = await resolver.lookup(Site.of(uri).host)
    assert isinstance(found, HostLookup), found
    result = await fetches.fetch(FetchRequest(uri), found.addresses)
    return isinstance(result, Failure) and result.status == NOT_ALLOWED


def test_there_are_200_spellings() -> None:
    assert len(set(HOSTS)) >= 170
    assert len({*HOSTS, *ADDRESSES}) >= 200


def test_none_is_dialled_when_a_link_has_it(tmp_path: Path, dialled: list[object]) -> None:
    async def run() -> None:
        resolver = Resolver(servers=[("127.0.0.1", 9)])
        for host in HOSTS:
            assert await refused(fetcher(tmp_path), resolver, URL(f"http://{host}:8080/").href), host

    asyncio.run(run())
    assert dialled == []


def test_none_is_dialled_when_a_redirect_has_it(tmp_path: Path, dialled: list[object]) -> None:
    """The server that redirects is itself inside, at an address that is allowed by name."""

    async def run() -> int:
        fetches, resolver = fetcher(tmp_path, "127.0.0.5/32"), Resolver(servers=[("127.0.0.1", 9)])
        for host in HOSTS:
            moved = f"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: http://{host}/\r\n\r\n".encode()
            async with serving(answering(moved), host="127.0.0.5") as server:
                answer = await fetches.fetch(FetchRequest(f"http://127.0.0.5:{server.port}/"), ["127.0.0.5"])
                assert isinstance(answer, Exchange), answer
                (link,) = links.links(answer.fields, answer.uri, answer.status)
                assert await refused(fetches, resolver, link.uri), host
        return len(HOSTS)

    assert asyncio.run(run()) == len(dialled)
    assert {address[0] for address in dialled} == {"127.0.0.5"}  # type: ignore[index]


def test_none_is_dialled_when_the_redirect_of_a_robots_txt_has_it(tmp_path: Path, dialled: list[object]) -> None:
    """A whole crawl, of a site for each spelling; no page of these sites is asked for either."""
    sites = {f"s{number}.example": host for number, host in enumerate(HOSTS)}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := (await reader.readuntil(b"\r\n\r\n")).decode():
            site = head.partition("Host: ")[2].partition(":")[0]
            moved = f"HTTP/1.1 301 Moved\r\nContent-Length: 0\r\nLocation: http://{sites[site]}/robots.txt\r\n\r\n"
            writer.write(moved.encode())

    async def run() -> list[bytes]:
        async with serving(answer, host="127.0.0.5") as server:
            job = crawled.job(server.port, *sites, allow_private=("127.0.0.5/32",))
            job = replace(job, resolve=dict.fromkeys(sites, ("127.0.0.5",)), retries=Retries(1, 0.01))
            await crawled.whole(tmp_path, job)
            return server.requests

    requests = asyncio.run(run())
    assert {address[0] for address in dialled if isinstance(address, tuple)} == {"127.0.0.5"}
    assert len(requests) == len(sites)
    assert all(request.startswith(b"GET /robots.txt ") for request in requests)
    refused = [line for line in crawled.lines(tmp_path) if line.status == NOT_ALLOWED]
    assert len(refused) == len(sites), "each place of a robots.txt has its line"


def test_none_is_dialled_when_a_name_server_answers_it(tmp_path: Path, dialled: list[object]) -> None:
    zone = {
        f"h{number}.example": [f"60 {'AAAA' if ':' in address else 'A'} {address}"]
        for number, address in enumerate(ADDRESSES)
    }

    async def run() -> int:
        async with name_server(zone) as server:
            resolver = Resolver(servers=[("127.0.0.1", server.port)])
            for name, records in zone.items():
                assert await refused(fetcher(tmp_path), resolver, f"http://{name}/"), records
            return server.port

    asked = ("127.0.0.1", asyncio.run(run()))
    assert set(dialled) <= {asked}


def test_a_name_with_inside_and_public_addresses_is_dialled_at_none_inside(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(answering(b"")) as server:
            uri = f"http://a.example:{server.port}/"
            result = await fetcher(tmp_path).fetch(FetchRequest(uri), ["10.0.0.1", "127.0.0.1"])
            assert isinstance(result, Failure)
            assert result.why == "127.0.0.1 is not dialled: loopback"
            assert server.connections == 0

    asyncio.run(run())


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_may_be_dialled(address: str) -> None:
    assert Judge().why_refused(address) == ""


@pytest.mark.parametrize("address", ADDRESSES)
def test_each_has_a_reason(address: str) -> None:
    assert Judge().why_refused(address)


@pytest.mark.parametrize(
    "text", ["127.1", "2130706433", "localhost", "", "fe80::1%eth0", "2606:2800::1%lo", "8.8.8.8 "]
)
def test_what_is_no_plain_address_is_refused(text: str) -> None:
    assert Judge(["0.0.0.0/0", "::/0"]).why_refused(text)


@given(st.ip_addresses())
def test_nothing_is_let_through_that_python_calls_inside(address: IPv4Address | IPv6Address) -> None:
    inside = address.is_private or address.is_loopback or address.is_link_local or address.is_multicast
    if inside or address.is_unspecified or address.is_reserved:
        assert Judge().why_refused(str(address))


def test_networks_may_be_allowed_one_by_one() -> None:
    judge = Judge(["10.20.0.0/16", " fd00:1::/48"])
    assert [judge.why_refused(address) for address in ("10.20.255.1", "fd00:1::9", "10.21.0.1")] == ["", "", "private"]
    assert judge.why_refused("::ffff:10.20.255.1")


@pytest.mark.parametrize("text", ["10.0.0.1/8", "inside", "", "10.0.0.0/33"])
def test_a_network_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadConfig, match="allow_private"):
        Judge([text])
