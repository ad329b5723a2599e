"""A migration of what a Scrapy Cluster of 1.0, 1.1 and 1.2 has in a real Redis and a real ZooKeeper."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import preloaded
import pytest
from kazoo.client import KazooClient
from redis import Redis

from servers.redis import RedisServer
from servers.zookeeper import ZookeeperServer
from warcmill.clients.bus.spool import Spool
from warcmill.requests.migration import NODE

POLICY = b"domains:\n  example.org: {hits: 60, window: 60, scale: 0.5}\nblacklist: [bad.example]\n"
FED = {
    "url": "http://example.org/fed", "appid": "testapp", "crawlid": "c1", "spiderid": "link", "priority": 70,
    "maxdepth": 2, "expires": 0, "attrs": {"k": 1}, "cookie": None, "allowed_domains": None, "ts": 1.5,
}  # fmt: skip


def found(url: str, **meta: Any) -> dict[str, Any]:
    """A request as a spider queues it."""
    about = {**FED, "curdepth": 1, "priority": -9, **meta}
    return {"url": url, "method": "GET", "headers": {b"Referer": [b"http://example.org/"]}, "body": b"", "meta": about}


class _Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("/tmp/never-made-by-warcmill",)


@pytest.fixture
def old(redis: RedisServer) -> Iterator[Any]:
    """The Redis of the cluster that is migrated."""
    with Redis.from_url(redis.url) as client:
        client.flushall()
        yield client


@pytest.fixture
def line(tmp_path: Path) -> Path:
    done = preloaded.run("commands.main", "init", str(tmp_path), "--requests", env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    return tmp_path


def migrate(folder: Path, *words: str) -> Any:
    env = {**os.environ, "LUIGI_CONFIG_PATH": str(folder / "luigi.cfg")}
    return preloaded.run("commands.main", "request", "migrate", *words, env=env)


def sent(folder: Path) -> list[dict[str, Any]]:
    reader = Spool(folder / "state" / "spool").reader("demo.incoming", None)
    return [json.loads(message.value) for message in reader.read(100, 0)]


def test_queues_of_every_version_stopped_crawls_rates_and_bans_are_sent(
    old: Any, redis: RedisServer, zookeeper: ZookeeperServer, line: Path
) -> None:
    old.zadd("link:queue", {pickle.dumps(FED, 2): -70})
    old.zadd("link:example.org:queue", {pickle.dumps(found("http://example.org/1", useragent="old/1"), 4): 9})
    item = {**found("http://b.example/2"), "headers": {}, "body": ""}
    old.zadd("link:b.example:queue", {json.dumps(item): 9})
    old.sadd("link:blacklist", "testapp||gone")
    other = KazooClient(zookeeper.hosts)
    other.start()
    other.ensure_path(NODE)
    other.set(NODE, POLICY)
    other.stop()
    other.close()
    counted = migrate(line, "--from", redis.url, "--zookeeper", zookeeper.hosts, "--dry-run")
    assert counted.returncode == 0, counted.stderr
    assert counted.stdout == "3 requests, 1 stopped crawls, 2 rates and bans would be sent\n"
    assert sent(line) == []
    done = migrate(line, "--from", redis.url, "--zookeeper", zookeeper.hosts)
    assert done.returncode == 0, done.stderr
    messages = [{key: value for key, value in one.items() if key != "uuid"} for one in sent(line)]
    assert messages[:3] == [
        {"action": "domain-update", "appid": "warcmill", "domain": "example.org", "hits": 60, "window": 60,
         "scale": 0.5},
        {"action": "blacklist-update", "appid": "warcmill", "domain": "bad.example"},
        {"action": "stop", "appid": "testapp", "crawlid": "gone", "spiderid": "link"},
    ]  # fmt: skip
    requests = {one["url"]: one for one in messages[3:]}
    assert requests["http://example.org/fed"] == {
        "url": "http://example.org/fed", "appid": "testapp", "crawlid": "c1", "spiderid": "link", "priority": 70,
        "maxdepth": 2, "expires": 0, "attrs": {"k": 1},
    }  # fmt: skip
    assert requests["http://example.org/1"]["useragent"] == "old/1"
    assert {one["maxdepth"] for url, one in requests.items() if not url.endswith("fed")} == {1}
    assert {one["priority"] for url, one in requests.items() if not url.endswith("fed")} == {1}
    assert old.zcard("link:queue") == 1, "nothing is changed there"


def test_a_pickle_that_would_run_something_is_left_out_and_named(old: Any, redis: RedisServer, line: Path) -> None:
    old.zadd("link:queue", {pickle.dumps(_Evil()): 1, pickle.dumps(FED, 2): 2, b"\x80\x02broken": 3, b"{}": 4})
    done = migrate(line, "--from", redis.url)
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == "1 requests, 0 stopped crawls, 0 rates and bans are sent"
    assert "3 items are left out" in done.stdout
    assert "posix.mkdir, which is not made" in done.stdout
    assert not Path("/tmp/never-made-by-warcmill").exists()


def test_a_pickle_that_asks_for_more_than_it_has_is_left_out(old: Any, redis: RedisServer, line: Path) -> None:
    """Of a few bytes it would be gigabytes: in the reader's memory, in a bytearray, or written out as JSON."""
    doubled: list[Any] = []
    for _ in range(45):
        doubled = [doubled, doubled]
    many = ["x" * 300_000] * 200_000
    asking = {
        b"]r\xff\xff\xff\x7f.": 1, b"\x80\x05\x96" + (1 << 36).to_bytes(8, "little") + b".": 2,
        pickle.dumps({**FED, "attrs": {"a": doubled}}, 2): 3, pickle.dumps({**FED, "attrs": {"a": many}}, 2): 4,
        pickle.dumps(FED, 2): 5,
    }  # fmt: skip
    old.zadd("link:queue", asking)
    done = migrate(line, "--from", redis.url)
    assert done.stdout.splitlines()[0] == "1 requests, 0 stopped crawls, 0 rates and bans are sent", done.stderr
    assert "4 items are left out" in done.stdout


def test_an_item_with_a_number_that_cannot_be_converted_is_left_out_alone(
    old: Any, redis: RedisServer, line: Path
) -> None:
    about = {"url": "http://a.example/p", "appid": "testapp", "crawlid": "crawl"}
    written = json.dumps(about)[:-1].encode()
    endless = [written + b', "%b": 1e999}' % name for name in (b"maxdepth", b"curdepth", b"priority", b"expires")]
    pickled = [{"priority": float("inf")}, {"maxdepth": float("nan")}, {"cookie": {"a": 1 << 20_000}}]
    items = [*endless, *(pickle.dumps({**about, **more}, 2) for more in pickled)]
    begin, nested = pickle.dumps({**about, "method": []}, 2).split(b"]", 1)
    items.append(begin + b"]" * 5_000 + b"a" * 4_999 + nested[2:])
    old.zadd("link:a.example:queue", {**dict.fromkeys(items, -1), json.dumps(about): 9})
    done = migrate(line, "--from", redis.url)
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[0] == "1 requests, 0 stopped crawls, 0 rates and bans are sent"
    assert f"{len(items)} items are left out" in done.stdout
    assert "whose depth or priority is no number" in done.stdout


@pytest.mark.parametrize(("url", "code"), [("nonsense", 3), ("redis://127.0.0.1:9/0", 4)])
def test_a_redis_that_is_none_or_away_is_named(line: Path, url: str, code: int) -> None:
    done = migrate(line, "--from", url)
    assert done.returncode == code
    assert "--from" in done.stderr
