"""Read the files in `attempts/`: what earlier runs of a step noted, line by line.

A line is a help to a retry, never evidence: one that is torn by a kill, or is nothing that a step writes, is
passed over, and what it would have said is done again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, TypeGuard

from warcmill.stores.file import FileStore

log = logging.getLogger(__name__)
_LONGEST = 16 << 20  # bytes of a line
_told: set[tuple[str, int]] = set()


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of a step, as its attempt file tells it."""

    path: str
    lines: tuple[dict[str, Any], ...]

    @property
    def name(self) -> str:
        """The name of its file."""
        return self.path.rpartition("/")[2]

    @property
    def error(self) -> str:
        """What the attempt ended with; empty when it did not end with an error."""
        return next((line["error"] for line in reversed(self.lines) if "error" in line), "")

    @property
    def failures(self) -> dict[str, str]:
        """Why each failed file failed, by label."""
        return {line["failed"]: line["why"] for line in self.lines if "failed" in line}


def read(store: FileStore, path: str) -> Attempt:
    """The lines of an attempt file that can be used."""
    with store.open(path) as file:
        return Attempt(path, tuple(_lines(file, path)))


def _lines(file: BinaryIO, path: str) -> Iterator[dict[str, Any]]:
    for number, raw in enumerate(_raw_lines(file), 1):
        line = _parsed(raw)
        if _is_ours(line):
            yield line
        elif raw.endswith(b"\n"):  # else a kill or a full disk has cut it: nothing to tell
            _tell(path, number)


def _raw_lines(file: BinaryIO) -> Iterator[bytes]:
    """Each line; of one that is too long its beginning alone, which is no JSON."""
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
    """Whether a line is one that a step writes: one of its words, with all that readers ask of it."""
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
            places = all(isinstance(one, dict) and _says("root", "path")(one) for one in files)
            return places and all(isinstance(number, int) for number in attempts.values())
        case _:
            return False


def _says(*names: str) -> Callable[[Any], bool]:
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
    "failed": _says("failed", "why"),
    "error": _says("error"),
    "stopped": _says("stopped"),
    "retiring": _says("retiring"),
    "launching": _launches,
    "again": _forgets,
}


def _tell(path: str, number: int) -> None:
    """Name a line that was passed over, once."""
    if (path, number) not in _told:
        _told.add((path, number))
        log.warning("state:%s line %d is nothing that a step writes; passed over", path, number)
