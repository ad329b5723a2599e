"""SURT prefixes, of which one that covers a SURT is found in the time of one search."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from warcmill.errors import BadInput

HTTP, HTTPS = "http://(", "https://("


class Prefixes:
    """A set of prefixes. One that another covers adds nothing, so it is left out: then the search is exact."""

    def __init__(self, prefixes: Iterable[str] = ()) -> None:
        self._sorted: list[str] = []
        for prefix in sorted(set(prefixes)):
            if not (self._sorted and prefix.startswith(self._sorted[-1])):
                self._sorted.append(prefix)

    def __len__(self) -> int:
        return len(self._sorted)

    def covering(self, surt: str) -> str | None:
        """Return the prefix that a SURT begins with; None for none."""
        place = bisect_right(self._sorted, surt)
        return self._sorted[place - 1] if place and surt.startswith(self._sorted[place - 1]) else None


def read(text: str) -> Prefixes:
    """Return the prefixes of a surts.txt or exclude.txt: a line each, with or without Heritrix's `+` before it."""
    lines = (line.strip().removeprefix("+").strip() for line in text.splitlines())
    return Prefixes(prefix(line) for line in lines if line and not line.startswith("#"))


def prefix(text: str) -> str:
    """Return a prefix as SURTs are compared, which have http for https; BadInput for what none begins with."""
    found = HTTP + text.removeprefix(HTTPS) if text.startswith(HTTPS) else text
    if not found.startswith(HTTP):
        raise BadInput(repr(text), "is no SURT prefix, such as http://(org,example,www,)/news/")
    return found
