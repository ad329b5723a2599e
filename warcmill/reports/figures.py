"""The document of `warcmill report`: what a launch brought, what became of its seeds, what is new. Reads only.

Of the launch before it only what is kept in the index root is read, unless the store is given: then the comparison is
made, and kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import chain

from msgspec import Struct, field

from warcmill.errors import NotReady
from warcmill.formats.logs.crawlreport import total
from warcmill.markers.facts.reports import REPORT_TABLES, CrawlReported, LostRequest, Seeds
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, Key, Launch, Stage
from warcmill.reports import comparison
from warcmill.reports.comparison import LaunchComparison
from warcmill.stores import LocalStore, Store


class LaunchFigures(Struct, frozen=True):
    """The reports of a launch; `seeds` None before they are listed. `stages` have a report, `missing` have none.

    `requests_lost` requests of applications have no page; the first of each stage are in `requests`. `cut`: how the
    crawl was cut short, '' where it was not, and `go_on` continues it. `got_later`: the launch that got a lost seed
    since, by seed.
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
        found |= {"cut": self.cut} if self.cut else {}
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
    return LaunchFigures(launch, seeds, tuple(of_stages), missing, numbers, tables, before, lost, requests)


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
