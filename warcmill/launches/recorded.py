"""List the launches that have markers, without looking at the disks of engines."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from warcmill.base import clock
from warcmill.errors import BadInput
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch


def with_markers(state: MarkerStore, first: date, end: date) -> Iterator[Launch]:
    """The launches from `first` up to, not including, `end` that have a folder in the state root, in any order."""
    days = clock.day_digits(first), clock.day_digits(end)
    yield from (launch for launch in _in_months(state, first, end) if days[0] <= launch.id[:8] < days[1])


def _in_months(state: MarkerStore, first: date, end: date) -> Iterator[Launch]:
    months = clock.month(first), clock.month(end - timedelta(days=1))
    for month in state.store.list(""):
        if not months[0] <= month.name <= months[1]:
            continue
        for job in state.store.list(month.path):
            for name in state.store.names(job.path) if job.kind == "folder" else ():
                try:
                    yield Launch.parse(job.name, name)
                except BadInput:
                    continue  # no step made this folder
