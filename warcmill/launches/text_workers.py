"""Extract documents in worker processes, on all cores. A worker that dies or hangs costs one document.

`kept` keeps them for the next WARC: to start one takes as long as a hundred documents.

What is said of a document follows from the document alone: one whose worker died is tried again by a new worker, since
the documents before it may have filled the memory.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import astuple
from json import JSONDecodeError
from queue import SimpleQueue
from threading import local
from types import TracebackType
from typing import Any, Self

from warcmill.errors import Unavailable
from warcmill.formats.text.document import MOST, Document, Kind, refused
from warcmill.launches.text_known import Known, key_of
from warcmill.launches.text_worker import OUT_OF_MEMORY, Limits, receive, send

_MODULE = "warcmill.launches.text_worker"
COMMAND = (sys.executable, "-P", "-m", _MODULE)
_PASSED_ON = ("PYTHONPATH", "LD_LIBRARY_PATH", "PYTHONHASHSEED")  # of the environment, which may hold passwords
_MOST_ANSWER = 8 * MOST
_START = 600  # seconds that a worker may take to begin
_ASKED_TO_END = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})


class Workers:
    """Worker processes, started when they are needed. Leave the block to end them."""

    def __init__(
        self,
        number: int | None = None,
        limits: Limits | None = None,
        command: Sequence[str] = COMMAND,
        known: Known | None = None,
    ) -> None:
        self.number = number or len(os.sched_getaffinity(0))
        self._known = known or Known()
        self._limits, self._command = limits or Limits(), command
        self._threads = ThreadPoolExecutor(self.number)
        self._idle: SimpleQueue[_Worker | None] = SimpleQueue()
        self._all: set[_Worker] = set()
        self._closed = False
        for _ in range(self.number):
            self._idle.put(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End them, whatever they do."""
        self._closed = True
        for worker in list(self._all):
            worker.kill()
        self._threads.shutdown(cancel_futures=True)
        for worker in self._all:
            worker.end()

    def leave(self) -> None:
        """Let go of them in a process that has them from the one it was forked from: they are that one's."""
        for worker in self._all:
            worker.leave()

    def submit(self, kind: Kind, data: bytes, charset: str) -> Future[Document]:
        """Have a document extracted. The result says why where there is no text; Unavailable if no worker begins."""
        return self._threads.submit(self._known_or_extracted, kind, data, charset)

    def _known_or_extracted(self, kind: Kind, data: bytes, charset: str) -> Document:
        key = key_of(kind, data, charset)
        found = self._known.get(key)
        if found is None:
            found = self._extract(kind, data, charset)
            self._known.keep(key, found)
        return found

    def _extract(self, kind: Kind, data: bytes, charset: str) -> Document:
        worker = self._idle.get()
        try:
            if worker and worker.has_ended():  # while it was idle
                self._drop(worker)
                worker = None
            is_new = worker is None
            worker = worker or self._start()
            found = worker.ask(kind, data, charset)
            if worker.is_spoilt and not is_new:
                worker = self._replace(worker)
                found = worker.ask(kind, data, charset)
            return found
        finally:
            if worker and not worker.is_alive:
                self._all.discard(worker)
                worker = None
            self._idle.put(worker)

    def _replace(self, worker: _Worker) -> _Worker:
        self._drop(worker)
        return self._start()

    def _drop(self, worker: _Worker) -> None:
        worker.end()
        self._all.discard(worker)

    def _start(self) -> _Worker:
        worker = _Worker(self._command, self._limits)
        self._all.add(worker)
        if self._closed:
            worker.kill()
        worker.wait_until_ready()
        return worker


def _document(answer: dict[str, Any]) -> Document:
    """The document of an answer; TypeError if it is none."""
    if not all(isinstance(answer.get(name, ""), str) for name in ("text", "title", "why")):
        raise TypeError(answer)
    return Document(**answer)


class _Kept(local):
    """The workers of each thread: threads that share some would have to agree on when to end them."""

    workers: Workers | None = None


_kept = _Kept()


@contextmanager
def kept(number: int, known: Known) -> Iterator[Workers]:
    """Workers that this thread keeps. They end when the block raises, and with the process, in whatever way that ends.

    A worker ends by itself as soon as nobody has the other end of its socket open.
    """
    workers = _kept.workers
    if workers is None or workers.number != number:
        _end_kept()
        workers = _kept.workers = Workers(number, known=known)
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


class _Worker:
    """One worker process, as its starter sees it.

    `is_spoilt`: it, rather than its last document, may be why there is no text.
    """

    def __init__(self, command: Sequence[str], limits: Limits) -> None:
        self._limits = limits
        self.is_alive, self.is_spoilt = True, False
        self._socket, theirs = socket.socketpair()
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                [*command, *map(str, astuple(limits))],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
                process_group=0,  # Ctrl-C is for the starter, which ends its workers
            )

    def wait_until_ready(self) -> None:
        """Unavailable if it does not begin."""
        self._socket.settimeout(_START)
        try:
            receive(self._socket, _MOST_ANSWER)
        except (OSError, EOFError) as error:
            self.end()
            raise Unavailable("a worker that extracts text", f"it did not begin; try: python -m {_MODULE}") from error

    def ask(self, kind: Kind, data: bytes, charset: str) -> Document:
        """The words of a document, or why it gives none."""
        self._socket.settimeout(self._limits.wall)
        try:
            send(self._socket, {"kind": kind, "size": len(data), "charset": charset[:100]}, data)
            found = _document(receive(self._socket, _MOST_ANSWER))
        except TimeoutError:
            self.end()
            return refused(f"timeout: over {self._limits.wall} s")
        except (OSError, EOFError):
            return self._died()
        except (UnicodeDecodeError, JSONDecodeError, TypeError):
            self.end()
            return refused("its parser answered garbage")
        except ValueError:
            self.end()
            return refused("its text is over the limit")
        if found.why == OUT_OF_MEMORY:
            self.end()
            self.is_spoilt = True
        return found

    def _died(self) -> Document:
        """Why it died, as far as the document is to blame."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        code = self._process.poll()
        self.end()
        if code is not None and -code == signal.SIGXCPU:
            return refused(f"timeout: over {self._limits.cpu} s of CPU time")
        if code is None or -code in _ASKED_TO_END:
            raise Unavailable("a worker that extracts text", "it was ended from outside")
        self.is_spoilt = True
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return refused(f"its parser died: {how}")

    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def leave(self) -> None:
        """Close this end of its socket; it ends once no process has it open."""
        self._socket.close()

    def kill(self) -> None:
        """End it, whatever it does; its thread notices."""
        self._process.kill()

    def end(self) -> None:
        """End it, and free what it had."""
        self.is_alive = False
        self._process.kill()
        self._process.wait()
        self._socket.close()
