"""A session with a server that a real one cannot be made to be: its disk is full for a while. It answers late, too."""

from __future__ import annotations

import struct
from collections import deque

import pytest

from warcmill.stores import sftp_packets as packets
from warcmill.stores.sftp_packets import Code, Type
from warcmill.stores.sftp_session import PIECE, UNDER_WAY, Session, Status, Upload

OK, FULL = packets.numbers(Code.OK), packets.numbers(Code.FAILURE) + packets.string(b"No space left on device")
DATA = bytes(PIECE + 1)
HEAD = 31  # bytes of a WRITE before its data, with this handle


class FakeServer:
    """Takes requests, and answers them in their order once it is asked for an answer. `no`: types that it refuses."""

    def __init__(self) -> None:
        self.no: set[Type] = set()
        self.asked: list[Type] = []
        self._kept = 0
        self._answers = deque([self._packet(Type.VERSION, packets.numbers(3))])
        self._left = b""

    def sendall(self, data: bytes, /) -> None:
        (kind,) = struct.unpack_from(">B", data, 4)
        if kind == Type.INIT:
            return
        self.asked.append(Type(kind))
        self._answers.append(self._packet(*self._answer(Type(kind), data[5:9], data)))

    def recv(self, size: int, /) -> bytes:
        self._left = self._left or self._answers.popleft()
        part, self._left = self._left[:size], self._left[size:]
        return part

    def close(self) -> None:
        """Nothing is open."""

    def _answer(self, kind: Type, number: bytes, data: bytes) -> tuple[Type, bytes]:
        if kind in self.no:
            return Type.STATUS, number + FULL
        if kind == Type.OPEN:
            return Type.HANDLE, number + packets.string(b"handle")
        if kind == Type.FSTAT:
            return Type.ATTRS, number + packets.numbers(1) + packets.long(self._kept)
        self._kept += len(data) - HEAD if kind == Type.WRITE else 0
        return Type.STATUS, number + OK

    @staticmethod
    def _packet(kind: Type, body: bytes) -> bytes:
        return struct.pack(">IB", len(body) + 1, kind) + body


def upload(session: Session, data: bytes = DATA) -> int:
    one = Upload(session, b"/a")
    one.write(data)
    return one.finish()


def test_a_file_is_written_synced_looked_at_and_closed() -> None:
    server = FakeServer()
    assert upload(Session("fake", server)) == len(DATA)
    assert server.asked == [Type.OPEN, Type.WRITE, Type.WRITE, Type.EXTENDED, Type.FSTAT, Type.CLOSE]


@pytest.mark.parametrize("refused", [Type.WRITE, Type.EXTENDED, Type.FSTAT, Type.CLOSE])
def test_a_refusal_on_the_way_is_told_and_the_session_goes_on(refused: Type) -> None:
    server = FakeServer()
    session = Session("fake", server)
    server.no = {refused}
    for _ in range(3):
        with pytest.raises(Status, match="No space left"):
            upload(session)
    server.no, server._kept = set(), 0
    assert upload(session) == len(DATA)
    assert not session._answers
    assert not session._abandoned


def test_a_refusal_while_more_is_sent_closes_the_file() -> None:
    server = FakeServer()
    session = Session("fake", server)
    server.no = {Type.WRITE}
    with pytest.raises(Status, match="No space left"):
        upload(session, bytes(2 * UNDER_WAY * PIECE))
    assert server.asked == [Type.OPEN, *[Type.WRITE] * (UNDER_WAY + 1), Type.CLOSE]
    server.no = set()
    assert upload(session) == len(DATA)
    assert not session._abandoned
