"""The document of `warcmill report`: what a launch brought, what became of its seeds, what is new. Reads only.

Of the launch before it only what is kept in the index root is read, unless the store is given: then the comparison is
made, and kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import TypedDict

from msgspec import Struct, field
from msgspec.structs import replace

from warcmill import layout
from warcmill.errors import BadConfig, BadInput, Foreign, NotReady
from warcmill.formats.logs import bounds, logzip, unrendered
from warcmill.formats.logs.bounds import BoundCut
from warcmill.formats.logs.crawlreport import total
from warcmill.formats.logs.unrendered import Unrendered
from warcmill.formats.seeds import comparable
from warcmill.launches import crawl_parts
from warcmill.launches.crawl_parts import CrawlParts
from warcmill.launches.discovery import of_job
from warcmill.markers.facts import readers
from warcmill.markers.facts.output import PackedLogs
from warcmill.markers.facts.pulse import Started
from warcmill.markers.facts.reports import GOT, REPORT_TABLES, CrawlReported, LostRequest, Seeds
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, Json, Key, Launch, Stage
from warcmill.reports import comparison
from warcmill.reports.comparison import LaunchComparison
from warcmill.stores import LocalStore, Store

_PAPERS = ("crawl.toml", "seeds.txt", "surts.txt", "exclude.txt")
_LARGEST = 64 << 20  # bytes of one of them


class LaunchFigures(Struct, frozen=True):
    """The reports of a launch; `seeds` None before they are listed. `stages` have a report, `missing` have none.

    `requests_lost` requests of applications have no page; the first of each stage are in `requests`. `cut`: how the
    crawl was cut short, '' where it was not, and `go_on` continues it. `got_later`: the launch that got a lost seed
    since, by seed. `parts`: the launches that it continues, whose figures are among these; `broken`: why there may be
    more. `bounds`: what bounds have left out. `unrendered`: pages that were to be rendered and were not. `less`: what
    the launch `less_than`, which is the one before, was asked for and this crawl is not.
    """

    launch: Launch
    seeds: Seeds | None
    stages: tuple[Stage, ...]
    missing: tuple[Stage, ...]
    numbers: dict[str, int]
    tables: dict[str, dict[str, int]]
    before: LaunchComparison | None = None
    requests_lost: int = 0
    requests: tuple[LostRequest, ...] = ()
    cut: str = ""
    go_on: str = ""
    got_later: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[Launch, ...] = ()
    broken: str = ""
    less: tuple[str, ...] = ()
    less_than: Launch | None = None
    bounds: tuple[BoundCut, ...] = ()
    unrendered: tuple[Unrendered, ...] = ()

    def json(self) -> dict[str, Json]:
        """The document."""
        crawl: dict[str, Json] = {"stages": [*map(str, self.stages)], **self.numbers}
        tables: dict[str, Json] = {name: dict(table) for name, table in self.tables.items()}
        before = self.before.json() if self.before else None
        head: dict[str, Json] = {"job": self.launch.job, "launch_id": self.launch.id}
        seeds = _seeds(self.seeds) if self.seeds else None
        if self.requests_lost:
            first: list[Json] = [one._asdict() for one in self.requests]
            crawl |= {"requests_lost": self.requests_lost, "requests_without_page": first}
        found: dict[str, Json] = {**head, "seeds": seeds, "before": before, "crawl": {**crawl, **tables}}
        found |= {"continues": [one.id for one in self.parts]} if self.parts else {}
        found |= {"less": {"than": self.less_than.id, "what": [*self.less]}} if self.less_than else {}
        found |= {"cut": self.cut} if self.cut else {}
        found |= {"bounds": [{**one.json()} for one in self.bounds]} if self.bounds else {}
        found |= {"unrendered": [{**one.json()} for one in self.unrendered]} if self.unrendered else {}
        return found | ({"got_later": dict(self.got_later)} if self.got_later else {})


def _seeds(seeds: Seeds) -> dict[str, Json]:
    return {
        "listed": seeds.listed,
        "end": seeds.end,
        "untried_as": seeds.untried_as,
        "counts": dict(seeds.numbers),
        "seeds": [fate.facts() for fate in seeds.seeds],
        "without_page": [*seeds.without_page],
    }


def of_facts(
    launch: Launch, stages: Collection[Stage], facts: Mapping[Key, object], before: LaunchComparison | None = None
) -> LaunchFigures:
    """The figures of a launch by the facts of its markers, which a survey of it has read."""
    by_stage = {Stage.parse(key["stage"]): one for key, one in facts.items() if isinstance(one, CrawlReported)}
    of_stages = {stage: by_stage[stage] for stage in stages if stage in by_stage}
    tables = {name: total(dict(one.tables[name]) for one in of_stages.values()) for name in REPORT_TABLES}
    numbers = {name: sum(one.numbers[name] for one in of_stages.values()) for name in ("lines", "bytes", "unread")}
    missing = tuple(stage for stage in stages if stage not in of_stages)
    seeds = next((one for one in facts.values() if isinstance(one, Seeds)), None)
    requests = tuple(chain.from_iterable(one.requests_without_page for one in of_stages.values()))
    lost = sum(one.requests_lost for one in of_stages.values())
    left_out = next((one.bounds for one in of_stages.values() if one.bounds), ())
    pages = unrendered.joined(one.unrendered for one in of_stages.values())
    return LaunchFigures(
        launch, seeds, tuple(of_stages), missing, numbers, tables, before, lost, requests, bounds=left_out,
        unrendered=pages,
    )  # fmt: skip


def of_crawl(state: MarkerStore, own: LaunchFigures) -> LaunchFigures:
    """The figures of a launch with those of the launches that it continues: for a person they are one crawl."""
    parts = crawl_parts.of(state, own.launch)
    found, missing = [own], list(own.missing)
    for one in parts.before:
        facts = dict(_facts(state, one))
        found.append(of_facts(one, sorted(state.stages(one)), facts))
        missing += found[-1].missing
    return replace(
        own,
        seeds=own.seeds and got_in_all(own.seeds, [one.seeds for one in found[1:] if one.seeds]),
        numbers={name: sum(one.numbers[name] for one in found) for name in own.numbers},
        tables={name: total(one.tables[name] for one in found) for name in own.tables},
        missing=tuple(missing),
        requests_lost=sum(one.requests_lost for one in found),
        requests=tuple(chain.from_iterable(one.requests for one in found)),
        bounds=tuple(bounds.total([one.bounds for one in [*found[1:], own]])),
        parts=parts.before,
        broken=parts.broken,
        unrendered=unrendered.joined(one.unrendered for one in found),
        **_less(state, parts),
    )


class _Less(TypedDict):
    less: tuple[str, ...]
    less_than: Launch | None


def _less(state: MarkerStore, parts: CrawlParts) -> _Less:
    """The seeds and the scope that a crawl has lost since the launch before it, by their packed papers."""
    before = next((one for one in of_job(state, parts.launch.job) if one < parts.launches[0]), None)
    then, now = _papers(state, before) if before else {}, _papers(state, parts.launch)
    what = _lost(parts.launch.job, then, now) if then and now and then != now else ()
    return {"less": what, "less_than": before if what else None}


def _lost(job: str, then: Mapping[str, bytes], now: Mapping[str, bytes]) -> tuple[str, ...]:
    from warcmill.crawl.job import identity  # noqa: PLC0415 with all that reads a crawl.toml

    try:
        return tuple(identity.of(now, job).shrunk(identity.of(then, job)))
    except BadConfig:
        return ()  # of a version that had other keys


def _papers(state: MarkerStore, launch: Launch) -> dict[str, bytes]:
    """The papers of a launch; none before they are packed, and for a launch by a feed, which changes them by design."""
    key = layout.step("pack", launch, FINAL)
    try:
        started, packed = state.read(layout.key("pulse.Started", launch)), state.read(key)
        if packed is None or (started and Started.from_claim(started.claim).feed):
            return {}
        names = {f"jobs/{name}" for name in _PAPERS} & {*PackedLogs.from_claim(packed.claim).members.values()}
        with state.store.open(layout.marker_path(key)) as file:
            return {name[5:]: logzip.open_member(file, name).read(_LARGEST) for name in sorted(names)}
    except (NotReady, Foreign, BadInput):
        return {}  # a marker that cannot be read is a gap of its own


def _facts(state: MarkerStore, launch: Launch) -> Iterator[tuple[Key, object]]:
    """The facts of the reports of a launch; a marker that does not fit is a gap of its own."""
    words = [("crawl-report", stage) for stage in sorted(state.stages(launch))]
    for key in [*(layout.step(word, launch, stage) for word, stage in words), layout.step("seeds", launch)]:
        with suppress(BadInput, Foreign):
            if marker := state.read(key):
                yield key, readers.of(marker.claim)


def got_in_all(seeds: Seeds, earlier: Collection[Seeds]) -> Seeds:
    """The seeds of a launch, with the fates of those that it lost and an earlier part of its crawl got. Pure."""
    got = {comparable(fate.seed): fate for one in earlier for fate in one.seeds if fate.state in GOT}
    fates = tuple(got.get(comparable(fate.seed), fate) if fate.state not in GOT else fate for fate in seeds.seeds)
    numbers = Counter(seeds.numbers)
    for before, now in zip(seeds.seeds, fates, strict=True):
        numbers[before.state] -= 1
        numbers[now.state] += 1
    without = [target for target in seeds.without_page if all(target in one.without_page for one in earlier)]
    return replace(seeds, seeds=fates, numbers=dict(numbers), without_page=tuple(without))


def beside_the_one_before(
    state: MarkerStore, index: LocalStore | None, launch: Launch, store: Store | None = None
) -> LaunchComparison | None:
    """The comparison with the launch before; None if there is none, or its own stages are not verified any more.

    Without the store, only one that was made before, by the same markers, is found.
    """
    try:
        return comparison.compare(state, store, index, launch)
    except NotReady:
        return None
