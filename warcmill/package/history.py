"""The history of a stage's files as PREMIS events: one for each marker, from its claim and its run. Pure.

Events speak of the package; one with an outcome about a file, a refusal or a hit, names that file too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct, field

from warcmill import layout
from warcmill.formats.sip.premis import Agent, EventType, Identifier, PremisEvent, PremisOutcome
from warcmill.launches.holdings import Holding
from warcmill.markers.claim import Claim, Run, SoundMarker
from warcmill.markers.facts.files import Scanned, Stored, StoredFile, warnings
from warcmill.markers.facts.operator import Accepted
from warcmill.markers.facts.output import Assembled, Complete
from warcmill.model import FileRef, Item, Key, Outcome
from warcmill.package.sips import Proven

SUCCESS, FAIL, WARNING = "success", "fail", "warning"


class SipHistory(Struct):
    """The events and agents of a package that is being described.

    `accepted`: the findings that an operator accepted, by name. Each is listed with the finding, or at the end.
    """

    package: Identifier
    organisation: Agent
    accepted: Mapping[str, Accepted]
    events: list[PremisEvent] = field(default_factory=list)
    agents: dict[str, Agent] = field(default_factory=dict)
    listed: set[str] = field(default_factory=set)

    def add(self, proven: Proven, named: Callable[[FileRef], Identifier], complete: SoundMarker | None) -> None:
        """Add the events of a stage. `named`: gives the identifier of a stored file. `complete`: the 04 marker."""
        marker, verified = proven.markers, proven.markers["verify"].claim
        stored = Stored.from_claim(verified).files
        self._add_of(marker["assemble"], EventType.CAPTURE, *self._captured(proven, complete))
        self._add_of(marker["checksum"], EventType.MESSAGE_DIGEST_CALCULATION, *_digested(proven))
        self._add_of(marker["checksum"], EventType.VALIDATION, *self._validated(proven), self._refused(proven, named))
        copy = layout.step("copy", proven.holds.launch, proven.stage)
        self._add(copy, proven.copied, EventType.REPLICATION, *_copied(proven, verified, stored))
        compared = _compared(proven, stored, "compared in the store")
        self._add_of(marker["verify"], EventType.FIXITY_CHECK, *compared)
        if "viruses" in marker:
            hit = (named(one.stored) for one in proven.holds.holdings if one.hits)
            self._add_of(marker["viruses"], EventType.VIRUS_CHECK, *_scanned(proven), hit)
        if "read-back" in marker:
            files = Stored.from_claim(marker["read-back"].claim).files
            compared = _compared(proven, files, "read back from the store's disk")
            self._add_of(marker["read-back"], EventType.FIXITY_CHECK, *compared)

    def add_own(
        self,
        name: Identifier,
        kind: EventType,
        time: str,
        detail: str,
        outcomes: tuple[PremisOutcome, ...],
        tools: Mapping[str, str],
    ) -> None:
        """Add an event that speaks of the package alone, and that no marker has."""
        by = (*self.agents_of(tools), self.organisation.identifier)
        self.events.append(PremisEvent(name, kind, time, detail, outcomes, by, (self.package,)))

    def leftover(self) -> tuple[PremisOutcome, ...]:
        """The accepted findings that no event lists."""
        rest = sorted(set(self.accepted) - self.listed)
        notes = tuple(f"{self.accepted[name].kind} {name}{self._reason(name)}" for name in rest)
        return _if_any(WARNING, notes)

    def agents_of(self, tools: Mapping[str, str]) -> tuple[Identifier, ...]:
        """The agents for the tools of a run, by name and version."""
        named = [
            Agent(_local(f"{name} {version}"), name, "software", version) for name, version in sorted(tools.items())
        ]
        self.agents.update({agent.identifier.value: agent for agent in named})
        return tuple(agent.identifier for agent in named)

    def _add_of(
        self,
        marker: SoundMarker,
        kind: EventType,
        detail: str,
        outcomes: tuple[PremisOutcome, ...],
        objects: Iterable[Identifier] = (),
    ) -> None:
        self._add(marker.claim.key, marker.run, kind, detail, outcomes, objects)

    def _add(
        self,
        key: Key,
        run: Run,
        kind: EventType,
        detail: str,
        outcomes: tuple[PremisOutcome, ...],
        objects: Iterable[Identifier] = (),
    ) -> None:
        name = _local(f"{layout.marker_name(key)}#{kind.value[1]}")
        by = (*self.agents_of(run.tools), self.organisation.identifier)
        about = tuple(dict.fromkeys((self.package, *objects)))
        self.events.append(PremisEvent(name, kind, time_of(run), detail, outcomes, by, about))

    def _captured(self, proven: Proven, complete: SoundMarker | None) -> tuple[str, tuple[PremisOutcome, ...]]:
        known = proven.assembled
        ended = f"; the crawl ended: {known.ended}" if known.ended else ""
        resumed = known.continues
        after = f"; it continues launch {resumed.launch.id} from {resumed.checkpoint}" if resumed else ""
        detail = f"stage {proven.stage}, crawled from {known.start_date} to {known.end_date}{ended}{after}"
        numbers = f"{known.numbers['uris']} URIs in the crawl log, {known.numbers['warcs']} WARCs"
        findings = [*_named(known), *_holes(complete)] if proven.stage.is_final else _named(known)
        notes = tuple(f"{kind}: {name}{self._reason(name)}" for kind, name in findings)
        unstored = tuple(f"not stored: {one.name}, {one.size} bytes: {one.why}" for one in proven.holds.unstored)
        return detail, (PremisOutcome(SUCCESS, (numbers,)), *_if_any(WARNING, notes), *_if_any(FAIL, unstored))

    def _validated(self, proven: Proven) -> tuple[str, tuple[PremisOutcome, ...]]:
        claim = proven.markers["checksum"].claim
        judged = [item for item in claim.items if item.file.is_engines]
        refused = [item for item in judged if item.outcome is Outcome.REFUSED]
        warned = tuple(f"{item.file.name}: {text}" for item, text in warnings(claim) if item.file.is_engines)
        detail = f"stage {proven.stage}: every record of its WARCs read; declared digests compared"
        passed = (PremisOutcome(SUCCESS, (f"{len(judged) - len(refused)} WARCs are whole",)),)
        faults = tuple(f"{_fault(item)}{self._reason(item.file.label)}" for item in refused)
        return detail, (*passed, *_if_any(FAIL, faults), *_if_any(WARNING, warned))

    def _refused(self, proven: Proven, named: Callable[[FileRef], Identifier]) -> Iterator[Identifier]:
        return (named(one.stored) for one in proven.holds.holdings if _is_cut(one))

    def _reason(self, name: str) -> str:
        if name not in self.accepted:
            return ""
        self.listed.add(name)
        return f" (accepted: {self.accepted[name].reason})"


def time_of(run: Run) -> str:
    """The time of an event: when its run had finished."""
    return run.finished


def _is_cut(one: Holding) -> bool:
    return bool(one.why)


def _named(known: Assembled) -> list[tuple[str, str]]:
    lists = {
        "absent": known.absent,
        "unnamed": known.unnamed,
        "named again": known.named_again,
        "absent prefix": known.absent_prefix,
        "refused prefix": known.refused_prefix,
        "uncounted log": known.uncounted_log,
        "odd": known.unexpected,
    }
    return [(kind, name) for kind, names in lists.items() for name in names]


def _holes(complete: SoundMarker | None) -> list[tuple[str, str]]:
    if complete is None:
        return []
    known = Complete.from_claim(complete.claim)
    checkpoints = [("checkpoint hole", f"cp{number:05d}") for number in known.stage_holes]
    return [*(("serial hole", name) for name in known.serial_holes), *checkpoints]


def _digested(proven: Proven) -> tuple[str, tuple[PremisOutcome, ...]]:
    items = proven.markers["checksum"].claim.items
    return f"stage {proven.stage}: SHA-512 of every file", (PremisOutcome(SUCCESS, (f"{len(items)} files",)),)


def _copied(
    proven: Proven, verified: Claim, facts: Mapping[FileRef, StoredFile]
) -> tuple[str, tuple[PremisOutcome, ...]]:
    """From what files.Verify lists: the same files, with the same facts, as files.Copy did before it."""
    made = {item.made or item.file: item for item in verified.items}
    not_salvaged = tuple(
        f"{made[file].file.name}: {one.not_salvaged}" for file, one in facts.items() if one.not_salvaged
    )
    salvaged = tuple(
        f"{file.name}: the whole records of {made[file].file.name}" for file, one in facts.items() if one.salvaged
    )
    detail = f"stage {proven.stage}: copied from the crawler's disk into the archive's store, bit for bit"
    done = PremisOutcome(SUCCESS, (f"{len(facts) - len(salvaged)} files", *salvaged))
    return detail, (done, *_if_any(WARNING, not_salvaged))


def _compared(proven: Proven, facts: Mapping[FileRef, StoredFile], how: str) -> tuple[str, tuple[PremisOutcome, ...]]:
    by = ", ".join(sorted({one.by for one in facts.values()}))
    done = PremisOutcome(SUCCESS, (f"{len(facts)} files",))
    return f"stage {proven.stage}: length and digest of every file {how}" + (f", by {by}" if by else ""), (done,)


def _scanned(proven: Proven) -> tuple[str, tuple[PremisOutcome, ...]]:
    facts = Scanned.from_claim(proven.markers["viruses"].claim).files
    clean = sum(one.clean for one in facts.values())
    names = {one.stored.path: one.name for one in proven.holds.holdings}
    hits = tuple(
        f"{names.get(file.path, file.name)} at offset {hit.offset}: {hit.signature} in {hit.uri}"
        for file, one in facts.items()
        for hit in one.hits
    )
    skipped = tuple(
        f"{names.get(file.path, file.name)}: {number} not scanned: {why}"
        for file, one in facts.items()
        for why, number in sorted(one.not_scanned.items())
    )
    passed = PremisOutcome(SUCCESS, (f"{clean} payloads are clean",))
    detail = f"stage {proven.stage}: the payloads of its WARCs scanned for viruses"
    return detail, (passed, *_if_any(FAIL, hits), *_if_any(WARNING, skipped))


def _fault(item: Item) -> str:
    return f"{item.file.name}: {item.why if item.offset is None else f'at offset {item.offset}: {item.why}'}"


def _if_any(word: str, notes: tuple[str, ...]) -> tuple[PremisOutcome, ...]:
    return (PremisOutcome(word, notes),) if notes else ()


def _local(value: str) -> Identifier:
    return Identifier("local", value)
