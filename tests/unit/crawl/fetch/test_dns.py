"""Hosts are looked up at a real name server; its answers are kept as long as they say, and for the WARC."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from dns.resolver import BaseResolver, NoResolverConfiguration
from sites.name_server import BROKEN, FAILING, SILENT, NameServer, name_server

from warcmill.crawl.fetch import addresses as dns
from warcmill.crawl.fetch.addresses import HostLookup, Resolver, parse_fixed, read_hosts, record_of
from warcmill.crawl.fetch.limits import NO_ADDRESS, Failure
from warcmill.errors import BadConfig
from warcmill.formats.warc.gate import examine

ZONE = {
    "a.example": ["3600 A 192.0.2.1", "60 AAAA 2001:db8::1"],
    "six.example": ["60 AAAA 2001:db8::6"],
    "www.example": ["300 CNAME a.example."],
    "short.example": ["0 A 192.0.2.2"],
    "empty.example": [],
    "failing.example": [FAILING],
    "silent.example": [SILENT],
    "broken.example": [BROKEN],
}

Use = Callable[[Resolver, NameServer], Awaitable[None]]


def with_zone(use: Use, **more: dns.Fixed) -> None:
    async def run() -> None:
        async with name_server(ZONE) as server:
            await use(Resolver(servers=[("127.0.0.1", server.port)], **more), server)

    asyncio.run(run())


def look_up(host: str, **more: dns.Fixed) -> HostLookup | Failure:
    found: list[HostLookup | Failure] = []

    async def use(resolver: Resolver, _server: NameServer) -> None:
        found.append(await resolver.lookup(host))

    with_zone(use, **more)
    return found[0]


def test_a_host_has_its_addresses_ipv4_first_and_the_shortest_ttl() -> None:
    found = look_up("A.example.")
    assert isinstance(found, HostLookup)
    assert (found.host, found.addresses, found.status) == ("a.example", ("192.0.2.1", "2001:db8::1"), 1)
    assert (found.ttl, found.server, found.uri) == (60, "127.0.0.1", "dns:a.example")


def test_the_record_has_all_that_the_name_server_said() -> None:
    found = look_up("www.example")
    assert isinstance(found, HostLookup)
    assert found.text.splitlines()[1:] == [
        "www.example.\t\t300\tIN\tCNAME\ta.example.",
        "a.example.\t\t3600\tIN\tA\t192.0.2.1",
        "a.example.\t\t60\tIN\tAAAA\t2001:db8::1",
    ]
    record = record_of(found)
    assert record
    assert b"WARC-Target-URI: dns:www.example\r\n" in record.header
    assert b"WARC-IP-Address: 127.0.0.1\r\n" in record.header
    assert examine(io.BytesIO(b"".join(record.member())), "a.warc.gz").ok


def test_a_host_with_ipv6_alone_has_that() -> None:
    found = look_up("six.example")
    assert isinstance(found, HostLookup)
    assert found.addresses == ("2001:db8::6",)


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("gone.example", "gone.example: no such name"),
        ("empty.example", "empty.example: it has no address"),
        ("failing.example", "SERVFAIL"),
        ("a..example", "empty"),
        ("x" * 64 + ".example", "63"),
        (".".join(["x" * 60] * 5), "255"),
    ],
)
def test_a_host_without_an_address_is_heritrix_status_minus_1(host: str, why: str) -> None:
    found = look_up(host)
    assert isinstance(found, Failure)
    assert found.status == NO_ADDRESS
    assert why in found.why


@pytest.mark.parametrize("host", ["silent.example", "broken.example"])
def test_a_name_server_that_does_not_answer_is_said(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dns, "LIFETIME", 0.2)
    found = look_up(host)
    assert isinstance(found, Failure)
    assert found.why == f"{host}: no name server answered in 0.2 s"


def test_a_time_that_the_loop_stood_is_no_silence_of_the_name_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dns, "LIFETIME", 0.4)
    monkeypatch.setitem(ZONE, "lost.example", [SILENT])

    async def use(resolver: Resolver, server: NameServer) -> None:
        asking = asyncio.create_task(resolver.lookup("lost.example"))
        while len(server.asked) < 2:
            await asyncio.sleep(0)
        ZONE["lost.example"] = ["60 A 192.0.2.7"]
        time.sleep(0.6)
        assert isinstance(await asking, HostLookup), "it is asked again"

    with_zone(use)


def test_an_answer_is_kept_as_long_as_its_ttl(monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(resolver: Resolver, server: NameServer) -> None:
        for _ in range(3):
            await resolver.lookup("a.example")
        assert server.asked["a.example A"] == 1
        later = asyncio.get_running_loop().time() + 61
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: later)
        assert resolver.known("a.example") is None
        monkeypatch.undo()

    with_zone(use)


def test_a_ttl_of_zero_is_kept_for_seconds_so_that_no_server_is_flooded() -> None:
    async def use(resolver: Resolver, server: NameServer) -> None:
        found = [await resolver.lookup("short.example") for _ in range(3)]
        assert {lookup.ttl for lookup in found if isinstance(lookup, HostLookup)} == {0}
        assert server.asked["short.example A"] == 1

    with_zone(use)


def test_a_failure_is_kept_too() -> None:
    async def use(resolver: Resolver, server: NameServer) -> None:
        await resolver.lookup("gone.example")
        assert isinstance(resolver.known("gone.example"), Failure)

    with_zone(use)


def test_many_who_ask_at_once_share_one_question() -> None:
    async def use(resolver: Resolver, server: NameServer) -> None:
        found = await asyncio.gather(*[resolver.lookup("a.example") for _ in range(50)])
        assert len(set(found)) == 1
        assert server.asked == {"a.example A": 1, "a.example AAAA": 1}

    with_zone(use)


def test_the_operators_answer_comes_before_the_hosts_file_and_that_before_the_name_server() -> None:
    fixed, hosts = parse_fixed(["a.example=127.0.0.7"]), {"a.example": ("127.0.0.8",), "six.example": ("127.0.0.9",)}
    for host, addresses in {"a.example": ("127.0.0.7",), "six.example": ("127.0.0.9",)}.items():
        found = look_up(host, fixed=fixed, hosts=hosts)
        assert isinstance(found, HostLookup)
        assert (found.addresses, found.status, record_of(found)) == (addresses, 1001, None)


@pytest.mark.parametrize("host", ["192.0.2.9", "[2001:db8::9]"])
def test_an_address_is_its_own_answer(host: str) -> None:
    found = look_up(host)
    assert isinstance(found, HostLookup)
    assert (found.addresses, found.status) == ((host.strip("[]"),), 1001)


def test_a_host_may_have_several_fixed_addresses() -> None:
    assert parse_fixed(["A.example=127.0.0.1", "a.example=::1"]) == {"a.example": ("127.0.0.1", "::1")}


def test_a_fixed_host_may_have_any_letters_as_a_person_writes_them() -> None:
    assert parse_fixed(["Bücher.example=127.0.0.1"]) == {"xn--bcher-kva.example": ("127.0.0.1",)}


@pytest.mark.parametrize("option", ["a.example", "a.example=", "=127.0.0.1", "a.example=localhost", "a=127.1"])
def test_an_option_that_is_no_address_is_refused(option: str) -> None:
    with pytest.raises(BadConfig, match="HOST=ADDRESS"):
        parse_fixed([option])


def test_a_hosts_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_bytes(b"# all\n127.0.0.1 localhost Crawler01 # us\n\n::1 localhost\nnonsense here\n\xff\xfe\n")
    assert read_hosts(path) == {"localhost": ("127.0.0.1", "::1"), "crawler01": ("127.0.0.1",)}
    assert read_hosts(tmp_path / "gone") == {}


def test_a_machine_without_name_servers_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(*_args: object, **_more: object) -> None:
        raise NoResolverConfiguration("cannot open /etc/resolv.conf")

    monkeypatch.setattr(BaseResolver, "read_resolv_conf", missing)

    async def run() -> HostLookup | Failure:
        return await Resolver().lookup("a.example")

    found = asyncio.run(run())
    assert isinstance(found, Failure)
    assert "a.example: " in found.why
