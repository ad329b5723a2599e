"""A watched file in a real ZooKeeper: changes, pointers, and a server that goes and comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError
from waiting import wait_for

from servers import pins
from servers import zookeeper as zookeeper_server
from servers.zookeeper import ZookeeperServer
from warcmill.scutils.zookeeper_watcher import ZookeeperWatcher


class Heard:
    """The handlers of a watcher, and what they were given."""

    def __init__(self) -> None:
        self.all: list[tuple[str, object]] = []

    @property
    def handlers(self) -> dict[str, Any]:
        return {f"{name}_handler": lambda value, name=name: self.all.append((name, value)) for name in WORDS}

    def wait(self, *expected: tuple[str, object]) -> None:
        wait_for(lambda: self.all == list(expected), lambda: self.all)


WORDS = ("valid", "config", "error")


@pytest.fixture
def client(zookeeper: ZookeeperServer) -> Iterator[KazooClient]:
    """Writes to an empty ZooKeeper."""
    other = KazooClient(zookeeper.hosts)
    other.start()
    for path in ("/tmp", "/tmp_pointers"):
        other.delete(path, recursive=True) if other.exists(path) else None
    yield other
    other.stop()
    other.close()


@pytest.fixture
def watching(zookeeper: ZookeeperServer) -> Iterator[Callable[..., ZookeeperWatcher]]:
    watchers: list[ZookeeperWatcher] = []

    def watch(path: str, **words: Any) -> ZookeeperWatcher:
        watchers.append(ZookeeperWatcher(zookeeper.hosts, path, **words))
        return watchers[-1]

    yield watch
    for watcher in watchers:
        watcher.close()


def test_the_documented_file_is_polled(client: KazooClient, watching: Any) -> None:
    client.create("/tmp/myconfig", b"stuff here", makepath=True)
    watcher = watching("/tmp/myconfig")
    assert (watcher.is_valid(), watcher.get_file_contents(), watcher.ping()) == (True, "stuff here", True)
    client.set("/tmp/myconfig", b"NEW stuff")
    wait_for(lambda: watcher.get_file_contents() == "NEW stuff")
    assert watcher.is_valid()


def test_a_change_is_an_event_once_and_the_first_contents_come_before_the_validity(
    client: KazooClient, watching: Any
) -> None:
    client.create("/tmp/myconfig", b"one", makepath=True)
    heard = Heard()
    watching("/tmp/myconfig", **heard.handlers)
    assert heard.all == [("config", "one"), ("valid", True)]
    client.set("/tmp/myconfig", b"two")
    heard.wait(("config", "one"), ("valid", True), ("config", "two"))
    client.set("/tmp/myconfig", b"two")  # the same contents are not a change
    client.set("/tmp/myconfig", "drei é".encode())
    heard.wait(("config", "one"), ("valid", True), ("config", "two"), ("config", "drei é"))


def test_a_pointer_is_followed_and_so_is_the_file_that_it_names(client: KazooClient, watching: Any) -> None:
    client.create("/tmp/a", b"config a", makepath=True)
    client.create("/tmp/b", b"config b")
    client.create("/tmp_pointers/p", b"/tmp/a", makepath=True)
    heard = Heard()
    watcher = watching("/tmp_pointers/p", pointer=True, **heard.handlers)
    expected: list[tuple[str, object]] = [("config", "config a"), ("valid", True)]
    assert heard.all == expected
    assert (watcher.get_file_contents(), watcher.get_file_contents(pointer=True)) == ("config a", "/tmp/a")
    client.set("/tmp_pointers/p", b"/tmp/b")
    heard.wait(*expected, ("config", "config b"))
    client.set("/tmp/b", b"config b, changed")
    heard.wait(*expected, ("config", "config b"), ("config", "config b, changed"))


@pytest.mark.parametrize("pointer", [b"/tmp/a\n", b"", b"no path", b"/nobody/here", b"\xff", b"/../x"])
def test_a_pointer_to_nothing_is_an_error_until_it_is_right(client: KazooClient, watching: Any, pointer: bytes) -> None:
    client.create("/tmp/a", b"config a", makepath=True)
    client.create("/tmp_pointers/p", pointer, makepath=True)
    heard = Heard()
    watcher = watching("/tmp_pointers/p", pointer=True, **heard.handlers)
    wrong = ("error", "Invalid pointer path" if pointer != b"\xff" else "Invalid get on file path")
    assert (heard.all, watcher.is_valid(), watcher.get_file_contents()) == ([wrong], False, "")
    client.set("/tmp_pointers/p", b"/tmp/a")
    heard.wait(wrong, ("config", "config a"), ("valid", True))


def test_a_file_that_is_made_later_is_taken_and_one_that_is_removed_is_an_error(
    client: KazooClient, watching: Any
) -> None:
    client.ensure_path("/tmp")
    heard = Heard()
    watching("/tmp/later", **heard.handlers)
    wrong = ("error", "Invalid get on file path")
    assert heard.all == [wrong]
    client.create("/tmp/later", b"here")
    heard.wait(wrong, ("config", "here"), ("valid", True))
    client.delete("/tmp/later")
    heard.wait(wrong, ("config", "here"), ("valid", True), ("valid", False), wrong)


def test_a_file_may_be_made_by_the_watcher(client: KazooClient, watching: Any) -> None:
    watcher = watching("/tmp/deep/file", ensure=True)
    assert client.exists("/tmp/deep/file")
    assert (watcher.is_valid(), watcher.get_file_contents()) == (True, "")


def test_a_handler_that_fails_does_not_end_the_watch(client: KazooClient, watching: Any) -> None:
    client.create("/tmp/x", b"1", makepath=True)
    heard: list[str] = []

    def fail(contents: str) -> None:
        heard.append(contents)
        raise KeyError("somebody else's fault")

    watching("/tmp/x", config_handler=fail)
    client.set("/tmp/x", b"2")
    wait_for(lambda: heard == ["1", "2"])


def test_while_the_server_is_away_the_contents_stay_and_are_not_valid_then_the_change_is_there(
    zookeeper: ZookeeperServer, client: KazooClient, watching: Any
) -> None:
    client.create("/tmp/x", b"before", makepath=True)
    heard = Heard()
    watcher = watching("/tmp/x", **heard.handlers)
    before: list[tuple[str, object]] = [("config", "before"), ("valid", True)]
    away = [("valid", False), ("error", "Connection interrupted with Zookeeper, re-establishing")]
    zookeeper.kill()
    heard.wait(*before, *away)
    assert (watcher.get_file_contents(), watcher.ping()) == ("before", False)
    zookeeper.start()
    heard.wait(*before, *away, ("valid", True))
    client.set("/tmp/x", b"after")
    heard.wait(*before, *away, ("valid", True), ("config", "after"))


def test_a_session_that_was_lost_is_begun_anew_and_the_file_is_watched(client: KazooClient, watching: Any) -> None:
    client.create("/tmp/x", b"1", makepath=True)
    watcher = watching("/tmp/x")
    watcher.close(kill_restart=False)
    wait_for(watcher.is_valid)
    client.set("/tmp/x", b"2")
    wait_for(lambda: watcher.get_file_contents() == "2")


def test_without_a_server_the_first_try_fails_or_is_repeated_until_there_is_one(tmp_path: Path) -> None:
    server = zookeeper_server.at(tmp_path, pins.free(pins.ZOOKEEPER))
    heard = Heard()
    watcher = ZookeeperWatcher(server.hosts, "/later", valid_init=False, ensure=True, **heard.handlers)
    try:
        with pytest.raises(KazooTimeoutError):
            ZookeeperWatcher(server.hosts, "/later")
        assert (watcher.is_valid(), watcher.ping(), heard.all) == (False, False, [])
        server.start()
        heard.wait(("valid", True))
    finally:
        watcher.close()
        zookeeper_server.down(tmp_path)
