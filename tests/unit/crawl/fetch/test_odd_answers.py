"""Odd answers by a real server: the WARC holds what was sent, byte for byte, and each reader agrees."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from sites.odd_answers import ODD, STATUSLESS, Odd
from sites.raw_server import answering, serving
from warcio.archiveiterator import ArchiveIterator

from warcmill.crawl.fetch.addresses import Judge
from warcmill.crawl.fetch.exchange import Exchange, FetchRequest, records_of
from warcmill.crawl.fetch.http import Fetcher
from warcmill.crawl.fetch.limits import FetchLimits
from warcmill.formats.warc.gate import examine
from warcmill.formats.warc.writer import WarcFiles, Writer

LIMITS = FetchLimits(connect=5.0, idle=5.0, total=20.0)


async def fetch(odd: Odd, folder: Path, pieces: int) -> tuple[Exchange, bytes]:
    """The exchange, and the bytes that the server saw. It sends in so many pieces."""
    data = odd.interim + odd.sent
    step = max(1, len(data) // pieces)
    sent: list[bytes | float] = []
    for at in range(0, len(data), step):
        sent += [data[at : at + step], 0.0]
    fetcher = Fetcher(Judge(["127.0.0.0/8"]), LIMITS, "Warcmill/test", folder)
    async with serving(answering(sent)) as server:
        uri = f"http://127.0.0.1:{server.port}/a?b=c"
        result = await fetcher.fetch(FetchRequest(uri, odd.method), ["127.0.0.1"])
        assert isinstance(result, Exchange), result
        fetcher.close()
        return result, server.requests[0]


ALL = [*ODD, *STATUSLESS]
# What is sent later than the end of an answer is not waited for, unless the server said that it closes.
IN_PIECES = [odd for odd in ALL if not odd.beyond or b"Connection: close" in odd.sent]
CASES = [(odd, 1) for odd in ALL] + [(odd, 40) for odd in IN_PIECES]


@pytest.mark.parametrize(("odd", "pieces"), CASES, ids=lambda value: getattr(value, "name", value))
def test_the_warc_holds_what_was_sent_byte_for_byte(odd: Odd, pieces: int, tmp_path: Path) -> None:
    exchange, asked = asyncio.run(fetch(odd, tmp_path, pieces))
    assert b"".join(exchange.payload()) == odd.payload
    assert (exchange.status, exchange.truncated, exchange.annotations) == (odd.status, odd.truncated, odd.annotations)
    assert exchange.extra == odd.beyond
    assert exchange.payload_length == len(odd.payload) + (0 if exchange.chunked else odd.beyond)
    made = records_of(exchange)
    files = WarcFiles(tmp_path, Writer("odd", 1, "crawler01"), [])
    files.append(made)
    data = (tmp_path / files.close()).read_bytes()
    exchange.close()

    verdict = examine(io.BytesIO(data), "odd.warc.gz")
    assert (verdict.ok, verdict.records, verdict.warnings) == (True, 4, ()), verdict
    assert sum(verdict.payload_digests.values()) == (odd.status != 304)
    assert "not checked" not in verdict.payload_digests
    fast = [record.reader.read() for record in FastIterator(io.BytesIO(data), parse_http=False)]
    slow = [record.raw_stream.read() for record in ArchiveIterator(io.BytesIO(data), no_record_parse=True)]
    for blocks in (fast, slow):
        assert blocks[1:3] == [odd.sent, asked]
        told = dict(line.split(b": ", 1) for line in blocks[3].splitlines())
        assert unquote_to_bytes(told.get(b"interimResponse", b""))[-len(odd.interim or b" ") :] in odd.interim
        assert blocks[3].count(b"interimResponse: ") == odd.interim.count(b"HTTP/")


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd.name)
def test_warcio_reads_the_status_of_each(odd: Odd, tmp_path: Path) -> None:
    exchange, _ = asyncio.run(fetch(odd, tmp_path, 1))
    data = b"".join(piece for record in records_of(exchange) for piece in record.member())
    exchange.close()
    answer, *_ = ArchiveIterator(io.BytesIO(data))
    assert answer.http_headers.get_statuscode() == str(odd.status)
