"""Find the launch that a resumed launch continues, and the checkpoint that it started from.

A resumed launch numbers its checkpoints on from that one, and crawls again
what came after it. So the earlier launch's stages up to that checkpoint, and
its own stages, together are the crawl.
"""

from __future__ import annotations

from warcmill import layout
from warcmill.errors import BadInput
from warcmill.launches import ending
from warcmill.launches.listing import list_files
from warcmill.launches.roots import JobRoots
from warcmill.markers.claim import Input
from warcmill.markers.facts import Continued, Started
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import Launch, Stage


def of(state: MarkerStore, roots: JobRoots, launch: Launch) -> Continued | None:
    """Return what a launch continues; None for a fresh one, and when it is uncertain.

    Its 01.started marker decides. A launch resumed by hand has none: then its
    first checkpoint has a number above 1, and exactly one earlier checkpoint
    of the job must have the number before that.
    """
    started = state.read(layout.key("pulse.Started", launch))
    return Started.from_claim(started.claim).continues if started else _by_hand(roots, launch)


def inputs(state: MarkerStore, launch: Launch) -> tuple[Input, ...]:
    """Return the 01.started marker of a resumed launch, as an input of a claim; none for a fresh launch."""
    started = state.read(layout.key("pulse.Started", launch))
    return rests_on(started) if started and Started.from_claim(started.claim).continues else ()


def to_assemble(state: MarkerStore, roots: JobRoots, launch: Launch) -> Continued | None:
    """Return the stage that must be assembled before a resumed launch's first one, so that its package holds both.

    None for a fresh launch, and when nothing is left of the earlier one.
    """
    continued = of(state, roots, launch)
    if continued is None:
        return None
    left = {*list_files(roots, continued.launch).logs, *state.stages(continued.launch)}
    return continued if continued.checkpoint in left else None


def of_checkpoint(roots: JobRoots, job: str, checkpoint: str) -> Continued:
    """Return the launch that took this checkpoint, by the job's job.log, or raise BadInput."""
    wanted = Stage.parse(checkpoint)
    for launch, stage in ending.history(roots, job):
        if stage == wanted:
            return Continued(launch, stage)
    raise BadInput(f"{job} {checkpoint}", "the job's job.log tells of no such checkpoint; look into its checkpoints/")


def _by_hand(roots: JobRoots, launch: Launch) -> Continued | None:
    own = ending.checkpoints(roots, launch)
    first = min((stage.number or 0 for stage in own), default=1)
    earlier = ((other, stage) for other, stage in ending.history(roots, launch.job) if other < launch)
    candidates = {(other, stage) for other, stage in earlier if stage.number == first - 1}
    return Continued(*candidates.pop()) if len(candidates) == 1 else None
