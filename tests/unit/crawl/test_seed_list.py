"""A long list of seeds, which is offered while the launch runs; payloads of seeds and links; jobs without revisits."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from crawls import crawled
from msgspec.structs import replace
from sites.several_hosts import Page, page, serve

from warcmill.crawl.extract import package_index
from warcmill.crawl.job import file
from warcmill.crawl.job.job import Ceilings, End, Job, Live
from warcmill.crawl.launch import checkpoint
from warcmill.crawl.launch.launch import open_launch
from warcmill.crawl.launch.session import Edits
from warcmill.crawl.policies.politeness import Politeness
from warcmill.crawl.policies.scope import CrawlScope
from warcmill.errors import BadConfig, BadInput
from warcmill.formats import seeds
from warcmill.formats.seeds import SEED_LIST, SeedLine
from warcmill.model import Launch

LATER = Launch("news", "20261121091844")
WHEELS = ("demo-1-py3-none-any.whl",)
OFF = Politeness(0.0, 0.0, 0.0, 0.0)
LISTED = {"crawl.toml": b"", SEED_LIST: b""}


def write(folder: Path, *found: SeedLine | bytes, name: str = "news") -> None:
    path = folder / "jobs" / name / SEED_LIST
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(one if isinstance(one, bytes) else one.line() for one in found))


def index_job(port: int, **more: object) -> Job:
    return replace(
        crawled.job(port, "index.example", "files.example"), seeds=(), scope=CrawlScope(), robots=False,
        extractors=frozenset([package_index.NAME]), **more,  # type: ignore[arg-type]
    )  # fmt: skip


def index_page(port: int, *names: str) -> Page:
    files = [{"filename": name, "url": f"http://files.example:{port}/{name}"} for name in names]
    return Page(json.dumps({"name": "x", "files": files}).encode(), "application/vnd.pypi.simple.v1+json")


def test_a_list_is_offered_while_the_launch_runs_and_each_line_once(tmp_path: Path) -> None:
    web = {("a.example", f"/{n}"): page([]) for n in range(1100)}
    with serve(web) as port:
        listed = [SeedLine(f"http://a.example:{port}/{n}") for n in range(1100)]
        write(tmp_path, *listed, listed[0], b"\n", b"no seed\n", b'{"url": 1}\n', b'{"url": "x:"}\n', b"[" * 300_000)
        end, running = crawled.crawl(tmp_path, crawled.job(port, "a.example", seeds=(), robots=False, politeness=OFF))
    assert end is End.EMPTY
    found = crawled.statuses(tmp_path)
    assert sum(uri.startswith("http:") and status == 200 for uri, status in found.items()) == 1100
    assert len(crawled.told(tmp_path, "uri-errors.log").splitlines()) == 4
    assert crawled.unbalanced(tmp_path) == []
    assert (tmp_path / "jobs/news" / crawled.LAUNCH.id / SEED_LIST).exists()
    assert running.figures.seeds == {}


def test_a_launch_that_ends_before_its_list_does_not_offer_the_rest(tmp_path: Path) -> None:
    web = {("a.example", f"/{n}"): page([]) for n in range(3000)}
    with serve(web) as port:
        write(tmp_path, *(SeedLine(f"http://a.example:{port}/{n}") for n in range(3000)))
        job = crawled.job(port, "a.example", seeds=(), robots=False, ceilings=Ceilings(documents=5))
        end, _ = crawled.crawl(tmp_path, job)
    assert end is End.DOCUMENTS


def test_a_launch_that_continues_offers_the_list_again_and_fetches_nothing_twice(tmp_path: Path) -> None:
    web = {("a.example", f"/{n}"): page([]) for n in range(1500)}

    async def both(port: int) -> End:
        job = crawled.job(port, "a.example", seeds=(), robots=False, politeness=OFF)
        places = crawled.places(tmp_path)
        first = await open_launch(places, replace(job, ceilings=Ceilings(documents=60)), crawled.LAUNCH)
        assert await first.crawl() is End.DOCUMENTS
        stage = await first.checkpoint()
        await first.close(End.DOCUMENTS)
        resume = checkpoint.named(places.job("news") / "checkpoints", "news", str(stage))
        second = await open_launch(places, job, LATER, resume)
        end = await second.crawl()
        await second.close(end)
        return end

    with serve(web) as port:
        write(tmp_path, *(SeedLine(f"http://a.example:{port}/{n}") for n in range(1500)))
        assert asyncio.run(both(port)) is End.EMPTY
    got = [line.uri for launch in (crawled.LAUNCH, LATER) for line in crawled.lines(tmp_path, launch)]
    pages = [uri for uri in got if uri.startswith("http:")]
    assert len(pages) == len(set(pages)) == 1500


def test_a_page_of_an_index_embeds_its_files_on_any_host(tmp_path: Path) -> None:
    web: dict[tuple[str, str], Page] = {}
    with serve(web) as port:
        web["index.example", "/simple/demo/"] = index_page(
            port, "demo-1.tar.gz", "demo-1-py3-none-any.whl", "demo-1.exe"
        )
        web["files.example", "/demo-1.tar.gz"] = Page(b"sdist", "application/gzip")
        web["files.example", "/demo-1-py3-none-any.whl"] = Page(b"wheel", "application/zip")
        payload = json.dumps({"fetch": {"headers": {"Accept": "x/y"}}, **package_index.page("demo")})
        write(tmp_path, SeedLine(f"http://index.example:{port}/simple/demo/", payload))
        end, _ = crawled.crawl(tmp_path, index_job(port))
    assert end is End.EMPTY
    assert {line.uri.rpartition("/")[2]: line.hops for line in crawled.lines(tmp_path) if line.status == 200} == {
        "": None, "demo-1.tar.gz": "E", "demo-1-py3-none-any.whl": "E",
    }  # fmt: skip
    (warc,) = crawled.warcs(tmp_path)
    whole = gzip.decompress(warc.read_bytes())
    assert b"Range: bytes=-65536\r\n" in whole
    assert b"Accept: x/y\r\n" in whole


@pytest.mark.parametrize("revisits", [True, False])
def test_without_revisits_what_has_not_changed_is_a_full_record(tmp_path: Path, revisits: bool) -> None:
    web = {("a.example", "/"): page([], "/i.png"), ("a.example", "/i.png"): Page(b"png", "image/png", etag='"1"')}
    with serve(web) as port:
        job = crawled.job(port, "a.example", robots=False, revisits=revisits, conditional="all")
        for launch in (crawled.LAUNCH, LATER):
            crawled.crawl(tmp_path, job, launch=launch)
    again = {crawled.plain(line.uri): line for line in crawled.lines(tmp_path, LATER)}
    assert again["http://a.example/i.png"].status == (304 if revisits else 200)
    marks = {note.partition(":")[0] for line in again.values() for note in line.annotations}
    assert ("duplicate" in marks) == revisits


@pytest.mark.parametrize(("at_once", "rate"), [(4, 4), (0, 50)])
def test_a_host_is_asked_for_as_many_at_once_as_the_job_allows(tmp_path: Path, at_once: int, rate: int) -> None:
    with serve({("a.example", "/"): page([])}) as port:
        crawled.crawl(tmp_path, crawled.job(port, "a.example", politeness=replace(OFF, at_once=at_once)))
    with closing(sqlite3.connect(tmp_path / "jobs/news/state/books.sqlite")) as database:
        (text,) = database.execute("SELECT value FROM about WHERE name = 'rate'").fetchone()
    assert json.loads(text)["at_once"] == rate


def test_a_job_may_have_its_seeds_in_the_list_alone() -> None:
    job = file.parse({**LISTED, "crawl.toml": b"revisits = false\n[politeness]\nat_once = 4\n"}, "news")
    assert (job.seeds, job.revisits, job.politeness.at_once) == ((), False, 4)
    with pytest.raises(BadConfig, match="no seed"):
        file.parse({"crawl.toml": b""}, "news")


def test_an_edit_of_a_job_that_has_its_seeds_in_the_list_counts(tmp_path: Path) -> None:
    own = tmp_path / "own"
    for folder in (tmp_path, own):
        folder.mkdir(exist_ok=True)
        (folder / "crawl.toml").write_text("workers = 5\n")
        (folder / SEED_LIST).write_bytes(b"")
    live = Live(file.read(own, "news"))
    edits = Edits(tmp_path, own, live)
    (tmp_path / "crawl.toml").write_text("workers = 5\nhops = 3\n")
    assert "crawl.toml edited" in edits.take()
    assert live.job.scope.hops == 3


def test_at_once_is_for_the_whole_job() -> None:
    text = b'[[settings]]\nprefixes = ["http://(x,"]\n[settings.politeness]\nat_once = 2\n'
    with pytest.raises(BadConfig, match=r"\[politeness\] at_once: .*whole job"):
        file.parse({**LISTED, "crawl.toml": text}, "news")


def test_lines_of_a_list_come_back_as_they_were_and_faults_by_number() -> None:
    found = [SeedLine("http://x/", '{"a":1}', may_be_absent=True), SeedLine("http://y/")]
    assert list(seeds.lines(io.BytesIO(b"".join(one.line() for one in found)))) == found
    bad = list(seeds.lines(io.BytesIO(b'{"url": "x"}\n{"url": 7}\n' + b"x" * 300_000 + b'\n{"url": "y"}')))
    assert [one.url for one in bad if isinstance(one, SeedLine)] == ["x", "y"]
    assert [one.why.split(" ")[1] for one in bad if isinstance(one, BadInput)] == ["2", "3"]
