"""What a spider remembers: texts by their names, from one process to another."""

from __future__ import annotations

from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.http import Response

from warcmill.spiders.memory import LARGEST_STATE, SpiderMemory
from warcmill.spiders.requests import RequestForms

PAGE = "http://windmills.example/"


class Mills(Spider):
    name = "mills"


class Process:
    """A spider in a process, which begins with some texts."""

    def __init__(self, texts: dict[str, str], spider: Spider | None = None, *, cookies: bool = True) -> None:
        self.spider: Any = spider or Mills()
        self.middleware = CookiesMiddleware()
        crawler: Any = SimpleNamespace(
            spider=self.spider, settings={}, get_downloader_middleware=lambda _: self.middleware if cookies else None
        )
        self.memory = SpiderMemory(crawler, RequestForms(self.spider).values, texts)

    def receive(self, *set_cookies: str, **meta: object) -> None:
        """Have an answer set cookies."""
        request = Request(PAGE, meta=meta)
        answer = Response(PAGE, headers={"Set-Cookie": list(set_cookies)}, request=request)
        self.middleware.process_response(request, answer)

    def sent(self, **meta: object) -> bytes | None:
        """The cookies of a request."""
        request = Request(PAGE, meta=meta)
        self.middleware.process_request(request)
        return request.headers.get("Cookie")


def test_cookies_of_each_jar_are_there_in_the_next_process_and_those_that_ended_are_not() -> None:
    one = Process({})
    one.receive("a=1; Max-Age=900", "b=2", 'quoted="x;y"')
    one.receive("a=other", cookiejar=("login", 7))
    kept = one.memory.changed()
    assert len(kept) == 4
    one.receive("b=2; Max-Age=0")
    kept |= one.memory.changed()
    two = Process(kept)
    assert two.sent() == one.sent()
    assert two.sent() is not None
    assert b"b=" not in (two.sent() or b"")
    assert two.sent(cookiejar=("login", 7)) == b"a=other"
    assert two.sent(cookiejar=8) is None
    assert two.memory.changed() == {}, "it has what the frontier has"


def test_what_one_process_learns_another_has_and_an_answer_that_changes_nothing_changes_nothing() -> None:
    one, two = Process({}), Process({})
    one.receive("a=1")
    two.memory.learn(one.memory.changed())
    assert two.sent() == b"a=1"
    two.receive("a=1")
    assert two.memory.changed() == {}
    two.receive("a=; Max-Age=0")
    one.memory.learn(two.memory.changed())
    assert one.sent() is None
    assert one.memory.changed() == {}


def test_the_state_of_a_spider_comes_back_by_its_types_and_only_its_changes_are_kept() -> None:
    one = Process({})
    one.spider.state |= {"seen": {1, 2}, "since": date(2026, 1, 2), 3: ("a", b"b"), "gone": 1}
    kept = one.memory.changed()
    del one.spider.state["gone"]
    one.spider.state["seen"].add(3)
    changed = one.memory.changed()
    assert len(changed) == 2
    assert one.memory.changed() == {}
    two = Process({**kept, **changed}, cookies=False)
    assert two.spider.state == {"seen": {1, 2, 3}, "since": date(2026, 1, 2), 3: ("a", b"b")}


def test_what_was_to_be_kept_with_a_page_that_was_not_is_kept_with_the_next() -> None:
    one = Process({})
    one.receive("a=1", "b=1")
    lost = one.memory.changed()
    one.receive("a=2")
    newer = one.memory.changed()
    one.memory.unkept(lost)
    again = one.memory.changed()
    assert (len(lost), len(newer), len(again)) == (2, 1, 1)
    assert Process({**newer, **again}).sent() == one.sent()


def test_what_cannot_be_kept_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    one = Process({})
    for _ in range(2):
        one.receive("a=1", cookiejar=object)
        one.spider.state |= {"file": object(), "fine": 1}
        one.memory.changed()
    assert caplog.text.count("the cookies of cookiejar") == caplog.text.count("spider.state['file']") == 1
    one.spider.state["large"] = "x" * LARGEST_STATE
    assert one.memory.changed() == {}
    assert "spider.state: not kept for a restart: it is larger than" in caplog.text
    two = Process({'["state", "odd"]': '{"_type": ["object", "os:system", {}]}', "nonsense": "1"})
    assert two.spider.state == {}
    assert caplog.text.count("cannot be read again") == 2


def test_an_attribute_of_the_project_of_that_name_is_left_alone() -> None:
    spider: Any = Mills(state="Bavaria")
    one = Process({'["state", "a"]': "1"}, spider)
    assert spider.state == "Bavaria"
    assert one.memory.changed() == {}
