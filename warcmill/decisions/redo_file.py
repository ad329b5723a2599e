"""Redo one file of a stage: what attempts settled of the other files stays.

The markers of the step and of its descendants go aside, as with any redo. Their attempts stay. Each step gets one
line more in its attempts: forget this file. These lines are written first: a kill after them costs at most one more
reading of the file.
"""

from __future__ import annotations

from collections.abc import Iterator

from warcmill import chain
from warcmill.decisions.redo import Markers
from warcmill.markers.attempts import Attempts
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Key


def repeatable() -> chain.Rows:
    """The steps that can redo one file of a stage. Not Retire: it must remember what it removed."""
    return tuple(row for row in chain.after_list(chain.ROWS) if not row.remembered)


def files(markers: Markers, key: Key) -> list[FileRef]:
    """The files in the claim of a step of a stage; empty without its marker."""
    return sorted({item.file for item in markers[key].claim.items}) if key in markers else []


def matching(name: str, known: list[FileRef]) -> list[FileRef]:
    """The files that match a name: by whole path, with or without root, else by file name."""
    by_path = [file for file in known if name in (file.label, file.path)]
    return by_path or [file for file in known if file.name == name]


def steps(key: Key) -> list[Key]:
    """The step, and the repeatable steps of its stage that come after it."""
    below = chain.below(chain.ROWS, chain.by_task(chain.ROWS)[key.task])
    return [key, *(Key(row.task, key.params) for row in below if row in repeatable())]


def forget(state: MarkerStore, key: Key, file: FileRef) -> Iterator[tuple[Key, int]]:
    """Forget a file in the step and all after it, the last first; yield how many other files each still remembers."""
    for step in reversed(steps(key)):
        yield step, Attempts(state, step).forget(file)
