"""Worker processes that read payloads, and those for text, on all cores. One that dies or hangs costs one document.

`kept` keeps them for the next WARC: to start one takes as long as a hundred documents. Crawls of one site hold the same
documents again and again, so `DocumentCache` keeps their texts in this process. A document without text is not kept:
a limit may have been met.
"""

from __future__ import annotations

import atexit
import json
import os
import shlex
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import sha256
from threading import Lock, local
from types import TracebackType
from typing import Self, TypeVar, cast

from warcmill.base import workers as processes
from warcmill.base.worker import WorkerLimits
from warcmill.base.workers import Outside
from warcmill.errors import Unavailable
from warcmill.formats.text.document import MOST, Document, Kind, refused

_MODULE = "warcmill.extracts.text_worker"
COMMAND = (sys.executable, "-P", "-m", _MODULE)
_MOST_ANSWER = 8 * MOST


class PayloadWorkers:
    """Worker processes, started when they are needed. Leave the block to end them."""

    def __init__(self, command: Sequence[str], number: int | None = None, limits: WorkerLimits | None = None) -> None:
        self.number = number or len(os.sched_getaffinity(0))
        self._threads = ThreadPoolExecutor(self.number)
        self._processes = processes.Workers(command, limits or WorkerLimits(), self.number)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End them, whatever they do."""
        self._processes.kill()
        self._threads.shutdown(cancel_futures=True)
        self._processes.close()

    def leave(self) -> None:
        """Let go of them in a process that has them from the one it was forked from: they are that one's."""
        self._processes.leave()


class TextWorkers(PayloadWorkers):
    """Worker processes that extract the text of documents."""

    def __init__(
        self,
        number: int | None = None,
        limits: WorkerLimits | None = None,
        command: Sequence[str] = COMMAND,
        known: DocumentCache | None = None,
    ) -> None:
        super().__init__(command, number, limits)
        self._known = known or DocumentCache()

    def submit(self, kind: Kind, data: bytes, charset: str) -> Future[Document]:
        """Have a document extracted. Without text the result has the reason; Unavailable if no worker begins."""
        return self._threads.submit(self._known_or_extracted, kind, data, charset)

    def _known_or_extracted(self, kind: Kind, data: bytes, charset: str) -> Document:
        key = key_of(kind, data, charset)
        found = self._known.get(key)
        if found is None:
            found = self._extract(kind, data, charset)
            self._known.keep(key, found)
        return found

    def _extract(self, kind: Kind, data: bytes, charset: str) -> Document:
        question: dict[str, object] = {"kind": kind, "charset": charset[:100]}
        found = self._processes.ask(question, data, _document, refused, _MOST_ANSWER)
        if isinstance(found, Outside):
            raise unstarted("a worker that extracts text", _MODULE, found)
        return found


def unstarted(what: str, module: str, outside: Outside) -> Unavailable:
    """The error of a worker that did not begin, with the command that shows why."""
    return Unavailable(what, f"{outside.why}; its error: {shlex.quote(sys.executable)} -P -c 'import {module}'")


def _document(text: bytes) -> Document:
    """The document of an answer; ValueError or TypeError if it is invalid."""
    answer = json.loads(text)
    if not isinstance(answer, dict) or not all(
        isinstance(answer.get(name, ""), str) for name in ("text", "title", "why")
    ):
        raise TypeError(text)
    return refused(answer["why"]) if answer.keys() == {"why"} else Document(**answer)


class _Kept(local):
    """The workers of each thread: threads that share some would have to agree on when to end them."""

    def __init__(self) -> None:
        self.workers = dict[type[PayloadWorkers], PayloadWorkers]()


_kept = _Kept()
W = TypeVar("W", bound=PayloadWorkers)


@contextmanager
def kept(number: int, known: DocumentCache) -> Iterator[TextWorkers]:
    """Workers for text that this thread keeps: see `kept_of`."""
    with kept_of(TextWorkers, number, lambda: TextWorkers(number, known=known)) as workers:
        yield workers


@contextmanager
def kept_of(kind: type[W], number: int, make: Callable[[], W]) -> Iterator[W]:
    """Workers of a kind that this thread keeps. They end when the block raises, and with the process, in whatever way
    that ends.

    A worker ends by itself as soon as nobody has the other end of its socket open.
    """
    workers = cast("W | None", _kept.workers.get(kind))
    if workers is None or workers.number != number:
        _end_kept(kind)
        workers = make()
        _kept.workers[kind] = workers
    try:
        yield workers
    except BaseException:
        _end_kept(kind)
        raise


def _end_kept(*kinds: type[PayloadWorkers]) -> None:
    for kind in kinds or [*_kept.workers]:
        if workers := _kept.workers.pop(kind, None):
            workers.close()


def _forked() -> None:
    """Let go of the workers of the process that this one was forked from."""
    for workers in _kept.workers.values():
        workers.leave()
    _kept.workers.clear()


atexit.register(_end_kept)
os.register_at_fork(after_in_child=_forked)


MOST_KEPT = 64 << 20  # bytes of text that are kept


class DocumentCache:
    """Documents by what they were made of, those that were asked for last. Threads may share it."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most, self._size = most, 0
        self._documents: OrderedDict[bytes, Document] = OrderedDict()
        self._lock = Lock()

    def get(self, key: bytes) -> Document | None:
        """The document of a key, if it is kept."""
        with self._lock:
            found = self._documents.get(key)
            if found:
                self._documents.move_to_end(key)
            return found

    def keep(self, key: bytes, document: Document) -> None:
        """Keep a document that has text; forget those that were not asked for longest."""
        with self._lock:
            if document.why or key in self._documents:
                return
            self._documents[key] = document
            self._size += _size(document)
            while self._size > self._most:
                self._size -= _size(self._documents.popitem(last=False)[1])


def key_of(kind: Kind, data: bytes, charset: str) -> bytes:
    """All that the text of a document follows from, as one digest."""
    digest = sha256(f"{kind} {charset}\n".encode("utf-8", "surrogateescape"))
    digest.update(data)
    return digest.digest()


def _size(document: Document) -> int:
    return sys.getsizeof(document.text)
