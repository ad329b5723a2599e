"""The lives of a package index's files that a new generation of dumps carries over from the one before.

They are made of that generation's dumps, window by window: so the past outlives better rules of reading files, and what
pages of today have. Reads the store; writes to nameless files.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from datetime import date
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Self

from msgspec.structs import replace

from warcmill import layout
from warcmill.base.line_sort import SortedLines
from warcmill.formats.pypi.dump import DistributionRow, ProjectState, decoder, row_line
from warcmill.formats.pypi.lives import DistributionLife, ProjectLives, lives_in
from warcmill.formats.pypi.projects import ProjectRecord
from warcmill.launches.discovery import with_markers
from warcmill.launches.full_dumps import all_decided
from warcmill.markers.facts.pypi import Dumped
from warcmill.markers.state import MarkerStore
from warcmill.model import Window
from warcmill.pypi.data_sets import DumpedProject, WholeDump, chain_of, readings
from warcmill.stores import Store

_project = attrgetter("project")


class Carried:
    """The lives at the end of a generation's chain of dumps. `close` frees what it holds."""

    def __init__(self, lines: SortedLines, windows: list[Window], begin: int) -> None:
        self._lines, self._windows, self._begin = lines, windows, begin
        self._page, self._row = decoder(ProjectState), decoder(DistributionRow)

    @classmethod
    def of(cls, state: MarkerStore, store: Store, folder: Path, job: str, generation: int, up_to: int) -> Self | None:
        """Those of the newest generation before one, if it ends at a serial up to this one; None without any."""
        chain = chain_of([one for one in _whole(state, job) if one.generation < generation])
        if not chain or chain[-1].window.up_to > up_to:
            return None
        lines, windows, begin = SortedLines(folder), list[Window](), chain[0].window.up_to
        for number, (window, reading) in enumerate(readings(lambda: store, chain)):
            windows.append(window)
            for one in reading.projects():
                page, past = (row_line(row).decode() if row else "null" for row in (one.page, one.past))
                lines.add(f"{one.name}\t{number:06d}\t0\t[{one.pages}, {page}, {past}]\n".encode())
                if one.past and one.past.since is not None:
                    begin = one.past.since
            for row in reading.rows():
                lines.add(f"{row.project}\t{number:06d}\t1\t".encode() + row_line(row) + b"\n")
        return cls(lines, windows, begin)

    def lives(self) -> Iterator[ProjectLives]:
        """The lives of each project, by its name."""
        for name, some in groupby(self._lines, lambda line: line.partition(b"\t")[0]):
            known, record = dict[str, DistributionLife](), ProjectRecord()
            for line in some:
                _, number, kind, data = line.split(b"\t", 3)
                if kind == b"0":
                    dumped, window = self._dumped(name.decode(), data), self._windows[int(number)]
                    known, record = (
                        dumped.carried_on(known, record, window),
                        dumped.recorded(record, window, missed=False),
                    )
                else:
                    row = self._row(data)
                    if row.filename in known:
                        known[row.filename] = known[row.filename].attached(row)
            if known:
                files = tuple(known[file] for file in sorted(known))
                yield ProjectLives(name.decode(), (), self._begin, files, record.statuses)

    def pages(self) -> Iterator[tuple[str, int]]:
        """The serial of the last page that was dumped of each project, by its name."""
        for name, some in groupby(self._lines, lambda line: line.partition(b"\t")[0]):
            parts = (line.split(b"\t", 3) for line in some)
            pages = (self._dumped("", data).page for _, _, kind, data in parts if kind == b"0")
            serials = [page.serial for page in pages if page and page.serial is not None]
            if serials:
                yield name.decode(), serials[-1]

    def _dumped(self, name: str, data: bytes) -> DumpedProject:
        pages, page, past = json.loads(data)
        return DumpedProject(
            name,
            self._page(json.dumps(page).encode()) if page else None,
            lives_in(json.dumps(past).encode()) if past else None,
            pages,
        )

    def close(self) -> None:
        """Free what it holds."""
        self._lines.close()


def with_events(
    carried: Iterator[ProjectLives], events: Iterator[ProjectLives], *, has_events: bool
) -> Iterator[ProjectLives]:
    """Lives that are carried over, and the events of the window since, a row a project. Without a changelog no events
    are known."""
    for _, some in groupby(heapq.merge(carried, events, key=_project), _project):
        first, *more = some
        known = (*first.events, *(more[0].events or ())) if first.events is not None and more else first.events
        yield replace(first, events=known if has_events else None)


def _whole(state: MarkerStore, job: str) -> Iterator[WholeDump]:
    """The whole dumps of a job, and its full dumps."""
    launches = (launch for launch in with_markers(state, date.min, date.max) if launch.job == job)
    keys = [*(layout.step("dump", launch) for launch in launches), *(full.key for full in all_decided(state, job))]
    for marker in map(state.read, keys):
        if marker and (dumped := Dumped.from_claim(marker.claim)).whole:
            yield WholeDump(dumped.window, dumped.generation, dumped.files)
