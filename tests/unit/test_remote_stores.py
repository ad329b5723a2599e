"""The parts of remote stores that need no server: URLs, budgets, what passes, and answers that are cut."""

from __future__ import annotations

import json
import socket
import threading
import time

import pytest

from warcmill.errors import BadConfig
from warcmill.stores import budget
from warcmill.stores.budget import Budget
from warcmill.stores.places import Access, open_store
from warcmill.stores.remote import Broken
from warcmill.stores.webhdfs_client import Client, Cluster, UserName, is_passing
from warcmill.stores.webhdfs_http import Address, Answer, Connections, Refused, Stream

ANSWER = b'HTTP/1.1 404 Not Found\r\nDate: today\r\nContent-Length: 23\r\n\r\n{"RemoteException": {}}'


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("webhdfs://nn1:1,nn2/a/b/?user=x-y.z", Cluster((Address("nn1", 1), Address("nn2", 9870)), "/a/b", "x-y.z")),
        ("webhdfs://nn1/a", Cluster((Address("nn1", 9870),), "/a", "")),
        ("webhdfs://nn1/a?auth=kerberos", Cluster((Address("nn1", 9870),), "/a", "", kerberos=True)),
    ],
)
def test_a_webhdfs_url_is_taken_apart(url: str, expected: Cluster) -> None:
    assert Cluster.parse(url) == expected


@pytest.mark.parametrize(
    "rest",
    ["nn1", "nn1/", "/a", "u:secret@nn1/a", "nn1:0/a", "nn1:x/a", "nn1/a//b", "nn1/a?user=", "nn1/a?user=x&t=secret",
     "nn1/a?password=secret", "nn1/a#secret", "nn1,/a", "nn1/\u00fc"],
)  # fmt: skip
def test_a_webhdfs_url_that_is_none_is_refused_without_its_secrets(rest: str) -> None:
    with pytest.raises(BadConfig) as caught:
        Cluster.parse(f"webhdfs://{rest}")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("root", "url"),
    [
        ("state", "sftp://a@h/x"),
        ("output", "webhdfs://h/x"),
        ("store", "s4://h/x"),
        ("store", "relative"),
        ("jobs", "file:///x"),
    ],
)
def test_a_root_is_only_where_it_can_be(root: str, url: str) -> None:
    with pytest.raises(BadConfig, match=rf"\[warcmill\] {root}"):
        open_store(root, url, Access())  # type: ignore[arg-type]


def test_a_budget_is_spent_once_and_not_by_each_file(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(budget.time, "sleep", slept.append)
    one = Budget(1.0)
    while one.wait():
        assert len(slept) < 100
    assert slept == pytest.approx([0.1, 0.2, 0.4, 0.3])
    assert not one.wait()
    one.answered()
    assert not one.wait(), "an answer to another call must not let the next file wait again"
    now = time.monotonic()
    monkeypatch.setattr(budget.time, "monotonic", lambda: now + budget.WINDOW + 1)
    assert one.wait()


@pytest.mark.parametrize(
    ("exception", "message"),
    [
        ("EOFException", "End of File Exception between local host is: x; destination host is: y:9000; : java.io"),
        ("IOException", "Failed to find datanode, suggest to check cluster health. excludeDatanodes=null"),
        ("IOException", "File /a could only be written to 0 of the 1 minReplication nodes. There are 2 datanode(s)"),
    ],
)
def test_what_a_cluster_says_while_it_comes_up_passes(exception: str, message: str) -> None:
    assert is_passing(Refused("HDFS", exception, message))
    assert not is_passing(Refused("HDFS", "FileNotFoundException", message))


class Worn(Connections):
    """A stand-in for a DataNode whose own connection to a NameNode that was started anew is worn out: once."""

    said = 0

    def ask(self, at: Address, method: str, target: str, headers: object, body: object = None) -> Answer:
        beans = {"LiveNodes": json.dumps({"dn:1": {"infoAddr": "127.0.0.1:2", "xferaddr": "127.0.0.1:3"}})}
        if target.startswith("/jmx"):
            return Answer(200, "", json.dumps({"beans": [beans]}).encode())
        return Answer(307, "http://dn:2/webhdfs/v1/a?op=OPEN", b"")

    def stream(self, at: Address, target: str, headers: object) -> Stream:
        self.said += 1
        if self.said == 1:
            raise Refused(str(at), "EOFException", "End of File Exception")
        return object.__new__(Stream)


def test_a_datanode_that_has_lost_its_namenode_is_asked_for_the_bytes_again() -> None:
    wire = Worn()
    Client(Cluster.parse("webhdfs://nn/a"), Budget(1.0), wire, UserName("")).read("/a", 0)
    assert wire.said == 2


def answered(data: bytes) -> Answer:
    """What is made of an answer, after which the server hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with server.accept()[0] as client:
                client.recv(1 << 16)
                client.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        return Connections(10).ask(Address(*server.getsockname()), "GET", "/x", {})


@pytest.mark.parametrize("kept", range(len(ANSWER)))
def test_an_answer_that_is_cut_anywhere_is_none(kept: int) -> None:
    """http.client itself takes a head without its end for a whole one: 404, and no word of what is not there."""
    with pytest.raises(Broken):
        answered(ANSWER[:kept])


def test_an_answer_that_is_whole_is_one() -> None:
    found = answered(ANSWER)
    assert (found.status, found.data) == (404, b'{"RemoteException": {}}')
