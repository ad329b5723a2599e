"""Start, checkpoint and stop crawls, so that a repeated cron line never does one twice.

What is done to an engine cannot be undone, and a kill may come right after.
So the intent is written down first, with what the engine said before; whoever
comes next looks whether the engine has gone on since, and finishes what was begun.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from warcmill import launches, layout
from warcmill.clients.engine import Engine, Seen
from warcmill.errors import BadInput, Conflict, Mismatch, NotReady
from warcmill.evidence import Claim
from warcmill.launches import Engines
from warcmill.ledger import Ledger
from warcmill.model import Json, Launch, Stage
from warcmill.state import State, input_of
from warcmill.steps.continued import Continued

Prepare = Callable[[], dict[str, Json]]


@dataclass(frozen=True, slots=True)
class Begun:
    """A launch, and the due crawl that it was begun for; `is_told` when its 00.due marker says so."""

    launch: Launch
    due: str
    is_told: bool


def start(state: State, engine: Engine, job: str, due: str, prepare: Prepare, resume: Continued | None = None) -> Claim:
    """Launch a due crawl once, fresh or from a checkpoint; the claim of 00.due.

    Publishes 01.started of the launch first.
    `prepare` writes the job's configuration and returns facts of it. Conflict
    when the job runs a launch that this due crawl did not begin.
    """
    ledger = Ledger(state, layout.due_key(job, due))
    launch = Launch.parse(job, _launched(ledger, engine, due, prepare, resume))
    started = layout.key("pulse.Started", launch)
    _refuse_other_due(state, launch, due)
    state.publish(started, Claim(started, facts={"due": due, **_prepared(ledger)}))
    return Claim(layout.due_key(job, due), (input_of(state, started),), facts={"launch_id": launch.id})


def _launched(ledger: Ledger, engine: Engine, due: str, prepare: Prepare, resume: Continued | None) -> str:
    """The launch of this due crawl: the one an earlier attempt began, or a new one."""
    job = ledger.key["job"]
    seen = engine.look(job)
    intended = _line(ledger, "launching")
    if intended is not None and seen.launch_id > str(intended["after"]):
        if later := _overtaken(ledger.state, job, due, str(intended["after"])):
            raise Conflict(job, f"its start for {due} failed once, and the crawl due {later} was launched since")
        engine.proceed(job)
        return seen.launch_id
    if seen.running:
        raise Conflict(
            job, f"launch {seen.launch_id} is running ({seen.words}); stop it first: warcmill pulse stop {job}"
        )
    facts = {**prepare(), **(resume.facts() if resume else {})}
    ledger.append({"launching": due, "after": seen.launch_id, "prepared": facts})
    return engine.start(job, str(resume.checkpoint) if resume else "")


def running(state: State, engine: Engine, job: str) -> Begun | None:
    """The launch that the job runs, if it is one of ours: its marker says so, or the intent of a start that died."""
    seen = engine.look(job)
    if not seen.running:
        return None
    launch = Launch.parse(job, seen.launch_id)
    started = state.read(layout.key("pulse.Started", launch))
    due = str(started.claim.facts["due"]) if started else _intended(state, launch)
    return Begun(launch, due, state.holds(layout.due_key(job, due))) if due else None


def _intended(state: State, launch: Launch) -> str:
    """The newest due crawl of which a start was begun, and not finished, when the job's newest launch was older."""
    found = ""
    for due in _tried(state, launch):
        key = layout.due_key(launch.job, due)
        line = _line(Ledger(state, key), "launching")
        after = str(line["after"]) if line else launch.id
        if after < launch.id and not state.holds(key) and not _overtaken(state, launch.job, due, after):
            found = max(found, due)
    return found


def _overtaken(state: State, job: str, due: str, after: str) -> str:
    """A later due crawl that was launched since the launch `after`: the newest launch is not this due crawl's, then."""
    months = (entry.name for entry in state.store.list("") if entry.name >= f"{due[:4]}-{due[4:6]}")
    keys = (layout.parse_marker_name(name) for month in months for name in state.store.names(f"{month}/{job}"))
    later = {key["due"] for key in keys if key and key.task == "pulse.StartJob" and key["due"] > due}
    found = ((one, state.read(layout.due_key(job, one))) for one in sorted(later))
    return next((one for one, told in found if told and str(told.claim.facts["launch_id"]) > after), "")


def _tried(state: State, launch: Launch) -> set[str]:
    """The due times at which a start was tried, of the month of a launch and the one before."""
    month = launch.day.replace(day=1)
    folders = {f"{one:%Y-%m}/{launch.job}/attempts" for one in (month, month - timedelta(days=1))}
    names = (name for folder in folders for name in state.store.names(folder))
    keys = (layout.parse_marker_name(name.rsplit(".", 4)[0]) for name in names)  # {marker}.{utc}.{host}.{pid}.jsonl
    return {key["due"] for key in keys if key and key.task == "pulse.StartJob"}


def _line(ledger: Ledger, word: str) -> dict[str, Json] | None:
    """The newest line with this word that any attempt wrote."""
    lines = [line for attempt in ledger.attempts() for line in attempt.lines if word in line]
    return lines[-1] if lines else None


def _prepared(ledger: Ledger) -> dict[str, Json]:
    line = _line(ledger, "launching")
    prepared = line["prepared"] if line else {}
    assert isinstance(prepared, dict)
    return prepared


def _refuse_other_due(state: State, launch: Launch, due: str) -> None:
    found = state.read(layout.key("pulse.Started", launch))
    if found and found.claim.facts["due"] != due:
        why = f"was launched for {found.claim.facts['due']}, and cannot satisfy {due} as well"
        raise Conflict(str(launch), why)


def stop(engine: Engine, launch: Launch) -> Claim:
    """End a launch and see that it has ended; the claim of 01.confirmed.

    A launch that is no longer the engine's newest has ended long since.
    """
    seen = engine.look(launch.job)
    _refuse_unknown(seen, launch)
    if seen.running and seen.launch_id == launch.id:
        engine.stop(launch.job)
        seen = engine.look(launch.job)
        if seen.running and seen.launch_id == launch.id:
            raise NotReady(str(launch), f"it was told to stop and still runs: {seen.words}; run the same again")
    return Claim(layout.key("pulse.StopJob", launch), facts={"engine": "ended"})


def checkpoint(engines: Engines, engine: Engine, launch: Launch, number: int) -> Claim:
    """Take the checkpoint of this number of a running launch; the claim of 01.checkpointed.

    One that the launch's own job.log tells of already is not taken again. One that an earlier attempt asked for may
    have been on its way still when this one asked: then the engine takes two, and the first is the one of this number.
    """
    name = _taken(engines, launch, number) or _take(engine, launch)
    if Stage.parse(name).number != number:
        name = _taken(engines, launch, number) or name
    if Stage.parse(name).number != number:
        raise Mismatch(f"the number of the checkpoint that {launch} took", number, name)
    key = layout.key("pulse.CheckpointJob", launch, number=f"{number:05d}")
    return Claim(key, facts={"stage": name})


def next_number(engines: Engines, launch: Launch, continues: str) -> int:
    """The number of a launch's next checkpoint; `continues` is the checkpoint it was resumed from, or ''."""
    taken = [stage.number or 0 for stage in launches.checkpoints(engines, launch)]
    resumed = [Stage.parse(continues).number or 0] if continues else []
    return max([0, *resumed, *taken]) + 1


def _taken(engines: Engines, launch: Launch, number: int) -> str:
    return next((str(stage) for stage in launches.checkpoints(engines, launch) if stage.number == number), "")


def _take(engine: Engine, launch: Launch) -> str:
    seen = engine.look(launch.job)
    _refuse_unknown(seen, launch)
    if not seen.running or seen.launch_id != launch.id:
        raise NotReady(str(launch), f"it does not run, so it cannot be checkpointed: {seen.words}")
    return engine.checkpoint(launch.job)


def _refuse_unknown(seen: Seen, launch: Launch) -> None:
    if seen.launch_id < launch.id:
        raise BadInput(str(launch), f"the engine's newest launch of this job is {seen.launch_id or 'none'}")
