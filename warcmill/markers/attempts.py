"""The attempts at a step and the files that each has settled, so that a retry does only the rest. Writes to the state.

`run_items` works on the files of a step, `Attempts` writes down what became of them, and `read` reads that back. Each
attempt appends to its own file, one JSON object a line, synced. Files worked on one at a time are synced one by one; of
files worked on together, all that are done share a sync, which takes as long as copying a small file.

    attempts/{marker}.{utc}.{host}.{pid}.jsonl
    {"file": ..., "version": ..., "items": [...]}     one file of a batch is settled
    {"failed": ..., "why": ...}                       one file failed; it will be tried again
    {"error": ...}                                    the attempt ended with this error
    {"stopped": ...}                                  an operator interrupted it, which is not an error of the step
    {"again": [...], "attempts": {...: number}}       an operator's redo: the first `number` lines of each attempt
                                                      no longer count for these files

A line helps a retry; it is never evidence. A line that a kill has cut, or that no step writes, is skipped, and the
work it stood for is done again.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any, BinaryIO, TypeGuard

from msgspec import Struct, field

from warcmill import errors, layout
from warcmill.base import clock
from warcmill.base.threads import threads
from warcmill.errors import BadInput, NotReady, Unsettled, WarcmillError
from warcmill.markers.claim import file_to_json, item_from_json, item_to_json
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Item, Json, Key, Outcome
from warcmill.stores import LocalStore, temporary_names

log = logging.getLogger(__name__)
EARLY = "NotReady"  # the kind of an attempt that came too early: a wire word, independent of the class's name
_LONGEST = 16 << 20  # bytes of a line
Settled = dict[tuple[str, str], tuple[str, tuple[Item, ...]]]  # by root and path: the version, and the items
_Done = tuple[str, tuple[Item, ...], bool]  # a file's version, its items, whether they are new
_under_way: dict[tuple[str, Key], str] = {}  # by state root and step: the file of the attempt that this process makes
_reported: set[tuple[str, int]] = set()


class Attempt(Struct, frozen=True):
    """One run of a step, as its attempt file records it."""

    path: str
    lines: tuple[dict[str, Any], ...]

    @property
    def name(self) -> str:
        """The name of its file."""
        return self.path.rpartition("/")[2]

    @property
    def error(self) -> str:
        """The error that ended the attempt; empty when there was none."""
        return next((line["error"] for line in reversed(self.lines) if "error" in line), "")

    @property
    def was_early(self) -> bool:
        """True if the attempt ended because the crawl had not reached this step."""
        return any(line.get("kind") == EARLY for line in self.lines)

    @property
    def launchings(self) -> list[Launching]:
        """The starts that the attempt was about to make."""
        return [Launching(line["after"], line["prepared"]) for line in self.lines if "launching" in line]

    @property
    def failures(self) -> dict[str, str]:
        """Why each failed file failed, by label."""
        return {line["failed"]: line["why"] for line in self.lines if "failed" in line}


class Launching(Struct, frozen=True):
    """A start that was about to be made while `after` was the job's newest launch; the facts for its 01.started."""

    after: str
    prepared: dict[str, Json]


class Attempts:
    """The attempts at one step, and a new one. Those made within `attempt` for the same step add to its file."""

    def __init__(self, state: MarkerStore, key: Key) -> None:
        self.state, self.key = state, key
        path = layout.attempt_path(key, clock.fine_stamp(), temporary_names.host(), os.getpid())
        self._path = _under_way.get(self._place, path)

    @property
    def _place(self) -> tuple[str, Key]:
        return str(self.state.store.base), self.key

    def earlier(self) -> list[Attempt]:
        """Return all attempts, oldest first."""
        files = (entry for entry in self.state.store.list(self._path.rpartition("/")[0]) if entry.kind == "file")
        ours = sorted(entry.path for entry in files if layout.parse_attempt_name(entry.name) == self.key)
        return [read(self.state.store, path) for path in ours]

    def settled(self) -> Settled:
        """Return the files (root, path) that any attempt settled: for each its version then, and its items."""
        return settled(self.earlier())

    def forget(self, file: FileRef) -> int:
        """Have one file, and the files made from it, done again; return how many others stay settled."""
        attempts = self.earlier()
        before = settled(attempts)
        places = [place for place, (_, items) in before.items() if any(_is_of(item, file) for item in items)]
        if places:
            again = [{"root": root, "path": path} for root, path in sorted(places)]
            self.append({"again": again, "attempts": {attempt.name: len(attempt.lines) for attempt in attempts}})
        return len(before) - len(places)

    def append(self, *lines: dict[str, Any]) -> None:
        """Add lines to this attempt's file, and make them durable."""
        text = "\n".join(json.dumps(line, ensure_ascii=False, sort_keys=True) for line in lines)
        self.state.store.append(self._path, text.encode("utf-8", "backslashreplace"))

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Note any exception that ends an attempt, for `warcmill why` and notices, and raise it again."""
        _under_way[self._place] = self._path
        try:
            yield
        except KeyboardInterrupt as error:
            self._note({"stopped": "interrupted", "kind": kind(error)})
            raise
        except BaseException as error:
            self._note({"error": errors.describe(error), "kind": kind(error)})
            raise
        finally:
            _under_way.pop(self._place, None)

    def _note(self, line: dict[str, Any]) -> None:
        """Add a last line. When that fails too, on a full disk for example, the attempt's own error is raised."""
        try:
            self.append(line)
        except (WarcmillError, OSError) as error:
            log.error("the attempt's end could not be noted: %s", error)


def settled(attempts: Iterable[Attempt]) -> Settled:
    """Return the files (root, path) that these attempts settled: for each its version then, and its items."""
    attempts = list(attempts)
    void = _void(attempts)
    return {
        place: (line["version"], tuple(map(item_from_json, line["items"])))
        for attempt in attempts
        for number, line in enumerate(attempt.lines)
        if "items" in line
        and number >= void.get((attempt.name, *(place := (line["file"]["root"], line["file"]["path"]))), 0)
    }


def _void(attempts: list[Attempt]) -> dict[tuple[str, str, str], int]:
    """Return, by an attempt's name and a file, how many of its first lines no longer count for this file."""
    void: dict[tuple[str, str, str], int] = {}
    for line in (line for attempt in attempts for line in attempt.lines if "again" in line):
        for file in line["again"]:
            for name, lines in line["attempts"].items():
                place = (name, file["root"], file["path"])
                void[place] = max(lines, void.get(place, 0))
    return void


def _is_of(item: Item, file: FileRef) -> bool:
    return (item.file.root, item.file.path) == (file.root, file.path)


def kind(error: BaseException) -> str:
    """Return the kind of an error, as an attempt's last line names it."""
    return EARLY if isinstance(error, NotReady) else type(error).__name__


def run_items(
    attempts: Attempts,
    files: Iterable[FileRef],
    version: Callable[[FileRef], str],
    work: Callable[[FileRef], tuple[Item, ...]],
    at_once: int = 1,
) -> tuple[Item, ...]:
    """Do the work on each file that no attempt has settled; return all items, or raise Unsettled when some failed.

    A file whose `version` has changed is done again. BadInput refuses the file for good; any other error fails it for
    now, and the next file is done. An unexpected error, which is a fault in this program, is raised once all files are
    done; of several, the first. With `at_once` above 1 so many files are worked on at a time, in threads; the items
    keep the order of the files, and only this thread writes the attempt's lines.
    """
    settling = _Settling(attempts.settled(), version, work)
    for batch in _as_done(settling.settle, files, at_once):
        if lines := [line for done in batch if (line := settling.line(*done))]:
            attempts.append(*lines)
    if settling.faults:
        raise settling.faults[0]
    if failures := settling.failures:
        raise Unsettled(str(attempts.key), [failures[number] for number in sorted(failures)])
    return tuple(item for number in sorted(settling.settled) for item in settling.settled[number])


class _Settling(Struct, frozen=True):
    """An attempt under way: the results of earlier ones, and its own, by the files' numbers."""

    before: Mapping[tuple[str, str], tuple[str, tuple[Item, ...]]]
    version: Callable[[FileRef], str]
    work: Callable[[FileRef], tuple[Item, ...]]
    settled: dict[int, tuple[Item, ...]] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    faults: list[Exception] = field(default_factory=list)

    def settle(self, file: FileRef) -> _Done:
        """Do the work on a file unless it is settled. May run in another thread: it changes nothing here."""
        version = self.version(file)
        earlier = self.before.get((file.root, file.path))
        if earlier and earlier[0] == version:
            return version, earlier[1], False
        return version, _do(self.work, file), True

    def line(self, number: int, file: FileRef, result: Callable[[], _Done]) -> dict[str, Any] | None:
        """Note the result of a file; return the attempt's line for it, None when an earlier attempt has one."""
        try:
            version, items, is_new = result()
        except (WarcmillError, OSError) as error:
            return self._failed(number, file, error)
        except Exception as fault:
            fault.add_note(f"while {file.label} was worked on")
            self.faults.append(fault)  # `run_items` raises it again
            log.exception("%s: a fault in Warcmill", file.label)
            return self._failed(number, file, fault)
        self.settled[number] = items
        if not is_new:
            return None
        return {"file": file_to_json(file), "version": version, "items": list(map(item_to_json, items))}

    def _failed(self, number: int, file: FileRef, error: Exception) -> dict[str, Any]:
        why = errors.describe(error)
        self.failures[number] = why if file.name in why else f"{file.label}: {why}"
        log.error("%s: failed: %s", file.label, why)
        return {"failed": file.label, "why": why}


def _as_done(
    ask: Callable[[FileRef], _Done], files: Iterable[FileRef], at_once: int
) -> Iterator[list[tuple[int, FileRef, Callable[[], _Done]]]]:
    """Yield batches of files, with their numbers, as their results become ready: in order when `at_once` is 1."""
    if at_once == 1:
        for number, file in enumerate(files):
            yield [(number, file, partial(ask, file))]
        return
    with threads(at_once) as submit:
        left, waiting = enumerate(files), dict[Future[_Done], tuple[int, FileRef]]()
        while True:
            for number, file in islice(left, 2 * at_once - len(waiting)):
                waiting[submit(ask, file)] = number, file
            if not waiting:
                return
            done = wait(waiting, return_when=FIRST_COMPLETED).done
            yield [(*waiting.pop(future), future.result) for future in done]


def _do(work: Callable[[FileRef], tuple[Item, ...]], file: FileRef) -> tuple[Item, ...]:
    try:
        return work(file)
    except BadInput as error:
        return (Item(file, Outcome.REFUSED, why=error.why, offset=error.offset),)


def read(store: LocalStore, path: str) -> Attempt:
    """Read the usable lines of an attempt file; NotReady when there is no such file."""
    with store.open(path) as file:
        return Attempt(path, tuple(_lines(file, path)))


def _lines(file: BinaryIO, path: str) -> Iterator[dict[str, Any]]:
    for number, raw in enumerate(_raw_lines(file), 1):
        line = _parsed(raw)
        if _is_ours(line):
            yield line
        elif raw.endswith(b"\n"):  # else a kill or a full disk has cut it, which is expected
            _report(path, number)


def _raw_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield each line; an empty one, which is not JSON, for a line that is too long."""
    for raw in iter(partial(file.readline, _LONGEST), b""):
        rest = raw
        while len(rest) == _LONGEST and not rest.endswith(b"\n"):
            rest = file.readline(_LONGEST)
        yield raw if rest is raw else b"\n"


def _parsed(raw: bytes) -> object:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _is_ours(line: object) -> TypeGuard[dict[str, Any]]:
    """True if a step writes such a line: it has one of the known words, with all members that readers use."""
    words = [word for word in _KINDS if word in line] if isinstance(line, dict) else []
    return len(words) == 1 and _KINDS[words[0]](line)


def _settles(line: object) -> bool:
    match line:
        case {"items": list(items), "version": str(), "file": file}:
            return _is_file(file) and all(map(_is_item, items))
        case _:
            return False


def _launches(line: object) -> bool:
    match line:
        case {"launching": str(), "after": str(), "prepared": dict()}:
            return True
        case _:
            return False


def _forgets(line: object) -> bool:
    match line:
        case {"again": list(files), "attempts": dict(attempts)}:
            places = all(isinstance(file, dict) and _has_texts("root", "path")(file) for file in files)
            return places and all(isinstance(number, int) for number in attempts.values())
        case _:
            return False


def _has_texts(*names: str) -> Callable[[Any], bool]:
    return lambda line: all(isinstance(line.get(name), str) for name in names)


def _is_file(file: object) -> bool:
    match file:
        case {"root": str(), "path": str(), "size": int(), **rest}:
            return isinstance(rest.get("sha512"), str | None)
        case _:
            return False


def _is_item(item: object) -> bool:
    match item:
        case {"file": file, "outcome": "ok" | "refused", **rest}:
            sound = _is_file(file) and ("made" not in rest or _is_file(rest["made"]))
            return sound and _has_types(rest)
        case _:
            return False


def _has_types(rest: dict[Any, Any]) -> bool:
    kinds = {"why": str, "offset": int, "facts": dict}
    return all(isinstance(rest[name], kind) for name, kind in kinds.items() if name in rest)


_KINDS: dict[str, Callable[[Any], bool]] = {
    "items": _settles,
    "failed": _has_texts("failed", "why"),
    "error": _has_texts("error"),
    "stopped": _has_texts("stopped"),
    "retiring": _has_texts("retiring"),
    "launching": _launches,
    "again": _forgets,
}


def _report(path: str, number: int) -> None:
    """Log a skipped line, once."""
    if (path, number) not in _reported:
        _reported.add((path, number))
        log.warning("state:%s line %d is nothing that a step writes; passed over", path, number)
