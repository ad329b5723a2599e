"""One SFTP session: numbered requests, several at once, every answer checked."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from warcmill.errors import Unavailable
from warcmill.stores.remote_files import Broken
from warcmill.stores.sftp import packets
from warcmill.stores.sftp.packets import Attributes, Code, PacketFields, Type

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

FSYNC = b"fsync@openssh.com"
POSIX_RENAME = b"posix-rename@openssh.com"
PIECE = 255_000  # bytes per READ or WRITE; OpenSSH accepts 255 KiB ("limits@openssh.com")
SMALLEST = 1 << 15  # bytes that every server returns for a READ (section 3)
UNDER_WAY = 16  # requests without an answer yet, 4 MB
TOGETHER = 4096  # bytes: smaller requests are sent together, as each one alone costs both sides a packet
ARRIVED = 4 << 20  # bytes: more than paramiko's window of 2 MiB; taking only a part makes it copy the rest each time


class SessionWire(Protocol):
    """The part of a paramiko Channel that a session uses."""

    def sendall(self, data: bytes, /) -> None: ...

    def recv(self, size: int, /) -> bytes: ...

    def close(self) -> None: ...


class SftpRefusal(Unavailable):
    """The server refused a request; only `code` is reliable."""

    def __init__(self, what: str, code: int, message: str) -> None:
        self.code = code
        super().__init__(what, f"the SFTP server answered: {message or code}")


class SftpSession:
    """A session for one thread at a time; unusable after Broken. Paths and handles are bytes.

    `piece`: the bytes to request by a READ, as many as the server was seen to return.
    """

    def __init__(self, name: str, wire: SessionWire) -> None:
        self._name, self._wire = name, wire
        self._number = 0
        self.piece = PIECE
        self._unsent, self._received = list[bytes](), memoryview(b"")
        self._awaited: set[int] = set()
        self._answers: dict[int, tuple[int, PacketFields]] = {}
        self._abandoned: set[int] = set()
        self._put(packets.init())
        kind, payload = self._receive()
        if kind != Type.VERSION or payload.number() < packets.VERSION:
            raise Unavailable(name, "it does not speak version 3 of SFTP")
        self.extensions = frozenset(list(payload.rest())[::2])

    def close(self) -> None:
        """Close the connection."""
        self._wire.close()

    def send(self, kind: Type, *fields: bytes) -> int:
        """Queue a request and return its number. It is sent, small ones together, before any answer is awaited."""
        self._number = (self._number + 1) & 0xFFFFFFFF
        self._awaited.add(self._number)
        self._put(packets.packet(kind, self._number, *fields))
        return self._number

    def answer(self, number: int, expected: Type) -> PacketFields:
        """Return the answer to a request; SftpRefusal when the server refuses it."""
        while number not in self._answers:
            self._sort(*self._receive())
        kind, payload = self._answers.pop(number)
        if kind == Type.STATUS:
            code = payload.number()
            if code != Code.OK:
                raise SftpRefusal(self._name, code, payload.string().decode("utf-8", "replace"))
        if kind != expected:
            raise Broken(self._name, f"the SFTP server answered with a packet of type {kind}, not {expected}")
        return payload

    def abandon(self, numbers: list[int]) -> None:
        """Ignore the answers to these requests."""
        self._transmit()
        for number in numbers:
            self._answers.pop(number, None)
        unanswered = self._awaited.intersection(numbers)
        self._awaited -= unanswered
        self._abandoned |= unanswered

    def call(self, expected: Type, kind: Type, *fields: bytes) -> PacketFields:
        """Send a request and wait for its answer."""
        return self.answer(self.send(kind, *fields), expected)

    def lstat(self, path: bytes) -> Attributes | None:
        """Return the attributes of a path, links not followed; None when nothing is there."""
        try:
            return self.call(Type.ATTRS, Type.LSTAT, packets.string(path)).attributes()
        except SftpRefusal as error:
            if error.code != Code.NO_SUCH_FILE:
                raise
            return None

    def entries(self, folder: bytes) -> Iterator[tuple[bytes, Attributes]]:
        """Yield the entries of a folder, unsorted; SftpRefusal when there is no such folder."""
        handle = self.call(Type.HANDLE, Type.OPENDIR, packets.string(folder)).string()
        try:
            while True:
                yield from self.call(Type.NAME, Type.READDIR, packets.string(handle)).names()
        except SftpRefusal as error:
            if error.code != Code.EOF:
                raise
        self.close_handle(handle)

    def open(self, path: bytes, flags: int) -> bytes:
        """Open a file; return its handle."""
        return self.call(Type.HANDLE, Type.OPEN, *packets.opening(path, flags)).string()

    def close_handle(self, handle: bytes) -> None:
        """Close a handle; SftpRefusal when the server could not write the data it had accepted."""
        self.call(Type.STATUS, Type.CLOSE, packets.string(handle))

    def end(self, handle: bytes, before: Iterable[int] = ()) -> int:
        """Do fsync(2), fstat(2) and close(2) on a handle after the requests `before`; return the length at the server.

        All are sent at once: a server handles the requests for one file in their order (section 6.1).
        """
        field = packets.string(handle)
        requests = (Type.EXTENDED, packets.string(FSYNC), field), (Type.FSTAT, field), (Type.CLOSE, field)
        left = deque([*before, *(self.send(*request) for request in requests)])
        try:
            while len(left) > 2:
                self.answer(left.popleft(), Type.STATUS)
            size = self.answer(left.popleft(), Type.ATTRS).attributes().size
            self.answer(left.popleft(), Type.STATUS)
        except SftpRefusal:
            self.abandon([*left])
            raise
        return size

    def mkdir(self, path: bytes) -> None:
        self.call(Type.STATUS, Type.MKDIR, *packets.making(path))

    def remove(self, path: bytes) -> None:
        self.call(Type.STATUS, Type.REMOVE, packets.string(path))

    def rename(self, path: bytes, to: bytes) -> None:
        """Plain RENAME: OpenSSH links and unlinks, so it never replaces. `posix-rename@openssh.com` would."""
        self.call(Type.STATUS, Type.RENAME, packets.string(path), packets.string(to))

    def replace(self, path: bytes, to: bytes) -> None:
        """rename(2): one step, so a killed server never leaves both names. It replaces what has the name `to`."""
        self.call(Type.STATUS, Type.EXTENDED, packets.string(POSIX_RENAME), packets.string(path), packets.string(to))

    def _sort(self, kind: int, payload: PacketFields) -> None:
        """Keep an answer until it is needed. Refuse one without a request: a server could fill our memory."""
        number = payload.number()
        if number in self._awaited:
            self._awaited.remove(number)
            self._answers[number] = kind, payload
        elif number in self._abandoned:
            self._abandoned.remove(number)
        else:
            raise Broken(self._name, f"the SFTP server answered request {number}, which is not under way")

    def _put(self, data: bytes) -> None:
        self._unsent.append(data)
        if len(data) > TOGETHER or len(self._unsent) > UNDER_WAY:
            self._transmit()

    def _transmit(self) -> None:
        if not self._unsent:
            return
        data, self._unsent = b"".join(self._unsent), []
        try:
            self._wire.sendall(data)
        except (OSError, EOFError) as error:
            raise Broken(self._name, f"the connection broke: {str(error) or type(error).__name__}") from error

    def _receive(self) -> tuple[int, PacketFields]:
        self._transmit()
        size = int.from_bytes(self._exactly(4))
        if not 1 <= size <= packets.LARGEST:
            raise Broken(self._name, f"the SFTP server sent a packet of {size} bytes")
        data = self._exactly(size)
        return data[0], PacketFields(data[1:])

    def _exactly(self, size: int) -> memoryview:
        """Receive so many bytes; keep the rest. Only bytes that arrive in parts are copied, as copies are slow."""
        parts = [self._take(size)]
        missing = size - len(parts[0])
        while missing:
            self._received = memoryview(self._more())
            parts.append(self._take(missing))
            missing -= len(parts[-1])
        return parts[0] if len(parts) == 1 else memoryview(b"".join(parts))

    def _take(self, most: int) -> memoryview:
        taken, self._received = self._received[:most], self._received[most:]
        return taken

    def _more(self) -> bytes:
        """Receive whatever has arrived, which may be several answers."""
        try:
            data = self._wire.recv(ARRIVED)
        except TimeoutError as error:
            raise Broken(self._name, "it did not answer in time") from error
        except (OSError, EOFError) as error:
            raise Broken(self._name, f"the connection broke: {str(error) or type(error).__name__}") from error
        if not data:
            raise Broken(self._name, "the connection was closed")
        return data


class Download:
    """A file from byte `start` to `size`, requested ahead of the reads."""

    def __init__(self, session: SftpSession, path: bytes, start: int, size: int) -> None:
        self._session, self._size = session, size
        self._handle = packets.string(session.open(path, packets.READ))
        self._next = start
        self._asked: deque[tuple[int, int, int]] = deque()  # number, start, length
        self._got = memoryview(b"")

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read at least a byte."""
        if not self._got:
            self._got = self._piece()
        target = memoryview(buffer).cast("B")
        size = min(len(target), len(self._got))
        target[:size] = self._got[:size]
        self._got = self._got[size:]
        return size

    def close(self) -> None:
        """Close the handle, without waiting for answers."""
        self._session.abandon([number for number, _, _ in self._asked])
        self._asked.clear()
        with suppress(Broken):
            self._session.abandon([self._session.send(Type.CLOSE, self._handle)])

    def _piece(self) -> memoryview:
        while len(self._asked) < UNDER_WAY and self._next < self._size:
            length = min(self._session.piece, self._size - self._next)
            self._asked.append(self._ask(self._next, length))
            self._next += length
        number, start, length = self._asked.popleft()
        data = self._session.answer(number, Type.DATA).view()
        if not 0 < len(data) <= length:
            raise Broken("the SFTP server", f"answered {len(data)} bytes to a request for {length}")
        if len(data) < length:  # allowed (section 6.4): OpenSSH of 2018 returns 64 KiB at most
            self._session.piece = min(self._session.piece, max(len(data), SMALLEST))
            self._asked.appendleft(self._ask(start + len(data), length - len(data)))
        return data

    def _ask(self, start: int, length: int) -> tuple[int, int, int]:
        fields = self._handle, packets.long(start), packets.numbers(length)
        return self._session.send(Type.READ, *fields), start, length


class Upload:
    """A new file being written. The error of a failed write is raised by a later `write`, or by `finish`."""

    def __init__(self, session: SftpSession, path: bytes) -> None:
        self._session, self._at = session, 0
        self.handle = session.open(path, packets.WRITE_NEW)
        self._sent: deque[int] = deque()

    def write(self, data: bytes) -> None:
        """Send data; wait only when too many requests are unanswered."""
        view = memoryview(data)
        for start in range(0, len(view), PIECE):
            piece = packets.string(view[start : start + PIECE])
            self._sent.append(
                self._session.send(Type.WRITE, packets.string(self.handle), packets.long(self._at), piece)
            )
            self._at += len(piece) - 4
            if len(self._sent) > UNDER_WAY:
                self._await_one()

    def _await_one(self) -> None:
        try:
            self._session.answer(self._sent.popleft(), Type.STATUS)
        except SftpRefusal:
            self._session.abandon([*self._sent, self._session.send(Type.CLOSE, packets.string(self.handle))])
            raise

    def finish(self) -> int:
        """Wait until all is written, synced and closed; return the file's length at the server."""
        return self._session.end(self.handle, self._sent)
