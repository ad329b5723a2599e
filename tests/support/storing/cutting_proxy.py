"""A TCP proxy that cuts connections: on purpose, after so many bytes, or when it has seen something go by."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

NEVER = 1 << 62
RESET = struct.pack("ii", 1, 0)  # SO_LINGER of no time: the other side sees a reset, not an end


@dataclass
class Proxy:
    """Passes everything on to `upstream`. `cut_after` is asked for each new connection: how many bytes it may pass
    towards the server, or, with `answers`, from it. `watch` sees what goes to the server, and may have it cut there,
    that passed on or, without `passes_last`, not; `watch_answers` the same of what comes from it."""

    upstream: tuple[str, int]
    cut_after: Callable[[], int] = lambda: NEVER
    answers: bool = False
    watch: Callable[[bytes], bool] = lambda _data: False
    watch_answers: Callable[[bytes], bool] = lambda _data: False
    passes_last: bool = True
    cuts: int = 0
    port: int = 0
    _closed: bool = False
    _open: list[socket.socket] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def serve(self, listener: socket.socket) -> None:
        """Until the listener is closed."""
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self.upstream, 10)
            except OSError:
                client.close()
                continue
            with self._lock:
                self._open += [client, server]
                if self._closed:
                    self._hang_up(client, server)
            self._join(client, server)

    def close(self) -> None:
        """Cut what is left."""
        self._closed = True
        self.close_all()

    def open(self) -> None:
        """Pass on new connections again."""
        self._closed = False

    def close_all(self) -> None:
        """Cut what is open now: the next request takes a new connection."""
        with self._lock:
            self._hang_up(*self._open)

    def _join(self, client: socket.socket, server: socket.socket) -> None:
        limits = (NEVER, self.cut_after()) if self.answers else (self.cut_after(), NEVER)
        there = threading.Thread(target=self._pass, args=(client, server, limits[0], self.watch), daemon=True)
        back = threading.Thread(target=self._pass, args=(server, client, limits[1], self.watch_answers), daemon=True)
        there.start()
        back.start()

    def _pass(self, source: socket.socket, target: socket.socket, left: int, watch: Callable[[bytes], bool]) -> None:
        with suppress(OSError):
            while data := source.recv(min(1 << 16, left)):
                stop = watch(data)
                if not stop or self.passes_last:
                    target.sendall(data)
                left -= len(data)
                if stop or not left:
                    self.cuts += 1
                    self._hang_up(source, target)
                    return
            target.shutdown(socket.SHUT_WR)
            return
        self._hang_up(source, target)

    def _hang_up(self, *ends: socket.socket) -> None:
        for one in ends:
            with suppress(OSError):
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


@contextmanager
def proxy(host: str, port: int, **more: object) -> Iterator[Proxy]:
    """A proxy on a free port, for a while."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        one = Proxy((host, port), port=listener.getsockname()[1], **more)  # type: ignore[arg-type]
        threading.Thread(target=one.serve, args=(listener,), daemon=True).start()
        try:
            yield one
        finally:
            one.close()
