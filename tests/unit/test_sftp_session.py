"""SFTP's packets, and a session between two ends of a wire: no server, so that it can answer as none would."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from warcmill.errors import Unavailable
from warcmill.stores import sftp_packets
from warcmill.stores.remote import Broken
from warcmill.stores.sftp_packets import Attributes, Payload, Type
from warcmill.stores.sftp_session import PIECE, UNDER_WAY, Download, Session, Status, Upload

OK, FAILURE = 0, 4


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


class Disk:
    """A server's disk as its answers show it; `no`: requests that it refuses, by type."""

    def __init__(self, *no: Type) -> None:
        self.no, self.size = set(no), 0
        self.peer = Peer(self.answer)

    def answer(self, kind: int, number: int, payload: Payload) -> list[bytes]:
        if kind in self.no:
            return [status(number, FAILURE)]
        if kind == Type.OPEN:
            return [handle(number)]
        if kind == Type.FSTAT:
            return [framed(Type.ATTRS, struct.pack(">IIQ", number, 1, self.size))]
        if kind == Type.WRITE:
            payload.string()
            self.size = payload.long() + len(payload.view())
        return [status(number, OK)]


def upload(session: Session, pieces: int) -> int:
    one = Upload(session, b"/x")
    one.write(bytes(pieces * PIECE))
    return one.finish()


def test_what_ends_a_file_is_asked_at_once_and_answered_one_by_one() -> None:
    disk = Disk()
    assert upload(Session("peer", disk.peer), 2) == 2 * PIECE
    assert disk.peer.asked == [Type.OPEN, Type.WRITE, Type.WRITE, Type.EXTENDED, Type.FSTAT, Type.CLOSE]


@pytest.mark.parametrize("refused", [Type.WRITE, Type.EXTENDED, Type.FSTAT, Type.CLOSE])
@pytest.mark.parametrize("pieces", [5, 2 * UNDER_WAY])
def test_a_refusal_is_told_however_late_and_the_session_goes_on(refused: Type, pieces: int) -> None:
    """A disk that fills up, also with the last bytes. The file is closed all the same, and no answer is left over."""
    disk = Disk(refused)
    session = Session("peer", disk.peer)
    for _ in range(3):
        with pytest.raises(Status, match="said"):
            upload(session, pieces)
        assert disk.peer.asked[-1] == Type.CLOSE
    disk.no = set()
    assert upload(session, pieces) == pieces * PIECE
    assert not session._answers
    assert not session._abandoned


def test_writes_are_waited_for_when_too_many_are_under_way() -> None:
    one = Upload(Session("peer", Disk().peer), b"/x")
    one.write(bytes(PIECE * (UNDER_WAY + 10)))
    assert len(one._sent) == UNDER_WAY


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
