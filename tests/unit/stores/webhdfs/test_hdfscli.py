"""Reading by HdfsCLI: what it tells whom, and what becomes of answers that a real HDFS cannot be made to give."""

from __future__ import annotations

import io
import json
import logging
import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from warcmill.errors import BadInput, Unavailable
from warcmill.stores.remote_files import Budget, RemoteReader
from warcmill.stores.webhdfs.client import Authentication, Client, NameNodes, UserName
from warcmill.stores.webhdfs.hdfscli import HdfsCli
from warcmill.stores.webhdfs.http import Address, Connections

DATA = random.Random(6).randbytes(300_000)
STANDBY = {"RemoteException": {"exception": "StandbyException", "message": "not active"}}
MISSING = {"RemoteException": {"exception": "FileNotFoundException", "message": "no /a\nat java"}}


class Ticket:
    """As Kerberos: a token, and for it a cookie, which is worn out when the server reports it."""

    def __init__(self) -> None:
        self.cookie = ""

    def query(self) -> dict[str, str]:
        return {}

    def headers(self, _at: Address) -> dict[str, str]:
        return {"Cookie": self.cookie} if self.cookie else {"Authorization": "Negotiate TICKET"}

    def learn(self, _at: Address, cookie: str) -> None:
        self.cookie = cookie.partition(";")[0] or self.cookie

    def forget(self, _at: Address) -> bool:
        had, self.cookie = self.cookie, ""
        return bool(had)


class Stand(BaseHTTPRequestHandler):
    """A NameNode and a DataNode in one; what it does is decided by its server."""

    server: Hdfs
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        server, url = self.server, urlsplit(self.path)
        if url.path == "/jmx":
            nodes = {} if server.stranger else {"dn:1": {"infoAddr": f"127.0.0.1:{server.port}", "xferaddr": "x:1"}}
            self.say(200, json.dumps({"beans": [{"LiveNodes": json.dumps(nodes)}]}).encode())
        elif "delegation" in url.query:
            server.to_datanode.append(dict(self.headers) | {"query": url.query})
            self.send(int(parse_qs(url.query)["offset"][0]))
        else:
            server.to_namenode.append(dict(self.headers) | {"query": url.query})
            self.decide(url.query)

    def decide(self, query: str) -> None:
        if self.server.refusals:
            status, body = self.server.refusals.pop(0)
            self.say(status, body)
        else:
            offset = parse_qs(query)["offset"][0]
            place = f"http://127.0.0.1:{self.server.port}/webhdfs/v1/a?op=OPEN&delegation=SECRET&offset={offset}"
            self.say(307, b"", {"Location": place, "Set-Cookie": "hadoop.auth=COOKIE; Path=/"})

    def send(self, offset: int) -> None:
        """What is left of the file, or less: then the connection ends."""
        left = DATA[offset:]
        kept = self.server.cuts.pop(0) if self.server.cuts else len(left)
        self.say(200, left[:kept], {"Content-Length": str(len(left)), "Connection": "close"})
        self.close_connection = True

    def say(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Hdfs(ThreadingHTTPServer):
    """`refusals` come first, then redirects; `cuts`: how much the DataNode sends before it hangs up."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Stand)
        self.port = int(self.server_address[1])
        self.refusals: list[tuple[int, bytes]] = []
        self.cuts: list[int] = []
        self.stranger = False
        self.to_namenode: list[dict[str, str]] = []
        self.to_datanode: list[dict[str, str]] = []

    def reader(self, who: Authentication | None = None, patience: float = 1.0, before: str = "") -> RemoteReader:
        return RemoteReader(lambda at: self.cli(who, patience, before).read("/a", at), len(DATA), 0, Budget(patience))

    def cli(self, who: Authentication | None = None, patience: float = 1.0, before: str = "") -> HdfsCli:
        cluster = NameNodes.parse(f"webhdfs://{before}127.0.0.1:{self.port}/a")
        return HdfsCli(Client(cluster, Budget(patience), Connections(10), who or UserName("me")))


@contextmanager
def running() -> Iterator[Hdfs]:
    with Hdfs() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def hdfs() -> Iterator[Hdfs]:
    with running() as server:
        yield server


def whole(reader: RemoteReader) -> bytes:
    with io.BufferedReader(reader) as file:
        return file.read()


def test_a_file_is_read_and_only_the_namenode_learns_who_asks(hdfs: Hdfs) -> None:
    assert whole(hdfs.reader()) == DATA
    (asked,), (sent,) = hdfs.to_namenode, hdfs.to_datanode
    assert parse_qs(asked["query"]) == {"op": ["OPEN"], "offset": ["0"], "user.name": ["me"]}
    assert "user.name" not in sent["query"]


def test_a_ticket_and_its_cookie_are_for_the_namenode_alone(hdfs: Hdfs) -> None:
    """The DataNode is on the same host, to all ports of which `requests` by itself sends a cookie."""
    cli, ticket = hdfs.cli(who := Ticket()), "Negotiate TICKET"
    for _ in range(2):
        cli.read("/a", 0).close()
    who.cookie = "hadoop.auth=WORN"
    hdfs.refusals = [(401, b"<html>")]
    cli.read("/a", 0).close()
    told = [(one.get("Authorization"), one.get("Cookie")) for one in hdfs.to_namenode]
    assert told == [(ticket, None), (None, "hadoop.auth=COOKIE"), (None, "hadoop.auth=WORN"), (ticket, None)]
    assert not [one for one in hdfs.to_datanode if "Authorization" in one or "Cookie" in one]


def test_the_environments_proxies_and_passwords_are_not_used(
    hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password SECRET\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert whole(hdfs.reader()) == DATA
    assert not [one for one in (*hdfs.to_namenode, *hdfs.to_datanode) if "Authorization" in one]


@pytest.mark.parametrize("cuts", [[0], [1, 100_000], [len(DATA) - 1, 0, 0]])
def test_a_body_that_is_cut_continues_where_it_broke(hdfs: Hdfs, cuts: list[int]) -> None:
    hdfs.cuts = cuts
    assert whole(hdfs.reader()) == DATA
    assert not hdfs.cuts


def test_a_body_that_never_ends_well_is_unavailable(hdfs: Hdfs, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    hdfs.cuts = [10] * 99
    with pytest.raises(Unavailable, match="the connection ended") as caught:
        whole(hdfs.reader(patience=0.2))
    assert caught.value.__suppress_context__
    assert "SECRET" not in str(caught.value) + caplog.text
    assert len(hdfs.to_datanode) > 1


def test_a_redirect_to_a_stranger_is_not_followed(hdfs: Hdfs, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    hdfs.stranger = True
    with pytest.raises(Unavailable, match="not among the DataNodes it lists") as caught:
        whole(hdfs.reader(patience=0.1))
    assert "SECRET" not in str(caught.value) + caplog.text
    assert not hdfs.to_datanode


def test_a_standby_and_one_that_is_gone_are_skipped(hdfs: Hdfs) -> None:
    with ExitStack() as stack:
        standby, gone = stack.enter_context(running()), Hdfs()
        gone.server_close()
        standby.refusals = [(403, json.dumps(STANDBY).encode())] * 9
        assert whole(hdfs.reader(before=f"127.0.0.1:{gone.port},127.0.0.1:{standby.port},")) == DATA
        assert standby.to_namenode


def test_a_cluster_without_an_active_namenode_is_asked_again(hdfs: Hdfs) -> None:
    hdfs.refusals = [(403, json.dumps(STANDBY).encode())] * 2
    assert whole(hdfs.reader()) == DATA
    hdfs.refusals = [(403, json.dumps(STANDBY).encode())] * 99
    with pytest.raises(Unavailable, match="StandbyException"):
        whole(hdfs.reader(patience=0.1))


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (404, json.dumps(MISSING).encode(), "FileNotFoundException: no /a$"),
        (401, b"<html>SECRET", "does not let us in"),
        (404, b"{}", "answered with status 404"),
        (500, b"[]", "answered with status 500"),
        (204, b"", "answered with status 204"),
    ],
)
def test_a_no_is_reported_in_its_own_words(
    hdfs: Hdfs, status: int, body: bytes, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    hdfs.refusals = [(status, body)]
    with pytest.raises(Unavailable, match=said) as caught:
        whole(hdfs.reader())
    assert "SECRET" not in str(caught.value) + caplog.text


def test_a_name_that_hdfscli_takes_for_another_is_refused(hdfs: Hdfs) -> None:
    with pytest.raises(BadInput, match="#LATEST"):
        hdfs.cli().read("/a/#LATEST", 0)
