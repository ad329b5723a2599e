"""Gaps: each thing that a launch still lacks as a whole archive, its reason, and the command to type next. Pure.

`find` lists them in the order of this module: unsound markers, missing ones, files that markers of a stage disagree on,
stale markers, files that changed on disk or came late, and the findings about the crawl.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from warcmill import chain, layout
from warcmill.audit import findings, remedies
from warcmill.audit.survey import Survey
from warcmill.chain import Row
from warcmill.markers.attempts import Attempt
from warcmill.markers.claim import Evidence
from warcmill.markers.facts.files import is_salvaged
from warcmill.model import Item, Json, Key, Launch, Outcome, Stage

# Kinds of findings about the crawl. No run of a step closes them: an operator takes note with `warcmill accept`.
ACCEPTABLE = (
    "refused", "absent", "unnamed", "named again", "absent prefix", "refused prefix", "serial hole", "checkpoint hole",
    "absent log", "uncounted log", "odd", "got nothing", "virus", "not scanned", "orphaned",
    findings.UNINDEXED, findings.ODD_DATES,
    *findings.KINDS, findings.NOT_IMPORTED, findings.NOT_AS_IMPORTED, findings.SECOND_OPINION,
    findings.ORPHAN, findings.UNRESOLVED, findings.NOT_DUMPED, findings.OTHER_METADATA,
    findings.LOST_VISITS,
    findings.DAMAGED_RESULTS, findings.DEFAULT_BOUND, findings.NOT_RENDERED, *findings.OF_REPORTS,
)  # fmt: skip
# Kinds that a file put back, or another run, closes. All others that are not findings need `warcmill redo`.
CLOSED_BY_RUNS = (
    "foreign marker",
    "broken marker",
    "lacking",
    "gone",
    "changed",
    "unavailable",
    "unreadable",
    "not catalogued",
    "unclaimed",
    "no backup",
)
Markers = Mapping[Key, Evidence]


class Gap(Struct, frozen=True, order=True):
    """One thing that is not as it should be. `todo` is the command to type next."""

    launch: Launch
    stage: str  # '' when it is about the whole launch
    kind: str
    name: str
    why: str
    todo: str

    def json(self) -> dict[str, Json]:
        """The gap in a JSON document."""
        return {name: getattr(self, name) for name in ("stage", "kind", "name", "why", "todo")}


class LeftOut(Struct, frozen=True):
    """A file on which 03 and later markers of a stage differ; `key` is the first such marker."""

    key: Key
    kind: str  # `left out`, or `not listed`
    path: str
    why: str


def find(seen: Survey) -> tuple[tuple[Gap, ...], tuple[Gap, ...]]:
    """The open gaps of a launch, and the findings that an operator has accepted."""
    parts: dict[bool, list[Gap]] = {False: [], True: []}
    for gap in _all(seen):
        parts[gap.kind in ACCEPTABLE and _is_accepted(seen, gap)].append(gap)
    return in_order(parts[False]), in_order(parts[True])


def in_order(gaps: Iterable[Gap]) -> tuple[Gap, ...]:
    """Gaps in the order in which to close them: those that runs close, those that need a redo, findings.

    Findings are last because a redo moves an acceptance aside with the marker that it rests on.
    """
    return tuple(sorted(gaps, key=lambda gap: 0 if gap.kind in CLOSED_BY_RUNS else 2 if gap.kind in ACCEPTABLE else 1))


def mark_of(seen: Survey, gap: Gap) -> str:
    """The state of the step or file that a gap is about, as a word: a finding is refused until it is accepted."""
    if gap.kind == "lacking":
        return "failed" if gap.name in _failed(seen) else "waiting"
    return "stale" if gap.kind == "stale" else "refused" if gap.kind in ACCEPTABLE else "failed"


def _failed(seen: Survey) -> frozenset[str]:
    """The names of the markers that are lacking because the last attempt failed."""
    tried = ((key, attempts[-1]) for key, attempts in seen.attempts.items() if attempts)
    return frozenset(layout.marker_name(key) for key, last in tried if last.error and not last.was_early)


def is_accepted(seen: Survey, name: str) -> bool:
    """True if an operator has accepted the finding of this name."""
    return layout.key("operator.Accept", seen.launch, finding=layout.finding_id(name)) in seen.markers


def _is_accepted(seen: Survey, gap: Gap) -> bool:
    if gap.kind in findings.KINDS:
        return findings.is_accepted(seen, gap.kind, gap.name)
    return is_accepted(seen, gap.name)


def _all(seen: Survey) -> Iterator[Gap]:
    yield from _unsound(seen)
    yield from _cut_short(seen)
    yield from _lacking(seen)
    yield from _left_out(seen)  # before the markers that are stale because of it: one redo closes both
    yield from _stale(seen)
    carried = _still_carried(seen)
    for stage in seen.stages:
        yield from carried.get(stage, ())
        yield from _not_as_listed(seen, stage)
    yield from _late(seen)
    yield from _findings(seen)


def _gap(seen: Survey, stage: Stage | str | None, kind: str, name: str, why: str, todo: str) -> Gap:
    return Gap(seen.launch, str(stage or ""), kind, name, why, todo)


def _unsound(seen: Survey) -> Iterator[Gap]:
    for name, unsound in seen.unsound.items():
        key = layout.parse_marker_name(name)
        stage = dict(key.params).get("stage", "") if key else ""
        path = f"{layout.state_folder(seen.launch)}/{name}"
        todo = remedies.replace_unsound(key, unsound, path)
        yield _gap(seen, stage, f"{unsound.kind} marker", name, unsound.why, todo)


def _cut_short(seen: Survey) -> Iterator[Gap]:
    """A launch whose import was killed before its marker was published; no step of it begins before that."""
    name = layout.marker_name(seen.key("import"))
    if seen.is_imported and not seen.ended and name not in seen.unsound:
        yield _gap(seen, None, "lacking", name, "its import was cut short", remedies.import_again(seen.launch))


def _lacking(seen: Survey) -> Iterator[Gap]:
    """Missing markers: only the first of each stage; later steps are listed as waiting for it."""
    if not seen.ended and not seen.sealed:
        return
    of_launch = [row for row in chain.steps(chain.ROWS) if row.scope == "launch" and seen.due(row.word)]
    yield from _lacking_of(seen, None, [row for row in of_launch if not row.after])
    for stage in sorted(seen.sealed):
        rows = chain.of_stage(chain.ROWS)
        yield from _lacking_of(seen, stage, [row for row in rows if seen.due(row.word, stage)])
        asked_and_failed = [row for row in rows if row.due == chain.ASKED and seen.failed(row.word, stage)]
        yield from _lacking_of(seen, stage, asked_and_failed)
    for row in of_launch:
        if row.after and all(seen.marker(row.after, stage) for stage in seen.sealed):
            yield from _lacking_of(seen, None, [row])
    if seen.decided and seen.wants("dump"):
        name, why = layout.marker_name(seen.decided), f"a full dump was decided, and {_why_missing(seen, seen.decided)}"
        yield _gap(seen, None, "lacking", name, why, remedies.step(seen.decided))


def _lacking_of(seen: Survey, stage: Stage | None, rows: Iterable[Row]) -> Iterator[Gap]:
    missing = {word: before for word, before in _befores(rows).items() if not seen.marker(word, stage)}
    for word, before in missing.items():
        key = seen.key(word, stage)
        name = layout.marker_name(key)
        if not (before and before[-1] in missing) and name not in seen.unsound:
            waiting = [later for later, needs in missing.items() if word in needs]
            after = f"; after it: {', '.join(waiting)}" if waiting else ""
            why = _why_missing(seen, key) + after
            yield _gap(seen, stage, "lacking", name, why, remedies.publish_missing(seen, stage, key))


def _befores(rows: Iterable[Row]) -> dict[str, tuple[str, ...]]:
    """For each step the words of the given steps that it waits for: its `after` and what that waits for.

    A step whose `after` is not among them waits for the row before it.
    """
    befores: dict[str, tuple[str, ...]] = {}
    previous: tuple[str, ...] = ()
    for row in rows:
        befores[row.word] = (*befores[row.after], row.after) if row.after in befores else previous
        previous = (*befores[row.word], row.word)
    return befores


def _why_missing(seen: Survey, key: Key) -> str:
    """The reason why a step has no marker; a marker that another one rests on was there, and was removed."""
    path, attempts = layout.marker_path(key), seen.attempts.get(key, ())
    resting = sorted(
        other.task
        for other, evidence in seen.markers.items()
        if any(source.marker == path for source in evidence.claim.inputs)
    )
    if not resting:
        return why_lacking(attempts)
    failed = f"; its last run: {attempts[-1].error}" if attempts and attempts[-1].error else ""
    return f"it was there, and is gone: {resting[0]} rests on it{failed}"


def why_lacking(attempts: tuple[Attempt, ...]) -> str:
    """The reason why a step has no marker, by its attempts: what the last one ended with."""
    if not attempts:
        return "it was not run yet"
    if any("again" in line for line in attempts[-1].lines):
        return "an operator has asked for a file of it to be done again"
    return attempts[-1].error or "its last run was cut short, or is going on; the next goes on where that one stopped"


def _left_out(seen: Survey) -> Iterator[Gap]:
    for file in left_out(seen.markers):
        yield _gap(seen, file.key["stage"], file.kind, file.path, file.why, remedies.redo(file.key))


def left_out(markers: Markers) -> Iterator[LeftOut]:
    """Every file that 03 lists and a later marker of its stage leaves out, or that only such a marker has."""
    lists = chain.by_word(chain.ROWS)["assemble"].task
    for key in sorted(markers):
        if key.task == lists:
            yield from _of_stage(markers, layout.launch_of(key), Stage.parse(key["stage"]))


def _of_stage(markers: Markers, launch: Launch, stage: Stage) -> Iterator[LeftOut]:
    expected = _listed(markers, launch, stage)
    without: dict[str, list[Key]] = {}
    unlisted: set[str] = set()
    for step in chain.after_list(chain.ROWS):
        key = layout.step(step.word, launch, stage)
        if key in markers:
            here = {item.file.label for item in markers[key].claim.items if _is_of_stage(step, item)}
            for path in sorted(_expected(step, expected) - here):
                without.setdefault(path, []).append(key)
            for path in sorted(here - set(expected) - unlisted):
                yield LeftOut(key, "not listed", path, f"{layout.marker_name(key)} has it, and 03 does not list it")
            unlisted |= here - set(expected)
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


def _stale(seen: Survey) -> Iterator[Gap]:
    for key, source in sorted(stale(seen).items()):
        name = layout.marker_name(key)
        why = f"{key.task} was done with another {source.rpartition('/')[2]} than there is now"
        yield _gap(seen, dict(key.params).get("stage"), "stale", name, why, remedies.redo(key))


def stale(seen: Survey) -> dict[Key, str]:
    """The markers with an input that is no longer current, each with the path of that input's marker.

    An input that is due and missing makes nothing stale: that marker is a gap itself, of this launch or of another.
    """
    own = f"{layout.state_folder(seen.launch)}/"
    current = {layout.marker_path(key): evidence.digest for key, evidence in seen.markers.items()}
    current |= seen.elsewhere
    outdated = [
        (key, source.marker)
        for key, evidence in seen.markers.items()
        for source in evidence.claim.inputs
        if current.get(source.marker, None if source.marker.startswith(own) else source.claim) != source.claim
    ]
    due = (layout.marker_path(seen.key(*step)) for step in seen.steps() if seen.due(*step)) if outdated else ()
    missing = set(due) - set(current)
    return {key: marker for key, marker in outdated if marker not in missing}


def _still_carried(seen: Survey) -> Mapping[Stage, list[Gap]]:
    """WARCs that a stage left open to the next one, and no later stage has, once all of those are assembled."""
    lost: dict[Stage, list[Gap]] = {}
    settled = {layout.final_name(path.rpartition("/")[2]) for path in listed(seen)}
    for stage in reversed(seen.stages):
        assembled = seen.assembled(stage)
        if assembled is None:
            break  # it may have those of the stages before; a marker that is missing is a gap itself
        why = "this stage left it to the next, for it was open, and no later stage has it"
        todo = remedies.redo(seen.key("assemble", stage))
        left = sorted(set(assembled.carried) - settled)
        lost[stage] = [_gap(seen, stage, "carried", name, why, todo) for name in left]
        settled.update((*assembled.absent, *assembled.named_again, *assembled.carried))
    return lost


def _not_as_listed(seen: Survey, stage: Stage) -> Iterator[Gap]:
    """WARCs that are gone from disk, or have another length than 03 lists, and have no verified copy."""
    if not seen.is_listed:
        return
    on_disk = seen.warcs()
    safe = seen.items("verify", stage)
    for path, item in seen.items("assemble", stage).items():
        file = on_disk.get(path)
        if path in safe or (file and file.size == item.file.size):
            continue
        state = f"has {file.size} bytes on disk" if file else "is gone from disk"
        why = f"it had {item.file.size} bytes when it was listed, {state}, and no verified copy is in the store"
        redo = remedies.redo(seen.key("assemble", stage))
        todo = f"put the file back as it was; if it is right as it is: {redo}"
        yield _gap(seen, stage, "changed" if file else "gone", path, why, todo)


def _late(seen: Survey) -> Iterator[Gap]:
    """Logs and WARCs that appeared after the launch's 04 marker was published."""
    complete = seen.complete()
    if complete is None or not seen.is_listed:
        return
    todo = remedies.redo(seen.key("assemble", seen.stages[-1]))
    for stage in sorted(set(map(str, seen.listing.logs)) - set(map(str, complete.stages))):
        why = "its logs appeared after the launch's last stage was packed"
        yield _gap(seen, stage, "late stage", stage, why, todo)
    if not all(seen.marker("assemble", stage) for stage in complete.stages):
        return  # which WARCs are late follows from these markers
    for path in sorted(set(seen.warcs()) - listed(seen)):
        yield _gap(seen, None, "late", path, "it appeared after the launch was assembled, and no step has it", todo)


def listed(seen: Survey) -> set[str]:
    """The paths of all WARCs that some stage of the launch has."""
    return {path for stage in seen.stages for path in seen.items("assemble", stage)}


def _findings(seen: Survey) -> Iterator[Gap]:
    of_crawl = list(findings.find(seen))
    seeds = sum(finding.kind in findings.OF_SEEDS for finding in of_crawl)
    for finding in of_crawl:
        todo = remedies.redo(finding.redo) if finding.redo else remedies.accept(seen.launch, finding.name)
        if seeds > 1 and finding.kind in findings.OF_SEEDS:
            todo = remedies.accept_seeds(seen.launch)
        if finding.is_passing and layout.key("pulse.Started", seen.launch) in seen.markers:
            todo = f"once its site answers: {remedies.crawl_again(seen.launch)}; else: {todo}"
        if finding.kind == findings.NOT_DUMPED:
            todo = remedies.fetch_again(seen.launch, finding.name)
        if finding.raises:
            todo = remedies.raise_bound(seen.launch, finding.raises, finding.name)
        if finding.kind == findings.NOT_RENDERED and layout.key("pulse.Started", seen.launch) in seen.markers:
            todo = f"to render them in a crawl of their own: {remedies.crawl_again(seen.launch)}; else: {todo}"
        yield _gap(seen, finding.stage, finding.kind, finding.name, finding.why, todo)
