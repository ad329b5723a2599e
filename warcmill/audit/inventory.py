"""Every file of a launch, with its state at each step of the line. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from functools import partial
from itertools import chain as chained
from itertools import islice

from msgspec import Struct

from warcmill import chain
from warcmill.audit import gaps
from warcmill.audit.progress_grid import Mark
from warcmill.audit.survey import Survey
from warcmill.chain import Row
from warcmill.markers.attempts import settled
from warcmill.markers.facts.files import is_salvaged
from warcmill.model import FileRef, Item, Outcome, Stage

# Words of `--json`; people read those of MARKS.
LACKING, SETTLED, FAILED, NEVER = "lacking", "settled", "failed", "-"
MARKS = {
    Outcome.OK: Mark.DONE,
    Outcome.REFUSED: Mark.REFUSED,
    LACKING: Mark.WAITING,
    FAILED: Mark.FAILED,
    SETTLED: Mark.PARTIAL,
    NEVER: Mark.NOT_DUE,
}
_HAVE = (Outcome.OK, Outcome.REFUSED, NEVER)


class FileState(Struct, frozen=True):
    """One file. Each step: ok, refused, lacking, settled (done, but not yet the whole stage), failed, or - (never).

    Steps whose switch is off are left out, unless they have left a marker.
    """

    file: FileRef
    stage: str  # '' when no stage has it yet
    on_disk: bool | None  # None: unknown, for the disk was not listed
    stored: str  # its path in the store; '' when it is not stored
    steps: Mapping[str, str]
    why: str = ""

    def lacks(self, step: str) -> bool:
        """True if a step is still to be done for this file."""
        return self.steps.get(step, NEVER) not in _HAVE


def _steps(seen: Survey) -> list[Row]:
    return [row for row in seen.rows() if row.files]


def steps() -> tuple[str, ...]:
    """The words of the steps that files go through."""
    return tuple(row.word for row in chain.of_files(chain.ROWS))


class Inventory:
    """The files of a launch: those of each stage, then the WARCs that no stage has. Each state is made when asked."""

    def __init__(self, seen: Survey) -> None:
        self._seen, self._rows, self._on_disk = seen, _steps(seen), seen.warcs()
        self._stages = [_StageFiles(seen, stage, self._rows) for stage in seen.stages]
        listed = gaps.listed(seen)
        self._loose = [file for path, file in sorted(self._on_disk.items()) if path not in listed]

    def __len__(self) -> int:
        return sum(len(files.names) for files in self._stages) + len(self._loose)

    def states(self, first: int = 0, end: int | None = None) -> Iterator[FileState]:
        """The files from number `first` up to, not including, `end`, each with its states."""
        of_stages = (partial(files.state, name, self._on_disk) for files in self._stages for name in files.names)
        loose = (partial(self._unlisted, file) for file in self._loose)
        yield from (state() for state in islice(chained(of_stages, loose), first, end))

    def _unlisted(self, file: FileRef) -> FileState:
        steps = dict.fromkeys((row.word for row in self._rows), LACKING)
        return FileState(file, "", True, "", steps, "no stage has it yet")


_Name = tuple[str, str, bool]


class _StageFiles:
    """The files of a stage by name, in order, and what the attempts at steps without a marker have settled."""

    def __init__(self, seen: Survey, stage: Stage, rows: list[Row]) -> None:
        self._seen, self._stage, self._rows = seen, stage, rows
        self._by_step = {row.word: {_name(item): item for item in _items(seen, row.word, stage)} for row in rows}
        self._latest = {name: item for items in self._by_step.values() for name, item in items.items()}
        self._tried = {row.word: _Tried.of(seen, row.word, stage) for row in rows}
        self.names = sorted(self._latest)

    def state(self, name: _Name, on_disk: Container[str]) -> FileState:
        item = self._latest[name]
        states = {row.word: self._step(row, item, self._by_step[row.word].get(name)) for row in self._rows}
        whys = (items[name].why for items in self._by_step.values() if name in items and items[name].why)
        on_disk_now = self._is_on_disk(item, on_disk)
        stored = item.made.path if item.made else ""
        shown = item.made if item.made and is_salvaged(item) else item.file
        return FileState(shown, str(self._stage), on_disk_now, stored, states, next(whys, ""))

    def _is_on_disk(self, item: Item, on_disk: Container[str]) -> bool | None:
        if item.file.root == "state" or is_salvaged(item):
            return item.file.root == "state"
        return item.file.label in on_disk if self._seen.is_listed else None

    def _step(self, step: Row, latest: Item, done: Item | None) -> str:
        if done:
            return str(done.outcome)
        if step.by_sip:
            return _in_sip(self._seen, step, self._stage, latest)
        return NEVER if _is_never(step, latest) else self._tried[step.word].state(latest)


class _Tried(Struct, frozen=True):
    """The files that the attempts at a step without a marker have settled, and those at which the last one failed."""

    settled: frozenset[str]
    failed: frozenset[str]

    @classmethod
    def of(cls, seen: Survey, step: str, stage: Stage) -> _Tried:
        attempts = seen.attempts.get(seen.key(step, stage), ())
        done = frozenset(one.file.label for _, items in settled(attempts).values() for one in items)
        return cls(done, frozenset(attempts[-1].failures) if attempts else frozenset())

    def state(self, item: Item) -> str:
        names = {item.file.label, *([item.made.path] if item.made else [])}
        return SETTLED if names & self.settled else FAILED if names & self.failed else LACKING


def _items(seen: Survey, step: str, stage: Stage) -> tuple[Item, ...]:
    marker = seen.marker(step, stage)
    return marker.claim.items if marker else ()


def _name(item: Item) -> _Name:
    return item.file.root, item.file.path, is_salvaged(item)


def _in_sip(seen: Survey, step: Row, stage: Stage, item: Item) -> str:
    """The state of a file at a step of SIPs: that of the SIP which covers its stage."""
    if item.outcome is Outcome.REFUSED and item.file.sha512 is None:
        return NEVER  # refused by its name: it is not stored
    if seen.proof(step.word, stage):
        return str(Outcome.OK)
    return FAILED if seen.failed(step.word, stage) else LACKING


def _is_never(step: Row, item: Item) -> bool:
    """True if a file never goes through a step."""
    if is_salvaged(item):  # it exists only in the store
        return step.outward or not (step.stored or step.reads == "made")
    if item.file.root == "state":  # the zip of logs is made here, and stays
        return step.outward or step.warcs_only or not step.after
    return item.outcome is Outcome.REFUSED and item.file.sha512 is None  # by its name
