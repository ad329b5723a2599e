"""The targets of a feed with what became of each: the fates of its seeds in the newest launch that asked for it.

Reads the state and the feed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from msgspec import Struct

from warcmill import layout
from warcmill.errors import BadInput
from warcmill.formats import feed, surt
from warcmill.markers.facts.reports import GOT, SeedFate, Seeds
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, Launch
from warcmill.pulse import feed_edits, target_list
from warcmill.pulse.feed_edits import JobFeed
from warcmill.pulse.target_list import TargetFilter, TargetLine

LAUNCHES = 10  # the newest ones of a job that are looked at
MOST = 200  # owners, and broken lines
_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")


class TargetFate(Struct, frozen=True):
    """The fate of a target in a launch: the numbers of seeds `asked` for, and `got`; `why` the first of the others was
    not got, if any."""

    launch_id: str
    asked: int
    got: int
    why: str

    @property
    def words(self) -> str:
        """The fate in a line."""
        return f"{self.got} of {self.asked} got" + (f"; {self.why}" if self.why else "")

    def json(self) -> dict[str, Json]:
        """The fate for programs."""
        return {"asked": self.asked, "got": self.got, "launch_id": self.launch_id, "why": self.why}


class ShownTarget(Struct, frozen=True):
    """A target in a list. `fate`: None where no launch is known to have asked for it; `fault`: what a crawl would leave
    out of it, and why."""

    line: TargetLine
    fate: TargetFate | None
    fault: str

    def json(self) -> dict[str, Json]:
        """The target for programs."""
        return {**self.line.json(), "fate": self.fate.json() if self.fate else None, "fault": self.fault}


class ListedTargets(Struct, frozen=True):
    """Some targets of a feed: those shown, how many are wanted in `total`, the first owners of all by name, and the
    first broken lines."""

    feed: JobFeed
    rows: tuple[ShownTarget, ...]
    total: int
    owners: tuple[str, ...]
    faults: tuple[BadInput, ...]

    def json(self) -> dict[str, Json]:
        """The list for programs."""
        return {
            "faults": [{"where": one.path, "why": one.why} for one in self.faults], "job": self.feed.job,
            "source": self.feed.shown, "targets": [one.json() for one in self.rows], "total": self.total,
            "why_fixed": self.feed.why_fixed,
        }  # fmt: skip


def listed(
    state: MarkerStore, feed_of_job: JobFeed, wanted: TargetFilter, *, after: int = 0, most: int = 100
) -> ListedTargets:
    """The targets of a feed that are wanted, without the first `after` of them."""
    data = feed_of_job.data()
    lines = [*target_list.read(data)]
    chosen = wanted.chosen(lines)
    shown = chosen[after : after + most]
    fates = newest(state, feed_of_job.job, shown)
    rows = tuple(ShownTarget(one, fates.get(one.id), feed_edits.why_faulty(one)) for one in shown)
    owners = sorted({owner for one in lines if (owner := one.owner)})[:MOST]
    faults = tuple(islice(feed_edits.faults(data, lines), MOST))
    return ListedTargets(feed_of_job, rows, len(chosen), tuple(owners), faults)


def newest(state: MarkerStore, job: str, lines: Sequence[TargetLine]) -> dict[str, TargetFate]:
    """The fate of each of these targets, by id; not of one that the newest LAUNCHES did not ask for, or have no report
    of."""
    owed = {one.id: _seeds(one) for one in lines}
    found = dict[str, TargetFate]()
    for launch in islice(state.launches(job), LAUNCHES):
        if not owed:
            break
        for target_id, fate in _of_launch(state, launch, owed).items():
            found[target_id] = fate
            del owed[target_id]
    return found


def _of_launch(state: MarkerStore, launch: Launch, owed: dict[str, frozenset[str]]) -> dict[str, TargetFate]:
    marker = state.read(layout.step("seeds", launch))
    try:
        seeds = Seeds.from_claim(marker.claim).seeds if marker else ()
    except BadInput:
        return {}  # `status` names it
    wanted = {seed: target_id for target_id, urls in owed.items() for seed in urls}
    fates = dict[str, list[SeedFate]]()
    for one in seeds:
        target_id = one.target if one.target in owed else wanted.get(one.seed, "")
        if target_id:
            fates.setdefault(target_id, []).append(one)
    return {target_id: _fate(launch, of_target) for target_id, of_target in fates.items()}


def _fate(launch: Launch, fates: Sequence[SeedFate]) -> TargetFate:
    lost = next((one for one in fates if one.state not in GOT), None)
    why = f"{lost.seed}: {lost.why or lost.state}" if lost else ""
    return TargetFate(launch.id, len(fates), sum(one.state in GOT for one in fates), why)


def _seeds(line: TargetLine) -> frozenset[str]:
    """The seeds of a target as launches have them; none of a faulty one."""
    return frozenset(surt.canonical(seed) for one in feed.read(line.encode(), "").targets for seed in one.seeds)
