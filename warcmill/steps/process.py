"""Say that all stages of an ended launch are assembled: totals, and what is missing between them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise

from warcmill import launches, layout
from warcmill.errors import NotReady
from warcmill.evidence import Claim, Evidence, Input
from warcmill.formats import joblog, logzip
from warcmill.launches import Engines
from warcmill.model import FINAL, Json, Launch, Outcome, Stage
from warcmill.state import State

MOST_HOLES = 1_000  # named per writer: a hostile name must not make a marker of millions of lines
JOB_LOG = "jobs/job.log"  # in the zip of `final`
TOTALS = ("lines", "uris", "bytes", "unread", "warcs", "warc_bytes")


def process(state: State, engines: Engines, launch: Launch) -> Claim:
    """The claim of 04: inputs and totals only. NotReady while a stage lacks its 03."""
    known = launches.stages(launches.read(engines, launch), state.stages(launch))
    assembled = [(stage, _need(state, launch, stage)) for stage in known]
    evidence = [found for _, found in assembled]
    return Claim(
        key=layout.key("output.ProcessOutputs", launch),
        inputs=tuple(Input(layout.marker_path(found.claim.key), found.digest) for found in evidence),
        counts=_totals(evidence),
        facts={
            "stages": [str(stage) for stage in known],
            "stage_holes": _stage_holes(known, _taken(state, launch)),
            "serial_holes": list(serial_holes(_names(evidence))),
            "ended": evidence[-1].claim.facts["ended"],
            **_continues(evidence),
        },
    )


def _continues(assembled: list[Evidence]) -> dict[str, Json]:
    """The launch that this one was resumed from, as its stages say; nothing for a fresh one."""
    told = [one.claim.facts["continues"] for one in assembled if "continues" in one.claim.facts]
    return {"continues": told[-1]} if told else {}


def _stage_holes(known: list[Stage], taken: list[Stage]) -> list[Json]:
    """Checkpoint numbers that no stage has: those between the stages', and those that job.log says were taken."""
    there = {stage.number for stage in known}
    missing = {stage.number for stage in taken if stage.number is not None} - there
    return [*sorted({*launches.holes(known), *missing})]


def _taken(state: State, launch: Launch) -> list[Stage]:
    """The checkpoints that the launch's job.log tells of, as it was packed with `final`; none when it was absent."""
    logs = state.read(layout.key("output.PackageLogs", launch, stage=FINAL))
    if not logs or all(item.facts["member"] != JOB_LOG for item in logs.claim.items):
        return []
    with state.store.open(layout.marker_path(logs.claim.key)) as file:
        return launches.taken(joblog.events(logzip.open_member(file, JOB_LOG)))


def _need(state: State, launch: Launch, stage: Stage) -> Evidence:
    found = state.read(layout.key("output.AssembleOutput", launch, stage=stage))
    if found is None:
        raise NotReady(f"{launch} {stage}", "this stage is not assembled; run output.AssembleOutput for it first")
    return found


def _totals(assembled: list[Evidence]) -> dict[str, Json]:
    items = [item for one in assembled for item in one.claim.items]
    return {
        **{name: sum(_number(one, name) for one in assembled) for name in TOTALS},
        "refused": sum(item.outcome is Outcome.REFUSED for item in items),
        **{name: sum(len(_list(one, name)) for one in assembled) for name in ("absent", "unnamed")},
    }


def _number(evidence: Evidence, name: str) -> int:
    found = evidence.claim.counts[name]
    assert isinstance(found, int)
    return found


def _list(evidence: Evidence, name: str) -> list[Json]:
    found = evidence.claim.facts[name]
    assert isinstance(found, list)
    return found


def _names(assembled: list[Evidence]) -> list[str]:
    on_disk = [item.file.name for one in assembled for item in one.claim.items]
    return on_disk + [str(name) for one in assembled for name in _list(one, "absent")]


def serial_holes(names: list[str]) -> list[str]:
    """WARC serials that lie between the lowest and highest seen and are nowhere: `prefix serial pid~host~port`.

    Counted per prefix and writer, from the lowest seen: a resumed launch goes on where its checkpoint was.
    """
    seen: dict[tuple[str, str], set[int]] = {}
    for serial in filter(None, map(layout.warc_serial, names)):
        seen.setdefault((serial.prefix, serial.writer), set()).add(serial.number)
    return [
        f"{prefix} {number:05d} {writer}"
        for (prefix, writer), numbers in sorted(seen.items())
        for number in islice(_gaps(sorted(numbers)), MOST_HOLES)
    ]


def _gaps(numbers: list[int]) -> Iterator[int]:
    for low, high in pairwise(numbers):
        yield from range(low + 1, high)
