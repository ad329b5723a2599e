"""One SFTP session: requests in numbers, several under way at once, every answer looked at."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from warcmill.errors import Unavailable
from warcmill.stores import sftp_packets as packets
from warcmill.stores.remote import Broken
from warcmill.stores.sftp_packets import Attributes, Code, Payload, Type

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

FSYNC = b"fsync@openssh.com"
PIECE = 255_000  # bytes a READ or WRITE; OpenSSH takes 255 KiB ("limits@openssh.com")
UNDER_WAY = 16  # requests not yet answered, 4 MB
TOGETHER = 4096  # bytes: smaller requests wait for each other, as each that is sent alone costs both sides a packet


class Wire(Protocol):
    """What is asked of a paramiko Channel."""

    def sendall(self, data: bytes, /) -> None: ...

    def recv(self, size: int, /) -> bytes: ...

    def close(self) -> None: ...


class Status(Unavailable):
    """The server said no; `code` is all that it says reliably."""

    def __init__(self, what: str, code: int, message: str) -> None:
        self.code = code
        super().__init__(what, f"the SFTP server says: {message or code}")


class Session:
    """Paths and handles are bytes. For one thread at a time. After Broken it is good for nothing."""

    def __init__(self, name: str, wire: Wire) -> None:
        self._name, self._wire = name, wire
        self._number = 0
        self._unsent, self._received = list[bytes](), bytearray()
        self._answers: dict[int, tuple[int, Payload]] = {}
        self._abandoned: set[int] = set()
        self._put(packets.init())
        kind, payload = self._receive()
        if kind != Type.VERSION or payload.number() < packets.VERSION:
            raise Unavailable(name, "it does not speak version 3 of SFTP")
        self.extensions = frozenset(list(payload.rest())[::2])

    def close(self) -> None:
        """Hang up."""
        self._wire.close()

    def send(self, kind: Type, *fields: bytes) -> int:
        """Have a request sent, small ones together, at the latest when an answer is waited for; its number."""
        self._number = (self._number + 1) & 0xFFFFFFFF
        self._put(packets.packet(kind, self._number, *fields))
        return self._number

    def answer(self, number: int, expected: Type) -> Payload:
        """The answer to a request; Status when the server says no."""
        while number not in self._answers:
            kind, payload = self._receive()
            answered = payload.number()
            if answered in self._abandoned:
                self._abandoned.remove(answered)
            else:
                self._answers[answered] = kind, payload
        kind, payload = self._answers.pop(number)
        if kind == Type.STATUS:
            code = payload.number()
            if code != Code.OK:
                raise Status(self._name, code, payload.string().decode("utf-8", "replace"))
        if kind != expected:
            raise Broken(self._name, f"the SFTP server answered with a packet of type {kind}, not {expected}")
        return payload

    def abandon(self, numbers: list[int]) -> None:
        """Their answers are of no interest any more."""
        self._transmit()
        self._abandoned |= {number for number in numbers if self._answers.pop(number, None) is None}

    def call(self, expected: Type, kind: Type, *fields: bytes) -> Payload:
        """Send a request and wait for its answer."""
        return self.answer(self.send(kind, *fields), expected)

    def lstat(self, path: bytes) -> Attributes | None:
        """What is at a path, links not followed; None when the server says that nothing is."""
        try:
            return self.call(Type.ATTRS, Type.LSTAT, packets.string(path)).attributes()
        except Status as error:
            if error.code != Code.NO_SUCH_FILE:
                raise
            return None

    def entries(self, folder: bytes) -> Iterator[tuple[bytes, Attributes]]:
        """The entries of a folder in no order; Status when there is none."""
        handle = self.call(Type.HANDLE, Type.OPENDIR, packets.string(folder)).string()
        try:
            while True:
                yield from self.call(Type.NAME, Type.READDIR, packets.string(handle)).names()
        except Status as error:
            if error.code != Code.EOF:
                raise
        self.close_handle(handle)

    def open(self, path: bytes, flags: int) -> bytes:
        """A handle."""
        return self.call(Type.HANDLE, Type.OPEN, *packets.opening(path, flags)).string()

    def close_handle(self, handle: bytes) -> None:
        """Close a handle; Status when the server could not write what it had taken."""
        self.call(Type.STATUS, Type.CLOSE, packets.string(handle))

    def end(self, handle: bytes, before: Iterable[int] = ()) -> int:
        """fsync(2), fstat(2) and close(2) a handle, once the requests `before` are done; the length the server tells.

        All are sent at once: a server takes the requests for one file in their order (section 6.1).
        """
        field = packets.string(handle)
        asked = (Type.EXTENDED, packets.string(FSYNC), field), (Type.FSTAT, field), (Type.CLOSE, field)
        left = deque([*before, *(self.send(*one) for one in asked)])
        try:
            while len(left) > 2:
                self.answer(left.popleft(), Type.STATUS)
            size = self.answer(left.popleft(), Type.ATTRS).attributes().size
            self.answer(left.popleft(), Type.STATUS)
        except Status:
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

    def _receive(self) -> tuple[int, Payload]:
        self._transmit()
        size = int.from_bytes(self._exactly(4))
        if not 1 <= size <= packets.LARGEST:
            raise Broken(self._name, f"the SFTP server sent a packet of {size} bytes")
        data = self._exactly(size)
        return data[0], Payload(data[1:])

    def _exactly(self, size: int) -> bytes:
        """So many bytes; what arrives with them waits. Large answers are joined once: each copy costs."""
        parts = [bytes(self._received[:size])]
        del self._received[:size]
        missing = size - len(parts[0])
        while missing > 0:
            part = self._more(max(missing, TOGETHER))
            parts.append(part[:missing])
            self._received += part[missing:]
            missing -= len(part)
        return b"".join(parts)

    def _more(self, most: int) -> bytes:
        """What has arrived, which may be several answers."""
        try:
            found = self._wire.recv(most)
        except TimeoutError as error:
            raise Broken(self._name, "it did not answer in time") from error
        except (OSError, EOFError) as error:
            raise Broken(self._name, f"the connection broke: {str(error) or type(error).__name__}") from error
        if not found:
            raise Broken(self._name, "the connection was closed")
        return found


class Download:
    """A file from `start` to `size`, with requests ahead of what is read."""

    def __init__(self, session: Session, path: bytes, start: int, size: int) -> None:
        self._session, self._size = session, size
        self._handle = packets.string(session.open(path, packets.READ))
        self._next = start
        self._asked: deque[tuple[int, int]] = deque()
        self._got = memoryview(b"")

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """At least a byte."""
        if not self._got:
            self._got = self._piece()
        target = memoryview(buffer).cast("B")
        size = min(len(target), len(self._got))
        target[:size] = self._got[:size]
        self._got = self._got[size:]
        return size

    def close(self) -> None:
        """Close the handle; what is still under way is not waited for."""
        self._session.abandon([number for number, _ in self._asked])
        self._asked.clear()
        with suppress(Broken):
            self._session.abandon([self._session.send(Type.CLOSE, self._handle)])

    def _piece(self) -> memoryview:
        while len(self._asked) < UNDER_WAY and self._next < self._size:
            length = min(PIECE, self._size - self._next)
            fields = (self._handle, packets.long(self._next), packets.numbers(length))
            self._asked.append((self._session.send(Type.READ, *fields), length))
            self._next += length
        number, length = self._asked.popleft()
        data = self._session.answer(number, Type.DATA).view()
        if not 0 < len(data) <= length:
            raise Broken("the SFTP server", f"answered {len(data)} bytes to a request for {length}")
        if len(data) < length:  # it may; ask anew from there
            self._session.abandon([number for number, _ in self._asked])
            self._next -= length - len(data) + sum(size for _, size in self._asked)
            self._asked.clear()
        return data


class Upload:
    """A file being written from its beginning; a write that failed is told by the next one, or by `finish`."""

    def __init__(self, session: Session, path: bytes) -> None:
        self._session, self._at = session, 0
        self.handle = session.open(path, packets.WRITE_NEW)
        self._sent: deque[int] = deque()

    def write(self, data: bytes) -> None:
        """Send, and wait only when too much is under way."""
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
        except Status:
            self._session.abandon([*self._sent, self._session.send(Type.CLOSE, packets.string(self.handle))])
            raise

    def finish(self) -> int:
        """Wait until all is written, synced and closed; the length that the file has at the server."""
        return self._session.end(self.handle, self._sent)
