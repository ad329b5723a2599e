"""Findings of what a crawl was asked for and did not get: dead seeds, untried ones, targets without a page; and of a
launch of which nobody knows what it was asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from warcmill import layout
from warcmill.audit.crawl_finding import CrawlFinding
from warcmill.audit.survey import Survey
from warcmill.markers.facts import Seeds, SeedState

DEAD, UNTRIED, NO_PAGE, NO_LIST = "dead seed", "untried seed", "target without a page", "no seed list"
OF_SEEDS = (DEAD, UNTRIED)
KINDS = (*OF_SEEDS, NO_PAGE, NO_LIST)
LIST = "final/seeds.txt"  # as the finding of the absent log names it: one acceptance is for both
WORD = "seeds"
_TARGET = "target:"


def find(seen: Survey) -> Iterator[CrawlFinding]:
    """The findings of a launch; none before its seeds are listed."""
    found = seen.facts.get(seen.key(WORD))
    if not isinstance(found, Seeds):
        return
    if not found.listed and not seen.is_imported:
        yield CrawlFinding(None, NO_LIST, LIST, "the launch has none among its logs: which seeds it lost is unknown")
    for fate in (one for one in found.lost() if one.seed not in seen.got_on):
        yield CrawlFinding(None, DEAD if fate.state is SeedState.DEAD else UNTRIED, fate.seed, fate.why)
    for target in found.without_page:
        yield CrawlFinding(
            None, NO_PAGE, f"{_TARGET}{target}", "the feed asks for it, and no page was got from any seed of it"
        )


def is_accepted(seen: Survey, kind: str, name: str) -> bool:
    """True if an operator has accepted such a finding: a seed for the job; a target if all of its lost seeds are."""
    if kind in OF_SEEDS:
        return name in seen.accepted_seeds
    if layout.key("operator.Accept", seen.launch, finding=layout.finding_id(name)) in seen.markers:
        return True
    return kind == NO_PAGE and name.removeprefix(_TARGET) in seen.accepted_targets


def still_open(seen: Survey) -> list[CrawlFinding]:
    """The findings that nobody has accepted."""
    return [one for one in find(seen) if not is_accepted(seen, one.kind, one.name)]


def in_words(names: list[str], most: int = 3) -> str:
    """How many are lost, with the first names: `2 seeds or targets not got: http://a.example/, target:7`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    if LIST in names:
        return "not known which seeds were not got: its list of seeds is missing"
    one, many = ("seed or target", "seeds or targets") if any(map(_is_target, names)) else ("seed", "seeds")
    what = f"1 {one}" if len(names) == 1 else f"{len(names)} {many}"
    return f"{what} not got: {', '.join(names[:most])}{more}"


def _is_target(name: str) -> bool:
    return name.startswith(_TARGET)
