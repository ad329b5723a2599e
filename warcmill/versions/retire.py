"""Remove the files of old versions. Their lists stay: each can be made again, and compared, for ever."""

from __future__ import annotations

from dataclasses import dataclass

from warcmill.errors import Busy
from warcmill.markers import locks
from warcmill.markers.state import MarkerStore
from warcmill.stores import LocalStore
from warcmill.versions.fold import LOCK
from warcmill.versions.payloads import Payloads


@dataclass(frozen=True, slots=True)
class Retired:
    """The numbers of the versions whose files were removed, and how many folders that no fold had finished."""

    numbers: tuple[int, ...]
    unfinished: int


def retire(state: MarkerStore, index: LocalStore, data_set: str, keep: int) -> Retired:
    """Remove the files of all but the newest `keep` versions, never of the current one. Busy during a fold."""
    if locks.take(state, LOCK + data_set):
        raise Busy(f"the fold of {data_set}")
    payloads = Payloads(index, data_set)
    finished = {one.folder: one.number for one in payloads.all()}
    current = payloads.current()
    kept = set(sorted(finished, reverse=True)[:keep]) | ({current.folder} if current else set())
    gone = [folder for folder in payloads.folders() if folder not in kept]
    for folder in gone:
        payloads.remove(folder)
    numbers = tuple(finished[folder] for folder in gone if folder in finished)
    return Retired(numbers, len(gone) - len(numbers))
