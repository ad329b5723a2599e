"""The calls of one process to Redis, as many under way at once as it likes. Talks to Redis, on a thread of its own.

All go over one connection: Redis does them in the order in which they were begun, and answers in that. A connection
that breaks fails whatever was begun: of these calls it is not known if they were done.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from collections import deque
from concurrent.futures import Future
from typing import Any, NamedTuple

from warcmill.crawl.frontier.link import LOST, RedisLink, Wire
from warcmill.crawl.frontier.outbox import Word
from warcmill.errors import Unavailable, WarcmillError

FAR = 0.01  # seconds of a round trip, from which on a process waits for no answer
_RECENT = 32  # calls of which the quickest shows the distance: a busy Redis, or process, is not far


class _Call(NamedTuple):
    script: str
    words: tuple[Word, ...]
    answer: Future[Any]
    begun: float


class Calls:
    """Calls over a link, which `close` closes."""

    def __init__(self, link: RedisLink) -> None:
        self._link, self._lock = link, threading.Lock()
        self._begun: list[_Call] = []
        self._is_closed = False
        self._woken, self._wake = socket.socketpair()
        self._is_running = False
        self._spans: deque[float] = deque(maxlen=_RECENT)

    @property
    def round_trip(self) -> float:
        """Seconds until an answer comes from a Redis that is far; 0 for one that is near."""
        found = min(list(self._spans), default=0.0)
        return found if found >= FAR else 0.0

    def begin(self, script: str, *words: Word) -> Future[Any]:
        """Begin a call, from any thread; its answer, or its error, comes later."""
        answer: Future[Any] = Future()
        answer.set_running_or_notify_cancel()  # a caller that is cancelled does not cancel it: it is answered once
        with self._lock:
            if self._is_closed:
                answer.set_exception(Unavailable(self._link.place.shown, "the link to Redis is closed"))
                return answer
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._run, name="redis", daemon=True).start()
            self._begun.append(_Call(script, words, answer, time.monotonic()))
            if len(self._begun) == 1:
                self._wake.send(b"\0")
        return answer

    def close(self) -> None:
        """Begin no more. The link is closed after the last answer."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            if self._is_running:
                self._wake.send(b"\0")
                return
        self._end()

    # On the thread

    def _run(self) -> None:
        wire: Wire | None = None
        waiting: deque[_Call] = deque()
        is_closed = False
        while True:
            if not (waiting or is_closed):
                _ready(None, self._woken.fileno())
            calls, is_closed = self._taken()
            if is_closed and not (calls or waiting):
                break
            waiting += calls
            try:
                wire = wire or self._link.wire()
                if calls:
                    wire.send([(call.script, call.words) for call in calls])
                self._receive(wire, waiting)
                if not waiting:
                    wire.close()
                    wire = None
            except WarcmillError as error:
                for call in [*waiting, *self._taken()[0]]:
                    call.answer.set_exception(error)
                waiting.clear()
                if wire:
                    wire.close()
                    wire = None
        self._end()

    def _end(self) -> None:
        self._link.close()
        self._woken.close()
        self._wake.close()

    def _taken(self) -> tuple[list[_Call], bool]:
        """Take the calls that were begun; and True if there will be no more."""
        with self._lock:
            if _ready(0, self._woken.fileno()):
                self._woken.recv(64)
            calls, self._begun = self._begun, []
            return calls, self._is_closed

    def _receive(self, wire: Wire, waiting: deque[_Call]) -> None:
        """Wait for an answer, or for another call; receive the answers that are there."""
        if not wire.has_answer() and not _ready(self._link.seconds, wire.fileno(), self._woken.fileno()):
            raise Unavailable(self._link.place.shown, f"Redis does not answer: {self._link.seconds:.0f} s of silence")
        lost = list[_Call]()
        try:
            while waiting and wire.has_answer():
                call, found = waiting[0], wire.receive()
                waiting.popleft()
                if found is LOST:  # it was started anew, or somebody emptied its cache
                    lost.append(call)
                    continue
                self._spans.append(time.monotonic() - call.begun)
                if isinstance(found, WarcmillError):
                    call.answer.set_exception(found)
                else:
                    call.answer.set_result(found)
        finally:
            waiting += lost  # also where the connection breaks: then each of them fails
        if lost:
            wire.send([(call.script, call.words) for call in lost])


def _ready(seconds: float | None, *files: int) -> bool:
    """Wait until one of some files has something to read; False if none has for so long."""
    poll = select.poll()
    for one in files:
        poll.register(one, select.POLLIN)
    return bool(poll.poll(None if seconds is None else seconds * 1000))
