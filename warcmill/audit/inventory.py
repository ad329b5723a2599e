"""Every file of a launch, with its state at each step of the line. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from warcmill import chain
from warcmill.audit import gaps
from warcmill.audit.progress_grid import Mark
from warcmill.audit.survey import Survey
from warcmill.chain import Row
from warcmill.markers.attempts import settled
from warcmill.markers.facts import is_salvaged
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


@dataclass(frozen=True, slots=True)
class FileState:
    """One file. Each step: ok, refused, lacking, settled (done, but not yet the whole stage), failed, or - (never).

    Steps whose switch is off are left out, unless they have left a marker.
    """

    file: FileRef
    stage: str  # '' when no stage has it yet
    on_disk: bool
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


def inventory(seen: Survey) -> Iterator[FileState]:
    """The files of a launch: those of each stage, then the WARCs that no stage has."""
    for stage in seen.stages:
        yield from _of_stage(seen, stage)
    listed = gaps.listed(seen)
    for path, file in sorted(seen.warcs().items()):
        if path not in listed:
            steps = dict.fromkeys((row.word for row in _steps(seen)), LACKING)
            yield FileState(file, "", True, "", steps, "no stage has it yet")


def _of_stage(seen: Survey, stage: Stage) -> Iterator[FileState]:
    rows = _steps(seen)
    by_step = {row.word: {_name(item): item for item in _items(seen, row.word, stage)} for row in rows}
    latest = {name: item for items in by_step.values() for name, item in items.items()}
    on_disk = seen.warcs()
    for name, item in sorted(latest.items()):
        states = {row.word: _step(seen, row, stage, item, by_step[row.word].get(name)) for row in rows}
        whys = (items[name].why for items in by_step.values() if name in items and items[name].why)
        on_disk_now = item.file.root == "state" or (item.file.label in on_disk and not is_salvaged(item))
        stored = item.made.path if item.made else ""
        shown = item.made if item.made and is_salvaged(item) else item.file
        yield FileState(shown, str(stage), on_disk_now, stored, states, next(whys, ""))


def _items(seen: Survey, step: str, stage: Stage) -> tuple[Item, ...]:
    marker = seen.marker(step, stage)
    return marker.claim.items if marker else ()


def _name(item: Item) -> tuple[str, str, bool]:
    return item.file.root, item.file.path, is_salvaged(item)


def _step(seen: Survey, step: Row, stage: Stage, latest: Item, done: Item | None) -> str:
    if done:
        return str(done.outcome)
    if step.by_sip:
        return _in_sip(seen, step, stage, latest)
    return NEVER if _is_never(step, latest) else _tried(seen, step.word, stage, latest)


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


def _tried(seen: Survey, step: str, stage: Stage, item: Item) -> str:
    """The state of a file at a step that has no marker yet, from the attempts at the step."""
    attempts = seen.attempts.get(seen.key(step, stage), ())
    names = {item.file.label, *([item.made.path] if item.made else [])}
    if any(done.file.label in names for _, items in settled(attempts).values() for done in items):
        return SETTLED
    return FAILED if attempts and names & set(attempts[-1].failures) else LACKING
