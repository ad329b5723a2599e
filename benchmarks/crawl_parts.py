"""Measure the parts of a crawl, a page each, in microseconds of CPU; and the writing of WARCs beside warcio.

The page has 11 kB and 51 links, as that of the issue's probe, whose figures are
the targets. The server is a process of its own, and does not count.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import multiprocessing
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from ada_url import join_url
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from warcmill.crawl.extract import html
from warcmill.crawl.extract.links import LinkCollector
from warcmill.crawl.fetch.addresses import Judge
from warcmill.crawl.fetch.exchange import Exchange, FetchRequest, records_of
from warcmill.crawl.fetch.http import Fetcher
from warcmill.crawl.fetch.limits import FetchLimits
from warcmill.formats.warc import records
from warcmill.formats.warc.records import Block, Capture
from warcmill.formats.warc.writer import WarcFiles, Writer

ROUNDS, PAGES = 9, 200
URI = "http://127.0.0.1/en/0"
CAPTURE = Capture(URI, "2026-11-21T08:17:37Z", "127.0.0.1")
_HREFS = [f"/news/{number}/article-number-{number}.html?from=home" for number in range(40)]
_HREFS += [f"../section/{number}.html" for number in range(8)]
_HREFS += [f"https://www.example.org/{number}#top" for number in range(3)]


def page() -> bytes:
    """A page of 11 kB and 51 links, whose words are not all alike."""
    chance = random.Random(12)
    words = ["".join(chance.choices("eeeetaoinshrdlu", k=chance.randint(2, 9))) for _ in range(1_500)]
    items = "".join(
        f'<li class="item"><a class="title" href="{href}">{" ".join(chance.choices(words, k=4))}</a>'
        f"<p>{' '.join(chance.choices(words, k=13))}</p></li>\n"
        for href in _HREFS
    )
    return f"<!doctype html><html><head><title>News</title></head><body><ul>{items}</ul></body></html>".encode()


PAGE = page()
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n" % len(PAGE)
ASKED = b"GET /en/0 HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: Warcmill\r\nAccept-Encoding: gzip\r\n\r\n"


def rows() -> Iterator[tuple[str, str, str, str, str]]:
    """What, ours, peer, ratio, target."""
    yield _row("fetch over loopback, a kept connection", _fetches(), "-")
    yield _row("links of a page", _each(lambda: html.links(PAGE, URI)), "<= 220 us")
    links = LinkCollector(URI)
    ours, peer = _each(lambda: [links.join(href) for href in _HREFS]), _each(_joined_by_ada)
    yield "joining its 51 URLs", f"{ours:.0f} us", f"{peer:.0f} us ada-url alone", f"{peer / ours:.2f}", "<= 67 us"
    response = records.response(CAPTURE, Block.of(HEAD + PAGE), "")
    yield _row("gzip member of a response", _each(lambda: list(response.member())), "<= 93 us")
    yield _row("digests of a page", _each(_digests), "<= 62 us")
    ours, peer = _writing(), _writing_by_warcio()
    yield "WARC: response and request", f"{ours:.0f} us", f"{peer:.0f} us warcio", f"{peer / ours:.2f}", ">= 5 x"


def _row(what: str, microseconds: float, target: str) -> tuple[str, str, str, str, str]:
    return f"{what}, {len(PAGE) / 1000:.0f} kB", f"{microseconds:.0f} us", "-", "-", target


def _each(act: Callable[[], object]) -> float:
    """Microseconds of CPU for one call: the least of several rounds, as what else runs only adds."""

    def once() -> float:
        begin = time.process_time()
        for _ in range(PAGES):
            act()
        return (time.process_time() - begin) / PAGES * 1e6

    return min(once() for _ in range(ROUNDS))


def _joined_by_ada() -> None:
    for href in _HREFS:
        join_url(URI, href)


def _digests() -> None:
    """The sha1 of the block, and of the payload its sha1 and the second digest."""
    hashlib.sha1(HEAD + PAGE).digest()
    hashlib.sha1(PAGE).digest()
    hashlib.sha256(PAGE).digest()


def _writing() -> float:
    with tempfile.TemporaryDirectory() as folder:
        files = WarcFiles(Path(folder), Writer("bench", 1, "crawler01"), [])

        def write() -> None:
            digest = records.sha1_text(hashlib.sha1(PAGE).digest())
            answer = records.response(CAPTURE, Block.of(HEAD + PAGE), digest)
            files.append([answer, records.request(answer, Block.of(ASKED))])

        took = _each(write)
        files.close()
    return took


def _writing_by_warcio() -> float:
    with tempfile.TemporaryFile() as stream:
        writer = WARCWriter(stream, gzip=True)
        answered = [("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(PAGE)))]
        asked = [("Host", "127.0.0.1"), ("User-Agent", "Warcmill"), ("Accept-Encoding", "gzip")]

        def write() -> None:
            answer = writer.create_warc_record(
                URI, "response", io.BytesIO(PAGE), http_headers=StatusAndHeaders("200 OK", answered, "HTTP/1.1")
            )
            request = writer.create_warc_record(
                URI, "request", http_headers=StatusAndHeaders("GET /en/0 HTTP/1.1", asked, is_http_request=True)
            )
            writer.write_request_response_pair(request, answer)

        return _each(write)


def _fetches() -> float:
    """Fetch and close, over one kept connection."""
    ports: multiprocessing.Queue[int] = multiprocessing.Queue()
    server = multiprocessing.Process(target=_serve, args=(ports,), daemon=True)
    server.start()
    with tempfile.TemporaryDirectory() as folder:
        took = asyncio.run(_fetch_all(ports.get(timeout=30), Path(folder)))
    server.terminate()
    server.join()
    return took


async def _fetch_all(port: int, folder: Path) -> float:
    fetcher, times = Fetcher(Judge(["127.0.0.0/8"]), FetchLimits(), "Warcmill", folder), []
    request = FetchRequest(f"http://127.0.0.1:{port}/en/0")
    for _ in range(ROUNDS):
        begin = time.process_time()
        for _ in range(PAGES):
            answer = await fetcher.fetch(request, ["127.0.0.1"])
            assert isinstance(answer, Exchange), answer
            answer.close()
        times.append((time.process_time() - begin) / PAGES * 1e6)
    assert records_of(answer)
    fetcher.close()
    return min(times)


def _serve(ports: multiprocessing.Queue[int]) -> None:
    """Answer every request with the page."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(HEAD + PAGE)

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        ports.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())
