"""The WARCs of a store on another host, for pywb: it asks for ranges by HTTP on loopback, and learns no credentials.

This server has a port of its own, as a slow store must not hold the threads of search. It answers only who shows the
key, which is made anew for each start: nobody but pywb gets it.
"""

from __future__ import annotations

import hmac
import logging
import re
import threading
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, BinaryIO

from waitress import wasyncore

from warcmill.errors import BadInput, NotReady, WarcmillError
from warcmill.stores import Store
from warcmill.web import http, replay
from warcmill.web.http import GUARDS, WARCS
from warcmill.web.replay import LOOPBACK

THREADS = 8  # a browser asks for six parts of a page at a time, and each waits for the store
_PIECE = 1 << 16
_USER = "pywb"
_RANGE = re.compile(r"bytes=([0-9]{1,18})-([0-9]{0,18})")
log = logging.getLogger(__name__)
Start = Callable[[str, list[tuple[str, str]]], Any]


@contextmanager
def serving(store: Store) -> Iterator[str]:
    """Serve while the block runs; yields the address, with the key, that comes before a WARC's path."""
    key = http.new_secret()
    sockets: dict[int, Any] = {}
    created = replay.create(Warcs(store, key), 0, THREADS, sockets)
    thread = threading.Thread(target=created.run, name="warcs", daemon=True)
    thread.start()
    try:
        yield f"http://{_USER}:{key}@{LOOPBACK}:{created.effective_port}{WARCS}"
    finally:
        _close(created, sockets)
        thread.join()
        created.task_dispatcher.shutdown()


def _close(created: Any, sockets: dict[int, Any]) -> None:
    """Close all sockets in the thread that has them, once the trigger, which is one of them, has been pulled."""
    pulled = threading.Event()

    def close() -> None:
        pulled.wait()  # a thread that is awake for another reason takes this before it is pulled
        wasyncore.close_all(sockets)

    created.trigger.pull_trigger(close)
    pulled.set()


@dataclass(frozen=True)
class Warcs:
    """A WSGI application: `/warcs/PATH` of a store, or a range of it."""

    store: Store
    key: str

    def __call__(self, environ: Mapping[str, Any], start: Start) -> Iterable[bytes]:
        try:
            return self._answer(environ, start)
        except (NotReady, BadInput) as error:
            return _refuse(HTTPStatus.NOT_FOUND, str(error), start)
        except WarcmillError as error:
            log.error("replay: %s", error)
            return _refuse(HTTPStatus.SERVICE_UNAVAILABLE, "the store does not answer", start)

    def _answer(self, environ: Mapping[str, Any], start: Start) -> Iterable[bytes]:
        if not http.may(self._role(environ), WARCS):
            return _refuse(HTTPStatus.FORBIDDEN, "this server is for replay alone", start)
        address = environ["REQUEST_URI"]  # as it was sent: a stored name has its own %
        if environ["REQUEST_METHOD"] != "GET" or not address.startswith(WARCS):
            return _refuse(HTTPStatus.NOT_FOUND, f"only GET {WARCS}PATH", start)
        return self._sent(address.removeprefix("/"), environ.get("HTTP_RANGE", ""), start)

    def _role(self, environ: Mapping[str, Any]) -> http.Role:
        shown = b64encode(f"{_USER}:{self.key}".encode())
        asked = environ.get("HTTP_AUTHORIZATION", "").encode("utf-8", "replace")
        return "replay" if hmac.compare_digest(asked, b"Basic " + shown) else "anyone"

    def _sent(self, path: str, asked: str, start: Start) -> Iterable[bytes]:
        found = self.store.stat(path)
        if found is None or found.kind != "file":
            raise NotReady(path, "there is no such WARC in the store")
        first, last = _part(asked, found.size)
        if first > last and found.size:
            return _refuse(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, f"it has {found.size} bytes", start)
        status = HTTPStatus.PARTIAL_CONTENT if asked else HTTPStatus.OK
        stream = self.store.open(path, first)
        headers = [("Content-Range", f"bytes {first}-{last}/{found.size}")] if asked else []
        _start(status, last - first + 1, [("Content-Type", "application/warc"), *headers], start)
        return _pieces(stream, last - first + 1)


def _part(asked: str, size: int) -> tuple[int, int]:
    """The first and the last byte of a range of a file; all of it without a range."""
    match = _RANGE.fullmatch(asked)
    if not match:
        return 0, size - 1
    last = int(match[2]) if match[2] else size - 1
    return int(match[1]), min(last, size - 1)


def _pieces(stream: BinaryIO, left: int) -> Iterator[bytes]:
    """The next bytes of a stream. Unavailable on the way cuts the answer: it is shorter than its Content-Length."""
    with closing(stream):
        while left and (data := stream.read(min(_PIECE, left))):
            left -= len(data)
            yield data


def _refuse(status: HTTPStatus, why: str, start: Start) -> Iterable[bytes]:
    body = f"{why}\n".encode("utf-8", "replace")
    _start(status, len(body), [("Content-Type", "text/plain; charset=utf-8")], start)
    return [body]


def _start(status: HTTPStatus, length: int, headers: list[tuple[str, str]], start: Start) -> None:
    start(f"{status.value} {status.phrase}", [("Content-Length", str(length)), *GUARDS, *headers])
