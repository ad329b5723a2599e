"""A crawl that was cut short: what ended it, and how much of it waits, by the reports of its engine. Reads only.

Its crawl-report names its end, its frontier-summary-report the URIs that wait; all engines write both. The built-in
crawler adds the URIs that others need first, such as robots.txt: nobody asked for these, so they are not counted.
URIs over a quota do not wait, and are counted apart.

It stands alone: pages, `why` and `report` read the packed reports of a launch, `crawl` those on the disk.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from warcmill import layout
from warcmill.errors import BadInput, NotReady
from warcmill.formats.logs import logzip
from warcmill.markers.facts.output import Complete, PackedLogs
from warcmill.markers.facts.pulse import Started
from warcmill.markers.facts.reports import CrawlReported, Seeds
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, Key, Launch

CRAWL, FRONTIER = "crawl-report.txt", "frontier-summary-report.txt"
WHOLE = ("Finished", "Empty - Active")  # of the built-in crawler, and of Heritrix
QUOTA = -5003
_ENDED_BY = {
    "Finished - Ended by operator": "stopped",
    "Stopping - Active": "stopped",  # Heritrix does not distinguish a limit from a person
    "Finished - Maximum number of documents limit hit": "ended by --limit",
    "Finished - Maximum amount of data limit hit": "ended by its limit of bytes",
    "Finished - Timelimit hit": "ended by its limit of time",
}
_LARGEST = 1 << 26  # bytes of a report
_STATUS = re.compile(rb"crawl status: ([^\r\n]*)")
_NUMBER = re.compile(rb" *(Discovered|Queued|Prerequisites|Over quota): +(\d{1,18})\r?$", re.MULTILINE)


class CutShort(Struct, frozen=True):
    """The cut of a crawl. `known` is None where its reports do not have how much waits; `over_quota` of the known URIs
    are left out by a quota, for good."""

    by: str
    known: int | None
    waiting: int = 0
    over_quota: int = 0

    @property
    def text(self) -> str:
        """The cut in words: `ended by --limit: 5 of 37 known, 32 wait`."""
        if self.known is None:
            return f"{self.by}; how much of it waits is not known"
        got = max(0, self.known - self.waiting - self.over_quota)
        waits = f", {self.waiting:,} {'waits' if self.waiting == 1 else 'wait'}" if self.waiting else ""
        left = f", {self.over_quota:,} left out by a quota" if self.over_quota else ""
        return f"{self.by}: {got:,} of {self.known:,} known{waits}{left}"


def of_reports(end: str, frontier: bytes | None, over_quota: int = 0) -> CutShort | None:
    """The cut of a crawl that ended with this status; None for one that has all. Pure."""
    found = {name: int(number) for name, number in _NUMBER.findall(frontier or b"")}
    waiting, over_quota = found.get(b"Queued", 0), found.get(b"Over quota", over_quota)
    if not end or (not over_quota and (end in WHOLE or (found and not waiting))):
        return None
    by = "cut by a quota" if end in WHOLE or (found and not waiting) else _ENDED_BY.get(end, f"ended as '{end}'")
    known = found[b"Discovered"] - found.get(b"Prerequisites", 0) if b"Discovered" in found else None
    return CutShort(by, known, 0 if end in WHOLE else waiting, over_quota)


def of_folder(reports: Path) -> CutShort | None:
    """The cut of a crawl, by the reports in their folder on the disk."""
    crawl, frontier = (_read(reports / name) for name in (CRAWL, FRONTIER))
    return of_reports(_end(crawl), frontier)


def of_launch(state: MarkerStore, launch: Launch, facts: Mapping[Key, object]) -> CutShort | None:
    """The cut of a launch that has ended, by the facts of its markers, and by the reports in its 02.

    None where it has all that is known, before its last stage is packed, and for a launch of an endless job, or one
    that follows another without asking again for what that missed: what waits there waits for the next day.
    """
    started = facts.get(layout.key("pulse.Started", launch))
    if isinstance(started, Started) and (started.endless or (started.follows and not started.retries)):
        return None
    key, seeds = layout.step("pack", launch, FINAL), facts.get(layout.step("seeds", launch))
    tables = (fact.tables["by_status"] for fact in facts.values() if isinstance(fact, CrawlReported))
    over_quota = sum(table.get(str(QUOTA), 0) for table in tables)
    packed, complete = facts.get(key), facts.get(layout.step("process", launch))
    continued = isinstance(complete, Complete) and complete.continues  # a quota may be in the markers of that
    is_known_whole = isinstance(seeds, Seeds) and seeds.end in ("", *WHOLE) and not (over_quota or continued)
    if not isinstance(packed, PackedLogs) or is_known_whole:
        return None
    there = set(packed.members.values())
    names = [f"reports/{name}" for name in (CRAWL, FRONTIER)]
    try:
        with state.store.open(layout.marker_path(key)) as stream:
            crawl, frontier = (_member(stream, name) if name in there else None for name in names)
    except (BadInput, NotReady):
        crawl = frontier = None  # the zip is damaged, which is a gap itself
    end = _end(crawl) or (seeds.end if isinstance(seeds, Seeds) else "")
    return of_reports(end, frontier, over_quota)


def _member(stream: BinaryIO, name: str) -> bytes:
    with closing(logzip.open_member(stream, name)) as member:
        return member.read(_LARGEST)


def _end(report: bytes | None) -> str:
    status = _STATUS.search(report or b"")
    return status[1].decode("utf-8", "backslashreplace").strip() if status else ""


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()[:_LARGEST]
    except FileNotFoundError:
        return None
