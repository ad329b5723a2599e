"""Findings of what a crawl was asked for and did not get: dead seeds, untried ones, targets without a page. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from warcmill import layout
from warcmill.audit.crawl_finding import CrawlFinding
from warcmill.audit.survey import Survey
from warcmill.formats.seeds import comparable
from warcmill.markers.facts import SeedFate, Seeds, SeedState

DEAD, UNTRIED, NO_PAGE = "dead seed", "untried seed", "target without a page"
OF_SEEDS = (DEAD, UNTRIED)
KINDS = (*OF_SEEDS, NO_PAGE)
WORD = "seeds"
_TARGET = "target:"


def find(seen: Survey) -> Iterator[CrawlFinding]:
    """The findings of a launch; none before its seeds are listed."""
    found = seen.facts.get(seen.key(WORD))
    if not isinstance(found, Seeds):
        return
    for fate in found.lost():
        yield CrawlFinding(None, DEAD if fate.state is SeedState.DEAD else UNTRIED, fate.seed, fate.why)
    for target in found.without_page:
        yield CrawlFinding(
            None, NO_PAGE, f"{_TARGET}{target}", "the feed asks for it, and no page was got from any seed of it"
        )


def is_accepted(seen: Survey, kind: str, name: str) -> bool:
    """Whether an operator has accepted such a finding: a seed for the job; a target if all of its lost seeds are."""
    if kind in OF_SEEDS:
        return comparable(name) in seen.accepted_seeds
    if layout.key("operator.Accept", seen.launch, finding=layout.finding_id(name)) in seen.markers:
        return True
    lost = _lost(seen, name.removeprefix(_TARGET)) if kind == NO_PAGE else ()
    return bool(lost) and all(comparable(fate.seed) in seen.accepted_seeds for fate in lost)


def still_open(seen: Survey) -> list[CrawlFinding]:
    """The findings that nobody has accepted."""
    return [one for one in find(seen) if not is_accepted(seen, one.kind, one.name)]


def in_words(names: list[str], most: int = 3) -> str:
    """How many are lost, with the first names: `2 seeds or targets not got: http://a.example/, target:7`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    one, many = ("seed or target", "seeds or targets") if any(map(_is_target, names)) else ("seed", "seeds")
    what = f"1 {one}" if len(names) == 1 else f"{len(names)} {many}"
    return f"{what} not got: {', '.join(names[:most])}{more}"


def _is_target(name: str) -> bool:
    return name.startswith(_TARGET)


def _lost(seen: Survey, target: str) -> tuple[SeedFate, ...]:
    found = seen.facts.get(seen.key(WORD))
    return tuple(fate for fate in found.lost() if fate.target == target) if isinstance(found, Seeds) else ()
