"""A sort of more lines than memory holds: sorted runs, merged at the end. Writes to nameless files only."""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

IN_MEMORY = 8 << 20  # bytes of lines, with what Python adds to each
_MORE = 64  # bytes that Python adds to a line


class SortedLines:
    """Lines in the order of their bytes: `add` all, then iterate, one pass after another. Each line ends in LF.

    `folder` holds the runs, if there are any; a killed process leaves nothing there. `close` frees them.
    """

    def __init__(self, folder: Path, in_memory: int = IN_MEMORY) -> None:
        self._folder, self._in_memory = folder, in_memory
        self._lines: list[bytes] = []
        self._bytes = 0
        self._runs: list[IO[bytes]] = []
        self._open = ExitStack()

    def add(self, line: bytes) -> None:
        """Take a line."""
        self._lines.append(line)
        self._bytes += len(line) + _MORE
        if self._bytes > self._in_memory:
            self._write_run()

    def __iter__(self) -> Iterator[bytes]:
        self._lines.sort()
        if not self._runs:
            return iter(self._lines)
        for run in self._runs:
            run.seek(0)
        return heapq.merge(*self._runs, self._lines)

    def close(self) -> None:
        """Remove the runs."""
        self._lines.clear()
        self._open.close()

    def _write_run(self) -> None:
        run = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - `close` closes it
        self._open.push(run)
        self._lines.sort()
        run.writelines(self._lines)
        self._runs.append(run)
        self._lines, self._bytes = [], 0
