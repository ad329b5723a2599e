"""Start, checkpoint and stop crawls, so that a repeated cron line never does it twice.

A command to an engine cannot be undone, and a kill may follow it at once. So
the intent is written first, with the engine's newest launch before it. The next
run compares that with the engine's newest launch now, and finishes the start.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from msgspec import Struct

from warcmill import layout
from warcmill.base import clock
from warcmill.clients.engine import Engine, JobStatus
from warcmill.errors import BadInput, Conflict, Mismatch, NotReady
from warcmill.launches.roots import JobRoots
from warcmill.launches.view import checkpoints
from warcmill.markers.attempts import Attempts, Launching
from warcmill.markers.claim import Claim, Evidence
from warcmill.markers.facts.pulse import Continued, Fed, Launched, Started, follows
from warcmill.markers.state import MarkerStore, input_of, rests_on
from warcmill.model import Json, Launch, Stage

Prepare = Callable[[], dict[str, Json]]
Resume = Callable[[], Continued | None]


class Begun(Struct, frozen=True):
    """A launch, and the due crawl it was started for. `is_recorded`: that crawl has its 00.due marker."""

    launch: Launch
    due: str
    is_recorded: bool


def _afresh() -> None:
    """Continue nothing."""


def start(state: MarkerStore, engine: Engine, job: str, due: str, prepare: Prepare, resume: Resume = _afresh) -> Claim:
    """Launch a due crawl once; return the claim of 00.due. Publishes the launch's 01.started first.

    It begins fresh, continues a checkpoint, or follows the job's newest launch, if the engine has it so.
    `prepare` writes the job's configuration and returns facts of it; `resume` returns the checkpoint to continue.
    Each is called only if nothing was launched yet. Conflict when the job runs a launch that this due
    crawl did not start.
    """
    attempts = Attempts(state, layout.due_key(job, due))
    launch = Launch.parse(job, _launched(attempts, engine, due, prepare, resume))
    started = layout.key("pulse.Started", launch)
    _refuse_other_due(state, launch, due)
    intended = _launching(attempts)
    state.publish(started, Claim(started, facts={"due": due, **(intended.prepared if intended else {})}))
    return Claim(layout.due_key(job, due), (input_of(state, started),), facts={"launch_id": launch.id})


def _launched(attempts: Attempts, engine: Engine, due: str, prepare: Prepare, resume: Resume) -> str:
    """The id of this due crawl's launch: the one an earlier attempt started, or a new one."""
    job = attempts.key["job"]
    seen = engine.look(job)
    intended = _launching(attempts)
    if intended is not None and seen.launch_id > intended.after:
        if later := _overtaken(attempts.state, job, due, intended.after):
            raise Conflict(job, f"its start for {due} failed once, and the crawl due {later} was launched since")
        engine.proceed(job)
        return seen.launch_id
    if seen.running:
        raise Conflict(
            job, f"launch {seen.launch_id} is running ({seen.words}); stop it first: warcmill pulse stop {job}"
        )
    continued = resume()
    prepared = prepare()
    followed = "" if continued else seen.launch_id if prepared.get("retries") else engine.follows(job)
    begins = continued.facts() if continued else follows(followed)
    endless: dict[str, Json] = {"endless": True} if engine.is_endless(job) else {}
    facts = {**prepared, "engine": engine.kind, **begins, **endless}
    attempts.append({"launching": due, "after": seen.launch_id, "prepared": facts})
    return engine.start(job, str(continued.checkpoint) if continued else "", followed)


def unchanged(job: str, due: str, fed: Evidence, newest: Launch) -> Claim | None:
    """The claim of 00.due of a crawl whose feed asks for nothing: the newest launch has all of it. None if it asks."""
    if Fed.from_claim(fed.claim).counts["of_job"]:
        return None
    return Claim(layout.due_key(job, due), rests_on(fed), facts={"launch_id": newest.id, "nothing_new": True})


def running(state: MarkerStore, engine: Engine, job: str) -> Begun | None:
    """The launch that the job runs, if we started it: by its 01.started, or by the intent of a killed start."""
    seen = engine.look(job)
    if not seen.running:
        return None
    launch = Launch.parse(job, seen.launch_id)
    started = state.read(layout.key("pulse.Started", launch))
    due = Started.from_claim(started.claim).due if started else _intended(state, launch)
    return Begun(launch, due, state.holds(layout.due_key(job, due))) if due else None


def _intended(state: MarkerStore, launch: Launch) -> str:
    """The newest due crawl with an unfinished start that may have begun this launch; '' when there is none."""
    newest = ""
    for due in _tried(state, launch):
        key = layout.due_key(launch.job, due)
        intended = _launching(Attempts(state, key))
        after = intended.after if intended else launch.id
        if after < launch.id and not state.holds(key) and not _overtaken(state, launch.job, due, after):
            newest = max(newest, due)
    return newest


def _overtaken(state: MarkerStore, job: str, due: str, after: str) -> str:
    """A later due crawl launched since the launch `after`, or ''. If there is one, the newest launch is not `due`'s."""
    months = (entry.name for entry in state.store.list("") if entry.name >= f"{due[:4]}-{due[4:6]}")
    keys = (layout.parse_marker_name(name) for month in months for name in state.store.names(f"{month}/{job}"))
    later = {key["due"] for key in keys if key and key.task == "pulse.StartJob" and key["due"] > due}
    markers = ((other, state.read(layout.due_key(job, other))) for other in sorted(later))
    return next((other for other, found in markers if found and Launched.from_claim(found.claim).launch.id > after), "")


def _tried(state: MarkerStore, launch: Launch) -> set[str]:
    """The due times with attempts at a start, in the month of a launch and the month before."""
    month = launch.day.replace(day=1)
    folders = {f"{clock.month(day)}/{launch.job}" for day in (month, month - timedelta(days=1))}
    names = (name for folder in folders for name in state.store.names(layout.attempts_folder(folder)))
    keys = map(layout.parse_attempt_name, names)
    return {key["due"] for key in keys if key and key.task == "pulse.StartJob"}


def _launching(attempts: Attempts) -> Launching | None:
    """The newest start that an attempt intended; None when there is none."""
    intents = [launching for attempt in attempts.earlier() for launching in attempt.launchings]
    return intents[-1] if intents else None


def _refuse_other_due(state: MarkerStore, launch: Launch, due: str) -> None:
    started = state.read(layout.key("pulse.Started", launch))
    launched_for = Started.from_claim(started.claim).due if started else due
    if launched_for != due:
        raise Conflict(str(launch), f"was launched for {launched_for}, and cannot satisfy {due} as well")


def stop(engine: Engine, launch: Launch) -> Claim:
    """End a launch and confirm that it has ended; return the claim of 01.confirmed.

    A launch that is no longer the engine's newest has ended already.
    """
    seen = engine.look(launch.job)
    _refuse_unknown(seen, launch)
    if (seen.running or seen.died) and seen.launch_id == launch.id:
        engine.stop(launch.job)
        seen = engine.look(launch.job)
        if (seen.running or seen.died) and seen.launch_id == launch.id:
            raise NotReady(str(launch), f"it was asked to stop and still runs: {seen.words}; run the same again")
    return Claim(layout.key("pulse.StopJob", launch), facts={"engine": "ended"})


def checkpoint(roots: JobRoots, engine: Engine, launch: Launch, number: int) -> Claim:
    """Take checkpoint `number` of a running launch; return the claim of 01.checkpointed.

    A checkpoint that is in the launch's job.log is not taken again. If the engine was still busy with one that an
    earlier attempt requested, it takes two: then the first has this number. Mismatch when neither has.
    """
    name = _taken(roots, launch, number) or _take(engine, launch)
    if Stage.parse(name).number != number:
        name = _taken(roots, launch, number) or name
    if Stage.parse(name).number != number:
        raise Mismatch(f"the number of the checkpoint that {launch} took", number, name)
    key = layout.key("pulse.CheckpointJob", launch, number=f"{number:05d}")
    return Claim(key, facts={"stage": name})


def next_number(roots: JobRoots, launch: Launch, continues: str) -> int:
    """The number of a launch's next checkpoint. `continues`: the checkpoint it was resumed from, or ''."""
    taken = [stage.number or 0 for stage in checkpoints(roots, launch)]
    resumed = [Stage.parse(continues).number or 0] if continues else []
    return max([0, *resumed, *taken]) + 1


def _taken(roots: JobRoots, launch: Launch, number: int) -> str:
    return next((str(stage) for stage in checkpoints(roots, launch) if stage.number == number), "")


def _take(engine: Engine, launch: Launch) -> str:
    seen = engine.look(launch.job)
    _refuse_unknown(seen, launch)
    if not seen.running or seen.launch_id != launch.id:
        raise NotReady(str(launch), f"it does not run, so it cannot be checkpointed: {seen.words}")
    return engine.checkpoint(launch.job)


def _refuse_unknown(seen: JobStatus, launch: Launch) -> None:
    if seen.launch_id < launch.id:
        raise BadInput(str(launch), f"the engine's newest launch of this job is {seen.launch_id or 'none'}")
