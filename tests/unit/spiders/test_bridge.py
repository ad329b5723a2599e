"""What a spider asks for is in the frontier before its page is kept, whatever happens to an offer."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.exceptions import NotSupported
from scrapy.utils.test import get_crawler

from warcmill.crawl.frontier import PRIORITIES, Intake, Offered
from warcmill.crawl.uri import Uri, make
from warcmill.errors import Unavailable
from warcmill.spiders.bridge import ScrapyBridge
from warcmill.spiders.requests import MARK, RequestForms

PAGE = "http://windmills.example/"


class AwayFrontier:
    """A frontier that takes nothing until it is `back`; then it answers once it is `open`."""

    def __init__(self) -> None:
        self.back, self.open, self.has = False, asyncio.Event(), list[str]()

    async def offer(self, uris: list[Uri]) -> list[Any]:
        await self.open.wait()
        if not self.back:
            raise Unavailable("the frontier", "it is away")
        self.has += [uri.uri for uri in uris]
        return [SimpleNamespace(answer=Intake.NEW, why="") for _ in uris]


class Mills(Spider):
    name = "mills"


def bridge(frontier: AwayFrontier) -> ScrapyBridge:
    crawler: Any = get_crawler(Mills)
    crawler.spider = Mills()
    kit: Any = SimpleNamespace(
        woken=asyncio.Event(),
        live=SimpleNamespace(renders=False),
        books=SimpleNamespace(frontier=frontier),
        job=SimpleNamespace(queue=lambda _: "windmills.example"),
    )
    guard: Any = SimpleNamespace()
    return ScrapyBridge(kit, crawler, guard)


async def _taken(made: ScrapyBridge, requests: list[Request]) -> list[int]:
    for request in requests:
        made.start(request)
    frontier: Any = made.kit.books.frontier
    sizes, offer = list[int](), frontier.offer

    async def noted(uris: list[Uri]) -> list[Any]:
        sizes.append(len(uris))
        answers: list[Any] = await offer(uris)
        return answers

    frontier.offer = noted
    await made.flush()
    return sizes


def test_large_requests_are_offered_some_at_a_time_and_each_comes_back_whole() -> None:
    async def crawl() -> None:
        frontier = AwayFrontier()
        made = bridge(frontier)
        frontier.back = True
        frontier.open.set()
        blob, body, far = "a" * 700_000, bytes(range(256)) * 1_000, 10**30
        large = [Request(f"{PAGE}{number}", meta={"blob": blob}, body=body, priority=far) for number in range(5)]
        assert await _taken(made, [*large, Request(PAGE)]) == [1, 1, 1, 1, 2]
        one = RequestForms(Mills()).waiting(large[0], b"key", parent=None, hop="", number=1)
        assert -one.priority == PRIORITIES[-1]
        back = RequestForms(Mills()).restored(one)
        assert (back.meta["blob"], back.body, back.priority) == (blob, body, far)

    asyncio.run(crawl())


def test_a_refusal_that_comes_with_the_page_is_named_and_counted_once(caplog: pytest.LogCaptureFixture) -> None:
    made = bridge(AwayFrontier())
    answers = [Offered(Intake.NEW), Offered(Intake.SEEN), Offered(Intake.REFUSED, "its spider has a letter")]
    made.answered([make(f"{PAGE}{number}", spider="mills") for number in range(3)], answers)
    assert made.refused == 1
    assert f"{PAGE}2 is not fetched: its spider has a letter" in caplog.text
    stats = made.crawler.stats
    assert stats
    assert (stats.get_value("scheduler/enqueued"), stats.get_value("dupefilter/filtered")) == (1, 1)


async def _until_asked(made: ScrapyBridge) -> None:
    made.start(Request(PAGE))
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_request_that_the_frontier_has_not_taken_is_offered_again() -> None:
    async def crawl() -> None:
        frontier = AwayFrontier()
        made = bridge(frontier)
        frontier.open.set()
        await _until_asked(made)
        assert not made.is_idle, "its request waits for nobody else"
        with pytest.raises(Unavailable):
            await made.flush()
        frontier.back = True
        await made.flush()
        assert frontier.has == [PAGE]
        assert made.is_idle

    asyncio.run(crawl())


def test_a_flush_waits_for_the_offer_that_is_under_way_and_fails_with_it() -> None:
    async def crawl() -> None:
        frontier = AwayFrontier()
        made = bridge(frontier)
        await _until_asked(made)
        visit = asyncio.ensure_future(made.flush())
        await asyncio.sleep(0)
        assert not visit.done(), "its page would be kept, and what it has led to would not"
        frontier.open.set()
        with pytest.raises(Unavailable):
            await visit

    asyncio.run(crawl())


def test_an_offer_that_is_given_back_loses_nothing() -> None:
    async def crawl() -> None:
        frontier = AwayFrontier()
        made = bridge(frontier)
        made.start(Request(PAGE))
        visit = asyncio.ensure_future(made.flush())
        await asyncio.sleep(0)
        visit.cancel()
        await asyncio.gather(visit, return_exceptions=True)
        frontier.back = True
        frontier.open.set()
        await made.flush()
        assert frontier.has == [PAGE]

    asyncio.run(crawl())


def test_a_password_in_a_url_that_is_refused_is_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    logs: list[object] = []
    made = bridge(AwayFrontier())
    made.kit.offers = SimpleNamespace(lost=lambda uri, why, **_: logs.append((uri.uri, uri.via, why)))
    made.start(Request("http://keeper:secret@windmills.example/"))
    assert made.refused == 1
    assert len(logs) == 1
    assert "windmills.example" in caplog.text
    assert "secret" not in f"{logs}{caplog.text}"


def test_what_nobody_can_fetch_is_handed_to_scrapy_which_fails_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made, named = bridge(AwayFrontier()), list[tuple[str, ...]]()
    monkeypatch.setattr(made, "poke", lambda: None)
    made.kit.heard = SimpleNamespace(no_uri=lambda *words: named.append(words))
    made.start(Request("javascript://x", meta={MARK: 5}))
    assert (made.refused, made.is_idle) == (0, False)
    assert named == [("", "javascript: is not fetched, only data, dns, http, https", "javascript://x")]
    asked = made.next_request()
    assert asked is not None
    assert made.is_idle
    with pytest.raises(NotSupported, match="javascript: is not fetched"):
        asyncio.run(made.download(asked))
