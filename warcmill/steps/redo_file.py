"""One file of a stage done again, and no other: what the attempts settled of the others stays.

The markers of the step, and of those that rest on it, go aside as with any redo. Their attempts stay where they are;
to each step's a line is added that says of which file nothing counts any more. These lines come first: a kill after
them costs the file's being read once more, should its steps be redone, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

from warcmill import chain
from warcmill.ledger import Ledger
from warcmill.model import FileRef, Key
from warcmill.state import State
from warcmill.steps.redo import Markers


def one_by_one() -> chain.Rows:
    """The steps that can do one file of a stage again. Retire is not among them: what it removed it must remember."""
    return tuple(row for row in chain.after_list(chain.ROWS) if not row.remembered)


def files(found: Markers, key: Key) -> list[FileRef]:
    """The files of a stage that a step has done."""
    return sorted({item.file for item in found[key].claim.items}) if key in found else []


def called(name: str, known: list[FileRef]) -> list[FileRef]:
    """The files that a name may mean: a whole path, else a file's name alone."""
    return [one for one in known if name in (one.label, one.path)] or [one for one in known if one.name == name]


def steps(key: Key) -> list[Key]:
    """The step, and those of its stage that work on what it leaves."""
    below = chain.below(chain.ROWS, chain.by_task(chain.ROWS)[key.task])
    return [key, *(Key(row.task, key.params) for row in below if row in one_by_one())]


def forget(state: State, key: Key, file: FileRef) -> Iterator[tuple[Key, int]]:
    """Have a file done again in the step and all after it: the last first; how many others each remembers."""
    for step in reversed(steps(key)):
        yield step, Ledger(state, step).forget(file)
