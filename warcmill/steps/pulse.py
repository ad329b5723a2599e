"""Start, checkpoint and stop crawls, so that a repeated cron line never does one twice.

What is done to an engine cannot be undone, and a kill may come right after.
So the intent is written down first, with what the engine said before; whoever
comes next looks whether the engine has gone on since, and finishes what was begun.
"""

from __future__ import annotations

from collections.abc import Callable

from warcmill import launches, layout
from warcmill.clients.engine import Engine, Seen
from warcmill.errors import BadInput, Conflict, Mismatch, NotReady
from warcmill.evidence import Claim
from warcmill.launches import Engines
from warcmill.ledger import Ledger
from warcmill.model import Json, Launch, Stage
from warcmill.state import State, input_of


def start(state: State, engine: Engine, job: str, due: str, prepare: Callable[[], dict[str, Json]]) -> Claim:
    """Launch a due crawl once; the claim of 00.due. Publishes 01.started of the launch first.

    `prepare` writes the job's configuration and returns facts of it. Conflict
    when the job runs a launch that this due crawl did not begin.
    """
    ledger = Ledger(state, layout.due_key(job, due))
    launch = Launch.parse(job, _launched(ledger, engine, job, due, prepare))
    started = layout.key("pulse.Started", launch)
    _refuse_other_due(state, launch, due)
    state.publish(started, Claim(started, facts={"due": due, **_prepared(ledger)}))
    return Claim(layout.due_key(job, due), (input_of(state, started),), facts={"launch_id": launch.id})


def _launched(ledger: Ledger, engine: Engine, job: str, due: str, prepare: Callable[[], dict[str, Json]]) -> str:
    """The launch of this due crawl: the one an earlier attempt began, or a new one."""
    seen = engine.look(job)
    intended = _line(ledger, "launching")
    if intended is not None and seen.launch_id > str(intended["after"]):
        return seen.launch_id
    if seen.running:
        raise Conflict(
            job, f"launch {seen.launch_id} is running ({seen.words}); stop it first: warcmill pulse stop {job}"
        )
    facts = prepare()
    ledger.append({"launching": due, "after": seen.launch_id, "prepared": facts})
    return engine.start(job)


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

    One that the launch's own job.log tells of already is not taken again.
    """
    name = _taken(engines, launch, number) or _take(engine, launch)
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
