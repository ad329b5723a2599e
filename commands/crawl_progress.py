"""Show how a crawl gets on: a line that is written over on a terminal, else a line every 30 seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import cast

from warcmill.base.printable import printable
from warcmill.base.progress import EVERY
from warcmill.model import Json


class Shown:
    """The progress of one crawl, on stderr."""

    def __init__(self, name: str) -> None:
        self._name, self._last, self._is_terminal = name, time.monotonic(), sys.stderr.isatty()
        self._failed = ""

    def show(self, state: Mapping[str, Json]) -> None:
        """Show what a crawl says of itself."""
        if not state:
            return
        self._show_failure(cast(str, state["failed_first"]))
        if self._is_terminal:
            sys.stderr.write(f"\r\x1b[K{line(self._name, state)}")
        elif time.monotonic() - self._last >= EVERY:
            self._last = time.monotonic()
            sys.stderr.write(f"{line(self._name, state)}\n")
        sys.stderr.flush()

    def _show_failure(self, failed: str) -> None:
        """Show the first fetch that got no answer, once: it is tried again, which may take minutes."""
        if failed and not self._failed:
            self._failed = failed
            self.close()
            sys.stderr.write(f"{self._name}: no answer yet, it is tried again: {printable(failed)}\n")

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._is_terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def line(name: str, state: Mapping[str, Json]) -> str:
    """How far a crawl is: documents, queued, rate, by status. What a fetch needs first, as a robots.txt, is none."""
    done, seconds = cast(int, state["documents"]), max(1, cast(int, state["seconds"]))
    statuses = cast("Mapping[str, int]", state["statuses"])
    by_status = ", ".join(f"{status}: {number}" for status, number in sorted(statuses.items()))
    kib = cast(int, state["bytes"]) >> 10
    figures = f"{done} documents, {state['queued']} queued, {done / seconds:.1f}/s, {kib} KiB"
    failed = f", {state['failed']} failed" if state["failed"] else ""
    return f"{name}: {str(state['state']).lower()}, {figures}{failed}" + (f" ({by_status})" if by_status else "")
