"""The HTTP servers of the pages and of the WARCs: uvicorn, with the limits that slow and odd clients meet.

A connection that has not sent a whole request in time is closed, and one that does not read its answer. Where the
application takes in a file, the client has to send so many bytes a second instead. There are fewer
connections than files may be open, in all and of one address: one more ends the one that was silent for longest. So no
number of slow clients keeps others out.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import resource
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from urllib.parse import unquote

import h11
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from warcmill.errors import Unavailable
from warcmill.web.request import SLOWLY

LARGEST_HEAD = 32_768  # bytes of a request's line and headers
IDLE_SECONDS = 30
LEAST_RATE = 8_192  # bytes a second of a body that is bound by its rate
GRACE_SECONDS = 5  # that answers under way have at the end
LINGER_SECONDS = 5  # that a client has to read why its request was refused
STALLED_SECONDS = 10  # that a client may read nothing of its answer
MOST_CONNECTIONS, OF_ONE_ADDRESS = 4_096, 4  # the most in all; one address has a part of them: one in so many
_FILES, _OTHER_FILES = 1 << 16, 256  # that may be open, if the machine lets us; those that are not connections
_BACKLOG = 1_024
_ACCEPTED = 100  # connections that are accepted before they are counted
_ABSOLUTE = re.compile(rb"https?://([^/]*)(/.*)?", re.IGNORECASE)


class Protocol(H11Protocol):
    """HTTP/1.1 of uvicorn, which has no bound of time for a request, and answers each odd one with 400."""

    _arriving: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None
    _unsent, _came, active = 0, 0, 0.0
    _is_refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        self.active = self.loop.time()
        self._make_room()
        self._arriving = self.loop.call_later(IDLE_SECONDS, self._hang_up)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_watching()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        self.active = self.loop.time()
        self._stop_watching()
        super().resume_writing()

    def on_response_complete(self) -> None:
        self._watch_reader()
        super().on_response_complete()

    def data_received(self, data: bytes) -> None:
        self.active = self.loop.time()
        self._came += len(data)
        if not self._is_refused:
            super().data_received(data)

    def handle_events(self) -> None:
        super().handle_events()
        if self.scope is not None:  # its application begins later
            self.scope.setdefault("extensions", {})[SLOWLY] = self._take_slowly  # type: ignore[assignment]
        if self._is_refused:  # the time that it has left is running
            return
        if self.conn.their_state in (h11.DONE, h11.MUST_CLOSE, h11.CLOSED, h11.ERROR):
            self._stop_waiting()
        elif self._arriving is None:
            self._arriving = self.loop.call_later(IDLE_SECONDS, self._hang_up)

    def _take_slowly(self) -> None:
        """Bound the body that arrives by its rate, from now on."""
        if self.conn.their_state is h11.SEND_BODY:
            self._stop_waiting()
            self._came = 0
            self._arriving = self.loop.call_later(IDLE_SECONDS, self._look_at_sender)

    def _look_at_sender(self) -> None:
        if self._came < LEAST_RATE * IDLE_SECONDS and not self.flow.read_paused:  # paused: our disk is what is slow
            self._hang_up()
        else:
            self._came = 0
            self._arriving = self.loop.call_later(IDLE_SECONDS, self._look_at_sender)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - the name is uvicorn's
        """431 for a head that is too large, which is the one fault that h11 reports with an unfinished request."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):  # the body breaks after its answer has begun
            self._hang_up()
            return
        if self.conn.our_state is h11.SEND_RESPONSE:
            self.cycle.disconnected = True  # its view may still run: its answer is not wanted any more
        is_large = self.conn.their_state is h11.ERROR and len(self.conn.trailing_data[0]) >= LARGEST_HEAD
        status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE if is_large else HTTPStatus.BAD_REQUEST
        body = f"{status.phrase}: open the address that 'warcmill serve' printed\n".encode()
        headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
        answer = h11.Response(status_code=status, headers=[*headers, ("Connection", "close")], reason=status.phrase)
        for event in (answer, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self._linger()

    def _linger(self) -> None:
        """End the answer, and read on: a close with bytes unread makes the client's kernel drop the answer."""
        self._is_refused = True
        self.transport.write_eof()
        self._stop_waiting()
        self._arriving = self.loop.call_later(LINGER_SECONDS, self._hang_up)

    def _make_room(self) -> None:
        """End the connection that was silent for longest, if with this one there are too many."""
        every = [one for one in self.connections if isinstance(one, Protocol)]
        of_address = [one for one in every if one.client and self.client and one.client[0] == self.client[0]]
        most = _most_connections()
        if len(of_address) > most // OF_ONE_ADDRESS:
            self._end_oldest(of_address)
        elif len(every) > most:
            self._end_oldest(every)

    def _end_oldest(self, some: Sequence[Protocol]) -> None:
        oldest = min(some, key=lambda one: one.active)
        self.connections.discard(oldest)  # now: more may come before it hears of its end
        oldest.transport.abort()

    def _watch_reader(self) -> None:
        """Give up the connection unless its client reads some of what is to be sent."""
        self._stop_watching()
        if unsent := self.transport.get_write_buffer_size():
            self._unsent = unsent
            self._stalled = self.loop.call_later(STALLED_SECONDS, self._look_at_reader)

    def _look_at_reader(self) -> None:
        if self.transport.get_write_buffer_size() < self._unsent:
            self._watch_reader()
        else:
            self.transport.abort()

    def _stop_watching(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _hang_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()

    def _stop_waiting(self) -> None:
        if self._arriving is not None:
            self._arriving.cancel()
            self._arriving = None


class OriginForm:
    """An ASGI application behind addresses in absolute form, as clients of proxies send them (RFC 9112, 3.2.2).

    The host of such an address takes the place of the header Host.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if match := _ABSOLUTE.fullmatch(scope.get("raw_path", b"")):
            path = match[2] or b"/"
            headers = [(name, value) for name, value in scope["headers"] if name != b"host"]
            scope = {**scope, "raw_path": path, "path": unquote(path.decode("ascii"))}
            scope["headers"] = [(b"host", match[1]), *headers]
        await self._app(scope, receive, send)


def serve(
    app: ASGIApp,
    host: str,
    port: int,
    started: Callable[[], None],
    option: str = "port",
    ended: threading.Event | None = None,
) -> None:
    """Serve until a signal; in another thread than the main one, until `ended`. `started` is called once the port is
    ours; Unavailable if another program has it. `option` sets the port."""
    with bound(host, port, option) as taken:
        server = uvicorn.Server(_config(app))
        if ended is not None:
            threading.Thread(target=_end_after, args=(server, ended), daemon=True).start()
        started()
        server.run(sockets=[taken])


def _end_after(server: uvicorn.Server, ended: threading.Event) -> None:
    ended.wait()
    server.should_exit = True


async def serve_in_loop(app: ASGIApp, host: str, port: int, option: str, started: Callable[[], None]) -> None:
    """Serve until a signal, in the loop that runs; `option` sets the port."""
    with bound(host, port, option) as taken:
        started()
        await uvicorn.Server(_config(app)).serve(sockets=[taken])


@contextmanager
def serving(app: ASGIApp, host: str) -> Iterator[int]:
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
    """A socket that listens; Unavailable if another program has the port, which the option or [serve] `key` sets. This
    process may then have as many files open as the machine lets it, and as connections need."""
    _allow_files()
    family = socket.AF_INET6 if ipaddress.ip_address(host).version == 6 else socket.AF_INET
    taken = socket.socket(family)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, port))
        taken.listen(_BACKLOG)
    except OSError as error:
        taken.close()
        where = key if key.startswith("--") else f"[serve] {key}"
        why = f"{error.strerror}; end the program that has it, or set another port: {where}"
        raise Unavailable(f"port {port} of {host}", why) from error
    try:
        yield taken
    finally:
        taken.close()


def _most_connections() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = _FILES if soft == resource.RLIM_INFINITY else soft
    return max(OF_ONE_ADDRESS, min(MOST_CONNECTIONS, files - _OTHER_FILES))


def _allow_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # the machine refuses more: there are fewer connections then
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def check_free(host: str, port: int, key: str) -> None:
    """Unavailable if another program has this port."""
    with bound(host, port, key):
        pass


def _config(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        OriginForm(app),
        http=Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_SECONDS,
        backlog=_ACCEPTED,
        timeout_graceful_shutdown=GRACE_SECONDS,
        h11_max_incomplete_event_size=LARGEST_HEAD,
    )
