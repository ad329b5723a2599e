"""Merge sorted lines of many sources in little memory: a few at a time, by runs in nameless files."""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from warcmill.formats import zipnum
from warcmill.formats.zipnum import Block

FAN_IN = 96  # sources that are open at a time
Source = Callable[[], Iterable[bytes]]


class Merge:
    """Merges sources. `folder` holds the runs, if there are any; a killed process leaves nothing there."""

    def __init__(self, folder: Path, fan_in: int = FAN_IN) -> None:
        self._folder, self._fan_in = folder, fan_in
        self._open = ExitStack()

    def lines(self, small: Sequence[Source], large: Sequence[Source] = ()) -> Iterator[bytes]:
        """The lines of all sources, sorted. Only small ones are written to runs, if there are too many."""
        room = max(self._fan_in - len(large), 2)
        while len(small) > room:
            small = [self._run(small[at : at + self._fan_in]) for at in range(0, len(small), self._fan_in)]
        return heapq.merge(*(source() for source in (*large, *small)))

    def close(self) -> None:
        """Free the runs."""
        self._open.close()

    def _run(self, sources: Sequence[Source]) -> Source:
        run = self._open.enter_context(tempfile.TemporaryFile(dir=self._folder))  # noqa: SIM115 - `close` closes it
        blocks = list[Block]()
        for packed in zipnum.pack(heapq.merge(*(source() for source in sources))):
            run.write(packed.data)
            blocks.append(packed.block)
        return lambda: _read(run, blocks)


def _read(run: IO[bytes], blocks: Sequence[Block]) -> Iterator[bytes]:
    for block in blocks:
        run.seek(block.offset)
        yield from zipnum.unpack(run.read(block.length), "a nameless file", block.offset)
