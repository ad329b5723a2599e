"""Merge sorted lines of many sources in little memory: a few at a time, by runs in nameless files.

A source gives its lines in batches. Of the batches that are there, all lines up to the first batch's end are sorted
together: that takes half the time of a comparison for each line.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import IO

from warcmill.formats import zipnum
from warcmill.formats.zipnum import Block

FAN_IN = 96  # sources that are open at a time
Batch = list[bytes]
Source = Callable[[], Iterable[Batch]]


class Merge:
    """Merges sources. `folder` holds the runs, if there are any; a killed process leaves nothing there."""

    def __init__(self, folder: Path, fan_in: int = FAN_IN) -> None:
        self._folder, self._fan_in = folder, fan_in
        self._open = ExitStack()

    def batches(self, small: Sequence[Source], large: Sequence[Source] = ()) -> Iterator[Batch]:
        """The lines of all sources, sorted. Only small ones are written to runs, if there are too many."""
        room = max(self._fan_in - len(large), 2)
        while len(small) > room:
            small = [self._run(small[at : at + self._fan_in]) for at in range(0, len(small), self._fan_in)]
        return merged([source() for source in (*large, *small)])

    def close(self) -> None:
        """Free the runs."""
        self._open.close()

    def _run(self, sources: Sequence[Source]) -> Source:
        run = self._open.enter_context(tempfile.TemporaryFile(dir=self._folder))  # noqa: SIM115 - `close` closes it
        blocks = list[Block]()
        for packed in zipnum.pack(chain.from_iterable(merged([source() for source in sources]))):
            run.write(packed.data)
            blocks.append(packed.block)
        return lambda: _read(run, blocks)


def merged(sources: Sequence[Iterable[Batch]]) -> Iterator[Batch]:
    """Merge sorted sources."""
    left = list(filter(None, map(_Left, sources)))
    while left:
        end = min(one.last for one in left)
        batch = [line for one in left for line in one.take(end)]
        batch.sort()
        yield batch
        left = list(filter(None, left))


class _Left:
    """What is left of a source; false once nothing is."""

    def __init__(self, batches: Iterable[Batch]) -> None:
        self._batches = filter(None, batches)
        self._batch, self._at = Batch(), 0
        self._next()

    def __bool__(self) -> bool:
        return bool(self._batch)

    @property
    def last(self) -> bytes:
        """The last line that was read."""
        return self._batch[-1]

    def take(self, end: bytes) -> Batch:
        """The lines up to a line, of those that were read."""
        at, self._at = self._at, bisect_right(self._batch, end, self._at)
        taken = self._batch[at : self._at]
        if self._at == len(self._batch):
            self._next()
        return taken

    def _next(self) -> None:
        self._batch, self._at = next(self._batches, []), 0


def _read(run: IO[bytes], blocks: Sequence[Block]) -> Iterator[Batch]:
    for block in blocks:
        run.seek(block.offset)
        yield zipnum.unpack(run.read(block.length), "a nameless file", block.offset)
