"""Whether the markers of a stage speak of the same files: what one leaves out that 03 lists, or has beside it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from warcmill import chain, layout
from warcmill.chain import Row
from warcmill.evidence import Evidence
from warcmill.model import Item, Key, Launch, Outcome, Stage

Markers = Mapping[Key, Evidence]


@dataclass(frozen=True, slots=True)
class Difference:
    """A file on which 03 and later markers of a stage differ; `key` is the first such marker."""

    key: Key
    kind: str  # `left out`, or `not listed`
    path: str
    why: str


def find(markers: Markers) -> Iterator[Difference]:
    """Every file that 03 lists and a later marker of its stage lacks, and every one that such a marker has beside."""
    lists = chain.by_word(chain.ROWS)["assemble"].task
    for key in sorted(markers):
        if key.task == lists:
            yield from _of_stage(markers, layout.launch_of(key), Stage.parse(key["stage"]))


def _of_stage(markers: Markers, launch: Launch, stage: Stage) -> Iterator[Difference]:
    listed = _listed(markers, launch, stage)
    first: dict[str, list[Key]] = {}
    seen: set[str] = set()
    for step in chain.after_list(chain.ROWS):
        key = layout.step(step.word, launch, stage)
        if key in markers:
            here = {item.file.label for item in markers[key].claim.items if _stands(step, item)}
            for path in sorted(_expected(step, listed) - here):
                first.setdefault(path, []).append(key)
            for path in sorted(here - set(listed) - seen):
                yield Difference(key, "not listed", path, f"{layout.marker_name(key)} has it, and 03 does not list it")
            seen |= here
    for path, keys in first.items():
        names = ", ".join(map(layout.marker_name, keys))
        yield Difference(keys[0], "left out", path, f"it is a file of the stage, and not in {names}")


def _listed(markers: Markers, launch: Launch, stage: Stage) -> dict[str, bool]:
    """The files that every later marker must have, by label, and whether an engine wrote them: the zip of logs too."""
    assembled = markers[layout.step("assemble", launch, stage)]
    warcs = [item.file for item in assembled.claim.items if item.outcome is Outcome.OK]
    packed = layout.marker_path(layout.step("pack", launch, stage))
    return {packed: False} | {file.label: True for file in warcs}


def _expected(step: Row, listed: Mapping[str, bool]) -> set[str]:
    """The files that a step has: the zip of logs is the state's own, and no step that changes engines' roots has it."""
    return {path for path, is_engines in listed.items() if is_engines or not step.outward}


def _stands(step: Row, item: Item) -> bool:
    """Whether an item stands for a file of the stage: what was salvaged lies beside one."""
    return not item.facts.get("salvaged") and (item.made is not None or not (step.stored or step.reads == "made"))
