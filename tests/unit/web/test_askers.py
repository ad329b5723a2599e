"""One asker for a crawl, whatever the number of those who watch; it ends when nobody does."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest

from warcmill.errors import BadConfig, NotReady, Unavailable
from warcmill.model import Json
from warcmill.web import askers
from warcmill.web.askers import Askers


class Crawl:
    """The way to a crawl that answers at once, counts what it is asked, and ends when it is told to."""

    def __init__(self) -> None:
        self.asked, self.opened, self.closed = Counter[str](), 0, threading.Event()
        self.error: Exception | None = None

    def ask(self, verb: str, seconds: float, **fields: Json) -> Json:
        self.asked[verb] += 1
        if self.error:
            raise self.error
        if verb == "list":
            return self._page(cast("int", fields["after"]), cast("int", fields["limit"]))
        done = self.asked["state"]
        return {"launch": "20261121081844", "state": "RUNNING", "done": done, "bytes": 10 * done}

    def _page(self, after: int, limit: int) -> Json:
        number = 7000
        uris: list[Json] = [{"uri": f"http://a.example/{n}"} for n in range(after, min(after + limit, number))]
        return {"uris": uris, "next": after + limit if after + limit < number else 0}

    def close(self) -> None:
        self.closed.set()

    def open(self, _job: str) -> Crawl:
        self.opened += 1
        self.closed.clear()
        return self


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(askers, "EVERY", 0.05)
    monkeypatch.setattr(askers, "IDLE", 0.3)


def heard(found: Askers, holds: Any) -> Any:
    """What is heard once it `holds`; a crawl that never answers so is a failure."""
    for _ in range(6000):
        if holds(now := found.look("daily")):
            return now
        threading.Event().wait(0.01)
    raise AssertionError(now)


def test_two_hundred_watchers_ask_a_crawl_once_a_round() -> None:
    crawl = Crawl()
    found = Askers(crawl.open)
    with ThreadPoolExecutor(50) as pool:
        nows = [*pool.map(found.look, ["daily"] * 200)]
    assert crawl.opened == 1
    assert crawl.asked["state"] <= 2  # 200 looks take less than two seconds
    assert all(one.is_running and one.launch_id == "20261121081844" for one in nows)


@pytest.mark.usefixtures("fast")
def test_it_ends_when_nobody_watches_and_begins_anew() -> None:
    crawl = Crawl()
    found = Askers(crawl.open)
    assert heard(found, lambda now: crawl.asked["state"] > 2).documents > 0
    assert crawl.closed.wait(60)
    asked = crawl.asked["state"]
    assert found.look("daily").is_running
    assert (crawl.opened, crawl.asked["state"] > asked) == (2, True)


@pytest.mark.usefixtures("fast")
def test_a_crawl_that_ends_and_one_that_is_silent() -> None:
    crawl = Crawl()
    found = Askers(crawl.open)
    heard(found, lambda now: now.is_running)
    crawl.error = Unavailable("the socket", "timed out")
    silent = heard(found, lambda now: not now.is_running)
    assert (silent.has_ended, silent.why, bool(silent.answers)) == (False, "the socket is unavailable: timed out", True)
    crawl.error = NotReady("job daily", "no crawl of it runs")
    ended = heard(found, lambda now: now.has_ended)
    assert (ended.is_running, ended.launch_id) == (False, "20261121081844")
    crawl.error = None
    assert heard(found, lambda now: now.is_running).why == ""
    crawl.error = NotReady("job daily", "no crawl of it runs")
    assert crawl.closed.wait(60)
    never = found.look("daily")
    assert (never.has_ended, never.answers) == (False, {})


def test_the_queue_is_read_some_slices_at_a_time() -> None:
    crawl = Crawl()
    found = Askers(crawl.open)
    part = found.queue("daily", 0, 200)
    assert (len(part.uris), part.looked, part.next, crawl.asked["list"]) == (200, 200, 200, 1)
    part = found.queue("daily", 0, 200, lambda uri: uri.endswith("01"))
    assert (len(part.uris), part.looked, part.next) == (49, 5000, 5000)
    assert found.queue("daily", part.next, 200, lambda uri: uri.endswith("00")).next == 0


def test_a_crawl_that_cannot_be_asked_here_is_refused_to_who_watches() -> None:
    def elsewhere(job: str) -> Crawl:
        raise BadConfig("job_files", f"{job} is on another machine")

    with pytest.raises(BadConfig):
        Askers(elsewhere).look("daily")
