"""The reconcile table as data: for every launch and stage how many WARCs have come how far, and the gaps. Reads only.

Among the gaps are archived launches, markers and decisions that are in no backup a day later: losing the state would
lose them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final

from msgspec import Struct

from warcmill import chain, layout
from warcmill.audit import findings, gaps, omissions, remedies, survey
from warcmill.audit.due_crawls import JobGap
from warcmill.audit.findings import Resolve, looked_up
from warcmill.audit.gaps import Gap
from warcmill.audit.omissions import Catalogued, ScanStart, split
from warcmill.audit.survey import Survey
from warcmill.backup import backup, restore
from warcmill.base import clock
from warcmill.chain import Row as Step
from warcmill.chain import Wanted
from warcmill.errors import BadInput, Foreign, NotReady, Unavailable, WarcmillError
from warcmill.launches.roots import RootMap
from warcmill.markers import decisions
from warcmill.markers.decisions import RecordedDecision
from warcmill.markers.editions import JobEditions
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, Launch, Outcome, Stage, stamp_time
from warcmill.stores import Store

Counts = Mapping[str, int]  # WARCs of a stage by how far they have come, a number a column
EXPLAINS = frozenset(
    {"lacking", "broken marker", "foreign marker", "left out", "not listed", "lost"}
    | {"gone", "changed", "late", "late stage", "stale"}
)
NO_BACKUP: Final = "no backup"
PATIENCE = timedelta(days=1)  # a backup runs each night
_BACK_UP = "warcmill backup"


class StageRow(Struct, frozen=True):
    """One stage. `sealed`: its logs are in place, so its steps are due."""

    stage: Stage
    sealed: bool
    counts: Counts


class LaunchReport(Struct, frozen=True):
    """One launch. `ended` is how it ended, or '' while it runs; `unavailable`: a disk did not answer.

    `unscanned` are gaps of steps that no scan could try yet; `failed` counts the steps whose last run failed. `cut`:
    how the crawl was cut short, in words; '' where it was not. `history`: what waits of it by design, in words.
    """

    launch: Launch
    ended: str
    rows: tuple[StageRow, ...]
    gaps: tuple[Gap, ...]
    accepted: tuple[Gap, ...] = ()
    unavailable: bool = False
    unscanned: tuple[Gap, ...] = ()
    failed: int = 0
    cut: str = ""
    history: str = ""


def report(
    state: MarkerStore,
    rootmap: RootMap | None,
    store: Store | Unavailable | None,
    launch: Launch,
    wanted: Wanted,
    before: ScanStart | None = None,
    catalogued: Catalogued | None = None,
    resolve: Resolve | None = None,
) -> LaunchReport:
    """Reconcile one launch. A WarcmillError becomes a gap, so that it hides no other launch.

    `before` is all that there was to scan when the scans began; anything newer counts as not yet scanned. `catalogued`
    is None without an index, as is `resolve`, which looks up revisits. `store` may be the error of a store that is
    away. Each root that is away is a gap, and beside it the report has only what markers state; so is the whole report
    without `rootmap` and `store`.
    """
    try:
        seen = survey.look(state, rootmap, launch, wanted)
        seen, not_stored, away = _beyond_markers(state, seen, store, catalogued, resolve)
    except WarcmillError as error:
        return unreadable(launch, error)
    of_launch, accepted = gaps.find(seen)
    known = (*of_launch, *not_stored)
    still_open, unscanned = split(seen, known, before) if before else (known, ())
    failed = sum(bool(attempts and attempts[-1].error) for attempts in seen.attempts.values())
    table = rows(seen, still_open)
    differing = () if away else unexplained(seen, table, (*still_open, *unscanned, *accepted))
    unknown = (Gap(launch, "", "unavailable", error.what, error.why, remedies.ROOT) for error in away)
    in_order = gaps.in_order((*unknown, *still_open, *differing))
    cut = seen.cut.text if seen.cut else ""
    waits = seen.history
    return LaunchReport(launch, seen.ended, table, in_order, accepted, bool(away), unscanned, failed, cut, waits)


def _beyond_markers(
    state: MarkerStore,
    seen: Survey,
    store: Store | Unavailable | None,
    catalogued: Catalogued | None,
    resolve: Resolve | None,
) -> tuple[Survey, tuple[Gap, ...], tuple[Unavailable, ...]]:
    """The survey with its revisits looked up, the gaps in the store, and the roots that did not answer."""
    away, not_stored = seen.away, tuple[Gap, ...]()
    if store is None:
        return seen, not_stored, away
    try:
        seen = looked_up(seen, resolve)
    except Unavailable as error:
        away = (*away, error)
    try:
        if isinstance(store, Unavailable):
            raise Unavailable(store.what, store.why)
        not_stored = in_the_store(state, seen, store, catalogued)
    except Unavailable as error:
        away = (*away, error)
    return seen, not_stored, tuple({str(error): error for error in away}.values())


def in_the_store(state: MarkerStore, seen: Survey, store: Store, catalogued: Catalogued | None) -> tuple[Gap, ...]:
    """The gaps that markers alone do not show: files of the store, its backup, and SIPs of the catalogue."""
    in_store = omissions.listed(store, seen.launch)
    not_stored = omissions.missing(seen, in_store) + omissions.unclaimed(seen, in_store)
    not_stored += omissions.lost_dumps(state, seen, store)
    now = stamp_time(clock.stamp())
    not_stored += unkept_launch(state, store, seen.launch, now) + unkept_markers(store, seen, now)
    return not_stored + (omissions.uncatalogued(seen, catalogued) if catalogued else ())


def find(
    state: MarkerStore, seen: Survey, store: Store, catalogued: Catalogued | None
) -> tuple[tuple[Gap, ...], tuple[Gap, ...]]:
    """All gaps of a launch that `report` lists, and those that are accepted. Unavailable when the store is."""
    of_launch, accepted = gaps.find(seen)
    known = (*of_launch, *in_the_store(state, seen, store, catalogued))
    differing = unexplained(seen, rows(seen, known), (*known, *accepted))
    return gaps.in_order((*known, *differing)), accepted


def unexplained(seen: Survey, table: Iterable[StageRow], known: Iterable[Gap]) -> Iterator[Gap]:
    """A gap for every sealed stage whose figures differ without a known gap that explains it.

    None where the disk was not listed: it has one of the figures.
    """
    if not seen.is_listed:
        return
    explained = {gap.stage for gap in known if gap.kind in EXPLAINS}
    if not all(seen.marker("assemble", stage) for stage in seen.stages[:-1]):
        explained.add(str(seen.stages[-1]))  # its row also counts the WARCs that the missing 03 would list
    for row in table:
        names = [item.outcome for item in seen.items("assemble", row.stage).values()].count(Outcome.REFUSED)
        due = [step for step in counted(chain.ROWS) if _is_figure(seen, step, row.stage)]
        if row.sealed and not explained & {"", str(row.stage)} and len(_figures(row.counts, due, names)) > 1:
            figures = {name: row.counts[name] for name in ("on_disk", *(step.column for step in due))}
            name = f"{row.stage}: {', '.join(f'{column} {number}' for column, number in figures.items())}"
            why = "these count the same WARCs, and differ; look at the markers of the stage"
            yield Gap(seen.launch, str(row.stage), "counts", name, why, remedies.redo(seen.key("checksum", row.stage)))


def _is_figure(seen: Survey, step: Step, stage: Stage) -> bool:
    """True if a step has to count the WARCs of a stage: a step of SIPs once the stage is in one."""
    return seen.wants(step.word) and (not step.by_sip or seen.proof(step.word, stage) is not None)


def _figures(counts: Counts, due: Iterable[Step], refused_names: int) -> set[int]:
    """The different figures of a stage; one figure means that they agree.

    WARCs on disk no longer count once all are verified: they may have been removed.
    WARCs that 03 refused by their names are in no later marker.
    """
    figures = {
        counts[step.column] - (0 if step.files and step.after and not step.by_sip else refused_names) for step in due
    }
    if counts["verified"] != counts["assembled"] - refused_names:
        figures.add(counts["on_disk"] - refused_names)
    return figures


def unreadable(launch: Launch, error: WarcmillError) -> LaunchReport:
    """The report of a launch that could not be looked at."""
    out = isinstance(error, Unavailable)
    gap = Gap(launch, "", "unavailable" if out else "unreadable", str(launch), str(error), remedies.LOOK)
    return LaunchReport(launch, "", (), (gap,), unavailable=out)


def rows(seen: Survey, known: tuple[Gap, ...]) -> tuple[StageRow, ...]:
    """A row for each stage; the last one also counts the WARCs that no stage has yet."""
    stale = Counter(gap.stage or str(FINAL) for gap in known if gap.kind == "stale")
    not_stored = {gap.name for gap in known if gap.kind == "lost"}
    return tuple(_row(seen, stage, stale[str(stage)], not_stored) for stage in seen.stages)


def _row(seen: Survey, stage: Stage, stale: int, not_stored: set[str]) -> StageRow:
    assembled = set(seen.items("assemble", stage))
    on_disk = set(seen.warcs())
    of_stage = seen.assembled(stage)
    here = assembled if stage != seen.stages[-1] else assembled | (on_disk - gaps.listed(seen))
    steps = [step for step in counted(chain.ROWS) if seen.wants(step.word) or seen.proof(step.word, stage)]
    counts = {
        **({"on_disk": len(here & on_disk)} if seen.is_listed else {}),
        **{step.column: _done(seen, step, stage, len(here), not_stored) for step in steps},
        "refused": len(findings.refused(seen, stage)),
        "unnamed": len(of_stage.unnamed) if of_stage else 0,
        "stale": stale,
    }
    return StageRow(stage, stage in seen.sealed, counts)


def _done(seen: Survey, step: Step, stage: Stage, here: int, not_stored: set[str]) -> int:
    """The number of a stage's WARCs that a step has done: all that are `here` when it does not work on single files."""
    if not step.files or step.by_sip:
        return here if seen.proof(step.word, stage) else 0
    items = seen.items(step.word, stage).values()
    if not step.stored:
        return len(items)
    return sum(item.made is not None and item.made.path not in not_stored for item in items)


def counted(rows: chain.Rows) -> chain.Rows:
    """The steps that have a column of `reconcile`."""
    return tuple(row for row in rows if row.done)


def heads(counts: Iterable[Counts]) -> dict[str, str]:
    """The columns and their headings, `_` where a heading may break.

    A step behind a switch has a column when some stage has its count. `packed` counts WARCs whose stage's logs are
    packed; `stale` counts markers.
    """
    met = set[str]().union(*counts)
    steps = {
        row.column: row.done for row in counted(chain.ROWS) if row in chain.unswitched(chain.ROWS) or row.column in met
    }
    return {"on_disk": "on_disk", **steps, "refused": "re-_fused", "unnamed": "un-_named", "stale": "_stale"}


def total(counts: Iterable[Counts]) -> Counts:
    """The sum of some stages, column by column."""
    stages = list(counts)
    return {name: sum(stage.get(name, 0) for stage in stages) for name in heads(stages)}


def unkept_launch(state: MarkerStore, store: Store, launch: Launch, now: datetime) -> tuple[Gap, ...]:
    """The gap of a launch that was archived more than a day ago and is in no backup. Unavailable when the store is."""
    try:
        archived = backup.archived_at(state, launch)
    except (BadInput, Foreign, NotReady):
        return ()  # a marker that does not fit is a gap itself
    if not _is_overdue(archived, now) or backup.is_kept(store, launch):
        return ()
    why = "it was archived more than a day ago, and its markers are in no backup"
    if not backup.has_any(store):
        why += "; no backup of any launch ever ran: config/crontab has the line for each night"
    return (Gap(launch, "", NO_BACKUP, str(launch), why, f"{_BACK_UP} {clock.month(launch.day)}"),)


def unkept_markers(store: Store, seen: Survey, now: datetime) -> tuple[Gap, ...]:
    """The gap of a launch whose newest backup has not all markers that are a day old as they are; or is damaged, and
    the only one."""
    launch = seen.launch
    newest, damaged = restore.newest(store, launch)
    if newest is None and damaged:
        todo = f"move it away, then: {_BACK_UP} {clock.month(launch.day)}"
        return (Gap(launch, "", NO_BACKUP, str(launch), f"no backup of it can be read: {damaged[0]}", todo),)
    if newest is None:
        return ()  # `unkept_launch` names it, once the launch is archived
    kept = {one.marker: one.claim for one in newest.kept.claim.inputs}
    due = {
        layout.marker_path(key): one for key, one in seen.markers.items() if _is_overdue(one.run.finished or "", now)
    }
    differ = sorted(path for path, one in due.items() if kept.get(path) != one.digest)
    if not differ:
        return ()
    count = "a marker of it is" if len(differ) == 1 else f"{len(differ)} of its markers are"
    why = f"{count} newer than its newest backup, and more than a day old; first {differ[0].rpartition('/')[2]}"
    return (Gap(launch, "", NO_BACKUP, str(launch), why, f"{_BACK_UP} {clock.month(launch.day)}"),)


def _is_overdue(time: str, now: datetime) -> bool:
    """True if what is final since a time, as evidence writes it, should be in a backup; '' is not final."""
    return bool(time) and now - datetime.fromisoformat(time) > PATIENCE


def unkept_decisions(store: Store, made: Sequence[RecordedDecision], now: datetime) -> tuple[JobGap, ...]:
    """A gap for each decision that is not in the store a day later: it was away when the decision was made."""
    found = list[JobGap]()
    for kind, alike in groupby(made, key=lambda decision: decision.kind):
        stored = {entry.name for entry in store.list(layout.archived_path(f"{decisions.FOLDER}/{kind}"))}
        for decision in alike:
            if decision.path.rpartition("/")[2] not in stored and _is_overdue(decision.time, now):
                why = "it was made more than a day ago, and is in the state alone"
                found.append(JobGap("", NO_BACKUP, decision.path, why, f"{_BACK_UP} {decision.time[:7]}"))
    return tuple(found)


def unkept_editions(store: Store, editions: JobEditions, now: datetime) -> tuple[JobGap, ...]:
    """A gap for the first edition of a job's papers that is not in the store a day later."""
    for one in map(editions.read, editions.unkept(store)[:1]):
        if _is_overdue(one.time, now):
            why = "it was made more than a day ago, and is in the state alone"
            return (JobGap("", NO_BACKUP, editions.path(one.number), why, f"{_BACK_UP} {one.time[:7]}"),)
    return ()
