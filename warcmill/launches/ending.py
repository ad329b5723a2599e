"""Decide whether a launch, or one of its checkpoints, has ended, from the engine's logs and the markers together.

MERGED warcmill/launches/ending.py: Find the launch that a resumed launch continues, and the checkpoint that it
started from.

A resumed launch numbers its checkpoints on from that one, and crawls again
what came after it. So the earlier launch's stages up to that checkpoint, and
its own stages, together are the crawl.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warcmill import layout
from warcmill.errors import BadInput, NotReady
from warcmill.formats.logs import joblog
from warcmill.launches.listing import OWN_CONFIGURATION, Listing, list_files
from warcmill.launches.roots import JobRoots
from warcmill.markers.claim import Input
from warcmill.markers.facts import Continued, Ended, Started, Stopped
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import Launch, Stage


def ended(state: MarkerStore, roots: JobRoots, launch: Launch) -> str:
    """Return how a launch ended: `confirmed`, `finished`, `superseded`, `imported` or `closed`; '' without evidence.

    The first of these counts: our StopJob saw it end; its own job.log says FINISHED;
    a later launch of the job began; its WARCs were imported; an operator closed it.
    """
    if state.read(layout.key("pulse.StopJob", launch)):
        return Ended.CONFIRMED
    by_log = how_ended(roots, launch)
    if by_log:
        return by_log
    if state.read(layout.key("operator.Import", launch)):
        return Ended.IMPORTED
    return Ended.OPERATOR if state.read(layout.key("operator.Close", launch)) else ""


def how_it_ended(state: MarkerStore, launch: Launch) -> tuple[str, str]:
    """Return how the launch ended, and the time of FINISHED or '', by its 01.stopped marker; NotReady without one."""
    stopped = Stopped.from_claim(state.require(layout.key("output.CheckJobStopped", launch)).claim)
    return str(stopped.how), stopped.finished


def is_sealed(state: MarkerStore, roots: JobRoots, launch: Launch, stage: Stage, listing: Listing) -> bool:
    """True if all logs of a checkpoint are in place: the engine renames seven files, which is not atomic."""
    later = any(other > stage and not other.is_final for other in listing.logs)
    return later or is_checkpointed(roots, launch, stage) or bool(ended(state, roots, launch))


def how_ended(roots: JobRoots, launch: Launch) -> str:
    """Return how a launch ended by the engine's own logs: `finished`, `superseded`, or '' when they show no end.

    Locks, silence and age prove no end; EMPTY and STOPPING are written before the logs are complete.
    """
    own = _events(roots, f"{launch.job}/{launch.id}/job.log")
    if any(event.word == "FINISHED" and event.subject == launch.id for event in own):
        return Ended.FINISHED
    later = _events(roots, f"{launch.job}/job.log")
    superseded = any(event.word == "PREPARING" and _is_later(event.subject, launch) for event in later)
    return Ended.SUPERSEDED if superseded else ""


def is_own(roots: JobRoots, launch: Launch) -> bool:
    """True if it is a launch of the built-in crawler."""
    return roots.jobs.stat(f"{launch.job}/{launch.id}/{OWN_CONFIGURATION}") is not None


def way_to_end(roots: JobRoots, launch: Launch) -> str:
    """The command that ends a launch whose engine is gone: the built-in crawler puts its own in order."""
    if is_own(roots, launch):
        return f"warcmill pulse stop {launch.job}"
    return f"warcmill close {launch.job} {launch.id} --reason TEXT"


def _is_later(launch_id: str, launch: Launch) -> bool:
    return len(launch_id) == 14 and launch_id.isdigit() and launch_id > launch.id


def end_time(roots: JobRoots, launch: Launch) -> str:
    """Return the time of the launch's own FINISHED line; '' when there is none."""
    own = _events(roots, f"{launch.job}/{launch.id}/job.log")
    return next((event.time for event in own if event.word == "FINISHED" and event.subject == launch.id), "")


def is_checkpointed(roots: JobRoots, launch: Launch, stage: Stage) -> bool:
    """True if the launch's job.log says that this checkpoint is done: its logs are renamed before that."""
    return stage in checkpoints(roots, launch)


def checkpoints(roots: JobRoots, launch: Launch) -> list[Stage]:
    """Return the checkpoints in the launch's own job.log, in order of time."""
    return checkpoints_in(_events(roots, f"{launch.job}/{launch.id}/job.log"))


def checkpoints_in(events: Iterable[joblog.Event]) -> list[Stage]:
    """Return the checkpoints among the events of a launch's job.log, in their order."""
    stages = []
    for event in events:
        if event.word == "CHECKPOINTED":
            try:
                stages.append(Stage.parse(event.subject))
            except BadInput:
                continue  # not the name of a checkpoint
    return stages


def history(roots: JobRoots, job: str) -> list[tuple[Launch, Stage]]:
    """Return every checkpoint in the job's own job.log, with the launch that took it, in order of time."""
    checkpoints: list[tuple[Launch, Stage]] = []
    running: Launch | None = None
    for event in _events(roots, f"{job}/job.log"):
        try:
            if event.word == "PREPARING":
                running = Launch.parse(job, event.subject)
            elif event.word == "CHECKPOINTED" and running:
                checkpoints.append((running, Stage.parse(event.subject)))
        except BadInput:
            continue  # not the name of a launch or checkpoint
    return checkpoints


def _events(roots: JobRoots, path: str) -> Iterator[joblog.Event]:
    try:
        file = roots.jobs.open(path)
    except NotReady:
        return
    with file:
        yield from joblog.events(file)


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
    for launch, stage in history(roots, job):
        if stage == wanted:
            return Continued(launch, stage)
    raise BadInput(f"{job} {checkpoint}", "the job's job.log tells of no such checkpoint; look into its checkpoints/")


def _by_hand(roots: JobRoots, launch: Launch) -> Continued | None:
    own = checkpoints(roots, launch)
    first = min((stage.number or 0 for stage in own), default=1)
    earlier = ((other, stage) for other, stage in history(roots, launch.job) if other < launch)
    candidates = {(other, stage) for other, stage in earlier if stage.number == first - 1}
    return Continued(*candidates.pop()) if len(candidates) == 1 else None
