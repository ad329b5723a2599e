"""Accept lost seeds for a job: by decisions, as they hold for its later launches too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from commands.console.show import counted, out
from tasks.step import OpenRoots
from warcmill.audit import accepted_seeds, findings
from warcmill.audit.survey import Survey
from warcmill.errors import BadInput
from warcmill.markers import decisions
from warcmill.markers.decisions import ACCEPTED
from warcmill.model import Launch

MOST_BYTES = 1 << 19  # of the names in one decision: it has room for twice as many
SHOWN = 10


def accept_all(line: OpenRoots, seen: Survey, reason: str) -> None:
    """Accept all lost seeds of a launch that nobody has accepted. BadInput when it has lost none."""
    lost = [one.name for one in findings.lost_seeds(seen) if one.kind in findings.OF_SEEDS]
    if not lost:
        raise BadInput(str(seen.launch), "it has no lost seed: each was got, or they are not listed yet")
    if opened := [name for name in lost if name not in seen.accepted_seeds]:
        accept(line, {seen.launch: opened}, reason)
    else:
        decisions.copy(line.state.store, lambda: line.store, ACCEPTED)  # the store may have been away
        out(f"accepted already: {counted(len(lost), 'lost seed', 'lost seeds')} of {seen.launch}")


def accept(line: OpenRoots, seeds: Mapping[Launch, Sequence[str]], reason: str) -> None:
    """Decide that these seeds of some launches are accepted, in each and in later ones of its job; report it.

    Unavailable when the store does not have the decisions by then; they stand in the state.
    """
    portions = ((launch, some) for launch, names in seeds.items() for some in _portions(names))
    wanted = (accepted_seeds.facts(launch, some, reason) for launch, some in portions)
    decisions.make_all(line.state.store, lambda: line.store, ACCEPTED, wanted)
    for launch, names in seeds.items():
        out(*(f"accepted: {launch} and later launches of the job: {name}" for name in names[:SHOWN]))
        if len(names) > SHOWN:
            out(f"accepted: {len(names) - SHOWN} more seeds of {launch}")


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
