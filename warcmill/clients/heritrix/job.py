"""Make the files of a Heritrix job from a feed's targets: seeds, prefixes and sheets.

    crawler-beans.cxml   the profile, filled in; its sheets define how each target is crawled
    seeds.txt            the URLs to begin with
    surts.txt            prefixes of the sites
    exclude.txt          prefixes that are never crawled

A target of scope `root` or `subdomains` is a site: every URL with one of its
prefixes belongs to it, from whatever page it was reached. One of scope
`resource` or `plus1` is a page: only what was reached from its seed belongs to
it. Each seed of a refreshed target is a page, with what it embeds. Where
targets overlap, the wider one decides how a URL is crawled.

Pure, and the same bytes for the same targets in any order. From the feed only
canonical URLs get into the XML, never a title or an id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from warcmill.base.schedule import Frequency
from warcmill.clients.heritrix import sheets
from warcmill.clients.heritrix.sheets import Caps, Page, Policy, Reach
from warcmill.errors import BadConfig
from warcmill.formats import surt
from warcmill.formats.feed import Depth, Scope, Target

CONFIGURATION: Final = "crawler-beans.cxml"
SEEDS: Final = "seeds.txt"
TARGETS_HERE: Final = "<!--@targets@-->"
SITES: Final = frozenset({Scope.ROOT, Scope.SUBDOMAINS})


def selected(targets: Iterable[Target], frequency: Frequency, due: datetime) -> list[Target]:
    """The targets that a job of this frequency crawls at `due`: those with a schedule of it in force.

    A target is refreshed if all these schedules are refreshes.
    """
    in_force = [
        (target, [schedule for schedule in target.schedules if schedule.frequency == frequency and schedule.holds(due)])
        for target in targets
    ]
    return [
        replace(target, refresh=all(schedule.refresh for schedule in schedules))
        for target, schedules in in_force
        if schedules
    ]


def files(
    targets: Iterable[Target], profile: str, values: Mapping[str, str], excluded: Iterable[str], caps: Caps
) -> dict[str, bytes]:
    """All files of the job: name -> bytes. `values` replace the profile's `@name@`; `excluded` are URLs or prefixes.

    BadConfig for a profile or an exclusion that cannot be used.
    """
    chosen = list(targets)
    sites = _sites(chosen)
    prefixes = {*_excluded(excluded)}.union(*(target.logout_prefixes() for target in chosen))
    beans = sheets.beans(sites, _pages(chosen, sites), caps)
    values = {**values, "capped_kb": str(caps.capped // 1024)}
    return {
        CONFIGURATION: filled(profile, values, beans).encode(),
        SEEDS: seeds(chosen),
        "surts.txt": _lines(f"+{prefix}" for prefix in sites),
        "exclude.txt": _lines(f"+{prefix}" for prefix in prefixes),
    }


def seeds(targets: Iterable[Target]) -> bytes:
    """The file of the URLs to begin with."""
    return _lines({surt.canonical(seed) for target in targets for seed in target.seeds})


def filled(profile: str, values: Mapping[str, str], beans: str) -> str:
    """The profile with each `@name@` replaced by its escaped value, and with the targets' beans inserted.

    BadConfig unless it has exactly one place for them.
    """
    if profile.count(TARGETS_HERE) != 1:
        raise BadConfig("[feed] profile", f"must have {TARGETS_HERE} once, where the targets' sheets go")
    for name, value in values.items():
        profile = profile.replace(f"@{name}@", sheets.xml(value))
    return profile.replace(TARGETS_HERE, beans)


def _sites(targets: list[Target]) -> dict[str, Policy]:
    """The prefixes of all sites, each with its policy; targets that share a prefix get the wider policy."""
    sites: dict[str, Policy] = {}
    for target in targets:
        if target.scope in SITES and not target.refresh:
            for prefix in _prefixes(target):
                sites[prefix] = _wider(sites.get(prefix), target)
    return sites


def _prefixes(target: Target) -> Iterator[str]:
    for seed in map(surt.canonical, target.seeds):
        if target.scope is Scope.SUBDOMAINS:
            yield surt.domain_prefix(seed)
        else:
            yield from map(surt.folder_prefix, surt.with_and_without_www(seed))


def _pages(targets: list[Target], sites: Mapping[str, Policy]) -> dict[str, Page]:
    """The seeds of page targets, each with its reach and policy. A seed within a site counts only as `plus1`."""
    pages: dict[str, Page] = {}
    for target in targets:
        reach = _reach(target)
        for seed in map(surt.canonical, target.seeds):
            if reach is Reach.PLUS1 or (reach and not _within(seed, sites)):
                known = pages.get(seed)
                widest = max(known.reach, reach, key=list(Reach).index) if known else reach
                pages[seed] = Page(widest, _wider(known.policy if known else None, target))
    return pages


def _reach(target: Target) -> Reach | None:
    """The reach of a page target, None for a site. A refresh never reaches further than the target itself."""
    if target.scope is Scope.RESOURCE:
        return Reach.RESOURCE
    if target.refresh:
        return Reach.REFRESH
    return Reach.PLUS1 if target.scope is Scope.PLUS1 else None


def _within(seed: str, sites: Mapping[str, Policy]) -> bool:
    whole = surt.surt(seed)
    return any(whole[:length] in sites for length in range(len(whole) + 1))


def _wider(known: Policy | None, target: Target) -> Policy:
    """The deeper of both depths, ignoring robots.txt if one of them does."""
    new = Policy(target.depth, target.ignore_robots)
    if known is None:
        return new
    return Policy(max(known.depth, new.depth, key=list(Depth).index), known.ignore_robots or new.ignore_robots)


def check_excluded(lines: Iterable[str]) -> None:
    """Raise BadConfig if a line of the operator's exclusions is neither a URL nor a SURT prefix."""
    for _ in _excluded(lines):
        pass


def _excluded(lines: Iterable[str]) -> Iterator[str]:
    """Prefixes from the operator's list of URLs or SURT prefixes (`http://(...`); skips blank lines and `#`."""
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if text.startswith("http://(") and text.isascii() and text.isprintable() and " " not in text:
            yield text.lower()
            continue
        try:
            yield surt.surt(surt.canonical(text))
        except ValueError as error:
            raise BadConfig("[feed] exclude", f"line {number}: {error}, and no SURT prefix 'http://(...'") from error


def _lines(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in sorted(lines)).encode("ascii")
