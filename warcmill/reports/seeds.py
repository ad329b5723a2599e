"""List what became of each seed of a launch, from the stored logs of its stages: what reports.seeds claims. Reads only.

The seeds are in the launch's own seeds.txt. A launch that continues a checkpoint got some of them before it: the
stages of the earlier launch up to that checkpoint count, and its list where the launch has none of its own. Of a long
list, seeds.jsonl, all seeds are counted, and those that were not got are listed. The same zips have the reports of the
engine: logs and lists that lack what these count are facts, too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from io import BytesIO
from itertools import islice
from pathlib import Path

from msgspec import Struct

from warcmill import layout
from warcmill.base import digests
from warcmill.errors import Mismatch, NotReady
from warcmill.formats import feed
from warcmill.formats import seeds as seed_list
from warcmill.formats.feed import Target
from warcmill.formats.logs import retired
from warcmill.formats.seeds import SEED_LIST, ListedSeed, comparable
from warcmill.launches import crawl_parts, discovery, stored_logs
from warcmill.launches.stored_logs import StoredLogs
from warcmill.launches.view import Part, parts
from warcmill.markers.claim import Claim, Evidence
from warcmill.markers.facts.output import Assembled, Ended
from warcmill.markers.facts.pulse import Started
from warcmill.markers.facts.reports import SeedFate, SeedState
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FINAL, Json, Launch
from warcmill.reports import engine_counts, seed_fates
from warcmill.reports.engine_counts import EngineReports
from warcmill.reports.locations import Locations
from warcmill.reports.long_seed_list import LongSeedList
from warcmill.reports.seed_lines import SeedLines
from warcmill.stores import Store

WORD = "seeds"
LIST = "seeds.txt"
_REPORTS = "reports/"
_LARGEST = 256 << 20  # bytes of a seed list, or of a report
_HEAD = 1 << 12  # bytes of a report that show that it has content
_LOOKED_AT = 10  # launches before one
_PASSES = 4  # readings of the logs: one more for each redirect that leads to what no reading has looked for
_STATUS = re.compile(rb"crawl status: ([^\r\n]*)")
# The built-in crawler writes it. Heritrix has `Stopping - Active` after a stop and after a limit alike: that is a loss.
_BY_OPERATOR = "Finished - Ended by operator"


class _Papers(Struct, frozen=True):
    """The papers of a launch: its list of seeds, None without one; how it ended; whether a person ended it; what its
    engine counted; and whether it served requests, each of which is a seed."""

    seeds: bytes | None
    end: str
    by_operator: bool
    reports: EngineReports
    serves: bool


def seeds(state: MarkerStore, store: Store, launch: Launch) -> Claim:
    """The claim of reports.seeds. NotReady without 04, without files.verified of a stage that counts, or without the
    feed by which the launch was started; Mismatch when a stored zip is no longer the verified one."""
    complete, read = state.require(layout.step("process", launch)), parts(state, launch)
    verified = {part: state.require(layout.step("verify", *part)) for part in read}
    started = state.read(layout.key("pulse.Started", launch))
    targets = _targets(state, started)
    with state.scratch() as folder:
        logs = _Logs(state, store, folder, verified)
        papers = logs.papers((launch, FINAL))
        listed, inputs = (papers.seeds, verified) if papers.seeds is not None else logs.earlier_list(read)
        found = seed_list.read(listed or b"")
        long = logs.long_list((launch, FINAL))
        found = [*found, *(long.others if long else ())]
        lines, unread = logs.look_up([seed.url for seed in found], with_pages=bool(targets))
    known = {*(seed.url for seed in found), *lines.answers, *lines.leads_to.values()}
    of_target = {comparable(url): target.id for target in reversed(targets) for url in target.seeds}
    fates = [seed_fates.of(seed, lines, of_target.get(seed.url, "")) for seed in found]
    states = Counter(fate.state for fate in fates)
    if long:
        states[SeedState.ALIVE] += long.got
        states[SeedState.UNTRIED] += long.unnamed
        unread = sorted({*unread, *long.unread})
    return Claim(
        layout.step(WORD, launch),
        rests_on(complete, *inputs.values(), *([started] if started else [])),
        counts={"seeds": states.total(), **{str(one): states[one] for one in SeedState}},
        facts={
            "list": SEED_LIST if long else "" if listed is None else LIST,
            "end": papers.end,
            "untried_as": _untried_as(started, papers),
            "seeds": [fate.facts() for fate in fates],
            "without_page": [*_without_page(targets, found, fates, lines)],
            "unread": [*unread],
            **_differing(state, launch, verified, papers, known if listed is not None and long is None else None),
        },
    )


class _Logs:
    """The stored logs of some stages; `verified` are their markers."""

    def __init__(self, state: MarkerStore, store: Store, folder: Path, verified: Mapping[Part, Evidence]) -> None:
        self._state, self._store, self._folder, self._verified = state, store, folder, verified

    def papers(self, part: Part) -> _Papers:
        """The papers of a launch, in its final stage."""
        with self._opened(part) as logs:
            reports = EngineReports()
            reports.crawl, reports.codes, reports.seeds = (
                logs.paper(f"{_REPORTS}{name}", _LARGEST) or b""
                for name in (engine_counts.CRAWL, engine_counts.CODES, engine_counts.SEEDS)
            )
            there = (name for name in logs.members if name.startswith(_REPORTS))
            reports.heads = {name.removeprefix(_REPORTS): logs.paper(name, _HEAD) or b"" for name in there}
            logs.read_logs("progress-statistics.log", reports.add_progress)
            status = _STATUS.search(reports.crawl)
            end = status[1].decode("utf-8", "backslashreplace").strip() if status else ""
            serves = any(name.endswith(f"/{layout.RESULTS_LOG}") for name in logs.members)
            return _Papers(logs.paper(f"jobs/{LIST}", _LARGEST), end, end == _BY_OPERATOR, reports, serves)

    def earlier_list(self, read: Iterable[Part]) -> tuple[bytes | None, dict[Part, Evidence]]:
        """The list of the newest launch before that has one, and the markers of all that was read then."""
        markers = dict(self._verified)
        for before in dict.fromkeys(launch for launch, _ in reversed(list(read)[:-1])):
            marker = self._state.read(layout.step("verify", before, FINAL))
            if marker and (before, FINAL) not in markers:
                markers[before, FINAL] = marker
                papers = _Logs(self._state, self._store, self._folder, markers).papers((before, FINAL))
                if papers.seeds is not None:
                    return papers.seeds, markers
        return None, markers

    def long_list(self, part: Part) -> LongSeedList | None:
        """The long list of a launch, in its final stage, with what became of its seeds; None without one."""
        found = LongSeedList()
        with self._opened(part) as logs:
            if logs.open_paper(f"jobs/{SEED_LIST}") is None:
                return None
        for each in self._each():
            found.unread += each.read_crawl_logs(found.add)
        with self._opened(part) as logs:
            if stream := logs.open_paper(f"jobs/{SEED_LIST}"):
                found.read(seed_list.lines(stream))
        return found

    def look_up(self, urls: list[str], *, with_pages: bool) -> tuple[SeedLines, list[str]]:
        """The lines of some URLs, and of those that they lead to; also the logs that could not be read whole."""
        lines = SeedLines(urls, with_pages=with_pages)
        if not urls:
            return lines, []
        locations = Locations(self._state, self._store, self._verified)
        unread = self._read(lines)
        for _ in range(_PASSES):
            if not sum(lines.follow(url, place) for url, place in _unfollowed(urls, lines, locations)):
                break
            self._read(lines)
        return lines, unread

    def _read(self, lines: SeedLines) -> list[str]:
        unread = []
        for logs in self._each():
            unread += logs.read_crawl_logs(lines.add)
            logs.read_logs("scope.log", lines.add_scope)
            logs.read_logs("uri-errors.log", lines.add_errors)
        return unread

    def _each(self) -> Iterator[StoredLogs]:
        for part in self._verified:
            with self._opened(part) as logs:
                yield logs

    def _opened(self, part: Part) -> AbstractContextManager[StoredLogs]:
        return stored_logs.opened(self._store, self._verified[part], self._folder)


def _unfollowed(urls: Iterable[str], lines: SeedLines, locations: Locations) -> Iterator[tuple[str, str]]:
    """The last known URLs that redirect to another, each with its target, by their records in the store.

    A crawl log has no line of a redirect's target that was known by then.
    """
    for url in urls:
        answer, place = seed_fates.end(url, lines)
        is_open = answer and seed_fates.redirected(answer) and place not in lines.leads_to
        if answer and is_open and (leads_to := locations.of(answer)):
            yield place, leads_to


def _differing(
    state: MarkerStore, launch: Launch, counted: Iterable[Part], papers: _Papers, known: Collection[str] | None
) -> dict[str, Json]:
    """The facts of what the logs and the list of a crawl lack of its engine's reports; none where both agree.

    `known`: the seeds of the list, and what they lead to; None without a list, and for a long one. Nothing is compared
    of an import, which has no engine; no lines where stages that count are not known, or a worker was declared dead; no
    seeds where requests are seeds.
    """
    markers = {part: state.read(layout.step("assemble", *part)) for part in counted}
    assembled = {part: Assembled.from_claim(marker.claim) for part, marker in markers.items() if marker}
    if any(one.ended is Ended.IMPORTED for part, one in assembled.items() if part[0] == launch):
        return {}
    own, reports = [one for part, one in assembled.items() if part[0] == launch], papers.reports
    crawl = crawl_parts.of(state, launch)
    is_whole = len(assembled) == len(markers) and not crawl.broken
    lines = seeds_lost = ""
    if is_whole and retired.RETIRED not in reports.heads:
        tables = [one.tables["by_status"] for one in assembled.values()]
        lines = engine_counts.lines(reports, tables)
        if lines and not crawl.before and len(own) == 1 and _is_resumed(state, launch, reports, tables):
            lines = ""
    if known is not None and not papers.serves:
        seeds_lost = engine_counts.seeds(reports, known)
    found = {engine_counts.CRAWL_LOG: lines, LIST: seeds_lost}
    facts: dict[str, Json] = {
        "differing": {name: why for name, why in found.items() if why},
        "unread_lines": sum(one.numbers["unread"] for one in own),
        "empty_reports": [*engine_counts.empty(reports)],
    }
    return {name: value for name, value in facts.items() if value}


def _is_resumed(state: MarkerStore, launch: Launch, reports: EngineReports, own: Iterable[Mapping[str, int]]) -> bool:
    """True if the engine counts what a launch had up to a checkpoint, too.

    A launch of Heritrix that is resumed by hand, and takes no checkpoint, has no other trace of it.
    """
    earlier = (one for one in discovery.of_job(state, launch.job) if one < launch)
    for before in islice(earlier, _LOOKED_AT):
        tables = [*own]
        with suppress(NotReady):
            for part in parts(state, before):
                assembled = Assembled.from_claim(state.require(layout.step("assemble", *part)).claim)
                tables.append(assembled.tables["by_status"])
                if not engine_counts.lines(reports, tables):
                    return True
    return False


def _untried_as(started: Evidence | None, papers: _Papers) -> str:
    """Why it is not a loss that a seed was not tried; '' where it is one."""
    follows = Started.from_claim(started.claim).follows if started else None
    if follows:
        return f"the launch follows {follows.id}: a seed is fetched again when it is due"
    return "the crawl was ended by an operator" if papers.by_operator else ""


def _targets(state: MarkerStore, started: Evidence | None) -> list[Target]:
    """The targets of the feed by which a launch was started; none without a feed."""
    sha512 = Started.from_claim(started.claim).feed if started else None
    if sha512 is None:
        return []
    path = layout.feed_path(sha512)
    if state.store.stat(path) is None:
        raise NotReady(f"state:{path}", "the feed of this launch is not there; 'warcmill restore' brings it back")
    data = state.store.read(path, feed.LARGEST + 1)
    if (found := digests.sha512(BytesIO(data))[1]) != sha512:
        raise Mismatch(f"SHA-512 of state:{path}", sha512, found)
    return feed.read(data, path).targets


def _without_page(
    targets: Iterable[Target], found: list[ListedSeed], fates: list[SeedFate], lines: SeedLines
) -> list[str]:
    """The ids of the targets whose seeds the launch all has, and from none of which it got a page."""
    got = {
        seed.url
        for seed, fate in zip(found, fates, strict=True)
        if fate.state in (SeedState.ALIVE, SeedState.REDIRECTED) or seed.url in lines.with_page
    }
    listed = {seed.url for seed in found}
    asked = {target.id: {comparable(url) for url in target.seeds} for target in targets}
    return sorted(one for one, urls in asked.items() if urls <= listed and not urls & got)
