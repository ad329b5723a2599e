"""Answers to actions and requests for statistics: key by key those of the running original, in the recorded cases.

`tests/data/requests/replies.json` has the request and the answer of each case that has one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from warcmill.requests import replies
from warcmill.requests.accounts import CrawlKey
from warcmill.requests.accounts.file import FileAccounts
from warcmill.requests.incoming import CrawlAction, PolicyChange
from warcmill.requests.replies import Backlog

DATA = Path(__file__).parents[2] / "data" / "requests" / "replies.json"
CASES: dict[str, Any] = json.loads(DATA.read_text("utf-8"))
STATS = sorted(name for name in CASES if name.startswith("stats-"))


def backlog(crawlid: str, domains: dict[str, Any], appid: str = "testapp") -> list[Backlog]:
    """The backlog that an answer tells of."""
    return [
        Backlog(
            CrawlKey("link", appid, crawlid), name.strip("."), one["total"], one["high_priority"], one["low_priority"]
        )
        for name, one in domains.items()
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["info-appid", "info-unknown", "info-after-stop"])
def test_info(name: str) -> None:
    asked, reply = CASES[name]["request"], CASES[name]["reply"]
    action = CrawlAction("info", asked["uuid"], asked["appid"], asked["spiderid"], asked.get("crawlid"))
    rows = backlog(asked.get("crawlid", ""), reply.get("domains", {}))
    expires = {}
    for crawlid, one in reply.get("crawlids", {}).items():
        rows += backlog(crawlid, one["domains"])
        expires[CrawlKey("link", "testapp", crawlid)] = one.get("expires", 0)
    assert replies.info(action, rows, expires, reply["server_time"]) == reply


def test_info_of_a_crawl_has_its_expiry_as_a_text() -> None:
    action, key = CrawlAction("info", "u", "testapp", "link", "c"), CrawlKey("link", "testapp", "c")
    assert replies.info(action, [], {key: 1795311160}, 1)["expires"] == "1795311160"


def test_stop_and_expiry() -> None:
    reply = CASES["stop"]["reply"]
    key = CrawlKey("link", "testapp", "c-deep")
    assert replies.stopped(key, 8, "u-stop", reply["server_time"]) == reply
    reply = CASES["crawl-expiring"]["reply"]
    assert replies.expired(CrawlKey("link", "testapp", "c-exp"), 1, reply["server_time"]) == reply


@pytest.mark.parametrize("name", sorted(name for name in CASES if name.startswith("zk-")))
def test_changes_of_the_policy(name: str) -> None:
    asked, reply = CASES[name]["request"], CASES[name]["reply"]
    change = PolicyChange(asked["action"], asked["domain"], asked["uuid"], asked["appid"], 0, 0, 1.0)
    assert replies.policy(change, reply["server_time"]) == reply


@pytest.mark.parametrize("name", STATS)
def test_statistics(name: str, tmp_path: Path) -> None:
    """Counts as the original had them give its answer, but for the names of processes."""
    reply = CASES[name]["reply"]
    accounts = FileAccounts(tmp_path / "accounts.sqlite")
    made: dict[str, Any] = {}
    parts = {part: reply[part] for part in ("kafka-monitor", "redis-monitor", "crawler", "rest") if part in reply}
    for part, found in (parts or {reply["stats"]: reply}).items():
        for machine, names in found.get("nodes", {}).items():
            for one in names:
                accounts.live(part, machine, one, 60)
        counted = {**found.get("plugins", {}), **{key: found[key] for key in ("total", "fail") if key in found}}
        for key, windows in counted.items():
            accounts.count(part, [key], windows["lifetime"])
        for status, windows in found.get("machines", {}).get("vm", {}).items():
            accounts.count("crawler", [f"link:{status}"], windows["lifetime"])
        sums = accounts.sums(part if part != "machine" else "crawler")
        rows = [
            Backlog(CrawlKey("link", "testapp", "c"), one["domain"].strip("."), one["backlog"], 1, 1)
            for one in found.get("queue", {}).get("queue_link", {}).get("domains", [])
        ]
        whole = {
            "machines": replies.machines(sums, "vm"), "queue": replies.queues(rows),
            "spiders": replies.spiders(sums, {"link": 1}),
        }  # fmt: skip
        ours = (
            whole if part == "crawler" else {"machines": whole["machines"]} if part == "machine"
            else replies.alive(accounts.lives(part)) if part == "rest"
            else replies.plugins(sums, accounts.lives(part))
        )  # fmt: skip
        made |= {part: ours} if parts else ours
    accounts.close()
    common = {key: reply[key] for key in ("appid", "server_time", "stats", "uuid")}
    assert _sorted({**made, **common}) == _sorted(reply)


def _sorted(found: Any) -> Any:
    """The order of processes is by chance."""
    if isinstance(found, dict):
        return {
            key: sorted(value) if isinstance(value, list) and key == "vm" else _sorted(value)
            for key, value in found.items()
        }
    return found


def test_dumps_have_zeros() -> None:
    found = replies.monitor_dump({"total": {"900": 2, "lifetime": 3}}, ["ScraperHandler"])
    assert (found["total_900"], found["total_3600"], found["fail_lifetime"]) == (2, 0, 0)
    assert found["plugin_ScraperHandler_604800"] == 0
    assert len(found) == 3 * 7
    assert replies.crawler_dump({"link:200": {"900": 1}}, {"link": 1}) == {
        "link_200_900": 1, "link_spider_count": 1, "total_spider_count": 1, "unique_spider_count": 1
    }  # fmt: skip


def test_a_notice_of_a_refusal_names_who_sent_it() -> None:
    document = {"appid": "testapp", "crawlid": "c", "url": "x" * 5000, "uuid": 3}
    assert replies.refused(document, "why", 7) == {
        "action": "refused", "appid": "testapp", "crawlid": "c", "server_time": 7, "why": "why"
    }  # fmt: skip
    assert replies.refused([1], "why", 7) == {"action": "refused", "server_time": 7, "why": "why"}
