"""Revisits whose payload is archived nowhere, and those of which this cannot be known yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from warcmill.audit.crawl_finding import CrawlFinding
from warcmill.audit.survey import OpenRevisits, Survey
from warcmill.errors import BadInput, NotReady
from warcmill.launches.extracts import Extracts
from warcmill.markers.facts import Found
from warcmill.markers.state import MarkerStore
from warcmill.model import Key, Launch, Stage
from warcmill.stores import LocalStore, Store
from warcmill.versions import revisits
from warcmill.versions.originals import Originals, Searched
from warcmill.versions.revisits import Revisit

ORPHAN, UNRESOLVED = "orphan revisit", "unresolved revisits"
ByStage = Mapping[Stage, OpenRevisits]
Resolve = Callable[[Launch], ByStage]


def find(seen: Survey, stage: Stage) -> Iterator[CrawlFinding]:
    """The findings of a stage. None where nobody has looked: `looked_up` does."""
    found = seen.revisits.get(stage)
    if found is None:
        return
    if found.why and not found.revisits:
        why = f"they cannot be read: {found.why}"
        yield CrawlFinding(stage, UNRESOLVED, f"revisits of {stage}", why, _indexed(seen, stage, found.why))
        return
    if found.why:
        number = len(found.revisits)
        what = "the payload of 1 revisit was" if number == 1 else f"the payloads of {number} revisits were"
        yield CrawlFinding(stage, UNRESOLVED, f"revisits of {stage}", f"{what} not found: {found.why}")
        return
    for one in found.revisits:
        payload = one.digest or "of no known digest"
        why = f"its payload, {payload}, is archived nowhere; record at offset {one.offset}, of {one.time}"
        yield CrawlFinding(stage, ORPHAN, f"{one.warc.rpartition('/')[2]} {one.url}", why)


def _indexed(seen: Survey, stage: Stage, why: str) -> Key:
    """The step whose redo makes the extract again that `why` names: of this stage, or of an earlier one."""
    cdx = {one: seen.markers.get(seen.key("cdx", one)) for one in seen.stages}
    named = (one for one, marker in cdx.items() if marker and any(str(f.sha512) in why for f in marker.claim.stored))
    return seen.key("cdx", next(named, stage))


def looked_up(seen: Survey, resolve: Resolve | None) -> Survey:
    """The survey with the open revisits of the launch. Nothing is looked up where its markers count none."""
    is_open = any(isinstance(fact, Found) and fact.elsewhere for fact in seen.facts.values())
    return replace(seen, revisits=resolve(seen.launch)) if resolve and is_open else seen


class Resolver:
    """Looks up the revisits of some launches, all at once, when it is first asked."""

    def __init__(self, state: MarkerStore, index: LocalStore, store: Store, launches: Iterable[Launch]) -> None:
        self._state, self._index, self._store, self._launches = state, index, store, launches
        self._troubles: dict[tuple[Launch, Stage], str] = {}

    def __call__(self, launch: Launch) -> ByStage:
        """The open revisits of one of the launches, by stage."""
        return self._found.get(launch, {})

    @cached_property
    def _found(self) -> dict[Launch, ByStage]:
        stages = {one: revisits.with_revisits(self._state, one) for one in self._launches}
        try:
            every = (one for launch, of_it in stages.items() for stage in of_it for one in self._read(launch, stage))
            searched = Originals(self._state, self._index, self._store).search(every)
        except (NotReady, BadInput) as error:
            searched = Searched(why=str(error))
        return {
            launch: {stage: self._open(launch, stage, searched) for stage in of_it} for launch, of_it in stages.items()
        }

    def _read(self, launch: Launch, stage: Stage) -> Iterator[Revisit]:
        try:
            yield from revisits.of_stage(self._state, Extracts(self._index), launch, stage)
        except NotReady as error:
            self._troubles[launch, stage] = str(error)

    def _open(self, launch: Launch, stage: Stage, searched: Searched) -> OpenRevisits:
        left = tuple(one for one in self._read(launch, stage) if one.wanted not in searched.originals)
        return OpenRevisits(left, self._troubles.get((launch, stage)) or (searched.unknown() if left else ""))
