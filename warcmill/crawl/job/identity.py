"""The identity of a job: its seeds and its scope. Two crawls with the same are one job. Pure.

Neither the order nor the spelling of a URL counts, nor how often a list names it. Limits, politeness and rendering do
not count either: they may change from one launch to the next.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct

from warcmill.crawl.job import file
from warcmill.crawl.job.job import Job
from warcmill.crawl.job.values import CONFIGURATION
from warcmill.crawl.policies import scope
from warcmill.crawl.policies.scope import CrawlScope, SurtPrefixes
from warcmill.errors import BadInput
from warcmill.formats import seeds as seed_list
from warcmill.formats.seeds import SEED_LIST, comparable
from warcmill.formats.targets import PageReach

SHOWN = 2  # URLs or prefixes of a kind
_DEFAULT = CrawlScope().hops


class JobIdentity(Struct, frozen=True):
    """The seeds of a job in the form in which they are compared, and what its scope takes and refuses.

    `pages`: the seeds that are single pages. `refused`: its expressions and extensions. `is_listed`: there are more in
    seeds.jsonl.
    """

    seeds: frozenset[str]
    sites: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()
    pages: Mapping[str, PageReach] = {}
    hops: int = _DEFAULT
    refused: frozenset[str] = frozenset()
    is_listed: bool = False

    def unlike(self, wanted: JobIdentity, *, briefly: bool = False) -> str:
        """The seeds and the scope that this has and `wanted` has not, in words; '' if both are one job."""
        seeds = [*_difference("", self.seeds, wanted.seeds)]
        if self.is_listed != wanted.is_listed:
            seeds.append(f"{'' if self.is_listed else 'no '}{SEED_LIST}")
        parts = {"other seeds": seeds, "another scope": [*_differences(self, wanted)]}
        return " and ".join(
            word if briefly else f"{word} ({'; '.join(details)})" for word, details in parts.items() if details
        )

    def shrunk(self, before: JobIdentity) -> list[str]:
        """The losses since an earlier launch, which was asked for more: a line for each kind."""
        return [*_losses(before, self)]


def of(files: Mapping[str, bytes], name: str) -> JobIdentity:
    """The identity of the job that these files describe; BadConfig for a fault. Those of Heritrix are lists alone."""
    if CONFIGURATION not in files:
        listed = seed_list.read(files.get(file.SEEDS, b""))
        lines = files.get(file.SURTS, b"").decode("utf-8", "replace").splitlines()
        sites = scope.SurtPrefixes(one for line in lines if (one := _prefix(line)))
        return JobIdentity(frozenset(seed.url for seed in listed if not seed.added_from), frozenset(sites))
    job = file.described(files, name)
    return _of_job(job, is_listed=SEED_LIST in files)


def _of_job(job: Job, *, is_listed: bool) -> JobIdentity:
    bounds = job.scope if isinstance(job.scope, CrawlScope) else CrawlScope()
    refused = {*job.patterns, *(f".{one.lower().lstrip('.')}" for one in job.extensions)}
    return JobIdentity(
        frozenset(map(comparable, job.seeds)),
        frozenset(bounds.sites),
        frozenset(bounds.excluded),
        {comparable(seed): reach for seed, reach in bounds.pages.items()},
        bounds.hops,
        frozenset(refused),
        is_listed,
    )


def _prefix(line: str) -> str:
    """A SURT prefix of a line of surts.txt; '' for a comment, and for an invalid one."""
    try:
        return scope.prefix(line.strip().removeprefix("+").strip())
    except BadInput:
        return ""


def _differences(there: JobIdentity, wanted: JobIdentity) -> Iterator[str]:
    """The parts of a scope that are unlike those of another."""
    yield from _difference("sites ", there.sites, wanted.sites)
    yield from _difference("single pages ", _reaches(there), _reaches(wanted))
    yield from _difference("hops ", *({str(one.hops)} if there.hops != wanted.hops else () for one in (there, wanted)))
    yield from _difference("excluded ", there.excluded, wanted.excluded)
    yield from _difference("refused ", there.refused, wanted.refused)


def _difference(word: str, there: Collection[str], wanted: Collection[str]) -> Iterator[str]:
    has, lacks = named({*there} - {*wanted}), named({*wanted} - {*there})
    if has or lacks:
        yield word + ", ".join(filter(None, (has, lacks and f"not {lacks}")))


def _reaches(one: JobIdentity) -> frozenset[str]:
    return frozenset(f"{seed} as {reach}" for seed, reach in one.pages.items())


def _losses(before: JobIdentity, now: JobIdentity) -> Iterator[str]:
    if gone := before.seeds - now.seeds:
        yield f"{len(gone)} of {len(before.seeds)} seeds are gone: {named(gone)}"
    if before.is_listed and not now.is_listed:
        yield f"its {SEED_LIST} is gone"
    sites, excluded = SurtPrefixes(now.sites), SurtPrefixes(before.excluded)
    if lost := {one for one in before.sites if not sites.covering(one)}:
        yield f"sites that do not belong to it any more: {named(lost)}"
    if new := {one for one in now.excluded if not excluded.covering(one)}:
        yield f"newly excluded: {named(new)}"
    if narrowed := {seed for seed in before.seeds & now.seeds if _reach(now, seed) < _reach(before, seed)}:
        yield f"pages of which less is fetched: {named(narrowed)}"
    if now.hops < before.hops:
        yield f"at most {now.hops} hops from a seed, not {before.hops}"
    if refused := now.refused - before.refused:
        yield f"newly refused: {named(refused)}"


def _reach(one: JobIdentity, seed: str) -> int:
    """The reach of a seed. One that is not a single page is of a site, whose prefix is compared by itself."""
    return list(PageReach).index(one.pages.get(seed, PageReach.REFRESH))


def named(names: Collection[str]) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(sorted(names)[:SHOWN]) + more
