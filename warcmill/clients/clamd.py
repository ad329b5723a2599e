"""Scan streams for viruses with clamd, ClamAV's server, over a Unix socket or TCP (clamd(8), INSTREAM).

A stream is sent as `zINSTREAM`, then chunks, each after its length, then an empty chunk; one stream a connection.
clamd may answer early, with an error, and close the connection while we still send: the answer is then read all the
same.
"""

from __future__ import annotations

import re
import select
import socket
import struct
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct

from warcmill.errors import Unavailable

CONNECT = 10.0  # seconds to get a connection
SILENCE = 300.0  # seconds without a sign of clamd; its own MaxScanTime is 120 by default
CHUNK = 1 << 18  # bytes sent at once
LIMITS = "Heuristics.Limits."  # begins the name of a finding where clamd stopped at a limit of its own
TOO_LONG = "INSTREAM size limit exceeded"  # the answer to a stream over StreamMaxLength
_LONGEST = 1 << 12  # bytes of an answer
_FOUND = re.compile(r"stream: (.+) FOUND")
_TCP = re.compile(r"(?:\[(?P<six>[^]]+)\]|(?P<host>[^:/\s]+)):(?P<port>[0-9]{1,5})")
Address = str | tuple[str, int]  # a socket's path, or host and port


def parse(text: str) -> Address:
    """Parse `/path/of/socket` or `host:port`; ValueError for anything else."""
    if text.startswith("/"):
        return text
    match = _TCP.fullmatch(text)
    if not match or not 0 < int(match["port"]) < 1 << 16:
        raise ValueError(f"{text!r} is neither the absolute path of a socket nor host:port")
    return match["six"] or match["host"], int(match["port"])


class Clamd(Struct, frozen=True):
    """One clamd. `silence`: give it up after so many seconds without a sign of it."""

    address: Address
    silence: float = SILENCE

    def __str__(self) -> str:
        where = self.address if isinstance(self.address, str) else f"{self.address[0]}:{self.address[1]}"
        return f"clamd at {where}"

    def ping(self) -> None:
        """Unavailable unless it answers."""
        answer = self._ask("PING")
        if answer != "PONG":
            raise self.unavailable(f"it answered {answer!a} to PING")

    def version(self) -> str:
        """Return its engine and, after slashes, its official database and that one's date: `ClamAV 1.4.6/27000/...`.

        With signatures of the site's own alone there is no database in it.
        """
        answer = self._ask("VERSION")
        if not answer.startswith("ClamAV "):
            raise self.unavailable(f"it answered {answer!a} to VERSION")
        return answer

    def stream(self) -> ClamdStream:
        """Begin a stream."""
        return ClamdStream(self, self._connect(), b"zINSTREAM\0")

    def unavailable(self, why: str) -> Unavailable:
        """Make the error for anything that it should not do."""
        return Unavailable(str(self), why)

    def silent(self) -> Unavailable:
        """Make the error for a clamd that hangs."""
        return self.unavailable(f"it gave no sign for {self.silence:g} s")

    def _ask(self, command: str) -> str:
        stream = ClamdStream(self, self._connect(), f"z{command}\0".encode())
        stream.flush()
        return stream.answer()

    def _connect(self) -> socket.socket:
        try:
            connection = _connected(self.address)
        except (OSError, ValueError) as error:  # ValueError: a name that cannot be one
            raise self.unavailable(str(getattr(error, "strerror", "") or error)) from error
        connection.settimeout(self.silence)
        return connection


def _connected(address: Address) -> socket.socket:
    if not isinstance(address, str):
        connection = socket.create_connection(address, CONNECT)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(CONNECT)
        connection.connect(address)
    except BaseException:
        connection.close()
        raise
    return connection


class ClamdStream:
    """A stream on its way: `send` its pieces, `end` it, then read the `answer`; or `close` it at any time."""

    def __init__(self, clamd: Clamd, connection: socket.socket, command: bytes) -> None:
        self._clamd, self._connection = clamd, connection
        self._pending = bytearray(command)
        self._answered = False  # clamd closed its side: no more is sent, and its answer is there
        self._is_whole = False  # the answer has its end

    def fileno(self) -> int:
        """The connection's number, to wait for the answer."""
        return self._connection.fileno()

    def send(self, piece: bytes | bytearray | memoryview) -> None:
        """Send a piece that is not empty. An empty one would end the stream."""
        if piece:
            self._pending += struct.pack("!L", len(piece))
            self._pending += piece
            if len(self._pending) >= CHUNK:
                self.flush()

    def end(self) -> None:
        """End the stream: now clamd scans it."""
        self._pending += struct.pack("!L", 0)
        self.flush()

    def flush(self) -> None:
        """Send what is pending."""
        try:
            if not self._answered:
                self._connection.sendall(self._pending)
        except TimeoutError as error:
            raise self._clamd.silent() from error
        except OSError:
            self._answered = True
        self._pending.clear()

    def signature(self) -> str:
        """Return the name of what clamd found in the stream, '' for nothing; Unavailable for any other answer.

        A cut "OK" may be the beginning of a name. An "OK" that comes early does not judge the whole stream.
        """
        answer = self.answer()
        if answer == "stream: OK" and self._is_whole and not self._answered:
            return ""
        if found := _FOUND.fullmatch(answer):
            return found[1]
        early = " before all was sent" if self._answered else "" if self._is_whole else ", and no end of an answer"
        raise self._clamd.unavailable(
            f"it answered {answer!a}{early}" if answer else "it closed the connection unanswered"
        )

    def answer(self) -> str:
        """Return the answer, '' when there is none, and close the connection."""
        try:
            return self._read().decode("utf-8", "backslashreplace")
        except TimeoutError as error:
            raise self._clamd.silent() from error
        finally:
            self.close()

    def close(self) -> None:
        """Give the stream up, or its connection back."""
        self._connection.close()

    def _read(self) -> bytes:
        answer = b""
        with suppress(ConnectionError):  # clamd closed while we sent: what it answered before is read
            while not answer.endswith(b"\0") and len(answer) < _LONGEST:
                piece = self._connection.recv(_LONGEST)
                if not piece:
                    break
                answer += piece
        self._is_whole = answer.endswith(b"\0")
        return answer.rstrip(b"\0\n")


class Scans:
    """Streams that wait for their answers, so many at once, so that clamd always has something to do."""

    def __init__(self, clamd: Clamd, at_once: int) -> None:
        self.clamd, self._at_once = clamd, at_once
        self._waiting: dict[int, tuple[ClamdStream, Callable[[str], None]]] = {}  # by the connection's number
        self._poll = select.poll()

    def make_room(self) -> None:
        """Wait until one more stream may wait for its answer. Call it while no stream is half sent: it takes time."""
        while len(self._waiting) >= self._at_once:
            self._collect()

    def wait_for(self, stream: ClamdStream, answered: Callable[[str], None]) -> None:
        """Have `answered` called with the signature in a stream that was ended, '' without one, when it is known."""
        self._waiting[stream.fileno()] = stream, answered
        self._poll.register(stream.fileno(), select.POLLIN)

    def finish(self) -> None:
        """Wait for all answers."""
        while self._waiting:
            self._collect()

    def close(self) -> None:
        """Give up whatever still waits."""
        for number in list(self._waiting):
            stream, _ = self._forget(number)
            stream.close()

    def _collect(self) -> None:
        ready = self._poll.poll(self.clamd.silence * 1000)
        if not ready:
            raise self.clamd.silent()
        for number, _ in ready:
            stream, answered = self._forget(number)
            answered(stream.signature())

    def _forget(self, number: int) -> tuple[ClamdStream, Callable[[str], None]]:
        self._poll.unregister(number)
        return self._waiting.pop(number)
