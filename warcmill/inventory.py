"""Every file of a launch, with what each step of the line has come to for it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from warcmill import chain, gaps
from warcmill.chain import Row
from warcmill.ledger import settled
from warcmill.model import FileRef, Item, Outcome, Stage
from warcmill.survey import Survey

LACKING, SETTLED, FAILED, NEVER = "lacking", "settled", "failed", "-"
_HAVE = (Outcome.OK, Outcome.REFUSED, NEVER)


@dataclass(frozen=True, slots=True)
class FileState:
    """One file. Each step: ok, refused, lacking, settled (done, but not yet the whole stage), failed, or - (never).

    A step whose switch is off is not among them, unless it has left a marker.
    """

    file: FileRef
    stage: str  # '' when no stage has it yet
    on_disk: bool
    stored: str  # its path in the store; '' when it is not there
    steps: Mapping[str, str]
    why: str = ""

    def lacks(self, step: str) -> bool:
        """Whether a step that this file should go through has not been done."""
        return self.steps.get(step, NEVER) not in _HAVE


def _steps(seen: Survey) -> list[Row]:
    return [row for row in seen.rows() if row.files]


def steps() -> tuple[str, ...]:
    """The words of the steps that files go through."""
    return tuple(row.word for row in chain.of_files(chain.ROWS))


def inventory(seen: Survey) -> Iterator[FileState]:
    """The files of a launch: those of each stage, then WARCs that no stage has."""
    for stage in seen.stages:
        yield from _of_stage(seen, stage)
    listed = gaps.listed(seen)
    for path, file in sorted(seen.warcs().items()):
        if path not in listed:
            yield FileState(
                file, "", True, "", dict.fromkeys((row.word for row in _steps(seen)), LACKING), "no stage has it yet"
            )


def _of_stage(seen: Survey, stage: Stage) -> Iterator[FileState]:
    rows = _steps(seen)
    found = {row.word: {_name(item): item for item in _items(seen, row.word, stage)} for row in rows}
    latest = {name: item for items in found.values() for name, item in items.items()}
    on_disk = seen.warcs()
    for name, item in sorted(latest.items()):
        states = {row.word: _step(seen, row, stage, item, found[row.word].get(name)) for row in rows}
        whys = (items[name].why for items in found.values() if name in items and items[name].why)
        here = item.file.root == "state" or (item.file.label in on_disk and not item.facts.get("salvaged"))
        stored = item.made.path if item.made else ""
        shown = item.made if item.made and item.facts.get("salvaged") else item.file
        yield FileState(shown, str(stage), here, stored, states, next(whys, ""))


def _items(seen: Survey, step: str, stage: Stage) -> tuple[Item, ...]:
    marker = seen.marker(step, stage)
    return marker.claim.items if marker else ()


def _name(item: Item) -> tuple[str, str, bool]:
    return item.file.root, item.file.path, bool(item.facts.get("salvaged"))


def _step(seen: Survey, step: Row, stage: Stage, latest: Item, done: Item | None) -> str:
    if done:
        return str(done.outcome)
    return NEVER if _is_never(step, latest) else _tried(seen, step.word, stage, latest)


def _is_never(step: Row, item: Item) -> bool:
    """Whether a file does not go through a step."""
    if item.facts.get("salvaged"):  # it exists in the store alone
        return step.outward or not (step.stored or step.reads == "made")
    if item.file.root == "state":  # the zip of logs is made here, and stays
        return step.outward or not step.after
    return item.outcome is Outcome.REFUSED and item.file.sha512 is None  # by its name


def _tried(seen: Survey, step: str, stage: Stage, item: Item) -> str:
    """What attempts at a step whose marker is not there have come to for a file."""
    attempts = seen.attempts.get(seen.key(step, stage), ())
    names = {item.file.label, *([item.made.path] if item.made else [])}
    if any(one.file.label in names for _, items in settled(attempts).values() for one in items):
        return SETTLED
    return FAILED if attempts and names & set(attempts[-1].failures) else LACKING
