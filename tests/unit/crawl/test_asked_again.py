"""Pages that answer "later": each answer is kept, the last one counts, and a kill or a checkpoint forgets no page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from pathlib import Path

import pytest
from crawls import crawled
from sites.raw_server import Handler, serving

from warcmill.base import clock
from warcmill.crawl.fetch.limits import FetchLimits
from warcmill.crawl.frontier.sqlite import SqliteFrontier
from warcmill.crawl.job.job import Ceilings, End, Retries
from warcmill.crawl.launch import database
from warcmill.crawl.launch.launch import Running
from warcmill.crawl.policies.quotas import By, Quota
from warcmill.layout import RESULTS_LOG
from warcmill.requests.serving.scope import RequestScope, RequestTarget
from warcmill.requests.serving.targets import RequestAudience

NO_ROBOTS = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
OK = b'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 23\r\n\r\n<a href="/next">x</a>\r\n'
SEED = "http://a.example/"


def later(status: int = 429, after: str = "", body: bytes = b"later") -> bytes:
    head = f"HTTP/1.1 {status} Later\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + (f"Retry-After: {after}\r\n".encode() if after else b"") + b"\r\n" + body


def in_turn(*answers: bytes) -> Handler:
    """Give these answers, whatever is asked for, and on whichever connection."""
    left = iter(answers)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(next(left))
            await writer.drain()

    return handle


def answered(
    tmp_path: Path,
    *answers: bytes,
    act: Callable[[Running], object] | None = None,
    sends_robots: bool = True,
    **more: object,
) -> Running:
    """Crawl one page of a server that gives these answers, after its robots.txt."""

    async def scenario() -> Running:
        async with serving(in_turn(*[NO_ROBOTS][: int(sends_robots)], *answers)) as server:
            job = crawled.job(server.port, "a.example", **{"retries": Retries(3, 0.01), **more})
            _, running = await crawled.whole(tmp_path, job, act)
            return running

    running = asyncio.run(scenario())
    assert crawled.unbalanced(tmp_path) == []
    return running


def of_seed(folder: Path) -> list[tuple[int | None, tuple[str, ...]]]:
    return [(line.status, line.annotations) for line in crawled.lines(folder) if crawled.plain(line.uri) == SEED]


@pytest.mark.parametrize("status", [429, 503, 504])
def test_each_answer_is_recorded_and_the_last_one_counts(tmp_path: Path, status: int) -> None:
    running = answered(tmp_path, later(status), later(status), OK, NO_ROBOTS)
    assert of_seed(tmp_path) == [(status, ("askedAgain",)), (status, ("askedAgain", "2t")), (200, ("3t",))]
    stored = [uri for kind, uri in crawled.records(crawled.warcs(tmp_path)) if kind == "response"]
    assert [crawled.plain(uri) for uri in stored].count(SEED) == 3
    assert running.figures.documents == 2
    assert running.figures.answers == {"200": 1, "404": 1}
    assert [seed.code for seed in running.figures.seeds.values()] == [200]
    assert f"{status}; it is asked again in 0 s" in crawled.told(tmp_path, "nonfatal-errors.log")


def test_a_page_that_never_comes_has_its_last_answer_and_its_tries(tmp_path: Path) -> None:
    running = answered(tmp_path, later(), later(), later())
    assert of_seed(tmp_path) == [(429, ("askedAgain",)), (429, ("askedAgain", "2t")), (429, ("3t",))]
    assert running.figures.answers == {"429": 1}
    assert [seed.code for seed in running.figures.seeds.values()] == [429]


def test_a_status_that_is_not_in_the_list_is_final(tmp_path: Path) -> None:
    answered(tmp_path, later(503), retries=Retries(3, 0.01, (429,)))
    assert of_seed(tmp_path) == [(503, ())]


def test_the_links_of_an_answer_that_says_later_are_not_followed(tmp_path: Path) -> None:
    answered(tmp_path, OK.replace(b"200 OK", b"503 Later"), OK.replace(b"/next", b"/last"), NO_ROBOTS)
    assert SEED + "next" not in crawled.statuses(tmp_path)
    assert crawled.statuses(tmp_path)[SEED + "last"] == 404


def test_an_answer_to_a_request_that_is_not_whole_in_time_is_asked_again_and_ends_in_a_notice(tmp_path: Path) -> None:
    target = RequestTarget(0, SEED, "testapp", "c", "link", RequestScope())
    audience = RequestAudience(target, gets_notices=True)
    asked = {"audience": audience, "results_log": True, "robots": False}
    late = OK[:-10]  # and then silence
    answered(tmp_path, late, late, late, limits=FetchLimits(idle=0.5), sends_robots=False, **asked)
    assert of_seed(tmp_path) == [
        (200, ("timeTrunc", "askedAgain")), (200, ("timeTrunc", "askedAgain", "2t")), (200, ("timeTrunc", "3t"))
    ]  # fmt: skip
    (result,) = [json.loads(line) for line in crawled.told(tmp_path, RESULTS_LOG).splitlines()]
    assert (result["kind"], result["value"]["action"]) == ("notice", "failed")
    assert result["value"]["why"] == "its answer was not whole in time"
    answered(tmp_path / "whole", late, OK, NO_ROBOTS, limits=FetchLimits(idle=0.5), sends_robots=False, **asked)
    whole = [json.loads(line) for line in crawled.told(tmp_path / "whole", RESULTS_LOG).splitlines()]
    assert [(one["kind"], one["value"]["status_code"]) for one in whole] == [("page", 200), ("page", 404)]


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_a_crawl_with_nothing_else_to_do_waits_for_retry_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """The clock of waits is moved on, an hour at a look with nothing under way, so that the test need not wait."""
    hours, real = [0], clock.steady
    monkeypatch.setattr(clock, "steady", lambda: real() + 3600 * hours[0])
    monkeypatch.setattr(database, "SqliteFrontier", partial(SqliteFrontier, now=clock.steady))

    def look(running: Running) -> None:
        ask = running.books.frontier.next_time

        async def next_time() -> float | None:
            hours[0] += not running.spider.under_way
            return await ask()

        running.books.frontier.next_time = next_time  # type: ignore[method-assign]

    date = format_datetime(datetime.now(UTC) + timedelta(hours=3), usegmt=True)
    answered(tmp_path, later(after={"seconds": "10800", "date": date}[form]), OK, NO_ROBOTS, act=look)
    assert of_seed(tmp_path) == [(429, ("askedAgain",)), (200, ("2t",))]
    assert hours[0] >= 2


@pytest.mark.parametrize("after", ["0", "-5", "soon", "Wed, 21 Oct 2015 07:28:00 GMT", "1e9", "٣"])
def test_a_retry_after_that_asks_for_nothing_leaves_the_delay_of_the_host(tmp_path: Path, after: str) -> None:
    running = answered(tmp_path, later(after=after), OK, NO_ROBOTS)
    assert running.figures.answers == {"200": 1, "404": 1}


@pytest.mark.parametrize("after", ["9999999999", "86400", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_who_asks_for_a_day_or_more_is_not_waited_for(tmp_path: Path, after: str) -> None:
    answered(tmp_path, later(after=after))
    assert of_seed(tmp_path) == [(429, ())]


def test_quotas_and_ceilings_count_the_last_answer_alone(tmp_path: Path) -> None:
    running = answered(tmp_path, later(), later(), OK, quotas=(Quota(By.HOST, documents=1),))
    assert crawled.statuses(tmp_path)[SEED + "next"] == -5003
    assert running.figures.documents == 1
    one = answered(tmp_path / "more", later(), OK, ceilings=Ceilings(documents=1))
    assert one.figures.answers == {"200": 1}


def test_what_says_later_is_no_original_of_a_revisit(tmp_path: Path) -> None:
    answered(tmp_path, later(body=b"same"), later(body=b"same"), OK, NO_ROBOTS)
    assert "revisit" not in [kind for kind, _ in crawled.records(crawled.warcs(tmp_path))]


def test_a_checkpoint_and_a_new_process_keep_what_waits_with_its_tries(tmp_path: Path) -> None:
    """The crawl is stopped while it waits for a page; the launch is opened again, as after a kill, and asks for it."""

    async def scenario() -> tuple[End, End]:
        async with serving(in_turn(NO_ROBOTS, later(), OK, NO_ROBOTS)) as server:
            job = crawled.job(server.port, "a.example", retries=Retries(3, 0.01))

            def stop(running: Running) -> None:
                hear = running.books.hear

                def heard(result: object, kept: object) -> None:
                    hear(result, kept)  # type: ignore[arg-type]
                    if of_seed(tmp_path):
                        running.spider.stop()

                running.books.hear = heard

            first, running = await crawled.whole(tmp_path, job, stop)
            assert [seed.code for seed in running.figures.seeds.values()] == [0]
            second, again = await crawled.whole(tmp_path, job)
            assert again.figures.answers == {"200": 1, "404": 1}
            return first, second

    assert asyncio.run(scenario()) == (End.STOPPED, End.EMPTY)
    assert of_seed(tmp_path) == [(429, ("askedAgain",)), (200, ("2t",))]
