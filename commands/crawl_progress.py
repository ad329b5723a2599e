"""Show how a crawl gets on: a line that is written over on a terminal, else a line every 30 seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import cast

from warcmill.base.progress import EVERY
from warcmill.model import Json


class Shown:
    """The progress of one crawl, on stderr."""

    def __init__(self, name: str) -> None:
        self._name, self._last, self._is_terminal = name, time.monotonic(), sys.stderr.isatty()

    def show(self, state: Mapping[str, Json]) -> None:
        """Show what a crawl says of itself."""
        if not state:
            return
        if self._is_terminal:
            sys.stderr.write(f"\r\x1b[K{line(self._name, state)}")
        elif time.monotonic() - self._last >= EVERY:
            self._last = time.monotonic()
            sys.stderr.write(f"{line(self._name, state)}\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._is_terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def line(name: str, state: Mapping[str, Json]) -> str:
    """How far a crawl is: done, queued, rate, by status."""
    done, seconds = cast(int, state["done"]), max(1, cast(int, state["seconds"]))
    statuses = cast("Mapping[str, int]", state["statuses"])
    by_status = ", ".join(f"{status}: {number}" for status, number in sorted(statuses.items()))
    figures = f"{done} done, {state['queued']} queued, {done / seconds:.1f}/s, {cast(int, state['bytes']) >> 10} KiB"
    failed = f", {state['failed']} failed" if state["failed"] else ""
    return f"{name}: {str(state['state']).lower()}, {figures}{failed} ({by_status})"
