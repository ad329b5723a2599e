"""Complete an ended launch: its stages' totals, and the stages and serials missing between them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise

from warcmill import layout
from warcmill.errors import NotReady
from warcmill.formats.logs import joblog, logzip
from warcmill.launches.listing import all_stages, list_files, missing_numbers
from warcmill.launches.roots import JobRoots
from warcmill.launches.view import checkpoints_in
from warcmill.markers.claim import Claim, Evidence
from warcmill.markers.facts.output import NUMBERS, Assembled, PackedLogs
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FINAL, Item, Json, Launch, Outcome, Stage

MOST_HOLES = 1_000  # per writer: a hostile name must not make a marker of millions of lines
JOB_LOG = "jobs/job.log"  # in the zip of `final`


def process(state: MarkerStore, roots: JobRoots, launch: Launch) -> Claim:
    """The claim of 04: inputs and totals only. NotReady while a stage lacks its 03."""
    known = all_stages(list_files(roots, launch), state.stages(launch))
    markers = [_require(state, launch, stage) for stage in known]
    assembled = [Assembled.from_claim(marker.claim) for marker in markers]
    items = [item for marker in markers for item in marker.claim.items]
    return Claim(
        key=layout.key("output.ProcessOutputs", launch),
        inputs=rests_on(*markers),
        counts=_totals(assembled, items),
        facts={
            "stages": [str(stage) for stage in known],
            "stage_holes": _stage_holes(known, _taken(state, launch)),
            "serial_holes": list(serial_holes(_names(assembled, items))),
            "ended": assembled[-1].ended,
            **_continues(assembled),
        },
    )


def _continues(assembled: list[Assembled]) -> dict[str, Json]:
    """Facts of the launch that this one was resumed from; none for a fresh launch."""
    continued = [stage.continues for stage in assembled if stage.continues]
    return continued[-1].facts() if continued else {}


def _stage_holes(known: list[Stage], taken: list[Stage]) -> list[Json]:
    """Checkpoint numbers without a stage: between those of the stages, or listed in job.log."""
    present = {stage.number for stage in known}
    missing = {stage.number for stage in taken if stage.number is not None} - present
    return [*sorted({*missing_numbers(known), *missing})]


def _taken(state: MarkerStore, launch: Launch) -> list[Stage]:
    """The checkpoints in the launch's job.log as packed with `final`; none when job.log was absent."""
    logs = state.read(layout.key("output.PackageLogs", launch, stage=FINAL))
    if not logs or JOB_LOG not in PackedLogs.from_claim(logs.claim).members.values():
        return []
    with state.store.open(layout.marker_path(logs.claim.key)) as file:
        return checkpoints_in(joblog.events(logzip.open_member(file, JOB_LOG)))


def _require(state: MarkerStore, launch: Launch, stage: Stage) -> Evidence:
    marker = state.read(layout.key("output.AssembleOutput", launch, stage=stage))
    if marker is None:
        raise NotReady(f"{launch} {stage}", "this stage is not assembled; run output.AssembleOutput for it first")
    return marker


def _totals(assembled: list[Assembled], items: list[Item]) -> dict[str, Json]:
    return {
        **{name: sum(stage.numbers[name] for stage in assembled) for name in NUMBERS},
        "refused": sum(item.outcome is Outcome.REFUSED for item in items),
        "absent": sum(len(stage.absent) for stage in assembled),
        "unnamed": sum(len(stage.unnamed) for stage in assembled),
    }


def _names(assembled: list[Assembled], items: list[Item]) -> list[str]:
    on_disk = [item.file.name for item in items]
    return on_disk + [name for stage in assembled for name in stage.absent]


def serial_holes(names: list[str]) -> list[str]:
    """WARC serials missing between the lowest and the highest seen, each as `prefix serial pid~host~port`.

    Per prefix and writer, from the lowest serial seen: a resumed launch continues its checkpoint's count.
    At most MOST_HOLES per prefix and writer.
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
