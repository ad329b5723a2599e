"""Accept lost seeds for a job: by decisions, as they hold for its later launches too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from commands.printing import out
from tasks.step import OpenRoots
from warcmill.audit import accepted_seeds, gaps, lost_seeds
from warcmill.audit.survey import Survey
from warcmill.errors import BadInput
from warcmill.markers import decisions
from warcmill.markers.decisions import ACCEPTED, Decision
from warcmill.model import Json, Launch

MOST_BYTES = 1 << 19  # of the names in one decision: it has room for twice as many
SHOWN = 10


def are_seeds(seen: Survey, name: str) -> bool:
    """Whether what is found under this name in a launch is a lost seed, and nothing else."""
    both = (*gaps.find(seen)[0], *gaps.find(seen)[1])
    kinds = {gap.kind for gap in both if gap.name == name and gap.kind in gaps.ACCEPTABLE}
    return bool(kinds) and kinds <= set(lost_seeds.OF_SEEDS)


def open_seeds(seen: Survey) -> list[str]:
    """The lost seeds of a launch that nobody has accepted. BadInput when there is none."""
    if names := [one.name for one in lost_seeds.still_open(seen) if one.kind in lost_seeds.OF_SEEDS]:
        return names
    raise BadInput(str(seen.launch), "no seed of it is open: each was got, or is accepted, or they are not listed yet")


def accept(line: OpenRoots, launch: Launch, names: list[str], reason: str) -> None:
    """Decide that these seeds of a launch are accepted, in it and in later launches of the job; report it.

    Unavailable when the store does not have the decision by then; it stands in the state.
    """
    for some in _portions(names):
        facts = accepted_seeds.facts(launch, some, reason)
        decisions.make(line.state.store, lambda: line.store, ACCEPTED, facts, unless=partial(_same, facts))
    out(*(f"accepted: {launch} and later launches of the job: {name}" for name in names[:SHOWN]))
    if len(names) > SHOWN:
        out(f"accepted: {len(names) - SHOWN} more seeds of {launch}")


def _same(facts: Mapping[str, Json], made: Sequence[Decision]) -> Decision | None:
    return next((one for one in made if one.facts == facts), None)


def _portions(names: Iterable[str]) -> Iterator[list[str]]:
    portion: list[str] = []
    size = 0
    for name in names:
        portion.append(name)
        size += len(name.encode()) + 8
        if size > MOST_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion
