"""A task of a script as a URI of the frontier, and as a request."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from warcmill.crawl.frontier import LONGEST_PAYLOAD
from warcmill.crawl.uri import Renew, Uri, make
from warcmill.errors import BadInput
from warcmill.scripts import task as tasks
from warcmill.scripts.task import DELAYS, ScriptTask

PAGE = make("http://a.example/", spider="shop", crawl="shop")


def made(url: str = "http://a.example/1", **more: object) -> Uri:
    return tasks.made("shop", {"taskid": "id", "url": url, **more}, PAGE)


def test_a_task_is_a_uri_of_its_script() -> None:
    uri = made(
        schedule={"priority": 2, "exetime": 99, "age": 5, "itag": 7, "retries": 1, "cancel": None},
        fetch={"save": {"a": 1}}, process={"callback": "page"},
    )  # fmt: skip
    assert (uri.key, uri.crawl, uri.spider, uri.via, uri.queue) == ("id", "shop", "shop", PAGE.uri, "a.example")
    assert (uri.priority, uri.not_before, uri.renew) == (-2, 99.0, Renew(5.0, "7"))
    task = tasks.read(uri)
    assert (task.callback, task.save, task.schedule) == ("page", {"a": 1}, {"age": 5, "itag": 7, "retries": 1})


@pytest.mark.parametrize(
    ("url", "why"),
    [("ftp://a.example/", "ftp: is not fetched"), ("http://[", "not a URI"), ("http://u:p@a.example/", "credentials")],
)
def test_a_task_that_cannot_wait_is_refused_by_name(url: str, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        made(url)
    with pytest.raises(BadInput, match="taskid"):
        tasks.made("shop", {"url": "http://a.example/", "taskid": None}, PAGE)
    with pytest.raises(BadInput, match="payload is larger"):
        made(fetch={"data": "x" * (LONGEST_PAYLOAD + 1)})


def test_a_task_that_failed_is_tried_again_and_never_later_than_its_age() -> None:
    task = ScriptTask("id", "http://a.example/")
    waits = []
    while True:
        again, task = task.again(DELAYS, 1000.0)
        if not again:
            break
        waits.append(again - 1000)
    assert waits == [30, 3600, 6 * 3600]
    aged = ScriptTask("id", "u", schedule={"age": 60}, retried=1)
    assert aged.again(DELAYS, 0.0)[0] == 60
    assert ScriptTask("id", "u", schedule={"age": 60, "auto_recrawl": True}, retried=9).again(DELAYS, 0.0)[0] == 60
    assert ScriptTask("id", "u").again({"": -1}, 0.0)[0] == 0
    assert ScriptTask("id", "u", schedule={"retries": 0}).again(DELAYS, 0.0)[0] == 0


def test_a_task_that_is_done_is_visited_again_if_it_says_so() -> None:
    assert ScriptTask("id", "u", schedule={"age": 60}).after(100.0)[0] == 0
    again, task = ScriptTask("id", "u", schedule={"age": 60, "auto_recrawl": True}, retried=2).after(100.0)
    assert (again, task.retried) == (160, 0)


def test_a_redirect_is_a_uri_of_its_own_with_the_task_that_it_is_of() -> None:
    uri = made(fetch={"method": "POST", "data": "a=b", "save": 1}, process={"callback": "page"})
    to = tasks.redirected(uri, tasks.read(uri), "/2", (), keeps_method=False)
    task = tasks.read(to)
    assert (to.uri, to.key, to.via, to.hops[-1]) == ("http://a.example/2", "id 1 http://a.example/2", uri.uri, "R")
    assert (task.taskid, task.first, task.request, task.redirects) == ("id", "http://a.example/1", {"save": 1}, 1)
    with pytest.raises(BadInput):
        tasks.redirected(uri, task, "http://[", (), keeps_method=True)


def test_a_request_has_what_its_script_asks_for() -> None:
    task = ScriptTask("id", "u")
    fetch = {
        "headers": {"A": "b", "Connection": "close"}, "cookies": {"c": "d"}, "method": "post", "data": "ü",
        "timeout": 3, "etag": '"mine"',
    }  # fmt: skip
    left = (("If-None-Match", '"left"'), ("If-Modified-Since", "then"))
    request = tasks.asked(task, "http://a.example/", fetch, left, 0.0)
    assert dict(request.headers) == {
        "A": "b", "Cookie": "c=d", "If-None-Match": '"mine"', "If-Modified-Since": "then",
    }  # fmt: skip
    assert (request.method, request.body, request.timeout) == ("POST", "ü".encode(), 3.0)
    for bad in ({"headers": {"Host": "b"}}, {"headers": {"A": "b\r\nC: d"}}, {"cookies": "c=d"}):
        with pytest.raises(BadInput):
            tasks.asked(task, "http://a.example/", bad, (), 0.0)


def test_the_payload_of_another_is_not_a_task() -> None:
    with pytest.raises(BadInput, match="not a task of a script"):
        tasks.read(replace(PAGE, payload='{"fetch": {}}'))
