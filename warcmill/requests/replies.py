"""The answers to actions and requests for statistics, in the original's form, made of counts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from warcmill.model import Json
from warcmill.requests.accounts import LIFETIME, WINDOWS, CrawlKey, Sums
from warcmill.requests.compat import domain_name
from warcmill.requests.incoming import CrawlAction, PolicyChange

TOTAL, FAIL = "total", "fail"
COUNTED_STATUSES: Final = (200, 403, 404, 504)
"""The statuses of answers that are counted: theirs by default."""


class Backlog(NamedTuple):
    """Requests that wait, of a crawl in a queue: their number, and the highest and the lowest priority."""

    crawl: CrawlKey
    queue: str
    total: int
    high: int
    low: int


def read_backlog(rows: Iterable[Mapping[str, Any]]) -> list[Backlog]:
    """Return the backlog that a job reports."""
    return [
        Backlog(
            CrawlKey(row["spiderid"], row["appid"], row["crawlid"]), row["queue"], row["total"], row["high"], row["low"]
        )
        for row in rows
    ]


def info(action: CrawlAction, rows: Sequence[Backlog], expires: Mapping[CrawlKey, int], now: int) -> dict[str, Json]:
    """Return the answer to `info`: of one crawl, or of all of an application. `expires`: of crawls that do."""
    common: dict[str, Json] = {
        "appid": action.appid,
        "server_time": now,
        "spiderid": action.spiderid,
        "total_domains": len({row.queue for row in rows}),
        "total_pending": sum(row.total for row in rows),
        "uuid": action.uuid,
    }
    if action.crawlid is not None:
        key = CrawlKey(action.spiderid, action.appid, action.crawlid)
        return {**common, "crawlid": action.crawlid, "domains": _domains(rows), **_expires(expires, key, text=True)}
    by_crawl: dict[CrawlKey, list[Backlog]] = {}
    for row in rows:
        by_crawl.setdefault(row.crawl, []).append(row)
    crawls: dict[str, Json] = {}
    for key, own in sorted(by_crawl.items()):
        domains = _domains(own)
        total = sum(row.total for row in own)
        crawls[key.crawlid] = {
            "distinct_domains": len(domains), "domains": domains, "total": total, **_expires(expires, key)
        }  # fmt: skip
    return {**common, "crawlids": crawls, "total_crawlids": len(crawls)}


def stopped(key: CrawlKey, purged: int, uuid: str, now: int) -> dict[str, Json]:
    """Return the answer to `stop`."""
    return {"action": "stop", **key._asdict(), "server_time": now, "total_purged": purged, "uuid": uuid}


def expired(key: CrawlKey, purged: int, now: int) -> dict[str, Json]:
    """Return the notice of a crawl that has expired."""
    return {"action": "expired", **key._asdict(), "server_time": now, "total_expired": purged}


def policy(change: PolicyChange, now: int) -> dict[str, Json]:
    """Return the answer to a change of the policy."""
    return {
        "action": change.action, "appid": change.appid, "domain": change.domain, "server_time": now,
        "uuid": change.uuid,
    }  # fmt: skip


def refused(document: Json, why: str, now: int) -> dict[str, Json]:
    """Return the notice of a message that nobody takes; with what is known of who sent it."""
    found: Mapping[str, Json] = document if isinstance(document, dict) else {}
    names = ("appid", "crawlid", "spiderid", "url", "uuid")
    known = {name: text for name in names if isinstance(text := found.get(name), str) and len(text) <= _SHOWN}
    return {**known, "action": "refused", "server_time": now, "why": why}


def plugins(sums: Sums, nodes: Mapping[str, Sequence[str]]) -> dict[str, Json]:
    """Return the statistics of a monitor: what it took and refused, by plugin, and its processes."""
    found: dict[str, Json] = {name: dict(sums[name]) for name in (TOTAL, FAIL) if name in sums}
    by_plugin: dict[str, Json] = {name: dict(windows) for name, windows in sums.items() if name not in (TOTAL, FAIL)}
    return {**found, **({"plugins": by_plugin} if by_plugin else {}), **alive(nodes)}


def alive(nodes: Mapping[str, Sequence[str]]) -> dict[str, Json]:
    """Return the processes of a role by machine; empty if no process runs."""
    return {"nodes": {machine: list(names) for machine, names in nodes.items()}} if nodes else {}


def spiders(sums: Sums, running: Mapping[str, int]) -> dict[str, Json]:
    """Return the statuses that each spider got, and how many of it run."""
    found: dict[str, Any] = {name: {"count": number} for name, number in running.items()}
    for name, windows in sums.items():
        spider, _, status = name.rpartition(":")
        found.setdefault(spider, {"count": 0})[status] = dict(windows)
    total, kinds = sum(running.values()), sum(1 for number in running.values() if number)
    return {**found, "total_spider_count": total, "unique_spider_count": kinds}


def machines(sums: Sums, machine: str) -> dict[str, Json]:
    """Return the statuses that a machine got, of all its spiders."""
    found: dict[str, dict[str, int]] = {}
    for name, windows in sums.items():
        status = found.setdefault(name.rpartition(":")[2], {})
        for window, number in windows.items():
            status[window] = status.get(window, 0) + number
    if not found:
        return {"count": 0}
    return {machine: {status: {**windows} for status, windows in found.items()}, "count": 1}


def queues(rows: Iterable[Backlog], *, named: bool = True) -> dict[str, Json]:
    """Return how much waits, by spider and domain; the domains only if `named`."""
    by_spider: dict[str, dict[str, int]] = {}
    for row in rows:
        domains = by_spider.setdefault(row.crawl.spiderid, {})
        domains[domain_name(row.queue)] = domains.get(domain_name(row.queue), 0) + row.total
    found: dict[str, Json] = {}
    for spider, domains in sorted(by_spider.items()):
        listed: dict[str, Json] = {
            "domains": [{"backlog": number, "domain": domain} for domain, number in sorted(domains.items())]
        }
        found[f"queue_{spider}"] = {
            **(listed if named else {}), "num_domains": len(domains), "spider_backlog": sum(domains.values())
        }  # fmt: skip
    return {**found, "total_backlog": sum(sum(domains.values()) for domains in by_spider.values())}


def monitor_dump(sums: Sums, names: Iterable[str]) -> dict[str, Json]:
    """Return the counts of a monitor in one level, zeros too, as its log has them."""
    keys = [(TOTAL, TOTAL), (FAIL, FAIL), *((f"plugin_{name}", name) for name in names)]
    windows = (*map(str, WINDOWS), LIFETIME)
    return {f"{shown}_{window}": sums.get(name, {}).get(window, 0) for shown, name in keys for window in windows}


def crawler_dump(sums: Sums, running: Mapping[str, int]) -> dict[str, Json]:
    """Return the counts of the spiders in one level, as the log has them."""
    found: dict[str, Json] = {}
    for name, windows in sums.items():
        spider, _, status = name.rpartition(":")
        found |= {f"{spider}_{status}_{window}": number for window, number in windows.items()}
    counts = {f"{spider}_spider_count": number for spider, number in running.items()}
    kinds = sum(1 for number in running.values() if number)
    return {**found, **counts, "total_spider_count": sum(running.values()), "unique_spider_count": kinds}


_SHOWN: Final = 1000  # characters of a field of a message that is refused


def _domains(rows: Iterable[Backlog]) -> dict[str, Json]:
    found: dict[str, tuple[int, int, int]] = {}
    for row in rows:
        total, high, low = found.get(domain_name(row.queue), (0, row.high, row.low))
        found[domain_name(row.queue)] = (total + row.total, max(high, row.high), min(low, row.low))
    return {
        domain: {"high_priority": high, "low_priority": low, "total": total}
        for domain, (total, high, low) in sorted(found.items())
    }


def _expires(expires: Mapping[CrawlKey, int], key: CrawlKey, *, text: bool = False) -> dict[str, Json]:
    """When a crawl expires: a text in the answer about that crawl, a number among others, as there."""
    at = expires.get(key)
    return {"expires": str(at) if text else at} if at else {}
