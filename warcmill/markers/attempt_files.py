"""Read the files in `attempts/`: the lines that earlier runs of a step noted.

A line helps a retry; it is never evidence. A line that a kill has cut, or that no step writes, is skipped, and the
work it stood for is done again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, TypeGuard

from warcmill.errors import NotReady
from warcmill.model import Json
from warcmill.stores import LocalStore

log = logging.getLogger(__name__)
EARLY = "NotReady"  # the kind of an attempt that came too early: a wire word, independent of the class's name
_LONGEST = 16 << 20  # bytes of a line
_reported: set[tuple[str, int]] = set()


@dataclass(frozen=True, slots=True)
class Launching:
    """A start that was about to be made while `after` was the job's newest launch; the facts for its 01.started."""

    after: str
    prepared: dict[str, Json]


@dataclass(frozen=True, slots=True)
class Attempt:
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


def kind(error: BaseException) -> str:
    """Return the kind of an error, as an attempt's last line names it."""
    return EARLY if isinstance(error, NotReady) else type(error).__name__


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
    """Yield each line; an empty one, which is no JSON, for a line that is too long."""
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
