"""Fetches from a real server on loopback: limits, kept connections, TLS, addresses, and what hostile servers do."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import time
import warnings
import zlib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import brotli
import pytest
import zstandard
from sites.certificates import server_context
from sites.raw_server import Handler, RawServer, answering, serving

from warcmill.crawl.fetch import exchange, wire
from warcmill.crawl.fetch.addresses import Judge
from warcmill.crawl.fetch.answer import IN_MEMORY
from warcmill.crawl.fetch.exchange import Exchange, FetchRequest, document, request_of
from warcmill.crawl.fetch.http import Fetcher
from warcmill.crawl.fetch.limits import (
    CONNECT_FAILED,
    CONNECTION_LOST,
    NO_ADDRESS,
    NOT_ALLOWED,
    TIMED_OUT,
    Failure,
    FetchLimits,
)

OK = b"HTTP/1.1 200 OK\r\n"
HI = OK + b"Content-Length: 2\r\n\r\nhi"
LOOPBACK = ["127.0.0.0/8", "::1/128"]
QUICK = FetchLimits(connect=5.0, idle=0.2, total=0.6, grace=0.4)
PATIENT = FetchLimits(connect=5.0, idle=10.0, total=30.0)

Result = Exchange | Failure
Use = Callable[[Fetcher, RawServer], Awaitable[None]]


def with_server(folder: Path, handler: Handler, use: Use, limits: FetchLimits = PATIENT, **more: object) -> RawServer:
    """Run `use` with a fetcher and a server."""

    async def run() -> RawServer:
        fetcher = Fetcher(Judge(LOOPBACK), limits, "Warcmill/test", folder)
        async with serving(handler, **more) as server:  # type: ignore[arg-type]
            await use(fetcher, server)
            fetcher.close()
        return server

    return asyncio.run(run())


def fetch_one(
    folder: Path, handler: Handler, limits: FetchLimits = PATIENT, scheme: str = "http", **more: object
) -> Result:
    """The result of one fetch."""
    results: list[Result] = []

    async def use(fetcher: Fetcher, server: RawServer) -> None:
        results.append(await fetcher.fetch(FetchRequest(f"{scheme}://localhost:{server.port}/"), ["127.0.0.1"]))

    with_server(folder, handler, use, limits, **more)
    return results[0]


OPEN: list[Exchange] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Close the exchanges of a test: some have a scratch file."""
    yield
    while OPEN:
        OPEN.pop().close()


def got(result: Result) -> Exchange:
    assert isinstance(result, Exchange), result
    OPEN.append(result)
    return result


def block(result: Result) -> bytes:
    return b"".join(got(result).spool.pieces())


# --- the request ---


def test_the_request_is_kept_as_it_was_sent(tmp_path: Path) -> None:
    headers = (("If-None-Match", '"a"'), ("accept", "*/*"), ("Referer", "http://a.example/"))
    results: list[Result] = []

    async def use(fetcher: Fetcher, server: RawServer) -> None:
        uri = f"http://u:p@localhost:{server.port}/a%20b?c=d|e"
        results.append(await fetcher.fetch(FetchRequest(uri, headers=headers), ["127.0.0.1"]))

    server = with_server(tmp_path, answering(HI), use)
    assert got(results[0]).sent == server.requests[0]
    assert server.requests[0].decode().splitlines() == [
        "GET /a%20b?c=d|e HTTP/1.1",
        f"Host: localhost:{server.port}",
        "User-Agent: Warcmill/test",
        "Accept-Encoding: gzip",
        'If-None-Match: "a"',
        "accept: */*",
        "Referer: http://a.example/",
        "",
    ]


def test_a_header_cannot_smuggle_a_line_in(tmp_path: Path) -> None:
    async def use(fetcher: Fetcher, server: RawServer) -> None:
        request = FetchRequest(f"http://localhost:{server.port}/", headers=(("X", "a\r\nHost: inside"),))
        with pytest.raises(ValueError, match="a line end"):
            await fetcher.fetch(request, ["127.0.0.1"])

    assert with_server(tmp_path, answering(HI), use).connections == 0


@pytest.mark.parametrize(
    "uri",
    [
        "ftp://a.example/",
        "http:///",
        "http://a b/",
        "http://[::1/",
        "http://a:b/",
        "http:\\\\a/",
        "/",
        "http://a/b c",
        "http://a/ä",
    ],
)
def test_a_uri_that_is_not_canonical_is_refused(tmp_path: Path, uri: str) -> None:
    async def use(fetcher: Fetcher, _server: RawServer) -> None:
        with pytest.raises(ValueError, match=r"canonical|escaped"):
            await fetcher.fetch(FetchRequest(uri), ["127.0.0.1"])

    assert with_server(tmp_path, answering(HI), use).connections == 0


def test_a_request_is_what_the_payload_of_its_uri_says() -> None:
    asked = exchange.read(
        '{"fetch": {"method": "POST", "headers": {"X": "y"}, "body": "\u00fc", "range": [5, 9], "timeout": 3}}'
    )
    request = request_of("http://a.example/", asked, (("Referer", "http://b.example/"),))
    headers = (("Referer", "http://b.example/"), ("Range", "bytes=5-9"), ("X", "y"))
    assert request == FetchRequest("http://a.example/", "POST", headers, "\u00fc".encode(), 3.0)
    assert request_of("http://a.example/", exchange.FetchOptions(range=(5, None))).headers == (("Range", "bytes=5-"),)
    assert request_of("http://a.example/", exchange.FetchOptions()) == FetchRequest("http://a.example/")


def test_a_body_is_sent_with_its_length(tmp_path: Path) -> None:
    async def use(fetcher: Fetcher, server: RawServer) -> None:
        request = FetchRequest(f"http://localhost:{server.port}/", "POST", body=b"a=b")
        assert got(await fetcher.fetch(request, ["127.0.0.1"])).sent.endswith(b"Content-Length: 3\r\n\r\na=b")

    with_server(tmp_path, answering(HI), use)


# --- kept connections ---


def twice(between: float = 0.0, expected: tuple[bytes, bytes] = (HI, HI)) -> Use:
    async def use(fetcher: Fetcher, server: RawServer) -> None:
        for number, answer in enumerate(expected):
            for _ in range(20 * bool(number)):  # in turns: what the server is to do meanwhile comes before the last
                await asyncio.sleep(between / 20)
            assert block(await fetcher.fetch(FetchRequest(f"http://localhost:{server.port}/"), ["127.0.0.1"])) == answer

    return use


def test_a_connection_serves_for_the_next_request(tmp_path: Path) -> None:
    assert with_server(tmp_path, answering(HI, HI, close=False), twice()).connections == 1


@pytest.mark.parametrize(
    "head",
    [b"HTTP/1.0 200 OK\r\n", OK + b"Connection: close\r\n", OK + b"Connection: foo, Close\r\n"],
)
def test_a_connection_that_the_server_closes_is_not_kept(tmp_path: Path, head: bytes) -> None:
    answer = head + b"Content-Length: 2\r\n\r\nhi"
    server = with_server(tmp_path, answering(answer, answer), twice(expected=(answer, answer)))
    assert server.connections == 2


def test_an_answer_that_nobody_asked_for_is_no_answer_to_the_next_request(tmp_path: Path) -> None:
    evil = OK + b"Content-Length: 4\r\n\r\nevil"
    server = with_server(tmp_path, answering([HI, 0.05, evil], HI, close=False), twice(between=0.2))
    assert server.connections == 2


def test_bytes_beyond_the_end_are_in_the_record_and_the_connection_is_not_kept(tmp_path: Path) -> None:
    server = with_server(tmp_path, answering(HI + HI, HI, close=False), twice(expected=(HI + HI, HI + HI)))
    assert server.connections == 2


def test_a_request_that_a_kept_connection_swallowed_is_sent_once_more(tmp_path: Path) -> None:
    """The server takes the second request of a connection and closes it without a word."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HI)
        await reader.readuntil(b"\r\n\r\n")

    server = with_server(tmp_path, handle, twice())
    assert (server.connections, len(server.requests)) == (2, 3)


def test_a_request_that_must_not_be_repeated_never_takes_a_kept_connection(tmp_path: Path) -> None:
    async def use(fetcher: Fetcher, server: RawServer) -> None:
        for method in ("GET", "POST"):
            got(await fetcher.fetch(FetchRequest(f"http://localhost:{server.port}/", method), ["127.0.0.1"]))

    assert with_server(tmp_path, answering(HI, HI, close=False), use).connections == 2


def test_a_name_that_tls_cannot_ask_for_is_a_failure(tmp_path: Path) -> None:
    async def use(fetcher: Fetcher, server: RawServer) -> None:
        result = await fetcher.fetch(FetchRequest(f"https://{'x' * 70}.example:{server.port}/"), ["127.0.0.1"])
        assert isinstance(result, Failure)
        assert result.status == CONNECT_FAILED

    with_server(tmp_path, answering(HI), use)


# --- limits ---


def test_an_answer_that_ends_at_the_limit_is_whole(tmp_path: Path) -> None:
    result = got(
        fetch_one(tmp_path, answering(OK + b"Content-Length: 1001\r\n\r\n" + b"x" * 1001), FetchLimits(body=1000))
    )
    assert (result.truncated, result.payload_length) == ("", 1001)


def test_a_body_over_the_limit_is_truncated_there(tmp_path: Path) -> None:
    limits = FetchLimits(body=1000)
    result = got(fetch_one(tmp_path, answering(OK + b"Content-Length: 9000000\r\n\r\n" + b"x" * 9_000_000), limits))
    assert (result.status, result.truncated, result.annotations) == (200, "length", ("lenTrunc",))
    assert 1000 < result.payload_length < 9_000_000


def test_a_chunk_of_10_to_the_12_is_cut_at_the_limit(tmp_path: Path) -> None:
    sent = [OK + b"Transfer-Encoding: chunked\r\n\r\ne8d4a51000\r\n", *[b"x" * 100_000] * 30]
    result = got(fetch_one(tmp_path, answering(sent), FetchLimits(body=2_000_000)))
    assert result.annotations == ("lenTrunc",)
    assert 2_000_000 < result.payload_length <= 3_000_000


@pytest.mark.parametrize(
    "endless",
    [b"X-Field: value\r\n", b"x", b"X: y\r\n z\r\n"],
)
def test_an_endless_header_is_cut_at_the_limit(tmp_path: Path, endless: bytes) -> None:
    sent = [OK, *[endless * (1 << 15)] * 20]
    result = got(fetch_one(tmp_path, answering(sent), FetchLimits(header=1 << 16)))
    assert (result.truncated, result.annotations) == ("length", ("headerTrunc",))
    assert result.spool.length < 1 << 19


def test_endless_1xx_answers_are_cut(tmp_path: Path) -> None:
    result = fetch_one(tmp_path, answering(b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000))
    assert isinstance(result, Failure)
    assert result.status == CONNECTION_LOST


def test_a_silent_server_has_timed_out(tmp_path: Path) -> None:
    result = fetch_one(tmp_path, answering([60.0]), QUICK)
    assert isinstance(result, Failure)
    assert (result.status, result.why[:12]) == (TIMED_OUT, "no answer in")


def test_a_server_that_falls_silent_leaves_what_came(tmp_path: Path) -> None:
    result = got(fetch_one(tmp_path, answering([OK + b"Content-Length: 9\r\n\r\nhi", 60.0]), QUICK))
    assert (result.truncated, result.annotations, b"".join(result.payload())) == ("time", ("timeTrunc",), b"hi")


def test_a_slow_loris_is_ended_in_its_header(tmp_path: Path) -> None:
    drops: list[bytes | float] = [b"HTTP/1.1 200 OK\r\nX: "]
    result = got(fetch_one(tmp_path, answering([*drops, *[0.05, b"x"] * 200]), QUICK))
    assert result.truncated == "time"


def test_a_slow_loris_hinders_no_other_fetch(tmp_path: Path) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if b"/slow" in await reader.readuntil(b"\r\n\r\n"):
            await asyncio.sleep(60)
        writer.write(HI)

    async def use(fetcher: Fetcher, server: RawServer) -> None:
        root = f"http://localhost:{server.port}"
        slow = [asyncio.create_task(fetcher.fetch(FetchRequest(f"{root}/slow"), ["127.0.0.1"])) for _ in range(20)]
        assert block(await fetcher.fetch(FetchRequest(f"{root}/"), ["127.0.0.1"])) == HI
        assert not any(task.done() for task in slow)
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)

    with_server(tmp_path, handle, use)


def test_a_fetch_may_have_a_time_of_its_own(tmp_path: Path) -> None:
    async def use(fetcher: Fetcher, server: RawServer) -> None:
        request = FetchRequest(f"http://localhost:{server.port}/", timeout=0.1)
        result = await fetcher.fetch(request, ["127.0.0.1"])
        assert isinstance(result, Failure)
        assert result.status == TIMED_OUT

    with_server(tmp_path, answering([60.0]), use)


def test_an_answer_comes_no_faster_than_it_may(tmp_path: Path) -> None:
    sent = [OK + b"Content-Length: 60000\r\n\r\n", *[b"x" * 1000] * 60]
    result = got(fetch_one(tmp_path, answering(sent), FetchLimits(fastest=200_000)))
    assert result.payload_length == 60_000
    assert result.took_ms >= 250


def test_a_pause_of_ours_is_not_the_servers_silence(tmp_path: Path) -> None:
    sent = [OK + b"Content-Length: 60000\r\n\r\n", b"x" * 30_000, b"x" * 30_000]
    result = got(fetch_one(tmp_path, answering(sent), FetchLimits(idle=0.5, fastest=60_000)))
    assert (result.truncated, result.payload_length) == ("", 60_000)


def test_a_time_in_which_this_process_was_stopped_is_not_the_servers_silence(tmp_path: Path) -> None:
    """The server is in this process, too: it answers some turns after both have been stopped for all limits' length."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        time.sleep(0.5)
        for _ in range(3):
            await asyncio.sleep(0)
        writer.write(HI)

    limits = FetchLimits(connect=5.0, idle=0.3, total=0.4, grace=0.3, slowest=1 << 20)
    assert block(fetch_one(tmp_path, handle, limits)) == HI


def test_a_time_that_the_loop_stood_counts_against_no_server_also_if_it_runs_again_at_the_limit(
    tmp_path: Path,
) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.05)
        time.sleep(0.5)
        await asyncio.sleep(0.2)
        writer.write(HI)

    limits = FetchLimits(connect=5.0, idle=0.6, total=0.7, grace=0.6, slowest=1 << 20)
    assert block(fetch_one(tmp_path, handle, limits)) == HI


def test_a_time_that_the_loop_stood_does_not_count_for_a_handshake(tmp_path: Path) -> None:
    context = server_context(tmp_path)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        time.sleep(0.6)
        await writer.start_tls(context)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HI)

    assert block(fetch_one(tmp_path, handle, FetchLimits(connect=0.4), scheme="https")) == HI


def test_a_time_that_the_loop_stood_does_not_count_for_a_connection(tmp_path: Path) -> None:
    results: list[Result] = []

    async def use(fetcher: Fetcher, server: RawServer) -> None:
        asking = asyncio.create_task(fetcher.fetch(FetchRequest(f"http://localhost:{server.port}/"), ["127.0.0.1"]))
        await asyncio.sleep(0)
        time.sleep(0.6)
        results.append(await asking)

    with_server(tmp_path, answering(HI), use, FetchLimits(connect=0.3))
    assert block(results[0]) == HI


def test_a_connection_reset_leaves_what_came(tmp_path: Path) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"Content-Length: 9\r\n\r\nhi")
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.transport.abort()

    result = got(fetch_one(tmp_path, handle))
    assert (result.truncated, result.annotations) == ("disconnect", ("disconnectTrunc",))


@pytest.mark.parametrize("sent", [b"", b"HT", b"HTTP/1.1 2"])
def test_a_connection_closed_without_an_answer_is_lost(tmp_path: Path, sent: bytes) -> None:
    result = fetch_one(tmp_path, answering(sent))
    assert isinstance(result, Failure)
    assert (result.status, f"after {len(sent)} bytes" in result.why) == (CONNECTION_LOST, True)


# --- what is kept, and what is decoded ---


def test_a_long_answer_goes_to_scratch_and_leaves_no_file(tmp_path: Path) -> None:
    body = bytes(range(256)) * (IN_MEMORY // 128)
    result = got(fetch_one(tmp_path, answering(OK + b"Content-Length: %d\r\n\r\n" % len(body) + body)))
    assert list(tmp_path.iterdir()) == []
    assert b"".join(result.payload()) == body
    assert result.spool.length > len(body) > IN_MEMORY
    result.close()


def coded(coding: str, data: bytes) -> bytes:
    return OK + b"Content-Encoding: %s\r\nContent-Length: %d\r\n\r\n" % (coding.encode(), len(data)) + data


PAGE = b"<html>" + b"a page " * 1000
RAW_DEFLATE = zlib.compress(PAGE)[2:-4]
CODED = {
    "gzip": gzip.compress(PAGE),
    "x-gzip": gzip.compress(PAGE[:99]) + gzip.compress(PAGE[99:]),
    "deflate": zlib.compress(PAGE),
    "Deflate": RAW_DEFLATE,
    "br": brotli.compress(PAGE),
    "zstd": zstandard.compress(PAGE),
    "gzip, br": brotli.compress(gzip.compress(PAGE)),
    "identity": PAGE,
    "GZIP, identity": gzip.compress(PAGE),
}


@pytest.mark.parametrize("coding", CODED)
def test_codings_are_undone_for_parsing_alone(tmp_path: Path, coding: str) -> None:
    sent = coded(coding, CODED[coding])
    result = got(fetch_one(tmp_path, answering(sent)))
    assert block(result) == sent
    assert document(result, PATIENT) == (PAGE, "")


def test_a_transfer_coding_is_undone_too(tmp_path: Path) -> None:
    data = gzip.compress(b"a page")
    sent = OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(data), data)
    assert document(got(fetch_one(tmp_path, answering(sent))), PATIENT) == (b"a page", "")


@pytest.mark.parametrize("coding", ["lzma", "utf-8", "binary"])
def test_an_unknown_coding_is_noted_and_leaves_the_bytes_as_they_came(tmp_path: Path, coding: str) -> None:
    result = got(fetch_one(tmp_path, answering(coded(coding, b"<html>plain"))))
    assert document(result, PATIENT) == (b"<html>plain", f"unsatisfiableContentEncoding:{coding}")


def test_a_coding_that_is_only_claimed_leaves_the_bytes_as_they_came(tmp_path: Path) -> None:
    result = got(fetch_one(tmp_path, answering(coded("gzip", b"<html>plain"))))
    assert document(result, PATIENT) == (b"<html>plain", "")


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
def test_a_bomb_is_kept_whole_and_decoded_in_part(tmp_path: Path, coding: str) -> None:
    zeros = bytes(60_000_000)
    pack = {"gzip": gzip.compress, "br": lambda data: brotli.compress(data, quality=1), "zstd": zstandard.compress}
    bomb = pack[coding](zeros)
    result = got(fetch_one(tmp_path, answering(coded(coding, bomb))))
    text, note = document(result, FetchLimits(decoded=3_000_000))
    assert (len(text) <= 3_000_000, note) == (True, "decodedTrunc" if coding == "gzip" else "decodedTrunc:ratio")
    assert b"".join(result.payload()) == bomb


# --- addresses and TLS ---


def test_no_address_and_no_connection_have_heritrix_codes(tmp_path: Path) -> None:
    async def use(fetcher: Fetcher, server: RawServer) -> None:
        uri = f"http://localhost:{server.port}/"
        codes = {(): NO_ADDRESS, ("10.0.0.1",): NOT_ALLOWED, ("127.0.0.99",): CONNECT_FAILED}
        for addresses, status in codes.items():
            result = await fetcher.fetch(FetchRequest(uri), addresses)
            assert isinstance(result, Failure)
            assert result.status == status
        second = got(await fetcher.fetch(FetchRequest(uri), ["127.0.0.99", "127.0.0.1"]))
        assert second.address == "127.0.0.1"

    assert with_server(tmp_path, answering(HI), use).connections == 1


def test_ipv6(tmp_path: Path) -> None:
    async def use(fetcher: Fetcher, server: RawServer) -> None:
        result = got(await fetcher.fetch(FetchRequest(f"http://[::1]:{server.port}/"), ["::1"]))
        assert (result.address, block(result)) == ("::1", HI)

    server = with_server(tmp_path, answering(HI), use, host="::1")
    assert f"Host: [::1]:{server.port}\r\n".encode() in server.requests[0]


def test_a_bad_certificate_is_noted_and_the_page_is_kept(tmp_path: Path) -> None:
    results: list[Exchange] = []

    async def use(fetcher: Fetcher, server: RawServer) -> None:
        for _ in range(2):
            request = FetchRequest(f"https://localhost:{server.port}/", headers=(("Connection", "close"),))
            results.append(got(await fetcher.fetch(request, ["127.0.0.1"])))

    answer = OK + b"Connection: close\r\nContent-Length: 2\r\n\r\nhi"
    server = with_server(tmp_path, answering(answer), use, context=server_context(tmp_path))
    assert [(block(result), result.certificate) for result in results] == [(answer, "self-signed certificate")] * 2
    assert len(server.requests) == 2


def test_a_server_of_old_that_ends_the_handshake_without_an_alert_is_still_read(tmp_path: Path) -> None:
    context = server_context(tmp_path)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1
    result = got(fetch_one(tmp_path, answering(HI), scheme="https", context=context))
    assert (result.certificate, block(result)) == ("the server ended the connection during the handshake", HI)


def test_a_handshake_that_the_server_ends_is_named(tmp_path: Path) -> None:
    async def handle(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read(1)

    result = fetch_one(tmp_path, handle, scheme="https")
    assert isinstance(result, Failure)
    assert result.why == "no TLS with 127.0.0.1: the server ended the connection during the handshake"


def test_a_good_certificate_has_no_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = server_context(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    wire.strict.cache_clear()
    try:
        result = got(fetch_one(tmp_path, answering(HI), scheme="https", context=context))
    finally:
        wire.strict.cache_clear()
    assert (result.certificate, block(result)) == ("", HI)


def test_a_handshake_that_was_ended_once_leaves_no_note_for_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = server_context(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    wire.strict.cache_clear()
    connections: list[int] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(1)
        if len(connections) > 1:
            await writer.start_tls(context)
            await reader.readuntil(b"\r\n\r\n")
            writer.write(HI)

    notes: list[str] = []

    async def use(fetcher: Fetcher, server: RawServer) -> None:
        for _ in range(2):
            request = FetchRequest(f"https://localhost:{server.port}/")
            notes.append(got(await fetcher.fetch(request, ["127.0.0.1"])).certificate)

    with_server(tmp_path, handle, use)
    wire.strict.cache_clear()
    assert notes == [wire.ENDED, ""]


def test_only_http_1_1_is_offered(tmp_path: Path) -> None:
    chosen = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        chosen.append(writer.get_extra_info("ssl_object").selected_alpn_protocol())
        writer.write(HI)

    context = server_context(tmp_path)
    context.set_alpn_protocols(["h2", "http/1.1"])
    fetch_one(tmp_path, handle, scheme="https", context=context)
    assert chosen == ["http/1.1"]


def test_tls_that_stalls_ends_at_the_limit(tmp_path: Path) -> None:
    async def handle(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    result = fetch_one(tmp_path, handle, FetchLimits(connect=0.2), scheme="https")
    assert isinstance(result, Failure)
    assert (result.status, "in 0.2 s" in result.why) == (CONNECT_FAILED, True)


def test_a_server_without_tls_is_a_failure(tmp_path: Path) -> None:
    async def handle(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-x\r\n" * 10)
        await writer.drain()

    result = fetch_one(tmp_path, handle, scheme="https")
    assert isinstance(result, Failure)
    assert result.status == CONNECT_FAILED
