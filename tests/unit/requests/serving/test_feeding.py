"""The feed of a launch that serves requests: what cannot be crawled is answered, and holds nothing up behind it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from crawls import crawled
from msgspec.structs import replace
from sites.several_hosts import page, serve

from warcmill.base import clock
from warcmill.crawl import extract
from warcmill.crawl.launch.launch import open_launch
from warcmill.model import Json
from warcmill.requests.serving.feed import DAYS, RequestFeed
from warcmill.requests.serving.service import RequestService

Append = Callable[[Path, Sequence[tuple[str, dict[str, Json]]]], None]
REQUEST: dict[str, Json] = {
    "appid": "testapp", "crawlid": "c", "spiderid": "link", "maxdepth": 0, "priority": 1, "expires": 0,
    "allowed_domains": None, "allow_regex": None, "deny_regex": None, "deny_extensions": None, "useragent": None,
    "cookie": None, "attrs": None,
}  # fmt: skip


def at_once(folder: Path, targets: Sequence[tuple[str, dict[str, Json]]]) -> None:
    RequestFeed(folder).append(targets)


def fed(folder: Path, *more: dict[str, Json], append: Append = at_once) -> dict[str, dict[str, Any]]:
    """Crawl for requests of one page, which differ in this, each in a crawl of its own; their results by crawlid."""
    with serve({("a.example", "/"): page([])}) as port:
        job = replace(crawled.job(port, "a.example"), service="requests", results_log=True, robots=False)
        places = crawled.places(folder)
        url = job.seeds[0]
        documents = [{**REQUEST, "url": url, "crawlid": f"c{number}", **one} for number, one in enumerate(more)]
        append(places.job(job.name), [(str(number), one) for number, one in enumerate(documents)])

        async def serve_all() -> None:
            running = await open_launch(places, replace(job, seeds=()), crawled.LAUNCH, service=RequestService)
            assert isinstance(running.service, RequestService)
            await running.service.feeding.learn()
            await running.close(await running.crawl())

        asyncio.run(serve_all())
    values = [json.loads(line)["value"] for line in crawled.told(folder, "results.jsonl").splitlines()]
    return {one["crawlid"]: one for one in values}


def test_a_request_that_cannot_be_compiled_gets_a_notice_and_the_next_one_its_page(tmp_path: Path) -> None:
    """No role takes one today; an older one may have."""
    large: list[Json] = [rf"(\PN{{1,2}}){{300}}{number}" for number in range(3)]
    found = fed(tmp_path, {}, {"deny_regex": large, "attrs": {"k": 1}}, {})
    assert [found[name].get("action", found[name].get("status_code")) for name in sorted(found)] == [200, "failed", 200]
    assert "too large together" in found["c1"]["why"]
    assert (found["c1"]["appid"], found["c1"]["attrs"], found["c1"]["spiderid"]) == ("testapp", {"k": 1}, "link")
    assert "too large together" in crawled.told(tmp_path, "uri-errors.log")


def test_requests_of_several_days_are_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def by_day(folder: Path, targets: Sequence[tuple[str, dict[str, Json]]]) -> None:
        with monkeypatch.context() as patched:
            for day, target in enumerate(targets, 1):
                patched.setattr(clock, "stamp", lambda day=day: f"210001{day:02}000000")
                at_once(folder, [target])
        assert len(list((folder / DAYS).iterdir())) == 2

    found = fed(tmp_path, {}, {}, {}, append=by_day)
    assert {name: one["status_code"] for name, one in found.items()} == {"c0": 200, "c1": 200, "c2": 200}


def test_a_request_that_the_frontier_refuses_gets_a_notice(tmp_path: Path) -> None:
    found = fed(tmp_path, {"crawlid": "half \ud800"}, {})
    assert found["c1"]["status_code"] == 200
    assert found["half \ud800"]["action"] == "failed"
    assert "not UTF-8" in found["half \ud800"]["why"]
    assert "not UTF-8" in crawled.told(tmp_path, "uri-errors.log")


def test_a_page_that_meets_a_fault_of_ours_gets_a_notice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def find(*_: object) -> object:
        raise RuntimeError("made to fail")

    monkeypatch.setattr(extract, "find", find)
    found = fed(tmp_path, {})
    assert (found["c0"]["action"], found["c0"]["appid"]) == ("failed", "testapp")
    assert "runtime-errors.log" in found["c0"]["why"]
    assert "made to fail" in crawled.told(tmp_path, "runtime-errors.log")
