"""WARCs of the built-in crawler, judged by jwarc: every kind of record, and answers as odd as servers send them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sites.odd_answers import ODD, Odd
from sites.raw_server import answering, serving

from servers import judges
from warcmill.crawl.fetch.addresses import Judge
from warcmill.crawl.fetch.exchange import Exchange, FetchRequest, records_of
from warcmill.crawl.fetch.http import Fetcher
from warcmill.crawl.fetch.limits import FetchLimits
from warcmill.formats.warc import records
from warcmill.formats.warc.records import Block, Capture, Original
from warcmill.formats.warc.writer import WarcFiles, Writer

PAGE = Capture("http://news.example/", "2026-11-21T08:17:37Z", "127.0.0.13")
OLD = Original("<urn:uuid:0c67412a-31db-49f8-8e99-05c713e47ef2>", "2026-11-20T08:17:37Z", "http://news.example/")
OK = b"HTTP/1.1 200 OK\r\n\r\n"
REFUSED = {"no version"}  # it reads no answer that begins "HTTP/ 200"; the record is whole


def test_every_kind_of_record_is_valid(tmp_path: Path) -> None:
    files = WarcFiles(tmp_path, Writer("daily", 1, "crawler01"), [("isPartOf", "daily")])
    answer = records.response(PAGE, Block.of(OK + b"hi"), Block.of(b"hi").digest)
    files.append(
        [
            records.dns(
                Capture("dns:news.example", PAGE.date, "127.0.0.1"), "20261121081737\nnews.example. 1 IN A 1.2.3.4\n"
            ),
            answer,
            records.request(answer, Block.of(b"GET / HTTP/1.1\r\nHost: news.example\r\n\r\n")),
            records.metadata(answer, [("via", "http://news.example/")]),
            records.identical(PAGE, Block.of(OK), Block.of(b"hi").digest, OLD),
            records.not_modified(PAGE, Block.of(b"HTTP/1.1 304 Not Modified\r\n\r\n"), OLD),
            records.resource(PAGE, "text/plain", Block.of(b"hi")),
        ]
    )
    assert judges.validate_warcs(tmp_path / files.close()) == []


def test_odd_answers_are_read_but_those_that_jwarc_takes_for_no_http(tmp_path: Path) -> None:
    names = {asyncio.run(written(odd, number, tmp_path)): odd.name for number, odd in enumerate(ODD)}
    faults = judges.validate_warcs(*(tmp_path / name for name in names))
    assert {names[fault.file] for fault in faults} == REFUSED


async def written(odd: Odd, number: int, folder: Path) -> str:
    """Fetch an odd answer from a real server, and write its records into a file of their own."""
    files = WarcFiles(folder, Writer(f"odd{number}", 1, "crawler01"), [])
    fetcher = Fetcher(Judge(["127.0.0.0/8"]), FetchLimits(), "Warcmill/test", folder)
    async with serving(answering(odd.interim + odd.sent)) as server:
        answer = await fetcher.fetch(FetchRequest(f"http://127.0.0.1:{server.port}/", odd.method), ["127.0.0.1"])
    assert isinstance(answer, Exchange), answer
    files.append(records_of(answer))
    answer.close()
    fetcher.close()
    return files.close()
