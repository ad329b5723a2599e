"""Which launch a resumed launch continues, and from which of its checkpoints.

A launch that was resumed counts its checkpoints on from the one it came from,
and crawls again what came after that: the earlier launch's stages up to there
and its own stages together are the crawl.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warcmill import launches, layout
from warcmill.errors import BadInput
from warcmill.evidence import Input
from warcmill.launches import Engines
from warcmill.model import Json, Launch, Stage
from warcmill.state import State


@dataclass(frozen=True, slots=True)
class Continued:
    """The earlier launch, and the checkpoint of it that was resumed."""

    launch: Launch
    checkpoint: Stage

    def facts(self) -> dict[str, Json]:
        """As claims and reports write it."""
        return {"continues": {"launch_id": self.launch.id, "checkpoint": str(self.checkpoint)}}


def of(state: State, engines: Engines, launch: Launch) -> Continued | None:
    """What a launch continues; None for a fresh one, and where it is not certain.

    Its 01.started marker says it. One resumed by hand is told by its first
    checkpoint, which is not the first of all, if only one checkpoint of the
    job before it has the number that comes before.
    """
    started = state.read(layout.key("pulse.Started", launch))
    return in_facts(launch, started.claim.facts) if started else _by_hand(engines, launch)


def said_by(state: State, launch: Launch) -> tuple[Input, ...]:
    """The 01.started marker that says it, as a claim names it among its inputs; none for a fresh launch."""
    key = layout.key("pulse.Started", launch)
    started = state.read(key)
    told = started and in_facts(launch, started.claim.facts)
    return (Input(layout.marker_path(key), started.digest),) if started and told else ()


def in_facts(launch: Launch, facts: Mapping[str, Json]) -> Continued | None:
    """What the facts of a claim of this launch say that it continues."""
    told = facts.get("continues")
    if not isinstance(told, dict):
        return None
    return Continued(Launch.parse(launch.job, str(told["launch_id"])), Stage.parse(str(told["checkpoint"])))


def to_assemble(state: State, engines: Engines, launch: Launch) -> Continued | None:
    """The stage that is assembled before a resumed launch's first, so that its package holds both.

    None for a fresh launch, and where nothing is left of the earlier one.
    """
    found = of(state, engines, launch)
    if found is None:
        return None
    left = {*launches.read(engines, found.launch).logs, *state.stages(found.launch)}
    return found if found.checkpoint in left else None


def of_checkpoint(engines: Engines, job: str, checkpoint: str) -> Continued:
    """Which launch took this checkpoint, by the job's job.log, or BadInput."""
    wanted = Stage.parse(checkpoint)
    for launch, stage in launches.history(engines, job):
        if stage == wanted:
            return Continued(launch, stage)
    raise BadInput(f"{job} {checkpoint}", "the job's job.log tells of no such checkpoint; look into its checkpoints/")


def _by_hand(engines: Engines, launch: Launch) -> Continued | None:
    own = launches.checkpoints(engines, launch)
    first = min((stage.number or 0 for stage in own), default=1)
    before = [one for one in launches.history(engines, launch.job) if one[0] < launch]
    found = {one for one in before if one[1].number == first - 1}
    return Continued(*found.pop()) if len(found) == 1 else None
