"""What bounds leave out of a crawl is counted, once for each page, also over a kill."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from crawls import crawled
from msgspec.structs import replace
from sites.several_hosts import Page, page, serve

from warcmill.crawl.extract.links import LINK, Link
from warcmill.crawl.job import file
from warcmill.crawl.job.job import Bounds, Job
from warcmill.crawl.launch import reports
from warcmill.crawl.launch.launch import Running, open_launch
from warcmill.formats.logs import bounds
from warcmill.formats.logs.bounds import BoundCut

MANY = 1_300


def job_of(port: int, **more: Any) -> Job:
    return crawled.job(port, "a.example", **more)


def cuts(folder: Path) -> list[tuple[str, int, bool, int, str]]:
    """What bounds have left out, as the summary has it; the report has the same."""
    own = folder / "jobs/news" / crawled.LAUNCH.id
    found = reports.bounds_of(reports.read(own))
    assert bounds.read(next(folder.rglob("bounds-report.txt")).read_bytes()) == found
    return [(*one[:4], crawled.plain(one.first)) for one in found]


def test_queries_of_one_page_are_bounded_and_counted(tmp_path: Path) -> None:
    links = [f"/article.php?id={number}" for number in range(MANY)]
    with serve({("a.example", "/"): page(links)}) as port:
        few = job_of(port, traps=Bounds(queries=3), given=frozenset(["[traps] queries"]))
        crawled.crawl(tmp_path, few)
    first = "http://a.example/article.php?id=3"
    assert cuts(tmp_path) == [("queries", 3, True, MANY - 3, first)]
    assert sum("article" in uri for uri in crawled.statuses(tmp_path)) == 3


@pytest.mark.parametrize(
    ("text", "queries"),
    [("", (20_000, False)), ("[traps]\nqueries = 20000\n", (20_000, True)), ("[traps]\nqueries = 5\n", (5, True))],
)
def test_a_key_that_is_set_is_set_whatever_its_value(text: str, queries: tuple[int, bool]) -> None:
    written = {"crawl.toml": text.encode(), "seeds.txt": b"http://a.example/\n"}
    assert file.parse(written, "news").bound("queries") == queries


def test_settings_of_some_uris_set_a_key_for_these_alone() -> None:
    quotas = '[{ by = "host", bytes = 5 }]'
    text = f'[[settings]]\nprefixes = ["http://(example,a,"]\nquotas = {quotas}\n[settings.fetch]\nbody = 7\n'
    job = file.parse({"crawl.toml": text.encode(), "seeds.txt": b"http://a.example/\n"}, "news")
    (own,) = job.sheets.by_prefix.values()
    assert (own.bound("body"), own.bound("quota-bytes")[1]) == ((7, True), True)
    assert (job.bound("body")[1], job.bound("quota-bytes")[1]) == (False, False)


def test_a_key_that_a_program_wrote_with_its_default_is_not_set() -> None:
    text = 'defaults = ["quotas"]\n[[quotas]]\nby = "host"\nbytes = 5\n[[settings]]\nseeds = ["http://a.example/"]\n'
    text += 'quotas = [{ by = "host", bytes = 7 }]\n[settings.fetch]\nbody = 7\n'
    job = file.parse({"crawl.toml": text.encode(), "seeds.txt": b"http://a.example/\n"}, "news")
    own = job.sheets.by_seed["http://a.example/"]
    assert (job.bound("quota-bytes")[1], own.bound("quota-bytes")[1], own.bound("body")[1]) == (False, False, True)


def test_each_bound_of_an_answer_is_counted_by_its_key(tmp_path: Path) -> None:
    site = {
        ("a.example", "/"): page(["/long", "/links", "/film.m3u8", "/x/x/x/x/y"]),
        ("a.example", "/long"): Page(b"y" * 500_000, "text/plain"),
        ("a.example", "/links"): page([f"/{number}" for number in range(7)]),
        ("a.example", "/film.m3u8"): Page(
            b"#EXTM3U\n#EXT-X-VERSION:3\n" + b"".join(b"s%d.ts\n" % number for number in range(4)),
            "application/vnd.apple.mpegurl",
        ),
    }
    with serve(site) as port:
        job = job_of(port)
        crawled.crawl(tmp_path, replace(job, limits=replace(job.limits, body=99_999, links=6, segments=2)))
    found = {one[0]: (one[1], one[3], one[4].removeprefix("http://a.example")) for one in cuts(tmp_path)}
    assert found["links"] == (6, 1, "/links")
    assert found["segments"] == (2, 1, "/film.m3u8")
    assert found["repeats"] == (2, 1, "/x/x/x/x/y")
    assert found["body"] == (99_999, 1, "/long")


def test_a_kill_changes_no_number(tmp_path: Path) -> None:
    links = [f"/list?page={number}" for number in range(9)]
    site = {("a.example", "/"): page([*links, "http://b.example/"]), ("a.example", "/list?page=0"): page(links)}

    async def killed(job: Job) -> None:
        running = await open_launch(crawled.places(tmp_path), job, crawled.LAUNCH)
        work = asyncio.create_task(running.crawl())
        while not running.books.left_out.counts:
            await asyncio.sleep(0.01)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await running.abandon()

    with serve(site) as port:
        job = job_of(port, traps=Bounds(queries=0), given=frozenset(["[traps] queries"]))
        asyncio.run(killed(job))
        crawled.crawl(tmp_path, job)
    assert [(one[0], one[3]) for one in cuts(tmp_path)] == [("queries", 9), ("scope", 1)]


def test_what_waits_at_a_ceiling_is_left_out_by_it(tmp_path: Path) -> None:
    with serve({("a.example", "/"): page([f"/{number}" for number in range(9)])}) as port:
        job = job_of(port, workers=1)
        crawled.crawl(tmp_path, replace(job, ceilings=replace(job.ceilings, documents=4)))
    ((bound, value, _, number, first),) = cuts(tmp_path)
    assert (bound, value, number) == ("documents", 4, 6)
    assert first.startswith("http://a.example/")


def test_refusals_without_end_take_no_memory(tmp_path: Path) -> None:
    sizes = []

    def act(running: Running) -> None:
        uri = running.kit.offers._seed("http://a.example/")
        assert uri is not None
        for number in range(5_000):
            running.kit.offers.refuse(uri, Link(f"http://c.example/{number}", LINK, "a/@href"), "", "")
            far = running.kit.offers._made(f"http://b.example/{number}", uri, hops="L")
            assert far is not None
            assert not running.kit.offers._accepted(far)
        sizes.append(running.kit.offers.left_out_of(uri))

    with serve({("a.example", "/"): page([])}) as port:
        crawled.crawl(tmp_path, job_of(port), act)
    (tally,) = sizes
    assert tally is not None
    assert [one[:4] for one in tally.cuts()] == [BoundCut("scope", 0, False, 5_000, "")[:4]]
    assert len(tally.first) == 1
