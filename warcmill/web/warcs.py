"""Servers on loopback for pywb alone: `keyed`; and the WARCs of a store on another host, by ranges, without its login.

Each has a port and threads of its own, as a slow store must not hold up search. It answers only who shows the key,
which is made anew for each start: nobody but pywb gets it.
"""

from __future__ import annotations

import hmac
import logging
import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http import HTTPStatus
from typing import BinaryIO

from msgspec import Struct
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from warcmill.errors import BadInput, NotReady, WarcmillError
from warcmill.replay.pywb import LOOPBACK
from warcmill.stores import Store
from warcmill.web import server
from warcmill.web.access import new_secret
from warcmill.web.request import GUARDS

WARCS = "/warcs/"  # and what is below it
PIECE = 1 << 18  # 64 KiB would be half as fast, 1 MiB takes 1 GB for 500 slow clients
_USER = "pywb"
_range = re.compile(r"bytes=(?=[0-9]*-[0-9]|[0-9]+-)([0-9]{0,18})-([0-9]{0,18})").fullmatch
log = logging.getLogger(__name__)


@contextmanager
def serving(open_store: Callable[[], Store]) -> Iterator[str]:
    """Serve while the block runs; yields the address, with the key, that comes before a WARC's path."""
    with keyed(Warcs(open_store)) as address:
        yield f"{address}{WARCS}"


@contextmanager
def keyed(app: ASGIApp) -> Iterator[str]:
    """Serve an application to pywb alone while the block runs; yields the address, with the key."""
    key = new_secret()
    with server.serving(_Keyed(app, b"Basic " + b64encode(f"{_USER}:{key}".encode())), LOOPBACK) as port:
        yield f"http://{_USER}:{key}@{LOOPBACK}:{port}"


class _Keyed(Struct, frozen=True):
    """An ASGI application for who shows the key."""

    app: ASGIApp
    shown: bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        shown = Request(scope).headers.get("authorization", "").encode("utf-8", "replace")
        is_known = hmac.compare_digest(shown, self.shown)
        app = self.app if is_known else _refuse(HTTPStatus.FORBIDDEN, "this server is for replay alone")
        await app(scope, receive, send)


class Warcs(Struct, frozen=True):
    """An ASGI application: `/warcs/PATH` of a store, or a range of it."""

    open_store: Callable[[], Store]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await run_in_threadpool(self._answer, Request(scope))
        await response(scope, receive, send)

    def _answer(self, request: Request) -> Response:
        try:
            return self._found(request)
        except (NotReady, BadInput) as error:
            return _refuse(HTTPStatus.NOT_FOUND, str(error))
        except WarcmillError as error:
            log.error("replay: %s", error)
            return _refuse(HTTPStatus.SERVICE_UNAVAILABLE, "the store does not answer")

    def _found(self, request: Request) -> Response:
        address = request.scope["raw_path"].decode("ascii", "replace")  # as it was sent: a stored name has its own %
        if request.method != "GET" or not address.startswith(WARCS):
            return _refuse(HTTPStatus.NOT_FOUND, f"only GET {WARCS}PATH")
        return self._sent(address.removeprefix("/"), request.headers.get("range", ""))

    def _sent(self, path: str, asked: str) -> Response:
        store = self.open_store()
        found = store.stat(path)
        if found is None or found.kind != "file":
            raise NotReady(path, "there is no such WARC in the store")
        part = part_of(asked, found.size)
        first, last = part or (0, found.size - 1)
        if first > last and found.size:
            return _refuse(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, f"it has {found.size} bytes")
        headers = {**GUARDS, "Content-Length": str(last - first + 1)}
        if part:
            headers["Content-Range"] = f"bytes {first}-{last}/{found.size}"
        status = HTTPStatus.PARTIAL_CONTENT if part else HTTPStatus.OK
        return StreamingResponse(pieces(store.open(path, first), last - first + 1), status, headers, "application/warc")


def part_of(asked: str, size: int) -> tuple[int, int] | None:
    """The first and the last byte of a range of a file (RFC 9110, 14.1.2); the first is greater where it has no such
    bytes. None without a range, or for several: a server may send the whole file."""
    match = _range(asked)
    if not match:
        return None
    if not match[1]:
        return max(0, size - int(match[2])), size - 1
    return int(match[1]), min(int(match[2]) if match[2] else size - 1, size - 1)


def pieces(stream: BinaryIO, left: int) -> Iterator[bytes]:
    """The next bytes of a stream. Unavailable on the way cuts the answer: it is shorter than its Content-Length."""
    with closing(stream):
        while left and (data := stream.read(min(PIECE, left))):
            left -= len(data)
            yield data


def _refuse(status: HTTPStatus, why: str) -> Response:
    return PlainTextResponse(f"{why}\n".encode("utf-8", "replace"), status, dict(GUARDS))
