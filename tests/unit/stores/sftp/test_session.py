"""SFTP's packets, a session between two ends of a wire, and the store on it: no server, so that it can answer as none
would."""

from __future__ import annotations

import hashlib
import io
import struct
import threading
from collections.abc import Callable

import paramiko.common
import pytest

from warcmill.errors import Unavailable
from warcmill.stores.remote_files import Broken, Budget
from warcmill.stores.sftp import packets
from warcmill.stores.sftp.packets import Attributes, PacketFields, Type
from warcmill.stores.sftp.pool import SessionPool
from warcmill.stores.sftp.session import (
    FSYNC,
    PIECE,
    SMALLEST,
    TOGETHER,
    UNDER_WAY,
    Download,
    SftpRefusal,
    SftpSession,
    Upload,
)
from warcmill.stores.sftp.store import SftpStore

OK, NO_SUCH_FILE, FAILURE = 0, 2, 4
DATA = b"0123456789" * 1_000


def test_attributes_are_read_whichever_are_there() -> None:
    everything = struct.pack(">IQIIIII", 15, 5, 1, 2, 0o100644, 3, 4)
    assert PacketFields(everything).attributes() == Attributes(5, 0o100644, 4)
    assert PacketFields(b"\0\0\0\0").attributes() == Attributes(0, 0, 0)
    extended = struct.pack(">II", 1 << 31, 1) + packets.string(b"a") + packets.string(b"b") + b"rest"
    payload = PacketFields(extended)
    assert payload.attributes() == Attributes(0, 0, 0)


@pytest.mark.parametrize("data", [b"", b"\0\0\0", b"\0\0\0\5abcd", b"\xff\xff\xff\xff"])
def test_a_packet_that_is_shorter_than_it_claims_is_reported(data: bytes) -> None:
    with pytest.raises(Unavailable, match="shorter than its stated length"):
        PacketFields(data).string()


class Peer:
    """The other end of a wire: reads requests, and has `answer` make the answers, as bytes."""

    def __init__(self, answer: Callable[[int, int, PacketFields], list[bytes]]) -> None:
        self._answer, self._in, self._out = answer, b"", b""
        self.asked: list[int] = []

    def sendall(self, data: bytes, /) -> None:
        self._in += data
        while len(self._in) >= 4 and len(self._in) >= 4 + (size := int.from_bytes(self._in[:4])):
            packet, self._in = self._in[4 : 4 + size], self._in[4 + size :]
            if packet[0] == Type.INIT:
                self._out += framed(Type.VERSION, struct.pack(">I", 3) + packets.string(b"x") * 2)
                continue
            payload = PacketFields(packet[1:])
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
    return framed(Type.STATUS, struct.pack(">II", number, code) + packets.string(b"said") * 2)


def handle(number: int) -> bytes:
    return framed(Type.HANDLE, struct.pack(">I", number) + packets.string(b"h"))


class Disk:
    """A server's disk as its answers show it; `no`: requests that it refuses, by type."""

    def __init__(self, *no: Type) -> None:
        self.no, self.size = set(no), 0
        self.peer = Peer(self.answer)

    def answer(self, kind: int, number: int, payload: PacketFields) -> list[bytes]:
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


def upload(session: SftpSession, pieces: int) -> int:
    one = Upload(session, b"/x")
    one.write(bytes(pieces * PIECE))
    return one.finish()


def test_what_ends_a_file_is_asked_at_once_and_answered_one_by_one() -> None:
    disk = Disk()
    assert upload(SftpSession("peer", disk.peer), 2) == 2 * PIECE
    assert disk.peer.asked == [Type.OPEN, Type.WRITE, Type.WRITE, Type.EXTENDED, Type.FSTAT, Type.CLOSE]


@pytest.mark.parametrize("refused", [Type.WRITE, Type.EXTENDED, Type.FSTAT, Type.CLOSE])
@pytest.mark.parametrize("pieces", [5, 2 * UNDER_WAY])
def test_a_refusal_is_reported_however_late_and_the_session_continues(refused: Type, pieces: int) -> None:
    """A disk that fills up, also with the last bytes. The file is closed all the same, and no answer is left over."""
    disk = Disk(refused)
    session = SftpSession("peer", disk.peer)
    for _ in range(3):
        with pytest.raises(SftpRefusal, match="said"):
            upload(session, pieces)
        assert disk.peer.asked[-1] == Type.CLOSE
    disk.no = set()
    assert upload(session, pieces) == pieces * PIECE
    assert not session._answers
    assert not session._abandoned


def test_small_requests_are_sent_together_and_large_ones_at_once() -> None:
    sent: list[int] = []

    class Counting(Peer):
        def sendall(self, data: bytes, /) -> None:
            sent.append(len(data))
            super().sendall(data)

    disk = Disk()
    session = SftpSession("peer", Counting(disk.answer))
    sent.clear()
    upload(session, 2)
    small, first, second, end = sent
    assert small < TOGETHER < PIECE < first <= second
    assert end < TOGETHER


def test_what_is_of_no_interest_is_sent_all_the_same() -> None:
    """A download that is given up leaves no open file, though nobody waits for an answer any more."""
    disk = Disk()
    Download(SftpSession("peer", disk.peer), b"/x", 0, 10).close()
    assert disk.peer.asked == [Type.OPEN, Type.CLOSE]


def test_writes_are_waited_for_when_too_many_are_under_way() -> None:
    one = Upload(SftpSession("peer", Disk().peer), b"/x")
    one.write(bytes(PIECE * (UNDER_WAY + 10)))
    assert len(one._sent) == UNDER_WAY


class Reading(Peer):
    """A server of one file. It answers what has come together in reverse, and a READ with `most` bytes, the very first
    with `first`."""

    def __init__(self, data: bytes, most: int, first: int = PIECE) -> None:
        super().__init__(self.answered)
        self._data, self._most, self._first = data, most, first
        self._held, self.given = list[bytes](), list[int]()

    def answered(self, kind: int, number: int, payload: PacketFields) -> list[bytes]:
        if kind == Type.READ:
            payload.string()
            start, size = payload.long(), payload.number()
            piece = self._data[start : start + min(size, self._most, PIECE if self.given else self._first)]
            self.given.append(len(piece))
            self._held.append(framed(Type.DATA, struct.pack(">I", number) + packets.string(piece)))
        else:
            self._held.append(handle(number) if kind == Type.OPEN else status(number, OK))
        return []

    def recv(self, size: int, /) -> bytes:
        if not self._out:
            self._out, self._held = b"".join(self._held[::-1]), []
        return super().recv(size)


@pytest.mark.parametrize("most", [PIECE, 100_000, 1])
def test_answers_that_are_short_or_in_disorder_make_the_same_file(most: int) -> None:
    """A server may answer fewer bytes than were asked for, and in any order."""
    data = bytes(range(256)) * (40 if most == 1 else 8_000)
    peer = Reading(data, most)
    download = Download(SftpSession("peer", peer), b"/x", 0, len(data))
    buffer, found = bytearray(70_000), b""
    while len(found) < len(data):
        found += buffer[: download.readinto(buffer)]
    assert found == data
    download.close()


@pytest.mark.parametrize("most", [1 << 16, 100])
def test_a_server_that_gives_less_is_asked_for_less_and_for_no_byte_twice(most: int) -> None:
    """OpenSSH of 2018 gives 64 KiB. What was asked for beyond is not thrown away and asked for again."""
    data = bytes(40 * PIECE)
    peer = Reading(data, max(most, 1 << 15), first=most)
    session = SftpSession("peer", peer)
    for _ in range(2):
        download = Download(session, b"/x", 0, len(data))
        left = len(data)
        while left:
            left -= download.readinto(bytearray(PIECE))
    assert sum(peer.given) == 2 * len(data)
    assert session.piece == max(most, SMALLEST)
    assert set(peer.given[-UNDER_WAY:-1]) == {session.piece}


def test_all_that_has_arrived_is_taken_at_once() -> None:
    """Of a part of it, paramiko would move the rest each time, for every four bytes of a length."""
    taken: list[int] = []

    class Counting(Reading):
        def recv(self, size: int, /) -> bytes:
            taken.append(size)
            return super().recv(size)

    download = Download(SftpSession("peer", Counting(DATA, PIECE)), b"/x", 0, len(DATA))
    assert download.readinto(bytearray(PIECE)) == len(DATA)
    assert min(taken) >= paramiko.common.DEFAULT_WINDOW_SIZE


def test_an_answer_that_nobody_asked_for_or_that_comes_again_is_refused() -> None:
    """Kept, they would fill our memory."""
    for answers in (lambda number: [status(number + 1, OK)], lambda number: [status(number, OK)] * 2):
        session = SftpSession("peer", Peer(lambda _kind, number, _payload, answers=answers: answers(number)))
        with pytest.raises(Broken, match="not under way"):
            session.remove(b"/x"), session.remove(b"/y")
        assert not session._answers


def test_a_wire_that_ends_in_the_middle_is_broken() -> None:
    session = SftpSession("peer", Peer(lambda _kind, number, _payload: [status(number, OK)[:-3]]))
    with pytest.raises(Broken, match="closed"):
        session.remove(b"/x")


def test_a_packet_of_any_other_size_is_not_waited_for() -> None:
    session = SftpSession("peer", Peer(lambda *_: [struct.pack(">IB", 1 << 31, Type.STATUS)]))
    with pytest.raises(Broken, match="bytes"):
        session.remove(b"/x")


class Server(Disk):
    """A disk whose files are only names; it notes what is asked, with the names."""

    def __init__(self, *no: Type, there: tuple[str, ...] = ()) -> None:
        super().__init__(*no)
        self.there, self.asked = set(there), list[str]()
        self.lock = threading.Lock()

    def answer(self, kind: int, number: int, payload: PacketFields) -> list[bytes]:
        with self.lock:
            return self._answer(Type(kind), number, payload)

    def _answer(self, kind: Type, number: int, payload: PacketFields) -> list[bytes]:
        name = payload.string().decode()
        self.asked.append(f"{kind.name} {name}")
        if kind in self.no:
            return [status(number, FAILURE)]
        if kind == Type.LSTAT:
            known = name in self.there
            return [framed(Type.ATTRS, struct.pack(">IIQ", number, 1, 5)) if known else status(number, NO_SUCH_FILE)]
        if kind == Type.OPEN:
            self.there.add(name)
            return [handle(number)]
        if kind == Type.FSTAT:
            return [framed(Type.ATTRS, struct.pack(">IIQ", number, 1, len(DATA)))]
        return [status(number, OK)]


def store(server: Server) -> SftpStore:
    def session() -> SftpSession:
        found = SftpSession("server", server.peer)
        found.extensions = frozenset({FSYNC})
        return found

    return SftpStore("store", SessionPool("server", session, Budget(0.1)), "/base", new=True)


def commit(one: SftpStore, path: str = "a") -> bool:
    return one.commit_new(path, io.BytesIO(DATA), len(DATA), hashlib.sha512(DATA).hexdigest())


@pytest.mark.parametrize("refused", [Type.WRITE, Type.RENAME])
def test_what_is_there_already_needs_no_room_on_a_full_disk(refused: Type) -> None:
    """A small file is sent rather than asked for first; when that is refused, what is there is as good."""
    with pytest.raises(SftpRefusal):
        commit(store(Server(refused)))
    assert commit(store(Server(refused, there=("/base/a",)))) is False


def test_a_file_is_synced_before_its_rename_and_its_folder_after() -> None:
    server = Server()
    assert commit(store(server), "folder/a")
    kinds = [asked.partition(" ")[0] for asked in server.asked]
    assert kinds == ["OPEN", "WRITE", "EXTENDED", "FSTAT", "CLOSE", "RENAME", "OPEN", "EXTENDED", "FSTAT", "CLOSE"]
    assert server.asked[6] == "OPEN /base/folder"


def test_a_large_file_that_is_there_is_not_sent() -> None:
    server = Server(there=("/base/a",))
    large = io.BytesIO(bytes(2 << 20))
    assert not store(server).commit_new("a", large, 2 << 20, "")
    assert large.tell() == 0


class LosesAnswers(Server):
    """A server that drops the connection at its first rename: after it has done it, or before."""

    def __init__(self, *, done: bool) -> None:
        super().__init__()
        self._done, self._lost = done, False

    def _answer(self, kind: Type, number: int, payload: PacketFields) -> list[bytes]:
        if kind == Type.RENAME and not self._lost:
            self._lost = True
            old, new = payload.string().decode(), payload.string().decode()
            if self._done:
                self.there = self.there - {old} | {new}
            return []
        return super()._answer(kind, number, payload)


@pytest.mark.parametrize("done", [True, False], ids=["it happened", "it did not"])
def test_a_function_is_asked_once_although_the_answer_to_the_rename_was_lost(done: bool) -> None:
    asked: list[str] = []

    def accept(sha512: str) -> bool:
        asked.append(sha512)
        return True

    server = LosesAnswers(done=done)
    assert store(server).commit_new("a", io.BytesIO(DATA), len(DATA), accept)
    assert asked == [hashlib.sha512(DATA).hexdigest()]
    renames = [name for name in server.asked if name.startswith("RENAME")]
    assert len(renames) == (0 if done else 1)
