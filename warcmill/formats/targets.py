"""The meaning of a feed's targets for a crawl, for any engine: seeds, prefixes, pages, and settings for each. Pure.

A target of scope `root` or `subdomains` is a site: every URL with one of its prefixes belongs to it, from whatever page
it was reached. One of scope `resource` or `plus1` is a page with its parts: only what was reached from its seed belongs
to it. So is each seed of a refreshed target. Where targets overlap, the wider one decides how a URL is crawled.

The values are the same for the same targets in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from warcmill.base.schedule import Frequency
from warcmill.errors import BadConfig
from warcmill.formats import hosts, surt
from warcmill.formats.feed import Depth, Target, TargetScope
from warcmill.formats.seeds import route_of

SEEDS: Final = "seeds.txt"
SURTS: Final = "surts.txt"
EXCLUDE: Final = "exclude.txt"
PART: Final = "[EIR]*X?[EIR]*"
"""The hops from a page to one of its parts, as a regular expression: embedded, inferred, redirected, one guessed."""
SITES: Final = frozenset({TargetScope.ROOT, TargetScope.SUBDOMAINS})


class Caps(Struct, frozen=True):
    """The most bytes fetched from one host for a CAPPED and a CAPPED_LARGE target. A DEEP one has no cap. `are_set`:
    luigi.cfg has them; else they are defaults."""

    capped: int
    capped_large: int
    are_set: bool = True


class Policy(Struct, frozen=True, order=True):
    """The manner in which a site or a page is crawled."""

    depth: Depth
    ignore_robots: bool


class PageReach(StrEnum):
    """The reach of a seed that is a page: with all its parts, as a site's seed too, or also to what it links to."""

    RESOURCE = "resource"
    REFRESH = "refresh"
    PLUS1 = "plus1"


class PageCrawl(Struct, frozen=True, order=True):
    """The crawl of the URLs that are reached from one seed."""

    reach: PageReach
    policy: Policy


class Plan(Struct, frozen=True):
    """The sites and pages to crawl. `sites` maps SURT prefixes, `pages` maps seeds; `excluded` are prefixes. `routed`:
    the seeds with their routes, for a browser."""

    seeds: frozenset[str]
    sites: Mapping[str, Policy]
    pages: Mapping[str, PageCrawl]
    excluded: frozenset[str]
    routed: frozenset[str] = frozenset()

    def lists(self) -> dict[str, bytes]:
        """The lists that every engine takes, as files: name -> bytes."""
        return {
            SEEDS: _lines(self.seeds),
            SURTS: _lines(f"+{prefix}" for prefix in self.sites),
            EXCLUDE: _lines(f"+{prefix}" for prefix in self.excluded),
        }


def selected(targets: Iterable[Target], frequency: Frequency, due: datetime, *, paused: bool = False) -> list[Target]:
    """The targets that a job of this frequency crawls at `due`: those with a schedule of it in force, and, if `paused`,
    those that it would crawl if they were not paused.

    A target is refreshed if all these schedules are refreshes.
    """
    in_force = [
        (target, [schedule for schedule in target.schedules if schedule.frequency == frequency and schedule.holds(due)])
        for target in targets
        if paused or not target.paused
    ]
    return [
        replace(target, refresh=all(schedule.refresh for schedule in schedules))
        for target, schedules in in_force
        if schedules
    ]


def plan(targets: Iterable[Target], excluded: Iterable[str]) -> Plan:
    """The crawl that these targets ask for. `excluded` are URLs or prefixes; BadConfig for one that is neither."""
    chosen = list(targets)
    sites = _sites(chosen)
    prefixes = frozenset(_excluded(excluded)).union(*(target.logout_prefixes() for target in chosen))
    routed = frozenset(surt.canonical(seed) + route_of(seed) for target in chosen for seed in target.seeds)
    return Plan(_seeds(chosen), sites, _pages(chosen, sites), prefixes, routed)


def seeds(targets: Iterable[Target]) -> bytes:
    """The file of the URLs to begin with."""
    return _lines(_seeds(targets))


def check_excluded(lines: Iterable[str]) -> None:
    """Raise BadConfig if a line of the operator's exclusions is neither a URL nor a SURT prefix."""
    for _ in _excluded(lines):
        pass


def _seeds(targets: Iterable[Target]) -> frozenset[str]:
    return frozenset(surt.canonical(seed) for target in targets for seed in target.seeds)


def _sites(targets: list[Target]) -> dict[str, Policy]:
    """The prefixes of all sites, each with its policy; targets that share a prefix get the wider policy."""
    sites: dict[str, Policy] = {}
    for target in targets:
        if target.scope in SITES and not target.refresh:
            for seed in map(surt.canonical, target.seeds):
                for prefix in prefixes_of(seed, target.scope):
                    sites[prefix] = _wider(sites.get(prefix), target)
    return sites


def prefixes_of(seed: str, scope: TargetScope) -> list[str]:
    """The SURT prefixes of the site that a canonical seed stands for; none for a page."""
    if scope is TargetScope.SUBDOMAINS:
        return [surt.domain_prefix(seed)]
    return [surt.folder_prefix(url) for url in surt.with_and_without_www(seed)] if scope is TargetScope.ROOT else []


def _pages(targets: list[Target], sites: Mapping[str, Policy]) -> dict[str, PageCrawl]:
    """The seeds of page targets, each with its reach and policy. A seed within a site counts only as `plus1`."""
    pages: dict[str, PageCrawl] = {}
    for target in targets:
        reach = _reach(target)
        for seed in map(surt.canonical, target.seeds):
            if reach is PageReach.PLUS1 or (reach and not _within(seed, sites)):
                known = pages.get(seed)
                widest = max(known.reach, reach, key=list(PageReach).index) if known else reach
                pages[seed] = PageCrawl(widest, _wider(known.policy if known else None, target))
    return pages


def _reach(target: Target) -> PageReach | None:
    """The reach of a page target, None for a site. A refresh never reaches further than the target itself."""
    if target.scope is TargetScope.RESOURCE:
        return PageReach.RESOURCE
    if target.refresh:
        return PageReach.REFRESH
    return PageReach.PLUS1 if target.scope is TargetScope.PLUS1 else None


def _within(seed: str, sites: Mapping[str, Policy]) -> bool:
    whole = surt.surt(seed)
    return any(whole[:length] in sites for length in range(len(whole) + 1))


def _wider(known: Policy | None, target: Target) -> Policy:
    """The deeper of both depths, ignoring robots.txt if one of them does."""
    new = Policy(target.depth, target.ignore_robots)
    if known is None:
        return new
    return Policy(max(known.depth, new.depth, key=list(Depth).index), known.ignore_robots or new.ignore_robots)


def _excluded(lines: Iterable[str]) -> Iterator[str]:
    """Prefixes from the operator's list of URLs or SURT prefixes (`http://(...`); skips blank lines and `#`."""
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            prefix = hosts.in_surt(text).lower() if text.startswith("http://(") else ""
            if prefix.isascii() and prefix.isprintable() and " " not in prefix:
                yield prefix or surt.surt(surt.canonical(text))
                continue
            raise ValueError(f"{text[:80]!r} has other characters than a SURT")
        except ValueError as error:
            raise BadConfig("[feed] exclude", f"line {number}: {error}, and no SURT prefix 'http://(...'") from error


def _lines(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in sorted(lines)).encode("ascii")
