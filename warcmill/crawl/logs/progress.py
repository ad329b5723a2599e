"""The lines of progress-statistics.log, as Heritrix has them: a heading, a row at each interval, and events. Pure.

Times, sizes and numbers are as in Heritrix's reports.
"""

from __future__ import annotations

import math
from pathlib import Path

from msgspec import Struct

from warcmill.formats.logs.crawllog import moment

_COLUMNS = (
    ("timestamp", 20), ("discovered", 32), ("queued", 44), ("downloaded", 57), ("doc/s(avg)", 74), ("KB/s(avg)", 85),
    ("dl-failures", 99), ("busy-thread", 113), ("mem-use-KB", 126), ("heap-size-KB", 140), ("congestion", 153),
    ("max-depth", 165), ("avg-depth", 177),
)  # fmt: skip
"""Each column with the place of its last letter in the line."""

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms"))
_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


class Moment(Struct, frozen=True):
    """The figures of a row: all counts are of the whole crawl, `seconds` is for how long it has run, without pauses.

    `busy` counts downloads under way; `wanted` is how many queues would be fetched from if there were no limit.
    `depth` is the length of the longest queue, -1 when it is not known, and `average_depth` that of all others too.
    """

    at: float
    seconds: float
    discovered: int
    queued: int
    downloaded: int
    bytes: int
    failures: int
    busy: int = 0
    wanted: int = 0
    depth: int = -1
    average_depth: int = 0


class ProgressStatistics:
    """The rows of a launch, each with its rates since the row before and since the beginning."""

    def __init__(self) -> None:
        self._last: Moment | None = None

    def row(self, now: Moment) -> str:
        """Return the row of a moment; the next one's rates count from here."""
        last, self._last = self._last, now
        return _line(_values(now, last))


def heading() -> str:
    """The line above the rows."""
    return _line([name for name, _ in _COLUMNS])


def event(at: float, what: str, before: str) -> str:
    """The line of an event: `CRAWL RUNNING - Preparing`."""
    return f"{_second(at)} CRAWL {what} - {before}"


def _values(now: Moment, last: Moment | None) -> list[str]:
    documents, kib = _rates(now, last, "downloaded", 1), _rates(now, last, "bytes", 1024)
    congestion = now.wanted / now.busy if now.busy else math.nan
    used, size = _memory()
    return [
        _second(now.at), str(now.discovered), str(now.queued), str(now.downloaded),
        f"{_number(documents[0])}({_number(documents[1])})",
        f"{_whole(kib[0])}({_whole(kib[1])})",
        str(now.failures), str(now.busy), str(used), str(size), _number(congestion), str(now.depth),
        str(now.average_depth),
    ]  # fmt: skip


def _rates(now: Moment, last: Moment | None, name: str, unit: int) -> tuple[float, float]:
    """The rates since the last row, and since the beginning."""
    total = getattr(now, name) / unit
    whole = total / now.seconds if now.seconds > 0 else math.nan
    seconds = now.seconds - last.seconds if last else now.seconds
    before = getattr(last, name) / unit if last else 0.0
    return ((total - before) / seconds if seconds > 0 else 0.0), whole


def _number(value: float) -> str:
    return "NaN" if math.isnan(value) else number(value, 2)


def _whole(value: float) -> int:
    """A number as Heritrix cuts it."""
    return 0 if math.isnan(value) else int(value)


def _memory() -> tuple[int, int]:
    """The memory that the process has, and that it has asked for, in KiB (proc(5), statm)."""
    size, resident = Path("/proc/self/statm").read_text().split()[:2]
    return int(resident) * 4, int(size) * 4


def _line(values: list[str]) -> str:
    """Values right-aligned at the ends of their columns; at least one blank is between them."""
    line = ""
    for value, (_, end) in zip(values, _COLUMNS, strict=True):
        line += value.rjust(max(end - len(line), len(value) + bool(line)))
    return line


def _second(at: float) -> str:
    return f"{moment(at)[:19]}Z"


def duration(seconds: float) -> str:
    """A length of time, without units that it has none of: `1m41s333ms`."""
    rest, parts = round(seconds * 1000), []
    for unit, name in _UNITS:
        count, rest = divmod(rest, unit)
        parts += [f"{count}{name}"] if count else []
    return "".join(parts) or "0ms"


def size(count: int) -> str:
    """A number of bytes, with a decimal when it is below 10: `6.3 MiB`, `302 KiB`, `428 B`."""
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_SIZES) - 1:
        value, unit = value / 1024, unit + 1
    return f"{number(value, 1 if value < 10 else 0)} {_SIZES[unit]}"


def number(value: float, digits: int) -> str:
    """A number with at most so many decimals, and no needless zeros."""
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if digits else text
