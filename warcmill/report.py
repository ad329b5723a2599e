"""The reconcile table as data: for every launch and stage how many WARCs have come how far, and the gaps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from warcmill import chain, gaps, lost, survey
from warcmill.chain import Row as Step
from warcmill.chain import Wanted
from warcmill.errors import Unavailable, WarcmillError
from warcmill.gaps import Gap
from warcmill.model import FINAL, Launch, Outcome, Stage
from warcmill.sites import Sites
from warcmill.state import State
from warcmill.stores import Store
from warcmill.survey import Survey, texts
from warcmill.unscanned import Before, split

Counts = Mapping[str, int]  # WARCs of a stage by how far they have come, a number a column
LOOK = "look at what is named there; 'warcmill doctor' checks the disks"
EXPLAINS = frozenset(
    {"lacking", "broken marker", "foreign marker", "left out", "not listed", "lost"}
    | {"gone", "changed", "late", "late stage", "stale"}
)


@dataclass(frozen=True, slots=True)
class Row:
    """One stage. `closed`: its logs are in place, so that its steps are due."""

    stage: Stage
    closed: bool
    counts: Counts


@dataclass(frozen=True, slots=True)
class LaunchReport:
    """One launch. `ended` is how, or '' while it runs; `unavailable`: a disk did not answer, so it is not all told.

    `unscanned` are gaps only of scans that began too early; `failed` counts the steps whose last run failed.
    """

    launch: Launch
    ended: str
    rows: tuple[Row, ...]
    gaps: tuple[Gap, ...]
    accepted: tuple[Gap, ...] = ()
    unavailable: bool = False
    unscanned: tuple[Gap, ...] = ()
    failed: int = 0


def report(
    state: State, sites: Sites, store: Store, launch: Launch, wanted: Wanted, before: Before | None = None
) -> LaunchReport:
    """Reconcile one launch. An error that it raises is a gap of its own: it never hides another launch.

    `before` is what scans that have just ended had to do; a launch that is new since is not yet scanned.
    """
    try:
        seen = survey.survey(state, sites.of(launch.job), launch, wanted)
        missing = lost.find(seen, lost.listed(store, launch))
    except WarcmillError as error:
        return unreadable(launch, error)
    found, accepted = gaps.find(seen)
    found = (*found, *missing)
    found, unscanned = split(seen, found, before) if before else (found, ())
    failed = sum(bool(tried and tried[-1].error) for tried in seen.attempts.values())
    drawn = rows(seen, found)
    found = gaps.in_order((*found, *unexplained(seen, drawn, (*found, *unscanned, *accepted))))
    return LaunchReport(launch, seen.ended, drawn, found, accepted, unscanned=unscanned, failed=failed)


def unexplained(seen: Survey, drawn: Iterable[Row], found: Iterable[Gap]) -> Iterator[Gap]:
    """Rows of closed stages whose figures differ, and no gap says why: nothing that differs is passed over."""
    told = {gap.stage for gap in found if gap.kind in EXPLAINS}
    for row in drawn:
        names = [item.outcome for item in seen.items("assemble", row.stage).values()].count(Outcome.REFUSED)
        due = [step for step in counted(chain.ROWS) if seen.wants(step.word)]
        if row.closed and not told & {"", str(row.stage)} and len(_figures(row.counts, due, names)) > 1:
            figures = {name: row.counts[name] for name in ("on_disk", *(step.column for step in due))}
            name = f"{row.stage}: {', '.join(f'{one} {number}' for one, number in figures.items())}"
            why = "these count the same WARCs, and differ; look at the markers of the stage"
            yield Gap(seen.launch, str(row.stage), "counts", name, why, gaps.redo(seen.key("checksum", row.stage)))


def _figures(counts: Counts, due: Iterable[Step], refused_names: int) -> set[int]:
    """One, where all is as it should be: once all is verified, what lies on disk may have been removed.

    What 03 refused by its name is in no later marker.
    """
    figures = {counts[step.column] - (0 if step.files and step.after else refused_names) for step in due}
    if counts["verified"] != counts["assembled"] - refused_names:
        figures.add(counts["on_disk"] - refused_names)
    return figures


def unreadable(launch: Launch, error: WarcmillError) -> LaunchReport:
    """The report of a launch that could not be looked at."""
    out = isinstance(error, Unavailable)
    gap = Gap(launch, "", "unavailable" if out else "unreadable", str(launch), str(error), LOOK)
    return LaunchReport(launch, "", (), (gap,), unavailable=out)


def rows(seen: Survey, found: tuple[Gap, ...]) -> tuple[Row, ...]:
    """A row for each stage; the last one also holds the WARCs that no stage has yet."""
    stale = Counter(gap.stage or str(FINAL) for gap in found if gap.kind == "stale")
    missing = {gap.name for gap in found if gap.kind == "lost"}
    return tuple(_row(seen, stage, stale[str(stage)], missing) for stage in seen.stages)


def _row(seen: Survey, stage: Stage, stale: int, missing: set[str]) -> Row:
    assembled = set(seen.items("assemble", stage))
    on_disk = set(seen.warcs())
    here = assembled if stage != seen.stages[-1] else assembled | (on_disk - gaps.listed(seen))
    steps = [one for one in counted(chain.ROWS) if seen.wants(one.word) or seen.marker(one.word, stage)]
    counts = {
        "on_disk": len(here & on_disk),
        **{step.column: _done(seen, step, stage, len(here), missing) for step in steps},
        "refused": len(gaps.refused(seen, stage)),
        "unnamed": len(texts(seen.marker("assemble", stage), "unnamed")),
        "stale": stale,
    }
    return Row(stage, stage in seen.closed, counts)


def _done(seen: Survey, step: Step, stage: Stage, here: int, missing: set[str]) -> int:
    """How many of a stage's WARCs a step has done: all that are `here`, if it is not done for each of them."""
    if not step.files:
        return here if seen.marker(step.word, stage) else 0
    items = seen.items(step.word, stage).values()
    if not step.stored:
        return len(items)
    return sum(item.made is not None and item.made.path not in missing for item in items)


def counted(rows: chain.Rows) -> chain.Rows:
    """The steps that have a column."""
    return tuple(row for row in rows if row.done)


def heads(counts: Iterable[Counts]) -> dict[str, str]:
    """The columns, with what is written over each, `_` where it may break: a step that not all go through has one
    when some stage has. `packed` counts the WARCs whose stage's logs are packed, `stale` markers."""
    met = set[str]().union(*counts)
    steps = {
        row.column: row.done for row in counted(chain.ROWS) if row in chain.unswitched(chain.ROWS) or row.column in met
    }
    return {"on_disk": "on_disk", **steps, "refused": "re-_fused", "unnamed": "un-_named", "stale": "_stale"}


def total(counts: Iterable[Counts]) -> Counts:
    """The sum, column by column."""
    every = list(counts)
    return {name: sum(one.get(name, 0) for one in every) for name in heads(every)}
