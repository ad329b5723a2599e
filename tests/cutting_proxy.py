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
    towards the server, or, with `answers`, from it. `watch` sees what goes to the server, and may stop it."""

    upstream: tuple[str, int]
    cut_after: Callable[[], int] = lambda: NEVER
    answers: bool = False
    watch: Callable[[bytes], bool] = lambda _data: False
    cuts: int = 0
    port: int = 0
    _open: set[socket.socket] = field(default_factory=set)

    def serve(self, listener: socket.socket) -> None:
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
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._open |= {client, server}
            limits = (NEVER, self.cut_after()) if self.answers else (self.cut_after(), NEVER)
            for source, target, limit, watch in (
                (client, server, limits[0], self.watch),
                (server, client, limits[1], lambda _data: False),
            ):
                threading.Thread(target=self._pass, args=(source, target, limit, watch), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, left: int, watch: Callable[[bytes], bool]) -> None:
        try:
            while data := source.recv(min(1 << 16, left)):
                stop = watch(data)
                target.sendall(data)
                left -= len(data)
                if stop or not left:
                    self.cuts += 1
                    self._hang_up(source, target)
                    return
            target.shutdown(socket.SHUT_WR)
        except OSError:
            self._hang_up(source, target)

    def _hang_up(self, *ends: socket.socket) -> None:
        for one in ends:
            with suppress(OSError):
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def close(self) -> None:
        self._hang_up(*self._open)


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
