"""Wires that fail: a TCP proxy whose trouble comes at a byte of a connection, and that reports whether it came."""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

HOST = "127.0.0.1"
RESET = struct.pack("ii", 1, 0)  # SO_LINGER of no time: the other side sees a reset, not an end
NEVER = 1 << 62
Address = tuple[str, int]
Traffic = list[list[int]]  # of each connection, in the order they were made: bytes there, bytes back


@dataclass(frozen=True)
class Trouble:
    """What happens at byte `at` of a connection, of what goes to the server or, with `back`, of what comes from it.

    how: `cut` resets the connection; `mute` passes nothing more in that direction, silently; `wait` passes
    on after `seconds`; `act` does `action` first, which gets the server's address. `connection`: the one that it
    happens to, None: each.
    `refuse`: nobody listens for `seconds`. `hang up`: connections are taken, and closed at once.
    """

    how: str
    back: bool = False
    at: int = 0
    connection: int | None = None
    seconds: float = 0.0
    action: Callable[[Address], object] = bool


@dataclass
class Wire:
    """Passes everything between clients and `upstreams`, each with a port of its own, until its trouble comes."""

    upstreams: Sequence[Address]
    trouble: Trouble | None = None
    met: int = 0
    traffic: Traffic = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    _listeners: list[socket.socket] = field(default_factory=list)
    _open: list[socket.socket] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closed: bool = False

    def bind(self) -> Wire:
        """Choose the ports, and take connections unless they are to be refused. Nothing is passed on before `start`."""
        for _ in self.upstreams:
            one = socket.socket()
            one.bind((HOST, 0))
            if self._how != "refuse":
                one.listen(64)
            self._listeners.append(one)
            self.ports.append(one.getsockname()[1])
        return self

    def start(self) -> None:
        """Begin to pass on, in threads: after the processes that use the wire were forked."""
        for listener, upstream in zip(self._listeners, self.upstreams, strict=True):
            self._thread(self._serve, listener, upstream)

    def close(self) -> None:
        """Cut what is left, and wait for the threads."""
        with self._lock:
            self._closed = True
            for listener in self._listeners:
                with suppress(OSError):
                    listener.shutdown(socket.SHUT_RDWR)
                listener.close()
            _reset(*self._open)
        for thread in self._threads:
            thread.join(300)

    @property
    def _how(self) -> str:
        return self.trouble.how if self.trouble else ""

    def _thread(self, work: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self, listener: socket.socket, upstream: Address) -> None:
        with suppress(OSError):
            if self.trouble and self.trouble.how == "refuse":
                time.sleep(self.trouble.seconds)
                listener.listen(64)
            while True:
                client = listener.accept()[0]
                if self._how == "hang up":
                    self.met += 1
                    _reset(client)
                else:
                    self._join(client, upstream)

    def _join(self, client: socket.socket, upstream: Address) -> None:
        try:
            server = socket.create_connection(upstream, 10)
        except OSError:
            client.close()
            return None
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            number = len(self.traffic)
            self.traffic.append([0, 0])
            self._open += [client, server]
            if self._closed:
                return _reset(client, server)
        for back, pair in enumerate(((client, server), (server, client))):
            self._thread(self._pass, number, bool(back), *pair)
        return None

    def _pass(self, number: int, back: bool, source: socket.socket, target: socket.socket) -> None:
        at = self._hit_at(number, back)
        with suppress(OSError):
            while data := source.recv(1 << 16):
                seen = self.traffic[number][back]
                self.traffic[number][back] = seen + len(data)
                if seen <= at < seen + len(data):
                    target.sendall(data[: at - seen])
                    data = self._happen(data[at - seen :], source, target)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
            return
        _reset(source, target)

    def _hit_at(self, number: int, back: bool) -> int:
        """The byte of this connection and direction at which the trouble comes."""
        one = self.trouble
        hit = one and one.back is back and one.connection in (None, number) and one.how not in ("refuse", "hang up")
        return one.at if one and hit else NEVER

    def _happen(self, rest: bytes, source: socket.socket, target: socket.socket) -> bytes:
        """The trouble; what of `rest` is still to be passed on."""
        assert self.trouble
        self.met += 1
        match self.trouble.how:
            case "cut":
                _reset(source, target)
                raise ConnectionAbortedError
            case "mute":
                while source.recv(1 << 16):
                    pass
                raise ConnectionAbortedError
            case "wait":
                time.sleep(self.trouble.seconds)
            case "act":
                self.trouble.action(target.getpeername() if not self.trouble.back else source.getpeername())
        return rest


def _reset(*ends: socket.socket) -> None:
    for one in ends:
        with suppress(OSError):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()


def somewhere(traffic: Traffic, back: bool, chance: random.Random) -> tuple[int, int]:
    """A connection and a byte of it, of those that an undisturbed run showed: each connection as likely as another,
    the beginnings, where requests and answers are, likelier than the middle of a file."""
    number = chance.choice([one for one, passed in enumerate(traffic) if passed[back]])
    size = traffic[number][back]
    return number, int(size * chance.random() ** chance.choice((1, 3)))
