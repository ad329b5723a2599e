"""Bring a sink up to date with the current version of an index. A sink is a server that has the index as well.

An input is noted before it is sent, and acknowledged after the sink's answer: killed at any moment, the next run sends
it again, or takes away what came of it. Whatever is no longer in the version is withdrawn.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Protocol

from warcmill.errors import Unavailable, WarcmillError
from warcmill.index.acknowledged import Acknowledged, Answer, Part
from warcmill.stores import LocalStore
from warcmill.versions.inputs import VersionList

log = logging.getLogger(__name__)


class Sink(Protocol):
    """A server that has an index."""

    @property
    def name(self) -> str:
        """The folder of its acknowledgements: another one for another server."""
        ...

    @property
    def place(self) -> str:
        """What operators call it."""
        ...

    def post(self, new: Part, old: Part | None) -> tuple[int, ...]:
        """Send an input; `old` is what the sink has of it. Returns the offsets of the records that it refuses."""
        ...

    def withdraw(self, old: Part, new: Part | None) -> None:
        """Take away what the sink has of an input, but what `new` has as well."""
        ...


class Asked(Protocol):
    """A server that has an index, as VerifyCdx asks it. `name` and `place` are those of the sink."""

    @property
    def name(self) -> str: ...

    @property
    def place(self) -> str: ...

    def check(self) -> None:
        """Unavailable unless it answers."""
        ...

    def ask(self, line: bytes, is_shown: bool) -> None:
        """Ask for one capture, by its line. Mismatch if it is not there as it should be."""
        ...


def bring(index: LocalStore, sink: Sink, listed: VersionList) -> tuple[str, ...]:
    """Send what is missing, withdraw what is no longer listed. Returns what went wrong; the next run tries it again."""
    return tuple(_Bringing(index, sink, listed).run())


class _Bringing:
    def __init__(self, index: LocalStore, sink: Sink, listed: VersionList) -> None:
        self._sink, self._acknowledged = sink, Acknowledged(index, sink.name)
        self._parts = {one.name: Part(one.identity, listed.hiding) for one in listed.inputs}

    def run(self) -> Iterator[str]:
        """Do it, and yield what went wrong. Where the sink does not answer, the rest waits."""
        try:
            self._acknowledged.sweep()
            olds = self._olds()
            missing = {part.input.name for part in self._acknowledged.missing(self._parts.values())}
        except WarcmillError as error:
            yield f"{self._sink.place}: {error}"
            return
        names = sorted({*missing, *olds})
        for done, name in enumerate(names):
            try:
                self._one(self._parts.get(name), olds.get(name, []))
            except Unavailable as error:
                yield f"{error}; of {len(names)} WARCs, {len(names) - done} wait for the next scan"
                return
            except WarcmillError as error:
                yield f"{self._sink.place}: {name}: {error}"
        if names:
            log.info("%s: %d WARCs were sent or withdrawn", self._sink.place, len(names))

    def _olds(self) -> dict[str, list[Answer]]:
        """What the sink has, or may have, of other parts than these, by the names of their WARCs."""
        found: dict[str, list[Answer]] = {}
        for old in self._acknowledged.others(self._parts.values()):
            found.setdefault(old.part.input.name, []).append(old)
        return found

    def _one(self, new: Part | None, olds: list[Answer]) -> None:
        """Have the sink have of a WARC what is new, and nothing of what is old."""
        if new:
            self._acknowledged.begin(new)
        for old in olds:
            self._sink.withdraw(old.part, new)
        if new:
            # Only of one whole part is it known what the sink has: else all is sent again.
            known = olds[0] if len(olds) == 1 and olds[0].is_whole and not self._acknowledged.has(new) else None
            refused = self._sink.post(new, known.part if known else None)
            self._acknowledged.done(new, {*refused, *(known.refused if known else ())})
        for old in olds:
            self._acknowledged.forget(old.part)
