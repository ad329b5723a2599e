"""Findings about a crawl: files that its engine did not write, or wrote wrongly, and seeds it did not get. Reads only.

No run of a step closes a finding: an operator takes note of it with `warcmill accept`. `find` lists them in the order
of this module: those of each stage, then those of the whole launch. `RevisitResolver` reads the index for the revisits
whose payload is archived nowhere. SIPs that killed runs left in the store are found here twice: `find` lists those that
a 05 names as orphaned, and `unclaimed_sips` those that no 05 names at all, which a run of its step does close.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING

from msgspec.structs import replace

from warcmill import chain, layout
from warcmill.audit.survey import GOT_NOTHING, TARGET, CrawlFinding, OpenRevisits, Survey, newest_dump
from warcmill.errors import BadInput, NotReady
from warcmill.formats.logs.unrendered import Unrendered, joined
from warcmill.layout import RESULTS_LOG
from warcmill.markers.facts.files import BAD, DAMAGED, Checked, Checksums, Faults, Hit, Scanned, ScannedFile
from warcmill.markers.facts.index import CdxVerified, Indexed
from warcmill.markers.facts.output import Assembled
from warcmill.markers.facts.package import Packaged, SipVerified
from warcmill.markers.facts.pulse import Started
from warcmill.markers.facts.pypi import Dumped
from warcmill.markers.facts.reports import DAMAGED_RESULT, CrawlReported, SeedFate, Seeds, SeedState
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, Item, Key, Launch, Outcome, Stage, is_writer
from warcmill.stores import LocalStore, Store

if TYPE_CHECKING:
    from warcmill.versions.revisits import Revisit, Searched

# The kinds of findings that other modules ask for.
NOT_IMPORTED, NOT_AS_IMPORTED = "not imported", "not as imported"
SECOND_OPINION = "second opinion"
ORPHAN, UNRESOLVED = "orphan revisit", "unresolved revisits"
ORPHANED, UNCLAIMED = "orphaned", "unclaimed"
VIRUS, UNSCANNED = "virus", "not scanned"
UNINDEXED, ODD_DATES = "not indexed", "odd dates"
DEAD, UNTRIED, NO_PAGE, NO_LIST = "dead seed", "untried seed", "target without a page", "no seed list"
NOTHING = "got nothing"
OF_SEEDS = (DEAD, UNTRIED)
KINDS = (*OF_SEEDS, NO_PAGE, NO_LIST)
NOT_DUMPED, OTHER_METADATA = "not dumped", "other metadata"
HEALS = (*OF_SEEDS, NO_PAGE, NOTHING)  # once a later launch of the job got it
LOST_VISITS = "lost visits"
DAMAGED_RESULTS = "damaged results"
DEFAULT_BOUND = "cut by a default"
NOT_RENDERED = "not rendered"
OTHER_COUNT, UNREAD_LINES, EMPTY_REPORT = "other count", "unread lines", "empty report"
OF_REPORTS = (OTHER_COUNT, UNREAD_LINES, EMPTY_REPORT)
LIST = "final/seeds.txt"  # as the finding of the absent log names it: one acceptance is for both
WORD = "seeds"
SHOWN = 3  # hits that a finding lists; the marker has all of them
_UNEXPECTED = re.compile(r"(.+): ((?:a link|a folder|not) .+)", re.DOTALL)  # 03 lists each as `path: why`
_CODE = re.compile(r", code (-?\d+)")
_NO_ANSWER = frozenset({-1, -2, -3, -4, -6, -8, -61})
ByStage = Mapping[Stage, OpenRevisits]
Resolve = Callable[[Launch], ByStage]


def find(seen: Survey) -> Iterator[CrawlFinding]:
    """The findings of a launch, stage by stage, then those about the whole launch; without those that are healed."""
    return (finding for finding in _every(seen) if not _is_healed(seen, finding))


def healed(seen: Survey) -> list[tuple[CrawlFinding, str]]:
    """The findings of what the launch missed and a later one of its job got, each with the id of that launch."""
    missed = (*_got_nothing(seen), *_missed_seeds(seen))
    return [(finding, seen.got_later[finding.name]) for finding in missed if _is_healed(seen, finding)]


def _is_healed(seen: Survey, finding: CrawlFinding) -> bool:
    """True if a later launch got it. A finding that an operator has accepted stays accepted."""
    is_missed = finding.kind in HEALS and finding.name in seen.got_later
    return is_missed and not is_accepted(seen, finding.kind, finding.name)


def _every(seen: Survey) -> Iterator[CrawlFinding]:
    for stage in seen.stages:
        yield from _refused(seen, stage)
        yield from _absent_logs(seen, stage)
        yield from _lost_visits(seen, stage)
        yield from _damaged_results(seen, stage)
        yield from _default_bounds(seen, stage)
        yield from _not_rendered(seen, stage)
        yield from _named(seen, stage)
        yield from _unexpected(seen, stage)
        yield from _scanned(seen, stage)
        yield from _indexed_oddly(seen, stage)
        yield from _orphaned_sips(seen, stage)
        yield from _orphan_revisits(seen, stage)
        yield from _second_opinions(seen, stage)
    yield from _not_imported(seen)
    yield from _not_as_imported(seen)
    yield from _holes(seen)
    yield from _got_nothing(seen)
    yield from _missed_seeds(seen)
    yield from _not_as_counted(seen)
    yield from _not_dumped(seen)


def refused(seen: Survey, stage: Stage) -> dict[str, Item]:
    """The WARCs of a stage whose bytes, or names, are wrong for good, by label."""
    judges = [row for row in chain.of_stage(chain.ROWS) if row.judges]
    items = {path: item for row in judges for path, item in seen.items(row.word, stage).items()}
    return {path: item for path, item in items.items() if item.outcome is Outcome.REFUSED}


def _refused(seen: Survey, stage: Stage) -> Iterator[CrawlFinding]:
    for path, item in refused(seen, stage).items():
        why = item.why if item.offset is None else f"at offset {item.offset}: {item.why}"
        checked = seen.facts.get(seen.key("checksum", stage))
        known = checked.files.get(item.file) if isinstance(checked, Checksums) else None
        yield CrawlFinding(stage, "refused", path, why + (_by_record(known) if known else ""))


def _by_record(checked: Checked) -> str:
    """The bad and odd records of a refused WARC, where there are more than the fault that its finding names."""
    if checked.bad is None or (checked.bad.records == 1 and not checked.odd.records and not checked.sound):
        return ""
    parts = [_faulty("bad", checked.bad), _faulty("odd", checked.odd)]
    sound = f"{checked.sound} behind the first fault are sound" if checked.sound else ""
    return "".join(f"; {part}" for part in (*parts, sound) if part)


def _faulty(word: str, faults: Faults) -> str:
    offsets = ", ".join(str(offset) for offset, _ in faults.listed[:SHOWN])
    more = f" and {faults.records - SHOWN} more" if faults.records > SHOWN else ""
    records = "1 record is" if faults.records == 1 else f"{faults.records} records are"
    return f"{records} {word}: at {offsets}{more}" if faults.records else ""


def _absent_logs(seen: Survey, stage: Stage) -> Iterator[CrawlFinding]:
    """Logs that were not there when the stage's logs were packed. One that has come since is packed by a redo."""
    own = (file for file in (*seen.listing.logs.get(stage, ()), *seen.listing.job_files) if not is_writer(file.root))
    on_disk = {file.name for file in own}
    logs = seen.logs(stage)
    for plain in logs.absent if logs else ():
        name = f"final/{plain}" if stage.is_final else f"{plain}.{stage}"
        why = "it should be among the stage's logs, and was not there when they were packed"
        came = name.removeprefix("final/") in on_disk or (plain == "reports/" and seen.listing.reports)
        if came:
            why += "; it is there now"
        yield CrawlFinding(stage, "absent log", name, why, seen.key("pack", stage) if came else None)


def _lost_visits(seen: Survey, stage: Stage) -> Iterator[CrawlFinding]:
    """Visits that only the disk of a worker has that was declared dead."""
    logs = seen.logs(stage)
    for worker, number in logs.lost_visits.items() if logs else ():
        visits = "1 visit has" if number == 1 else f"{number} visits have"
        why = f"it was declared dead: since its last stage {visits} no file; retired-workers.txt has the reason"
        yield CrawlFinding(stage, LOST_VISITS, f"worker:{worker}", why)


def _damaged_results(seen: Survey, stage: Stage) -> Iterator[CrawlFinding]:
    """Lines of results.jsonl that are not a result, so that nobody got the pages that they may have been."""
    reported = seen.facts.get(seen.key("crawl-report", stage))
    requests = reported.requests_without_page if isinstance(reported, CrawlReported) else ()
    if number := sum(one.why == DAMAGED_RESULT for one in requests):
        lines = "1 line is" if number == 1 else f"{number} lines are"
        yield CrawlFinding(stage, DAMAGED_RESULTS, f"{stage}/{RESULTS_LOG}", f"{lines} damaged, and none was sent")


def _default_bounds(seen: Survey, stage: Stage) -> Iterator[CrawlFinding]:
    """The cuts of bounds that nobody had set."""
    reported = seen.facts.get(seen.key("crawl-report", stage))
    for cut in reported.bounds if isinstance(reported, CrawlReported) else ():
        if cut.is_finding:
            yield CrawlFinding(stage, DEFAULT_BOUND, f"bound:{cut.bound}", cut.text, raises=cut.key)


def unrendered(seen: Survey, stages: Iterable[Stage]) -> tuple[Unrendered, ...]:
    """The pages of some stages that were to be rendered and were not, by reason."""
    reported = (seen.facts.get(seen.key("crawl-report", stage)) for stage in stages)
    return joined(one.unrendered for one in reported if isinstance(one, CrawlReported))


def _not_rendered(seen: Survey, stage: Stage) -> Iterator[CrawlFinding]:
    """The pages that were not rendered, where they are not at fault."""
    for one in unrendered(seen, [stage]):
        if one.is_finding:
            yield CrawlFinding(stage, NOT_RENDERED, one.name, one.text)


def _named(seen: Survey, stage: Stage) -> Iterator[CrawlFinding]:
    assembled = seen.assembled(stage)
    for kind, names, why in _lists(assembled) if assembled else ():
        for name in names:
            yield CrawlFinding(stage, kind, name, why)


def _lists(assembled: Assembled) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """The lists of names that 03 has, each with the kind of its findings and what is wrong."""
    yield "absent", assembled.absent, "the crawl log names it, and it is not on disk"
    yield "unnamed", assembled.unnamed, "it is on disk, and no crawl log of the launch names it"
    yield "named again", assembled.named_again, "the crawl log names it, and an earlier stage has it already"
    no_warc = "the crawl log names it as a warcPrefix, and no WARC of the launch has it"
    yield "absent prefix", assembled.absent_prefix, no_warc
    yield "refused prefix", assembled.refused_prefix, "the crawl log names it as a warcPrefix, and it cannot be one"
    uncounted = "it is packed; its lines are not counted, and WARCs that it alone names are called unnamed"
    yield "uncounted log", assembled.uncounted_log, uncounted


def _unexpected(seen: Survey, stage: Stage) -> Iterator[CrawlFinding]:
    assembled = seen.assembled(stage)
    for text in assembled.unexpected if assembled else ():
        match = _UNEXPECTED.fullmatch(text)
        name, why = match.groups() if match else (text, "nothing that the line knows")
        yield CrawlFinding(stage, "odd", name, f"it lies in a folder of the launch, and is in no package: {why}")


def _scanned(seen: Survey, stage: Stage) -> Iterator[CrawlFinding]:
    """WARCs with hits of the scan for viruses, or with payloads that were not scanned.

    A name has the kind before the file's label, for the file may be refused too, and each is accepted by its name.
    """
    scanned = seen.facts.get(seen.key("viruses", stage))
    files = scanned.files if isinstance(scanned, Scanned) else {}
    late = next(_without(seen, stage), None) if any(file.hits for file in files.values()) else None
    for label, item in seen.items("viruses", stage).items():
        file = files[item.made or item.file]
        if file.hits:
            why = _hits(file.hits) + (f"; {late.task} was done before that and has the record" if late else "")
            yield CrawlFinding(stage, VIRUS, f"{VIRUS}:{label}", why, late)
        if why := _not_scanned(file, refused=item.outcome is Outcome.REFUSED):
            yield CrawlFinding(stage, UNSCANNED, f"unscanned:{label}", why)


def _indexed_oddly(seen: Survey, stage: Stage) -> Iterator[CrawlFinding]:
    """WARCs with captures that have no line in the index, and so no text and no row; and with captures that have one,
    by a date that cannot be right. A name has the kind before the file's label, as those of a scan."""
    key = seen.key("cdx", stage)
    indexed = seen.facts.get(key)
    files = indexed.files if isinstance(indexed, Indexed) else {}
    for label, item in seen.items("cdx", stage).items() if files else ():
        file = files[item.made or item.file]
        if unfit := file.unplaced:
            why = f"{_tally(unfit)}; no index takes them"
            if file.is_of_earlier:
                why = f"{_tally(unfit)}; an earlier version counted them, which read fewer dates"
            yield CrawlFinding(stage, UNINDEXED, f"unindexed:{label}", why, key if file.is_of_earlier else None)
        if file.odd.records:
            reasons = Counter(why for _, why in file.odd.listed)
            why = f"{_faulty('odd', file.odd)}; {_tally(reasons)}"
            yield CrawlFinding(stage, ODD_DATES, f"odd-dates:{label}", why)


def _tally(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{number} capture{'s' * (number > 1)}: {why}" for why, number in sorted(reasons.items()))


def _hits(hits: tuple[Hit, ...]) -> str:
    shown = "; ".join(f"{hit.signature} at offset {hit.offset}, {hit.uri}" for hit in hits[:SHOWN])
    more = f"; and {len(hits) - SHOWN} more" if len(hits) > SHOWN else ""
    payloads = "1 payload has" if len(hits) == 1 else f"{len(hits)} payloads have"
    return f"{payloads} a hit, and no index takes the record: {shown}{more}"


def _not_scanned(file: ScannedFile, *, refused: bool) -> str:
    """The reasons why payloads were not scanned, but those in damaged bytes of a refused WARC: its finding has them."""
    tally = {why: number for why, number in file.not_scanned.items() if not (refused and why in (DAMAGED, BAD))}
    numbers = ((f"{number} payload{'s' * (number > 1)}", why) for why, number in sorted(tally.items()))
    return ", ".join(map(": ".join, numbers))


def _without(seen: Survey, stage: Stage) -> Iterator[Key]:
    """The steps of later chains that took this stage's WARCs without knowing the hits: they rest on its
    files.verified, and not on its files.scanned."""
    verified, scanned = (layout.marker_path(seen.key(word, stage)) for word in ("verify", "viruses"))
    scan = chain.by_word(chain.ROWS)["viruses"].scan
    inputs = {key: {source.marker for source in marker.claim.inputs} for key, marker in seen.markers.items()}
    unaware = sorted(key for key, names in inputs.items() if verified in names and scanned not in names)
    for row in chain.ROWS:
        if row.scan != scan and not row.logs_only:
            yield from (key for key in unaware if key.task == row.task)


def _orphaned_sips(seen: Survey, stage: Stage) -> Iterator[CrawlFinding]:
    """SIPs in the store that the 05 of a stage lists as orphaned."""
    packaged = seen.facts.get(seen.key("package", stage))
    how = "a run was killed when it had stored it, or its 05 was lost with the state"
    for path in packaged.orphaned if isinstance(packaged, Packaged) else ():
        yield CrawlFinding(stage, ORPHANED, path, f"a SIP that no 05 has named: {how}. Nothing uses it")


def unclaimed_sips(seen: Survey, in_store: Iterable[str]) -> Iterator[CrawlFinding]:
    """SIPs in the store that no 05 names or lists, and no run of its step that is due will take or list.

    `in_store`: the paths of the launch's files in the store. `redo` of a finding is the step whose 05 will name the
    SIP; None for a file whose name is not a SIP's.
    """
    packaged = [fact for fact in seen.facts.values() if isinstance(fact, Packaged)]
    orphaned = {path for sip in packaged for path in sip.orphaned}
    for path in sorted(in_store):
        name = path.rpartition("/")[2]
        is_half_written = name.startswith(".")
        if not path.startswith("sips/") or is_half_written or path in orphaned:
            continue
        if not any(sip.is_named(path) for sip in packaged):
            yield from _unclaimed_sip(seen, path, layout.parse_sip_name(name))


def _unclaimed_sip(seen: Survey, path: str, parsed: tuple[Stage, int] | None) -> Iterator[CrawlFinding]:
    why = "it is among the SIPs, and no 05 names it"
    if parsed is None:
        yield CrawlFinding(None, UNCLAIMED, path, why)
        return
    stage = parsed[0]
    if not seen.due("package", stage) or seen.marker("package", stage):  # else its next run takes it, or lists it
        yield CrawlFinding(stage, UNCLAIMED, path, why, seen.key("package", seen.coverage.covering(stage) or stage))


def _orphan_revisits(seen: Survey, stage: Stage) -> Iterator[CrawlFinding]:
    """Revisits of a stage whose payload was not found. None before they are looked up: `looked_up` does it."""
    unmatched = seen.revisits.get(stage)
    if unmatched is None:
        return
    if unmatched.why and not unmatched.revisits:
        why = f"they cannot be read: {unmatched.why}"
        yield CrawlFinding(stage, UNRESOLVED, f"revisits of {stage}", why, _indexed(seen, stage, unmatched.why))
        return
    if unmatched.why:
        number = len(unmatched.revisits)
        what = "the payload of 1 revisit was" if number == 1 else f"the payloads of {number} revisits were"
        yield CrawlFinding(stage, UNRESOLVED, f"revisits of {stage}", f"{what} not found: {unmatched.why}")
        return
    for revisit in unmatched.revisits:
        payload = revisit.digest or "of no known digest"
        why = f"its payload, {payload}, is archived nowhere; record at offset {revisit.offset}, of {revisit.time}"
        yield CrawlFinding(stage, ORPHAN, f"{revisit.warc.rpartition('/')[2]} {revisit.url}", why)


def _indexed(seen: Survey, stage: Stage, why: str) -> Key:
    """The step whose redo writes the extract that `why` names anew: of this stage, or of an earlier one."""
    cdx = {stage: seen.markers.get(seen.key("cdx", stage)) for stage in seen.stages}
    named = (of for of, marker in cdx.items() if marker and any(str(f.sha512) in why for f in marker.claim.stored))
    return seen.key("cdx", next(named, stage))


def looked_up(seen: Survey, resolve: Resolve | None) -> Survey:
    """The survey with the open revisits of the launch. Nothing is looked up where its markers count none."""
    is_open = any(isinstance(fact, CdxVerified) and fact.elsewhere for fact in seen.facts.values())
    return replace(seen, revisits=resolve(seen.launch)) if resolve and is_open else seen


class RevisitResolver:
    """Looks up the revisits of some launches, all at once, when it is first asked."""

    def __init__(self, state: MarkerStore, index: LocalStore, store: Store, launches: Iterable[Launch]) -> None:
        self._state, self._index, self._store, self._launches = state, index, store, launches
        self._troubles: dict[tuple[Launch, Stage], str] = {}

    def __call__(self, launch: Launch) -> ByStage:
        """The open revisits of one of the launches, by stage."""
        return self._unmatched.get(launch, {})

    @cached_property
    def _unmatched(self) -> dict[Launch, ByStage]:
        from warcmill.versions import revisits  # noqa: PLC0415 with all that reads an index

        by_launch = {launch: revisits.with_revisits(self._state, launch) for launch in self._launches}
        pairs = [(launch, stage) for launch, stages in by_launch.items() for stage in stages]
        try:
            every = (revisit for launch, stage in pairs for revisit in self._read(launch, stage))
            searched = revisits.Originals(self._state, self._index, self._store).search(every)
        except (NotReady, BadInput) as error:
            searched = revisits.Searched(why=str(error))
        return {
            launch: {stage: self._open(launch, stage, searched) for stage in stages}
            for launch, stages in by_launch.items()
        }

    def _read(self, launch: Launch, stage: Stage) -> Iterator[Revisit]:
        from warcmill.extracts.extracts import Extracts  # noqa: PLC0415
        from warcmill.versions import revisits  # noqa: PLC0415

        try:
            yield from revisits.of_stage(self._state, Extracts(self._index), launch, stage)
        except NotReady as error:
            self._troubles[launch, stage] = str(error)

    def _open(self, launch: Launch, stage: Stage, searched: Searched) -> OpenRevisits:
        left = tuple(revisit for revisit in self._read(launch, stage) if revisit.wanted not in searched.originals)
        return OpenRevisits(left, self._troubles.get((launch, stage)) or (searched.unknown() if left else ""))


def _second_opinions(seen: Survey, stage: Stage) -> Iterator[CrawlFinding]:
    """WARCs of a submitted SIP that the gate finds whole, and that a second reader cannot read or finds otherwise."""
    verified = seen.facts.get(seen.key("verify-sip", stage))
    if not isinstance(verified, SipVerified):
        return
    found = dict(verified.differing)
    found |= {name: f"{why}; {found[name]}" if name in found else why for name, why in verified.unread}
    for name, why in sorted(found.items()):
        whole = "the gate finds it whole, and others may not be able to read it"
        yield CrawlFinding(
            stage, SECOND_OPINION, f"{SECOND_OPINION}:{name}", f"{why}. It is as it was crawled: {whole}"
        )


def _not_imported(seen: Survey) -> Iterator[CrawlFinding]:
    """Files that may have been a WARC of an imported folder, and could not be taken."""
    imported = seen.imported()
    for text in imported.missing if imported else ():
        name, _, why = text.rpartition(": ")
        yield CrawlFinding(
            None, NOT_IMPORTED, name, f"it lay in the folder that was imported, and was not taken: {why}"
        )


def _not_as_imported(seen: Survey) -> Iterator[CrawlFinding]:
    """WARCs that were gone, or had other bytes, when the line first read what was imported."""
    marker, listed = seen.marker("import"), seen.items("assemble", FINAL)
    checked = seen.items("checksum", FINAL)
    for item in marker.claim.items if marker and seen.marker("assemble", FINAL) else ():
        path = item.file.label
        if path not in listed:
            why = "it was imported, and was gone when the launch was assembled"
            yield CrawlFinding(None, NOT_AS_IMPORTED, path, why)
        elif path in checked and checked[path].file.sha512 != item.file.sha512:
            why = f"its bytes were no longer those that were imported, of sha512 {item.file.sha512}"
            yield CrawlFinding(None, NOT_AS_IMPORTED, path, why)


def _holes(seen: Survey) -> Iterator[CrawlFinding]:
    complete = seen.complete()
    if complete is None:
        return
    for name in complete.serial_holes:
        yield CrawlFinding(None, "serial hole", name, "WARCs with serials below and above it are there")
    there = [stage.number for stage in seen.stages if stage.number is not None]
    for number in complete.stage_holes:
        between = there and min(there) < number < max(there)
        source = "checkpoints below and above it are there" if between else "job.log says that it was taken"
        yield CrawlFinding(None, "checkpoint hole", f"cp{number:05d}", f"{source}, and none of its logs is there")


def _got_nothing(seen: Survey) -> Iterator[CrawlFinding]:
    """A complete launch that archived no page: all its seeds failed, or it was never started."""
    complete = seen.complete()
    stages = [assembled for stage in seen.stages if (assembled := seen.assembled(stage))]
    if complete is None or not stages or complete.continues or _is_dumped(seen):
        return  # all pages of a resumed launch may be before the checkpoint
    warcs, lines = (sum(assembled.numbers[name] for assembled in stages) for name in ("warcs", "lines"))
    statuses = Counter[str]()
    for assembled in stages:
        statuses.update(assembled.tables["by_status"])
    if warcs and (not statuses or any(map(_is_success, statuses))):
        return  # WARCs without a crawl log: nothing more is known of them
    started = seen.facts.get(layout.key("pulse.Started", seen.launch))
    if isinstance(started, Started) and ((started.endless and not lines) or started.retries):
        return  # an idle day: nothing was asked for; or what was missed is missed again
    codes = ", ".join(f"{code} ({number})" for code, number in statuses.most_common(3)) or "none"
    why = f"{warcs} WARCs, and of {lines} lines of the crawl log none is of a page that was got; statuses: {codes}"
    yield CrawlFinding(None, NOTHING, GOT_NOTHING, why, is_passing=True)


def _is_success(code: str) -> bool:
    """True if the status is of a page: HTTP or FTP without an error, or whois (1001). 1 is a DNS lookup, no page."""
    number = int(code) if code.isdecimal() else 0
    return 200 <= number < 400 or number > 1000


def lost_seeds(seen: Survey) -> Iterator[CrawlFinding]:
    """Dead or untried seeds, and targets without a page, that no other part of the crawl and no later launch got."""
    return (
        finding
        for finding in _missed_seeds(seen)
        if finding.name not in seen.got_before and not _is_healed(seen, finding)
    )


def _missed_seeds(seen: Survey) -> Iterator[CrawlFinding]:
    """Dead or untried seeds, and targets without a page; none before the seeds of the launch are listed."""
    seeds = seen.facts.get(seen.key(WORD))
    if not isinstance(seeds, Seeds):
        return
    if not seeds.listed and not seen.is_imported:
        yield CrawlFinding(None, NO_LIST, LIST, "the launch has none among its logs: which seeds it lost is unknown")
    if _is_dumped(seen):
        return
    for fate in seeds.lost():
        kind = DEAD if fate.state is SeedState.DEAD else UNTRIED
        yield CrawlFinding(None, kind, fate.seed, fate.why, is_passing=kind == UNTRIED or _was_down(fate))
    for target in seeds.without_page:
        yield CrawlFinding(
            None, NO_PAGE, f"{TARGET}{target}", "the feed asks for it, and no page was got from any seed of it"
        )


def _not_as_counted(seen: Survey) -> Iterator[CrawlFinding]:
    """Differences of the logs and the list of seeds from the engine's own reports; unread lines, and empty reports.

    The names have the kind before them: the same file may have another finding.
    """
    listed = seen.facts.get(seen.key(WORD))
    if not isinstance(listed, Seeds):
        return
    for name, why in listed.differing.items():
        yield CrawlFinding(None, OTHER_COUNT, f"count:{name}", why)
    if number := listed.unread_lines:
        lines = "1 line of the crawl logs is" if number == 1 else f"{number} lines of the crawl logs are"
        yield CrawlFinding(None, UNREAD_LINES, "unread:crawl.log", f"{lines} cut or damaged, and not counted")
    for name in listed.empty_reports:
        yield CrawlFinding(None, EMPTY_REPORT, f"reports/{name}", "it is empty, and no engine leaves it so")


def _was_down(fate: SeedFate) -> bool:
    """True if a seed, or the URL that it leads to, had no answer, or one that may be another tomorrow."""
    led_to = _CODE.search(fate.why) if fate.redirect else None
    code = int(led_to[1]) if led_to else fate.code or 0
    return code in _NO_ANSWER or code == HTTPStatus.TOO_MANY_REQUESTS or 500 <= code < 600


def _not_dumped(seen: Survey) -> Iterator[CrawlFinding]:
    """Projects of a package index, and files of them, that a dump lacks, until a later dump has them; and wheels whose
    METADATA is not the one that their page lists."""
    dumped = newest_dump(seen.facts)
    for one in dumped.lacked if dumped and not seen.is_dumped_later else ():
        yield CrawlFinding(None, NOT_DUMPED, f"project:{one.project}{'/' * bool(one.file)}{one.file}", one.why)
    for one in dumped.differing if dumped else ():
        yield CrawlFinding(None, OTHER_METADATA, f"metadata:{one.project}/{one.file}", one.why)


def _is_dumped(seen: Survey) -> bool:
    """True for a launch of a package index that is dumped: the dump names what it lacks, and the next launch asks for
    that again; and if all that was asked for is removed there, nothing is to be got."""
    dumped = seen.facts.get(seen.key("dump"))
    return isinstance(dumped, Dumped) and dumped.whole


def is_accepted(seen: Survey, kind: str, name: str) -> bool:
    """True if an operator has accepted a finding about seeds: a seed for the job; a target with all its lost seeds."""
    if kind in OF_SEEDS:
        return name in seen.accepted_seeds
    if layout.key("operator.Accept", seen.launch, finding=layout.finding_id(name)) in seen.markers:
        return True
    return kind == NO_PAGE and name.removeprefix(TARGET) in seen.accepted_targets


def still_open(seen: Survey) -> list[CrawlFinding]:
    """The findings about seeds that nobody has accepted."""
    return [finding for finding in lost_seeds(seen) if not is_accepted(seen, finding.kind, finding.name)]


def in_words(names: list[str], most: int = 3) -> str:
    """The number of lost names, with the first of them: `2 seeds or targets not got: http://a.example/, target:7`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    if LIST in names:
        return "not known which seeds were not got: its list of seeds is missing"
    one, many = ("seed or target", "seeds or targets") if any(map(_is_target, names)) else ("seed", "seeds")
    what = f"1 {one}" if len(names) == 1 else f"{len(names)} {many}"
    return f"{what} not got: {', '.join(names[:most])}{more}"


def _is_target(name: str) -> bool:
    return name.startswith(TARGET)
