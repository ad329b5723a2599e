"""Who may ask a REST service that other machines reach: by real HTTP, at an address of this machine all the same."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import preloaded
import pytest
from requesting.requests_line import RequestsLine
from waiting import wait_for

from commands.console.rest import _Judge
from tasks.config.requests import RestAddress
from warcmill.clients.bus.spool import Spool
from warcmill.requests.rest import RestService
from warcmill.requests.settings import RequestsPlace
from warcmill.scutils.log_factory import LogObject
from warcmill.stores import LocalStore, sentinel
from warcmill.stores.file import FileStore
from warcmill.web.access import Role, WebAccess, add_token, digest_of, withdraw_token
from warcmill.web.server import serving

FILE = "a-token-of-the-file"
REFUSED = (403, {"data": None, "error": {"message": "The request is not allowed."}, "status": "FAILURE"})
POLL, FEED = ("/poll", {"poll_id": "u1"}), ("/feed", {"url": "a.example", "appid": "testapp", "crawlid": "c"})


def ask(port: int, path: str, message: Any, authorization: str = "") -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=100)
    headers = {"Content-Type": "application/json", "Host": "archive.example"}
    headers |= {"Authorization": authorization} if authorization else {}
    connection.request("POST", path, json.dumps(message), headers)
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


@pytest.fixture
def state(tmp_path: Path) -> LocalStore:
    sentinel.adopt({"state": tmp_path / "state"})
    (tmp_path / "state" / "spool").mkdir()
    return FileStore("state", tmp_path / "state")


@pytest.fixture
def ports(tmp_path: Path, state: LocalStore) -> Iterator[list[int]]:
    """Two services of one folder of answers, each with a token of a file for readers."""
    place = RequestsPlace("ondemand", "demo", "spool", "", tmp_path / "state" / "spool", given={})
    address = RestAddress("0.0.0.0", 5343, {digest_of(FILE): Role.READER})
    found = []
    with ExitStack() as opened:
        for _ in range(2):
            judge = _Judge(address, WebAccess(state, ""))
            service = RestService(place, LogObject(name="rest-service", level="CRITICAL"), judge)
            service.start()
            opened.callback(service.close)
            found.append(opened.enter_context(serving(service.app(), "127.0.0.1")))
        yield found


def test_an_operators_token_feeds_and_a_readers_polls(tmp_path: Path, state: LocalStore, ports: list[int]) -> None:
    operator, reader = (f"Bearer {add_token(state, name, role, None)}" for name, role in (
        ("feeder", Role.OPERATOR), ("looker", Role.READER)
    ))  # fmt: skip
    for port in ports:
        assert ask(port, *FEED, operator) == (200, {"data": None, "error": None, "status": "SUCCESS"})
        for reads in (reader, f"Bearer {FILE}", operator):
            assert ask(port, *POLL, reads)[0] == 404
            assert ask(port, "/", {}, reads)[0] == 200
        for wrong in (reader, f"Bearer {FILE}", f"Token {FILE}", "Bearer ", "Bearer nobody", FILE, ""):
            assert ask(port, *FEED, wrong) == REFUSED, wrong
        for wrong in (f"Token {FILE}", "Bearer ", "Bearer nobody", FILE, ""):
            assert ask(port, *POLL, wrong) == ask(port, "/", {}, wrong) == REFUSED, wrong
    assert len(list(Spool(tmp_path / "state" / "spool").reader("demo.incoming", None).read(10, 0))) == 2
    Spool(tmp_path / "state" / "spool").append("demo.outbound_firehose", [b'{"uuid": "u1", "total": 7}'])
    found: list[Any] = []
    wait_for(lambda: found.append(ask(ports[1], *POLL, reader)) or found[-1][0] == 200)
    assert found[-1][1]["data"] == {"uuid": "u1", "total": 7}
    assert ask(ports[0], *POLL, reader)[0] == 404, "it was had"
    withdraw_token(state, "feeder")
    assert ask(ports[0], *FEED, operator) == REFUSED


def test_beyond_loopback_no_service_starts_without_a_token(tmp_path: Path) -> None:
    line = RequestsLine(tmp_path, 9)
    config = tmp_path / "luigi.cfg"
    config.write_text(config.read_text().replace("[requests]", "[requests]\nrest_listen=0.0.0.0"))
    done = preloaded.run("commands.main", "run", "rest", env=line.env)
    assert done.returncode == 3, done.stderr
    assert "there are no tokens: 'warcmill serve token add NAME --role operator' makes one" in done.stderr
