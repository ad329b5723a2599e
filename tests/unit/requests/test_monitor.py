"""The role that takes requests, in one process and without a launch: what waits for the job, and what does not."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from crawls import crawled
from waiting import wait_for

from warcmill.clients.bus.spool import Spool
from warcmill.crawl import process
from warcmill.crawl.control import control
from warcmill.crawl.control.calls import RunningJob
from warcmill.crawl.launch.folders import CONTROL, STATE
from warcmill.requests.accounts.file import FileAccounts
from warcmill.requests.answers import RequestsJob
from warcmill.requests.monitor import PATIENCE, RequestMonitor, log_of
from warcmill.requests.plugins.runners import PluginHandlers
from warcmill.requests.serving import feeding
from warcmill.requests.serving.service import RequestService
from warcmill.requests.settings import RequestsPlace

STOP = {"uuid": "s", "appid": "app", "action": "stop", "spiderid": "link", "crawlid": "c1"}
INFO = {"uuid": "i", "appid": "app", "action": "info", "spiderid": "link"}


class Here:
    """A place of requests, and its job, which nobody crawls."""

    def __init__(self, folder: Path, job: Path | None = None) -> None:
        spool = folder / "state" / "spool"
        spool.mkdir(parents=True)
        given = {"LOG_STDOUT": True, "LOG_DIR": str(folder), "STATS_DUMP": 0}
        self.place = RequestsPlace("ondemand", "demo", "spool", "", spool, given=given)
        self.job, self.bus = job or folder / "job", Spool(spool)

    def monitor(self, patience: float = PATIENCE) -> RequestMonitor:
        crawl = RunningJob("ondemand", self.job / STATE / CONTROL)
        job = RequestsJob(crawl, self.job)
        return RequestMonitor(self.place, job, log_of(self.place.values()), PluginHandlers(self.place), patience)

    def send(self, *messages: dict[str, Any]) -> None:
        self.bus.append("demo.incoming", [json.dumps(one).encode() for one in messages])

    def fed(self) -> list[str]:
        """The URLs in the feed."""
        path = self.job / "requests.jsonl"
        return [json.loads(line)["document"]["url"] for line in path.read_text().splitlines()] if path.exists() else []

    def told(self) -> list[dict[str, Any]]:
        reader = self.bus.reader("demo.outbound_firehose", None)
        return [json.loads(one.value) for one in reader.read(100, 0)]


def page(number: int, crawlid: str) -> dict[str, Any]:
    return {"url": f"http://a.example/{number}", "appid": "app", "crawlid": crawlid}


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path)


def test_what_is_behind_a_question_is_taken_and_only_its_own_crawl_waits_behind_a_stop(here: Here) -> None:
    here.send(page(1, "c1"), STOP, page(2, "c1"), page(3, "c2"), INFO, page(4, "c2"))
    killed = here.monitor()
    assert killed.step() == 6
    assert here.fed() == [f"http://a.example/{n}" for n in (1, 3, 4)], "2 would be purged by the stop before it"
    assert here.told() == []
    other = here.monitor(patience=0)  # the first one is not closed, as after a kill
    assert other.step() == 0, "all is acknowledged"
    assert here.fed()[3:] == ["http://a.example/2"]
    assert [(one["uuid"], one["action"]) for one in here.told()] == [("s", "refused"), ("i", "refused")]
    assert "did not run" in here.told()[0]["why"]
    other.close()


def test_questions_beyond_a_bound_are_refused_at_once(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warcmill.requests.monitor.MOST_ASIDE", 2)
    monitor = here.monitor()
    here.send(STOP, {**INFO, "uuid": "a"}, {**INFO, "uuid": "b"}, page(1, "c1"), page(2, "c2"))
    monitor.step()
    assert [(one["uuid"], one["action"]) for one in here.told()] == [("b", "refused")]
    assert here.fed() == ["http://a.example/2"]
    monitor.close()
    accounts = FileAccounts(here.place.accounts)
    assert len(accounts.claim_aside()) == 3, "a request waits behind its stop, however many do"
    assert accounts.claim_aside() == [], "one process has them"
    accounts.close()


LARGE = "requests = true\nendless = true\nresults_log = true\n"


@pytest.mark.parametrize("is_shared", [False, True])
def test_others_are_answered_while_a_large_crawl_is_stopped_and_only_its_own_requests_wait(
    is_shared: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A purge takes a page after the other; here no crawl is small."""
    monkeypatch.setattr(feeding, "PATIENCE", 0.0)
    monkeypatch.setattr(feeding, "AT_ONCE", 1)
    here, places = Here(tmp_path, tmp_path / "jobs" / "ondemand"), crawled.places(tmp_path)
    here.job.mkdir(parents=True)
    (here.job / "crawl.toml").write_text(LARGE)
    (here.job / "seeds.txt").write_text("")
    socket, others = here.job / STATE / CONTROL, [{**page(9, "c1"), "appid": "other"}] if is_shared else []
    soon = {**page(9, "soon"), "expires": int(time.time()) - 5}

    def told() -> dict[str, dict[str, Any]]:
        return {one.get("uuid", one.get("action")): one for one in here.told()}

    def serve() -> list[tuple[str, str, int]]:
        wait_for(socket.exists)
        try:
            return answer()
        finally:
            control.ask(socket, "stop")

    def answer() -> list[tuple[str, str, int]]:
        control.ask(socket, "pause")
        monitor = here.monitor()
        here.send(*(page(number, "c1") for number in range(9)), *others, page(1, "c2"), soon)
        wait_for(lambda: monitor.step() >= 0 and here.fed()[-1:] == [soon["url"]])
        here.send(STOP, page(10, "c1"), {**INFO, "crawlid": "c2"})
        wait_for(lambda: monitor.step() >= 0 and len(told()) == 3 and "http://a.example/10" in here.fed())
        waits: Any = control.ask(socket, "tally")
        monitor.close()
        return [(one["crawlid"], one["appid"], one["total"]) for one in waits["waiting"]]

    async def both() -> list[tuple[str, str, int]]:
        serving = asyncio.create_task(asyncio.to_thread(serve))
        await process.crawl(places, "ondemand", service=RequestService)
        return await serving

    waits = asyncio.run(both())
    assert sorted(waits) == sorted([("c1", "app", 1), *([("c1", "other", 1)] if is_shared else []), ("c2", "app", 1)])
    found = told()
    assert list(found).index("i") < list(found).index("s")
    assert (found["i"]["total_pending"], found["s"]["total_purged"], found["expired"]["total_expired"]) == (1, 9, 1)
    lines = (path.read_text().splitlines() for path in (tmp_path / "output").rglob("results.jsonl*"))
    assert sum(json.loads(line)["kind"] == "purged" for some in lines for line in some) == 10
