"""The role that takes requests, in one process and without a launch: what waits for the job, and what does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from warcmill.clients.bus.spool import Spool
from warcmill.crawl.control.calls import RunningJob
from warcmill.requests.accounts.file import FileAccounts
from warcmill.requests.answers import RequestsJob
from warcmill.requests.monitor import PATIENCE, RequestMonitor, log_of
from warcmill.requests.plugins.runners import PluginHandlers
from warcmill.requests.settings import RequestsPlace

STOP = {"uuid": "s", "appid": "app", "action": "stop", "spiderid": "link", "crawlid": "c1"}
INFO = {"uuid": "i", "appid": "app", "action": "info", "spiderid": "link"}


class Here:
    """A place of requests, and its job, which nobody crawls."""

    def __init__(self, folder: Path) -> None:
        spool = folder / "state" / "spool"
        spool.mkdir(parents=True)
        given = {"LOG_STDOUT": True, "LOG_DIR": str(folder), "STATS_DUMP": 0}
        self.place = RequestsPlace("ondemand", "demo", "spool", "", spool, given=given)
        self.folder, self.bus = folder, Spool(spool)

    def monitor(self, patience: float = PATIENCE) -> RequestMonitor:
        crawl = RunningJob("ondemand", self.folder / "job" / "state" / "control")
        job = RequestsJob(crawl, self.folder / "job")
        return RequestMonitor(self.place, job, log_of(self.place.values()), PluginHandlers(self.place), patience)

    def send(self, *messages: dict[str, Any]) -> None:
        self.bus.append("demo.incoming", [json.dumps(one).encode() for one in messages])

    def fed(self) -> list[str]:
        """The URLs in the feed."""
        path = self.folder / "job" / "requests.jsonl"
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
