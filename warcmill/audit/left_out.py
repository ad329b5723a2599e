"""Compares the files that a stage's markers list with those of 03: left out, or in addition. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from warcmill import chain, layout
from warcmill.chain import Row
from warcmill.markers.claim import Evidence
from warcmill.markers.facts import is_salvaged
from warcmill.model import Item, Key, Launch, Outcome, Stage

Markers = Mapping[Key, Evidence]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file on which 03 and later markers of a stage differ; `key` is the first such marker."""

    key: Key
    kind: str  # `left out`, or `not listed`
    path: str
    why: str


def find(markers: Markers) -> Iterator[LeftOut]:
    """Every file that 03 lists and a later marker of its stage leaves out, or that only such a marker has."""
    lists = chain.by_word(chain.ROWS)["assemble"].task
    for key in sorted(markers):
        if key.task == lists:
            yield from _of_stage(markers, layout.launch_of(key), Stage.parse(key["stage"]))


def _of_stage(markers: Markers, launch: Launch, stage: Stage) -> Iterator[LeftOut]:
    listed = _listed(markers, launch, stage)
    without: dict[str, list[Key]] = {}
    seen: set[str] = set()
    for step in chain.after_list(chain.ROWS):
        key = layout.step(step.word, launch, stage)
        if key in markers:
            here = {item.file.label for item in markers[key].claim.items if _is_of_stage(step, item)}
            for path in sorted(_expected(step, listed) - here):
                without.setdefault(path, []).append(key)
            for path in sorted(here - set(listed) - seen):
                yield LeftOut(key, "not listed", path, f"{layout.marker_name(key)} has it, and 03 does not list it")
            seen |= here
    for path, keys in without.items():
        names = ", ".join(map(layout.marker_name, keys))
        yield LeftOut(keys[0], "left out", path, f"it is a file of the stage, and not in {names}")


def _listed(markers: Markers, launch: Launch, stage: Stage) -> dict[str, bool]:
    """The files that every later marker must have, the zip of logs included: label to whether an engine wrote it."""
    assembled = markers[layout.step("assemble", launch, stage)]
    warcs = [item.file for item in assembled.claim.items if item.outcome is Outcome.OK]
    packed = layout.marker_path(layout.step("pack", launch, stage))
    return {packed: False} | {file.label: True for file in warcs}


def _expected(step: Row, listed: Mapping[str, bool]) -> set[str]:
    """The files that a step must have. The zip of logs is in the state: steps that change engines' roots skip it."""
    return {path for path, is_engines in listed.items() if is_engines or not (step.outward or step.warcs_only)}


def _is_of_stage(step: Row, item: Item) -> bool:
    """True if an item is a file of the stage. A salvaged WARC is none: it is made of one."""
    return not is_salvaged(item) and (item.made is not None or not (step.stored or step.reads == "made"))
