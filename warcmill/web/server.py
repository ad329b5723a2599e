"""The HTTP servers of the pages and of the WARCs: uvicorn, with the limits that slow and odd clients meet.

A connection that has not sent a whole request in time is closed, so that no number of slow clients keeps others out.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from warcmill.errors import Unavailable

LARGEST_HEAD = 32_768  # bytes of a request's line and headers
IDLE_SECONDS = 30
GRACE_SECONDS = 5  # that answers under way have at the end
_BACKLOG = 1_024


class Protocol(H11Protocol):
    """HTTP/1.1 of uvicorn, which has no bound of time for a request, and answers each odd one with 400."""

    _arriving: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        self._arriving = self.loop.call_later(IDLE_SECONDS, self._hang_up)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
        if self.conn.their_state in (h11.DONE, h11.MUST_CLOSE, h11.CLOSED, h11.ERROR):
            self._stop_waiting()
        elif self._arriving is None:
            self._arriving = self.loop.call_later(IDLE_SECONDS, self._hang_up)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - the name is uvicorn's
        """431 for a head that is too large, which is the one fault that h11 reports with an unfinished request."""
        is_large = self.conn.their_state is h11.ERROR and len(self.conn.trailing_data[0]) >= LARGEST_HEAD
        status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE if is_large else HTTPStatus.BAD_REQUEST
        body = f"{status.phrase}: open the address that 'warcmill serve' printed\n".encode()
        headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
        answer = h11.Response(status_code=status, headers=[*headers, ("Connection", "close")], reason=status.phrase)
        for event in (answer, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _hang_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()

    def _stop_waiting(self) -> None:
        if self._arriving is not None:
            self._arriving.cancel()
            self._arriving = None


def serve(app: Callable[..., Any], host: str, port: int, started: Callable[[], None]) -> None:
    """Serve until a signal. `started` is called once the port is ours; Unavailable if another program has it."""
    with bound(host, port, "port") as taken:
        started()
        uvicorn.Server(_config(app)).run(sockets=[taken])


@contextmanager
def serving(app: Callable[..., Any], host: str) -> Iterator[int]:
    """Serve in a thread while the block runs; yields the port, a free one."""
    with bound(host, 0, "") as taken:
        server = uvicorn.Server(_config(app))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]}, name="warcs", daemon=True)
        thread.start()
        try:
            yield int(taken.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def bound(host: str, port: int, key: str) -> Iterator[socket.socket]:
    """A socket that listens; Unavailable if another program has the port, which [serve] `key` sets."""
    family = socket.AF_INET6 if ipaddress.ip_address(host).version == 6 else socket.AF_INET
    taken = socket.socket(family)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, port))
        taken.listen(_BACKLOG)
    except OSError as error:
        taken.close()
        why = f"{error.strerror}; end the program that has it, or set another port: [serve] {key}"
        raise Unavailable(f"port {port} of {host}", why) from error
    try:
        yield taken
    finally:
        taken.close()


def check_free(host: str, port: int, key: str) -> None:
    """Unavailable if another program has this port."""
    with bound(host, port, key):
        pass


def _config(app: Callable[..., Any]) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        h11_max_incomplete_event_size=LARGEST_HEAD,
    )
