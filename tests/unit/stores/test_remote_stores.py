"""The parts of remote stores that need no server: URLs, budgets, what passes, and answers that are cut."""

from __future__ import annotations

import json
import socket
import threading

import pytest

from warcmill.errors import BadConfig, Unavailable
from warcmill.stores import remote_files
from warcmill.stores.opening import Access, open_store
from warcmill.stores.remote_files import Broken, Budget
from warcmill.stores.webhdfs.client import Client, NameNodes, UserName, is_passing
from warcmill.stores.webhdfs.http import Address, Connections, HdfsRefusal, HdfsResponse, HdfsStream

ANSWER = b'HTTP/1.1 404 Not Found\r\nDate: today\r\nContent-Length: 23\r\n\r\n{"RemoteException": {}}'


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("webhdfs://nn1:1,nn2/a/b/?user=x-y.z", NameNodes((Address("nn1", 1), Address("nn2", 9870)), "/a/b", "x-y.z")),
        ("webhdfs://nn1/a", NameNodes((Address("nn1", 9870),), "/a", "")),
        ("webhdfs://nn1/a?auth=kerberos", NameNodes((Address("nn1", 9870),), "/a", "", kerberos=True)),
    ],
)
def test_a_webhdfs_url_is_taken_apart(url: str, expected: NameNodes) -> None:
    assert NameNodes.parse(url) == expected


@pytest.mark.parametrize(
    "rest",
    ["nn1", "nn1/", "/a", "u:secret@nn1/a", "nn1:0/a", "nn1:x/a", "nn1/a//b", "nn1/a?user=", "nn1/a?user=x&t=secret",
     "nn1/a?password=secret", "nn1/a#secret", "nn1,/a", "nn1/\u00fc"],
)  # fmt: skip
def test_a_webhdfs_url_that_is_none_is_refused_without_its_secrets(rest: str) -> None:
    with pytest.raises(BadConfig) as caught:
        NameNodes.parse(f"webhdfs://{rest}")
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


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now, self.slept = 1_000.0, list[float]()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def budget(self, seconds: float = 60.0) -> Budget:
        return Budget(seconds, lambda: self.now, self.sleep)


def test_a_budget_is_spent_once_and_not_by_each_file() -> None:
    clock = Clock()
    one = clock.budget(1.0)
    while one.wait():
        assert len(clock.slept) < 100
    assert clock.slept == pytest.approx([0.1, 0.2, 0.4, 0.3])
    assert not one.wait()
    one.answered()
    assert not one.wait(), "an answer to another call must not let the next file wait again"
    clock.now += remote_files.WINDOW + 1
    assert one.wait()


@pytest.mark.parametrize("threads", [1, 2, 8, 40])
def test_however_many_wait_it_is_a_minute(threads: int) -> None:
    """All ask in vain at once, wait, and ask again: it was 60 s for their sum."""
    began, asleep = (clock := Clock()).now, list[float]()
    shared = Budget(60.0, lambda: clock.now, asleep.append)
    while {shared.wait() for _ in range(threads)} == {True}:
        assert len(asleep) == threads
        assert len({*asleep}) == 1, "all wait until the same moment"
        clock.now += asleep[0]
        asleep.clear()
    assert clock.now - began == pytest.approx(60)


def test_one_that_comes_while_others_wait_waits_for_the_rest_and_costs_nothing() -> None:
    clock, asleep = Clock(), list[float]()
    shared = Budget(0.1, lambda: clock.now, asleep.append)
    assert shared.wait()
    clock.now += 0.06
    assert shared.wait()
    assert asleep == pytest.approx([0.1, 0.04])
    clock.now += 0.05
    assert not shared.wait()


def test_an_answer_makes_the_next_wait_a_short_one() -> None:
    clock = Clock()
    one = clock.budget()
    assert one.wait()
    assert one.wait()
    one.answered()
    assert one.wait()
    assert clock.slept == pytest.approx([0.1, 0.2, 0.1])


@pytest.mark.parametrize(
    ("exception", "message"),
    [
        ("EOFException", "End of File Exception between local host is: x; destination host is: y:9000; : java.io"),
        ("IOException", "Failed to find datanode, suggest to check cluster health. excludeDatanodes=null"),
        ("IOException", "File /a could only be written to 0 of the 1 minReplication nodes. There are 2 datanode(s)"),
    ],
)
def test_what_a_cluster_says_while_it_comes_up_passes(exception: str, message: str) -> None:
    assert is_passing(HdfsRefusal("HDFS", exception, message))
    assert not is_passing(HdfsRefusal("HDFS", "FileNotFoundException", message))


class ComingBack(Connections):
    """A stand-in for a NameNode that redirects to a DataNode `looks` looks before it lists it."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.looks, self.looked, self.asked = looks, 0, list[Address]()

    def ask(self, at: Address, method: str, target: str, headers: object, body: object = None) -> HdfsResponse:
        if at == Address("dn", 2):
            self.asked.append(at)
            return HdfsResponse(200, "", b'{"said": "yes"}')
        if not target.startswith("/jmx"):
            return HdfsResponse(307, "http://dn:2/webhdfs/v1/a?op=GETFILECHECKSUM&delegation=SECRET", b"")
        self.looked += 1
        nodes = {"dn:1": {"infoAddr": "127.0.0.1:2", "xferaddr": "127.0.0.1:3"}} if self.looked > self.looks else {}
        return HdfsResponse(200, "", json.dumps({"beans": [{"LiveNodes": json.dumps(nodes)}]}).encode())


def test_a_datanode_that_has_just_come_back_is_looked_up_again() -> None:
    wire, clock = ComingBack(2), Clock()
    client = Client(NameNodes.parse("webhdfs://nn/a"), clock.budget(), wire, UserName(""))
    assert client.fetch("/a", "GETFILECHECKSUM") == {"said": "yes"}
    assert (wire.looked, clock.slept) == (3, pytest.approx([0.1, 0.2]))


def test_a_stranger_is_refused_after_some_looks_and_is_sent_nothing() -> None:
    wire, clock = ComingBack(1_000), Clock()
    client = Client(NameNodes.parse("webhdfs://nn/a"), clock.budget(), wire, UserName(""))
    with pytest.raises(Unavailable, match="not among the DataNodes it lists") as caught:
        client.fetch("/a", "GETFILECHECKSUM")
    assert "SECRET" not in str(caught.value)
    assert not wire.asked
    assert 3 <= sum(clock.slept) < 10


class Worn(Connections):
    """A stand-in for a DataNode whose own connection to a NameNode that was started anew is worn out: once."""

    said = 0

    def ask(self, at: Address, method: str, target: str, headers: object, body: object = None) -> HdfsResponse:
        beans = {"LiveNodes": json.dumps({"dn:1": {"infoAddr": "127.0.0.1:2", "xferaddr": "127.0.0.1:3"}})}
        if target.startswith("/jmx"):
            return HdfsResponse(200, "", json.dumps({"beans": [beans]}).encode())
        return HdfsResponse(307, "http://dn:2/webhdfs/v1/a?op=OPEN", b"")

    def stream(self, at: Address, target: str, headers: object) -> HdfsStream:
        self.said += 1
        if self.said == 1:
            raise HdfsRefusal(str(at), "EOFException", "End of File Exception")
        return object.__new__(HdfsStream)


def test_a_datanode_that_has_lost_its_namenode_is_asked_for_the_bytes_again() -> None:
    wire = Worn()
    Client(NameNodes.parse("webhdfs://nn/a"), Budget(1.0), wire, UserName("")).read("/a", 0)
    assert wire.said == 2


def answered(data: bytes) -> HdfsResponse:
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
