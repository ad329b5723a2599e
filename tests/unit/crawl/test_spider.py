"""The built-in crawler on a real site: what it fetches, logs and stores, and that its books agree."""

from __future__ import annotations

import asyncio
import gzip
import os
import socket
from itertools import pairwise
from pathlib import Path

import pytest
from crawls import crawled
from sites.raw_server import Handler, answering, serving
from sites.several_hosts import Page, page, serve

from warcmill.crawl.job.job import Ceilings, End
from warcmill.crawl.launch.launch import Running
from warcmill.crawl.policies.politeness import Politeness
from warcmill.crawl.policies.scope import CrawlScope, SurtPrefixes
from warcmill.layout import Serial, warc_serial
from warcmill.model import Launch

ROBOTS = Page(b"User-agent: *\nDisallow: /private\nSitemap: /map.xml\n", "text/plain")
SITE = {
    ("a.example", "/"): page(["/1", "/private/x", "http://b.example/far", "ftp://a.example/f"], "/i.png"),
    ("a.example", "/1"): page(["/", "/2", "/gone"]),
    ("a.example", "/2"): page(["/1#part"]),
    ("a.example", "/i.png"): Page(b"png", "image/png"),
    ("a.example", "/robots.txt"): ROBOTS,
}
LATER = Launch("news", "20261121091844")


def chain(pages: int) -> dict[tuple[str, str], Page]:
    """A site of pages that each link to the next."""
    return {("a.example", f"/{n or ''}"): page([f"/{n + 1}"]) for n in range(pages)}


def test_a_site_is_crawled_whole_and_its_books_agree(tmp_path: Path) -> None:
    with serve(dict(SITE)) as port:
        end, running = crawled.crawl(tmp_path, crawled.job(port, "a.example"))
    assert end is End.EMPTY
    assert crawled.statuses(tmp_path) == {
        "dns:a.example": 1001,
        "http://a.example/robots.txt": 200,
        "http://a.example/": 200,
        "http://a.example/1": 200,
        "http://a.example/2": 200,
        "http://a.example/i.png": 200,
        "http://a.example/gone": 404,
        "http://a.example/map.xml": 404,
        "http://a.example/private/x": -9998,
    }
    assert crawled.unbalanced(tmp_path) == []
    assert running.figures.documents == 6
    assert "/private/x" in crawled.told(tmp_path, "nonfatal-errors.log")
    assert "Disallow: /private" in crawled.told(tmp_path, "nonfatal-errors.log")
    assert running.kit.offers.refused.counts == {"robots": 1, "scope": 1}


def test_lines_are_as_heritrix_writes_them(tmp_path: Path) -> None:
    with serve(dict(SITE)) as port:
        crawled.crawl(tmp_path, crawled.job(port, "a.example"))
    found = {crawled.plain(line.uri): line for line in crawled.lines(tmp_path)}
    seed, robots, image = (found[f"http://a.example/{path}"] for path in ("", "robots.txt", "i.png"))
    assert (seed.hops, seed.via, seed.mime, seed.source) == (None, None, "text/html", f"http://a.example:{port}/")
    assert (robots.hops, robots.via) == ("P", f"http://a.example:{port}/")
    assert (image.hops, image.size, image.status) == ("E", 3, 200)
    assert (image.content_size or 0) > 3
    assert found["http://a.example/private/x"].digest is None
    assert (seed.digest or "").startswith("sha1:")


def test_records_say_where_a_uri_comes_from(tmp_path: Path) -> None:
    with serve(dict(SITE)) as port:
        crawled.crawl(tmp_path, crawled.job(port, "a.example"))
    (warc,) = crawled.warcs(tmp_path)
    assert warc_serial(warc.name) == Serial("news", f"{os.getpid()}~{socket.gethostname()}~0", 0)
    of_image = crawled.metadata(warc)[f"http://a.example:{port}/i.png"]
    assert f"via: http://a.example:{port}/\r\n" in of_image
    assert "hopsFromSeed: E\r\n" in of_image
    of_page = crawled.metadata(warc)[f"http://a.example:{port}/1"]
    assert f"outlink: http://a.example:{port}/2 L a/@href\r\n" in of_page


def test_a_link_that_is_no_uri_is_in_the_log_of_these_and_in_no_record(tmp_path: Path) -> None:
    texts = ("http://[bad/", "http://host.example:99999/", "http://exa mple.example/", "http://ex%zz.example/")
    site = {("a.example", "/"): page([*texts, texts[0], "mailto:x@a.example", "/1"]), ("a.example", "/1"): page([])}
    with serve(site) as port:
        crawled.crawl(tmp_path, crawled.job(port, "a.example"))
    logged = [line.split(" ", 2)[1:] for line in crawled.told(tmp_path, "uri-errors.log").splitlines()]
    said = '"not a URI with scheme and host"'
    assert logged == [[f"http://a.example:{port}/", f"{said} {text}"] for text in texts]
    (warc,) = crawled.warcs(tmp_path)
    outlinks = crawled.metadata(warc)[f"http://a.example:{port}/"].count("outlink: ")
    assert outlinks == 1


def test_the_log_of_links_that_are_not_fetched_shows_no_password(tmp_path: Path) -> None:
    site = {("a.example", "/"): page(["http://user:se@cret@a.example/x@y", "http://user@a.example/"])}
    with serve(site) as port:
        crawled.crawl(tmp_path, crawled.job(port, "a.example"))
    logged = [line.rpartition(" ")[2] for line in crawled.told(tmp_path, "uri-errors.log").splitlines()]
    assert logged == ["http://a.example/x@y", "http://a.example/"]


def test_the_files_of_a_launch_are_those_that_heritrix_leaves(tmp_path: Path) -> None:
    with serve(dict(SITE)) as port:
        crawled.crawl(tmp_path, crawled.job(port, "a.example"))
    job, launch = tmp_path / "jobs/news", crawled.LAUNCH.id
    assert {path.name for path in (tmp_path / "output/logs/news" / launch).iterdir()} == {
        "alerts.log", "crawl.log", "frontier.recover.gz", "nonfatal-errors.log", "progress-statistics.log",
        "runtime-errors.log", "uri-errors.log",
    }  # fmt: skip
    assert len(list((tmp_path / "output/reports/news" / launch).iterdir())) == 10, "nine, and what bounds left out"
    assert (job / "latest").readlink() == Path(launch)
    words = [line.split()[2] for line in (job / launch / "job.log").read_text().splitlines()]
    assert words == ["PREPARING", "PAUSED", "RUNNING", "STOPPING", "EMPTY", "FINISHED"]


def test_what_is_refused_is_not_said_to_be_tried_again(tmp_path: Path) -> None:
    with serve(dict(SITE)) as port:
        _, running = crawled.crawl(tmp_path, crawled.job(port, "a.example"))
    assert crawled.statuses(tmp_path)["http://a.example/private/x"] == -9998
    assert running.reporter.first_failure == ""


def star(most: list[int], pages: int, at_once: int) -> Handler:
    """A site whose seed has so many pages, each answered once so many are asked for. `most` gets their numbers."""
    is_full, under_way = asyncio.Event(), set[int]()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            path = head.split(b" ")[1].decode()
            links = "".join(f'<a href="/{n}">x</a>' for n in range(pages)) if path == "/" else ""
            if not links:
                under_way.add(id(writer))
                most.append(len(under_way))
                if len(under_way) == at_once:
                    is_full.set()
                await is_full.wait()
                under_way.discard(id(writer))
            body = f"<title>{path}</title>{links}".encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    return answer


@pytest.mark.parametrize(("no_delay", "at_once"), [(True, 6), (False, 1)])
def test_a_commit_has_many_pages_of_one_host_which_is_asked_as_its_politeness_says(
    tmp_path: Path, no_delay: bool, at_once: int
) -> None:
    pages, most = 60, list[int]()

    async def scenario() -> Running:
        async with serving(star(most, pages, at_once)) as server:
            job = crawled.job(server.port, "a.example", robots=False, no_delay=no_delay)
            return (await crawled.whole(tmp_path, job))[1]

    running = asyncio.run(scenario())
    assert (running.figures.documents, len(most), max(most)) == (1 + pages, pages, at_once)
    assert crawled.unbalanced(tmp_path) == []
    journal = tmp_path / "output/logs" / crawled.LAUNCH.job / crawled.LAUNCH.id / "frontier.recover.gz"
    assert gzip.decompress(journal.read_bytes()).count(b"\nFg ") < pages / 2


def test_a_polite_host_rests_after_each_answer_though_none_is_committed_yet(tmp_path: Path) -> None:
    asked: list[tuple[float, str, str]] = []
    with serve({("a.example", "/"): page([f"/{n}" for n in range(9)])}, asked) as port:
        politeness = Politeness(factor=0.0, least=0.05, most=0.05)
        job = crawled.job(port, "a.example", no_delay=False, robots=False, politeness=politeness)
        crawled.crawl(tmp_path, job)
    times = [moment for moment, _, _ in asked]
    assert len(times) == 10
    assert min(after - before for before, after in pairwise(times)) >= 0.045  # the site may note one a moment late


def test_a_ceiling_of_documents_is_kept_to_the_document(tmp_path: Path) -> None:
    with serve(chain(20)) as port:
        job = crawled.job(port, "a.example", ceilings=Ceilings(documents=3))
        end, _ = crawled.crawl(tmp_path, job)
    assert end is End.DOCUMENTS
    pages = [uri for uri in crawled.statuses(tmp_path) if not uri.endswith("robots.txt") and "dns:" not in uri]
    assert pages == ["http://a.example/", "http://a.example/1", "http://a.example/2"]
    report = tmp_path / "output/reports/news" / crawled.LAUNCH.id / "crawl-report.txt"
    assert "crawl status: Finished - Maximum number of documents limit hit" in report.read_text()


def test_what_is_under_way_when_it_is_stopped_at_once_waits(tmp_path: Path) -> None:
    def stop(running: Running) -> None:
        running.books.hear = lambda result, kept: running.spider.hurry()

    with serve(chain(20)) as port:
        end, _ = crawled.crawl(tmp_path, crawled.job(port, "a.example"), stop)
        assert end is End.STOPPED
        end, _ = crawled.crawl(tmp_path, crawled.job(port, "a.example"))
    assert end is End.EMPTY
    found = [crawled.plain(line.uri) for line in crawled.lines(tmp_path)]
    assert len(found) == len(set(found)) == 23


def test_a_page_that_is_the_same_in_the_next_launch_is_a_revisit_and_its_links_are_followed(tmp_path: Path) -> None:
    site = {**chain(3), ("a.example", "/robots.txt"): ROBOTS}
    with serve(site) as port:
        crawled.crawl(tmp_path, crawled.job(port, "a.example"))
        site["a.example", "/1"] = page(["/2"], filler=9)
        crawled.crawl(tmp_path, crawled.job(port, "a.example"), launch=LATER)
    kinds = {crawled.plain(uri): kind for kind, uri in crawled.records(crawled.warcs(tmp_path, LATER)) if kind in
             ("response", "revisit")}  # fmt: skip
    assert kinds["http://a.example/"] == "revisit"
    assert kinds["http://a.example/1"] == "response"
    assert kinds["http://a.example/2"] == "revisit"
    notes = {crawled.plain(line.uri): line.annotations for line in crawled.lines(tmp_path, LATER)}
    assert notes["http://a.example/"] == ("duplicate:digest",)
    assert notes["http://a.example/1"] == ()


def test_an_embedded_file_that_has_not_changed_is_asked_for_by_its_etag(tmp_path: Path) -> None:
    site = {("a.example", "/"): page([], "/i.png"), ("a.example", "/i.png"): Page(b"png", "image/png", etag='"1"')}
    with serve(site) as port:
        crawled.crawl(tmp_path, crawled.job(port, "a.example"))
        crawled.crawl(tmp_path, crawled.job(port, "a.example"), launch=LATER)
    found = {crawled.plain(line.uri): line for line in crawled.lines(tmp_path, LATER)}
    assert found["http://a.example/i.png"].status == 304
    assert found["http://a.example/i.png"].annotations == ("duplicate:server-not-modified",)


def test_what_a_server_has_set_is_returned_to_it_byte_for_byte(tmp_path: Path) -> None:
    etag, cookie, text = b'"\xfc-\xc3\xbc"', b"a=\xfc-\xc3\xbc", b"<a href=/1>"
    fields = (b"Content-Type: text/html", b"Content-Length: 11", b"ETag: " + etag, b"Set-Cookie: " + cookie)
    answer = b"\r\n".join([b"HTTP/1.1 200 OK", *fields, b"", text])

    async def twice() -> list[bytes]:
        async with serving(answering(*[answer] * 4)) as server:
            job = crawled.job(server.port, "a.example", conditional="all")
            await crawled.whole(tmp_path, job)
            await crawled.whole(tmp_path, job, launch=LATER)
        return [request for request in server.requests if request.startswith(b"GET /1 ")]

    first, second = asyncio.run(twice())
    assert b"\r\nCookie: " + cookie + b"\r\n" in first
    assert b"\r\nIf-None-Match: " + etag + b"\r\n" in second


def test_a_page_is_crawled_with_what_it_embeds_from_any_host(tmp_path: Path) -> None:
    site = {("a.example", "/"): page(["/1"], "http://b.example:PORT/i.png")}
    with serve(site) as port:
        site["a.example", "/"] = page(["/1"], f"http://b.example:{port}/i.png")
        site["b.example", "/i.png"] = Page(b"png", "image/png")
        job = crawled.job(port, "a.example", "b.example")
        crawled.crawl(tmp_path, crawled.replace(job, seeds=job.seeds[:1], scope=CrawlScope(SurtPrefixes())))
    assert crawled.statuses(tmp_path)["http://b.example/i.png"] == 200
    assert "http://a.example/1" not in crawled.statuses(tmp_path)
