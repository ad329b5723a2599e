"""Monitors of one's own on a real Redis: keys are handled and removed; one that fails costs its key, after retries."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from servers.redis import RedisServer
from warcmill.errors import Unavailable
from warcmill.requests.accounts.file import FileAccounts
from warcmill.requests.plugins.runners import PluginMonitors
from warcmill.requests.settings import RequestsPlace
from warcmill.scutils.log_factory import LogObject

PLUGINS = Path(__file__).parents[1] / "data" / "plugins"
NOTE = "plugins.note_monitor.NoteMonitor"


def place(folder: Path, port: int, **more: object) -> RequestsPlace:
    shutil.copytree(PLUGINS, folder / "plugins", dirs_exist_ok=True)
    settings = {
        "REDIS_HOST": "127.0.0.1",
        "REDIS_PORT": str(port),
        "REDIS_DB": 7,
        "NOTES": str(folder / "notes"),
        **more,
    }
    file = folder / "localsettings.py"
    file.write_text("".join(f"{name} = {value!r}\n" for name, value in {"PLUGINS": {NOTE: 1}, **settings}.items()))
    return RequestsPlace("ondemand", "demo", "spool", str(file), folder / "spool")


def monitors(at: RequestsPlace, seconds: float = 60) -> PluginMonitors:
    return PluginMonitors(at, [NOTE], LogObject(name="redis-monitor", level="ERROR"), seconds)


def told(at: RequestsPlace) -> list[dict[str, Any]]:
    files = sorted((at.spool / "demo.outbound_firehose").glob("*.jsonl"))
    return [json.loads(line) for path in files for line in path.read_bytes().splitlines()]


@pytest.fixture
def client(redis: RedisServer) -> Any:
    with Redis(port=redis.port, db=7, decode_responses=True) as client:
        client.flushdb()
        yield client


def test_a_key_is_handled_answered_and_removed(tmp_path: Path, redis: RedisServer, client: Any) -> None:
    at = place(tmp_path, redis.port)
    client.mset({"note:testapp:u1": "hello", "note:testapp:u2": "later", "other": "x"})
    client.rpush("note:a:list", "x")
    one = monitors(at)
    assert [one.step(), one.step()] == [1, 0]
    one.close()
    assert told(at) == [{"appid": "testapp", "uuid": "u1", "value": "hello"}]
    assert sorted(client.keys()) == ["note:a:list", "note:testapp:u2", "other", "tries:u1"]
    assert (tmp_path / "notes").read_text() == "closed\n"
    accounts = FileAccounts(at.accounts)
    assert accounts.sums("redis-monitor")["NoteMonitor"]["lifetime"] == 1
    accounts.close()


@pytest.mark.parametrize(("value", "seconds"), [("raise", 60), ("die", 60), ("hang", 5)])
def test_a_monitor_that_fails_costs_its_key_alone_after_retries(
    tmp_path: Path, redis: RedisServer, client: Any, value: str, seconds: float
) -> None:
    at = place(tmp_path, redis.port, RETRY_FAILURES_MAX=1, REDIS_LOCK_EXPIRATION=1)
    client.mset({"note:testapp:bad": value, "note:testapp:good": "hello"})
    one = monitors(at, seconds)
    while client.exists("note:testapp:bad", "note:testapp:good"):
        one.step()
    one.close()
    answers = told(at)
    assert [answer["uuid"] for answer in answers if "uuid" in answer] == ["good"]
    (why,) = [answer["why"] for answer in answers if answer.get("action") == "refused"]
    assert why.startswith(NOTE)
    assert why.endswith("the key is removed")
    assert client.get("tries:bad") == "2"


def test_a_notice_that_the_bus_has_not_taken_is_sent_once_it_answers(
    tmp_path: Path, redis: RedisServer, client: Any
) -> None:
    at = place(tmp_path, redis.port, RETRY_FAILURES_MAX=0)
    client.mset({"note:testapp:1": "raise", "note:testapp:2": "raise"})
    at.spool.mkdir()
    topic = at.spool / "demo.outbound_firehose"
    topic.write_text("no folder")
    one = monitors(at)
    one.step()
    assert not client.exists("note:testapp:1", "note:testapp:2")
    with pytest.raises(Unavailable):
        one.step()
    topic.unlink()
    assert one.step() == 0
    client.set("note:testapp:3", "hello")
    assert one.step() == 1, "an answer belongs to the question before it"
    one.close()
    notices = [answer["why"] for answer in told(at) if answer.get("action") == "refused"]
    assert len(notices) == 2


def test_two_roles_handle_a_key_once(tmp_path: Path, redis: RedisServer, client: Any) -> None:
    at = place(tmp_path, redis.port)
    both = [monitors(at), monitors(at)]
    for number in range(50):
        client.set(f"note:testapp:{number}", "hello")
    assert sum(one.step() for one in both) == 50
    for one in both:
        one.close()
    assert len(told(at)) == 50


def test_while_its_redis_is_away_a_monitor_waits(tmp_path: Path) -> None:
    one = monitors(place(tmp_path, 1))
    with pytest.raises(Unavailable, match="Redis of the plugins"):
        one.step()
    one.close()


def test_a_monitor_whose_close_fails_is_in_the_log(
    tmp_path: Path, redis: RedisServer, client: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    one = monitors(place(tmp_path, redis.port, NOTES=str(tmp_path / "away" / "notes")))
    assert one.step() == client.dbsize() == 0
    one.close()
    assert "FileNotFoundError" in "".join(capfd.readouterr())
