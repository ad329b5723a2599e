"""The parts of remote stores that need no server: URLs, budgets, and SFTP's packets between two ends of a wire."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable

import pytest

from warcmill.errors import BadConfig, Unavailable
from warcmill.stores import budget, sftp_packets
from warcmill.stores.budget import Budget
from warcmill.stores.places import Access, open_store
from warcmill.stores.remote import Broken
from warcmill.stores.sftp_packets import Attributes, Payload, Type
from warcmill.stores.sftp_session import PIECE, UNDER_WAY, Download, Session, Status, Upload
from warcmill.stores.webhdfs_client import Client, Cluster, UserName, is_passing
from warcmill.stores.webhdfs_http import Address, Answer, Connections, Refused, Stream

OK, FAILURE = 0, 4
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


def test_attributes_are_read_whichever_are_there() -> None:
    everything = struct.pack(">IQIIIII", 15, 5, 1, 2, 0o100644, 3, 4)
    assert Payload(everything).attributes() == Attributes(5, 0o100644, 4)
    assert Payload(b"\0\0\0\0").attributes() == Attributes(0, 0, 0)
    extended = struct.pack(">II", 1 << 31, 1) + sftp_packets.string(b"a") + sftp_packets.string(b"b") + b"rest"
    payload = Payload(extended)
    assert payload.attributes() == Attributes(0, 0, 0)


@pytest.mark.parametrize("data", [b"", b"\0\0\0", b"\0\0\0\5abcd", b"\xff\xff\xff\xff"])
def test_a_packet_that_is_shorter_than_it_says_is_told(data: bytes) -> None:
    with pytest.raises(Unavailable, match="shorter than it says"):
        Payload(data).string()


class Peer:
    """The other end of a wire: reads requests, and has `answer` make the answers, as bytes."""

    def __init__(self, answer: Callable[[int, int, Payload], list[bytes]]) -> None:
        self._answer, self._in, self._out = answer, b"", b""
        self.asked: list[int] = []

    def sendall(self, data: bytes, /) -> None:
        self._in += data
        while len(self._in) >= 4 and len(self._in) >= 4 + (size := int.from_bytes(self._in[:4])):
            packet, self._in = self._in[4 : 4 + size], self._in[4 + size :]
            if packet[0] == Type.INIT:
                self._out += framed(Type.VERSION, struct.pack(">I", 3) + sftp_packets.string(b"x") * 2)
                continue
            payload = Payload(packet[1:])
            self.asked.append(packet[0])
            self._out += b"".join(self._answer(packet[0], payload.number(), payload))

    def recv(self, size: int, /) -> bytes:
        data, self._out = self._out[: min(size, 7_000)], self._out[min(size, 7_000) :]
        return data

    def close(self) -> None:
        self._out = b""


def framed(kind: int, body: bytes) -> bytes:
    return struct.pack(">IB", 1 + len(body), kind) + body


def status(number: int, code: int) -> bytes:
    return framed(Type.STATUS, struct.pack(">II", number, code) + sftp_packets.string(b"said") * 2)


def handle(number: int) -> bytes:
    return framed(Type.HANDLE, struct.pack(">I", number) + sftp_packets.string(b"h"))


def test_the_last_write_that_fails_is_not_lost() -> None:
    """A disk that fills up with the last bytes: the answer comes after all has been sent."""
    writes = []

    def answer(kind: int, number: int, _payload: Payload) -> list[bytes]:
        if kind == Type.OPEN:
            return [handle(number)]
        if kind == Type.WRITE:
            writes.append(number)
            return [status(number, FAILURE if len(writes) == 5 else OK)]
        return [status(number, OK)]

    upload = Upload(Session("peer", Peer(answer)), b"/x")
    upload.write(bytes(5 * PIECE))
    with pytest.raises(Status, match="said"):
        upload.finish()


def test_writes_are_waited_for_when_too_many_are_under_way() -> None:
    peer = Peer(lambda kind, number, _payload: [handle(number) if kind == Type.OPEN else status(number, OK)])
    upload = Upload(Session("peer", peer), b"/x")
    upload.write(bytes(PIECE * (UNDER_WAY + 10)))
    assert len(upload._sent) == UNDER_WAY
    upload.finish()
    assert peer.asked[-2:] == [Type.EXTENDED, Type.CLOSE]


@pytest.mark.parametrize("most", [PIECE, 100_000, 1])
def test_answers_that_are_short_or_in_disorder_make_the_same_file(most: int) -> None:
    """A server may answer fewer bytes than were asked for, and in any order."""
    data = bytes(range(256)) * (40 if most == 1 else 8_000)
    held: list[bytes] = []

    def answer(kind: int, number: int, payload: Payload) -> list[bytes]:
        if kind == Type.OPEN:
            return [handle(number)]
        if kind != Type.READ:
            return [status(number, OK)]
        payload.string()
        start, size = payload.long(), payload.number()
        piece = sftp_packets.string(data[start : start + min(size, most)])
        held.append(framed(Type.DATA, struct.pack(">I", number) + piece))
        if len(held) < 3 and start + size < len(data):
            return []
        now, held[:] = held[::-1], []
        return now

    download = Download(Session("peer", Peer(answer)), b"/x", 0, len(data))
    buffer, found = bytearray(70_000), b""
    while len(found) < len(data):
        found += buffer[: download.readinto(buffer)]
    assert found == data
    download.close()


def test_a_wire_that_ends_in_the_middle_is_broken() -> None:
    session = Session("peer", Peer(lambda _kind, number, _payload: [status(number, OK)[:-3]]))
    with pytest.raises(Broken, match="closed"):
        session.remove(b"/x")


def test_a_packet_of_any_other_size_is_not_waited_for() -> None:
    session = Session("peer", Peer(lambda *_: [struct.pack(">IB", 1 << 31, Type.STATUS)]))
    with pytest.raises(Broken, match="bytes"):
        session.remove(b"/x")


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
