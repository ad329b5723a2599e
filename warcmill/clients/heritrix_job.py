"""What Heritrix is to crawl, as the files of its job: from a feed's targets to seeds, prefixes and sheets.

    crawler-beans.cxml   the profile, filled in; its sheets say how each target is crawled
    seeds.txt            where to begin
    surts.txt            prefixes of what belongs to the targets
    exclude.txt          prefixes of what is never crawled

A target of scope `root` or `subdomains` is a site: what begins with one of its
prefixes belongs to it, whatever page leads there. One of scope `resource` or
`plus1` is a page: what was reached from its seed belongs to it, and nothing
else. Of a target that is refreshed each seed is a page, with what it embeds.
Where targets overlap, each URL is crawled as the wider of them allows.

Pure, and the same bytes for the same targets in any order. Nothing of a feed
but URLs in their canonical spelling gets into the XML: a title or an id never.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from warcmill.clients import heritrix_sheets
from warcmill.clients.heritrix_sheets import Caps, Page, Reach, Way
from warcmill.errors import BadConfig
from warcmill.formats import surt
from warcmill.formats.feed import Depth, Scope, Target
from warcmill.schedule import Frequency

CONFIGURATION: Final = "crawler-beans.cxml"
TARGETS_HERE: Final = "<!--@targets@-->"
SITES: Final = frozenset({Scope.ROOT, Scope.SUBDOMAINS})


def selected(targets: Iterable[Target], frequency: Frequency, due: datetime) -> list[Target]:
    """The targets that a job of this frequency crawls at `due`: a schedule of that frequency is in force.

    One of which only a refresh is due then is a refresh.
    """
    in_force = [
        (target, [one for one in target.schedules if one.frequency == frequency and one.holds(due)])
        for target in targets
    ]
    return [replace(target, refresh=all(one.refresh for one in found)) for target, found in in_force if found]


def files(
    targets: Iterable[Target], profile: str, values: Mapping[str, str], excluded: Iterable[str], caps: Caps
) -> dict[str, bytes]:
    """All files of the job, by name. `values` fill the profile's `@name@`; `excluded` are URLs or SURT prefixes."""
    chosen = list(targets)
    sites = _sites(chosen)
    prefixes = {*_excluded(excluded)}.union(*(target.log_out() for target in chosen))
    beans = heritrix_sheets.beans(sites, _pages(chosen, sites), caps)
    values = {**values, "capped_kb": str(caps.capped // 1024)}
    return {
        CONFIGURATION: filled(profile, values, beans).encode(),
        "seeds.txt": _lines({surt.canonical(seed) for target in chosen for seed in target.seeds}),
        "surts.txt": _lines(f"+{prefix}" for prefix in sites),
        "exclude.txt": _lines(f"+{prefix}" for prefix in prefixes),
    }


def filled(profile: str, values: Mapping[str, str], beans: str) -> str:
    """The profile with `@name@` replaced by values, escaped, and the targets' beans in their place; or BadConfig."""
    if profile.count(TARGETS_HERE) != 1:
        raise BadConfig("[feed] profile", f"must have {TARGETS_HERE} once, where the targets' sheets go")
    for name, value in values.items():
        profile = profile.replace(f"@{name}@", heritrix_sheets.xml(value))
    return profile.replace(TARGETS_HERE, beans)


def _sites(targets: list[Target]) -> dict[str, Way]:
    """Every site's prefixes and how it is crawled: of two targets with one prefix the deeper, and ignoring wins."""
    found: dict[str, Way] = {}
    for target in targets:
        if target.scope in SITES and not target.refresh:
            for prefix in _prefixes(target):
                found[prefix] = _wider(found.get(prefix), target)
    return found


def _prefixes(target: Target) -> Iterator[str]:
    for seed in map(surt.canonical, target.seeds):
        if target.scope is Scope.SUBDOMAINS:
            yield surt.domain_prefix(seed)
        else:
            yield from map(surt.folder_prefix, surt.with_and_without_www(seed))


def _pages(targets: list[Target], sites: Mapping[str, Way]) -> dict[str, Page]:
    """Seeds of page targets and how each is crawled. One that lies in a site can be a `plus1` as well, no less."""
    found: dict[str, Page] = {}
    for target in targets:
        reach = _reach(target)
        for seed in map(surt.canonical, target.seeds):
            if reach is Reach.PLUS1 or (reach and not _within(seed, sites)):
                known = found.get(seed)
                widest = max(known.reach, reach, key=list(Reach).index) if known else reach
                found[seed] = Page(widest, _wider(known.way if known else None, target))
    return found


def _reach(target: Target) -> Reach | None:
    """How far from its seeds a page target goes; None for a site. To refresh a target never goes further than it."""
    if target.scope is Scope.RESOURCE:
        return Reach.RESOURCE
    if target.refresh:
        return Reach.REFRESH
    return Reach.PLUS1 if target.scope is Scope.PLUS1 else None


def _within(seed: str, sites: Mapping[str, Way]) -> bool:
    whole = surt.surt(seed)
    return any(whole[:length] in sites for length in range(len(whole) + 1))


def _wider(known: Way | None, target: Target) -> Way:
    new = Way(target.depth, target.ignore_robots)
    if known is None:
        return new
    return Way(max(known.depth, new.depth, key=list(Depth).index), known.ignore_robots or new.ignore_robots)


def check_excluded(lines: Iterable[str]) -> None:
    """BadConfig when a line of the operator's own list is neither a URL nor a SURT prefix."""
    for _ in _excluded(lines):
        pass


def _excluded(lines: Iterable[str]) -> Iterator[str]:
    """The operator's own list: URLs, or SURT prefixes that begin `http://(`; blank lines and `#` are passed over."""
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
