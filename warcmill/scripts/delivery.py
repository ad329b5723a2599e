"""The results of a job's scripts, handed to a class of its operator. Runs it; keeps its place in the job's state.

    state/results-MODULE.CLASS.json   {"book": IDENTITY, "number": NUMBER}: the last result that is done
    state/results-MODULE.CLASS.lock   held while it runs, with the process id

`on_result(task, result)` is called for each result at least once: the place is kept after it has returned, each second
while results come. A book that was made anew has other numbers: then all of its results are handed on once more.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import logging
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from threading import Event
from types import ModuleType
from typing import Any, Protocol

from warcmill.base import disk
from warcmill.base.progress import EVERY
from warcmill.crawl import durable
from warcmill.errors import BadConfig, BadInput, Busy, Unavailable, Unsettled
from warcmill.model import Json
from warcmill.scripts.taskbook import ResultNote, ResultPlace, TaskReader

log = logging.getLogger(__name__)
POLL = 1.0  # seconds between two looks for new results, and between two writes of the place
WAITS = (1.0, 5.0, 30.0, 60.0)  # seconds before a result is tried again
MOST = 20  # results that are read at a time: each may be large
_is_worker = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII).fullmatch


class ResultHandler(Protocol):
    """Takes results, as pyspider's result worker does."""

    def on_result(self, task: dict[str, Json], result: Json) -> object:
        """Take the newest result of a task."""
        ...


class ResultWorker:
    """The class that pyspider's own result workers inherit from: `from pyspider.result import ResultWorker`. It saves
    nothing: each result is in the book and in a log."""

    def __init__(self, resultdb: object = None, inqueue: object = None) -> None:
        self.resultdb, self.inqueue = resultdb, inqueue

    def on_result(self, task: dict[str, Json], result: Json) -> object:
        """Take a result; nothing is left to do."""


def handler(worker: str) -> ResultHandler:
    """Make a `module:Class`, which is imported from the working folder or PYTHONPATH; or BadConfig."""
    key = f"--worker {worker}"
    if not _is_worker(worker):
        raise BadConfig(key, "is not MODULE:CLASS, such as shop_results:Database")
    module, _, name = worker.partition(":")
    package, result = ModuleType("pyspider"), ModuleType("pyspider.result")
    package.__path__ = []
    vars(package)["result"], vars(result)["ResultWorker"] = result, ResultWorker
    sys.modules |= {"pyspider": package, "pyspider.result": result}
    sys.path.insert(0, os.getcwd())
    try:
        made: ResultHandler = getattr(importlib.import_module(module), name)()
        _ = made.on_result
    except Exception as error:  # it is code of the operator, which may raise anything
        log.exception("%s", worker)
        why = f"it cannot be made: {type(error).__name__}: {error}; it is looked for in {os.getcwd()} and PYTHONPATH"
        raise BadConfig(key, why) from error
    return made


class ResultDelivery:
    """The way of a job's results to one handler, from where it was left on. `worker` is its name."""

    def __init__(self, state: Path, worker: str, to: ResultHandler, waits: Sequence[float] = WAITS) -> None:
        self._path = state / f"results-{worker.replace(':', '.')}.json"
        self._book, self._worker, self._to, self._waits = TaskReader(state), worker, to, waits
        self._place = self._kept = ResultPlace()
        self._written = self._told = time.monotonic()
        self._done = 0
        self._is_away = False

    def run(self, ended: Event) -> None:
        """Hand on results until `ended`. Busy while another process does; Unsettled for one that fails again and again,
        which stays the next one."""
        with self._alone():
            self._place = self._kept = _read(self._path)
            try:
                while not ended.is_set():
                    found = self._next()
                    for place, one in found:
                        self._note_another_book(place)
                        if not self._hand(place, one, ended):
                            return
                        self._place, self._done = place, self._done + 1
                        self._keep_sometimes()
                        if ended.is_set():
                            return
                    if not found:
                        self._keep()
                        ended.wait(POLL)
            finally:
                self._keep()
                log.info("%s: %d results were handed on", self._worker, self._done)

    def _next(self) -> list[tuple[ResultPlace, ResultNote]]:
        """The next results; none while the book cannot be read."""
        try:
            found = self._book.next_results(self._place, MOST)
        except Unavailable as error:
            if not self._is_away:
                log.warning("%s: %s; results wait until then", self._worker, error)
            self._is_away = True
            return []
        self._is_away = False
        return found

    def _note_another_book(self, place: ResultPlace) -> None:
        if self._place.book not in ("", place.book):
            log.warning("%s: the book of results was made anew; all that it has is handed on once more", self._worker)

    def _hand(self, place: ResultPlace, one: ResultNote, ended: Event) -> bool:
        """Hand on a result; False if a signal came before it was taken."""
        task = {**one.answer, "project": one.script}
        result = task.pop("result")
        for wait in (*self._waits, None):
            try:
                self._to.on_result({**task}, deepcopy(result))
            except Exception as error:  # as above
                what = f"result {place.number} of script {one.script}, {one.url}"
                log.exception("%s: on_result has failed for %s", self._worker, what)
                if wait is None:
                    raise Unsettled(self._worker, [f"{what}: {type(error).__name__}: {error}"]) from error
                if ended.wait(wait):
                    return False
            else:
                return True
        raise AssertionError

    def _keep_sometimes(self) -> None:
        """Keep the place where the last one is a second old; say each half minute how far it is."""
        now = time.monotonic()
        if now >= self._written + POLL:
            self._keep()
        if now >= self._told + EVERY:
            self._told = now
            log.info("%s: %d results were handed on, up to number %d", self._worker, self._done, self._place.number)

    def _keep(self) -> None:
        if self._place != self._kept:
            durable.replace(self._path, json.dumps(self._place._asdict(), sort_keys=True).encode() + b"\n")
            self._kept = self._place
        self._written = time.monotonic()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        durable.make_folder(self._path.parent)
        path = self._path.with_suffix(".lock")
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise Unavailable(str(path), disk.reason(error, path)) from error
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                pid = os.read(descriptor, 20).decode("ascii", "replace")
                raise Busy(f"the work of {self._worker}, pid {pid or 'unknown'},") from error
            os.ftruncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())
            yield
        finally:
            os.close(descriptor)


def _read(path: Path) -> ResultPlace:
    try:
        found: Mapping[str, Any] = json.loads(path.read_bytes())
        return ResultPlace(str(found["book"]), int(found["number"]))
    except FileNotFoundError:
        return ResultPlace()
    except OSError as error:
        raise Unavailable(str(path), disk.reason(error, path)) from error
    except (ValueError, KeyError, TypeError) as error:
        why = f"it is not a place in results ({error!r}); move it away, and all results are handed on once more"
        raise BadInput(str(path), why) from error
