"""What earlier attempts at a step have settled, so that a retry does only the rest.

Each attempt appends to a file of its own, one JSON object a line, synced: with one file at a time before the next
begins, with several those that are done by then together, as a sync takes as long as a small file's copy.

    attempts/{marker}.{utc}.{host}.{pid}.jsonl
    {"file": ..., "version": ..., "items": [...]}     one file of a batch is settled
    {"failed": ..., "why": ...}                       one file failed; it will be tried again
    {"error": ...}                                    the attempt ended with this
    {"stopped": ...}                                  an operator ended it, which is no error of the step
    {"again": [...], "attempts": {...: number}}       an operator's redo: what so many first lines of these attempts
                                                      say of these files counts no more
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from warcmill import attempts, clock, errors, layout
from warcmill.attempts import Attempt
from warcmill.errors import BadInput, Unsettled, WarcmillError
from warcmill.evidence import file_to_json, item_from_json, item_to_json
from warcmill.model import FileRef, Item, Key, Outcome
from warcmill.state import State
from warcmill.stores import temporary

log = logging.getLogger(__name__)
Settled = dict[tuple[str, str], tuple[str, tuple[Item, ...]]]  # by root and path: the version, and the items
_Done = tuple[str, tuple[Item, ...], bool]  # a file's version, its items, whether they are new


def settled(some: Iterable[Attempt]) -> Settled:
    """For each file (root, path) that some of these attempts settled: the version it had, and the items."""
    tried = list(some)
    void = _void(tried)
    return {
        place: (line["version"], tuple(map(item_from_json, line["items"])))
        for attempt in tried
        for number, line in enumerate(attempt.lines)
        if "items" in line
        and number >= void.get((attempt.name, *(place := (line["file"]["root"], line["file"]["path"]))), 0)
    }


def _void(tried: list[Attempt]) -> dict[tuple[str, str, str], int]:
    """By an attempt's name and a file: how many of its first lines count no more for this file."""
    found: dict[tuple[str, str, str], int] = {}
    for line in (line for attempt in tried for line in attempt.lines if "again" in line):
        for file in line["again"]:
            for name, lines in line["attempts"].items():
                place = (name, file["root"], file["path"])
                found[place] = max(lines, found.get(place, 0))
    return found


def _is_of(item: Item, file: FileRef) -> bool:
    return (item.file.root, item.file.path) == (file.root, file.path)


class Ledger:
    """The attempts at one step."""

    def __init__(self, state: State, key: Key) -> None:
        self.state, self.key = state, key
        folder = f"{layout.folder_of(key)}/attempts"
        self._prefix = f"{folder}/{layout.marker_name(key)}."
        self._path = f"{self._prefix}{clock.stamp()}.{temporary.host()}.{os.getpid()}.jsonl"

    def attempts(self) -> list[Attempt]:
        """All attempts, oldest first."""
        folder = self._prefix.rpartition("/")[0]
        files = (entry.path for entry in self.state.store.list(folder) if entry.kind == "file")
        ours = sorted(path for path in files if path.startswith(self._prefix) and path.endswith(".jsonl"))
        return [attempts.read(self.state.store, path) for path in ours]

    def settled(self) -> Settled:
        """For each file (root, path) that some attempt settled: the version it had, and the items."""
        return settled(self.attempts())

    def forget(self, file: FileRef) -> int:
        """Have what is settled of one file, and of what was made of it, done again; how many others stay settled."""
        attempts = self.attempts()
        known = settled(attempts)
        places = [place for place, (_, items) in known.items() if any(_is_of(item, file) for item in items)]
        if places:
            again = [{"root": root, "path": path} for root, path in sorted(places)]
            self.append({"again": again, "attempts": {one.name: len(one.lines) for one in attempts}})
        return len(known) - len(places)

    def append(self, *lines: dict[str, Any]) -> None:
        """Add lines to this attempt's file, and make them durable."""
        text = "\n".join(json.dumps(line, ensure_ascii=False, sort_keys=True) for line in lines)
        self.state.store.append(self._path, text.encode("utf-8", "backslashreplace"))

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Note what an attempt ends with, whatever it is, for `warcmill why` and notices."""
        try:
            yield
        except KeyboardInterrupt:
            self._note({"stopped": "interrupted", "kind": KeyboardInterrupt.__name__})
            raise
        except BaseException as error:
            self._note({"error": errors.told(error), "kind": type(error).__name__})
            raise

    def _note(self, line: dict[str, Any]) -> None:
        """Add a last line. Where the state takes none, a full disk say, what ended the attempt is still the error."""
        try:
            self.append(line)
        except (WarcmillError, OSError) as error:
            log.error("the attempt's end could not be noted: %s", error)


def settle(
    ledger: Ledger,
    files: Iterable[FileRef],
    version: Callable[[FileRef], str],
    work: Callable[[FileRef], tuple[Item, ...]],
    at_once: int = 1,
) -> tuple[Item, ...]:
    """Do the work on each file that no attempt has settled; all items, or Unsettled when some failed.

    A file whose `version` has changed since is done again. BadInput refuses the file for
    good; any other error fails it for now. One file's failure does not hold up the next; the
    first that is no error of ours, a fault in this program, is raised when the others are done.
    With `at_once` above 1 that many files are worked on at a time, in threads; the items keep
    the order of the files, and only this thread writes the attempt's lines.
    """
    settling = _Settling(ledger.settled(), version, work)
    for batch in _as_done(settling.one, files, at_once):
        if lines := [line for done in batch if (line := settling.line(*done))]:
            ledger.append(*lines)
    if settling.faults:
        raise settling.faults[0]
    if failures := settling.failures:
        raise Unsettled(str(ledger.key), [failures[number] for number in sorted(failures)])
    return tuple(item for number in sorted(settling.settled) for item in settling.settled[number])


@dataclass(frozen=True)
class _Settling:
    """An attempt under way: what earlier ones settled, and what this one has come to, by the files' numbers."""

    before: Mapping[tuple[str, str], tuple[str, tuple[Item, ...]]]
    version: Callable[[FileRef], str]
    work: Callable[[FileRef], tuple[Item, ...]]
    settled: dict[int, tuple[Item, ...]] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    faults: list[Exception] = field(default_factory=list)

    def one(self, file: FileRef) -> _Done:
        """Do the work on a file that is not settled. May run in a thread of its own: it changes nothing here."""
        now = self.version(file)
        known = self.before.get((file.root, file.path))
        return (now, known[1], False) if known and known[0] == now else (now, _do(self.work, file), True)

    def line(self, number: int, file: FileRef, result: Callable[[], _Done]) -> dict[str, Any] | None:
        """Note what became of a file; the attempt's line of it, None when an earlier attempt has it."""
        try:
            now, items, is_new = result()
        except (WarcmillError, OSError) as error:
            return self._failed(number, file, error)
        except Exception as fault:
            fault.add_note(f"while {file.label} was worked on")
            self.faults.append(fault)  # `settle` raises it again
            log.exception("%s: a fault in Warcmill", file.label)
            return self._failed(number, file, fault)
        self.settled[number] = items
        return {"file": file_to_json(file), "version": now, "items": list(map(item_to_json, items))} if is_new else None

    def _failed(self, number: int, file: FileRef, error: Exception) -> dict[str, Any]:
        why = errors.told(error)
        self.failures[number] = why if file.name in why else f"{file.label}: {why}"
        log.error("%s: failed: %s", file.label, why)
        return {"failed": file.label, "why": why}


def _as_done(
    ask: Callable[[FileRef], _Done], files: Iterable[FileRef], at_once: int
) -> Iterator[list[tuple[int, FileRef, Callable[[], _Done]]]]:
    """Each file with its number, as soon as its result can be had: in order when one is asked for at a time.

    Threads get this one's context: what they log is of this step.
    """
    if at_once == 1:
        for number, file in enumerate(files):
            yield [(number, file, partial(ask, file))]
        return
    with ThreadPoolExecutor(at_once) as threads:
        left, waiting = enumerate(files), dict[Future[_Done], tuple[int, FileRef]]()
        while True:
            for number, file in islice(left, 2 * at_once - len(waiting)):
                waiting[threads.submit(copy_context().run, ask, file)] = number, file
            if not waiting:
                return
            done = wait(waiting, return_when=FIRST_COMPLETED).done
            yield [(*waiting.pop(future), future.result) for future in done]


def _do(work: Callable[[FileRef], tuple[Item, ...]], file: FileRef) -> tuple[Item, ...]:
    try:
        return work(file)
    except BadInput as error:
        return (Item(file, Outcome.REFUSED, why=error.why, offset=error.offset),)
