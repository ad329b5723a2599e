"""Worker processes that extract documents, on all cores. One that dies or hangs costs one document (`base/workers`).

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
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import sha256
from threading import Lock, local
from types import TracebackType
from typing import Self

from warcmill.base import workers as processes
from warcmill.base.worker import WorkerLimits
from warcmill.base.workers import Outside
from warcmill.errors import Unavailable
from warcmill.formats.text.document import MOST, Document, Kind, refused

_MODULE = "warcmill.extracts.text_worker"
COMMAND = (sys.executable, "-P", "-m", _MODULE)
_MOST_ANSWER = 8 * MOST


class TextWorkers:
    """Worker processes, started when they are needed. Leave the block to end them."""

    def __init__(
        self,
        number: int | None = None,
        limits: WorkerLimits | None = None,
        command: Sequence[str] = COMMAND,
        known: DocumentCache | None = None,
    ) -> None:
        self.number = number or len(os.sched_getaffinity(0))
        self._known = known or DocumentCache()
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
            tried = f"{shlex.quote(sys.executable)} -P -c 'import {_MODULE}'"
            raise Unavailable("a worker that extracts text", f"{found.why}; its error: {tried}")
        return found


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

    workers: TextWorkers | None = None


_kept = _Kept()


@contextmanager
def kept(number: int, known: DocumentCache) -> Iterator[TextWorkers]:
    """Workers that this thread keeps. They end when the block raises, and with the process, in whatever way that ends.

    A worker ends by itself as soon as nobody has the other end of its socket open.
    """
    workers = _kept.workers
    if workers is None or workers.number != number:
        _end_kept()
        workers = _kept.workers = TextWorkers(number, known=known)
    try:
        yield workers
    except BaseException:
        _end_kept()
        raise


def _end_kept() -> None:
    workers, _kept.workers = _kept.workers, None
    if workers:
        workers.close()


def _forked() -> None:
    """Let go of the workers of the process that this one was forked from."""
    if _kept.workers:
        _kept.workers.leave()
    _kept.workers = None


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
