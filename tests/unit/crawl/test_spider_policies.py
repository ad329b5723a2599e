"""The policies of a job in the loop of the crawler: over a real site, by what crawl.log and the database then have."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from crawls import crawled
from msgspec.structs import replace
from sites.several_hosts import Page, page, serve

from warcmill.crawl.fetch.limits import FetchLimits
from warcmill.crawl.job.job import Ceilings, End, Job, Sheets
from warcmill.crawl.launch import checkpoint
from warcmill.crawl.launch.launch import Running, open_launch
from warcmill.crawl.policies.politeness import Politeness
from warcmill.crawl.policies.quotas import By, Expiry, Quota
from warcmill.crawl.policies.recrawl import Adaptive, Age, Calendar
from warcmill.crawl.uri import Status, Uri
from warcmill.model import Launch

LINKED = {
    ("a.example", "/"): page(["/1", "/2", "/3"]),
    ("a.example", "/robots.txt"): Page(b"", "text/plain"),
    **{("a.example", f"/{n}"): page([]) for n in (1, 2, 3)},
}


def refused(folder: Path) -> dict[str, tuple[str, ...]]:
    """What was not fetched over a quota or the end of the crawl, and the word for it."""
    return {crawled.plain(line.uri): line.annotations for line in crawled.lines(folder) if line.status == -5003}


async def waiting(running: Running) -> list[Uri]:
    return (await running.books.frontier.list()).uris


def crawl_and_list(folder: Path, job: Job) -> tuple[End, list[Uri]]:
    """Crawl, and return what waits at the end."""

    async def act() -> tuple[End, list[Uri]]:
        running = await open_launch(crawled.places(folder), job, crawled.LAUNCH)
        end = await running.crawl()
        found = await waiting(running)
        await running.close(end)
        return end, found

    return asyncio.run(act())


def test_what_is_over_a_quota_is_refused_with_its_reason_in_crawl_log(tmp_path: Path) -> None:
    with serve(dict(LINKED)) as port:
        job = crawled.job(port, "a.example", quotas=(Quota(By.HOST, documents=2),))
        end, running = crawled.crawl(tmp_path, job)
    assert end is End.EMPTY
    assert running.figures.documents == 2
    word = (f"quotas:2_documents_of_host_a.example:{port}_were_fetched",)
    assert refused(tmp_path) == {"http://a.example/2": word, "http://a.example/3": word}
    assert "quotas: 2 documents of host" in crawled.told(tmp_path, "nonfatal-errors.log")
    assert running.summary()["refused"] == {"quotas": 2}
    assert crawled.statuses(tmp_path)["http://a.example/robots.txt"] == 200


@pytest.mark.parametrize(("continues", "documents"), [(True, 1), (False, 3)])
def test_a_quota_counts_on_in_a_launch_that_continues_another_and_anew_in_one_that_follows(
    tmp_path: Path, continues: bool, documents: int
) -> None:
    async def act(port: int) -> Running:
        job = crawled.job(port, "a.example", quotas=(Quota(By.TARGET, documents=3),), ceilings=Ceilings(documents=2))
        places = crawled.places(tmp_path)
        first = await open_launch(places, job, crawled.LAUNCH)
        assert await first.crawl() is End.DOCUMENTS
        stage = await first.checkpoint()
        await first.close(End.DOCUMENTS)
        resume = checkpoint.named(tmp_path / "jobs/news/checkpoints", "news", str(stage)) if continues else None
        follows = "" if continues else crawled.LAUNCH.id
        next_one = Launch("news", "20261121091844")
        second = await open_launch(places, replace(job, ceilings=Ceilings()), next_one, resume, follows)
        await second.close(await second.crawl())
        return second

    with serve(dict(LINKED)) as port:
        running = asyncio.run(act(port))
    assert (running.figures.documents, running.summary()["refused"]) == (documents, {"quotas": 1})


def test_nothing_is_fetched_after_the_end_of_the_crawl(tmp_path: Path) -> None:
    with serve(dict(LINKED)) as port:
        _, running = crawled.crawl(tmp_path, crawled.job(port, "a.example", expiry=Expiry({"": 5.0})))
    assert refused(tmp_path) == {"http://a.example/": ("expiry:the_crawl_ended_at_1970-01-01T00:00:05Z",)}
    assert running.figures.documents == 0


def test_a_site_is_visited_again_after_an_age_until_its_crawl_ends(tmp_path: Path) -> None:
    with serve(dict(LINKED)) as port:
        job = crawled.job(port, "a.example", recrawl=Age(0.05), ceilings=Ceilings(documents=9))
        end, _ = crawl_and_list(tmp_path, job)
    assert end is End.DOCUMENTS
    seeds = [line for line in crawled.lines(tmp_path) if crawled.plain(line.uri) == "http://a.example/"]
    assert len(seeds) > 1
    assert [line.annotations for line in seeds][:2] == [(), ("duplicate:digest",)]
    assert crawled.unbalanced(tmp_path) == []


def test_what_would_be_due_after_the_end_of_the_crawl_does_not_wait(tmp_path: Path) -> None:
    with serve(dict(LINKED)) as port:
        expiry = Expiry({"": time.time() + 3_600})
        end, found = crawl_and_list(tmp_path, crawled.job(port, "a.example", recrawl=Age(7_200.0), expiry=expiry))
    assert (end, found) == (End.EMPTY, [])


def test_each_uri_waits_for_its_own_rule(tmp_path: Path) -> None:
    """By calendar, by change, and one that got no answer: each waits with its time, and the launch with them."""
    began = time.time()
    with serve(dict(LINKED)) as port:
        usual = crawled.job(port, "a.example", recrawl=Adaptive(), ceilings=Ceilings(documents=4))
        yearly = replace(usual, recrawl=Calendar("FREQ=YEARLY;BYMONTH=1;BYMONTHDAY=1"))
        prefix = f"http://(example,a,:{port})/"
        job = replace(usual, sheets=Sheets({f"{prefix}2": yearly}))
        end, found = crawl_and_list(tmp_path, job)
    due = {crawled.plain(uri.uri): uri.not_before for uri in found}
    assert end is End.DOCUMENTS
    assert {uri.status for uri in found} == {Status.SCHEDULED}
    assert began + 3_600 <= due["http://a.example/1"] <= time.time() + 3_600
    assert time.gmtime(due["http://a.example/2"])[1:6] == (1, 1, 0, 0, 0)


def test_settings_hold_for_their_prefix_alone(tmp_path: Path) -> None:
    site = {
        **LINKED,
        ("a.example", "/robots.txt"): Page(b"User-agent: *\nDisallow: /1\nDisallow: /3", "text/plain"),
        ("a.example", "/2"): Page(b"x" * 3_000_000),
    }
    with serve(site) as port:
        usual = crawled.job(port, "a.example")
        own = {"1": replace(usual, robots=False), "2": replace(usual, limits=FetchLimits(body=100))}
        sheets = Sheets({f"http://(example,a,:{port})/{path}": job for path, job in own.items()})
        crawled.crawl(tmp_path, replace(usual, sheets=sheets))
    found = crawled.statuses(tmp_path)
    assert (found["http://a.example/1"], found["http://a.example/3"]) == (200, -9998)
    notes = {crawled.plain(line.uri): line.annotations for line in crawled.lines(tmp_path)}
    assert (notes["http://a.example/"], notes["http://a.example/2"]) == ((), ("lenTrunc",))


def test_links_that_a_page_asks_not_to_follow_are_left_out_where_the_job_obeys(tmp_path: Path) -> None:
    tagged: Any = page(["/2"])
    site = {
        ("a.example", "/"): Page(b"<a rel=nofollow href=/secret>x</a><a href=/meta>y</a><a href=/tag>z</a>"),
        ("a.example", "/meta"): Page(b"<meta name=robots content=nofollow><a href=/2>x</a><img src=/i.png>"),
        ("a.example", "/tag"): replace(tagged, robots_tag="warcmill: nofollow"),
        ("a.example", "/2"): page([]),
    }
    with serve(site) as port:
        _, running = crawled.crawl(tmp_path, crawled.job(port, "a.example", nofollow=True, scope_log=True))
    found = crawled.statuses(tmp_path)
    assert {"http://a.example/meta", "http://a.example/tag", "http://a.example/i.png"} <= found.keys()
    assert not {"http://a.example/secret", "http://a.example/2"} & found.keys()
    assert running.kit.offers.refused.counts == {"nofollow": 3}
    assert sorted({row[0] for row in crawled.left_out(tmp_path)}) == [
        "-1 nofollow REJECT http://a.example/2", "-1 nofollow REJECT http://a.example/secret",
    ]  # fmt: skip
    outlinks = crawled.metadata(crawled.warcs(tmp_path)[0])[f"http://a.example:{port}/"]
    assert "/secret L a/@href" in outlinks, "the record has what the page links to, followed or not"


class Meeting(dict[tuple[str, str], Page]):
    """A web that answers for /1 and /2 once both have been asked for."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._both = threading.Barrier(2, timeout=300)

    def get(self, key: Any, default: Any = None) -> Any:
        if key[1] in ("/1", "/2"):
            self._both.wait()
        return super().get(key, default)


def test_a_host_is_asked_for_several_at_the_same_time_when_politeness_is_off(tmp_path: Path) -> None:
    with serve(Meeting(LINKED)) as port:
        job = crawled.job(port, "a.example", politeness=Politeness(0.0, 0.0, 0.0, 0.0))
        end, running = crawled.crawl(tmp_path, job)
    assert (end, running.figures.documents) == (End.EMPTY, 4)
    assert crawled.unbalanced(tmp_path) == []
    slow = replace(job, politeness=Politeness())
    assert not replace(job, sheets=Sheets(by_seed={"http://b.example/": slow})).is_hurried
